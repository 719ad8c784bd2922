"""Searches of games for more than two, beside a plain search of objects and beside exact values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.game import Game, Position, Rules
from alphazero.game.kernels import Kernels
from alphazero.search.mcts import Evaluate, Search, SearchConfig, SearchResult
from alphazero.search.rollouts import Playouts
from alphazero.search.tree import BETWEEN, UNPROVEN
from tests.search.dense import dense
from tests.search.reference_search import SURE, Node, _hash
from tests.search.reference_search import planted as planted_by
from tests.search.searches import BASE, finish, row_bytes
from tests.search.test_dice import DiceSearch, only_throws, some_positions

F = np.float32
MO = registry.load("tictacmo").game
FOUR = 4
ZERO, ONE = np.uint64(0), np.uint64(1)


def init(state):
    state[:] = ZERO  # who moves; plies; a coin is due; then each player's steps, 9 once out


def legal(state, legal_mask):
    legal_mask[:] = True


def find_next(state):
    """The next player who is still in moves; who rests moves again at once if the ply is a multiple of five."""
    if state[1] % np.uint64(5) == ZERO:
        return
    for _ in range(FOUR):
        state[0] = (state[0] + ONE) % np.uint64(FOUR)
        if state[3 + int(state[0])] < np.uint64(5):
            return


def step(state, action):
    """Action 0 walks a step, action 1 throws a coin, action 2 rests."""
    state[1] += ONE
    if action == 1:
        state[2] = ONE
        return
    if action == 0:
        state[3 + int(state[0])] += ONE
    find_next(state)


def chance(state, probabilities):
    if state[2] == ZERO:
        return 0
    probabilities[0], probabilities[1] = 0.75, 0.25
    return 2


def settle(state, outcome):
    """Two steps, or out of the game."""
    state[2] = ZERO
    state[3 + int(state[0])] += np.uint64(2 if outcome == 0 else 9)
    find_next(state)


def still_in(state):
    count = 0
    for player in range(FOUR):
        count += 1 if state[3 + player] < np.uint64(5) else 0
    return count


def is_terminal(state):
    for player in range(FOUR):
        if np.uint64(4) <= state[3 + player] < np.uint64(9):
            return True
    return state[2] == ZERO and (still_in(state) <= 1 or state[1] >= np.uint64(14))


def returns(state, results):
    """1 for who has four steps; else a tenth for each step, and -1/2 for who is out."""
    won = False
    for player in range(FOUR):
        won = won or np.uint64(4) <= state[3 + player] < np.uint64(9)
    for seat in range(FOUR):
        steps = state[3 + (int(state[0]) + seat) % FOUR]
        if won:
            results[seat] = 1.0 if np.uint64(4) <= steps < np.uint64(9) else -1.0
        else:
            results[seat] = -0.5 if steps >= np.uint64(9) else np.float64(steps) / 10.0


def observe(state, planes):
    for word in range(7):
        planes[word, 0, 0] = state[word]


def to_play(state):
    return int(state[0])


class Walk(Game):
    """Four players walk; some leave early, and some move twice."""

    name = "walk_of_four"
    num_players, num_actions, num_outcomes, state_words, max_plies = FOUR, 3, 2, 7, 30
    observation_shape = (7, 1, 1)
    rules = Rules(init, legal, step, is_terminal, None, observe, to_play, chance=chance, settle=settle, returns=returns)


class Stroll(Walk):
    """Without a coin: action 1 rests, too."""

    name = "stroll_of_four"
    num_actions, num_outcomes = 2, 0
    rules = Rules(
        init, legal, lambda state, action: step(state, 2 * action), is_terminal, None, observe, to_play, returns=returns
    )


def planted_seats(game: Game, salt: int = 0) -> Evaluate:
    """A number for each player by a hash of the state, multiples of 1/1024."""
    by_one = planted_by(salt)

    def evaluate(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        draws = [_hash(states, 7 + seat) >> np.uint64(20) for seat in range(game.num_players)]
        return by_one(states, legal_masks)[0], (np.stack(draws, 1).astype(np.int64) % 2001 - 1000).astype(F) / F(1024)

    return evaluate


class SeatsSearch(DiceSearch):
    """Each node has a vector of sums, the first player's number first; what is known exactly is a vector, too."""

    @property
    def by_chance(self) -> bool:
        """Without dice the value of a node is the mean of its visits, as evaluations are results of random games."""
        return isinstance(self.evaluate, Playouts)

    def _ask(self, nodes: list[Node]) -> None:
        super()._ask([])
        for node in nodes:
            priors, values = self.evaluate(node.position.state[None], node.position.legal_mask[None])
            halves = self.config.gumbel_actions > 0 and node.parent is None
            node.open(priors[0], values[0][0], 1 if halves else self.config.prior_temperature)
            node.raw = np.roll(values[0], node.position.to_play)
            node.sums = node.raw.copy()

    def _end(self, node: Node) -> None:
        node.raw = node.sums = np.array(node.position.results, F)
        node.raw_value, node.proven = node.raw[node.position.to_play], "known"

    def step(self) -> None:
        several = self.config.leaves_per_step > 1
        ends = [self._walk(several) for _ in range(min(self.config.leaves_per_step, self.remaining))]
        new = [node for node, is_new in ends if is_new]
        self._ask([node for node in new if not node.position.terminal])
        for node, is_new in ends:
            if not is_new and node in new:
                self._take_back(node)
                continue
            if is_new and node.position.terminal:
                self._end(node)
                node.pending = False
            self._up(node, several)
            self.remaining -= 1

    def mean(self, node: Node) -> np.ndarray:
        return node.raw if node.proven else node.sums / node.visits

    def _up(self, node: Node, several: bool) -> None:
        gain = node.raw.copy()
        while node.parent is not None:
            parent, edge = node.parent, node.parent.edges[node.action]
            player = parent.position.to_play
            if not hasattr(parent, "sums"):
                parent.sums = np.zeros(len(gain), F)
            before = parent.sums
            (self._finish if several else self._count)(parent, node.action, gain[player])
            parent.sums = parent.sums + gain
            if self.config.prove and node.proven:
                edge.q = node.raw[player]
                if node.raw[player] == 1 and not parent.position.chances:
                    edge.proven, edge.q = 1, SURE
                exact = self.known(parent)
                if exact is not None:
                    parent.raw, parent.proven, gain = exact, "known", exact
            dice = parent.position.game.num_outcomes
            if not ((self.config.prove and parent.proven) or (self.by_chance and not dice)):
                weigh = self.weighed if dice else self.drawn
                parent.sums = parent.visits * weigh(parent)
                gain = parent.sums - before
                parent.value_sum = parent.sums[player]
            node = parent

    def known(self, node: Node) -> np.ndarray | None:
        children = [edge.child for edge in node.edges.values()]
        found = [child.raw for child in children if child is not None and child.proven]
        if node.position.chances:
            if len(found) < len(children):
                return None
            total = np.zeros_like(found[0])
            for edge, exact in zip(node.edges.values(), found, strict=True):
                total += edge.prior * exact
            return total
        player = node.position.to_play
        won = [exact for exact in found if exact[player] == 1]
        if won:
            return won[0]
        if len(found) < len(children):
            return None
        best = [exact for exact in found if exact[player] == max(each[player] for each in found)]
        total = np.zeros_like(found[0])
        for exact in best:
            total += F(1) / F(len(best)) * exact
        return total

    def weighed(self, node: Node) -> np.ndarray:
        seen = [edge for edge in node.edges.values() if edge.visits]
        if node.position.chances:
            total, mass = np.zeros(node.position.game.num_players, F), F(0)
            for edge in seen:
                total += edge.prior * self.mean(edge.child)
                mass += edge.prior
            if only_throws(node.parent):
                return total + (F(1) - mass) * node.parent.raw
            return total / mass
        best = max(seen, key=lambda edge: (edge.visits, edge.q))
        if only_throws(node):
            return self.mean(best.child)
        return (node.raw + F(best.visits) * self.mean(best.child)) / F(1 + best.visits)

    def drawn(self, node: Node) -> np.ndarray:
        """The player draws lots among the best, and knows of what was not evaluated no more than of the node itself."""
        edges, player = node.edges.values(), node.position.to_play
        seen = [self.mean(edge.child) for edge in edges if edge.child is not None and edge.visits > edge.under_way]
        unseen = len(edges) - len(seen)
        least = max(lot[player] for lot in seen + [node.raw] * (unseen > 0)) - F(0.02)
        unseen = unseen if node.raw[player] >= least else 0
        best = [lot for lot in seen if lot[player] >= least]
        total = F(unseen) * node.raw
        for lot in best:
            total = total + lot
        return total / F(unseen + len(best))

    def values(self) -> np.ndarray:
        """First the mover's."""
        means = self.by_chance or self.root.position.game.num_outcomes
        found, halves = self.mean(self.root), self.config.gumbel_actions and means
        if halves and not self.root.proven:
            policy, seen = self.policy(), [a for a, edge in self.root.edges.items() if edge.visits]
            mass = sum(policy[action] for action in seen)
            if mass:
                found = sum(policy[action] * self.mean(self.root.edges[action].child) for action in seen) / mass
        return np.roll(found, -self.root.position.to_play)


