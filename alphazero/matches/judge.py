"""Scores a player on positions of known worth.

A game brings the positions, and says what is right there; here the player is asked, and its answers become figures
with 95% intervals, as numbers and text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import InputError, InvalidSetting, count_of
from alphazero.game.kernels import Kernels
from alphazero.invocation import option
from alphazero.matches.intervals import mean_with_interval
from alphazero.players.contestant_text import ContestantText
from alphazero.players.contestants import make_player
from alphazero.players.net_players import PolicyPlayer, SearchPlayer
from alphazero.players.player import Assessment, Player

DRAWN = 1 / 3
"""Values between -DRAWN and DRAWN call the position a draw."""
POSITIONS_PER_CALL = 512


class Measure(NamedTuple):
    """One figure before it is averaged."""

    each: np.ndarray | None
    """`bool[n]`, whose average is a share, or numbers `[n]`; None if the player has no such opinion."""
    plies: np.ndarray
    """`int64[n]`: the ply of each position."""


@dataclass(frozen=True)
class Judgement:
    """A player's answers, position by position, as the measures of each figure. The first one counts most."""

    measures: Mapping[str, Measure]

    def figures(self, first_ply: int = 0, last_ply: int | None = None) -> dict[str, Any]:
        """The number of positions at these plies, and each figure with its interval `[low, high]`, or None."""
        found: dict[str, Any] = {}
        for name, measure in self.measures.items():
            rows = (first_ply <= measure.plies) & (measure.plies <= (math.inf if last_ply is None else last_ply))
            found.setdefault("positions", int(rows.sum()))
            each = None if measure.each is None else measure.each[rows]
            found[name], found[f"{name}_interval"] = mean_with_interval(each)
        return found

    def by_phase(self, phases: Mapping[str, tuple[int, int]]) -> dict[str, dict[str, Any]]:
        """The figures of each part of the game, which is named and goes from its first ply to its last."""
        return {name: self.figures(first, last) for name, (first, last) in phases.items()}

    def rounded(self, prefix: str) -> dict[str, float]:
        """The figures that the player has, for a line of `metrics.jsonl`."""
        figures = self.figures()
        return {f"{prefix}_{name}": round(figures[name], 5) for name in self.measures if figures[name] is not None}


def ask(
    player: Player, states: np.ndarray, plies: np.ndarray, on_progress: Callable[[float], None] | None = None
) -> Assessment:
    """The player's answers to `states uint64[n, K]` at `plies int64[n]`, each a game of its own; n is at least 1."""
    answers: list[Assessment] = []
    for start in range(0, len(states), POSITIONS_PER_CALL):
        piece = slice(start, start + POSITIONS_PER_CALL)
        answers.append(player.assess(states[piece], np.arange(len(states))[piece], plies[piece]))
        if on_progress:
            on_progress(min(1.0, piece.stop / len(states)))
    parts = zip(*((answer.actions, answer.policy, answer.values) for answer in answers), strict=True)
    return Assessment(*(None if part[0] is None else np.concatenate(part) for part in parts))  # type: ignore[arg-type]


def signs_right(values: np.ndarray | None, scores: np.ndarray) -> np.ndarray | None:
    """`bool[n]`: the value calls the position won, drawn or lost, as its score does."""
    if values is None:
        return None
    return np.where(np.abs(values) <= DRAWN, 0, np.sign(values)) == np.sign(scores)


def canonical_keys(kernels: Kernels, states: np.ndarray) -> list[tuple[int, ...]]:
    """For each position a key that it shares with its mirror images, in a game that has a `transform`."""
    assert kernels.canonicalize is not None
    return [tuple(key) for key in kernels.canonical(states)[0].tolist()]


# --- the players ---


def open_players(
    contestant: ContestantText,
    loaded: LoadedGame,
    numbers: Sequence[int],
    *,
    seed: int,
    threads: int,
    device: str = "auto",
) -> list[Player]:
    """The contestant with each of these numbers of simulations; only once if it takes none. Raises InputError."""
    if not numbers:
        raise InvalidSetting(f"{option('simulations')} takes one or several numbers")
    players: dict[int | None, Player] = {}
    for number in numbers:
        player = make_player(contestant, loaded, seed=seed, threads=threads, simulations=number, device=device)
        if player.one_at_a_time:
            raise InputError(f"{contestant} plays one game at a time, and a benchmark has thousands of positions")
        players.setdefault(simulations_of(player), player)
    return list(players.values())


def simulations_of(player: Player) -> int | None:
    """Simulations per position; 0 for a policy alone, None if the player has neither."""
    if isinstance(player, SearchPlayer):
        return player.num_simulations
    return 0 if isinstance(player, PolicyPlayer) else None


def title_of(player: Player) -> str:
    """The player's search in words; its name if it takes no number of simulations."""
    number = simulations_of(player)
    return player.name if number is None else count_of(number, "simulation") if number else "without a search"


# --- for people ---


def describe(player: Player, judgement: Judgement, phases: Mapping[str, tuple[int, int]]) -> str:
    """A table with a line for each part of the game."""
    rows = {"all": judgement.figures()} | {f"plies {k}": x for k, x in judgement.by_phase(phases).items()}
    heads = "".join(f"{name.replace('_', ' '):>21}" for name in judgement.measures)
    lines = [f"{title_of(player):<22}{'positions':>10}{heads}"]
    for row, figures in rows.items():
        cells = "".join(f"{_cell(figures, name, measure):>21}" for name, measure in judgement.measures.items())
        lines.append(f"{row:<22}{figures['positions']:>10}{cells}")
    return "\n".join(lines)


def _cell(figures: Mapping[str, Any], name: str, measure: Measure) -> str:
    figure = figures[name]
    if figure is None:
        return "-"
    if (interval := figures[f"{name}_interval"]) is None:
        return f"{figure:.3f}"
    low, high = interval
    if measure.each is not None and measure.each.dtype == bool:
        return f"{figure:.1%} ({100 * low:.1f}-{100 * high:.1f})"
    return f"{figure:.3f} ({low:.3f}-{high:.3f})"
