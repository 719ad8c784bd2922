"""How strong is a net at Backgammon? `python -m benchmarks.backgammon best` plays GNU Backgammon (gnubg).

The games are money play without the cube, in pairs with the same dice; their points are told with a 95% interval. With
`--turns 1000` gnubg says what the contestant's turns lose in place of games, which tells two nets apart sooner. gnubg
(https://www.gnu.org/software/gnubg) is found when it is needed, run as a child, and told positions as text; nothing of
it is part of this project. It chooses whole turns, which are played here checker by checker.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import shutil
import subprocess
import sys
import threading
import weakref
from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import tyro

from alphazero.catalogue import registry
from alphazero.commands.shared import parse, run_command
from alphazero.errors import InvalidSetting, quote
from alphazero.game import Game
from alphazero.game.kernels import kernels_of
from alphazero.machine import count_cores
from alphazero.matches.arena import Arena
from alphazero.matches.intervals import Z_95
from alphazero.matches.result import MatchResult
from alphazero.players.child_processes import end_program, start_program
from alphazero.players.contestants import make_player
from alphazero.players.player import Player
from alphazero.progress import Progress
from alphazero.settings import check_ranges
from games.backgammon.game import BAR, PASS, ROLL, count_at, is_terminal, legal, step

TIMEOUT = 120.0
"""Seconds to wait for its answers."""
PROCESSES = 8
"""gnubg 1.07 sleeps ten milliseconds in every answer, so several of it answer side by side."""
AT_ONCE = 32 * PROCESSES
"""Positions that are asked about at once: the questions to a process, and its answers, must fit into its pipes."""
MOST_KEPT = 1 << 16
"""The moves of about so many positions are kept, and of as many older ones."""
SETTINGS = """set automatic game off
set automatic roll off
set automatic move off
set automatic bearoff off
set display off
set player 0 human
set player 1 human
set jacoby off
set cube use off
set evaluation chequerplay type evaluation
set evaluation chequerplay evaluation cubeful off
set evaluation chequerplay evaluation noise 0
set evaluation chequerplay evaluation plies {plies}
new session
set turn 1
"""
"""Both players are people, so that it waits for commands; without the Jacoby rule gammons count."""
ANSWER = re.compile(r"^\s+\d+\. .*?-ply\s+(\S.*?)\s+(?:Eq\.|MWC):\s+(\S+)")
"""A turn, and the points that it brings."""
TURNS_OF_A_GAME = 12
"""Turns with a choice that are taken from each of gnubg's games."""
Board = tuple[tuple[int, ...], tuple[int, ...]]
"""The checkers of the mover and of the other player on their places 0 to 25."""


def board_of(state: np.ndarray) -> Board:
    """The board of a state."""
    own, other = (tuple(int(count_at(*state[i : i + 2], place)) for place in range(BAR + 1)) for i in (0, 2))
    return own, other


def position_id(board: Board) -> str:
    """The board in gnubg's notation: for the other player, then the mover, each place 1 to 25 as ones and a zero."""
    bits = "".join("1" * side[place] + "0" for side in reversed(board) for place in range(1, BAR + 1))
    return base64.b64encode(int(bits[::-1], 2).to_bytes(10, "little")).decode().rstrip("=")


def board_after(board: Board, turn: str) -> Board:
    """The board after a turn as gnubg writes it, such as `bar/22*/20 6/off(2)`; still seen by who played it."""
    own, other = list(board[0]), list(board[1])
    for move, times in re.findall(r"([^\s(]+)(?:\((\d)\))?", turn):
        stops = [(stop.rstrip("*"), stop.endswith("*")) for stop in move.split("/")]
        places = [{"bar": BAR, "off": 0}[name] if name in ("bar", "off") else int(name) for name, _ in stops]
        own[places[0]] -= int(times or 1)
        own[places[-1]] += int(times or 1)
        for place, (_, hits) in zip(places, stops, strict=True):
            if hits:
                other[BAR - place] -= 1
                other[BAR] += 1
    return tuple(own), tuple(other)


