// Exact results in words, and the judgement of a game's moves by them or, where nobody knows, by a search.

const MISTAKE = 0.1; // of the expected score
const NAMES = { 1: "win", 0: "draw", "-1": "loss" };

// "wins in 3 moves": Oracle.words in alphazero/game/spec.py says the same at the terminal.
export function wordsOf({ outcome, distance }, { how, unit }) {
  if (!Number.isInteger(outcome)) return `scores ${(50 * (1 + outcome)).toFixed(2)}%`;
  if (!outcome) return "draw";
  const verb = outcome > 0 ? "wins" : "loses";
  return distance === null ? verb : `${verb} ${how} ${distance} ${unit}${distance === 1 ? "" : "s"}`;
}

// The expected scores of a row or a report, 0 to 1: in a game for more than two, of each player; else the first one's.
export function sharesOf({ value, values }) {
  if (values !== undefined) return values && values.map((one) => (1 + one) / 2);
  return value === null ? null : [value];
}

// The share of one player.
function shareAt(shares, seat) {
  return shares.length > 1 ? shares[seat] : seat === 0 ? shares[0] : 1 - shares[0];
}

export function isSame(a, b) {
  return a.outcome === b.outcome && a.distance === b.distance;
}

// Each side's figures, and the mistakes in order, of the rows of a review. `right` of `known` moves keep the best
// outcome, `perfect` are those than which no move has a better result; `lost` is the mean expected score that a move
// gave away by the contestant's opinion, over `judged` moves.
export function judge(rows, oracle, seats = 2, score = null) {
  const sides = Array.from({ length: Math.max(2, seats) }, () => ({ right: 0, perfect: 0, known: 0, lost: 0, judged: 0 }));
  const mistakes = [];
  rows.slice(0, -1).forEach(({ ply, mover, action, word, results, rolled }, i) => {
    if (rolled) return; // nobody chose
    const side = sides[mover];
    const [before, after] = [rows[i], rows[i + 1]].map(sharesOf);
    let lost = 0;
    if (before !== null && after !== null) {
      lost = Math.max(0, shareAt(before, mover) - shareAt(after, mover));
      side.lost += lost;
      side.judged += 1;
    }
    const [best] = results;
    const mine = results.find((result) => result.action === action);
    if (mine) {
      side.known += 1;
      side.perfect += isSame(mine, best);
      if (mine.outcome === best.outcome) side.right += 1;
      else {
        const given = (best.outcome - mine.outcome) / 2;
        const change = [best, mine].every(({ outcome }) => outcome in NAMES);
        const sentence = !change ? `gives away ${(100 * given).toFixed(2)} percentage points: the best move ${wordsOf(best, oracle)}` : `turns a ${NAMES[best.outcome]} into a ${NAMES[mine.outcome]}: ${wordsOf(mine, oracle)}; the best move ${wordsOf(best, oracle)}`;
        mistakes.push({ ply, mover, word, sentence });
      }
    } else if (lost >= MISTAKE) {
      const sentence = score ? `gives away ${(2 * score.size * lost).toFixed(2)} expected ${score.unit}` : seats > 2 ? `gives away ${(2 * lost).toFixed(2)} of the expected result` : `gives away ${Math.round(100 * lost)} percentage points of expected score`;
      mistakes.push({ ply, mover, word, sentence });
    }
  });
  for (const side of sides) side.lost /= Math.max(1, side.judged);
  return { sides, mistakes };
}
