"""The parts of the tree by hand: formulas with numbers from the papers, noise by theory."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numba import njit
from scipy import stats

from alphazero.catalogue import registry
from alphazero.game import randomness as noise
from alphazero.game.kernels import Kernels
from alphazero.search import cpu_kernels, selection
from alphazero.search import tree as search_tree
from alphazero.search.mcts import SearchConfig
from alphazero.search.tree import (
    EDGE,
    PENDING,
    KernelSettings,
    LeafAnswers,
    Tree,
    bytes_of_simulation,
    edges_below,
    make_tree,
    unpacked,
)
from tests.search.dense import dense
from tests.search.reference_search import F

TICTACTOE, CONNECT4 = (registry.load(name).game for name in ("tictactoe", "connect4"))
KERNELS = {game.name: Kernels(game) for game in (TICTACTOE, CONNECT4)}
PLAIN = SearchConfig(
    num_simulations=80, c_puct=1.5, fpu_reduction=0.2, noise_fraction=0.0, gumbel_actions=0,
    reuse_subtree=True, prove=True, leaves_per_step=1,
)  # fmt: skip
SETTINGS = PLAIN.kernel_settings
UNPROVEN = 2


def callable_from_python(function):
    """A compiled function that calls one which only compiled functions can call."""
    return njit(lambda *arguments: function(*arguments))


puct, choose_by_puct, complete_q, sigma, considered_visits, set_known = map(
    callable_from_python,
    (
        selection.puct, selection.choose_by_puct, selection.complete_q, selection.sigma, selection.considered_visits,
        search_tree.set_known,
    ),
)  # fmt: skip


# --- formulas --------------------------------------------------------------------------------------------------------


def test_python_is_told_that_it_cannot_call_what_kernels_call():
    with pytest.raises(TypeError, match="puct is compiled for kernels to call"):
        selection.puct(F(0.75), F(0.25), 4, F(1))


def test_puct_by_hand():
    # P = 1/4, N(s) = 9, N(s, a) = 4, the child's value sum -3, so Q = +3/4 for the chooser; c = 2
    weight = F(2 * math.sqrt(9))  # c sqrt(N(s))
    assert puct(F(0.75), F(0.25), 4, weight) == pytest.approx(0.75 + 0.3)
    assert puct(F(0), F(0.25), 0, weight) == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("values", "visits", "best"),
    # P = 1/4 and 3/4, N(s) = 9, c = 2; without the square root the first and the last would come out the other way
    [
        ([0.75, -0.01], [4, 4], 0),  # 0.75 + 0.3 against -0.01 + 0.9
        ([0.75, 0.16], [4, 4], 1),  # 1.05 against 1.06
        ([0.0, 0.39], [2, 6], 1),  # 0.5 against 0.39 + 4.5/7 = 1.03
        ([0.55, 0.39], [2, 6], 0),  # 1.05 against 1.03
    ],
)
def test_the_best_puct_score_is_chosen(values, visits, best):
    tree = opened_roots([0.25, 0.75])
    prepare(tree)
    set_edges(tree, q=values, visits=visits)
    tree.node_visits[0, 0], tree.node_value[0, 0], tree.visited_prior[0, 0] = 9, 0, 1
    assert choose_by_puct(tree, 0, 0, F(2), F(0)) == EDGE * best


def test_an_unvisited_action_starts_below_its_parents_mean():
    # mean = 4.5 / 9 = 0.5; prior mass visited 0.64: 0.5 - 0.2 * 0.8 = 0.34; U = 1 * 0.36 * 3 / 1 = 1.08; sum 1.42
    prior, visits = np.array([0.64, 0.36], F), np.array([8, 0], np.int32)

    tree = opened_roots(prior)
    prepare(tree)
    set_edges(tree, visits=visits)
    tree.node_visits[0, 0], tree.node_value[0, 0], tree.visited_prior[0, 0] = 9, 4.5, 0.64

    def choose(q):
        set_edges(tree, q=(q, 0))
        return choose_by_puct(tree, 0, 0, F(1), F(0.2)) // EDGE

    # the visited action's U = 0.64 * 3 / 9 = 0.2133
    assert choose(1.42 - 0.2134 - 1e-3) == 1
    assert choose(1.42 - 0.2133 + 1e-3) == 0


@pytest.mark.parametrize("c_puct", [0.0, 1e-3, 1000.0])
@pytest.mark.parametrize("q", [-1.0, -1e6])
def test_an_action_is_chosen_however_bad_all_are(c_puct, q):
    tree = opened_roots([-1, 1.0, -1])
    set_edges(tree, visits=[50], q=[q])
    tree.node_visits[0, 0], tree.node_value[0, 0], tree.visited_prior[0, 0] = 51, -40, 1
    assert choose_by_puct(tree, 0, 0, F(c_puct), F(0.2)) == 0


def test_missing_values_are_completed_by_the_mix():
    # Danihelka et al. 2022, equation 33: (v + sum N / sum P of visited * sum P q) / (1 + sum N)
    #   v = 0.1; visited: P = 0.5, N = 3, q = 0.4 and P = 0.25, N = 1, q = -0.8; so sum P q = 0.2 - 0.2 = 0
    #   (0.1 + 4 / 0.75 * 0) / 5 = 0.02
    tree, completed = opened_roots([0.5, 0.25, 0.25]), np.empty(3, F)
    tree.raw_value[0, 0] = 0.1
    prior = np.array([0.5, 0.25, 0.25], F)

    def complete(q, visits=(3, 1, 0)):
        set_edges(tree, q=q, visits=visits)
        mix = complete_q(tree, 0, prior, completed)
        assert mix == completed[2]
        return completed

    assert complete([0.4, -0.8, 0]) == pytest.approx([0.4, -0.8, 0.02])
    # q = 0.4 and 0.2: sum P q = 0.25; (0.1 + 4 / 0.75 * 0.25) / 5 = 0.286667
    assert complete([0.4, 0.2, 0])[2] == pytest.approx(0.2866667)
    # nothing visited: the network's value
    assert complete([0, 0, 0], [0, 0, 0]) == pytest.approx([0.1] * 3)
    # a proven loss counts as -1, whatever the size of its q: (0.1 + 4 / 0.75 * (0.2 - 0.25)) / 5 = -0.0333333
    set_known(tree, EDGE, -1)
    assert complete([0.4, -1e6, 0]) == pytest.approx([0.4, -1, -1 / 30])


def test_sigma_by_hand():
    # (c_visit + max N) c_scale q with q = (0.5 + 1) / 2: (50 + 30) * 0.1 * 0.75 = 6
    assert sigma(F(0.5), 30, F(50), F(0.1)) == pytest.approx(6.0)
    assert sigma(F(-1), 30, F(50), F(0.1)) == 0.0


@pytest.mark.parametrize(
    ("num_considered", "budget", "schedule"),
    [
        # two phases of 8: four actions twice, then the better two four times
        (4, 16, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]),
        # three phases of 8: eight actions once, four twice, two four times
        (8, 24, [*[0] * 8, *[1] * 4, *[2] * 4, 3, 3, 4, 4, 5, 5, 6, 6]),
        (3, 5, [0, 0, 0, 1, 1]),
        (2, 5, [0, 0, 1, 1, 2]),  # one phase of two rounds, and one visit more
        (1, 4, [0, 1, 2, 3]),
        (4, 3, [0, 0, 0]),  # fewer simulations than actions
        (16, 20, [*[0] * 16, *[1] * 4]),  # a phase's share, 5, is less than one round
        # three phases of 66: seven actions 9 times (63), three 22 times (66), two 33 times (66), and 5 visits are left
        (
            7,
            200,
            [*np.repeat(range(9), 7), *np.repeat(range(9, 31), 3), *np.repeat(range(31, 64), 2), 64, 64, 65, 65, 66],
        ),
    ],
)
def test_sequential_halving_schedules_by_hand(num_considered, budget, schedule):
    assert [considered_visits(num_considered, budget, i) for i in range(budget)] == schedule


# --- reading the root ------------------------------------------------------------------------------------------------


def read_gumbel_root(prior, visits, q, proven, gumbels, offset, scale, raw_value=0.0) -> tuple[np.ndarray, int]:
    """The policy target and the best action of a root that looks like this."""
    tree = opened_roots(np.array(prior, F))
    set_edges(tree, visits=visits, q=q)
    for i, known in enumerate(proven):
        set_known(tree, i * EDGE, known)
    tree.root_gumbel[0], tree.raw_value[0, 0] = gumbels, raw_value
    tree.node_visits[0, 0] = 1 + sum(visits)
    actions = len(prior)
    policies, qs, values = np.empty((1, actions), F), np.empty((1, actions), F), np.empty(1, F)
    best = np.empty(1, np.int64)
    counts = np.empty((1, actions), np.int32)
    settings = SETTINGS._replace(max_considered=16, visit_offset=F(offset), value_scale=F(scale))
    cpu_kernels.read_roots(tree, np.arange(1), settings, counts, policies, qs, values[:, None], best)
    return policies[0], int(best[0])


def test_the_improved_policy_by_hand():
    # c_visit = 50, c_scale = 0.01, most visits 2: sigma(q) = 0.52 (q + 1) / 2; v_mix = (0.1 + 4 / 0.75 * 0) / 5 = 0.02
    # weights 0.5 e^0.312, 0.25 e^0.156, 0.25 e^0.2652 = 0.68308, 0.29221, 0.32592, together 1.30121
    policy, best = read_gumbel_root([0.5, 0.25, 0.25], [2, 2, 0], [0.2, -0.4, 0], [2, 2, 2], [0, 0, 9], 50, 0.01, 0.1)
    assert policy == pytest.approx([0.52496, 0.22457, 0.25048], abs=2e-5)
    assert best == 0  # gumbel 9 does not help the third: it has fewer visits
    _, best = read_gumbel_root([0.5, 0.25, 0.25], [2, 2, 0], [0.2, -0.4, 0], [2, 2, 2], [0, 1, 9], 50, 0.01, 0.1)
    assert best == 1  # ln 0.25 + 1 + 0.156 = -0.2303 against ln 0.5 + 0.312 = -0.3811


def test_when_the_most_visited_action_is_lost_the_best_of_the_others_wins():
    """The scores of the others differ by little, and still count."""
    lost = [-1, 2, 2, 2]
    policy, best = read_gumbel_root([0.25] * 4, [10, 3, 3, 0], [-1e6, 0, 0, 0], lost, [0, 1.0, 1.02, -5], 50, 1)
    assert best == 2
    assert policy[0] == 0
    assert policy[1] == pytest.approx(policy[2])


# --- the root's priors -----------------------------------------------------------------------------------------------


def set_edges(tree: Tree, **rows: Sequence[float]) -> None:
    """Writes the numbers of the first tree's first edges."""
    for name, row in rows.items():
        getattr(tree, name)[: EDGE * len(row) : EDGE] = row