def compare_seats(search: Search, row: int, root: SeatsSearch) -> None:
    """All numbers of a tree are those of the plain one.

    Where players take turns in order, a search numbers them from its root's mover on.
    """
    tree, waiting, count = dense(search.tree, row), [(0, root.root)], 0
    shift = root.root.position.to_play if root.root.position.game.rules.to_play is None else 0
    while waiting:
        number, node = waiting.pop()
        count += 1
        assert bool(node.proven) == (tree.proven[row, number] == BETWEEN)
        if not node.position.terminal:
            assert np.roll(tree.seat_sums[row, number], shift).tolist() == node.sums.tolist()
            assert (tree.node_visits[row, number], tree.node_value[row, number]) == (node.visits, node.value_sum)
        if hasattr(node, "raw"):
            assert np.roll(tree.seat_values[row, number], shift).tolist() == node.raw.tolist()
        for action, edge in node.edges.items():
            assert tree.visits[row, number, action] == edge.visits
            if edge.child:
                assert abs(tree.q[row, number, action] - edge.q) < 1e-6
                assert tree.action_proven[row, number, action] == (edge.proven or UNPROVEN)
                waiting.append((int(tree.child[row, number, action]), edge.child))
    assert count == tree.size[row]


CONFIGS = {
    "one": replace(BASE, num_simulations=1),
    "puct": replace(BASE, num_simulations=120),
    "unproven": replace(BASE, num_simulations=30, prove=False),
    "gumbel": replace(BASE, num_simulations=60, gumbel_actions=3, noise_fraction=0.25, gumbel_visit_offset=5.0),
}


