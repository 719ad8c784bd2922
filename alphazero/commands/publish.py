"""Writes a net for others: measured and with its card, as a page that plays, or (`alphazero export`) as ONNX."""

from __future__ import annotations

import json
import logging
import math
import platform
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro

from alphazero.catalogue import registry
from alphazero.catalogue.loaded import LoadedGame
from alphazero.commands.options import (
    Contestant,
    GameName,
    Overwrite,
    Seed,
    Threads,
    argument,
    check_options,
    load_game,
)
from alphazero.commands.shared import parse, say, spare_files
from alphazero.errors import InvalidSetting, StorageError, count_of, quote
from alphazero.game.kernels import kernels_of
from alphazero.machine import count_cores
from alphazero.matches.arena import Arena
from alphazero.matches.intervals import elo_difference, elo_interval, finite
from alphazero.matches.seating import whole_groups
from alphazero.nets.devices import want_inference
from alphazero.nets.onnx_export import NUM_CHECKED, to_onnx
from alphazero.nets.torch_net import TorchNet
from alphazero.players.contestants import ContestantText, find_checkpoint, load_net, make_player, open_opponents
from alphazero.players.player import Player
from alphazero.progress import Progress
from alphazero.settings import config_from_dict, flat_settings
from alphazero.storage.checkpoint import load_checkpoint, read_card, save_checkpoint
from alphazero.storage.files import atomic_write, check_output_file
from alphazero.storage.manifest import check_run_folder, latest_manifest, read_settings
from alphazero.storage.metrics_file import METRICS, read_metrics
from alphazero.storage.run_names import resolve_checkpoint
from alphazero.training.config import RunConfig
from alphazero.training.parts.journal import show_figures
from alphazero.training.parts.resume import ORIGINS, read_state
from alphazero.training.run import example_config

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PublishConfig:
    """Measures a net of a run and writes it, with its card, for others; or writes a page that plays with the net."""

    net: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NET")]
    """The net: a run folder (its best net), or folder:GENERATION; for a page also a checkpoint or a shipped net."""
    output: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUTPUT")]
    """The file to write: `.safetensors`, with the card beside it, or `.html`, a page that plays in any browser."""
    game: GameName = None
    overwrite: Overwrite = False
    description: Annotated[str, argument("TEXT", "none")] = ""
    """A sentence about the net, for the card."""
    simulations: tuple[int, ...] = (0, 100, 800)
    """Numbers of simulations per position for the game's benchmark, in games that have one."""
    opponents: tuple[str, ...] = ("random", "greedy", "minimax:4", "mcts:400")
    """Contestants that the net plays against. The rating on the card is the Elo difference from the last one."""
    games: int = 200
    """Games against each opponent."""
    match_simulations: int = 100
    """Simulations per ply in the games against the opponents."""
    threads: Threads = field(default_factory=count_cores)
    seed: Seed = 0

    def __post_init__(self) -> None:
        if self.output.suffix not in (".safetensors", ".html"):
            raise InvalidSetting(
                "the net must go into a .safetensors file, or a page into a .html file, not "
                f"{quote(str(self.output), 200)}"
            )
        check_output_file("OUTPUT", self.output)
        if self.output.suffix != ".html":  # a page takes none of the rest
            check_options(self, games=(2, math.inf), match_simulations=(0, 1_000_000))


def main(argv: list[str]) -> None:
    config = parse(PublishConfig, argv, command="publish")
    if config.output.suffix == ".html":
        publish_page(config)
        return
    spare_files(config.overwrite, config.output, config.output.with_suffix(".json"))
    path = resolve_checkpoint(config.net)
    check_run_folder(path.parent)
    saved = read_settings(path.parent)
    loaded = registry.tried(config.game) if config.game else registry.load_named(saved["game"], str(path.parent))
    tensors, card = load_checkpoint(path)
    card |= {"description": config.description} | history_of(path, card.get("generation", 0), saved, loaded)
    if isinstance(load_net(str(path), loaded, "cpu"), TorchNet):
        tensors = narrowed(tensors)
    with tempfile.TemporaryDirectory() as folder:
        as_published = Path(folder) / config.output.name
        save_checkpoint(as_published, tensors, card)
        card |= measure(config, as_published, loaded)
    save_checkpoint(config.output, tensors, card)
    say(f"{config.output} and its card are written")


