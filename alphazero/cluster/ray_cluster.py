"""A Ray cluster as runs and tournaments know it, and the games of a tournament there.

Each of these is a function of the seed and its number, wherever it is played. `Spread` hands them out, and `MatchGuest`
plays them inside of a host.
"""

from __future__ import annotations

import functools
import hashlib
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from alphazero.catalogue.loaded import LoadedGame
from alphazero.cluster.connection import Cluster
from alphazero.cluster.pool import Pool, RemoteHost
from alphazero.cluster.self_play import ClusterWorkers
from alphazero.errors import CheckpointError, InvalidSetting, StorageError, count_of
from alphazero.fingerprint import game_fingerprint
from alphazero.game.kernels import kernels_of
from alphazero.game.record import GameRecord, line_of, parse_record
from alphazero.invocation import option
from alphazero.matches.arena import Arena
from alphazero.matches.result import records_of
from alphazero.nets.devices import INFERENCES, want_inference, wanted_inference
from alphazero.players.contestants import checkpoint_of, load_net
from alphazero.players.player import Player
from alphazero.progress import Progress
from alphazero.storage.checkpoint import checkpoint_bytes
from alphazero.tournaments.folder import Pairing, Tournament, TournamentFolder, key_of
from alphazero.tournaments.tournament import Play, open_contestant, show_games
from alphazero.training.plan import Assignment, RunPlan, cannot_be_imported

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
    tournament: Tournament
    nets: Mapping[str, str]
    """The names of the nets' checkpoints in the parcel, without their endings, by contestants."""
    device: str
    inference: str
    """The library that runs nets on the processor."""


class MatchOrder(NamedTuple):
    """The games with these numbers, ascending, of all `num_games` of a pair; `openings` are the actions of each."""

    pairing: Pairing
    games: tuple[int, ...]
    num_games: int
    openings: tuple[tuple[int, ...], ...]


class MatchGuest:
    """The guest of a host that plays for a tournament; see `alphazero.cluster.pool.Host`."""

    def __init__(self, settings: GuestSettings):
        self._settings, self._loaded = settings, settings.load()
        want_inference(settings.inference)
        self.fingerprint = game_fingerprint(self._loaded.game)
        self._files: Mapping[str, bytes] = {}
        self._open = functools.lru_cache(MOST_OPEN)(self._open_player)

    def take(self, generation: int, files: Mapping[str, bytes]) -> None:
        """Keeps the nets of the contestants."""
        self._files = files

    def play(self, order: MatchOrder) -> bytes:
        """The records of the games, a line of JSON each."""
        tournament, game, (first, second) = self._settings.tournament, self._loaded.game, map(self._open, order.pairing)
        openings = [game.position(actions) for actions in order.openings]
        match = Arena(
            kernels_of(game), first, second, order.num_games, tournament.seed, numbers=order.games,
            opening_of=lambda pair: openings[pair % len(openings)],
        )  # fmt: skip
        records = records_of(match.play(), game, tournament.game, order.pairing, tournament.seed)
        return "".join(f"{line_of(record)}\n" for record in records).encode()

    def _open_player(self, name: str) -> Player:
        settings, tournament = self._settings, self._settings.tournament
        contestant = tournament.contestants[name]
        with tempfile.TemporaryDirectory(prefix="az-net-") as folder:  # gone when the net is loaded
            if net := settings.nets.get(name):
                path = Path(folder) / f"{net}.safetensors"
                for file in (path, path.with_suffix(".json")):
                    file.write_bytes(self._files[file.name])
                contestant = contestant.at(path)
            return open_contestant(name, contestant, tournament, self._loaded, 1, settings.device)


