// Players, results and values in words. Values are points where a game has them; else the expected share of a win, or in a
// game for more than two the result.

import { percent } from "./dom.js";

// The players of a game by their seats, from 0.
export const NAMES = ["First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth"].map((word) => `${word} player`);

// "Second player has won", "First player and Third player share the win" or "Draw", of who has the best result.
export function resultOf(winners, seats, nameOf = (seat) => NAMES[seat]) {
  if (winners.length === seats) return "Draw";
  return `${winners.map(nameOf).join(" and ")} ${winners.length === 1 ? "has won" : "share the win"}`;
}

// "62%" of a value from -1 to 1; or "+1.25" points, in a game for one "1,250" with those that the value `gained` stands for.
// Without points "+0.42" in a game for more than two, since what is more than others depends on its results.
export function scoreOf({ seats, score, alone }, value, digits = 0, gained = 0) {
  if (!score && seats <= 2) return percent((1 + value) / 2, digits);
  const size = score?.size ?? 1;
  const points = size * (value + gained);
  const decimals = size < 100 ? 2 : 0;
  const text = Math.abs(points).toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  return alone ? text : `${points < 0 ? "−" : "+"}${text}`;
}

export function nameOfScore({ seats, score }) {
  return `expected ${score?.unit ?? (seats > 2 ? "result" : "score")}`;
}

export function headOfScore({ seats, score }) {
  return score ? "Points" : seats > 2 ? "Result" : "Score";
}
