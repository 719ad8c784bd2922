"""What a user does in ten lines: other networks, targets and players, runs that are stopped, games of a notebook."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import alphazero as az
from alphazero.api import matches as az_matches
from alphazero.training.run import TrainedRun

ROOT = Path(__file__).resolve().parents[2]
SMALL = {
    "search": {"num_simulations": 4},
    "self_play": {"games_per_generation": 16, "num_slots": 8},
    "learner": {"batch_size": 32},
    "gate": {"enabled": False},
    "evaluation": {"opponents": ()},
    "threads": 1,
    "progress": False,
}
"""Settings of a run that takes seconds."""


class Perceptron(torch.nn.Module):
    def __init__(self, game: az.Game):
        super().__init__()
        self.body = torch.nn.Linear(int(np.prod(game.observation_shape)), 32)
        self.policy, self.value = torch.nn.Linear(32, game.num_actions), torch.nn.Linear(32, 1)

    def forward(self, observations):
        features = torch.relu(self.body(observations.flatten(1)))
        return self.policy(features), torch.tanh(self.value(features)).squeeze(1)


class Transformer(torch.nn.Module):
    def __init__(self, game: az.Game):
        super().__init__()
        planes, height, width = game.observation_shape
        self.embed, self.place = torch.nn.Linear(planes, 16), torch.nn.Parameter(torch.zeros(height * width, 16))
        self.body = torch.nn.TransformerEncoderLayer(16, nhead=2, dim_feedforward=32, batch_first=True)
        self.policy, self.value = torch.nn.Linear(16, 1), torch.nn.Linear(16, 1)

    def forward(self, observations):
        squares = self.body(self.embed(observations.flatten(2).mT) + self.place)
        return self.policy(squares).squeeze(2), torch.tanh(self.value(squares.mean(dim=1))).squeeze(1)


@pytest.mark.parametrize("module", [pytest.param(Perceptron, marks=pytest.mark.slow), Transformer])
def test_any_torch_module_learns_is_saved_loaded_and_plays(module):
    run = az.train("tictactoe", net=module, generations=1, **SMALL)
    again = az.load_net(run.folder, "tictactoe", net=module)
    position = az.load_game("tictactoe").position("b2")
    assert type(run.net.module) is module
    np.testing.assert_array_equal(az.evaluate(position, again).policy, az.evaluate(position, run.net).policy)
    assert az.match(run.net, "random", "tictactoe", games=4, simulations=8, progress=False).num_games == 4


class Linear(az.NeuralNet):
    """A net of numpy alone: a softmax of one matrix, and a value of 0."""

    def __init__(self, game: az.Game):
        self.weights = np.zeros((int(np.prod(game.observation_shape)), game.num_actions), np.float32)

    def evaluate(self, observations, legal_masks):
        logits = observations.reshape(len(observations), -1) @ self.weights
        priors = np.exp(logits) * legal_masks
        return priors / priors.sum(axis=1, keepdims=True), np.zeros(len(priors), np.float32)

    def save(self, path, card):
        return az.save_checkpoint(path, {"weights": self.weights}, {**self.card, **card})

    def load(self, path):
        arrays, card = az.load_checkpoint(path)
        self.weights = arrays["weights"]
        return card

    def trainer(self, **settings):
        return LinearTrainer(self)


class LinearTrainer(az.Trainer):
    def __init__(self, net: Linear):
        self.net = net

    def train_step(self, batch, learning_rate):
        priors, _ = self.net.evaluate(batch.observations, batch.legal_masks)
        error = batch.policy_targets - priors
        self.net.weights += learning_rate * batch.observations.reshape(len(error), -1).T @ error / len(error)
        chosen = np.log(np.maximum(priors, 1e-9))
        return {"policy_loss": -(batch.policy_targets * chosen).sum(axis=1).mean(), "value_loss": 0.0}

    def save(self, path):
        return az.save_checkpoint(path, {"weights": self.net.weights}, {})

    def load(self, path):
        self.net.weights = az.load_checkpoint(path)[0]["weights"]


def test_a_net_without_torch_learns_is_saved_loaded_and_plays():
    run = az.train("tictactoe", net=Linear, generations=1, **SMALL)
    assert isinstance(run.net, Linear) and np.abs(run.net.weights).max() > 0
    again = az.load_net(run.folder, "tictactoe", net=Linear)
    np.testing.assert_array_equal(again.weights, run.net.weights)
    again.save("mine.safetensors", {"game": "tictactoe", "net": {}})
    assert az.match("random", az.load_net("mine.safetensors", "tictactoe", net=Linear), "tictactoe", games=2).games


def test_the_rows_of_a_run_settings_by_name_and_going_on():
    run = az.train("tictactoe", net={"blocks": 1, "channels": 8}, generations=1, **SMALL)
    assert run.config.net.channels == 8 and run.config.search.num_simulations == 4 and run.folder.name == "tictactoe-1"
    assert not run.stopped and "generation 1>" in repr(run)
    more = az.train("tictactoe", resume=True, generations=2, threads=1, progress=False)
    assert more.folder == run.folder and [row["generation"] for row in az.load_run(run.folder).metrics] == [1, 2]
    assert more.report().read_text().startswith("<!")
    with pytest.raises(az.errors.InputError, match="begun with threads=1 seed=0"):
        az.train("tictactoe", resume=True, seed=5, generations=3, threads=1, progress=False)
    assert az.train("tictactoe", resume=True, seed=0, generations=2, threads=1, progress=False).generation == 2


def test_a_training_is_stopped_from_another_thread_and_goes_on():
    stop = threading.Event()
    threading.Timer(1.0, stop.set).start()
    run = az.train("tictactoe", stop=stop, generations=10_000, net={"blocks": 1, "channels": 8}, **SMALL)
    done = run.generation
    assert run.stopped and len(run.metrics) == done and az.evaluate(az.load_game("tictactoe").start(), run.net)
    more = az.train("tictactoe", folder=run.folder, resume=True, generations=done + 1, threads=1, progress=False)
    assert not more.stopped and more.generation == done + 1


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> TrainedRun:
    """A run of one generation; look, do not touch."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    return az.train("tictactoe", net={"blocks": 1, "channels": 8}, generations=1, folder=folder, **SMALL)


