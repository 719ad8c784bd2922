"""The search against a plain reference, planted evaluations, games known by thought, and golden trees.

`PYTHONPATH=. python tests/search/test_mcts.py --write` writes tests/search/golden/*.json anew: only after a change of
the search that was meant to change its results, and only once the tests against the reference pass.
"""

from __future__ import annotations

import json
import math
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alphazero.errors import InputError, InvalidSetting
from alphazero.game import Game, Position, registry
from alphazero.game.functions import plain
from alphazero.game.kernels import Kernels
from alphazero.players.baselines import action_values
from alphazero.search import cpu_kernels
from alphazero.search.mcts import Evaluate, Search, SearchConfig, SearchResult
from tests.game.double_move_game import DoubleMove
from tests.search.reference_search import (
    F,
    ReferenceSearch,
    check_tree,
    compare_trees,
    neutral,
    planted,
    plies_of,
    random_lines,
    random_positions,
    states_of,
)

TICTACTOE, CONNECT4 = (registry.load(name).game for name in ("tictactoe", "connect4"))
DOUBLE_MOVE = DoubleMove()
GAMES = {game.name: game for game in (TICTACTOE, CONNECT4, DOUBLE_MOVE)}
KERNELS = {name: Kernels(game) for name, game in GAMES.items()}
GOLDEN = Path(__file__).parent / "golden"
# every setting is written out: the defaults may change
BASE = SearchConfig(
    num_simulations=200, c_puct=1.5, fpu_reduction=0.2, noise_fraction=0.0, noise_total=10.0,
    gumbel_actions=0, gumbel_visit_offset=50.0, gumbel_value_scale=1.0, reuse_subtree=False, prove=True,
    leaves_per_step=1, prior_temperature=1.0,
)  # fmt: skip
UNPROVEN = 2

every_game = pytest.mark.parametrize("game", GAMES.values(), ids=GAMES)


def make_search(game: Game, config: SearchConfig, evaluate: Evaluate, count: int, seed: int = 7) -> Search:
    return Search(KERNELS[game.name], config, evaluate, count, seed)


def run(
    positions: list[Position],
    config: SearchConfig,
    evaluate: Evaluate,
    numbers: np.ndarray | None = None,
    budgets: np.ndarray | None = None,
    seed: int = 7,
) -> tuple[Search, SearchResult]:
    """Searches the positions side by side; position i belongs to game `numbers[i]`, or i."""
    everyone = np.arange(len(positions))
    search = make_search(positions[0].game, config, evaluate, len(positions), seed)
    numbers = everyone if numbers is None else numbers
    search.start(everyone, states_of(positions), numbers, plies_of(positions), budgets=budgets)
    finish(search)
    return search, search.read(everyone)


def finish(search: Search) -> None:
    steps = 0
    while search.tree.remaining.any():
        search.step()
        steps += 1
        assert steps <= 4 * search.config.num_simulations, "the search does not come to an end"


def noise_of(positions: list[Position], config: SearchConfig, seed: int = 7) -> list[np.ndarray | None]:
    """The Dirichlet shares of each root: what its priors become when the noise is everything."""
    if config.noise_fraction == 0 or config.gumbel_actions:
        return [None] * len(positions)
    count = len(positions)
    search = make_search(positions[0].game, replace(config, noise_fraction=1.0), neutral, count, seed)
    search.start(np.arange(count), states_of(positions), np.arange(count), plies_of(positions))
    return list(search.tree.root_prior)


def row_bytes(result: SearchResult, i: int) -> tuple[bytes, ...]:
    """All that was found for position i, bit for bit."""
    parts = result.visit_counts, result.policy, result.q, result.values, result.actions
    return tuple(part[i].tobytes() for part in parts)


# --- against the reference -------------------------------------------------------------------------------------------

