"""Scores a player on positions whose exact scores are known, and reads files of them.

A game brings the positions, and says what is right there; here the player is asked, and its answers become figures
with 95% intervals, as numbers and text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import InputError, InvalidSetting, count_of
from alphazero.game import Game, Position
from alphazero.invocation import option
from alphazero.matches.intervals import mean_with_interval
from alphazero.players.contestants import ContestantText, make_player
from alphazero.players.net_players import PolicyPlayer, SearchPlayer
from alphazero.players.player import Assessment, Player
from alphazero.storage.files import read_bytes

DRAWN = 1 / 3
"""Values between -DRAWN and DRAWN call the position a draw."""
POSITIONS_PER_CALL = 512
MAX_FILE_BYTES = 1 << 28
LINE = re.compile(r"(.*?)(?:\s+([+-]?\d{1,6}))?\s*(?:;(.*))?")
MOVE_SCORE = re.compile(r"([^\s:;]+)[: ]\s*([+-]?\d{1,6})\b")


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


# --- positions ---


@dataclass(frozen=True)
class Labelled:
    """Positions with their truth; row i of everything belongs together."""

    names: list[str]
    """The name of each of the n positions; empty if they have none."""
    states: np.ndarray
    """`uint64[n, K]`."""
    scores: np.ndarray
    """`int8[n, A]`, for the player to move; NO_SCORE where an action is not legal."""
    value_states: np.ndarray
    """`uint64[m, K]`: the positions whose value is asked for."""
    value_scores: np.ndarray
    """`int8[m]`, for the player to move."""


class Known(NamedTuple):
    """A position of a file, at a place for messages, with the scores that the file gives: its own, and of actions."""

    where: str
    position: Position
    score: int | None
    move_scores: dict[int, int]


def read_positions(path: Path, game: Game) -> list[Known]:
    """The positions of a file, one a line: moves or a board, then perhaps a score, then perhaps the scores of moves.

    As in `4453 -2` and `--XO... X; G8:+18; H1:+12`. Lines that begin with % are remarks. Raises InputError, which names
    the line, for what is no position and for one that is over.
    """
    found = []
    for number, line in enumerate(read_bytes(path, MAX_FILE_BYTES).decode("utf-8-sig", "replace").split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("%"):
            continue
        where, parts = f"{path}, line {number}", LINE.fullmatch(line.strip())
        text, score, more = parts.groups() if parts else (line, None, None)
        try:
            position = game.position(text)
            moves = {position.parse(move): int(its) for move, its in MOVE_SCORE.findall(more or "")}
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        if position.terminal:
            raise InputError(f"{where}: the game is over here, so there is nothing to solve; leave the line out")
        found.append(Known(where, position, None if score is None else int(score), moves))
    if not found:
        raise InputError(f"{path} holds no positions; a line is a position as moves or a board, and perhaps its score")
    return found


def load_file(
    path: Path,
    game: Game,
    solve: Callable[[np.ndarray], np.ndarray],
    wanted: Callable[[Position], bool] = lambda position: True,
) -> Labelled:
    """The `wanted` positions of a file, whose scores `solve(states)` finds and whose values are asked for as well.

    Raises InputError, also where a score of the file is not the true one.
    """
    known = [one for one in read_positions(path, game) if wanted(one.position)]
    if not known:
        raise InputError(f"{path}: all positions are too far from the end to be solved")
    states = np.array([one.position.state for one in known])
    scores = solve(states)
    best = scores.max(axis=1)  # NO_SCORE is lower than any score
    for one, row, score in zip(known, scores, best.tolist(), strict=True):
        given = [("", one.score, score)]
        given += [(f" of {one.position.format(move)}", said, int(row[move])) for move, said in one.move_scores.items()]
        for which, said, right in given:
            if said not in (None, right):
                raise InputError(f"{one.where}: the score{which} is {right}, not {said}; correct it or leave it out")
    return Labelled([one.where.rpartition(", ")[2] for one in known], states, scores, states, best)
