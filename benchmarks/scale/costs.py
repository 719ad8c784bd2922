"""Measures what the parts of a run on a cluster take, on this machine: the costs that the simulation starts from."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from alphazero.catalogue import registry
from alphazero.cluster.connection import Cluster, Machine
from alphazero.cluster.pool import RemoteHost
from alphazero.cluster.self_play import CARD, CHECKPOINT, Order, RemotePlayer, games_of_order
from alphazero.errors import InvalidSetting
from alphazero.matches.arena import Arena
from alphazero.nets.neural_net import Batch, NeuralNet
from alphazero.nets.resnet import NetConfig
from alphazero.players.net_players import make_net_player
from alphazero.progress import Progress
from alphazero.storage.run_folder import RunFolder
from alphazero.training.config import RunConfig
from alphazero.training.parts.arrivals import Arrivals, pack, unpack, without
from alphazero.training.worker_process import WorkerSettings, make_net
from benchmarks.scale.simulation import Costs

SEED = 1
REPEATS = 12
HOSTS = 256
NICENESS = 15
"""Of a host on a cluster: Ray starts it at this priority."""


class Host:
    """Answers at once with a chunk, as an actor: the time of a message without play."""

    def answer(self, content: bytes) -> bytes:
        return content


def settings_of(config: RunConfig, game_name: str) -> WorkerSettings:
    """The settings of a host of a run with two of them."""
    loaded = registry.load(game_name)
    assert loaded.load_again is not None
    return WorkerSettings(
        load=loaded.load_again, parts={}, config=replace(config, net=config.net_settings),
        playing_net=config.net_settings, device="cpu", inference="auto", deterministic=False, threads=1,
        num_slots=min(config.self_play.num_slots, config.self_play.games_per_generation // 2), seed=SEED,
    )  # fmt: skip


def measure(game_name: str, config: RunConfig, seconds: float, cluster: Cluster | None) -> Costs:
    """The costs of such a run; `seconds` is the time for each part. `cluster`, open, carries messages."""
    settings = settings_of(config, game_name)
    with tempfile.TemporaryDirectory() as text, Progress("measuring") as progress:
        folder = Path(text)
        net = save_net(settings, folder)
        weights = sum((folder / name).stat().st_size for name in (CHECKPOINT, CARD))
        progress.show(0.1, "a host")
        rate, plies, content = play(settings, folder, seconds, config.self_play.games_per_generation // 2)
        chunk = unpack(content, "a chunk", registry.load(game_name).game, 1 << 20)
        positions = len(chunk.samples)
        progress.show(0.5, "messages and files")
        position, answer, write = _ingest(folder / "run", game_name, content)
        message = _message(cluster, content) if cluster else 0.0
        progress.show(0.8, "the learner")
        update, gate = time_update(net, config, game_name), time_gate(settings, folder, config)
    look = _look()
    return Costs(
        rate, plies, len(content) / positions, message, answer, position, look, write, update,
        gate, weights,
    )  # fmt: skip


def save_net(settings: WorkerSettings, folder: Path) -> NeuralNet:
    """An untrained network, as a file that hosts can play by."""
    loaded, _, net = make_net(settings, settings.playing_net)
    net.save(folder / CHECKPOINT, {"game": loaded.game.name, "net": settings.playing_net})
    return net


def play(settings: WorkerSettings, folder: Path, seconds: float, games_per_net: int) -> tuple[float, float, bytes]:
    """Positions a second of one host, plies of a game, and the last of its chunks.

    The network counts as a new one after every `games_per_net` games, since it then answers for all positions anew.
    """
    player, files = RemotePlayer(settings), {name: (folder / name).read_bytes() for name in (CHECKPOINT, CARD)}
    slots = settings.num_slots
    order_games = games_of_order(games_per_net)
    first, orders, content = 0, 0, b""
    game, counted, games, begin = settings.load().game, 0, 0, time.monotonic()
    began = begin
    while time.monotonic() - begin < 2 * seconds:  # the first half fills the slots with games of all lengths
        if orders % max(1, games_per_net // order_games) == 0:
            player.take(orders, files)
        answer = player.play(Order(first, 4 * slots, order_games, seconds / 2, False))
        first, orders = first + 4 * slots, orders + 1
        chunk = unpack(answer, "a chunk", game, 1 << 20)
        content = answer if chunk.num_games else content
        if time.monotonic() - begin < seconds:
            began = time.monotonic()
        else:
            counted, games = counted + chunk.counts.positions, games + chunk.counts.games
    if games < slots:  # else the long ones have not ended
        raise InvalidSetting(
            f"only {games} games ended in {seconds:g} s, fewer than are played at once: raise --seconds"
        )
    return counted / (time.monotonic() - began), counted / games, content


def play_together(game_name: str, config: RunConfig, processes: int, seconds: float) -> float:
    """Lets processes play without a coach, and returns their positions a second together.

    Each plays its share of a generation by each network.
    """
    settings = replace(settings_of(config, game_name), num_slots=config.self_play.num_slots)
    games = config.self_play.games_per_generation // processes
    with (
        tempfile.TemporaryDirectory() as folder,
        multiprocessing.get_context("spawn").Pool(processes, os.nice, (NICENESS,)) as pool,
    ):
        save_net(settings, Path(folder))
        answers = pool.starmap(play, [(settings, Path(folder), seconds, games)] * processes)
        return sum(rate for rate, *_ in answers)


def _ingest(path: Path, game_name: str, content: bytes) -> tuple[float, float, float]:
    """Seconds of the coach's thread for a position, an answer without positions, and a file."""
    game = registry.load(game_name).game
    with RunFolder.create(path, {}) as folder:
        inbox = Arrivals(folder, game, 1 << 20)
        chunk = unpack(content, "a chunk", game, 1 << 20)
        one = without(chunk, np.arange(chunk.num_games) >= 1)
        small = pack(one)
        whole = _time(lambda: inbox.add([unpack(content, "a chunk", game, 1 << 20)]))
        little = _time(lambda: inbox.add([unpack(small, "a chunk", game, 1 << 20)]))
        answer = _time(lambda: unpack(small, "a chunk", game, 1 << 20))
    position = max(0.0, whole - little) / max(1, len(chunk.samples) - len(one.samples))
    return position, answer, max(0.0, little - answer)


