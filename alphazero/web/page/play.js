// The view to play in: against contestants, between them, or several people at one screen.

import { BoardView } from "./board.js";
import { announce, button, countOf, el, refill, rescueFocus, say } from "./dom.js";
import { Refused } from "./engine.js";
import { copy, load, save } from "./file.js";
import { MoveList } from "./moves.js";
import { HUMAN, PlayerPicker } from "./players.js";
import { swatch } from "./shapes.js";
import { NAMES, nameOfScore, resultOf, scoreOf } from "./words.js";

const HINT_SIMULATIONS = 400;
const PATIENCE = 1500;

// A field of one line would drop the line breaks of a board, and so join the numbers of its rows to their cells.
function pasteOnOneLine(event, field) {
  event.preventDefault();
  const text = event.clipboardData.getData("text").replace(/\s+/g, " ");
  field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
}

function formOf(field, label, submit) {
  const onsubmit = (event) => {
    event.preventDefault();
    submit();
  };
  return el("form", { class: "row", onsubmit }, field, button(label, null, { type: "submit" }));
}

// Shows the board of a view from its other side.
export function turnBoard(view) {
  view.app.memory.side = 1 - (view.app.memory.side ?? view.game.board.bottom);
  return view.refresh();
}

export class PlayView {
  // `app`: {engine, game, line, link(), open(view), trouble(text), changed()}.
  constructor(app) {
    this.app = app;
    this.game = app.game;
    this.thinking = null;
    this.advising = null;
    this.hint = null;
    this.seed = Math.floor(Math.random() * 2 ** 31);
    this.board = new BoardView(this.game.board);
    this.pickers = NAMES.slice(0, Math.max(2, this.game.seats)).map((name) => new PlayerPicker(name, { human: true, onChange: () => this.playersChanged() }));
    this.moves = new MoveList((ply) => this.jump(ply), this.game.alone);
    this.build();
    const known = app.memory.players ?? [{ id: HUMAN }];
    this.pickers.forEach((picker, side) => picker.offer(this.game.players, known[side] ?? { id: this.game.players[0].id }));
    app.memory.side ??= this.sideOfBoard();
    this.turn.hidden = this.game.board.bottom === null;
    for (const node of [this.second, this.switch, this.resign, ...this.node.querySelectorAll(".side")]) node.hidden = Boolean(this.game.alone);
  }

  offer(players) {
    this.pickers.forEach((picker) => picker.offer(players));
  }

  build() {
    this.status = el("p", { class: "status" });
    this.detail = el("p", { class: "detail" });
    this.undo = button("Undo", () => this.takeBack());
    this.redo = button("Redo", () => this.again());
    this.hintButton = button("Hint", () => this.askHint());
    this.resign = button("Resign", () => this.giveUp());
    this.turn = button("Turn the board", () => turnBoard(this));
    this.extra = el("div", { class: "extra" });
    const formats = this.game.formats ?? [];
    this.kind = el("select", { "aria-label": "Kind of file", hidden: !formats.length }, [...formats, ".jsonl"].map((value) => el("option", { value }, value)));
    const seats = this.pickers.map((picker, side) => el("div", { class: "seat" },
      el("span", { class: "side" }, swatch(this.game.board, side), NAMES[side]), picker.node));
    this.second = seats[1];
    this.switch = button(this.game.seats > 2 ? "Change seats" : "Switch sides", () => this.switchSides());
    this.start = el("input", { type: "text", placeholder: "moves, or a board", "aria-label": "Moves or a board to start from", spellcheck: "false", onpaste: (event) => pasteOnOneLine(event, this.start) });
    this.typed = el("input", { type: "text", "aria-label": "Type a move", placeholder: "type a move", spellcheck: "false", class: "typed" });
    this.form = formOf(this.typed, "Play", () => this.typeMove());
    this.node = el("div", { class: "columns" },
      el("section", { class: "stage", "aria-label": "Board" }, this.board.node, this.form),
      el("div", { class: "side-panel" },
        el("section", { class: "card headline", "aria-label": "Game" }, this.status, this.detail,
          el("div", { class: "buttons" }, button("New game", () => this.newGame(), { class: "main" }), this.undo, this.redo, this.hintButton, this.resign)),
        el("section", { class: "card", "aria-label": "Players" }, el("h2", {}, "Players"), seats,
          el("div", { class: "buttons" }, this.switch, this.turn)),
        this.moves.node,
        el("section", { class: "card", "aria-label": "More" },
          el("div", { class: "buttons" },
            button("Analyse", () => this.app.open("analyse"), { class: "main" }),
            button("Save game", () => this.save()), this.kind,
            button("Load game", () => load(this.extra, (text, name) => this.convert(text, name), (text) => this.load(text), (text) => this.app.trouble(text))),
            button("Copy link", () => copy(this.app.link(), this.extra))),
          el("details", {}, el("summary", {}, "Start from a position"),
            formOf(this.start, "Go", () => this.startFrom())),
          this.extra)));
  }

