"""A word of two thousand characters is not repeated in the sentence that answers it."""

import pytest

import alphazero as az
from alphazero.commands import program
from alphazero.errors import InputError, listed, quote, shorten

LONG = "x" * 1000 + "\x1b[31m" + "y" * 1000
LONGEST_SENTENCE = 700
"""Characters: room for one of our own lists."""


def test_long_texts_lose_their_middle():
    assert shorten("a" * 80) == "a" * 80
    assert shorten("a" * 50 + "b" * 31) == "a" * 50 + "b" + "..." + "b" * 26
    assert [len(shorten(LONG, most)) for most in (20, 80, 200)] == [20, 80, 200]


def test_quoted_texts_have_one_line_and_no_control_characters():
    assert quote("a\nb\x1b[31m\u202e") == r"'a\nb\x1b[31m\u202e'"
    assert len(quote(LONG)) == 80 and quote(3.5) == "3.5"


def test_long_lists_lose_their_middle():
    assert listed(range(40)) == ", ".join(map(str, range(40)))
    assert listed(range(50), 5) == "0, 1, 2, ..., 49 (50 in all)"


COMMANDS = {
    "command": "LONG",
    "contestant": "pit LONG random",
    "path": "pit LONG/LONG random",
    "setting": "pit mcts:10@LONG=3 random",
    "value": "pit mcts:10@c_puct=LONG random",
    "argument": "pit mcts:LONG random",
    "depth": f"pit minimax:{'9' * 2000} random",
    "module": "pit python:LONG:f random",
    "module's path": "pit python:LONG.py:f random",
    "function": "pit python:math:LONG random",
    "engine": "pit gtp:LONG random --game gomoku",
    "engine without a program": "pit 'gtp:\"LONG' random --game gomoku",
    "game": "pit random random --game LONG",
    "game's file": "pit random random --game LONG.py",
    "game's arguments": "pit random random --game tictactoe:TicTacToe(LONG)",
    "game of OpenSpiel": "pit random random --game openspiel:LONG",
    "game's parameter": "pit random random --game openspiel:tic_tac_toe(LONG=3)",
    "device": "pit random random --device LONG",
    "GPU": "train --game tictactoe --device cudaLONG",
    "test": "pit random random --sprt LONG",
    "number": "pit random random --games LONG",
    "file": "pit random random --json LONG/LONG",
    "replay": "replay LONG",
    "anchor": "pit random greedy mcts:10 --anchor LONG --game tictactoe",
    "ladder": "ladder LONG",
    "option": "pit random random --LONG 3",
    "preset": "train --game tictactoe --preset LONG",
    "run": "train --game tictactoe --run LONG",
    "net to begin with": "train --game tictactoe --initial-net LONG",
    "sizes": "train --game tictactoe --net.channels LONG",
    "opponent": "train --game tictactoe --evaluation.opponents LONG --run RUN",
    "new game": "new LONG",
    "published run": "publish LONG",
    "report": "report . --output LONG",
    "contestant of a page": "serve LONG --game tictactoe",
    "solved moves": "solve LONG",
    "scored contestant": "benchmark LONG --game connect4",
}


@pytest.mark.parametrize("line", COMMANDS.values(), ids=COMMANDS)
def test_no_command_repeats_a_long_word(line: str, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [word.strip("'").replace("LONG", LONG).replace("RUN", str(tmp_path / "run")) for word in line.split()]
    assert program.main(words) == 2
    _, errors = capsys.readouterr()
    (sentence,) = (said for said in errors.splitlines() if said.startswith("error: "))
    assert errors.endswith(f"{sentence}\n")
    assert len(sentence) - len(str(tmp_path)) < LONGEST_SENTENCE, sentence
    assert "\x1b" not in errors


CALLS = {
    "game": lambda: az.load_game(LONG),
    "moves": lambda: az.load_game("connect4").position(LONG),
    "action": lambda: az.load_game("gomoku15").start().play(10**2000),
    "net": lambda: az.load_net(LONG, "connect4"),
    "run": lambda: az.load_run(LONG),
    "setting": lambda: az.train("tictactoe", **{LONG: 1}),
    "value": lambda: az.train("tictactoe", minutes=LONG),
    "preset": lambda: az.train("tictactoe", LONG),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_no_function_repeats_a_long_word(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        call()
    assert len(str(caught.value)) < LONGEST_SENTENCE, str(caught.value)
    assert "\x1b" not in str(caught.value)
