"""The evaluator against the bare network: planted answers, mirror images, a tiny cache, broken networks."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import EvaluationError, NetError
from alphazero.game import Game
from alphazero.game.kernels import Kernels
from alphazero.nets.neural_net import NeuralNet
from alphazero.search.evaluator import MOST_BYTES, CheckedFunction, Evaluator
from alphazero.search.mcts import Search, SearchConfig
from tests.game.double_move_game import DoubleMove
from tests.game.many_actions import APART, MANY, ManyActions
from tests.search.reference_search import planted, random_lines, random_positions, states_of

TICTACTOE, CONNECT4 = (registry.load(name).game for name in ("tictactoe", "connect4"))
DOUBLE_MOVE = DoubleMove()  # has no symmetries
GAMES = {game.name: game for game in (TICTACTOE, CONNECT4, DOUBLE_MOVE)}
KERNELS = {name: Kernels(game) for name, game in (GAMES | {MANY.name: MANY}).items()}
F = np.float32

every_game = pytest.mark.parametrize("game", GAMES.values(), ids=GAMES)


class FakeNet(NeuralNet):
    """Answers by a hash of the observation, which knows no symmetry; remembers what it was asked."""

    def __init__(self, salt: int = 0):
        self.salt = salt
        self.asked: list[bytes] = []
        self.broken: tuple[str, float] | None = None
        self.num_calls = 0

    def evaluate(self, observations: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        assert observations.dtype == F and legal_masks.dtype == bool
        assert len(observations) == len(legal_masks) > 0
        self.num_calls += 1
        self.asked += [observation.tobytes() for observation in observations]
        cells = observations.reshape(len(observations), -1)
        weights = 3 ** np.arange(cells.shape[1], dtype=np.uint64)
        words = (cells * 12).round().astype(np.uint64) @ weights
        priors, values = planted(self.salt)(words[:, None], legal_masks)
        if self.broken is not None:
            where, number = self.broken
            if where == "values":
                values[-1] = number
            else:
                priors[-1, np.flatnonzero(legal_masks[-1])[0]] = number
        return priors, values

    save = load = None  # type: ignore[assignment]


def images(game: Game, state: np.ndarray) -> list[tuple[int, ...]]:
    """The state's mirror images, by the game's own plain rules; image 0 is the state."""
    found = [tuple(int(word) for word in state)]
    if game.plain_rules.transform is not None:
        for symmetry in range(1, len(game.symmetries[1])):
            image = state.copy()
            with np.errstate(over="ignore"):
                game.plain_rules.transform(image, symmetry)
            found.append(tuple(int(word) for word in image))
    return found


def mask_of(game: Game, state: np.ndarray) -> np.ndarray:
    mask = np.zeros(game.num_actions, bool)
    game.plain_rules.legal(state, mask)
    return mask


class Expected:
    """The bare network's answer for the smallest mirror image, turned back; a plain dict remembers it."""

    def __init__(self, game: Game, salt: int = 0):
        self.game, self.net = game, FakeNet(salt)
        self.known: dict[tuple[int, ...], tuple[np.ndarray, float]] = {}
        self.calls: dict[tuple[int, ...], tuple[list[np.ndarray], float]] = {}

    def canonical(self, state: np.ndarray) -> tuple[int, ...]:
        return min(images(self.game, state))

    def __call__(self, state: np.ndarray) -> tuple[list[np.ndarray], float]:
        """All the priors that are right (several where a position is its own mirror image), and the value."""
        key = tuple(int(word) for word in state)
        if key not in self.calls:
            self.calls[key] = self._answer(state)
        return self.calls[key]

    def _answer(self, state: np.ndarray) -> tuple[list[np.ndarray], float]:
        smallest = self.canonical(state)
        if smallest not in self.known:
            image = np.array(smallest, np.uint64)
            planes = np.zeros(self.game.observation_shape, F)
            self.game.plain_rules.observe(image, planes)
            priors, values = self.net.evaluate(planes[None], mask_of(self.game, image)[None])
            self.known[smallest] = priors[0], float(values[0])
        answer, value = self.known[smallest]
        right = []
        for symmetry, image_words in enumerate(images(self.game, state)):
            if image_words == smallest:
                # "symmetry s maps a policy to policy[actions[s]]": the image's policy is own[actions[s]]
                own = np.empty(self.game.num_actions, F)
                own[self.game.symmetries[1][symmetry]] = answer
                right.append(own)
        return right, value

    def check(self, states: np.ndarray, priors: np.ndarray, values: np.ndarray) -> None:
        assert priors.shape == (len(states), self.game.num_actions) and values.shape == (len(states),)
        assert priors.dtype == values.dtype == F
        for i, state in enumerate(states):
            right, value = self(state)
            assert values[i] == value, f"row {i}"
            assert any((priors[i] == expected).all() for expected in right), f"row {i}"
            assert not priors[i, ~mask_of(self.game, state)].any(), f"row {i}: a prior on an illegal action"


