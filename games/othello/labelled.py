"""Othello endgames with the exact score of every move, for measuring moves and values.

The frozen sets, `data/endgames_8.npz` and `data/endgames_6.npz`, have 2,000 positions each with 10 to 14 empty squares,
one from a game between players who look two plies ahead and now and then play at random. All are distinct, also up to
symmetry, and in each some move is better than another.

    python -m games.othello.labelled                makes both anew: a minute, and the same files every time
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import Meta, Struct

from alphazero.catalogue import registry
from alphazero.commands.judge import take
from alphazero.commands.shared import parse, run_command
from alphazero.errors import InputError, StorageError, quote
from alphazero.game import Position
from alphazero.game.kernels import Kernels, kernels_of
from alphazero.machine import count_cores
from alphazero.matches.judge import canonical_keys
from alphazero.players.baselines import MinimaxPlayer, RandomPlayer
from alphazero.settings import check_ranges
from alphazero.storage.arrays import Array, read_npz, write_npz
from alphazero.storage.files import check_output_file, parse_json, read_bytes
from alphazero.storage.schema import check
from games.othello.game import Othello
from games.othello.solver import NO_SCORE, Solver

FOLDER = Path(__file__).parent / "data"
NUM_POSITIONS = 2000
EMPTY_SQUARES = range(10, 15)
MOST_EMPTY_SQUARES = 20
"""The most empty squares in positions of files; with more, each takes minutes."""
EPSILONS = (0.05, 0.1, 0.2, 0.4)
"""Shares of random moves; each game draws one of these."""
GAMES_PER_ROUND = 500
MAX_FILE_BYTES = 1 << 24


@dataclass(frozen=True)
class Labelled:
    """Positions with their truth."""

    names: list[str]
    """The name of each of the n positions."""
    states: np.ndarray
    """`uint64[n, 2]`."""
    scores: np.ndarray
    """`int8[n, A]`, the final disc difference for the player to move; NO_SCORE where a move is not allowed."""


def frozen_file(size: int) -> Path:
    return FOLDER / f"endgames_{size}.npz"


def load_frozen(size: int) -> Labelled:
    """The frozen set of a board size."""
    scores = Array(np.int8, ("n", size * size + 1), NO_SCORE, size * size)
    arrays = read_npz(frozen_file(size), {"states": Array(np.uint64, ("n", 2)), "scores": scores}, max_bytes=1 << 24)
    names = [f"{size}x{size} {number}" for number in range(1, len(arrays["states"]) + 1)]
    return Labelled(names, arrays["states"], arrays["scores"])


class Known(NamedTuple):
    """A position of a file."""

    name: str
    where: str
    """Its place, for messages."""
    position: Position
    scores: dict[str, int]
    """Scores that the file gives, by move; that of the position itself under ""."""


def load_file(path: Path, solver: Solver, game: Othello, most_empty: int = MOST_EMPTY_SQUARES) -> Labelled:
    """The positions of a file that have at most `most_empty` empty squares, solved anew.

    A line is a board and who moves, or moves: `--XO... X; G8:+18; H1:+12`, the scores being those of moves. Or the file
    is JSON, `{"name": {"board": "--XO...", "to_move": "X", "score": 6}, ...}`, or an object that holds such an object.
    All scores may be missing. Raises InputError, also where a score is not the true one.
    """
    content = read_bytes(path, MAX_FILE_BYTES)
    in_json = content.lstrip()[:1] in (b"{", b"[")
    every = list(_known_of_json(path, content, game) if in_json else _known_of_lines(path, content, game))
    if not every:
        raise InputError(f"{path} holds no positions: a line is a board and who moves, as in --XXO... X, or moves")
    known = [one for one in every if solver.num_empty(one.position.state[None])[0] <= most_empty]
    if not known:
        raise InputError(f"{path}: no position has at most {most_empty} empty squares; more take too long")
    states = np.array([one.position.state for one in known])
    scores = solver.move_scores(states)
    for one, row in zip(known, scores, strict=True):
        for move, score in one.scores.items():
            true = int(row[one.position.parse(move)] if move else row.max())
            if score != true:
                which = f"the score of {move}" if move else "the score"
                raise InputError(f"{one.where}: {which} is {true}, not {score}; correct it or leave it out")
    return Labelled([one.name for one in known], states, scores)


def _known_of_lines(path: Path, content: bytes, game: Othello) -> Iterator[Known]:
    for number, line in enumerate(content.decode("utf-8-sig", errors="replace").splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("%"):  # as Edax marks what is said of positions
            where = f"{path}, line {number}"
            text, _, rest = line.partition(";")
            position = _read(where, text, game)
            scores = dict(re.findall(r"([A-Za-z][1-8])[: ]\s*([+-]?\d{1,2})\b", rest))
            with _naming(where):
                known = {position.format(position.parse(move)): int(score) for move, score in scores.items()}
            yield Known(f"line {number}", where, position, known)


class Problem(Struct):
    """A position in a file."""

    board: Annotated[str, Meta(max_length=100, description="a drawn board")]
    to_move: Annotated[Literal["X", "O"], Meta(description='"X" or "O"')]
    score: Annotated[int | None, Meta(description="a whole number")] = None


def _known_of_json(path: Path, content: bytes, game: Othello) -> Iterator[Known]:
    for name, value in _find_problems(path, content).items():
        where = f"{path}, position {quote(name)}"
        problem = check(Problem, value, where, InputError)
        board = problem.board
        if len(board) != (cells := game.size**2):
            raise InputError(
                f"{where}: a board is {cells} of the signs X, O and -, row by row from the top, not {quote(board)}"
            )
        scores = {} if problem.score is None else {"": problem.score}
        yield Known(name, where, _read(where, f"{board} {problem.to_move}", game), scores)


def _find_problems(path: Path, content: bytes) -> dict[str, dict[str, Any]]:
    form = '{"1": {"board": "--XXO...", "to_move": "X"}, ...}'
    try:
        value = parse_json(content, str(path))
    except StorageError as error:
        raise InputError(f"{error}; it must look like {form}") from None
    for found in (value, *(value.values() if isinstance(value, dict) else ())):
        if isinstance(found, dict) and found and all(isinstance(x, dict) and "board" in x for x in found.values()):
            return found
    raise InputError(f"{path} holds no positions; it must look like {form}, or have lines such as --XXO... X")


def _read(where: str, text: str, game: Othello) -> Position:
    """The position of a board or of moves; raises InputError that names `where` it was found."""
    with _naming(where):
        position = game.position(text)
    if position.terminal:
        raise InputError(f"{where}: neither side can move, so there is nothing to solve; leave it out")
    return position


@contextlib.contextmanager
def _naming(where: str) -> Iterator[None]:
    """Names the place in what is raised."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


