"""A tournament's games on a cluster: each is a function of the seed and its number, wherever it is played."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from alphazero.catalogue.loaded import LoadedGame
from alphazero.cluster.connection import Cluster
from alphazero.cluster.match_guest import GuestSettings, MatchOrder
from alphazero.cluster.pool import Pool, Seat
from alphazero.errors import CheckpointError, InputError, StorageError, count_of
from alphazero.fingerprint import game_fingerprint
from alphazero.game.record import GameRecord, parse_record
from alphazero.nets.devices import INFERENCES, wanted_inference
from alphazero.players.contestants import checkpoint_of, load_net
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


class Spread:
    """Plays games of one tournament on a cluster, round after round; made open, and to be closed."""

    def __init__(self, cluster: Cluster, tournament: Tournament, loaded: LoadedGame, device: str = "auto"):
        self._work = _Matches(tournament, loaded, device)
        self._pool = Pool(cluster, self._work)

    def play(self, folder: TournamentFolder, missing: Mapping[Pairing, list[int]]) -> None:
        """Plays the missing games and keeps each as soon as it has arrived."""
        work, total = self._work, sum(map(len, missing.values()))
        work.add(folder, missing)
        self._pool.start()
        done = 0
        with Progress(f"{len(work.tournament.contestants)} contestants") as progress:
            while done < total:
                work.arrived.wait(PAUSE)
                work.arrived.clear()
                while work.records:
                    records = work.records.popleft()
                    folder.add(records)
                    done += len(records)
                self._pool.raise_error()  # after what has arrived is kept
                workers = count_of(self._pool.num_ready, "worker")
                note = f"{len(folder.records):,} of {folder.num_games:,} games on {workers}"
                progress.show(done / total, note)

    def close(self) -> None:
        """Ends all hosts; a second call does nothing."""
        self._pool.close()


class _Matches:
    """The work of the pool: orders for games of pairs, and the records that come back."""

    maker = "alphazero.cluster.match_guest:MatchGuest"
    patience = PATIENCE

    def __init__(self, tournament: Tournament, loaded: LoadedGame, device: str = "auto"):
        self.tournament, self._loaded, self._device = tournament, loaded, device
        self.fingerprint = game_fingerprint(loaded.game)
        files = dict[str, str]()
        self._content: dict[str, bytes] | None = {}
        for i, (name, contestant) in enumerate(tournament.contestants.items()):
            if (found := checkpoint_of(contestant, loaded)) is not None:
                path, _ = found
                files[name] = f"{i}.safetensors"
                weights, card = checkpoint_bytes(path)
                if hashlib.sha256(weights).hexdigest() != tournament.weights[name]:
                    raise CheckpointError(f"{path} was replaced while this tournament began: run the command again")
                self._content |= {files[name]: weights, f"{i}.json": card}
        assert loaded.load_again is not None
        self._settings = GuestSettings(
            loaded.load_again, tournament.game, tournament.contestants, files, tournament.seed,
            tournament.simulations, "cpu", _same_for_all(tournament, loaded),
        )  # fmt: skip
        self._waiting: deque[MatchOrder] = deque()
        self._under_way: dict[int, MatchOrder] = {}
        self._orders = 0
        self._lock = threading.Lock()
        self.records: deque[list[GameRecord]] = deque()
        """Games that have arrived."""
        self.arrived = threading.Event()

    def add(self, folder: TournamentFolder, missing: Mapping[Pairing, list[int]]) -> None:
        """More games to play."""
        for pairing, numbers in missing.items():
            target = folder.targets[pairing]
            openings = tuple(opening.actions for opening in folder.openings(target))
            pair = [self.tournament.contestants[name] for name in (pairing.first, pairing.second)]
            size = GAMES_ALONE if any(contestant.plays_alone for contestant in pair) else GAMES_OF_ORDER
            for start in range(0, len(numbers), size):
                games = tuple(numbers[start : start + size])
                with self._lock:
                    self._orders += 1
                    order = MatchOrder(self._orders, pairing.first, pairing.second, games, target, openings)
                    self._waiting.append(order)

    # --- as Work ------------------------------------------------------------------------------------------------------

    def settings(self, seat: Seat) -> GuestSettings:
        return replace(self._settings, device=seat.device if self._device == "auto" else self._device)

    def files(self) -> tuple[int, dict[str, bytes]] | None:
        content, self._content = self._content, None
        return (0, content) if content else None

    def next_order(self, seat: Seat) -> MatchOrder | None:
        with self._lock:
            if not self._waiting:
                return None
            order = self._waiting.popleft()
            self._under_way[order.number] = order
            return order

    def take(self, answers: Sequence[tuple[Seat, Any, bytes]]) -> list[Seat]:
        refused = []
        for seat, order, content in answers:
            if self._under_way.pop(order.number, None) is None:
                continue  # somebody else has played it
            try:
                records = self._read(content, order, f"an answer of {seat.name}")
            except InputError as error:
                logger.warning("%s", error)
                refused.append(seat)
                self._play_again(order)
                continue
            self.records.append(records)
        self.arrived.set()
        return refused

    def lose(self, seat: Seat, orders: Sequence[Any]) -> None:
        for order in orders:
            if self._under_way.pop(order.number, None) is not None:
                self._play_again(order)

    def _play_again(self, order: MatchOrder) -> None:
        with self._lock:
            self._waiting.appendleft(order)

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
