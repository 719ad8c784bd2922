"""Train a network by self-play: `alphazero train --game connect4`."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import torch
import tyro

from alphazero.commands.shared import parse
from alphazero.errors import InvalidSetting, RunFolderError, Stopped, UnknownName
from alphazero.game import registry
from alphazero.game.spec import LoadedGame
from alphazero.invocation import command_line
from alphazero.nets.devices import choose_devices, name_devices, see_only
from alphazero.players.contestants import open_opponents
from alphazero.players.player import Player
from alphazero.progress import count_cores
from alphazero.settings import config_from_dict, settings_changed
from alphazero.storage.files import read_json, write_json
from alphazero.storage.run_folder import RunFolder
from alphazero.training.coach import Coach, check_growth, read_net_sizes, show_figures
from alphazero.training.config import RunConfig

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Options:
    """Teaches a network a game by self-play. The preset sets the defaults of all settings below."""

    game: str = "connect4"
    """Name of a game, path of a Python file that holds one, or dotted module name."""
    preset: str = "quick"
    """Settings to start from: quick (minutes on a laptop), standard or strong."""
    run: str = ""
    """Run folder; empty = a new one under runs/, or with --resume the newest one there."""
    resume: bool = False
    """Go on with the run in the folder."""
    device: str = "auto"
    """Where the network computes: auto (every GPU there is), cpu, cuda, or several as in cuda:0,cuda:1."""
    threads: int = field(default_factory=count_cores)
    """Processor threads."""
    seed: int = 0
    """The same seed and number of threads give the same run."""
    deterministic: bool = False
    """Nothing depends on the clock or the order of sums: a resumed run equals an uninterrupted one bit for bit."""
    config: Annotated[RunConfig, tyro.conf.arg(name="")] = field(default_factory=RunConfig)

    def __post_init__(self) -> None:
        devices = choose_devices(self.device)
        if not 1 <= self.threads <= 1024 or not 0 <= self.seed < 1 << 31:
            raise InvalidSetting(
                "--threads must lie between 1 and 1,024 and --seed between 0 and 2,147,483,647, "
                f"not {self.threads} and {self.seed}"
            )
        if self.deterministic and self.config.minutes:
            raise InvalidSetting("--deterministic and --minutes exclude each other: a time limit depends on the clock")
        if self.deterministic and len(devices) > 1:
            raise InvalidSetting("--deterministic takes one device: the order of sums on several is not fixed")


def main(argv: list[str]) -> None:
    given = _first_look(argv)
    loaded = registry.load(given.game)
    presets = loaded.presets()
    if given.preset not in presets:
        raise UnknownName("preset", given.preset, presets)
    folder = _choose_folder(given.run, given.resume, loaded.game.name)
    defaults = _defaults(given, loaded)
    saved: dict[str, Any] = {}
    if given.resume:
        saved = read_saved(folder, given.game)
        config = config_from_dict(RunConfig, saved["settings"], str(folder / "config.json"))
        saved["settings"] = asdict(config)  # with the defaults of settings that are younger than the run
        defaults = replace(defaults, config=config, threads=saved["threads"], seed=saved["seed"])
    options = parse(Options, argv, default=defaults, command="train")
    train(options, loaded, folder, saved)


def _first_look(argv: list[str]) -> argparse.Namespace:
    """The flags that decide the defaults of all others; what is wrong with them is said later, by `parse`."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name, default in (("--game", "connect4"), ("--preset", "quick"), ("--run", ""), ("--initial-net", "")):
        parser.add_argument(name, default=default, nargs="?", const=default)
    parser.add_argument("--resume", action="store_true")
    # with hyphens or underscores, as `parse` takes them
    argv = [re.sub(r"^--[\w.-]+", lambda flag: flag[0].replace("_", "-"), word) for word in argv]
    return parser.parse_known_args(argv)[0]


def _defaults(given: argparse.Namespace, loaded: LoadedGame) -> Options:
    """The preset's settings, with the sizes of the net to begin with."""
    config = loaded.presets()[given.preset]
    if given.initial_net:
        config = replace(config, net=read_net_sizes(given.initial_net, loaded))
    return Options(config=config)


def _choose_folder(run: str, resume: bool, game_name: str) -> Path:
    if run:
        return Path(run)
    game_name = re.sub(r"[^\w.]+", "-", game_name).strip("-") or "game"  # as of openspiel:hex(board_size=5)
    found = [re.fullmatch(re.escape(game_name) + r"-(\d+)", path.name) for path in Path("runs").glob("*")]
    newest = max((int(match[1]) for match in found if match), default=0)
    if resume and not newest:
        raise RunFolderError(f"there is no run of {game_name} under runs/ to resume: name its folder by --run")
    return Path("runs") / f"{game_name}-{newest + (not resume)}"


