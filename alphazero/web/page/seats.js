// The players of a game by their seats, from 0: names and results in words.

export const NAMES = ["First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth"].map((word) => `${word} player`);

// "Second player has won", "First player and Third player share the win" or "Draw", of who has the best result.
export function resultOf(winners, seats, nameOf = (seat) => NAMES[seat]) {
  if (winners.length === seats) return "Draw";
  return `${winners.map(nameOf).join(" and ")} ${winners.length === 1 ? "has won" : "share the win"}`;
}
