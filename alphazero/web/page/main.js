// The page: chooses the game and the view, keeps the line of play, and talks to the engine.

import { AnalyseView } from "./analyse.js";
import { button, el, focusView, isShortcut, refill } from "./dom.js";
import { Engine, Refused } from "./engine.js";
import { Line } from "./line.js";
import { PlayView } from "./play.js";
import { RunsView } from "./runs.js";
import { SocketConnection } from "./socket.js";
import { TournamentsView } from "./tournaments.js";

const VIEWS = { play: ["Play", PlayView], analyse: ["Analyse", AnalyseView], runs: ["Runs", RunsView], tournaments: ["Tournaments", TournamentsView] };
const OF_GAME = ["play", "analyse"];
const LOST = "The connection is lost. The page connects again by itself; nothing is lost. A server that was started anew may have another address, which its terminal shows.";
const ADDRESSES = 50; // written at once in 30 seconds, of which Safari refuses more than 100
const ADDRESS_PAUSE = 1000; // before each of the others
const THEMES = { auto: "as the system", light: "light", dark: "dark" };

class App {
  constructor() {
    this.engine = new Engine(new SocketConnection(), (connected, reason) => this.onConnection(connected, reason));
    this.views = {};
    this.now = null;
    this.memory = {};
    this.line = null;
    this.choices = 0;
    this.wroteAt = [];
    this.lost = this.troubled = "";
    this.main = document.getElementById("view");
  }

  async begin() {
    this.theme(recall("localStorage", "theme") ?? "auto");
    document.getElementById("theme").addEventListener("click", () => this.nextTheme());
    this.welcome = await this.engine.ask("welcome");
    const games = document.getElementById("game");
    refill(games, this.welcome.games.map(({ name, title }) => el("option", { value: name }, title)));
    games.addEventListener("change", () => this.change(games.value));
    this.tabs = Object.keys(VIEWS).filter((name) => OF_GAME.includes(name) || this.welcome.watches);
    refill(document.getElementById("tabs"), this.tabs.map((name) => button(VIEWS[name][0], () => this.open(name), { "data-view": name })));
    window.addEventListener("hashchange", () => this.follow());
    document.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("visibilitychange", () => this.renewPlayers());
    window.addEventListener("unhandledrejection", (event) => this.onRejection(event));
    document.querySelector(".skip").addEventListener("click", (event) => {
      event.preventDefault(); // the address belongs to the views
      this.main.focus();
    });
    await this.follow();
  }

  // Opens what the address asks for.
  async follow() {
    if (location.hash === this.written) return;
    clearTimeout(this.writing); // it would take the place of what is asked for
    const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
    const asked = new URLSearchParams(query);
    const view = this.tabs.includes(path) ? path : "play";
    const game = asked.get("game") ?? this.game?.game ?? this.welcome.game;
    let wrong = "";
    try {
      if (this.game?.game !== game && !(await this.chooseGame(game))) return;
      const board = asked.get("board") ?? "";
      if (asked.get("moves")) await this.read({ moves: asked.get("moves") }, board);
      else if (asked.has("actions")) await this.read({ actions: asked.get("actions").split(".").filter(Boolean).map(Number) }, board);
      else if (asked.has("game")) await this.read({ actions: [] }, board);
      if (asked.has("ply")) this.line.go(Number(asked.get("ply")) || 0);
    } catch (error) {
      if (!this.game && !(await this.chooseGame(this.welcome.game))) return;
      wrong = `The link does not lead to a position: ${error.message}`;
    }
    await this.open(view);
    if (wrong) this.trouble(wrong);
  }

  // Replaces the line, and the views of it if it begins elsewhere.
  beginLine(board) {
    if (this.line.board === board) return;
    this.close();
    this.line = new Line(this.engine, this.game.game, board);
    this.fresh();
  }

  // Replaces the line by {actions} or {moves} from a board or from the start; moves may be the text of a board, too.
  async read(fields, board = "") {
    const { line } = this;
    const found = await this.engine.ask("position", { game: line.game, ...fields, ...(board && { board }) });
    if (line !== this.line) return; // another game was chosen meanwhile
    this.beginLine(board || (found.set_up ? fields.moves : ""));
    await this.line.set(found.actions);
  }

  // Another game in the same view.
  async change(name) {
    const view = OF_GAME.includes(this.now) ? this.now : "play";
    try {
      if (!(await this.chooseGame(name))) return;
      this.memory.gaveUp = null; // a new game
      await this.open(view);
    } catch (error) {
      document.getElementById("game").value = this.game.game;
      this.trouble(error.message);
    }
  }

  // Says whether the game is there; it is not if another one was chosen before the answer came. Throws Refused for a
  // game that the engine does not have; a game of one's own may be called by another path.
  async chooseGame(name) {
    const choice = ++this.choices;
    const game = await this.engine.ask("game", { game: name });
    if (choice !== this.choices) return false;
    this.close();
    this.game = game;
    document.getElementById("game").value = game.game;
    this.line = new Line(this.engine, game.game);
    this.memory = { ...remembered(game.game), overlay: this.memory.overlay };
    this.fresh();
    return true;
  }

  // Runs that train bring contestants and generations: whoever looks at a view of the game is offered them.
  async renewPlayers() {
    const { game } = this;
    if (document.hidden || !OF_GAME.includes(this.now)) return;
    const { players } = await this.engine.ask("game", { game: game.game });
    if (JSON.stringify(players) === JSON.stringify(game.players)) return;
    game.players = players;
    for (const name of OF_GAME) if (game === this.game) this.views[name]?.offer(players);
  }

