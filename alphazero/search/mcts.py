"""Batched Monte Carlo tree search: each step adds a simulation to B trees, whose leaves share one evaluation.

`evaluate(states uint64[m, K], legal_masks bool[m, A]) -> (priors float32[m, A], values float32[m])` is any function: a
network behind its cache, random playouts, or a planted one in a test. Priors are weights of any sum, none negative;
values in [-1, 1] are for the player to move. The arrays that it is given are overwritten later: copy what is to be
kept. Raises NetError for answers of other shapes, EvaluationError for others.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from alphazero.errors import IllegalAction, InvalidSetting
from alphazero.game import Game
from alphazero.game.kernels import Kernels
from alphazero.search import cpu_kernels
from alphazero.search.evaluator import CheckedFunction, Evaluator
from alphazero.search.rollouts import Playouts
from alphazero.search.tree import PENDING, KernelSettings, LeafAnswers, Tree, make_step, make_tree, room_of, tree_for
from alphazero.settings import check_ranges

Evaluate = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class SearchConfig:
    """Settings of a search: its simulations, and the methods that spend them, each with its paper.

    >>> import alphazero as az
    >>> game = az.load_game("connect4")
    >>> config = az.SearchConfig(num_simulations=64, c_puct=2.0, noise_fraction=0.0)
    >>> az.search(game.position("4453"), az.load_net("best", game), config=config).visits.sum()
    np.int64(64)
    """

    num_simulations: int = 200
    """Simulations per ply."""
    c_puct: float = 1.5
    """Weight of the prior against the values found (Silver et al. 2018)."""
    fpu_reduction: float = 0.2
    """First-play urgency: how far below its parent's value an unvisited action starts (Wu 2019)."""
    prior_temperature: float = 1.0
    """Temperature T of the priors: each is raised to the power 1/T, as in Lc0. Above 1 the search is wider.
    Sequential halving takes the root's priors as they are."""
    noise_fraction: float = 0.25
    """Share of Dirichlet noise in the root's priors (Silver et al. 2018); 0 is no noise.
    With sequential halving any value above 0 turns Gumbel noise on, and 0 turns it off."""
    noise_total: float = 10.0
    """Total concentration of the Dirichlet noise: alpha is this over the number of legal actions (Wu 2019)."""
    gumbel_actions: int = 0
    """Actions that sequential halving considers at the root (Danihelka et al. 2022); 0 = PUCT with noise."""
    gumbel_visit_offset: float = 50.0
    """c_visit of Danihelka et al. 2022: values weigh c_scale (c_visit + visits of the most visited action)."""
    gumbel_value_scale: float = 1.0
    """c_scale of Danihelka et al. 2022: weight of values against log priors."""
    reuse_subtree: bool = False
    """Keep the subtree below the action played, and add the new simulations to it, as analyses of a game do.
    It has no effect with sequential halving.
    Leave it off in self-play: a fresh search asks the network less there, since the cache keeps its answers."""
    prove: bool = True
    """Back up exact results of finished games (MCTS-Solver, Winands et al. 2008)."""
    leaves_per_step: int = 1
    """Leaves of one tree that each call of the network evaluates; one that waits for it already counts as a visit.
    More than 1 speeds up a search of few positions, as in analyses. Self-play searches many and needs 1."""

    def __post_init__(self) -> None:
        check_ranges(
            self, "search setting",
            num_simulations=(1, 1_000_000), c_puct=(0, 1000), fpu_reduction=(-2, 2), prior_temperature=(0.1, 10),
            noise_fraction=(0, 1), noise_total=(1e-3, 1e6), gumbel_actions=(0, 100_000),
            gumbel_visit_offset=(0, 1e6), gumbel_value_scale=(0, 1e3), leaves_per_step=(1, 4096),
        )  # fmt: skip

    @property
    def keeps_subtree(self) -> bool:
        """The subtree below the action played is kept."""
        return self.reuse_subtree and self.gumbel_actions == 0

    @property
    def num_nodes(self) -> int:
        """Nodes of a tree: the root, those of one search, and as many again if a subtree is kept."""
        return 1 + self.num_simulations * (2 if self.keeps_subtree else 1)

    @property
    def kernel_settings(self) -> KernelSettings:
        """The settings as the kernels take them; sequential halving has Gumbel noise in place of Dirichlet noise."""
        halves, exponent = self.gumbel_actions > 0, 1.0 / self.prior_temperature
        return KernelSettings(
            leaves_per_step=self.leaves_per_step,
            c_puct=np.float32(self.c_puct),
            fpu_reduction=np.float32(self.fpu_reduction),
            max_considered=self.gumbel_actions,
            visit_offset=np.float32(self.gumbel_visit_offset),
            value_scale=np.float32(self.gumbel_value_scale),
            prior_exponent=exponent,
            root_prior_exponent=1.0 if halves else exponent,
            noise_fraction=np.float32(0.0 if halves else self.noise_fraction),
            noise_total=float(self.noise_total),
            draws_gumbel=halves and self.noise_fraction > 0,
            prove=self.prove,
        )

    def settings_for(self, game: Game, by_chance: bool = False) -> KernelSettings:
        """`kernel_settings` for a game; raises InvalidSetting for what a search with dice, or for one, cannot do.

        Where values are results `by_chance`, as of random games, only means of many tell which actions are equal.
        """
        if grows_anew(game) and (self.keeps_subtree or self.leaves_per_step > 1):
            kind = "has dice" if game.num_outcomes else "is for one player"
            raise InvalidSetting(f"the search of {game.name}, which {kind}, keeps no subtree and takes a leaf a step")
        dice, alone = game.num_outcomes > 0, game.num_players == 1
        return self.kernel_settings._replace(
            dice=True if dice else None,
            alone=alone if dice or alone else None,  # all games with dice share their code
            seats=True if game.value_shape else None,
            lots=True if game.value_shape and not dice and not by_chance else None,
            points_word=-1 if game.points_word is None else game.points_word,
            value_of_point=np.float32(1.0 / game.score.size if game.score else 0.0),
        )


