// The view to analyse in: searches that grow, exact results, the tree, and the review of the game.

import { Desk, OUTCOMES } from "./desk.js";
import { button, el, refill, rescueFocus, say } from "./dom.js";
import { copy } from "./file.js";
import { isSame, wordsOf } from "./judge.js";
import { MoveList } from "./moves.js";
import { turnBoard } from "./play.js";
import { HUMAN } from "./players.js";
import { Review } from "./review.js";
import { TreePanel } from "./tree.js";
import { NAMES, resultOf } from "./words.js";

const OVERLAYS = { visits: "visits", values: "scores", policy: "policy without a search", exact: "exact results", nothing: "nothing" };

export class AnalyseView {
  constructor(app) {
    this.app = app;
    this.game = app.game;
    this.overlay = app.memory.overlay ?? "values";
    this.exact = null;
    this.desks = [new Desk(this, 0)];
    this.moves = new MoveList((ply) => this.go(ply), this.game.alone);
    this.review = new Review(this);
    this.tree = new TreePanel(this);
    this.build();
  }

  build() {
    this.status = el("p", { class: "status" });
    this.exactLine = el("p", { class: "exact-line" });
    this.boards = el("div", { class: "boards" }, this.desks[0].board.node);
    const overlays = Object.entries(OVERLAYS).filter(([name]) => name !== "exact" || this.game.oracle);
    this.choice = el("select", { onchange: () => this.setOverlay(this.choice.value) }, overlays.map(([value, text]) => el("option", { value }, text)));
    if (!overlays.some(([name]) => name === this.overlay)) this.overlay = "values";
    this.choice.value = this.overlay;
    this.compare = button("Compare with another", () => this.toggleCompare(), { "aria-pressed": "false" });
    this.first = button("«", () => this.go(0), { "aria-label": "To the start" });
    this.back = button("‹", () => this.go(this.line.ply - 1), { "aria-label": "One move back" });
    this.forth = button("›", () => this.go(this.line.ply + 1), { "aria-label": "One move on" });
    this.last = button("»", () => this.go(this.line.actions.length), { "aria-label": "To the end" });
    const turn = button("⇅", () => turnBoard(this), { "aria-label": "Turn the board", title: "Turn the board", hidden: this.game.board.bottom === null });
    const play = button("Play from here", () => this.playHere());
    const share = button("Copy link", () => copy(this.app.link(), this.extra));
    this.extra = el("div", { class: "extra" });
    this.headline = el("section", { class: "card headline", "aria-label": "Position" }, this.status, this.exactLine, el("div", { class: "buttons" }, this.compare, play, share), this.extra);
    this.panel = el("div", { class: "side-panel" });
    this.node = el("div", { class: "columns analysis" },
      el("section", { class: "stage", "aria-label": "Board" }, this.boards,
        el("div", { class: "under" }, el("div", { class: "steps" }, this.first, this.back, this.forth, this.last, turn),
          el("label", {}, "On the board ", this.choice)),
        this.review.chartNode, this.tree.node),
      this.panel);
    this.fillPanel();
  }

  fillPanel() {
    refill(this.panel, this.headline, this.desks.map((desk) => desk.node), this.review.node, this.moves.node);
  }

  offer(players) {
    this.desks.forEach((desk) => desk.picker.offer(players));
  }

  get line() {
    return this.app.line;
  }

  get searching() {
    return Boolean(this.desks[0].stop);
  }

  get picker() {
    return this.desks[0].picker;
  }

  async shown() {
    const known = this.app.memory.players?.find((player) => player.id !== HUMAN && this.game.players.some((one) => one.id === player.id && one.searches));
    if (known && !this.begun) this.picker.choose(known);
    this.begun = true;
    this.visible = true;
    this.onVisibility ??= () => this.visible && this.refresh();
    document.addEventListener("visibilitychange", this.onVisibility);
    this.tree.toggled();
    await this.refresh();
  }

  hidden() {
    this.visible = false;
    document.removeEventListener("visibilitychange", this.onVisibility);
    this.desks.forEach((desk) => desk.end());
    this.review.end();
    this.tree.hidden();
  }