def _message(cluster: Cluster, content: bytes) -> float:
    """Seconds from a call to its answer of that size: the time that Ray takes."""
    (machine, *_) = cluster.machines()
    actor = cluster.place(Host, machine)
    return _time(lambda: cluster.ray.get(actor.answer.remote(content)))


def _look() -> float:
    """Seconds of the pool's thread for each host that has nothing to say."""
    hosts = [
        RemoteHost(i, Machine("n", "n", "n", 1, 0), None, stage="ready", calls={object(): 0, object(): 0})
        for i in range(HOSTS)
    ]

    def look() -> list[object]:
        found = {reference: host for host in hosts for reference in host.calls}
        now = time.monotonic()
        return [host for host in hosts if len(host.calls) < 2 or now - host.since > 1e9] + list(found)

    return _time(look) / HOSTS


def time_update(net: NeuralNet, config: RunConfig, game_name: str, threads: int = 1) -> float:
    """Seconds of one update by so many threads."""
    game, size = registry.load(game_name).game, config.learner.batch_size
    rng = np.random.default_rng(0)
    planes = (rng.random((size, *game.observation_shape)) < 0.3).astype(np.float32)
    masks = np.ones((size, game.num_actions), bool)
    batch = Batch(planes, masks, masks.astype(np.float32) / game.num_actions, np.zeros(size, np.float32))
    trainer = net.trainer(threads=threads)
    return _time(lambda: float(trainer.train_step(batch, 1e-3)["policy_loss"]))


def time_gate(settings: WorkerSettings, folder: Path, config: RunConfig, threads: int = 1) -> float:
    """Seconds of the gate's match, between two networks whose weights are new; the benchmark comes on top."""
    _, kernels, candidate = make_net(settings, settings.playing_net)
    best, gate = make_net(settings, settings.playing_net)[2], config.gate
    if not gate.enabled:
        return 0.0
    search = replace(config.search, num_simulations=gate.simulations, noise_fraction=0.0) if gate.simulations else None

    def play() -> None:
        for net in (candidate, best):
            net.load(folder / CHECKPOINT)
        first, second = (
            make_net_player("", kernels, net, search, seed=SEED, threads=threads) for net in (candidate, best)
        )
        Arena(kernels, first, second, gate.games, SEED).play()

    return _time(play, 3)


def _time(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """The median of some calls."""
    work()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return median(times)


def default_config(game_name: str) -> RunConfig:
    """The game's quick preset with a network of 5 blocks and 64 channels."""
    return replace(registry.load(game_name).presets()["quick"], net=NetConfig(blocks=5, channels=64))
