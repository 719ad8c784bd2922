// The board: draws a position as SVG and turns clicks and keys into actions.
// It knows a board's description and a position's view, as the engine sends them, and no game.

import { button, el, isShortcut, put, redraw, refill, svg } from "./dom.js";
import { SCALE, center, drawArea, drawArrow, drawHole, drawPiece, path, radius, shapeOf, shrunk, swatch, turned, words } from "./shapes.js";
import { NAMES } from "./words.js";

const MARGIN = 0.3;
const LEAST_SHARE = 0.005;
const MOST_BUTTONS = 60;

// For each cell those of its name that lie in a row from it on: their pieces are a stack.
function stacksOf(cells, middles) {
  const ends = (a, b) => cells[b]?.name !== cells[a].name || Math.hypot(...[0, 1].map((i) => middles[b][i] - middles[a][i])) > 1.01;
  return cells.map((_, first) => {
    const stack = [first];
    while (!ends(stack.at(-1), stack.at(-1) + 1)) stack.push(stack.at(-1) + 1);
    return stack;
  });
}

export class BoardView {
  // onAction(action) is called for a legal action; without it the board only shows.
  constructor(board, onAction = null, label = "Board") {
    this.board = board;
    this.label = label;
    this.onAction = onAction;
    this.view = null;
    this.turned = false;
    this.picked = [];
    this.kept = new Map(); // the buttons of the position's actions
    this.focused = 0;
    this.buttons = el("div", { class: "actions", role: "group", "aria-label": "Further actions" });
    this.text = el("pre", { class: "text-board", tabindex: "0", role: "img" });
    this.material = el("p", { class: "material row", hidden: !Object.keys(board.worth).length });
    this.choice = el("div", { class: "promotion", role: "group", "aria-label": "Choose", hidden: true });
    this.svg = board.cells.length ? this.draw() : null;
    this.choice.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      this.focus();
      this.drop();
    });
    this.node = el("div", { class: "board" }, el("div", { class: "drawing-box" }, this.svg ?? this.text, this.choice), this.material, this.buttons);
    for (const name of ["cell", "shaded"]) this.node.style.setProperty(`--${name}`, board.colors[name]);
  }

  // Shows the board from the side of a player.
  turn(side) {
    const turns = this.board.bottom !== null && (side ?? this.board.bottom) !== this.board.bottom;
    if (turns === this.turned) return;
    this.turned = turns;
    this.board = turned(this.board);
    const before = this.svg;
    this.svg = this.draw();
    before.replaceWith(this.svg);
    if (this.view) this.show(this.view, this);
  }

  draw() {
    const { board, label } = this;
    this.layers = Object.fromEntries(
      ["cells", "strokes", "winning", "pieces", "marks", "hints", "last", "picked", "numbers", "focus"].map((name) => [
        name,
        svg("g", name === "cells" ? { stroke: "none" } : { "pointer-events": "none" }),
      ]),
    );
    const points = [
      ...board.cells.flatMap((cell) => cell.outline),
      ...board.strokes.flatMap((stroke) => stroke.points),
      ...board.labels.flatMap(({ at: [x, y] }) => [[x - 0.15, y - 0.15], [x + 0.15, y + 0.15]]),
    ];
    const xs = points.map(([x]) => x);
    const ys = points.map(([, y]) => y);
    const left = Math.min(...xs) - MARGIN;
    const top = Math.min(...ys) - MARGIN;
    const width = Math.max(...xs) - left + MARGIN;
    const height = Math.max(...ys) - top + MARGIN;
    const box = [left, top, width, height].map((length) => (length * SCALE).toFixed(1));
    const root = svg("svg", { viewBox: box.join(" "), role: "group", "aria-label": label, class: "drawing" });
    const [x, y, w, h] = box;
    root.append(svg("rect", { x, y, width: w, height: h, rx: 10, fill: board.colors.panel }));
    this.drawCells();
    for (const stroke of board.strokes) {
      this.layers.strokes.append(svg("path", {
        d: path(stroke.points, false), fill: "none", stroke: board.colors[stroke.color],
        "stroke-width": stroke.width * SCALE, "stroke-linecap": "round", "stroke-linejoin": "round",
      }));
    }
    const labels = svg("g", { fill: board.colors.text, "font-size": 13, "pointer-events": "none", "aria-hidden": "true" });
    for (const { at, text } of board.labels) labels.append(words(at, text, "label"));
    put(root, Object.values(this.layers), labels);
    root.addEventListener("keydown", (event) => this.onKey(event));
    root.addEventListener("focusout", () => refill(this.layers.focus));
    root.style.aspectRatio = `${width} / ${height}`;
    return root;
  }

  drawCells() {
    const { cells, colors } = this.board;
    const fills = { plain: colors.cell, shaded: colors.shaded, hole: colors.cell };
    this.nodes = cells.map((cell, number) => {
      const drawn = cell.look === "plain" || cell.look === "shaded";
      const node = svg(
        "g",
        { class: "cell", tabindex: "-1", onclick: () => this.click(number), onfocus: () => this.onFocus(number) },
        svg("path", {
          d: path(cell.outline), fill: fills[cell.look] ?? "none", "pointer-events": "all",
          stroke: drawn ? colors.line : fills[cell.look] ?? "none",
        }),
        cell.look === "hole" && drawHole(cell.outline, colors.shaded),
      );
      this.layers.cells.append(node);
      return node;
    });
    this.middles = cells.map((cell) => center(cell.outline));
    this.stacks = stacksOf(cells, this.middles);
  }

  // The cell in which the last piece of a stack is, or where the next one comes: marks are drawn there.
  topOf(cell, more = 0) {
    const stack = this.stacks[cell];
    const owners = stack.map((one) => this.owners.get(one));
    const own = owners.findLastIndex((owner) => owner !== undefined && (!more || owner === this.view.to_play));
    return stack[Math.min(own + more, stack.length - 1)] ?? cell;
  }

  // The cells in which an action is marked.
  marked(cells) {
    return cells.map((cell, i) => this.topOf(cell, Math.min(i, 1)));
  }

  // Shows a position. `marks`: {shares: {action: 0..1}, texts: {action: words}}; `hints`: mark the legal actions;
  // `best`: an action to point out.
  show(view, { marks = null, hints = false, best = null } = {}) {
    if (view !== this.view) {
      this.picked = [];
      this.kept.clear();
      this.choose([]);
      this.showMaterial(view);
    }
    this.view = view;
    this.marks = marks;
    this.hints = hints;
    this.best = best;
    this.first = new Map();
    for (const click of view.clicks) if (!this.first.has(click.action)) this.first.set(click.action, click);
    if (this.svg) this.showCells();
    else {
      this.text.textContent = view.text.replace(/\x1b\[[0-9;]*m/g, "");
      this.text.setAttribute("aria-label", this.text.textContent);
    }
    this.showButtons();
  }

  showCells() {
    const { board, view, layers } = this;
    const { cells, colors } = board;
    const pieces = new Map(view.pieces.map((piece) => [piece.cell, piece]));
    this.owners = new Map(view.pieces.map((piece) => [piece.cell, piece.player]));
    refill(layers.pieces, view.pieces.map((piece) => drawPiece(piece, cells[piece.cell].outline, board)));
    refill(layers.winning, view.winning.map((cell) => {
      const { outline, look } = cells[cell];
      if (look === "hole" || look === "open") return drawArea(outline, look, 1.22, { fill: "#fff" });
      return drawArea(outline, look, 1, { fill: colors.mark, "fill-opacity": 0.8 });
    }));
    refill(layers.last, view.last.map((cell) => this.topOf(cell)).map((cell) => [
      this.ring(cell, 6, { stroke: "#fff" }), this.ring(cell, 3, { class: "last" }),
    ]));
    this.showMarks();
    this.showPicked();
    const playable = this.playable();
    this.nodes.forEach((node, number) => {
      const piece = pieces.get(number);
      const shape = piece && shapeOf(board, piece);
      const kind = shape === "dot" ? "territory" : shape in board.glyphs ? shape : "piece";
      const owner = piece ? (piece.player === null ? "taken" : `${NAMES[piece.player].toLowerCase()}'s ${kind}`) : "empty";
      const parts = [cells[number].name, piece?.text ? `${owner} ${piece.text}` : owner];
      if (view.last.includes(number)) parts.push("last move");
      if (view.winning.includes(number)) parts.push("winning");
      if (this.picked.at(-1) === number) parts.push("picked");
      else if (this.onAction && playable.has(number)) parts.push("can be played");
      node.setAttribute("aria-label", parts.join(", "));
      node.setAttribute("role", this.onAction ? "button" : "img");
      node.setAttribute("tabindex", number === this.focused ? "0" : "-1");
      node.classList.toggle("playable", Boolean(this.onAction) && playable.has(number));
    });
  }

  // A line around a cell.
  ring(cell, width, props = {}) {
    const { cells, colors } = this.board;
    return drawArea(cells[cell].outline, cells[cell].look, 0.9, { fill: "none", stroke: colors.mark, "stroke-width": width, ...props });
  }

  showMarks() {
    const { board: { cells, colors }, layers, marks } = this;
    const shaded = [];
    const numbers = [];
    const drawn = new Set();
    const actions = [...this.first.keys()];
    const share = (action) => marks?.shares?.[action] ?? 0;
    const largest = Math.max(...actions.map(share), 0);
    actions.sort((a, b) => share(a) - share(b));
    const kept = new Map(actions.map((action) => [this.first.get(action).cells.join(), action])); // of those with the same clicks
    const mark = (clicked, width, props, filled = props) => { // a cell, or the way from one to another
      const [from, to] = [cells[clicked[0]], cells[clicked.at(-1)]];
      shaded.push(clicked.length > 1 ? drawArrow(from.outline, to.outline, width, filled) : drawArea(to.outline, to.look, 0.9, props));
    };
    for (const action of actions) {
      const clicked = this.marked(this.first.get(action).cells);
      const text = marks?.texts?.[action];
      const color = marks?.colors?.[action];
      if (!clicked.length || kept.get(this.first.get(action).cells.join()) !== action || (share(action) < LEAST_SHARE && text === undefined)) continue;
      const size = largest ? share(action) / largest : 0;
      if (size || color) mark(clicked, 0.06 + 0.12 * size, { fill: color ?? colors.mark, "fill-opacity": (0.2 + 0.75 * size).toFixed(2) });
      if (text !== undefined && (clicked.length === 1 || size > 0.1 || color)) {
        const [[x, y], [toX, toY]] = [clicked[0], clicked.at(-1)].map((cell) => center(cells[cell].outline));
        const part = clicked.length > 1 ? 0.5 : 1;
        numbers.push(words([x + part * (toX - x), y + part * (toY - y)], text, "number"));
      }
      drawn.add(clicked.at(-1));
    }
    if (this.best !== null && this.first.get(this.best)?.cells.length) {
      const clicked = this.marked(this.first.get(this.best).cells);
      const props = { fill: "none", stroke: "#2fbf71", "stroke-width": 5, class: "best" };
      mark(clicked, 0.14, props, { ...props, fill: "#2fbf71" });
    }
    refill(layers.marks, shaded);
    refill(layers.numbers, numbers);
    const cellsOf = (fits) => (this.hints ? [...new Set([...this.first.values()].map((click) => click.cells).filter(fits).map((clicked) => this.marked(clicked)[0]))] : []);
    const placed = cellsOf((clicked) => clicked.length === 1);
    // cells are not marked where one may play nearly everywhere
    const plain = placed.length > 0.8 * (cells.length - this.owners.size) && radius(cells[placed[0]].outline) > 0.3;
    const dots = (plain ? [] : placed).filter((cell) => !drawn.has(cell)).map((cell) => {
      const { outline, look } = cells[cell];
      const small = radius(outline) < 0.3;
      return drawArea(outline, look, small ? 0.9 : 0.3, { fill: colors.mark, "fill-opacity": small ? 0.35 : 0.75 });
    });
    // pieces that can move are marked where they are few
    const movable = cellsOf((clicked) => clicked.length > 1);
    const few = 2 * movable.length < this.view.pieces.filter(({ player }) => player === this.view.to_play).length ? movable : [];
    refill(layers.hints, dots, few.map((cell) => this.ring(cell, 3)));
  }

  // The cells that can be clicked next.
  playable() {
    const { picked } = this;
    const fits = this.view.clicks.filter((click) => picked.every((cell, i) => click.cells[i] === cell));
    return new Set(fits.filter((click) => click.cells.length > picked.length).map((click) => click.cells[picked.length]));
  }

  showPicked() {
    const { cells, colors } = this.board;
    const marks = this.marked(this.picked).map((cell) => drawArea(cells[cell].outline, cells[cell].look, 1, {
      fill: "none", stroke: colors.mark, "stroke-width": 4, "stroke-dasharray": "6 4",
    }));
    if (this.picked.length) {
      for (const cell of [...this.playable()].map((one) => this.topOf(one, 1))) {
        marks.push(this.owners.has(cell) ? this.ring(cell, 4) : drawArea(cells[cell].outline, cells[cell].look, 0.35, { fill: colors.mark, "fill-opacity": 0.9 }));
      }
    }
    refill(this.layers.picked, marks);
  }

  showButtons() {
    const clicks = this.view.clicks.filter((click) => !click.cells.length);
    const most = this.marks ? clicks.length : MOST_BUTTONS; // no move can be typed where moves are analysed
    const shown = clicks.slice(0, most).map((click) => {
      const text = this.marks?.texts?.[click.action];
      const share = this.marks?.shares?.[click.action];
      const name = click.name + (text !== undefined ? ` ${text}` : share >= LEAST_SHARE ? ` ${Math.round(100 * share)}%` : "");
      const node = this.buttonOf(click.action);
      if (node.textContent !== name) node.textContent = name;
      node.disabled = !this.onAction;
      node.className = click.action === this.best ? "best" : "";
      return node;
    });
    if (clicks.length > most) shown.push(el("span", {}, `and ${clicks.length - most} more; type the move`));
    redraw(this.buttons, shown);
    this.buttons.hidden = !shown.length;
  }

  // The button of an action: it is kept while its figures change, since a game may have thousands.
  buttonOf(action) {
    if (!this.kept.has(action)) this.kept.set(action, button("", () => this.onAction?.(action), { "data-key": action }));
    return this.kept.get(action);
  }

  // Who has more of which pieces, and how much they are worth.
  showMaterial({ pieces }) {
    const { board } = this;
    const shapes = Object.keys(board.worth);
    const more = [0, 1].map((player) => shapes.flatMap((shape) => {
      const [own, others] = [player, 1 - player].map((side) => pieces.filter((piece) => piece.player === side && shapeOf(board, piece) === shape).length);
      return Array(Math.max(0, own - others)).fill(shape);
    }));
    const [first, second] = more.map((found) => found.reduce((sum, shape) => sum + board.worth[shape], 0));
    const leads = [first - second, second - first];
    refill(this.material, more.map((found, player) => found.length > 0 && el(
      "span", { class: "row", role: "img", "aria-label": `${NAMES[player]} has more: ${found.join(", ")}` },
      found.map((shape) => swatch(board, player, shape, 22)), leads[player] > 0 && `+${leads[player]}`,
    )));
  }

  // Asks which of several actions with the same clicks is meant; of none it asks nothing.
  choose(clicks) {
    this.choice.hidden = !clicks.length;
    const drawn = (choice) => (choice in this.board.glyphs ? swatch(this.board, this.view.to_play, choice, 56) : choice);
    refill(this.choice, clicks.map(({ action, choice }) => button(drawn(choice), () => this.finish(action), { title: choice, "aria-label": choice })));
    this.choice.firstChild?.focus();
  }

  // Takes the clicks so far back.
  drop() {
    this.picked = [];
    this.choose([]);
    this.showCells();
  }

  finish(action) {
    this.focus();
    this.drop();
    this.onAction(action);
  }

  click(cell) {
    if (!this.onAction || !this.view) return;
    this.choose([]);
    if (this.meant(cell) === undefined) this.picked = [];
    const meant = this.meant(cell);
    if (meant === undefined) {
      this.showCells();
      return;
    }
    this.picked.push(meant);
    const done = this.view.clicks.filter((click) => click.cells.length === this.picked.length &&
      click.cells.every((one, i) => one === this.picked[i]));
    if (done.length === 1) {
      this.picked = [];
      this.onAction(done[0].action);
    }
    this.showCells();
    if (done.length > 1) this.choose(done);
  }

  // The cell that can be clicked next, itself or another of its name: any piece of a stack stands for all.
  meant(cell) {
    const { cells } = this.board;
    const playable = this.playable();
    return playable.has(cell) ? cell : [...playable].find((other) => cells[other].name === cells[cell].name);
  }

  onFocus(cell) {
    this.focused = cell;
    this.nodes.forEach((node, number) => node.setAttribute("tabindex", number === cell ? "0" : "-1"));
    if (!this.nodes[cell].matches(":focus-visible")) return;
    const { outline } = this.board.cells[cell];
    const d = path(shrunk(outline, 0.94));
    refill(
      this.layers.focus,
      svg("path", { d, class: "focus-under" }),
      svg("path", { d, class: "focus-over" }),
    );
  }

  onKey(event) {
    if (isShortcut(event)) return;
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    const turn = { PageDown: 1, PageUp: -1 }[event.key];
    if (way) {
      const next = this.neighbour(way);
      if (next !== null) this.nodes[next].focus();
    } else if (turn) this.focusPlayable(turn);
    else if (event.key === "Enter" || event.key === " ") this.click(this.focused);
    else if (event.key === "Escape" && this.picked.length) this.drop();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // Goes to the next cell that can be played, or to the one before.
  focusPlayable(turn) {
    const playable = this.playable();
    const count = this.nodes.length;
    for (let step = 1; step <= count; step++) {
      const cell = (this.focused + turn * step + count * step) % count;
      if (playable.has(cell)) {
        this.nodes[cell].focus();
        return;
      }
    }
  }

  // The nearest cell in a direction.
  neighbour([dx, dy]) {
    const [x, y] = this.middles[this.focused];
    let best = null;
    let least = Infinity;
    this.middles.forEach(([px, py], number) => {
      const along = (px - x) * dx + (py - y) * dy;
      const aside = Math.abs((px - x) * dy) + Math.abs((py - y) * dx);
      if (along > 0.05 && along + 2.5 * aside < least && aside < 1.6 * along + 0.01) {
        best = number;
        least = along + 2.5 * aside;
      }
    });
    return best;
  }

  focus() {
    (this.nodes?.[this.focused] ?? this.text).focus({ preventScroll: true });
  }
}
