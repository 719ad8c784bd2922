"""Published files of games with dice, for one and for three: the server's answers, and the processor's searches."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch

import alphazero as az
from alphazero.catalogue import registry
from alphazero.commands.rules import new
from alphazero.commands.shared import run_command
from alphazero.game.kernels import Kernels
from alphazero.game.record import record_of
from alphazero.nets.any_module import to_priors
from alphazero.nets.resnet import NetConfig, ResNet
from alphazero.nets.torch_net import TorchNet
from alphazero.players.contestants import make_player
from alphazero.search.analysis import search_position
from alphazero.search.evaluator import Evaluator
from alphazero.search.mcts import SearchConfig
from alphazero.wasm import dice_looks, looks
from alphazero.wasm.looks import Looks, facts, some_positions
from alphazero.web.one_file import make_file
from tests.wasm.engines import needs_node
from tests.wasm.published import ask, on_server, small_net, small_page

pytestmark = needs_node
each_game = pytest.mark.parametrize(
    "name", ["pig", *(pytest.param(name, marks=pytest.mark.slow) for name in ("2048", "backgammon"))]
)
each_searched = pytest.mark.parametrize("name", [*each_game.args[1], "tictacmo"])
NET = {"id": "net", "step": 25}


def some_of(name: str, count: int, seed: int = 4) -> list[list[int]]:
    """The actions of some positions of random games, an end among them."""
    positions = list(some_positions(registry.load(name).game, 600, seed))
    ends = [at for at in positions if at.terminal]
    chosen = [positions[int(i)] for i in np.random.default_rng(seed).integers(len(positions), size=count)]
    return [list(at.actions) for at in [*chosen, *ends[:2]]]


def movable(name: str, count: int) -> list[list[int]]:
    game = registry.load(name).game
    return [actions for actions in some_of(name, 3 * count) if game.position(actions).legal_mask.any()][:count]


@each_game
def test_positions_and_throws_are_the_servers(name: str):
    """Names of outcomes, what was rolled, dice that are due, points and pieces included."""
    lists = some_of(name, 40)
    questions = [{"ask": "position", "game": name, "actions": actions} for actions in lists]
    questions += [{"ask": "roll", "game": name, "actions": actions, "seed": seed} for seed, actions in enumerate(lists)]
    thrown = 0
    for question, (answer,) in zip(questions, ask(small_page(name), *questions), strict=True):
        expected = on_server(name, question)
        for told in (answer, expected):
            if "view" in told:
                told["view"]["clicks"].sort(key=str)
                told["view"]["pieces"].sort(key=lambda piece: piece["cell"])
                if registry.load(name).game.board.cells:
                    del told["view"]["text"]
                if "gained" in told["view"]:
                    told["view"]["gained"] = pytest.approx(told["view"]["gained"], abs=1e-6)
        assert answer == expected
        thrown += "view" not in answer and len(answer["actions"]) > len(question["actions"])
    assert thrown


class Rounded(az.NeuralNet):
    """A network whose weights are those of its file."""

    def __init__(self, net: TorchNet):
        self.module = net.frozen_float()
        with torch.no_grad():
            for weights in self.module.parameters():
                weights.copy_(weights.half())

    @torch.no_grad()
    def evaluate(self, observations: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logits, values = self.module(torch.from_numpy(observations.copy()))
        priors, results = logits.numpy().copy(), values.numpy().copy()
        to_priors(priors, results, legal_masks)
        return priors, results

    def save(self, path, card):
        raise NotImplementedError

    load = save


@each_searched
def test_the_file_has_the_visits_of_the_processor(name: str):
    """The same net at the same position: analyses, and moves by search."""
    loaded = registry.load(name)
    kernels, net, starts = Kernels(loaded.game), Rounded(small_net(name)), movable(name, 8)
    questions = [{"ask": "analyse", "actions": actions, "limit": 200, "fresh": True} for actions in starts]
    questions += [{"ask": "move", "actions": actions, "player": NET, "seed": 5} for actions in starts]
    answers = iter(ask(small_page(name), *questions))
    for actions in starts:
        evaluate = Evaluator(kernels, net, 0, sees_wins=True)
        config = SearchConfig(200, noise_fraction=0.0)
        report, found = next(answers)[-1], search_position(loaded.game.position(actions), evaluate, 200, config)
        assert {line["action"]: line["visits"] for line in report["lines"]} == {
            int(action): found.visits[action] for action in np.flatnonzero(found.visits)
        }
        assert report["value"] == pytest.approx(found.value, abs=1e-4)
        assert report.get("values", found.values) == pytest.approx(found.values, abs=1e-4)
        assert ("values" in report) == (loaded.game.num_players > 2)
    player = make_player(net, loaded, seed=5, simulations=25)
    for actions in starts:
        at = loaded.game.position(actions)
        assert next(answers)[-1]["action"] == chosen(player, at, 5)


def chosen(player: az.Player, at: az.Position, seed: int) -> int:
    return int(player.select_actions(at.state[None].copy(), np.array([seed]), np.array([at.ply]))[0])


@each_searched
def test_players_without_a_net_move_as_in_a_match(name: str):
    loaded, starts = registry.load(name), movable(name, 8)
    asked = [(actions, {"id": id, "step": 30}) for actions in starts for id in ("mcts", "greedy", "random")]
    questions = [{"ask": "move", "actions": actions, "player": player, "seed": 3} for actions, player in asked]
    for (actions, player), (*_, answer) in zip(asked, ask(small_page(name), *questions), strict=True):
        at, text = loaded.game.position(actions), {"mcts": "mcts:30"}.get(player["id"], player["id"])
        assert answer["action"] in at.legal_actions and answer["word"] == at.format(answer["action"])
        if text != "random":
            assert answer["action"] == chosen(make_player(text, loaded, seed=3), at, 3), (text, actions)


def test_random_plays_every_action():
    words = {answer["word"] for (answer,) in ask(small_page("pig"), *(
        {"ask": "move", "actions": [0, 3], "player": {"id": "random"}, "seed": seed} for seed in range(20)
    ))}  # fmt: skip
    assert words == {"roll", "hold"}


def test_the_die_is_fair():
    questions = [{"ask": "roll", "actions": [0], "seed": seed} for seed in range(3000)]
    shown = np.bincount([answer["actions"][1] for (answer,) in ask(small_page("pig"), *questions)], minlength=6)
    assert len(shown) == 6 and ((shown - 500) ** 2 / 500).sum() < 25.7  # chi-squared, once in 10,000


def test_a_review_asks_about_choices_alone_and_a_tree_shows_chances():
    actions = [0, 5, 0, 5, 1]
    *_, (tree,), review, (due,), (wrong,) = ask(
        small_page("pig"),
        {"ask": "analyse", "actions": [0, 4], "limit": 200, "fresh": True},
        {"ask": "tree", "path": [0]},
        {"ask": "review", "actions": actions, "player": NET, "simulations": 20},
        {"ask": "move", "actions": [0], "player": NET},
        {"ask": "position", "actions": [0, 6]},
    )
    assert [edge["word"] for edge in sorted(tree["edges"], key=lambda edge: edge["word"])] == list("123456")
    assert [edge["prior"] for edge in tree["edges"]] == pytest.approx([1 / 6] * 6)
    rows = [row for answer in review for row in answer["rows"]]
    assert [row.get("rolled", False) for row in rows] == [False, True, False, True, False, False]
    assert all(0 <= row["value"] <= 1 for row in rows)
    assert "a die is due" in due["error"] and "not legal here (legal: 1, 2, 3, 4, 5, 6)" in wrong["error"]


def test_an_analysis_goes_on_after_a_look_at_a_die():
    """The visits of outcomes are in the same array as those of actions."""
    question = {"ask": "analyse", "actions": [0, 4], "fresh": False}
    *_, (look,), (*_, report) = ask(
        small_page("pig"), {**question, "limit": 100}, {"ask": "tree", "path": [0]}, {**question, "limit": 200}
    )
    assert len(look["edges"]) == 6 and "error" not in report
    assert {line["word"] for line in report["lines"]} <= {"roll", "hold"}
    assert sum(line["visits"] for line in report["lines"]) == 200


@each_game
def test_games_are_saved_with_their_dice_and_loaded(name: str):
    game = registry.load(name).game
    actions = max(some_of(name, 30), key=len)
    ((saved,),) = ask(small_page(name), {"ask": "record", "actions": actions, "first": "You", "second": "net"})
    record = record_of(json.loads(saved["text"]), "the file")
    assert list(record.positions(game)[-1].actions) == actions
    ((loaded,),) = ask(small_page(name), {"ask": "load", "text": saved["text"]})
    assert loaded["actions"] == actions and loaded["result"] == record.result


def test_a_game_for_three_is_the_servers():
    """Winners and the values at the end, a review's values, and saved games."""
    name, ends = "tictacmo", [at for at in some_positions(registry.load("tictacmo").game, 300, 1) if at.terminal]
    won = next(at for at in ends if at.winners == (1,))
    questions = [{"ask": "position", "game": name, "actions": list(at.actions)} for at in (won, *ends[:20])]
    for question, (answer,) in zip(questions, ask(small_page(name), *questions), strict=True):
        expected = on_server(name, question)
        for told in (answer, expected):
            told["view"]["clicks"].sort(key=str)
            told["view"]["pieces"].sort(key=lambda piece: piece["cell"])
            del told["view"]["text"]
        assert answer == expected
    players = {"first": "You", "second": "net", "others": ["random"]}
    saved = {"ask": "record", "game": name, "actions": list(won.actions), **players}
    resigned = {**saved, "actions": [0], "resigned": 1, "reason": "resigns"}
    review, (record,), (given,), (game,) = ask(
        small_page(name), {"ask": "review", "actions": list(won.actions), "player": NET, "simulations": 20}, saved,
        resigned, {"ask": "game", "game": name},
    )  # fmt: skip
    for question, answer in ((saved, record), (resigned, given)):
        expected = json.loads(on_server(name, question)["text"])
        told = json.loads(answer["text"])
        assert told == {entry: expected[entry] for entry in told}
    ((loaded,),) = ask(small_page(name), {"ask": "load", "text": record["text"]})
    assert loaded["actions"] == list(won.actions) and len(loaded["contestants"]) == 3
    rows = [row for answer in review for row in answer["rows"]]
    assert rows[-1]["values"] == [-0.5, 1, -0.5] and all(len(row["values"]) == 3 for row in rows)
    assert game["seats"] == 3 and [player["id"] for player in game["players"]] == ["net", "mcts", "greedy", "random"]


