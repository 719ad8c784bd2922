"""Fixtures for all tests: every registered game, and its kernels."""

import functools
import logging
import os
from collections.abc import Iterator

# before torch is imported, here and in processes that tests start: its threads wait for each other in every layer, for
# long where other tests share the cores
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest

from alphazero.game import Game, registry
from alphazero.game.kernels import Kernels


@pytest.fixture(autouse=True)
def commands_leave_no_logging_behind() -> Iterator[None]:
    """Takes back handler and level of a command that ran in this process, for tests of what the library prints."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    for handler in set(root.handlers) - set(handlers):
        if type(handler) is logging.StreamHandler:
            root.removeHandler(handler)
    root.setLevel(level)


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
