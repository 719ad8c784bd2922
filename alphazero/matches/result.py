"""The result of a match: its finished games, and what they say of the two contestants, also as text and JSON."""

from __future__ import annotations

import math
from collections.abc import Set
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from alphazero.errors import count_of
from alphazero.game import Game
from alphazero.game.record import RESULTS, GameRecord, words_of
from alphazero.invocation import option
from alphazero.matches.intervals import (
    BOUND,
    Sprt,
    elo_difference,
    elo_interval,
    finite,
    mean_with_margin,
    score_interval,
    show_share,
    superiority,
)
from alphazero.matches.openings import describe_openings
from alphazero.matches.seating import games_of_group


@dataclass(frozen=True)
class MatchResult:
    """The finished games of a match; every sequence is in the order of the games' numbers."""

    numbers: tuple[int, ...]
    """Numbers of the finished games; the first contestant plays first in the even ones, or is alone in its seat."""
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
    earned: tuple[tuple[float, float], ...] = ()
    """For each game the points of both contestants, if the game has a `score`."""
    others: tuple[tuple[int, ...], ...] = ()
    """For each game, in a game for one, the actions of the second contestant, who had the same dice; else nothing."""
    seats: int = 1
    """The number of players in a game for more than two, whose seats the contestant that is alone takes in turn."""

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
        """Games drawn."""
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

        In a game for more than two of whole groups: each contestant has had each seat equally often.

        While a match goes on, short games end before long ones, so the finished games favour whoever wins quickly.
        """
        in_a_row = next((place for place, game in enumerate(self.numbers) if game != place), len(self.numbers))
        kept = slice(in_a_row - in_a_row % (2 * self.seats))
        return replace(
            self, numbers=self.numbers[kept], actions=self.actions[kept], outcomes=self.outcomes[kept],
            game_seconds=self.game_seconds[kept], forfeits=self.forfeits[kept], earned=self.earned[kept],
            others=self.others[kept],
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
        """Pairs of games that brought the first contestant 0, 1/2, 1, 3/2 and 2 points.

        Both are from one opening, but in a game for one, where each game has its own.

        Those of `whole_pairs`. Players without chance play the same two games from the same opening again; these
        tell nothing new and count once. If an opening has led to other games, chance decides, and all pairs count:
        those that repeat are the likely ones.
        """
        whole = self.whole_pairs()
        played, uses_chance = dict[tuple[Any, ...], tuple[Any, ...]](), False
        every, once = [0] * 5, [0] * 5
        for game in range(0, whole.num_games, 2):
            points, actions = sum(whole.outcomes[game : game + 2]), whole._played[game : game + 2]
            opening = *(each[0][: self.opening_plies] for each in actions), game // 2 % self.seats
            every[2 + points] += 1
            once[2 + points] += opening not in played
            uses_chance |= played.setdefault(opening, actions) != actions
        return tuple(every if uses_chance else once)  # type: ignore[return-value]

    @property
    def distinct_games(self) -> int:
        """Different sequences of actions among the games."""
        return len(set(self._played))

    @property
    def _played(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """The actions of each game; those of both contestants in a game for one."""
        return tuple(zip(self.actions, *[self.others] * bool(self.others), strict=True))

    @property
    def repeats_itself(self) -> bool:
        """Fewer than half of the games differ, so intervals, which take all for different ones, are too narrow."""
        return 2 * self.distinct_games < self.num_games

    def mean_points(self, contestant: int) -> tuple[float, float]:
        """The mean of a contestant's points a game, and the half of its 95% interval; infinity of one game."""
        return mean_with_margin(np.array([earned[contestant] for earned in self.earned]))

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


class Ended(NamedTuple):
    """A finished game; the fields are those of `MatchResult`."""

    number: int
    actions: tuple[int, ...]
    outcome: int
    seconds: tuple[float, float]
    forfeit: str
    earned: tuple[float, float]
    others: tuple[int, ...] = ()


