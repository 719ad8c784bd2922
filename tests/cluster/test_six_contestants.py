"""A tournament of six contestants, three of them nets, is the same on a cluster as without it, game by game."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from alphazero.catalogue import registry
from alphazero.commands import pit
from alphazero.commands.options import TournamentOptions
from alphazero.tournaments.folder import read_games
from tests.cluster.conftest import needs_ray
from tests.cluster.fake import FakeCluster, machine

GAMES = 20
"""Of each pair; a host plays 16 at a time."""
OPTIONS = [
    "--game",
    "tictactoe",
    "--games",
    str(GAMES),
    "--seed",
    "5",
    "--threads",
    "1",
    "--device",
    "cpu",
    "--inference",
    "torch",
]


@pytest.fixture(scope="module")
def contestants(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two small nets of different sizes, one of them with and without a search, and three players without nets."""
    folder, loaded = tmp_path_factory.mktemp("nets"), registry.load("tictactoe")
    torch.manual_seed(1)
    for name, blocks, channels in (("small", 1, 8), ("large", 2, 12)):
        net = loaded.make_net(loaded.game, {"blocks": blocks, "channels": channels})
        for parameter in net.module.parameters():  # else they all know as little, and play alike
            torch.nn.init.normal_(parameter, std=0.5)
        net.save(folder / f"{name}.safetensors", {})
    nets = [f"{folder}/{text}" for text in ("small.safetensors@simulations=8", "large.safetensors@simulations=5")]
    return [*nets, f"{folder}/large.safetensors@simulations=0", "random", "minimax:2", "mcts:10"]


def games_of_command(folder: Path, contestants: list[str], *options: str) -> list[dict[str, Any]]:
    """The games that the command plays, in the order of pairs and numbers, without the time that they took."""
    pit.main([*contestants, *OPTIONS, "--folder", str(folder), *options])
    games = [asdict(record) for record in read_games(folder)]
    for game in games:
        del game["seconds"]
    return sorted(games, key=lambda game: (sorted(game["contestants"]), game["number"]))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, contestants: list[str]) -> list[dict[str, Any]]:
    games = games_of_command(tmp_path_factory.mktemp("alone") / "t", contestants)
    pairs = Counter(tuple(sorted(game["contestants"])) for game in games)
    assert len(pairs) == 15 and set(pairs.values()) == {GAMES}
    return games


@pytest.fixture
def fake_cluster(monkeypatch: pytest.MonkeyPatch, no_ray: None) -> FakeCluster:
    """The cluster that the command plays on, whatever address it is given."""
    cluster = FakeCluster([machine("a", 2), machine("b")])
    monkeypatch.setattr(TournamentOptions, "find_cluster", lambda config: cluster.spread)
    return cluster


def test_six_contestants_play_the_same_games_on_a_cluster(
    tmp_path: Path, contestants: list[str], alone: list[dict[str, Any]], fake_cluster: FakeCluster
):
    assert games_of_command(tmp_path / "t", contestants) == alone
    players = {actor for actor, (_, content) in fake_cluster.ray.heard if isinstance(content, bytes)}
    assert players == {0, 1, 2}, "all hosts have played"


@needs_ray
@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_six_contestants_play_the_same_games_on_real_ray(
    ray_cluster, tmp_path: Path, contestants: list[str], alone: list[dict[str, Any]]
):
    assert games_of_command(tmp_path / "t", contestants, "--cluster", ray_cluster.address) == alone
