"""A plain and slow search to test the fast one against: one object a node, one position at a time, no arrays, no numba.

Written from the papers and the documented rules, not from the code under test:
- PUCT (Silver et al. 2018): argmax of Q(s, a) + c P(s, a) sqrt(N(s)) / (1 + N(s, a)), where N(s) counts the node's own
  evaluation; the first of equal actions;
- first-play urgency (Wu 2019): an unvisited action has the node's mean less `fpu_reduction` x sqrt(prior visited);
- MCTS-Solver (Winands et al. 2008): exact values of finished games climb as far as they decide their parents;
- unobserved visits (Liu et al. 2020): a walk under way counts as a visit of every action on it, and changes no value;
- sequential halving with Gumbel noise at the root (Danihelka et al. 2022), here with sets instead of visit schedules.

Values are float32 and each formula is computed in the order in which it is written, so that visits can be compared
exactly. Every edge also remembers all values that went through it: the mean needs no update formula then.

Also here: evaluations planted by a hash, random positions, and the laws that every tree has to keep.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from alphazero.game import Game, Position
from alphazero.game.kernels import Kernels
from alphazero.search.mcts import Evaluate, Search, SearchConfig
from tests.search.dense import dense

F = np.float32
SURE = F(1e6)  # the size of q once an action is proven to win or lose


class Edge:
    """One action of a node, seen by the player who chooses it."""

    __slots__ = "child", "prior", "proven", "q", "under_way", "values", "visits"

    def __init__(self, prior: F):
        self.prior = prior
        self.visits = 0
        self.under_way = 0
        self.q = F(0)
        self.proven: int | None = None
        self.child: Node | None = None
        self.values: list[float] = []


class Node:
    """A position, seen by the player to move there."""

    def __init__(self, position: Position, parent: Node | None, action: int, number: int):
        self.position, self.parent, self.action, self.number = position, parent, action, number
        self.edges: dict[int, Edge] = {}
        self.pending = True
        self.proven: int | None = None
        self.raw_value = self.value_sum = self.visits = self.visited_prior = F(0)

    def open(self, weights: np.ndarray, value: F, temperature: float) -> None:
        legal = self.position.legal_actions
        total = F(0)
        for action in legal:
            total += F(weights[action])
        for action in legal:
            self.edges[action] = Edge(F(weights[action]) / total if total > 0 else F(1) / F(len(legal)))
        if temperature != 1:
            powers = {action: float(edge.prior) ** (1 / temperature) for action, edge in self.edges.items()}
            for action, edge in self.edges.items():
                edge.prior = F(powers[action] / sum(powers.values()))
        self.raw_value = self.value_sum = F(value)
        self.visits = F(1)
        self.pending = False


class ReferenceSearch:
    """Grows one tree. `noise`, `gumbel`: `float32[A]`, the root's Dirichlet shares and Gumbel variates."""

    def __init__(self, config: SearchConfig, evaluate: Evaluate):
        self.config, self.evaluate = config, evaluate
        self.root: Node
        self.root_prior: dict[int, F] = {}
        self.gumbel: np.ndarray | None = None
        self.num_created = 0
        self.budget = self.remaining = 0

    # --- roots

    def start(
        self, position: Position, noise: np.ndarray | None = None, gumbel: np.ndarray | None = None, budget: int = 0
    ) -> None:
        """A new search from scratch."""
        self.root = self._new_node(position, None, -1)
        self._ask([self.root])
        self._prepare(noise, gumbel, budget)

    def move(self, action: int, noise: np.ndarray | None = None, budget: int = 0) -> None:
        """The next search after `action` was played, with what is known below it; at most one search's nodes and 1."""
        child = self.root.edges[action].child
        if child is None:
            self.start(self.root.position.play(action), noise, None, budget)
            return
        child.parent = None
        self.root = child
        kept = sorted(self.nodes(), key=lambda node: node.number)
        for node in kept[1 + self.config.num_simulations :]:
            if node.parent is not None:
                node.parent.edges[node.action].child = None
        self._prepare(noise, None, budget)

    def _prepare(self, noise: np.ndarray | None, gumbel: np.ndarray | None, budget: int) -> None:
        """P, made to sum to 1, mixed with the noise."""
        self.budget = self.remaining = budget or self.config.num_simulations
        self.gumbel = gumbel
        edges = self.root.edges
        total = sum(float(edge.prior) for edge in edges.values())
        self.root_prior = {action: F(float(edge.prior) / total) for action, edge in edges.items()}
        fraction = F(self.config.noise_fraction)
        if noise is not None and fraction > 0:
            for action in edges:
                self.root_prior[action] = (F(1) - fraction) * self.root_prior[action] + fraction * F(noise[action])
        self.root.visited_prior = F(0)
        for action, edge in edges.items():
            if edge.visits:
                self.root.visited_prior += self.root_prior[action]
        if self.config.gumbel_actions:
            self._halving = self._halve(min(self.config.gumbel_actions, len(edges), self.budget))

    def _new_node(self, position: Position, parent: Node | None, action: int) -> Node:
        self.num_created += 1
        return Node(position, parent, action, self.num_created)

    def nodes(self) -> list[Node]:
        found, waiting = [], [self.root]
        while waiting:
            node = waiting.pop()
            found.append(node)
            waiting += [edge.child for edge in node.edges.values() if edge.child is not None]
        return found

    # --- simulations

    def run(self) -> None:
        while self.remaining:
            self.step()

    def step(self) -> None:
        """One walk, or `leaves_per_step` of them that see each other's visits; then all their leaves are evaluated."""
        several = self.config.leaves_per_step > 1
        ends = [self._walk(several) for _ in range(min(self.config.leaves_per_step, self.remaining))]
        new = [node for node, is_new in ends if is_new]
        self._ask([node for node in new if not node.position.terminal])
        for node, is_new in ends:
            if not is_new and node in new:  # a second walk to a leaf that was still to be evaluated does not count
                self._take_back(node)
                continue
            if is_new and node.position.terminal:
                self._end(node)
                node.pending = False
            value = node.raw_value if node.proven is None else F(node.proven)
            self._back_up(node, value, several)
            self.remaining -= 1

    def _end(self, node: Node) -> None:
        """The game is over at the node."""
        node.raw_value = value_at_end(node.position)
        node.proven = int(node.raw_value) if node.raw_value in (-1, 0, 1) else None

    def _ask(self, nodes: list[Node]) -> None:
        for node in nodes:
            priors, values = self.evaluate(node.position.state[None], node.position.legal_mask[None])
            halves = self.config.gumbel_actions > 0 and node.parent is None
            node.open(priors[0], F(values[0]), 1 if halves else self.config.prior_temperature)

    def _walk(self, several: bool) -> tuple[Node, bool]:
        """The node where a walk ends, and whether it is new."""
        node = self.root
        while True:
            action = self._choose(node)
            edge = node.edges[action]
            if several:
                self._announce(node, action)
            if edge.child is None:
                edge.child = self._new_node(node.position.play(action), node, action)
                return edge.child, True
            node = edge.child
            if node.pending or node.proven is not None or node.position.terminal or not node.edges:
                return node, False

    def _choose(self, node: Node) -> int:
        if node is self.root and self.config.gumbel_actions:
            return self._choose_by_halving()
        weight = F(self.config.c_puct) * self._unit() * F(math.sqrt(node.visits))
        unvisited_q = self._unvisited_q(node)
        best, best_score = -1, -math.inf
        for action, edge in node.edges.items():
            q = edge.q if edge.visits else unvisited_q
            score = q + self._prior(node, action) * weight / F(1 + edge.visits)
            if score > best_score:
                best, best_score = action, score
        return best

    def _unvisited_q(self, node: Node) -> F:
        reduction = F(self.config.fpu_reduction) * self._unit()
        return node.value_sum / node.visits - reduction * F(math.sqrt(node.visited_prior))

    def _unit(self) -> F:
        """What counts as 1 beside the values."""
        return F(1)

    def _prior(self, node: Node, action: int) -> F:
        return self.root_prior[action] if node is self.root else node.edges[action].prior

    def _count(self, node: Node, action: int, value: F) -> None:
        edge = node.edges[action]
        if edge.visits == 0:
            node.visited_prior += self._prior(node, action)
        edge.visits += 1
        edge.values.append(float(value))
        node.visits += F(1)
        node.value_sum += value
        if edge.proven is None:
            edge.q += (value - edge.q) / F(edge.visits)

    def _announce(self, node: Node, action: int) -> None:
        """A walk that is under way."""
        edge = node.edges[action]
        if edge.visits == 0:
            edge.q = self._unvisited_q(node)
            node.visited_prior += self._prior(node, action)
        edge.visits += 1
        edge.under_way += 1

    def _finish(self, node: Node, action: int, value: F) -> None:
        """A walk that was under way turns out to be worth `value`."""
        edge = node.edges[action]
        edge.under_way -= 1
        finished = edge.visits - edge.under_way
        edge.values.append(float(value))
        node.visits += F(1)
        node.value_sum += value
        if edge.proven is None:
            edge.q = value if finished == 1 else edge.q + (value - edge.q) / F(finished)

    def _take_back(self, node: Node) -> None:
        while node.parent is not None:
            edge = node.parent.edges[node.action]
            edge.visits -= 1
            edge.under_way -= 1
            node = node.parent

    def _back_up(self, node: Node, value: F, several: bool) -> None:
        exact = self.config.prove and node.proven is not None
        while node.parent is not None:
            parent, action = node.parent, node.action
            edge = parent.edges[action]
            if parent.position.to_play != node.position.to_play:
                value = -value
            (self._finish if several else self._count)(parent, action, value)
            if exact:
                edge.proven, edge.q = int(value), SURE * value
                known = [other.proven for other in parent.edges.values()]
                if 1 in known:
                    parent.proven = 1
                elif None not in known:
                    parent.proven = max(k for k in known if k is not None)
                exact = parent.proven is not None
                if parent.proven is not None:
                    value = F(parent.proven)
            node = parent

    # --- sequential halving

    def _choose_by_halving(self) -> int:
        for action, edge in self.root.edges.items():
            if edge.proven == 1:
                return action
        return next(self._halving)

    def _halve(self, num_considered: int) -> Iterator[int]:
        """The actions in the order of their visits: rounds over a set that is halved after each phase."""
        survivors = sorted(self.root.edges)
        if num_considered == 1:
            best = max(survivors, key=self.gumbel_score)
            while True:
                yield best
        phases = math.ceil(math.log2(num_considered))
        while True:
            for _ in range(max(1, self.budget // (phases * num_considered))):
                waiting, visited = sorted(survivors), []
                for _ in range(num_considered):
                    best = max(waiting, key=self.gumbel_score)
                    waiting.remove(best)
                    visited.append(best)
                    yield best
                survivors = visited
            num_considered = max(2, num_considered // 2)

    def gumbel_score(self, action: int) -> F:
        """gumbel + logit + sigma(completed q), sigma(q) = (c_visit + max N) c_scale q with q moved to [0, 1]."""
        assert self.gumbel is not None
        logit = F(math.log(max(self.root_prior[action], F(1e-12))))
        return F(self.gumbel[action]) + logit + self.sigma(self.completed_q()[action])

    def sigma(self, q: F) -> F:
        most = max(edge.visits for edge in self.root.edges.values())
        config = self.config
        return (F(config.gumbel_visit_offset) + F(most)) * F(config.gumbel_value_scale) * (q + F(1)) / F(2)

    # --- results

    def completed_q(self) -> dict[int, F]:
        """Q(s, a); where nothing was visited v_mix (Danihelka et al. 2022, equation 33)."""
        edges = self.root.edges
        known = {a: e.q if e.proven is None else F(e.proven) for a, e in edges.items() if e.visits}
        total, mass, weighted = 0, F(0), F(0)
        for action, q in known.items():
            total += edges[action].visits
            mass += edges[action].prior
            weighted += edges[action].prior * q
        mixed = self.root.raw_value
        if mass > 0:
            mixed = (mixed + F(total) * weighted / mass) / F(1 + total)
        return {action: known.get(action, mixed) for action in edges}

    def value(self) -> float:
        if self.root.proven is not None:
            return float(self.root.proven)
        if self.config.gumbel_actions:
            policy = self.policy()
            return float(sum(policy[action] * float(q) for action, q in self.completed_q().items()))
        return float(self.root.value_sum / self.root.visits)

    def visit_counts(self) -> np.ndarray:
        counts = np.zeros(self.root.position.game.num_actions, np.int32)
        for action, edge in self.root.edges.items():
            counts[action] = edge.visits
        return counts

    def policy(self) -> np.ndarray:
        """`float64[A]`: visits over their sum, or softmax(logits + sigma(q)); proven results decide it."""
        edges = self.root.edges
        proven = [edge.proven for edge in edges.values()]
        if 1 in proven:
            allowed = [action for action, edge in edges.items() if edge.proven == 1]
        else:
            allowed = [action for action, edge in edges.items() if edge.proven != -1] or list(edges)
        weights = np.zeros(self.root.position.game.num_actions)
        if self.config.gumbel_actions:
            completed = self.completed_q()
            scores = {a: math.log(max(edges[a].prior, 1e-12)) + float(self.sigma(completed[a])) for a in allowed}
            for action, score in scores.items():
                weights[action] = math.exp(score - max(scores.values()))
        else:
            for action in allowed:
                weights[action] = edges[action].visits
            if not weights.any():
                weights[max(allowed, key=lambda action: edges[action].prior)] = 1.0
        return weights / weights.sum()


def value_at_end(position: Position) -> F:
    """The value of a finished game for the player to move there."""
    points, score = float(position.game.plain_rules.terminal_value(position.state)), position.game.score
    return F(points if score is None else 2 * (points - score.low) / (score.high - score.low) - 1)


# --- planted evaluations ---------------------------------------------------------------------------------------------


def _hash(states: np.ndarray, salt: int) -> np.ndarray:
    """`uint64[m]`: one word per state (multiply and shift as in MurmurHash3)."""
    words = np.full(len(states), (salt + 1) * 0x9E3779B1, np.uint64)
    for k in range(states.shape[1]):
        words = (words ^ states[:, k]) * np.uint64(0xFF51AFD7ED558CCD)
        words ^= words >> np.uint64(33)
        words *= np.uint64(0xC4CEB9FE1A85EC53)
        words ^= words >> np.uint64(29)
    return words


def planted(salt: int = 0, sharp: bool = False) -> Evaluate:
    """Priors and values by a hash of the state.

    Priors are multiples of 1/1024 and sum to 1, values multiples of 1/1024: their sums are exact in float32, so no
    rounding hides in how they are added up. `sharp` priors hold most of the mass on one action.
    """

    def evaluate(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        weights = np.zeros(legal_masks.shape, np.int64)
        for action in range(legal_masks.shape[1]):
            draw = (_hash(states, 1000 * salt + action) >> np.uint64(20)).astype(np.int64) % 64
            weights[:, action] = (1 + draw) ** (4 if sharp else 1)
        weights[~legal_masks] = 0
        shares = 1024 * weights // np.maximum(1, weights.sum(axis=1, keepdims=True))
        shares[np.arange(len(states)), weights.argmax(axis=1)] += 1024 - shares.sum(axis=1)
        values = (_hash(states, 1000 * salt + 999) >> np.uint64(20)).astype(np.int64) % 2001 - 1000
        return (shares / 1024).astype(F), (values / 1024).astype(F)

    return evaluate


def neutral(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Equal priors, value 0: what the search finds it has found in the rules."""
    return legal_masks.astype(F), np.zeros(len(states), F)


# --- positions and runs ----------------------------------------------------------------------------------------------


def random_positions(
    game: Game, count: int, seed: int = 0, low: int = 0, keep: Callable[[Position], bool] = lambda position: True
) -> list[Position]:
    """Positions of random games that are not over, `low` plies old or more."""
    rng, positions = np.random.default_rng(seed), []
    while len(positions) < count:
        position = game.start()
        for _ in range(rng.integers(low, game.max_plies)):
            position = position.play(rng.choice(position.legal_actions))
            if position.terminal:
                break
        if not position.terminal and position.ply >= low and keep(position):
            positions.append(position)
    return positions


def random_lines(kernels: Kernels, count: int, seed: int, low: int = 0) -> tuple[list[list[int]], np.ndarray]:
    """The actions that lead to different random positions, at least `low` plies old and not over, and their states.

    Many games at once: for when few last so long, or many are wanted.
    """
    game, rng = kernels.game, np.random.default_rng(seed)
    found: dict[bytes, tuple[list[int], np.ndarray]] = {}
    for _ in range(200):
        states, to_play = kernels.start_states(400), np.zeros(400, np.int8)
        lines: list[list[int]] = [[] for _ in range(400)]
        for _ in range(int(rng.integers(low, game.max_plies))):
            masks, _, _ = kernels.describe_all(states)
            actions = np.where(masks.any(axis=1), (masks * (1 - rng.random(masks.shape))).argmax(axis=1), -1)
            kernels.play(states, to_play, actions)
            for line, action in zip(lines, actions, strict=True):
                line.append(int(action))
        _, terminal, _ = kernels.describe_all(states)
        some = np.flatnonzero(~terminal)[: max(1, count // 6)]
        found |= {states[i].tobytes(): (lines[i], states[i]) for i in some}
        if len(found) >= count:
            break
    chosen = list(found.values())[:count]
    return [line for line, _ in chosen], np.stack([state for _, state in chosen])


def states_of(positions: list[Position]) -> np.ndarray:
    return np.stack([position.state for position in positions])


def plies_of(positions: list[Position]) -> np.ndarray:
    return np.array([position.ply for position in positions])


def check_tree(search: Search, b: int, start: Position) -> dict[int, Position]:
    """The laws that tree b keeps between two steps; returns its positions by node."""
    tree, size = dense(search.tree, b), int(search.tree.size[b])
    positions, waiting = {0: start}, [0]
    while waiting:
        node = waiting.pop()
        position = positions[node]
        assert (tree.states[b, node] == position.state).all(), f"node {node} holds another state"
        assert (tree.to_play[b, node] == position.to_play) == (tree.to_play[b, 0] == start.to_play)
        assert tree.proven[b, node] != 3, f"node {node} is still pending"
        if position.terminal:
            assert node > 0
            assert tree.proven[b, node] == value_at_end(position)
            continue
        legal = position.legal_mask
        prior, visits = tree.prior[b, node], tree.visits[b, node]
        assert ((prior >= 0) == legal).all()
        assert abs(prior[legal].sum() - 1) < 1e-5
        assert (visits[~legal] == 0).all()
        assert tree.node_visits[b, node] == 1 + visits.sum()
        shaped = tree.root_prior[b] if node == 0 else prior
        assert abs(tree.visited_prior[b, node] - shaped[visits > 0].sum()) < 1e-5
        unproven = (tree.action_proven[b, node] == 2) & (visits > 0)
        assert (abs(tree.q[b, node, unproven]) <= 1 + 1e-5).all()
        for action in np.flatnonzero(legal):
            child = int(tree.child[b, node, action])
            if child >= 0:
                assert node < child < size
                assert child not in positions, f"node {child} has two parents"
                assert visits[action] > 0
                assert (tree.parent[b, child], tree.action[b, child]) == (node, action)
                positions[child] = position.play(action)
                waiting.append(child)
    assert len(positions) == size, "a node belongs to nobody"
    return positions


def compare_trees(search: Search, b: int, reference: ReferenceSearch) -> None:
    """Node for node: visits and proofs exactly, priors and q within 1e-6."""
    tree = dense(search.tree, b)
    pairs = [(0, reference.root)]
    count = 0
    while pairs:
        node, expected = pairs.pop()
        count += 1
        where = f"tree {b}, node {node}, after {expected.position.actions}"
        assert (tree.states[b, node] == expected.position.state).all(), where
        unproven = 4 if expected.position.terminal else 2
        assert tree.proven[b, node] == (unproven if expected.proven is None else expected.proven), where
        if expected.position.terminal:
            continue
        assert abs(tree.node_value[b, node] - expected.value_sum) < 1e-6, where
        assert tree.node_visits[b, node] == expected.visits, where
        assert abs(tree.visited_prior[b, node] - expected.visited_prior) < 1e-6, where
        assert abs(tree.raw_value[b, node] - expected.raw_value) < 1e-6, where
        assert (np.delete(tree.visits[b, node], list(expected.edges)) == 0).all(), where
        for action, edge in expected.edges.items():
            assert tree.visits[b, node, action] == edge.visits, f"{where}, visits of action {action}"
            assert abs(tree.prior[b, node, action] - edge.prior) < 1e-6, where
            assert tree.action_proven[b, node, action] == (2 if edge.proven is None else edge.proven), where
            if edge.visits:
                assert abs(tree.q[b, node, action] - edge.q) < 1e-6, f"{where}, q of action {action}"
                if edge.proven is None:
                    assert abs(edge.q - np.mean(edge.values)) < 1e-5, where
            child = tree.child[b, node, action]
            assert (child >= 0) == (edge.child is not None), where
            if edge.child is not None:
                pairs.append((int(child), edge.child))
    assert count == tree.size[b]
