"""Trains a network by self-play: `alphazero train --game connect4`."""

from __future__ import annotations

import argparse
import contextlib
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import tyro

from alphazero import interruption
from alphazero.api.extras import cluster_at
from alphazero.api.runs import find_preset
from alphazero.catalogue import registry
from alphazero.catalogue.loaded import LoadedGame
from alphazero.commands.options import Cluster, ClusterWorkers, Inference, Threads
from alphazero.commands.shared import parse, say
from alphazero.errors import InvalidSetting, count_of, shorten_path
from alphazero.game.reading.san import ChessLike
from alphazero.invocation import command_line, quoted
from alphazero.machine import count_cores
from alphazero.matches.result import describe_counts
from alphazero.nets.devices import choose_devices, want_inference, wanted_inference
from alphazero.players.contestants import text_of
from alphazero.storage.run_names import choose_folder, new_folder
from alphazero.training import run as training
from alphazero.training.coach import Coach
from alphazero.training.config import RunConfig
from alphazero.training.parts.journal import show_figures
from alphazero.training.run import TrainedRun

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Options:
    """Trains a network by self-play. The preset sets the defaults of all settings below."""

    game: str = "connect4"
    """The game: a name, a Python file or a module."""
    preset: str = "quick"
    """Settings to start from: quick (minutes on a laptop), standard (a night) or strong (for a GPU)."""
    run: str = ""
    """The run folder. Empty: a new one under runs/, or with --resume the newest one there."""
    resume: bool = False
    """Continue a run that was stopped or has ended, with its saved settings."""
    device: str = "auto"
    """The device that the network runs on: auto (all GPUs, else the CPU), cpu, cuda, or several as in cuda:0,cuda:1."""
    inference: Inference = field(default_factory=wanted_inference)
    threads: Threads = field(default_factory=count_cores)
    seed: int = 0
    """Random seed. With --deterministic, the same seed and threads give the same run."""
    deterministic: bool = False
    """Make the run repeatable, bit for bit, also across --resume.
    Needs one device and --minutes 0; excludes --cluster."""
    wandb: str = ""
    """Project of Weights & Biases that also receives the metrics; WANDB_MODE=offline needs no account."""
    cluster: Cluster = ""
    cluster_workers: ClusterWorkers = None
    config: Annotated[RunConfig, tyro.conf.arg(name="")] = field(default_factory=RunConfig)

    def __post_init__(self) -> None:
        choose_devices(self.device)
        want_inference(self.inference)
        cluster_at(self.cluster, self.cluster_workers, self.threads)


def main(argv: list[str]) -> None:
    given = _first_look(argv)
    loaded = registry.load(given.game)
    defaults = Options(config=find_preset(given.preset, loaded, given.initial_net))
    named = Path(given.run) if given.run else None
    if given.resume:
        named = named or choose_folder(loaded.game.name, resume=True)
        saved = training.read_saved(named, given.game, defaults.config, loaded.game.name)
        defaults = replace(defaults, config=saved.config, threads=saved.threads, seed=saved.seed)
    options = parse(Options, argv, default=defaults, command="train")
    registry.try_rules(loaded.game, options.game)
    with new_folder(loaded.game.name) if named is None else contextlib.nullcontext(named) as folder:
        train(options, loaded, folder)