def test_the_file_names_its_players_and_a_plain_game_has_none_of_it():
    ((game,), (plain,)) = (ask(small_page(name), {"ask": "game", "game": name})[0] for name in ("pig", "tictactoe"))
    assert [player["id"] for player in game["players"]] == ["net", "mcts", "greedy", "random"]
    assert [player["searches"] for player in game["players"]] == [True, False, False, False]
    assert [player["id"] for player in plain["players"]] == ["net"] and plain["seats"] == 2 and "score" not in plain
    contents = json.loads(re.findall(r'id="file">(.*?)</script>', small_page("tictactoe"), re.DOTALL)[0])
    assert set(contents["looks"]) == {field.name for field in fields(Looks)}
    assert not {"chances", "outcomes", "seed"} & set(contents["places"])


@pytest.mark.slow
def test_pieces_are_known_on_squares_where_random_games_have_none():
    """Boards full of pieces by lot, and the names of their moves, promotions too."""
    game, rng, seen = registry.load("gardner").game, np.random.default_rng(3), set[tuple[int, str, int]]()
    made, whole = dice_looks.dice_looks_of(game), 12 * 25 - 4 * 5  # a pawn stands in no outer row
    for _ in range(20_000):
        letters = rng.choice(list("11PNBRQpnbrq"), 25)
        letters[rng.choice(25, 2, False)] = "K", "k"
        board = "/".join(map("".join, letters.reshape(5, 5)))
        with contextlib.suppress(ValueError):  # no such position
            at = game.read_board(f"{board} {'wb'[int(rng.integers(2))]}")
            if not at.terminal:
                assert looks.told(made, at) == facts(at), board
                seen |= {(piece.cell, piece.shape, piece.player) for piece in game.pieces(at)}
        if len(seen) == whole:
            return
    pytest.fail(f"{whole - len(seen)} pieces were never there")


@pytest.mark.slow
@pytest.mark.parametrize("flag", ["--dice", "--solo", "--players=3"])
def test_a_game_of_ones_own_is_published(flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert run_command(new.main, ["my_game", flag]) == 0
    loaded = registry.load("my_game.py")
    config = NetConfig(blocks=1, channels=8, head_channels=4, value_hidden=8)
    shape, num_actions, num_values = loaded.game.observation_shape, loaded.game.num_actions, loaded.game.num_values
    net = TorchNet(loaded.game, ResNet(shape, num_actions, config, num_values))
    page = make_file(loaded, net, "net", {}, "my_game.py")
    at = loaded.game.start()
    while not at.terminal:
        ((told,),) = ask(page, {"ask": "position", "actions": list(at.actions)})
        assert told["view"]["text"] == ("" if loaded.game.board.cells else str(at))
        at = at.play(at.legal_actions[len(at.actions) % len(at.legal_actions)])
    ((end,),) = ask(page, {"ask": "position", "actions": list(at.actions)})
    assert end["view"]["outcome"] == at.outcome and end["view"]["winners"] == list(at.winners)
    assert ("points" in end["view"]) == (flag == "--solo")