  get line() {
    return this.app.line;
  }

  // Who has resigned, and where: {board, key, side, id, reason}, or null.
  get gaveUp() {
    return this.app.memory.gaveUp ?? null;
  }

  set gaveUp(found) {
    this.app.memory.gaveUp = found && { ...found, board: this.line.board };
  }

  // The side that has resigned where one looks, or null: elsewhere, or with another player in that seat, the game goes on.
  get resigned() {
    const { board, key, side, id } = this.gaveUp ?? {};
    return board === this.line.board && key === this.line.key && id === this.pickers[side].id ? side : null;
  }

  async shown() {
    this.visible = true;
    await this.refresh();
  }

  // Leaving the view ends what goes on.
  hidden() {
    this.visible = false;
    this.stopThinking();
  }

  stopThinking() {
    this.thinking?.end();
    this.advising?.end();
    this.thinking = this.advising = null;
    clearTimeout(this.waiting);
  }

  // Draws everything, and lets a contestant move if it is its turn.
  // A move that arrives after the view was left is drawn by the view that is shown instead.
  async refresh() {
    if (!this.visible) return this.app.refresh();
    const { line } = this;
    const { key } = line;
    const view = await line.view();
    // whoever moved meanwhile draws the new position
    if (!this.visible || line !== this.line || key !== line.key) return;
    this.view = view;
    const over = (this.over = view.outcome !== null || this.resigned !== null);
    if (view.dice && !over && line.ply === line.actions.length) return this.roll(line, key);
    const human = !over && !view.dice && this.pickers[view.to_play].isHuman;
    const best = this.hint && this.hint.key === key ? this.hint.action : null;
    // a move is meant for the position that the board shows, which one may have left
    this.board.onAction = human ? (action) => key === this.line.key && this.humanPlays(action) : null;
    this.board.turn(this.app.memory.side);
    this.board.show(view, { hints: human, best });
    this.moves.show(line);
    const focused = document.activeElement;
    // who types moves goes on typing when it is their turn again
    if (!human) this.typing ||= this.form.contains(focused);
    this.form.hidden = !human;
    this.undo.disabled = this.undoTarget() === null;
    this.redo.disabled = line.ply >= line.actions.length;
    this.hintButton.disabled = !human;
    this.resign.disabled = over || !this.pickers.some((picker) => picker.isHuman);
    rescueFocus(focused, this.node, this.board);
    if (human) {
      if (this.typing && this.board.node.contains(document.activeElement)) this.typed.focus();
      this.typing = false;
    }
    this.node.classList.toggle("over", over);
    this.tell(view, human, best);
    if ([this.thinking, this.advising].some((work) => work && work.key !== key)) this.stopThinking();
    if (!over && !human && line.ply === line.actions.length && !this.thinking) this.letMove(view, key);
    this.app.changed();
  }

  tell(view, human, best) {
    const { ply } = this.line;
    let status;
    const last = ply ? `Last move: ${this.line.said(ply - 1)}. ` : "";
    const back = ply < this.line.actions.length;
    let detail = `${last}A click, or the arrow keys and Enter, play a move${back ? " in place of those that came after; Redo goes on" : ""}.`;
    if (this.resigned !== null) {
      const others = this.game.seats > 2 ? "The others share the win." : this.wins([1 - this.resigned]);
      status = `${this.nameOf(this.resigned)} ${this.isYou(this.resigned) ? "have" : "has"} resigned. ${others}`;
      detail = `${last}New game begins another. Analyse shows where this one was decided.`;
    } else if (view.outcome !== null) {
      status = this.game.alone ? "The game is over." : this.wins(view.winners);
      detail = `The game ended after ${countOf(this.line.number(ply - 1), "move")}. New game begins another; Analyse shows where it was decided.`;
    } else if (human) {
      status = this.isYou(view.to_play) ? "Your turn" : `${NAMES[view.to_play]} to move`;
      if (best !== null) detail = this.hint.sentence;
    } else if (view.dice) {
      status = `Looking back: ${this.nameOf(view.to_play)} ${this.isYou(view.to_play) ? "roll" : "rolls"}`;
      detail = "Redo goes on with what the die has shown.";
    } else if (back) {
      status = `Looking back: ${this.nameOf(view.to_play)} to move`;
      detail = [this.undo.disabled ? "Redo goes on. " : "Undo takes your last move back from here; Redo goes on. ", button("Let it move here", () => this.playHere(), { class: "small" })];
    } else {
      status = `${this.nameOf(view.to_play)} thinks …`;
      detail = this.app.lost ? `${last}It moves when the page is connected again.` : `${last}Wait for its move.`;
    }
    if (view.points) status = `${status.replace(/[.!]$/, "")}: ${view.points}`;
    const remark = view.remark && `${view.remark[0].toUpperCase()}${view.remark.slice(1)}. `;
    const sentence = `${ply ? `${this.line.said(ply - 1)}. ` : ""}${status}${remark && `. ${remark}`}`;
    if (this.told?.ply !== ply || this.told.sentence !== sentence) say(sentence);
    this.told = { ply, sentence };
    refill(this.status, this.game.alone || view.winners.length > 1 || this.resigned !== null ? null : swatch(this.game.board, view.winners[0] ?? view.to_play), status);
    refill(this.detail, remark && el("strong", {}, remark), detail);
  }

