"""Opens the page in the browser, `alphazero serve`; offers a player as an engine, by `alphazero gtp` or `uci`."""

from __future__ import annotations

import contextlib
import functools
import os
import queue
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TextIO

import tyro

from alphazero.api.extras import make_server
from alphazero.catalogue.loaded import LoadedGame
from alphazero.commands.options import (
    Contestant,
    Device,
    GameName,
    Inference,
    Seed,
    Threads,
    argument,
    check_options,
    load_game,
)
from alphazero.commands.shared import parse
from alphazero.errors import InvalidSetting
from alphazero.game.reading.gtp_words import check_spoken
from alphazero.game.reading.san import with_fen
from alphazero.machine import count_cores
from alphazero.nets.devices import choose_device, wanted_inference
from alphazero.players.contestants import checkpoint_of, make_player
from alphazero.players.gtp_server import Server
from alphazero.players.player import Player
from alphazero.players.uci_server import UciServer


@dataclass(frozen=True)
class ServeConfig:
    """Opens a page in the browser: play, analyse, and watch runs and tournaments.

    The page offers the shipped nets, random, greedy, minimax, mcts, the runs of its game, and the contestants given
    here. Programs (gtp:"COMMAND", uci:"COMMAND") and Python functions (python:MODULE:FUNCTION) play only if they are
    given here. The page also has all games that come with alphazero.
    """

    contestants: Annotated[tuple[Contestant, ...], tyro.conf.Positional, tyro.conf.arg(metavar="CONTESTANT ...")] = ()
    """Further contestants: a net, a run folder, or any other that `alphazero pit` takes.
    The page begins with the first one as the opponent."""
    game: GameName = None
    port: int = 8080
    """The port on this machine; 0 takes a free one."""
    host: str = "127.0.0.1"
    """The address to listen on. By default this machine alone can open the page.
    0.0.0.0 lets others open it, who need the token in the printed address."""
    browser: bool = True
    """Open the browser, if there is one."""
    runs: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("runs")
    """The folder with the runs to watch."""
    tournaments: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("tournaments")
    """The folder with the tournaments to watch."""
    device: Device = "auto"
    inference: Inference = field(default_factory=wanted_inference)

    def __post_init__(self) -> None:
        check_options(self, port=(0, 65535))


def main(argv: list[str]) -> None:
    config = parse(ServeConfig, argv, command="serve")
    choose_device(config.device)  # else each net would be refused when its first move is asked for
    given = [one for one in config.contestants if one.text != "human"]  # who sits at the page anyway
    name, loaded = load_game(config.game, given)
    server = make_server(
        config.port, config.host, name=name, loaded=loaded, given=given, runs=config.runs,
        tournaments=config.tournaments, device=config.device,
    )  # fmt: skip
    by_number = f"By IP address: {server.address_by_number}\n" if server.address_by_number else ""
    print(f"The page is at {server.address}\n{by_number}Ctrl-C ends it.", flush=True)
    has_display = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    if config.browser and (sys.platform in ("darwin", "win32") or has_display):
        threading.Timer(0.5, webbrowser.open, (server.address,)).start()
    server.run()


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


@dataclass(frozen=True)
class UciConfig(GtpConfig):
    """Plays chess, or a game like it, by the Universal Chess Interface (UCI), in Cute Chess, Arena or En Croissant.

    It reads commands from standard input, and writes answers to standard output.
    """


def gtp(argv: list[str]) -> None:
    config = parse(GtpConfig, argv, command="gtp")
    _, loaded = load_game(config.game, [config.contestant])
    check_spoken(loaded.game)
    _offer(config, loaded, lambda make, out: Server(loaded, make(), out))


def uci(argv: list[str]) -> None:
    config = parse(UciConfig, argv, command="uci")
    _, loaded = load_game(config.game, [config.contestant])
    with_fen(loaded.game)

    def make_server(make: Callable[[], Player], out: TextIO) -> UciServer:
        if checkpoint_of(config.contestant, loaded) is None:  # it compiles nothing yet: what is wrong is said at once
            make = functools.partial(lambda player: player, make())
        return UciServer(loaded, config.contestant.text, make, out)

    _offer(config, loaded, make_server)


def _offer(
    config: GtpConfig,
    loaded: LoadedGame,
    make_server: Callable[[Callable[[], Player], TextIO], Server | UciServer],
) -> None:
    """Has the player answer the lines of standard input."""

    def make() -> Player:
        player = make_player(
            config.contestant, loaded, seed=config.seed, threads=config.threads, simulations=config.simulations
        )
        if player.one_at_a_time:
            raise InvalidSetting(f"{player.name} cannot be offered as an engine: choose a player in this program")
        return player

    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):  # text that a player prints must not look like an answer
        server = make_server(make, out)
        lines, interrupted = _lines_of(sys.stdin)
        for line in lines:
            if not server.handle(line, interrupted):
                return
        if isinstance(server, UciServer):  # a search under way has its move to say
            server.handle("quit")


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
