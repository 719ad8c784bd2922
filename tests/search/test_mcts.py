"""The search against a plain reference, alone and in a batch, its counts, kept trees, and evaluations of any kind."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from alphazero.errors import IllegalAction, InputError, InvalidSetting
from alphazero.game import Position
from alphazero.game.functions import plain
from alphazero.game.kernels import Kernels
from alphazero.search import cpu_kernels
from alphazero.search.mcts import Evaluate, Search, SearchResult
from alphazero.search.roots import visit_policy
from tests.search.dense import dense
from tests.search.reference_search import (
    F,
    ReferenceSearch,
    check_tree,
    compare_trees,
    neutral,
    planted,
    plies_of,
    random_positions,
    states_of,
)
from tests.search.searches import (
    BASE,
    CONFIGS,
    CONNECT4,
    TICTACTOE,
    every_game,
    finish,
    make_search,
    noise_of,
    row_bytes,
    run,
)

# --- against the reference -------------------------------------------------------------------------------------------

BUDGETS = [1, 2, 5, 13, 30, 64, 120, 200]
EVALUATIONS = {"spread": planted(0), "sharp": planted(1, sharp=True), "neutral": neutral}


@every_game
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_the_search_is_the_reference_node_for_node(game, config):
    evaluators = list(EVALUATIONS.values())
    which = list(CONFIGS).index(next(name for name in CONFIGS if CONFIGS[name] == config))
    evaluate = evaluators[which % 3]
    positions = random_positions(game, len(BUDGETS), seed=which)
    search, result = run(positions, config, evaluate, budgets=np.array(BUDGETS, np.int32))
    shares, gumbels = noise_of(positions, config), dense(search.tree).root_gumbel
    for b, position in enumerate(positions):
        expected = ReferenceSearch(config, evaluate)
        expected.start(position, shares[b], gumbels[b], BUDGETS[b])
        expected.run()
        compare_trees(search, b, expected)
        assert (result.visit_counts[b] == expected.visit_counts()).all()
        assert result.visit_counts[b].sum() == BUDGETS[b]
        assert result.values[b] == pytest.approx(expected.value(), abs=1e-5)
        assert result.policy[b] == pytest.approx(expected.policy(), abs=1e-5)
        legal = position.legal_actions
        completed = expected.completed_q()
        assert result.q[b, legal] == pytest.approx([completed[action] for action in legal], abs=1e-5)
        assert (abs(result.q[b, legal]) <= 1).all()
        assert abs(result.values[b]) <= 1


@every_game
@pytest.mark.parametrize(("simulations", "noise", "leaves"), [(30, 0.25, 1), (12, 0.0, 1), (16, 0.25, 4)])
def test_reuse_is_the_reference_over_whole_games(game, simulations, noise, leaves):
    """With few simulations and sharp priors the kept trees outgrow their room, so the youngest nodes go."""
    evaluate = planted(5, sharp=simulations < 20)
    count = 2 if simulations == 30 else 4
    config = replace(
        BASE, num_simulations=simulations, noise_fraction=noise, reuse_subtree=True, leaves_per_step=leaves, c_puct=1.0
    )
    positions: list[Position | None] = [game.start() for _ in range(count)]
    search = make_search(game, config, evaluate, count)
    references = [ReferenceSearch(config, evaluate) for _ in range(count)]
    played = np.full(count, -1)
    cut = 0
    rng = np.random.default_rng(simulations)
    while any(positions):
        rows = np.array([b for b in range(count) if positions[b]])
        here = [position for position in positions if position]
        quiet = make_search(game, replace(config, noise_fraction=1.0), neutral, len(rows))
        quiet.start(np.arange(len(rows)), states_of(here), rows, plies_of(here))
        before = search.tree.size.copy()
        search.start(rows, states_of(here), rows, plies_of(here), played[rows])
        kept = dense(search.tree).visits[rows, 0].sum(axis=1)
        finish(search)
        result = search.read(rows)
        for i, b in enumerate(rows):
            shares = dense(quiet.tree).root_prior[i]
            if played[b] >= 0:
                references[b].move(int(played[b]), shares)
                cut += before[b] > 1 + simulations and len(references[b].nodes()) == 1 + simulations
            else:
                references[b].start(here[i], shares)
            references[b].run()
            compare_trees(search, b, references[b])
            check_tree(search, b, here[i])
            assert result.visit_counts[i].sum() == kept[i] + simulations
            assert result.values[i] == pytest.approx(references[b].value(), abs=1e-5)
            # mostly the best action, sometimes any
            action = int(result.actions[i] if rng.random() < 0.8 else rng.choice(here[i].legal_actions))
            after = here[i].play(action)
            positions[b], played[b] = (None, -1) if after.terminal else (after, action)
    if game is CONNECT4 and simulations < 20:
        assert cut > 0, "no tree outgrew its room: the test has lost its point"


# --- alone and in a batch --------------------------------------------------------------------------------------------

BATCH_CONFIGS = {name: replace(CONFIGS[name], num_simulations=40) for name in ("noise", "eight-leaves", "gumbel-5")}


@every_game
@pytest.mark.parametrize("config", BATCH_CONFIGS.values(), ids=BATCH_CONFIGS)
def test_alone_is_as_in_a_batch_in_any_order_and_on_threads(game, config):
    evaluate = planted(2)
    positions = random_positions(game, 65, seed=3)
    numbers = 100 + np.arange(65)
    _, together = run(positions, config, evaluate, numbers)
    rows = [row_bytes(together, i) for i in range(65)]
    for i in (0, 1, 31, 64):
        _, alone = run([positions[i]], config, evaluate, numbers[[i]])
        assert row_bytes(alone, 0) == rows[i]
    order = np.random.default_rng(0).permutation(65)
    _, shuffled = run([positions[i] for i in order], config, evaluate, numbers[order])
    assert [row_bytes(shuffled, j) for j in range(65)] == [rows[i] for i in order]
    halves = [np.arange(0, 65, 2), np.arange(1, 65, 2)]

    def run_half(half: np.ndarray) -> SearchResult:
        return run([positions[i] for i in half], config, evaluate, numbers[half])[1]

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(run_half, halves))
    for half, result in zip(halves, found, strict=True):
        assert [row_bytes(result, j) for j in range(len(half))] == [rows[i] for i in half]


@pytest.mark.parametrize("config", BATCH_CONFIGS.values(), ids=BATCH_CONFIGS)
def test_trees_that_start_at_different_times_and_are_used_again(config):
    """As in self-play: a tree whose search is over starts the next one at once, while the others go on."""
    game, evaluate = CONNECT4, planted(4)
    positions = random_positions(game, 18, seed=8)
    states, plies, budgets = states_of(positions), plies_of(positions), np.array([40, 7, 23] * 6, np.int32)
    search = make_search(game, config, evaluate, 4)
    found: dict[int, tuple[bytes, ...]] = {}
    job = {}
    waiting = list(range(18))
    search.tree.remaining[:] = 0

    def start(tree: int) -> None:
        job[tree] = i = waiting.pop(0)
        search.start(np.array([tree]), states[[i]], np.array([i]), plies[[i]], budgets=budgets[[i]])

    for tree in range(4):
        start(tree)
        search.step()
        search.step()
    while job:
        search.step()
        for tree in search.finished():
            if tree in job:
                found[job.pop(tree)] = row_bytes(search.read(np.array([tree])), 0)
                if waiting:
                    start(int(tree))
    for i in range(18):
        _, alone = run([positions[i]], config, evaluate, np.array([i]), budgets[[i]])
        assert found[i] == row_bytes(alone, 0), f"position {i}"


@every_game
@pytest.mark.parametrize("name", ["noise", "eight-leaves", "gumbel-5", "gumbel-16-quiet", "unproven"])
def test_compiled_code_is_plain_python(game, name, monkeypatch):
    config = replace(CONFIGS[name], num_simulations=24)
    positions = random_positions(game, 50 if name == "noise" else 12, seed=21)
    evaluate = planted(6)
    compiled_search, compiled = run(positions, config, evaluate)
    nodes = [check_tree(compiled_search, b, position) for b, position in enumerate(positions)]
    monkeypatch.setattr("alphazero.game.kernels._kept_rules", {})  # else other tests had them, too
    kernels = Kernels(game)
    for kernel in (kernels.find_movers, kernels.describe, kernels.advance):
        kernel._run = np.errstate(over="ignore", divide="ignore")(plain(kernel.compiled))
    for kernel_name in ("simulate", "move_roots", "begin_roots", "read_roots"):
        as_python = plain(getattr(cpu_kernels, kernel_name))
        assert not hasattr(as_python, "py_func")
        monkeypatch.setattr(cpu_kernels, kernel_name, np.errstate(over="ignore", divide="ignore")(as_python))
    search = Search(kernels, config, evaluate, len(positions), 7)
    result = search.run(states_of(positions), np.arange(len(positions)), plies_of(positions))
    for i in range(len(positions)):
        assert row_bytes(result, i) == row_bytes(compiled, i), f"position {i}"
    trees = dense(search.tree), dense(compiled_search.tree)
    for field in ("q", "visits", "prior", "node_value", "visited_prior", "root_prior", "root_gumbel"):
        one, other = (getattr(tree, field) for tree in trees)
        for b in range(len(positions)):
            open_nodes = [node for node, position in nodes[b].items() if not position.terminal]
            rows = open_nodes if one.shape[:2] == search.tree.proven.shape else slice(None)
            assert one[b][rows].tobytes() == other[b][rows].tobytes(), field


# --- what is evaluated, and what is counted --------------------------------------------------------------------------


class Recorder:
    """An evaluation that remembers what it was asked."""

    def __init__(self, evaluate: Evaluate):
        self.evaluate = evaluate
        self.states: list[tuple[int, ...]] = []
        self.masks: list[np.ndarray] = []

    def __call__(self, states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.states += [tuple(int(word) for word in state) for state in states]
        self.masks += list(legal_masks.copy())
        return self.evaluate(states, legal_masks)


@every_game
@pytest.mark.parametrize("leaves", [1, 2, 8])
@pytest.mark.parametrize("prove", [True, False])
def test_every_leaf_is_evaluated_once_and_finished_games_never(game, leaves, prove):
    for seed in range(4):
        recorder = Recorder(planted(seed))
        position = random_positions(game, 1, seed=30 + seed)[0]
        search, result = run([position], replace(BASE, leaves_per_step=leaves, prove=prove), recorder)
        nodes = check_tree(search, 0, position)
        words = {node: tuple(int(word) for word in found.state) for node, found in nodes.items()}
        open_nodes = [node for node, found in nodes.items() if not found.terminal]
        # a position reached in two ways is two nodes; each of them is asked about once
        assert sorted(recorder.states) == sorted(words[node] for node in open_nodes)
        masks = {words[node]: nodes[node].legal_mask for node in open_nodes}
        for state, mask in zip(recorder.states, recorder.masks, strict=True):
            assert (masks[state] == mask).all()
        for node, found in nodes.items():
            if found.terminal:
                assert node not in set(search.tree.parent[0, 1 : search.tree.size[0]]), "a finished game was expanded"
        assert result.visit_counts.sum() == 200


@every_game
@pytest.mark.parametrize("leaves", [1, 2, 8])
def test_no_walk_under_way_stays_behind(game, leaves):
    """Every q and every node's sum is the mean and the sum of what was evaluated below, recomputed from the leaves."""
    positions = random_positions(game, 20, seed=12)
    search, result = run(positions, replace(BASE, prove=False, leaves_per_step=leaves), planted(8))
    tree = dense(search.tree)
    for b, position in enumerate(positions):
        nodes = check_tree(search, b, position)
        sums: dict[int, tuple[float, int]] = {}  # the values that went through a node for its mover, and their number
        for node in sorted(nodes, reverse=True):
            here = nodes[node]
            if here.terminal:
                visits = int(tree.visits[b, tree.parent[b, node], tree.action[b, node]])
                outcome = here.outcome if here.to_play == 0 else -here.outcome
                sums[node] = float(outcome * visits), visits
                continue
            total, count = float(tree.raw_value[b, node]), 1
            for action in here.legal_actions:
                child = int(tree.child[b, node, action])
                if child >= 0:
                    below, visits = sums[child]
                    below = below if nodes[child].to_play == here.to_play else -below
                    assert tree.visits[b, node, action] == visits
                    assert tree.q[b, node, action] == pytest.approx(below / visits, abs=1e-5)
                    total, count = total + below, count + visits
                else:
                    assert tree.visits[b, node, action] == 0
            assert tree.node_visits[b, node] == count
            assert leaves == 1 or tree.in_flight[b, node] == 0
            assert tree.node_value[b, node] == pytest.approx(total, abs=1e-3)
            sums[node] = total, count
        assert result.visit_counts[b].sum() == 200
        assert result.values[b] == pytest.approx(sums[0][0] / 201, abs=1e-5)


