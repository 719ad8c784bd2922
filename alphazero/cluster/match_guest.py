"""Matches inside of a host of a cluster: some games of a pair, as records."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from alphazero.catalogue.loaded import LoadedGame
from alphazero.fingerprint import game_fingerprint
from alphazero.game.kernels import kernels_of
from alphazero.game.record import line_of
from alphazero.matches.arena import Arena, get_ready
from alphazero.matches.report import records_of
from alphazero.nets.devices import want_inference
from alphazero.players.contestant_text import ContestantText
from alphazero.players.contestants import make_player
from alphazero.players.player import Player

MOST_OPEN = 16
"""Contestants in memory at once."""


@dataclass(frozen=True)
class GuestSettings:
    """All that a host needs to play matches of a tournament."""

    load: Callable[[], LoadedGame]
    """Makes the game anew; can be sent to a process."""
    game_name: str
    """The game's name in records."""
    contestants: Mapping[str, ContestantText]
    files: Mapping[str, str]
    """The names of the nets' checkpoints in the parcel, by the names of the contestants."""
    seed: int
    simulations: int | None
    device: str
    inference: str
    """The library that runs nets on the processor."""


class MatchOrder(NamedTuple):
    """Some games of a pair."""

    number: int
    """Counts the orders of a tournament."""
    first: str
    second: str
    games: tuple[int, ...]
    """The numbers of the games, ascending."""
    num_games: int
    """All games of the pair."""
    openings: tuple[tuple[int, ...], ...]
    """The actions of every opening of the pair."""


class MatchGuest:
    """The guest of a host that plays for a tournament; see `alphazero.cluster.host.Guest`."""

    def __init__(self, settings: GuestSettings):
        self._settings, self._loaded = settings, settings.load()
        want_inference(settings.inference)
        self.fingerprint = game_fingerprint(self._loaded.game)
        self._kernels = kernels_of(self._loaded.game)
        self._nets: dict[str, bytes] = {}
        self._open = functools.lru_cache(MOST_OPEN)(self._open_player)

    def take(self, generation: int, folder: Path) -> None:
        """Keeps the nets of the contestants."""
        self._nets = {file.name: file.read_bytes() for file in folder.iterdir()}

    def play(self, order: MatchOrder) -> bytes:
        """The records of the games, a line of JSON each."""
        first, second = self._open(order.first), self._open(order.second)
        openings = [self._loaded.game.position(actions) for actions in order.openings]
        result = Arena(
            self._kernels, first, second, order.num_games, self._settings.seed, numbers=order.games, openings=openings
        ).play()
        names = order.first, order.second
        records = records_of(result, self._loaded.game, self._settings.game_name, names, self._settings.seed)
        return "".join(f"{line_of(record)}\n" for record in records).encode()

    def _open_player(self, name: str) -> Player:
        settings = self._settings
        contestant = settings.contestants[name]
        with tempfile.TemporaryDirectory(prefix="az-net-") as folder:  # gone when the net is loaded
            if file := settings.files.get(name):
                for part in (file, str(Path(file).with_suffix(".json"))):
                    (Path(folder) / part).write_bytes(self._nets[part])
                contestant = contestant.at(Path(folder) / file)
            player = make_player(
                contestant, self._loaded, seed=settings.seed, threads=1, simulations=settings.simulations,
                device=settings.device,
            )  # fmt: skip
        player.name = name
        get_ready(self._kernels, player)
        return player
