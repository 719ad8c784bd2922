"""Offers a player as an engine that speaks the Go Text Protocol: `alphazero gtp minimax:4 --game othello`."""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, TextIO

import tyro

from alphazero.commands.options import DEFAULT_GAME, Contestant, GameName, Seed, Threads, argument, check_options
from alphazero.commands.shared import parse
from alphazero.machine import count_cores
from alphazero.players.contestants import load_game, make_player
from alphazero.players.gtp_server import Server


@dataclass(frozen=True)
class GtpConfig:
    """Plays by the Go Text Protocol (GTP 2): reads commands from standard input, writes answers to standard output.

    Players that search also answer kata-analyze and lz-analyze, as KataGo and Leela Zero do.
    """

    contestant: Annotated[Contestant, tyro.conf.Positional, tyro.conf.arg(metavar="CONTESTANT")]
    """The player, as for the command pit: best, runs/othello-1, mcts:400, minimax:4; no human and no engine."""
    game: GameName = None
    simulations: Annotated[int | None, argument("INT", "200 for nets; mcts needs a number")] = None
    """Simulations per ply, for a contestant that searches and does not say how many."""
    seed: Seed = 0
    threads: Threads = field(default_factory=count_cores)

    def __post_init__(self) -> None:
        check_options(self)


def main(argv: list[str]) -> None:
    config = parse(GtpConfig, argv, command="gtp")
    _, loaded = load_game(config.game, [config.contestant], DEFAULT_GAME)
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):  # text that a player prints must not look like an answer
        player = make_player(
            config.contestant, loaded, seed=config.seed, threads=config.threads, simulations=config.simulations
        )
        server = Server(loaded, player, out)
        lines, interrupted = _lines_of(sys.stdin)
        for line in lines:
            if not server.handle(line, interrupted):
                return


def _lines_of(stream: TextIO) -> tuple[Iterator[str], Callable[[], bool]]:
    """An iterator over the lines, and a function that tells whether the next line, or the end, has arrived."""
    arrived: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        try:
            with contextlib.suppress(OSError):  # of a stream that is closed
                for line in stream:
                    arrived.put(line)
        finally:
            arrived.put(None)  # else the server would wait for ever

    threading.Thread(target=read, daemon=True).start()
    return iter(arrived.get, None), lambda: not arrived.empty()  # type: ignore[arg-type]