# --- reuse -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [{"reuse_subtree": False}, {"gumbel_actions": 4}])
def test_nothing_is_kept_where_reuse_is_off(change):
    config = replace(BASE, num_simulations=50, reuse_subtree=True)
    config = replace(config, **change)
    position = CONNECT4.start()
    search, result = run([position], config, planted(1))
    after = position.play(int(result.actions[0]))
    one = np.array([0])
    search.start(one, after.state[None].copy(), one, np.array([1]), result.actions)
    assert search.tree.size[0] == 1
    finish(search)
    fresh = make_search(CONNECT4, config, planted(1), 1)
    expected = fresh.run(after.state[None].copy(), one, np.array([1]))
    assert row_bytes(search.read(one), 0) == row_bytes(expected, 0)


def test_a_budget_beyond_the_room_is_refused():
    """The tree has room for `num_simulations` new nodes; nothing checks the kernels' writes behind its end."""
    for reuse in (False, True):
        search = make_search(TICTACTOE, replace(BASE, num_simulations=10, reuse_subtree=reuse), neutral, 1)
        zero = np.zeros(1, np.int64)
        with pytest.raises((InputError, ValueError)):
            search.start(zero, TICTACTOE.start().state[None].copy(), zero, zero, budgets=np.array([11], np.int32))


