"""Training with hosts that are slow, silent, stale or of another version, on a cluster in this process."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from alphazero.cluster import pool as pool_module
from alphazero.cluster import self_play as workers_module
from alphazero.cluster.pool import Host, Parcel, Pool
from alphazero.storage.run_folder import RunFolder
from alphazero.training import coach as coach_module
from alphazero.training.coach import Coach
from alphazero.training.config import GateConfig, RunConfig
from alphazero.training.parts import gate
from alphazero.training.parts.arrivals import Arrivals, Chunk, unpack
from alphazero.training.replay_buffer import read_samples
from alphazero.training.run import TrainedRun, train
from tests.cluster.fake import FakeCluster, machine
from tests.cluster.test_d1_faults import GAME, QUICK, games_of
from tests.training.test_coach import gate_that_passes

pytestmark = pytest.mark.usefixtures("no_ray")


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "SECONDS_BETWEEN_LOOKS", 0.02)


def play(folder: Path, cluster: FakeCluster, generations: int, config: RunConfig = QUICK) -> Coach:
    """The coach of a run that has come to its end."""
    coaches: list[Coach] = []
    config = replace(config, generations=generations)
    run = train(GAME, config, folder, threads=1, seed=3, cluster=cluster, on_start=coaches.append)
    assert not run.stopped and run.generation == generations
    return coaches[0]


def numbers_in(content: bytes) -> list[int]:
    """The numbers of the games in a chunk, or in a file of what has arrived."""
    numbers: list[int] = unpack(content, "a chunk", GAME.game, 100_000).games[:, 0].tolist()
    return numbers


def delivered(cluster: FakeCluster) -> dict[int, int]:
    """The actor behind each game that the pool has got; no game has come twice."""
    chunks = [(actor, content) for actor, (kind, content) in cluster.ray.heard if isinstance(content, bytes)]
    games = [(number, actor) for actor, content in chunks for number in numbers_in(content)]
    assert len(games) == len(dict(games))
    return dict(games)


def left_out(folder: Path, cluster: FakeCluster, coach: Coach) -> set[int]:
    """The games that were delivered and count nowhere; each other one counts once, in a generation or among those that
    wait for the next one, which are on disk."""
    rest = coach.lineup.workers.inbox.take(1_000_000)  # type: ignore[union-attr]
    waiting = rest.games[:, 0].tolist() if rest else []
    on_disk = {number for path in folder.glob("arrived_*.npz") for number in numbers_in(path.read_bytes())}
    assert on_disk.issuperset(waiting)
    counted = [*games_of(folder), *waiting]
    assert len(counted) == len(set(counted))
    came = delivered(cluster).keys()
    assert came >= set(counted)
    return came - set(counted)


def assert_in_every_generation(folder: Path, cluster: FakeCluster, *actors: int) -> None:
    """The hosts have delivered games that count in each generation."""
    sender = delivered(cluster)
    for row in TrainedRun(GAME, folder).metrics:
        senders = {sender[number] for number, _, _ in played(folder, row["generation"])}
        assert senders.issuperset(actors), f"generation {row['generation']} has games of {senders} alone"


def played(folder: Path, generation: int) -> np.ndarray:
    """Number, samples and first weights of each game of a generation."""
    with np.load(folder / f"played_{generation:04d}.npz", allow_pickle=False) as file:
        games: np.ndarray = file["games"]
    return games


def begin_together(count: int) -> Callable[[int, str, int], None]:
    """So many hosts begin their first orders at once, so that generation 1 has games of all; see `behave`."""
    all_there = threading.Barrier(count)

    def wait(actor: int, name: str, call: int) -> None:
        if (name, call) == ("play", 2):  # after `hello` and `begin`
            all_there.wait(60)

    return wait


@pytest.mark.slow
def test_a_host_that_is_ten_times_slower_keeps_nobody_waiting(tmp_path: Path):
    """Whenever it answers, each of the others has gone on to its tenth order since."""
    folder, cluster = tmp_path / "run", FakeCluster([machine("a"), machine("b"), machine("c")])
    begin, moved, orders, went_on = begin_together(3), threading.Condition(), Counter[int](), list[bool]()

    def wait(actor: int, name: str, call: int) -> None:
        begin(actor, name, call)
        if name != "play":
            return
        with moved:
            orders[actor] += 1
            moved.notify_all()
            if actor == 0 and all(went_on):  # else it has waited in vain already
                goals = {other: orders[other] + 10 for other in (1, 2)}
                went_on.append(moved.wait_for(lambda: all(orders[other] >= goals[other] for other in goals), 30))

    cluster.behave = wait
    coach = play(folder, cluster, 4)
    assert len(went_on) >= 3 and all(went_on)
    assert not left_out(folder, cluster, coach)
    assert 0 in delivered(cluster).values(), "the slow host's games count, too"
    assert_in_every_generation(folder, cluster, 1, 2)
    assert len(cluster.actors) == 3, "a slow host is no lost one"


class Stale(Host):
    """Plays by the first weights that it has got, for ever."""

    def play(self, order: Any, parcel: Parcel | None) -> tuple[str, Any]:
        self._first = getattr(self, "_first", parcel)
        return super().play(order, self._first)


@pytest.mark.slow
def test_games_of_a_stale_host_count_until_they_are_too_old_and_then_they_are_counted_as_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Here three networks may have taken over since a game began, so that the run is short."""
    monkeypatch.setattr(workers_module, "MOST_AGE", 3)
    folder, cluster = tmp_path / "run", FakeCluster([machine("a"), machine("b"), machine("c")])
    cluster.behave, cluster.bodies = begin_together(3), lambda usual, number: (Stale if number == 0 else usual)()
    coach = play(folder, cluster, 8)
    rows, sender = TrainedRun(GAME, folder).metrics, delivered(cluster)
    dropped = left_out(folder, cluster, coach)
    assert dropped and {sender[number] for number in dropped} == {0}
    assert sum(row["games_left_out"] for row in rows) == len(dropped)
    ages = [row["generation"] - 1 - int(played(folder, row["generation"])[:, 2].min()) for row in rows]
    assert max(ages) == 3
    assert max(row["oldest_weights_age"] for row in rows) == 3
    assert_in_every_generation(folder, cluster, 1, 2)
    assert len(cluster.actors) == 3, "a stale host is no lost one"


