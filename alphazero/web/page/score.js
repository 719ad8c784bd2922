// Values in words: the expected share of a win, or what they are in a game for more than two.

import { percent } from "./dom.js";

// "62%" of a value from -1 to 1. In a game for more than two "+0.42", since what is more than others depends on its results.
export function scoreOf({ seats }, value, digits = 0) {
  return seats > 2 ? `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}` : percent((1 + value) / 2, digits);
}

export function nameOfScore({ seats }) {
  return `expected ${seats > 2 ? "result" : "score"}`;
}

export function headOfScore({ seats }) {
  return seats > 2 ? "Result" : "Score";
}