CONFIGS = {
    "plain": BASE,
    "greedy": replace(BASE, c_puct=0.3, fpu_reduction=0.0),
    "wide": replace(BASE, c_puct=4.0, fpu_reduction=-0.5),
    "unproven": replace(BASE, prove=False),
    "flat": replace(BASE, prior_temperature=1.7, noise_fraction=0.25),
    "noise": replace(BASE, noise_fraction=0.25),
    "three-leaves": replace(BASE, leaves_per_step=3),
    "eight-leaves": replace(BASE, leaves_per_step=8, noise_fraction=0.25),
    "eight-leaves-unproven": replace(BASE, leaves_per_step=8, prove=False),
    "gumbel-2": replace(BASE, gumbel_actions=2, noise_fraction=0.25),
    "gumbel-5": replace(BASE, gumbel_actions=5, noise_fraction=0.25, gumbel_value_scale=0.1),
    "gumbel-4-flat": replace(BASE, gumbel_actions=4, noise_fraction=0.25, prior_temperature=2.5),
    "gumbel-16-quiet": replace(BASE, gumbel_actions=16, noise_fraction=0.0, gumbel_visit_offset=10.0),
}
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
    shares = noise_of(positions, config)
    for b, position in enumerate(positions):
        expected = ReferenceSearch(config, evaluate)
        expected.start(position, shares[b], search.tree.root_gumbel[b], BUDGETS[b])
        expected.run()
        compare_trees(search, b, expected)
        assert (result.visit_counts[b] == expected.visit_counts()).all()
        assert result.visit_counts[b].sum() == BUDGETS[b]
        assert result.values[b] == pytest.approx(expected.value(), abs=1e-5)
        assert result.policy[b] == pytest.approx(expected.policy(), abs=1e-5)
        legal = position.legal_actions
        completed = expected.completed_q()
        assert result.q[b, legal] == pytest.approx([completed[action] for action in legal], abs=1e-5)
        # a virtual loss that turns into +1 moves q by a rounded step: it may end an ulp beyond
        assert (abs(result.q[b, legal]) <= (1 if config.leaves_per_step == 1 else 1 + 1e-6)).all()
        assert abs(result.values[b]) <= 1


@every_game
@pytest.mark.parametrize(("simulations", "noise", "leaves"), [(60, 0.25, 1), (12, 0.0, 1), (16, 0.25, 4)])
def test_reuse_is_the_reference_over_whole_games(game, simulations, noise, leaves):
    """With few simulations and sharp priors the kept trees outgrow their room, so the youngest nodes go."""
    evaluate = planted(5, sharp=simulations < 20)
    count = 2 if simulations == 60 else 4
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
        kept = search.tree.visits[rows, 0].sum(axis=1)
        finish(search)
        result = search.read(rows)
        for i, b in enumerate(rows):
            shares = quiet.tree.root_prior[i]
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


def test_noise_and_gumbels_follow_the_seed_the_game_and_the_ply():
    position = CONNECT4.start()
    for config in (CONFIGS["noise"], replace(CONFIGS["gumbel-5"], gumbel_actions=3)):
        config = replace(config, num_simulations=30)

        def visits(numbers, plies, seed=7, config=config):
            search = make_search(CONNECT4, config, planted(), 20, seed)
            result = search.run(np.repeat(position.state[None], 20, axis=0), numbers, plies)
            return [row.tobytes() for row in result.visit_counts]

        various, same = np.arange(20), np.full(20, 3)
        assert len(set(visits(same, same))) == 1
        assert visits(same, same) == visits(same, same)
        assert len(set(visits(various, same))) > 3
        assert len(set(visits(same, various))) > 3
        assert len({visits(same, same, seed)[0] for seed in range(10)}) > 3


@every_game
@pytest.mark.parametrize("name", ["noise", "eight-leaves", "gumbel-5", "gumbel-16-quiet", "unproven"])
def test_compiled_code_is_plain_python(game, name, monkeypatch):
    config = replace(CONFIGS[name], num_simulations=24)
    positions = random_positions(game, 50 if name == "noise" else 12, seed=21)
    evaluate = planted(6)
    compiled_search, compiled = run(positions, config, evaluate)
    nodes = [check_tree(compiled_search, b, position) for b, position in enumerate(positions)]
    kernels = Kernels(game)
    for kernel in (kernels.find_movers, kernels.describe, kernels.advance):
        kernel._run = kernel.plain
    for kernel_name in ("move_roots", "open_roots", "prepare_roots", "select", "expand_and_backup", "read_roots"):
        as_python = plain(getattr(cpu_kernels, kernel_name))
        assert not hasattr(as_python, "py_func")
        monkeypatch.setattr(cpu_kernels, kernel_name, np.errstate(over="ignore", divide="ignore")(as_python))
    search = Search(kernels, config, evaluate, len(positions), 7)
    result = search.run(states_of(positions), np.arange(len(positions)), plies_of(positions))
    for i in range(len(positions)):
        assert row_bytes(result, i) == row_bytes(compiled, i), f"position {i}"
    for field in ("q", "visits", "prior", "node_value", "visited_prior", "root_prior", "root_gumbel"):
        one, other = getattr(search.tree, field), getattr(compiled_search.tree, field)
        for b in range(len(positions)):
            open_nodes = [node for node, position in nodes[b].items() if not position.terminal]
            rows = open_nodes if one.shape[:2] == search.tree.proven.shape else slice(None)
            assert one[b][rows].tobytes() == other[b][rows].tobytes(), field


# --- games known by thought ------------------------------------------------------------------------------------------