def read_saved(folder: Path, game: str) -> dict[str, Any]:
    """The `config.json` of a run of `game`; raises InputError."""
    if not (folder / "config.json").exists():
        raise RunFolderError(f"{folder} is not a run folder: leave --resume out to begin a run there")
    saved = read_json(folder / "config.json")
    if not isinstance(saved, dict) or set(saved) != {"game", "seed", "threads", "settings"}:
        raise RunFolderError(f"{folder / 'config.json'} is not the settings of a run of this version")
    if not all(isinstance(saved[name], int) for name in ("seed", "threads")):
        raise RunFolderError(f"{folder / 'config.json'} is damaged: seed and threads must be whole numbers")
    if saved["game"] != game:
        raise RunFolderError(f"{folder} is a run of {saved['game']}, not of {game}: add --game {saved['game']}")
    return saved


def train(options: Options, loaded: LoadedGame, folder: Path, saved: dict[str, Any]) -> None:
    """Runs the coach to the end, or to an interruption, and says how strong the net is and what to do next."""
    settings = {
        "game": options.game, "seed": options.seed, "threads": options.threads, "settings": asdict(options.config),
    }  # fmt: skip
    if not saved:  # sizes that do not fit the board are refused before there is a run
        loaded.make_net(loaded.game, asdict(options.config.net))
    torch.manual_seed(options.seed)
    devices = name_devices(choose_devices(options.device))
    see_only(devices[0])
    # what nobody can play against is refused before there is a run
    opponents = open_opponents(
        options.config.evaluation.opponents, "--evaluation.opponents", loaded,
        seed=options.seed, threads=options.threads, device=devices[0].partition(":")[0],
    )  # fmt: skip
    if options.config.initial_net and not saved:
        check_growth(options.config, read_net_sizes(options.config.initial_net, loaded))
    open_folder = RunFolder.open(folder) if saved else RunFolder.create(folder, settings)
    with open_folder as run:
        changed = settings_changed(saved, settings) if saved else []
        if any(line.startswith(("settings.net", "settings.initial_net")) for line in changed):
            raise RunFolderError(f"the net of a run cannot be changed on --resume ({'; '.join(changed)})")
        for line in changed:
            logger.info("changed on resume: %s", line)
        name = loaded.game.name
        preset = "settings of the run" if saved else f"preset {options.preset}"
        logger.info("%s, %s, with %d threads, in %s", name, preset, options.threads, run.path)
        flags = ["--deterministic"] * options.deterministic + ["--device", options.device] * (options.device != "auto")
        command = command_line("train", "--game", options.game, "--run", folder, "--resume", *flags)
        coach = Coach(
            loaded, options.config, run, seed=options.seed, threads=options.threads, devices=devices,
            deterministic=options.deterministic,
        )  # fmt: skip

        def keep_settings() -> None:
            if changed:  # not sooner: settings that are refused must not be met again by the next --resume
                write_json(run.path / "config.json", settings)

        with _stopping_in_order(coach.stop) as received, contextlib.closing(coach):
            try:
                coach.run(keep_settings)
                _conclude(coach, opponents, run, options.game, loaded, command)
            except Stopped:
                done = coach.saved_generation
                print(f"\nstopped; all up to generation {done} is saved. Go on with:\n  {command}", file=sys.stderr)
                raise SystemExit(128 + received[0]) from None


@contextlib.contextmanager
def _stopping_in_order(stop: threading.Event) -> Iterator[list[int]]:
    """The first Ctrl-C (or SIGTERM) sets `stop`, a second one leaves at once; gives the numbers received."""
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if received:
            os._exit(128 + number)
        received.append(number)
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _conclude(
    coach: Coach, opponents: list[Player], run: RunFolder, game: str, loaded: LoadedGame, command: str
) -> None:
    evaluation = coach.evaluate(opponents)
    simulations = coach.config.evaluation.simulations
    best = f"The best net is that of generation {coach.best_generation}"
    if coach.best_generation == 0:
        best = (
            f"No candidate has passed the gate: the best net is still {coach.config.initial_net or 'the untrained one'}"
        )
    print(f"\n{best}. With {simulations} simulations it scores")
    for match in evaluation["matches"]:
        low, high = match["score_interval"]
        print(
            f"  {match['score']:6.1%} against {match['opponent']:<12} (95% interval {low:.1%} to {high:.1%}; "
            f"{match['wins']} wins, {match['draws']} draws, {match['losses']} losses in {match['games']} games)"
        )
    if evaluation["benchmark"]:
        print(f"Without a search: {show_figures(evaluation['benchmark'])}.")
    print(f"Everything lies in {run.path}. Next:")
    chosen = [] if game in registry.NAMES else ["--game", game]
    rival = "best" if "best" in loaded.nets else "mcts:400"
    config, more = coach.config, ["--generations", str(2 * coach.config.generations)]
    more += ["--minutes", f"{2 * config.minutes:g}"] * (config.minutes > 0)
    for what, words in (
        ("play against it", command_line("pit", run.path, "human", *chosen)),
        ("pit it against another player", command_line("pit", run.path, rival, *chosen)),
        ("train on", f"{command} {shlex.join(more)}"),
        ("see how it went, in a browser", command_line("report", run.path)),
    ):
        print(f"  {words:<60}  # {what}")
