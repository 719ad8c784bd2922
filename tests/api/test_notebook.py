"""The library as a notebook uses it: call after call in one process, with numbers of numpy."""

import numpy as np
import pytest
import torch
from torch import nn

import alphazero as az
from alphazero.errors import NetError, StorageError, UnknownName
from alphazero.matches.result import REPEATED
from alphazero.nets.torch_net import TorchNet

SMALL = {
    "generations": 1, "search": {"num_simulations": 4}, "gate": {"enabled": False}, "evaluation": {"opponents": ()},
    "self_play": {"games_per_generation": 16}, "net": {"blocks": 1, "channels": 8}, "threads": 1, "progress": False,
}  # fmt: skip


class Perceptron(nn.Module):
    def __init__(self, game):
        super().__init__()
        self.both = nn.Linear(int(np.prod(game.observation_shape)), game.num_actions + 1)

    def forward(self, observations):
        both = self.both(observations.flatten(1))
        return both[:, :-1], torch.tanh(both[:, -1])


def test_numbers_of_numpy_are_seeds_and_counts_and_a_training_leaves_the_callers_random_numbers_alone():
    expected = torch.Generator().manual_seed(7)
    torch.manual_seed(7)
    for seed in np.arange(1, 2):
        run = az.train("tictactoe", seed=seed, **{**SMALL, "threads": np.int64(1)})
        assert type(run.metrics[0]["generation"]) is int
        assert torch.rand(3).tolist() == torch.rand(3, generator=expected).tolist()
        found = az.match("random", "greedy", "tictactoe", games=np.int64(4), seed=seed, threads=np.int64(1))
        assert found.seed == 1 and type(found.games[0].seed) is int
        az.check_game("tictactoe", games=np.int64(2), seed=seed)


def test_one_module_for_both_nets_is_refused():
    module = Perceptron(az.load_game("tictactoe"))
    with pytest.raises(NetError, match="gave the same Perceptron twice"):
        az.train("tictactoe", **{**SMALL, "net": lambda game: module})


def test_a_net_is_run_by_the_library_that_is_named():
    game = az.load_game("connect4")
    for name in ("torch", "openvino"):
        nets = [az.load_net("beginner", game, inference=name) for _ in range(2)]
        answers = [az.evaluate(game.position("4453"), net) for net in nets]
        assert answers[0].value == answers[1].value
    with pytest.raises(UnknownName, match="unknown inference 'touch'; did you mean 'torch'"):
        az.load_net("beginner", game, inference="touch")


def test_the_net_of_a_deterministic_run_is_run_by_torch(monkeypatch):
    asked = []
    use = TorchNet.use_inference
    run = az.train("tictactoe", minutes=0, deterministic=True, **SMALL)
    monkeypatch.setattr(TorchNet, "use_inference", lambda net, name: (asked.append(name), use(net, name))[1])
    monkeypatch.delenv("ALPHAZERO_INFERENCE", raising=False)
    assert run.net is run.net and asked == ["torch"]


def test_a_run_gives_the_best_net_of_now():
    run = az.train("tictactoe", folder="run", **SMALL)
    before = run.net
    az.train("tictactoe", folder="run", resume=True, generations=2, progress=False)
    assert run.best_generation == 2 and run.net is not before and run.net is run.net


def test_games_that_repeat_themselves_are_told():
    def lowest(position):
        return position.legal_actions[0]

    def highest(position):
        return position.legal_actions[-1]

    found = az.match(lowest, highest, "tictactoe", games=20, openings="none", progress=False)
    assert found.distinct_games == 2
    assert repr(found).endswith("); only 2 different games>") and f"distinct games  2{REPEATED}\n" in str(found)
    once = az.match(lowest, lowest, "tictactoe", games=4, openings="none", progress=False)
    assert repr(once).startswith("<Match of lowest (first) against lowest (second): 2 wins, 0 draws, 2 losses, ")
    assert repr(once).endswith("; only 1 different game>")
    varied = az.match("random", "random", "tictactoe", games=20, progress=False)
    assert varied.distinct_games > 10 and "different" not in repr(varied) and REPEATED not in str(varied)


def test_a_match_leaves_torchs_threads_as_they_were():
    """Threads that begin later take the number that was set last, on whichever thread."""
    from concurrent.futures import ThreadPoolExecutor

    torch.set_num_threads(2)
    az.match(az.load_net("beginner", "connect4"), "random", "connect4", games=2, simulations=4, progress=False)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(torch.get_num_threads).result() == torch.get_num_threads() == 2


def test_a_card_that_cannot_be_written_leaves_the_older_checkpoint_whole():
    az.save_checkpoint("a.safetensors", {"w": np.zeros(3)}, {"loss": np.float32(0.5)})
    for loss in (float("nan"), object()):
        with pytest.raises(StorageError, match="written as JSON"):
            az.save_checkpoint("a.safetensors", {"w": np.ones(3)}, {"loss": loss})
    arrays, card = az.load_checkpoint("a.safetensors")
    assert arrays["w"].tolist() == [0, 0, 0] and card["loss"] == 0.5
