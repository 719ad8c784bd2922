"""Games that have arrived from a cluster: on disk before they count, each taken once.

    arrived_NNNNNNNNN.npz      chunks that came together, in the run folder; removed when their generation is committed

A process that is killed loses none of them: the manifest of a generation names the arrivals that it took, and a resume
goes on with the others. Games travel as compressed arrays, which whoever gets them checks:

    states policies outcomes values     the samples, game after game
    games                               number, samples, first weights of each game
    counts                              what the worker has counted since its last chunk
    shown_states, shown                 a few games for people to step through
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path

import numpy as np

from alphazero.errors import StorageError, count_of
from alphazero.game import Game
from alphazero.game.rules import shown_words
from alphazero.storage.arrays import Array, pack_npz, read_npz
from alphazero.storage.files import atomic_write, read_bytes
from alphazero.storage.run_folder import RunFolder
from alphazero.training.replay_buffer import Samples, sample_arrays
from alphazero.training.selfplay import FinishedGame, SelfPlayCounts
from alphazero.training.selfplay.shown_games import MOST_GAMES

logger = logging.getLogger(__name__)

HEADER_BYTES = 1 << 14
"""More than the names and headers of all arrays take."""
GENERATIONS = 8
"""A file with the games of more generations than this is refused."""
MODEST_BYTES = 64 << 20
"""A file up to this size is never refused: its games may have come when the settings asked for more of them."""
_NAME = re.compile(r"arrived_(\d{9,18})\.npz", re.ASCII)


@dataclass(frozen=True)
class Chunk:
    """Some games of one worker."""

    samples: Samples
    games: np.ndarray
    """`int64[n, 3]`: number, number of samples, generation of the first weights that played in it."""
    counts: SelfPlayCounts = field(default_factory=SelfPlayCounts)
    """Since the worker's last chunk; games in progress count, too."""
    cpu_milliseconds: int = 0
    """The same."""
    shown: list[FinishedGame] = field(default_factory=list)
    """As `Worker.finished_games`."""

    @property
    def num_games(self) -> int:
        return len(self.games)


def raw_bytes(game: Game, num_samples: int, num_games: int) -> int:
    """Bytes of so many samples before they are compressed: no chunk may have more than a little above that."""
    return num_samples * (8 * game.state_words + 4 * game.num_actions + 8) + 24 * num_games


def pack(chunk: Chunk) -> bytes:
    """The chunk as bytes; equal chunks give equal bytes."""
    shown = [(finished.number, len(finished.states), finished.opening_plies) for finished in chunk.shown]
    words = chunk.samples.states.shape[1]
    return pack_npz(chunk.samples.arrays() | {
        "games": chunk.games,
        "counts": np.array([*astuple(chunk.counts), chunk.cpu_milliseconds], np.int64),
        "shown": np.array(shown, np.int64).reshape(-1, 3),
        "shown_states": np.concatenate([np.empty((0, words), np.uint64), *(one.states for one in chunk.shown)]),
    })  # fmt: skip


def unpack(content: bytes, where: str, game: Game, most_games: int) -> Chunk:
    """The chunk in the bytes; raises StorageError unless it could be one of that game with at most so many games."""
    most, shown_most = most_games * game.max_plies, MOST_GAMES * (game.max_plies + 1)
    most_bytes = raw_bytes(game, most, most_games) + 8 * game.state_words * shown_most + HEADER_BYTES
    expected = sample_arrays(game) | {
        "games": Array(np.int64, ("games", 3), 0),
        "counts": Array(np.int64, (len(astuple(SelfPlayCounts())) + 1,), 0),
        "shown": Array(np.int64, ("shown", 3), 0),
        "shown_states": Array(np.uint64, ("shown_states", shown_words(game))),
    }
    limits = {"n": most, "games": most_games, "shown": MOST_GAMES, "shown_states": shown_most}
    arrays = read_npz(where, expected, limits, most_bytes, content)
    samples = Samples(**{name: arrays[name] for name in sample_arrays(game)})
    games, (numbers, lengths, openings) = arrays["games"], arrays["shown"].T
    if (
        len(samples) != games[:, 1].sum() or (games[:, 1] > game.max_plies).any()
        or len(np.unique(games[:, 0])) != len(games)
        or len(arrays["shown_states"]) != lengths.sum() or ((lengths < 1) | (lengths > game.max_plies + 1)).any()
        or (openings >= game.max_plies).any()
    ):  # fmt: skip
        raise StorageError(f"{where}: its games, its samples and its games to show do not fit each other")
    paths = np.split(arrays["shown_states"], np.cumsum(lengths)[:-1])
    shown = [FinishedGame(int(n), path, int(plies)) for n, path, plies in zip(numbers, paths, openings, strict=False)]
    *counts, milliseconds = map(int, arrays["counts"])
    return Chunk(samples, games, SelfPlayCounts(*counts), milliseconds, shown)


