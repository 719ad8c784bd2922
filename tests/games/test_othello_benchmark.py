"""Othello's benchmark: figures by hand, planted players, and the command."""

import json
from pathlib import Path

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.commands.shared import run_command
from alphazero.matches.judge import Labelled
from alphazero.players.contestants import make_player
from alphazero.players.player import Assessment, Player
from benchmarks.frozen import othello as labelled
from games.othello import benchmark
from games.othello.benchmark import judge, load_frozen, main, make_benchmark
from games.othello.solver import NO_SCORE
from tests.games.othello_facts import write_problems

FIGURES = ("accuracy", "outcome_accuracy", "disc_loss", "value_sign_accuracy")


class Planted(Player):
    """Plays the move that `choose` picks from a row of scores, and says a value that it makes of the best one."""

    name = "planted"

    def __init__(self, positions: Labelled, choose, value=None):
        self.rows = {state.tobytes(): row for state, row in zip(positions.states, positions.scores, strict=True)}
        self.choose, self.value = choose, value

    def select_actions(self, states, games, plies):
        return np.array([self.choose(self.rows[state.tobytes()].astype(int)) for state in states])

    def assess(self, states, games, plies):
        values = None
        if self.value:
            values = np.array([self.value(int(self.rows[state.tobytes()].max())) for state in states])
        return Assessment(self.select_actions(states, games, plies), None, values)


def worst(row: np.ndarray) -> int:
    return int(np.where(row == NO_SCORE, 100, row).argmin())


@pytest.mark.parametrize("size", [6, 8])
def test_the_best_moves_have_the_best_figures_and_the_worst_the_worst(size: int):
    positions = load_frozen(size)
    best = judge(Planted(positions, np.argmax, np.sign), positions).figures()
    assert [best[name] for name in FIGURES] == [1.0, 1.0, 0.0, 1.0]
    bad = judge(Planted(positions, worst, lambda score: -np.sign(score)), positions).figures()
    assert bad["accuracy"] == 0.0 and bad["outcome_accuracy"] < 0.9 and bad["disc_loss"] > 10


def test_figures_by_hand():
    """Three positions: one disc-perfect, one that gives 4 discs but keeps the win, one that turns a win into a draw."""
    frozen = load_frozen(6)
    scores = np.full((3, 37), NO_SCORE, np.int8)
    scores[0, [1, 2]] = 6, 2
    scores[1, [1, 2]] = 2, 6
    scores[2, [1, 2]] = 0, 10
    positions = Labelled(["a", "b", "c"], frozen.states[:3], scores, frozen.states[:3], scores.max(axis=1))
    judgement = judge(Planted(positions, lambda row: 1, lambda score: 0.4 if score == 6 else 0.3), positions)
    figures = judgement.figures()
    assert judgement.measures["disc_loss"].each.tolist() == [0, 4, 10]
    assert figures["accuracy"] == 1 / 3 and figures["outcome_accuracy"] == 2 / 3
    assert figures["disc_loss"] == pytest.approx(14 / 3)
    assert figures["value_sign_accuracy"] == 2 / 3  # 0.3 means a draw
    low, high = figures["accuracy_interval"]
    assert 0 < low < 1 / 3 < high < 1


@pytest.mark.parametrize("name", ["othello6", pytest.param("othello", marks=pytest.mark.slow)])
def test_a_run_takes_the_figures_that_a_player_has(name: str):
    loaded = registry.load(name)
    score = make_benchmark(loaded.game)
    greedy = score(make_player("greedy", loaded, seed=0, threads=2))
    assert list(greedy) == ["endgame_accuracy", "endgame_outcome_accuracy", "endgame_disc_loss"]
    minimax = score(make_player("minimax:3", loaded, seed=0, threads=2))
    assert minimax["endgame_accuracy"] > greedy["endgame_accuracy"] + 0.1
    assert minimax["endgame_disc_loss"] < greedy["endgame_disc_loss"] - 1


def command(*argv: object) -> int:
    return run_command(main, [str(word) for word in argv])


def test_the_command_on_published_positions(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setattr(benchmark, "MOST_EMPTY_SQUARES", 16)
    result, problems = tmp_path / "result.json", write_problems(tmp_path)
    assert command("solver:16", "--positions", problems, "--json", result) == 0
    said = capsys.readouterr().out
    assert "2 positions" in said and said.count("right") == 2
    (figures,) = json.loads(result.read_text())
    assert figures["accuracy"] == 1.0 and figures["disc_loss"] == 0.0


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["random", "--game", "nim"], "must be othello or othello6"),
        (["random", "--simulations", "x"], "--simulations"),
        (["random", "--positions", "none.obf"], "none.obf"),
    ],
)
def test_wrong_input_gets_one_sentence(argv: list[str], words: str, capsys):
    assert command(*argv) == 2
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1


@pytest.mark.parametrize(("name", "size"), [("othello6", 6), pytest.param("othello", 8, marks=pytest.mark.slow)])
def test_the_frozen_sets_can_be_made_anew(name: str, size: int, tmp_path: Path):
    """Fewer positions of the same seed are the first of them."""
    labelled.main([], tmp_path, 40, [name])
    with np.load(tmp_path / f"endgames_{size}.npz") as made:
        np.testing.assert_array_equal(made["states"], load_frozen(size).states[:40])
        np.testing.assert_array_equal(made["scores"], load_frozen(size).scores[:40])