WINS = {  # a win in one; in notation of the game
    "tictactoe": [("a1 a2 b1 b2", "c1"), ("b2 a1 a3 c1 b3 c3", "b1"), ("c3 b2 a1 a2 c1", "c2")],
    "connect4": [("1 1 2 2 3 3", "4"), ("4 1 4 1 4 2", "4"), ("1 2 2 3 3 4 3 4 4 6", "4")],
}
BLOCKS = {  # the only block, and nothing to win
    "tictactoe": [("a1 b2 b1", "c1"), ("c3 b2 c1", "c2"), ("b2 a1 c1", "a3")],
    "connect4": [("1 7 2 7 3", "4"), ("4 1 4 1 4", "4"), ("2 7 1 1 4 6 7", "3")],
}


@cache
def won_at_once(game: Game) -> list[Position]:
    """Random positions with a win in one."""
    return random_positions(game, 60, seed=1, keep=wins_at_once)


@cache
def blocked(game: Game) -> list[Position]:
    """Random positions where one action alone does not lose at once, nor later as far as minimax sees."""
    keep = random_positions(
        game, 40, seed=2,
        keep=lambda position: not wins_at_once(position)
        and len(losing_actions(position)) == len(position.legal_actions) - 1,
    )  # fmt: skip
    exact = action_values(KERNELS[game.name], 8)(states_of(keep))
    return [position for position, values in zip(keep, exact, strict=True) if values.max() > -1]


@cache
def late_positions(game: Game, low: int) -> tuple[list[Position], np.ndarray]:
    """200 random positions (60 of the smallest game) and their actions' exact results by minimax to the end."""
    lines, _ = random_lines(KERNELS[game.name], 60 if game is DOUBLE_MOVE else 200, 5, low)
    positions = [game.position(line) for line in lines]
    exact = action_values(KERNELS[game.name], game.max_plies - low)(states_of(positions))
    return positions, np.sign(exact)


def texts(cases: dict[str, list[tuple[str, str]]]) -> list[Any]:
    return [
        pytest.param(GAMES[name].position(text), answer, id=f"{name}: {text}")
        for name, rows in cases.items()
        for text, answer in rows
    ]


def losing_actions(position: Position) -> list[int]:
    """Those that let the other one win at once."""
    lost = []
    for action in position.legal_actions:
        after = position.play(action)
        if not after.terminal and wins_at_once(after):
            lost.append(action)
    return lost


def wins_at_once(position: Position) -> list[int]:
    winner = 1 if position.to_play == 0 else -1
    after = {action: position.play(action) for action in position.legal_actions}
    return [action for action, child in after.items() if child.terminal and child.outcome == winner]


@pytest.mark.parametrize(("position", "answer"), texts(WINS))
@pytest.mark.parametrize("prove", [True, False])
@pytest.mark.parametrize("noise", [0.0, 0.25])
@pytest.mark.parametrize("leaves", [1, 8])
def test_a_win_in_one_gets_most_visits(position, answer, prove, noise, leaves):
    action = position.parse(answer)
    assert wins_at_once(position) == [action]
    config = replace(BASE, noise_fraction=noise, prove=prove, leaves_per_step=leaves)
    _, result = run([position] * 10, config, neutral)
    assert (result.visit_counts.argmax(axis=1) == action).all()
    assert (result.visit_counts[:, action] > 100).all()
    assert (result.actions == action).all()
    if prove:
        assert (result.values == 1).all()
        assert (result.policy[:, action] == 1).all()


@pytest.mark.parametrize(("position", "answer"), texts(BLOCKS))
@pytest.mark.parametrize("prove", [True, False])
@pytest.mark.parametrize("noise", [0.0, 0.25])
@pytest.mark.parametrize("leaves", [1, 8])
def test_the_only_block_gets_most_visits(position, answer, prove, noise, leaves):
    action = position.parse(answer)
    assert not wins_at_once(position)
    assert set(losing_actions(position)) == set(position.legal_actions) - {action}
    config = replace(BASE, noise_fraction=noise, prove=prove, leaves_per_step=leaves)
    _, result = run([position] * 10, config, neutral)
    assert (result.visit_counts.argmax(axis=1) == action).all()
    assert (result.actions == action).all()
    if prove:
        assert (result.policy[:, action] == 1).all()  # the others are proven losses


