"""Writes a small working game and its test, `alphazero new my_game`; checks its rules, `alphazero check my_game.py`."""

from __future__ import annotations

import importlib.util
import keyword
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from alphazero.catalogue import registry
from alphazero.commands.shared import parse
from alphazero.errors import InvalidSetting, LawBroken, StorageError, count_of, quote
from alphazero.game import Game
from alphazero.game.validator import Findings, validate
from alphazero.invocation import command_line, quoted
from alphazero.settings import check_ranges
from alphazero.storage.files import atomic_write

GAME = '''\
"""TITLE: on a board of 4 x 4 squares, three of one's stones in a row or column win. Change it into your game.

`state` is what the rules work on: words of 64 bits, here the stones of the player to move and of the opponent, one
bit a square. Words stay `np.uint64`: write np.uint64(1), not 1, where they are combined. Row 0 is at the top.
"""

import numpy as np

from alphazero.game import Game, Rules

SIZE = 4  # up to 8: a larger board takes more words than one for each player
LETTERS = "abcdefgh"[:SIZE]
ONE = np.uint64(1)
FULL = np.uint64(2 ** (SIZE * SIZE) - 1)
# three squares in a row and in a column, the first square in a corner, and how often they fit on the board
LINES = ((0b111, SIZE, SIZE - 2), (1 | 1 << SIZE | 1 << 2 * SIZE, SIZE - 2, SIZE))


def has_line(stones):
    for line, rows, columns in LINES:
        for row in range(rows):
            for column in range(columns):
                squares = np.uint64(line) << np.uint64(SIZE * row + column)
                if stones & squares == squares:
                    return True
    return False


def init(state):  # the start position: write every word
    state[0] = np.uint64(0)
    state[1] = np.uint64(0)


def legal(state, legal_mask):  # write every entry; not asked when the game is over
    for square in range(SIZE * SIZE):
        legal_mask[square] = (state[0] | state[1]) & (ONE << np.uint64(square)) == np.uint64(0)


def step(state, action):  # play a legal action; then the state is seen by whoever moves next
    own = state[0] | (ONE << np.uint64(action))
    state[0] = state[1]
    state[1] = own


def is_terminal(state):
    return has_line(state[1]) or state[0] | state[1] == FULL


def terminal_value(state):  # -1, 0 or 1 for the player to move: here only the opponent can have won, by the last ply
    return -1.0 if has_line(state[1]) else 0.0


def observe(state, planes):  # what the network sees, all zero before: own stones, the opponent's
    for square in range(SIZE * SIZE):
        planes[0, square // SIZE, square % SIZE] = (state[0] >> np.uint64(square)) & ONE
        planes[1, square // SIZE, square % SIZE] = (state[1] >> np.uint64(square)) & ONE


class CLASS(Game):
    name = "NAME"
    num_actions, state_words, max_plies = SIZE * SIZE, 2, SIZE * SIZE
    observation_shape = (2, SIZE, SIZE)  # planes, rows, columns
    rules = Rules(init, legal, step, is_terminal, terminal_value, observe)

    def render(self, state, to_play):
        marks = ".XO" if to_play == 0 else ".OX"
        cells = [marks[(int(state[0]) >> i & 1) + 2 * (int(state[1]) >> i & 1)] for i in range(SIZE * SIZE)]
        rows = [" ".join(cells[SIZE * row : SIZE * (row + 1)]) for row in range(SIZE)]
        return "\\n".join(f"{row + 1} {line}" for row, line in enumerate(rows)) + f"\\n  {' '.join(LETTERS)}"

    def format_action(self, action, state):  # how people write it
        return f"{LETTERS[action % SIZE]}{action // SIZE + 1}"

    def parse_action(self, text, state):
        return LETTERS.index(text[0]) + SIZE * (int(text[1:]) - 1)
'''

TEST = '''\
"""Tests of NAME: run them with `pytest test_NAME.py`."""

from NAME import CLASS

from alphazero.game.validator import validate


def test_it_keeps_all_laws():
    assert validate(CLASS(), num_games=50).warnings == []


def test_three_in_a_row_or_column_win():
    row, column = CLASS().position("a1 a2 b1 b2 c1"), CLASS().position("a1 b1 a2 b2 c4 b3")
    assert row.terminal and row.outcome == 1  # the first player has won
    assert column.terminal and column.outcome == -1  # the second player has won
    assert not CLASS().position("a1 a2 b1 b2 d1").terminal
'''