def _first_look(argv: list[str]) -> argparse.Namespace:
    """The flags that decide the defaults of all others; `parse` complains about wrong ones later."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name, default in (("--game", "connect4"), ("--preset", None), ("--run", ""), ("--initial-net", "")):
        parser.add_argument(name, default=default, nargs="?", const=default)
    parser.add_argument("--resume", action="store_true")
    # with hyphens or underscores, as `parse` takes them
    argv = [re.sub(r"^--[\w.-]+", lambda flag: flag[0].replace("_", "-"), word) for word in argv]
    if any(word.startswith("--resume=") for word in argv):
        raise InvalidSetting("--resume takes no value: name the folder by --run, as in --run runs/connect4-1 --resume")
    given = parser.parse_known_args(argv)[0]
    if given.resume and given.preset is not None:
        raise training.preset_on_resume()
    return given


def train(options: Options, loaded: LoadedGame, folder: Path) -> None:
    """Trains to the end, or to an interruption, and says how strong the net is and what to do next."""
    for line in _plan(options, loaded.game.name, folder):
        logger.info("%s", line)
    flags = ["--deterministic"] * options.deterministic
    for name in ("device", "cluster", "cluster_workers", "wandb"):
        if (value := getattr(options, name)) != getattr(Options, name):
            flags += [f"--{name.replace('_', '-')}", str(value)]
    command = command_line("train", "--game", options.game, "--run", folder, "--resume", *flags)

    def stopped() -> str:
        generation = TrainedRun(loaded, folder).generation
        saved = f"everything up to generation {generation} is saved" if generation else "no generation is over yet"
        return f"\nstopped; {saved}. Go on with:\n  {command}"

    def stop_when_asked(coach: Coach) -> None:
        stack.enter_context(interruption.listening(lambda number: coach.stop.set(), raises=False))

    devices = choose_devices(options.device)
    interruption.State.sentence = stopped
    with contextlib.ExitStack() as stack:
        run = training.train(
            loaded, options.config, folder, game_name=options.game, seed=options.seed, threads=options.threads,
            # beside a cluster, `auto` is one device of this machine
            devices=devices[:1] if options.cluster and options.device == "auto" else devices,
            deterministic=options.deterministic, resume=options.resume, wandb=options.wandb,
            cluster=cluster_at(options.cluster, options.cluster_workers, options.threads), on_start=stop_when_asked,
        )  # fmt: skip
        if run.stopped:
            interruption.say()
            raise SystemExit(interruption.exit_code())
    say(_results(run, options.config) + f"\nEverything is in {run.folder}. Next:")
    for what, words in _next_commands(run, options, command):
        say(f"{what}:\n  {words}")


def _plan(options: Options, game_name: str, folder: Path) -> list[str]:
    """The first lines of a run: the work to come, when it ends, and how to stop it."""
    config = options.config
    settings = "the settings of the run" if options.resume else f"preset {options.preset}"
    rest = ", then pits the new net against the best one" * config.gate.enabled
    end = f"after generation {config.generations}"
    if config.minutes:
        end += f" or {config.minutes:g} minute{'s' * (config.minutes != 1)}, whichever comes first"
    threads = count_of(options.threads, "thread")
    return [
        f"training a network for {game_name} with {settings} and {threads}, in {shorten_path(folder)}",
        f"each generation plays games by self-play and learns from them{rest}; the run ends {end}",
        "Ctrl-C stops the run and keeps all finished generations; --resume goes on with it",
    ]


def _results(run: TrainedRun, config: RunConfig) -> str:
    """Tells how strong the best net is."""
    matches, benchmark = run.evaluation["matches"], run.evaluation["benchmark"]
    best = f"The best net is that of generation {run.best_generation}"
    if run.best_generation == 0:
        best = f"No candidate has passed the gate: the best net is still {config.initial_net or 'the untrained one'}"
    scores = f". With {count_of(config.evaluation.simulations, 'simulation')} it scores" if matches else "."
    lines = [f"\n{best}{scores}"]
    for match in matches:
        low, high = match["score_interval"]
        lines.append(
            f"  {match['score']:6.1%} against {match['opponent']:<12} (95% interval {low:.1%} to {high:.1%}; "
            f"{describe_counts(match['wins'], match['draws'], match['losses'])} in {count_of(match['games'], 'game')})"
        )
    if benchmark:
        lines.append(f"Without a search: {show_figures(benchmark)}.")
    if plies := max((match["opening_plies"] for match in matches), default=0):
        how = (
            "twice, with the sides swapped" if run.loaded.game.num_players == 2 else "with each contestant in each seat"
        )
        lines.append(
            f"These games begin with {count_of(plies, 'random ply')}, and each opening is played {how}: even a perfect "
            "player loses some of these games."
        )
    return "\n".join(lines)


def _next_commands(run: TrainedRun, options: Options, command: str) -> Iterator[tuple[str, str]]:
    """The things to do after a run, and the commands that do them; `command` goes on with it."""
    chosen = [] if options.game in registry.NAMES else ["--game", options.game]
    rival, text = "best" if "best" in run.loaded.nets else "mcts:400", text_of(run.folder)
    yield "Play against it", command_line("pit", text, "human", *chosen)
    yield "Pit it against another player", command_line("pit", text, rival, *chosen)
    if isinstance(run.loaded.game, ChessLike):
        yield "Load it in a program for chess, as an engine", command_line("uci", text, *chosen)
    if run.loaded.game.compiled and not run.loaded.game.num_outcomes:  # else no page can run its rules
        page = re.sub(r"[^\w.()=-]+", "-", f"{run.loaded.game.name}.html")  # openspiel:hex names no file everywhere
        yield "Write a page that plays it in any browser", command_line("publish", text, page, *chosen)
    # a run that goes on may be beyond its limits already
    more = ["--generations", str(2 * max(options.config.generations, run.generation))]
    if minutes := options.config.minutes:
        played = run.metrics[-1]["seconds"] / 60 if run.metrics else 0.0
        more += ["--minutes", f"{2 * max(minutes, round(played, 1)):g}"]
    yield "Train on", f"{command} {quoted(*more)}"
    yield "See how it went, in a browser", command_line("report", run.folder)
