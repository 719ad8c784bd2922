"""The laws of a game, over every registered game: see the docstrings of `Game` and `Rules`."""

import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from alphazero.errors import IllegalAction
from alphazero.game import Game, Position
from alphazero.game.kernels import Kernel, Kernels, _wins_by
from alphazero.game.rules import points_so_far, shown_words, without_points

NUM_POSITIONS = 1000
NUM_SLOW_POSITIONS = 60  # where every position is played by plain Python


@dataclass(frozen=True)
class Sample:
    """n positions of random games, n >= 1000: start, middle and end of the game."""

    states: np.ndarray  # uint64[n, K]
    to_play: np.ndarray  # int8[n]
    legal_masks: np.ndarray  # bool[n, A]
    terminal: np.ndarray  # bool[n]
    values: np.ndarray  # float32[n], or float32[n, V]

    def part(self, rows: Any) -> "Sample":
        return Sample(
            self.states[rows], self.to_play[rows], self.legal_masks[rows], self.terminal[rows], self.values[rows]
        )


def random_games(kernels: Kernels, num_games: int, seed: int) -> Iterator[Sample]:
    """All games ply by ply; a game that is over leaves the batch."""
    rng = np.random.default_rng(seed)
    states, to_play = kernels.start_states(num_games), np.zeros(num_games, np.int8)
    kernels.find_movers(states, to_play)
    for ply in itertools.count():
        kernels.roll(states, to_play, seed, np.arange(len(states)), np.full(len(states), ply))
        sample = Sample(states.copy(), to_play.copy(), *kernels.describe_all(states))
        yield sample
        if sample.terminal.all():
            return
        states, to_play, masks = states[~sample.terminal], to_play[~sample.terminal], sample.legal_masks
        kernels.play(states, to_play, random_actions(masks[~sample.terminal], rng))


