"""A tournament's games on a cluster: each is a function of the seed and its number, wherever it is played.

`Spread` hands out the games, and `MatchGuest` plays them inside of a host.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from alphazero.catalogue.loaded import LoadedGame
from alphazero.cluster.connection import Cluster
from alphazero.cluster.pool import Pool, RemoteHost
from alphazero.errors import CheckpointError, InputError, StorageError, count_of
from alphazero.fingerprint import game_fingerprint
from alphazero.game.kernels import kernels_of
from alphazero.game.record import GameRecord, line_of, parse_record
from alphazero.matches.arena import Arena, get_ready
from alphazero.matches.report import records_of
from alphazero.nets.devices import INFERENCES, want_inference, wanted_inference
from alphazero.players.contestant_text import ContestantText
from alphazero.players.contestants import checkpoint_of, load_net, make_player
from alphazero.players.player import Player
from alphazero.progress import Progress
from alphazero.storage.checkpoint import checkpoint_bytes
from alphazero.tournaments.folder import Pairing, Tournament, TournamentFolder, key_of

logger = logging.getLogger(__name__)

GAMES_OF_ORDER = 16
"""Games that a host plays side by side for one answer; games of a pair share their openings two by two."""
GAMES_ALONE = 2
"""The same where a contestant plays one game at a time: sixteen games of a slow engine take longer than PATIENCE."""
PATIENCE = 3600.0
"""Seconds for the games of an order: engines and deep searches may think for minutes. That a host has died is heard
sooner, from Ray."""
MOST_BYTES = 1 << 24
"""The most bytes of an answer."""
PAUSE = 0.2
MOST_OPEN = 16
"""Contestants that a host has in memory at once."""


@dataclass(frozen=True)
class GuestSettings:
    """All that a host needs to play matches of a tournament."""

    load: Callable[[], LoadedGame]
    """Makes the game anew; can be sent to a process."""
    game_name: str
    """The game's name in records."""
    contestants: Mapping[str, ContestantText]
    """By their names in the results."""
    nets: Mapping[str, str]
    """The names of the nets' checkpoints in the parcel, without their endings."""
    seed: int
    simulations: int | None
    device: str
    inference: str
    """The library that runs nets on the processor."""


class MatchOrder(NamedTuple):
    """Some games of a pair."""

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
        self._files: Mapping[str, bytes] = {}
        self._open = functools.lru_cache(MOST_OPEN)(self._open_player)

    def take(self, generation: int, files: Mapping[str, bytes]) -> None:
        """Keeps the nets of the contestants."""
        self._files = files

    def play(self, order: MatchOrder) -> bytes:
        """The records of the games, a line of JSON each."""
        settings, names = self._settings, (order.first, order.second)
        first, second = map(self._open, names)
        openings = [self._loaded.game.position(actions) for actions in order.openings]
        result = Arena(
            self._kernels, first, second, order.num_games, settings.seed, numbers=order.games, openings=openings
        ).play()  # fmt: skip
        records = records_of(result, self._loaded.game, settings.game_name, names, settings.seed)
        return "".join(f"{line_of(record)}\n" for record in records).encode()

    def _open_player(self, name: str) -> Player:
        settings = self._settings
        contestant = settings.contestants[name]
        with tempfile.TemporaryDirectory(prefix="az-net-") as folder:  # gone when the net is loaded
            if net := settings.nets.get(name):
                path = Path(folder) / f"{net}.safetensors"
                for file in (path, path.with_suffix(".json")):
                    file.write_bytes(self._files[file.name])
                contestant = contestant.at(path)
            player = make_player(
                contestant, self._loaded, seed=settings.seed, threads=1, simulations=settings.simulations,
                device=settings.device,
            )  # fmt: skip
        player.name = name
        get_ready(self._kernels, player)
        return player


