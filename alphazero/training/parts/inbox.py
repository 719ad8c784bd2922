"""Games that have arrived and wait for their generation: on disk before they count, each taken once.

    arrived_NNNNNNNNN.npz      chunks that came together, in the run folder; removed when their generation is committed

A process that is killed loses none of them: the manifest of a generation names the arrivals that it took, and a resume
goes on with the others.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from alphazero.errors import StorageError, count_of
from alphazero.game import Game
from alphazero.storage.files import atomic_write, read_bytes
from alphazero.storage.metrics_file import move_aside
from alphazero.storage.run_folder import RunFolder
from alphazero.training.parts.chunk import HEADER_BYTES, Chunk, join, pack, raw_bytes, unpack, without

logger = logging.getLogger(__name__)

GENERATIONS = 8
"""A file with the games of more generations than this is refused."""
MODEST_BYTES = 64 << 20
"""A file up to this size is never refused: its games may have come when the settings asked for more of them."""
_NAME = re.compile(r"arrived_(\d{9,18})\.npz", re.ASCII)


@dataclass
class _Arrival:
    number: int
    chunk: Chunk


def most_games(game: Game, games_per_generation: int) -> int:
    """The most games that a file may have in a run with that many games per generation."""
    return max(GENERATIONS * games_per_generation, MODEST_BYTES // raw_bytes(game, game.max_plies, 1))


def bytes_of_arrival(path: Path, game: Game, most_games: int) -> bytes:
    """The content of a file of games, for `unpack`; raises StorageError if it has more than `most_games`."""
    return read_bytes(path, raw_bytes(game, most_games * game.max_plies, most_games) + HEADER_BYTES)


class Inbox:
    """The games that wait. One thread adds them, another takes them."""

    def __init__(self, folder: RunFolder, game: Game, most_games: int):
        """A file with more than `most_games` games is refused."""
        self._folder, self._game, self._most_games = folder, game, most_games
        self._lock = threading.Lock()
        self._waiting: deque[_Arrival] = deque()
        self._next = 0
        self.taken: list[int] = []
        """Arrivals whose games are taken, for the next manifest: by the generation in progress, or their files stay."""
        self.num_left_out = 0
        """Games that were too old, since `count_left_out` was last asked."""

    def restore(self, taken: Iterable[int]) -> int:
        """Reads what waits in the folder, less what the newest generation has `taken`.

        Returns the smallest number above those of all games there.
        """
        taken, past = set(taken), 0
        self._next = max(taken, default=-1) + 1
        for number, path in arrivals_in(self._folder.path).items():
            self._next = max(self._next, number + 1)
            if number in taken:
                if not self._remove(path):
                    self.taken.append(number)
                continue
            chunk = self._read(path)
            if chunk is None:
                continue
            past = max(past, int(chunk.games[:, 0].max(initial=-1)) + 1)
            self._waiting.append(_Arrival(number, chunk))
        if waiting := self.num_games:
            logger.info("arrived before, for the next generation: %s", count_of(waiting, "game"))
        return past

    def _read(self, path: Path) -> Chunk | None:
        """The games in a file; None if they are left out. Nothing is lost: what is damaged is moved aside."""
        try:
            content = bytes_of_arrival(path, self._game, self._most_games)
        except StorageError as error:
            logger.warning("%s; its games are left out, and it stays where it is", error)
            return None
        try:
            return unpack(content, str(path), self._game, self._most_games)
        except StorageError as error:
            logger.warning(
                "%s; its games are left out, and it has been renamed to %s", error, move_aside(path, "damaged")
            )
            return None

    def _remove(self, path: Path) -> bool:
        """Removes a file whose games a generation has taken; says whether it is gone."""
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            logger.warning("cannot remove %s, whose games have been taken: %s", path, error.strerror)
            return False
        return True

    @property
    def num_games(self) -> int:
        """Games that wait."""
        with self._lock:
            return sum(arrival.chunk.num_games for arrival in self._waiting)

    def add(self, chunks: list[Chunk]) -> None:
        """Writes the chunks as one file; from then on their games count."""
        chunks = [chunk for chunk in chunks if chunk.num_games]
        if not chunks:
            return
        self._folder.check()
        arrival = _Arrival(self._next, join(chunks))
        atomic_write(self._path(arrival.number), pack(arrival.chunk))
        with self._lock:
            self._next += 1
            self._waiting.append(arrival)

    def leave_out(self, oldest: int) -> None:
        """Drops the games in which weights of generations before `oldest` have played."""
        with self._lock:
            for arrival in self._waiting:
                old = arrival.chunk.games[:, 2] < oldest
                self.num_left_out += int(old.sum())
                arrival.chunk = without(arrival.chunk, old)

    def take(self, num_games: int) -> Chunk | None:
        """The arrivals that came first, until they have so many games; None if none waits."""
        found: list[Chunk] = []
        with self._lock:
            while self._waiting and sum(chunk.num_games for chunk in found) < num_games:
                arrival = self._waiting.popleft()
                self.taken.append(arrival.number)
                found.append(arrival.chunk)
        return join(found) if found else None

    def count_left_out(self) -> int:
        """Games that were too old since the last call."""
        count, self.num_left_out = self.num_left_out, 0
        return count

    def committed(self) -> None:
        """The generation is on disk: removes the files of what it took."""
        self.taken = [number for number in self.taken if not self._remove(self._path(number))]

    def _path(self, number: int) -> Path:
        return self._folder.path / f"arrived_{number:09d}.npz"


def arrivals_in(folder: Path) -> dict[int, Path]:
    """The files of games by their numbers, in ascending order."""
    found = {path: _NAME.fullmatch(path.name) for path in folder.glob("arrived_*.npz")}
    return dict(sorted((int(match[1]), path) for path, match in found.items() if match))
