"""Games that wait for their generation: what cannot be read is never lost, and no file is read beyond the settings."""

from __future__ import annotations

import logging
import os
import tracemalloc
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.storage.run_folder import RunFolder
from alphazero.training.parts.arrivals import MODEST_BYTES, Arrivals, Chunk, most_games
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
        Arrivals(run, GAME, 1000).add([chunk_of(0, 3)])
        yield run


@pytest.mark.parametrize("kind", ["damaged", "closed", "a folder"])
def test_games_that_cannot_be_read_stay_where_they_are(folder: RunFolder, kind: str, caplog, monkeypatch):
    path, opened = folder.path / NAME, os.open
    if kind == "damaged":
        os.truncate(path, path.stat().st_size - 100)
    elif kind == "a folder":
        path.unlink()
        path.mkdir()
    else:

        def fails(name, *arguments, **more):
            if str(name) == str(path):
                raise PermissionError(13, "Permission denied")
            return opened(name, *arguments, **more)

        monkeypatch.setattr(os, "open", fails)
    before = path.stat()
    arrivals = Arrivals(folder, GAME, 1000)
    arrivals.restore(())
    assert arrivals.num_games == 0 and NAME in caplog.text and "its games are left out" in caplog.text
    arrivals.add([chunk_of(9, 1)])
    assert path.stat() == before, "its number is not used again"


def test_games_whose_file_cannot_be_removed_stay_taken(folder: RunFolder, monkeypatch):
    """Else a resume would count them again."""
    arrivals = Arrivals(folder, GAME, 1000)
    arrivals.restore(())
    assert arrivals.take(3) is not None
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", Mock(side_effect=PermissionError))
        arrivals.committed()
        again = Arrivals(folder, GAME, 1000)
        again.restore(arrivals.taken)
    assert arrivals.taken == again.taken == [0] and again.num_games == 0
    again.committed()
    assert again.taken == [] and not (folder.path / NAME).exists()


def test_no_more_is_read_than_the_settings_allow(folder: RunFolder, caplog):
    caplog.set_level(logging.INFO)
    os.truncate(folder.path / NAME, 2 << 30)
    tracemalloc.start()
    arrivals = Arrivals(folder, GAME, most_games(GAME, 100))
    arrivals.restore(())
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert arrivals.num_games == 0 and "is too large" in caplog.text and (folder.path / NAME).exists()
    few = Arrivals(folder, GAME, 2)
    few.add([chunk_of(50, 3)])
    again = Arrivals(folder, GAME, 2)
    again.restore(())
    assert again.num_games == 0 and "games <= 2" in caplog.text


def test_the_settings_of_before_may_have_been_larger():
    """A run may go on with fewer games in a generation, and meets files of the generations before."""
    assert most_games(GAME, 1) * GAME.max_plies > MODEST_BYTES // 100
    assert most_games(GAME, 1 << 20) > 1 << 20
