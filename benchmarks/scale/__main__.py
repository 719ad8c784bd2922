"""How a run grows with its cluster: `python -m benchmarks.scale`.

Measures what one host, one message, one file and one update take on this machine, simulates runs with 1 to 1,024
workers from that, and writes docs/data/scale.csv and docs/pictures/scale.svg. `--check 1 2` plays real runs on a local
cluster with so many workers, and compares their positions a second with the simulation's.

A learner on a GPU cannot be measured here: `--learner-speed 50` assumes one that is so many times as fast.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from alphazero.cluster.connection import Cluster
from alphazero.commands.shared import parse, run_command
from alphazero.game import registry
from alphazero.pages import new_figure, save_figure
from alphazero.progress import count_cores
from alphazero.settings import check_ranges
from alphazero.storage.files import atomic_write, read_json, write_json
from alphazero.training.config import EvaluationConfig, RunConfig
from alphazero.training.run import train
from benchmarks.pictures import LOOK, ROOT
from benchmarks.scale.costs import (
    default_config,
    measure,
    play_beside_learner,
    play_together,
    save_net,
    settings_of,
    time_gate,
)
from benchmarks.scale.efficiency import compare
from benchmarks.scale.simulation import PARTS, Costs, Outcome, Setting, simulate

WORKERS = tuple(1 << i for i in range(11))
LIVES = math.inf, 600.0
"""Mean lives of a host, in seconds: machines that stay, and spot machines at their worst."""
SPEEDS = 1.0, 50.0


@dataclass(frozen=True)
class ScaleConfig:
    """Measures and simulates how a run grows with its cluster."""

    game: str = "connect4"
    """The game."""
    seconds: float = 60.0
    """Time for measuring a host; with --check 90 or more, since hosts that share a machine end fewer games."""
    costs: Path | None = None
    """Takes the costs from this file instead of measuring them."""
    check: tuple[int, ...] = ()
    """Plays real runs with so many workers, and compares them with the simulation."""
    efficiency: int = 0
    """Compares one worker, two workers and threads without a cluster in so many rounds, and does nothing else."""
    games: int = 0
    """Games of a generation; 0 is as many as the preset has."""
    learner_speed: tuple[float, ...] = SPEEDS
    """Learners to simulate, by their speed in units of the measured one; more than 1 is an assumption, as of a GPU."""
    folder: Path = ROOT / "docs"
    """The folder that holds data and pictures."""

    def __post_init__(self) -> None:
        check_ranges(
            self, efficiency=(0, 100), games=(0, 1 << 20), seconds=(0.1, 3600), check=(1, 64), learner_speed=(0.01, 1e4)
        )


def main(argv: list[str]) -> None:
    options = parse(ScaleConfig, argv)
    config = default_config(options.game)
    if options.games:
        config = replace(config, self_play=replace(config.self_play, games_per_generation=options.games))
    if options.efficiency:
        print(compare(options.game, config, options.efficiency))
        return
    for name in ("data", "pictures"):
        (options.folder / name).mkdir(parents=True, exist_ok=True)
    if options.costs is not None:
        costs = Costs(**read_json(options.costs))
    else:
        with Cluster("auto", threads=1) as cluster:
            costs = measure(options.game, config, options.seconds, cluster)
        write_json(options.folder / "data" / "scale_costs.json", asdict(costs))
    print(json.dumps(asdict(costs), indent=1))
    rows = simulate_all(costs, config, options.learner_speed)
    write_csv(options.folder / "data" / "scale.csv", rows)
    draw(options.folder / "pictures" / "scale.svg", rows)
    for life, speed, outcome in rows:
        print(describe(life, speed, outcome))
    for workers in options.check:
        print(check(costs, config, options.game, workers, options.seconds))


def setting_of(config: RunConfig, workers: int) -> Setting:
    """The simulated run of those settings."""
    return Setting(
        workers, config.self_play.games_per_generation, config.learner.batch_size, config.learner.sample_reuse
    )


def simulate_all(costs: Costs, config: RunConfig, speeds: Sequence[float]) -> list[tuple[float, float, Outcome]]:
    """Every number of workers, with and without faults, for each speed of the learner."""
    rows = []
    for speed in speeds:
        faster = replace(costs, update_seconds=costs.update_seconds / speed, gate_seconds=costs.gate_seconds / speed)
        for life in LIVES:
            for workers in WORKERS:
                setting = replace(
                    setting_of(config, workers), life_seconds=life, slow_share=0.0 if life == math.inf else 0.1
                )
                rows.append((life, speed, simulate(faster, setting)))
    return rows


def describe(life: float, speed: float, outcome: Outcome) -> str:
    """A line for people."""
    faults = "no faults" if life == math.inf else f"hosts live {life:.0f} s, a tenth is slow"
    return (
        f"{outcome.workers:>5} workers, learner x{speed:g}, {faults}: {outcome.games_per_s:,.0f} games/s, age "
        f"{outcome.age:.1f}, busy: "
        + ", ".join(f"{name} {getattr(outcome, f'{name}_busy'):.0%}" for name in PARTS)
        + f"; first limit: {outcome.bottleneck}"
    )


def write_csv(path: Path, rows: Sequence[tuple[float, float, Outcome]]) -> None:
    """One line for each simulated run."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [field.name for field in fields(Outcome)]
    writer.writerow(["life_seconds", "learner_speed", *names])
    for life, speed, outcome in rows:
        values = [getattr(outcome, name) for name in names]
        writer.writerow([life, speed, *(f"{value:.5g}" if isinstance(value, float) else value for value in values)])
    atomic_write(path, text.getvalue().encode())


