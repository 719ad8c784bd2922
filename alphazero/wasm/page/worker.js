// The engine of a published file: answers the page's questions in a worker, by the game's module and nothing else.
// The questions and answers are those of the server (alphazero/web/message.py).
"use strict";

const SLICE_MS = 25; // searching goes on so long before messages are heard
const REPORT_MS = 120;
const MOST_LINES = 32;
const MOST_MOVES = 12;
const UNPROVEN = 2;
const KINDS = { bool: Uint8Array, int8: Int8Array, int32: Int32Array, float32: Float32Array, uint64: BigUint64Array };
const RESULTS = { 1: "1-0", "-1": "0-1", 0: "1/2-1/2" };

const SPELLINGS = { pass: "pass", pa: "pass", ps: "pass", "--": "pass", "@@": "pass", "swap-pieces": "swap" };

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
    let over = this.calls.describe();
    for (const action of actions) {
      if (over) throw new Refused("the game is over: no action can be played");
      if (!this.legal_mask[action]) throw new Refused(`${this.word(action) ?? action} is not legal here (legal: ${this.legal().map((one) => this.word(one)).join(", ")})`);
      see(action);
      const { mover } = this;
      this.calls.play(action);
      over = this.calls.describe();
      for (const cell of this.file.looks.owned) {
        if (!this.owners.has(cell) && this.told(this.file.looks.pieces[cell])) this.owners.set(cell, mover);
      }
    }
    this.over = Boolean(over);
  }

  get mover() {
    return this.to_play[0];
  }

  // +1 if the first player has won, -1 if the second, 0 for a draw; null if the game goes on.
  get outcome() {
    if (!this.over) return null;
    return (this.mover === 0 ? 1 : -1) * this.result[0] + 0;
  }

  legal() {
    return this.over ? [] : [...this.legal_mask.keys()].filter((action) => this.legal_mask[action]);
  }

  // --- looks: decision trees over the bits of the position ---

  bit(number) {
    if (number === 0) return this.mover;
    const at = number - 1;
    const words = this.state.length * 64;
    if (at >= words) return this.taken.has(at - words) ? 1 : 0;
    return Number((this.state[at >> 6] >> BigInt(at & 63)) & 1n);
  }

  told(tree) {
    while (Array.isArray(tree)) tree = tree[1 + this.bit(tree[0])];
    return this.file.looks.values[tree];
  }

  pieces() {
    this.taken = new Set();
    const found = this.file.looks.pieces.map((tree, cell) => ({ ...this.told(tree), cell })).filter((piece) => "player" in piece);
    this.taken = new Set(found.map(({ cell }) => cell));
    return found.map((piece) => ({ ...piece, player: this.owners.get(piece.cell) ?? piece.player }));
  }

  word(action) {
    return action in this.file.looks.words ? this.words([action])[0] : null;
  }

  words(actions) {
    this.pieces();
    return actions.map((action) => this.told(this.file.looks.words[action]));
  }

  // The ways to click each of these actions.
  clicks(actions) {
    this.pieces();
    return actions.map((action) => this.told(this.file.looks.clicks[action]));
  }

  // The cells of all lines that won, or of the chain through the last move; a drawn game has no such chain.
  winning(pieces, last) {
    const { line: length, beside } = this.file.looks;
    if (!this.over || !(length || beside.length)) return [];
    const { columns } = this.file;
    const owners = new Map(pieces.map(({ cell, player }) => [cell, player]));
    const found = new Set();
    if (beside.length) {
      if (this.outcome === 0) return [];
      last.forEach((cell) => found.add(cell));
      for (const cell of found) { // those that are added come later
        for (const other of beside[cell]) if (owners.has(other) && owners.get(other) === owners.get(cell)) found.add(other);
      }
      return [...found].sort((a, b) => a - b);
    }
    for (const [cell, owner] of owners) {
      for (const [down, right] of [[0, 1], [1, 0], [1, 1], [1, -1]]) {
        const last = (cell % columns) + right * (length - 1);
        const line = Array.from({ length }, (_, i) => cell + i * (down * columns + right));
        if (last >= 0 && last < columns && line.every((one) => owners.get(one) === owner)) line.forEach((one) => found.add(one));
      }
    }
    return [...found].sort((a, b) => a - b);
  }

  view(last) {
    const pieces = this.pieces();
    const legal = this.legal();
    const words = this.words(legal);
    const ways = this.clicks(legal);
    const clicks = legal.flatMap((action, i) => (ways[i].length ? ways[i] : [[]]).map((cells) => ({ action, name: words[i], cells })));
    clicks.sort((a, b) => (a.cells.length === 0) - (b.cells.length === 0));
    return { to_play: this.mover, outcome: this.outcome, pieces, clicks, last, winning: this.winning(pieces, last), text: "" };
  }

  // --- search ---

  begin(actions) {
    this.set(actions);
    if (this.over) throw new Refused("the game is over at this position, so there is nothing to search");
    this.calls.begin(this.file.most_simulations);
    this.searched = actions;
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

  // The state of the search: the best action, the value, and the actions in their order.
  found() {
    const best = this.calls.read();
    const [visits, policy, q] = [this.visits, this.policy, this.q].map((array) => array.slice());
    const [value, proven] = [this.value[0], Boolean(this.proven[0])];
    this.calls.look(0);
    const prior = this.prior.slice();
    const order = [...visits.keys()].filter((action) => visits[action] > 0)
      .sort((a, b) => policy[b] - policy[a] || visits[b] - visits[a]);
    return { best, visits, policy, q, value, proven, prior, order };
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

// A game's name without the folder and the ending of its file, by which a server may know it.
function plainName(game) {
  return String(game).split(/[\\/]/).at(-1).replace(/\.py$/, "");
}

// `a2b3` of a2-b3 and a2xb3; nothing of a word that is not two squares.
function squaresOf(word) {
  const [, from, to] = word.toLowerCase().match(/^([a-z]\d+)[-x:]?([a-z]\d+)$/) ?? [];
  return from && from + to;
}

// The moves without the numbers before them, as in `1. f5 d6 2. c3`.
function withoutNumbers(text) {
  let count = 0;
  return text.replace(/(^|[\s,])(\d{1,4})(\.\.\.|\.)(?!\.)[\s,]*(?=\S)/g, (_, before, number, dots) => {
    if (Number(number) !== count + (dots === "." ? 1 : 0)) throw new Refused(`move numbers count 1., 2., 3. and so on: ${number}${dots} is out of place`);
    count = Number(number);
    return " ";
  });
}

function clip(value) {
  return Math.max(-1, Math.min(1, value));
}

function round(value) {
  return Math.round(value * 10000) / 10000;
}

// The expected score of the first player, 0 to 1.
function asFirst(value, mover) {
  return (1 + (mover === 0 ? value : -value)) / 2;
}

class FileEngine {
  constructor(file) {
    this.file = file;
    this.module = new WebAssembly.Module(bytes(file.module));
    this.weights = widened(new Uint16Array(bytes(file.weights).buffer));
    this.cores = {};
    this.cancelled = new Set();
  }

  // An instance for each purpose, so that no question disturbs a search.
  core(name) {
    if (!this.cores[name]) {
      this.cores[name] = new Core(this.file, this.module, this.file.places);
      this.cores[name].weights.set(this.weights);
    }
    return this.cores[name];
  }

  // The exact results of all legal actions, the best first; none where nobody knows them in time.
  results(actions) {
    const { oracle } = this.file;
    if (!oracle) return [];
    this.solver ??= new Core(this.file, new WebAssembly.Module(bytes(oracle.module)), oracle.places);
    this.solver.set(actions);
    if (!this.solver.calls.solve()) return [];
    const { scores, distances } = this.solver;
    return this.solver.legal().sort((a, b) => scores[b] - scores[a]).map((action) => {
      const outcome = Math.sign(scores[action]);
      return { action, outcome, distance: outcome ? distances[action] : null };
    });
  }

  // Answers a question by calls of tell(answer); the last answer has no `more`.
  async answer(question, tell) {
    try {
      const quick = { welcome: this.welcome, game: this.game, position: this.position, policy: this.policy, oracle: this.oracle, tree: this.tree, record: this.record, load: this.load }[question.ask];
      const long = { move: this.move, analyse: this.analyse, review: this.review }[question.ask];
      if (quick) tell(quick.call(this, question));
      else if (long) await long.call(this, question, tell);
      else tell({ error: `this file does not know the question ${question.ask}` });
    } catch (error) {
      if (error instanceof Refused) tell({ error: error.message });
      else tell({ error: `something is wrong in this file: ${error.message}` });
    }
  }

  cancel(id) {
    this.cancelled.add(id);
  }

  // Lets messages in; true if the question is still wanted.
  async wanted(id) {
    await new Promise((resolve) => setTimeout(resolve, 0));
    return !this.cancelled.delete(id);
  }

  // --- quick questions ---

  welcome() {
    const { version, game, title } = this.file;
    return { version, games: [{ name: game, title }], game, watches: false };
  }

  // A game of one's own may be called by its file, from anywhere.
  plays(name) {
    return [this.file.game, this.file.loaded_as].map(plainName).includes(plainName(name));
  }

  game({ game: asked }) {
    const { game, title, board, players, oracle, runs_together } = this.file;
    if (!this.plays(asked)) throw new Refused(`this page has no game '${asked}': it plays ${game}`);
    return { game, title, board, players, oracle: oracle && { how: oracle.how, unit: oracle.unit }, moves_run_together: runs_together };
  }

  position({ actions, moves, board }) {
    if (board) throw new Refused("this file sets up no boards: the page of alphazero serve does");
    const core = this.core("quick");
    if (moves !== undefined) actions = this.parsed(core, moves);
    const words = [];
    const movers = [];
    let last = [];
    core.set(actions, (action) => {
      words.push(core.word(action));
      movers.push(core.mover);
      if (words.length === actions.length) [last = []] = core.clicks([action])[0];
    });
    return { actions, words, movers, set_up: false, view: core.view(last) };
  }

  // The actions of a text of moves, which the server's reader reads alike (alphazero/game/reading/moves.py).
  parsed(core, text) {
    const joined = this.file.splits_words ? text.replace(/(\w)-(?=\w)/g, "$1") : text;
    try {
      return this.readMoves(core, joined);
    } catch (error) {
      const without = withoutNumbers(joined);
      if (without === joined) throw error;
      return this.readMoves(core, without);
    }
  }

  readMoves(core, text) {
    const actions = [];
    for (let rest of text.split(/[\s,]+/).filter(Boolean)) {
      while (rest) rest = this.readFirst(core, actions, rest);
    }
    return actions;
  }

  // Adds the first move of a text to the actions, and a forced pass before it that was left out; returns what is left of the text.
  readFirst(core, actions, text) {
    core.set(actions);
    const legal = core.legal();
    const words = core.words(legal);
    const [at, length] = this.wordOf(text, words);
    if (at >= 0) {
      actions.push(legal[at]);
      return text.slice(length);
    }
    const before = actions.length;
    const [, first, rest] = text.match(/^([^-]+)-(.+)$/) ?? [];
    const tries = [];
    if (words.length === 1 && words[0].toLowerCase() === "pass") tries.push(() => (actions.push(legal[0]), this.readFirst(core, actions, text)));
    if (first) tries.push(() => (this.readFirst(core, actions, first), rest));
    for (const attempt of tries) {
      try {
        return attempt();
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        actions.length = before;
      }
    }
    throw new Refused(`'${text}' is not a legal action here (legal: ${words.join(", ") || "none, the game is over"})`);
  }

  // The index of the word that a text is or begins with, in our or another spelling, and the length of its part.
  wordOf(text, words) {
    const at = this.wordAt(text, words);
    if (at >= 0) return [at, words[at].length];
    for (const [spelling, word] of Object.entries(SPELLINGS)) {
      const meant = words.findIndex((one) => one.toLowerCase() === word);
      const begins = this.file.splits_words && text.toLowerCase().startsWith(spelling);
      if (meant >= 0 && (begins || text.toLowerCase() === spelling)) return [meant, spelling.length];
    }
    const alike = words.flatMap((word, i) => (squaresOf(word) && squaresOf(word) === squaresOf(text) ? [i] : []));
    return alike.length === 1 ? [alike[0], text.length] : [-1, 0];
  }

  // The index of the word that a text is, with its capitals, or else without them if only one word is meant then.
  wordAt(text, words) {
    const exact = this.longest(text, words);
    if (exact >= 0) return exact;
    const lower = words.map((word) => word.toLowerCase());
    const found = this.longest(text.toLowerCase(), lower);
    return lower.filter((word) => word === lower[found]).length === 1 ? found : -1;
  }

  // The index of the word that a text is or, in a game whose words need no spaces, of the longest that it begins with.
  longest(text, words) {
    let found = words.indexOf(text);
    if (found >= 0 || !this.file.splits_words) return found;
    words.forEach((word, i) => {
      if (word && text.startsWith(word) && word.length > (words[found] ?? "").length) found = i;
    });
    return found;
  }

  // The network's opinion without a search.
  policy({ actions }) {
    const core = this.core("quick");
    core.set(actions);
    if (core.over) throw new Refused("the game is over at this position, so a net has no opinion of it");
    core.calls.choose_alone(0, 0);
    const legal = core.legal().sort((a, b) => core.prior[b] - core.prior[a]);
    const words = core.words(legal);
    return { value: round(core.value[0]), policy: legal.map((action, i) => ({ action, word: words[i], prior: round(core.prior[action]) })) };
  }

  oracle({ actions }) {
    return { results: this.results(actions) };
  }

  tree({ path, side = 0 }) {
    const core = this.cores[`side ${side}`];
    if (!core?.searched) throw new Refused("there is no search to look into yet: start the analysis");
    let node = 0;
    core.calls.look(node);
    for (const action of path) {
      node = core.child[action] ?? -1;
      if (node < 0) throw new Refused("the search has not visited this position: let it go on, or go back");
      core.calls.look(node);
    }
    const [visits, prior, q, known] = [core.visits, core.prior, core.q, core.known].map((array) => array.slice());
    const [value, proven] = [core.value[0], Boolean(core.proven[0])];
    const actions = [...core.searched, ...path];
    core.set(actions);
    const total = prior.reduce((sum, one) => sum + one, 0) || 1;
    const legal = core.legal().sort((a, b) => visits[b] - visits[a] || prior[b] - prior[a]);
    const words = core.words(legal);
    const edges = legal.map((action, i) => ({
      action, word: words[i], visits: visits[action], prior: prior[action] / total,
      value: visits[action] ? clip(q[action]) : null, proven: known[action] !== UNPROVEN,
    }));
    return { visits: edges.reduce((sum, edge) => sum + edge.visits, 0), value: clip(value), proven, edges, path, actions, mover: core.mover };
  }

  // With `resigned`, that side has lost the game.
  record({ actions, first, second, resigned = null, reason = "resigns" }) {
    const { words } = this.position({ actions });
    const core = this.core("quick");
    const contestants = [first, second];
    let [result, forfeit] = [core.over ? RESULTS[core.outcome] : "*", ""];
    if (resigned !== null && !core.over) [result, forfeit] = [RESULTS[resigned ? 1 : -1], `${contestants[resigned]}: ${reason}`];
    return { text: JSON.stringify({
      game: this.file.game, number: 0, contestants, opening: [], moves: words, result, seconds: [0, 0], seed: 0, forfeit,
    }) };
  }

  load({ text }) {
    let record;
    try {
      record = JSON.parse(text);
    } catch {
      throw new Refused("the file is not a game: it must be a line of JSON, as the page saves it");
    }
    const lists = [record?.contestants, record?.opening, record?.moves];
    if (!lists.every((list) => Array.isArray(list) && list.every((one) => typeof one === "string")) || lists[0].length !== 2) {
      throw new Refused("the file is not a game: contestants and moves must be words");
    }
    const { game } = this.file;
    if (!this.plays(record.game)) throw new Refused(`the file is a game of ${record.game}, and this page plays ${game}`);
    const actions = [];
    const core = this.core("quick");
    for (const move of [...record.opening, ...record.moves]) {
      core.set(actions);
      const legal = core.legal();
      const at = core.words(legal).indexOf(move);
      if (at < 0) throw new Refused(`'${move}' is not a legal action here`);
      actions.push(legal[at]);
    }
    return {
      game, actions, opening: record.opening.length, contestants: record.contestants,
      result: String(record.result), forfeit: String(record.forfeit ?? ""),
    };
  }

  // --- searches ---

  // A move as a player of matches chooses it, with the seed of its game.
  async move({ id, actions, player, seed = 0 }, tell) {
    const core = this.core("move");
    const began = performance.now();
    const steps = Math.min(player.step ?? this.file.players[0].slider.start, this.file.most_simulations);
    const ply = actions.length;
    core.turn = id;
    core.set(actions);
    if (core.over) throw new Refused("the game is over: no action can be played");
    if (steps) {
      core.calls.begin_move(steps, seed, ply);
      for (let left = steps; left > 0; ) {
        const until = performance.now() + SLICE_MS;
        while (left > 0 && performance.now() < until) left = core.calls.search_move(8);
        if (!(await this.wanted(id)) || core.turn !== id) return tell({ stopped: true });
      }
    }
    const action = steps ? core.calls.choose(seed, ply) : core.calls.choose_alone(seed, ply);
    tell({ action, word: core.word(action), seconds: round((performance.now() - began) / 1000) });
  }

  async analyse({ id, actions, limit, fresh, side = 0 }, tell) {
    const core = this.core(`side ${side}`);
    const room = this.file.most_simulations;
    core.turn = id;
    if (fresh || core.searched?.join() !== actions.join()) core.begin(actions);
    const most = Math.min(limit, room);
    const [before, began] = [core.simulations, performance.now()];
    let told = began;
    for (;;) {
      core.search(most, performance.now() + SLICE_MS);
      const done = core.simulations >= most;
      const now = performance.now();
      if (done || now - told > REPORT_MS) {
        told = now;
        const found = core.found();
        const rate = Math.round((1000 * (core.simulations - before)) / Math.max(1, now - began));
        const report = { simulations: core.simulations, value: round(clip(found.value)), proven: found.proven, room, limit: most, rate };
        tell({ ...report, lines: core.lines(found), more: !done });
        if (done) return;
      }
      if (!(await this.wanted(id)) || core.turn !== id) return tell({ stopped: true });
    }
  }

  async review({ id, actions, player, simulations = 100 }, tell) {
    const core = this.core("review");
    const { words } = this.position({ actions });
    for (let ply = 0; ply <= actions.length; ply++) {
      const row = { ply, value: null };
      core.set(actions.slice(0, ply));
      row.mover = core.mover;
      if (core.over) row.value = (core.outcome + 1) / 2;
      else if (player) {
        core.begin(actions.slice(0, ply));
        while (core.simulations < simulations) core.search(simulations, performance.now() + SLICE_MS);
        row.value = round(asFirst(core.found().value, row.mover));
      }
      const more = ply < actions.length;
      if (more) Object.assign(row, { action: actions[ply], word: words[ply], results: this.results(actions.slice(0, ply)) });
      tell({ row, of: actions.length + 1, more });
      if (more && !(await this.wanted(id))) return tell({ stopped: true });
    }
  }
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

if (typeof WorkerGlobalScope !== "undefined") {
  let engine = null;
  self.onmessage = ({ data }) => {
    if (data.file) engine = new FileEngine(data.file);
    else if (data.cancel !== undefined) engine.cancel(data.cancel);
    else engine.answer(data, (answer) => self.postMessage({ id: data.id, ...answer }));
  };
}
