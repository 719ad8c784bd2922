"""Matches on a cluster: what is sent to its hosts."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from alphazero.catalogue import registry
from alphazero.cluster.ray_cluster import MatchGuest, Spread
from alphazero.errors import CheckpointError
from alphazero.matches import openings
from alphazero.nets.devices import INFERENCE_VARIABLE, wanted_inference
from alphazero.nets.torch_net import TorchNet
from alphazero.players.contestants import ContestantText
from alphazero.storage.checkpoint import checkpoint_bytes
from alphazero.tournaments.folder import TournamentFolder
from alphazero.tournaments.tournament import make_tournament, with_nets_found
from tests.cluster.fake import FakeCluster

LOADED = registry.load("tictactoe")


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A small net, in a folder of its own."""
    path = tmp_path / "nets" / "net.safetensors"
    path.parent.mkdir()
    LOADED.make_net(LOADED.game, {"blocks": 1, "channels": 8}).save(path, {})
    return path


def matches(net: Path, device: str = "auto") -> Spread:
    names = ("random", "greedy", f"{net}@simulations=2")
    tournament = make_tournament("tictactoe", "round-robin", list(map(ContestantText.parse, names)), 2, None, 1, False)
    return Spread(FakeCluster([]), with_nets_found(tournament, LOADED), LOADED, device)


def seat(device: str) -> Any:
    return SimpleNamespace(device=device)


@pytest.mark.parametrize("faster", ["torch", "openvino"])
def test_one_library_runs_the_nets_on_all_machines(faster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The command chooses it: each machine would find another one faster."""
    path = tmp_path / "net.safetensors"
    sizes = {"blocks": 1, "channels": 8}
    LOADED.make_net(LOADED.game, sizes).save(path, {"game": "tictactoe", "net": sizes})
    monkeypatch.setattr(TorchNet, "use_inference", lambda net, name: faster if name == "auto" else name)
    for wanted, expected in (("auto", faster), ("openvino", "openvino"), ("torch", "torch")):
        monkeypatch.setenv(INFERENCE_VARIABLE, wanted)
        settings = matches(path).settings(seat("cpu"))
        assert settings.inference == expected
        MatchGuest(settings)
        assert wanted_inference() == expected


@pytest.mark.parametrize(("asked", "there", "expected"), [("auto", "cuda", "cuda"), ("auto", "cpu", "cpu"),
     ("cpu", "cuda", "cpu"), ("cuda", "cpu", "cuda")])  # fmt: skip
def test_nets_compute_where_the_command_says_or_where_the_machine_has_it(net: Path, asked, there, expected):
    assert matches(net, asked).settings(seat(there)).device == expected


def test_the_files_of_a_net_are_sent_as_they_are(net: Path):
    whole = net.read_bytes(), net.with_suffix(".json").read_bytes()
    assert checkpoint_bytes(net) == whole
    assert matches(net).files() == (0, {"2.safetensors": whole[0], "2.json": whole[1]})


def test_orders_have_the_openings_of_the_folder(net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    work = matches(net)
    with TournamentFolder(tmp_path / "played", work.tournament, LOADED) as folder:
        monkeypatch.setattr(openings, "_draw_all", lambda *_: pytest.fail("they are drawn again"))
        work.add(folder, folder.missing())
        expected = tuple(opening.actions for opening in folder.openings(2))
    for _ in range(3):
        order = work.next_order(seat("cpu"))
        assert order is not None and order.openings == expected and len(expected) == 1


def test_orders_are_small_where_a_contestant_plays_one_game_at_a_time(tmp_path: Path):
    names = ("random", "greedy", "gtp:an-engine")
    work = Spread(
        FakeCluster([]),
        make_tournament("tictactoe", "round-robin", list(map(ContestantText.parse, names)), 20, None, 1, False),
        LOADED,
    )
    with TournamentFolder(tmp_path / "played", work.tournament, LOADED) as folder:
        work.add(folder, folder.missing())
    orders = [order for order in iter(lambda: work.next_order(seat("cpu")), None)]
    assert [len(order.games) for order in orders] == [16, 4] + [2] * 20
    assert all("gtp:an-engine" in order.pairing for order in orders[2:])


@pytest.mark.parametrize(
    ("ending", "kind"),
    [(".safetensors", "link"), (".json", "pipe"), (".safetensors", "flipped"), (".json", "flipped"), (".json", "long")],
)
def test_nothing_else_is_sent_in_place_of_a_net(ending: str, kind: str, net: Path):
    path, outside = net.with_suffix(ending), net.parents[1] / "outside"
    if kind == "link":
        path.rename(outside)
        path.symlink_to(outside)
    elif kind == "pipe":
        path.unlink()
        os.mkfifo(path)
    elif kind == "long":
        os.truncate(path, 1 << 40)
    else:
        content = path.read_bytes()
        path.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    with pytest.raises(CheckpointError):
        matches(net)