def random_actions(legal_masks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One random legal action `int64[n]` for each row of `bool[n, A]`."""
    return np.where(legal_masks, rng.random(legal_masks.shape), -1.0).argmax(axis=1)


@functools.cache
def positions(kernels: Kernels) -> Sample:
    """1,000 positions of random games, a tenth of them terminal, in random order."""
    plies = list(random_games(kernels, 100, seed=1))
    sample = Sample(*(np.concatenate([getattr(ply, name) for ply in plies]) for name in Sample.__annotations__))
    while len(sample.states) < NUM_POSITIONS:  # a game of few plies
        sample = Sample(*(np.concatenate([values, values]) for values in vars(sample).values()))
    ends, others = np.flatnonzero(sample.terminal)[:100], np.flatnonzero(~sample.terminal)
    rng = np.random.default_rng(2)
    rows = np.concatenate([[0], ends, rng.permutation(others)[: NUM_POSITIONS - 101]])
    return sample.part(rng.permutation(rows))


@functools.cache
def positions_without_history(kernels: Kernels) -> Sample:
    """The same, as they are without what was there before."""
    states = kernels.rows(positions(kernels).states[:, : shown_words(kernels.game)])
    return Sample(states, positions(kernels).to_play, *kernels.describe_all(states))


def few_positions(kernels: Kernels, count: int = NUM_SLOW_POSITIONS) -> list[Position]:
    """The first of them as `Position`s, whose rules run as plain Python; they do not know their history."""
    sample = positions(kernels).part(slice(count))
    return [
        Position(kernels.game, state.copy(), int(to_play), ())
        for state, to_play in zip(sample.states, sample.to_play, strict=True)
    ]


def random_game(game: Game, seed: int) -> list[Position]:
    """All positions of one game by plain Python."""
    rng, position = np.random.default_rng(seed), game.start()
    plies = [position]
    while not position.terminal:
        assert position.ply <= game.max_plies, f"still going after {game.max_plies} plies: {position.actions}"
        position = position.play(int(rng.choice(position.legal_actions)))
        plies.append(position)
    return plies


# --- games begin, go on and end ---


def test_random_games_end_in_time_with_a_result(kernels: Kernels):
    results = []
    for ply, sample in enumerate(random_games(kernels, 500, seed=0)):
        assert ply <= kernels.game.max_plies, f"{len(sample.states)} games go on after max_plies"
        assert not sample.values[~sample.terminal].any()
        np.testing.assert_array_equal(sample.legal_masks.any(axis=1), ~sample.terminal)
        results += sample.values[sample.terminal].tolist()
    assert len(results) == 500
    if kernels.game.score is None and not kernels.game.value_shape:
        assert set(results) <= {-1.0, 0.0, 1.0}
    assert np.abs(results).max() <= 1.0


# --- playing ---


def test_playing_leaves_the_old_state_alone(game: Game):
    for position in random_game(game, seed=7)[:-1]:
        before = position.state.copy(), position.to_play, position.actions, position.legal_mask.copy()
        for action in position.legal_actions:
            child = position.play(action)
            assert not np.shares_memory(child.state, position.state)
            assert child.actions == (*position.actions, action)
        np.testing.assert_array_equal(position.state, before[0])
        assert (position.to_play, position.actions) == before[1:3]
        np.testing.assert_array_equal(position.legal_mask, before[3])


def test_the_same_seed_gives_the_same_game(game: Game):
    first, second = random_game(game, seed=3), random_game(game, seed=3)
    assert [position.actions for position in first] == [position.actions for position in second]
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.state, other.state)
    assert first[-1].actions != random_game(game, seed=4)[-1].actions


def test_a_skipped_row_stays_as_it_is(kernels: Kernels):
    sample = positions(kernels)
    states, to_play = sample.states.copy(), sample.to_play.copy()
    kernels.play(states, to_play, np.full(len(states), -1))
    np.testing.assert_array_equal(states, sample.states)
    np.testing.assert_array_equal(to_play, sample.to_play)


# --- batches ---


def make_advance(sample: Sample, actions: np.ndarray) -> tuple[np.ndarray, ...]:
    """Arguments of `advance`: parents in rows 0 ... n-1, children above; every seventh pair is left out.

    What is to be written comes filled with rubbish, as in the search.
    """
    n, num_actions = sample.legal_masks.shape
    parents = np.where(np.arange(n) % 7 == 3, -1, np.arange(n))
    return (
        np.concatenate([sample.states, np.full_like(sample.states, 0x5A5A5A5A)]),
        np.concatenate([sample.to_play, np.full_like(sample.to_play, 7)]),
        parents,
        actions,
        np.arange(n, 2 * n),
        np.zeros(n, bool),
        np.zeros(sample.values.reshape(n, -1).shape, np.float32),
        np.full_like(sample.states, 0x3C3C3C3C),
        np.ones((n, num_actions), bool),
    )


def test_a_batch_is_described_and_observed_as_one_at_a_time_and_as_position_does(kernels: Kernels):
    sample = positions(kernels)
    planes = kernels.observations(sample.states)
    if kernels.game.score is None and not kernels.game.value_shape:
        assert set(sample.values[sample.terminal].tolist()) <= {-1.0, 0.0, 1.0}
    for i in range(len(sample.states)):
        state = sample.states[i : i + 1]
        mask, terminal, value = kernels.describe_all(state)
        np.testing.assert_array_equal(mask[0], sample.legal_masks[i])
        assert (terminal[0], value.tolist()) == (sample.terminal[i], sample.values[i : i + 1].tolist())
        np.testing.assert_array_equal(kernels.observations(state)[0], planes[i])
    for i, position in enumerate(few_positions(kernels)):
        np.testing.assert_array_equal(position.legal_mask, sample.legal_masks[i])
        np.testing.assert_array_equal(position.observation, planes[i])
        assert position.terminal == sample.terminal[i]
        if position.terminal and kernels.game.value_shape:
            assert position.results == tuple(np.roll(sample.values[i], position.to_play).tolist())
        elif position.terminal:
            value = sample.values[i] if kernels.game.score is None else np.sign(sample.values[i])
            if kernels.game.points_word is None:
                assert position.outcome == value * (1 if position.to_play == 0 else -1)
            else:  # what the end brings beside the points so far
                to_come = position.points - points_so_far(position.state, kernels.game.points_word)
                assert sample.values[i] == np.float32(kernels.game.score.value(to_come))


def _find_wins(states, legal_masks, scratch, wins):
    for i in range(len(states)):
        for action in range(legal_masks.shape[1]):
            wins[i, action] = legal_masks[i, action] and wins_by(states[i], action, scratch)  # which bind puts here


def test_what_wins_at_once_is_what_trying_all_actions_says(kernels: Kernels):
    if kernels.game.value_shape:
        pytest.skip("it is asked in games for two")
    games = [random_game(kernels.game, seed) for seed in range(20)]
    last = [game[-2 - bool(game[-2].chances)] for game in games]  # some of these games are won by their last ply
    tried = [position for position in (*few_positions(kernels), *last) if not position.terminal]
    masks = np.array([position.legal_mask for position in tried])
    wins, num_wins = np.ones(masks.shape, bool), 0
    scratch = np.zeros(kernels.game.state_words, np.uint64)
    kernels.bind(_find_wins, _wins_by)(np.array([position.state for position in tried]), masks, scratch, wins)
    for row, position in enumerate(tried):
        winner = 1 if position.to_play == 0 else -1
        after = {action: position.play(action) for action in position.legal_actions}
        won = {action: end for action, end in after.items() if end.terminal and end.outcome == winner}
        score = kernels.game.score  # in a game with points, the best result is meant
        expected = {action for action, end in won.items() if score is None or abs(end.points) == score.high}
        assert set(np.flatnonzero(wins[row]).tolist()) == expected, row
        num_wins += len(expected)
    # in Pig a roll wins, and no action; in Backgammon three points are rare, in Go the whole board (see test_go.py)
    assert num_wins > 0 or kernels.game.num_outcomes or kernels.game.score, (
        "no position of these had a win, so that nothing was tested"
    )


def test_a_batch_is_advanced_as_one_at_a_time_and_as_position_does(kernels: Kernels):
    sample = positions(kernels).part(~positions(kernels).terminal)
    n = len(sample.states)
    actions = random_actions(sample.legal_masks, np.random.default_rng(1))
    batch = make_advance(sample, actions)
    count = kernels.advance(*batch)
    states, to_play, parents, _, _, terminal, values, leaf_states, leaf_masks = batch
    np.testing.assert_array_equal(states[:n], sample.states)
    np.testing.assert_array_equal(to_play[:n], sample.to_play)
    played = np.flatnonzero(parents >= 0)
    assert count == len(played) - terminal.sum()
    leaf = 0
    for i in played:
        alone = make_advance(sample.part(slice(i, i + 1)), actions[i : i + 1])
        assert kernels.advance(*alone) == (not terminal[i])
        np.testing.assert_array_equal(alone[0][1], states[n + i])
        assert (alone[1][1], alone[5][0], *alone[6][0]) == (to_play[n + i], terminal[i], *values[i])
        if i < NUM_SLOW_POSITIONS:
            child = Position(kernels.game, sample.states[i].copy(), int(sample.to_play[i]), ()).play(int(actions[i]))
            np.testing.assert_array_equal(child.state, states[n + i])
            assert (child.to_play, child.terminal) == (to_play[n + i], terminal[i])
            if child.terminal and kernels.game.value_shape:
                assert child.results == tuple(np.roll(values[i], child.to_play).tolist())
            elif child.terminal:
                value = values[i, 0] if kernels.game.score is None else np.sign(values[i, 0])
                assert child.outcome == value * (1 if child.to_play == 0 else -1)
        if not terminal[i]:
            np.testing.assert_array_equal(leaf_states[leaf], states[n + i])
            np.testing.assert_array_equal(leaf_masks[leaf], alone[8][0])
            if i < NUM_SLOW_POSITIONS and not child.chances:
                np.testing.assert_array_equal(leaf_masks[leaf], child.legal_mask)
            leaf += 1
    assert leaf == count


def test_a_pair_left_out_of_advance_writes_nothing(kernels: Kernels):
    sample = positions(kernels).part(~positions(kernels).terminal)
    n = len(sample.states)
    batch = make_advance(sample, random_actions(sample.legal_masks, np.random.default_rng(1)))
    kernels.advance(*batch)
    left_out = n + np.flatnonzero(batch[2] < 0)
    assert len(left_out)
    assert (batch[0][left_out] == 0x5A5A5A5A).all()
    assert (batch[1][left_out] == 7).all()


# --- compiled and plain ---


def kernel_arguments(kernels: Kernels, name: str, count: int) -> tuple[Kernel | None, tuple[np.ndarray, ...]]:
    """A kernel and fresh arguments for it, on `count` positions."""
    kernel = kernels.bind(_find_wins, _wins_by) if name == "find_wins" else getattr(kernels, name)
    sample = positions(kernels).part(slice(count))
    n, num_actions = sample.legal_masks.shape
    if name == "init_states":
        return kernel, (np.full((3, kernels.game.state_words), 0x77, np.uint64),)
    if name == "describe":
        rubbish = np.full((n, kernels.game.num_values), 7, np.float32)
        return kernel, (sample.states, np.ones((n, num_actions), bool), np.ones(n, bool), rubbish)
    if name == "observe":
        return kernel, (sample.states, np.full((n, *kernels.game.observation_shape), np.nan, np.float32))
    if name == "canonicalize":
        return kernel, (sample.states.copy(), np.full(n, 77), *np.zeros((2, kernels.game.state_words), np.uint64))
    if name == "find_movers":
        return kernel, (sample.states, sample.to_play.copy())
    going_on = sample.part(~sample.terminal)
    actions = random_actions(going_on.legal_masks, np.random.default_rng(3))
    if name == "play":
        return kernel, (going_on.states, going_on.to_play, actions)
    if name == "find_wins":
        scratch = np.zeros(kernels.game.state_words, np.uint64)
        return kernel, (going_on.states, going_on.legal_masks, scratch, np.ones(going_on.legal_masks.shape, bool))
    assert name == "advance"
    return kernel, make_advance(going_on, actions)


@pytest.mark.parametrize("count", [NUM_SLOW_POSITIONS, pytest.param(NUM_POSITIONS, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name", ["init_states", "describe", "play", "advance", "observe", "canonicalize", "find_movers", "find_wins"]
)
def test_compiled_equals_plain_python(kernels: Kernels, name: str, count: int):
    kernel, compiled_arguments = kernel_arguments(kernels, name, count)
    if kernel is None:
        pytest.skip(f"{kernels.game.name} has no symmetry to transform by")
    _, plain_arguments = kernel_arguments(kernels, name, count)
    compiled_result = kernel(*compiled_arguments)
    assert kernel.is_compiled, "the games that come with the framework must compile"
    assert kernel.plain(*plain_arguments) == compiled_result
    for ours, theirs in zip(compiled_arguments, plain_arguments, strict=True):
        np.testing.assert_array_equal(ours, theirs)


# --- symmetries ---


def _transform_all(states, symmetry):
    for i in range(len(states)):
        transform(states[i], symmetry)  # which Kernels.bind puts here


def transformed(kernels: Kernels, states: np.ndarray, symmetry: int) -> np.ndarray:
    """The images `uint64[n, K]` of the states under `rules.transform`."""
    images = states.copy()
    kernels.bind(_transform_all)(images, symmetry)
    return images


def require_transform(kernels: Kernels) -> range:
    """The symmetries by index; skips where the game has the identity alone."""
    num_symmetries = len(kernels.game.symmetries[1])
    if kernels.game.rules.transform is None:
        pytest.skip(f"{kernels.game.name} has no transform")
    return range(num_symmetries)


def test_symmetries_form_a_group(game: Game):
    """Closed under composition; of a finite set of permutations this is enough."""
    cells, actions = game.symmetries
    rows = {(tuple(cell), tuple(action)) for cell, action in zip(cells, actions, strict=True)}
    assert len(rows) == len(cells), "a symmetry is listed twice"
    for s in range(len(cells)):
        for t in range(len(cells)):
            assert (tuple(cells[s][cells[t]]), tuple(actions[s][actions[t]])) in rows, f"{s} then {t} is missing"


def test_a_transformed_state_has_permuted_observation_and_actions_and_the_same_result(kernels: Kernels):
    sample = positions_without_history(kernels)
    cells, actions = kernels.game.symmetries
    planes = kernels.observations(sample.states).reshape(len(sample.states), kernels.game.observation_shape[0], -1)
    for symmetry in require_transform(kernels):
        images = transformed(kernels, sample.states, symmetry)
        masks, terminal, values = kernels.describe_all(images)
        np.testing.assert_array_equal(kernels.observations(images).reshape(planes.shape), planes[..., cells[symmetry]])
        np.testing.assert_array_equal(masks, sample.legal_masks[:, actions[symmetry]])
        np.testing.assert_array_equal(terminal, sample.terminal)
        np.testing.assert_array_equal(values, sample.values)
        movers = sample.to_play.copy()
        kernels.find_movers(images, movers)
        np.testing.assert_array_equal(movers, sample.to_play)
    np.testing.assert_array_equal(transformed(kernels, sample.states, 0), sample.states)


def test_playing_commutes_with_symmetries(kernels: Kernels):
    sample, shown = positions_without_history(kernels), slice(shown_words(kernels.game))
    sample = sample.part(~sample.terminal)
    _, permutations = kernels.game.symmetries
    actions = random_actions(sample.legal_masks, np.random.default_rng(4))
    children, movers = sample.states.copy(), sample.to_play.copy()
    kernels.play(children, movers, actions)
    for symmetry in require_transform(kernels):
        images, movers_of_images = transformed(kernels, sample.states, symmetry), sample.to_play.copy()
        # policy[permutation]: entry j of the image's policy is that of action permutation[j]
        kernels.play(images, movers_of_images, np.argsort(permutations[symmetry])[actions])
        np.testing.assert_array_equal(images[:, shown], transformed(kernels, children, symmetry)[:, shown])
        np.testing.assert_array_equal(movers_of_images, movers)


def test_canonicalize_gives_one_state_per_class_and_names_the_symmetry(kernels: Kernels):
    num_symmetries = len(require_transform(kernels))
    assert kernels.canonicalize is not None
    canonical, symmetries = kernels.canonical(positions(kernels).states)
    states = positions_without_history(kernels).states
    word = kernels.game.points_word
    states = np.array([without_points(state, word) for state in states])  # they are no part of the image
    assert ((symmetries >= 0) & (symmetries < num_symmetries)).all()
    assert (symmetries > 0).any()
    smallest = states.tolist()
    for symmetry in range(num_symmetries):
        images = transformed(kernels, states, symmetry)
        smallest = [min(pair) for pair in zip(smallest, images.tolist(), strict=True)]
        reached = symmetries == symmetry
        np.testing.assert_array_equal(images[reached], canonical[reached])
        np.testing.assert_array_equal(kernels.canonical(images)[0], canonical)
    assert canonical.tolist() == smallest


def test_history_is_not_seen_and_none_of_it_is_a_history(kernels: Kernels):
    sample, without = positions(kernels), positions_without_history(kernels)
    other, shown = sample.states.copy(), shown_words(kernels.game)
    other[:, shown:] = np.random.default_rng(5).integers(0, 1 << 64, other[:, shown:].shape, np.uint64)
    for states in (sample.states, other):
        np.testing.assert_array_equal(kernels.observations(states), kernels.observations(without.states))
        np.testing.assert_array_equal(kernels.canonical(states)[0], kernels.canonical(without.states)[0])
    for state, other_state, mask, terminal in zip(
        without.states, other, sample.legal_masks, sample.terminal, strict=True
    ):
        if kernels.game.history_words and not terminal:
            legal = np.zeros((2, kernels.game.num_actions), bool)
            kernels.game.plain_rules.legal(state, legal[0])
            kernels.game.plain_rules.legal(other_state, legal[1])
            np.testing.assert_array_equal(legal, [mask, mask])
    assert not without.terminal[~sample.terminal].any()


# --- what people see ---


def test_actions_in_notation_lead_back_to_themselves(kernels: Kernels):
    for position in few_positions(kernels):
        texts = [position.format(action) for action in position.legal_actions]
        assert len(set(texts)) == len(texts), f"two actions are written alike: {texts}"
        for action, text in zip(position.legal_actions, texts, strict=True):
            assert text.isprintable() and not re.search(r"[\s,]", text), f"{text!r} cannot stand in a list of moves"
            assert position.parse(text) == action
            assert position.parse(f"  {text}\n") == action


def test_a_game_in_notation_leads_to_the_same_position(game: Game):
    plies = random_game(game, seed=6)
    words = [before.format(after.actions[-1]) for before, after in itertools.pairwise(plies)]
    for separator in (" ", ", "):
        assert game.position(separator.join(words)).actions == plies[-1].actions


def test_a_board_is_printable_text_of_at_most_100_columns(kernels: Kernels):
    for position in few_positions(kernels):
        text = str(position)
        assert text == kernels.game.render(position.state, position.to_play)
        for line in text.split("\n"):
            assert line.isprintable() and len(line) <= 100, line
    plies = random_game(kernels.game, seed=8)
    assert str(plies[0]) != str(plies[-1])


# --- what is forbidden ---


def assert_refuses(position: Position, action: int) -> None:
    with pytest.raises(IllegalAction) as caught:
        position.play(action)
    named = [position.format(legal) for legal in position.legal_actions]
    for legal in named if len(named) <= 40 else [*named[:38], named[-1], f"{len(named)} in all"]:
        assert re.search(rf"(?<!\w){re.escape(legal)}(?!\w)", str(caught.value)), str(caught.value)


def test_illegal_actions_are_refused_with_the_legal_ones_named(kernels: Kernels):
    """Of very many, each position tries others."""
    refused, step = 0, -(-kernels.game.num_actions // 100)
    for i, position in enumerate(few_positions(kernels)):
        if not position.terminal:
            for action in np.flatnonzero(~position.legal_mask)[i % step :: step]:
                assert_refuses(position, int(action))
                refused += 1
    assert refused


@pytest.mark.parametrize("offset", [-1, 0, 10**9], ids=["below", "above", "far above"])
def test_actions_out_of_range_are_refused(game: Game, offset: int):
    assert_refuses(game.start(), offset if offset < 0 else max(game.num_actions, game.num_outcomes) + offset)


def test_no_action_can_be_played_after_the_end(game: Game):
    final = random_game(game, seed=9)[-1]
    for action in (*range(game.num_actions), -1, game.num_actions):
        with pytest.raises(IllegalAction, match="over"):
            final.play(action)
    with pytest.raises(IllegalAction, match="over"):
        final.parse(game.format_action(0, game.start().state))


def test_any_text_is_a_legal_action_or_refused(game: Game):
    """Whatever is typed raises nothing but IllegalAction, with the legal actions named."""
    rng = np.random.default_rng(0)
    signs = "0123456789abcdefghpqxz-+. ,_\t\xb2\xe9"
    texts = [
        "",
        " ",
        "-1",
        "0",
        "999",
        "9" * 5000,
        "1e3",
        "none",
        "\0",
        "\N{FULLWIDTH DIGIT ONE}",
        "\N{ARABIC-INDIC DIGIT THREE}",
    ]
    texts += ["".join(rng.choice(list(signs), rng.integers(1, 4))) for _ in range(200)]
    for position in random_game(game, seed=10)[::4]:
        refused = 0
        for text in texts:
            try:
                assert position.parse(text) in position.legal_actions
            except IllegalAction as error:
                refused += 1
                assert all(position.format(action) in str(error) for action in position.legal_actions[:38])
        assert refused


def test_no_words_of_a_state_lead_the_rules_out_of_their_arrays(game: Game):
    """States come out of files, too, and compiled rules do not look whether an index is in range."""
    rng, rules = np.random.default_rng(12), game.plain_rules
    for number in range(60):
        state = rng.integers(0, 1 << 64, game.state_words, np.uint64)
        state >>= rng.integers(0, 64 if number % 2 else 1, game.state_words).astype(np.uint64)
        planes, mask = np.zeros(game.observation_shape, np.float32), np.zeros(game.num_actions, bool)
        rules.observe(state, planes)
        rules.legal(state, mask)
        if rules.transform is not None:
            rules.transform(state.copy(), number % len(game.symmetries[1]))
        for action in np.flatnonzero(mask).tolist():
            rules.step(state.copy(), action)
        for outcome in range(rules.chance(state, np.zeros(game.num_outcomes)) if rules.chance else 0):
            rules.settle(state.copy(), outcome)


@pytest.mark.parametrize("name", ["state", "legal_mask", "observation"])
def test_a_position_is_read_only(game: Game, name: str):
    """Nobody who holds a position may change what it says, nor make an illegal action legal."""
    with pytest.raises(ValueError, match="read-only"):
        getattr(random_game(game, seed=11)[2], name)[...] = 1
