"""Does a game keep the laws of `Game`? Plays random games by its rules and checks every law at every position.

The rules run as plain Python first, where numpy finds each index that is out of range; only rules that pass are
compiled, and compared with it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from alphazero.errors import GameError, LawBroken
from alphazero.game import Game
from alphazero.kernels import Kernels

SLOW = 300.0
"""Plies a second by plain Python below which a game is called slow: then even a small search takes seconds."""
CHECKED_WITH_SYMMETRIES = 200
"""Positions that are compared with all their images, at most."""
SECONDS = 30.0
"""No more games are begun after so long."""


@dataclass
class Findings:
    """What the games have shown."""

    num_games: int = 0
    num_positions: int = 0
    lengths: list[int] = field(default_factory=list)
    """Plies of each game."""
    branching: list[int] = field(default_factory=list)
    """Legal actions of each position that is not over."""
    outcomes: Counter[int] = field(default_factory=Counter)
    """Games by their outcome for the first player."""
    last_mover_won: list[bool] = field(default_factory=list)
    """For every game that was won: by the player of its last ply."""
    plies_per_second: float = 0.0
    """By plain Python, checks left out."""
    compiled_per_second: float | None = None
    """Positions described, observed and played a second on one core; None where numba cannot compile the rules."""
    warnings: list[str] = field(default_factory=list)
    """What no law forbids, but is hardly meant."""
    end: str = ""
    """A position in which a game was won, with its winner."""


def validate(game: Game, num_games: int = 100, seed: int = 0) -> Findings:
    """Plays `num_games` random games; raises LawBroken, which names the law and shows the position."""
    rng = np.random.default_rng(seed)
    findings = Findings()
    check = _Check(game)
    check.declaration()
    visited: list[tuple[np.ndarray, int]] = []
    begin = time.monotonic()
    while findings.num_games < num_games and (time.monotonic() < begin + SECONDS or findings.num_games < 2):
        visited += check.play_one(rng, findings)
    if set(findings.outcomes) and not {player for _, player in visited} >= {0, 1}:
        raise check.fail("`to_play` must give both players their turns; one of them never moved")
    _advise(findings)
    check.symmetries(visited, rng)
    _compare_compiled(game, check, visited, findings)
    return findings


class _Check:
    """The laws of one game, by plain Python."""

    def __init__(self, game: Game):
        self.game, self.rules = game, game.plain_rules
        self.busy = 0.0
        """Seconds spent in the rules."""
        self.deadline = time.monotonic() + SECONDS
        """What takes long and can be left out is left out from then on."""

    def fail(self, law: str, state: np.ndarray | None = None, player: int = 0, note: str = "") -> LawBroken:
        """The error that says which law is broken, and where."""
        drawing = "" if state is None else self._draw(state, player)
        return LawBroken(f"{self.game.name}: {law}{f' ({note})' if note else ''}", drawing)

    def _draw(self, state: np.ndarray, player: int) -> str:
        try:
            drawn = self.game.render(state.copy(), player)
        except Exception:  # the drawing may be what is wrong; the words are not
            drawn = " ".join(f"{int(word):x}" for word in state)
        return f"player {player + 1} to move:\n{drawn}"

    def ask(self, name: str, state: np.ndarray, player: int, *arguments: Any) -> Any:
        """Calls a rule on `state`, which it must leave alone unless it is `step`, `init` or `transform`."""
        before = state.copy()
        begin = time.perf_counter()
        try:
            with np.errstate(all="ignore"):
                value = getattr(self.rules, name)(state, *arguments)
        except GameError as error:  # a wrapped game says itself what is wrong
            raise LawBroken(str(error), self._draw(before, player)) from error
        except IndexError as error:
            raise self.fail(f"`{name}` reaches beyond an array: {error}", before, player) from error
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise self.fail(f"`{name}` raised {reason}", before, player) from error
        self.busy += time.perf_counter() - begin
        if name not in ("step", "init", "transform") and not np.array_equal(before, state):
            raise self.fail(f"`{name}` must leave the state alone, but changed it", before, player)
        return value

    def declaration(self) -> None:
        """The sizes that the class declares."""
        game = self.game
        shape = getattr(game, "observation_shape", None)
        sizes = [getattr(game, name, None) for name in ("num_actions", "state_words", "max_plies")]
        if not all(isinstance(size, int | np.integer) and size > 0 for size in sizes):
            raise self.fail(
                "`num_actions`, `state_words` and `max_plies` must be whole numbers above 0", note=str(sizes)
            )
        if not (isinstance(shape, tuple) and len(shape) == 3 and all(int(size) > 0 for size in shape)):
            raise self.fail("`observation_shape` must be three whole numbers: planes, rows, columns", note=str(shape))
        if not isinstance(game.name, str) or not game.name:
            raise self.fail("`name` must be a word")

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
            raise self.fail(f"`to_play` must give 0 or 1, not {player!r}", state, alternating)
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
            raise self.fail("a position that is not over must have a legal action", state, player)
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
                f"`terminal_value` must give -1, 0 or 1 for the player to move, not {value!r}", state, player
            )
        return float(value)

    def is_terminal(self, state: np.ndarray, player: int) -> bool:
        terminal = [bool(self.ask("is_terminal", state, player)) for _ in range(2)]
        if terminal[0] != terminal[1]:
            raise self.fail("`is_terminal` must say the same each time of the same position", state, player)
        return terminal[0]

    def step(self, state: np.ndarray, player: int, action: int) -> np.ndarray:
        """The state after an action, the same each time."""
        children = [state.copy() for _ in range(2)]
        for child in children:
            self.ask("step", child, player, action)
        if not np.array_equal(children[0], children[1]):
            raise self.fail(
                f"`step` must do the same each time; action {self.format(action, state)} did not", state, player
            )
        if np.array_equal(children[0], state) and self.mover(children[0], 1 - player) == player:
            raise self.fail(
                f"`legal` allows {self.format(action, state)}, but `step` leaves the position as it is", state, player
            )
        return children[0]

    def format(self, action: int, state: np.ndarray) -> str:
        try:
            return f"{self.game.format_action(action, state.copy())} ({action})"
        except Exception:  # as in `fail`
            return str(action)

    def notation(self, state: np.ndarray, player: int, mask: np.ndarray) -> None:
        """Every legal action can be drawn, written and read."""
        texts: dict[str, int] = {}
        try:
            self.game.render(state.copy(), player)
        except Exception as error:
            raise self.fail(f"`render` raised {type(error).__name__}: {error}", state, player) from error
        for action in (int(action) for action in np.flatnonzero(mask)):
            try:
                text = self.game.format_action(action, state.copy())
                read = self.game.parse_action(text, state.copy())
            except Exception as error:
                law = f"`format_action` and `parse_action` must understand each other; action {action} raised"
                raise self.fail(f"{law} {type(error).__name__}: {error}", state, player) from error
            if read != action or text in texts:
                other = texts.get(text, read)
                law = f"`format_action` and `parse_action` must understand each other; {text!r} is {action} and {other}"
                raise self.fail(law, state, player)
            texts[text] = action

    def play_one(self, rng: np.random.Generator, findings: Findings) -> list[tuple[np.ndarray, int]]:
        """One random game; returns its positions with their movers."""
        game = self.game
        state, player = self.start()
        visited = [(state, player)]
        begin = self.busy
        for ply in range(game.max_plies + 1):
            terminal = self.is_terminal(state, player)
            self.observation(state, player)
            if terminal:
                value = self.value(state, player)
                mover_before = visited[-2][1] if ply else player
                if value:
                    winner = player if value > 0 else 1 - player
                    findings.last_mover_won.append(winner == mover_before)
                    findings.end = f"{game.render(state.copy(), player)}\nplayer {winner + 1} has won"
                findings.outcomes[int(value if player == 0 else -value)] += 1
                findings.lengths.append(ply)
                findings.num_games += 1
                findings.num_positions += len(visited)
                findings.plies_per_second = max(findings.plies_per_second, ply / max(1e-9, self.busy - begin))
                return visited
            mask = self.legal(state, player)
            if findings.num_games < 10 and time.monotonic() < self.deadline:
                self.notation(state, player, mask)
            findings.branching.append(int(mask.sum()))
            action = int(rng.choice(np.flatnonzero(mask)))
            state = self.step(state, player, action)
            player = self.mover(state, 1 - player)
            visited.append((state, player))
        raise self.fail(f"a game must end within `max_plies` = {game.max_plies}", state, player)

    def symmetries(self, visited: list[tuple[np.ndarray, int]], rng: np.random.Generator) -> None:
        """The declared permutations, and `transform`, at some of the positions."""
        game = self.game
        cells, actions = (np.asarray(part) for part in game.symmetries)
        _, height, width = game.observation_shape
        for part, size, what in ((cells, height * width, "cells"), (actions, game.num_actions, "actions")):
            if part.ndim != 2 or part.shape[1] != size or len(part) != len(cells):
                raise self.fail(
                    f"`symmetries` must give a row of {size} {what} for each symmetry", note=str(part.shape)
                )
            if not np.array_equal(np.sort(part, axis=1), np.tile(np.arange(size), (len(part), 1))):
                raise self.fail(f"`symmetries` must give permutations of the {what}")
            if not np.array_equal(part[0], np.arange(size)):
                raise self.fail("the first of the `symmetries` must be the identity")
        if game.rules.transform is None:
            return
        rows = rng.permutation(len(visited))[:CHECKED_WITH_SYMMETRIES]
        for state, player in (visited[row] for row in rows):
            planes = self.observation(state, player).reshape(-1, height * width)
            terminal = self.is_terminal(state, player)
            for symmetry in range(len(cells)):
                image = state.copy()
                self.ask("transform", image, player, symmetry)
                law = f"`transform` by symmetry {symmetry} must"
                if symmetry == 0 and not np.array_equal(image, state):
                    raise self.fail(f"{law} leave the position as it is", state, player)
                if not np.array_equal(
                    self.observation(image, player).reshape(planes.shape), planes[:, cells[symmetry]]
                ):
                    raise self.fail(f"{law} permute the observation as `symmetries` says", state, player)
                if self.is_terminal(image, player) != terminal or self.mover(image, player) != player:
                    raise self.fail(f"{law} not change whether the game is over, nor who moves", state, player)
                if terminal:
                    if self.value(image, player) != self.value(state, player):
                        raise self.fail(f"{law} not change who has won", state, player)
                elif not np.array_equal(self.legal(image, player), self.legal(state, player)[actions[symmetry]]):
                    raise self.fail(f"{law} permute the legal actions as `symmetries` says", state, player)


def _advise(findings: Findings) -> None:
    won = findings.last_mover_won
    if len(won) >= 20 and not any(won):
        findings.warnings.append(
            f"in none of {len(won)} won games had the winner made the last ply. Does `terminal_value` speak for the "
            f"player to move? As it stands:\n{findings.end}"
        )
    if findings.plies_per_second < SLOW:
        findings.warnings.append(
            f"the rules are slow: {findings.plies_per_second:.0f} plies a second; a search needs thousands"
        )
    if len(findings.outcomes) == 1 and findings.num_games >= 20:
        findings.warnings.append(f"all {findings.num_games} random games ended alike: there may be nothing to learn")


def _compare_compiled(game: Game, check: _Check, visited: list[tuple[np.ndarray, int]], findings: Findings) -> None:
    """What the compiled rules say of the same positions, and how fast."""
    if not game.compiled:
        return
    kernels = Kernels(game)
    states, to_play = np.array([state for state, _ in visited]), np.array([player for _, player in visited], np.int8)
    masks, terminal, values = kernels.describe_all(states)
    planes = kernels.observations(states)
    if not kernels.describe.is_compiled or not kernels.observe.is_compiled:
        findings.warnings.append(
            "numba cannot compile the rules; they run as plain Python, slower (the reason is above)"
        )
        return
    law = "the compiled rules must do what plain Python does, but"
    for i, (state, player) in enumerate(visited):
        if terminal[i] != check.is_terminal(state, player):
            raise check.fail(f"{law} `is_terminal` differs", state, player)
        if terminal[i] and values[i] != check.value(state, player):
            raise check.fail(f"{law} `terminal_value` differs", state, player)
        if not terminal[i] and not np.array_equal(masks[i], check.legal(state, player)):
            raise check.fail(f"{law} `legal` differs", state, player)
        if not np.array_equal(planes[i], check.observation(state, player)):
            raise check.fail(f"{law} `observe` differs", state, player)
    rows = np.flatnonzero(~terminal)
    actions = np.where(masks[rows], np.random.default_rng(0).random(masks[rows].shape), -1.0).argmax(axis=1)
    children, movers = states[rows].copy(), to_play[rows].copy()
    kernels.play(children, movers, actions)
    for i, row in enumerate(rows):
        state, player = visited[row]
        if not np.array_equal(children[i], check.step(state, player, int(actions[i]))):
            raise check.fail(f"{law} `step` differs at action {check.format(int(actions[i]), state)}", state, player)
        if movers[i] != check.mover(children[i], 1 - player):
            raise check.fail(f"{law} `to_play` differs", children[i], int(movers[i]))
    findings.compiled_per_second = _speed(kernels, states[rows], to_play[rows], actions)


def _speed(kernels: Kernels, states: np.ndarray, to_play: np.ndarray, actions: np.ndarray) -> float:
    """Positions a second: described, observed and played on; the best of five."""

    def once() -> None:
        kernels.describe_all(states)
        kernels.observations(states)
        kernels.play(states.copy(), to_play.copy(), actions)

    return len(states) / min(_seconds(once) for _ in range(5))


def _seconds(work: Callable[[], None]) -> float:
    begin = time.perf_counter()
    work()
    return max(1e-9, time.perf_counter() - begin)
