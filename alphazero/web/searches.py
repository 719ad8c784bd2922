"""Searches for the page: a contestant's move, an analysis that grows while somebody looks, the review of a game.

Each is a generator that gives what it has found so far, until it is done or its `Stop` is set.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from alphazero.errors import IllegalAction, InputError, Stopped
from alphazero.game import Game, Position
from alphazero.game.kernels import kernels_of
from alphazero.game.record import words_of
from alphazero.nets.neural_net import on_one_thread
from alphazero.players.player import FollowingPlayer, Forfeit, Player
from alphazero.search.analysis import Analysis, TreeNode
from alphazero.search.evaluator import Evaluator
from alphazero.search.tree import bytes_of_simulation
from alphazero.web.message import MOST_SIMULATIONS
from alphazero.web.seats import Seat, Stop
from alphazero.web.tables import gained, values_at_end

INTERVAL = 0.12
"""Least seconds between two reports of an analysis."""
MOST_REPORTING = 0.2
"""The part of an analysis's time that its reports may take; in large games the words of the moves take most of it."""
MOST_TREE_BYTES = 192 << 20
"""Most memory of the tree of an analysis."""
MOST_TREES = 8
"""Trees that are kept for all viewers together."""
MOST_PLIES = 600
"""The longest game that is reviewed."""
MOST_LINES, MOST_MOVES = 32, 12
"""Actions whose expected play is told, and how far."""


# --- a move ---


def choose(seat: Seat, step: int, generation: int | None, position: Position, seed: int, stop: Stop) -> dict[str, Any]:
    """The move of a contestant: its action, or why it gives up. Raises IllegalAction, Stopped or InputError."""
    if position.terminal:
        raise IllegalAction("the game is over: no action can be played")
    if position.chances:
        raise IllegalAction("a die is due at this position, so nobody is to move")
    begin = time.monotonic()
    with seat.playing(step, generation, seed, stop) as player:
        answer = _answer(player, position, seed, stop)
    if isinstance(answer, Forfeit):
        return {"forfeit": str(answer)[:300]}
    if answer not in position.legal_actions:
        raise InputError(f"{seat.title} played {answer}, which is not legal here")
    return {"action": answer, "word": position.format(answer), "seconds": round(time.monotonic() - begin, 3)}


def _answer(player: Player, position: Position, seed: int, stop: Stop) -> int | Forfeit:
    """The action, or the forfeit. Raises Stopped, so that the seat keeps no player who was interrupted."""
    at = np.array([seed]), np.array([position.ply])
    for _ in range(2):  # the first time it may end by an interruption that came behind an earlier answer
        if stop.is_set():
            break
        answer: int | Forfeit
        with contextlib.suppress(Stopped):
            try:
                with stop.calling(player.interrupt):
                    if isinstance(player, FollowingPlayer):
                        answer = player.choose(position, seed)
                    else:
                        answer = int(player.select_actions(position.state[None].copy(), *at)[0])
            except Forfeit as forfeit:
                answer = forfeit
            if not stop.is_set():
                return answer
    raise Stopped


# --- an analysis ---


