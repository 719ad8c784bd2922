"""The simulation of a cluster: cases whose figures are known by thought."""

from __future__ import annotations

import csv
import math
import os
import sys
from dataclasses import replace
from pathlib import Path
from subprocess import check_output

import pytest

from benchmarks.scale.__main__ import LIVES, WORKERS, write_csv
from benchmarks.scale.efficiency import on_cores
from benchmarks.scale.simulation import Costs, Setting, simulate

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


def test_a_slow_learner_is_the_limit_and_workers_wait():
    """A generation of 1,024 games is learned from in 10 s, and played in 1 s."""
    found = simulate(replace(FREE, gate_seconds=10), Setting(10))
    assert found.bottleneck == "learner" and found.learner_busy > 0.95
    assert found.games_per_s == pytest.approx(102.4, rel=0.1) and found.workers_busy < 0.2


def test_a_thin_network_is_the_limit():
    found = simulate(FREE, Setting(10, bytes_per_s=60_000))  # 50 games a second
    assert found.bottleneck == "network" and found.games_per_s == pytest.approx(50, rel=0.1)


def test_a_slow_thread_of_the_coach_is_the_limit():
    found = simulate(replace(FREE, position_seconds=1 / 1500), Setting(10))  # 50 games a second
    assert found.bottleneck == "ingest" and found.games_per_s == pytest.approx(50, rel=0.1)


def test_hosts_that_die_lose_games_and_time():
    """They are there half of the time."""
    found = simulate(FREE, Setting(16, life_seconds=60, seconds_to_replace=60, generations=60))
    assert 0.3 < found.games_per_s / 1600 < 0.7 and found.lost_games > 0


@pytest.mark.parametrize("seed", range(4))
def test_a_host_that_comes_back_to_nobody_gets_orders(seed: int):
    """The only host dies every 20 s on average; a generation takes it 10 s."""
    found = simulate(FREE, Setting(1, life_seconds=20, seconds_to_replace=5, generations=60, seed=seed))
    assert found.games_per_s == pytest.approx(80, rel=0.25)


@pytest.mark.parametrize(("speed", "games_per_s"), [(1.0, 100), (0.5, 66.7), (1e-6, 50)])
def test_hosts_beside_the_learner_play_at_another_speed_while_it_learns(speed: float, games_per_s: float):
    """A generation of 512 games takes a host 5.12 s alone, and is learned from in as many.

    At half the speed it has 256 games when learning ends, and the others 2.56 s later.
    """
    learning = replace(FREE, gate_seconds=5.12)
    found = simulate(learning, Setting(1, games_per_generation=512, spread=0.0, speed_beside_learner=speed))
    assert found.games_per_s == pytest.approx(games_per_s, rel=0.05)


def test_slow_hosts_slow_nobody_else_down():
    found = simulate(FREE, Setting(10, slow_share=0.1))
    assert found.games_per_s == pytest.approx(910, rel=0.05)


def test_a_learner_that_takes_as_long_as_play_is_one_network_behind():
    found = simulate(replace(FREE, gate_seconds=1.0), Setting(10, spread=0.0))
    assert 0.5 < found.age < 1.5


def test_the_same_seed_gives_the_same_run():
    assert simulate(FREE, Setting(8, seed=3)) == simulate(FREE, Setting(8, seed=3))


def test_the_csv_has_every_run(tmp_path: Path):
    rows = [(life, 1.0, simulate(FREE, Setting(2))) for life in LIVES]
    write_csv(tmp_path / "scale.csv", rows)
    with (tmp_path / "scale.csv").open() as file:
        found = list(csv.DictReader(file))
    assert [float(row["life_seconds"]) for row in found] == list(LIVES) and math.inf in LIVES
    assert float(found[0]["games_per_s"]) == pytest.approx(rows[0][2].games_per_s, rel=1e-3)
    assert max(WORKERS) == 1024


def cores_of_a_child() -> int:
    return int(check_output([sys.executable, "-c", "import os; print(len(os.sched_getaffinity(0)))"]))


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system pins no process to cores")
def test_a_measurement_and_the_programs_that_it_starts_have_as_many_cores_as_it_says():
    before = os.sched_getaffinity(0)
    assert on_cores(1, cores_of_a_child) == 1
    assert on_cores(len(before), cores_of_a_child) == len(before)
    assert os.sched_getaffinity(0) == before
