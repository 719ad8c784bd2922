"""Trainings: beginning a run, going on with it, and reading what it has written."""

from __future__ import annotations

import contextlib
import multiprocessing
import threading
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from alphazero.api.extras import cluster_at
from alphazero.api.loading import MakeNet, with_net
from alphazero.catalogue import registry
from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import CheckpointError, InvalidSetting, RunFolderError, UnknownName, quote
from alphazero.game import Game
from alphazero.nets.devices import choose_devices
from alphazero.progress import showing
from alphazero.settings import check_function, config_from_dict, plain
from alphazero.storage.checkpoint import read_net_card
from alphazero.storage.manifest import check_run_folder
from alphazero.storage.run_names import choose_folder, new_folder, resolve_checkpoint
from alphazero.training import run
from alphazero.training.config import RunConfig
from alphazero.training.parts.lineup import read_net_settings
from alphazero.training.run import TrainedRun
from alphazero.training.selfplay import ValueTargets


def train(
    game: Game | type[Game] | str | Path,
    preset: str | RunConfig | None = None,
    *,
    folder: str | Path | None = None,
    resume: bool = False,
    net: MakeNet | Mapping[str, Any] | None = None,
    value_targets: ValueTargets | None = None,
    seed: int | None = None,
    threads: int | None = None,
    device: str = "auto",
    deterministic: bool = False,
    cluster: str = "",
    cluster_workers: int | None = None,
    stop: threading.Event | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> TrainedRun:
    """Trains a network by self-play, and returns the run: its `metrics`, its best `net`, its `report()`.

    `preset` names one of the game's presets (None is `quick`) or is a RunConfig. Every field of RunConfig is a keyword:
    `minutes=3`, and by name within a group, `search={"num_simulations": 64}`. `folder`: None makes a new one under
    runs/. `resume` goes on with the run in `folder`, by default the newest under runs/, with its saved settings, but
    for those given; it takes no preset. `seed`: None is 0, or that of the run. `net`: sizes of the game's own network
    as `{"blocks": 4}`, or a function from the game to a NeuralNet or to any torch module that returns a policy and a
    value. With `initial_net`, the sizes of a named preset are that net's. `value_targets`: a function that gives the
    network's value targets in place of the lambda-return. `threads`: None takes every core. `device`: `auto` (every
    GPU), `cpu`, `cuda`. `deterministic`: the same seed gives the same run. `cluster`: `auto`, `local` or HOST:PORT of a
    Ray cluster that plays the games with `cluster_workers` at most. `progress`: None shows bars at a terminal and in a
    notebook. Ctrl-C, a notebook's stop button and `stop`, set from any thread, end the training early: all finished
    generations are saved, and the run says `stopped`.

    >>> import alphazero as az
    >>> run = az.train(
    ...     "tictactoe", generations=1, net={"blocks": 1, "channels": 8}, search={"num_simulations": 4},
    ...     self_play={"games_per_generation": 16}, gate={"enabled": False}, evaluation={"opponents": ()},
    ... )
    >>> [row["games"] >= 16 for row in run.metrics]
    [True]
    >>> run.report().name
    'report.html'
    """
    _check_arguments(resume, net, value_targets, cluster, stop)
    if resume and preset is not None:
        raise run.preset_on_resume()
    loaded = registry.tried(game)
    if isinstance(net, Mapping):
        settings["net"] = net
    loaded = with_net(loaded, net) if callable(net) else loaded
    loaded = replace(loaded, value_targets=value_targets or loaded.value_targets)
    devices = choose_devices(device)
    game_name = str(game) if isinstance(game, str | Path) else loaded.game.name  # by which it can be loaded again
    named = Path(folder) if folder else None
    if resume:
        named = named or choose_folder(loaded.game.name, resume=True)
        saved = run.read_saved(named, game_name, run.example_config(loaded), loaded.game.name)
        config, seed = saved.config, saved.seed if seed is None else seed
        threads = saved.threads if threads is None else threads
    else:
        config = preset if isinstance(preset, RunConfig) else find_preset(preset, loaded, settings.get("initial_net"))
    seed, threads = plain(seed), plain(threads)  # as of `for seed in np.arange(3)`
    found = cluster_at(cluster, cluster_workers, threads)  # not sooner: a local one has the threads of the run
    config = override(config, settings, "az.train")
    new = new_folder(loaded.game.name) if named is None else contextlib.nullcontext(named)
    with showing(progress), new as chosen:
        return run.train(
            loaded, config, chosen, game_name=game_name, seed=0 if seed is None else seed, threads=threads,
            devices=devices[:1] if cluster and device == "auto" else devices, deterministic=deterministic,
            resume=resume, cluster=found, stop=stop,
        )  # fmt: skip


def _check_arguments(resume: Any, net: Any, value_targets: Any, cluster: Any, stop: Any) -> None:
    """Raises InvalidSetting about what would go unnoticed until the training is under way."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # as multiprocessing itself finds out
        raise InvalidSetting(
            'a process of self-play has run this script anew: put the call below `if __name__ == "__main__":`'
        )
    if not isinstance(resume, bool | np.bool_):
        raise InvalidSetting(
            f"resume must be True or False, not {quote(resume)}: name the run as folder='old', resume=True"
        )
    if net is not None and not callable(net) and not isinstance(net, Mapping):
        raise InvalidSetting(f"net holds sizes by name, or is a function from the game to a network, not {quote(net)}")
    if value_targets is not None:
        check_function("value_targets", value_targets, "games", "settings")
    if not isinstance(cluster, str):
        raise InvalidSetting(f"cluster must be 'auto', 'local' or 'HOST:PORT', not {quote(cluster)}")
    if stop is not None and not callable(getattr(stop, "is_set", None)):
        raise InvalidSetting(f"stop must be a threading.Event(), which another thread sets, not {quote(stop)}")


def find_preset(name: str | None, loaded: LoadedGame, initial_net: Any) -> RunConfig:
    """The preset's settings, with the sizes of the net to begin with; what is no name of one is refused later."""
    presets, name = loaded.presets(), "quick" if name is None else name
    if not isinstance(name, str):
        raise InvalidSetting(f"preset is the name of a preset ({', '.join(presets)}) or a RunConfig, not {quote(name)}")
    if name not in presets:
        raise UnknownName("preset", name, presets)
    if not initial_net or not isinstance(initial_net, str):
        return presets[name]
    return replace(presets[name], net=read_net_settings(initial_net, loaded, presets[name]))


def load_run(
    folder: str | Path, game: Game | type[Game] | str | Path | None = None, net: MakeNet | None = None
) -> TrainedRun:
    """The run in a folder, whoever trained it and whether it goes on or not.

    `game` may be left out if it comes with alphazero. `net` is the function that `train` was given, if any.

    >>> import alphazero as az
    >>> run = az.load_run("runs/tictactoe-1")
    >>> [row["generation"] for row in run.metrics]
    [1]
    """
    check_run_folder(Path(folder))
    if game is None:
        loaded = registry.load_named(_game_of(folder), str(folder))
    else:
        loaded = registry.of(game)
        with contextlib.suppress(CheckpointError):  # its figures can be read without a net
            if (named := _game_of(folder)) != loaded.game.name:
                raise RunFolderError(f"{folder} is a run of {quote(named)}, not of {quote(loaded.game.name)}")
    return TrainedRun(loaded if net is None else with_net(loaded, net), Path(folder))


def _game_of(folder: str | Path) -> str:
    """The game of the best net of a run."""
    return str(read_net_card(resolve_checkpoint(str(folder)))["game"])


def override(config: Any, settings: Mapping[str, Any], where: str) -> Any:
    """The dataclass with some of its fields replaced; a mapping replaces fields within a group. Raises InputError."""
    known = [field.name for field in fields(config)]
    values = {}
    for name, value in settings.items():
        if name not in known:
            raise UnknownName(f"setting of {where}", name, known)
        group = getattr(config, name)
        if is_dataclass(group) and isinstance(value, Mapping):
            value = override(group, value, f"{where}, {name}")
        values[name] = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    return config_from_dict(type(config), asdict(config) | values, where, like=config)
