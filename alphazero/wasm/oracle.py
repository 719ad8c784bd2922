"""The solver of one game as a WebAssembly module."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from alphazero.game import Game
from alphazero.game.spec import CompiledOracle
from alphazero.wasm.engine import GameModule, ModuleBuilder


class Results(NamedTuple):
    """The arrays that the page reads; only legal actions have results."""

    scores: Annotated[np.ndarray, "int32[A]"]  # for who plays the action
    distances: Annotated[np.ndarray, "int32[A]"]  # 0 for a draw


def _solve():
    """Writes the results of the position, which `describe` has described; returns whether they are known."""
    here, found = page(), results()
    if is_terminal(here.state) or not is_known(here.state):
        return np.int32(0)
    for action in range(len(here.legal_mask)):
        if here.legal_mask[action]:
            score = score_of(here.state, action, memory())
            found.scores[action] = score
            found.distances[action] = 0 if score == 0 else distance_of(here.state, score)
    return np.int32(1)


def oracle_engine(game: Game, oracle: CompiledOracle) -> GameModule:
    """The module of the rules and the solver, with the entry point `solve`; raises GameError if numba cannot."""
    builder = ModuleBuilder(game)
    results = builder.arrays(Results)
    builder.readable |= results._asdict()
    placed = builder.layout.placed
    builder.name(
        results=placed(results), memory=placed(oracle.make_memory(builder.layout.zeros)), is_known=oracle.is_known,
        score_of=oracle.score_of, distance_of=oracle.distance_of,
    )  # fmt: skip
    builder.add("solve", _solve)
    return builder.build()
