// The line of play that the page is about: the actions, where one looks, and the positions on the way.
// It begins at the start of the game, or at a board that was set up from a text.

const MOST_KEPT = 400;
const MOST_CLICKS = 200_000; // in all positions that are kept; each takes about 100 bytes

export class Line {
  constructor(engine, game, board = "") {
    this.engine = engine;
    this.game = game;
    this.board = board;
    this.actions = [];
    this.words = [];
    this.movers = [];
    this.rolled = []; // by action: a die has shown it
    this.ply = 0;
    this.places = new Map();
    this.clicks = 0;
    this.title = "";
    this.changes = 0;
  }

  // The actions up to the place where one looks.
  get here() {
    return this.actions.slice(0, this.ply);
  }

  // The same as a text.
  get key() {
    return this.here.join(".");
  }

  // The fields of a question about the position after some actions.
  at(actions) {
    return { game: this.game, actions, ...(this.board && { board: this.board }) };
  }

  // The word of an action for people.
  said(i) {
    return this.rolled[i] && /^\d/.test(this.words[i]) ? `rolled ${this.words[i]}` : this.words[i];
  }

  // The number of a move: what dice have shown is none.
  number(i) {
    return this.words.slice(0, i + 1).filter((_, at) => !this.rolled[at]).length;
  }

  // The position after some actions: {actions, words, movers, rolled, view}.
  async place(actions) {
    const key = actions.join(".");
    if (!this.places.has(key)) {
      if (this.places.size > MOST_KEPT || this.clicks > MOST_CLICKS) {
        this.places.clear();
        this.clicks = 0;
      }
      const found = this.engine.ask("position", this.at(actions));
      this.places.set(key, found);
      found.then(({ view }) => (this.clicks += view.clicks.length), () => this.places.delete(key));
    }
    return this.places.get(key);
  }

  // Replaces the line, which has no title then; throws Refused if an action is not legal. A later change takes the place of one that still waits.
  async set(actions, ply = actions.length) {
    const change = ++this.changes;
    const { words, movers, rolled = [] } = await this.place(actions);
    if (change !== this.changes) return;
    Object.assign(this, { actions, words, movers, rolled, title: "", ply: Math.max(0, Math.min(ply, actions.length)) });
  }

  // Plays an action where one looks. What came after is kept if it begins with the same action.
  async play(action) {
    if (this.actions[this.ply] === action) this.go(this.ply + 1);
    else await this.set([...this.here, action]);
  }

  go(ply) {
    this.changes += 1;
    this.ply = Math.max(0, Math.min(ply, this.actions.length));
  }

  view() {
    return this.place(this.here).then((place) => place.view);
  }
}
