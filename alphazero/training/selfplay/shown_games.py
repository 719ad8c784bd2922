"""A few games of each generation that people can step through: played by a worker, kept in the run folder.

shown_NNNN.json            at most MOST_GAMES games as records, sealed by their SHA-256; nothing else reads them
"""

from __future__ import annotations

from collections.abc import Sequence
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
    """The actions from the start position to the end; None if the states do not follow in a run of that `seed`."""
    position = game.start()
    if game.num_outcomes:
        return _with_outcomes(position, finished.states)
    with np.errstate(over="ignore"):
        key = _make_key(seed, finished.number, 0, OPENING)
        marks = [_uniform(key, ply + 1) for ply in range(finished.opening_plies)]
    for mark in marks:  # as `rollouts` draws them
        if position.terminal:
            return None
        legal = position.legal_actions
        position = position.play(legal[int(mark * len(legal))])
    if not np.array_equal(position.state[: len(finished.states[0])], finished.states[0]):
        return None
    for state in finished.states[1:]:
        legal = position.legal_actions
        if isinstance(game, PythonGame):  # its state tells the action, and to play all others can take long
            told = game.actions_of(state)[-1:] if state[0] == position.ply + 1 <= game.max_plies else []
            legal = [action for action in told if action in legal]
        children = (position.play(action) for action in legal)
        after = next((child for child in children if np.array_equal(child.state[: len(state)], state)), None)
        if after is None:
            return None
        position = after
    return position.actions


def _with_outcomes(start: Position, states: np.ndarray) -> tuple[int, ...] | None:
    """The actions and outcomes of dice that lead from the start to each state in turn; None if none do."""
    if isinstance(start.game, PythonGame):  # its last state tells them all
        try:
            told = start.game.position(start.game.actions_of(states[-1]))
        except InputError:
            return None
        on_the_way = {position.state.tobytes() for position in told.history}
        return told.actions if all(state.tobytes() in on_the_way for state in states) else None
    found, wave = start, [start]
    for number, state in enumerate(states):
        wave = [found] if number == 0 else [found.play(action) for action in found.legal_actions]
        while all(not np.array_equal(position.state[: len(state)], state) for position in wave):
            wave = [position.play(outcome) for position in wave for outcome in range(len(position.chances))]
            if not wave:
                return None
        found = next(position for position in wave if np.array_equal(position.state[: len(state)], state))
    return found.actions


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
