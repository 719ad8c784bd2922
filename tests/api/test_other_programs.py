"""The library inside servers, pools and pipelines of others: what reaches other processes, and what it leaves alone."""

import contextlib
import copy
import functools
import inspect
import io
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import alphazero as az
from alphazero import errors, progress
from alphazero.nets.devices import INFERENCES, usual_torch
from alphazero.nets.onnx_export import to_onnx
from alphazero.nets.resnet import make_net
from alphazero.nets.torch_net import TorchCudaEvaluator
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
ERRORS = [
    kind for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, BaseException) and kind.__module__ == errors.__name__
]  # fmt: skip


@pytest.mark.parametrize("again", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy], ids=["pickle", "copy"])
@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_reaches_another_process(kind, again):
    """A pool of processes breaks if an error of its work cannot be read there."""
    error = kind("game", "conect4", ["connect4"]) if kind is errors.UnknownName else kind("a sentence")
    error.add_note("a remark")
    found = again(error)
    assert (type(found), str(found), vars(found)) == (kind, str(error), vars(error))


@pytest.mark.parametrize("again", [lambda thing: pickle.loads(pickle.dumps(thing)), copy.copy, copy.deepcopy])
def test_the_search_reaches_another_process(again):
    assert again(az.search) is az.search


# --- children made by fork ---

FORKS = """
import multiprocessing, sys, tempfile
import torch
import alphazero as az
from alphazero.catalogue import registry
from alphazero.players.contestants import make_player

small = dict(generations=1, net={"blocks": 1, "channels": 32}, search={"num_simulations": 4},
             gate={"enabled": False}, evaluation={"opponents": ()}, self_play={"games_per_generation": 8},
             threads=2, progress=False)
game = az.load_game("connect4")

class Convolution(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(game.observation_shape[0], 64, 3, padding=1)
        self.both = torch.nn.Linear(64 * 42, 8)

    def forward(self, observations):
        both = self.both(self.first(observations).relu().flatten(1))
        return both[:, :-1], torch.tanh(both[:, -1])

def in_child(work):
    if work == "use":
        return az.search(game.start(), net, simulations=8).best in range(7)
    if work == "load":
        return az.search(game.start(), az.load_net("beginner", game), simulations=8).best in range(7)
    if work == "module":
        return az.search(game.start(), az.TorchNet(game, Convolution()), simulations=8).best in range(7)
    if work == "player":
        return all(len(az.match(player, "random", game, games=2, threads=1).games) == 2 for player in players)
    with tempfile.TemporaryDirectory() as folder:
        return len(az.train("tictactoe", folder=folder + "/run", **small).metrics) == 1

if __name__ == "__main__":
    torch.set_num_threads(2)
    net = az.load_net("beginner", game)
    az.search(game.start(), net, simulations=8)
    torch.nn.Conv2d(32, 64, 3, padding=1)(torch.zeros(64, 32, 6, 7))  # begins torch's other threads
    players = [
        make_player(text, registry.of(game), seed=0, threads=2, simulations=4)
        for text in ("beginner@simulations=4", "minimax:2")
    ]
    for player in players:
        az.match(player, "random", game, games=2, threads=1)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for done in [pool.apply_async(in_child, [work]) for work in ("use", "load", "module", "player", "train")]:
            print(done.get({patience}))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_made_by_fork_does_what_its_parent_could(tmp_path):
    """Without a fault it needs seconds; a child that waits for threads of its parent would wait for ever."""
    (tmp_path / "forks.py").write_text(FORKS.replace("{patience}", str(PATIENCE / 6)))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "forks.py"], cwd=tmp_path, env=environment, capture_output=True, text=True,
        timeout=PATIENCE,
    )  # fmt: skip
    assert done.stdout.split() == ["True"] * 5, done.stderr


# --- its stderr ---


class Writable:
    """As little of a stream as some programs put in the place of stderr."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass


def closed_stream() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("shown", [None, True])
@pytest.mark.parametrize("make", [lambda: None, closed_stream, Writable], ids=["none", "closed", "writable"])
def test_work_goes_on_whatever_stderr_is(make, shown, monkeypatch):
    """A program without a console, as by pythonw, has none; a service may have closed it."""
    monkeypatch.setattr("sys.stderr", make())
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0)
    assert len(az.match("random", "random", "tictactoe", games=2, progress=shown).games) == 2
    with progress.showing(shown):
        progress.say("a line")


def test_lines_are_written_to_whatever_can_be_written_to(monkeypatch):
    stream = Writable()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0)
    az.match("random", "random", "tictactoe", games=2, progress=True)
    assert "random - random: " in stream.text


# --- the torch of the program around it ---


@contextlib.contextmanager
def default(dtype: torch.dtype):
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextlib.contextmanager
def both(*contexts: contextlib.AbstractContextManager):
    with contextlib.ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context)
        yield


CHOSEN: dict[str, Callable[[], contextlib.AbstractContextManager]] = {
    "inference_mode": lambda: both(torch.inference_mode(), torch.device("meta"), default(torch.float64)),
    "no_grad": lambda: both(torch.no_grad(), torch.autocast("cpu", torch.bfloat16), default(torch.float16)),
}
"""Notebooks turn gradients off, take float64, or put all new tensors on a GPU."""
in_any_torch = pytest.mark.parametrize("chosen", CHOSEN.values(), ids=CHOSEN.keys())
GAME = az.load_game("tictactoe")


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(2, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 2, 3))
        self.policy, self.value = nn.Linear(2, 9), nn.Linear(2, 1)

    def forward(self, x):
        x = self.body(x).flatten(1)
        return self.policy(x), torch.tanh(self.value(x)).squeeze(1)


