"""Measures how fast a run learns.

    python -m benchmarks.learning --game connect4 --preset quick --seeds 3 --until 0.85,0.9

Each run is the very command that users type, `python main.py ...`, in a process of its own; the clock starts with the
process. What is measured is the game's own benchmark (Connect Four: the policy's accuracy without a search on decisive
positions). Runs come one after the other, since two at once would share the machine.

`--vary "search.num-simulations=16,32"` repeats all of it for each value of a flag of main.py, in turns over the seeds;
several flags are separated by a semicolon, and every combination is run. Flags without a value are given as
`gate.enabled=on,off`; `gate=on,off` and `gumbel=on,off` are short for the flags that turn the gate and Gumbel's
sequential halving on and off.
"""

from __future__ import annotations

import itertools
import json
import math
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from alphazero.commands.shared import parse, run_command
from alphazero.errors import InputError, InvalidSetting
from alphazero.pages import new_figure, save_figure
from alphazero.progress import Progress
from alphazero.settings import check_ranges
from alphazero.storage.files import check_output_file, write_json

ROOT = Path(__file__).resolve().parents[1]
SHORT = {
    "gate": {"on": ["--gate.enabled"], "off": ["--gate.no-enabled"]},
    # all actions but the most unlikely ones of a large game, as in mctx, the authors' library
    "gumbel": {"on": ["--search.gumbel-actions", "16"], "off": ["--search.gumbel-actions", "0"]},
}
"""Flags of main.py that have a shorter name in --vary."""
PATIENCE = 60.0
"""Seconds that a run has to leave when it is asked to."""


@dataclass(frozen=True)
class LearningBenchmark:
    """Time, games and simulations until a run's benchmark reaches given figures."""

    game: str = "connect4"
    """Game to learn."""
    preset: str = "quick"
    """Settings to start from."""
    seeds: int = 3
    """Runs of each variant, with seeds 0, 1, ..."""
    until: str = "0.85,0.90,0.95"
    """Figures to reach; a run is stopped at the highest."""
    minutes: float = 15.0
    """A run is also stopped after so many minutes."""
    figure: str = "pons_accuracy"
    """The figure in metrics.jsonl."""
    vary: str = ""
    """Flags of main.py to vary, as in "search.num-simulations=16,32;gate.enabled=on,off"."""
    flags: str = ""
    """More flags for every run, as in --flags="--learner.batch-size 512"."""
    json: Path | None = None
    """Write all curves into this file as well."""
    plot: Path | None = None
    """Draw the figure against time into this file (.png, .svg or .pdf)."""

    def __post_init__(self) -> None:
        check_ranges(self, seeds=(1, 1000), minutes=(1e-3, 1e5))
        for name, path in (("--json", self.json), ("--plot", self.plot)):
            if path is not None:
                check_output_file(name, path)
        if self.plot is not None:
            if self.plot.suffix not in (".png", ".svg", ".pdf"):
                raise InvalidSetting(f"--plot takes a file that ends in .png, .svg or .pdf, not {self.plot}")
            new_figure()  # says now, and not after all runs, that matplotlib is missing
        self.targets()
        list(self.variants())

    def targets(self) -> list[float]:
        """The figures to reach, ascending."""
        try:
            return sorted(float(word) for word in self.until.split(","))
        except ValueError:
            raise InvalidSetting(f"--until takes numbers as in 0.85,0.90, not {self.until!r}") from None

    def variants(self) -> Iterator[dict[str, str]]:
        """Every combination of the varied flags."""
        names, values = [], []
        for part in filter(None, self.vary.split(";")):
            name, equals, choices = part.partition("=")
            if not equals or not choices:
                raise InvalidSetting(f"--vary takes FLAG=VALUE,VALUE, not {part!r}")
            if not set(choices.split(",")) <= set(SHORT.get(name.strip(), choices.split(","))):
                raise InvalidSetting(f"--vary takes {name.strip()}=on,off, not {part!r}")
            names.append(name.strip())
            values.append(choices.split(","))
        for combination in itertools.product(*values):
            yield dict(zip(names, combination, strict=True))


