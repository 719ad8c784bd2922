"""Plays random games by a game's rules and checks the laws of `Game` at every position.

The rules run as plain Python first, where numpy finds each index that is out of range; only rules that pass are
compiled, and compared with it.
"""

from __future__ import annotations

import functools
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from alphazero.errors import LawBroken, count_of
from alphazero.game.game import Game
from alphazero.game.kernels import Kernels
from alphazero.game.laws import Answers, Laws
from alphazero.game.python_game import PythonGame
from alphazero.settings import check_range

SLOW = 300.0
"""Plies a second, as a search plays them, below which a game is called slow: even a small search takes seconds then."""
CHECKED_WITH_SYMMETRIES = 200
"""Positions that are compared with all their images, at most."""
SECONDS = 30.0
"""No more games are begun after so long."""
BOARDS = 10
"""Positions of the first game of which a picture is drawn, at most."""
FOLLOWED = 5
"""Games that are played again in each of their mirror images."""
CAREFUL = 2
"""Games of careful players, who may go round for ever where random ones come to an end."""
LOOKED_AT = 16
"""Actions of which such a player looks at the replies."""
SECONDS_OF_CAREFUL = 5.0
"""No more careful plies after so long: boards with thousands of actions take seconds for one."""
SECONDS_WITH_SYMMETRIES = 15.0
"""No more games are played again in a mirror image after so long."""
ASKED_AGAIN = 200
"""Positions of which the rules are asked once more, at most."""
SECONDS_ASKED_AGAIN = 5.0
"""No more positions are asked of once more after so long."""
COMPILED_LAW = "the compiled rules must do what plain Python does, but"
FEW_WINS = 8
"""Won games after which the last mover should have won one. Where the last mover wins every second won game, as in
games of territory, no win in 8 has the probability 1/256; in 5 it would be 1/32."""


@dataclass
class Findings:
    """Facts about the games that were played."""

    num_games: int = 0
    num_positions: int = 0
    lengths: list[int] = field(default_factory=list)
    """Plies of each game."""
    branching: list[int] = field(default_factory=list)
    """Legal actions of each position that is not over."""
    outcomes: Counter[int] = field(default_factory=Counter)
    """Games by their outcome for the first player."""
    last_mover_won: list[bool] = field(default_factory=list)
    """For every won game: the player who made its last ply has won."""
    plies_per_second: float = 0.0
    """Plies a second of the plain Python rules alone, without the checks."""
    compiled_per_second: float | None = None
    """Positions described, observed and played a second on one core; None where numba cannot compile the rules."""
    warnings: list[str] = field(default_factory=list)
    """Oddities that break no law, but are probably mistakes."""
    end: str = ""
    """A position in which a game was won, with its winner."""
    example: str = ""
    """The first game: its actions and how it ended."""
    moved_again: int = 0
    """Plies after which the same player moved."""
    never_legal: int = 0
    """Actions that no position allowed."""
    cut: list[int] = field(default_factory=list)
    """Numbers of the games, from 1 on, that ended only because they had lasted `max_plies`."""

    def __repr__(self) -> str:
        warnings = f", {count_of(len(self.warnings), 'warning')}" if self.warnings else ""
        games, positions = count_of(self.num_games, "random game"), count_of(self.num_positions, "position")
        return f"<Findings of {games}: {positions}, all laws kept{warnings}>"


def validate(game: Game, num_games: int = 100, seed: int = 0) -> Findings:
    """Plays `num_games` random games; raises LawBroken, which names the law and shows the position."""
    check_range("the number of games", num_games, 1)
    rng = np.random.default_rng(seed)
    findings = Findings()
    check = Check(game)
    check.declaration()
    lines: list[list[int]] = []
    seen = np.zeros(game.num_actions, bool)
    with check.watched():
        while findings.num_games < num_games and (time.monotonic() < check.deadline or findings.num_games < 2):
            check.play_one(rng, findings, seen)
            lines.append(check.line)
        check.line = []
        check.asked_again(rng)
        check.both_move()
        findings.never_legal = int((~seen).sum())
        check.mirrored(lines[:FOLLOWED], findings, rng)
        check.board(lines[0])
        check.line = []
        check.hidden(findings)
    _compare_compiled(game, check, check.visited, findings)
    _advise(game, findings)
    return findings