def test_a_run_goes_on_without_the_cluster_and_then_with_it_again(tmp_path: Path):
    folder = tmp_path / "run"
    play(folder, FakeCluster([machine("a")]), 1)
    train(GAME, replace(QUICK, generations=2), folder, threads=1, seed=3, resume=True)
    cluster, config = FakeCluster([machine("a")]), replace(QUICK, generations=3)
    run = train(GAME, config, folder, threads=1, seed=3, cluster=cluster, resume=True)
    assert [row["generation"] for row in run.metrics] == [1, 2, 3]
    numbers = [number for generation in (1, 3) for number in played(folder, generation)[:, 0].tolist()]
    assert len(numbers) == len(set(numbers))


def test_the_games_of_a_net_and_of_the_larger_one_after_it_have_different_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Hosts begin games until they are closed."""
    close, smaller = Pool.close, tmp_path / "smaller"

    def close_later(pool: Pool) -> None:
        time.sleep(0.3)
        close(pool)

    assert train(GAME, replace(QUICK, generations=1), smaller, threads=1).generation == 1
    folder, cluster = tmp_path / "run", FakeCluster([machine("a"), machine("b")])
    monkeypatch.setattr(Pool, "close", close_later)
    monkeypatch.setattr(coach_module, "judge", gate_that_passes(2))
    larger = replace(QUICK.net, channels=QUICK.net.channels + 2)
    coach = play(folder, cluster, 3, replace(QUICK, gate=GateConfig(), initial_net=str(smaller), net=larger))
    assert coach.lineup.best_generation == 2 and len(cluster.actors) == 4
    left_out(folder, cluster, coach)


@pytest.mark.slow
def test_a_generation_of_games_that_waited_has_figures_and_keeps_to_its_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """After a resume the next generation may be there already, and nothing says how fast the hosts are."""
    folder, gates, late = tmp_path / "run", list[int](), threading.Event()

    def planted(kernels, first, second, num_games, *arguments):
        gates.append(num_games)
        won = SimpleNamespace(score=1.0, num_games=2, distinct_games=2, decides=lambda *_: True)
        return [(won, 1.0)]

    monkeypatch.setattr(gate, "play_in_time", planted)
    config = replace(QUICK, gate=GateConfig(games=1_000_000, simulations=64), minutes=1.0)
    play(folder, FakeCluster([machine("a")]), 1, config)
    games, samples = played(folder, 1), read_samples(folder / "replay_0001.npz", GAME.game)
    with RunFolder.open(folder) as run:
        inbox = Arrivals(run, GAME.game, 10_000)
        inbox.restore(())
        inbox.add([Chunk(samples, games + np.array([10_000, 0, 0]))])
    cluster = FakeCluster([machine("a")])
    cluster.behave = lambda actor, name, call: late.wait(60) and None
    config = replace(config, generations=2)
    run = train(GAME, config, folder, threads=1, seed=3, cluster=cluster, resume=True, on_start=lambda coach: None)
    late.set()
    first, second = run.metrics
    assert second["games"] >= 48 and second["cluster_workers"] == 0
    assert second["plies_per_game"] == round(second["positions"] / second["games"], 2) > 4
    for name in ("simulations_per_s", "cache_hits", "bytes_per_position"):
        assert second[name] == first[name] > 0
    assert 4 <= gates[1] < 1_000_000
    share = first["plies_per_game"] * 64 / (first["simulations_per_s"] / first["cluster_workers"])
    assert gates[0] == pytest.approx(0.05 * 60 / share, rel=0.2, abs=2)
    assert gates[1] == pytest.approx(gates[0], rel=0.5)


@pytest.mark.slow
def test_all_games_that_are_given_up_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    folder, config = tmp_path / "run", replace(QUICK, generations=1)
    train(GAME, config, folder, threads=2, seed=3)
    caplog.set_level("INFO")
    config = replace(config, generations=2)
    train(GAME, config, folder, threads=2, seed=3, resume=True, cluster=FakeCluster([machine("a")]))
    assert "this machine gives up 16 games in progress" in caplog.text