@pytest.mark.parametrize("config", [BASE, replace(BASE, gumbel_actions=16), replace(BASE, leaves_per_step=8)])
@pytest.mark.parametrize("game", [TICTACTOE, CONNECT4], ids=lambda game: game.name)
def test_wins_and_blocks_of_random_positions(game, config):
    _, result = run(won_at_once(game), config, neutral)
    assert (result.values == 1).all()
    for position, action in zip(won_at_once(game), result.actions, strict=True):
        assert action in wins_at_once(position), str(position)
    assert len(blocked(game)) >= 20
    _, result = run(blocked(game), config, neutral)
    for position, action in zip(blocked(game), result.actions, strict=True):
        assert action not in losing_actions(position), str(position)


WIN_IN_2 = "4 4 5 5", "4 2 6 2 6 6", "3 3 4 1 4 1", "4 6 4 6 3 7 3 7", "3 6 4 7 7 3", "4 4 5 1 4 7"
WIN_IN_3 = "2 3 2 1 4 1 3 4 3 3", "6 3 7 2 3 7 2 1", "6 2 5 5 5 4 6 4 3", "2 1 6 3 1 5 4 1 3 6"


@pytest.mark.parametrize("config", [BASE, replace(BASE, noise_fraction=0.25), replace(BASE, leaves_per_step=8)])
@pytest.mark.parametrize(("moves", "simulations", "lines"), [(2, 800, WIN_IN_2), (3, 6000, WIN_IN_3)])
def test_wins_in_two_and_three_moves_are_found_and_proven(moves, simulations, lines, config):
    positions = [CONNECT4.position(text) for text in lines]
    exact = action_values(KERNELS["connect4"], 2 * moves - 1)(states_of(positions))
    sooner = action_values(KERNELS["connect4"], 2 * moves - 3)(states_of(positions))
    assert (exact.max(axis=1) > 1).all() and (sooner.max(axis=1) < 1).all()  # minimax knows the wins too
    search, result = run(positions, replace(config, num_simulations=simulations), neutral)
    for i, position in enumerate(positions):
        assert exact[i, result.actions[i]] > 1, f"{position}\nplayed {position.format(int(result.actions[i]))}"
    assert (result.values == 1).all()
    assert (search.tree.proven[:, 0] == 1).all()


# --- proofs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "low", "simulations"),
    [(TICTACTOE, 3, 400), (CONNECT4, 31, 600), (DOUBLE_MOVE, 2, 400)],
    ids=lambda value: getattr(value, "name", str(value)),
)
@pytest.mark.parametrize("config", [BASE, replace(BASE, leaves_per_step=8), replace(BASE, gumbel_actions=4)])
def test_proven_values_are_those_of_minimax(game, low, simulations, config):
    positions, exact = late_positions(game, low)
    search, result = run(positions, replace(config, num_simulations=simulations), planted(3))
    proven_roots, proven_actions = 0, 0
    for b, position in enumerate(positions):
        signs = exact[b]
        for action in position.legal_actions:
            known = search.tree.action_proven[b, 0, action]
            if known != UNPROVEN:
                proven_actions += 1
                assert known == signs[action], f"{position}\n{position.format(action)}"
        if search.tree.proven[b, 0] != UNPROVEN:
            proven_roots += 1
            assert result.values[b] == signs.max(), position
            assert signs[result.actions[b]] == signs.max(), position
            assert (signs[result.policy[b] > 0] == signs.max()).all(), "the target holds what is known to be worse"
    assert len(positions) == (60 if game is DOUBLE_MOVE else 200)
    assert proven_roots > len(positions) / 2 and proven_actions > len(positions)
    assert {-1.0, 0.0, 1.0} <= set(result.values[search.tree.proven[:, 0] != UNPROVEN])


def test_nothing_is_proven_when_proofs_are_off():
    positions = random_positions(TICTACTOE, 20, seed=6, low=4)
    search, result = run(positions, replace(BASE, prove=False), planted())
    assert (search.tree.action_proven[:, 0] == UNPROVEN).all()
    assert (search.tree.proven[:, 0] == UNPROVEN).all()
    assert (abs(result.values) < 1).all()


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
def test_no_virtual_loss_stays_behind(game, leaves):
    """Every q and every node's sum is the mean and the sum of what was evaluated below, recomputed from the leaves."""
    positions = random_positions(game, 20, seed=12)
    search, result = run(positions, replace(BASE, prove=False, leaves_per_step=leaves), planted(8))
    tree = search.tree
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
            assert tree.node_value[b, node] == pytest.approx(total, abs=1e-3)
            sums[node] = total, count
        assert result.visit_counts[b].sum() == 200
        assert result.values[b] == pytest.approx(sums[0][0] / 201, abs=1e-5)