  // The views are made anew when they are opened next.
  fresh(views = OF_GAME) {
    for (const view of views) delete this.views[view];
  }

  close() {
    clearTimeout(this.writing);
    if (this.now) this.views[this.now]?.hidden();
    this.now = null;
  }

  async open(name) {
    if (!this.lost) this.trouble("");
    this.close();
    this.now = name;
    this.views[name] ??= new VIEWS[name][1](this);
    const view = this.views[name];
    const within = this.main.contains(document.activeElement);
    refill(this.main, view.node);
    if (within && !this.main.contains(document.activeElement)) focusView();
    for (const tab of document.querySelectorAll("#tabs button")) tab.setAttribute("aria-current", tab.dataset.view === name ? "page" : "false");
    document.title = `${VIEWS[name][0]} · ${OF_GAME.includes(name) ? `${this.game.title} · ` : ""}alphazero`;
    try {
      await view.shown();
    } catch (error) {
      this.trouble(error.message);
    }
    this.changed();
    this.renewPlayers();
  }

  // Draws the view that is shown again.
  async refresh() {
    await this.views[this.now]?.refresh?.();
  }

  // Shows a recorded game in the analysis.
  async showRecord(record) {
    if (record.game !== this.game.game && !(await this.chooseGame(record.game))) return;
    this.beginLine(record.board ?? "");
    await this.line.set(record.actions, 0);
    const forfeit = record.forfeit ? ` (${record.forfeit})` : "";
    this.line.title = `${record.contestants.join(" – ")} ${record.result}${forfeit}`;
    await this.open("analyse");
  }

  // The address says where one is, so a link leads back; who plays, and who has resigned, stays in this tab.
  changed() {
    const { players, gaveUp } = this.memory;
    if (this.line) remember("sessionStorage", `game ${this.line.game}`, JSON.stringify({ players, gaveUp }));
    clearTimeout(this.writing);
    this.wroteAt = this.wroteAt.filter((time) => time > performance.now() - 30000);
    if (this.wroteAt.length < ADDRESSES) this.write();
    else this.writing = setTimeout(() => this.write(), ADDRESS_PAUSE);
  }

  write() {
    const { line } = this;
    let hash = `#/${this.now}`;
    if (OF_GAME.includes(this.now) && line) {
      const query = new URLSearchParams({ game: this.game.game });
      if (line.board) query.set("board", line.board);
      if (line.actions.length) query.set("actions", line.actions.join("."));
      if (line.ply < line.actions.length) query.set("ply", line.ply);
      hash += `?${query}`;
    }
    this.written = hash;
    if (hash === location.hash) return;
    this.wroteAt.push(performance.now());
    try {
      history.replaceState(null, "", hash);
    } catch {
      // a browser that refuses is asked again after the next move
    }
  }

  link() {
    this.write();
    return location.href;
  }

  trouble(text) {
    if (text === this.troubled) return; // an alert that is written anew is read aloud anew, and loses the focus
    this.troubled = text;
    const node = document.getElementById("trouble");
    if (node.contains(document.activeElement)) focusView();
    node.hidden = !text;
    refill(node, text, text && button("Close", () => this.trouble(""), { class: "small" }));
  }

  // Whatever an engine refuses after a click or a move is told; mistakes of the page itself are on the console, too.
  onRejection(event) {
    if (event.reason instanceof Refused) event.preventDefault();
    this.trouble(event.reason?.message ?? String(event.reason));
  }

  onConnection(connected, reason) {
    document.body.classList.toggle("lost", !connected);
    const lost = connected ? "" : reason || LOST;
    const before = this.lost;
    this.lost = lost;
    if (lost === before) return; // not at each try: somebody may have closed the message
    this.trouble(lost);
    if (connected) this.views[this.now]?.reconnected?.();
    this.views[this.now]?.onConnection?.();
  }

  // Keys that work wherever nobody types.
  async key(event) {
    if (isShortcut(event) || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const { line } = this;
    const view = this.views[this.now];
    if (OF_GAME.includes(this.now) && ["ArrowLeft", "ArrowRight"].includes(event.key)) {
      event.preventDefault();
      const ply = line.ply + (event.key === "ArrowLeft" ? -1 : 1);
      await (view.jump?.(ply) ?? view.go(ply));
    } else if (view?.onKey?.(event)) event.preventDefault();
  }

  nextTheme() {
    const names = Object.keys(THEMES);
    this.theme(names[(names.indexOf(this.themeName) + 1) % names.length]);
  }

  theme(name) {
    this.themeName = name in THEMES ? name : "auto";
    document.documentElement.dataset.theme = this.themeName;
    const theme = document.getElementById("theme");
    refill(theme, el("span", { class: "half" }), el("span", { class: "word" }, `Theme: ${THEMES[this.themeName]}`));
    theme.setAttribute("aria-label", `Theme: ${THEMES[this.themeName]}`);
    remember("localStorage", "theme", this.themeName);
  }
}

// A text that the browser keeps in `localStorage` or, until the tab is closed, in `sessionStorage`.
function recall(storage, name) {
  try {
    return window[storage].getItem(name);
  } catch {
    return null;
  }
}

function remember(storage, name, text) {
  try {
    window[storage].setItem(name, text);
  } catch {
    // a browser that keeps nothing begins with the usual theme and players
  }
}

function remembered(game) {
  try {
    return JSON.parse(recall("sessionStorage", `game ${game}`)) ?? {};
  } catch {
    return {};
  }
}

const app = new App();
app.begin().catch((error) => app.trouble(error.message));
