"""Wrong arguments of the library's functions get one sentence, in the words of Python."""

import io
import multiprocessing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

import alphazero as az
from alphazero.errors import InputError
from alphazero.storage.checkpoint import read_card

TICTACTOE = az.load_game("tictactoe")


def uniform(states, legal_masks):
    return legal_masks.astype(np.float32), np.zeros(len(states), np.float32)


class Tiny(torch.nn.Module):
    """A network of somebody's own."""

    def __init__(self, game):
        super().__init__()
        planes, height, width = game.observation_shape
        self.layer = torch.nn.Linear(planes * height * width, game.num_actions + 1)

    def forward(self, observations):
        answer = self.layer(observations.flatten(1))
        return answer[:, :-1], torch.tanh(answer[:, -1])


def tiny_net() -> az.TorchNet:
    return az.TorchNet(TICTACTOE, Tiny(TICTACTOE))


@dataclass(frozen=True)
class Frozen(az.Player):
    """A player that says no name, and that nobody can give one."""

    def select_actions(self, states, games, plies):
        return az.Kernels(TICTACTOE).describe_all(states)[0].argmax(axis=1)


class OneArgument(az.NeuralNet):
    def evaluate(self, observations):
        return uniform(observations, None)

    def save(self, path, card):
        return {}

    def load(self, path):
        return {}


class NoArgument(az.Player):
    def select_actions(self):
        return np.zeros(1, np.int64)


class NoEvent:
    def is_set(self, when):
        return False


def last(weight, position):
    return position.legal_actions[-1]


SMALL = {
    "generations": 1, "search": {"num_simulations": 4}, "gate": {"enabled": False}, "evaluation": {"opponents": ()},
    "self_play": {"games_per_generation": 8, "num_slots": 4}, "progress": False,
}  # fmt: skip


def test_a_process_that_imports_an_unguarded_script_trains_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(multiprocessing.current_process(), "_inheriting", True, raising=False)
    with pytest.raises(InputError, match='put the call below `if __name__ == "__main__":`'):
        az.train("tictactoe", **SMALL)
    assert not list(tmp_path.iterdir())


def test_a_process_of_a_pool_that_may_start_no_process_is_told_so(tmp_path, monkeypatch):
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)  # as those of multiprocessing.Pool
    with pytest.raises(InputError, match=r"^this run plays in .* take threads=1, or concurrent.futures"):
        az.train(
            Path(__file__).parents[1] / "catalogue" / "general_games.py:TicTacToeGame", threads=2,
            self_play={"games_per_generation": 8}, folder=tmp_path / "run", progress=False,
        )  # fmt: skip
    assert not (tmp_path / "run").exists()


SEARCHES = {
    "number to parse": (lambda: TICTACTOE.start().parse(4), r"^position.parse takes a text, not 4: "),
    "game": (lambda: az.search(TICTACTOE, uniform), "a search takes a Position, .*not a TicTacToe"),
    "net's name": (lambda: az.search(TICTACTOE.start(), "best"), "takes a NeuralNet, .* not 'best': az.load_net"),
    "module": (lambda: az.search(TICTACTOE.start(), Tiny(TICTACTOE)), r"(?s)not Tiny.*az.TorchNet\(game, module\)"),
    "another game's net": (
        lambda: az.search(TICTACTOE.start(), az.load_net("best", "connect4")), "a net for connect4, not for tictactoe",
    ),
    "seed": (lambda: az.search(TICTACTOE.start(), uniform, seed="x"), "seed must lie between 0 and .* not 'x'"),
}  # fmt: skip
MATCHES = {
    "simulations": (lambda: az.match("random", "random", TICTACTOE, simulations=-1), "^simulations must lie between"),
    "games": (lambda: az.match("random", "random", TICTACTOE, games=2.5), "the number of games must be a whole number"),
    "openings": (
        lambda: az.match("random", "random", TICTACTOE, openings=None),
        "unknown kind of openings 'None'; did you mean 'none'",
    ),
    "a folder's path": (
        lambda: az.match(Path("random"), "random", TICTACTOE), r"^'\./random' is no file or folder here",
    ),
}  # fmt: skip

