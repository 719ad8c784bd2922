// Reads moves that people write, as the server does (alphazero/game/reading/moves.py).

const SPELLINGS = { pass: "pass", pa: "pass", ps: "pass", "--": "pass", "@@": "pass", "swap-pieces": "swap" };

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

// Reads with an instance of the game, whose position it changes.
class Reader {
  constructor(core) {
    this.core = core;
    this.splitsWords = core.file.splits_words;
  }

  // The actions of a text of moves.
  read(text) {
    const joined = this.splitsWords ? text.replace(/(\w)-(?=\w)/g, "$1") : text;
    try {
      return this.readMoves(joined);
    } catch (error) {
      const without = withoutNumbers(joined);
      if (without === joined) throw error;
      return this.readMoves(without);
    }
  }

  readMoves(text) {
    const actions = [];
    for (let rest of text.split(/[\s,]+/).filter(Boolean)) {
      while (rest) rest = this.readFirst(actions, rest);
    }
    return actions;
  }

  // Adds the first move of a text to the actions, and a forced pass before it that was left out; returns what is left of the text.
  readFirst(actions, text) {
    this.core.set(actions);
    const legal = this.core.legal();
    const words = this.core.words(legal);
    const [at, length] = this.wordOf(text, words);
    if (at >= 0) {
      actions.push(legal[at]);
      return text.slice(length);
    }
    const before = actions.length;
    const [, first, rest] = text.match(/^([^-]+)-(.+)$/) ?? [];
    const tries = [];
    if (words.length === 1 && words[0].toLowerCase() === "pass") tries.push(() => (actions.push(legal[0]), this.readFirst(actions, text)));
    if (first) tries.push(() => (this.readFirst(actions, first), rest));
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
      const begins = this.splitsWords && text.toLowerCase().startsWith(spelling);
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
    if (found >= 0 || !this.splitsWords) return found;
    words.forEach((word, i) => {
      if (word && text.startsWith(word) && word.length > (words[found] ?? "").length) found = i;
    });
    return found;
  }
}
