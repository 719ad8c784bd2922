"""A training from beginning to end, for Python and for the command line."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from alphazero._version import __version__
from alphazero.catalogue import registry
from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import InputError, InvalidSetting, RunFolderError, Stopped, Terminated, shorten_path, warn_once
from alphazero.game.laws.laws import Laws, check_declaration
from alphazero.interruption import listening
from alphazero.invocation import option
from alphazero.machine import count_cores, keep_free_memory, limit_arenas, without_draws
from alphazero.nets.devices import name_devices, take_gpu, usual_torch, wanted_inference
from alphazero.nets.neural_net import NeuralNet
from alphazero.players.contestants import ContestantText, check_sizes, load_net, open_opponents, text_of
from alphazero.settings import config_from_dict, settings_changed
from alphazero.storage.checkpoint import read_net_card
from alphazero.storage.files import atomic_write
from alphazero.storage.manifest import generations_of, latest_manifest, read_settings
from alphazero.storage.metrics_file import read_metrics
from alphazero.storage.run_folder import RunFolder, RunLog
from alphazero.storage.run_names import resolve_checkpoint
from alphazero.training.coach import Coach
from alphazero.training.config import RunConfig
from alphazero.training.parts.gate import describe_matches
from alphazero.training.parts.journal import Wandb
from alphazero.training.parts.lineup import check_growth, read_net_settings
from alphazero.training.plan import RunPlan
from alphazero.training.report import make_report

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class TrainedRun:
    """A run after training, finished or stopped. Everything is read from its folder.

    >>> import alphazero as az
    >>> run = az.load_run("runs/tictactoe-1")
    >>> run.generation, [row["games"] >= 16 for row in run.metrics]
    (1, [True])
    >>> az.match(run.net, "random", "tictactoe", games=10, simulations=20)
    <Match of net against random: ... score ...>
    """

    loaded: LoadedGame
    folder: Path
    stopped: bool = False
    """The training was stopped before its end; `train(..., resume=True)` goes on with it."""
    evaluation: Mapping[str, Any] = field(default_factory=dict)
    """The `matches` of the best net at the end and its `benchmark` figures; empty if the training was stopped."""

    _nets: dict[int, NeuralNet] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        return f"<TrainedRun {self.folder}: generation {self.generation}{', stopped' * self.stopped}>"

    @property
    def config(self) -> RunConfig:
        """The settings of the run, less opponents that run code: no file of a run starts any."""
        settings, where = read_settings(self.folder)["settings"], str(self.folder / "config.json")
        return _without_code(config_from_dict(RunConfig, settings, where, like=example_config(self.loaded)))

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The figures of each generation: the rows of `metrics.jsonl`."""
        return read_metrics(self.folder)

    @property
    def net(self) -> NeuralNet:
        """The best net, on a GPU if there is one; run by torch if torch ran the networks of the run."""
        best, newest = self.best_generation, latest_manifest(self.folder)
        if best not in self._nets:
            by_torch = newest is not None and newest.state.get("inference") == "torch" and wanted_inference() == "auto"
            self._nets.clear()
            self._nets[best] = load_net(text_of(self.folder), self.loaded, inference="torch" if by_torch else None)
        return self._nets[best]

    @property
    def generation(self) -> int:
        """The newest generation that is saved."""
        manifest = latest_manifest(self.folder)
        return manifest.generation if manifest else 0

    @property
    def best_generation(self) -> int:
        """The generation of `net`; 0 is the net that the run began with."""
        return int(read_net_card(resolve_checkpoint(str(self.folder))).get("generation", 0))

    def report(self, path: str | Path | None = None) -> Path:
        """Writes a page with curves, warnings and settings (`report.html` in the folder); returns its path."""
        path = self.folder / "report.html" if path is None else Path(path)
        atomic_write(path, make_report(self.folder).encode(errors="replace"))  # JSON can hold what UTF-8 cannot
        return path


class ReadRun(NamedTuple):
    """The `config.json` of a run."""

    game: str
    seed: int
    threads: int
    config: RunConfig
    """Without opponents that run code."""

    def as_dict(self) -> dict[str, Any]:
        """As the file holds it."""
        return {"game": self.game, "seed": self.seed, "threads": self.threads, "settings": asdict(self.config)}


def example_config(loaded: LoadedGame) -> RunConfig:
    """A preset of the game: its type of `net` is that of the game's runs."""
    return next(iter(loaded.presets().values()))


def read_saved(folder: Path, game: str, like: RunConfig | None = None, own_name: str = "") -> ReadRun:
    """The `config.json` of a run of `game`, its `net` like that of `like`; `own_name`: of the loaded game."""
    is_begun = os.path.lexists(folder / "config.json") or generations_of(folder, "generation")
    if not is_begun:  # also where a name is too long
        raise RunFolderError(
            f"{shorten_path(folder)} is not a run folder: leave {option('resume', True)} out to begin a run there"
        )
    saved = read_settings(folder)
    if saved["game"] != game and not _is_of_file(folder, {saved["game"], game}, own_name):
        raise RunFolderError(
            f"{folder} is a run of {saved['game']:.80}, not of {game}: choose its game, as in "
            f"{option('game', saved['game'])}"
        )
    config = config_from_dict(RunConfig, saved["settings"], str(folder / "config.json"), like)
    return ReadRun(saved["game"], saved["seed"], saved["threads"], _without_code(config))


def _is_of_file(folder: Path, names: set[str], own_name: str) -> bool:
    """The nets of the run play the game `own_name`, and none of the names is a shipped game's, which has one alone."""
    try:
        newest = folder / f"generation_{max(generations_of(folder, 'generation'), default=0):04d}.json"
        return names.isdisjoint(registry.NAMES) and read_net_card(newest)["game"] == own_name
    except InputError:  # there is no net yet
        return False


