"""A match that is over in time: it has fewer games where they are slow, and a game that is not over by then is none."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Generator, Iterator

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

    def attempt(num_games: int) -> Generator[tuple[MatchResult, float], None, int]:
        """Plays so many games, and returns 0; or fewer games that fit, as soon as it is clear that these do not."""
        nonlocal over
        rows, begin, moves_before, judged = side_by_side((first, second), num_games), 0.0, 0, num_games <= 2
        for result in Arena(kernels, first, second, num_games, seed):
            now, moves = time.monotonic(), sum(result.moves) - moves_before
            if stop.is_set() or now > deadline:
                raise Stopped
            if not begin:  # after the first ply: before it, players may compile what they need
                begin, moves_before = now, moves
            elif not judged and moves >= PLIES_TO_JUDGE * rows:
                judged, expected = True, (now - begin) / moves * plies_per_game * rows
                if begin + expected > deadline:
                    games = int(rows * SHARE * (deadline - now) / expected)
                    return max(2, games - games % 2)
            over = result
            passed = 1 - (deadline - now) / seconds if seconds < math.inf else 0.0
            yield over, max(passed, over.num_games / num_games)
        return 0

    try:
        with _interrupting((first, second), deadline, stop):
            while num_games:
                num_games = yield from attempt(num_games)
    except Stopped:
        if stop.is_set() or time.monotonic() <= deadline:
            raise
        yield over.whole_pairs(), 1.0


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
