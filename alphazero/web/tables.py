"""One game at the page: its board and positions as messages, its contestants, its oracle, its records."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from alphazero.catalogue import registry
from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import InputError, quote
from alphazero.game import Game, Position
from alphazero.game.kernels import kernels_of
from alphazero.game.reading.moves import read_moves
from alphazero.game.reading.record_files import FORMATS
from alphazero.game.record import RESULTS, GameRecord, line_of, lone_seat, words_of
from alphazero.game.rules import points_so_far
from alphazero.game.spec import Oracle
from alphazero.players.contestants import Contestant, load_net, text_of
from alphazero.storage.manifest import CONFIG, generations_of, read_config
from alphazero.storage.metrics_file import METRICS
from alphazero.storage.schema import MOST_TEXT
from alphazero.web.message import BadMessage, Question
from alphazero.web.seats import Seat, given_seat, kept, saved_net, usual_seats

MOST_RUNS = 50
"""Runs, the newest, that the page offers as contestants."""
MOST_NETS = 8
"""Nets of a game that stay in memory."""
RUN, TOURNAMENT = (CONFIG, METRICS), ("tournament.json", "all_games.jsonl")
"""A file that such a folder has, and one that changes."""
config_of = kept(lambda run: read_config(run), 200, CONFIG)
"""The settings of a run, as `read_config` reads them; raises StorageError."""


@dataclass(frozen=True)
class Stage:
    """A game and the folders that a page is started with."""

    name: str
    """The name by which the game can be loaded."""
    loaded: LoadedGame
    given: Sequence[Contestant] = ()
    """Contestants besides those that every page has."""
    runs: Path | None = None
    """The folder of runs to watch, if any."""
    tournaments: Path | None = None
    device: str = "auto"


class Table:
    """A game with all that the page needs."""

    def __init__(self, stage: Stage):
        self.name, loaded, device = stage.name, stage.loaded, stage.device
        self.loaded, self.game, self._runs = loaded, loaded.game, stage.runs
        self._nets = kept(lambda path: load_net(str(path), loaded, device), MOST_NETS)
        self._seats = [
            given_seat(f"given:{number}", contestant, loaded, self._nets, device)
            for number, contestant in enumerate(stage.given)
        ]
        ids = {seat.id for seat in self._seats}
        self._seats += [seat for seat in usual_seats(loaded, self._nets) if seat.id not in ids]
        self._lock = threading.Lock()

    @cached_property
    def oracle(self) -> Oracle | None:
        return self.loaded.make_oracle(self.game) if self.loaded.make_oracle else None

    def results(self, position: Position) -> list[dict[str, Any]]:
        """The exact results of the legal actions for a message, the best first; empty where nobody knows them."""
        with self._lock:  # one position at a time
            found = self.oracle.results(position) if self.oracle else {}
        return [{"action": action, **asdict(result)} for action, result in found.items()]

    # --- positions ---

    def position(self, question: Question) -> Position:
        """The position that a question is about; raises InputError."""
        position = self.game.start()
        if question.board is not None:
            position = self.game.position(question.board)
            if position.actions:
                raise InputError("this is no board, but moves")
        if question.moves is not None:
            moves = " ".join(question.moves.split())  # as pasted, with tabs and such
            return self.game.position(moves) if question.board is None else read_moves(position, moves)
        for action in question.actions:
            position = position.play(action)
        return position

    def rolled(self, position: Position, seed: int) -> Position:
        """The position after all dice that are due; what they show depends on the seed and the ply alone."""
        if position.chances:
            at = np.zeros(1, np.int64), np.array([position.ply])
            state, movers = position.state[None].copy(), np.zeros(1, np.int8)
            outcomes = kernels_of(self.game).roll(state, movers, seed, *at)
            for outcome in outcomes[outcomes >= 0]:
                position = position.play(int(outcome))
        return position

    def position_fields(self, position: Position) -> dict[str, Any]:
        """A position, and how it came about, for a message; with dice it says which actions are what a die showed."""
        *before, _ = position.history
        pairs = list(zip(before, position.actions, strict=True))
        view, more = asdict(position.view), dict[str, Any]()
        if self.game.num_outcomes:
            view["dice"], more["rolled"] = bool(position.chances), [bool(at.chances) for at, _ in pairs]
        if points := shown_points(position):
            view["points"], view["gained"] = points, gained(position)
        if self.game.value_shape and position.terminal:
            view["values"] = values_at_end(position)
        return {
            **more, "actions": list(position.actions), "words": [at.format(action) for at, action in pairs],
            "movers": [at.to_play for at, _ in pairs], "set_up": position.is_set_up, "view": view,
        }  # fmt: skip

    # --- contestants ---

    def seats(self) -> list[Seat]:
        """All contestants, the runs of the runs' folder included."""
        found = self._seats[:]
        for path in newest(self._runs, *RUN)[:MOST_RUNS]:
            with contextlib.suppress(InputError):
                ours = is_game(str(config_of(path).get("game")), self.name, self.game)
                if ours and generations_of(path, "generation"):
                    text = text_of(path)  # a run in `best` is not the shipped net
                    found.append(saved_net(f"run:{path.name}", f"run {path.name}", self.loaded, self._nets, text, path))
        return found

    def seat(self, question: Question) -> tuple[Seat, int, int | None]:
        """The contestant that a question names, with its number and generation; raises InputError."""
        if question.player is None:
            raise BadMessage("player is missing")
        id, step = question.player.id, question.player.step
        seat = next((seat for seat in self.seats() if seat.id == id), None)
        if seat is None:
            raise InputError(f"there is no contestant {quote(id)} here; choose one from the list")
        if seat.slider is None or step is None:
            step = seat.slider.start if seat.slider else 0
        elif not min(seat.slider.steps) <= step <= max(seat.slider.steps):
            raise BadMessage(f"step must be one of {', '.join(map(str, seat.slider.steps))}")
        return seat, step, question.player.generation

    def fields(self) -> dict[str, Any]:
        """The game for a message."""
        return {
            "game": self.name,
            "title": title_of(self.game.name),
            "board": asdict(self.game.board),
            "alone": self.game.num_players == 1,
            "seats": self.game.num_players,
            "score": score_fields(self.game),
            "players": [seat.as_fields() for seat in self.seats()],
            "oracle": self.oracle and {"how": self.oracle.how, "unit": self.oracle.unit},
            "moves_run_together": self.game.split_moves("12") != ["12"],
            "formats": formats_of(self.game),
        }

    # --- records ---

    def record_text(self, question: Question) -> str:
        """The game so far as a line of a games file, or as a file with the suffix `name`; with `resigned`, that side
        has lost it."""
        position = self.position(question)
        names = question.first, question.second, *question.others
        if len(names) != max(2, self.game.num_players) or (question.resigned or 0) >= len(names):
            raise BadMessage(f"a game of {self.game.name} has a name for each player")
        result, forfeit = RESULTS[position.outcome] if position.terminal else "*", ""
        if (side := question.resigned) is not None and not position.terminal:
            others_win = 1 if len(names) == 2 else 0  # more than one share it
            result, forfeit = (
                RESULTS[others_win if side else -1],
                f"{names[side]}: {question.reason or 'resigns'}"[:MOST_TEXT],
            )
        words = tuple(words_of(position.start, position.actions))
        board = (question.board or question.moves or "") if position.is_set_up else ""
        record = GameRecord(self.name, 0, names, (), words, result, (0.0, 0.0), 0, forfeit, board=board)
        kind = FORMATS.get(question.name)
        return line_of(record) if kind is None else kind.write(self.game, [record]).decode(errors="replace").strip()

    def record_fields(self, record: GameRecord) -> dict[str, Any]:
        """A record for a message: its board, actions, players and result. Raises InputError."""
        position, names = record.positions(self.game)[-1], list(record.contestants)
        if len(names) < self.game.num_players:
            names[0] += f" (player {lone_seat(self.game, record.number) + 1})"
        return {
            "game": self.name, "board": record.board if position.is_set_up else "",
            "actions": list(position.actions), "opening": len(record.opening),
            "contestants": names, "result": record.result, "forfeit": record.forfeit,
        }  # fmt: skip