def batch_of(make: Callable[[np.ndarray], Any]) -> az.Batch:
    masks = np.ones((8, 9), bool)
    planes = np.random.default_rng(0).random((8, *GAME.observation_shape), np.float32)
    return az.Batch(
        *map(make, (planes, masks, (masks / 9).astype(np.float32), np.linspace(-1, 1, 8, dtype=np.float32)))
    )


class Program:
    """What a program has made before it chooses something in torch."""

    def __init__(self, folder):
        torch.manual_seed(0)
        self.module, self.file = Small(), folder / "it.safetensors"
        self.net = az.TorchNet(GAME, copy.deepcopy(self.module))
        self.trainer = az.TorchNet(GAME, copy.deepcopy(self.module)).trainer()

    def make(self):
        return answer(az.TorchNet(GAME, self.module))

    def make_resnet(self):
        torch.manual_seed(0)
        return answer(make_net(GAME, {"blocks": 1, "channels": 8}))

    def grow(self):
        small, large = (make_net(GAME, {"blocks": blocks, "channels": 8}) for blocks in (1, 2))
        return [large.grow_from(small), (answer(large)[0] == answer(small)[0]).all()]

    def learn(self):
        return step(self.net.trainer(), batch_of(np.asarray))

    def learn_from_tensors_in_another_trainer(self):
        return step(self.trainer, batch_of(torch.from_numpy))

    def save_and_load_a_trainer(self):
        self.trainer.save(self.file)
        again = self.net.trainer()
        again.load(self.file)
        return [*answer(self.net), *step(again, batch_of(np.asarray))]

    def save_and_load_a_net(self):
        self.net.save(self.file, {})
        other = az.TorchNet(GAME, self.module)
        return [other.load(self.file)["game"], *answer(other)]

    def pickle(self):
        return answer(pickle.loads(pickle.dumps(self.net)))

    def openvino(self):
        return [self.net.use_inference("openvino"), *answer(self.net)]

    def winograd(self):
        return [self.net.use_inference("winograd"), *answer(self.net)]

    def search(self):
        return [az.search(GAME.start(), self.net, simulations=20).visits]

    def match(self):
        return [az.match(self.net, "random", GAME, games=2, simulations=4).score]

    def evaluate_on_a_device(self):
        priors, values = np.zeros((8, 9), np.float32), np.zeros(8, np.float32)
        TorchCudaEvaluator(self.net)(batch_of(np.asarray).observations, np.ones((8, 9), bool), priors, values)
        return [priors, values]


def answer(net):
    found = az.evaluate(GAME.start(), net)
    return [found.policy, found.value]


def step(trainer, batch):
    losses = trainer.train_step(batch, 1e-2)
    trainer.finish()
    return [float(losses["policy_loss"]), float(losses["value_loss"]), *answer(trainer.net)]


@functools.cache
def usual_answer(call: str):
    with tempfile.TemporaryDirectory() as folder:
        return getattr(Program(Path(folder)), call)()


@in_any_torch
@pytest.mark.parametrize("call", [name for name in vars(Program) if not name.startswith("_")])
def test_every_call_does_the_same_whatever_the_program_has_chosen_in_torch(call, chosen, tmp_path):
    program, expected = Program(tmp_path), usual_answer(call)
    with chosen():
        before = settings()
        found = getattr(program, call)()
        assert settings() == before
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def settings():
    return (
        torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.empty(0).dtype, torch.empty(0).device,
        torch.is_autocast_enabled("cpu"),
    )  # fmt: skip


def test_a_net_is_exported_within_autocast():
    with torch.autocast("cpu", torch.bfloat16):
        assert to_onnx(az.TorchNet(GAME, Small()), GAME, {})[1] < 1e-4


def test_two_threads_give_the_type_of_new_tensors_back():
    """One leaves while the other is inside: the later one gives back what the first one found, and not float32."""
    outer, inner = usual_torch(), usual_torch()
    with default(torch.float64):
        outer.__enter__()
        inner.__enter__()
        outer.__exit__(None, None, None)
        assert torch.get_default_dtype() == torch.float32
        inner.__exit__(None, None, None)
        assert torch.get_default_dtype() == torch.float64


def test_a_net_that_answers_leaves_the_type_of_new_tensors_to_the_other_threads():
    """A page in the background answers while the program computes."""
    found = []

    class Watching(Small):
        def forward(self, x):
            found.append(torch.get_default_dtype())
            return super().forward(x)

    net = az.TorchNet(GAME, Watching())
    with default(torch.float64):
        found.clear()
        answer(net)
    assert set(found) == {torch.float64}


@pytest.mark.parametrize(
    "library",
    [pytest.param(name, marks=() if name == "torch" else pytest.mark.slow) for name in INFERENCES if name != "auto"],
)
@in_any_torch
def test_a_net_is_loaded_whatever_the_program_has_chosen_in_torch(chosen, library):
    position = az.load_game("connect4").position("44")
    expected = az.evaluate(position, az.load_net("beginner", "connect4", inference=library))
    with chosen():
        found = az.evaluate(position, az.load_net("beginner", "connect4", inference=library))
    assert found.value == expected.value and (found.policy == expected.policy).all()


def test_a_net_learns_whatever_the_program_has_chosen_in_torch(own_folder):
    def losses() -> list[float]:
        run = az.train(
            "tictactoe", generations=1, minutes=0, net={"blocks": 1, "channels": 8}, search={"num_simulations": 4},
            self_play={"games_per_generation": 16}, gate={"enabled": False}, evaluation={"opponents": ()},
            threads=1, deterministic=True, progress=False,
        )  # fmt: skip
        return [run.metrics[0]["policy_loss"], run.metrics[0]["value_loss"]]

    expected = losses()
    with CHOSEN["inference_mode"]():
        before = settings()
        assert losses() == expected
        assert settings() == before
