// The list of moves; a click jumps to the position after a move.

import { el, put, redraw } from "./dom.js";
import { NAMES } from "./words.js";

export class MoveList {
  constructor(onPick, alone = false) {
    this.onPick = onPick;
    this.alone = alone;
    this.list = el("ol", { class: "moves" });
    this.node = el("section", { class: "card moves-card", "aria-label": "Moves" }, el("h2", {}, "Moves"), this.list);
    this.key = "";
  }

  // `marks`: ply -> {kind, sentence} of moves that were judged.
  show(line, marks = {}) {
    const key = JSON.stringify([line.words, marks]);
    if (key !== this.key) {
      this.key = key;
      this.items = [this.item("Start", 0, null)];
      let number = 0;
      line.words.forEach((_, i) => {
        number += line.rolled[i] ? 0 : 1;
        this.items.push(this.item(line.said(i), i + 1, line.movers[i], marks[i], line.rolled[i] ? "" : number));
      });
      redraw(this.list, this.items.map((item) => el("li", {}, item)));
    }
    this.items.forEach((item, ply) => {
      item.setAttribute("aria-current", ply === line.ply ? "step" : "false");
      item.classList.toggle("ahead", ply > line.ply);
    });
    const now = this.items[line.ply];
    const { list } = this;
    if (now && (now.offsetTop < list.scrollTop || now.offsetTop + now.offsetHeight > list.scrollTop + list.clientHeight)) {
      list.scrollTop = now.offsetTop - list.clientHeight / 2;
    }
  }

  // The moves have a `number`, and what a die has shown has none.
  item(word, ply, mover, mark, number) {
    const rolled = number === "";
    const item = el("button", { type: "button", class: `move by${mover ?? ""}${rolled ? " rolled" : ""}`, "data-key": ply, onclick: () => this.onPick(ply) });
    if (mover !== null && !rolled) put(item, el("span", { class: "ply" }, `${number}.`));
    put(item, word);
    if (mark) put(item, el("span", { class: `judged ${mark.kind}`, title: mark.sentence }, mark.kind === "wrong" ? "??" : "?"));
    const who = mover === null || this.alone ? "" : `${NAMES[mover].toLowerCase()}, `;
    item.setAttribute("aria-label", ply ? `${rolled ? "" : `Move ${number}, `}${who}${word}${mark ? `, ${mark.sentence}` : ""}` : "Start of the game");
    return item;
  }
}
