"""A search that is watched finds what the search finds, and its best lines can be played."""

from typing import Any

import numpy as np
import pytest

import alphazero as az
from alphazero.catalogue import registry
from alphazero.errors import IllegalAction
from alphazero.game import Position
from alphazero.game.kernels import Kernels, kernels_of
from alphazero.nets.neural_net import NeuralNet
from alphazero.nets.resnet import make_net
from alphazero.players.contestants import make_player
from alphazero.search.analysis import LEAVES, Analysis, Found, child_by, search_position
from alphazero.search.evaluator import Evaluator
from alphazero.search.mcts import Search, SearchConfig
from alphazero.search.rollouts import Playouts
from alphazero.search.tree import ROOT
from tests.search.dense import dense
from tests.search.dice_games import PointsRace
from tests.search.reference_search import random_positions
from tests.search.row_game import ROW
from tests.search.searches import ThreadedNet

CONNECT_4 = registry.load("connect4")


def analysed(text: str, contestant: str = "mcts:200"):
    position = CONNECT_4.game.position(text)
    return position, make_player(contestant, CONNECT_4, seed=1, threads=1).analysis().run(position)


def played(position: Position, moves) -> Position:
    for action in moves:
        position = position.play(action)
    return position


def test_the_visits_are_those_of_the_search():
    position, lines = analysed("4 4 3")
    config = SearchConfig(num_simulations=200, noise_fraction=0.0)
    kernels = Kernels(CONNECT_4.game)
    zero = np.zeros(1, np.int64)
    found = Search(kernels, config, Playouts(kernels, 1), 1).run(position.state[None].copy(), zero, zero + position.ply)
    assert {line.action: line.visits for line in lines} == {
        action: count for action, count in enumerate(found.visit_counts[0].tolist()) if count
    }
    assert sum(line.visits for line in lines) == 200
    assert lines[0].action == int(found.actions[0]) and lines[0].visits == found.visit_counts.max()
    assert [line.prior for line in lines] == pytest.approx([1 / 7] * len(lines))
    for line in lines:
        assert line.moves[0] == line.action and line.value == pytest.approx(float(found.q[0, line.action]))
        played(position, line.moves)  # raises IllegalAction unless all are legal


def test_noise_and_halving_of_the_player_are_left_out():
    plain = analysed("4 4", "mcts:64")[1]
    assert analysed("4 4", "mcts:64@noise_fraction=0.5,gumbel_actions=4")[1] == plain


def test_an_analysis_runs_its_net_on_one_thread():
    """More are slower for single positions."""
    net, kernels = ThreadedNet(), Kernels(CONNECT_4.game)
    analysis = Analysis(kernels, SearchConfig(num_simulations=16), Evaluator(kernels, net))
    assert sum(line.visits for line in analysis.run(CONNECT_4.game.start())) == 16
    assert net.used == {1} and net.threads == 2


# --- one position, one result ---


