// The view to watch runs in: curves while they train, warnings, time left, games of each generation.

import { legend, lineChart, tick } from "./chart.js";
import { button, countOf, duration, el, percent, redraw, refill } from "./dom.js";
import { PolledView } from "./polled.js";

const PAUSE = 2000;
const SHARES = new Set(["gate_score", "drawn_positions", "distinct_positions", "cache_hits"]);
const USUAL = ["policy_loss", "value_loss", "gate_score", "policy_entropy", "simulations_per_s"];
const MOST_SHOWN = 6;

function title(name) {
  return name.replaceAll("_", " ").replace("per s", "per second");
}

export class RunsView extends PolledView {
  constructor(app) {
    super(PAUSE);
    this.app = app;
    this.runs = [];
    this.chosen = [];
    this.details = new Map();
    this.faults = new Map();
    this.parts = new Map();
    this.axis = "minutes";
    this.list = el("ul", { class: "choices" });
    this.charts = el("div", { class: "charts" });
    this.about = el("div", { class: "side-panel" });
    this.axisChoice = el("select", { onchange: () => {
      this.axis = this.axisChoice.value;
      this.draw();
    } }, ["minutes", "generation", "games"].map((name) => el("option", { value: name }, name)));
    this.more = el("input", { type: "checkbox", onchange: () => this.draw() });
    this.node = el("div", { class: "columns watch" },
      el("section", { class: "card list", "aria-label": "Runs" }, el("h2", {}, "Runs"), this.list),
      el("div", { class: "wide" },
        el("section", { class: "card", "aria-label": "Curves" },
          el("div", { class: "row between" }, el("h2", {}, "Curves"),
            el("span", { class: "row" }, el("label", {}, "against ", this.axisChoice), el("label", {}, this.more, " all figures"))),
          this.charts),
        this.about));
  }

  async look() {
    const { runs } = await this.app.engine.ask("runs");
    this.runs = runs;
    const names = runs.filter((run) => !run.fault).map((run) => run.name);
    this.chosen = this.chosen.filter((name) => names.includes(name));
    if (!this.chosen.length) this.chosen = names.filter((name) => !this.faults.has(name)).slice(0, 1);
    for (const name of this.chosen) await this.tryMore(name);
    if (this.visible) this.draw();
  }

  fail(error) {
    this.key = null; // what is shown now is the message
    refill(this.list, error.message);
  }

  // A run that cannot be told of must not keep the others from being shown.
  async tryMore(name) {
    try {
      await this.readMore(name);
    } catch (error) {
      this.faults.set(name, error.message);
      this.chosen = this.chosen.filter((one) => one !== name);
      this.details.delete(name);
    }
  }

  // Asks for the generations that have come since.
  async readMore(name) {
    const known = this.details.get(name) ?? { rows: [] };
    const after = known.rows.at(-1)?.generation ?? -1;
    const found = await this.app.engine.ask("run", { name, after });
    const another = found.identity !== (known.identity ?? found.identity); // of the same name
    if (found.generation < after || another) {
      this.details.delete(name);
      return;
    }
    this.details.set(name, { ...found, rows: [...known.rows, ...found.rows] });
  }

  choose(name) {
    this.faults.delete(name);
    if (this.chosen.includes(name)) this.chosen = this.chosen.filter((one) => one !== name);
    else this.chosen = [...this.chosen, name].slice(-MOST_SHOWN);
    this.poll(true);
  }

  draw() {
    const { runs, chosen } = this;
    const key = JSON.stringify([runs, chosen, [...this.faults]]);
    if (key !== this.key) {
      this.key = key;
      const focused = document.activeElement?.dataset?.run;
      refill(this.list, runs.length ? runs.map((run) => this.item(run)) : el("li", { class: "note" }, "There is no run in the folder that --runs names (runs/ unless given). Train one: alphazero train --game connect4"));
      this.list.querySelector(`[data-run="${CSS.escape(focused ?? "")}"]`)?.focus();
    }
    const shown = chosen.map((name) => this.details.get(name)).filter(Boolean);
    this.drawAbout(shown);
    this.drawCharts(shown);
  }

  item(run) {
    if (run.fault) return el("li", { class: "fault" }, el("strong", {}, run.name), " ", run.fault);
    const state = run.training ? `training, ${run.left > 0 ? `about ${duration(run.left)} left` : run.generation ? "nearly done" : "just begun"}` : "not training";
    const box = el("input", { type: "checkbox", checked: this.chosen.includes(run.name), onchange: () => this.choose(run.name), "data-run": run.name });
    return el("li", {}, el("label", {}, box, el("span", {}, el("strong", {}, run.name), el("br"),
      el("span", { class: run.training ? "note live" : "note" }, `${title(run.game)}, generation ${run.generation}, ${duration(run.seconds)}; ${state}`),
      this.faults.has(run.name) && el("span", { class: "fault" }, el("br"), this.faults.get(run.name)))));
  }

