"""A match that is over in time: it has fewer games where they are slow, and a game that is not over by then is none."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from alphazero.errors import Stopped
from alphazero.game.kernels import Kernels
from alphazero.matches.arena import Arena, side_by_side
from alphazero.matches.result import MatchResult
from alphazero.players.player import Player

PLIES_TO_JUDGE = 2
"""Plies after which it is clear how long a match takes."""
SHARE = 0.8
"""Share of the time that is left which fewer games are to take."""
PAUSE = 0.2
"""Seconds between two looks at the clock while players think."""


def play_in_time(
    kernels: Kernels,
    first: Player,
    second: Player,
    num_games: int,
    seed: int,
    seconds: float,
    plies_per_game: float,
    stop: threading.Event,
) -> Iterator[tuple[MatchResult, float]]:
    """The results of an `Arena`, over after about so many `seconds`; each with the share of the match that has passed.

    The last result has all games, or the pairs of games that are over by then; there is at least one result.
    PLIES_TO_JUDGE plies of the games side by side tell how long these take, with `plies_per_game`. If that is too
    long, fewer are begun anew: two at least, which may not be over in time either. Raises Stopped when `stop` is set,
    also while a player thinks.
    """
    deadline = time.monotonic() + seconds
    over = MatchResult((), (), (), (0, 0), (0.0, 0.0))
    try:
        with _interrupting((first, second), deadline, stop):
            fewer = num_games
            while fewer:
                num_games, fewer = fewer, 0
                clock = _Clock(num_games, side_by_side((first, second), num_games), plies_per_game, deadline)
                for result in Arena(kernels, first, second, num_games, seed):
                    if stop.is_set():
                        raise Stopped
                    if clock.is_over:
                        yield over.whole_pairs(), 1.0
                        return
                    if fewer := clock.fewer_games(sum(result.moves)):
                        break
                    over = result
                    yield over, max(clock.share(seconds), over.num_games / num_games)
    except Stopped:
        if stop.is_set() or time.monotonic() <= deadline:
            raise
        yield over.whole_pairs(), 1.0


class _Clock:
    """Tells how long a match takes."""

    def __init__(self, num_games: int, rows: int, plies_per_game: float, deadline: float):
        """`rows`: the games that are played side by side."""
        self._rows, self._plies, self._deadline = rows, plies_per_game, deadline
        self._begin: tuple[float, int] | None = None
        self._judged = num_games <= 2

    @property
    def is_over(self) -> bool:
        """The match has had its time."""
        return time.monotonic() > self._deadline

    def share(self, seconds: float) -> float:
        """The share of the `seconds` that has passed; 0 without a limit."""
        return 1 - (self._deadline - time.monotonic()) / seconds if seconds < float("inf") else 0.0

    def fewer_games(self, moves: int) -> int:
        """The games that would fit, two at least, once after some plies it is clear that these do not; else 0.

        `moves`: those of all games so far. To be asked after every ply.
        """
        now = time.monotonic()
        if self._begin is None:  # after the first ply: before it, players may compile what they need
            self._begin = now, moves
        begin, moves = self._begin[0], moves - self._begin[1]
        if self._judged or moves < PLIES_TO_JUDGE * self._rows:
            return 0
        self._judged, expected = True, (now - begin) / moves * self._plies * self._rows
        if begin + expected <= self._deadline:
            return 0
        games = int(self._rows * SHARE * (self._deadline - now) / expected)
        return max(2, games - games % 2)


@contextlib.contextmanager
def _interrupting(players: tuple[Player, Player], deadline: float, stop: threading.Event) -> Iterator[None]:
    """Inside, the players' thinking ends after the deadline, or when `stop` is set: a ply of a slow game takes long."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(PAUSE):
            if stop.is_set() or time.monotonic() > deadline:
                for player in players:
                    player.interrupt()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
