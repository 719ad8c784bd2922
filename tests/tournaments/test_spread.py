"""Matches on a cluster: what is sent to its hosts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from alphazero.errors import CheckpointError
from alphazero.game import registry
from alphazero.storage.checkpoint import checkpoint_bytes
from alphazero.tournaments.spread import _Matches
from alphazero.tournaments.tournament import make_tournament

LOADED = registry.load("tictactoe")


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A small net, in a folder of its own."""
    path = tmp_path / "nets" / "net.safetensors"
    path.parent.mkdir()
    LOADED.make_net(LOADED.game, {"blocks": 1, "channels": 8}).save(path, {})
    return path


def matches(net: Path) -> _Matches:
    names = ("random", "greedy", f"{net}@simulations=2")
    return _Matches(make_tournament("tictactoe", "round-robin", names, 2, None, 1, False), LOADED)


def test_the_files_of_a_net_are_sent_as_they_are(net: Path):
    whole = net.read_bytes(), net.with_suffix(".json").read_bytes()
    assert checkpoint_bytes(net) == whole
    assert matches(net).files() == (0, {"2.safetensors": whole[0], "2.json": whole[1]})


@pytest.mark.parametrize("ending", [".safetensors", ".json"])
@pytest.mark.parametrize("kind", ["link", "pipe", "flipped", "long"])
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
