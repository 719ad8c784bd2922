"""Game classes with the interface of alpha-zero-general, unmodified: `--game PATH/TO/Module.py:ClassName`.

Such a class has a board, player 1 or -1, and the methods below; arguments of its constructor follow in brackets, as in
`othello/OthelloGame.py:OthelloGame(6)`. It runs at Python speed. Errors in the class are reported with their line.
"""

from __future__ import annotations

import contextlib
import copy
import math
import random
import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from alphazero.catalogue.user_code import describe
from alphazero.errors import GameError, quote, warn_once
from alphazero.game.board import Board, Piece
from alphazero.game.game import Position
from alphazero.game.python_game import PythonGame
from alphazero.game.views import grid_board

METHODS = (
    "getInitBoard", "getBoardSize", "getActionSize", "getNextState", "getValidMoves", "getGameEnded",
    "getCanonicalForm", "getSymmetries", "stringRepresentation",
)  # fmt: skip
PLIES_PER_ACTION, LEAST_PLIES, MOST_PLIES = 4, 256, 2048
"""A game may last so many plies for each of its actions or cells; the interface does not say how long games are."""
DRAW = 0.5
"""`getGameEnded` gives 1 or -1 for a win or a loss, 0 while the game goes on, and something small for a draw."""
GAMES_TO_TELL = 30
"""Random games that show whether the end of a game is told to its mover alone."""
LOOKED_AHEAD = 4
"""Plies within which the boards of a game must differ for its two players, if they ever do."""


def missing(cls: type) -> list[str]:
    """The methods of the interface that a class lacks; it may inherit the others."""
    return [name for name in METHODS if not callable(getattr(cls, name, None))]


class Turn(NamedTuple):
    """A position. Its boards are arrays or lists, or objects that `np.asarray` turns into arrays."""

    board: Any
    player: int
    """The player to move, 1 or -1."""
    canonical: Any
    """The board as the player to move sees it."""


class _Asked:
    """The user's object, which is asked by one thread at a time, and whose answers are held to the interface."""

    def __init__(self, made: Any, name: str):
        self.made, self.name = made, name
        self._calling = threading.Lock()  # the class may keep a board of its own while it computes

    def call(self, method: str, *arguments: Any) -> Any:
        """The answer to copies of the arguments, which the class may change."""
        try:
            with self._calling:
                return getattr(self.made, method)(*map(_copied, arguments))
        except Exception as error:
            raise GameError(f"{self.name}: {method} fails: {describe(error)}") from error

    def numbers(self, method: str, board: Any) -> np.ndarray:
        """The board as an array of two or three dimensions; a board of one is folded as getBoardSize says, or a row."""
        with contextlib.suppress(ValueError):  # rows of different lengths
            numbers = np.asarray(board)
            if numbers.ndim in (2, 3) and numbers.dtype.kind in "biuf":
                return numbers
            if numbers.ndim == 1 and numbers.dtype.kind in "biuf":
                with contextlib.suppress(TypeError, ValueError):  # its size is not two numbers, or another one
                    rows, columns = self.call("getBoardSize")
                    return numbers.reshape(int(rows), int(columns))
                return numbers[None]
        wanted = "an array of numbers, of one to three dimensions, or an object whose `__array__` gives one"
        raise self.fault(method, f"must give {wanted}, not {quote(board, 60)}")

    def fault(self, method: str, what: str) -> GameError:
        """The error that says what is wrong with an answer, and where the user has written the method."""
        code = getattr(getattr(self.made, method), "__code__", None)
        where = f" ({code.co_filename}, line {code.co_firstlineno})" if code else ""
        return GameError(" ".join(f"{self.name}: {method} {what}{where}".split()))