  // A move that arrives after the view was left is drawn by the view that is shown instead.
  async refresh() {
    if (!this.visible) return this.app.refresh();
    const line = this.line;
    const key = line.key;
    const view = await line.view();
    // whoever moved meanwhile draws the new position
    if (!this.visible || line !== this.line || key !== line.key) return;
    const moved = key !== this.key;
    if (moved) {
      this.exact = null;
      this.askOracle(key, view);
    }
    this.key = key;
    const who = line.title ? `${line.title}. ` : "";
    const now = view.outcome === null && this.game.alone ? (view.dice ? "A die is due" : "To move") : view.outcome === null ? `${NAMES[view.to_play]} ${view.dice ? "rolls" : "to move"}` : this.game.alone ? "The game is over" : resultOf(view.winners, this.game.seats);
    const more = [view.points, view.remark].filter(Boolean).join(", ");
    refill(this.status, `${who}${now}${more && `: ${more}`}`);
    this.desks.forEach((desk) => desk.board.turn(this.app.memory.side));
    this.moves.show(line, this.review.judged);
    this.review.show();
    const focused = document.activeElement;
    for (const control of [this.first, this.back]) control.disabled = line.ply === 0;
    for (const control of [this.forth, this.last]) control.disabled = line.ply >= line.actions.length;
    rescueFocus(focused, this.node, this.desks[0].board);
    // nobody searches for a page that nobody sees
    if (document.hidden) this.desks.forEach((desk) => desk.end());
    else {
      this.desks.forEach((desk) => desk.begin(line.here, view));
      if (view.outcome !== null) this.onReport(this.desks[0]);
    }
    if (moved) this.tree.reset(); // not sooner: it asks about the search that has begun
    this.app.changed();
  }

  async askOracle(key, view) {
    refill(this.exactLine);
    const { oracle } = this.game;
    if (!oracle || view.outcome !== null || view.dice) return;
    try {
      const { results } = await this.app.engine.ask("oracle", this.line.at(this.line.here));
      if (key !== this.key || !results) return; // stopped: another position was asked about meanwhile
      this.exact = results;
      const best = results.filter((result) => isSame(result, results[0]));
      const names = best.map(({ action }) => view.clicks.find((click) => click.action === action)?.name);
      const sentence = results.length ? `Exact: the ${NAMES[view.to_play].toLowerCase()} ${results[0].outcome ? wordsOf(results[0], oracle) : "draws"}; best ${names.length > 1 ? "moves" : "move"}: ${names.join(", ")}` : "Too far from the end for exact results.";
      refill(this.exactLine, sentence);
      if (results.length) say(sentence);
      this.exactLine.className = `exact-line ${results.length ? `known ${OUTCOMES[results[0].outcome] ?? ""}` : ""}`;
      this.desks.forEach((desk) => desk.draw());
    } catch (error) {
      refill(this.exactLine, error.message);
    }
  }

  // The connection is back: searches that were going on are asked for again by themselves.
  reconnected() {
    if (!document.hidden) this.desks.forEach((desk) => !desk.stop && desk.searchAgain());
  }

  // --- what the desks, the review and the tree tell ---

  onContestant(desk) {
    if (desk.side === 0) this.review.forget();
  }

  onReport(desk) {
    // not where one looks: the new position may still be on its way
    if (desk.side === 0) this.review.learn(desk.actions, desk.shares);
  }

  onJudged() {
    this.moves.show(this.line, this.review.judged);
  }

  async onAction(action) {
    await this.line.play(action);
    await this.refresh();
  }

  async go(ply) {
    this.line.go(ply);
    await this.refresh();
  }

  async goTo(actions) {
    await this.line.set(actions);
    await this.refresh();
  }

  // Plays on from before a mistake, against the contestant, on the side of who made it.
  tryAgain({ ply, mover }) {
    const opponent = { ...this.picker.fields };
    delete opponent.step;
    this.app.memory.players = Array.from({ length: Math.max(2, this.game.seats) }, (_, seat) => (seat === mover ? { id: HUMAN } : opponent));
    this.app.memory.gaveUp = null;
    this.app.fresh(["play"]);
    this.playFrom(this.line.actions.slice(0, ply));
  }

  // What comes after is dropped: where one looks back, nobody moves.
  playHere() {
    const { line } = this;
    this.app.memory.gaveUp = null;
    return line.ply < line.actions.length ? this.playFrom(line.here) : this.app.open("play");
  }

  async playFrom(actions) {
    await this.line.set(actions);
    await this.app.open("play");
  }

  setOverlay(overlay) {
    this.overlay = this.app.memory.overlay = overlay;
    for (const desk of this.desks) {
      if (overlay === "policy") desk.askPolicy();
      desk.draw();
    }
  }

  toggleCompare() {
    if (this.desks.length > 1) {
      this.desks.pop().end();
    } else {
      const desk = new Desk(this, 1);
      const other = this.game.players.filter((player) => player.searches).find((player) => player.id !== this.picker.id);
      desk.picker.choose({ id: other?.id ?? this.picker.id });
      this.desks.push(desk);
    }
    this.compare.setAttribute("aria-pressed", this.desks.length > 1);
    this.compare.textContent = this.desks.length > 1 ? "End the comparison" : "Compare with another";
    refill(this.boards, this.desks.map((desk) => desk.board.node));
    this.boards.classList.toggle("two", this.desks.length > 1);
    this.fillPanel();
    this.refresh();
  }

}
