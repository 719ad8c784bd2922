"""How a run grows with its cluster: `python -m benchmarks.scale`.

Measures what one host, one message, one file and one update take on this machine, simulates runs with 1 to 1,024
workers from that, and writes docs/data/scale.csv and docs/pictures/scale.svg. `--check 1 2` plays real runs on a local
cluster with so many workers, and compares their positions a second with the simulation's.

GPUs cannot be measured here: `--learner-speed 50` assumes a learner that is so many times as fast as the measured one,
and `--worker-speed 20` such workers.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import NamedTuple

from alphazero.cluster.connection import Cluster
from alphazero.commands.shared import parse, run_command
from alphazero.pages import new_figure, save_figure
from alphazero.settings import check_ranges
from alphazero.storage.files import atomic_write, read_json, write_json
from alphazero.training.config import RunConfig
from benchmarks.pictures import LOOK, ROOT
from benchmarks.scale.check import check
from benchmarks.scale.costs import default_config, measure
from benchmarks.scale.efficiency import compare
from benchmarks.scale.simulation import PARTS, Costs, Outcome, setting_of, simulate

WORKERS = tuple(1 << i for i in range(11))
LIVES = math.inf, 600.0
"""Mean lives of a host, in seconds: machines that stay, and spot machines at their worst."""
SPEEDS = 1.0, 50.0


class Case(NamedTuple):
    """The clusters of one line of the picture."""

    life_seconds: float
    learner_speed: float
    """In units of the measured one."""
    worker_speed: float
    """The same."""

    @property
    def name(self) -> str:
        """For people."""
        workers = f", workers x{self.worker_speed:g}" if self.worker_speed != 1 else ""
        faults = "" if self.life_seconds == math.inf else ", with faults"
        return f"learner x{self.learner_speed:g}{workers}{faults}"


@dataclass(frozen=True)
class ScaleConfig:
    """Measures and simulates how a run grows with its cluster."""

    game: str = "connect4"
    """The game."""
    seconds: float = 60.0
    """Time for measuring a host."""
    costs: Path | None = None
    """Takes the costs from this file instead of measuring them."""
    check: tuple[int, ...] = ()
    """Plays real runs with so many workers, pinned to as many cores, and compares them with the simulation."""
    efficiency: int = 0
    """Compares one worker, two workers and threads without a cluster in so many rounds, and does nothing else."""
    games: int = 0
    """Games of a generation; 0 is as many as the preset has."""
    learner_speed: tuple[float, ...] = SPEEDS
    """Learners to simulate, by their speed in units of the measured one; more than 1 is an assumption, as of a GPU."""
    worker_speed: float = 20.0
    """Adds workers that are so many times as fast as the measured one, an assumption as of a GPU; 1 adds none."""
    folder: Path = ROOT / "docs"
    """The folder that holds data and pictures."""

    def __post_init__(self) -> None:
        check_ranges(
            self, efficiency=(0, 100), games=(0, 1 << 20), seconds=(0.1, 3600), check=(1, 64),
            learner_speed=(0.01, 1e4), worker_speed=(0.01, 1e4),
        )  # fmt: skip


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
    rows = simulate_all(costs, config, cases(options.learner_speed, options.worker_speed))
    write_csv(options.folder / "data" / "scale.csv", rows)
    draw(options.folder / "pictures" / "scale.svg", rows)
    for case, outcome in rows:
        print(describe(case, outcome))
    for workers in options.check:
        print(check(costs, config, options.game, workers, options.seconds))


def cases(learner_speeds: Sequence[float], worker_speed: float) -> list[Case]:
    """Each learner, with and without faults; and faster workers for the fastest learner."""
    found = [Case(life, speed, 1.0) for speed in learner_speeds for life in LIVES]
    return list(dict.fromkeys([*found, Case(math.inf, max(learner_speeds, default=1.0), worker_speed)]))


def simulate_all(costs: Costs, config: RunConfig, cases: Sequence[Case]) -> list[tuple[Case, Outcome]]:
    """Every number of workers in each case."""
    rows = []
    for case in cases:
        faster = replace(
            costs,
            update_seconds=costs.update_seconds / case.learner_speed,
            gate_seconds=costs.gate_seconds / case.learner_speed,
            positions_per_s=costs.positions_per_s * case.worker_speed,
        )
        life = case.life_seconds
        for workers in WORKERS:
            setting = replace(
                setting_of(config, workers), life_seconds=life, slow_share=0.0 if life == math.inf else 0.1
            )
            rows.append((case, simulate(faster, setting)))
    return rows


def describe(case: Case, outcome: Outcome) -> str:
    """A line for people."""
    return (
        f"{outcome.workers:>5} workers, {case.name}: {outcome.games_per_s:,.0f} games/s, age {outcome.age:.1f}, busy: "
        + ", ".join(f"{name} {getattr(outcome, f'{name}_busy'):.0%}" for name in PARTS)
        + f"; first limit: {outcome.bottleneck}"
    )


def write_csv(path: Path, rows: Sequence[tuple[Case, Outcome]]) -> None:
    """One line for each simulated run."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [field.name for field in fields(Outcome)]
    writer.writerow([*Case._fields, *names])
    for case, outcome in rows:
        values = [getattr(outcome, name) for name in names]
        writer.writerow([*case, *(f"{value:.5g}" if isinstance(value, float) else value for value in values)])
    atomic_write(path, text.getvalue().encode())


def draw(path: Path, rows: Sequence[tuple[Case, Outcome]]) -> None:
    """Games a second, age, and how busy the parts are, against workers."""
    from matplotlib import rc_context

    with rc_context(LOOK):
        figure = new_figure(9, 6)
        axes = figure.subplots(2, 2)
        for i, case in enumerate(dict.fromkeys(case for case, _ in rows)):
            found = [outcome for other, outcome in rows if other == case]
            workers, color = [outcome.workers for outcome in found], f"C{i}"
            axes[0, 0].plot(workers, [outcome.games_per_s for outcome in found], color=color, label=case.name)
            axes[0, 1].plot(workers, [outcome.age for outcome in found], color=color)
            axes[1, 0].plot(workers, [100 * outcome.learner_busy for outcome in found], color=color)
            axes[1, 1].plot(workers, [100 * outcome.ingest_busy for outcome in found], color=color)
            axes[1, 1].plot(workers, [100 * outcome.network_busy for outcome in found], "--", color=color)
        titles = "games/s", "networks since a game began", "learner busy, %", "busy: coach, network (dashes), %"
        for ax, title in zip(axes.flat, titles, strict=True):
            ax.set_xscale("log", base=2)
            ax.set_xticks(WORKERS[::2], map(str, WORKERS[::2]))
            ax.set_title(title)
            ax.set_xlabel("workers")
        axes[0, 0].set_yscale("log")
        figure.legend(loc="outside lower center", ncols=3, fontsize="small")
        save_figure(figure, path)


if __name__ == "__main__":
    sys.exit(run_command(main))