class Lopsided(NeuralNet):
    """A net whose answers depend on every plane, so that it answers differently for a mirror image."""

    def __init__(self, game):
        size = int(np.prod(game.observation_shape)), game.num_actions + 1
        self.weights = np.random.default_rng(3).normal(0.0, 0.2, size)
        self.batches: list[int] = []

    def evaluate(self, observations: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.batches.append(len(observations))
        out = observations.reshape(len(observations), -1) @ self.weights
        priors = np.where(legal_masks, np.exp(out[:, :-1]), 0.0)
        return (priors / priors.sum(axis=1, keepdims=True)).astype(np.float32), np.tanh(out[:, -1]).astype(np.float32)

    save = load = None  # type: ignore[assignment]


def mirrored(position: Position, symmetry: int) -> Position:
    actions = position.game.symmetries[1][symmetry]
    image = [int(np.flatnonzero(actions == action)[0]) for action in position.actions]
    return position.game.position(image)


def contents(found: Found, order: Any = slice(None)) -> tuple[Any, ...]:
    arrays = found.policy, found.visits, found.q
    return *(array[order].tobytes() for array in arrays), found.value, found.proven


@pytest.mark.parametrize("name", ["connect4", "tictactoe"])
@pytest.mark.parametrize("settings", [{}, {"gumbel_actions": 4}])
def test_a_mirrored_position_gets_the_mirrored_result(name: str, settings: dict[str, Any]):
    game = registry.load(name).game
    net, config = Lopsided(game), SearchConfig(num_simulations=60, noise_fraction=0.0, **settings)
    asymmetric = 0
    for position in random_positions(game, 12, seed=9):
        images = [mirrored(position, symmetry) for symmetry in range(len(game.symmetries[1]))]
        if len({image.state.tobytes() for image in images}) < len(images):
            continue  # it is its own mirror image, so that several actions are equally good
        asymmetric += 1
        found = search_position(position, net, config=config)
        for image, actions in zip(images, game.symmetries[1], strict=True):
            other = search_position(image, net, config=config)
            assert tuple(actions[list(other.line)]) == found.line and actions[other.best] == found.best
            assert contents(other) == contents(found, actions)
    assert asymmetric >= 5


def test_a_found_result_agrees_with_itself_and_the_rules():
    game = CONNECT_4.game
    for position in random_positions(game, 12, seed=4):
        found = search_position(position, Lopsided(game), simulations=80)
        assert found.visits.sum() == 80 and found.policy.sum() == pytest.approx(1)
        assert found.best == found.line[0] == found.policy.argmax()
        assert not found.policy[~position.legal_mask].any() and not found.visits[~position.legal_mask].any()
        assert (np.isnan(found.q) == ~position.legal_mask).all() and (abs(found.q[position.legal_mask]) <= 1).all()
        assert not found.proven or found.value in (-1, 0, 1)
        assert found.value == pytest.approx(float(np.nanmax(found.q)), abs=0.5)
        played(position, found.line)


def test_a_win_is_proven_with_its_line():
    position = CONNECT_4.game.position("4 4 5 5")
    found = search_position(position, Playouts(Kernels(CONNECT_4.game), 1), simulations=2000)
    assert found.proven and found.value == 1.0 and found.best in (2, 5)
    final = played(position, found.line)
    assert final.terminal and final.outcome == 1
    assert found.q[found.best] == 1.0 and found.policy[found.best] > 0


def test_a_finished_game_is_refused():
    over = CONNECT_4.game.position("1 2 1 2 1 2 1")
    with pytest.raises(IllegalAction, match="game is over"):
        search_position(over, Lopsided(CONNECT_4.game))


# --- a game that is followed ---


def test_the_next_position_of_a_game_keeps_what_the_tree_knows_of_it():
    player = make_player("mcts:400", CONNECT_4, seed=1, threads=1)
    analysis = player.analysis()
    position = CONNECT_4.game.position("4 4 3")
    best = analysis.run(position)[0]
    reply, answer = best.moves[:2]
    tree = dense(analysis._search.tree)
    child = int(tree.child[0, int(tree.child[0, 0, reply]), answer])
    known = tree.visits[0, child].copy()
    assert known.sum() > 20, "the test has lost its point"
    after = played(position, (reply, answer))
    analysis.begin(after)
    assert (analysis.result().visit_counts[0] == known).all()
    lines = analysis.run(played(after, (analysis.lines()[0].action,)))
    assert sum(line.visits for line in lines) > 400
    # any other position is searched from scratch, as by an analysis that has seen nothing
    for text in ("4 4 2", "4 4", "1 2 3 4 5 6 7"):
        other = CONNECT_4.game.position(text)
        assert analysis.run(other) == player.analysis().run(other)


def test_a_tree_that_is_followed_never_outgrows_its_room():
    analysis = make_player("mcts:60", CONNECT_4, seed=1, threads=1).analysis()
    position, rng = CONNECT_4.game.start(), np.random.default_rng(2)
    while not position.terminal:
        for line in analysis.run(position):
            played(position, line.moves)
        position = position.play(int(rng.choice(position.legal_actions)))


# --- several leaves at once ---


def test_a_network_is_asked_about_several_positions_at_once():
    position, net = CONNECT_4.game.position("4 4 3"), Lopsided(CONNECT_4.game)
    found = search_position(position, net, simulations=400)
    assert found.visits.sum() == 400 and LEAVES / 2 < max(net.batches) <= LEAVES and len(net.batches) < 400 / 3
    short = Lopsided(CONNECT_4.game)
    search_position(position, short, simulations=30)
    assert max(short.batches) == 1, "a short search takes one leaf at a time"
    exact = Lopsided(CONNECT_4.game)
    search_position(position, exact, config=SearchConfig(num_simulations=400))
    assert max(exact.batches) == 1, "a config that is given is followed"


# --- a look into the tree ---


def test_the_nodes_of_a_tree_add_up():
    analysis = make_player("mcts:300", CONNECT_4, seed=1, threads=1).analysis()
    position = CONNECT_4.game.position("4 4 3")
    lines = {line.action: line for line in analysis.run(position)}
    root = analysis.node()
    assert root.visits == analysis.simulations == 300 and not root.proven
    assert [edge.visits for edge in root.edges] == sorted((edge.visits for edge in root.edges), reverse=True)
    assert sum(edge.prior for edge in root.edges) == pytest.approx(1)
    for edge in root.edges:
        assert (edge.visits, edge.value) == (lines[edge.action].visits, lines[edge.action].value)
        child = analysis.node([edge.action])
        assert child.visits == edge.visits - 1  # one evaluated the child itself
        assert child.value == pytest.approx(-edge.value, abs=1e-6)
    weighed = sum(edge.visits * edge.value for edge in root.edges)
    own = analysis.result().values[0] * 301 - weighed  # the root's own evaluation
    assert root.value == pytest.approx(analysis.result().values[0], abs=1e-6) and abs(own) < 1.001


def test_nodes_that_are_not_there_are_refused():
    analysis = make_player("mcts:2", CONNECT_4, seed=1, threads=1).analysis()
    analysis.run(CONNECT_4.game.start())
    for path in ([99], [-1], [0, 0, 0, 0]):
        with pytest.raises(KeyError):
            analysis.node(path)


def test_a_proven_node_says_so():
    analysis = make_player("mcts:200", CONNECT_4, seed=1, threads=1).analysis()
    analysis.run(CONNECT_4.game.position("1 2 1 2 1 2"))
    root = analysis.node()
    (win,) = [edge for edge in root.edges if edge.action == 0]
    assert root.proven and root.value == 1.0 and win.proven and win.value == 1.0
    end = analysis.node([0])
    assert end.proven and end.value == -1.0 and end.edges == ()


def test_a_proven_win_tells_within_how_many_plies_it_can_be_forced():
    """The solver's distance may be shorter, since the tree has not proved all ways. A kept subtree knows it, too."""
    oracle, seen, rng = CONNECT_4.make_oracle(CONNECT_4.game), {1: 0, -1: 0}, np.random.default_rng(5)
    for _ in range(8):
        analysis, position = make_player("mcts:1500", CONNECT_4, seed=1, threads=1).analysis(), CONNECT_4.game.start()
        while not position.terminal:
            lines = analysis.run(position)
            results = oracle.results(position) if position.ply > 12 else {}
            for line in lines:
                assert line.plies is None or abs(line.value) == 1.0
                if line.plies is None or not results:
                    continue
                known = results[line.action]
                assert known.outcome == line.value and known.distance <= (line.plies + 1) // 2
                end = played(position, line.moves)
                assert end.terminal and end.outcome and len(line.moves) == line.plies
                seen[int(line.value)] += line.plies > 2
            wins = [line.plies for line in lines if line.plies and line.value == 1.0]
            assert not wins or lines[0].plies == min(wins)
            if analysis.settled and lines[0].value == -1.0:
                assert lines[0].plies == max(line.plies for line in lines)
            position = position.play(int(rng.choice(position.legal_actions)))
    assert min(seen.values()) > 5, "the test has lost its point"


def test_a_win_through_dice_tells_no_length():
    """Which way they take is not the winner's choice. From four steps any throw of two dice wins."""
    race = registry.of(PointsRace())
    analysis = make_player("mcts:300", race, seed=1, threads=1).analysis()
    analysis.begin(Position(race.game, np.array([4, 0, 0, 0, 2], np.uint64), 0, ()), [0])
    while not analysis.finished:
        analysis.step()
    (line,) = analysis.lines()
    assert line.action == 0 and line.value == 1.0 and line.plies is None
    child = child_by(analysis._search.tree, ROOT, 0)
    assert analysis._search.tree.proven[0, child] == 1, "the test has lost its point"


def test_each_player_has_a_value_also_in_a_tree_that_follows_the_game():
    """Both ways to read one search agree; a proven node has the results of the game."""
    mo = registry.load("tictacmo")
    start = mo.game.position("a1")
    player = make_player("mcts:300", mo, seed=1, threads=1)
    analysis = player.analysis()
    analysis.run(start)
    found = search_position(start, Playouts(kernels_of(mo.game), 0), 300)
    assert len(found.values) == 3 and found.value == found.values[1]
    for position in (start, start.play(9), start.play(9).play(3)):
        analysis.run(position)  # the tree is kept
        root, mover = analysis.node(), position.to_play
        own = np.roll(analysis.result().values[0], mover)
        assert root.values == pytest.approx(own.tolist(), abs=1e-6) and root.value == root.values[mover]
        edge = root.edges[0]
        below = analysis.node([edge.action]).values
        assert below[mover] == pytest.approx(edge.value, abs=1e-6)
    won = mo.game.position("a1 b1 a2 b2 c1 c2")  # the first player takes c3
    analysis.run(won)
    assert analysis.node([won.parse("c3")]).values == won.play(won.parse("c3")).results == (1.0, -0.5, -0.5)
    for path, value in (((), 1.0), ((won.parse("c3"),), -0.5)):
        node = analysis.node(path)
        assert node.proven and node.values == (1.0, -0.5, -0.5) and node.value == value
    two = make_player("mcts:50", CONNECT_4, seed=1, threads=1).analysis()
    two.run(CONNECT_4.game.position("4"))
    assert two.node().values == (-two.node().value, two.node().value)
    assert two.node([3]).values == (two.node([3]).value, -two.node([3]).value)


TICTACTOE = registry.load("tictactoe").game


class Listed(type(TICTACTOE)):
    num_actions, state_words, observation_shape = np.int64(9), np.int64(2), (np.int64(2), np.int64(3), np.int64(3))
    symmetries = tuple(part.tolist() for part in TICTACTOE.symmetries)


def test_sizes_and_symmetries_may_be_of_any_type_of_whole_numbers():
    one, other = (search_position(game.position("a1 b2"), ThreadedNet(), 50) for game in (Listed(), TICTACTOE))
    assert (one.visits == other.visits).all() and one.value == other.value


def test_a_game_for_one_without_dice_is_searched_and_analysed():
    """Its searches keep no subtree and take a leaf a step, as those with dice."""
    kernels, net = Kernels(ROW), make_net(ROW, {"blocks": 1, "channels": 8})
    assert az.search(ROW.start(), net, simulations=200).visits.sum() == 200
    analysis = Analysis(kernels, SearchConfig(num_simulations=300), Evaluator(kernels, net))
    lines = analysis.run(ROW.start())
    assert sum(line.visits for line in lines) == 300
    assert sum(line.visits for line in analysis.run(ROW.start().play(lines[0].action))) == 300
