"""Every file format that the framework reads: a valid file of it, and the reader that production code uses.

`FORMATS` is the list for all tests of this folder. A reader takes the path of the file and reads it as far as a command
would before it computes anything.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import struct
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from alphazero.catalogue import registry
from alphazero.catalogue.loaded import LoadedGame
from alphazero.commands.pit import list_games
from alphazero.fingerprint import name_rules
from alphazero.game.kernels import kernels_of
from alphazero.game.reading import record_files
from alphazero.game.record import GameRecord, write_records
from alphazero.matches.judge import read_positions
from alphazero.players.contestants import ContestantText, load_net
from alphazero.settings import config_from_dict
from alphazero.storage.arrays import read_npz, write_npz
from alphazero.storage.checkpoint import load_checkpoint, save_checkpoint
from alphazero.storage.files import read_json, write_json, write_sealed_json
from alphazero.storage.formats import check_metrics
from alphazero.storage.manifest import CONFIG, CONFIG_SEAL, latest_manifest, read_settings
from alphazero.tournaments.folder import SEAL, Pairing, Tournament, TournamentFolder
from alphazero.tournaments.tournament import read_tournament
from alphazero.training.config import RunConfig
from alphazero.training.parts.resume import read_state
from alphazero.training.replay_buffer import make_examples, read_samples
from alphazero.training.report import _matches, read_evaluation
from alphazero.training.selfplay.games import saved_arrays

SIZES = {"blocks": 1, "channels": 4, "head_channels": 2, "value_hidden": 4}
SLOTS, SAMPLES = 3, 20


@functools.cache
def tictactoe() -> LoadedGame:
    return registry.load("tictactoe")


@dataclass(frozen=True)
class Format:
    """One format: `write(folder)` makes a valid file there and returns its path, `read(path)` reads it."""

    write: Callable[[Path], Path]
    read: Callable[[Path], Any]
    seal: str = ""
    """The key of the checksum in a sealed JSON file; "" for other files."""


def net_card() -> dict[str, Any]:
    return {"game": "tictactoe", "net": SIZES, "search": {"num_simulations": 8}, "generation": 3}


@functools.cache
def net_tensors() -> dict[str, np.ndarray]:
    net = tictactoe().make_net(tictactoe().game, SIZES)
    return {name: tensor.numpy() for name, tensor in net.module.state_dict().items()}


def write_net(folder: Path) -> Path:
    save_checkpoint(folder / "net.safetensors", net_tensors(), net_card())
    return folder / "net.json"


def read_net(path: Path) -> object:
    return load_net(str(path.with_suffix(".safetensors")), tictactoe())


def reseal(path: Path) -> None:
    """Writes the weights' size and checksum onto their card, as an attacker would."""
    content = path.read_bytes()
    weights = {"file": path.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    write_sealed_json(path.with_suffix(".json"), {**net_card(), "format": 1, "weights": weights}, "card_sha256")


def read_resealed(path: Path) -> object:
    """The weights of a card that vouches for them."""
    if path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 27:
        reseal(path)
    return load_checkpoint(path)


def write_config(folder: Path) -> Path:
    settings = {"game": "tictactoe", "seed": 1, "threads": 2, "settings": asdict(RunConfig())}
    write_sealed_json(folder / CONFIG, settings, CONFIG_SEAL)
    return folder / CONFIG


def read_config_file(path: Path) -> object:
    settings = read_settings(path.parent)["settings"]
    return config_from_dict(RunConfig, settings, str(path), RunConfig())


def saved_state() -> dict[str, Any]:
    return {
        "best": 0, "seconds": 12.5, "seed": 1, "threads": 2, "devices": ["cpu"], "inference": "torch", "slots": SLOTS,
        "deterministic": True, "rules": "3.12 0123456789abcdef0123",
        "replay": [1], "samples": [SAMPLES],
    }  # fmt: skip


def write_manifest(folder: Path) -> Path:
    write_config(folder)
    names = ["learner_0001.safetensors", "learner_0001.json", "games_0001.npz", "replay_0001.npz"]
    for name in ("generation_0000.safetensors", "generation_0000.json"):
        (folder / name).write_bytes(b"net")
    files = {name: {"bytes": 3, "sha256": hashlib.sha256(b"net").hexdigest()} for name in names}
    files |= {f"generation_0000.{end}": files[names[0]] for end in ("safetensors", "json")}
    manifest = {"format": 1, "generation": 1, "files": files, "state": saved_state()}
    write_sealed_json(folder / "manifest_0001.json", manifest, "manifest_sha256")
    return folder / "manifest_0001.json"


def read_manifest(path: Path) -> object:
    manifest = latest_manifest(path.parent)
    return manifest and read_state(manifest, path.parent)


def sample_arrays(name: str = "tictactoe") -> dict[str, np.ndarray]:
    """Samples of the start position."""
    kernels = kernels_of(registry.load(name).game)
    states, numbers = kernels.rolled_states(SAMPLES), np.zeros((SAMPLES, *kernels.game.value_shape), np.float32)
    policies = kernels.describe_all(states)[0].astype(np.float32)
    policies /= policies.sum(axis=1, keepdims=True)
    return {"states": states, "policies": policies, "outcomes": numbers, "values": numbers}


def observe_samples(path: Path, name: str) -> object:
    """The examples of a file of samples, as the network sees them."""
    kernels = kernels_of(registry.load(name).game)
    return kernels.observations(make_examples(kernels, read_samples(path, kernels.game, SAMPLES)).states)


def game_arrays() -> dict[str, np.ndarray]:
    """No games in progress have moved yet."""
    return {f"{name}_0": array.zeros() for name, array in saved_arrays(tictactoe().game, SLOTS).items()}


def write_arrays(name: str, arrays: Callable[[], dict[str, np.ndarray]]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        write_npz(folder / name, arrays())
        return folder / name

    return write


def read_games_in_progress(path: Path) -> object:
    expected = {f"{name}_#": array for name, array in saved_arrays(tictactoe().game).items()}
    return read_npz(path, expected, {"slots": 16 * SLOTS})


def some_records() -> list[GameRecord]:
    words = ("a1", "b2", "c3"), ("a2", "b1")
    return [GameRecord("tictactoe", i, ("random", "greedy"), *words, "1-0", (0.1, 0.2), 1) for i in range(3)]


def dice_records(name: str = "pig") -> list[GameRecord]:
    """A game with dice; one for one player has the second contestant's moves, too."""
    moves = {"pig": "roll 4 roll 1 roll 6 hold", "2048": "b3=2 a2=4 down c2=2 left"}[name].split()
    others = tuple(moves) if name == "2048" else ()
    return [GameRecord(name, 0, ("random", "greedy"), (), tuple(moves), "*", (0.1, 0.2), 1, others=others)]


def seat_records() -> list[GameRecord]:
    """A game of three contestants, and one of two, of which the first is alone in the second seat."""
    moves, names = ("a1", "b1", "e2", "b2", "d1"), ("random", "greedy", "mcts:4")
    return [
        GameRecord("tictacmo", number, names[:seats], (), moves, "*", (0.1, 0.2), 1)
        for number, seats in ((0, 3), (2, 2))
    ]


def name_seats(path: Path) -> object:
    """The positions of games for three, and who has each seat."""
    game = registry.load("tictacmo").game
    replay_games(path, "tictacmo")
    return [[record.player_at(seat, game) for seat in range(3)] for record in record_files.read_games(path)]


def write_games(records: Callable[[], list[GameRecord]], folder: Path) -> Path:
    write_records(folder / "games.jsonl", records())
    return folder / "games.jsonl"


def write_othello(suffix: str, folder: Path) -> Path:
    record = GameRecord("othello", 0, ("a", "b"), ("d3", "c3"), ("c4",), "1-0", (0.1, 0.2), 1)
    record_files.write_games(folder / f"games{suffix}", registry.load("othello").game, [record])
    return folder / f"games{suffix}"


def write_pgn(folder: Path) -> Path:
    record = GameRecord("gardner", 0, ("a", "b"), ("b2b3", "a4b3"), ("c2b3", "c4b3"), "1-0", (0.1, 0.2), 1)
    record_files.write_games(folder / "games.pgn", registry.load("gardner").game, [record])
    return folder / "games.pgn"


def write_wthor(folder: Path) -> Path:
    game = struct.pack("<HHHBB", 1, 2, 3, 40, 40) + bytes([34, 33, 43]).ljust(60, b"\0")
    (folder / "games.wtb").write_bytes(struct.pack("<4BIHHBBBB", 20, 3, 12, 15, 1, 0, 2003, 8, 0, 24, 0) + game)
    return folder / "games.wtb"


def replay_games(path: Path, name: str = "tictactoe") -> object:
    game, records = registry.load(name).game, record_files.read_games(path)
    with contextlib.redirect_stdout(io.StringIO()):
        list_games(records)
    return [(record.positions(game), record.positions(game, second=True)) for record in records]


def write_toml(folder: Path) -> Path:
    (folder / "spring.toml").write_text('contestants = ["random", "greedy", "mcts:4"]\ngame = "tictactoe"\nseed = 3\n')
    return folder / "spring.toml"


def tournament() -> Tournament:
    names = ("random", "greedy", "minimax:2")
    pairings = tuple(Pairing(a, b) for i, a in enumerate(names) for b in names[i + 1 :])
    return Tournament(
        "tictactoe",
        "round-robin",
        {name: ContestantText.parse(name) for name in names},
        pairings,
        4,
        8,
        1,
        openings="none",
    )


def write_tournament(folder: Path) -> Path:
    ours = tournament()
    settings = {"format": 1, "opening_plies": 0, "contestants": dict.fromkeys(ours.contestants)}
    settings |= {name: getattr(ours, name) for name in ("game", "kind", "seed", "simulations", "openings", "games")}
    settings |= {"rules": name_rules(tictactoe().game), "judge": None}
    settings["pairings"] = [[pairing.first, pairing.second, ours.games] for pairing in ours.pairings]
    write_sealed_json(folder / "tournament.json", settings, SEAL)
    return folder / "tournament.json"


def open_tournament(path: Path) -> object:
    with TournamentFolder(path.parent, tournament(), tictactoe()) as folder:
        return folder.missing()


def write_tournament_games(folder: Path) -> Path:
    write_tournament(folder)
    write_records(folder / "all_games.jsonl", some_records()[:1])
    return folder / "all_games.jsonl"


def evaluation() -> dict[str, Any]:
    match = {"opponent": "random", "score": 0.5, "score_interval": [0.4, 0.6], "simulations": 8}
    return {"generation": 1, "matches": [match | {"wins": 1, "draws": 2, "losses": 3}], "benchmark": {}}


def write_evaluation(folder: Path) -> Path:
    write_json(folder / "evaluation.json", evaluation())
    return folder / "evaluation.json"


def write_figures(folder: Path) -> Path:
    """A line of metrics as a file of its own: in `metrics.jsonl` a damaged line is left out."""
    write_json(folder / "figures.json", {"generation": 1, "policy_loss": 0.5, "benchmark_figures": []})
    return folder / "figures.json"


def write_positions(folder: Path) -> Path:
    (folder / "positions.obf").write_text("-" * 27 + "OX" + "-" * 6 + "XO" + "-" * 27 + " X; D3:+0; C4:+0;")
    return folder / "positions.obf"


def write_weights(folder: Path) -> Path:
    return write_net(folder).with_suffix(".safetensors")


REPLAYS = {"": "tictactoe", " with dice": "pig", " for one": "2048", " for three": "tictacmo"}
"""The kinds of samples, each with its game."""
FORMATS = {
    "card": Format(write_net, read_net, "card_sha256"),
    "weights": Format(write_weights, read_resealed),
    "config": Format(write_config, read_config_file, CONFIG_SEAL),
    "manifest": Format(write_manifest, read_manifest, "manifest_sha256"),
    **{
        f"replay{of}": Format(
            write_arrays("replay.npz", partial(sample_arrays, name)), partial(observe_samples, name=name)
        )
        for of, name in REPLAYS.items()
    },
    "games in progress": Format(write_arrays("games.npz", game_arrays), read_games_in_progress),
    "records": Format(partial(write_games, some_records), replay_games),
    "records with dice": Format(partial(write_games, dice_records), partial(replay_games, name="pig")),
    "records for one": Format(partial(write_games, partial(dice_records, "2048")), partial(replay_games, name="2048")),
    "records for three": Format(partial(write_games, seat_records), name_seats),
    "sgf": Format(partial(write_othello, ".sgf"), partial(replay_games, name="othello")),
    "ggf": Format(partial(write_othello, ".ggf"), partial(replay_games, name="othello")),
    "pgn": Format(write_pgn, partial(replay_games, name="gardner")),
    "wthor": Format(write_wthor, partial(replay_games, name="othello")),
    "toml": Format(write_toml, read_tournament),
    "tournament": Format(write_tournament, open_tournament, SEAL),
    "tournament games": Format(write_tournament_games, open_tournament),
    "evaluation": Format(write_evaluation, lambda path: _matches(read_evaluation(path.parent))),
    "figures": Format(write_figures, lambda path: check_metrics(read_json(path), path.name)),
    "positions": Format(write_positions, lambda path: read_positions(path, registry.load("othello").game)),
}
"""All formats that are refused as a whole; damaged lines of metrics are left out instead, so they are read alone."""
