// The game of a published file: an instance of its module, with a position and the search of one position.
// The worker is core.js, reading.js and worker.js, one after the other.
"use strict";

const MOST_LINES = 32;
const MOST_MOVES = 12;
const KINDS = { bool: Uint8Array, int8: Int8Array, int32: Int32Array, float32: Float32Array, uint64: BigUint64Array };

class Refused extends Error {}

// One instance of a module: a position, and the search of one position.
class Core {
  constructor(file, module, places) {
    this.file = file;
    this.calls = new WebAssembly.Instance(module).exports;
    for (const [name, [kind, address, length]] of Object.entries(places)) {
      this[name] = new KINDS[kind](this.calls.memory.buffer, address, length);
    }
    this.searched = null;
    this.owners = new Map(); // of pieces whose owner the position does not know
  }

  // Sets up the position after these actions; calls see(action) before each is played.
  set(actions, see = () => {}) {
    this.calls.start();
    this.owners.clear();
    this.over = Boolean(this.calls.describe());
    for (const action of actions) {
      if (this.over) throw new Refused("the game is over: no action can be played");
      if (!(this.due ? action < this.due : this.legal_mask[action])) throw new Refused(`${this.word(action) ?? action} is not legal here (legal: ${this.words(this.legal()).join(", ")})`);
      see(action);
      this.play(action);
    }
  }

  // Plays a legal action, or an outcome of the die that is due.
  play(action) {
    const { mover } = this;
    if (this.due) this.calls.settle(action);
    else this.calls.play(action);
    this.over = Boolean(this.calls.describe());
    for (const cell of this.file.looks.owned) {
      if (!this.owners.has(cell) && this.told(this.file.looks.pieces[cell])) this.owners.set(cell, mover);
    }
  }

  get mover() {
    return this.to_play[0];
  }

  // The number of outcomes of the die that is due; 0 where a player is to move.
  get due() {
    return this.chances ? this.chances.findLastIndex((chance) => chance > 0) + 1 : 0;
  }

  // Values for each player, the first player's first, of those of the module, which begin with who moves.
  bySeat(values, mover = this.mover) {
    const { seats } = this.file;
    if (seats < 3) return [mover === 0 ? values[0] : -values[0], mover === 0 ? -values[0] : values[0]].slice(0, seats);
    return Array.from({ length: seats }, (_, seat) => values[(seat - mover + seats) % seats]);
  }

  // The value for the first player of the points so far, in a game for one, and at the end of all.
  get gained() {
    const { size, word = null } = this.file.score ?? {};
    const end = this.over ? this.bySeat(this.result)[0] : 0;
    return end + (word === null ? 0 : Number(this.state[word]) / size);
  }

  // Who has the best result; nobody while the game goes on.
  get winners() {
    const results = this.over ? this.bySeat(this.result) : [];
    const best = Math.max(...results);
    return [...results.keys()].filter((seat) => results[seat] === best);
  }

  // +1 if the first player has won, -1 if another, 0 for a draw or if the first one shares the win; null if the game goes on.
  get outcome() {
    if (!this.over) return null;
    if (this.file.seats === 1) return Math.sign(this.gained) + 0;
    return this.winners.includes(0) ? Number(this.winners.length === 1) : -1;
  }

  // The points of the end, or in a game for one those so far, in words; "" where there are none to tell.
  get points() {
    const { size, unit, word = null } = this.file.score ?? {};
    if (!size || !(this.over || word !== null)) return "";
    const values = this.file.seats > 2 ? this.bySeat(this.result) : [Math.abs(this.gained)];
    return `${values.map((value) => Number((size * value).toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 6 })).join(", ")} ${unit}`;
  }

  legal() {
    if (this.over || this.due) return [...Array(this.over ? 0 : this.due).keys()];
    return [...this.legal_mask.keys()].filter((action) => this.legal_mask[action]);
  }

  // --- looks: decision trees over the bits of the position ---

  bit(number) {
    const at = number - this.file.mover_bits;
    if (at < 0) return (this.mover >> number) & 1;
    const words = this.file.shown_words * 64;
    const cells = this.file.board.cells.length;
    if (at >= words + cells) return this.legal_mask[at - words - cells];
    if (at >= words) return this.taken.has(at - words) ? 1 : 0;
    return bitOf(this.state, at);
  }

