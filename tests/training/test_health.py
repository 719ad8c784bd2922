"""The health of a run: figures worked out by hand, when a warning is given, and both after a resume."""

from __future__ import annotations

import contextlib
import io
import math
import re
from dataclasses import asdict, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from alphazero.catalogue import registry
from alphazero.commands.train import main
from alphazero.game.kernels import Kernels
from alphazero.interruption import State
from alphazero.search.mcts import SearchConfig
from alphazero.storage.metrics_file import read_metrics
from alphazero.storage.run_folder import RunFolder
from alphazero.training.coach import Coach
from alphazero.training.config import GateConfig, LearnerConfig, ReplayConfig, RunConfig, SelfPlayConfig
from alphazero.training.health import (
    CHECKS,
    MAX_POSITIONS,
    TREND,
    count_positions,
    describe_samples,
    new_warnings,
    oscillation,
)
from alphazero.training.parts.journal import describe_progress
from alphazero.training.plan import RunPlan
from alphazero.training.replay_buffer import Samples
from games.tictactoe.game import TicTacToe
from tests.training.test_coach import TINY as OTHER_TINY

KERNELS = Kernels(TicTacToe())
POSSIBLE = {
    "sample_reuse": (0, math.inf),
    "distinct_positions": (0, 1),
    "policy_entropy": (0, math.inf),
    "policy_surprise": (0, math.inf),
    "value_calibration_error": (0, 2),
    "drawn_positions": (0, 1),
    "benchmark_oscillation": (0, math.inf),
    "generations_since_promotion": (0, math.inf),
}
"""The values that a checked figure can have at all."""


def spread(*shares: float) -> list[float]:
    """A policy of tic-tac-toe that gives its first squares so much, the others nothing."""
    return [*shares, *[0.0] * (9 - len(shares))]


def make_samples(texts: list[str], policies: list[list[float]], outcomes: list[float]) -> Samples:
    states = np.array([TicTacToe().position(text).state for text in texts])
    z = np.array(outcomes, np.float32)
    return Samples(states, np.array(policies, np.float32), z, np.zeros_like(z))


def planted_net(priors: list[list[float]], values: list[float]) -> SimpleNamespace:
    """Answers so, whatever it is asked."""
    answer = np.array(priors, np.float32), np.array(values, np.float32)
    return SimpleNamespace(evaluate=lambda observations, legal_masks: answer)


def describe_policies(targets: list[list[float]], priors: list[list[float]]) -> dict:
    count = len(targets)
    return describe_samples(KERNELS, make_samples([""] * count, targets, [0] * count), planted_net(priors, [0] * count))


def describe_values(values: list[float], outcomes: list[float]) -> dict:
    policies = [spread(1)] * len(values)
    return describe_samples(
        KERNELS, make_samples([""] * len(values), policies, outcomes), planted_net(policies, values)
    )


# --- figures of samples ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "share"),
    [
        (["a1", "b1", "b2"], 1.0),
        (["b2", "b2", "b2", "b2"], 0.25),
        (["a1", "c1", "c3", "a3", "b2"], 0.4),  # four images of one corner
        (["a1 b2", "a1 b1"], 1.0),
        (["a1 b2 c3", "c3 b2 a1", "c1 b2 a3"], 0.3333),  # two orders of the same moves, and a mirror image
    ],
)
def test_equal_positions_and_mirror_images_count_once(texts, share):
    count = len(texts)
    samples = make_samples(texts, [spread(1)] * count, [0] * count)
    figures = describe_samples(KERNELS, samples, planted_net([spread(1)] * count, [0] * count))
    assert figures["distinct_positions"] == share


