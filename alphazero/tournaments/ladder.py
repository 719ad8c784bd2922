"""A run's own ladder: its generations and the baselines in one tournament, strength against hours.

A generation meets those 1, 8 and 64 before it: neighbours, whose games say most, and distant ones, which keep small
errors from adding up along the way. Where nets were removed, a generation that would meet nobody meets the last one
before it. The baselines meet each other and generation 0 and the powers of two. So a run that went on needs only the
games of its new generations.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alphazero.errors import InvalidSetting
from alphazero.players.contestants import ContestantText
from alphazero.storage.metrics_file import seconds_of_generations
from alphazero.tournaments.folder import GENERATION, Pairing, Tournament
from alphazero.tournaments.standings import Standings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOLDER = "ladder"
"""In the run's folder."""
STEPS = (1, 8, 64)
BASELINES = ("random", "greedy", "mcts:100", "mcts:400")
GAMES = 20
"""Default number of games of a pair."""
SIMULATIONS = 16
"""Default simulations per ply: few, since the ladder compares nets."""
THREADS = 1
"""Its searches are of ten positions: split among threads they take longer."""


class Ladder:
    """The generations of a run as contestants; raises InputError for a folder that holds no run."""

    def __init__(self, run: Path, others: Sequence[ContestantText]):
        seconds = seconds_of_generations(run)
        if not seconds:
            raise InvalidSetting(f"{run} has no net yet; try again when it has finished a generation")
        self.run = run
        self.hours = {name_of(generation): its / 3600 for generation, its in seconds.items()}
        """Hours of training by contestant; 0 for the net that the run began with."""
        self.generations = {name_of(generation): generation for generation in seconds}
        self.contestants = {name: ContestantText.parse(f"{run}:{n}") for name, n in self.generations.items()}
        self.baselines = {text: ContestantText.parse(text) for text in BASELINES} | {one.text: one for one in others}

    def tournament(self, game: str, games: int | None, simulations: int | None, seed: int, openings: str) -> Tournament:
        """All matches of the ladder."""
        return Tournament(
            game, "ladder", self.contestants | self.baselines,
            pair_up(list(self.generations.values()), list(self.baselines)), games or GAMES,
            SIMULATIONS if simulations is None else simulations, seed, openings=openings,
        )  # fmt: skip

    def fields(self) -> dict[str, dict[str, Any]]:
        """Further fields of the generations in the results."""
        return {name: {"generation": number, "hours": self.hours[name]} for name, number in self.generations.items()}

    def shown(self, standings: Standings) -> list[str]:
        """Names for a table of bounded length: the baselines, the strongest, the newest, and some on the way."""
        names = list(self.generations)
        strongest = next(row.name for row in standings.rows if row.name in self.generations)
        return [*self.baselines, strongest, *names[:: max(1, len(names) // 10)], names[-1]]

    def draw(self, axes: Axes, standings: Standings) -> None:
        """The picture of the ladder: ratings over hours."""
        rows = {row.name: row for row in standings.rows}
        hours, climbers = list(self.hours.values()), [rows[name] for name in self.hours]
        ratings = [row.rating for row in climbers]
        axes.plot(hours, ratings, marker=".", label=self.run.resolve().name)
        low = [row.rating - row.rating_error for row in climbers]
        high = [row.rating + row.rating_error for row in climbers]
        axes.fill_between(hours, low, high, alpha=0.2, linewidth=0)
        for i, name in enumerate(self.baselines, 1):
            axes.axhline(rows[name].rating, linestyle="--", color=f"C{i}", label=name)
        axes.set(xlabel="hours", ylabel="Elo points, with 95% intervals")
        axes.grid(alpha=0.3)
        for text in axes.legend(loc="lower right").get_texts():
            text.set_parse_math(False)


def name_of(generation: int) -> str:
    """The name of a generation in the ladder."""
    return f"{GENERATION}{generation}"


def pair_up(generations: Sequence[int], baselines: Sequence[str]) -> tuple[Pairing, ...]:
    """The matches of a ladder."""
    there, found = set(generations), []
    for last, generation in zip((None, *generations), generations, strict=False):
        met = [generation - step for step in STEPS if generation - step in there]
        if not met and last is not None:
            met = [last]
        found += [Pairing(name_of(generation), name_of(other)) for other in met]
        if generation & (generation - 1) == 0:  # 0 or a power of two
            found += [Pairing(name_of(generation), baseline) for baseline in baselines]
    return (*found, *(Pairing(first, second) for first, second in itertools.combinations(baselines, 2)))