  // Nobody else sits at the page.
  isYou(side) {
    return this.pickers[side].isHuman && (this.game.alone || this.pickers.filter((picker) => picker.isHuman).length === 1);
  }

  // The side from which one sees the board: one's own.
  sideOfBoard() {
    return [0, 1].find((side) => this.isYou(side)) ?? this.game.board.bottom;
  }

  nameOf(side) {
    if (this.isYou(side)) return "You";
    const { isHuman, title } = this.pickers[side];
    return isHuman ? NAMES[side] : this.game.seats > 2 ? `${NAMES[side]} (${title})` : title;
  }

  wins(winners) {
    if (winners.length === this.game.seats) return "The game is a draw.";
    if (winners.length === 1 && this.isYou(winners[0])) return "You have won!";
    return `${resultOf(winners, this.game.seats, (side) => this.nameOf(side))}.`;
  }

  // --- moves ---

  async humanPlays(action) {
    this.gaveUp = this.hint = null; // the same move once more is a new game from there
    await this.line.set([...this.line.here, action]);
    await this.refresh();
  }

  // The engine throws the dice that are due; nobody chooses what they show.
  async roll(line, key) {
    const { actions } = await this.app.engine.ask("roll", { ...line.at(line.here), seed: this.seed });
    if (line !== this.line || key !== line.actions.join(".")) return;
    await line.set(actions);
    await this.refresh();
  }

  letMove(view, key) {
    const { line } = this;
    const picker = this.pickers[view.to_play];
    this.waiting = setTimeout(() => refill(this.detail, "Still thinking. A first move takes longer: the search is made ready."), PATIENCE);
    const end = this.app.engine.follow(
      "move",
      { ...line.at(line.here), player: picker.fields, seed: this.seed },
      async (answer) => {
        this.stopThinking();
        if (!this.visible || line !== this.line || key !== line.actions.join(".")) return;
        if (answer.stopped) return this.offerAgain(`The search of ${picker.title} was stopped`, "");
        try {
          if (answer.error) throw new Error(answer.error);
          if (answer.forfeit) this.gaveUp = { key, side: view.to_play, id: picker.id, reason: answer.forfeit };
          else await line.play(answer.action);
        } catch (error) {
          if (!this.visible) throw error;
          return this.offerAgain(`${picker.title} cannot move`, error.message);
        }
        await this.refresh();
        if (answer.forfeit) refill(this.detail, `${picker.title} gives up: ${answer.forfeit}`);
      },
    );
    this.thinking = { key, end };
  }

  offerAgain(status, detail) {
    announce(this.status, status);
    refill(this.detail, detail, " ", button("Try again", () => {
      this.board.focus();
      this.refresh();
    }));
  }

  // The ply of one's own turn before this one; null if there is none.
  undoTarget() {
    const ply = this.line.movers.slice(0, this.line.ply).findLastIndex((_, i) => this.isOurs(i));
    return ply < 0 ? null : ply;
  }

  // Somebody at the page chose the action.
  isOurs(i) {
    return !this.line.rolled[i] && this.pickers[this.line.movers[i]].isHuman;
  }

  takeBack() {
    const ply = this.undoTarget();
    if (ply === null) return;
    this.gaveUp = null;
    return this.jump(ply);
  }

  // Goes on to one's own next turn, or to the end.
  again() {
    const { line } = this;
    let ply = line.ply + 1;
    while (ply < line.actions.length && !this.isOurs(ply)) ply++;
    return this.jump(ply);
  }

  jump(ply) {
    this.stopThinking();
    this.line.go(ply);
    return this.refresh();
  }