@dataclass
class Curve:
    """One run: what it had after each generation."""

    variant: dict[str, str]
    seed: int
    generations: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    """Since the process began."""
    cpu_seconds: list[float] = field(default_factory=list)
    games: list[int] = field(default_factory=list)
    simulations: list[int] = field(default_factory=list)
    figures: list[float] = field(default_factory=list)

    def add(self, line: dict[str, Any], seconds: float, figure: str) -> None:
        """Takes in a line of metrics.jsonl."""
        if figure not in line:
            raise InputError(f"the runs have no figure {figure!r}; choose one of {', '.join(sorted(line))}")
        self.generations.append(line["generation"])
        self.seconds.append(seconds)
        for name, own in (("cpu_seconds", self.cpu_seconds), ("games", self.games)):
            own.append(line[name] + (own[-1] if own else 0))
        simulations = round(line["simulations_per_s"] * line["self_play_seconds"])
        self.simulations.append(simulations + (self.simulations[-1] if self.simulations else 0))
        self.figures.append(line[figure])

    def reached(self, target: float) -> int | None:
        """The first index at which the figure was reached."""
        return next((i for i, figure in enumerate(self.figures) if figure >= target), None)


def main(argv: list[str]) -> None:
    config = parse(LearningBenchmark, argv)
    variants, targets = list(config.variants()), config.targets()
    curves: list[Curve] = []
    with Progress("runs") as progress:
        for seed in range(config.seeds):
            for variant in variants:
                curves.append(run_one(config, variant, seed, targets[-1], progress, len(curves), len(variants)))
                if config.json is not None:
                    write_json(config.json, as_json(config, curves))
    print(describe(curves, variants, targets))
    if config.plot is not None:
        draw(config.plot, config, curves)


def run_one(
    config: LearningBenchmark,
    variant: dict[str, str],
    seed: int,
    last: float,
    progress: Progress,
    done: int,
    kinds: int,
) -> Curve:
    """Trains until the last target or the time limit."""
    curve = Curve(variant, seed)
    with tempfile.TemporaryDirectory() as folder:
        run, log = Path(folder) / "run", Path(folder) / "log"
        command = [
            sys.executable, "main.py", "--game", config.game, "--preset", config.preset, "--seed", str(seed),
            "--run", str(run), *flags_of(variant), *shlex.split(config.flags),
        ]  # fmt: skip
        with open(log, "wb") as output:
            begin = time.monotonic()
            process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
            try:
                while process.poll() is None and time.monotonic() < begin + 60 * config.minutes:
                    time.sleep(0.2)
                    for line in _new_lines(run / "metrics.jsonl", len(curve.figures)):
                        curve.add(line, round(time.monotonic() - begin, 1), config.figure)
                        title = (
                            f"{name_of(variant)}, seed {seed}: {curve.figures[-1]:.3f} after {curve.seconds[-1]:.0f} s"
                        )
                        share = min(1.0, (time.monotonic() - begin) / (60 * config.minutes))
                        progress.show((done + share) / (config.seeds * kinds), title)
                    if curve.reached(last) is not None:
                        break
            finally:
                _leave(process)
        if process.returncode not in (0, 128 + signal.SIGINT, -signal.SIGKILL):
            raise InputError(f"{shlex.join(command)} failed: {log.read_text(errors='replace').strip()[-300:]}")
    return curve