def formats_of(game: Game) -> list[str]:
    """The suffixes of the text files in which other programs keep games of this kind."""
    found = []
    for suffix in (".pgn", ".sgf", ".ggf"):
        with contextlib.suppress(InputError):
            FORMATS[suffix].write(game, [])
            found.append(suffix)
    return found


def shown_points(position: Position) -> str:
    """The points of the end, or in a game for one those so far, in words; "" where there are none to tell."""
    game = position.game
    if game.score is None or not (position.terminal or game.points_word is not None):
        return ""
    if game.num_players > 2 and position.terminal:
        return f"{', '.join(f'{result:,g}' for result in position.results)} {game.score.unit}"
    points = abs(position.points) if position.terminal else float(points_so_far(position.state, game.points_word))
    return f"{points:,g} {game.score.unit}"


def values_at_end(position: Position) -> tuple[float, ...]:
    """The value of the result for each player, the first player's first."""
    size = position.game.score.size if position.game.score else 1.0
    return tuple(result / size for result in position.results)


def score_fields(game: Game) -> dict[str, Any] | None:
    """A game's points for a message: how many the value 1 stands for, and which word counts those so far."""
    score = game.score
    return None if score is None else {"size": score.size, "unit": score.unit, "word": game.points_word}


def gained(position: Position) -> float:
    """The value of the points at the end, or of those so far in a game for one, for the first player."""
    game = position.game
    if position.terminal:
        return values_at_end(position)[0]
    return float(points_so_far(position.state, game.points_word)) / game.score.size if game.score else 0.0


def is_game(saved: str, name: str, game: Game) -> bool:
    """The name in a run or a record means `game`, which was loaded by `name`; no file is opened for it.

    The path of a file can be written in many ways, so its last part decides. Shipped games have one name alone: a file
    of one's own may be called as they are.
    """
    if saved in (name, game.name):
        return True
    shipped = saved in registry.NAMES or game.name in registry.NAMES
    return not shipped and plain_name(saved) in (plain_name(name), game.name)


def plain_name(name: str) -> str:
    """A game's name without the folder and the ending of its file."""
    return re.split(r"[\\/]", name)[-1].removesuffix(".py")


def title_of(name: str) -> str:
    """A game's name for people."""
    return re.sub(r"(?<=[a-z])(?=\d)", " ", name.replace("_", " ").capitalize())


def newest(folder: Path | None, needed: str, changing: str) -> list[Path]:
    """The runs or tournaments in a folder, the one that changed last first; links that lead elsewhere are left out."""
    found = []
    with contextlib.suppress(OSError):  # as of a folder that is not there or may not be read
        for path in folder.iterdir() if folder is not None else ():
            # unlike methods of Path, these take a folder that may not be entered for an empty one
            if os.path.isfile(path / needed) and not os.path.islink(path) and path.name.isprintable():
                file = path / changing if os.path.isfile(path / changing) else path / needed
                with contextlib.suppress(OSError):
                    found.append((-os.path.getmtime(file), path))
    return [path for _, path in sorted(found)]