def _without_code(config: RunConfig) -> RunConfig:
    """The settings without opponents that run code; says so."""
    opponents = config.evaluation.opponents
    kept = tuple(name for name in opponents if not ContestantText.parse(name).runs_code)
    if left_out := [name for name in opponents if name not in kept]:
        warn_once(
            f"a run folder never starts code, so {' and '.join(left_out)} takes part in the matches at the end only if "
            f"you name it again by {option('evaluation.opponents')}"
        )
    return replace(config, evaluation=replace(config.evaluation, opponents=kept))


@usual_torch()
def train(
    loaded: LoadedGame,
    config: RunConfig,
    folder: str | Path,
    *,
    game_name: str = "",
    seed: int = 0,
    threads: int | None = None,
    devices: Sequence[str] = ("cpu",),
    deterministic: bool = False,
    resume: bool = False,
    wandb: str = "",
    cluster: Any = None,
    stop: threading.Event | None = None,
    on_start: Callable[[Coach], None] = lambda coach: None,
) -> TrainedRun:
    """Trains a network in a run folder, and lets the best one meet the opponents of `config.evaluation`.

    `game_name`: the name under which the game can be loaded again, kept in the folder. `threads`: all cores if None.
    `devices`: `cpu`, `cuda`, or several GPUs. `deterministic`: nothing depends on the clock, and a resumed run equals
    an uninterrupted one bit for bit. `resume` goes on with the run in `folder`. `wandb`: a project of Weights & Biases.
    `cluster` plays the games; it is opened and closed here. `on_start` gets the coach when nothing is refused any more.

    `stop`, set from any thread, KeyboardInterrupt and Terminated end the training within about a second: all finished
    generations are saved, and the result says `stopped`. Raises InputError; a mistake leaves no run behind.
    """
    folder, threads = Path(folder), count_cores() if threads is None else threads
    game_name = game_name or loaded.game.name
    devices = name_devices(devices)
    plan = RunPlan(loaded, config, devices, threads, seed, deterministic, cluster)
    saved = read_saved(folder, game_name, config, loaded.game.name) if resume else None
    settings = ReadRun(saved.game if saved else game_name, seed, threads, config).as_dict()
    _check_settings(loaded, config, begins=not saved)
    if wandb and importlib.util.find_spec("wandb") is None:
        raise InvalidSetting(f"{option('wandb')} needs the package wandb: install it by `pip install wandb`")
    limit_arenas(threads + 1)
    keep_free_memory()
    take_gpu(devices[0])
    # opponents that nobody can play against are refused before there is a run
    opponents = open_opponents(
        config.evaluation.opponents, option("evaluation.opponents"), loaded,
        seed=seed, threads=threads, device=plan.device_kinds[0],
    )  # fmt: skip
    with (
        torch.random.fork_rng(devices=[]),  # the caller's own draws do not depend on us
        cluster or contextlib.nullcontext(),  # a cluster that refuses us is said before there is a run
        RunFolder.open(folder) if saved else RunFolder.create(folder, settings) as run,
        _logged(run.log),
    ):
        torch.manual_seed(seed)
        changed = _changes(saved.as_dict(), settings) if saved else []
        # no file of a run makes it send anything
        trackers = [Wandb(wandb, run.path, settings, run.metrics())] if wandb else []
        coach = Coach(plan, run, trackers, stop)
        try:
            with coach:
                # not sooner: settings that are refused must not be met again by the next --resume, nor told as changed
                for line in changed:
                    logger.info("changed on resume: %s", line)
                run.write_config(settings if changed else run.config)
                logger.info("%s", describe_matches(coach, opponents))
                on_start(coach)
                coach.run()
                return TrainedRun(loaded, run.path, evaluation=coach.evaluate(opponents))
        except (Stopped, KeyboardInterrupt, Terminated):
            run.log.add("stopped in order")
            return TrainedRun(loaded, run.path, stopped=True)
        finally:
            for tracker in trackers:
                tracker.close()


def _changes(saved: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    """The settings that change, one a line; raises RunFolderError if the network would be another one."""
    changed = settings_changed(saved, settings)
    if any(line.startswith(("settings.net", "settings.initial_net")) for line in changed):
        raise RunFolderError(
            f"a resumed run keeps its network, so net and initial_net cannot be changed ({'; '.join(changed)}): "
            "leave that out, or begin a new run"
        )
    return changed


def preset_on_resume() -> InvalidSetting:
    """The error for a preset beside `resume`."""
    return InvalidSetting(
        f"a run goes on with its own settings: leave {option('preset')} out when you use {option('resume')}, "
        "and give only the settings that should change"
    )


def _check_settings(loaded: LoadedGame, config: RunConfig, begins: bool) -> None:
    """Refuses what the class of a game declares wrongly, and absurd sizes; before there is a run what it cannot be."""
    laws = Laws(loaded.game)  # those that cost no time; `alphazero check` looks at all
    check_declaration(laws)
    laws.permutations()
    check_sizes(config.net_settings, loaded)  # also of a run that goes on, which has perhaps no net yet
    if not begins:
        return
    with without_draws():
        loaded.make_net(loaded.game, config.net_settings)
    if config.initial_net:
        check_growth(config, read_net_settings(config.initial_net, loaded, config))


@contextlib.contextmanager
def _logged(log: RunLog) -> Iterator[None]:
    """Logs that a process begins, the signals and warnings that it gets, and the error that ends it, if one does."""
    log.add(f"process {os.getpid()} begins, version {__version__}")
    with listening(lambda number: log.add(f"asked to end by {signal.Signals(number).name}")), log.recording():
        yield
    log.add(f"process {os.getpid()} ends")