class Spread:
    """Plays games of one tournament on a cluster, round after round; to be closed. It is the work of its pool."""

    maker = "alphazero.cluster.ray_cluster:MatchGuest"
    patience = PATIENCE

    def __init__(self, cluster: Cluster, tournament: Tournament, loaded: LoadedGame, device: str = "auto"):
        self.tournament, self._loaded, self._device = tournament, loaded, device
        self.fingerprint = game_fingerprint(loaded.game)
        nets, inference = dict[str, str](), wanted_inference()
        self._content: dict[str, bytes] = {}
        for i, (name, contestant) in enumerate(tournament.contestants.items()):
            if (found := checkpoint_of(contestant, loaded)) is not None:
                path, nets[name] = found[0], str(i)
                weights, card = checkpoint_bytes(path)
                if hashlib.sha256(weights).hexdigest() != tournament.weights[name]:
                    raise CheckpointError(f"{path} was replaced while this tournament began: run the command again")
                self._content |= {f"{i}.safetensors": weights, f"{i}.json": card}
                if inference == "auto":  # each library rounds in its own way, so one runs the nets on all machines
                    chosen = load_net(str(path), loaded, "cpu").use_inference(inference)
                    inference = chosen if chosen in INFERENCES else inference  # a net of another kind has its own
        assert loaded.load_again is not None
        self._settings = GuestSettings(loaded.load_again, tournament, nets, "cpu", inference)
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
                progress.show(done / total, f"{show_games(folder)} on {count_of(self._pool.num_ready, 'worker')}")

    def add(self, folder: TournamentFolder, missing: Mapping[Pairing, list[int]]) -> None:
        """More games to play."""
        for pairing, numbers in missing.items():
            target = folder.targets[pairing]
            openings = tuple(opening.actions for opening in folder.openings(target))
            alone = any(self.tournament.contestants[name].plays_alone for name in pairing)
            size = GAMES_ALONE if alone else GAMES_OF_ORDER
            for start in range(0, len(numbers), size):
                self._waiting.append(MatchOrder(pairing, tuple(numbers[start : start + size]), target, openings))

    def close(self) -> None:
        """Ends all hosts."""
        self._pool.close()

    # --- as Work ------------------------------------------------------------------------------------------------------

    def settings(self, host: RemoteHost) -> GuestSettings:
        return replace(self._settings, device=host.device if self._device == "auto" else self._device)

    def files(self) -> tuple[int, dict[str, bytes]] | None:
        content, self._content = self._content, {}
        return (0, content) if content else None

    def next_order(self, host: RemoteHost) -> MatchOrder | None:
        return self._waiting.popleft() if self._waiting else None

    def take(self, host: RemoteHost, order: MatchOrder, content: bytes) -> None:
        where = f"an answer of {host.name}"
        if len(content) > MOST_BYTES:
            raise StorageError(f"{where}: it is too large")
        records, tournament = [parse_record(line, where) for line in content.splitlines()], self.tournament
        asked = [(order.pairing, number, tournament.game, tournament.seed) for number in order.games]
        if [(*key_of(record), record.game, record.seed) for record in records] != asked:
            raise StorageError(f"{where}: these are not the games that it was asked for")
        for record in records:
            if record.result == "*" or (not record.forfeit and not record.positions(self._loaded.game)[-1].terminal):
                raise StorageError(f"{where}: game {record.number} is not over")
        self._arrived.append(records)

    def taken(self) -> None:
        self._look.set()

    def lose(self, host: RemoteHost, orders: Sequence[MatchOrder]) -> None:
        self._waiting.extendleft(orders)


class RayCluster(Cluster):
    """A cluster that plays the games of a run or of a tournament; open it by `with`."""

    def check(self, plan: RunPlan) -> None:
        """Raises InvalidSetting if a run cannot be played there."""
        if plan.deterministic:
            raise InvalidSetting(
                f"{option('deterministic')} and {option('cluster')} exclude each other: which games arrive first "
                "depends on the clock and the network"
            )
        if len(plan.devices) > 1:
            raise InvalidSetting(
                f"with {option('cluster')} a net learns on one device: choose it by {option('device')}"
            )
        _check_game(plan.loaded)

    def make_workers(self, assignment: Assignment) -> ClusterWorkers:
        return ClusterWorkers(self, assignment)

    @contextmanager
    def spread(self, tournament: Tournament, loaded: LoadedGame, device: str) -> Iterator[Play]:
        """Plays the games of a tournament, nets on `device`; raises InvalidSetting if that cannot be done there."""
        _check_game(loaded)
        with self, closing(Spread(self, tournament, loaded, device)) as spread:
            yield spread.play


def _check_game(loaded: LoadedGame) -> None:
    if loaded.load_again is None:
        raise InvalidSetting(
            f"{cannot_be_imported(loaded)}, and {option('cluster')} needs other processes: put the game into a module "
            "(a .py file)"
        )
