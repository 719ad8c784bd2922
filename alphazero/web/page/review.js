// The review of the whole game: the chart of values, each side's accuracy, and the mistakes.

import { lineChart, pickable } from "./chart.js";
import { announce, button, el, percent, refill, say } from "./dom.js";
import { judge } from "./judge.js";
import { swatch } from "./shapes.js";

const SIMULATIONS = 100;
const NAMES = ["First player", "Second player"];

export class Review {
  // `view` has {app, game, line, picker, go(ply), tryAgain(mistake), onJudged()}.
  constructor(view) {
    this.view = view;
    this.values = new Map();
    this.reset();
    this.chart = el("div", {
      class: "chart-box", tabindex: "0", role: "slider", "aria-valuemin": "0",
      "aria-label": "Expected score of the first player after each move; the arrow keys go through the game",
    });
    this.width = 560;
    const place = () => ({ last: view.line.actions.length, at: view.line.ply, width: this.width });
    pickable(this.chart, place, (ply) => view.go(ply));
    const open = !matchMedia("(max-width: 480px)").matches; // a phone shows the board, the search and the moves at first
    this.chartNode = el("details", { class: "card chart-card", open, ontoggle: () => this.draw() },
      el("summary", {}, "Expected score of the first player"), this.chart);
    this.begin = button("Review the game", () => this.run(), { class: "main" });
    this.said = el("p", { class: "numbers" });
    this.result = el("div", {});
    this.node = el("details", { class: "card review-card", open }, el("summary", {}, "Review"), el("div", { class: "buttons" }, this.begin), this.said, this.result);
  }

  // Ends a review that still goes on, and what is said of its progress.
  end() {
    if (!this.stop) return;
    this.stop();
    this.stop = null;
    refill(this.said);
  }

  reset() {
    this.stop?.();
    this.stop = null;
    this.summary = null;
    this.judged = {};
    this.key = null;
  }

  // Another contestant judges from now on: its curve must not be joined with that of the one before.
  forget() {
    this.end();
    this.values.clear();
    this.draw();
  }

  // Remembers the value that an analysis gave to a position.
  learn(actions, value) {
    if (value !== null) this.values.set(actions.join("."), value);
    this.draw();
  }

  run() {
    const { line, game, app } = this.view;
    this.reset();
    this.key = line.actions.join(".");
    const { actions } = line;
    const { fields: player, title } = this.view.picker;
    const fields = { ...line.at(actions), player, simulations: SIMULATIONS };
    const rows = [];
    refill(this.result);
    this.stop = app.engine.follow("review", fields, (answer) => {
      if (answer.error || answer.stopped) {
        this.stop = null;
        announce(this.said, answer.error ?? "The review was stopped: too much was asked at once. Review the game again.");
        return;
      }
      for (const row of answer.rows) {
        rows[row.ply] = row; // after a lost connection the review begins anew
        if (row.value !== null) this.values.set(actions.slice(0, row.ply).join("."), row.value);
        refill(this.said, `Position ${row.ply + 1} of ${answer.of} …`);
      }
      if (!answer.more) {
        this.stop = null;
        this.summary = judge(rows, game.oracle);
        for (const { ply, sentence } of this.summary.mistakes) this.judged[ply] = { kind: "wrong", sentence };
        const sentence = this.summary.sides.some((side) => side.known) ? "Judged by exact results where they are known." : `Judged by ${title}, ${SIMULATIONS} simulations a position: an opinion, not the truth.`;
        refill(this.said, sentence);
        say(`${sentence} ${this.count}`);
        this.drawResult();
        this.view.onJudged();
      }
      this.draw();
    });
  }

  // Draws the chart; a review of another line is dropped.
  show() {
    if (this.key !== null && this.key !== this.view.line.actions.join(".")) {
      this.reset();
      refill(this.said);
      refill(this.result);
    }
    this.draw();
  }

  draw() {
    const { line } = this.view;
    const points = [];
    for (let ply = 0; ply <= line.actions.length; ply++) {
      const value = this.values.get(line.actions.slice(0, ply).join("."));
      if (value !== undefined) points.push([ply, value]);
    }
    const marks = (this.summary?.mistakes ?? []).map(({ ply, sentence }) => ({
      x: ply + 1, y: this.values.get(line.actions.slice(0, ply + 1).join(".")), kind: "wrong", title: sentence,
    })).filter(({ y }) => y !== undefined);
    const width = (this.width = Math.max(300, Math.min(900, this.chart.clientWidth || 560)));
    this.chart.setAttribute("aria-valuemax", line.actions.length);
    this.chart.setAttribute("aria-valuenow", line.ply);
    const here = this.values.get(line.key);
    this.chart.setAttribute("aria-valuetext", (line.ply ? `Move ${line.ply}` : "Start") + (here === undefined ? "" : `, ${percent(here)}`));
    refill(this.chart, lineChart([{ name: "first player", points }], {
      y: [0, 1], x: [0, Math.max(1, line.actions.length)], yTicks: [0, 0.25, 0.5, 0.75, 1], middle: 0.5, height: 170, width, yTick: (y) => percent(y),
      xName: "moves played", whole: true, marks, at: line.ply,
    }));
  }

  // The number of mistakes in words.
  get count() {
    const { length } = this.summary.mistakes;
    return length ? `${length} ${length === 1 ? "mistake" : "mistakes"}` : "No mistakes";
  }

  drawResult() {
    const { sides, mistakes } = this.summary;
    const cards = sides.map((side, player) => {
      const known = side.known ? `${percent(side.right / side.known)} right` : null;
      const lost = side.judged ? `gives away ${(100 * side.lost).toFixed(1)} percentage points per move` : null;
      return el("div", { class: "accuracy" },
        el("p", { class: "row" }, swatch(this.view.game.board, player), NAMES[player]),
        el("p", { class: "big" }, known ?? (side.judged ? `${(100 - 100 * side.lost).toFixed(1)}%` : "no moves")),
        el("p", { class: "note" }, known ? `${side.right} of ${side.known} moves keep the best result, ${side.perfect} are perfect` : lost ?? ""));
    });
    const list = mistakes.map((mistake) => el("li", {},
      el("button", { type: "button", class: "link", onclick: () => this.view.go(mistake.ply) }, `${mistake.ply + 1}. ${mistake.word}`),
      el("span", {}, ` ${mistake.sentence} `),
      button("Try again", () => this.view.tryAgain(mistake), { class: "small", "aria-label": `Try move ${mistake.ply + 1} again` })));
    refill(this.result, el("div", { class: "accuracies" }, cards),
      el("h3", {}, this.count),
      el("ul", { class: "mistakes" }, list));
  }
}