def draw(path: Path, rows: Sequence[tuple[float, float, Outcome]]) -> None:
    """Games a second, age, and how busy the parts are, against workers."""
    from matplotlib import rc_context

    with rc_context(LOOK):
        figure = new_figure(9, 6)
        axes = figure.subplots(2, 2)
        for i, (life, speed) in enumerate(dict.fromkeys((life, speed) for life, speed, _ in rows)):
            found = [outcome for a, b, outcome in rows if (a, b) == (life, speed)]
            label = f"learner x{speed:g}" + ("" if life == math.inf else ", with faults")
            workers, color = [outcome.workers for outcome in found], f"C{i}"
            axes[0, 0].plot(workers, [outcome.games_per_s for outcome in found], color=color, label=label)
            axes[0, 1].plot(workers, [outcome.age for outcome in found], color=color)
            axes[1, 0].plot(workers, [100 * outcome.learner_busy for outcome in found], color=color)
            axes[1, 1].plot(workers, [100 * outcome.ingest_busy for outcome in found], color=color)
            axes[1, 1].plot(workers, [100 * outcome.network_busy for outcome in found], "--", color=color)
        titles = (
            "games/s",
            "networks since a game began",
            "learner busy, %",
            "busy: coach's thread, network (dashes), %",
        )
        for ax, title in zip(axes.flat, titles, strict=True):
            ax.set_xscale("log", base=2)
            ax.set_xticks(WORKERS[::2], map(str, WORKERS[::2]))
            ax.set_title(title)
            ax.set_xlabel("workers")
        axes[0, 0].set_yscale("log")
        axes[0, 0].legend(fontsize="small")
        save_figure(figure, path)


def check(costs: Costs, config: RunConfig, game_name: str, workers: int, seconds: float) -> str:
    """A real run with so many local workers beside the simulated one, in positions a second.

    The costs that the simulation takes are measured before and after the run, since machines change their speed: that
    takes eight times `seconds`.
    """
    loaded = registry.load(game_name)
    config = replace(config, generations=6, minutes=0.0, evaluation=EvaluationConfig(opponents=()))
    threads = min(workers, count_cores())
    before = simulate_here(costs, config, game_name, workers, seconds)
    with tempfile.TemporaryDirectory() as folder:
        run = train(
            replace(loaded, make_benchmark=None), config, Path(folder) / "run", game_name=game_name, threads=threads,
            cluster=Cluster("auto", workers, workers),
        )  # fmt: skip
        rows = run.metrics[2:]
    real = sum(row["positions"] for row in rows) / sum(row["self_play_seconds"] for row in rows)
    simulated = (before + simulate_here(costs, config, game_name, workers, seconds)) / 2
    return f"{workers} workers: {real:,.0f} positions/s, simulated {simulated:,.0f} ({simulated / real - 1:+.1%})"


def simulate_here(costs: Costs, config: RunConfig, game_name: str, workers: int, seconds: float) -> float:
    """Positions a second of so many workers that share this machine with the learner.

    What hosts and learner take from each other is measured, not calculated: cores share more than their time.
    """
    threads = min(workers, count_cores())
    slots = min(config.self_play.num_slots, config.self_play.games_per_generation // workers)
    config = replace(config, self_play=replace(config.self_play, num_slots=slots))
    with tempfile.TemporaryDirectory() as folder:
        settings = settings_of(config, game_name)
        save_net(settings, Path(folder))
        gate = time_gate(settings, Path(folder), config, threads)
    rate = play_together(game_name, config, workers, seconds)
    beside, update = play_beside_learner(game_name, config, workers, threads, seconds)
    costs = replace(costs, positions_per_s=rate / workers, update_seconds=update, gate_seconds=gate)
    setting = replace(setting_of(config, workers), speed_beside_learner=min(1.0, beside / rate))
    return simulate(costs, setting).positions_per_s


if __name__ == "__main__":
    sys.exit(run_command(main))
