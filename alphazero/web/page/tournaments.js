// The view of tournaments: standings with intervals, the cross table, and every game to step through.

import { button, countOf, el, headOf, percent, redraw, refill } from "./dom.js";
import { PolledView } from "./polled.js";

const PAUSE = 3000;
const PAGE = 100;

export class TournamentsView extends PolledView {
  constructor(app) {
    super(PAUSE);
    this.app = app;
    this.chosen = null;
    this.first = 0;
    this.list = el("ul", { class: "choices" });
    this.result = el("div", { class: "wide" });
    this.filter = el("input", { type: "search", placeholder: "a contestant or a result", "aria-label": "Filter the games", oninput: () => this.drawGames(0) });
    this.gameList = el("ul", { class: "choices games" });
    this.pages = el("p", { class: "row" });
    this.games = el("section", { class: "card", "aria-label": "Games" }, el("div", { class: "row between" }, el("h2", {}, "Games"), this.filter), this.gameList, this.pages);
    this.node = el("div", { class: "columns watch" },
      el("section", { class: "card list", "aria-label": "Tournaments" }, el("h2", {}, "Tournaments"), this.list),
      this.result);
  }

  async look() {
    const { tournaments } = await this.app.engine.ask("tournaments");
    const sound = tournaments.filter((one) => !one.fault);
    if (!sound.some(({ name }) => name === this.chosen)) this.chosen = sound[0]?.name ?? null;
    this.drawList(tournaments);
    const now = sound.find(({ name }) => name === this.chosen);
    const key = JSON.stringify(now);
    if (now && key !== this.key) {
      if (this.found?.name !== this.chosen) this.first = 0; // another one has fewer games, perhaps
      this.found = await this.app.engine.ask("tournament", { name: this.chosen });
      this.key = key;
      this.draw();
    }
  }

  fail(error) {
    this.key = null; // what is shown now is the message
    refill(this.result, el("p", { class: "card fault" }, error.message));
  }

  drawList(tournaments) {
    const key = JSON.stringify([tournaments, this.chosen]);
    if (key === this.listKey) return;
    this.listKey = key;
    redraw(this.list, tournaments.length ? tournaments.map((one) => {
      if (one.fault) return el("li", { class: "fault" }, el("strong", {}, one.name), " ", one.fault);
      const pick = () => {
        this.chosen = one.name;
        this.poll(true);
      };
      const about = `${one.game}, ${one.contestants} contestants, ${one.played} of ${one.planned} games`;
      const text = [el("strong", {}, one.name), el("br"), el("span", { class: one.playing ? "note live" : "note" }, about)];
      return el("li", {}, button(text, pick, { class: "choice", "data-key": one.name, "aria-current": one.name === this.chosen ? "true" : "false" }));
    }) : el("li", { class: "note" }, "There is no tournament in the folder that --tournaments names (tournaments/ unless given). Play one: alphazero pit A B C"));
  }

  draw() {
    const { found } = this;
    const ratings = found.rows.map((row) => [row.rating - row.error, row.rating + row.error]);
    const low = Math.min(...ratings.map(([bound]) => bound), 0);
    const high = Math.max(...ratings.map(([, bound]) => bound), 1);
    const place = (rating) => percent((rating - low) / (high - low || 1), 1);
    redraw(this.result,
      el("section", { class: "card", "aria-label": "Standings" },
        el("div", { class: "row between" }, el("h2", {}, found.name), el("span", { class: found.playing ? "badge live" : "badge" }, found.playing ? "playing" : `${found.played} of ${found.planned} games`)),
        el("div", { class: "scroll" }, el("table", { class: "standings" },
          el("thead", {}, headOf(["", "Contestant", "Rating", "95% interval", "Games", "Score", "Win, draw, loss", "ms a move", "Better than next"])),
          el("tbody", {}, found.rows.map((row, i) => {
            const style = { left: place(row.rating - row.error), right: `calc(100% - ${place(row.rating + row.error)})` };
            return el("tr", {},
              el("td", {}, i + 1), el("th", { scope: "row" }, row.name),
              el("td", { class: "number" }, `${row.rating > 0 ? "+" : ""}${row.rating}`),
              el("td", { class: "interval" }, el("span", { class: "whisker" }, el("i", { style })), el("span", { class: "note" }, `± ${row.error}`)),
              el("td", {}, row.games),
              el("td", { title: `${percent(row.interval[0], 1)} to ${percent(row.interval[1], 1)}` }, percent(row.score, 1)),
              el("td", {}, `${row.wins}, ${row.draws}, ${row.losses}`),
              el("td", {}, row.ms.toFixed(1)),
              el("td", {}, row.better ?? ""));
          })))),
        found.remarks.map((text) => el("p", { class: text.startsWith("Warning") ? "note warning" : "note" }, text))),
      found.cross && el("section", { class: "card", "aria-label": "Cross table" }, el("h2", {}, "Cross table"),
        el("div", { class: "scroll" }, el("table", { class: "cross" },
          el("thead", {}, headOf(found.cross.head)),
          el("tbody", {}, found.cross.lines.map((line) => el("tr", {}, line.map((word, i) => {
            if (i === 1) return el("th", { scope: "row" }, word);
            const share = i > 1 ? Number.parseFloat(word) / 100 : NaN;
            const color = share >= 0.5 ? "47, 191, 113" : "209, 73, 91";
            return el("td", { style: Number.isNaN(share) ? null : { background: `rgba(${color}, ${Math.abs(share - 0.5) * 0.7})` } }, word);
          }))))))),
      this.games);
    this.drawGames(this.first);
  }

  drawGames(first) {
    this.first = first;
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (game) => words.every((word) => `${game.contestants.join(" ")} ${game.result}`.toLowerCase().includes(word));
    const games = this.found.games.filter(fits).reverse();
    const shown = games.slice(first, first + PAGE);
    redraw(this.gameList, shown.map((game) => el("li", {},
      button(`${game.contestants.join(" – ")}: ${game.result}, ${countOf(game.plies, "move")}`, () => this.openGame(game.number), { class: "link", "data-key": game.number }))));
    redraw(this.pages,
      first > 0 && button("Newer", () => this.drawGames(Math.max(0, first - PAGE)), { "data-key": "newer" }),
      first + PAGE < games.length && button("Older", () => this.drawGames(first + PAGE), { "data-key": "older" }),
      !games.length && el("span", { class: "note" }, "No game matches."));
  }

  async openGame(number) {
    await this.app.showRecord(await this.app.engine.ask("tournament_game", { name: this.found.name, number }));
  }
}
