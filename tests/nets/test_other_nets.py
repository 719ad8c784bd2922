"""Networks that are no ResNet of torch: numpy alone, settings of another kind, given from Python, or not well made."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from alphazero.catalogue import registry
from alphazero.commands import pit
from alphazero.commands import train as train_command
from alphazero.commands.shared import run_command
from alphazero.errors import InvalidSetting, NetError, UnknownName
from alphazero.nets.neural_net import NeuralNet, check_apart, check_saved, on_one_thread
from alphazero.nets.torch_net import TorchNet
from alphazero.players.contestants import load_net
from alphazero.storage.checkpoint import load_checkpoint, read_card, save_checkpoint
from alphazero.storage.metrics_file import read_metrics
from alphazero.training.run import train
from games.tictactoe.game import TicTacToe
from tests.nets import linear_game
from tests.nets.linear_game import LinearConfig, LinearNet
from tests.training.test_coach import TINY

FILE = str(Path(linear_game.__file__))
FLAGS = (
    "--game", FILE, "--threads", "1", "--device", "cpu", "--search.num-simulations", "8", "--gate.games", "4",
    "--self-play.games-per-generation", "16", "--self-play.num-slots", "16", "--learner.batch-size", "32",
    "--learner.learning-rate", "1", "--evaluation.opponents", "random", "--evaluation.games", "4",
    "--evaluation.simulations", "4",
)  # fmt: skip
LINEAR = replace(TINY, net=LinearConfig(), generations=1, evaluation=replace(TINY.evaluation, opponents=()))


def test_a_numpy_net_with_settings_of_its_own_learns_goes_on_and_plays(tmp_path, capsys):
    """By the command line: two generations, one more on --resume, and a match against its checkpoint."""
    run = tmp_path / "run"
    assert run_command(train_command.main, [*FLAGS, "--run", str(run), "--generations", "2", "--net.scale", "0.5"]) == 0
    resumed = ["--game", FILE, "--run", str(run), "--resume", "--device", "cpu", "--generations", "3"]
    assert run_command(train_command.main, resumed) == 0
    rows = read_metrics(run)
    assert [row["generation"] for row in rows] == [1, 2, 3] and rows[2]["policy_loss"] < rows[0]["policy_loss"]
    arrays, card = load_checkpoint(run / "generation_0003.safetensors")
    assert card["game"] == "tictactoe" and card["net"] == {"scale": 0.5} and arrays["policy"].any()
    net = load_net(f"{run}:3", registry.load(FILE), "cpu")
    assert isinstance(net, NeuralNet) and net.config.scale == 0.5
    match = [f"{run}:3", "random", "--game", FILE, "--games", "4", "--simulations", "4", "--threads", "1"]
    assert run_command(pit.main, match) == 0
    capsys.readouterr()
    assert run_command(train_command.main, [*resumed, "--net.scale", "0.25"]) == 2
    assert "settings.net.scale: 0.5 -> 0.25" in capsys.readouterr().err
    assert run_command(train_command.main, [*FLAGS, "--net.blocks", "2"]) == 2
    assert "--net.blocks" in capsys.readouterr().err


def test_settings_of_another_kind_come_from_python_too(tmp_path):
    """As a dataclass, and as a dict."""
    loaded = replace(registry.load("tictactoe"), make_net=linear_game.make_net)
    config = replace(LINEAR, net=LinearConfig(scale=0.5))
    train(loaded, config, tmp_path / "run", threads=1)
    resumed = replace(config, generations=2, net={"scale": 0.5})
    run = train(loaded, resumed, tmp_path / "run", threads=1, resume=True)
    assert run.generation == 2 and run.net.config == LinearConfig(scale=0.5)
    assert read_card(tmp_path / "run" / "generation_0002.safetensors")["net"] == {"scale": 0.5}


def test_a_net_that_was_replaced_plays_in_other_processes_too(tmp_path):
    """On two devices the second one plays in a process, by the net that was given and not by the game's own."""
    loaded = replace(registry.load("tictactoe"), make_net=linear_game.scaled_net)
    with pytest.raises(InvalidSetting, match="cannot learn on several devices"):
        # before it is refused, the process has played by what the game's own net could not read
        train(loaded, LINEAR, tmp_path / "run", threads=2, devices=("cpu", "cpu"))
    assert (tmp_path / "run" / "replay_0001.npz").exists()


def test_a_net_that_cannot_be_sent_is_refused_before_anything_is_played(tmp_path):
    loaded = replace(registry.load("tictactoe"), make_net=lambda game, settings: linear_game.scaled_net(game, settings))
    with pytest.raises(InvalidSetting, match=r"cannot load its net, <lambda>: define it at the top level of a module"):
        train(loaded, LINEAR, tmp_path / "run", threads=2, devices=("cpu", "cpu"))
    assert not list(tmp_path.glob("run/generation_*"))
    assert train(loaded, LINEAR, tmp_path / "threads", threads=2).generation == 1  # no process, nothing to send