def test_a_search_with_proofs_keeps_the_means_of_what_is_not_proven():
    positions = random_positions(CONNECT4, 30, seed=13, low=10)
    for leaves in (1, 8):
        search, _ = run(positions, replace(BASE, leaves_per_step=leaves), planted(9))
        tree = search.tree
        for b, position in enumerate(positions):
            nodes = check_tree(search, b, position)
            for node in range(1, len(nodes)):
                parent, action = tree.parent[b, node], tree.action[b, node]
                if tree.action_proven[b, parent, action] == UNPROVEN:
                    sign = 1 if nodes[node].to_play == nodes[parent].to_play else -1
                    mean = sign * tree.node_value[b, node] / tree.node_visits[b, node]
                    assert tree.q[b, parent, action] == pytest.approx(mean, abs=1e-5)
                    assert tree.visits[b, parent, action] == tree.node_visits[b, node]


@pytest.mark.parametrize("leaves", [2, 8, 64])
def test_leaves_in_flight_do_not_change_what_is_thought_good(leaves):
    """Most visited alone and with several leaves: mostly the same, and the visits hardly move."""
    positions = random_positions(CONNECT4, 40, seed=14, low=4)
    config = replace(BASE, num_simulations=400)
    _, alone = run(positions, config, planted(10))
    _, several = run(positions, replace(config, leaves_per_step=leaves), planted(10))
    assert (several.visit_counts.sum(axis=1) == 400).all()
    assert (alone.actions == several.actions).mean() > (0.8 if leaves <= 8 else 0.6)
    moved = abs(alone.policy - several.policy).sum(axis=1) / 2
    assert moved.mean() < (0.15 if leaves <= 8 else 0.3)


# --- reuse -----------------------------------------------------------------------------------------------------------


def test_a_kept_tree_has_its_visits_and_gets_new_noise():
    config = replace(BASE, num_simulations=100, reuse_subtree=True, noise_fraction=0.25)
    position = CONNECT4.position("4 4")
    search, result = run([position], config, planted(1))
    action = int(result.actions[0])
    child = int(search.tree.child[0, 0, action])
    visits, raw, q = (getattr(search.tree, name)[0, child].copy() for name in ("visits", "prior", "q"))
    value = search.tree.node_value[0, child] / search.tree.node_visits[0, child]
    assert visits.sum() > 10
    after = position.play(action)
    one = np.array([0])
    search.start(one, after.state[None].copy(), one, np.array([after.ply]), np.array([action]))
    result = search.read(one)
    assert (result.visit_counts[0] == visits).all()
    assert (search.tree.q[0, 0] == q).all()
    assert (search.tree.prior[0, 0] == raw).all()
    assert result.values[0] == pytest.approx(value)
    (share,) = noise_of([after], config)
    assert search.tree.root_prior[0] == pytest.approx(0.75 * raw + 0.25 * share, abs=1e-6)
    assert abs(search.tree.root_prior[0] - raw).max() > 0.01
    finish(search)
    result = search.read(one)
    assert result.visit_counts.sum() == visits.sum() + 100
    assert (result.visit_counts[0] >= visits).all()
    assert result.policy[0] == pytest.approx(result.visit_counts[0] / result.visit_counts.sum())


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


def test_budgets_are_each_trees_own():
    positions = random_positions(CONNECT4, 6, seed=15, low=2)
    everyone = np.arange(6)
    config = replace(BASE, num_simulations=60, noise_fraction=0.25)
    search = make_search(CONNECT4, config, planted(), 6)
    budgets = np.array([60, 1, 17, 60, 33, 2], np.int32)
    search.start(everyone, states_of(positions), everyone, plies_of(positions), None, budgets)
    finish(search)
    result = search.read(everyone)
    assert (result.visit_counts.sum(axis=1) == budgets).all()
    for i in everyone:
        _, alone = run([positions[i]], config, planted(), np.array([i]), budgets[[i]])
        assert row_bytes(result, i) == row_bytes(alone, 0)


def test_a_budget_beyond_the_room_is_refused():
    """The tree has room for `num_simulations` new nodes; nothing checks the kernels' writes behind its end."""
    for reuse in (False, True):
        search = make_search(TICTACTOE, replace(BASE, num_simulations=10, reuse_subtree=reuse), neutral, 1)
        zero = np.zeros(1, np.int64)
        with pytest.raises((InputError, ValueError)):
            search.start(zero, TICTACTOE.start().state[None].copy(), zero, zero, budgets=np.array([11], np.int32))


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


# --- sequential halving ----------------------------------------------------------------------------------------------


