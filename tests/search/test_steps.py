"""The steps of a search: each ends the simulations of the one before, which nobody can see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numba import njit

import alphazero as az
from alphazero.catalogue.adapters.alpha_zero_general import GeneralGame
from alphazero.errors import EvaluationError, NetError
from alphazero.game.kernels import Kernels
from alphazero.search import cpu_kernels
from alphazero.search.mcts import Search
from games.tictactoe.game import TicTacToe
from tests.catalogue.general_games import TicTacToeGame
from tests.search.reference_search import check_tree, neutral, planted, plies_of, random_positions, states_of
from tests.search.searches import BASE, CONFIGS, CONNECT4, finish, make_search, row_bytes, run

FIVE = np.arange(5)


def started(config, evaluate=None):
    positions = random_positions(CONNECT4, 5, seed=4)
    search = make_search(CONNECT4, config, evaluate or planted(3), 5)
    search.start(FIVE, states_of(positions), FIVE, plies_of(positions))
    return positions, search


def test_a_step_enters_compiled_code_once_and_asks_once(monkeypatch):
    asked = []
    _, search = started(replace(BASE, num_simulations=40), lambda *rows: (asked.append(1), planted(3)(*rows))[1])
    entered = []
    simulate = search._simulate
    monkeypatch.setattr(search, "_simulate", lambda *arguments: (entered.append(1), simulate(*arguments))[1])
    asked.clear()
    while len(search.finished()) == 0:
        search.step()
    assert (len(asked), len(entered)) == (40, 41)  # one more at the end


@pytest.mark.parametrize("name", ["noise", "eight-leaves", "gumbel-5"])
def test_reading_between_steps_changes_nothing(name):
    config = replace(CONFIGS[name], num_simulations=40)
    positions, search = started(config)
    before = np.zeros(5)
    while len(search.finished()) < 5:
        search.step()
        counts = search.read(FIVE).visit_counts.sum(axis=1)
        assert ((counts > before) | (before == 40)).all(), "a simulation that has begun is not in the result"
        assert (counts <= before + config.leaves_per_step).all()
        before = counts
        for b, position in enumerate(positions):
            check_tree(search, b, position)
    _, undisturbed = run(positions, config, planted(3))
    read = search.read(FIVE)
    assert [row_bytes(read, i) for i in range(5)] == [row_bytes(undisturbed, i) for i in range(5)]


def test_a_search_that_is_read_early_is_a_shorter_search():
    positions, search = started(replace(BASE, num_simulations=40))
    for _ in range(17):
        search.step()
    _, short = run(positions, replace(BASE, num_simulations=17), planted(3))
    read = search.read(FIVE)
    assert [row_bytes(read, i) for i in range(5)] == [row_bytes(short, i) for i in range(5)]


@pytest.mark.parametrize("at", ["step", "start"])
@pytest.mark.parametrize("name", ["plain", "eight-leaves"])
def test_after_an_evaluation_that_failed_searches_begin_anew(name, at):
    """Leaves without an answer would never be evaluated, and keep all walks that come by from ending."""
    config = replace(CONFIGS[name], num_simulations=30, reuse_subtree=True)
    works = True

    def evaluate(states, legal_masks):
        if not works:
            raise RuntimeError("no answer")
        return planted(3)(states, legal_masks)

    positions, search = started(config, evaluate)
    for _ in range(3):
        search.step()
    works = False
    with pytest.raises(RuntimeError, match="no answer"):
        search.step() if at == "step" else search.start(FIVE, states_of(positions), FIVE, plies_of(positions))
    assert len(search.finished()) == 5
    works = True
    actions = np.array([position.legal_actions[0] for position in positions])
    after = [position.play(int(action)) for position, action in zip(positions, actions, strict=True)]
    search.start(FIVE, states_of(after), FIVE, plies_of(after), actions)
    finish(search)
    _, fresh = run(after, config, planted(3))
    read = search.read(FIVE)
    assert [row_bytes(read, i) for i in range(5)] == [row_bytes(fresh, i) for i in range(5)]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", ["step", "read"])
def test_after_a_step_that_was_interrupted_searches_begin_anew(monkeypatch, call, when):
    """Rules that are Python raise in the middle of a step, and Ctrl-C is noticed as the kernel returns."""
    config = replace(BASE, num_simulations=30, leaves_per_step=3)
    positions, search = started(config)
    for _ in range(3):
        search.step()
    simulate = search._simulate

    def interrupted(*arguments):
        if when == "after":
            simulate(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(search, "_simulate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search.step() if call == "step" else search.read(FIVE)
    monkeypatch.undo()
    again = search.run(states_of(positions), FIVE, plies_of(positions))
    _, fresh = run(positions, config, planted(3))
    assert [row_bytes(again, i) for i in range(5)] == [row_bytes(fresh, i) for i in range(5)]


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda p, v: (p[:, :-1], v), NetError, r"function guess must .* \(5, 7\) and \(5,\), .* \(5, 6\) and"),
        (lambda p, v: (p, v[:0]), NetError, r"the shapes \(5, 7\) and \(0,\)"),
        (lambda p, v: (p, v[:, None]), NetError, r"the shapes \(5, 7\) and \(5, 1\)"),
        (lambda p, v: (p, v * np.nan), EvaluationError, "the function guess must give finite priors"),
        (lambda p, v: (p, v + 5), EvaluationError, "a value between -1 and 1"),
        (lambda p, v: (p - 2, v), EvaluationError, "priors that are not negative"),
    ],
)
@pytest.mark.parametrize("begins", [True, False])
def test_a_function_in_place_of_a_net_is_checked_as_nets_are(wrong, error, message, begins):
    """Wrong sizes would be read beyond their end, and numbers that are none play illegal actions."""
    errs = False

    def guess(states, legal_masks):
        answer = neutral(states, legal_masks)
        return wrong(*answer) if errs else answer

    positions, search = started(replace(BASE, num_simulations=9), guess)
    errs = True
    with pytest.raises(error, match=message):
        search.start(FIVE, states_of(positions), FIVE, plies_of(positions)) if begins else search.step()


def test_a_function_is_not_asked_about_no_positions():
    """In the end all leaves of a step are terminal; a function that stacks one array for each position failed then."""

    def stacked(states, legal_masks):
        return np.stack([mask / mask.sum() for mask in legal_masks]), np.zeros(len(states))

    position = TicTacToe().position("a1 b2 a2 c3")
    assert position.format(az.search(position, stacked, simulations=100).best) == "a3"


def test_trees_are_compiled_where_the_rules_are_python(monkeypatch):
    kernels = Kernels(GeneralGame(TicTacToeGame(), "general"))
    entered = []
    enter = cpu_kernels.entry_point
    monkeypatch.setattr(cpu_kernels, "entry_point", lambda *given: entered.append(given) or enter(*given))
    result = Search(kernels, BASE, planted(0), 1).run(kernels.start_states(1), np.zeros(1, int), np.zeros(1, int))
    assert not kernels.game.compiled and result.visit_counts.sum() == BASE.num_simulations
    assert [(function, address) for function, *_, address in entered] == [(cpu_kernels.simulate, 0)]


def test_a_rule_that_was_compiled_for_other_arrays_is_compiled_for_those_of_a_search(monkeypatch):
    monkeypatch.setattr("alphazero.game.kernels._kept_rules", {})  # else other tests had compiled it
    kernels = Kernels(TicTacToe())
    none = np.zeros(0, np.int32)
    masks = np.zeros((0, 9), bool)
    kernels.advance(
        kernels.start_states(1), np.zeros(1, np.int8), none, none, none, none > 0, none[:, None] * np.float32(0),
        kernels.start_states(0), masks,
    )  # fmt: skip
    result = Search(kernels, BASE, planted(0), 1).run(kernels.start_states(1), np.zeros(1, int), np.zeros(1, int))
    assert kernels.advance.is_compiled and result.visit_counts.sum() == BASE.num_simulations


def test_what_a_compiled_rule_raises_in_a_search_reaches_the_caller():
    own = TicTacToe.rules.step

    @njit
    def step(state, action):
        own(state, action)
        if action == 8:
            raise ValueError("eight")

    class Raises(TicTacToe):
        rules = replace(TicTacToe.rules, step=step)

    kernels = Kernels(Raises())
    search = Search(kernels, BASE, planted(0), 1)
    with pytest.raises(ValueError, match="eight"):
        search.run(kernels.start_states(1), np.zeros(1, int), np.zeros(1, int))
    assert kernels.advance.is_compiled
