// One analysis: a contestant, its growing search of the position, and the board that shows it.

import { BoardView } from "./board.js";
import { button, countOf, el, headOf, meter, percent, refill, rescueFocus, short } from "./dom.js";
import { isSame, sharesOf, wordsOf } from "./judge.js";
import { PlayerPicker } from "./players.js";
import { colorOf, swatch } from "./shapes.js";
import { NAMES, headOfScore, scoreOf } from "./words.js";

export const FIRST_LIMIT = 50_000;
const MOST_LIMIT = 200_000;
const DEEPER = 4;
const MOST_ROWS = 12;
export const OUTCOMES = { 1: "win", 0: "draw", "-1": "loss" };
const OUTCOME_COLORS = { 1: "#2fbf71", 0: "#8d99ae", "-1": "#d1495b" };
const PATIENCE = 1500;

export class Desk {
  // `view` has {app, game, line, overlay, exact, onAction(action), onContestant(desk), onReport(desk)}.
  constructor(view, side) {
    this.view = view;
    this.side = side;
    this.paused = false;
    this.key = null;
    this.forget();
    this.board = new BoardView(view.game.board, (action) => this.play(action), side ? "Board of the second contestant" : "Board");
    this.picker = new PlayerPicker(side ? "Second contestant" : "Contestant", { searches: true, onChange: () => this.changeContestant() });
    this.picker.offer(view.game.players);
    this.build();
  }

  build() {
    this.numbers = el("p", { class: "numbers", "aria-live": "off" });
    this.noPolicy = el("p", { class: "note fault" });
    this.pauseButton = button("Pause", () => this.togglePause());
    this.deeperButton = button("Deeper", () => this.deeper());
    this.clearButton = button("Clear", () => this.restart());
    const { seats } = this.view.game;
    this.bars = Array.from({ length: seats > 2 ? seats : 1 }, () => el("div", { class: "bar", role: "img" }, el("span", { class: "first" })));
    this.barTexts = this.bars.map(() => el("span", { class: seats > 2 ? "row bar-text" : "bar-text" }));
    this.head = el("thead");
    this.body = el("tbody");
    this.kept = new Map();
    this.table = el("table", { class: "lines" }, this.head, this.body);
    const title = this.side ? "Second contestant" : "Search";
    this.node = el("section", { class: "card desk", "aria-label": title },
      el("h2", {}, title), this.picker.node,
      el("div", { class: "buttons" }, this.pauseButton, this.deeperButton, this.clearButton),
      el("div", { class: "value" }, this.bars.map((bar, seat) => [bar, this.barTexts[seat]])), this.numbers, this.noPolicy,
      el("div", { class: "scroll" }, this.table));
  }

  // Searches the position that one looks at.
  begin(actions, view) {
    const key = actions.join(".");
    if (key !== this.key) {
      this.forget();
      this.kept.clear();
    }
    this.key = key;
    this.actions = actions;
    this.shown = view;
    this.end();
    if (!this.paused && view.outcome === null && !view.dice) this.follow(false);
    if (this.view.overlay === "policy") this.askPolicy();
    this.draw();
  }