def publish_page(config: PublishConfig) -> None:
    """Writes the page; raises InputError for a game or a network that a browser cannot run."""
    from alphazero.web.one_file import make_file  # it takes its time, and needs what a page of the server needs

    if config != PublishConfig(config.net, config.output, config.game, config.overwrite, config.description):
        raise InvalidSetting(
            "a page goes only with --game, --overwrite and --description, since its net is not measured: leave the "
            "other options out"
        )
    spare_files(config.overwrite, config.output)
    game_name, loaded = load_game(config.game, [ContestantText.parse(config.net)])
    card = read_card(find_checkpoint(config.net, loaded))
    if config.description:
        card["description"] = config.description
    title = config.net if config.net in loaded.nets else Path(config.net).name or Path(config.net).resolve().name
    logger.info(
        "the rules, the search and the network are being compiled for the browser; this takes a minute, or some six "
        "for a game of many actions, such as chess"
    )
    text = make_file(loaded, load_net(config.net, loaded, "cpu"), title, card, game_name)
    content = text.encode(errors="replace")  # the name of a folder can hold what UTF-8 cannot
    atomic_write(config.output, content)
    say(f"{config.output} is written ({len(content) / 1e6:.1f} MB); open it in any browser, or send it to anybody")


def history_of(path: Path, generation: int, saved: Mapping[str, Any], loaded: LoadedGame) -> dict[str, Any]:
    """The entries of a card that say how a generation of a run was made; `saved` is the run's `config.json`."""
    folder = path.parent
    lines = [line for line in read_metrics(folder) if line["generation"] <= generation]
    if not lines:
        raise StorageError(
            f"{folder / METRICS} has no figures of this net, which its card is to tell: publish one that has "
            "learned, or write a page (.html), which needs none"
        )

    def total(*names: str) -> float:
        return sum(math.prod(line.get(name) or 0 for name in names) for line in lines)

    first, manifest = read_card(path.with_name("generation_0000.json")), latest_manifest(folder)
    devices = read_state(manifest, folder).devices if manifest else ()
    place = f"{' + '.join(devices) or 'an unknown device'} with {count_of(saved['threads'], 'thread')}"
    return {
        **{name: first[name] for name in ORIGINS if name in first},
        "command": command_of(loaded, saved),
        "data": {
            "source": "self-play", "generations": len(lines), "games": total("games"), "positions": total("positions"),
            "simulations": round(total("simulations_per_s", "self_play_seconds")),
        },
        "hours": round(lines[-1]["seconds"] / 3600, 3),
        "cpu_hours": round(total("cpu_seconds") / 3600, 3),
        "hardware": f"learned on {place}; measured on {platform.machine()}, {torch.backends.cpu.get_cpu_capability()}",
    }  # fmt: skip