def test_gumbel_visits_the_best_by_gumbel_and_logit_first():
    for considered in (1, 2, 3, 4, 6, 16):
        config = replace(BASE, num_simulations=16, gumbel_actions=considered, noise_fraction=0.25)
        positions = random_positions(CONNECT4, 25, seed=19)
        search = make_search(CONNECT4, config, planted(), 25)
        search.start(np.arange(25), states_of(positions), np.arange(25), plies_of(positions))
        counts = [min(considered, len(position.legal_actions)) for position in positions]
        for _ in range(max(counts)):
            search.step()
            visits = search.read(np.arange(25)).visit_counts
            for b, count in enumerate(counts):
                if visits[b].sum() == count > 1:
                    scores = search.tree.root_gumbel[b] + np.log(np.maximum(search.tree.prior[b, 0], 1e-12))
                    scores[~positions[b].legal_mask] = -np.inf
                    if not (search.tree.action_proven[b, 0] == 1).any():
                        assert set(np.flatnonzero(visits[b])) == set(np.argsort(-scores)[:count])
                        assert visits[b].max() == 1


@pytest.mark.parametrize(
    ("considered", "simulations", "visits"),
    # from the start of Connect Four nothing is proven in so few simulations; see the schedules in test_tree.py
    [
        (4, 16, [6, 6, 2, 2, 0, 0, 0]),
        (2, 9, [5, 4, 0, 0, 0, 0, 0]),
        (1, 9, [9, 0, 0, 0, 0, 0, 0]),
        (16, 5, [1, 1, 1, 1, 1, 0, 0]),
        (3, 5, [2, 2, 1, 0, 0, 0, 0]),
        (16, 200, [67, 66, 31, 9, 9, 9, 9]),
    ],
)
@pytest.mark.parametrize("noise", [0.0, 0.25])
def test_halving_counts_by_hand(considered, simulations, visits, noise):
    config = replace(BASE, num_simulations=simulations, gumbel_actions=considered, noise_fraction=noise)
    _, result = run([CONNECT4.start()] * 10, config, planted())
    assert (np.sort(result.visit_counts, axis=1)[:, ::-1] == visits).all()


