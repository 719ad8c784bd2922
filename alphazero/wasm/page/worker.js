// The engine of a published file: answers the page's questions in a worker, by the game's module and nothing else.
// The questions and answers are those of the server (alphazero/web/message.py).

const SLICE_MS = 25; // searching goes on so long before messages are heard
const REPORT_MS = 120;
const UNPROVEN = 2;
const QUICK = ["welcome", "game", "position", "roll", "policy", "oracle", "tree", "record", "load"];
const SEARCHES = ["move", "analyse", "review"];
const RESULTS = { 1: "1-0", "-1": "0-1", 0: "1/2-1/2" };

// A game's name without the folder and the ending of its file, by which a server may know it.
function plainName(game) {
  return String(game).split(/[\\/]/).at(-1).replace(/\.py$/, "");
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
      const { ask } = question;
      if (QUICK.includes(ask)) tell(this[ask](question));
      else if (SEARCHES.includes(ask)) await this[ask](question, tell);
      else tell({ error: `this file does not know the question ${ask}` });
    } catch (error) {
      tell({ error: error instanceof Refused ? error.message : `something is wrong in this file: ${error.message}` });
    }
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
    const { game, title, board, players, oracle, runs_together, seats, score } = this.file;
    if (!this.plays(asked)) throw new Refused(`this page has no game '${asked}': it plays ${game}`);
    return { game, title, board, alone: seats === 1, seats, score, players, oracle: oracle && { how: oracle.how, unit: oracle.unit }, moves_run_together: runs_together };
  }

  position({ actions, moves, board }) {
    if (board) throw new Refused("this file sets up no boards: the page of alphazero serve does");
    const core = this.core("quick");
    if (moves !== undefined) actions = new Reader(core).read(moves);
    const [words, movers, rolled] = [[], [], []];
    let last = [];
    core.set(actions, (action) => {
      words.push(core.word(action));
      movers.push(core.mover);
      if (core.chances) rolled.push(core.due > 0);
      if (words.length === actions.length) last = cellsOf(core.clicks([action])[0][0] ?? []);
    });
    return { actions, words, movers, ...(core.chances && { rolled }), set_up: false, view: core.view(last) };
  }

  // Throws the dice that are due; what they show depends on the seed and the ply alone.
  roll({ actions, seed = 0 }) {
    const core = this.core("quick");
    core.set(actions);
    if (!core.due) return { actions };
    core.calls.throw(seed, actions.length);
    return { actions: [...actions, ...core.outcomes.filter((outcome) => outcome >= 0)] };
  }

  // The network's opinion without a search.
  policy({ actions }) {
    const core = this.core("quick");
    core.set(actions);
    if (core.over) throw new Refused("the game is over at this position, so a net has no opinion of it");
    if (core.due) throw new Refused("a die is due at this position, so a net has no opinion of it");
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
  record({ actions, first, second, others = [], resigned = null, reason = "resigns" }) {
    const { words } = this.position({ actions });
    const core = this.core("quick");
    const contestants = [first, second, ...others];
    let [result, forfeit] = [core.over ? RESULTS[core.outcome] : "*", ""];
    if (resigned !== null && !core.over) [result, forfeit] = [RESULTS[resigned ? Number(!others.length) : -1], `${contestants[resigned]}: ${reason}`];
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
    if (!lists.every((list) => Array.isArray(list) && list.every((one) => typeof one === "string")) || lists[0].length !== Math.max(2, this.file.seats)) {
      throw new Refused("the file is not a game: contestants and moves must be words");
    }
    if (record.board) throw new Refused("this file sets up no boards: the page of alphazero serve does");
    const { game } = this.file;
    if (!this.plays(record.game)) throw new Refused(`the file is a game of ${record.game}, and this page plays ${game}`);
    const actions = [];
    const core = this.core("quick");
    core.set([]);
    for (const move of [...record.opening, ...record.moves]) {
      const legal = core.legal();
      const at = core.words(legal).indexOf(move);
      if (at < 0) throw new Refused(`'${move}' is not a legal action here`);
      actions.push(legal[at]);
      core.play(legal[at]);
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
    if (core.due) throw new Refused("a die is due at this position, so nobody is to move");
    const search = player.id === "mcts" ? "playouts" : "move";
    const plain = { random: core.calls.choose_random, greedy: core.calls.choose_greedy }[player.id] ?? (steps ? null : core.calls.choose_alone);
    if (core.seed) core.seed[0] = seed;
    if (!plain) {
      core.calls[`begin_${search}`](steps, seed, ply);
      for (let left = steps; left > 0; ) {
        const until = performance.now() + SLICE_MS;
        while (left > 0 && performance.now() < until) left = core.calls[`search_${search}`](8);
        if (!(await this.wanted(id)) || core.turn !== id) return tell({ stopped: true });
      }
    }
    const action = (plain ?? core.calls[search === "move" ? "choose" : "choose_playouts"])(seed, ply);
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
        tell({ ...report, ...(this.file.seats > 2 && { values: found.values }), lines: core.lines(found), more: !done });
        if (done) return;
      }
      if (!(await this.wanted(id)) || core.turn !== id) return tell({ stopped: true });
    }
  }

  async review({ id, actions, player, simulations = 100 }, tell) {
    const core = this.core("review");
    const { words } = this.position({ actions });
    let last = null; // the search of the position before
    const scoreOf = ({ value, mover, gained }) => round((1 + clip(gained + (mover === 0 ? value : -value))) / 2); // the first player's
    for (let ply = 0; ply <= actions.length; ply++) {
      const row = { ply, value: null };
      let values = null; // for each player
      core.set(actions.slice(0, ply));
      row.mover = core.mover;
      const here = { value: 0, mover: core.mover, gained: core.gained };
      if (core.over) [row.value, values] = [scoreOf(here), core.bySeat(core.result).map(round)];
      else if (core.due) {
        row.rolled = true;
        const thrown = actions[ply - 1];
        if (last?.visits[thrown]) [row.value, values] = [scoreOf({ ...last, value: last.q[thrown] }), core.valuesBelow(thrown)];
        last = null;
      } else if (player) {
        core.begin(actions.slice(0, ply));
        while (core.simulations < simulations) core.search(simulations, performance.now() + SLICE_MS);
        last = { ...here, ...core.found() };
        [row.value, values] = [scoreOf(last), last.values];
      }
      if (this.file.seats > 2) Object.assign(row, { value: null, values });
      const more = ply < actions.length;
      if (more) Object.assign(row, { action: actions[ply], word: words[ply], results: this.results(actions.slice(0, ply)) });
      tell({ rows: [row], of: actions.length + 1, more });
      if (more && !(await this.wanted(id))) return tell({ stopped: true });
    }
  }
}

if (typeof WorkerGlobalScope !== "undefined") {
  let engine = null;
  self.onmessage = ({ data }) => {
    if (data.file) engine = new FileEngine(data.file);
    else if (data.cancel !== undefined) engine.cancelled.add(data.cancel);
    else engine.answer(data, (answer) => self.postMessage({ id: data.id, ...answer }));
  };
}
