"""The laws of `Game`, each checked at one position of plain Python rules, and said in a sentence when it is broken."""

from __future__ import annotations

import functools
import hashlib
import math
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from alphazero.errors import GameError, LawBroken, listed, quote
from alphazero.game.game import Game
from alphazero.game.reading.moves import meant_by
from alphazero.game.rules import Rules, Score, points_so_far, without_points

ALL_TRIED = 8
"""So many of the first dice, and ever fewer of the others, are tried with all their outcomes."""
MOST_PLAYERS = 8
STUCK = 20.0
"""Seconds after which a rule that has not come back is taken for an endless loop."""


def _is_size(value: Any) -> bool:
    return isinstance(value, int | np.integer) and bool(value > 0)


DECLARED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "name": (
        lambda value: isinstance(value, str) and value != "", 'the word for it on the command line, as name = "my_game"'
    ),
    **dict.fromkeys(("num_actions", "state_words", "max_plies"), (_is_size, "a whole number above 0")),
    "observation_shape": (
        lambda value: isinstance(value, tuple) and len(value) == 3 and all(map(_is_size, value)),
        "a tuple of three whole numbers above 0: (planes, rows, columns)",
    ),
    "rules": (lambda value: isinstance(value, Rules), "a Rules of functions, as rules = Rules(init, legal, step, ...)"),
}  # fmt: skip
"""The attributes of a game: a test of each, and what it must be."""
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
        """The rules as plain Python."""
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
        turn = lambda value: value in range(players), f"give the number of a player: 0 to {players - 1}"
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
        return f"{played}player {player + 1} to move:\n{drawn}"

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