class Careless(LinearNet):
    """Loses the card."""

    def save(self, path: Path, card: Any) -> dict[str, Any]:
        return save_checkpoint(path, self.weights, {})


def test_a_net_that_does_not_save_what_it_must_is_told_so(tmp_path):
    loaded = replace(registry.load("tictactoe"), make_net=lambda game, settings: Careless(game, LinearConfig()))
    with pytest.raises(NetError, match=r"Careless\.save must write .*the card has no game, gate_score"):
        train(loaded, LINEAR, tmp_path / "run", threads=1)
    with pytest.raises(NetError, match=r"LinearNet\.save must write .*absent\.safetensors and beside it"):
        check_saved(LinearNet(TicTacToe(), LinearConfig()), tmp_path / "absent.safetensors", {})


def test_a_net_that_is_the_same_at_each_call_is_refused(tmp_path):
    """It would learn and play at once, and the gate would let it play against itself."""
    net = LinearNet(TicTacToe(), LinearConfig())
    loaded = replace(registry.load("tictactoe"), make_net=lambda game, settings: net)
    with pytest.raises(NetError, match="the function that makes nets gave the same LinearNet twice: let it make a new"):
        train(loaded, LINEAR, tmp_path / "run", threads=1)


class Headed(torch.nn.Module):
    """A head of its own on a body that may be another one's, too."""

    def __init__(self, body: torch.nn.Linear):
        super().__init__()
        self.body, self.policy = body, torch.nn.Linear(8, 9)

    def forward(self, observations):
        x = self.body(observations.flatten(1))
        return self.policy(x), torch.tanh(x[:, 0])


def test_nets_are_apart_unless_they_share_weights():
    """Nets of somebody's own may keep one thing without weights in a field of that name."""
    game, bodies = TicTacToe(), [torch.nn.Linear(18, 8) for _ in range(2)]
    nets = [TorchNet(game, Headed(body)) for body in (bodies[0], bodies[0], bodies[1])]
    with pytest.raises(NetError, match="gave the same Headed twice"):
        check_apart(nets[0], nets[1])
    check_apart(nets[0], nets[2])
    linear: list[Any] = [LinearNet(game, LinearConfig()) for _ in range(2)]
    linear[0].module = linear[1].module = object()
    check_apart(*linear)


@pytest.mark.parametrize(
    ("device", "words"),
    [("gpu:0", "did you mean 'cuda'"), ("cuda:x", "did you mean 'cuda'")],
)
def test_a_device_that_there_is_not_gets_a_sentence(device: str, words: str):
    with pytest.raises(UnknownName, match=words):
        TorchNet(TicTacToe(), Headed(torch.nn.Linear(18, 8))).use_device(device)


def test_a_net_that_loads_in_its_own_way_does_so_wherever_it_is_loaded(tmp_path, monkeypatch):
    """As one that gives tensors of old names new ones."""
    loaded, seen = registry.load("tictactoe"), list[str]()

    class Own(TorchNet):
        def load(self, path):
            seen.append(path.name)
            return super().load(path)

    net = loaded.make_net(loaded.game, {"blocks": 1, "channels": 8})
    net.save(tmp_path / "net.safetensors", {})
    own = replace(loaded, make_net=lambda game, sizes: Own(game, net.module))
    load_net(str(tmp_path / "net.safetensors"), own)
    assert seen == ["net.safetensors"]


def test_the_smallest_net_has_three_methods():
    class Smallest(NeuralNet):
        def evaluate(self, observations, legal_masks):
            return legal_masks / legal_masks.sum(axis=1, keepdims=True), np.zeros(len(observations))

        def save(self, path, card):
            return save_checkpoint(path, {}, card)

        def load(self, path):
            return load_checkpoint(path)[1]

    net = Smallest()
    net.use_device("cuda")
    assert net.cuda_evaluator() is None
    with pytest.raises(InvalidSetting, match="Smallest cannot learn: give it a method `trainer`"):
        net.trainer()


class OfTorch(NeuralNet):
    """A net of no answers, whose threads are torch's."""

    evaluate = save = load = None  # type: ignore[assignment]
    use_threads = TorchNet.use_threads


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Of torch, in every thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_searches_of_several_threads_leave_new_threads_as_they_were(two_threads):
    """One that began while others searched once left a single thread to all that came later."""
    net, is_inside, is_over = OfTorch(), threading.Event(), threading.Event()

    def search_later() -> None:
        with on_one_thread(net):
            is_inside.set()
            assert is_over.wait(60)

    thread = threading.Thread(target=search_later)
    with on_one_thread(net):
        thread.start()
        assert is_inside.wait(60) and torch.get_num_threads() == 1
    is_over.set()
    thread.join()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(torch.get_num_threads).result() == torch.get_num_threads() == 2
