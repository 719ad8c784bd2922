"""Texts of moves and boards at the page: what the engine makes of them."""

import json

import pytest

from alphazero.catalogue import registry
from alphazero.errors import InputError
from alphazero.players.gtp_player import GtpPlayer
from alphazero.web.engine import Engine, Stage
from tests.web.test_engine import ask, search


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(Stage("connect4", registry.load("connect4"), ["beginner"], device="cpu"))


@pytest.fixture(scope="module")
def small() -> Engine:
    return Engine(Stage("tictactoe", registry.load("tictactoe"), device="cpu"))


def test_passes_are_put_in_and_boards_are_set_up(engine):
    found = ask(engine, "position", game="othello", moves="d3c3e6d2d1e1b2c1a3")
    assert found["words"][-2:] == ["pass", "a3"] and found["set_up"] is False
    board = ask(engine, "position", game="connect4", moves="7/7/7/7/3O3/\n2OXX2")
    assert board["actions"] == [] and board["set_up"] is True and len(board["view"]["pieces"]) == 4
    fields = {"game": "connect4", "board": "7/7/7/7/3O3/2OXX2"}
    typed = ask(engine, "position", **fields, moves="4 4")
    assert typed["actions"] == [3, 3] and typed["movers"] == [0, 1] and typed["set_up"] and typed["view"]["last"]
    assert ask(engine, "position", **fields, actions=[3, 3]) == typed
    exact = ask(engine, "oracle", **fields, actions=[])
    assert exact == ask(engine, "oracle", game="connect4", actions=[3, 3, 4, 2])
    reviewed = search(engine, "review", **fields, actions=[3, 3])
    assert len(reviewed) == 3 and reviewed[0]["rows"][0]["results"] == exact["results"]
    for text, words in (("7/7/7/7/7/3XX2", "no board of connect4"), ("4453", "is no board")):
        with pytest.raises(InputError, match=words):
            ask(engine, "position", game="connect4", board=text, actions=[])


def test_a_game_that_began_from_a_board_is_saved_with_it(engine):
    board = "7/7/7/7/3O3/2OXX2"
    text = ask(engine, "record", game="connect4", board=board, actions=[3], first="a", second="b")["text"]
    found = ask(engine, "load", text=text)
    assert found["board"] == board and found["actions"] == [3]
    moves = json.dumps({**json.loads(text), "board": "44"})  # no board: the record begins behind these moves
    assert (found := ask(engine, "load", text=moves))["board"] == "" and found["actions"] == [3, 3, 3]


@pytest.mark.parametrize(
    ("game", "suffix", "fields", "part"),
    [
        ("chess", ".pgn", {"moves": "e2e4 e7e5 g1f3"}, "1. e4 e5 2. Nf3"),
        ("gardner", ".pgn", {"board": "rnbqk/ppppp/5/PPPPP/RNBQK b", "actions": []}, "SetUp"),
        ("go9", ".sgf", {"moves": "E5 C3 pass"}, "SZ[9]"),
        ("othello", ".ggf", {"moves": "f5d6"}, "Othello"),
    ],
)
def test_games_are_kept_in_files_of_other_programs(engine, game, suffix, fields, part):
    assert suffix in ask(engine, "game", game=game)["formats"]
    text = ask(engine, "record", game=game, first="a", second="b", name=suffix, **fields)["text"]
    assert part in text
    (line,) = ask(engine, "load", text=text, name=suffix)["lines"]
    there, back = ask(engine, "position", game=game, **fields), ask(engine, "load", text=line)
    assert (back["game"], back["actions"]) == (game, there["actions"])
    assert back["contestants"] == ["a", "b"] and bool(back["board"]) == there["set_up"]


def test_files_that_are_no_games_get_a_sentence(engine):
    assert ask(engine, "game", game="connect4")["formats"] == []
    (line,) = ask(engine, "load", text="1. e4 e5 2. Ke4", name=".pgn")["lines"]
    for text, name in (("no game", ".sgf"), ("(;GM[1]SZ[99];B[zz])", ".sgf"), (line, ""), ("(;GM[9])", ".sgf")):
        with pytest.raises(InputError):
            for one in ask(engine, "load", text=text, name=name).get("lines", ()):
                ask(engine, "load", text=one)


def test_an_engine_that_follows_games_is_not_asked_about_a_board():
    player = object.__new__(GtpPlayer)
    player.name = "gtp:engine"
    with pytest.raises(InputError, match="follows games from their start"):
        player.choose(registry.load("connect4").game.position("7/7/7/7/3O3/2OXX2"), 0)


def test_two_boards_without_moves_have_trees_of_their_own(small):
    viewer, fields = object(), {"game": "tictactoe", "player": {"id": "mcts"}, "side": 0, "actions": []}
    for board, win in (("XX./OO./...", "c1"), ("X../OO./X..", None)):
        report = search(small, "analyse", viewer, board=board, limit=300, **fields)[-1]
        assert report["lines"][0]["word"] == (win or "c2")
        assert report["simulations"] <= 310
