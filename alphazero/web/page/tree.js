// Walks through the tree of a search: the actions at a node, their visits, and down into any of them.

import { BoardView } from "./board.js";
import { button, countOf, el, headOf, meter, percent, redraw, refill, short } from "./dom.js";
import { NAMES, headOfScore, scoreOf } from "./words.js";

const PAUSE = 700;

export class TreePanel {
  // `view` has {app, game, line, goTo(actions)}.
  constructor(view) {
    this.view = view;
    this.path = [];
    this.words = [];
    this.waiting = 0; // questions that are not answered yet
    this.crumbs = el("nav", { class: "crumbs", "aria-label": "Path in the tree" });
    this.said = el("p", { class: "numbers" });
    this.table = el("table", { class: "lines" });
    this.board = new BoardView(view.game.board, null, "Position in the tree");
    this.there = button("Go there", () => this.found && this.view.goTo(this.found.actions));
    this.node = el("details", { class: "card tree", ontoggle: () => this.toggled() },
      el("summary", {}, "Tree"), this.crumbs, this.said,
      el("div", { class: "tree-columns" }, el("div", { class: "scroll" }, this.table), el("div", { class: "mini" }, this.board.node)),
      el("div", { class: "buttons" }, this.there));
  }

  // The position has changed: the walk begins at the root again.
  reset() {
    this.path = [];
    this.words = [];
    this.found = null;
    for (const part of [this.crumbs, this.said, this.table]) refill(part);
    if (this.node.open) this.ask();
  }

  toggled() {
    clearInterval(this.timer);
    if (this.node.open) {
      this.ask();
      // while the server is away, questions would pile up
      this.timer = setInterval(() => !document.hidden && !this.waiting && this.ask(), PAUSE);
    }
  }

  hidden() {
    clearInterval(this.timer);
  }

  async ask() {
    const path = [...this.path];
    this.waiting += 1;
    try {
      const found = await this.view.app.engine.ask("tree", { path, side: 0 });
      const begin = this.view.line.key;
      if (path.join(".") !== this.path.join(".")) return;
      if (found.actions.slice(0, found.actions.length - path.length).join(".") !== begin) {
        if (!this.view.searching) refill(this.said, "This position has not been searched.");
        return;
      }
      this.found = found;
      const { view } = await this.view.line.place(found.actions);
      if (found === this.found) this.draw(view);
    } catch (error) {
      refill(this.said, error.message);
    } finally {
      this.waiting -= 1;
    }
  }

  draw(position) {
    const { found } = this;
    const crumb = (text, length) => button(text, () => this.up(length), { class: "link", "data-key": length, "aria-current": length === this.path.length ? "page" : "false" });
    redraw(this.crumbs, crumb("this position", 0), this.words.map((word, i) => [" › ", crumb(word, i + 1)]));
    const state = found.proven ? "proven " : "";
    const { game } = this.view;
    const score = (value) => scoreOf(game, value, 1, position.gained);
    const who = game.alone ? "" : ` for the ${NAMES[found.mover].toLowerCase()}, who ${position.dice ? "rolls" : "moves"}`;
    refill(this.said, `${countOf(found.visits, "visit")}, ${state}${headOfScore(game).toLowerCase()} ${score(found.value)}${who}`);
    const total = found.visits || 1; // also of actions that are not shown
    redraw(this.table,
      el("thead", {}, headOf([position.dice ? "Outcome" : "Move", "Visits", headOfScore(game), position.dice ? "Chance" : "Prior"])),
      el("tbody", {}, found.edges.slice(0, 40).map((edge) => el("tr", {},
        el("th", { scope: "row" }, edge.visits ? button(edge.word, () => this.down(edge), { class: "link", "data-key": edge.action }) : edge.word),
        el("td", { class: "visits" }, meter(edge.visits / total), el("span", {}, short(edge.visits))),
        el("td", {}, edge.value === null ? "" : `${score(edge.value)}${edge.proven ? " proven" : ""}`),
        el("td", {}, percent(edge.prior, 1))))));
    const visited = Object.fromEntries(found.edges.map((edge) => [edge.action, edge.visits / total]));
    this.board.show(position, { marks: { shares: visited, texts: {} } });
    this.there.disabled = !this.path.length;
  }

  down(edge) {
    this.path.push(edge.action);
    this.words.push(edge.word);
    this.ask();
  }

  up(length) {
    this.path.length = length;
    this.words.length = length;
    this.ask();
  }
}