def _new_lines(path: Path, known: int) -> list[dict[str, Any]]:
    """The whole lines of metrics.jsonl after the first `known`."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]
    return [json.loads(line) for line in lines[known:]]


def _leave(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def flags_of(variant: dict[str, str]) -> list[str]:
    """The command-line flags of a variant; on and off are those of a switch."""
    words = []
    for name, value in variant.items():
        if name in SHORT:
            words += SHORT[name][value]
        elif value in ("on", "off"):
            group, _, last = name.rpartition(".")
            prefix = f"{group}." if group else ""
            words.append(f"--{prefix}{'no-' * (value == 'off')}{last}")
        else:
            words += [f"--{name}", value]
    return words


def name_of(variant: dict[str, str]) -> str:
    """A variant in words."""
    return " ".join(f"{name}={value}" for name, value in variant.items()) or "as it is"


def describe(curves: Sequence[Curve], variants: Sequence[dict[str, str]], targets: Sequence[float]) -> str:
    """A table: medians over the seeds, with the worst and how many seeds got there at all."""
    heads = f"{'seconds':>9}{'worst':>7}{'cpu s':>8}{'games':>9}{'simulations':>13}{'best':>8}"
    lines = [f"{'variant':<44}{'figure':>8}{'seeds':>7}{heads}"]
    for variant in variants:
        own = [curve for curve in curves if curve.variant == variant]
        best = statistics.median(max(curve.figures, default=0.0) for curve in own)
        for target in targets:
            seconds = values_at(own, "seconds", target)
            known = [value for value in seconds if value is not None]
            row = f"{name_of(variant):<44}{target:>8.3f}{f'{len(known)}/{len(own)}':>7}"
            row += f"{_show(median_of(seconds)):>9}{_show(max(known, default=None)):>7}"
            for name, width in (("cpu_seconds", 8), ("games", 9), ("simulations", 13)):
                row += f"{_show(median_of(values_at(own, name, target))):>{width}}"
            lines.append(f"{row}{best:>8.3f}")
    return "\n".join(lines)


def _show(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def values_at(curves: Sequence[Curve], name: str, target: float) -> list[float | None]:
    """The cost of each run until it reached the target; None if it did not."""
    return [None if (i := curve.reached(target)) is None else getattr(curve, name)[i] for curve in curves]


def median_of(values: Sequence[float | None]) -> float | None:
    """The median where a run that did not get there took longer than all others; None if it is such a run's."""
    median = statistics.median([math.inf if value is None else value for value in values] or [math.inf])
    return None if math.isinf(median) else median


def as_json(config: LearningBenchmark, curves: Sequence[Curve]) -> dict[str, Any]:
    """Everything that was measured; what stands beside `variants` is of the first one."""
    settings = {name: value for name, value in asdict(config).items() if name not in ("json", "plot")}
    variants = [
        {"variant": variant, **_until([curve for curve in curves if curve.variant == variant], config)}
        for variant in config.variants()
    ]
    return {
        "settings": settings, **variants[0], "variants": variants, "curves": [asdict(curve) for curve in curves],
    }  # fmt: skip


def _until(curves: Sequence[Curve], config: LearningBenchmark) -> dict[str, Any]:
    """For each target, as text, what it took every seed to reach it (None if it did not) and the median."""
    found: dict[str, Any] = {}
    for name in ("seconds", "cpu_seconds", "games", "simulations"):
        found[f"{name}_until"] = {}
        for target in config.targets():
            values = values_at(curves, name, target)
            found[f"{name}_until"][f"{target:g}"] = {"median": median_of(values), "values": values}
    return found


def draw(path: Path, config: LearningBenchmark, curves: Sequence[Curve]) -> None:
    """The figure against time, one line a seed, one colour a variant."""
    figure = new_figure()
    axes = figure.add_subplot()
    names = list(dict.fromkeys(name_of(curve.variant) for curve in curves))
    for curve in curves:
        number = names.index(name_of(curve.variant))
        label = name_of(curve.variant) if curve.seed == 0 else None
        axes.plot([s / 60 for s in curve.seconds], curve.figures, color=f"C{number}", alpha=0.8, label=label)
    for target in config.targets():
        axes.axhline(target, color="grey", linewidth=0.5)
    axes.set(title=f"{config.game}, preset {config.preset}", xlabel="minutes", ylabel=config.figure.replace("_", " "))
    axes.grid(alpha=0.3)
    axes.legend()
    save_figure(figure, path)


if __name__ == "__main__":
    sys.exit(run_command(main))
