"""Functions of somebody else's as players: what they see, what they choose, and what is wrong with them."""

import numpy as np
import pytest
import torch

from alphazero.commands import pit
from alphazero.commands.shared import run_command
from alphazero.game import registry
from alphazero.players.contestants import open_contestant

TIC_TAC_TOE = registry.load("tictactoe")
POLICIES = """
import numpy as np
import torch

seen = []

def prefer_last(observations):
    seen.append(observations)
    return torch.arange(9.0).expand(len(observations), 9)

def as_numpy(observations):
    return np.tile(np.arange(9), (len(observations), 1))

def halves(observations):
    return prefer_last(observations).to(torch.bfloat16)

def masked(observations):
    logits = torch.full((len(observations), 9), -torch.inf)
    logits[:, 4] = 0.0
    return logits

def two_to_one(observations):
    logits = torch.full((len(observations), 9), -1e9)
    logits[:, 0], logits[:, 1] = 0.6931471805599453, 0.0
    return logits

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.linear = torch.nn.BatchNorm2d(2), torch.nn.Linear(18, 9)
    def forward(self, x):
        return self.linear(self.norm(x).flatten(1))

torch.manual_seed(0)
net = Net()

def wrong_shape(observations): return torch.zeros(len(observations), 8)
def a_pair(observations): return torch.zeros(len(observations), 9), torch.zeros(len(observations))
def words(observations): return np.full((len(observations), 9), "x")
def nan(observations): return torch.full((len(observations), 9), torch.nan)
def infinite(observations): return torch.full((len(observations), 9), torch.inf)
def nothing(observations): return torch.full((len(observations), 9), -torch.inf)
def broken(observations): return observations / {}
def leaves(observations): raise SystemExit(0)
number = 5
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "my:policies@home.py"  # signs of the grammar
    path.write_text(POLICIES)
    return path


def open_function(file, name, settings=""):
    return open_contestant(f"python:{file}:{name}{settings}", TIC_TAC_TOE, seed=1, threads=2)


def choose(player, *texts):
    positions = [TIC_TAC_TOE.game.position_from_text(text) for text in texts]
    plies = np.array([position.ply for position in positions])
    states = np.stack([position.state for position in positions])
    return player.select_actions(states, np.arange(len(positions)), plies).tolist()


@pytest.mark.parametrize("name", ["prefer_last", "as_numpy", "halves"])
def test_the_legal_action_of_highest_logit_is_played(file, name):
    assert choose(open_function(file, name), "", "c3", "c3 b3", "c3 b3 a3 c2") == [8, 7, 6, 4]


def test_it_sees_a_batch_of_boards(file):
    player = open_function(file, "prefer_last")
    choose(player, "a1 b2", "")
    (seen,) = player._evaluates[0]._function.__globals__["seen"]
    positions = [TIC_TAC_TOE.game.position_from_text(text) for text in ("a1 b2", "")]
    assert isinstance(seen, torch.Tensor) and seen.dtype == torch.float32
    assert np.array_equal(seen.numpy(), np.stack([position.observation for position in positions]))


def test_a_policy_that_masks_by_itself(file):
    assert choose(open_function(file, "masked"), "", "a1") == [4, 4]


def test_a_torch_module_answers_alike_alone_and_in_a_batch(file):
    player, texts = open_function(file, "net"), ["", "a1", "a1 b2", "c3 b3", "b2 a1 c3"]
    assert choose(player, *texts) == [choose(player, *[text] * (i + 1))[i] for i, text in enumerate(texts)]
    assert not player._evaluates[0]._function.training


def test_the_temperature_draws_by_the_softmax(file):
    chosen = choose(open_function(file, "two_to_one", "@temperature=1"), *[""] * 3000)
    assert set(chosen) == {0, 1} and chosen.count(0) / 3000 == pytest.approx(2 / 3, abs=0.03)


def test_it_has_no_opinion_of_values(file):
    player, start = open_function(file, "masked"), TIC_TAC_TOE.game.start()
    found = player.assess(start.state[None], np.array([0]), np.array([0]))
    assert found.values is None and found.policy is not None and found.policy[0, 4] == pytest.approx(1.0)


def test_a_dotted_module(file, monkeypatch):
    loaded = file.parent / "my_package"
    loaded.mkdir()
    (loaded / "__init__.py").touch()
    (loaded / "nets.py").write_text(POLICIES)
    monkeypatch.syspath_prepend(file.parent)
    assert choose(open_function("my_package.nets", "prefer_last"), "c3") == [7]
    assert choose(open_function(loaded / "nets.py", "prefer_last"), "c3") == [7]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wrong_shape", "must give logits as an array or tensor of 1 boards x 9 actions, and gave an array of float64"),
        ("a_pair", "and gave a tuple"),
        ("words", "and gave an array of <U1"),
        ("nan", "gave no finite logit for the legal actions of board 0"),
        ("infinite", "gave no finite logit"),
        ("nothing", "gave no finite logit"),
        ("broken", "cannot be used until this is mended: TypeError"),
        ("leaves", "cannot be used until this is mended: SystemExit"),
    ],
)
def test_a_wrong_answer_is_said_in_one_sentence(file, name, message, capsys):
    assert run_command(pit.main, [f"python:{file}:{name}", "random", "--game", "tictactoe"]) == 2
    shown, errors = capsys.readouterr()
    assert shown == "" and errors.count("\n") == 1 and message in errors and f"policies@home.py:{name} " in errors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("python", "python takes a module and a function in it, not ''"),
        ("python:json", "python takes a module and a function in it, not 'json'"),
        ("python:none.py:f", "there is no Python file 'none.py'"),
        ("python:no_such_module:f", "there is no module 'no_such_module'"),
        ("python:json.nothing:f", "cannot be used until this is mended: ModuleNotFoundError"),
        ("python:json:lods", "did you mean 'loads'?"),
        ("python:FILE:number", "unknown function in"),
        (
            "python:FILE:net@simulations=5",
            "unknown setting 'simulations' (allowed: final_temperature, temperature, temperature_plies)",
        ),
        ("python:FILE:net@temperature=-1", "the temperature must lie between 0 and 100, not -1"),
    ],
)
def test_a_wrong_name_is_said_in_one_sentence(file, text, message, capsys):
    assert run_command(pit.main, [text.replace("FILE", str(file)), "random", "--game", "tictactoe"]) == 2
    shown, errors = capsys.readouterr()
    assert shown == "" and errors.count("\n") == 1 and message in errors


def test_a_file_that_cannot_be_imported(tmp_path, capsys):
    (tmp_path / "bad.py").write_text("x = 1\nx.y\n")
    assert run_command(pit.main, [f"python:{tmp_path}/bad.py:f", "random"]) == 2
    assert "AttributeError" in (said := capsys.readouterr().err) and "bad.py, line 2" in said