# --- making the frozen sets ---


@dataclass(frozen=True)
class LabelledConfig:
    """Makes the frozen sets of Othello endgames."""

    folder: Path = FOLDER
    """The folder to write into."""
    positions: int = NUM_POSITIONS
    """Number of positions for each board."""
    seed: int = 0
    """The same seed gives the same files."""
    threads: int = field(default_factory=count_cores)
    """Processor threads."""

    def __post_init__(self) -> None:
        check_ranges(self, positions=(1, 100_000), threads=(1, 1024), seed=(0, (1 << 63) - 1))
        check_output_file("--folder", self.folder / "endgames_8.npz")


def main(argv: list[str]) -> None:
    config = parse(LabelledConfig, argv)
    for name in ("othello", "othello6"):
        game = registry.load(name).game
        assert isinstance(game, Othello)
        positions = endgames(game, config.seed, Solver(game, config.threads), config.threads)
        found = take(positions, config.positions, f"labelled positions of {name}")
        path = config.folder / frozen_file(game.size).name
        write_npz(
            path, {"states": np.array([state for state, _ in found]), "scores": np.array([row for _, row in found])}
        )
        print(f"{len(found)} positions in {path}, {path.stat().st_size:,} bytes")


def endgames(game: Othello, seed: int, solver: Solver, threads: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Distinct positions `(uint64[2], scores int8[A])` in which some move is better than another."""
    kernels = kernels_of(game)
    rng = np.random.default_rng(seed)
    seen: set[tuple[int, ...]] = set()
    for round_number in range(1_000_000):
        states = play_until_endgame(game, kernels, rng, seed + round_number, threads)
        keys = canonical_keys(kernels, states)
        scores = solver.move_scores(states)
        worst = np.where(scores == NO_SCORE, 100, scores).min(axis=1)
        for row in np.flatnonzero(worst < scores.max(axis=1)):
            if keys[row] not in seen:
                seen.add(keys[row])
                yield states[row], scores[row]


def play_until_endgame(
    game: Othello, kernels: Kernels, rng: np.random.Generator, seed: int, threads: int
) -> np.ndarray:
    """States `uint64[n, 2]`, each of a game of its own that goes on with 10 to 14 empty squares."""
    states, to_play = kernels.start_states(GAMES_PER_ROUND), np.zeros(GAMES_PER_ROUND, np.int8)
    wanted = rng.choice(EMPTY_SQUARES, GAMES_PER_ROUND)
    epsilons = rng.choice(EPSILONS, GAMES_PER_ROUND)
    careful, careless = MinimaxPlayer(kernels, 2, seed, threads), RandomPlayer(kernels, seed)
    numbers = np.arange(GAMES_PER_ROUND)
    for ply in range(game.max_plies):
        _, terminal, _ = kernels.describe_all(states)
        going_on = ~terminal & (game.size**2 - np.bitwise_count(states).sum(axis=1) > wanted)
        if not going_on.any():
            break
        at_random = rng.random(GAMES_PER_ROUND) < epsilons
        for player, rows in ((careful, going_on & ~at_random), (careless, going_on & at_random)):
            if rows.any():
                played, movers = states[rows], to_play[rows]
                actions = player.select_actions(played, numbers[rows], np.full(len(played), ply))
                kernels.play(played, movers, actions)
                states[rows], to_play[rows] = played, movers
    return states[~kernels.describe_all(states)[1]]


if __name__ == "__main__":
    sys.exit(run_command(main))
