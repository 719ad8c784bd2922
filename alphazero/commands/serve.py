"""Opens the page to play, analyse and watch: `alphazero serve`."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from alphazero.api.page import make_server
from alphazero.commands.options import DEFAULT_GAME, Contestant, Device, GameName, Inference, check_options
from alphazero.commands.shared import parse
from alphazero.nets.devices import choose_device, wanted_inference
from alphazero.players.contestants import load_game


@dataclass(frozen=True)
class ServeConfig:
    """Opens a page in the browser: play, analyse, and watch runs and tournaments.

    The page offers the shipped nets, random, greedy, minimax, mcts, the runs of its game, and the contestants given
    here. Programs (gtp:"COMMAND") and Python functions (python:MODULE:FUNCTION) play only if they are given here.
    The page also has all games that come with alphazero.
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
    name, loaded = load_game(config.game, given, DEFAULT_GAME)
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