WITHOUT_DICE = {
    "leaves in flight": replace(BASE, num_simulations=60, leaves_per_step=4),
    "kept subtrees": replace(BASE, num_simulations=60, reuse_subtree=True),
}


def search_plainly(search: Search, found: SearchResult, row: int, at: Position, evaluate: Evaluate) -> SeatsSearch:
    """The plain search of a position, which has found the same as row `row` of the compiled one."""
    root = SeatsSearch(search.config, evaluate)
    root.start(at, None, dense(search.tree, row).root_gumbel[row])
    root.run()
    assert found.visit_counts[row].tolist() == root.visit_counts().tolist()
    compare_seats(search, row, root)
    np.testing.assert_allclose(found.values[row], root.values(), atol=1e-6 if search.config.gumbel_actions else 0)
    return root


@pytest.mark.parametrize("name", ["puct", "gumbel"])
def test_a_search_by_random_games_takes_the_mean_of_all_visits(name: str):
    """The best of results by chance would be the luckiest."""
    config, tried, kernels = CONFIGS[name], late_positions(MO, 6), Kernels(MO)
    evaluate, plies = Playouts(kernels, 3), np.zeros(6, np.int64)
    search = Search(kernels, config, evaluate, 6)
    found = search.run(np.array([at.state for at in tried]), np.arange(6), plies)
    for row, at in enumerate(tried):
        search_plainly(search, found, row, at, evaluate)