class GeneralGame(PythonGame):
    """Wraps one instance; `name` is what it is called on the command line."""

    name = "general"
    too_long = "the bound is ours, since such classes name none: let getGameEnded call a longer game a draw, as by 1e-4"

    def __init__(self, wrapped: Any, name: str):
        self.wrapped, self._asked = wrapped, _Asked(wrapped, name)
        self.name = name  # type: ignore[misc]
        # some classes draw the start by lot, and every process must have the same one
        other, self._start = (_drawn(seed, lambda: self._asked.call("getInitBoard")) for seed in (1, 0))
        board, other = (self._asked.numbers("getInitBoard", each) for each in (self._start, other))
        if not np.array_equal(board, other):
            warn_once(f"{self.name}: getInitBoard draws the start by lot; here all games begin with the same one")
        shape = self._shape = board.shape
        # of three dimensions the first is that of planes if it is the smaller end, else the last
        self._axis = 0 if len(shape) == 3 and shape[0] < shape[2] else 2
        layers, height, width = np.moveaxis(board, self._axis, 0).shape if len(shape) == 3 else (1, *shape)
        size = self._asked.call("getActionSize")
        if not isinstance(size, int | float | np.integer) or not size >= 1 or size % 1:
            raise self._asked.fault("getActionSize", f"must give a whole number above 0, not {quote(size, 100)}")
        self.num_actions = int(size)
        self.max_plies = max(LEAST_PLIES, min(MOST_PLIES, PLIES_PER_ACTION * max(self.num_actions, height * width)))
        # the board's numbers, own, the opponent's, and a plane of ones, which tells a convolution where the board ends
        self.observation_shape = (3 * layers + 1, height, width)
        self._has_views = self._find_views()
        self.prepare()
        self.symmetries = self._find_symmetries()

    def _find_views(self) -> bool:
        """Each player has a view of the board by getCanonicalForm; else it gives one board for both."""
        turn = self.begin()
        for _ in range(LOOKED_AHEAD):
            other = self._asked.numbers("getCanonicalForm", self._view_of_other(turn))
            if not np.array_equal(self._asked.numbers("getCanonicalForm", turn.canonical), other):
                return True
            if not (actions := self.allowed(turn)) or self._ended_for(turn.board, turn.player):
                break
            turn = self.after(turn, actions[0])
        return False

    # --- the rules, as alpha-zero-general's own search asks for them ---

    def begin(self) -> Turn:
        return self._turn(self._start, 1)

    def after(self, position: Turn, action: int) -> Turn:
        answer = self._asked.call("getNextState", position.board, position.player, action)
        with contextlib.suppress(TypeError, ValueError):  # not two values, or an array for the player
            board, player = answer
            if player in (1, -1):
                return self._turn(board, int(player))
        wanted = "must give a board and the next player, 1 or -1"
        raise self._asked.fault("getNextState", f"{wanted}, not {quote(answer, 200)}")

    def allowed(self, position: Turn) -> list[int]:
        valid = np.asarray(self._asked.call("getValidMoves", position.canonical, 1))
        if valid.shape != (self.num_actions,) or valid.dtype.kind not in "biuf":
            wanted = f"must give {self.num_actions} numbers, as getActionSize says"
            raise self._asked.fault("getValidMoves", f"{wanted}, not an array of {valid.shape} {valid.dtype}")
        return np.flatnonzero(valid).tolist()

    def over(self, position: Turn) -> bool:
        return self._ended(position) != 0

    def result(self, position: Turn) -> float:
        return float(np.sign(value)) if abs(value := self._ended(position)) > DRAW else 0.0

    def player(self, position: Turn) -> int:
        return 0 if position.player == 1 else 1

    def planes(self, position: Turn) -> np.ndarray:
        board = self._asked.numbers("getCanonicalForm", position.canonical).astype(np.float32)
        if board.shape != self._shape:
            wanted = f"must give boards of one shape, {self._shape}"
            raise self._asked.fault("getCanonicalForm", f"{wanted}, not {board.shape}")
        board = np.moveaxis(board, self._axis, 0) if board.ndim == 3 else board[None]
        mover = 1 if self._has_views else position.player  # where both players see one board, this tells who moves
        ones = np.full((1, *board.shape[1:]), mover, np.float32)
        return np.concatenate([board, board > 0, board < 0, ones], dtype=np.float32)

    def _turn(self, board: Any, player: int) -> Turn:
        board = _copied(board)
        return Turn(board, player, self._asked.call("getCanonicalForm", board, player))

    def _view_of_other(self, turn: Turn) -> Any:
        return self._asked.call("getCanonicalForm", turn.board, -turn.player)

    def _ended(self, turn: Turn) -> float:
        """The value of the game's end for the player to move; 0 while the game goes on.

        getGameEnded gets the mover's canonical board and player 1, as in that project's own search: some classes always
        answer for player 1. Where both players have the same canonical board, it gets the board and the mover.
        """
        if not self._has_views:
            return self._ended_for(turn.board, turn.player)
        value = self._ended_for(turn.canonical, 1)
        if abs(value) <= DRAW:
            return value
        other = self._ended_for(self._view_of_other(turn), 1)
        if abs(other) <= DRAW or np.sign(value) != np.sign(other) or self._tells_the_mover_alone:
            return value
        told = f"getGameEnded says that both players have {'won' if value > 0 else 'lost'}"
        warn_once(f"{self.name}: {told}; this counts as a draw, which should be as 1e-4")
        return DRAW / 2

    @cached_property
    def _tells_the_mover_alone(self) -> bool:
        """getGameEnded looks at who is to move, who has lost without a move: some game that is over goes on for the
        other player. Else two players who have both lost are a draw."""
        rng = np.random.default_rng(0)
        for _ in range(GAMES_TO_TELL):
            turn = self.begin()
            for _ in range(self.max_plies):
                if self._ended_for(turn.canonical, 1):
                    if self._ended_for(self._view_of_other(turn), 1) == 0:
                        return True
                    break
                turn = self.after(turn, int(rng.choice(self.allowed(turn))))
        return False

    def _ended_for(self, board: Any, player: int) -> float:
        value = np.asarray(answer := self._asked.call("getGameEnded", board, player))
        if value.size != 1 or value.dtype.kind not in "biuf" or np.isnan(value).any():
            raise self._asked.fault("getGameEnded", f"must give a number, not {quote(answer, 100)}")
        return float(value.item())

    # --- symmetries ---

    def _find_symmetries(self) -> tuple[np.ndarray, np.ndarray]:
        """The permutations that getSymmetries makes of a board of different numbers; else the identity alone."""
        cells, actions = np.arange(math.prod(self.observation_shape[1:])), np.arange(self.num_actions)
        if len(self._shape) != 2:
            return cells[None], actions[None]
        first = tuple(cells.tolist()), tuple(actions.tolist())
        try:  # not all classes take such boards; without symmetries they learn a little slower
            images = self.wrapped.getSymmetries(cells.reshape(np.shape(np.asarray(self._start))), actions.tolist())
            found = {tuple(tuple(np.ravel(part).tolist()) for part in (image, policy)) for image, policy in images}
            if first not in found or any(tuple(map(sorted, pair)) != tuple(map(list, first)) for pair in found):
                raise ValueError("it must permute boards and policies, and give them as they are, too")
        except Exception as error:
            told = "the symmetries are not used, since getSymmetries fails for a board of different numbers"
            warn_once(f"{self.name}: {told}: {describe(error)}")
            return cells[None], actions[None]
        rows = [first, *sorted(found - {first})]
        return np.array([image for image, _ in rows], np.int64), np.array([policy for _, policy in rows], np.int64)

    # --- for people ---

    @cached_property
    def board(self) -> Board:
        """A square for each number of a board of two dimensions; other boards have no cells."""
        return grid_board(self) if len(self._shape) == 2 else Board()

    def pieces(self, position: Position) -> list[Piece]:
        """Stones by the sign of the numbers; numbers other than 1 and -1 are written on the stones."""
        if not self.board.cells:
            return []
        numbers = enumerate(np.asarray(self.object_of(position.state).board).ravel().tolist())
        written = [(cell, number, "" if abs(number) == 1 else f"{abs(number):g}") for cell, number in numbers if number]
        return [Piece(cell, int(number < 0), text=text) for cell, number, text in written]

    def render(self, state: np.ndarray, to_play: int) -> str:
        board = self._asked.numbers("getNextState", self.object_of(state).board)
        if board.ndim != 2 or set(np.unique(board)) - {-1, 0, 1}:
            return str(board)
        return "\n".join(" ".join(".XO"[int(cell)] for cell in row) for row in board)


def _copied(board: Any) -> Any:
    return np.array(board) if isinstance(board, np.ndarray) else copy.deepcopy(board)


def _drawn(seed: int, make: Callable[[], Any]) -> Any:
    """The answer where the global generators of Python and numpy give the numbers of this seed."""
    before, numpy_before = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        return make()
    finally:
        random.setstate(before)
        np.random.set_state(numpy_before)
