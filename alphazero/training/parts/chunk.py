"""Finished games as they travel: compressed arrays, checked by whoever gets them.

states policies outcomes values     the samples, game after game
games                               number, samples, first weights of each game
counts                              what the worker has counted since its last chunk
shown_states, shown                 a few games for people to step through
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, field

import numpy as np

from alphazero.errors import StorageError
from alphazero.game import Game
from alphazero.storage.arrays import Array, pack_npz, unpack_npz
from alphazero.training.replay_buffer import Samples, sample_arrays
from alphazero.training.selfplay import FinishedGame, SelfPlayCounts
from alphazero.training.selfplay.shown_games import MOST_GAMES

NUM_COUNTS = len(astuple(SelfPlayCounts())) + 1
"""The counts of self-play, and the milliseconds of the processor."""
HEADER_BYTES = 1 << 14
"""More than the names and headers of all arrays take."""


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
    shown: list[tuple[FinishedGame, int]] = field(default_factory=list)
    """As `Worker.finished_games`."""

    @property
    def num_games(self) -> int:
        return len(self.games)


def raw_bytes(game: Game, num_samples: int, num_games: int) -> int:
    """Bytes of so many samples before they are compressed: no chunk may have more than a little above that."""
    return num_samples * (8 * game.state_words + 4 * game.num_actions + 8) + 24 * num_games


def pack(chunk: Chunk) -> bytes:
    """The chunk as bytes; equal chunks give equal bytes."""
    shown = [(finished.number, len(finished.states), plies) for finished, plies in chunk.shown]
    states = [finished.states for finished, _ in chunk.shown]
    words = chunk.samples.states.shape[1]
    return pack_npz(chunk.samples.arrays() | {
        "games": chunk.games,
        "counts": np.array([*astuple(chunk.counts), chunk.cpu_milliseconds], np.int64),
        "shown": np.array(shown, np.int64).reshape(-1, 3),
        "shown_states": np.concatenate([np.empty((0, words), np.uint64), *states]),
    })  # fmt: skip


def unpack(content: bytes, where: str, game: Game, most_games: int) -> Chunk:
    """The chunk in the bytes; raises StorageError unless it could be one of that game with at most so many games."""
    most = most_games * game.max_plies
    shown_most = MOST_GAMES * (game.max_plies + 1)
    most_bytes = raw_bytes(game, most, most_games) + 8 * game.state_words * shown_most + HEADER_BYTES
    expected = sample_arrays(game) | {
        "games": Array(np.int64, ("games", 3), 0),
        "counts": Array(np.int64, (NUM_COUNTS,), 0),
        "shown": Array(np.int64, ("shown", 3), 0),
        "shown_states": Array(np.uint64, ("shown_states", game.state_words)),
    }
    limits = {"n": most, "games": most_games, "shown": MOST_GAMES, "shown_states": shown_most}
    arrays = unpack_npz(content, where, expected, limits, most_bytes)
    samples = Samples(**{name: arrays[name] for name in ("states", "policies", "outcomes", "values")})
    games, shown, states = arrays["games"], arrays["shown"], arrays["shown_states"]
    if len(samples) != games[:, 1].sum() or (games[:, 1] > game.max_plies).any():
        raise StorageError(f"{where}: its games do not have the samples that it holds")
    if len(np.unique(games[:, 0])) != len(games):
        raise StorageError(f"{where}: a game is there twice")
    if len(states) != shown[:, 1].sum() or (shown[:, 1] > game.max_plies + 1).any() or (shown[:, 1] < 1).any():
        raise StorageError(f"{where}: its games to show do not have the states that it holds")
    if (shown[:, 2] >= game.max_plies).any():
        raise StorageError(f"{where}: its games to show begin with {game.max_plies} random plies or more")
    ends = np.cumsum(shown[:, 1])
    finished = [
        (FinishedGame(int(number), states[end - length : end]), int(plies))
        for (number, length, plies), end in zip(shown, ends, strict=True)
    ]
    *counts, milliseconds = map(int, arrays["counts"])
    return Chunk(samples, games, SelfPlayCounts(*counts), milliseconds, finished)


def join(chunks: list[Chunk]) -> Chunk:
    """The games of several chunks, one after another, without counts and games to show."""
    return Chunk(Samples.join([chunk.samples for chunk in chunks]), np.concatenate([chunk.games for chunk in chunks]))


def without(chunk: Chunk, dropped: np.ndarray) -> Chunk:
    """The chunk less the games where `dropped bool[n]` is true."""
    if not dropped.any():
        return chunk
    kept = np.repeat(~dropped, chunk.games[:, 1])
    samples = Samples(*(array[kept] for array in chunk.samples.arrays().values()))
    return Chunk(samples, chunk.games[~dropped], chunk.counts, chunk.cpu_milliseconds, chunk.shown)
