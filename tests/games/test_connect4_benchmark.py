"""The figures of `games.connect4.benchmark` against sums done by hand; and its command."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from alphazero.commands.shared import run_command
from alphazero.game.kernels import Kernels
from alphazero.matches.judge import Judgement, Labelled, Measure
from alphazero.players.baselines import RandomPlayer
from alphazero.players.contestants import make_player
from alphazero.players.net_players import PolicyPlayer
from alphazero.players.player import Assessment, Player
from alphazero.search.evaluator import Evaluator
from games.connect4.benchmark import PHASES, judge, load_frozen, main
from games.connect4.solver import GAME, NO_SCORE
from tests.games.connect4_positions import CONNECT_4, Planted, labelled_of, late_positions, open_player, plies_of

KERNELS = Kernels(GAME)
NO = NO_SCORE
FIGURES = ("accuracy", "strict_accuracy", "cross_entropy", "value_sign_accuracy")

GAME_OF_24_PLIES = "255235465151743522746644"
POSITIONS_FILE = ["121212 18", "4453 -2", "2252576253462244111563365343671351441 -1"]


FIVE = [
    ("1", [3, 1, -2, 0, -5, -1, 3]),
    ("12", [0, -1, -1, 0, -7, -1, -1]),
    ("111111", [NO, -4, -2, -9, -2, -3, -4]),
    ("11", [-1, -1, -1, 2, -1, -1, -1]),
    ("123", [5, 4, 3, 2, 1, 6, -6]),
]


# --- the figures ---


def test_actions_are_right_if_they_keep_the_outcome_and_strictly_right_if_they_have_the_best_score():
    #                        faster win left   draw lost  slowest loss  win found  best
    actions = {"1": 1, "12": 1, "111111": 2, "11": 3, "123": 5}
    judgement = judge(Planted(actions), labelled_of(FIVE))
    assert judgement.measures["accuracy"].each.tolist() == [True, False, True, True, True]
    assert judgement.measures["strict_accuracy"].each.tolist() == [False, False, True, True, True]
    figures = judgement.figures()
    assert figures["positions"] == 5
    assert (figures["accuracy"], figures["strict_accuracy"]) == (0.8, 0.6)
    worse = judge(Planted({"1": 3, "12": 3, "111111": 3, "11": 0, "123": 6}), labelled_of(FIVE)).figures()
    # the draw kept; all lost, so any column is right
    assert (worse["accuracy"], worse["strict_accuracy"]) == (0.4, 0.2)


def test_a_player_without_a_policy_and_values_has_no_such_figures():
    labelled = labelled_of(FIVE, [("1", 3), ("12", 0)])
    figures = judge(Planted({}), labelled).figures()
    for name in ("cross_entropy", "value_sign_accuracy"):
        assert figures[name] is None and figures[f"{name}_interval"] is None
    assert set(figures) == {"positions", *FIGURES, *(f"{name}_interval" for name in FIGURES)}


def test_cross_entropy_is_of_the_mass_on_columns_that_keep_the_outcome():
    policies = {
        "1": [0.1, 0.2, 0.3, 0.1, 0.0, 0.1, 0.2],  # wins: 1, 2 and 7, together 0.5
        "12": [0.05, 0.2, 0.2, 0.2, 0.15, 0.1, 0.1],  # draws: 1 and 4, together 0.25
        "111111": [0.0, 0.1, 0.1, 0.2, 0.2, 0.2, 0.2],  # lost whatever is played: 1
        "11": [0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0],  # nothing on the only win, which counts as 0.001
        "123": [0.0, 0.0, 0.0, 0.0, 0.0, 0.002, 0.998],  # 0.002
    }
    judgement = judge(Planted({}, policies), labelled_of(FIVE))
    expected = [math.log(2), math.log(4), 0.0, math.log(1000), math.log(500)]
    assert judgement.measures["cross_entropy"].each == pytest.approx(expected, abs=1e-5)
    figures, mean = judgement.figures(), sum(expected) / 5
    assert figures["cross_entropy"] == pytest.approx(mean, abs=1e-5)
    deviation = math.sqrt(sum((loss - mean) ** 2 for loss in expected) / 4)  # of a sample of five
    margin = 2.776445 * deviation / math.sqrt(5)  # Student's t with 4 degrees of freedom
    assert figures["cross_entropy_interval"] == pytest.approx([mean - margin, mean + margin], abs=1e-3)


def test_mass_on_a_full_column_is_worth_nothing():
    policies = {"111111": [0.75, 0.05, 0.05, 0.05, 0.05, 0.05, 0.0]}
    judgement = judge(Planted({}, policies), labelled_of(FIVE[2:3]))
    assert judgement.measures["cross_entropy"].each == pytest.approx([math.log(4)], abs=1e-5)


THIRD = 1 / 3


@pytest.mark.parametrize(
    ("score", "value", "right"),
    [
        (1, THIRD + 1e-6, True), (5, THIRD, False), (5, -0.9, False), (0, THIRD, True), (0, -THIRD, True),
        (0, THIRD + 1e-6, False), (0, -THIRD - 1e-6, False), (-1, -THIRD - 1e-6, True), (-9, -THIRD, False),
    ],
)  # fmt: skip
def test_a_value_must_be_on_the_right_side_of_a_third(score, value, right):
    labelled = labelled_of(FIVE, [("4453", score)])
    judgement = judge(Planted({}, values={"4453": value, "1": 1.0}), labelled)
    assert judgement.measures["value_sign_accuracy"].each.tolist() == [right]
    assert judgement.figures()["value_sign_accuracy"] == float(right)


def judgement_of(plies, right, value_plies=(), values_right=None, losses=None) -> Judgement:
    plies, right = np.array(plies), np.array(right, bool)
    values = None if values_right is None else np.array(values_right, bool)
    return Judgement(
        {
            "accuracy": Measure(right, plies),
            "strict_accuracy": Measure(right, plies),
            "cross_entropy": Measure(None if losses is None else np.array(losses), plies),
            "value_sign_accuracy": Measure(values, np.array(value_plies, np.int64)),
        }
    )


def test_phases_begin_at_plies_12_and_24_and_one_without_positions_has_no_figures():
    plies = [0, 11, 12, 23, 24, 41]
    judgement = judgement_of(plies, [1, 0, 1, 1, 0, 0], [11, 12], [True, False], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    phases = judgement.by_phase(PHASES)
    assert list(phases) == ["0-11", "12-23", "24-"]
    assert [phase["positions"] for phase in phases.values()] == [2, 2, 2]
    assert [phase["accuracy"] for phase in phases.values()] == [0.5, 1.0, 0.0]
    assert [phase["cross_entropy"] for phase in phases.values()] == [1.5, 3.5, 5.5]
    assert [phase["value_sign_accuracy"] for phase in phases.values()] == [1.0, 0.0, None]
    empty = judgement_of([0, 41], [1, 1], [0, 41], [1, 1], [1.0, 1.0]).by_phase(PHASES)["12-23"]
    assert empty.pop("positions") == 0 and len(empty) == 8 and set(empty.values()) == {None}


def test_a_position_belongs_to_the_ply_of_its_stones():
    moves = [GAME_OF_24_PLIES[:ply] for ply in (0, 1, 11, 12, 23, 24)]
    labelled = labelled_of([(text, [1] * 7) for text in moves], [(moves[3], 1)])
    judgement = judge(Planted({}, values={moves[3]: 1.0}), labelled)
    assert judgement.measures["accuracy"].plies.tolist() == [0, 1, 11, 12, 23, 24]
    by_ply = [judgement.figures(ply, ply)["value_sign_accuracy"] for ply in (0, 1, 11, 12, 23, 24)]
    assert by_ply == [None] * 3 + [1.0] + [None] * 2


def test_every_position_is_a_game_of_its_own_and_progress_reaches_1():
    frozen, asked, shares = load_frozen(), [], []

    class Noting(Player):
        def select_actions(self, states, games, plies):
            raise AssertionError("assess is to be asked")

        def assess(self, states, games, plies):
            asked.append((states, games, plies))
            return Assessment(np.full(len(states), 3), None, np.zeros(len(states), np.float32))

    judge(Noting(), frozen, shares.append)
    states, numbers, plies = (np.concatenate(parts) for parts in zip(*asked, strict=True))
    assert np.array_equal(states, np.concatenate([frozen.states, frozen.value_states]))
    assert numbers.tolist() == [*range(7000), *range(len(frozen.value_states))]
    assert plies[:7000].tolist() == plies_of(frozen).tolist()
    assert shares[0] > 0 and shares[-1] == 1.0 and shares.count(1.0) == 2 and len(shares) == len(asked) > 2


# --- players known to be good and bad ---


@pytest.fixture(scope="module")
def late() -> Labelled:
    return late_positions()


def test_a_perfect_player_is_always_right(late):
    figures = judge(open_player("solver"), late).figures()
    assert figures["accuracy"] == figures["strict_accuracy"] == 1.0 and figures["positions"] == 400


def test_a_player_that_takes_the_worst_column_is_never_right(late):
    worst = np.where(late.scores == NO_SCORE, 100, late.scores).argmin(axis=1)
    figures = judge(Planted(dict(zip(late.names, worst.tolist(), strict=True))), late).figures()
    assert figures["accuracy"] == figures["strict_accuracy"] == 0.0


def test_random_is_right_as_often_as_there_are_good_columns():
    frozen = load_frozen()
    legal = frozen.scores != NO_SCORE
    best = frozen.scores.max(axis=1, keepdims=True)
    keeps = legal & (np.sign(frozen.scores) == np.sign(best))
    figures = judge(RandomPlayer(KERNELS, seed=1), frozen).figures()
    shares = keeps.sum(axis=1) / legal.sum(axis=1), (frozen.scores == best).sum(axis=1) / legal.sum(axis=1)
    assert 0.3 < shares[1].mean() < shares[0].mean() < 0.6
    assert figures["accuracy"] == pytest.approx(shares[0].mean(), abs=0.02)  # 3.5 standard deviations
    assert figures["strict_accuracy"] == pytest.approx(shares[1].mean(), abs=0.02)


# --- the figures of every generation ---


@pytest.fixture(scope="module")
def net_file(tmp_path_factory) -> Path:
    """A checkpoint that likes some columns better than others."""
    path = tmp_path_factory.mktemp("nets") / "net.safetensors"
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(1)
        net = CONNECT_4.make_net(GAME, {"blocks": 1, "channels": 8})
        for parameter in net.module.parameters():  # a fresh net likes all columns equally
            parameter.add_(0.3 * torch.randn(parameter.shape))
    net.save(path, {"generation": 1})
    return path


def policy_of(net, threads: int = 1) -> PolicyPlayer:
    kernels = Kernels(GAME)
    return PolicyPlayer("", kernels, [Evaluator(kernels, net) for _ in range(threads)], 0, use_threads=net.use_threads)


def test_a_generations_figures_are_those_of_the_command_on_any_number_of_threads(net_file, tmp_path, monkeypatch):
    some = Labelled(**{name: rows[::5] for name, rows in vars(load_frozen()).items()})
    monkeypatch.setattr("games.connect4.benchmark.load_frozen", lambda: some)
    net = CONNECT_4.make_net(GAME, {"blocks": 1, "channels": 8})
    net.load(net_file)
    figures = [CONNECT_4.make_benchmark(GAME)(policy_of(net, threads)) for threads in (1, 2)]
    assert figures[0] == figures[1]
    assert all(type(figure) is float for figure in figures[0].values())
    assert 0.2 < figures[0]["pons_strict_accuracy"] < figures[0]["pons_accuracy"] < 0.6
    [entry] = run_json(tmp_path, net_file, "--simulations", "0")
    assert entry["positions"] == 1400
    assert figures[0] == {f"pons_{name}": round(entry[name], 5) for name in FIGURES}


def test_a_figure_that_a_player_has_no_opinion_on_is_left_out():
    figures = CONNECT_4.make_benchmark(GAME)(make_player("greedy", CONNECT_4, seed=0, threads=2))
    assert list(figures) == ["pons_accuracy", "pons_strict_accuracy"]


# --- the command ---


def run_pons(*arguments) -> int:
    return run_command(main, [*map(str, arguments), "--threads", "1"])


def run_json(tmp_path: Path, *arguments) -> list[dict]:
    file = tmp_path / "result.json"
    assert run_pons(*arguments, "--json", file, "--overwrite") == 0
    return json.loads(file.read_text())


@pytest.fixture
def positions(tmp_path) -> Path:
    path = tmp_path / "positions.txt"
    path.write_text("\n".join(POSITIONS_FILE) + "\n")
    return path


def test_greedy_is_reported_in_a_table(positions, capsys):
    assert run_pons("greedy", "--positions", positions) == 0
    report, errors = capsys.readouterr()
    assert errors == "" and report.startswith(f"greedy on {positions}: 3 positions\n")
    lines = report.splitlines()
    rows = {line[:22].strip(): line[22:].split() for line in lines[3:7]}
    assert list(rows) == ["all", "plies 0-11", "plies 12-23", "plies 24-"]
    assert [row[0] for row in rows.values()] == ["3", "2", "0", "1"]
    # greedy takes the win; of the two lost positions any column is right
    assert rows["all"][1:3] == ["100.0%", "(43.9-100.0)"] and rows["all"][-2:] == ["-", "-"]
    assert rows["plies 12-23"] == ["0", "-", "-", "-", "-"]
    headings = "accuracy", "strict accuracy", "cross entropy", "value sign accuracy"
    assert all(heading in lines[2] for heading in headings)


NAMES_OF_FIGURES = {"positions", *FIGURES, *(f"{name}_interval" for name in FIGURES)}


def test_the_json_of_a_net_has_an_entry_for_each_number_of_simulations(net_file, positions, tmp_path, capsys):
    entries = run_json(tmp_path, net_file, "--simulations", "0", "5", "5", "--positions", positions)
    assert [entry["simulations"] for entry in entries] == [0, 5]
    for entry in entries:
        assert set(entry) == {"contestant", "simulations", *NAMES_OF_FIGURES, "by_phase"}
        assert entry["contestant"] == str(net_file) and entry["positions"] == 3
        assert list(entry["by_phase"]) == ["0-11", "12-23", "24-"]
        for part in entry["by_phase"].values():
            assert set(part) == NAMES_OF_FIGURES
        for name in FIGURES:
            low, high = entry[f"{name}_interval"]
            assert low <= entry[name] <= high
            assert entry["by_phase"]["12-23"][name] is None and entry["by_phase"]["12-23"][f"{name}_interval"] is None
    report = capsys.readouterr().out
    assert report.index("without a search") < report.index("\n5 simulations")


def test_the_same_seed_gives_the_same_figures(tmp_path, capsys):
    first, again, other = (run_json(tmp_path, "random", "--seed", seed) for seed in (1, 1, 2))
    assert first == again != other
    assert capsys.readouterr().out.startswith("random on the frozen set: 7000 positions\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["radnom"], "did you mean 'random'"),
        (["human"], "human plays one game at a time"),
        (["random", "--simulations", "0,100"], "--simulations"),
        (["random", "--simulations"], "--simulations"),
        (["random", "--json", "a" * 300 + ".json"], ""),
        (["random", "--positions", "wrong.txt"], "wrong.txt, line 1: the score is -2, not 3"),
    ],
)
def test_wrong_command_lines_end_with_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("wrong.txt").write_text("4453 3\n")
    assert run_command(main, arguments) == 2
    output, errors = capsys.readouterr()
    assert output == "" and errors.startswith("error: ") and errors.count("\n") == 1
    assert message in errors