def ways(state: np.ndarray) -> Iterator[tuple[Board, list[tuple[bytes, int]]]]:
    """The boards, each once, to which the mover's turn can lead, with the states and actions on a way there."""
    waiting: list[tuple[np.ndarray, list[tuple[bytes, int]]]] = [(state, [])]
    seen, mask = {state.tobytes()}, np.zeros(ROLL + 1, bool)
    while waiting:
        here, way = waiting.pop()
        if way and (here[7] != state[7] or is_terminal(here)):
            yield board_of(here)[::-1], way
            continue
        legal(here, mask)
        for action in np.flatnonzero(mask).tolist():
            after = here.copy()
            step(after, action)
            if after.tobytes() not in seen:
                seen.add(after.tobytes())
                waiting.append((after, [*way, (here.tobytes(), action)]))


class GnubgPlayer(Player):
    """Asks gnubg once a turn; it can be asked about turns from their start on alone."""

    def __init__(self, program: str, plies: int):
        self.name = f"gnubg:{plies}"
        self._command, self._settings = [program, "--tty", "--quiet"], SETTINGS.format(plies=plies)
        self._processes = list[subprocess.Popen[str]]()
        self._moves, self._older = dict[bytes, int](), dict[bytes, int]()
        """The moves of turns that it has chosen, and those of turns before."""

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        legal_masks = np.zeros((len(states), ROLL + 1), bool)
        for state, mask in zip(states, legal_masks, strict=True):
            legal(state, mask)
        turns = np.array(~legal_masks[:, PASS:].any(axis=1))
        asked = [state for state in states[turns] if not self._knows(state)]
        for start in range(0, len(asked), AT_ONCE):
            for way in self._best_ways(asked[start : start + AT_ONCE]):
                self._moves.update(way)
        forced = legal_masks.argmax(axis=1).tolist()
        known = ChainMap(self._moves, self._older)
        actions = [
            known[state.tobytes()] if turn else action
            for state, turn, action in zip(states, turns, forced, strict=True)
        ]
        if len(self._moves) > MOST_KEPT:
            self._moves, self._older = {}, self._moves
        return np.array(actions)

    def _knows(self, state: np.ndarray) -> bool:
        """The move is kept, and so are those of the rest of the turn; raises InvalidSetting within another's turn."""
        key, whole = state.tobytes(), int(state[6]) == (4 if state[4] == state[5] else 2)
        if not whole and key not in self._moves and key not in self._older:
            raise InvalidSetting(f"{self.name} plays whole turns: ask it before the first checker of one moves")
        # older moves are for turns that have begun: the next ones of another turn may be gone before it comes to them
        return not whole or key in self._moves

    def interrupt(self) -> None:
        for process in self._processes:
            end_program(process)

    def _best_ways(self, states: list[np.ndarray]) -> Iterator[list[tuple[bytes, int]]]:
        """The states and actions of the best turn from each state."""
        boards = [board_of(state) for state in states]
        questions = [(board, int(state[4]), int(state[5])) for board, state in zip(boards, states, strict=True)]
        answers = self.ask(questions, [1] * len(questions))
        for state, board, ((turn, _),) in zip(states, boards, answers, strict=True):
            wanted = board_after(board, turn)
            way = next((way for end, way in ways(state) if end == wanted), None)
            if way is None:
                raise InvalidSetting(f"{self.name} answered {quote(turn)}, which is not legal in\n{board}")
            yield way

    def ask(self, questions: list[tuple[Board, int, int]], counts: list[int]) -> list[list[tuple[str, str]]]:
        """So many turns for each board and two dice, the best one first, as gnubg writes them and their points.

        There must be as many different ones. All are asked before the first answer is read. Raises InvalidSetting if
        gnubg gives fewer.
        """
        if any(process.poll() is not None for process in self._processes):
            self.interrupt()
            self._processes = []
        while len(self._processes) < min(PROCESSES, len(questions)):
            self._processes.append(start_program(self._command, subprocess.DEVNULL))
            weakref.finalize(self, _end, self._processes[-1])
            _send(self._processes[-1], self._settings)
        limit = threading.Timer(TIMEOUT, self.interrupt)
        limit.daemon = True
        limit.start()
        answers, step = [list[tuple[str, str]]()] * len(questions), len(self._processes)
        try:
            for i, process in enumerate(self._processes):
                for (board, x, y), count in zip(questions[i::step], counts[i::step], strict=True):
                    _send(process, f"set board {position_id(board)}\nset dice {x} {y}\nhint {count}\n")
            for i, process in enumerate(self._processes):
                answers[i::step] = [_read(process, count) for count in counts[i::step]]
        except OSError:
            pass
        finally:
            limit.cancel()
        if [len(answer) for answer in answers] != counts:
            raise InvalidSetting(f"{self.name} gave no move within {TIMEOUT:g} seconds, or has ended")
        return answers