def join(chunks: list[Chunk]) -> Chunk:
    """The games of several chunks, one after another, without counts and games to show."""
    return Chunk(Samples.join([chunk.samples for chunk in chunks]), np.concatenate([chunk.games for chunk in chunks]))


def without(chunk: Chunk, dropped: np.ndarray) -> Chunk:
    """The chunk less the games where `dropped bool[n]` is true."""
    kept = np.repeat(~dropped, chunk.games[:, 1])
    samples = Samples(*(array[kept] for array in chunk.samples.arrays().values()))
    return replace(chunk, samples=samples, games=chunk.games[~dropped])


def most_games(game: Game, games_per_generation: int) -> int:
    """The most games that a file may have in a run with that many games per generation."""
    return max(GENERATIONS * games_per_generation, MODEST_BYTES // raw_bytes(game, game.max_plies, 1))


def read_arrival(path: Path, game: Game, most_games: int) -> Chunk:
    """The games in a file; raises StorageError if it is damaged, or has more than `most_games`."""
    content = read_bytes(path, raw_bytes(game, most_games * game.max_plies, most_games) + HEADER_BYTES)
    return unpack(content, str(path), game, most_games)


class Arrivals:
    """The games that wait for their generation. One thread adds them, another takes them."""

    def __init__(self, folder: RunFolder, game: Game, most_games: int):
        """A file with more than `most_games` games is refused."""
        self._folder, self._game, self._most_games = folder, game, most_games
        self._lock = threading.Lock()
        self._waiting: deque[tuple[int, Chunk]] = deque()
        self._next = 0
        self.taken: list[int] = []
        """Arrivals whose games are taken, for the next manifest: by the generation in progress, or their files stay."""
        self._num_left_out = 0

    def restore(self, taken: Sequence[int]) -> int:
        """Reads what waits, less what the newest generation has `taken`; returns a number above those of all games."""
        past, there = 0, arrivals_in(self._folder.path)
        self._next = 1 + max([*taken, *there], default=-1)
        self.taken = [number for number in taken if number in there]
        self.committed()
        for number, path in there.items():
            if number in taken:
                continue
            try:
                chunk = read_arrival(path, self._game, self._most_games)
            except StorageError as error:
                logger.warning("%s; its games are left out", error)
                continue
            past = max(past, int(chunk.games[:, 0].max(initial=-1)) + 1)
            self._waiting.append((number, chunk))
        if waiting := self.num_games:
            logger.info("arrived before, for the next generation: %s", count_of(waiting, "game"))
        return past

    @property
    def num_games(self) -> int:
        """Games that wait."""
        with self._lock:
            return sum(chunk.num_games for _, chunk in self._waiting)

    def add(self, chunks: list[Chunk]) -> None:
        """Writes the chunks as one file; from then on their games count."""
        chunks = [chunk for chunk in chunks if chunk.num_games]
        if not chunks:
            return
        self._folder.check()
        whole = join(chunks)
        atomic_write(self._path(self._next), pack(whole))
        with self._lock:
            self._waiting.append((self._next, whole))
            self._next += 1

    def leave_out(self, oldest: int) -> None:
        """Drops the games in which weights of generations before `oldest` have played."""
        with self._lock:
            for i, (number, chunk) in enumerate(self._waiting):
                old = chunk.games[:, 2] < oldest
                self._num_left_out += int(old.sum())
                self._waiting[i] = number, without(chunk, old) if old.any() else chunk

    def take(self, num_games: int) -> Chunk | None:
        """The arrivals that came first, until they have so many games; None if none waits."""
        found: list[Chunk] = []
        with self._lock:
            while self._waiting and sum(chunk.num_games for chunk in found) < num_games:
                number, chunk = self._waiting.popleft()
                self.taken.append(number)
                found.append(chunk)
        return join(found) if found else None

    def count_left_out(self) -> int:
        """Games that were too old since the last call."""
        count, self._num_left_out = self._num_left_out, 0
        return count

    def committed(self) -> None:
        """The generation is on disk: removes the files of what it took."""
        for number in self.taken:
            with contextlib.suppress(OSError):
                self._path(number).unlink()
        self.taken = [number for number in self.taken if self._path(number).exists()]

    def _path(self, number: int) -> Path:
        return self._folder.path / f"arrived_{number:09d}.npz"


def arrivals_in(folder: Path) -> dict[int, Path]:
    """The files of games by their numbers, in ascending order."""
    found = {path: _NAME.fullmatch(path.name) for path in folder.glob("arrived_*.npz")}
    return dict(sorted((int(match[1]), path) for path, match in found.items() if match))