@dataclass(frozen=True)
class NewGameConfig:
    """Writes NAME.py, a small working game to be changed into your own, and test_NAME.py, its test."""

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
    """The name of the game: small letters, digits and underscores, as in my_game."""
    folder: Path = Path()
    """The folder to write both files into."""

    def __post_init__(self) -> None:
        is_word = re.fullmatch(r"[a-z][a-z0-9_]*", self.name) and not keyword.iskeyword(self.name)
        found = importlib.util.find_spec(self.name) if is_word else None
        mine = (self.folder / f"{self.name}.py").resolve()  # `main` says what to do about a file that is there already
        is_module = found and (found.origin is None or Path(found.origin).resolve() != mine)
        if not is_word or self.name in registry.NAMES or is_module or keyword.iskeyword(self.class_name):
            raise InvalidSetting(
                f"{quote(self.name)} cannot name a game: use small letters, digits and underscores, as in my_game, "
                "and no name of a shipped game, a Python module or a keyword"
            )
        if not os.path.isdir(self.folder):
            raise InvalidSetting(f"--folder takes a folder that exists, not {quote(str(self.folder), 200)}")

    @property
    def class_name(self) -> str:
        """The name of the game's class, as MyGame for my_game."""
        return "".join(word.capitalize() for word in self.name.split("_"))


def main(argv: list[str]) -> None:
    config = parse(NewGameConfig, argv, command="new")
    game, test = config.folder / f"{config.name}.py", config.folder / f"test_{config.name}.py"
    for path in (game, test):
        if os.path.lexists(path):
            raise StorageError(f"{path} is there already, and nothing was written; choose another name or --folder")
    words = {"CLASS": config.class_name, "NAME": config.name, "TITLE": config.name.replace("_", " ").capitalize()}
    for path, text in ((game, GAME), (test, TEST)):
        atomic_write(path, re.sub("CLASS|NAME|TITLE", lambda found: words[found[0]], text).encode())
    print(
        f"{game} and {test} are written. Change the rules, then check that the game keeps its laws:\n"
        f"  {command_line('check', game)}\nRun its test (pip install pytest pytest-xdist):\n"
        f"  {quoted('python', '-m', 'pytest', test)}\nTrain a network for three minutes:\n"
        f"  {command_line('train', '--game', game, '--minutes', 3)}"
    )


OUTCOMES = {"first player": 1, "draw": 0, "second player": -1}


@dataclass(frozen=True)
class CheckConfig:
    """Plays random games to check that the rules of a game are sound, and describes the game."""

    game: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="GAME")]
    """The game: a name, a Python file or a module."""
    games: int = 100
    """Random games to play. The check ends after half a minute if they take longer."""
    seed: int = 0
    """Seed of the random games."""

    def __post_init__(self) -> None:
        check_ranges(self, games=(1, 1_000_000), seed=(0, (1 << 63) - 1))


def check(argv: list[str]) -> None:
    config = parse(CheckConfig, argv, command="check")
    game = registry.load(config.game).game
    try:
        findings = validate(game, config.games, config.seed)
    except LawBroken as error:
        if error.drawing:
            print(error.drawing, file=sys.stderr)
        raise
    warnings = "".join(f"\n\nwarning: {warning}" for warning in findings.warnings)
    print(f"{describe(game, findings)}\n\nthe first game: {findings.example}{warnings}")
    but = ", but mind the warning above" if warnings else ""
    command = command_line("train", "--game", config.game, "--minutes", 3)
    print(f"\n{game.name} keeps all laws{but}. Next:\n  {command}")


def describe(game: Game, findings: Findings) -> str:
    """A table of facts that the games showed."""
    total, lengths, branching = findings.num_games, np.array(findings.lengths), np.array(findings.branching)
    won, ended = sum(findings.last_mover_won), len(findings.last_mover_won)
    last = {"won": won, "lost": ended - won, "drew": total - ended}
    outcomes = {words: findings.outcomes[outcome] for words, outcome in OUTCOMES.items()}
    speed = f"{findings.plies_per_second:,.0f} plies a second as plain Python"
    if findings.compiled_per_second is not None:
        speed = f"{findings.compiled_per_second:,.0f} positions a second compiled, on one core; {speed}"
    lines = {
        "random games": f"{total}, {count_of(findings.num_positions, 'position')} checked",
        "length": f"{lengths.mean():.1f} plies, {lengths.min()} to {lengths.max()} (max_plies {game.max_plies})",
        "branching": f"{branching.mean():.1f} legal actions, up to {branching.max()} of {game.num_actions}",
        "outcomes": ", ".join(f"{words} {count / total:.0%}" for words, count in outcomes.items()),
        "last mover": ", ".join(f"{words} {count / total:.0%}" for words, count in last.items()) + " of the games",
        "turns": "`to_play` says who moves" if game.rules.to_play else "players alternate",
        "symmetries": f"{len(game.symmetries[1])}"
        + ("" if game.rules.transform or not game.compiled else ", no `transform`"),
        "network": "observations of {} planes, {} x {}".format(*game.observation_shape),
        "speed": speed,
    }
    if points := findings.points:
        mean, lowest, highest = np.mean(points), min(points), max(points)
        lines |= {"outcomes": f"{mean:,.5g} points, {lowest:,g} to {highest:,g}", "turns": "a game for one"}
        del lines["last mover"]
    return "\n".join(f"{name:<14}{text}" for name, text in lines.items())