def opened_roots(priors: np.ndarray, count: int = 1) -> Tree:
    """`count` trees of which only the root is open, with these weights; a weight below 0 is an illegal action."""
    rows = np.repeat(np.asarray(priors, F)[None], count, axis=0)
    return opened(rows >= 0, rows)


def opened(masks: np.ndarray, weights: np.ndarray, settings: KernelSettings = SETTINGS) -> Tree:
    """Trees of which only the root is open, with a row of the weights and legal actions each."""
    tree = make_tree(len(masks), 2, masks.shape[1], 1)
    tree.proven[:] = PENDING
    begin(tree, LeafAnswers(masks, weights, np.zeros((len(masks), 1), F)), settings)
    return tree


def begin(tree: Tree, answers: LeafAnswers, settings: KernelSettings, seed=0, first_game=0, ply=0) -> None:
    count, everyone = len(tree.size), np.arange(len(tree.size))
    plies, budgets = np.full(count, ply), np.ones(count, np.int32)
    cpu_kernels.begin_roots(tree, everyone, answers, budgets, seed, first_game + everyone, plies, settings)


def prepare(tree, fraction=0.0, total=10.0, use_gumbel=False, **key):
    settings = SETTINGS._replace(noise_fraction=F(fraction), noise_total=total, draws_gumbel=use_gumbel)
    begin(tree, LeafAnswers(np.zeros((0, 1), bool), np.zeros((0, 1), F), np.zeros((0, 1), F)), settings, **key)
    return dense(tree).root_prior


