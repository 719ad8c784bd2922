"""A few games of each generation that people can step through: played by a worker, kept in the run folder.

shown_NNNN.json            at most MOST_GAMES games as records, sealed by their SHA-256; nothing else reads them
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from alphazero.errors import InputError, StorageError
from alphazero.game import Game, Position
from alphazero.game.functions import plain
from alphazero.game.python_game import PythonGame
from alphazero.game.randomness import OPENING, make_key, uniform
from alphazero.game.record import RESULTS, GameRecord, record_of, words_of
from alphazero.storage.files import read_sealed_json, write_sealed_json

MOST_GAMES = 4
"""Games of a generation."""
LONGEST = 5_000
"""Plies of a game that is kept: longer ones would not fit into the file."""
SEAL = "shown_sha256"
FORMAT = 1
_make_key, _uniform = plain(make_key), plain(uniform)
"""A few draws are not worth compiling for."""


class FinishedGame(NamedTuple):
    """A game of self-play as its worker saw it."""

    number: int
    """The game's number in the run, which keys its random opening."""
    states: np.ndarray
    """`uint64[n, K]`, without the words of history: the positions after the random opening, the last one terminal."""
    opening_plies: int
    """The number of random plies at the beginning."""


def actions_of(game: Game, finished: FinishedGame, seed: int) -> tuple[int, ...] | None:
    """The actions, and outcomes of dice, from the start position to the end.

    None if the states do not follow in a run of that `seed`.
    """
    position = game.start()
    if not game.num_outcomes:  # a game with dice has no random opening
        with np.errstate(over="ignore"):
            key = _make_key(seed, finished.number, 0, OPENING)
            marks = [_uniform(key, ply + 1) for ply in range(finished.opening_plies)]
        for mark in marks:  # as `rollouts` draws them
            if position.terminal:
                return None
            legal = position.legal_actions
            position = position.play(legal[int(mark * len(legal))])
    for number, state in enumerate(finished.states):
        if (reached := _reach(position, state, plays=number > 0)) is None:
            return None
        position = reached
    return position.actions


def _reach(position: Position, state: np.ndarray, plays: bool) -> Position | None:
    """The position of that state, after an action if somebody `plays`, and after dice; None if none leads there."""
    if isinstance(game := position.game, PythonGame):  # its state tells them, and to try all others can take long
        try:
            for move in game.actions_of(state)[len(position.actions) :]:
                position = position.play(move)
        except InputError:
            return None
        return position if np.array_equal(position.state, state) else None
    wave: Iterable[Position] = map(position.play, position.legal_actions) if plays else [position]
    while wave:
        passed = []
        for found in wave:
            if np.array_equal(found.state[: len(state)], state):
                return found
            passed.append(found)
        wave = [found.play(outcome) for found in passed for outcome in range(len(found.chances))]
    return None


def records_of_games(
    game: Game, name: str, finished: Sequence[FinishedGame], seed: int, player: str
) -> list[GameRecord]:
    """The records of finished games; `player` played both sides."""
    records = []
    for one in finished:
        if len(one.states) <= LONGEST and (actions := actions_of(game, one, seed)) is not None:
            words, end, plies = tuple(words_of(game.start(), actions)), game.position(actions), one.opening_plies
            result = RESULTS[end.outcome] if end.terminal else "*"
            players, seconds = (player, player), (0.0, 0.0)
            records.append(GameRecord(name, one.number, players, words[:plies], words[plies:], result, seconds, seed))
    return records


def write_shown(folder: Path, generation: int, records: Sequence[GameRecord]) -> None:
    """Keeps the games of a generation."""
    games = [{**asdict(record), "seconds": [0.0, 0.0]} for record in records]
    value = {"format": FORMAT, "generation": generation, "games": games}
    write_sealed_json(folder / f"shown_{generation:04d}.json", value, SEAL)


def read_shown(folder: Path, generation: int) -> list[GameRecord]:
    """The games of a generation; raises StorageError if there are none or a bit of them has changed."""
    path = folder / f"shown_{generation:04d}.json"
    value = read_sealed_json(path, SEAL)
    if value.get("format") != FORMAT or not isinstance(value.get("games"), list):
        raise StorageError(f"{path} does not hold games of this version")
    return [record_of(game, str(path)) for game in value["games"]]


def shown_generations(folder: Path) -> list[int]:
    """The generations with games to step through, in ascending order."""
    numbers = (path.stem.removeprefix("shown_") for path in folder.glob("shown_*.json"))
    return sorted(int(number) for number in numbers if number.isdecimal())
