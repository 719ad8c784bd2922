"""The simulation of a cluster: cases whose figures are known by thought."""

from __future__ import annotations

import csv
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest

from alphazero.errors import InputError
from benchmarks.scale import __main__ as scale
from benchmarks.scale import efficiency
from benchmarks.scale.__main__ import LIVES, WORKERS, Case, cases, simulate_all, write_csv
from benchmarks.scale.costs import default_config
from benchmarks.scale.efficiency import on_cores
from benchmarks.scale.simulation import Costs, Setting, simulate
from tests.benchmarks.child import cores_of_a_child

FREE = Costs(
    positions_per_s=3000, plies_per_game=30, bytes_per_position=40, message_seconds=0, answer_seconds=0,
    position_seconds=0, host_seconds=0, write_seconds=0, update_seconds=0, gate_seconds=0, weights_bytes=0,
)  # fmt: skip
"""Hosts that play 100 games a second, and parts that cost nothing."""


@pytest.mark.parametrize("workers", [1, 2, 16])
def test_where_nothing_else_costs_anything_speed_grows_with_the_workers(workers: int):
    found = simulate(FREE, Setting(workers, spread=0.0))
    assert found.games_per_s == pytest.approx(100 * workers, rel=0.02)
    assert found.workers_busy > 0.98 and found.bottleneck == "workers"


@pytest.mark.parametrize(
    ("costs", "bytes_per_s", "bottleneck", "games_per_s"),
    [
        ({"gate_seconds": 10}, None, "learner", 102.4),  # a generation of 1,024 games is played in 1 s
        ({}, 60_000, "network", 50),
        ({"position_seconds": 1 / 1500}, None, "ingest", 50),  # the thread of the coach
    ],
)
def test_the_slowest_part_is_the_limit(costs: dict[str, float], bytes_per_s, bottleneck: str, games_per_s: float):
    found = simulate(replace(FREE, **costs), Setting(10, **({"bytes_per_s": bytes_per_s} if bytes_per_s else {})))
    assert found.bottleneck == bottleneck and found.games_per_s == pytest.approx(games_per_s, rel=0.1)


def test_hosts_that_die_lose_games_and_time():
    """They are there half of the time."""
    found = simulate(FREE, Setting(16, life_seconds=60, seconds_to_replace=60, generations=60))
    assert 0.3 < found.games_per_s / 1600 < 0.7 and found.lost_games > 0


def test_a_host_that_comes_back_to_nobody_gets_orders():
    """The only host dies every 20 s on average; a generation takes it 10 s."""
    found = simulate(FREE, Setting(1, life_seconds=20, seconds_to_replace=5, generations=60))
    assert found.games_per_s == pytest.approx(80, rel=0.25)


@pytest.mark.parametrize(("rest", "games_per_s"), [(False, 100), (True, 50)])
def test_hosts_that_rest_play_and_learn_in_turns(rest: bool, games_per_s: float):
    """A generation of 512 games takes a host 5.12 s, and is learned from in as many."""
    learning = replace(FREE, gate_seconds=5.12)
    found = simulate(learning, Setting(1, games_per_generation=512, spread=0.0, rest_while_learning=rest))
    assert found.games_per_s == pytest.approx(games_per_s, rel=0.05)
    share = games_per_s / 100
    assert (found.workers_busy, found.learner_busy) == pytest.approx((share, share), rel=0.05)


def test_hosts_that_rest_begin_again_with_the_new_network():
    """Each generation of 16 games comes as 8 orders of 2; one of them was under way while the network learned."""
    setting = Setting(1, games_per_generation=16, spread=0.0, rest_while_learning=True)
    assert simulate(replace(FREE, gate_seconds=10), setting).age == pytest.approx(1 / 8)


def test_a_host_that_comes_back_during_the_rest_waits_for_its_end():
    """No host outlives the 100 s of learning; then it plays for 10.24 s, of which it is there half of the time.

    An eighth of the games is lost with it and comes on top.
    """
    learning = replace(FREE, gate_seconds=100)
    setting = Setting(1, life_seconds=5, seconds_to_replace=5, generations=200, rest_while_learning=True)
    found = simulate(learning, setting)
    assert found.seconds_per_generation == pytest.approx(100 + 2 * 10.24 * (1 + found.lost_games), rel=0.02)
    assert found.age == 0


def test_the_csv_has_every_run(tmp_path: Path):
    rows = [(Case(life, 1.0, 20.0), simulate(FREE, Setting(2))) for life in LIVES]
    write_csv(tmp_path / "scale.csv", rows)
    with (tmp_path / "scale.csv").open() as file:
        found = list(csv.DictReader(file))
    assert [float(row["life_seconds"]) for row in found] == list(LIVES) and math.inf in LIVES
    assert [(row["learner_speed"], row["worker_speed"]) for row in found] == [("1.0", "20.0")] * 2
    assert float(found[0]["games_per_s"]) == pytest.approx(rows[0][1].games_per_s, rel=1e-3)
    assert max(WORKERS) == 1024


def test_faster_workers_are_one_more_case_for_the_fastest_learner():
    without = cases((1.0, 50.0), 1.0)
    assert [case.worker_speed for case in without] == [1.0] * 4
    assert cases((1.0, 50.0), 20.0) == [*without, (math.inf, 50.0, 20.0)]


@pytest.mark.parametrize("cost", ["gate_seconds", "update_seconds"])
def test_workers_and_learner_are_as_many_times_as_fast_as_their_case_says(cost: str, monkeypatch: pytest.MonkeyPatch):
    """Learning from a generation takes the measured learner 100 s, and playing it the measured worker 10."""
    monkeypatch.setattr(scale, "WORKERS", (1,))
    config, games = default_config("connect4"), 1024
    updates = games * 30 * config.learner.sample_reuse / config.learner.batch_size
    costs = replace(FREE, **{cost: 100 / updates if cost == "update_seconds" else 100})
    (_, slow), (_, fast) = simulate_all(costs, config, [Case(math.inf, 50.0, speed) for speed in (1.0, 20.0)])
    assert slow.games_per_s == pytest.approx(100, rel=0.05) and slow.bottleneck == "workers"
    assert fast.games_per_s == pytest.approx(games / 2, rel=0.05) and fast.bottleneck == "learner"
    assert config.self_play.games_per_generation == games


# --- the check against real runs --------------------------------------------------------------------------------------


def test_one_core_cannot_be_compared_with_two(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(efficiency, "count_cores", lambda: 1)
    monkeypatch.setattr(efficiency, "on_cores", lambda *arguments: 1.0)
    with pytest.raises(InputError, match="two cores"):
        efficiency.compare("connect4", default_config("connect4"), 1)


def test_where_nothing_can_be_pinned_the_check_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    with pytest.raises(InputError, match="pins processes to cores"):
        on_cores(1, cores_of_a_child)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system pins no process to cores")
def test_a_measurement_and_the_programs_that_it_starts_have_as_many_cores_as_it_says():
    before = os.sched_getaffinity(0)
    assert on_cores(1, cores_of_a_child) == 1
    assert on_cores(len(before), cores_of_a_child) == len(before)
    assert os.sched_getaffinity(0) == before
