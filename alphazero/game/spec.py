"""`GameSpec`: all that goes with a game, as its folder declares it in `__init__.py`.

A part is imported when it is first called:

    SPEC = GameSpec(games={"connect4": ".game:Connect4"}, presets=".preset:presets", make_net=".net:make_net")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from alphazero.errors import GameError, count_of, quote
from alphazero.game.game import Position


@dataclass(frozen=True)
class ExactResult:
    """The result of one action when both sides go on perfectly.

    >>> import alphazero as az
    >>> az.ExactResult(outcome=1, distance=3)
    ExactResult(outcome=1, distance=3)
    """

    outcome: float
    """1, 0 or -1 for the player to move; with dice perhaps a number between, the mean of what can come."""
    distance: int | None = None
    """Moves to the end, or what else the oracle counts, such as discs; None where it counts nothing."""


@dataclass(frozen=True)
class CompiledOracle:
    """Exact results as functions that numba compiles, for pages without Python. All of them take one position."""

    is_known: Callable[..., Any]
    """`(state uint64[K]) -> bool`: the scores are found within a second or so."""
    score_of: Callable[..., Any]
    """`(state, action, memory) -> int`: the score of a legal action for who plays it; above 0 it wins, below 0 it
    loses. `state` stays as it is."""
    distance_of: Callable[..., Any]
    """`(state, score) -> int`: the distance of a score that is not 0."""
    make_memory: Callable[[Callable[..., np.ndarray]], Any]
    """`(zeros) -> named tuple of arrays`: the solver's memory, made by `zeros(shape, dtype)`."""


@dataclass(frozen=True)
class Oracle:
    """Exact results for people.

    >>> import alphazero as az
    >>> oracle = az.Oracle(lambda position: {0: az.ExactResult(1, 3), 1: az.ExactResult(0)})
    >>> results = oracle.results(az.load_game("tictactoe").start())
    >>> [oracle.words(result) for result in results.values()]
    ['wins in 3 moves', 'draw']
    """

    solve: Callable[[Position], Mapping[int, ExactResult]]
    """The result of every legal action, the best first; empty if that takes too long."""
    how: str = "in"
    unit: str = "move"
    """A distance of 3 is told as "in 3 moves"; with `by` and `disc` as "by 3 discs"."""
    compiled: CompiledOracle | None = None
    """The same for pages without a server, if compiled functions can give it."""
    limit: Callable[[Position], str] = lambda position: ""
    """The distance of a position without results from those with some, as "it has 40 empty squares"; or nothing."""

    def too_far(self, position: Position) -> str:
        """The sentence about a position without results."""
        limit = self.limit(position)
        return "this position is too far from the end to be solved" + (limit and f": {limit}")

    def results(self, position: Position) -> dict[int, ExactResult]:
        """The result of every legal action, the best first; empty where nobody knows. Raises GameError for others."""
        found = {} if position.terminal else {int(action): result for action, result in self.solve(position).items()}
        if wrong := [result for result in found.values() if not isinstance(result, ExactResult)]:
            law = "must map actions to ExactResult(outcome, distance)"
            raise GameError(f"the oracle of {position.game.name} {law}, not to {quote(wrong[0])}")
        return found

    def words(self, result: ExactResult) -> str:
        """A result in words, as "wins in 3 moves"; the page has the same in `judge.js`."""
        if result.outcome not in (-1, 0, 1):
            return f"scores {50 * (1 + result.outcome):.2f}%"
        verb = ("draw", "wins", "loses")[int(result.outcome)]
        if result.outcome == 0 or result.distance is None:
            return verb
        return f"{verb} {self.how} {count_of(result.distance, self.unit)}"


AreBalanced = Callable[[np.ndarray], np.ndarray]
"""`bool[n]` of `states uint64[n, K]`, none of them terminal: the fair openings, since neither player wins there if both
are perfect. In a game without draws, the positions that are as near to it as the game sees fit."""


Part = str | Callable[..., Any]
"""A function, or where to import it from: `.net:make_net` beside the SPEC, or `my_package.net:make_net`."""

PARTS = "presets", "make_net", "make_benchmark", "make_oracle", "make_balance", "value_targets", "gtp_words"
"""The parts that are one function each."""


@dataclass(frozen=True)
class GameSpec:
    """The parts of one game, or of a few games that share them."""

    games: Mapping[str, Part] = field(default_factory=dict)
    """The class of each game by the game's name."""
    presets: Part = "alphazero.training.presets:presets"
    """`(game) -> {name: RunConfig}`: the settings of a run as `quick`, `standard`, `strong`."""
    make_net: Part = "alphazero.nets.resnet:make_net"
    """`(game, settings) -> NeuralNet`: a fresh network from the settings under `net` of a preset or a card."""
    make_benchmark: Part | None = None
    """`(game) -> (player) -> {name: figure}`: scores a player on positions of known worth. The first figure counts,
    and higher is better; in a run, the network's figures without a search join every line of `metrics.jsonl`."""
    contestants: Mapping[str, Part] = field(default_factory=dict)
    """The game's own players: name -> `(kernels, argument, settings, *, seed, threads) -> Player`."""
    make_oracle: Part | None = None
    """`(game) -> Oracle`: exact results for people, in games that have a solver."""
    make_balance: Part | None = None
    """`(game) -> AreBalanced`: balanced openings, in games that know exact values of early positions at once."""
    value_targets: Part | None = None
    """`(recordings, settings) -> targets`: another value target, as in `alphazero.training.selfplay.value_targets`."""
    gtp_name: str = ""
    """The game's name in the Go Text Protocol; empty = its own name."""
    gtp_vertex: Callable[[str], str] | None = None
    """From an action in the game's notation to its GTP vertex; None = the same word."""
    gtp_words: Part | None = None
    """`(game) -> GtpWords`: in place of the two above, for a game with a komi or another size of board."""

    def __post_init__(self) -> None:
        if not isinstance(self.games, Mapping) or not isinstance(self.contestants, Mapping):
            raise GameError("`games` and `contestants` of a game's SPEC must map names to functions or classes")


def named_parts(spec: GameSpec) -> dict[str, Part]:
    """Every part that a spec has, by the words for it in messages."""
    found = {name: getattr(spec, name) for name in PARTS}
    for name in ("games", "contestants"):
        found |= {f"{name}[{key!r}]": part for key, part in getattr(spec, name).items()}
    return {words: part for words, part in found.items() if part is not None}
