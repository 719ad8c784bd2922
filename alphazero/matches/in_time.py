"""A match that is over in time: it has fewer games where they are slow, and a game that is not over by then is none."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from alphazero.errors import Stopped
from alphazero.game.kernels import Kernels
from alphazero.matches.arena import MatchResult, play_match, side_by_side
from alphazero.players.player import Player

PLIES_TO_JUDGE = 2
"""Plies after which it is clear how long a match takes."""
SHARE = 0.8
"""Share of the time that is left which fewer games are to take."""
PAUSE = 0.2
"""Seconds between two looks at the clock while players think."""


class _TooSlow(Exception):
    """The games side by side take longer than they may; so many would not."""

    def __init__(self, games: int):
        self.games = games


class _TimeIsUp(Exception):
    """The match has had its time."""


def play_in_time(
    kernels: Kernels,
    first: Player,
    second: Player,
    num_games: int,
    seed: int,
    seconds: float,
    plies_per_game: float,
    stop: threading.Event,
    on_progress: Callable[[MatchResult, float], None],
    decided: Callable[[MatchResult], bool] | None = None,
) -> MatchResult:
    """As `play_match`, but over after about so many `seconds`, with the pairs of games that are over by then.

    PLIES_TO_JUDGE plies of the games side by side tell how long these take, with `plies_per_game`. If that is too
    long, fewer are begun anew: two at least, which may not be over in time either. `on_progress` also gets the share
    of the match, or of its time, that has passed. Raises Stopped when `stop` is set, also while a player thinks.
    """
    deadline = time.monotonic() + seconds
    over = MatchResult((), (), (), (0, 0), (0.0, 0.0))
    begin: tuple[float, int] | None = None
    judged = False

    def show(result: MatchResult) -> None:
        nonlocal begin, judged, over
        if stop.is_set():
            raise Stopped
        now, moves = time.monotonic(), sum(result.moves)
        if now > deadline:
            raise _TimeIsUp
        over = result
        if begin is None:  # after the first ply: before it, players may compile what they need
            begin = now, moves
        moves -= begin[1]
        rows = side_by_side((first, second), num_games)
        if not judged and num_games > 2 and moves >= PLIES_TO_JUDGE * rows:
            judged, expected = True, (now - begin[0]) / moves * plies_per_game * rows
            if begin[0] + expected > deadline:
                raise _TooSlow(int(rows * SHARE * (deadline - now) / expected))
        passed = 1 - (deadline - now) / seconds if seconds < float("inf") else 0.0
        on_progress(result, max(passed, result.num_games / num_games))

    with _interrupting((first, second), deadline, stop):
        while True:
            try:
                return play_match(kernels, first, second, num_games, seed, on_progress=show, decided=decided)
            except _TooSlow as slow:
                num_games, begin, judged = max(2, slow.games - slow.games % 2), None, False
            except (_TimeIsUp, Stopped):
                if stop.is_set() or time.monotonic() <= deadline:
                    raise
                return over.whole_pairs()


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