def grows_anew(game: Game) -> bool:
    """The game has dice or is for one: its searches keep no subtree, and take a leaf a step."""
    return game.num_outcomes > 0 or game.num_players == 1


QUIET = SearchConfig(noise_fraction=0.0)
"""PUCT without noise, which only learning needs."""


@dataclass(frozen=True)
class SearchResult:
    """Results of n searches; row i belongs to the i-th position."""

    visit_counts: np.ndarray
    """`int32[n, A]`: N(s, a)."""
    policy: np.ndarray
    """`float32[n, A]`: the policy target, sums to 1; 0 on illegal actions."""
    q: np.ndarray
    """`float32[n, A]`: Q(s, a) for the player to move; unvisited actions have v_mix of Danihelka et al. 2022."""
    values: np.ndarray
    """`float32[n]`: the position's value for the player to move: exact if proven, else the mean of all visits, or with
    sequential halving the value of `policy`. In a game for more than two `float32[n, V]`: see `Game.value_shape`;
    without dice they are those of the mover's best actions, to equal parts, unless random games evaluate."""
    actions: np.ndarray
    """`int64[n]`: the best action: the most visited, or the winner of sequential halving."""


class Search:
    """`num_trees` trees and the steps that grow them. One object belongs to one thread.

    Results depend on the position, the evaluations and (seed, game, ply) alone, never on the other trees.

    >>> import alphazero as az, numpy as np
    >>> kernels = az.Kernels(az.load_game("tictactoe"))
    >>> def uniform(states, legal_masks):
    ...     return legal_masks.astype(np.float32), np.zeros(len(states), np.float32)
    >>> search = az.Search(kernels, az.SearchConfig(num_simulations=20), uniform, num_trees=3)
    >>> result = search.run(kernels.start_states(3), games=np.arange(3), plies=np.zeros(3, np.int64))
    >>> result.visit_counts.sum(axis=1)
    array([20, 20, 20])
    """

    def __init__(self, kernels: Kernels, config: SearchConfig, evaluate: Evaluate, num_trees: int, seed: int = 0):
        self.kernels, self.config, self.seed = kernels, config, seed
        self.evaluate: Evaluate = evaluate if isinstance(evaluate, Evaluator) else CheckedFunction(kernels, evaluate)
        game, settings = kernels.game, config.settings_for(kernels.game, isinstance(inspect.unwrap(evaluate), Playouts))
        num_nodes = 1 + (config.num_nodes - 1) * room_of(game)[0]
        tree = tree_for(game, num_trees, num_nodes)
        self._step = make_step(tree, settings, game.num_actions, game.num_outcomes)
        self._new_index = np.zeros(num_nodes, np.int32)
        self._no_answers = LeafAnswers(
            self._step.leaf_masks[:0], np.empty((0, game.num_actions), np.float32),
            np.empty((0, game.num_values), np.float32),
        )  # fmt: skip
        self._answers: LeafAnswers | None = None
        """The answers to the walks under way, if there are any: the next step backs them up."""
        self._values_shape = -1, game.num_values
        self._steps_to_end = 0
        """Steps before the first search can end; 0 if none is going on."""
        self._simulate = cpu_kernels.simulation(kernels, self._step, self._no_answers)

    @property
    def tree(self) -> Tree:
        """The trees, with all simulations at their end."""
        self._turn(False)
        return self._step.tree

    def _look_ahead(self) -> None:
        """Finds out how many steps there are before the first search can end."""
        remaining = self._step.tree.remaining
        fewest = int(remaining.min(where=remaining > 0, initial=self.config.num_simulations)) if remaining.any() else 0
        self._steps_to_end = -(-fewest // self.config.leaves_per_step)

    def start(
        self,
        trees: np.ndarray,
        states: np.ndarray,
        games: np.ndarray,
        plies: np.ndarray,
        actions: np.ndarray | None = None,
        budgets: np.ndarray | None = None,
        allowed: np.ndarray | None = None,
    ) -> None:
        """Begins a search in `trees int64[n]` from `states uint64[n, K]`; raises IllegalAction if one is terminal.

        `actions int64[n]` are the actions played since each tree's last search, whose subtrees are kept; -1: none.
        `games`, `plies int64[n]` key the randomness; `budgets int32[n]` default to `config.num_simulations`.
        A root whose tree is empty has edges of the actions `allowed bool[A]` alone, of all if that is None. If
        `evaluate` or a rule raises, all searches are over, and the next ones begin with empty trees.
        Raises ValueError for arrays of other shapes.
        """
        config, tree, count = self.config, self.tree, len(trees)
        states = _as_rows("states", states, np.uint64, (count, self.kernels.game.state_words))
        to_play, actions = movers_and_actions(self.kernels, config, states, actions)
        given = {"trees": trees, "games": games, "plies": plies, "actions": actions}
        trees, games, plies, actions = (_as_rows(name, rows, np.int64, (count,)) for name, rows in given.items())
        if count and not 0 <= trees.min() <= trees.max() < len(tree.size):
            raise ValueError(f"trees are numbered from 0 to {len(tree.size) - 1}")
        budgets = np.full(count, config.num_simulations) if budgets is None else budgets
        budgets = _as_rows("budgets", budgets, np.int32, (count,))
        if budgets.max(initial=0) > config.num_simulations:
            raise ValueError(f"a budget of {budgets.max()} simulations exceeds the room for {config.num_simulations}")
        num_kept = config.num_nodes - config.num_simulations
        cpu_kernels.move_roots(tree, trees, actions, states, to_play, num_kept, self._new_index)
        pending, answers = trees[tree.proven[trees, 0] == PENDING], self._no_answers
        if len(pending):
            roots = tree.states[pending, 0]
            try:
                masks, terminal, _ = self.kernels.describe_all(roots)
                if terminal.any():
                    raise IllegalAction("the game is over at a position that is to be searched: leave it out")
                if self._step.settings.dice and self.kernels.find_die(roots, self._step.probabilities) >= 0:
                    raise IllegalAction("a die is due at a position that is to be searched: roll it first")
                answers = self._ask(roots, masks)
            except BaseException:
                self._forget()
                raise
            if allowed is not None:
                answers = answers._replace(legal_masks=masks & allowed)
        cpu_kernels.begin_roots(tree, trees, answers, budgets, self.seed, games, plies, self._step.settings)
        self._look_ahead()

    def step(self) -> None:
        """Runs one simulation (or `leaves_per_step`) in every tree that has any left.

        If `evaluate` or a rule raises, all searches are over, and the next ones begin with empty trees.
        """
        self._turn(True)
        self._steps_to_end -= 1
        if self._steps_to_end <= 0:
            self._turn(False)
            self._look_ahead()

    def _turn(self, begin: bool) -> None:
        """Backs up the answers to the walks under way; with `begin`, begins the next and asks about their leaves."""
        if self._answers is None and not begin:
            return
        answers, self._answers = self._answers or self._no_answers, None
        try:
            count = self._simulate(self._step, answers, begin)
            if begin:
                masks = self._step.leaf_masks[:count]
                if self._step.settings.dice:  # a tree's new leaf may come before the answers of the trees behind it
                    masks = masks.copy()
                self._answers = self._ask(self._step.leaf_states[:count], masks)
        except BaseException:
            self._forget()
            raise

    def _ask(self, states: np.ndarray, masks: np.ndarray) -> LeafAnswers:
        priors, values = self.evaluate(states, masks)
        return LeafAnswers(masks, priors, values.reshape(self._values_shape))

    def _forget(self) -> None:
        """Drops the walks under way, and the trees, in which their leaves would wait for ever."""
        step = self._step
        step.walks.leaves[:] = -1
        step.tree.size[:] = step.tree.remaining[:] = self._steps_to_end = 0

    def finished(self) -> np.ndarray:
        """`int64[m]`: the trees whose search is finished."""
        return np.flatnonzero(self._step.tree.remaining == 0)

    def read(self, trees: np.ndarray) -> SearchResult:
        """Results up to now of the searches in `trees int64[n]`."""
        each, game = (len(trees), self._step.scratch.size), self.kernels.game
        policy, q = np.empty((2, *each), np.float32)
        values, actions = np.empty((len(trees), game.num_values), np.float32), np.empty(len(trees), np.int64)
        parts = np.empty(each, np.int32), policy, q
        cpu_kernels.read_roots(self.tree, trees, self._step.settings, *parts, values, actions)
        rows: list[np.ndarray] = [np.ascontiguousarray(part[:, : game.num_actions]) for part in parts]
        return SearchResult(rows[0], rows[1], rows[2], values.reshape(-1, *game.value_shape), actions)

    def run(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> SearchResult:
        """Searches n <= `num_trees` positions from scratch, with all simulations.

        The arrays are those of `start`; raises ValueError for other shapes.
        """
        num_trees = len(self._step.tree.size)
        if len(states) > num_trees:
            raise ValueError(f"{len(states)} positions do not fit into {num_trees} trees")
        trees = np.arange(len(states))
        self.tree.remaining[:] = 0
        self.start(trees, states, games, plies)
        while self._steps_to_end:
            self.step()
        return self.read(trees)


def movers_and_actions(
    kernels: Kernels, config: SearchConfig, states: np.ndarray, actions: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """The movers `int8[n]` at the states, and the actions since the last searches; -1 where no subtree is kept."""
    to_play = np.zeros(len(states), np.int8)
    kernels.find_movers(states, to_play)
    kept = actions is not None and config.keeps_subtree
    return to_play, np.asarray(actions) if kept else np.full(len(states), -1, np.int64)


def _as_rows(name: str, given: ArrayLike, kind: type[np.generic], shape: tuple[int, ...]) -> np.ndarray:
    """The array as kernels take it, since they check no index. Raises ValueError for another shape."""
    array = np.ascontiguousarray(given, kind)
    if array.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}, not {array.shape}")
    return array


def compile_roots() -> None:
    """Compiles the kernels that begin and read a search, which are kept on disk."""
    step, none = make_step(make_tree(1, 2, 1, 1), SearchConfig().kernel_settings, 1), np.zeros(0, np.int64)
    tree, settings, numbers = step.tree, step.settings, np.zeros((0, 1), np.float32)
    counts, values = np.zeros((0, 1), np.int32), numbers
    cpu_kernels.move_roots(
        tree, none, none, np.zeros((0, 1), np.uint64), np.zeros(0, np.int8), 1, np.zeros(2, np.int32)
    )
    answers = LeafAnswers(np.zeros((0, 1), bool), numbers, values)
    cpu_kernels.begin_roots(tree, none, answers, np.zeros(0, np.int32), 0, none, none, settings)
    cpu_kernels.read_roots(tree, none, settings, counts, numbers, numbers, values, none)