  told(tree, bit = (number) => this.bit(number)) {
    while (Array.isArray(tree)) tree = tree[1 + bit(tree[0])];
    return this.file.looks.values[tree];
  }

  pieces() {
    this.taken = new Set();
    const found = this.file.looks.pieces.map((tree, cell) => ({ ...this.told(tree), cell })).filter((piece) => "player" in piece);
    this.taken = new Set(found.map(({ cell }) => cell));
    return found.map((piece) => ({ ...piece, player: this.owners.get(piece.cell) ?? piece.player }));
  }

  // The text of a game without cells, whose parts are its pieces.
  text() {
    const { text, pieces } = this.file.looks;
    if (!text?.[0]) return "";
    const parts = pieces.map((tree) => this.told(tree) ?? "");
    return Array.from({ length: text[0] }, (_, row) => parts.slice(row * text[1], (row + 1) * text[1]).join("")).join("\n");
  }

  word(action) {
    return action in (this.due ? this.file.looks.outcomes : this.file.looks.words) ? this.words([action])[0] : null;
  }

  words(actions) {
    if (this.due) return actions.map((outcome) => this.wordOfOutcome(outcome));
    this.pieces();
    return actions.map((action) => this.told(this.file.looks.words[action]));
  }

  // Its name depends on the bits that it changes.
  wordOfOutcome(outcome) {
    const [before, mover] = [this.state.slice(), this.mover];
    this.calls.settle(outcome);
    const changed = this.state.map((word, i) => word ^ before[i]);
    this.state.set(before);
    this.to_play[0] = mover;
    return this.told(this.file.looks.outcomes[outcome], (number) => bitOf(changed, number));
  }

  // The ways to click each of these actions.
  clicks(actions) {
    if (this.due) return actions.map(() => []);
    this.pieces();
    const found = actions.map((action) => this.told(this.file.looks.clicks[action]));
    const last = new Map(found.flatMap((ways, i) => ways.map((way) => [way.join(), i]))); // of two actions with the same clicks
    return found.map((ways, i) => ways.filter((way) => last.get(way.join()) === i));
  }

  // The cells of all lines that won, or of the chain through the last move; a drawn game has no such chain.
  winning(pieces, last) {
    const { line: length, beside } = this.file.looks;
    if (!this.over || !(length || beside.length)) return [];
    const { columns } = this.file;
    const owners = new Map(pieces.map(({ cell, player }) => [cell, player]));
    const found = new Set(beside.length && this.outcome !== 0 ? last : []);
    for (const cell of found) { // those that are added come later
      for (const other of beside[cell]) if (owners.has(other) && owners.get(other) === owners.get(cell)) found.add(other);
    }
    for (const [cell, owner] of length ? owners : []) {
      for (const [down, right] of [[0, 1], [1, 0], [1, 1], [1, -1]]) {
        const last = (cell % columns) + right * (length - 1);
        const line = Array.from({ length }, (_, i) => cell + i * (down * columns + right));
        if (last >= 0 && last < columns && line.every((one) => owners.get(one) === owner)) line.forEach((one) => found.add(one));
      }
    }
    return [...found].sort((a, b) => a - b);
  }

  // A dot for each empty cell whose region only one player's pieces touch.
  territory(pieces) {
    const { columns } = this.file;
    const owners = new Map(pieces.map(({ cell, player }) => [cell, player]));
    const left = new Set([...this.file.board.cells.keys()].filter((cell) => !owners.has(cell)));
    const besides = (cell) => [cell - columns, cell + columns, ...(cell % columns ? [cell - 1] : []), ...((cell + 1) % columns ? [cell + 1] : [])];
    return [...left].flatMap((first) => {
      const region = new Set(left.has(first) ? [first] : []);
      for (const cell of region) besides(cell).filter((one) => left.has(one)).forEach((one) => region.add(one));
      region.forEach((cell) => left.delete(cell));
      const touched = new Set([...region].flatMap(besides).filter((one) => owners.has(one)).map((one) => owners.get(one)));
      return touched.size === 1 ? [...region].map((cell) => ({ player: [...touched][0], shape: "dot", text: "", cell })) : [];
    });
  }

