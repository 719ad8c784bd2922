"""The laws of `Game`, each checked at one position of plain Python rules, and said in a sentence when it is broken."""

from __future__ import annotations

import _thread
import hashlib
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from alphazero.errors import GameError, LawBroken, quote
from alphazero.game.game import Game
from alphazero.game.rules import Rules

STUCK = 20.0
"""Seconds after which a rule that has not come back is taken for an endless loop."""
WRITERS = ("init", "legal", "step", "observe", "transform")
"""The rules that write into an array."""


class Answers(NamedTuple):
    """The rules' answers at one position, to be compared with others."""

    observation: bytes
    """A digest of the planes."""
    legal_actions: bytes
    """A digest of the mask; nothing where the game is over."""
    result: float | None
    """The result for the player to move; None where the game goes on."""


class Laws:
    """The laws of one game, by plain Python."""

    def __init__(self, game: Game):
        self.game = game
        self.busy = 0.0
        """Seconds spent in the rules."""
        self.line: list[int] = []
        """The actions that led to the position that is being checked."""
        self.visited: list[tuple[np.ndarray, int]] = []
        """The positions of all random games, with their movers."""
        self.first_answers: list[Answers] = []
        """The rules' answers at every visited position, when it was reached."""
        self._asked: float | None = None
        """Since when a rule has been at work; None between rules."""
        self._stuck = False

    @property
    def rules(self) -> Rules:
        """The rules as plain Python, once `declaration` has found that there are any."""
        return self.game.plain_rules

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Interrupts a rule that does not come back, so that an endless loop gets its sentence, too."""
        done = threading.Event()

        def watch() -> None:
            while not done.wait(0.5):
                since = self._asked
                if since is not None and time.perf_counter() - since > STUCK:
                    self._stuck = True
                    _thread.interrupt_main()
                    return

        if threading.current_thread() is not threading.main_thread():  # only the main thread can be interrupted
            yield
            return
        # a program in the background may ignore interrupts; to those who wait for signals, this one would be Ctrl-C
        before, listener = signal.signal(signal.SIGINT, signal.default_int_handler), signal.set_wakeup_fd(-1)
        threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            done.set()
            signal.signal(signal.SIGINT, before)
            signal.set_wakeup_fd(listener, warn_on_full_buffer=False)

    def fail(self, law: str, state: np.ndarray | None = None, player: int = 0, note: str = "") -> LawBroken:
        """The error that says which law is broken, and where."""
        drawing = "" if state is None else self._draw(state, player)
        name = getattr(self.game, "name", type(self.game).__name__)
        return LawBroken(f"{name}: {law}{f' ({note})' if note else ''}", drawing)

    def _draw(self, state: np.ndarray, player: int) -> str:
        try:
            drawn = self.game.render(state.copy(), player)
        except Exception:  # the drawing may be what is wrong; the words are not
            drawn = " ".join(f"{int(word):x}" for word in state)
        played = f"after {self.write(self.line)}\n" if self.line else ""
        return f"{played}player {player + 1} to move:\n{drawn}"

    def write(self, line: list[int]) -> str:
        """The actions from the start position on, in the game's notation as far as that works."""
        words, state = [], np.zeros(self.game.state_words, np.uint64)
        try:
            with np.errstate(all="ignore"):
                self.rules.init(state)
                for action in line:
                    words.append(str(self.game.format_action(action, state.copy())))
                    self.rules.step(state, action)
        except Exception:  # the notation, or the rules, may be what is wrong; the numbers are not
            return " ".join(str(action) for action in line)
        return " ".join(words)

    def ask(self, name: str, state: np.ndarray, player: int, *arguments: Any) -> Any:
        """Calls a rule on `state`, which it must leave alone unless it is `step`, `init` or `transform`."""
        before = state.copy()
        begin = self._asked = time.perf_counter()
        try:
            with np.errstate(all="ignore"):
                value = getattr(self.rules, name)(state, *arguments)
        except GameError as error:  # a wrapped game says itself what is wrong
            raise LawBroken(str(error), self._draw(before, player)) from error
        except KeyboardInterrupt:
            if not self._stuck:  # it was the user
                raise
            law = f"`{name}` has not come back for {STUCK:.0f} s: does a loop in it end?"
            raise self.fail(law, before, player) from None
        except Exception as error:
            raise self.fail(raised(name, error, self.game), before, player) from error
        finally:
            self._asked = None
        self.busy += time.perf_counter() - begin
        if name in WRITERS and value is not None:
            law = f"`{name}` must write into the array that it is given and return nothing"
            raise self.fail(law, before, player, f"it returned {quote(value, 60)}")
        if name not in ("step", "init", "transform") and not np.array_equal(before, state):
            raise self.fail(f"`{name}` must leave the state alone, but changed it", before, player)
        return value

    def declaration(self) -> None:
        """The sizes and the rules that the class declares."""
        game = self.game
        shape, rules = getattr(game, "observation_shape", None), getattr(game, "rules", None)
        sizes = [getattr(game, name, None) for name in ("num_actions", "state_words", "max_plies")]
        if not isinstance(getattr(game, "name", None), str) or not game.name:
            raise self.fail('the class must have a `name`, the word for it on the command line, as name = "my_game"')
        if not all(map(_is_size, sizes)):
            raise self.fail(
                "`num_actions`, `state_words` and `max_plies` must be whole numbers above 0", note=str(sizes)
            )
        if not (isinstance(shape, tuple) and len(shape) == 3 and all(map(_is_size, shape))):
            law = "`observation_shape` must be a tuple of three whole numbers above 0: (planes, rows, columns)"
            raise self.fail(law, note=f"it is {quote(shape, 60)}")
        if not isinstance(rules, Rules):
            law = "`rules` must be a Rules of functions, as rules = Rules(init, legal, step, ...)"
            raise self.fail(law, note=f"it is {quote(rules, 60)}" if rules is not None else "there is none")
        for field in fields(Rules):
            rule = getattr(rules, field.name)
            if not callable(rule) and (rule is not None or field.default is MISSING):
                raise self.fail(f"the rule `{field.name}` must be a function, not {quote(rule, 60)}")

    def permutations(self) -> tuple[np.ndarray, np.ndarray]:
        """The declared permutations of cells and of actions."""
        game = self.game
        _, height, width = game.observation_shape
        try:
            found = game.symmetries
        except Exception as error:
            raise self.fail(raised("symmetries", error, game)) from error
        try:
            cells, actions = (np.asarray(part) for part in found)
        except (TypeError, ValueError) as error:
            law = "`symmetries` must be two arrays"
            law += f": rows of {height * width} cells, and rows of {game.num_actions} actions"
            raise self.fail(law) from error
        for part, size, what in ((cells, height * width, "cells"), (actions, game.num_actions, "actions")):
            if part.ndim != 2 or part.shape[1] != size or not 0 < len(part) == len(cells):
                raise self.fail(
                    f"`symmetries` must give a row of {size} {what} for each symmetry", note=str(part.shape)
                )
            if part.dtype.kind not in "iu":  # numpy takes no others for indices
                law = f"`symmetries` must give whole numbers for the {what}, as of dtype int64"
                raise self.fail(law, note=str(part.dtype))
            if not np.array_equal(np.sort(part, axis=1), np.tile(np.arange(size), (len(part), 1))):
                raise self.fail(f"`symmetries` must give permutations of the {what}")
            if not np.array_equal(part[0], np.arange(size)):
                raise self.fail("the first of the `symmetries` must be the identity")
        return cells, actions

    def start(self) -> tuple[np.ndarray, int]:
        """The start position, the same whatever was in memory before."""
        states = [np.full(self.game.state_words, filling, np.uint64) for filling in (0, 0x5A5A5A5A)]
        for state in states:
            self.ask("init", state, 0)
        if not np.array_equal(states[0], states[1]):
            raise self.fail("`init` must write every word of the state", states[0])
        return states[0], self.mover(states[0], 0)

    def mover(self, state: np.ndarray, alternating: int) -> int:
        if self.rules.to_play is None:
            return alternating
        player = self.ask("to_play", state, alternating)
        if player not in (0, 1):
            law = f"`to_play` must give 0 or 1, not {quote(player)}: a game has two players"
            raise self.fail(law, state, alternating)
        return int(player)

    def legal(self, state: np.ndarray, player: int) -> np.ndarray:
        """`bool[A]`, the same whatever was in it before."""
        masks = [np.full(self.game.num_actions, filling) for filling in (False, True)]
        for mask in masks:
            self.ask("legal", state, player, mask)
        if not np.array_equal(masks[0], masks[1]):
            action = int(np.flatnonzero(masks[0] != masks[1])[0])
            raise self.fail(f"`legal` must write every entry of the mask, but left entry {action} alone", state, player)
        if not masks[0].any():
            law = "a position that is not over must have a legal action"
            raise self.fail(law, state, player, "end the game there, or make passing an action")
        return masks[0]

    def observation(self, state: np.ndarray, player: int) -> np.ndarray:
        planes = np.zeros(self.game.observation_shape, np.float32)
        self.ask("observe", state, player, planes)
        if not np.isfinite(planes).all():
            plane, row, column = (int(i) for i in np.argwhere(~np.isfinite(planes))[0])
            law = f"`observe` must write finite numbers; plane {plane}, row {row}, column {column} is none"
            raise self.fail(law, state, player)
        return planes

    def value(self, state: np.ndarray, player: int) -> float:
        value = self.ask("terminal_value", state, player)
        if value not in (-1, 0, 1):
            raise self.fail(
                f"`terminal_value` must give -1, 0 or 1 for the player to move, not {quote(value)}", state, player
            )
        return float(value)

    def is_terminal(self, state: np.ndarray, player: int) -> bool:
        answers = [self.ask("is_terminal", state, player) for _ in range(2)]
        if answers[0] is None:
            raise self.fail("`is_terminal` must give True or False, not None: does it miss a `return`?", state, player)
        terminal = [bool(answer) for answer in answers]
        if terminal[0] != terminal[1]:
            raise self.fail("`is_terminal` must give the same answer each time for the same position", state, player)
        return terminal[0]

    def guess(self, state: np.ndarray, player: int) -> float:
        value = self.ask("heuristic", state, player)
        if not (isinstance(value, int | float | np.number) and -1 < value < 1):
            law = f"`heuristic` must give a number between -1 and 1 for the player to move, not {quote(value)}"
            raise self.fail(law, state, player)
        return float(value)

    def answers(self, state: np.ndarray, player: int) -> tuple[Answers, np.ndarray | None]:
        """All answers at a position, and the mask where the game is not over."""
        terminal, planes = self.is_terminal(state, player), self.observation(state, player)
        if terminal:
            return Answers(_digest(planes), b"", self.value(state, player)), None
        mask = self.legal(state, player)
        if self.rules.heuristic is not None:
            self.guess(state, player)
        return Answers(_digest(planes), _digest(mask), None), mask

    def step(self, state: np.ndarray, player: int, action: int) -> np.ndarray:
        """The state after an action, the same each time."""
        children = [state.copy() for _ in range(2)]
        for child in children:
            self.ask("step", child, player, action)
        if not np.array_equal(children[0], children[1]):
            law = f"`step` must do the same each time; action {self.format(action, state)} did not"
            raise self.fail(f"{law}: a game must be free of chance", state, player)
        if np.array_equal(children[0], state) and self.mover(children[0], 1 - player) == player:
            raise self.fail(
                f"`legal` allows {self.format(action, state)}, but `step` leaves the position as it is", state, player
            )
        return children[0]

    def random_game(self, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, int, Answers, np.ndarray | None]]:
        """Plays a random game; gives each position, its mover, the answers there, and the mask unless it is over."""
        self.line = []
        state, player = self.start()
        for ply in range(self.game.max_plies + 1):
            answers, mask = self.answers(state, player)
            self.visited.append((state, player))
            self.first_answers.append(answers)
            if mask is None and ply == 0:
                raise self.fail("the start position must not be over", state, player)
            yield state, player, answers, mask
            if mask is None:
                return
            action = int(rng.choice(np.flatnonzero(mask)))
            state = self.step(state, player, action)
            self.line = [*self.line, action]
            player = self.mover(state, 1 - player)
        game = self.game
        raise self.fail(f"a game must end within `max_plies` = {game.max_plies}", state, player, game.too_long)

    def both_move(self) -> None:
        """Each player has had a turn in the games that were played."""
        if not {player for _, player in self.visited} >= {0, 1}:
            law = "`to_play` must give both players their turns; one of them never moved: a game has two players"
            raise self.fail(law)

    def format(self, action: int, state: np.ndarray) -> str:
        try:
            return f"{self.game.format_action(action, state.copy())} ({action})"
        except Exception:  # as in `fail`
            return str(action)

    def drawing(self, state: np.ndarray, player: int) -> str:
        """The position as `render` draws it."""
        try:
            with np.errstate(all="ignore"):
                drawn = self.game.render(state.copy(), player)
        except Exception as error:
            raise self.fail(raised("render", error, self.game), state, player) from error
        if not isinstance(drawn, str):
            raise self.fail(f"`render` must give a text, not {quote(drawn, 60)}", state, player)
        return drawn

    def notation(self, state: np.ndarray, player: int, mask: np.ndarray) -> None:
        """Every legal action can be drawn, written and read."""
        texts: dict[str, int] = {}
        self.drawing(state, player)
        for action in (int(action) for action in np.flatnonzero(mask)):
            try:
                text = self.game.format_action(action, state.copy())
                read = self.game.parse_action(text, state.copy())
            except Exception as error:
                law = f"`format_action` and `parse_action` must be inverse to each other; action {action} raised"
                raise self.fail(f"{law} {type(error).__name__}: {error}", state, player) from error
            if not isinstance(text, str) or text.split() != [text] or not text.isprintable():
                law = f"`format_action` must give one printable word without spaces, not {quote(text)}"
                raise self.fail(law, state, player)
            if read != action or text in texts:
                other = texts.get(text, read)
                law = "`format_action` and `parse_action` must be inverse to each other"
                raise self.fail(f"{law}; {quote(text)} is {action} and {other}", state, player)
            texts[text] = action

    def words(self, line: list[int]) -> None:
        """A line of moves can be read back."""
        words = self.write(line).split()
        try:
            read = self.game.split_moves(" ".join(words))
        except Exception as error:
            raise self.fail(raised("split_moves", error, self.game)) from error
        if line and list(read) != words:
            odd = next((word for word, other in zip(words, read, strict=False) if word != other), words[-1])
            raise self.fail(f"`split_moves` must find the words of `format_action` in a line of moves, as {quote(odd)}")


def _digest(values: np.ndarray) -> bytes:
    return hashlib.blake2b(values.tobytes(), digest_size=16).digest()


def _is_size(value: Any) -> bool:
    return isinstance(value, int | np.integer) and bool(value > 0)


def raised(name: str, error: Exception, game: Game) -> str:
    """The law that `name`, a part of the game, has broken by raising `error`; with the line, and the usual reason."""
    if isinstance(error, IndexError) and hasattr(game.rules, name):
        sizes = {
            "legal": f"`num_actions` is {game.num_actions}",
            "observe": f"`observation_shape` is {game.observation_shape}",
        }
        return f"`{name}` reaches beyond an array: {error} ({sizes.get(name, f'`state_words` is {game.state_words}')})"
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in line {frames[-1].lineno} of {Path(frames[-1].filename).name}" if len(frames) > 1 else ""
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    hint = ""
    if isinstance(error, OverflowError):
        hint = " (a word has 64 bits: a larger board takes several words)"
        if "integer -" in reason:
            hint = " (~ makes Python's own numbers negative: write np.uint64(1) << np.uint64(n) for a bit)"
    return f"`{name}` raised {reason}{where}{hint}"