class Check(Laws):
    """Whole games, and what their symmetries make of them."""

    def __init__(self, game: Game, seconds: float | None = None):
        """`seconds`: the longest time for the games, and for each kind of checks after them; None = the usual ones."""
        super().__init__(game)
        self.seconds = math.inf if seconds is None else seconds
        self.deadline = time.monotonic() + min(self.seconds, SECONDS)
        """The time from which slow checks that are not essential are skipped."""

    def play_one(self, rng: np.random.Generator, findings: Findings, seen: np.ndarray) -> None:
        """Plays one random game, and marks in `seen bool[A]` what was legal."""
        first, begin = len(self.visited), self.busy
        for state, player, answers, mask in self.random_game(rng):
            ply = len(self.line)
            mover_before = self.visited[-2][1] if ply else 1 - player
            findings.moved_again += mover_before == player
            if mask is not None:
                if findings.num_games < 10 and time.monotonic() < self.deadline:
                    self.notation(state, player, mask)
                findings.branching.append(int(mask.sum()))
                seen |= mask
                continue
            value, drawn = answers.result or 0.0, self.drawing(state, player)
            if value:
                winner = player if value > 0 else 1 - player
                findings.last_mover_won.append(winner == mover_before)
                findings.end = f"{drawn}\nplayer {winner + 1} has won"
                ended = f"player {winner + 1} has won"
            else:
                ended = "draw"
            if findings.num_games < 10:
                self.words(self.line)
            findings.example = findings.example or f"{self.write(self.line)}\n{drawn}\n{ended}"
            findings.outcomes[int(value if player == 0 else -value)] += 1
            findings.lengths.append(ply)
            findings.num_games += 1
            if isinstance(self.game, PythonGame) and self.game.cut(self.game.object_of(state)):
                findings.cut.append(findings.num_games)
            findings.num_positions += len(self.visited) - first
            findings.plies_per_second = max(findings.plies_per_second, ply / max(1e-9, self.busy - begin))

    def mirrored(self, lines: list[list[int]], findings: Findings, rng: np.random.Generator) -> None:
        """The images of some of the visited positions, and of games, are like them."""
        cells, actions = self.permutations()
        if self.rules.transform is not None:
            self.transforms(cells, actions, rng)
        self.images(lines, cells, actions, findings)

    def transforms(self, cells: np.ndarray, actions: np.ndarray, rng: np.random.Generator) -> None:
        """The images that `transform` makes of some of the positions, and of the positions after one action."""
        to_images, deadline = np.argsort(actions, axis=1), time.monotonic() + min(self.seconds, SECONDS)
        for row in rng.permutation(len(self.visited))[:CHECKED_WITH_SYMMETRIES]:
            if time.monotonic() > deadline:
                return
            state, player = self.visited[row]
            planes = self.observation(state, player).reshape(-1, cells.shape[1])
            terminal = self.is_terminal(state, player)
            value, mask = (self.value(state, player), None) if terminal else (0.0, self.legal(state, player))
            action = -1 if mask is None else int(rng.choice(np.flatnonzero(mask)))
            child = state if mask is None else self.step(state, player, action)
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
                if mask is None:
                    if self.value(image, player) != value:
                        raise self.fail(f"{law} not change who has won", state, player)
                    continue
                if not np.array_equal(self.legal(image, player), mask[actions[symmetry]]):
                    raise self.fail(f"{law} permute the legal actions as `symmetries` says", state, player)
                image_of_child = child.copy()
                self.ask("transform", image_of_child, player, symmetry)
                self.ask("step", image, player, int(to_images[symmetry, action]))
                if not np.array_equal(image, image_of_child):
                    law += f" go with `step`: before or after {self.format(action, state)}, it must give the same words"
                    raise self.fail(law, state, player, "does it forget a word?")

    def images(self, lines: list[list[int]], cells: np.ndarray, actions: np.ndarray, findings: Findings) -> None:
        """Plays some of the games again in their mirror images: the images must be games just like them."""
        found = {
            symmetry: self._start_of_image(symmetry, cells[symmetry], actions[symmetry])
            for symmetry in range(1, len(cells))
        }
        starts = {symmetry: start for symmetry, start in found.items() if start is not None}
        for symmetry in sorted(found.keys() - starts.keys()):
            cure = "; write `transform`" if self.game.compiled else ""
            findings.warnings.append(
                f"symmetry {symmetry} changes the start position, so it could not be checked{cure}"
            )
        deadline = time.monotonic() + min(self.seconds, SECONDS_WITH_SYMMETRIES)
        for number, line in enumerate(lines):
            for i, (symmetry, start) in enumerate(starts.items()):
                if i and time.monotonic() > deadline:
                    if not number:
                        rest = ", ".join(map(str, list(starts)[i:]))
                        findings.warnings.append(f"there was no time to check symmetries {rest}: the rules are slow")
                    return
                self.line = line
                self._follow(line, symmetry, start, (cells[symmetry], actions[symmetry]))

    def _start_of_image(self, symmetry: int, cells: np.ndarray, actions: np.ndarray) -> tuple[Laws, np.ndarray] | None:
        """The image of the start position and the game in which it is one; None if nobody can make it."""
        state, player = self.start()
        image = state.copy()
        if self.rules.transform is not None:
            self.ask("transform", image, player, symmetry)
        elif not self._alike(state, (self, image), player, cells, actions):
            mirrored = self.game.mirrored(symmetry) if isinstance(self.game, PythonGame) else None
            if mirrored is None:
                return None
            other = Laws(mirrored)
            return other, other.start()[0]
        return self, image

    def asked_again(self, rng: np.random.Generator) -> None:
        """The rules say the same of some of the positions once more, after all those that came in between.

        Positions that are Python objects are made anew, so that an object which was changed is found.
        """
        if isinstance(self.game, PythonGame):
            self.game.forget()
        deadline = time.monotonic() + min(self.seconds, SECONDS_ASKED_AGAIN)
        for row in rng.permutation(len(self.visited))[:ASKED_AGAIN]:
            if time.monotonic() > deadline:
                return
            state, player = self.visited[row]
            now, _ = self.answers(state, player)
            changed = [name for name in Answers._fields if getattr(now, name) != getattr(self.first_answers[row], name)]
            if self.mover(state, player) != player:
                changed.append("player to move")
            if changed:
                law = "the rules must say the same of a position whenever they are asked, but its "
                law += f"{changed[0].replace('_', ' ')} changed"
                note = "does a rule draw lots, keep something outside of the state, or change an earlier position?"
                raise self.fail(law, state, player, note)

    def hidden(self, findings: Findings) -> None:
        """Warns of two positions that the network cannot tell apart, though their legal actions or results differ.

        Planes need not show that a game is over, as by two passes, nor a draw by repetition or by the number of plies.
        """
        rows: dict[tuple[bytes, bool], int] = {}
        for row, now in enumerate(self.first_answers):
            if now.result == 0:
                continue
            first = rows.setdefault((now.observation, now.result is None), row)
            before = self.first_answers[first]
            if now != before:
                what = "legal actions" if now.result is None else "results"
                one, other = (self._draw(*self.visited[each]) for each in (first, row))
                findings.warnings.append(
                    f"a position looks to the network like another one with other {what}. Does `observe` show all that "
                    f"they depend on, such as who moves?\n{one}\nand\n{other}"
                )
                return

    def board(self, line: list[int]) -> None:
        """The positions of a game, or some of them in a long one, can be drawn, and clicks lead to legal actions."""
        for ply in sorted(set(np.linspace(0, len(line), BOARDS, dtype=int).tolist())):
            self.line = line[:ply]
            try:
                position = self.game.position(self.line)
            except Exception as error:
                note = " ".join(f"{type(error).__name__}: {error}".split())
                raise self.fail("a game must go the same each time that it is played", note=note) from error
            try:
                position.svg()
            except Exception as error:
                note = " ".join(f"{type(error).__name__}: {error}".split())
                law = "`board`, `pieces`, `clicks` and `winning_cells` must describe every position"
                raise self.fail(law, position.state, position.to_play, note) from error

    def _follow(
        self,
        line: list[int],
        symmetry: int,
        start: tuple[Laws, np.ndarray],
        permutations: tuple[np.ndarray, np.ndarray],
    ) -> None:
        """Plays `line` from the start and its image from the image of the start, and compares at every ply."""
        (state, player), (other, image) = self.start(), start
        mover, image = player, image.copy()
        to_image = np.argsort(permutations[1])
        for ply in range(len(line) + 1):
            if ply:
                self.ask("step", state, player, line[ply - 1])
                other.ask("step", image, mover, int(to_image[line[ply - 1]]))
                player, mover = self.mover(state, 1 - player), other.mover(image, 1 - mover)
            if mover != player or not self._alike(state, (other, image), player, *permutations):
                self.line = line[:ply]
                law = f"symmetry {symmetry} must turn a game into a game that goes just like it"
                drawing = f"{self._draw(state, player)}\nbut by `symmetries` its mirror image is\n"
                raise LawBroken(f"{self.game.name}: {law}", drawing + other.drawing(image, mover))

    def _alike(
        self, state: np.ndarray, other: tuple[Laws, np.ndarray], player: int, cells: np.ndarray, actions: np.ndarray
    ) -> bool:
        """`other`, a position and its game, is what a symmetry makes of `state`, as far as the rules' answers show."""
        theirs, image = other
        planes, turned = self.observation(state, player), theirs.observation(image, player)
        if not np.array_equal(turned.reshape(-1, len(cells)), planes.reshape(-1, len(cells))[:, cells]):
            return False
        over = self.is_terminal(state, player)
        if theirs.is_terminal(image, player) != over:
            return False
        if over:
            return theirs.value(image, player) == self.value(state, player)
        return np.array_equal(theirs.legal(image, player), self.legal(state, player)[actions])


