"""L1: a process that plays one generation after the other keeps its size: numba never gives back what it has loaded."""

import gc
import threading
import time

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.game import kernels as kernels_module
from alphazero.players.net_players import make_net_player
from alphazero.search.mcts import SearchConfig
from tests.conftest import kernels_by_name


@pytest.fixture
def made(monkeypatch) -> list:
    """The functions that are compiled or loaded, in their order."""
    found, cached = [], kernels_module.cached
    monkeypatch.setattr(
        kernels_module, "cached", lambda function, **options: found.append(function) or cached(function, **options)
    )
    return found


def test_players_of_fifty_generations_load_no_code_anew(monkeypatch, made):
    monkeypatch.setattr(kernels_module, "_kept_rules", {})  # else an earlier test may have made all kernels
    kernels = kernels_module.Kernels(kernels_by_name("tictactoe").game)
    net = registry.load("tictactoe").make_net(kernels.game, {"blocks": 1, "channels": 8})
    states, zeros = kernels.start_states(4), np.zeros(4, np.int64)

    def play() -> None:
        for config in (None, SearchConfig(num_simulations=4, noise_fraction=0.0)):
            make_net_player("net", kernels, net, config, seed=1, threads=1).select_actions(states, zeros, zeros)

    play()
    count, threads = len(made), threading.active_count()
    assert count >= 3
    for _ in range(50):
        play()
    assert [function.__name__ for function in made[count:]] == []
    gc.collect()  # a player and its pool of threads refer to each other
    end = time.monotonic() + 30
    while threading.active_count() > threads and time.monotonic() < end:
        time.sleep(0.01)  # threads that were told to end
    assert threading.active_count() <= threads