def masks_of(game: Game, states: np.ndarray) -> np.ndarray:
    return KERNELS[game.name].describe_all(states)[0]


@cache
def pool(game: Game, count: int) -> np.ndarray:
    """Different positions, among them mirror images of each other."""
    _, states = random_lines(KERNELS[game.name], count, 0)
    states.setflags(write=False)
    return states


# --- answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", [*GAMES.values(), MANY], ids=[*GAMES, MANY.name])
@pytest.mark.parametrize("cache_size", [1, 64, 4096])
def test_answers_are_the_bare_nets_whatever_the_cache_has_room_for(game, cache_size):
    """Random batches with duplicates against a dict; a full bucket must never mix two positions up."""
    rng, expected = np.random.default_rng(cache_size), Expected(game)
    evaluator = Evaluator(KERNELS[game.name], FakeNet(), cache_size)
    states = pool(game, 400)
    masks = masks_of(game, states)
    requests = 0
    for size in [1, 2, 3, 7, 30, 200, 1, 400, 5, 64] * 3:
        rows = rng.integers(len(states) if size > 3 else 5, size=size)
        before = states[rows].copy()
        given = states[rows]
        priors, values = evaluator(given, masks[rows])
        assert (given == before).all(), "the caller's states were changed"
        expected.check(given, priors, values)
        priors[:] = values[:] = 7  # answers belong to the caller
        requests += size
        assert evaluator.num_requests == requests
        assert evaluator.num_evaluations == len(evaluator.net.asked) <= requests


@every_game
def test_nothing_is_asked_twice_while_there_is_room(game):
    states = pool(game, 300)
    masks, rng = masks_of(game, states), np.random.default_rng(1)
    evaluator, expected = Evaluator(KERNELS[game.name], FakeNet(), 1 << 16), Expected(game)
    seen: set[tuple[int, ...]] = set()
    for _ in range(12):
        rows = rng.integers(len(states), size=60)
        rows[30:] = rows[rng.integers(30, size=30)]  # duplicates within the batch
        asked, calls = len(evaluator.net.asked), evaluator.net.num_calls
        new = {expected.canonical(states[row]) for row in rows} - seen
        priors, values = evaluator(states[rows], masks[rows])
        expected.check(states[rows], priors, values)
        assert len(evaluator.net.asked) - asked == len(new)
        assert evaluator.net.num_calls - calls == (1 if new else 0)
        seen |= new
    assert len(evaluator.net.asked) == len(seen) == evaluator.num_evaluations
    assert evaluator.num_requests == 12 * 60
    first = evaluator(states, masks)
    asked = evaluator.num_evaluations
    second = evaluator(states[::-1].copy(), masks[::-1].copy())
    assert evaluator.num_evaluations == asked
    assert (first[0] == second[0][::-1]).all() and (first[1] == second[1][::-1]).all()


@every_game
def test_without_a_cache_everything_is_asked_anew(game):
    states = pool(game, 50)
    states = np.concatenate([states, states[:10]])
    masks = masks_of(game, states)
    evaluator, expected = Evaluator(KERNELS[game.name], FakeNet(), 0), Expected(game)
    images = np.array([expected.canonical(state) for state in states], np.uint64)
    for _ in range(2):
        expected.check(states, *evaluator(states, masks))
    assert evaluator.net.asked == [planes.tobytes() for planes in KERNELS[game.name].observations(images)] * 2
    assert evaluator.num_requests == evaluator.num_evaluations == 2 * len(states)