def late_positions(game: Game, count: int) -> list[Position]:
    """Positions of which half are near the end of a game."""
    tried = some_positions(game, 40 * count)
    early, late = tried[: count // 2], sorted(tried, key=lambda position: -position.ply)
    return early + late[: count - len(early)]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("game", [MO, Stroll(), Walk()], ids=lambda game: game.name)
def test_the_search_is_the_plain_one_node_by_node_alone_and_among_others(game: Game, config: SearchConfig):
    tried, kernels, planted = late_positions(game, 8), Kernels(game), planted_seats(game)
    search, plies = Search(kernels, config, planted, len(tried)), np.zeros(len(tried), np.int64)
    states, numbers = np.array([at.state for at in tried]), np.arange(len(tried))
    search.start(numbers, states, numbers, plies)
    finish(search)
    found, proven = search.read(numbers), 0
    assert found.values.shape == (len(tried), game.num_players)
    for row, at in enumerate(tried):
        root = search_plainly(search, found, row, at, planted)
        proven += root.root.proven is not None
        alone = Search(kernels, config, planted, 1).run(states[row : row + 1], numbers[row : row + 1], plies[:1])
        assert row_bytes(alone, 0) == row_bytes(found, row)
    assert found.visit_counts.sum(axis=1).tolist() == [config.num_simulations] * len(tried)
    assert proven or not config.prove or config.num_simulations == 1


@pytest.mark.parametrize("config", WITHOUT_DICE.values(), ids=WITHOUT_DICE)
@pytest.mark.parametrize("game", [MO, Stroll()], ids=lambda game: game.name)
def test_several_leaves_and_kept_subtrees_are_those_of_the_plain_search(game: Game, config: SearchConfig):
    tried, kernels, planted = late_positions(game, 6), Kernels(game), planted_seats(game)
    search, plies = Search(kernels, config, planted, len(tried)), np.zeros(len(tried), np.int64)
    roots = [SeatsSearch(config, planted) for _ in tried]
    for root, at in zip(roots, tried, strict=True):
        root.start(at)
    actions: np.ndarray | None = None
    for _ in range(2):
        trees = np.array([row for row, root in enumerate(roots) if not root.root.position.terminal])
        states = np.array([roots[row].root.position.state for row in trees])
        given = None if actions is None else actions[trees]
        search.start(trees, states, trees, plies[trees], given)
        finish(search)
        found = search.read(trees)
        for place, row in enumerate(trees):
            roots[row].run()
            assert found.visit_counts[place].tolist() == roots[row].visit_counts().tolist()
            if actions is None:  # later the root's player is not the first whom the search numbers
                compare_seats(search, int(row), roots[row])
            assert found.values[place].tolist() == roots[row].values().tolist()
        if not config.reuse_subtree:
            break
        actions = np.full(len(tried), -1)
        actions[trees] = found.actions
        for row in trees:
            roots[row].move(int(actions[row]))


def exact(position: Position, known: dict[bytes, np.ndarray]) -> np.ndarray:
    """The results of all players, the mover's first, if all draw lots among their best actions."""
    key = position.state.tobytes()
    if key not in known:
        if position.terminal:
            known[key] = np.roll(np.array(position.results, np.float64), -position.to_play)
        else:
            children = [np.roll(exact(position.play(action), known), 1) for action in position.legal_actions]
            best = max(child[0] for child in children)
            known[key] = np.mean([child for child in children if child[0] > best - 1e-9], axis=0)
    return known[key]


@pytest.mark.parametrize("actions", [0, 15], ids=["puct", "gumbel"])
def test_exact_values_of_the_leaves_stay_exact(actions: int):
    """However often the search looks at some of a player's equal actions, and however unlikely it holds the others."""
    known: dict[bytes, np.ndarray] = {}
    tried = [at for at in some_positions(MO, 3000) if at.ply == 8 and not at.terminal][:30]
    roots = [exact(at, known) for at in tried]

    def evaluate(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return planted_by(1)(states, legal_masks)[0], np.array([known[state.tobytes()] for state in states], F)

    config = replace(BASE, num_simulations=300, gumbel_actions=actions, gumbel_value_scale=10.0, prove=False)
    states, zeros = np.array([at.state for at in tried]), np.zeros(len(tried), np.int64)
    found = Search(Kernels(MO), config, evaluate, len(tried)).run(states, zeros, zeros)
    wrong = [at for at, action in zip(tried, found.actions, strict=True)
             if exact(at.play(int(action)), known)[-1] < exact(at, known)[0] - 1e-6]  # fmt: skip
    assert len(tried) == 30 and not wrong
    assert np.abs(found.values - roots).max() < 0.05


def test_random_playouts_end_with_the_results_from_the_mover_on():
    """From positions one ply before the end, all of whose actions end the game."""
    for game in (MO, Stroll()):
        ask, compared = Playouts(Kernels(game), 3), 0
        for at in late_positions(game, 200):
            children = [at.play(action) for action in at.legal_actions]
            if all(child.terminal for child in children):
                _, (values,) = ask(at.state[None], at.legal_mask[None])
                ends = [np.roll(child.results, -at.to_play).astype(F).tolist() for child in children]
                assert values.tolist() in ends
                compared += 1
        assert compared > 3