WITH_POSITION = r"^the function of a player is called with \(position\), which "
FUNCTIONS = {
    "another program's agent": (
        lambda: az.match(lambda observation, configuration: 0, "random", TICTACTOE),
        WITH_POSITION + r"<lambda>\(observation, configuration\) does not take: missing .* 'configuration'$",
    ),
    "a page's": (
        lambda: az.play_web(lambda a, b: 0, TICTACTOE, port=0, wait=False), WITH_POSITION + r"<lambda>\(a, b\) does",
    ),
    "a Player": (
        lambda: az.match(NoArgument(), "random", TICTACTOE),
        r"^NoArgument.select_actions is called with \(states, games, plies\), which select_actions\(\) does not take",
    ),
    "a NeuralNet": (
        lambda: az.match(OneArgument(), "random", TICTACTOE),
        r"^OneArgument.evaluate is called with \(observations, legal_masks\), which evaluate\(observations\) does",
    ),
    "a search's": (
        lambda: az.search(TICTACTOE.start(), lambda states: 0),
        r"^the evaluate of a search is called with \(states, legal_masks\), which <lambda>\(states\) does not take",
    ),
    "a net's": (lambda: az.train("tictactoe", net=lambda: 0), r"^net is called with \(game\), which <lambda>\(\) does"),
    "no net": (
        lambda: az.train("tictactoe", net=lambda game: None),
        "<lambda> must return a NeuralNet or a torch module, not None$",
    ),
    "a loaded net's": (lambda: az.load_net("best", "connect4", net=5), r"^net must be a function of \(game\), not 5$"),
    "a loaded module": (
        lambda: az.load_net("best", "connect4", net=Tiny(TICTACTOE)), "give its class, as net=Tiny",
    ),
    "targets": (
        lambda: az.train("tictactoe", value_targets=lambda games: games.z),
        r"^value_targets is called with \(games, settings\), which <lambda>\(games\) does not take",
    ),
    "progress": (lambda: az.train("tictactoe", progress=print), "^progress must be True, False or None, not <built-in"),
}  # fmt: skip
OTHERS = {
    "a player's class": (
        lambda: az.match(Frozen, "random", TICTACTOE),
        r"^a contestant is .* not <class .*Frozen",
    ),
    "no number": (
        lambda: az.SearchConfig(c_puct=None),
        "^search setting c_puct must lie between 0 and 1,000, not None$",
    ),
    "no module": (lambda: az.TorchNet(TICTACTOE, None), "^az.TorchNet takes a Game and a torch module, .* a NoneType$"),
    "evaluate": (lambda: az.evaluate("4453", az.load_net("best", "connect4")), "takes a Position and .* not a str"),
}
TRAININGS = {
    "minutes": (
        lambda: az.train("tictactoe", minutes=1, deterministic=True), "^deterministic and minutes exclude each other",
    ),
    "a setting": (lambda: az.train("tictactoe", minuts=3), "setting of az.train 'minuts'; did you mean 'minutes'"),
    "no run": (lambda: az.train("tictactoe", resume=True), "no run of tictactoe .* name its folder by folder$"),
    "preset": (lambda: az.train("tictactoe", preset=[]), r"^preset is the name of a preset .*, not \[\]$"),
    "a network": (
        lambda: az.train("tictactoe", net=Tiny(TICTACTOE)), "makes a new network.*: give its class, as net=Tiny",
    ),
    "a preset beside resume": (
        lambda: az.train("tictactoe", "quick", resume=True), "its own settings: leave preset out when you use resume",
    ),
    "a folder to resume": (
        lambda: az.train("tictactoe", resume="old"), "^resume must be True or False, not 'old'",
    ),
    "stop": (lambda: az.train("tictactoe", stop=True), r"^stop must be a threading.Event\(\), .*, not True$"),
    "cluster": (lambda: az.train("tictactoe", cluster=5), "^cluster must be 'auto', 'local' or 'HOST:PORT', not 5$"),
}  # fmt: skip


CASES = [case for cases in (SEARCHES, FUNCTIONS, OTHERS, MATCHES, TRAININGS) for case in cases.values()]


