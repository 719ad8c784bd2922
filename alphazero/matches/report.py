"""The report of a match between two contestants, as text and JSON."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from alphazero.errors import count_of
from alphazero.game import Game
from alphazero.game.record import RESULTS, GameRecord, words_of
from alphazero.invocation import option
from alphazero.matches.intervals import BOUND, Sprt, elo_difference, elo_interval, finite, show_share, superiority
from alphazero.matches.openings import describe_openings
from alphazero.matches.result import MatchResult

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
    found = []
    for number, actions, outcome, seconds, forfeit in zip(
        result.games, result.actions, result.outcomes, result.game_seconds, result.forfeits, strict=True
    ):
        if number in kept:
            continue
        words = words_of(game.start(), actions)
        seconds = round(seconds[0], 6), round(seconds[1], 6)  # as a file has them: what is said once is said again
        opening, moves = tuple(words[: result.opening_plies]), tuple(words[result.opening_plies :])
        names = contestants
        if number % 2 == 1:
            names, outcome, seconds = names[::-1], -outcome, seconds[::-1]
        found.append(GameRecord(loaded_as, number, names, opening, moves, RESULTS[outcome], seconds, seed, forfeit))
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
    return (
        f"{game.name}: {contestants[0]} against {contestants[1]}, {count_of(result.num_games, 'game')}\n"
        f"wins            {result.wins}\n"
        f"draws           {result.draws}\n"
        f"losses          {result.losses}\n"
        f"score           {result.score:.1%} (95% interval {low:.1%} to {high:.1%})\n"
        f"Elo difference  {elo:+z.0f} ({elo_low:+z.0f} to {elo_high:+z.0f})\n"
        f"superiority     {show_share(superiority(result.wins, result.losses))} likely that the first is the stronger\n"
        f"distinct games  {result.distinct_games}{REPEATED * result.repeats_itself}\n"
        f"ms per move     {ms_first:.2f} and {ms_second:.2f}"
        + (f"\nforfeits        {num_forfeits}, as told above" if num_forfeits else "")
        + (f"\nSPRT            {describe_test(test, contestants[0], result)}" if test else "")
        + f"\n{describe_openings(openings, result.opening_plies, game)}"
        + (f"\n{ENDED}" if test and test.verdict(result.pairs) else "")
    )


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
    return {
        "contestants": [
            {
                "name": name,
                "wins": wins,
                "draws": result.draws,
                "losses": losses,
                "score": score,
                "score_interval": interval,
                "superiority": superiority(wins, losses),
                "ms_per_move": ms,
            }
            for name, (wins, losses, score, interval), ms in zip(contestants, sides, result.ms_per_move, strict=True)
        ],
        "game": game_name,
        "seed": seed,
        "games": result.num_games,
        "elo_difference": elo_difference(result.score, result.num_games),
        "elo_interval": finite(elo_interval(low, high)),
        "forfeits": sum(map(bool, result.forfeits)),
        "distinct_games": result.distinct_games,
        "openings": openings,
        "opening_plies": result.opening_plies,
        **({"sprt": _test_as_json(test, result)} if test else {}),
    }


def _test_as_json(test: Sprt, result: MatchResult) -> dict[str, Any]:
    """The test's verdict, `H0`, `H1` or null, and the figures behind it.

    A match that it has ended has a biased score: it ends sooner where chance is on the verdict's side.
    """
    verdict = test.verdict(result.pairs)
    return {
        "elo0": test.elo0, "elo1": test.elo1, "verdict": verdict, "ended_the_match": verdict is not None,
        "log_likelihood_ratio": test.log_likelihood_ratio(result.pairs), "bounds": [-BOUND, BOUND],
        "pairs": list(result.pairs),
    }  # fmt: skip