def test_a_local_cluster_has_the_threads_of_the_run_that_goes_on(trained: TrainedRun, monkeypatch: pytest.MonkeyPatch):
    given = dict[str, Any]()
    monkeypatch.setattr("alphazero.training.run.train", lambda *_, **settings: given.update(settings))
    monkeypatch.setattr("alphazero.cluster.connection.count_cores", lambda: 7)
    az.train("tictactoe", folder=trained.folder, resume=True, cluster="local", progress=False)
    assert given["threads"] == given["cluster"]._threads == 1


def test_an_interrupted_training_is_saved_and_returned(monkeypatch):
    from alphazero.training.learner import Learner

    learn, calls = Learner.learn, []

    def interrupted(self, *arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt  # as the stop button of a notebook does
        return learn(self, *arguments)

    monkeypatch.setattr(Learner, "learn", interrupted)
    run = az.train("tictactoe", generations=5, net={"blocks": 1, "channels": 8}, **SMALL)
    assert run.stopped and run.generation == 1 and len(run.metrics) == 1 and "stopped" in repr(run)


NOTEBOOK = """
import numpy as np
import alphazero as az

def init(state):
    state[0] = 21
def legal(state, legal_mask):
    for action in range(3):
        legal_mask[action] = action < state[0]
def step(state, action):
    state[0] -= np.uint64(action + 1)
def is_terminal(state):
    return state[0] == 0
def terminal_value(state):
    return -1.0
def observe(state, planes):
    planes[0, 0, state[0]] = 1.0

class Subtraction(az.Game):
    name = "subtraction"
    num_actions, state_words, max_plies, observation_shape = 3, 1, 21, (1, 1, 22)
    rules = az.Rules(init, legal, step, is_terminal, terminal_value, observe)

def perfect(position):
    left = int(position.state[0])
    return (left - 1) % 4 if left % 4 else 0

run = az.train(
    Subtraction, generations=1, net={"blocks": 1, "channels": 8}, search={"num_simulations": 4},
    self_play={"games_per_generation": 8, "num_slots": 8}, gate={"enabled": False}, evaluation={"opponents": ()},
    threads=1,
)
found = az.search(Subtraction().position([2, 2, 2, 2, 2]), run.net, simulations=100)
print(run.generation, found.best, az.match(perfect, "random", Subtraction, games=20).losses)
"""


def test_a_game_defined_in_a_notebook_is_trained_searched_and_played(capsys):
    exec(NOTEBOOK, {"__name__": "__main__"})
    assert capsys.readouterr().out == "1 1 0\n", "generation 1; 2 of 6 are to be taken; a perfect player loses no game"


def test_a_position_at_the_end_of_its_game_is_refused():
    over = az.load_game("connect4").position("1213141")
    net = az.load_net("beginner", "connect4")
    for ask in (az.search, az.evaluate):
        with pytest.raises(az.errors.IllegalAction, match="the game is over"):
            ask(over, net)


def test_a_net_values_each_player_and_is_not_asked_about_dice():
    two, three = az.load_game("connect4"), az.load_game("tictacmo")
    opinion = az.evaluate(two.position("4"), az.load_net("beginner", two))
    assert opinion.values == (-opinion.value, opinion.value)
    opinion = az.evaluate(three.position("a1"), az.load_net("best", three))
    assert len(opinion.values) == 3 and opinion.value == opinion.values[1]
    dice = az.load_game("pig")
    with pytest.raises(az.errors.IllegalAction, match="a die is due"):
        az.evaluate(dice.position("roll"), az.load_net("best", dice))


def test_contestants_of_every_kind_and_games_that_can_be_replayed():
    game = az.load_game("connect4")
    net = az.load_net("beginner", game)
    result = az.match(net, lambda position: position.legal_actions[0], game, games=6, simulations=8)
    assert (result.wins, result.draws, result.losses) == (6, 0, 0) and result.score == 1.0
    low, high = result.interval
    assert low < 1.0 == high and result.elo > result.elo_interval[0] > -400
    for number, record in enumerate(result.games):
        end = record.positions(game)[-1]
        assert end.terminal and end.outcome == (1 if number % 2 == 0 else -1)
        assert record.contestants[number % 2] == "net"
    same = az.match("beginner", lambda position: position.legal_actions[0], game, games=6, simulations=8)
    assert [record.moves for record in same.games] == [record.moves for record in result.games]
    assert "wins            6" in str(result) and repr(result).startswith("<Match of net against <lambda>: 6 wins")


def test_games_with_a_human_begin_at_the_start(monkeypatch: pytest.MonkeyPatch):
    """So `undo` takes back moves of the human, and no random ones."""
    squares = [column + row for row in "123" for column in "abc"]
    answers = iter(["undo", squares[0], *squares, "undo", *squares * 20])
    monkeypatch.setattr("builtins.input", lambda prompt: next(answers))
    result = az.match("greedy", "human", "tictactoe", games=2)
    assert result.opening_plies == 0 and result.openings == "none"
    assert all(record.opening == () and len(record.moves) >= 5 for record in result.games)
    assert "Every game begins at the start position" in str(result)


def test_a_match_with_a_human_is_short_shows_its_ends_and_keeps_the_games_that_are_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    answers = ["a1", "b1", "a2", "b2", "a3"]
    monkeypatch.setattr("builtins.input", lambda prompt, given=answers * 2: given.pop(0))
    result = az.match("human", "human", "tictactoe", progress=True)
    shown, errors = capsys.readouterr()
    assert (result.wins, result.losses) == (1, 1) and result.contestants == ("human (first)", "human (second)")
    assert "1 X O .\n2 X O .\n3 X . .\n  a b c\n\nGame 2: human wins." in shown and errors == ""
    monkeypatch.setattr("builtins.input", lambda prompt, given=[*answers, "quit"]: given.pop(0))
    assert len(az.match("human", "human", "tictactoe").games) == 1


class Nameless(az.Player):
    def __init__(self, game):
        self.kernels = az.Kernels(game)

    def select_actions(self, states, games, plies):
        return self.kernels.describe_all(states)[0].argmax(axis=1)


def test_an_interrupted_match_ends_what_its_engines_do(monkeypatch: pytest.MonkeyPatch):
    opened = []

    class Interrupted(Nameless):
        def select_actions(self, states, games, plies):
            raise KeyboardInterrupt

        def interrupt(self):
            opened.append(self)

    game = az.load_game("tictactoe")
    monkeypatch.setattr(az_matches, "make_player", lambda *_, **__: Interrupted(game))
    with pytest.raises(KeyboardInterrupt):
        az.match("gtp:an-engine", Interrupted(game), game)
    assert len(opened) == 1


def test_a_run_folder_is_a_contestant_as_a_path_too(trained: TrainedRun):
    result = az.match(trained.folder, trained.folder / "generation_0001.safetensors", "tictactoe", games=2)
    assert result.contestants[0] == str(trained.folder) and len(result.games) == 2
    with az.play_web(trained.folder, "tictactoe", port=0, wait=False) as page:
        assert page.port


def test_library_calls_print_nothing(capfd):
    az.match("mcts:4", "random", "tictactoe", games=4)
    az.check_game("tictactoe", games=5)
    az.train("tictactoe", net={"blocks": 1, "channels": 8}, generations=1, **SMALL | {"progress": None})
    assert capfd.readouterr() == ("", "")