def test_without_noise_the_roots_priors_are_those_of_the_network():
    tree = opened_roots([0.64, 0.16, -1, 0.2])
    assert prepare(tree)[0, [0, 1, 3]] == pytest.approx([0.64, 0.16, 0.2])
    assert dense(tree).prior[0, 0, [0, 1, 3]] == pytest.approx([0.64, 0.16, 0.2])  # the raw prior stays as it was


def test_noise_is_mixed_by_its_fraction():
    tree = opened_roots([0.5, -1, 0.25, 0.25], 50)
    shares, mixed = prepare(tree, fraction=1.0), prepare(tree, fraction=0.25)
    legal = [0, 2, 3]
    assert mixed[:, legal] == pytest.approx(0.75 * dense(tree).prior[:, 0, legal] + 0.25 * shares[:, legal], abs=1e-6)
    for found in (shares, mixed):
        assert found[:, legal].sum(axis=1) == pytest.approx(np.ones(50), abs=1e-5)
        assert (found[:, legal] >= 0).all()


@pytest.mark.parametrize("total", [0.5, 10.0])
def test_noise_follows_dirichlets_law(total):
    count, legal = 6000, np.array([0, 2, 3, 4, 6])
    tree = opened_roots([1, -1, 1, 2, 0, -1, 5], count)
    shares = prepare(tree, seed=11, fraction=1.0, total=total)[:, legal].astype(float)
    # Dirichlet(alpha, ..., alpha) of k = 5 has mean 1/k, variance (1/k)(1 - 1/k)/(k alpha + 1) and
    # covariance -1/k^2/(k alpha + 1)
    variance = 0.2 * 0.8 / (total + 1)
    assert shares.mean(axis=0) == pytest.approx([0.2] * 5, abs=5 * math.sqrt(variance / count))
    assert shares.var(axis=0) == pytest.approx([variance] * 5, rel=0.12)
    assert np.cov(shares.T)[0, 1] == pytest.approx(-0.04 / (total + 1), rel=0.25)
    # every share alone is Beta(alpha, (k - 1) alpha)
    for i in range(5):
        assert stats.kstest(shares[:, i], stats.beta(total / 5, total * 4 / 5).cdf).pvalue > 1e-3


