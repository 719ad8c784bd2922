"""The result of a match: its finished games, and what they say of the two contestants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from alphazero.matches.intervals import score_interval


@dataclass(frozen=True)
class MatchResult:
    """The finished games of a match; every sequence is in the order of the games' numbers."""

    games: tuple[int, ...]
    """Numbers of the finished games; the first contestant plays first in the even ones."""
    actions: tuple[tuple[int, ...], ...]
    """All actions of each game, its opening included."""
    outcomes: tuple[int, ...]
    """+1 if the first contestant won, -1 if the second, 0 for a draw."""
    moves: tuple[int, int]
    """Actions that each contestant has chosen, in unfinished games too."""
    seconds: tuple[float, float]
    """Seconds that each contestant took for them."""
    game_seconds: tuple[tuple[float, float], ...] = ()
    """The same for each game."""
    opening_plies: int = 0
    """Random plies at the start of every game."""
    forfeits: tuple[str, ...] = ()
    """For each game the reason of the loser who gave it up; "" if it was played to its end."""

    @property
    def num_games(self) -> int:
        """Games finished."""
        return len(self.outcomes)

    @property
    def wins(self) -> int:
        """Games won by the first contestant."""
        return self.outcomes.count(1)

    @property
    def draws(self) -> int:
        return self.outcomes.count(0)

    @property
    def losses(self) -> int:
        """Games won by the second contestant."""
        return self.outcomes.count(-1)

    @property
    def points(self) -> float:
        """Points of the first contestant; a draw is half a point."""
        return self.wins + self.draws / 2

    @property
    def score(self) -> float:
        """Points per game of the first contestant, in [0, 1]; 0.5 before any game is finished."""
        return self.points / self.num_games if self.num_games else 0.5

    @property
    def score_interval(self) -> tuple[float, float]:
        """95% interval on the score."""
        return score_interval(self.wins, self.draws, self.losses)

    def whole_pairs(self) -> MatchResult:
        """The result of the pairs of games up to the first that is not finished; moves and their times are of all.

        While a match goes on, short games end before long ones, so the finished games favour whoever wins quickly.
        """
        in_a_row = next((place for place, game in enumerate(self.games) if game != place), len(self.games))
        kept = slice(in_a_row - in_a_row % 2)
        return replace(
            self, games=self.games[kept], actions=self.actions[kept], outcomes=self.outcomes[kept],
            game_seconds=self.game_seconds[kept], forfeits=self.forfeits[kept],
        )  # fmt: skip

    def decides(self, threshold: float, num_games: int) -> bool:
        """It is certain whether the score of all `num_games` will be at least `threshold`.

        The score so far then lies on the same side of the threshold: being at least it is the verdict.
        """
        worst = self.points / num_games
        best = (self.points + num_games - self.num_games) / num_games
        return worst >= threshold or best < threshold

    @property
    def pairs(self) -> tuple[int, int, int, int, int]:
        """Pairs of games from one opening that brought the first contestant 0, 1/2, 1, 3/2 and 2 points.

        Those of `whole_pairs`. Players without chance play the same two games from the same opening again; these
        tell nothing new and count once. If an opening has led to other games, chance decides, and all pairs count:
        those that repeat are the likely ones.
        """
        whole = self.whole_pairs()
        played, uses_chance = dict[tuple[int, ...], tuple[tuple[int, ...], ...]](), False
        every, once = [0] * 5, [0] * 5
        for game in range(0, whole.num_games, 2):
            points, actions = sum(whole.outcomes[game : game + 2]), whole.actions[game : game + 2]
            opening = actions[0][: self.opening_plies]
            every[2 + points] += 1
            once[2 + points] += opening not in played
            uses_chance |= played.setdefault(opening, actions) != actions
        return tuple(every if uses_chance else once)  # type: ignore[return-value]

    @property
    def distinct_games(self) -> int:
        """Different sequences of actions among the games."""
        return len(set(self.actions))

    @property
    def repeats_itself(self) -> bool:
        """Fewer than half of the games differ, so intervals, which take all for different ones, are too narrow."""
        return 2 * self.distinct_games < self.num_games

    @property
    def ms_per_move(self) -> tuple[float, float]:
        """Milliseconds that each contestant took for an action, on average over its batches."""
        first, second = (1000 * t / max(1, n) for t, n in zip(self.seconds, self.moves, strict=True))
        return first, second

    def as_dict(self) -> dict[str, Any]:
        """The result for a run or a card, seen by the first contestant."""
        return {
            "games": self.num_games, "distinct_games": self.distinct_games,
            "wins": self.wins, "draws": self.draws, "losses": self.losses,
            "score": self.score, "score_interval": list(self.score_interval),
        }  # fmt: skip
