"""Watches a long run: memory, open files, threads and disk over time: `python -m benchmarks.soak`.

By default it is a run of 1,000 tiny generations of tic-tac-toe. An hour of a real one:

    python -m benchmarks.soak --name standard --flags="--game connect4 --preset standard --minutes 60"

The samples go to docs/data, the picture to docs/pictures, and the growth is printed: the median of the last tenth of
the time against that of the second tenth, since the first one fills caches and the replay window.
"""

from __future__ import annotations

import csv
import io
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median

from alphazero.commands.shared import parse, run_command
from alphazero.errors import InputError, InvalidSetting
from alphazero.pages import new_figure, save_figure
from alphazero.progress import Progress
from alphazero.settings import check_ranges
from alphazero.storage.files import atomic_write
from benchmarks.pictures import LOOK, ROOT

TINY = (
    "--game tictactoe --generations 1000 --net.blocks 1 --net.channels 8 --search.num-simulations 4 "
    "--self-play.games-per-generation 8 --self-play.num-slots 4 --gate.games 4 --gate.simulations 2 "
    "--evaluation.games 4 --evaluation.opponents random --threads 1"
)
TITLES = {
    "rss_mb": "memory in RAM, MB",
    "pss_mb": "the same, shared pages split, MB",
    "open_files": "open files",
    "threads": "threads",
    "disk_mb": "run folder, MB",
}
"""The columns of a sample that are drawn and whose growth is told."""


@dataclass(frozen=True)
class SoakConfig:
    """Watches a long run: memory, open files, threads and disk over time."""

    name: str = "tiny"
    """The files are docs/data/soak_NAME.csv and docs/pictures/soak_NAME.svg."""
    flags: str = TINY
    """Flags of the run, as `alphazero train` takes them."""
    seconds: float = 2.0
    """Seconds between two samples."""
    folder: Path = ROOT / "docs"
    """The folder that holds data and pictures."""

    def __post_init__(self) -> None:
        check_ranges(self, seconds=(0.1, 3600))
        if not self.name.isidentifier():
            raise InvalidSetting(f"--name takes letters, digits and underscores, not {self.name!r:.80}")
        if not all((self.folder / part).is_dir() for part in ("data", "pictures")):
            raise InvalidSetting(f"--folder takes a folder with data and pictures in it, not {str(self.folder)!r:.200}")


@dataclass(frozen=True)
class Sample:
    """A look at the processes of a run and at its folder."""

    seconds: float
    """Since the run began."""
    generation: int
    rss_mb: float
    pss_mb: float
    open_files: int
    threads: int
    disk_mb: float


def main(argv: list[str]) -> None:
    config = parse(SoakConfig, argv)
    if not Path("/proc/self/smaps_rollup").exists():
        raise InputError("this system has no /proc/PID/smaps_rollup to look into: run the soak on Linux")
    new_figure()  # refuses before the hour, if matplotlib is missing
    with tempfile.TemporaryDirectory() as folder:
        samples = watch(shlex.split(config.flags), Path(folder) / "run", config.seconds)
    if len(samples) < 20:
        raise InputError(f"the run gave {len(samples)} samples: let it run longer, or take --seconds smaller")
    atomic_write(config.folder / "data" / f"soak_{config.name}.csv", as_csv(samples))
    draw(samples, config.folder / "pictures" / f"soak_{config.name}.svg")
    last = samples[-1]
    print(f"{last.generation} generations in {last.seconds / 60:.1f} minutes: alphazero train {config.flags}")
    for name, title in TITLES.items():
        begin, end = growth(samples, name)
        print(f"  {title:<34} {begin:>9.1f} -> {end:>9.1f}  {100 * (end / begin - 1):+6.1f}%")


def watch(flags: Sequence[str], run: Path, seconds: float) -> list[Sample]:
    """Trains with these flags in the folder `run`; returns a sample every so many seconds."""
    begin, samples = time.monotonic(), list[Sample]()
    command = [sys.executable, "-m", "alphazero", "train", *flags, "--run", str(run)]
    with tempfile.TemporaryFile() as said, Progress("soak") as progress:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=said)
        try:
            while process.poll() is None:
                newest = max((int(path.stem.rpartition("_")[2]) for path in run.glob("manifest_*.json")), default=0)
                if newest:
                    try:
                        sample = look(process.pid, run, time.monotonic() - begin, newest)
                    except OSError:  # the process or a file has just gone
                        continue
                    samples.append(sample)
                    progress.show(0.0, f"generation {newest}, {sample.rss_mb:.0f} MB, {sample.open_files} open files")
                time.sleep(seconds)
        finally:
            process.terminate()
            process.wait()
        if process.returncode:
            said.seek(0)
            raise InputError(f"the run ended with exit code {process.returncode}: {said.read().decode()[-500:]}")
    return samples


def look(pid: int, run: Path, seconds: float, generation: int) -> Sample:
    """A sample of the process and its children; raises OSError if one of them has gone."""
    pids = [str(pid), *Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    rollups = [_fields(Path(f"/proc/{each}/smaps_rollup")) for each in pids]
    return Sample(
        seconds=round(seconds, 1),
        generation=generation,
        rss_mb=sum(rollup["Rss"] for rollup in rollups) * 1024 / 1e6,
        pss_mb=sum(rollup["Pss"] for rollup in rollups) * 1024 / 1e6,
        open_files=sum(len(os.listdir(f"/proc/{each}/fd")) for each in pids),
        threads=sum(_fields(Path(f"/proc/{each}/status"))["Threads"] for each in pids),
        disk_mb=sum(path.stat().st_size for path in run.rglob("*") if path.is_file()) / 1e6,
    )


def _fields(path: Path) -> dict[str, int]:
    """The lines `Name: number` of a file in /proc."""
    words = [line.split() for line in path.read_text().splitlines()]
    return {line[0].rstrip(":"): int(line[1]) for line in words if len(line) > 1 and line[1].isdigit()}


def growth(samples: Sequence[Sample], name: str) -> tuple[float, float]:
    """The medians of that column in the second and in the last tenth of the time."""
    end, values = samples[-1].seconds, [(sample.seconds, float(getattr(sample, name))) for sample in samples]
    second = [value for seconds, value in values if 0.1 * end <= seconds <= 0.2 * end]
    return median(second or [values[0][1]]), median(value for seconds, value in values if seconds >= 0.9 * end)


def as_csv(samples: Sequence[Sample]) -> bytes:
    """One line for each sample."""
    text = io.StringIO()
    rows = csv.DictWriter(text, [field.name for field in fields(Sample)], lineterminator="\n")
    rows.writeheader()
    rows.writerows({name: round(value, 2) for name, value in asdict(sample).items()} for sample in samples)
    return text.getvalue().encode()


def draw(samples: Sequence[Sample], path: Path) -> None:
    """A curve over the minutes for each column, from zero on."""
    from matplotlib import rc_context

    minutes = [sample.seconds / 60 for sample in samples]
    shown = [name for name in TITLES if name != "pss_mb"]
    with rc_context(LOOK):
        figure = new_figure(8, 6)
        for axes, name in zip(figure.subplots(2, 2).flat, shown, strict=True):
            values = [getattr(sample, name) for sample in samples]
            axes.plot(minutes, values, color="#4cc9f0", linewidth=1.5)
            axes.set(title=TITLES[name], xlabel="minutes", ylim=(0, 1.25 * max(values)))
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(alpha=0.2)
        save_figure(figure, path)


if __name__ == "__main__":
    sys.exit(run_command(main))
