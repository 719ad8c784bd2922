"""Connect Four positions with the exact score of every column, for measuring policies and values.

The frozen set, `data/labelled.npz`, has about 7,000 positions from games between players who mostly play perfectly and
sometimes at random. All are distinct, also up to mirroring, spread over plies 0 to 35, and *decisive*: some legal
action keeps the best outcome and some other does not. There the best outcome is never a loss, so values are measured on
a second set: one random child of each position, with wins, draws and losses as they come.

    python -m games.connect4.labelled               makes the frozen set anew: minutes, and the same file every time
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from alphazero.commands.judge import take
from alphazero.commands.shared import parse
from alphazero.errors import InputError, StorageError
from alphazero.game import Position
from alphazero.game.kernels import kernels_of
from alphazero.machine import count_cores
from alphazero.matches.judge import canonical_keys
from alphazero.settings import check_ranges
from alphazero.storage.arrays import Array, read_npz, write_npz
from alphazero.storage.files import check_output_file, parse_json
from alphazero.storage.schema import Text, check
from games.connect4.game import COLUMNS, ROWS
from games.connect4.solver import NO_SCORE, Solver
from games.connect4.solver.notation import GAME, check_score, format_moves, parse_moves, parse_scored_line, read_lines

FROZEN_FILE = Path(__file__).parents[1] / "data" / "labelled.npz"
NUM_POSITIONS = 7000
MAX_PLY = 35
"""The last ply of which there are positions in the frozen set."""
POSITIONS_PER_PLY = 240
"""The most positions of one ply in the frozen set; the first few plies have fewer."""
GAMES_PER_ROUND = 256
EPSILONS = (0.1, 0.2, 0.3, 0.5)
"""Shares of random moves; each game draws one of these."""


@dataclass(frozen=True)
class Labelled:
    """Positions with their truth; row i of everything belongs together."""

    moves: Sequence[str]
    """The moves to each of the n positions, as "4453"; "" for a board."""
    states: np.ndarray
    """`uint64[n, 2]`."""
    column_scores: np.ndarray
    """`int8[n, 7]`, for the player to move; NO_SCORE where a column is full."""
    value_moves: Sequence[str]
    """The moves to each of the m positions whose value is measured."""
    value_states: np.ndarray
    """`uint64[m, 2]`, none of them over."""
    value_scores: np.ndarray
    """`int8[m]`, for the player to move."""


def decisive(column_scores: np.ndarray) -> np.ndarray:
    """`bool[n]`: not all legal actions have the same outcome; of `int8[n, 7]`."""
    legal = column_scores != NO_SCORE
    outcomes = np.sign(column_scores)
    return (legal & (outcomes != outcomes.max(axis=1, initial=-1, where=legal, keepdims=True))).any(axis=1)


def best_scores(column_scores: np.ndarray) -> np.ndarray:
    """`int8[n]`: the scores of the positions themselves."""
    return column_scores.max(axis=1)  # NO_SCORE is lower than any score


def load_frozen() -> Labelled:
    """The frozen set."""
    expected = {
        "actions": Array(np.int8, ("n", MAX_PLY), -1, COLUMNS - 1),
        "column_scores": Array(np.int8, ("n", COLUMNS), NO_SCORE, COLUMNS * ROWS),
        "children": Array(np.int8, ("n",), -1, COLUMNS - 1),
    }
    arrays = read_npz(FROZEN_FILE, expected, max_bytes=1 << 24)
    actions, scores, children = arrays["actions"], arrays["column_scores"], arrays["children"]
    moves = [format_moves(row[row >= 0]) for row in actions]
    states = _states_after(actions)
    has_child = np.flatnonzero(children >= 0)
    value_actions = np.concatenate([actions[has_child], np.full((len(has_child), 1), -1, np.int8)], axis=1)
    value_actions[np.arange(len(has_child)), (value_actions >= 0).sum(axis=1)] = children[has_child]
    return Labelled(
        moves, states, scores,
        [moves[row] + str(children[row] + 1) for row in has_child],
        _states_after(value_actions),
        -scores[has_child, children[has_child]],
    )  # fmt: skip


def _states_after(actions: np.ndarray) -> np.ndarray:
    """`uint64[n, 2]` after the actions of each row of `int8[n, plies]`, padded with -1."""
    kernels = kernels_of(GAME)
    states = kernels.start_states(len(actions))
    for column in actions.T:
        kernels.play(states, np.zeros(len(states), np.int8), column.astype(np.int64))
    return states


def load_file(path: str | Path, solver: Solver) -> Labelled:
    """The positions of a file, whose values are asked for as well.

    Its lines are `moves score`, with the columns left to the solver, boards with or without a score, or JSON,
    `{"moves": "4453", "scores": [s1, ..., s7]}`, with null for a full column.

    Raises InputError, naming line and column.
    """
    lines = list(read_lines(path))
    if lines[0][1].lstrip().startswith("{"):
        labelled = [_parse_json_line(line, place) for place, line in lines]
        positions = [position for position, _ in labelled]
        scores = np.array([row for _, row in labelled], np.int8)
    else:
        scored = [parse_scored_line(line, place) for place, line in lines]
        positions = [position for position, _ in scored]
        scores = solver.column_scores_all(np.array([position.state for position in positions]))
        for (place, line), (_, given), best in zip(lines, scored, best_scores(scores), strict=True):
            if given is not None and given != best:
                column = line.rindex(line.split()[-1]) + 1
                raise InputError(f"{place}, column {column}: the score is {best}, not {given}; correct the line")
    moves = [format_moves(position.actions) for position in positions]
    states = np.array([position.state for position in positions])
    return Labelled(moves, states, scores, moves, states, best_scores(scores))


class LabelledLine(Struct):
    """A line of JSON in a file of positions."""

    moves: Text
    scores: Annotated[
        list[int | None], Meta(min_length=COLUMNS, max_length=COLUMNS, description="7 whole numbers or null")
    ]


def _parse_json_line(line: str, place: str) -> tuple[Position, list[int]]:
    form = '{"moves": "4453", "scores": [-5, -5, -2, -3, -4, -2, -2]}'
    content = line.encode()
    try:
        value = parse_json(content, place)
    except StorageError as error:
        wrong = re.search(r"\(byte (\d+)\)", str(error))
        before = content[: int(wrong[1])] if wrong else content
        column = len(before.decode(errors="replace")) + 1
        raise InputError(f"{place}, column {column}: this is not JSON; a line looks like {form}") from None
    labelled = check(LabelledLine, value, f"{place}, column 1", InputError, f", as in {form}")
    moves, scores = labelled.moves, labelled.scores
    # where they stand in the line; at its start if that cannot be seen, for JSON may spell "moves" with escapes
    found = [re.search(pattern, line) for pattern in (r'"moves"\s*:\s*"', r'"scores"\s*:\s*\[')]
    first_move, first_score = (match.end() if match else 0 for match in found)
    position = parse_moves(moves, place, first_move)
    if position.terminal:
        last = first_move + len(moves)
        raise InputError(f"{place}, column {last}: this move ends the game, so nothing can be played")
    for action, (item, score) in enumerate(zip(line[first_score:].split(","), scores, strict=False)):
        where = f"{place}, column {first_score + len(item) - len(item.lstrip()) + 1}"
        if (score is None) == bool(position.legal_mask[action]):
            raise InputError(f"{where}: column {action + 1} of the board is {'not ' * (score is None)}full")
        if score is not None:
            check_score(score, position, where)
        first_score += len(item) + 1
    return position, [NO_SCORE if score is None else score for score in scores]


# --- making the frozen set ---


@dataclass(frozen=True)
class LabelledConfig:
    """Makes the frozen set of labelled Connect Four positions."""

    output: Path = FROZEN_FILE
    """The file to write."""
    positions: int = NUM_POSITIONS
    """Number of positions."""
    seed: int = 0
    """The same seed gives the same file."""
    threads: int = field(default_factory=count_cores)
    """Processor threads."""

    def __post_init__(self) -> None:
        check_ranges(self, positions=(1, NUM_POSITIONS), threads=(1, 1024), seed=(0, (1 << 63) - 1))
        check_output_file("--output", self.output)


def main(argv: list[str]) -> None:
    config = parse(LabelledConfig, argv)
    positions = decisive_positions(config.seed, Solver(config.threads))
    found = take(positions, config.positions, "labelled positions")
    found.sort(key=lambda item: (len(item[0]), item[0]))
    actions = np.full((len(found), MAX_PLY), -1, np.int8)
    for row, (played, _) in enumerate(found):
        actions[row, : len(played)] = played
    scores = np.array([row for _, row in found])
    children = _pick_children(actions, scores, np.random.default_rng([config.seed, 1]))
    write_npz(config.output, {"actions": actions, "column_scores": scores, "children": children})
    print(f"{len(found)} positions in {config.output}, {config.output.stat().st_size:,} bytes")


def decisive_positions(seed: int, solver: Solver) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """Distinct decisive positions, `(actions, column scores int8[7])`, from one game after the other."""
    rng = np.random.default_rng(seed)
    kernels = kernels_of(GAME)
    seen: set[tuple[int, ...]] = set()
    counts = np.zeros(MAX_PLY + 1, np.int64)
    while True:
        states, alive = kernels.start_states(GAMES_PER_ROUND), np.arange(GAMES_PER_ROUND)
        epsilons = rng.choice(EPSILONS, GAMES_PER_ROUND)
        played: list[tuple[int, ...]] = [()] * GAMES_PER_ROUND
        for ply in range(MAX_PLY + 1):
            scores = solver.column_scores_all(states)
            keys = canonical_keys(kernels, states)
            for row in np.flatnonzero(decisive(scores)):
                if keys[row] not in seen and counts[ply] < POSITIONS_PER_PLY:
                    seen.add(keys[row])
                    counts[ply] += 1
                    yield played[alive[row]], scores[row]
            at_random = rng.random(len(states)) < epsilons[alive]
            choices = np.where(at_random[:, None], scores != NO_SCORE, scores == best_scores(scores)[:, None])
            actions = (choices * rng.random(choices.shape)).argmax(axis=1)
            for game, action in zip(alive, actions, strict=True):
                played[game] = (*played[game], int(action))
            kernels.play(states, np.zeros(len(states), np.int8), actions)
            going_on = ~kernels.describe_all(states)[1]
            states, alive = states[going_on], alive[going_on]


def _pick_children(actions: np.ndarray, scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """`int8[n]`: for each position an action, picked at random, after which the game goes on; -1 if there is none."""
    plies = (actions >= 0).sum(axis=1)
    ends = (scores == ((43 - plies) // 2)[:, None]) | (plies == 41)[:, None]
    choices = (scores != NO_SCORE) & ~ends
    picked = (choices * rng.random(choices.shape)).argmax(axis=1)
    return np.where(choices.any(axis=1), picked, -1).astype(np.int8)
