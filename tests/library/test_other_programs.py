"""The library inside servers, pools and pipelines of others: what reaches other processes, and what it leaves alone."""

import contextlib
import copy
import inspect
import io
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import alphazero as az
from alphazero import errors, progress
from alphazero.nets.devices import INFERENCES
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
from alphazero.game import registry
from alphazero.players.contestants import make_player

small = dict(generations=1, net={"blocks": 1, "channels": 32}, search={"num_simulations": 4},
             gate={"enabled": False}, evaluation={"opponents": ()}, self_play={"games_per_generation": 16},
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
        return az.search(game.start(), az.load_net("best", game), simulations=8).best in range(7)
    if work == "module":
        return az.search(game.start(), az.TorchNet(game, Convolution()), simulations=8).best in range(7)
    if work == "player":
        return all(len(az.match(player, "random", game, games=2, threads=1).games) == 2 for player in players)
    with tempfile.TemporaryDirectory() as folder:
        return len(az.train("tictactoe", folder=folder + "/run", **small).metrics) == 1

if __name__ == "__main__":
    torch.set_num_threads(2)
    net = az.load_net("best", game)
    az.search(game.start(), net, simulations=8)
    torch.nn.Conv2d(32, 64, 3, padding=1)(torch.zeros(64, 32, 6, 7))  # begins torch's other threads
    players = [
        make_player(text, registry.of(game), seed=0, threads=2, simulations=4)
        for text in ("best@simulations=4", "best@simulations=0", "minimax:2", "solver")
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
def float64():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("library", [name for name in INFERENCES if name != "auto"])
@pytest.mark.parametrize(
    "chosen", [torch.no_grad, torch.inference_mode, float64, lambda: torch.device("meta")],
    ids=["no_grad", "inference_mode", "float64", "device"],
)  # fmt: skip
def test_a_net_is_loaded_whatever_the_program_has_chosen_in_torch(chosen, library):
    """Notebooks turn gradients off, take float64, or put all new tensors on a GPU."""
    position = az.load_game("connect4").position("44")
    expected = az.evaluate(position, az.load_net("beginner", "connect4", inference=library))
    with chosen():
        found = az.evaluate(position, az.load_net("beginner", "connect4", inference=library))
    assert found.value == expected.value and (found.policy == expected.policy).all()


def test_a_net_is_loaded_within_autocast():
    """It answers as one that was loaded outside."""
    position = az.load_game("connect4").position("44")
    expected = az.evaluate(position, az.load_net("beginner", "connect4", inference="torch"))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        net = az.load_net("beginner", "connect4", inference="torch")
    assert az.evaluate(position, net).value == expected.value


@pytest.mark.parametrize(
    "chosen", [torch.no_grad, torch.inference_mode, float64, lambda: torch.device("meta")],
    ids=["no_grad", "inference_mode", "float64", "device"],
)  # fmt: skip
def test_a_net_learns_whatever_the_program_has_chosen_in_torch(chosen, own_folder):
    def losses() -> list[float]:
        run = az.train(
            "tictactoe", generations=1, minutes=0, net={"blocks": 1, "channels": 8}, search={"num_simulations": 4},
            self_play={"games_per_generation": 16}, gate={"enabled": False}, evaluation={"opponents": ()},
            threads=1, deterministic=True, progress=False,
        )  # fmt: skip
        return [run.metrics[0]["policy_loss"], run.metrics[0]["value_loss"]]

    expected = losses()
    with chosen():
        state = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.empty(0).dtype, torch.empty(0).device
        assert losses() == expected
        assert state == (
            torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.empty(0).dtype, torch.empty(0).device
        )  # fmt: skip
