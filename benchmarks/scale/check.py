"""Compares the simulation with real runs on this machine."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from alphazero.machine import count_cores
from alphazero.training.config import EvaluationConfig, RunConfig
from benchmarks.scale.costs import play_together, save_net, settings_of, time_gate, time_update
from benchmarks.scale.efficiency import on_cores, positions_per_s
from benchmarks.scale.simulation import Costs, setting_of, simulate

GENERATIONS = 6


def check(costs: Costs, config: RunConfig, game_name: str, workers: int, seconds: float) -> str:
    """A real run with so many local workers beside the simulated one, in positions a second.

    All processes of a run share as many cores as it has workers, if there are so many; so have the processes by which
    its costs are measured. That is done before and after the run, since machines change their speed, and takes four
    times `seconds`.
    """
    cores = min(workers, count_cores())
    config = replace(config, generations=GENERATIONS, minutes=0.0, evaluation=EvaluationConfig(opponents=()))
    simulated = on_cores(cores, simulate_here, costs, config, game_name, workers, seconds)
    real = on_cores(cores, positions_per_s, game_name, config, workers, True)
    simulated = (simulated + on_cores(cores, simulate_here, costs, config, game_name, workers, seconds)) / 2
    return (
        f"{workers} workers on {cores} cores: {real:,.0f} positions/s, simulated {simulated:,.0f} "
        f"({simulated / real - 1:+.1%})"
    )


def simulate_here(costs: Costs, config: RunConfig, game_name: str, workers: int, seconds: float) -> float:
    """Positions a second of so many workers that share this process's cores with the learner.

    What workers take from each other is measured, not calculated: cores share more than their time. The learner is
    measured alone: workers stand still beside one that takes all cores, as here, since they have a lower priority.
    """
    threads = min(workers, count_cores())
    slots = min(config.self_play.num_slots, config.self_play.games_per_generation // workers)
    config = replace(config, self_play=replace(config.self_play, num_slots=slots))
    with tempfile.TemporaryDirectory() as folder:
        settings = settings_of(config, game_name)
        net = save_net(settings, Path(folder))
        gate = time_gate(settings, Path(folder), config, threads)
    update = time_update(net, config, game_name, threads)
    rate = play_together(game_name, config, workers, seconds)
    costs = replace(costs, positions_per_s=rate / workers, update_seconds=update, gate_seconds=gate)
    rests = threads >= count_cores()
    return simulate(costs, replace(setting_of(config, workers), rest_while_learning=rests)).positions_per_s