def test_the_smallest_noise_total_still_makes_noise():
    """A Dirichlet of tiny concentration puts everything on one action; it must not vanish in an underflow."""
    shares = prepare(opened_roots([1] * 9, 500), fraction=1.0, total=1e-3)
    assert shares.sum(axis=1) == pytest.approx(np.ones(500), abs=1e-5)
    assert np.median(shares.max(axis=1)) > 0.99
    assert set(shares.argmax(axis=1)) == set(range(9))


def test_noise_depends_on_seed_game_and_ply_alone():
    tree = opened_roots([1] * 7, 20)

    def draw(**key):
        return prepare(tree, fraction=1.0, **key)

    first = draw(seed=5, first_game=100, ply=3)
    assert (first == draw(seed=5, first_game=100, ply=3)).all()
    assert (first[7:] == draw(seed=5, first_game=107, ply=3)[:13]).all()  # game 107 in another row
    for other in (draw(seed=6, first_game=100, ply=3), draw(seed=5, first_game=100, ply=4)):
        assert (abs(first - other).max(axis=1) > 0.01).all()
    assert len({row.tobytes() for row in first}) == 20  # every game its own


def test_root_gumbels_follow_their_law_and_key():
    tree = opened_roots([1] * 7, 600)
    prepare(tree, seed=3, use_gumbel=True)
    draws = tree.root_gumbel.copy()
    assert stats.kstest(draws.ravel(), "gumbel_r").pvalue > 1e-3
    assert len(set(draws.ravel())) > 4190  # every action of every game its own
    prepare(tree, seed=3, use_gumbel=True, fraction=0.3)
    assert (tree.root_gumbel == draws).all()  # the Dirichlet noise uses other numbers and leaves them alone
    prepare(tree, seed=3, ply=1, use_gumbel=True)
    assert abs(np.corrcoef(draws.ravel(), tree.root_gumbel.ravel())[0, 1]) < 0.06
    prepare(tree, seed=3)
    ties = tree.root_gumbel  # without them: what breaks ties
    assert (ties > 0).all() and (ties < 1.001e-3).all() and len(set(ties.ravel())) > 4100


# --- random numbers --------------------------------------------------------------------------------------------------