class Spread:
    """Plays games of one tournament on a cluster, round after round; to be closed. It is the work of its pool."""

    maker = "alphazero.cluster.matches:MatchGuest"
    patience = PATIENCE

    def __init__(self, cluster: Cluster, tournament: Tournament, loaded: LoadedGame, device: str = "auto"):
        self.tournament, self._loaded, self._device = tournament, loaded, device
        self.fingerprint = game_fingerprint(loaded.game)
        nets = dict[str, str]()
        self._content: dict[str, bytes] = {}
        for i, (name, contestant) in enumerate(tournament.contestants.items()):
            if (found := checkpoint_of(contestant, loaded)) is not None:
                path, nets[name] = found[0], str(i)
                weights, card = checkpoint_bytes(path)
                if hashlib.sha256(weights).hexdigest() != tournament.weights[name]:
                    raise CheckpointError(f"{path} was replaced while this tournament began: run the command again")
                self._content |= {f"{i}.safetensors": weights, f"{i}.json": card}
        assert loaded.load_again is not None
        self._settings = GuestSettings(
            loaded.load_again, tournament.game, tournament.contestants, nets, tournament.seed,
            tournament.simulations, "cpu", _same_for_all(tournament, loaded),
        )  # fmt: skip
        self._waiting: deque[MatchOrder] = deque()
        self._arrived: deque[list[GameRecord]] = deque()
        self._look = threading.Event()
        self._pool = Pool(cluster, self)

    def play(self, folder: TournamentFolder, missing: Mapping[Pairing, list[int]]) -> None:
        """Plays the missing games and keeps each as soon as it has arrived."""
        self.add(folder, missing)
        self._pool.start()
        done, total = 0, sum(map(len, missing.values()))
        with Progress(f"{len(self.tournament.contestants)} contestants") as progress:
            while done < total:
                self._look.wait(PAUSE)
                self._look.clear()
                while self._arrived:
                    records = self._arrived.popleft()
                    folder.add(records)
                    done += len(records)
                self._pool.raise_error()  # after what has arrived is kept
                workers = count_of(self._pool.num_ready, "worker")
                note = f"{len(folder.records):,} of {folder.num_games:,} games on {workers}"
                progress.show(done / total, note)

    def add(self, folder: TournamentFolder, missing: Mapping[Pairing, list[int]]) -> None:
        """More games to play."""
        for pairing, numbers in missing.items():
            target, names = folder.targets[pairing], (pairing.first, pairing.second)
            openings = tuple(opening.actions for opening in folder.openings(target))
            alone = any(self.tournament.contestants[name].plays_alone for name in names)
            size = GAMES_ALONE if alone else GAMES_OF_ORDER
            for start in range(0, len(numbers), size):
                games = tuple(numbers[start : start + size])
                self._waiting.append(MatchOrder(*names, games, target, openings))

    def close(self) -> None:
        """Ends all hosts; a second call does nothing."""
        self._pool.close()

    # --- as Work ------------------------------------------------------------------------------------------------------

    def settings(self, host: RemoteHost) -> GuestSettings:
        return replace(self._settings, device=host.device if self._device == "auto" else self._device)

    def files(self) -> tuple[int, dict[str, bytes]] | None:
        content, self._content = self._content, {}
        return (0, content) if content else None

    def next_order(self, host: RemoteHost) -> MatchOrder | None:
        return self._waiting.popleft() if self._waiting else None

    def take(self, answers: Sequence[tuple[RemoteHost, MatchOrder, bytes]]) -> list[RemoteHost]:
        refused = []
        for host, order, content in answers:
            try:
                records = self._read(content, order, f"an answer of {host.name}")
            except InputError as error:
                logger.warning("%s", error)
                refused.append(host)
                self.lose(host, [order])
            else:
                self._arrived.append(records)
        self._look.set()
        return refused

    def lose(self, host: RemoteHost, orders: Sequence[MatchOrder]) -> None:
        self._waiting.extendleft(orders)

    def _read(self, content: bytes, order: MatchOrder, where: str) -> list[GameRecord]:
        """The records of an answer; raises InputError unless they are the games of the order, played by the rules."""
        if len(content) > MOST_BYTES:
            raise StorageError(f"{where}: it is too large")
        records = [parse_record(line, where) for line in content.splitlines()]
        pairing, tournament = Pairing(order.first, order.second), self.tournament
        if [record.number for record in records] != list(order.games):
            raise StorageError(f"{where}: these are not the games that it was asked for")
        for record in records:
            ours = record.game == tournament.game and record.seed == tournament.seed and record.result != "*"
            if key_of(record)[0] != pairing or not ours:
                raise StorageError(f"{where}: game {record.number} is no game of this tournament")
            if not record.forfeit and not record.positions(self._loaded.game)[-1].terminal:
                raise StorageError(f"{where}: game {record.number} is not over")
        return records


def _same_for_all(tournament: Tournament, loaded: LoadedGame) -> str:
    """The library that runs the nets on all machines: each rounds in its own way, and which is faster is chance."""
    inference = wanted_inference()
    if inference == "auto":
        for contestant in tournament.contestants.values():
            if (found := checkpoint_of(contestant, loaded)) is not None:
                chosen = load_net(str(found[0]), loaded, "cpu").use_inference(inference)
                return chosen if chosen in INFERENCES else inference  # a net of another kind has its own
    return inference