@pytest.mark.parametrize("cache_size", [0, 8, 4096])
def test_an_empty_batch_asks_nothing(cache_size):
    evaluator = Evaluator(KERNELS["connect4"], FakeNet(), cache_size)
    priors, values = evaluator(np.empty((0, 2), np.uint64), np.empty((0, 7), bool))
    assert priors.shape == (0, 7) and values.shape == (0,)
    assert priors.dtype == values.dtype == F
    assert evaluator.num_requests == evaluator.num_evaluations == evaluator.net.num_calls == 0


# --- symmetry --------------------------------------------------------------------------------------------------------


def test_mirrored_positions_get_mirrored_answers():
    evaluator = Evaluator(KERNELS["connect4"], FakeNet(), 4096)
    for position in random_positions(CONNECT4, 60, seed=5, low=1):
        mirrored = CONNECT4.position([6 - action for action in position.actions])
        states = np.stack([position.state, mirrored.state])
        priors, values = evaluator(states, masks_of(CONNECT4, states))
        if (states[0] != states[1]).any():
            assert (priors[0] == priors[1][::-1]).all()
        assert values[0] == values[1]
    assert evaluator.num_evaluations <= 60


# --- the bounded table -----------------------------------------------------------------------------------------------


def test_what_was_used_last_stays():
    """A position that every batch asks for is kept, however many others pass by one at a time."""
    states = pool(CONNECT4, 600)
    masks = masks_of(CONNECT4, states)
    evaluator = Evaluator(KERNELS["connect4"], FakeNet(), 16)
    evaluator(states[:1], masks[:1])
    favourite = evaluator.net.asked[0]
    for i in range(1, len(states)):
        evaluator(states[i : i + 1], masks[i : i + 1])
        evaluator(states[:1], masks[:1])
    assert evaluator.net.asked.count(favourite) == 1


@every_game
def test_clear_forgets_everything(game):
    states = pool(game, 100)
    masks, net = masks_of(game, states), FakeNet(0)
    evaluator = Evaluator(KERNELS[game.name], net, 4096)
    for salt in (0, 1, 2):  # new weights
        net.salt = salt
        evaluator.clear()
        expected = Expected(game, salt)
        for _ in range(2):
            priors, values = evaluator(states, masks)
            expected.check(states, priors, values)
    assert evaluator.num_evaluations == 3 * len(expected.known)
    assert evaluator.num_requests == 6 * len(states)


# --- a broken network ------------------------------------------------------------------------------------------------


@every_game
@pytest.mark.parametrize("cache_size", [0, 4096])
@pytest.mark.parametrize("where", ["priors", "values"])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_an_answer_that_is_no_number_names_the_position(game, cache_size, where, number):
    different = {Expected(game).canonical(state): state for state in pool(game, 30)}
    states = np.stack(list(different.values()))
    if game.rules.to_play is not None:  # the state says whose view it is: let the last one be the second player's
        states = states[np.argsort([game.mover(state, 0) for state in states], kind="stable")]
        assert game.mover(states[-1], 0) == 1
    evaluator = Evaluator(KERNELS[game.name], FakeNet(), cache_size)
    evaluator.net.broken = where, number
    with pytest.raises(EvaluationError) as caught:
        evaluator(states, masks_of(game, states))
    # the last state asked for is the broken one: it, or the mirror image that was asked for in its place
    found = [np.array(image, np.uint64) for image in images(game, states[-1])]
    assert any(game.render(image, game.mover(image, 0)) in str(caught.value) for image in found)


@pytest.mark.parametrize("cache_size", [0, 4096])
def test_logits_in_place_of_priors_are_refused(cache_size):
    """A negative prior would make its action illegal in the tree, and prove what is false."""
    states = pool(CONNECT4, 30)
    evaluator = Evaluator(KERNELS["connect4"], FakeNet(), cache_size)
    evaluator.net.broken = "priors", -0.5
    with pytest.raises(EvaluationError, match="evaluate must give .* priors that are not negative"):
        evaluator(states, masks_of(CONNECT4, states))


@pytest.mark.parametrize(("value", "allowed"), [(1.0, True), (-1.0005, True), (1.1, False), (-1e30, False)])
def test_a_value_that_is_none_is_blamed_on_the_network(value, allowed):
    states = pool(CONNECT4, 30)
    evaluator = Evaluator(KERNELS["connect4"], FakeNet(), 64)
    evaluator.net.broken = "values", value
    if allowed:
        for _ in range(2):  # the second time from the cache
            assert np.abs(evaluator(states, masks_of(CONNECT4, states))[1]).max() <= 1.0, "it is cut to the range"
        return
    with pytest.raises(EvaluationError, match="evaluate must give .* a value between -1 and 1"):
        evaluator(states, masks_of(CONNECT4, states))


