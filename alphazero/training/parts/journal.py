"""The journal of a run: the figures of each generation, its log and its warnings; and TensorBoard and wandb."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from alphazero.errors import InvalidSetting, StorageError, count_of
from alphazero.storage.files import read_json_less_seal, write_sealed_json
from alphazero.storage.formats import WANDB_SEAL, WandbRun
from alphazero.storage.run_folder import RunFolder
from alphazero.storage.schema import check
from alphazero.training.health import new_warnings, oscillation
from alphazero.training.parts.pace import Pace, seconds_left

logger = logging.getLogger(__name__)

Figures = Mapping[str, Any]
"""A line of `metrics.jsonl`."""


class Generation:
    """A generation under way."""

    def __init__(self, number: int, journal: Journal):
        self.number, self._journal = number, journal
        self.figures: dict[str, Any] = {}
        """Its figures so far; with `add_times` a line of `metrics.jsonl`."""
        self._begin, self._cpu_begin = time.monotonic(), journal.cpu_seconds()

    @property
    def seconds(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._begin

    def enter(self, phase: str) -> None:
        self._journal.enter(f"generation {self.number}: {phase}")

    def add_times(self, seconds: float) -> None:
        """Adds the figures of time; `seconds`: those of the whole run."""
        times = {"seconds": round(seconds, 3), "cpu_seconds": round(self._journal.cpu_seconds() - self._cpu_begin, 3)}
        self.figures = {"generation": self.number, **times, **self.figures}


class Journal:
    """The figures of a run's generations so far, and whoever hears of them."""

    def __init__(self, folder: RunFolder, pace: Pace, trackers: Sequence[Tracker], cpu_seconds: Callable[[], float]):
        self.lines: list[Figures] = list(folder.metrics())
        self._folder, self._pace, self._trackers, self.cpu_seconds = folder, pace, list(trackers), cpu_seconds

    def begin(self, number: int) -> Generation:
        """The next generation."""
        return Generation(number, self)

    def enter(self, phase: str) -> None:
        """Logs the part of the work that begins; raises RunFolderError if the run has lost its folder."""
        self._folder.check()
        self._folder.log.add(phase)

    def end(self, generation: Generation) -> None:
        """Says the figures of a generation that is saved, warns about them, and passes them to the trackers."""
        self._folder.check()
        figures, pace, before = generation.figures, self._pace, self.lines[-1] if self.lines else {}
        self.lines.append(figures)
        verdict = "promoted" if figures["promoted"] else "not promoted"
        gate = "" if figures["gate_score"] is None else f", gate {figures['gate_score']:.3f}"
        benchmark = {name: figures[name] for name in figures.get("benchmark_figures", ())}
        left = seconds_left(pace.config.generations, pace.config.minutes, pace.generation, pace.seconds)
        logger.info(
            "generation %d/%d after %s: %s, %s, policy loss %.3f, value loss %.3f%s (%s)%s; %s left",
            figures["generation"], pace.config.generations, show_duration(figures["seconds"]),
            count_of(figures["games"], "game"), count_of(figures["positions"], "position"),
            figures["policy_loss"], figures["value_loss"], gate, verdict,
            f", {show_figures(benchmark)}" if benchmark else "", show_duration(left),
        )  # fmt: skip
        for warning in new_warnings(figures, before):
            logger.warning("%s", warning)
        for tracker in list(self._trackers):
            try:
                tracker.add(figures)
            except Exception as error:  # a run outlives whatever shows it elsewhere
                self._trackers.remove(tracker)
                name = type(tracker).__name__
                logger.warning("%s fails (%s), and gets no more figures until a resume; the run goes on", name, error)
        self._folder.log.add(f"generation {generation.number}: saved{gate or ', no gate'}, {verdict}")