class Laws(Questions):
    """The laws of one game."""

    def declaration(self) -> None:
        """The sizes and the rules that the class declares."""
        for name, (is_right, law) in DECLARED.items():
            value = getattr(self.game, name, None)
            self.must(is_right(value), f"`{name}` must be {law}, not {quote(value, 60)}")
        for field in fields(Rules):
            rule = getattr(self.game.rules, field.name)
            may_lack = rule is field.default or (field.name == "terminal_value" and self.game.value_shape)
            self.must(callable(rule) or may_lack, f"the rule `{field.name}` must be a function")
        rules, sizes = self.game.rules, (self.game.num_outcomes, self.game.dice_in_a_row)
        dice = {rules.chance is not None, rules.settle is not None, self.game.num_outcomes != 0}
        law = "a game with dice has `chance`, `settle` and `num_outcomes`; others have none of them"
        self.must(len(dice) == 1, law)
        law = "`num_outcomes` must be a whole number, and `dice_in_a_row` one above 0"
        self.must(_is_size(sizes[1]) and (sizes[0] == 0 or _is_size(sizes[0])), law)
        players = self.game.num_players
        self.must(_is_size(players) and players <= MOST_PLAYERS, f"`num_players` must be 1 to {MOST_PLAYERS}")
        there = {name: getattr(rules, name) is not None for name in ("terminal_value", "returns")}
        law = "a game for more than two has `returns`, and None in place of `terminal_value`; others have no `returns`"
        self.must(there == {"terminal_value": players <= 2, "returns": players > 2}, law)
        alone, score, word = self.game.num_players == 1, self.game.score, self.game.points_word
        law = "`score` must be a Score whose lowest number is minus the highest, since one wins what the other loses"
        law = "a game for one needs a `score`: a Score of two finite numbers, the lower first" if alone else law
        given = Score(-1, 1) if score is None and not alone else score
        self.must(
            isinstance(given, Score)
            and -math.inf < given.low < given.high < math.inf
            and (players != 2 or given.high == -given.low),
            law,
        )
        law = "`points_word` must be None, or in a game for one the index of a word of the state"
        self.must(word is None or (alone and word in range(self.game.state_words)), law)

    def permutations(self) -> tuple[np.ndarray, np.ndarray]:
        """The declared permutations of cells and of actions."""
        found = self.call("symmetries", lambda: [np.asarray(part) for part in self.game.symmetries])
        sizes = math.prod(self.game.observation_shape[1:]), self.game.num_actions
        law = f"`symmetries` must be two arrays with a row for each symmetry: permutations of the {sizes[0]} cells, "
        law += f"and of the {sizes[1]} actions, as whole numbers; the first is the identity"
        self.must(len(found) == 2, law)
        for table, size in zip(found, sizes, strict=True):
            rows = table.ndim == 2 and table.dtype.kind in "iu" and 0 < len(table) == len(found[0])
            rows = rows and table.shape[1] == size and (np.sort(table, axis=1) == np.arange(size)).all()
            self.must(rows and np.array_equal(table[0], np.arange(size)), law)
        return found[0], found[1]

    def start(self) -> tuple[np.ndarray, int]:
        """The start position, the same whatever was in memory before."""
        states = [np.full(self.game.state_words, filling, np.uint64) for filling in (0, 0x5A5A5A5A)]
        for state in states:
            self.ask("init", state, 0)
        self.must(np.array_equal(states[0], states[1]), "`init` must write every word of the state", states[0])
        return states[0], self.mover(states[0], 0)

    def mover(self, state: np.ndarray, alternating: int) -> int:
        asked = self.rules.to_play is not None and self.game.num_players > 1
        return int(self.ask("to_play", state, alternating)) if asked else self.game.mover(state, alternating)

    def facts(self, state: np.ndarray, player: int) -> Facts:
        """The answers of the rules about a position; what they write must not depend on what the arrays held before."""
        over, values = bool(self.ask("is_terminal", state, player)), (0.0,) * self.game.num_values
        planes, masks = np.zeros(self.game.observation_shape, np.float32), np.zeros((2, self.game.num_actions), bool)
        self.ask("observe", state, player, planes)
        self.must(np.isfinite(planes).all(), "`observe` must write finite numbers", state, player)
        if over and self.game.value_shape:
            values = self.results(state, player)
        elif over:
            value = float(self.ask("terminal_value", state, player))
            score = self.game.score
            allowed = value in (-1, 0, 1) if score is None else score.low <= value <= score.high
            law = "-1, 0 or 1" if score is None else f"{score.low:g} to {score.high:g} {score.unit}"
            if score is not None and self.game.num_players == 1:
                allowed, law = score.low <= value < math.inf, f"{score.low:g} {score.unit} or more"
            law = f"`terminal_value` must give {law} for the player to move; it gave {value:g}"
            self.must(allowed, law, state, player)
            value -= float(points_so_far(state, self.game.points_word))
            values = (value if score is None else float(np.float32(score.value(value))),)  # as compiled rules give it
        else:
            masks[1] = True
            for mask in masks:
                self.ask("legal", state, player, mask)
            self.must(np.array_equal(masks[0], masks[1]), "`legal` must write every entry of the mask", state, player)
            law = "a position that is not over must have a legal action: end the game there, or make passing an action"
            self.must(masks.any(), law, state, player)
            if self.rules.heuristic is not None:
                self.ask("heuristic", state, player)
        found = Facts(over, self.mover(state, player), values, masks[0], planes)
        word = self.game.points_word
        if word is not None and state[word]:  # what the network sees
            without = self.facts(without_points(state, word), player)
            same = without.is_terminal == over and np.array_equal(without.legal, found.legal)
            law = "nothing but the result may depend on the points so far, which `points_word` counts"
            self.must(same and np.array_equal(without.observe, planes), law, state, player)
        return found

    def results(self, state: np.ndarray, player: int) -> tuple[float, ...]:
        """The results by `returns`, on the scale from -1 to 1, as compiled rules give them."""
        found = np.array([[1e9] * self.game.num_players, [-1e9] * self.game.num_players], np.float32)
        for row in found:
            self.ask("returns", state, player, row)
        self.must(np.array_equal(found[0], found[1]), "`returns` must write a number for each player", state, player)
        score, results = self.game.score or Score(-1, 1, "for each player"), found[0]
        law = f"`returns` must write {score.low:g} to {score.high:g} {score.unit}; it wrote {results.tolist()}"
        self.must(((score.low <= results) & (results <= score.high)).all(), law, state, player)
        values = np.array([score.value(float(result)) for result in results], np.float32)
        if values.max() == 1:
            others = tuple(np.roll(values, -int(values.argmax())).tolist())
            self._when_won = self._when_won or others
            law = "whoever gets the most that there is has won alone: in `returns` the others must then always get the "
            law += f"same, but they got {list(others[1:])} and {list(self._when_won[1:])}"
            self.must(others == self._when_won, law, state, player)
        return tuple(values.tolist())

    def play(self, state: np.ndarray, player: int, action: int) -> np.ndarray:
        """The state after an action, the same each time."""
        children = [state.copy() for _ in range(2)]
        for child in children:
            self.ask("step", child, player, action)
        law = "`step` must do the same each time: what dice show comes by `chance` and `settle`"
        self.must(np.array_equal(children[0], children[1]), law, state, player)
        return children[0]

    def dice(self, state: np.ndarray, player: int) -> np.ndarray:
        """The probabilities of the die that is due; none where a player is to move."""
        most = self.game.num_outcomes
        if not most or bool(self.ask("is_terminal", state, player)):
            return np.empty(0)
        found = np.full((2, most), np.nan)
        counts = [self.ask("chance", state, player, row) for row in found]
        law = "`chance` must say the same of a state whenever it is asked: it tells probabilities, and draws nothing"
        self.must(counts[0] == counts[1] <= most, f"{law}, for `num_outcomes` = {most} at most", state, player)
        due = found[:, : counts[0]]
        self.must(np.array_equal(due[0], due[1]), law, state, player)
        law = "the probabilities of `chance` must be above 0, and 1 in sum"
        self.must(not counts[0] or ((due > 0).all() and abs(due[0].sum() - 1) < 1e-6), law, state, player)
        return due[0]

    def rolled(self, state: np.ndarray, player: int, rng: np.random.Generator, before: int | None = None) -> int:
        """Settles the dice that are due, in place, by what `rng` draws; returns who moves then.

        `before` of them are settled already; all outcomes of some dice are tried unless it is given.
        """
        for number in range(before or 0, self.game.dice_in_a_row + 1):
            if not len(due := self.dice(state, player)):
                return player
            self._dice += before is None
            if before is None and self._dice % max(1, self._dice // ALL_TRIED) == 0:
                self.all_outcomes(state, player, len(due), rng, number + 1)
            player = self.settled(state, player, int(rng.choice(len(due), p=due / due.sum())))
        law = f"a player must move, or the game be over, after `dice_in_a_row` = {self.game.dice_in_a_row} dice"
        raise self.fail(law, state, player)

    def settled(self, state: np.ndarray, player: int, outcome: int) -> int:
        """Settles one die in place, the same each time; returns who moves then."""
        outcomes = [state.copy() for _ in range(2)]
        for after in outcomes:
            self.ask("settle", after, player, outcome)
        law = "`settle` must do the same each time, and write what the die showed into the state"
        self.must(np.array_equal(outcomes[0], outcomes[1]), law, state, player)
        state[:] = outcomes[0]
        self.line = [*self.line, outcome]
        return self.mover(state, player)

    def all_outcomes(self, state: np.ndarray, player: int, due: int, rng: np.random.Generator, number: int) -> None:
        """Each outcome of a die, however rare, has a word of its own and leads to a sound position."""
        line, busy, words = self.line, self.busy, dict[int, str]()
        for outcome in range(due):
            write = functools.partial(self.game.format_outcome, outcome, state.copy())
            words[outcome] = self.call("format_outcome", write, state, player)
            self.one_word("format_outcome", words[outcome], state, player)
            after = state.copy()
            self.facts(after, self.rolled(after, self.settled(after, player, outcome), rng, number))
            self.line, self.busy = line, busy  # how fast games are is measured without this
        law = f"`format_outcome` must have a word of its own for each outcome; it has {listed(words.values())}"
        self.must(all(meant_by(word, words) == outcome for outcome, word in words.items()), law, state, player)

    def random_game(self, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, int, Facts]]:
        """Plays a random game; gives each position, its mover and the facts."""
        self.line, (state, player) = [], self.start()
        player = self.rolled(state, player, rng)
        for ply in range(self.game.max_plies + 1):
            facts = self.facts(state, player)
            self.visited.append((state, player, facts.kept()))
            self.must(ply or not facts.is_terminal, "the start position must not be over", state, player)
            yield state, player, facts
            if facts.is_terminal:
                return
            action = int(rng.choice(np.flatnonzero(facts.legal)))
            state = self.play(state, player, action)
            self.line = [*self.line, action]
            player = self.rolled(state, self.mover(state, self.game.following(player)), rng)
        most = self.game.max_plies
        raise self.fail(f"a game must end within `max_plies` = {most}: {self.game.too_long}", state, player)

    def all_move(self) -> None:
        """Each player has had a turn in the games that were played."""
        law = "`to_play` must give all players their turns; one of them never moved, of `num_players` = "
        law += f"{self.game.num_players}"
        seats = set(range(self.game.num_players))
        self.must({player for _, player, _ in self.visited} >= seats, law)


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
