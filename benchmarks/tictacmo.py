"""How many of a contestant's moves in tic-tac-mo are exact? `python -m benchmarks.tictacmo best`.

Positions are drawn in two ways. "All positions" are all that random games can reach, each as likely as another: most
have nine to twelve stones. "Positions of random games" are met once in each game at each number of stones, so half of
them have five stones or fewer. A move is exact if it brings the mover the most by `games.tictacmo.solver`, which takes
a minute first. Where all moves bring the same nothing can be wrong, so the others are counted apart.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated

import numpy as np
import tyro

from alphazero.catalogue import registry
from alphazero.commands.shared import parse, run_command
from alphazero.machine import count_cores
from alphazero.matches.intervals import mean_with_interval
from alphazero.matches.judge import ask, open_players, title_of
from alphazero.players.contestants import ContestantText
from alphazero.settings import check_ranges
from games.tictacmo.game import ONE, SQUARES, has_line
from games.tictacmo.solver import stones_of, values_of


@dataclass(frozen=True)
class Benchmark:
    """The share of exact moves in tic-tac-mo, by number of stones."""

    contestant: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="CONTESTANT")] = "best"
    """A net or another contestant."""
    positions: int = 20_000
    """Positions of each kind."""
    simulations: tuple[int, ...] = (0, 100)
    """Simulations per position; 0 plays by the policy alone."""
    seed: int = 0
    """The same seed draws the same positions."""
    threads: int = field(default_factory=count_cores)
    """Processor threads."""

    def __post_init__(self) -> None:
        check_ranges(self, positions=(100, 10_000_000), seed=(0, (1 << 63) - 1), threads=(1, 1024))


def all_positions(count: int, rng: np.random.Generator) -> np.ndarray:
    """`uint64[count, 3]`: positions that random games can reach and that are not over, all equally likely.

    These are the boards without a line, since the stones of such a board may have come in any order.
    """
    boards = np.array([boards_of(stones) for stones in range(SQUARES)])
    found = list[list[int]]()
    while len(found) < count:
        board = random_board(int(rng.choice(SQUARES, p=boards / boards.sum())), rng)
        if not any(has_line(np.uint64(stones)) for stones in board):
            found.append(board)
    return np.array(found, np.uint64)


def boards_of(stones: int) -> int:
    """The number of boards with so many stones, with and without lines."""
    places = math.comb(SQUARES, stones)
    ours, theirs, _ = stones_of(stones)
    return places * math.comb(stones, ours) * math.comb(stones - ours, theirs)


def random_board(stones: int, rng: np.random.Generator) -> list[int]:
    """The stones of the player to move, of the next one and of the one after, wherever they fall."""
    squares, ends = rng.permutation(SQUARES).tolist(), np.cumsum((0, *stones_of(stones)))
    return [sum(1 << square for square in squares[start:end]) for start, end in pairwise(ends)]


def positions_of_games(count: int, rng: np.random.Generator) -> np.ndarray:
    """`uint64[count, 3]`: all positions of random games, one game after the other, in which there is a move."""
    found = list[list[int]]()
    while len(found) < count:
        board = [0, 0, 0]
        for square in rng.permutation(SQUARES).tolist():
            found.append(board)
            board = [board[1], board[2], board[0] | 1 << square]
            if has_line(np.uint64(board[2])):
                break
    return np.array(found[:count], np.uint64)


def scores_of(states: np.ndarray) -> np.ndarray:
    """The exact results `float32[n, 15]` of the moves of `states uint64[n, 3]`, for the mover; NaN where illegal."""
    scores = np.full((len(states), SQUARES), np.nan, np.float32)
    for square in range(SQUARES):
        free = (states.sum(axis=1) >> np.uint64(square)) & ONE == 0  # the players' stones are apart
        own, following, last = states[free].T
        scores[free, square] = values_of(np.stack([following, last, own | ONE << np.uint64(square)], axis=1))[:, 2]
    return scores


def main(argv: list[str]) -> None:
    config = parse(Benchmark, argv)
    loaded, rng = registry.load("tictacmo"), np.random.default_rng(config.seed)
    contestant = ContestantText.parse(config.contestant)
    players = open_players(contestant, loaded, config.simulations, seed=config.seed, threads=config.threads)
    for kind, draw in (("all positions", all_positions), ("positions of random games", positions_of_games)):
        states = draw(config.positions, rng)
        scores, stones = scores_of(states), np.bitwise_count(states).sum(axis=1, dtype=np.int64)
        differ = np.nanmax(scores, axis=1) > np.nanmin(scores, axis=1)
        for player in players:
            actions = ask(player, states, stones).actions
            exact = scores[np.arange(len(states)), actions] == np.nanmax(scores, axis=1)
            print(f"{config.contestant}, {title_of(player)}, {len(states):,} {kind}")
            print(f"exact  {share(exact)}; {share(exact[differ])} of the {differ.mean():.1%} where moves differ")
            each = ", ".join(f"{n}: {exact[stones == n].mean():.1%}" for n in np.unique(stones).tolist())
            print(f"by stones  {each}", flush=True)


def share(exact: np.ndarray) -> str:
    """The share of `bool[n]` and its 95% interval."""
    found, interval = mean_with_interval(exact)
    assert found is not None and interval is not None
    return f"{found:.2%} ({interval[0]:.2%} to {interval[1]:.2%})"


if __name__ == "__main__":
    sys.exit(run_command(main))
