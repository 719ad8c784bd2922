"""Games that wait for their generation: what cannot be read is never lost, and no file is read beyond the settings."""

from __future__ import annotations

import logging
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.storage.run_folder import RunFolder
from alphazero.training.parts.chunk import Chunk
from alphazero.training.parts.inbox import MODEST_BYTES, Inbox, most_games
from alphazero.training.replay_buffer import Samples

GAME = registry.load("tictactoe").game
NAME = "arrived_000000000.npz"


def chunk_of(first: int, num_games: int) -> Chunk:
    """Games of five plies with the numbers from `first` on."""
    zeros, plies = np.zeros(5 * num_games, np.float32), np.full(num_games, 5)
    states, policies = np.zeros((len(zeros), GAME.state_words), np.uint64), np.zeros((len(zeros), 9), np.float32)
    numbers = np.arange(first, first + num_games)
    return Chunk(Samples(states, policies, zeros, zeros), np.stack([numbers, plies, 0 * plies], axis=1))


@pytest.fixture
def folder(tmp_path: Path):
    with RunFolder.create(tmp_path / "run", {}) as run:
        Inbox(run, GAME, 1000).add([chunk_of(0, 3)])
        yield run


def test_damaged_games_are_moved_aside(folder: RunFolder, caplog):
    path = folder.path / NAME
    damaged = path.read_bytes()[:-100]
    path.write_bytes(damaged)
    inbox = Inbox(folder, GAME, 1000)
    inbox.restore(())
    assert inbox.num_games == 0 and not path.exists()
    assert (folder.path / "arrived_000000000.damaged.npz").read_bytes() == damaged
    assert "its games are left out, and it has been renamed to arrived_000000000.damaged.npz" in caplog.text
    assert Inbox(folder, GAME, 1000).restore(()) == 0, "what was moved aside is no arrival"
    path.write_bytes(b"another")
    Inbox(folder, GAME, 1000).restore(())
    assert (folder.path / "arrived_000000000.damaged.npz").read_bytes() == damaged
    assert (folder.path / "arrived_000000000.damaged-2.npz").read_bytes() == b"another"


def test_a_file_that_cannot_be_read_now_stays_where_it_is(folder: RunFolder, caplog, monkeypatch):
    path, opened = folder.path / NAME, os.open
    content = path.read_bytes()

    def fails(name, *arguments, **more):
        if str(name) == str(path):
            raise PermissionError(13, "Permission denied")
        return opened(name, *arguments, **more)

    monkeypatch.setattr(os, "open", fails)
    inbox = Inbox(folder, GAME, 1000)
    inbox.restore(())
    monkeypatch.undo()
    assert inbox.num_games == 0 and "Permission denied" in caplog.text and "it stays where it is" in caplog.text
    assert path.read_bytes() == content
    inbox.add([chunk_of(9, 1)])
    assert path.read_bytes() == content, "its number is not used again"
    assert Inbox(folder, GAME, 1000).restore(()) == 10


def test_games_whose_file_cannot_be_removed_stay_taken(folder: RunFolder, caplog, monkeypatch):
    """Else a resume would count them again."""
    inbox = Inbox(folder, GAME, 1000)
    inbox.restore(())
    assert inbox.take(3) is not None

    def fails(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", fails)
    inbox.committed()
    assert inbox.taken == [0] and "cannot remove" in caplog.text
    again = Inbox(folder, GAME, 1000)
    again.restore(inbox.taken)
    assert again.num_games == 0 and again.taken == [0]
    monkeypatch.undo()
    again.committed()
    assert again.taken == [] and not (folder.path / NAME).exists()


@pytest.mark.parametrize("taken", [(), (0,)], ids=["waiting", "taken"])
def test_a_folder_in_the_place_of_games_stops_nothing(folder: RunFolder, taken, caplog):
    (folder.path / NAME).unlink()
    (folder.path / NAME).mkdir()
    inbox = Inbox(folder, GAME, 1000)
    inbox.restore(taken)
    assert inbox.num_games == 0 and (folder.path / NAME).is_dir() and NAME in caplog.text


def test_no_more_is_read_than_the_settings_allow(folder: RunFolder, caplog):
    caplog.set_level(logging.INFO)
    os.truncate(folder.path / NAME, 2 << 30)
    tracemalloc.start()
    inbox = Inbox(folder, GAME, most_games(GAME, 100))
    inbox.restore(())
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert inbox.num_games == 0 and "is too large" in caplog.text and (folder.path / NAME).exists()
    few = Inbox(folder, GAME, 2)
    few.add([chunk_of(50, 3)])
    again = Inbox(folder, GAME, 2)
    again.restore(())
    assert again.num_games == 0 and "games <= 2" in caplog.text


def test_the_settings_of_before_may_have_been_larger():
    """A run may go on with fewer games in a generation, and meets files of the generations before."""
    assert most_games(GAME, 1) * GAME.max_plies > MODEST_BYTES // 100
    assert most_games(GAME, 1 << 20) > 1 << 20