@every_game
@pytest.mark.parametrize("failure", ["nan", "raises", "interrupted"])
def test_a_failed_answer_is_not_remembered(game, failure):
    """After the error the same positions are asked again, and those that were known before are still right."""
    states = pool(game, 120)
    masks, expected = masks_of(game, states), Expected(game)
    for cache_size in (8, 4096):
        net = FakeNet()
        evaluator = Evaluator(KERNELS[game.name], net, cache_size)
        evaluator(states[:40], masks[:40])
        if failure == "nan":
            net.broken = "values", np.nan
            with pytest.raises(EvaluationError):
                evaluator(states[20:80], masks[20:80])
            net.broken = None
        elif failure == "interrupted":  # as the first kernel returns
            look_up = evaluator._look_up
            evaluator._look_up = lambda *arguments, do=look_up: interrupt(*do(*arguments))  # type: ignore[misc]
            with pytest.raises(KeyboardInterrupt):
                evaluator(states[20:80], masks[20:80])
            evaluator._look_up = look_up
        else:
            evaluate, net.evaluate = net.evaluate, interrupt  # type: ignore[method-assign]
            with pytest.raises(KeyboardInterrupt):
                evaluator(states[20:80], masks[20:80])
            net.evaluate = evaluate  # type: ignore[method-assign]
        priors, values = evaluator(states, masks)
        expected.check(states, priors, values)


def interrupt(*arguments: object) -> tuple[np.ndarray, np.ndarray]:
    raise KeyboardInterrupt


