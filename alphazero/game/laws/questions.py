"""Questions to a game about its laws, by plain Python, and the sentences about answers that are none."""

from __future__ import annotations

import hashlib
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from alphazero.errors import GameError, LawBroken, quote
from alphazero.game.game import Game
from alphazero.game.rules import Rules

STUCK = 20.0
"""Seconds after which a rule that has not come back is taken for an endless loop."""
WRITES = lambda value: value is None, "write into the array that it is given and return nothing"
ANSWERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    **dict.fromkeys(("init", "legal", "step", "observe", "transform"), WRITES),
    "settle": WRITES,
    "chance": (
        lambda value: isinstance(value, int | np.integer) and value >= 0,
        "give the number of outcomes, 0 or more",
    ),
    "is_terminal": (lambda value: value is not None, "give True or False, so it needs a `return`"),
    "terminal_value": (
        lambda value: isinstance(value, int | float | np.number),
        "give -1, 0 or 1 for the player to move",
    ),
    "returns": WRITES,
    "heuristic": (
        lambda value: isinstance(value, int | float | np.number) and -1 < value < 1,
        "give a number between -1 and 1 for the player to move",
    ),
}
"""The rules: a test of each one's answer, and what it must do."""


class _Stuck(BaseException):
    """The author's code has not come back."""


class Facts(NamedTuple):
    """The answers of the rules about one position, by the name of the rule."""

    is_terminal: bool
    to_play: int
    terminal_value: tuple[float, ...]
    """One number, on the scale from -1 to 1, or in a game for more than two what `returns` writes; zeros where the game
    goes on."""
    legal: Any
    """`bool[A]`, all false where the game is over; kept as a digest."""
    observe: Any
    """`float32[P, H, W]`; kept as a digest."""

    def kept(self) -> Facts:
        """The same in little memory, to be compared with others of its kind."""
        return self._replace(legal=_digest(self.legal), observe=_digest(self.observe))

    def difference(self, other: Facts) -> str:
        """The first rule that says something else of another position; empty if none does."""
        pairs = zip(self._fields, self, other, strict=True)
        return next((name for name, ours, theirs in pairs if not np.array_equal(ours, theirs)), "")

    def image(self, cells: np.ndarray, actions: np.ndarray) -> Facts:
        """The answers due for the image by a symmetry, which is these permutations."""
        planes = self.observe.reshape(len(self.observe), -1)[:, cells]
        return self._replace(legal=self.legal[actions], observe=planes.reshape(self.observe.shape))