  view(last) {
    const pieces = this.pieces();
    if (this.over && this.file.looks.territory) pieces.push(...this.territory(pieces));
    const legal = this.legal();
    const words = this.words(legal);
    const ways = this.clicks(legal);
    const clicks = legal.flatMap((action, i) => (ways[i].length ? ways[i] : [[]]).map((way) => (
      { action, name: words[i], cells: cellsOf(way), choice: way.find((one) => typeof one === "string") ?? "" })));
    clicks.sort((a, b) => (a.cells.length === 0) - (b.cells.length === 0));
    const view = { to_play: this.mover, outcome: this.outcome, winners: this.winners, pieces, clicks, last, winning: this.winning(pieces, last), text: this.text(), remark: "" };
    if (this.chances) view.dice = this.due > 0;
    if (this.points) Object.assign(view, { points: this.points, gained: this.gained });
    if (this.over && this.file.seats > 2) view.values = this.bySeat(this.result);
    return view;
  }

  // --- search ---

  begin(actions) {
    this.set(actions);
    if (this.over) throw new Refused("the game is over at this position, so there is nothing to search");
    if (this.due) throw new Refused("a die is due at this position, so there is nothing to search");
    this.calls.begin(this.file.most_simulations);
    this.searched = actions;
    this.searcher = this.mover;
    this.simulations = 0;
  }

  // Searches until there are so many simulations, or the time is over.
  search(limit, until) {
    while (this.simulations < limit && performance.now() < until) {
      const step = Math.min(8, limit - this.simulations);
      this.calls.search(step);
      this.simulations += step;
    }
  }

  // The state of the search: the value, and the actions in their order.
  found() {
    this.calls.read();
    const actions = this.legal_mask.length; // behind them are outcomes, perhaps of a node that was looked at before
    const [visits, policy, q] = [this.visits, this.policy, this.q].map((array) => array.slice(0, actions));
    const [value, values, proven] = [this.value[0], this.bySeat(this.value, this.searcher).map(clip).map(round), Boolean(this.proven[0])];
    this.calls.look(0);
    const prior = this.prior.slice();
    const order = [...visits.keys()].filter((action) => visits[action] > 0)
      .sort((a, b) => policy[b] - policy[a] || visits[b] - visits[a]);
    return { visits, q, value, values, proven, prior, order };
  }

  // The values for each player below an action of the searched position: here, where a die is due.
  valuesBelow(action) {
    this.calls.look(0);
    this.calls.look(this.child[action]);
    return this.bySeat(this.value).map(clip).map(round);
  }

  lines(found) {
    const total = found.prior.reduce((sum, one) => sum + one, 0) || 1;
    return found.order.slice(0, MOST_LINES).map((action) => {
      const moves = [...this.line.slice(0, this.calls.line(action))].slice(0, MOST_MOVES);
      const words = [];
      this.set([...this.searched, ...moves], (one) => words.push(this.word(one)));
      const told = words.slice(this.searched.length);
      return {
        action, word: told[0], visits: found.visits[action], value: round(clip(found.q[action])),
        prior: round(found.prior[action] / total), moves, words: told,
      };
    });
  }
}

// The cells of a way to click an action, without the word to choose behind them.
function cellsOf(way) {
  return way.filter((one) => typeof one === "number");
}

function bitOf(words, number) {
  return Number((words[number >> 6] >> BigInt(number & 63)) & 1n);
}

function clip(value) {
  return Math.max(-1, Math.min(1, value));
}

function round(value) {
  return Math.round(value * 10000) / 10000;
}

function bytes(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

// float16 to float32.
function widened(halves) {
  const whole = new Float32Array(halves.length);
  for (let i = 0; i < halves.length; i++) {
    const [sign, exponent, fraction] = [halves[i] & 0x8000 ? -1 : 1, (halves[i] >> 10) & 31, halves[i] & 1023];
    whole[i] = sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
  }
  return whole;
}