def keys(count: int, purpose: int = noise.MOVE, seed: int = 0) -> list[np.uint64]:
    return [np.uint64(noise.make_key(seed, i // 50, i % 50, purpose)) for i in range(count)]


def test_uniform_numbers_along_and_across_keys():
    along = np.array([noise.uniform(np.uint64(7), i) for i in range(4000)])
    across = np.array([noise.uniform(key, 0) for key in keys(4000)])
    for draws in (along, across):
        assert draws.min() > 0 and draws.max() < 1
        assert stats.kstest(draws, "uniform").pvalue > 1e-3
        assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 0.06
    other = np.array([noise.uniform(key, 0) for key in keys(4000, noise.TIE)])
    assert abs(np.corrcoef(across, other)[0, 1]) < 0.06
    assert len({int(key) for purpose in range(7) for key in keys(1000, purpose)}) == 7000


def test_gumbel_numbers():
    assert stats.kstest([noise.gumbel(np.uint64(9), i) for i in range(4000)], "gumbel_r").pvalue > 1e-3


@pytest.mark.parametrize("shape", [0.03, 1.0, 1.4, 1000.0])
def test_gamma_numbers(shape):
    draws = [noise.gamma(key, shape) for key in keys(3000)]
    assert stats.kstest(draws, stats.gamma(shape).cdf).pvalue > 1e-3


@pytest.mark.parametrize("word", [0, (1 << 64) - 1])
def test_uniform_is_never_0_or_1_at_the_ends_of_the_hash(word):
    """The key whose first draw hashes to `word` is found by running SplitMix64's finaliser backwards."""
    mask = (1 << 64) - 1

    def unshift(number: int, bits: int) -> int:
        found = number
        for _ in range(64 // bits + 1):
            found = number ^ (found >> bits)
        return found

    number = unshift(word, 31) * pow(0x94D049BB133111EB, -1, 1 << 64) & mask
    number = unshift(number, 27) * pow(0xBF58476D1CE4E5B9, -1, 1 << 64) & mask
    key = np.uint64((unshift(number, 30) - 0x9E3779B97F4A7C15) & mask)
    assert int(noise.combine(key, 0)) == word
    assert 0.0 < noise.uniform(key, 0) < 1.0
    assert math.isfinite(noise.gumbel(key, 0))


# --- priors of any size ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-40, 1e-30, 1e-3, 1.0, 1e30, 6e37])
def test_weights_of_any_size_become_priors(size):
    weights = np.array([1, -1, 2, 5, -1, -1, 0], F)
    with np.errstate(under="ignore"):
        tree = opened_roots(np.where(weights < 0, F(-1), weights * F(size)).astype(F))
    prior = dense(tree).prior[0, 0]
    assert np.isfinite(prior[[0, 2, 3, 6]]).all(), f"priors {prior}"
    assert prior[[0, 2, 3, 6]] == pytest.approx([0.125, 0.25, 0.625, 0], abs=1e-4)
    assert (prior[[1, 4, 5]] < 0).all()


@pytest.mark.parametrize(("exponent", "expected"), [(1.0, [0.8, 0.2]), (0.5, [2 / 3, 1 / 3]), (2.0, [16 / 17, 1 / 17])])
def test_priors_are_raised_by_hand(exponent, expected):
    """Weights 4 and 1: their roots are 2 and 1, their squares 16 and 1."""
    masks, weights = np.array([[True, False, True]]), np.array([[4, 7, 1]], F)
    tree = opened(masks, weights, SETTINGS._replace(root_prior_exponent=exponent))
    assert unpacked(tree.action[edges_below(tree, 0, 0)])[0].tolist() == [0, 2]
    assert tree.prior[edges_below(tree, 0, 0)] == pytest.approx(expected)


def test_the_memory_of_a_node_by_hand():
    # 7 edges of five 32-bit words; eleven words for the node, two bytes; two 64-bit words of state
    assert bytes_of_simulation(registry.load("connect4").game) == 7 * 20 + 11 * 4 + 2 + 16


def test_no_mass_on_legal_actions_makes_them_equal():
    masks = np.array([[True, False, True], [True, False, True]])
    tree = opened(masks, np.array([[0, 1, 0], [1, 1000, 3]], F))
    assert tree.prior[edges_below(tree, 0, 0)] == pytest.approx([0.5, 0.5])
    assert tree.prior[edges_below(tree, 1, 0)] == pytest.approx([0.25, 0.75])  # the illegal one has no say