def test_a_gumbel_roots_value_is_not_spoilt_by_the_bad_actions_it_tries():
    center = np.uint64(CONNECT4.start().play(3).state.max())  # the stone on d1

    def evaluate(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Good for the first player as soon as somebody has taken d1, else bad."""
        stones = states[:, 0] | states[:, 1]
        first_to_move = np.array([int(word).bit_count() % 2 == 0 for word in stones])
        first = np.where(stones & center, 0.8, -0.8)
        return legal_masks.astype(np.float32), np.where(first_to_move, first, -first).astype(np.float32)

    config = replace(BASE, num_simulations=32, gumbel_actions=7)
    search, result = run([CONNECT4.start()] * 10, config, evaluate)
    assert (result.actions == 3).all()
    assert (search.tree.node_value[:, 0] / search.tree.node_visits[:, 0] < 0.2).all()  # the mean of all visits
    assert result.values == pytest.approx(0.8, abs=0.01)


def softmax_target(search: Search, b: int, config: SearchConfig, most_visits: int) -> np.ndarray:
    """softmax(logits + sigma(completed q)) in float64 (Danihelka et al. 2022, equations 11 and 33), nothing proven."""
    tree = search.tree
    prior, visits = tree.prior[b, 0].astype(float), tree.visits[b, 0]
    legal, q = prior >= 0, tree.q[b, 0].astype(float)
    visited = visits > 0
    mix = float(tree.raw_value[b, 0])
    if visited.any():
        mean = (prior * q)[visited].sum() / prior[visited].sum()
        mix = (mix + visits.sum() * mean) / (1 + visits.sum())
    completed = np.where(visited, q, mix)
    sigma = (config.gumbel_visit_offset + most_visits) * config.gumbel_value_scale * (completed + 1) / 2
    scores = np.where(legal, np.log(np.maximum(prior, 1e-12)) + sigma, -np.inf)
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def pessimist(value: float) -> Evaluate:
    """The player to move at an even ply has `value` everywhere, more or less; the other one the opposite."""

    def evaluate(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        priors, values = planted(13)(states, legal_masks)
        stones = np.array([int(state[0] | state[1]).bit_count() for state in states], np.int64)
        return priors, np.where(stones % 2 == 0, F(value), F(-value)) + values / 64

    return evaluate


@pytest.mark.parametrize("value", [0.9, 0.0, -0.5, -0.95])
@pytest.mark.parametrize("simulations", [16, 200, 800])
@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_the_gumbel_target_is_the_improved_policy(value, simulations, scale):
    """It must not depend on how good the position is: a softmax ignores what all values have in common."""
    config = replace(
        BASE, num_simulations=simulations, gumbel_actions=16, noise_fraction=0.25, gumbel_value_scale=scale, prove=False
    )
    search, result = run([CONNECT4.start()] * 4, config, pessimist(value))
    for b in range(4):
        expected = softmax_target(search, b, config, int(result.visit_counts[b].max()))
        assert result.policy[b] == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("game", [TICTACTOE, CONNECT4], ids=lambda game: game.name)
def test_the_gumbel_winner_has_the_best_score_of_the_most_visited(game):
    config = replace(BASE, num_simulations=40, gumbel_actions=4, noise_fraction=0.25)
    positions = random_positions(game, 60, seed=20)
    search, result = run(positions, config, planted(14))
    for b, position in enumerate(positions):
        proven = search.tree.action_proven[b, 0]
        legal = position.legal_actions
        eligible = [action for action in legal if proven[action] == 1]
        eligible = eligible or [action for action in legal if proven[action] != -1] or legal
        visits = result.visit_counts[b]
        most = int(max(visits[legal]))
        sigma = (50.0 + most) * (result.q[b].astype(float) + 1) / 2
        scores = search.tree.root_gumbel[b] + np.log(np.maximum(search.tree.prior[b, 0], 1e-12)) + sigma
        if most in visits[eligible]:
            leaders = [action for action in eligible if visits[action] == most]
            assert result.actions[b] == max(leaders, key=lambda action: scores[action])
        else:  # the most visited one is lost: one of those that lead now, or the best of all that are left
            leaders = [action for action in eligible if visits[action] == visits[eligible].max()]
            best = max(leaders, key=lambda action: scores[action]), max(eligible, key=lambda action: scores[action])
            assert result.actions[b] in best


def test_gumbel_without_noise_is_deterministic():
    config = replace(BASE, num_simulations=32, gumbel_actions=4, noise_fraction=0.0)
    position = CONNECT4.position("4 3")
    results = [run([position], config, planted(), np.array([number]), seed=number)[1] for number in range(6)]
    assert len({row_bytes(result, 0) for result in results}) == 1
    noisy = replace(config, noise_fraction=0.25)
    assert len({row_bytes(run([position], noisy, planted(), np.array([i]))[1], 0) for i in range(6)}) > 1
    # without noise the considered actions are those of highest prior
    prior = planted()(position.state[None], position.legal_mask[None])[0][0]
    assert set(np.flatnonzero(results[0].visit_counts[0])) == set(np.argsort(-prior)[:4])


def test_an_untrained_net_does_not_play_the_first_actions_in_their_order():
    """In gomoku those are five in a row, and no candidate passed the gate against that."""
    config = replace(BASE, num_simulations=8, gumbel_actions=4, noise_fraction=0.0)
    count = 70
    played = run([CONNECT4.start()] * count, config, neutral, np.arange(count))[1].actions
    # each of 7 actions is the choice of 10 games on average; 1 in 30,000 for one of them to be that of none
    assert set(played) == set(range(7))


@pytest.mark.parametrize("leaves", [2, 8])
def test_gumbel_with_leaves_in_flight_spends_its_budget_on_the_considered(leaves):
    config = replace(BASE, num_simulations=64, gumbel_actions=4, noise_fraction=0.25, leaves_per_step=leaves)
    search, result = run([CONNECT4.start()] * 10, config, planted())
    assert (result.visit_counts.sum(axis=1) == 64).all()
    for b in range(10):
        scores = search.tree.root_gumbel[b] + np.log(search.tree.prior[b, 0])
        assert set(np.flatnonzero(result.visit_counts[b])) == set(np.argsort(-scores)[:4])


# --- reading ---------------------------------------------------------------------------------------------------------


def test_before_the_first_simulation_the_prior_speaks():
    position = CONNECT4.position("4 4 1 1 1 1 1 1")
    search = make_search(CONNECT4, BASE, planted(), 1)
    one = np.zeros(1, np.int64)
    search.start(one, position.state[None].copy(), one, one)
    result = search.read(one)
    prior, value = (part[0] for part in planted()(position.state[None], position.legal_mask[None]))
    assert result.actions[0] == prior.argmax()
    assert result.values[0] == value
    assert result.q[0, position.legal_actions] == pytest.approx([value] * 6)
    assert result.policy.sum() == 1 and not result.policy[0, 0]


@every_game
def test_policies_are_visits_over_their_sum_with_proofs_put_in(game):
    positions = random_positions(game, 60, seed=22)
    search, result = run(positions, replace(BASE, num_simulations=50), planted(15))
    for b, position in enumerate(positions):
        proven, visits = search.tree.action_proven[b, 0], result.visit_counts[b].astype(float)
        legal = position.legal_mask
        if (proven[legal] == 1).any():
            visits[proven != 1] = 0
        elif (proven[legal] != -1).any():
            visits[proven == -1] = 0
        assert result.policy[b].sum() == pytest.approx(1)
        assert not result.policy[b, ~legal].any()
        if visits.any():
            assert result.policy[b] == pytest.approx(visits / visits.sum(), abs=1e-6)
            assert result.policy[b, result.actions[b]] == result.policy[b].max()


@pytest.mark.parametrize(
    "setting",
    [{"num_simulations": 0}, {"c_puct": -0.1}, {"c_puct": math.nan}, {"noise_fraction": 1.1}, {"noise_total": 0.0},
     {"prior_temperature": 0.05}, {"prior_temperature": 11.0}, {"gumbel_actions": -1},
     {"leaves_per_step": 0}],
)  # fmt: skip
def test_settings_outside_their_range_are_refused(setting):
    with pytest.raises(InvalidSetting, match=next(iter(setting))):
        replace(BASE, **setting)


# --- golden trees ----------------------------------------------------------------------------------------------------

GOLDEN_CASES: dict[str, tuple[str, str, int, dict[str, Any]]] = {
    # name: game, moves before, plies searched, settings
    "puct_tictactoe": ("tictactoe", "b2", 1, {"num_simulations": 150, "noise_fraction": 0.25}),
    "puct_connect4": ("connect4", "4 4", 1, {"num_simulations": 200, "noise_fraction": 0.25}),
    "puct_double_move": ("double_move", "1 2", 1, {"num_simulations": 120}),
    "leaves_connect4": ("connect4", "1 7 2 7", 1, {"num_simulations": 150, "leaves_per_step": 4}),
    "gumbel_tictactoe": ("tictactoe", "a1 b2", 1, {"num_simulations": 64, "gumbel_actions": 4, "noise_fraction": 0.25}),
    "gumbel_connect4": ("connect4", "", 1, {"num_simulations": 100, "gumbel_actions": 16, "noise_fraction": 0.25}),
    "reuse_tictactoe": ("tictactoe", "", 3, {"num_simulations": 60, "reuse_subtree": True, "noise_fraction": 0.25}),
    "reuse_connect4": ("connect4", "4", 3, {"num_simulations": 80, "reuse_subtree": True, "noise_fraction": 0.25}),
}


def grow_golden(name: str, others: int, row: int) -> list[dict[str, Any]]:
    """The searches of one case, ply after ply, in tree `row` among `others` random ones of other games."""
    game_name, moves, num_plies, settings = GOLDEN_CASES[name]
    game, count = GAMES[game_name], others + 1
    rng = np.random.default_rng()
    search = make_search(game, replace(BASE, **settings), planted(20), count)
    position, played = game.position(moves), -1
    found = []
    for _ in range(num_plies):
        positions = random_positions(game, count, seed=int(rng.integers(1 << 30)))
        numbers, actions = rng.integers(1 << 40, size=count), np.full(count, -1)
        positions[row], numbers[row], actions[row] = position, 5, played
        search.start(np.arange(count), states_of(positions), numbers, plies_of(positions), actions)
        finish(search)
        result, tree, size = search.read(np.array([row])), search.tree, int(search.tree.size[row])
        played = int(result.actions[0])
        found.append(
            {
                "position": str(position).splitlines(),
                "visit_counts": result.visit_counts[0].tolist(),
                "q": [round(float(q), 6) for q in result.q[0]],
                "policy": [round(float(share), 6) for share in result.policy[0]],
                "value": round(float(result.values[0]), 6),
                "action": played,
                "parent": tree.parent[row, 1:size].tolist(),
                "incoming_action": tree.action[row, 1:size].tolist(),
                "proven": tree.proven[row, :size].tolist(),
            }
        )
        position = position.play(played)
    return found


@pytest.mark.parametrize("name", GOLDEN_CASES)
@pytest.mark.parametrize(("others", "row"), [(0, 0), (9, 4)])
def test_golden_trees_grow_again(name, others, row):
    stored = json.loads((GOLDEN / f"{name}.json").read_text())
    grown = grow_golden(name, others, row)
    assert len(grown) == len(stored)
    for ply, (new, old) in enumerate(zip(grown, stored, strict=True)):
        for key in ("q", "policy", "value"):
            assert new.pop(key) == pytest.approx(old.pop(key), abs=2e-5), f"{key} at ply {ply}"
        assert new == old, f"ply {ply}"


def write_golden() -> None:
    GOLDEN.mkdir(exist_ok=True)
    for name in GOLDEN_CASES:
        plies = [json.dumps(ply) for ply in grow_golden(name, 0, 0)]
        (GOLDEN / f"{name}.json").write_text("[\n" + ",\n".join(plies) + "\n]\n")
        print(GOLDEN / f"{name}.json")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: PYTHONPATH=. python tests/search/test_mcts.py --write")
    write_golden()
