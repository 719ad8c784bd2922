"""The figures that `alphazero benchmark` shows are those of the game's own benchmark."""

import json
from dataclasses import replace

import pytest

from alphazero.catalogue import registry
from alphazero.commands.rules import benchmark
from alphazero.commands.shared import run_command
from alphazero.players.contestants import make_player


@pytest.fixture
def planted(monkeypatch):
    """Connect Four with a benchmark that only counts whom it was asked about."""
    asked = []

    def make_benchmark(game):
        return lambda player: asked.append(player) or {"planted_accuracy": len(asked) / 4}

    loaded = replace(registry.load("connect4"), make_benchmark=make_benchmark)
    monkeypatch.setattr("alphazero.catalogue.registry.load", lambda name: loaded)
    return asked


def test_every_number_of_simulations_has_its_figures(planted, tmp_path, capsys):
    file = tmp_path / "figures.json"
    words = ["beginner", "--game", "connect4", "--simulations", "0", "20", "--json", str(file)]
    assert run_command(benchmark.main, words) == 0
    assert capsys.readouterr().out.splitlines() == [
        "beginner, without a search",
        "  planted accuracy           0.2500",
        "beginner, 20 simulations",
        "  planted accuracy           0.5000",
    ]
    figures = {"without a search": {"planted_accuracy": 0.25}, "20 simulations": {"planted_accuracy": 0.5}}
    assert json.loads(file.read_text()) == {"contestant": "beginner", "game": "connect4", "figures": figures}


def test_who_does_not_search_is_scored_once(planted, capsys):
    assert run_command(benchmark.main, ["minimax:2", "--game", "connect4", "--simulations", "0", "20"]) == 0
    assert len(planted) == 1
    # its search is its own, so that nothing can be said about simulations
    assert capsys.readouterr().out.splitlines()[0] == "minimax:2"


def test_the_figures_are_those_of_the_games_own_benchmark(capsys):
    assert run_command(benchmark.main, ["greedy", "--game", "othello6", "--seed", "3"]) == 0
    loaded = registry.load("othello6")
    figures = loaded.make_benchmark(loaded.game)(make_player("greedy", loaded, seed=3, threads=1))
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[-1] for line in lines] == [f"{figure:.4f}" for figure in figures.values()] and lines


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("random --game hex", "hex has no benchmark; the games that have one are 2048, connect4, othello, othello6"),
        ("human --game connect4", "human plays one game at a time"),
        ("random --game connect4 --simulations -1", "--simulations must lie between 0 and"),
        ("random --game connect4 --simulations 0,100", "with spaces between"),
        ("random --game connect4 --simulations", "--simulations takes one or several numbers"),
        ("random --game connect4 --device gpu", "unknown device 'gpu'"),
    ],
)
def test_what_cannot_be_scored_gets_one_sentence(words, message, capsys):
    assert run_command(benchmark.main, words.split()) == 2
    shown, errors = capsys.readouterr()
    assert shown == "" and errors.startswith("error: ") and errors.count("\n") == 1 and message in errors