class Grown:
    """The tree of one viewer, grown for one contestant; one thread at a time may use it."""

    def __init__(self, seat: Seat, generation: int | None, game: Game):
        """Raises InputError if the contestant cannot analyse."""
        evaluate, learned = seat.evaluate(generation)
        self.key = game.name, seat.id, evaluate.net if isinstance(evaluate, Evaluator) else None
        """The game, the contestant and its network: a run that goes on gets others."""
        self.room = max(100, min(MOST_SIMULATIONS, MOST_TREE_BYTES // (2 * bytes_of_simulation(game))))
        """The most simulations, by the memory of the tree."""
        config = replace(learned, num_simulations=self.room)
        self._analysis = Analysis(kernels_of(game), config, evaluate)
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self.position: Position | None = None

    def grow(self, position: Position, limit: int, stop: Stop) -> Iterator[dict[str, Any]]:
        """Reports on the search of `position`, which goes on until it has `limit` simulations. Raises Stopped."""
        if position.terminal:
            raise IllegalAction("the game is over at this position, so there is nothing to analyse")
        if position.chances:
            raise IllegalAction("a die is due at this position, so there is nothing to analyse")
        limit = min(limit, self.room)
        with stop.holding(self._turn), self._analysis.on_one_thread():
            same = self.position is not None and self.position.ply == position.ply and position.follows(self.position)
            if not same:  # else it goes on
                with self._lock:
                    self._analysis.begin(position)
                    self.position = position
            before, begin, reporting, done = self.simulations(), time.monotonic(), 0.0, False
            while not done:
                until = time.monotonic() + max(INTERVAL, reporting * (1 / MOST_REPORTING - 1))
                while time.monotonic() <= until and not (
                    done := self.simulations() >= limit or self._analysis.finished
                ):
                    try:
                        with self._lock:
                            self._analysis.step()
                    except Exception:
                        self.position = None  # an evaluation that failed has emptied the tree
                        raise
                    if stop.is_set():
                        return
                told = time.monotonic()
                rate = (self.simulations() - before) / max(1e-3, told - begin)
                report = self._report(position)
                reporting = time.monotonic() - told
                yield {**report, "limit": limit, "rate": round(rate), "more": not done}

    def simulations(self) -> int:
        """Simulations at the root so far, those of a kept subtree included."""
        with self._lock:  # counting ends those under way, which writes into the tree
            return self._analysis.simulations

    def _report(self, position: Position) -> dict[str, Any]:
        with self._lock:
            root, lines = self._analysis.node(()), self._analysis.lines()
        values = {"values": root.values} if position.game.value_shape else {}
        lines = [replace(line, moves=line.moves[:MOST_MOVES]) for line in lines[:MOST_LINES]]
        found = [
            {**vars(line), "word": position.format(line.action), "words": words_of(position, line.moves)}
            for line in lines
        ]
        return {
            "simulations": root.visits, "value": root.value, "proven": root.proven, "room": self.room, "lines": found,
            **values,
        }  # fmt: skip

    def look(self, path: tuple[int, ...]) -> TreeNode:
        """The node that some actions lead to from the root. Raises InputError for a node that the tree has not."""
        with self._lock:
            try:
                return self._analysis.node(path)
            except KeyError:
                raise InputError("the search has not visited this position: let it go on, or go back") from None


class Trees(dict[tuple[object, int], Grown]):
    """The trees of all viewers, by the viewer and the side; beyond MOST_TREES the one that is longest unused goes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def put(self, viewer: object, side: int, tree: Grown) -> None:
        """Keeps a tree."""
        with self._lock:
            self.pop((viewer, side), None)
            self[viewer, side] = tree
            if len(self) > MOST_TREES:
                del self[next(iter(self))]

    def forget(self, viewer: object) -> None:
        """Drops the trees of a viewer who has left."""
        with self._lock:
            for key in [key for key in self if key[0] is viewer]:
                del self[key]


def policy_of(seat: Seat, generation: int | None, position: Position) -> dict[str, Any]:
    """The opinion of a contestant's network without a search: its policy and value. Raises InputError."""
    if position.terminal:
        raise IllegalAction("the game is over at this position, so a net has no opinion of it")
    if position.chances:
        raise IllegalAction("a die is due at this position, so a net has no opinion of it")
    evaluate, _ = seat.evaluate(generation)
    if not isinstance(evaluate, Evaluator):
        raise InputError(f"{seat.title} has no network, so it has no policy without a search")
    plain = Evaluator(evaluate.kernels, evaluate.net, 0)
    with on_one_thread(evaluate.net):
        priors, values = plain(position.state[None].copy(), position.legal_mask[None].copy())
    shares = priors[0] / max(1e-9, float(priors[0].sum()))
    return {
        "value": round(float(values.flat[0]), 4),
        "policy": [
            {"action": action, "word": position.format(action), "prior": round(float(shares[action]), 4)}
            for action in sorted(position.legal_actions, key=lambda action: -shares[action])
        ],
    }


# --- a review ---


def first_score(value: float, at: Position) -> float:
    """The expected score of the first player, 0 to 1, of a `value` for the mover; with the points so far, if any."""
    total = gained(at) + (value if at.to_play == 0 else -value)
    return round((1 + min(max(total, -1.0), 1.0)) / 2, 4)


def review(
    position: Position,
    analysis: Analysis | None,
    simulations: int,
    results: Callable[[Position], list[dict[str, Any]]],
    stop: Stop,
) -> Iterator[dict[str, Any]]:
    """A report for every position of the game, in order, by which the page judges the moves.

    It has the position's `value`, the expected score of the first player from 0 to 1 (exact at the end of the game,
    None without an `analysis`), the move that was played there, and the exact `results`. Where a die is due, the value
    is that of the move before, and the row is `rolled`. In a game for more than two a row has the `values` of all
    players, from -1 to 1, in place of the `value`.
    """
    if position.ply > MOST_PLIES:
        raise InputError(f"a game of more than {MOST_PLIES} plies is too long for a review")
    before = position.start
    moves, many = dict[int, float | None](), bool(position.game.value_shape)
    each: tuple[float, ...] | None = None
    for ply, at in enumerate(position.history):
        row: dict[str, Any] = {"ply": ply, "mover": at.to_play, "value": None}
        if at.terminal:
            row["value"], each = first_score(0.0, at), values_at_end(at)
        elif at.chances:
            row["rolled"], value = True, moves.get(position.actions[ply - 1]) if ply else None
            row["value"] = None if value is None else first_score(value, before)
            moves = {}  # what a second die shows is no move
        elif analysis is not None:
            with analysis.on_one_thread():
                analysis.begin(at)
                while analysis.simulations < simulations and not analysis.finished and not stop.is_set():
                    analysis.step()
            node = analysis.node()
            row["value"], moves = first_score(node.value, at), {edge.action: edge.value for edge in node.edges}
            each, before = node.values, at
        if stop.is_set():
            return
        if many:
            row |= {"value": None, "values": each and [round(value, 4) for value in each]}
            each = None
        if ply < position.ply:
            action = position.actions[ply]
            row |= {"action": action, "word": at.format(action), "results": results(at)}
            if many and analysis is not None and not at.chances:
                with contextlib.suppress(KeyError):  # the search has not come there
                    each = analysis.node((action,)).values  # in case a die is due
        yield {"rows": [row], "of": position.ply + 1, "more": ply < position.ply}