def test_large_finite_answers_are_no_error():
    """Weights of any sum are allowed; that their sum over a batch overflows says nothing about them."""

    class Huge(FakeNet):
        def evaluate(self, observations: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return np.where(legal_masks, F(4e37), F(0)), np.zeros(len(observations), F)

    states = pool(CONNECT4, 30)
    with np.errstate(over="ignore"):
        priors, _ = Evaluator(KERNELS["connect4"], Huge(), 64)(states, masks_of(CONNECT4, states))
    assert (priors[masks_of(CONNECT4, states)] == F(4e37)).all()


# --- behind a search -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cache_size", [1, 64, 1 << 14])
@pytest.mark.parametrize("leaves", [1, 4])
def test_a_search_is_the_same_whatever_the_cache_has_room_for(cache_size, leaves):
    positions = random_positions(TICTACTOE, 30, seed=9)
    config = SearchConfig(num_simulations=60, noise_fraction=0.0, reuse_subtree=False, leaves_per_step=leaves)

    def search(size):
        evaluator = Evaluator(KERNELS["tictactoe"], FakeNet(), size)
        trees = Search(KERNELS["tictactoe"], config, evaluator, 30)
        result = trees.run(states_of(positions), np.arange(30), np.zeros(30, np.int64))
        return result, evaluator.num_evaluations

    expected, asked = search(0)
    result, fewer = search(cache_size)
    assert (result.visit_counts == expected.visit_counts).all()
    assert (result.q == expected.q).all() and (result.values == expected.values).all()
    assert fewer < asked


def test_positions_with_more_legal_actions_than_an_entry_has_room_for_are_asked_anew():
    crowded = ManyActions()
    crowded.mean_legal = 1
    kernels, states = Kernels(crowded), pool(MANY, 60)
    assert Evaluator(kernels, FakeNet()).cache.actions.shape[1] == 3
    masks, expected = kernels.describe_all(states)[0], Expected(MANY)
    evaluator = Evaluator(kernels, FakeNet())
    for _ in range(2):
        twice = np.concatenate([states, states])
        expected.check(twice, *evaluator(twice, np.concatenate([masks, masks])))
    many = masks.sum(axis=1) > 3
    assert 5 < many.sum() < 55
    few = {expected.canonical(state) for state in states[~many]}
    assert evaluator.num_evaluations == 4 * many.sum() + len(few)


def test_weights_of_illegal_actions_take_no_room():
    class Careless(FakeNet):
        def evaluate(self, observations, legal_masks):
            priors, values = super().evaluate(observations, legal_masks)
            return priors + ~legal_masks, values

    states, expected, evaluator = pool(MANY, 40), Expected(MANY), Evaluator(KERNELS[MANY.name], Careless())
    for _ in range(2):
        expected.check(states, *evaluator(states, masks_of(MANY, states)))
    assert (evaluator.cache.actions % APART == 0).all()


@pytest.mark.parametrize("name", ["connect4", "othello", "gomoku15"])
def test_a_cache_stays_within_its_memory(name: str):
    evaluator = Evaluator(Kernels(registry.load(name).game), None, 1 << 26)  # type: ignore[arg-type]
    assert MOST_BYTES / 4 < sum(array.nbytes for array in evaluator.cache) <= MOST_BYTES


def test_a_win_at_once_is_seen_without_the_net():
    """By hand, X to move: a1 and c1 hold X, so b1 wins; elsewhere the net is asked."""
    net, kernels = FakeNet(), KERNELS["tictactoe"]
    positions = [TICTACTOE.position(text) for text in ("a1 a2 c1 b2", "a1 a2 c1 b1")]
    states = states_of(positions)
    masks, _, _ = kernels.describe_all(states)
    evaluate = Evaluator(kernels, net, 16, sees_wins=True)
    priors, values = evaluate(states, masks)
    assert priors[0].tolist() == [0, 1, 0, 0, 0, 0, 0, 0, 0] and values[0] == 1
    plain_priors, plain_values = Evaluator(kernels, FakeNet(), 16)(states[1:], masks[1:])
    np.testing.assert_array_equal(priors[1:], plain_priors)
    np.testing.assert_array_equal(values[1:], plain_values)
    assert evaluate.num_evaluations == len(net.asked) == 1


def test_a_win_at_once_is_found_however_little_the_net_thinks_of_it():
    """Two plies ahead: all weight of the net is on other actions, and 20 simulations see what the reply does."""

    class Blind(FakeNet):
        def evaluate(self, observations, legal_masks):
            priors = np.where(legal_masks, F(1e-6), F(0))
            priors[np.arange(len(priors)), 8 - legal_masks[:, ::-1].argmax(axis=1)] = 1  # the last free square
            return priors, np.full(len(priors), 0.5, F)

    kernels, position = KERNELS["tictactoe"], TICTACTOE.position("a1 b2 c3 c1 a3")  # X threatens a2 and b3
    values = []
    for sees_wins in (False, True):
        config = SearchConfig(num_simulations=20, noise_fraction=0.0, gumbel_actions=0)
        search = Search(kernels, config, Evaluator(kernels, Blind(), 0, sees_wins), 1)
        found = search.run(position.state[None].copy(), np.zeros(1, np.int64), np.array([5]))
        values.append(float(found.values[0]))
    assert values[1] == -1 < values[0]


@pytest.mark.parametrize("answer", [np.ones((1, 9), F), None, (1, 2, 3)])
def test_an_answer_that_is_no_pair_is_named(answer):
    class Wrong(FakeNet):
        def evaluate(self, observations, legal_masks):
            return answer

    def guess(states, legal_masks):
        return answer

    kernels = KERNELS["tictactoe"]
    states = kernels.start_states(1)
    for who, ask in (
        (r"Wrong\.evaluate", Evaluator(kernels, Wrong())),
        ("the .* guess", CheckedFunction(kernels, guess)),
    ):
        with pytest.raises(NetError, match=rf"^{who} must give a pair \(priors, values\)"):
            ask(states, kernels.describe_all(states)[0])


@pytest.mark.parametrize(
    ("priors", "why"),
    [("abc", "could not convert"), ([[1], [1, 2]], "inhomogeneous"), (np.ones((1, 9), complex), "they are complex")],
    ids=["a text", "rows of two lengths", "complex numbers"],
)
def test_an_answer_without_real_numbers_is_named(priors, why):
    guess = CheckedFunction(KERNELS["tictactoe"], lambda states, legal_masks: (priors, np.zeros(1)))
    with pytest.raises(NetError, match=f"^the .* must give a pair .* of real numbers.*{why}"):
        guess(KERNELS["tictactoe"].start_states(1), np.ones((1, 9), bool))