def narrowed(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Matrices and filters in float16, which halves the file, but for those with a number that float16 cannot hold."""
    most, found = np.finfo(np.float16).max, dict(tensors)
    for name, array in tensors.items():
        if array.dtype == np.float32 and array.ndim > 1 and np.abs(array).max(initial=0) <= most:
            found[name] = array.astype(np.float16)
    return found


def command_of(loaded: LoadedGame, saved: Mapping[str, Any]) -> str:
    """The shortest `python main.py ...` that begins a run with the settings of a `config.json`."""
    # settings added after the run began had the values of today's defaults, which may not be those of the presets
    config = config_from_dict(RunConfig, saved["settings"], "the run's settings", like=example_config(loaded))
    # sizes left out would be those of the net that the run began with, whose file may change
    settings, kept = flat_settings(asdict(config)), "net." if config.initial_net else "no such name"
    changes = {}
    for preset, start in loaded.presets().items():
        before = flat_settings(asdict(start))
        changes[preset] = [name for name in settings if settings[name] != before.get(name) or name.startswith(kept)]
    preset = min(changes, key=lambda name: len(changes[name]))
    words = ["python", "main.py", "--game", saved["game"], "--preset", preset, "--seed", str(saved["seed"])]
    for name in changes[preset]:
        value, (group, dot, last) = json.loads(settings[name]), name.replace("_", "-").rpartition(".")
        if isinstance(value, bool):
            words.append(f"--{group}{dot}{'' if value else 'no-'}{last}")
        else:
            words += [f"--{group}{dot}{last}", *map(str, value if isinstance(value, list) else [value])]
    return shlex.join(words)


def measure(config: PublishConfig, path: Path, loaded: LoadedGame) -> dict[str, Any]:
    """`benchmark` figures by simulations, `matches`, and `rating` with its interval, in Elo above the last opponent."""
    figures: dict[str, Any] = {"benchmark": {}, "matches": []}

    def player(simulations: int) -> Player:
        return make_player(str(path), loaded, seed=config.seed, threads=config.threads, simulations=simulations)

    names = config.opponents
    if loaded.game.num_outcomes and names == PublishConfig.opponents:
        names = tuple(name for name in names if name != "minimax:4")  # with dice it looks no further than `greedy`
    opponents = open_opponents(names, "--opponents", loaded, seed=config.seed, threads=config.threads)
    if loaded.make_benchmark is not None:
        benchmark = loaded.make_benchmark(loaded.game)
        for simulations in config.simulations:
            found = benchmark(player(simulations))
            figures["benchmark"][str(simulations)] = found
            logger.info("with %s: %s", count_of(simulations, "simulation"), show_figures(found))
    contestant, num_games = player(config.match_simulations), whole_groups(loaded.game, config.games)
    for name, opponent in zip(names, opponents, strict=True):
        with Progress(f"against {name}") as progress:
            for match in Arena(kernels_of(loaded.game), contestant, opponent, num_games, config.seed):
                progress.show(match.num_games / num_games, f"score {match.score:.2f}")
        figures["matches"].append({"opponent": name, "simulations": config.match_simulations, **match.as_dict()})
        logger.info("score %.1f%% against %s", 100 * match.score, name)
        limits = [None if limit is None else round(limit) for limit in finite(elo_interval(*match.score_interval))]
        elo = round(elo_difference(match.score, match.num_games))
        figures["rating"] = {"elo": elo, "interval": limits, "above": name}
    return figures


@dataclass(frozen=True)
class ExportConfig:
    """Writes a net as an ONNX file, for programs that know nothing of this framework."""

    net: Annotated[Contestant, tyro.conf.Positional, tyro.conf.arg(metavar="NET")]
    """The net: a shipped one (best), a run folder (its best net), folder:GENERATION, or a checkpoint."""
    output: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUTPUT")]
    """The file to write, as in net.onnx."""
    game: GameName = None
    overwrite: Overwrite = False

    def __post_init__(self) -> None:
        check_output_file("OUTPUT", self.output)


def export(argv: list[str]) -> None:
    config = parse(ExportConfig, argv, command="export")
    spare_files(config.overwrite, config.output)
    _, loaded = load_game(config.game, [config.net])
    want_inference("torch")
    net = load_net(config.net.text, loaded, "cpu")
    if not isinstance(net, TorchNet):
        raise InvalidSetting(f"{config.net} is not a network of torch: only those can be written as ONNX")
    card = {name: value for name, value in net.card.items() if name != "search"}
    content, error = to_onnx(net, loaded.game, card)
    atomic_write(config.output, content)
    planes, height, width = loaded.game.observation_shape
    shape = ", ".join(map(str, ("n", *loaded.game.value_shape)))
    whose = "each first for" if loaded.game.value_shape else "both for"
    print(
        f"{config.output} is written, {len(content) / 1e6:.1f} MB; in {NUM_CHECKED:,} positions it differs from torch\n"
        f"by {error:.1g} at most. It takes observations float32[n, {planes}, {height}, {width}] and gives\n"
        f"policy_logits [n, {loaded.game.num_actions}] and values [{shape}], {whose} the player to move."
    )