def _advise(game: Game, findings: Findings) -> None:
    won = findings.last_mover_won
    if findings.cut:
        numbers, one = ", ".join(map(str, findings.cut)), len(findings.cut) == 1
        counts = "counts as a draw: game" if one else "count as draws: games"
        findings.warnings.append(
            f"{len(findings.cut)} of {count_of(findings.num_games, 'random game')} {'was' if one else 'were'} cut "
            f"after {count_of(game.max_plies, 'ply')} and {counts} {numbers}; by the rules of the game "
            f"{'it goes' if one else 'they go'} on"
        )
    if len(won) >= FEW_WINS and not any(won):
        findings.warnings.append(
            f"in none of {len(won)} won games had the winner made the last ply. That is right where whoever moves last "
            f"loses; else, does `terminal_value` speak for the player to move? As it stands:\n{findings.end}"
        )
    speed = findings.compiled_per_second or findings.plies_per_second
    if speed < SLOW:
        findings.warnings.append(f"the rules are slow: {speed:.0f} plies a second; a search needs thousands")
    if len(findings.outcomes) == 1 and findings.num_games >= 20:
        findings.warnings.append(
            f"all {findings.num_games} random games ended alike: there may be nothing to learn. {game.view_rule} "
            "as whoever moves next sees it, own and opponent's pieces exchanged?"
        )