def describe_progress(
    lines: Sequence[Figures], benchmark: Mapping[str, float], since_promotion: int | None
) -> dict[str, Any]:
    """Figures of the run as a whole, after the benchmark of a generation; `lines`: those of the generations before.

    The benchmark's main figure is its first one. `since_promotion`: generations since the net
    that plays; None while that says nothing about the run.
    """
    figures: dict[str, Any] = {}
    if since_promotion is not None:
        figures["generations_since_promotion"] = since_promotion
    if benchmark:
        figures["benchmark_figures"] = list(benchmark)
        main, *_ = benchmark
        history = [line[main] for line in lines if main in line.get("benchmark_figures", ())] + [benchmark[main]]
        is_share = all(0 <= figure <= 1 for figure in history)
        figures["benchmark_oscillation"] = oscillation(history) if is_share else None
    return figures


def show_figures(figures: Mapping[str, float]) -> str:
    """A benchmark's figures for people."""
    return ", ".join(f"{name.replace('_', ' ')} {figure:.3f}" for name, figure in figures.items())


def show_duration(seconds: float) -> str:
    """Hours, minutes and seconds, as in 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


# --- TensorBoard and wandb ---


class TensorBoard:
    """TensorBoard events in the run folder, if TensorBoard is installed."""

    def __init__(self, folder: Path):
        self._folder = folder / "events"

    def add(self, figures: Figures) -> None:
        """Adds the line of a finished generation."""
        if importlib.util.find_spec("tensorboard") is None:
            return
        if self._folder.is_symlink():
            raise StorageError(f"{self._folder} is a link: move it away")
        from torch.utils.tensorboard import SummaryWriter

        # short-lived: nothing is left open, and a redone generation replaces its first try
        with SummaryWriter(self._folder, purge_step=figures["generation"]) as writer:
            for name, value in _numbers(figures).items():
                writer.add_scalar(name, value, figures["generation"])


class Wandb:
    """The run in a project of Weights & Biases: a run that is resumed goes on with the same wandb run.

    The environment variables of wandb work as everywhere: with WANDB_MODE=offline it needs neither network nor account.
    """

    def __init__(self, project: str, folder: Path, config: Mapping[str, Any], lines: Iterable[Figures]):
        """Adds of `lines`, those of the generations so far, what wandb has missed. No file of a run names a project."""
        import wandb

        for name in ("wandb", ".wandb"):  # the second one is taken where it is there
            if (folder / name).is_symlink():
                raise InvalidSetting(f"wandb cannot begin, since {folder / name} is a link: move it away")
        identity = folder / "wandb.json"  # the project and the id of the wandb run
        if not identity.exists():
            write_sealed_json(identity, {"project": project, "id": secrets.token_hex(4)}, WANDB_SEAL)
        known = check(WandbRun, read_json_less_seal(identity, WANDB_SEAL), str(identity), advice="; move it away")
        try:
            self._run = wandb.init(
                project=project, id=known.id, name=folder.resolve().name, dir=folder, config=dict(config),
                resume="allow", settings=wandb.Settings(console="off", silent=True),
            )  # fmt: skip
            for line in lines:
                if line["generation"] >= self._run.step:
                    self.add(line)
        except (wandb.errors.Error, OSError) as error:
            reason = " ".join(str(error).split())
            raise InvalidSetting(
                f"wandb cannot begin ({reason}): log in by `wandb login`, or set WANDB_MODE=offline"
            ) from error
        logger.info("wandb: project %s, run %s, %s", project, known.id, self._run.url or f"in {self._run.dir}")

    def add(self, figures: Figures) -> None:
        """Adds the line of a finished generation."""
        self._run.log(_numbers(figures), step=figures["generation"])

    def close(self) -> None:
        """Writes what is still to be written."""
        with contextlib.suppress(Exception):  # its own process may have ended
            self._run.finish()


def _numbers(figures: Figures) -> dict[str, float]:
    return {name: value for name, value in figures.items() if isinstance(value, int | float)}


Tracker = TensorBoard | Wandb
