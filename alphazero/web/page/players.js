// Chooses a contestant: its name, its number of simulations or depth, and a run's generation.

import { el, refill } from "./dom.js";

export const HUMAN = "human";

export class PlayerPicker {
  // `options`: {label, human: true to offer a person, searches: true to offer those that can analyse}.
  constructor(label, { human = false, searches = false, onChange = () => {} } = {}) {
    this.human = human;
    this.searches = searches;
    this.onChange = onChange;
    this.players = [];
    this.choice = el("select", { "aria-label": label, onchange: () => this.changed(true) });
    this.slider = el("input", { type: "range", min: "0", step: "1", oninput: () => this.describe(), onchange: () => this.onChange() });
    this.generation = el("select", { "aria-label": `${label}: generation`, onchange: () => this.onChange() });
    this.said = el("output", {});
    this.note = el("p", { class: "note" });
    this.sliderRow = el("label", { class: "slider" }, this.slider, this.said);
    this.label = label;
    this.node = el("div", { class: "picker" }, el("div", { class: "row" }, this.choice, this.generation), this.sliderRow, this.note);
  }

  // Offers the game's contestants, and keeps the choice, also of one that is gone: whoever it plays is told.
  offer(players, chosen = this.fields) {
    const { player } = this;
    if (player && !players.some(({ id }) => id === player.id)) players = [...players, player];
    this.players = players.filter((player) => !this.searches || player.searches);
    const options = this.players.map((player) => el("option", { value: player.id }, player.title));
    if (this.human) options.unshift(el("option", { value: HUMAN }, "You"));
    refill(this.choice, options);
    this.choose(chosen);
  }

  get id() {
    return this.choice.value;
  }

  get isHuman() {
    return this.id === HUMAN;
  }

  get player() {
    return this.players.find((player) => player.id === this.id);
  }

  get step() {
    return this.player?.slider ? this.player.slider.steps[Number(this.slider.value)] : 0;
  }

  // The contestant for a message.
  get fields() {
    const fields = { id: this.id };
    if (this.player?.slider) fields.step = this.step;
    if (this.generation.value !== "") fields.generation = Number(this.generation.value);
    return fields;
  }

  // The same for a later choice, with the name by which a contestant that is gone is told.
  get seat() {
    return { ...this.fields, name: this.player?.title };
  }

  get title() {
    const { player } = this;
    if (this.isHuman || !player) return "You";
    const number = player.slider && !this.searches ? ` (${this.step} ${player.slider.unit})` : "";
    const generation = this.fields.generation === undefined ? "" : `, generation ${this.fields.generation}`;
    return player.title + generation + number;
  }

  // Also one that is gone, such as a run that was moved: whoever it plays is told, and nobody else takes its seat.
  choose({ id, step, generation, name = id }) {
    if (id) { // else nobody was chosen yet, and the first one is
      if (![...this.choice.options].some((option) => option.value === id)) {
        this.players = [...this.players, { id, title: name, note: "It is not offered any more.", generations: [] }];
        this.choice.append(el("option", { value: id }, name));
      }
      this.choice.value = id;
    }
    this.changed(false);
    const steps = this.player?.slider?.steps ?? [];
    if (step !== undefined && steps.includes(step)) this.slider.value = steps.indexOf(step);
    if (generation !== undefined && this.id === id) this.chooseGeneration(generation);
    this.describe();
  }

  // Also of one that was removed since: whoever it plays is told, and nobody else takes its seat.
  chooseGeneration(generation) {
    const known = [...this.generation.options].some(({ value }) => value === String(generation));
    if (!known) this.generation.append(el("option", { value: generation }, `generation ${generation}`));
    this.generation.hidden = false;
    this.generation.value = generation;
  }

  changed(tell) {
    const { player } = this;
    const slider = this.searches ? null : player?.slider;
    this.sliderRow.hidden = !slider;
    if (slider) {
      this.slider.max = slider.steps.length - 1;
      this.slider.value = slider.steps.indexOf(slider.start);
      this.slider.setAttribute("aria-label", `${this.label}: ${slider.unit}`);
    }
    const generations = player?.generations ?? [];
    this.generation.hidden = !generations.length;
    refill(this.generation, el("option", { value: "" }, "best"), generations.map((one) => el("option", { value: one }, `generation ${one}`)));
    this.describe();
    if (tell) this.onChange();
  }

  // Says the number, and the strength that was measured with it.
  describe() {
    const { player } = this;
    if (!player?.slider || this.searches) {
      this.note.textContent = player?.note ?? "";
      return;
    }
    const { unit, steps, measured } = player.slider;
    const number = Number(this.slider.value);
    const words = steps[number] === 0 && unit === "simulations" ? "no search" : `${steps[number]} ${unit}`;
    this.said.textContent = words;
    this.slider.setAttribute("aria-valuetext", words);
    const known = measured.some((text) => text);
    this.note.textContent = measured[number] ? `Measured: ${measured[number]}` : known ? "Strength not measured at this setting" : player.note;
  }
}