@pytest.mark.parametrize("function", [partial(last, 1), lambda *all: last(1, *all)], ids=["part", "any arguments"])
def test_a_function_that_takes_a_position_plays_whatever_else_it_takes(function):
    assert len(az.match(function, "random", TICTACTOE, games=2).games) == 2


@pytest.mark.parametrize("targets", ["a", [[1], [1, 2]]], ids=["text", "ragged"])
def test_targets_that_are_no_numbers_are_one_sentence(targets, own_folder: Path):
    with pytest.raises(InputError, match="^the value target gave .* for each ply"):
        az.train("tictactoe", value_targets=lambda games, settings: targets, **SMALL)


@pytest.mark.parametrize(("call", "message"), CASES, ids=lambda case: "")
def test_one_sentence_names_the_argument(call, message: str, own_folder: Path):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "--" not in str(caught.value) and "\n" not in str(caught.value)
    assert list(own_folder.iterdir()) == [], "a mistake leaves no run behind"


def test_a_human_without_a_terminal_is_one_sentence(monkeypatch: pytest.MonkeyPatch):
    for stdin, said in (
        (io.StringIO(""), "a human types"),
        (io.StringIO("quit\n"), "has left"),
        (None, "a human types"),
    ):
        monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(InputError, match=said):
            az.match("human", "random", "tictactoe")


def test_a_run_of_ones_own_net_is_opened_in_python(own_folder: Path):
    run = az.train("tictactoe", folder="mine", net=Tiny, **SMALL)
    assert read_card(run.folder / "generation_0001.safetensors")["made_by"] == "Tiny" and run.net
    for text in ("mine", "mine:1", "mine/generation_0001.safetensors"):
        with pytest.raises(InputError, match=r"made by the function Tiny, .* az.load_run\(folder, net=...\)"):
            az.match(text, "random", "tictactoe", games=2)
    with pytest.raises(InputError, match="made by the function Tiny"):
        _ = az.load_run("mine").net
    again = az.load_run("mine", net=Tiny)
    assert len(az.match(again.net, "random", "tictactoe", games=4, simulations=4).games) == 4
    with pytest.raises(InputError, match="mine already holds a run; add resume=True to go on"):
        az.train("tictactoe", folder="mine", net=Tiny, **SMALL)
    with pytest.raises(InputError, match="mine is a run of 'tictactoe', not of 'connect4'"):
        az.load_run("mine", "connect4")
    with pytest.raises(InputError, match="nowhere does not exist; name the folder of a run"):
        az.load_run("nowhere", "tictactoe")
    more = {"folder": "mine", "resume": True, "generations": 2, "progress": False}
    with pytest.raises(InputError, match=r"Tiny: go on .* az.train\(..., net=Tiny, res"):
        az.train("tictactoe", **more)
    assert az.train("tictactoe", net=Tiny, **more).generation == 2
    with pytest.raises(InputError, match="made by the function Tiny, which no text can name"):
        az.train("tictactoe", folder="next", initial_net="mine", **SMALL)
    assert az.train("tictactoe", folder="next", net=Tiny, initial_net="mine", **SMALL).generation == 1


def results(games, settings):
    return games.z


def test_a_run_with_value_targets_of_ones_own_does_not_go_on_without_them(own_folder: Path):
    az.train("tictactoe", folder="mine", value_targets=results, **SMALL)
    more = {"folder": "mine", "resume": True, "generations": 2, "progress": False}
    sentence = r"value_targets .*: go on .* az.train\(..., value_targets=results, res"
    with pytest.raises(InputError, match=sentence):
        az.train("tictactoe", **more)
    assert az.train("tictactoe", value_targets=results, **more).generation == 2


def test_numpy_says_whether_to_resume(own_folder: Path):
    run = az.train("tictactoe", folder="mine", resume=np.bool_(False), stop=multiprocessing.Event(), **SMALL)
    assert run.generation == 1


def test_a_player_that_cannot_be_changed_is_named_by_its_class():
    assert az.match(Frozen(), "random", "tictactoe", games=2).contestants == ("Frozen", "random")
