"""D1: workers are killed, machines go and come: the run ends right, and each game counts once."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.cluster.pool import Pool, RemoteHost
from alphazero.cluster.ray_cluster import RayCluster
from alphazero.cluster.self_play import AllHosts, Order
from alphazero.training.coach import Coach
from alphazero.training.config import EvaluationConfig, GateConfig, LearnerConfig, RunConfig
from alphazero.training.parts.arrivals import unpack
from alphazero.training.run import TrainedRun, train
from tests.cluster.conftest import add_node, needs_ray
from tests.training.test_coach import TINY

pytestmark = [needs_ray, pytest.mark.filterwarnings("default")]
GAME = registry.load("tictactoe")
CONFIG = replace(
    TINY,
    self_play=replace(TINY.self_play, games_per_generation=48, num_slots=8),
    replay=replace(TINY.replay, window_start=1000, window_max=1000),  # so that all games stay to be counted
    evaluation=EvaluationConfig(opponents=()),
)
QUICK = replace(CONFIG, learner=LearnerConfig(batch_size=256, sample_reuse=1), gate=GateConfig(enabled=False))
"""Learns in a moment, and every network takes over self-play."""


def play(
    folder: Path, address: str, generations: int, on_start: Callable[[Coach], None] = lambda coach: None,
    config: RunConfig = CONFIG, resume: bool = False,
) -> TrainedRun:  # fmt: skip
    return train(
        GAME, replace(config, generations=generations), folder, threads=1, seed=3, cluster=RayCluster(address),
        on_start=on_start, resume=resume,
    )  # fmt: skip


def games_of(folder: Path) -> list[int]:
    """The numbers of all games of a run, which are checked against its figures and its samples."""
    numbers: list[int] = []
    for row in TrainedRun(GAME, folder).metrics:
        with np.load(folder / f"played_{row['generation']:04d}.npz", allow_pickle=False) as file:
            games = file["games"]
        with np.load(folder / f"replay_{row['generation']:04d}.npz", allow_pickle=False) as file:
            assert len(file["values"]) == games[:, 1].sum() == row["positions"]
        assert len(games) == row["games"] >= CONFIG.self_play.games_per_generation
        numbers += games[:, 0].tolist()
    return numbers


def assert_each_game_counts_once(folder: Path, generations: int) -> None:
    numbers = games_of(folder)
    assert len(numbers) == len(set(numbers)) >= generations * CONFIG.self_play.games_per_generation
    assert not TrainedRun(GAME, folder).stopped and TrainedRun(GAME, folder).generation == generations


@contextmanager
def meanwhile(act: Callable[[threading.Event], None]) -> Iterator[None]:
    """`act` runs on a thread until the block ends."""
    over = threading.Event()
    thread = threading.Thread(target=act, args=(over,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def wait_until(holds: Callable[[], bool], seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never held"
        time.sleep(0.05)


def pool_of(coach: Coach) -> Pool:
    return coach.lineup.workers.pool


def test_a_worker_that_is_killed_is_replaced_and_each_game_counts_once(
    ray_cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    killed: list[int] = []

    def kill_one(coach: Coach) -> None:
        pool = pool_of(coach)
        wait_until(lambda: pool.num_ready > 0)  # before the run asks for games

        def act() -> None:
            (pid,) = [host.pid for host in pool.hosts if host.stage == "ready"]
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
            wait_until(lambda: pool.num_replaced > 0)

        threading.Thread(target=act, daemon=True).start()

    folder = tmp_path / "run"
    # one worker: the run cannot end before another one has taken its place
    cluster = RayCluster(ray_cluster.address, workers=1)
    train(GAME, replace(QUICK, generations=2), folder, threads=1, seed=3, cluster=cluster, on_start=kill_one)
    assert_each_game_counts_once(folder, 2)
    rows = TrainedRun(GAME, folder).metrics
    assert killed and max(row["workers_replaced"] for row in rows) == 1
    assert "died or was killed" not in "".join(capfd.readouterr()), (
        "these are Ray's words, a thousand characters of them"
    )
    assert {row["bytes_per_position"] < 100 for row in rows} == {True}


@pytest.mark.slow
def test_a_machine_that_joins_is_used_and_one_that_goes_is_not_missed(
    ray_cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # a node is added from another thread, where Python takes no signal handlers
    monkeypatch.setattr("ray._private.utils.set_sigterm_handler", lambda handler: None)
    seen: list[int] = []
    raised: list[BaseException] = []

    def come_and_go(coach: Coach) -> None:
        def act() -> None:
            pool = pool_of(coach)
            try:
                node = add_node(ray_cluster, num_cpus=1)
                wait_until(lambda: pool.num_ready == 3)
                seen.append(pool.num_ready)
                before = pool.num_replaced  # more than none where the machine was added again
                ray_cluster.remove_node(node, allow_graceful=False)
                wait_until(lambda: pool.num_replaced > before)
                seen.append(pool.num_ready)
                wait_until(lambda: coach.pace.generation >= 1)  # there are games to count
            except BaseException as error:
                raised.append(error)
            finally:
                coach.stop.set()

        threading.Thread(target=act, daemon=True).start()

    folder = tmp_path / "run"
    run = play(folder, ray_cluster.address, 100_000, come_and_go)
    if raised:
        raise raised[0]
    assert run.stopped and seen[0] == 3 and seen[1] <= 2
    numbers = games_of(folder)
    assert len(numbers) == len(set(numbers)) > 0


@pytest.mark.slow
def test_workers_killed_every_ten_seconds_for_two_minutes(ray_cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of four workers on two machines; the one that has sent the first games is spared, and plays on all the time."""
    folder, coaches, killed, sender = tmp_path / "run", list[Coach](), list[int](), dict[int, int]()
    learner = LearnerConfig(batch_size=256, sample_reuse=1)
    config = replace(CONFIG, learner=learner, self_play=replace(CONFIG.self_play, games_per_generation=240))
    take = AllHosts.take

    def note(work: AllHosts, host: RemoteHost, order: Order, content: bytes) -> None:
        games = unpack(content, "a chunk", GAME.game, 100_000).games
        sender.update(dict.fromkeys(games[:, 0].tolist(), host.number))
        take(work, host, order, content)

    def kill(over: threading.Event) -> None:
        wait_until(lambda: bool(sender))
        begin, spared = time.monotonic(), next(iter(sender.values()))
        for i in range(1, 13):
            if over.wait(begin + 10.0 * i - time.monotonic()):
                return
            hosts = [host for host in pool_of(coaches[0]).hosts if host.stage == "ready" and host.number != spared]
            if hosts:
                longest_there = min(hosts, key=lambda host: host.number)
                os.kill(longest_there.pid, signal.SIGKILL)
                killed.append(longest_there.number)
        coaches[0].stop.set()

    monkeypatch.setattr(AllHosts, "take", note)
    node = add_node(ray_cluster, num_cpus=2)
    with meanwhile(kill):
        run = play(folder, ray_cluster.address, 1_000_000, coaches.append, config)
    spared, last = next(iter(sender.values())), run.generation
    assert run.stopped and len(killed) >= 10 and last >= 12
    assert len(set(killed)) == len(killed) and spared not in killed
    assert pool_of(coaches[0]).num_replaced in (len(killed) - 1, len(killed)), "nobody else was lost"
    for generation in range(1, last + 1):
        games = np.load(folder / f"played_{generation:04d}.npz", allow_pickle=False)["games"]
        assert spared in {sender[number] for number in games[:, 0].tolist()}, f"none in generation {generation}"
    run = play(folder, ray_cluster.address, last + 1, config=config, resume=True)
    ray_cluster.remove_node(node, allow_graceful=False)
    assert_each_game_counts_once(folder, run.generation)
    print(json.dumps({"killed": len(killed), "generations": run.generation, "games": len(games_of(folder))}))
