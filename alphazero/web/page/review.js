// The review of the whole game: the chart of values, each side's accuracy, and the mistakes.

import { legend, lineChart, pickable } from "./chart.js";
import { announce, button, el, percent, refill, say } from "./dom.js";
import { judge, sharesOf } from "./judge.js";
import { colorOf, swatch } from "./shapes.js";
import { NAMES, nameOfScore, scoreOf } from "./words.js";

const SIMULATIONS = 100;

export class Review {
  // `view` has {app, game, line, picker, go(ply), tryAgain(mistake), onJudged()}.
  constructor(view) {
    this.view = view;
    this.values = new Map();
    this.reset();
    const { seats } = view.game;
    const whose = view.game.alone ? "" : ` of ${seats > 2 ? "each" : "the first"} player`;
    const title = `${nameOfScore(view.game)}${whose}`.replace("e", "E");
    this.chart = el("div", {
      class: "chart-box", tabindex: "0", role: "slider", "aria-valuemin": "0",
      "aria-label": `${title} after each move; the arrow keys go through the game`,
    });
    this.width = 560;
    const place = () => ({ last: view.line.actions.length, at: view.line.ply, width: this.width });
    pickable(this.chart, place, (ply) => view.go(ply));
    const open = !matchMedia("(max-width: 480px)").matches; // a phone shows the board, the search and the moves at first
    this.chartNode = el("details", { class: "card chart-card", open, ontoggle: () => this.draw() },
      el("summary", {}, title), this.chart, seats > 2 && legend(this.seriesOf([])));
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

  // Remembers the shares that an analysis gave to a position.
  learn(actions, shares) {
    if (shares !== null) this.values.set(actions.join("."), shares);
    this.draw();
  }

  // A curve for the first player, or in a game for more than two for each, of [ply, shares].
  seriesOf(points) {
    const { seats, board } = this.view.game;
    return NAMES.slice(0, seats > 2 ? seats : 1).map((name, seat) => ({
      name, points: points.map(([ply, shares]) => [ply, shares[seat]]), color: seats > 2 ? colorOf(board, seat) : undefined,
    }));
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
        const shares = sharesOf(row);
        if (shares !== null) this.values.set(actions.slice(0, row.ply).join("."), shares);
        refill(this.said, `Position ${row.ply + 1} of ${answer.of} …`);
      }
      if (!answer.more) {
        this.stop = null;
        this.summary = judge(rows, game.oracle, game.seats, game.score);
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
      const shares = this.values.get(line.actions.slice(0, ply).join("."));
      if (shares !== undefined) points.push([ply, shares]);
    }
    const marks = (this.summary?.mistakes ?? []).map(({ ply, mover, sentence }) => {
      const shares = this.values.get(line.actions.slice(0, ply + 1).join("."));
      return { x: ply + 1, y: shares?.[shares.length > 1 ? mover : 0], kind: "wrong", title: sentence };
    }).filter(({ y }) => y !== undefined);
    const width = (this.width = Math.max(300, Math.min(900, this.chart.clientWidth || 560)));
    this.chart.setAttribute("aria-valuemax", line.actions.length);
    this.chart.setAttribute("aria-valuenow", line.ply);
    const here = this.values.get(line.key);
    this.chart.setAttribute("aria-valuetext", (line.ply ? `Move ${line.number(line.ply - 1)}` : "Start") + (here === undefined ? "" : `, ${here.map((share) => this.scoreOf(share)).join(", ")}`));
    // in a game for one from no points to the most that were expected
    const [low, most] = this.view.game.alone ? [0.5, Math.max(0.5001, ...points.map(([, [share]]) => share))] : [0, 1];
    refill(this.chart, lineChart(this.seriesOf(points), {
      y: [low, most], x: [0, Math.max(1, line.actions.length)], yTicks: [0, 0.25, 0.5, 0.75, 1].map((part) => low + part * (most - low)), middle: 0.5, height: 170, width, yTick: (y) => this.scoreOf(y),
      xName: "moves played", whole: true, marks, at: line.ply,
    }));
  }

  // A share from 0 to 1 in words.
  scoreOf(share) {
    return scoreOf(this.view.game, 2 * share - 1);
  }

  // The number of mistakes in words.
  get count() {
    const { length } = this.summary.mistakes;
    return length ? `${length} ${length === 1 ? "mistake" : "mistakes"}` : "No mistakes";
  }

  drawResult() {
    const { sides, mistakes } = this.summary;
    const { seats, score, alone } = this.view.game;
    const given = (lost) => score ? `${(2 * score.size * lost).toFixed(2)} ${score.unit}` : seats > 2 ? `${(2 * lost).toFixed(2)} of the result` : `${(100 * lost).toFixed(1)} percentage points`;
    const cards = sides.slice(0, alone ? 1 : seats).map((side, player) => {
      const known = side.known ? `${percent(side.right / side.known)} right` : null;
      const lost = side.judged ? `gives away ${given(side.lost)} per move` : null;
      return el("div", { class: "accuracy" },
        !alone && el("p", { class: "row" }, swatch(this.view.game.board, player), NAMES[player]),
        el("p", { class: "big" }, known ?? (side.judged ? `${(100 - 100 * side.lost).toFixed(1)}%` : "no moves")),
        el("p", { class: "note" }, known ? `${side.right} of ${side.known} moves keep the best result, ${side.perfect} are perfect` : lost ?? ""));
    });
    const list = mistakes.map((mistake) => el("li", {},
      button(`${this.view.line.number(mistake.ply)}. ${mistake.word}`, () => this.view.go(mistake.ply), { class: "link" }),
      el("span", {}, ` ${mistake.sentence} `),
      button("Try again", () => this.view.tryAgain(mistake), { class: "small", "aria-label": `Try move ${this.view.line.number(mistake.ply)} again` })));
    refill(this.result, el("div", { class: "accuracies" }, cards),
      el("h3", {}, this.count),
      el("ul", { class: "mistakes" }, list));
  }
}