  follow(fresh) {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => {
      if (!this.report && !this.fault) refill(this.numbers, "The search is being made ready; the first time takes up to a minute.");
    }, PATIENCE);
    const { key } = this;
    const fields = { ...this.view.line.at(this.actions), player: this.picker.fields, side: this.side, limit: this.limit, fresh };
    this.stop = this.view.app.engine.follow("analyse", fields, (answer) => {
      if (key !== this.key) return;
      clearTimeout(this.waiting);
      if (answer.stopped) { // by the server: this page has asked for too much at once
        this.stop = null;
        this.draw();
        return;
      }
      this.fault = answer.error ?? null;
      if (!answer.error) this.report = answer;
      if (!answer.more) this.stop = null;
      this.draw();
      this.view.onReport(this);
    });
  }

  end() {
    clearTimeout(this.waiting);
    this.stop?.();
    this.stop = null;
  }

  // Nothing is known of the position yet.
  forget() {
    this.limit = FIRST_LIMIT;
    this.report = this.policy = this.fault = null;
  }

  changeContestant() {
    this.view.onContestant(this);
    this.restart();
  }

  restart() {
    this.end();
    this.forget();
    this.paused = false;
    if (this.searchable) this.follow(true);
    if (this.view.overlay === "policy") this.askPolicy();
    this.draw();
  }

  // The server has forgotten the tree, so there is nothing that could go on.
  searchAgain() {
    this.limit = FIRST_LIMIT;
    this.report = this.fault = null;
    if (!this.paused && this.searchable) this.follow(true);
    this.draw();
  }

  togglePause() {
    this.paused = !this.paused;
    if (this.paused) this.end();
    else if (this.searchable) this.follow(false);
    this.draw();
  }

  deeper() {
    this.limit = Math.min(MOST_LIMIT, Math.max(this.limit, this.report?.simulations ?? 0) * DEEPER);
    this.paused = false;
    this.end();
    this.follow(false);
    this.draw();
  }

  // A player is to move where one looks.
  get searchable() {
    return this.shown?.outcome === null && !this.shown.dice;
  }

  // What the policy is asked of: the position and the contestant.
  get token() {
    return JSON.stringify([this.key, this.picker.fields]);
  }

  async askPolicy() {
    const { token } = this;
    if (this.policy || !this.searchable) return;
    try {
      const found = await this.view.app.engine.ask("policy", { ...this.view.line.at(this.actions), player: this.picker.fields });
      if (token !== this.token) return;
      this.policy = found;
    } catch (error) {
      if (token !== this.token) return;
      this.policy = { policy: [], fault: error.message };
    }
    this.draw();
  }

  // The expected scores as `sharesOf` gives them; null if nothing is known.
  get shares() {
    if (!this.shown) return null;
    const { outcome, to_play, gained = 0 } = this.shown;
    const known = outcome === null ? this.report : this.shown;
    if (!known) return null;
    if (this.view.game.seats > 2) return sharesOf(known);
    if (outcome !== null) return [(1 + (this.view.game.score ? gained : outcome)) / 2];
    return [(1 + gained + (to_play === 0 ? known.value : -known.value)) / 2];
  }

  // The value of a move, with the points so far.
  scoreOf(value, digits) {
    return scoreOf(this.view.game, value, digits, this.shown.gained);
  }

  // A move is meant for the position that the board shows, which one may have left.
  play(action) {
    if (this.key === this.view.line.key) this.view.onAction(action);
  }

  // --- drawing ---

  draw() {
    if (!this.shown) return;
    this.board.show(this.shown, { marks: this.marks(), best: this.pointed ?? null });
    const running = Boolean(this.stop);
    const focused = document.activeElement;
    this.pauseButton.textContent = this.paused ? "Go on" : "Pause";
    this.pauseButton.disabled = !running && !this.paused;
    const full = this.report && this.report.simulations >= Math.min(this.report.room, MOST_LIMIT);
    this.deeperButton.disabled = !this.searchable || Boolean(full);
    rescueFocus(focused, this.node, this.board);
    this.drawValue();
    if (this.fault) refill(this.numbers, this.fault);
    else if (this.report) {
      const { simulations, rate, proven } = this.report;
      const state = running ? `${short(rate)} a second` : this.paused ? "paused" : proven ? "proven" : full ? "the most that memory or the page allows" : "done; Deeper goes on";
      refill(this.numbers, `${countOf(simulations, "simulation")}, ${state}`);
    } else if (this.shown.outcome !== null) refill(this.numbers, "The game is over here.");
    else if (this.shown.dice) refill(this.numbers, "A die is due here: choose what it shows.");
    else if (!running) refill(this.numbers, "paused");
    const reason = this.view.overlay === "policy" ? this.policy?.fault : undefined;
    refill(this.noPolicy, reason);
    this.noPolicy.hidden = !reason;
    this.drawTable();
  }

  drawValue() {
    const { shares } = this;
    const { game } = this.view;
    this.bars.forEach((bar, seat) => {
      const text = shares === null ? "" : `${game.alone ? "" : `${NAMES[seat]}: `}${this.said(shares[seat])}`;
      bar.hidden = Boolean(game.alone); // of no share
      const first = bar.firstChild;
      first.style.width = percent(shares?.[seat] ?? 0.5, 1);
      first.style.background = colorOf(game.board, seat);
      bar.style.background = game.seats > 2 ? "" : game.board.colors.second;
      bar.setAttribute("aria-label", text || "No value yet");
      bar.classList.toggle("unknown", shares === null);
      refill(this.barTexts[seat], text && game.seats > 2 && swatch(game.board, seat), text);
    });
  }

  // A share of this position in words.
  said(share) {
    const { game } = this.view;
    const sure = this.report?.proven || this.shown.outcome !== null;
    if (game.score) return `${scoreOf(game, 2 * share - 1)} ${sure ? "" : "expected "}${game.score.unit}`;
    if (game.seats > 2) return `${scoreOf(game, 2 * share - 1)}${this.report?.proven ? ", proven" : ""}`;
    return this.report?.proven ? `proven ${OUTCOMES[Math.round(2 * share - 1)]}` : `${percent(share)} expected score`;
  }

  marks() {
    const { overlay, exact } = this.view;
    const lines = this.report?.lines ?? [];
    const marks = { shares: {}, texts: {}, colors: {} };
    if (overlay === "exact") {
      for (const { action, outcome, distance } of exact ?? []) {
        marks.texts[action] = { 1: "W", 0: "D", "-1": "L" }[outcome] ?? percent((1 + outcome) / 2, 1);
        marks.texts[action] += distance ?? "";
        if (outcome in OUTCOME_COLORS) marks.colors[action] = OUTCOME_COLORS[outcome];
        marks.shares[action] = 1;
      }
    } else if (overlay === "policy") {
      for (const { action, prior } of this.policy?.policy ?? []) {
        if (prior < 0.005) continue;
        marks.shares[action] = prior;
        marks.texts[action] = percent(prior);
      }
    } else if (overlay !== "nothing") {
      const total = this.report?.simulations || 1;
      for (const { action, visits, value } of lines) {
        if (visits / total < 0.005) continue;
        marks.shares[action] = visits / total;
        marks.texts[action] = overlay === "values" ? this.scoreOf(value) : percent(visits / total);
      }
    }
    return marks;
  }

  rows() {
    const lines = this.report?.lines ?? [];
    const known = new Map((this.view.exact ?? []).map((result) => [result.action, result]));
    const rows = lines.map((line) => ({ ...line, exact: known.get(line.action) }));
    const there = new Set(lines.map((line) => line.action));
    for (const result of known.values()) {
      if (there.has(result.action)) continue;
      const click = this.shown.clicks.find(({ action }) => action === result.action);
      rows.push({ action: result.action, word: click?.name ?? "", visits: 0, value: null, prior: null, words: [], exact: result });
    }
    return rows.slice(0, Math.max(MOST_ROWS, known.size));
  }

  drawTable() {
    const rows = this.rows();
    const best = this.view.exact?.[0]; // none where nobody knows
    const total = this.report?.simulations || 1; // also of moves that have no row
    const exactOf = ({ exact }) => (exact ? wordsOf(exact, this.view.game.oracle) + (isSame(exact, best) ? " ★" : "") : "");
    const head = ["Move", "Visits", headOfScore(this.view.game), "Prior", ...(best ? ["Exact"] : []), "Expected play"];
    this.table.classList.toggle("empty", !rows.length);
    refill(this.head, headOf(head));
    refill(this.body, rows.map((row) => {
      const share = row.visits / total;
      const node = this.rowOf(row);
      return refill(node, node.firstChild,
        el("td", { class: "visits", title: countOf(row.visits, "visit") }, meter(share), el("span", {}, row.visits ? `${short(row.visits)} · ${percent(share)}` : "–")),
        el("td", {}, row.value === null ? "" : this.scoreOf(row.value, 1)),
        el("td", {}, row.prior === null ? "" : percent(row.prior, 1)),
        best && el("td", { class: `exact ${row.exact ? OUTCOMES[row.exact.outcome] ?? "" : ""}` }, exactOf(row)),
        el("td", { class: "line" }, row.words.slice(1).join(" ")));
    }));
  }

  // The row of a move, with the move alone: it is kept while its figures change, so its focus is read once.
  rowOf({ action, word }) {
    if (!this.kept.has(action)) {
      const play = () => {
        this.board.focus(); // the row goes with its position
        this.play(action);
      };
      const point = (pointed) => () => {
        this.pointed = pointed;
        this.board.show(this.shown, { marks: this.marks(), best: pointed });
      };
      this.kept.set(action, el("tr", { onmouseenter: point(action), onmouseleave: point(null) },
        el("th", { scope: "row" }, button(word, play, { class: "link", onfocus: point(action), onblur: point(null) }))));
    }
    return this.kept.get(action);
  }
}