  // A move that was typed is meant for the position that was shown then; until it is read, no other one is taken.
  async typeMove() {
    const { line } = this;
    const { here, words } = line;
    const typed = this.typed.value.trim();
    if (!typed || this.reading) return;
    this.reading = true;
    try {
      const moves = [...words.slice(0, here.length), typed].join(this.game.moves_run_together ? "" : " ");
      const { actions } = await this.app.engine.ask("position", { ...line.at(), moves });
      if (line !== this.line || here.join(".") !== line.key) return;
      if (actions.length !== here.length + 1) throw new Refused(`'${typed}' is not one move: type a single one, as in the list`);
      this.typed.value = "";
      this.app.trouble("");
      await this.humanPlays(actions.at(-1));
    } finally {
      this.reading = false;
    }
  }

  async askHint() {
    this.stopThinking();
    const key = this.line.key;
    const adviser = this.pickers.map((picker) => picker.player).find((player) => player?.searches) ??
      this.game.players.find((player) => player.searches);
    refill(this.detail, "Looking for a good move …");
    const end = this.app.engine.follow(
      "analyse",
      { ...this.line.at(this.line.here), player: { id: adviser.id }, limit: HINT_SIMULATIONS, side: 1 },
      async (answer) => {
        if (answer.error) refill(this.detail, answer.error);
        if (answer.more || answer.error || answer.stopped || key !== this.line.key) return;
        const [best] = answer.lines;
        const more = best.words.slice(1, 5).join(" ") || (this.view.dice === undefined ? "the end" : ""); // dice end a line
        const then = more && ` Then perhaps ${more}.`;
        const sentence = `Hint: ${best.word}, ${nameOfScore(this.game)} ${scoreOf(this.game, best.value, 0, this.view.gained)} (${adviser.title}, ${countOf(answer.simulations, "simulation")}).${then}`;
        this.hint = { key, action: best.action, sentence };
        say(sentence);
        await this.refresh();
      },
    );
    this.advising = { key, end };
  }

  // What comes after is dropped, and the contestant whose turn it is moves.
  async playHere() {
    this.board.focus();
    await this.line.set(this.line.here);
    await this.refresh();
  }

  onConnection() {
    return this.refresh();
  }

  async giveUp() {
    this.stopThinking();
    const side = this.pickers[this.view.to_play].isHuman ? this.view.to_play : this.pickers.findIndex((picker) => picker.isHuman);
    this.gaveUp = { key: this.line.key, side, id: this.pickers[side].id };
    await this.refresh();
  }

  // From the start of the game, and from no board.
  newGame() {
    if (!this.line.board) return this.beginFrom([]);
    this.gaveUp = null;
    this.app.beginLine("");
    return this.app.open("play");
  }

  async beginFrom(actions) {
    this.stopThinking();
    this.gaveUp = this.hint = null;
    this.seed = Math.floor(Math.random() * 2 ** 31);
    await this.line.set(actions);
    await this.refresh();
    this.board.focus();
  }

  async startFrom() {
    const { line } = this;
    await this.app.read({ moves: this.start.value });
    if (line.game !== this.line.game) return; // another game was chosen meanwhile
    this.app.trouble("");
    if (line === this.line) await this.beginFrom(line.actions);
    else await this.app.open("play");
  }

  // --- players ---

  async playersChanged() {
    this.stopThinking();
    this.app.memory.side = this.sideOfBoard();
    this.app.memory.players = this.pickers.map((picker) => picker.seat);
    await this.refresh();
  }

  async switchSides() {
    const seats = this.pickers.map((picker) => picker.seat);
    seats.unshift(seats.pop());
    this.pickers.forEach((picker, side) => picker.choose(seats[side]));
    await this.playersChanged();
  }

  // --- files ---

  async save() {
    const [first, second, ...others] = this.pickers.map((picker) => (picker.isHuman ? "human" : picker.title));
    const { resigned, line } = this;
    const name = this.kind.value;
    const fields = { ...line.at(line.actions), first, second, others, name };
    if (resigned !== null) Object.assign(fields, { actions: line.here, resigned, reason: this.gaveUp.reason });
    const { text } = await this.app.engine.ask("record", fields);
    save(`${this.game.title.toLowerCase().replace(/\W+/g, "-")}${name}`, text);
    announce(this.extra, "The game is saved as a file of games.");
  }

  async convert(text, name) {
    return (await this.app.engine.ask("load", { text, name })).lines;
  }

  async load(text) {
    await this.app.showRecord(await this.app.engine.ask("load", { text }));
  }

  onKey(event) {
    const keys = { u: () => this.takeBack(), r: () => this.again(), h: () => !this.hintButton.disabled && this.askHint(), n: () => (this.over || !this.line.actions.length) && this.newGame() }; // no slip of the finger ends a game
    keys[event.key]?.();
    return event.key in keys;
  }
}