@pytest.mark.parametrize(
    ("target", "prior", "surprise"),
    [
        (spread(0.5, 0.5), spread(0.25, 0.75), 0.5 * math.log(4 / 3)),  # ln(1/2 : 1/4) / 2 + ln(1/2 : 3/4) / 2
        (spread(0.25, 0.75), spread(0.5, 0.5), 0.25 * math.log(1 / 2) + 0.75 * math.log(3 / 2)),
        (spread(0.2, 0.3, 0.5), spread(0.2, 0.3, 0.5), 0.0),
        (spread(1), spread(*[0.25] * 4), math.log(4)),
        (spread(1), spread(0, 1), math.log(1e9)),  # a prior of 0 is no infinite surprise
    ],
)
def test_surprise_is_the_divergence_of_the_target_from_the_prior(target, prior, surprise):
    assert describe_policies([target], [prior])["policy_surprise"] == pytest.approx(surprise, abs=6e-5)


def test_entropy_and_surprise_are_averaged_over_positions():
    figures = describe_policies([spread(0.5, 0.5), spread(*[0.25] * 4), spread(1)], [spread(1)] * 3)
    assert figures["policy_entropy"] == round((math.log(2) + math.log(4) + 0) / 3, 4)
    assert str(describe_policies([spread(1)], [spread(1)])["policy_entropy"]) == "0.0", "neither is -0.0 an entropy"
    figures = describe_policies([spread(1), spread(0, 1)], [spread(0.5, 0.5), spread(0, 1)])
    assert figures["policy_surprise"] == round(math.log(2) / 2, 4)


def test_values_are_compared_with_outcomes_in_each_interval():
    """Intervals of 0.2: -1 is alone in the first, 0.05 and 0.15 share one, 0.95 and 1 the last."""
    figures = describe_values([-1, 1, 0.05, 0.15, 0.95], [-1, 0, 1, 0, 1])
    assert figures["value_calibration"] == [[-1, -1, 1], [0.1, 0.5, 2], [0.975, 0.5, 2]]
    assert figures["value_calibration_error"] == pytest.approx((1 * 0 + 2 * 0.4 + 2 * 0.475) / 5)


def test_errors_of_either_sign_do_not_cancel_out():
    figures = describe_values([-0.5, 0.5, -0.9, 0, 0], [0, 0, -0.9, 1, -1])
    assert figures["value_calibration"] == [[-0.9, -0.9, 1], [-0.5, 0, 1], [0, 0, 2], [0.5, 0, 1]]
    assert figures["value_calibration_error"] == pytest.approx(0.2)


def test_the_net_is_asked_about_the_positions_themselves():
    """Its answers depend on what it sees: it knows the outcome from the stone on a1, and the legal squares."""
    texts = ["", "a1", "b2", "a1 b2", "c3 a1"]
    samples = make_samples(texts, [spread(0, 1)] * 5, [0, 1, 0, 1, 1])
    asked = []

    def evaluate(observations, legal_masks):
        asked.append(legal_masks)
        return np.full((5, 9), 1 / 9, np.float32), observations[:, :, 0, 0].sum(axis=1)

    figures = describe_samples(KERNELS, samples, SimpleNamespace(evaluate=evaluate))
    assert figures["value_calibration"] == [[0, 0, 2], [1, 1, 3]]
    np.testing.assert_array_equal(asked[0], KERNELS.describe_all(samples.states)[0])


@pytest.mark.parametrize("count", [MAX_POSITIONS, MAX_POSITIONS + 1, 3 * MAX_POSITIONS + 5])
def test_of_many_samples_the_net_is_asked_about_some_from_first_to_last(count):
    """The first and the last position differ from all others, and the outcomes of both halves from each other."""
    states = make_samples(["b2", "", "a1"], [spread(1)] * 3, [0] * 3).states[[0, *[1] * (count - 2), 2]]
    policies = np.tile(np.array(spread(1), np.float32), (count, 1))
    z = (np.arange(count) >= count / 2).astype(np.float32)
    asked = []

    def evaluate(observations, legal_masks):
        asked.append(observations)
        return np.tile(np.array(spread(0.5, 0.5), np.float32), (len(observations), 1)), np.zeros(len(observations))

    figures = describe_samples(KERNELS, Samples(states, policies, z, z), SimpleNamespace(evaluate=evaluate))
    (observations,) = asked
    assert len(observations) == MAX_POSITIONS
    assert observations[0, :, 1, 1].sum() == 1 and observations[-1, :, 0, 0].sum() == 1
    ((value, outcome, number),) = figures["value_calibration"]
    assert value == 0 and number == MAX_POSITIONS and outcome == pytest.approx(0.5, abs=0.002)
    assert figures["distinct_positions"] == round(3 / 627, 4)  # of all that the game has: fewer