def _send(process: subprocess.Popen[str], commands: str) -> None:
    assert process.stdin is not None
    process.stdin.write(commands)
    process.stdin.flush()


def _read(process: subprocess.Popen[str], count: int) -> list[tuple[str, str]]:
    """So many answers; fewer if the program ends."""
    assert process.stdout is not None
    answers = list[tuple[str, str]]()
    while len(answers) < count and (line := process.stdout.readline()):
        answers += ANSWER.findall(line)
    return answers


def _end(process: subprocess.Popen[str]) -> None:
    end_program(process)
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()


def make_gnubg(plies: int) -> GnubgPlayer:
    """GNU Backgammon, from the path or where Debian has games, at so many plies; raises InvalidSetting without it."""
    program = shutil.which("gnubg", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/games"]))
    if program is None:
        raise InvalidSetting("gnubg is not installed: apt-get install gnubg, or see https://www.gnu.org/software/gnubg")
    return GnubgPlayer(program, plies)


def points_of(game: Game, result: MatchResult) -> np.ndarray:
    """The first contestant's points `float64[n]` in each game."""
    rules, found = game.rules, np.empty(result.num_games)
    assert rules.settle is not None and rules.chance is not None and rules.to_play is not None
    chances = np.empty(game.num_outcomes)
    for i, (number, actions) in enumerate(zip(result.numbers, result.actions, strict=True)):
        state = game.start().state.copy()
        for action in actions:
            (rules.settle if rules.chance(state, chances) > 0 else rules.step)(state, action)
        assert rules.terminal_value is not None
        points = rules.terminal_value(state)
        found[i] = points if rules.to_play(state) == number % 2 else -points  # who plays first in even games
    return found


def interval_of(points: np.ndarray) -> tuple[float, float]:
    """The mean of points `float64[n]` of games in pairs, and half its 95% interval: pairs are independent."""
    pairs = points[: len(points) // 2 * 2].reshape(-1, 2).mean(axis=1)
    return float(points.mean()), float(Z_95 * pairs.std(ddof=1) / len(pairs) ** 0.5)


def turns_of(game: Game, gnubg: GnubgPlayer, count: int, seed: int) -> list[np.ndarray]:
    """The states, each once, from where a turn with a choice begins in games of gnubg with itself: so many at most."""
    number = 2 * (1 + count // TURNS_OF_A_GAME)
    rng, found = np.random.default_rng(seed), dict[bytes, np.ndarray]()
    *_, result = Arena(kernels_of(game), gnubg, gnubg, number, seed, opening_plies=0)
    # the two games of a pair are the same, since one program throws the same dice
    for actions in [game for i, game in zip(result.numbers, result.actions, strict=True) if i % 2 == 0]:
        position, begun = game.start(), list[np.ndarray]()
        for action in actions:
            position = position.play(action)
            state = position.state
            if not position.terminal and state[6] == (4 if state[4] == state[5] else 2) and len([*ways(state)]) > 1:
                begun.append(state)
        chosen = rng.permutation(len(begun))[:TURNS_OF_A_GAME]
        found |= {begun[i].tobytes(): begun[i] for i in chosen}
    return list(found.values())[:count]


def play_turns(player: Player, states: list[np.ndarray]) -> list[Board]:
    """The boards to which a player's turns lead, still seen by who played them."""
    now = [state.copy() for state in states]
    while playing := [i for i, state in enumerate(now) if state[7] == states[i][7] and not is_terminal(state)]:
        asked = np.array([now[i] for i in playing])
        actions = player.select_actions(asked, np.array(playing), np.zeros(len(playing), np.int64))
        for i, action in zip(playing, actions.tolist(), strict=True):
            step(now[i], action)
    return [board_of(state)[::-1] for state in now]


def lost_points(gnubg: GnubgPlayer, player: Player, states: list[np.ndarray]) -> np.ndarray:
    """The points `float64[n]` that a player's turns from `states` lose beside the best ones, as gnubg sees them."""
    questions = [(board_of(state), int(state[4]), int(state[5])) for state in states]
    counts, lost = [len([*ways(state)]) for state in states], np.empty(len(states))
    ends = play_turns(player, states)
    for start in range(0, len(states), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        for i, answers in enumerate(gnubg.ask(questions[part], counts[part]), start):
            points = {board_after(questions[i][0], turn): float(worth) for turn, worth in answers}
            lost[i] = max(points.values()) - points[ends[i]]
    return lost


@dataclass(frozen=True)
class Benchmark:
    """A contestant against GNU Backgammon."""

    contestant: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="CONTESTANT")] = "best"
    """A net, or another contestant; a net searches unless its text says NET@simulations=0."""
    opponent: str = "gnubg"
    """gnubg, or a contestant."""
    plies: int = 0
    """Plies that gnubg looks ahead."""
    games: int = 2000
    """Games to play."""
    turns: int = 0
    """Turns that gnubg judges in place of games."""
    simulations: int = 100
    """The net's simulations per ply."""
    seed: int = 0
    """The same seed throws the same dice."""
    threads: int = field(default_factory=count_cores)
    """Processor threads of the net."""

    def __post_init__(self) -> None:
        check_ranges(
            self,
            "",
            plies=(0, 4),
            games=(4, 1_000_000),
            turns=(0, 1_000_000),
            simulations=(1, 1_000_000),
            threads=(1, 4096),
        )


def main(argv: list[str]) -> None:
    config = parse(Benchmark, argv)
    loaded = registry.load("backgammon")

    def player_of(text: str) -> Player:
        return make_player(text, loaded, seed=config.seed, threads=config.threads, simulations=config.simulations)

    player = player_of(config.contestant)
    if config.turns:
        gnubg = make_gnubg(config.plies)
        states = turns_of(loaded.game, gnubg, config.turns, config.seed)
        lost = lost_points(gnubg, player, states)
        half = Z_95 * lost.std(ddof=1) / len(lost) ** 0.5
        print(f"{player.name}, {len(states)} turns with a choice, out of games of {gnubg.name}")
        print(
            f"points lost a turn  {lost.mean():.4f} (95% interval {lost.mean() - half:.4f} to {lost.mean() + half:.4f})"
        )
        print(f"best turns          {(lost == 0).mean():.1%}")
        return
    opponent = make_gnubg(config.plies) if config.opponent == "gnubg" else player_of(config.opponent)
    match = Arena(kernels_of(loaded.game), player, opponent, config.games, config.seed, opening_plies=0)
    with Progress("games") as progress:
        for result in match:
            progress.show(result.num_games / config.games, f"{result.num_games} are over")
    points = points_of(loaded.game, match.result())
    mean, half = interval_of(points)
    counts = {worth: int((points == worth).sum()) for worth in (3, 2, 1, -1, -2, -3)}
    print(f"{player.name} against {opponent.name}, {result.num_games} games")
    print(f"points a game  {mean:+.3f} (95% interval {mean - half:+.3f} to {mean + half:+.3f})")
    print("games          " + ", ".join(f"{count} of {worth:+d}" for worth, count in counts.items()))
    print(f"ms per move    {result.ms_per_move[0]:.2f} and {result.ms_per_move[1]:.2f}")


if __name__ == "__main__":
    sys.exit(run_command(main))
