"""Game classes with the interface of alpha-zero-general, unmodified: `--game PATH/TO/Module.py:ClassName`.

Such a class has a board, player 1 or -1, and the methods below; arguments of its constructor follow in brackets, as in
`othello/OthelloGame.py:OthelloGame(6)`. It runs at the speed of Python. What it gets wrong is said, not guessed at.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from alphazero.errors import GameError
from alphazero.game.python_game import PythonGame

logger = logging.getLogger(__name__)

METHODS = (
    "getInitBoard", "getBoardSize", "getActionSize", "getNextState", "getValidMoves", "getGameEnded",
    "getCanonicalForm", "getSymmetries", "stringRepresentation",
)  # fmt: skip
PLIES_PER_ACTION = 4
"""A game may last so many plies for each of its actions and cells; the interface has no word for it."""
LEAST_PLIES, MOST_PLIES = 256, 2048
DRAW = 0.5
"""`getGameEnded` gives 1 or -1 for a win or a loss, 0 while the game goes on, and something small for a draw."""


def fits(cls: type) -> bool:
    """The class has the methods of the interface, and is not only it."""
    return all(callable(getattr(cls, name, None)) for name in METHODS) and any(
        name in vars(cls) for name in METHODS[3:]
    )


class Node(NamedTuple):
    """A board and who moves there, 1 or -1."""

    board: np.ndarray
    player: int


class GeneralGame(PythonGame[Node]):
    """Wraps one instance; `name` is what it is called on the command line."""

    name = "general"

    def __init__(self, wrapped: Any, name: str):
        self.wrapped = wrapped
        self.name = name  # type: ignore[misc]
        self._calling = threading.Lock()  # the class may keep a board of its own while it computes
        self._warned = False
        shape = np.shape(self._call("getInitBoard"))
        if len(shape) not in (2, 3):
            raise self._fault("getInitBoard", f"must give an array of rows and columns, not one of shape {shape}")
        # of three dimensions the first is that of planes if it is the smaller end, else the last
        self._planes_first = len(shape) == 3 and shape[0] < shape[2]
        layers, height, width = (1, *shape) if len(shape) == 2 else np.moveaxis(np.empty(shape), self._axis, 0).shape
        self.num_actions = int(self._call("getActionSize"))
        plies = PLIES_PER_ACTION * max(self.num_actions, height * width)
        self.max_plies = max(LEAST_PLIES, min(MOST_PLIES, plies))
        # the board's numbers, own, the opponent's, and a plane of ones, which tells a convolution where the board ends
        self.observation_shape = (3 * layers + 1, height, width)
        self.prepare()

    # --- the rules, as alpha-zero-general's own arena asks for them ---

    def begin(self) -> Node:
        return Node(np.array(self._call("getInitBoard")), 1)

    def after(self, position: Node, action: int) -> Node:
        answer = self._call("getNextState", position.board.copy(), position.player, action)
        if not (isinstance(answer, tuple) and len(answer) == 2) or answer[1] not in (1, -1):
            raise self._fault("getNextState", f"must give a board and the next player, 1 or -1, not {answer!r:.200}")
        return Node(np.array(answer[0]), int(answer[1]))

    def allowed(self, position: Node) -> Iterable[int]:
        valid = np.asarray(self._call("getValidMoves", self._canonical(position), 1))
        if valid.shape != (self.num_actions,):
            raise self._fault(
                "getValidMoves", f"must give {self.num_actions} numbers, as getActionSize says, not {valid.shape}"
            )
        return [int(action) for action in np.flatnonzero(valid)]

    def over(self, position: Node) -> bool:
        return self._ended(position) != 0

    def result(self, position: Node) -> float:
        value = self._ended(position)
        return float(np.sign(value)) if abs(value) > DRAW else 0.0

    def player(self, position: Node) -> int:
        return 0 if position.player == 1 else 1

    def planes(self, position: Node) -> np.ndarray:
        return self._planes(self._canonical(position))

    @property
    def _axis(self) -> int:
        """Of the planes of a board of three dimensions."""
        return 0 if self._planes_first else 2

    def _planes(self, canonical: np.ndarray) -> np.ndarray:
        board = np.asarray(canonical, np.float32)
        board = np.moveaxis(board, self._axis, 0) if board.ndim == 3 else board[None]
        ones = np.ones((1, *board.shape[1:]), np.float32)
        return np.concatenate([board, board > 0, board < 0, ones], dtype=np.float32)

    def _canonical(self, position: Node) -> np.ndarray:
        return np.asarray(self._call("getCanonicalForm", position.board.copy(), position.player))

    def _ended(self, position: Node) -> float:
        """What the game's end is worth to the player to move; 0 while it goes on."""
        value = self._value("getGameEnded", position.board.copy(), position.player)
        if value == 0:
            return 0.0
        other = self._value("getGameEnded", position.board.copy(), -position.player)
        if abs(value) > DRAW and abs(other) > DRAW and np.sign(value) == np.sign(other):
            if not self._warned:
                self._warned = True
                word = "won" if value > 0 else "lost"
                logger.warning(
                    "%s: getGameEnded says that both players have %s; this counts as a draw, which should be a small "
                    "number, as 1e-4", self.name, word,
                )  # fmt: skip
            return DRAW / 2
        return value

    # --- asking the wrapped class ---

    def _call(self, method: str, *arguments: Any) -> Any:
        try:
            with self._calling:
                return getattr(self.wrapped, method)(*arguments)
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise self._fault(method, f"raised {reason:.300}") from error

    def _value(self, method: str, *arguments: Any) -> float:
        answer = self._call(method, *arguments)
        try:
            return float(answer)
        except (TypeError, ValueError):
            raise self._fault(method, f"must give a number, not {answer!r:.100}") from None

    def _fault(self, method: str, what: str) -> GameError:
        return GameError(" ".join(f"{self.name}: {method} {what}".split()))

    # --- symmetries ---

    @property
    def symmetries(self) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[override]
        return self._symmetries

    def prepare(self) -> None:
        super().prepare()
        self._symmetries = self._find_symmetries()

    def _find_symmetries(self) -> tuple[np.ndarray, np.ndarray]:
        """What getSymmetries does to a board of different numbers; the identity alone if that is no permutation."""
        _, height, width = self.observation_shape
        cells, actions = np.arange(height * width), np.arange(self.num_actions)
        identity = cells[None], actions[None]
        board = np.array(self._call("getInitBoard"))
        if board.ndim != 2:
            return identity
        try:
            images = self.wrapped.getSymmetries(cells.reshape(height, width), actions.tolist())
            found = {(tuple(np.ravel(image).tolist()), tuple(np.ravel(policy).tolist())) for image, policy in images}
        except Exception:  # not all classes take such boards; without symmetries they learn a little slower
            return identity
        first = tuple(cells.tolist()), tuple(actions.tolist())
        whole = all(sorted(image) == list(first[0]) and sorted(policy) == list(first[1]) for image, policy in found)
        if not whole or first not in found:
            return identity
        rows = [first, *sorted(found - {first})]
        return np.array([image for image, _ in rows], np.int64), np.array([policy for _, policy in rows], np.int64)

    def render(self, state: np.ndarray, to_play: int) -> str:
        board = self.object_of(state).board
        if board.ndim != 2 or set(np.unique(board)) - {-1, 0, 1}:
            return str(board)
        marks = {1: "X", -1: "O", 0: "."}
        return "\n".join(" ".join(marks[int(cell)] for cell in row) for row in board)