  drawAbout(shown) {
    const key = JSON.stringify(shown.map((run) => [run.name, run.generation, run.training, Math.round(run.left / 10), run.shown]));
    if (key === this.aboutKey) return;
    this.aboutKey = key;
    redraw(this.about, shown.map((run) => {
      const figures = Object.entries(run.benchmark).slice(0, 2).map(([name, value]) => `${title(name)} ${percent(value, 1)}`);
      const of = run.minutes ? `${duration(run.seconds)} of ${duration(60 * run.minutes)}` : `${run.generation} of ${run.generations} generations`;
      const { choice, games } = this.partsOf(run);
      return el("section", { class: "card", "aria-label": `Run ${run.name}` },
        el("div", { class: "row between" }, el("h2", {}, run.name), el("span", { class: run.training ? "badge live" : "badge" }, run.training ? "training" : "not training")),
        el("p", {}, [of, ...figures, run.training && run.left > 0 ? `about ${duration(run.left)} left` : null].filter(Boolean).join(" · ")),
        el("h3", {}, "Health"),
        run.warnings.length
          ? el("ul", { class: "warnings" }, run.warnings.slice(0, 6).map(({ generation, text }) => el("li", {}, `Generation ${generation}: ${text}`)))
          : el("p", { class: "note" }, "No warnings."),
        el("h3", {}, "Games of self-play"),
        run.shown.length
          ? el("div", { class: "row" }, choice, button("Show games", () => this.showGames(run.name, Number(choice.value), games)))
          : el("p", { class: "note" }, "This run keeps no games to step through."),
        games);
    }));
  }

  // What keeps its place while the run goes on: the chosen generation and its games.
  partsOf(run) {
    if (!this.parts.has(run.name)) {
      const choice = el("select", { "aria-label": `Generation of ${run.name}`, onchange: () => this.pick(run.name) });
      this.parts.set(run.name, { choice, games: el("div", { class: "games" }) });
    }
    const parts = this.parts.get(run.name);
    const { choice, picked } = parts;
    refill(choice, [...run.shown].reverse().map((one) => el("option", { value: one }, `generation ${one}`)));
    if (run.shown.includes(picked)) choice.value = picked;
    return parts;
  }

  pick(name) {
    const parts = this.parts.get(name);
    parts.picked = Number(parts.choice.value);
  }

  async showGames(name, generation, node) {
    this.pick(name); // its games stay beside it
    try {
      const { games } = await this.app.engine.ask("run_games", { name, generation });
      refill(node, el("ul", { class: "choices" }, games.map((game, i) => el("li", {},
        button(`Game ${i + 1}: ${countOf(game.actions.length, "move")}, ${game.result}`, () => this.app.showRecord({ ...game, contestants: [`${name}, generation ${generation}, game ${i + 1}`] }), { class: "link" })))));
    } catch (error) {
      refill(node, error.message);
    }
  }

  drawCharts(shown) {
    const figures = [...new Set(shown.flatMap((run) => [...Object.keys(run.benchmark).slice(0, 1), ...(this.more.checked ? run.figures : USUAL)]))];
    const x = (row) => (this.axis === "minutes" ? (row.seconds ?? 0) / 60 : this.axis === "games" ? row.total_games : row.generation);
    const drawn = figures.map((name) => {
      const series = shown.map((run, i) => {
        const points = run.rows.filter((row) => row[name] !== undefined).map((row) => [x(row), row[name]]);
        return { name: run.name, points, style: i };
      }).filter((one) => one.points.length);
      if (!series.length) return null;
      const share = SHARES.has(name) || name.includes("accuracy");
      const inWords = (y) => (share ? `${tick(100 * y)}%` : tick(y));
      const last = series.map((one) => `${one.name} ${inWords(one.points.at(-1)[1])}`).join(", ");
      return el("figure", {}, el("figcaption", {}, title(name)),
        lineChart(series, { xName: this.axis, whole: this.axis !== "minutes", yTick: inWords, width: Math.max(290, Math.min(430, this.charts.clientWidth || 400)), height: 180, label: `${title(name)} against ${this.axis}: now ${last}` }));
    });
    const names = shown.map((run, i) => ({ name: run.name, style: i }));
    refill(this.charts, names.length > 1 ? legend(names) : null, el("div", { class: "chart-grid" }, drawn),
      shown.length && !drawn.some(Boolean) ? el("p", { class: "note" }, "No generation is finished yet.") : null);
  }
}