def compared(first: Ended, second: Ended) -> Ended:
    """One game of a match in a game for one: who has more points has won."""
    earned = first.earned[0], second.earned[1]
    lost = first if first.forfeit else second
    outcome = lost.outcome if lost.forfeit else (earned[0] > earned[1]) - (earned[0] < earned[1])
    return Ended(first.number // 2, first.actions, outcome, (0.0, 0.0), lost.forfeit, earned, second.actions)


# --- the report ---

ENDED = (
    "The test ended the match, so the score leans towards the verdict, and its interval holds the true score in fewer "
    "than 95% of such matches."
)


def records_of(
    result: MatchResult,
    game: Game,
    loaded_as: str,
    contestants: tuple[str, str],
    seed: int,
    kept: Set[int] = frozenset(),
) -> list[GameRecord]:
    """The games of a match in the order of their numbers, without those whose numbers are in `kept`."""
    found, plies = [], result.opening_plies
    for number, played, outcome, seconds, forfeit in zip(
        result.numbers, result._played, result.outcomes, result.game_seconds, result.forfeits, strict=True
    ):
        if number in kept:
            continue
        seconds = round(seconds[0], 6), round(seconds[1], 6)  # as a file has them: what is said once is said again
        played = played[: 1 + (game.num_players == 1)]
        names, words = contestants, [tuple(words_of(game.start(), actions)) for actions in played]
        if number % 2 == 1:
            names, words, outcome, seconds = names[::-1], words[::-1], -outcome, seconds[::-1]
        opening, moves, others = words[0][:plies], words[0][plies:], words[1] if len(words) > 1 else ()
        found.append(
            GameRecord(loaded_as, number, names, opening, moves, RESULTS[outcome], seconds, seed, forfeit, others)
        )
    return found


REPEATED = ", so the intervals are too narrow: they take all games for different ones"


def describe_counts(wins: int, draws: int, losses: int) -> str:
    """A number of games of one result, in words."""
    return f"{count_of(wins, 'win')}, {count_of(draws, 'draw')}, {count_of(losses, 'loss')}"


def describe(
    game: Game,
    contestants: tuple[str, str],
    result: MatchResult,
    test: Sprt | None = None,
    openings: str = "random",
) -> str:
    """The report of a match, seen by the first contestant; `openings` is one of `alphazero.matches.openings.KINDS`."""
    low, high = result.score_interval
    elo, (elo_low, elo_high) = elo_difference(result.score, result.num_games), elo_interval(low, high)
    ms_first, ms_second = result.ms_per_move
    num_forfeits = sum(map(bool, result.forfeits))
    alone = {number % 2 for number in result.numbers}
    elo_lines = (
        f"Elo difference  {elo:+z.0f} ({elo_low:+z.0f} to {elo_high:+z.0f})\n"
        f"superiority     {show_share(superiority(result.wins, result.losses))} likely that the first is the stronger\n"
    )
    if game.num_players > 2 and len(alone) == 1:  # as with a human: half of the seatings
        elo_lines = f"seats           {contestants[alone.pop()]} has one of {game.num_players} in every game\n"
    return (
        f"{game.name}: {contestants[0]} against {contestants[1]}, {count_of(result.num_games, 'game')}\n"
        f"wins            {result.wins}\n"
        f"draws           {result.draws}\n"
        f"losses          {result.losses}\n"
        f"score           {result.score:.1%} (95% interval {low:.1%} to {high:.1%})\n"
        + elo_lines
        + _describe_points(game, result)
        + _describe_dice(game, result)
        + f"distinct games  {result.distinct_games}{REPEATED * result.repeats_itself}\n"
        f"ms per move     {ms_first:.2f} and {ms_second:.2f}"
        + (f"\nforfeits        {num_forfeits}, as told above" if num_forfeits else "")
        + (f"\nSPRT            {describe_test(test, contestants[0], result)}" if test else "")
        + f"\n{describe_openings(openings, result.opening_plies, game)}"
        + (f"\n{ENDED}" if test and test.verdict(result.pairs) else "")
    )


def _describe_points(game: Game, result: MatchResult) -> str:
    """The line on points, in a game with a score."""
    if game.score is None:
        return ""
    sides = (0, 1) if game.num_players == 1 else (0,)
    means = []
    for mean, error in map(result.mean_points, sides):
        digits = max(0, 1 - math.floor(math.log10(error))) if 0 < error < math.inf else 2
        means.append(f"{mean:,.{digits}f} ± {error:,.{digits}f}")
    return f"points a game   {' and '.join(means)} ({game.score.unit}, 95% interval)\n"


FEWEST_GROUPS = 10
"""Fewer groups tell no ratio: it would be chance."""


def same_dice(game: Game, result: MatchResult) -> tuple[float, float, float] | None:
    """The worth of the dice that the games of a group share: a mean, half of its 95% interval, and a ratio.

    The mean is the first contestant's score by groups, or its points where the game has them, or its lead in a game for
    one. The ratio is the interval's width over that of as many games with dice of their own. None in a game without
    dice, and with fewer groups than FEWEST_GROUPS.
    """
    whole, size = result.whole_pairs(), games_of_group(game)
    if not game.num_outcomes or whole.num_games < FEWEST_GROUPS * size:
        return None
    if game.num_players == 1:
        first, second = np.array(whole.earned).T
        mean, margin = mean_with_margin(first - second)
        others = math.hypot(mean_with_margin(first)[1], mean_with_margin(second)[1])
    else:
        each = np.array(whole.earned)[:, 0] if whole.earned else (np.array(whole.outcomes) + 1) / 2
        mean, margin = mean_with_margin(each.reshape(-1, size).mean(axis=1))
        others = mean_with_margin(each)[1]
    return mean, margin, margin / others if others else 1.0


def _describe_dice(game: Game, result: MatchResult) -> str:
    """The line on what the same dice are worth, where that is known."""
    if (found := same_dice(game, result)) is None:
        return ""
    mean, margin, ratio = found
    what = f"score {mean:.1%} ± {margin:.1%}"
    if game.score:
        what = f"{mean:+,.3g} ± {margin:.3g} {game.score.unit} a game{' more' * (game.num_players == 1)}"
    return f"by same dice    {what}, {ratio:.2f} times as wide as with dice of their own\n"


def describe_test(test: Sprt, name: str, result: MatchResult) -> str:
    """The verdict on the first contestant in words."""
    ratio = test.log_likelihood_ratio(result.pairs)
    verdict = {
        "H1": f"H1 accepted: {name} is stronger by more than {test.elo0:g} points",
        "H0": f"H0 accepted: {name} is not stronger by {test.elo1:g} points or more",
        None: f"not decided: give it more {option('games')}",
    }[test.verdict(result.pairs)]
    return (
        f"{verdict} (log-likelihood ratio {ratio:.2f} of {-BOUND:.2f} to {BOUND:.2f}, "
        f"{count_of(sum(result.pairs), 'different pair')})"
    )


def as_json(
    game_name: str,
    seed: int,
    contestants: tuple[str, str],
    result: MatchResult,
    test: Sprt | None = None,
    openings: str = "random",
) -> dict[str, Any]:
    """The result for `--json`; the Elo difference is the first contestant's. An infinite limit of it is null."""
    low, high = result.score_interval
    sides = (
        (result.wins, result.losses, result.score, [low, high]),
        (result.losses, result.wins, 1 - result.score, [1 - high, 1 - low]),
    )
    rows: list[dict[str, Any]] = []
    for side, (wins, losses, score, interval) in enumerate(sides):
        rows.append({
            "name": contestants[side], "wins": wins, "draws": result.draws, "losses": losses,
            "score": score, "score_interval": interval, "superiority": superiority(wins, losses),
            "ms_per_move": result.ms_per_move[side],
        })  # fmt: skip
        if result.earned:
            mean, error = result.mean_points(side)
            rows[side] |= {"points": mean, "points_interval": finite((mean - error, mean + error))}
    found: dict[str, Any] = {
        "contestants": rows,
        "game": game_name,
        "seed": seed,
        "games": result.num_games,
        "elo_difference": elo_difference(result.score, result.num_games),
        "elo_interval": finite(elo_interval(low, high)),
        "forfeits": sum(map(bool, result.forfeits)),
        "distinct_games": result.distinct_games,
        "openings": openings,
        "opening_plies": result.opening_plies,
    }
    if test:
        verdict = test.verdict(result.pairs)
        found["sprt"] = {
            "elo0": test.elo0, "elo1": test.elo1, "verdict": verdict, "ended_the_match": verdict is not None,
            "log_likelihood_ratio": test.log_likelihood_ratio(result.pairs), "bounds": [-BOUND, BOUND],
            "pairs": list(result.pairs),
        }  # fmt: skip
    return found