class Questions:
    """Asks a game about its laws, by plain Python, and says which one is broken."""

    def __init__(self, game: Game):
        self.game, self.busy = game, 0.0
        """Seconds spent in the rules."""
        self.line: list[int] = []
        """The actions that led to the position that is being checked."""
        self.visited: list[tuple[np.ndarray, int, Facts]] = []
        """The positions of all random games, their movers, and the facts as they were when each was reached."""
        self._dice = 0
        """Dice that were due so far."""
        self._when_won: tuple[float, ...] = ()
        """In a game for more than two, the results when somebody has won alone, the winner's first."""
        self._asked: float | None = None
        """Since when the author's code has been at work; None when it is not."""

    @property
    def rules(self) -> Rules:
        return self.game.plain_rules

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Interrupts code that does not come back, so that an endless loop gets its sentence, too; not on Windows."""

        def look(number: int, frame: FrameType | None) -> None:
            if self._asked is not None and time.perf_counter() - self._asked > STUCK:
                raise _Stuck

        if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGALRM, look)
        signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def fail(self, law: str, state: np.ndarray | None = None, player: int = 0) -> LawBroken:
        """The error that says which law is broken, and where."""
        name = getattr(self.game, "name", type(self.game).__name__)
        return LawBroken(f"{name}: {law}", "" if state is None else self.draw(state, player))

    def must(self, holds: Any, law: str, state: np.ndarray | None = None, player: int = 0) -> None:
        """Raises LawBroken with that law unless it holds."""
        if not holds:
            raise self.fail(law, state, player)

    def call(self, name: str, work: Callable[[], Any], state: np.ndarray | None = None, player: int = 0) -> Any:
        """The answer of the author's code; LawBroken, which names it, if it raises or does not come back."""
        before, self._asked = None if state is None else state.copy(), time.perf_counter()
        try:
            with np.errstate(all="ignore"):
                return work()
        except GameError as error:  # a wrapped game says itself what is wrong
            raise LawBroken(str(error), "" if before is None else self.draw(before, player)) from error
        except _Stuck:
            law = f"`{name}` has not come back for {STUCK:.0f} s: does a loop in it end?"
            raise self.fail(law, before, player) from None
        except Exception as error:
            raise self.fail(_raised(name, error, self.game), before, player) from error
        finally:
            self._asked = None

    def ask(self, name: str, state: np.ndarray, player: int, *arguments: Any) -> Any:
        """A rule's answer on `state`, which it must leave alone unless it is to change it."""
        before, begin = state.copy(), time.perf_counter()
        value = self.call(name, lambda: getattr(self.rules, name)(state, *arguments), state, player)
        self.busy += time.perf_counter() - begin
        players = self.game.num_players
        law = f"give the number of a player, 0 to {players - 1}, since `num_players` is {players}"
        turn = lambda value: value in range(players), law
        is_right, law = turn if name == "to_play" else ANSWERS[name]
        if not is_right(value):
            raise self.fail(f"`{name}` must {law}; it gave {quote(value, 60)}", before, player)
        if name not in ("step", "init", "transform", "settle") and not np.array_equal(before, state):
            raise self.fail(f"`{name}` must leave the state alone, but changed it", before, player)
        return value

    def one_word(self, name: str, text: Any, state: np.ndarray, player: int) -> None:
        """Raises LawBroken unless `text` has no spaces, so that it can be read again."""
        law = f"`{name}` must give one printable word, not {quote(text)}"
        self.must(isinstance(text, str) and text.split() == [text] and text.isprintable(), law, state, player)

    def draw(self, state: np.ndarray, player: int) -> str:
        """The position for people, and the way to it, as far as the author's drawing and notation work."""
        try:
            drawn = self.game.render(state.copy(), player)
        except Exception:  # the drawing may be what is wrong; the words are not
            drawn = " ".join(f"{int(word):x}" for word in state)
        played = f"after {self.write(self.line)}\n" if self.line else ""
        return f"{played}{self.game.turn(player)}:\n{drawn}"

    def write(self, line: list[int]) -> str:
        """The actions from the start position on, in the game's notation as far as that works."""
        words, state = [], np.zeros(self.game.state_words, np.uint64)
        try:
            self.rules.init(state)
            probabilities = np.zeros(self.game.num_outcomes)
            for action in line:
                due = self.rules.chance is not None and self.rules.chance(state, probabilities) > 0
                write = self.game.format_outcome if due else self.game.format_action
                words.append(str(write(action, state.copy())))
                (self.rules.settle if due else self.rules.step)(state, action)  # type: ignore[misc]
        except Exception:  # the notation, or the rules, may be what is wrong; the numbers are not
            return " ".join(map(str, line))
        return " ".join(words)


def _digest(values: np.ndarray) -> bytes:
    return hashlib.blake2b(values.tobytes(), digest_size=16).digest()


def _raised(name: str, error: Exception, game: Game) -> str:
    """The sentence about code that has raised `error`, with its line and the usual reason."""
    ours = __file__, np.errstate.__call__.__code__.co_filename
    places = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename not in ours]
    where = f" in line {places[-1].lineno} of {Path(places[-1].filename).name}" if places else ""
    sizes = (f"{size} = {getattr(game, size)}" for size in ("num_actions", "state_words", "observation_shape"))
    word = "a word has 64 bits and no sign: a bit is np.uint64(1) << np.uint64(n), not of Python's numbers"
    hints = {IndexError: f" (the sizes are {', '.join(sizes)})", OverflowError: f" ({word})"}
    hint = hints.get(type(error), "")
    return f"`{name}` raised {' '.join(f'{type(error).__name__}: {error}'.split())}{where}{hint}"