@pytest.mark.parametrize("config", [BASE, replace(BASE, gumbel_actions=4)], ids=["puct", "gumbel"])
def test_a_finished_position_is_refused(config):
    positions = [TICTACTOE.start(), TICTACTOE.position("a1 b1 a2 b2 a3")]
    with pytest.raises(IllegalAction, match="leave it out"):
        run(positions, config, neutral)


# --- evaluations of any kind -----------------------------------------------------------------------------------------


def weighted(factor: float, on_illegal: float = 0.0) -> Evaluate:
    def evaluate(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        priors, values = planted(11)(states, legal_masks)
        return np.where(legal_masks, priors * F(factor), F(on_illegal)), values

    return evaluate


@pytest.mark.parametrize("config", [BASE, replace(BASE, gumbel_actions=4, noise_fraction=0.25)], ids=["puct", "gumbel"])
@pytest.mark.parametrize("game", [TICTACTOE, CONNECT4], ids=lambda game: game.name)
def test_priors_of_any_sum_make_the_same_search(game, config):
    positions = random_positions(game, 10, seed=16)
    search, expected = run(positions, config, planted(11))
    for factor, on_illegal in ((2.0, 0.0), (1.0, 64.0), (2.0**-20, 1.0), (2.0**60, 0.0), (2.0**-100, 2.0**60)):
        search, result = run(positions, config, weighted(factor, on_illegal))
        assert (result.visit_counts == expected.visit_counts).all(), (factor, on_illegal)
        for b, position in enumerate(positions):
            check_tree(search, b, position)  # priors sum to 1, illegal ones are out


@pytest.mark.parametrize("weight", [0.0, 1e-40, 1.2e38, 3.4e38])
@pytest.mark.parametrize("config", [BASE, replace(BASE, gumbel_actions=4, noise_fraction=0.25)], ids=["puct", "gumbel"])
def test_no_mass_and_extreme_mass_are_equal_priors(weight, config):
    def evaluate(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.where(legal_masks, F(weight), F(0)), planted(12)(states, legal_masks)[1]

    def equal(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return legal_masks.astype(F), planted(12)(states, legal_masks)[1]

    positions = random_positions(CONNECT4, 6, seed=17)
    search, result = run(positions, config, evaluate)
    for b, position in enumerate(positions):
        assert not result.visit_counts[b, ~position.legal_mask].any(), f"{position}\nvisits {result.visit_counts[b]}"
        check_tree(search, b, position)
    assert (result.visit_counts == run(positions, config, equal)[1].visit_counts).all()


@pytest.mark.parametrize("fpu_reduction", [0.2, -1.0])
def test_only_legal_actions_are_searched_without_exploration(fpu_reduction):
    """c_puct 0 is allowed: the priors do not count then, but the rules still do."""
    positions = random_positions(TICTACTOE, 10, seed=18, low=2)
    search, result = run(positions, replace(BASE, c_puct=0.0, fpu_reduction=fpu_reduction), planted())
    for b, position in enumerate(positions):
        assert not result.visit_counts[b, ~position.legal_mask].any(), f"{position}\nvisits {result.visit_counts[b]}"
        check_tree(search, b, position)


# --- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prior", "visits", "best"),
    [
        ([1.0, 0.0], [3, 4], 1),
        ([0.98, 0.02], [1_000_000, 1_000_001], 1),
        ([0.2, 0.8], [5, 5], 1),
        ([0.8, 0.2], [5, 5], 0),
    ],
)
def test_the_most_visited_action_is_the_best_and_priors_decide_ties_alone(prior, visits, best):
    policy = np.ones(2, F)
    assert plain(visit_policy)(np.array(prior, F), np.array(visits, np.int32), policy) == best


@pytest.mark.parametrize(
    "setting",
    [{"num_simulations": 0}, {"c_puct": -0.1}, {"c_puct": math.nan}, {"noise_fraction": 1.1}, {"noise_total": 0.0},
     {"prior_temperature": 0.05}, {"prior_temperature": 11.0}, {"gumbel_actions": -1},
     {"leaves_per_step": 0}],
)  # fmt: skip
def test_settings_outside_their_range_are_refused(setting):
    with pytest.raises(InvalidSetting, match=next(iter(setting))):
        replace(BASE, **setting)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"states": np.zeros((2, 1), np.uint64)}, r"states must have the shape \(2, 2\), not \(2, 1\)"),
        ({"games": np.zeros(1, np.int64)}, r"games must have the shape \(2,\), not \(1,\)"),
        ({"plies": [0, 1, 2]}, r"plies must have the shape \(2,\), not \(3,\)"),
        ({"trees": [0, 3]}, "trees are numbered from 0 to 2"),
        ({"trees": [-1, 0]}, "trees are numbered from 0 to 2"),
        ({"actions": [1]}, r"actions must have the shape \(2,\), not \(1,\)"),
        ({"budgets": [1]}, r"budgets must have the shape \(2,\), not \(1,\)"),
    ],
)
def test_arrays_of_wrong_shapes_are_refused(wrong, sentence):
    """Kernels look at no index: they would read and write what lies beside the arrays."""
    search = make_search(CONNECT4, replace(BASE, reuse_subtree=True), neutral, 3)
    given = {"trees": [0, 1], "states": np.zeros((2, 2), np.uint64), "games": [0, 1], "plies": range(2)}
    with pytest.raises(ValueError, match=sentence):
        search.start(**{**given, **wrong})


def test_lists_are_taken_for_arrays():
    search = make_search(CONNECT4, BASE, neutral, 3)
    states = search.kernels.start_states(2)
    result = search.run(states, games=[0, 1], plies=range(2))
    assert (result.visit_counts == search.run(states, np.arange(2), np.arange(2)).visit_counts).all()
    with pytest.raises(ValueError, match="4 positions do not fit into 3 trees"):
        search.run(search.kernels.start_states(4), np.arange(4), np.arange(4))
