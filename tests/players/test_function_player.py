"""Functions of somebody else's as players: what they see, what they choose, and what is wrong with them."""

import numpy as np
import pytest
import torch

from alphazero.catalogue import registry
from alphazero.commands import pit
from alphazero.commands.shared import run_command
from alphazero.errors import IllegalAction, InvalidSetting
from alphazero.game.kernels import Kernels
from alphazero.matches.arena import Arena
from alphazero.nets.resnet import make_net
from alphazero.players.contestants import make_player
from alphazero.players.function_player import LogitsPlayer, find_function
from alphazero.players.net_players import PolicyPlayer, SearchPlayer
from alphazero.players.player import BEST

TIC_TAC_TOE = registry.load("tictactoe")
POLICIES = """
import numpy as np
import torch

def prefer_last(observations):
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
def two_arguments(a, b): return a
number = 5
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "my:policies@home.py"  # signs of the grammar
    path.write_text(POLICIES)
    return path


def open_function(file, name, settings=""):
    return make_player(f"python:{file}:{name}{settings}", TIC_TAC_TOE, seed=1, threads=2)


def choose(player, *texts):
    positions = [TIC_TAC_TOE.game.position(text) for text in texts]
    plies = np.array([position.ply for position in positions])
    states = np.stack([position.state for position in positions])
    return player.select_actions(states, np.arange(len(positions)), plies).tolist()


@pytest.mark.parametrize("name", ["prefer_last", "as_numpy", "halves"])
def test_the_legal_action_of_highest_logit_is_played(file, name):
    assert choose(open_function(file, name), "", "c3", "c3 b3", "c3 b3 a3 c2") == [8, 7, 6, 4]


def test_it_sees_a_batch_of_boards():
    seen = []

    def prefer_last(observations):
        seen.append(observations)
        return np.tile(np.arange(9.0), (len(observations), 1))

    player = LogitsPlayer("last", Kernels(TIC_TAC_TOE.game), prefer_last, 1, BEST)
    assert choose(player, "a1 b2", "") == [8, 8]
    (seen,) = seen
    positions = [TIC_TAC_TOE.game.position(text) for text in ("a1 b2", "")]
    assert isinstance(seen, torch.Tensor) and seen.dtype == torch.float32
    assert np.array_equal(seen.numpy(), np.stack([position.observation for position in positions]))


def test_a_policy_that_masks_by_itself(file):
    assert choose(open_function(file, "masked"), "", "a1") == [4, 4]


def test_a_torch_module_answers_alike_alone_and_in_a_batch(file):
    player, texts = open_function(file, "net"), ["", "a1", "a1 b2", "c3 b3", "b2 a1 c3"]
    assert choose(player, *texts) == [choose(player, *[text] * (i + 1))[i] for i, text in enumerate(texts)]
    assert not find_function(f"{file}:net").training


def test_the_temperature_draws_by_the_softmax(file):
    chosen = choose(open_function(file, "two_to_one", "@temperature=1"), *[""] * 3000)
    assert set(chosen) == {0, 1} and chosen.count(0) / 3000 == pytest.approx(2 / 3, abs=0.03)


@pytest.mark.parametrize("temperature", [1, 3, 10, 100])
def test_an_action_that_the_policy_rules_out_is_never_drawn(file, temperature):
    assert set(choose(open_function(file, "masked", f"@temperature={temperature}"), *[""] * 1000)) == {4}


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
        ("wrong_shape", "1 boards x 9 actions, and gave float64 of shape (1, 8)"),
        ("a_pair", "gave tuple"),
        ("words", "gave <U1"),
        ("nan", "gave no finite logit"),
        ("infinite", "gave no finite logit"),
        ("nothing", "gave no finite logit"),
        ("broken", "TypeError"),
        ("leaves", "SystemExit"),
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
        ("python:json.nothing:f", "cannot be used until this error is fixed: ModuleNotFoundError"),
        ("python:json:lods", "did you mean 'loads'?"),
        ("python:FILE:number", "unknown function in"),
        ("python:FILE:Net", "unknown function in"),
        ("python:FILE:two_arguments", "is called with (observations), which two_arguments(a, b) does not take"),
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


def match(function, num_games=2):
    players = make_player(function, TIC_TAC_TOE), make_player("random", TIC_TAC_TOE)
    return Arena(Kernels(TIC_TAC_TOE.game), *players, num_games, seed=2).play()


def test_it_knows_the_history_of_every_game_of_a_match_side_by_side():
    asked = []

    def remember(position):
        asked.append(position)
        return np.int64(position.legal_actions[-1])

    result = match(remember, 6)
    for position in asked:
        assert any(actions[: position.ply] == position.actions for actions in result.actions)
        again = TIC_TAC_TOE.game.position(position.actions)
        assert again.state.tobytes() == position.state.tobytes() and again.to_play == position.to_play
        assert position.legal_actions[-1] in {
            actions[position.ply] for actions in result.actions if len(actions) > position.ply
        }
    assert len(asked) == result.moves[0] and result.seconds[0] > 0


def test_it_answers_single_positions_without_their_history():
    seen = []

    def remember(position):
        seen.append((position.to_play, position.actions))
        return position.legal_actions[0]

    assert choose(make_player(remember, TIC_TAC_TOE), "a1", "a1 b2 c3 b1") == [1, 2]
    assert seen == [(1, ()), (0, ())]


@pytest.mark.parametrize(("answer", "said"), [(None, "None"), ("a1", "'a1'"), (0.0, "0.0"), (9, "9"), (-1, "-1")])
def test_a_wrong_action_of_a_function_is_named(answer, said):
    def wrong(position):
        return answer

    with pytest.raises(IllegalAction, match=f"^wrong returned {said}, .* not a legal action"):
        match(wrong)


def test_an_error_of_a_function_is_raised_as_it_is():
    with pytest.raises(KeyError):
        match(lambda position: {}["nothing"])


def test_a_player_is_made_of_what_stands_for_one():
    player = make_player("greedy", TIC_TAC_TOE)
    assert make_player(player, TIC_TAC_TOE) is player
    net = make_net(TIC_TAC_TOE.game, {"blocks": 1, "channels": 8})
    searching, alone = make_player(net, TIC_TAC_TOE, simulations=10), make_player(net, TIC_TAC_TOE, simulations=0)
    assert isinstance(searching, SearchPlayer) and searching.num_simulations == 10
    assert isinstance(alone, PolicyPlayer)
    assert choose(searching, "a1")[0] in range(1, 9) and choose(alone, "a1")[0] in range(1, 9)
    for wrong in (5, torch.nn.Linear(2, 2)):
        with pytest.raises(InvalidSetting, match="a contestant is a text"):
            make_player(wrong, TIC_TAC_TOE)
