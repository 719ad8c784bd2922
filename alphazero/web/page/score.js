// Values in words: the expected share of a win, points where a game has them, or what they are in a game for more than two.

import { percent } from "./dom.js";

// "62%" of a value from -1 to 1; or "+1.25" points, in a game for one "1,250" with those that the value `gained` stands for.
// In a game for more than two "+0.42", since what is more than others depends on its results.
export function scoreOf({ seats, score, alone }, value, digits = 0, gained = 0) {
  if (seats > 2) return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
  if (!score) return percent((1 + value) / 2, digits);
  const points = score.size * (value + gained);
  const decimals = score.size < 100 ? 2 : 0;
  const text = Math.abs(points).toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  return alone ? text : `${points < 0 ? "−" : "+"}${text}`;
}

export function nameOfScore({ seats, score }) {
  return `expected ${seats > 2 ? "result" : score?.unit ?? "score"}`;
}

export function headOfScore({ seats, score }) {
  return seats > 2 ? "Result" : score ? "Points" : "Score";
}