def _ask(
    check: Check, positions: list[tuple[np.ndarray, int]], rules: str, ask: Callable[..., Any], *arrays: np.ndarray
) -> Any:
    """`ask(*arrays)`, by compiled rules; each array has a row for every position.

    Raises LawBroken if these rules raise, with the first position at which they do.
    """
    try:
        return ask(*arrays)
    except Exception:
        for i, (state, player) in enumerate(positions):
            try:
                ask(*(array[i : i + 1] for array in arrays))
            except Exception as error:
                raise check.fail(_raised(rules, error), state, player) from error
        raise


def _raised(rules: str, error: Exception) -> str:
    """The law that compiled rules break by raising what plain Python does not."""
    return f"{COMPILED_LAW} {rules} raised " + " ".join(f"{type(error).__name__}: {error}".split())


def _played(
    kernels: Kernels, states: np.ndarray, to_play: np.ndarray, actions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The states after the actions, and who moves there."""
    children, movers = states.copy(), to_play.copy()
    kernels.play(children, movers, actions)
    return children, movers


def _guessed(kernels: Kernels, states: np.ndarray) -> np.ndarray:
    guesses = np.empty(len(states))
    kernels.guess(states, guesses)
    return guesses


def _compare_compiled(game: Game, check: Check, visited: list[tuple[np.ndarray, int]], findings: Findings) -> None:
    """Compares the compiled rules with plain Python at the same positions, and measures their speed."""
    if not game.compiled:
        return
    kernels = Kernels(game)
    states, to_play = np.array([state for state, _ in visited]), np.array([player for _, player in visited], np.int8)
    rules = "`is_terminal`, `terminal_value` or `legal`"
    masks, terminal, values = _ask(check, visited, rules, kernels.describe_all, states)
    planes = _ask(check, visited, "`observe`", kernels.observations, states)
    for i, (state, player) in enumerate(visited):
        if terminal[i] != check.is_terminal(state, player):
            raise check.fail(f"{COMPILED_LAW} `is_terminal` differs", state, player)
        if terminal[i] and values[i] != check.value(state, player):
            raise check.fail(f"{COMPILED_LAW} `terminal_value` differs", state, player)
        if not terminal[i] and not np.array_equal(masks[i], check.legal(state, player)):
            raise check.fail(f"{COMPILED_LAW} `legal` differs", state, player)
        if not np.array_equal(planes[i], check.observation(state, player)):
            raise check.fail(f"{COMPILED_LAW} `observe` differs", state, player)
    rows = np.flatnonzero(~terminal)
    actions = np.where(masks[rows], np.random.default_rng(0).random(masks[rows].shape), -1.0).argmax(axis=1)
    going_on = [visited[row] for row in rows]
    play = functools.partial(_played, kernels)
    children, movers = _ask(check, going_on, "`step` or `to_play`", play, states[rows], to_play[rows], actions)
    for i, row in enumerate(rows):
        state, player = visited[row]
        if not np.array_equal(children[i], check.step(state, player, int(actions[i]))):
            raise check.fail(
                f"{COMPILED_LAW} `step` differs at action {check.format(int(actions[i]), state)}", state, player
            )
        if movers[i] != check.mover(children[i], 1 - player):
            raise check.fail(f"{COMPILED_LAW} `to_play` differs", children[i], int(movers[i]))
    _compare_optional_rules(kernels, check, going_on)
    if all(kernel.is_compiled for kernel in (kernels.describe, kernels.observe, kernels.play)):
        findings.compiled_per_second = _speed(kernels, states[rows], to_play[rows], actions)
        deadline = time.monotonic() + SECONDS_OF_CAREFUL
        for seed in range(CAREFUL):
            _play_carefully(kernels, check, seed, deadline)
    else:
        findings.warnings.append(
            "numba cannot compile the rules; they run as plain Python, slower (the reason is above)"
        )


def _play_carefully(kernels: Kernels, check: Check, seed: int, deadline: float) -> None:
    """Plays one game at random, but takes a win, and lets the other player have none if one of some actions does."""
    rng, most = np.random.default_rng(seed), kernels.game.max_plies
    states, to_play = kernels.start_states(1), np.zeros(1, np.int8)
    kernels.find_movers(states, to_play)
    for _ in range(most + 1):
        try:
            found = None if time.monotonic() > deadline else _careful_ply(kernels, rng, states, to_play)
        except Exception as error:
            rules = "a rule, here or up to two plies later,"
            raise check.fail(_raised(rules, error), states[0], int(to_play[0])) from error
        if found is None:
            return
        states, to_play = found
    law = f"a game must end within `max_plies` = {most}, also between players who take a win and block the other's"
    raise check.fail(law, states[0], int(to_play[0]))


def _careful_ply(
    kernels: Kernels, rng: np.random.Generator, states: np.ndarray, to_play: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """The one position after the ply of a careful player, and who moves there; None if the game is over."""
    masks, terminal, _ = kernels.describe_all(states)
    if terminal[0]:
        return None
    wins = kernels.winning_actions(states, masks)[0]
    actions = rng.permutation(np.flatnonzero(wins if wins.any() else masks[0]))[:LOOKED_AT]
    children, movers = _played(kernels, states.repeat(len(actions), axis=0), to_play.repeat(len(actions)), actions)
    replies = kernels.winning_actions(children, kernels.describe_all(children)[0]).any(axis=1)
    chosen = int(np.argmax(~replies | (movers == to_play)))  # the first that is safe; without one, the first
    return children[chosen : chosen + 1], movers[chosen : chosen + 1]


def _compare_optional_rules(kernels: Kernels, check: Check, going_on: list[tuple[np.ndarray, int]]) -> None:
    """`transform` and `heuristic`, at some of the positions that are not over."""
    some = going_on[:: 1 + len(going_on) // CHECKED_WITH_SYMMETRIES]
    states = np.array([state for state, _ in some])
    if kernels.canonicalize is not None:
        expected, chosen = states.copy(), np.zeros(len(states), np.int64)
        kernels.canonicalize.plain(expected, chosen, *np.empty((2, states.shape[1]), states.dtype))
        images, symmetries = _ask(check, some, "`transform`", kernels.canonical, states)
        wrong = np.flatnonzero((images != expected).any(axis=1) | (symmetries != chosen))
        if len(wrong):
            raise check.fail(f"{COMPILED_LAW} `transform` differs", *some[wrong[0]])
    if check.rules.heuristic is not None:
        guesses = _ask(check, some, "`heuristic`", functools.partial(_guessed, kernels), states)
        for (state, player), guess in zip(some, guesses, strict=True):
            if not abs(guess - check.guess(state, player)) < 1e-6:
                raise check.fail(f"{COMPILED_LAW} `heuristic` differs", state, player)


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