# --- oscillation -----------------------------------------------------------------------------------------------------

ZIGZAG = (1, -1, -1, 1, 1, -1, -1, 1)
"""Its straight line is flat: neither its mean nor its covariance with the generation is other than 0."""


@pytest.mark.parametrize(("begin", "slope"), [(0.5, 0.0), (0.2, 0.05), (0.9, -0.1)])
def test_a_straight_line_does_not_oscillate_and_a_few_figures_do_not_yet(begin, slope):
    assert oscillation([begin + slope * i for i in range(TREND)]) == 0
    assert oscillation([0.1, 0.9] * (TREND // 2 - 1) + [0.1]) is None


@pytest.mark.parametrize("slope", [0.0, 0.03, -0.01])
def test_a_zigzag_oscillates_by_its_height_on_whatever_slope(slope):
    figures = [0.6 + slope * i + 0.02 * side for i, side in enumerate(ZIGZAG)]
    assert oscillation(figures) == 0.02
    assert oscillation([9.0, -5.0, *figures]) == 0.02  # what is long past does not count


# --- checks ----------------------------------------------------------------------------------------------------------


def ways_out() -> list:
    """Every check with the sides on which its figure can leave the range: (check, a value outside, the advice)."""
    found = []
    for check in CHECKS:
        low, high = POSSIBLE[check.figure]
        if check.low > low:
            found.append(pytest.param(check, check.low - 0.005, check.too_low, id=f"{check.figure}-low"))
        if check.high < high:
            found.append(pytest.param(check, check.high + 0.005, check.too_high, id=f"{check.figure}-high"))
    return found


@pytest.fixture(scope="module")
def flags() -> set[str]:
    """All flags that `python main.py --help` shows."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), pytest.raises(SystemExit):
        main(["--game", "tictactoe", "--help"])
    return set(re.findall(r"--[\w.-]*\w", shown.getvalue()))


def test_every_figure_is_checked_once():
    assert sorted(check.figure for check in CHECKS) == sorted(POSSIBLE)


@pytest.mark.parametrize(("check", "value", "advice"), ways_out())
def test_a_figure_outside_its_range_is_told_with_advice_unless_the_network_is_young(check, value, advice):
    assert check.warning({"generation": check.from_generation - 1, check.figure: value}) == ""
    said = check.warning({"generation": check.from_generation, check.figure: value})
    assert said.startswith(f"{check.figure.replace('_', ' ')} is {value:.3g}: ")
    assert advice and said.endswith(advice.replace("[", "").replace("]", ""))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.figure)
def test_a_figure_that_is_not_known_or_inside_its_range_is_not_told_nor_what_cannot_happen(check):
    assert check.warning({"generation": 100}) == ""
    for value in (None, check.low, check.low + 0.005, min(check.high, 1e6)):
        assert check.warning({"generation": 100, check.figure: value}) == ""
    low, high = POSSIBLE[check.figure]
    assert low <= check.low < check.high
    assert bool(check.too_low) == (check.low > low) and bool(check.too_high) == (check.high < high)


@pytest.mark.parametrize(("check", "value", "advice"), ways_out())
def test_all_advice_names_flags_and_settings_that_exist(check, value, advice, flags, monkeypatch):
    with monkeypatch.context() as command:
        command.setattr(State, "command_runs", True)
        named = re.findall(r"--[\w.-]*\w", check.warning({"generation": 100, check.figure: value}))
    assert len(named) == advice.count("[") > 0 and set(named) <= flags
    named = re.findall(r"\w+\.\w+", check.warning({"generation": 100, check.figure: value}).partition(": ")[2])
    assert len(named) == advice.count("[") > 0
    for name in named:
        part, _, field = name.partition(".")
        assert field in asdict(getattr(RunConfig(), part))


def test_warnings_are_given_once_and_again_only_after_recovery():
    lines = [{"generation": n, "sample_reuse": x} for n, x in enumerate([1, 20, 30, 1, 1, 20, 0.1], start=1)]
    told = [new_warnings(line, before) for before, line in pairwise([{}, *lines])]
    assert [len(new) for new in told] == [0, 1, 0, 0, 0, 1, 0]
    other = {"generation": 8, "sample_reuse": 20, "distinct_positions": 0.1}
    assert len(new_warnings(other, lines[-1])) == 1, "another one"
    assert told[1] == ["sample reuse is 20: the network may overfit these games; lower learner.sample_reuse"]


# --- in a run --------------------------------------------------------------------------------------------------------

TINY = replace(
    OTHER_TINY,
    search=SearchConfig(num_simulations=2),
    self_play=SelfPlayConfig(games_per_generation=4, num_slots=4),
    replay=ReplayConfig(),
    learner=LearnerConfig(batch_size=16, sample_reuse=14),  # which is too much
    gate=GateConfig(games=2, simulations=2),
)


def go_on(folder: RunFolder, generations: int) -> None:
    torch.manual_seed(0)
    loaded = replace(
        registry.load("tictactoe"), make_benchmark=lambda game: lambda player: {"planted_strength": 0.5, "other": 0.0}
    )
    plan = RunPlan(loaded, replace(TINY, generations=generations), ["cpu"], threads=1, seed=0, deterministic=False)
    with Coach(plan, folder) as coach:
        coach.run()


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The figures of the warnings since the last call."""
    found = [record.getMessage().split(" is ")[0] for record in caplog.records if record.levelname == "WARNING"]
    caplog.clear()
    return found


def test_a_run_keeps_its_health_and_a_resumed_one_goes_on_with_it(tmp_path, caplog):
    path = tmp_path / "run"
    with RunFolder.create(path, {"settings": asdict(TINY)}) as folder:
        go_on(folder, 2)
    before = told(caplog)
    with RunFolder.open(path) as folder:
        go_on(folder, 3)
    after = told(caplog)

    lines = read_metrics(path)
    assert len(lines) == 3
    needed = {check.figure for check in CHECKS} | {"value_calibration"}
    assert all(needed <= line.keys() for line in lines)
    assert all(line["benchmark_figures"] == ["planted_strength", "other"] for line in lines)
    best = 0
    for line in lines:
        best = line["generation"] if line["promoted"] else best
        assert line["generations_since_promotion"] == line["generation"] - best
        assert sum(count for _, _, count in line["value_calibration"]) == line["positions"]
        assert 0 < line["distinct_positions"] <= 1

    # the net learns too often from its samples all along, which is told once
    assert all(line["sample_reuse"] > 12 for line in lines)
    assert before.count("sample reuse") == 1 and after.count("sample reuse") == 0


@pytest.mark.parametrize(
    ("first", "figures", "expected"),
    [
        # the first one is missing once, which is no swing
        ("accuracy", [{"accuracy": 0.8, "solved": 350.0}] * 5 + [{"solved": 350.0}] + [{"accuracy": 0.8}] * 6,
         [None] * TREND + [0.0] * 4),
        ("elo", [{"elo": elo} for elo in (1200, 1205, 1211, 1216, 1219, 1225, 1231, 1236, 1250)], [None] * 9),
    ],
)  # fmt: skip
def test_figures_that_are_missing_or_no_shares_have_no_swing_to_warn_of(first, figures, expected):
    lines: list[dict[str, Any]] = []
    for generation, benchmark in enumerate(figures, start=1):
        progress = describe_progress(lines, benchmark, None)
        lines.append({"generation": generation, **benchmark, **progress})
    assert [line["benchmark_oscillation"] for line in lines] == expected
    assert describe_progress(lines, {}, 3) == {"generations_since_promotion": 3}, "a game without a benchmark"


def test_the_positions_of_a_small_game_are_counted():
    """Of 765 positions of tic-tac-toe, mirror images as one, 138 are over."""
    assert count_positions(KERNELS) == 627
    assert count_positions(Kernels(registry.load("connect4").game)) is None
