"""Fixtures for all tests: every registered game, its kernels, and the reference data beside the repository."""

import functools
from pathlib import Path

import pytest

from alphazero.game import Game, registry
from alphazero.game.kernels import Kernels


@functools.cache
def kernels_by_name(name: str) -> Kernels:
    return Kernels(registry.load(name).game)


@pytest.fixture(params=sorted(registry.NAMES))
def game(request: pytest.FixtureRequest) -> Game:
    """Every game of the registry in turn."""
    return kernels_by_name(request.param).game


@pytest.fixture
def kernels(game: Game) -> Kernels:
    """The kernels of `game`, compiled once per session."""
    return kernels_by_name(game.name)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of reference data, `../shared/data` from the repository's root; skips where it is missing."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the reference data is not here: {folder} is missing")
    return folder
