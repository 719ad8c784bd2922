"""Self-play: value targets, continuous slots, reproducible games."""

from __future__ import annotations

import itertools
import math
import threading

import numpy as np
import pytest

from alphazero.game import Position
from alphazero.game.kernels import Kernels
from alphazero.matches.intervals import mean_with_interval
from alphazero.players.player import Chooser, Temperature
from alphazero.search.mcts import SearchConfig
from alphazero.training.config import SelfPlayConfig
from alphazero.training.replay_buffer import Samples
from alphazero.training.selfplay import SelfPlay, Until, lambda_returns, play_games
from alphazero.training.selfplay.exploration import explore
from alphazero.training.selfplay.value_targets import record
from alphazero.training.selfplay.worker import LEAST_GAMES
from games.connect4.game import Connect4
from games.tictactoe.game import TicTacToe
from tests.game.double_move_game import DoubleMove


def value_targets(to_play, done, rewards, values, explored, td_lambda):
    """The lambda-returns of recordings, their z, and where these are known."""
    games = record(to_play, done, rewards, values, explored)
    return lambda_returns(games, SelfPlayConfig(td_lambda=td_lambda)), games.z, games.known


def uniform_priors(states, legal_masks):
    """No opinion about anything."""
    return legal_masks.astype(np.float32), np.zeros(len(states), np.float32)


def make_worker(
    game, slots: int, *, seed: int = 0, first: int = 0, stride: int = 1, simulations: int = 8, settings=None, **search
):
    config = SelfPlayConfig(games_per_generation=10, num_slots=slots, temperature_plies=4, **(settings or {}))
    search_config = SearchConfig(num_simulations=simulations, **search)
    return SelfPlay(Kernels(game), config, search_config, uniform_priors, slots, seed, first, stride)


def test_simulations_count_once_their_search_is_over():
    worker = make_worker(TicTacToe(), 16)
    for _ in range(3):  # the searches under way at the end of each begin anew
        worker.play(4)
        assert worker.counts().simulations == 8 * worker.counts().positions > 0


def test_outcomes_where_a_player_moves_twice():
    """Plies of players 0, 1, 1, 0; the last one wins: both of player 1's plies were lost."""
    targets, z, _ = value_targets(
        np.array([[0, 1, 1, 0]], np.int8),
        np.array([[False] * 3 + [True]]),
        np.array([[0, 0, 0, 1.0]], np.float32),
        np.array([[0.5, 0.25, -0.5, 0.0]], np.float32),
        np.zeros((1, 4), bool),
        0.5,
    )
    assert z[0].tolist() == [1, -1, -1, 1]
    # from the end: (0 + 1) / 2; (-0.5 - 0.5) / 2; (0.25 - 0.5) / 2, the same player; (0.5 + 0.125) / 2
    assert targets[0].tolist() == [0.3125, -0.125, -0.5, 0.5]


@pytest.mark.parametrize("td_lambda", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_lambda_returns_are_sums_over_all_steps_ahead(td_lambda, epsilon):
    """(1 - lambda) sum of lambda^k value k plies ahead + lambda^K outcome, K plies to the end (Sutton 1988); or, if a
    ply was played at random before that, K plies to it and its value."""
    rng = np.random.default_rng(0)
    to_play = rng.integers(0, 2, (20, 12)).astype(np.int8)
    done, rewards = rng.random((20, 12)) < 0.2, rng.integers(-1, 2, (20, 12)).astype(np.float32)
    values, explored = rng.uniform(-1, 1, (20, 12)).astype(np.float32), rng.random((20, 12)) < epsilon
    targets, z, known = value_targets(to_play, done, rewards, values, explored, td_lambda)
    for row in range(20):
        ends = np.flatnonzero(done[row])
        for ply in range(12):
            assert known[row, ply] == (len(ends) > 0 and ply <= ends[-1])
            if not known[row, ply]:
                assert targets[row, ply] == z[row, ply] == 0
                continue
            last = ends[ends >= ply][0]
            path = range(ply, last + 1)
            sign = {step: 1.0 if to_play[row, step] == to_play[row, ply] else -1.0 for step in path}
            final, steps = sign[last] * rewards[row, last], list(path)
            for step in path:
                if explored[row, step]:
                    final, steps = sign[step] * values[row, step], list(range(ply, step))
                    break
            expected = sum((1 - td_lambda) * td_lambda**k * sign[s] * values[row, s] for k, s in enumerate(steps))
            assert z[row, ply] == pytest.approx(final)
            assert targets[row, ply] == pytest.approx(expected + td_lambda ** len(steps) * final, abs=1e-6)


def games_of(samples: Samples) -> list[bytes]:
    """Each game by its sequence of states."""
    starts = np.flatnonzero((samples.states == 0).all(axis=1))
    return [piece.tobytes() for piece in np.split(samples.states, starts[1:])]


def test_samples_are_whole_finished_games():
    """Every game's samples begin at the start position, follow legal plies, and end one ply before its end."""
    game = TicTacToe()
    worker = make_worker(game, 6)
    found = worker.play(20)
    starts = np.flatnonzero((found.states == 0).all(axis=1))
    assert len(starts) == worker.num_games >= 20
    for begin, end in zip(starts, [*starts[1:], len(found)], strict=True):
        position = game.start()
        for row in range(begin, end):
            np.testing.assert_array_equal(found.states[row], position.state)
            assert found.policies[row].sum() == pytest.approx(1, abs=1e-5)
            assert (found.policies[row][~position.legal_mask] == 0).all()
            if row + 1 < end:
                position = next(
                    child
                    for child in map(position.play, position.legal_actions)
                    if (child.state == found.states[row + 1]).all()
                )
        ends = [child for child in map(position.play, position.legal_actions) if child.terminal]
        z = [child.outcome if position.to_play == 0 else -child.outcome for child in ends]
        assert found.outcomes[end - 1] in z
        signs = found.outcomes[begin:end] * np.where((end - 1 - np.arange(begin, end)) % 2 == 0, 1, -1)
        assert len(set(signs.tolist())) == 1  # alternating from the end


def test_games_in_progress_go_on_in_the_next_call_and_none_is_dropped():
    """All samples of 12 calls are those of one long call, game for game; games still going on are in neither."""
    long, short = (make_worker(TicTacToe(), 5, seed=3) for _ in range(2))
    whole, pieces = games_of(long.play(60)), [game for _ in range(12) for game in games_of(short.play(5))]
    both = min(len(pieces), len(whole))
    assert both >= 60 and pieces[:both] == whole[:both]


def first_action_always(states, legal_masks):
    """All weight on the first legal action."""
    first = np.zeros(legal_masks.shape, np.float32)
    first[np.arange(len(states)), legal_masks.argmax(axis=1)] = 1
    return first, np.zeros(len(states), np.float32)


def explored_plies(epsilon: float, after: int, seed: int, games: np.ndarray) -> np.ndarray:
    """Which of the first 42 plies of the games are played at random: `bool[n, 42]`."""
    found, one = np.zeros((42, len(games)), np.int8), np.ones((len(games), 1), bool)
    for ply, row in enumerate(found):
        explore(one, epsilon, after, seed, games, np.full(len(games), ply), np.zeros(len(games), np.int64), row)
    return found.T == 1


def test_a_share_of_the_plies_is_played_at_random():
    """Whoever would always play the first column plays another one in 6/7 of these; a game's share is 0 to epsilon."""
    game, epsilon = Connect4(), 0.4
    config = SelfPlayConfig(games_per_generation=300, num_slots=50, epsilon=epsilon, td_lambda=1.0)
    search = SearchConfig(num_simulations=1, noise_fraction=0.0)
    worker = SelfPlay(Kernels(game), config, search, first_action_always, 50, seed=4)
    states = worker.play(300).states
    starts = np.flatnonzero((states == 0).all(axis=1))
    first_column = game.start().play(0).state
    elsewhere = np.array([(states[start + 1] != first_column).any() for start in starts])
    assert len(elsewhere) >= 300
    low, high = mean_with_interval(elsewhere)[1]
    assert low < epsilon / 2 * 6 / 7 < high
    explored = explored_plies(epsilon, 0, 4, np.arange(2000))
    shares = explored.mean(axis=1)
    assert shares.mean() == pytest.approx(epsilon / 2, abs=0.01)
    assert (shares < 0.05).mean() > 0.1 and (shares > 0.35).mean() > 0.1  # alike, they would lie near a fifth
    assert not explored[0].all() and (explored[:, 0] != explored[:, 1]).any()
    later = explored_plies(epsilon, 700, 4, np.arange(2000))
    assert not later[:700].any() and (later[700:] == explored[700:]).all()


def test_what_is_played_at_random_is_what_the_targets_leave_out():
    """An opponent that plays the first legal action: every other one was played at random, and its target is the value.

    With one simulation the value is 0, or 1/2 where the first action wins; no result of a game is 1/2.
    """
    game = Connect4()
    config = SelfPlayConfig(games_per_generation=40, num_slots=20, epsilon=0.5, td_lambda=1.0)
    search = SearchConfig(num_simulations=1, noise_fraction=0.0, prove=False)
    worker = SelfPlay(Kernels(game), config, search, first_action_always, 20, seed=9)
    samples = worker.play(40)
    others = 0
    for row in range(len(samples) - 1):
        if not samples.states[row + 1].any():
            continue  # another game begins
        position = next_position(game, samples.states[row])
        first = position.play(int(position.legal_actions[0]))
        if (first.state != samples.states[row + 1]).any():
            others += 1
            assert samples.outcomes[row] == samples.values[row] and samples.outcomes[row] in (0.0, 0.5)
    assert others > 100 and (np.abs(samples.outcomes) == 1).any()


def next_position(game, state) -> Position:
    """The position of that state, whoever is to move by the number of stones."""
    return Position(game, state.copy(), int(np.bitwise_count(state).sum()) % 2, ())


def test_threads_share_the_games_and_number_them_apart():
    workers = [make_worker(TicTacToe(), 4, first=i, stride=2) for i in range(2)]
    found = play_games(workers, 11, lambda count: None)
    assert [worker.num_games >= share for worker, share in zip(workers, (6, 5), strict=True)] == [True, True]
    assert set(workers[0].games) & set(workers[1].games) == set()
    assert all(game % 2 == 0 for game in workers[0].games) and all(game % 2 == 1 for game in workers[1].games)
    alone = [make_worker(TicTacToe(), 4, first=i, stride=2).play(share) for i, share in enumerate((6, 5))]
    np.testing.assert_array_equal(found.states, np.concatenate([part.states for part in alone]))


def test_a_failing_worker_stops_the_others_and_is_heard():
    workers = [make_worker(TicTacToe(), 4, first=i, stride=2) for i in range(2)]

    def broken(states, legal_masks):
        raise RuntimeError("planted")

    workers[1].search.evaluate = broken
    with pytest.raises(RuntimeError, match="planted"):
        play_games(workers, 10**9, lambda count: None)


def test_the_callers_wish_to_stop_ends_all_workers():
    workers, stop = [make_worker(TicTacToe(), 4, first=i, stride=2) for i in range(2)], threading.Event()
    begun = []
    play_games(workers, 10**9, lambda count: None, Until(stop.is_set), lambda: (begun.append(1), stop.set()))
    assert begun and stop.is_set(), "else a billion games would be played"


@pytest.mark.parametrize(("before", "after"), [(1.0, 0.0), (0.0, 1.0)])
def test_games_that_go_on_know_which_plies_were_random_though_the_share_has_changed(before, after):
    """The last search's value stands for the result only before a ply that was played at random."""
    worker = make_worker(Connect4(), 30, seed=9, settings={"epsilon": before})
    worker.play(30)
    state = {name: array.copy() for name, array in worker.state().items()}
    plies, rows = state["plies"], {number: row for row, number in enumerate(state["games"])}
    explored = explored_plies(before, 0, 9, state["games"]) & (np.arange(42) < plies[:, None])
    assert (plies > 4).any() and explored.any() == bool(before)

    other = make_worker(Connect4(), 30, seed=9, settings={"epsilon": after, "td_lambda": 1.0})
    seen = []
    other.value_targets = lambda games, settings: (seen.append(games), games.z)[1]
    other.restore(state)
    other.play(300)
    checked = 0
    recorded = np.concatenate([np.pad(games.explored, [(0, 0), (0, 42 - games.explored.shape[1])]) for games in seen])
    for number, random in zip(other.ended_games()[:, 0], recorded, strict=True):
        if number in rows:
            row, past = rows[number], slice(plies[rows[number]])
            assert (random[past] == explored[row, past]).all()
            checked += plies[row]
    assert checked > 100


def test_actions_are_drawn_by_temperature():
    """Policy (0.1, 0.2, 0.7) at temperature 1/2 gives its squares over their sum: 1/54, 4/54, 49/54."""
    count = 20000
    policies = np.tile(np.array([0.1, 0.2, 0.7], np.float32), (count, 1))
    at = np.arange(count), np.zeros(count, np.int64)
    actions = Chooser(0).at_temperature(Temperature(0.5), policies, np.full(count, 2), *at)
    shares = np.bincount(actions, minlength=3) / count
    np.testing.assert_allclose(shares, np.array([1, 4, 49]) / 54, atol=0.01)
    best = Chooser(0).at_temperature(Temperature(), policies[:2], np.array([1, 0]), *(each[:2] for each in at))
    assert best.tolist() == [1, 0], "a temperature of 0 keeps them"


@pytest.mark.parametrize("game", [Connect4(), DoubleMove()], ids=lambda game: game.name)
def test_games_begin_with_a_random_number_of_random_plies_that_give_no_samples(game):
    worker = make_worker(game, 300, settings={"random_plies": 3}, simulations=2)
    counts = np.bincount(worker.plies, minlength=4)
    assert len(counts) == 4 and counts.min() > 40  # each number is drawn 75 times of 300 on average
    positions = set()
    for state, to_play, ply in zip(worker.states, worker.to_play, worker.plies, strict=True):
        reached = {tuple(game.start().state): game.start()}
        for _ in range(ply):
            reached = {
                tuple(child.state): child for position in reached.values() for child in
                (position.play(action) for action in position.legal_actions)
            }  # fmt: skip
        assert reached[tuple(state)].to_play == to_play and not reached[tuple(state)].terminal
        positions.add(tuple(state))
    assert len(positions) > 20
    begun = worker.first_plies.copy()
    samples = worker.play(200)
    assert worker.num_games >= 200
    assert (begun != worker.first_plies).any(), "new games begin anew"
    # a slot's record from its first ply on is what the samples hold: none is of a position that was not searched
    assert (samples.policies.sum(axis=1) > 0.99).all()
    assert (samples.states == 0).all(axis=1).sum() < worker.num_games / 2


@pytest.mark.parametrize("game", [TicTacToe(), Connect4()], ids=lambda game: game.name)
def test_value_targets_know_the_plies_that_give_samples_and_no_random_ones(game):
    """On the random plies that a game begins with, the recordings hold what older games of the slot left there."""
    recordings = []

    def listen(games, settings):
        recordings.append(games)
        return np.where(games.known, lambda_returns(games, settings), np.nan)

    config, search = SelfPlayConfig(random_plies=4), SearchConfig(num_simulations=8)
    samples = SelfPlay(Kernels(game), config, search, uniform_priors, 4, 0, value_targets=listen).play(40)
    assert sum(int(games.known.sum()) for games in recordings) == len(samples)
    for games in recordings:
        assert (games.to_play == np.arange(games.known.shape[1]) % 2)[games.known].all()
        assert (games.z[~games.known] == 0).all()
    assert all(len(games.z) for games in recordings), "it is not asked about no games at all"
    assert any(not games.known[:, :1].all() for games in recordings), "some games begin with random plies"


def test_lambda_falls_with_the_number_of_a_game():
    """Games 0 to 9 have 1, 0.995, 0.98, ...; all later ones 0.5, however many of them end together."""
    lambdas = {}

    def listen(games, settings):
        assert len(games.z) == 1
        lambdas[len(lambdas)] = settings.td_lambda
        return lambda_returns(games, settings)

    config = SelfPlayConfig(td_lambda=0.5, td_lambda_after=10)
    worker = SelfPlay(
        Kernels(Connect4()), config, SearchConfig(num_simulations=2), uniform_priors, 8, 0, value_targets=listen
    )
    samples = worker.play(30)
    numbers = worker.ended_games()[:, 0].tolist()
    assert [lambdas[i] for i in range(len(numbers))] == pytest.approx([1 - 0.005 * min(10, n) ** 2 for n in numbers])
    assert len(set(numbers)) == len(numbers) >= 30 and len(samples) == worker.ended_games()[:, 1].sum()
    plain = SelfPlay(
        Kernels(Connect4()), SelfPlayConfig(td_lambda=0.5), SearchConfig(num_simulations=2), uniform_priors, 8, 0
    )
    assert plain.play(30).states.tobytes() == samples.states.tobytes()


def test_a_game_that_random_plies_would_end_begins_without_any():
    worker = make_worker(TicTacToe(), 400, settings={"random_plies": 9}, simulations=2)
    assert not worker.kernels.describe_all(worker.states)[1].any()
    assert (np.bincount(worker.plies, minlength=10)[[0, 1, 8]] > [40, 10, 0]).all() and worker.plies.max() < 9


def test_a_game_does_not_depend_on_those_beside_it():
    settings = {"random_plies": 2}
    alone = make_worker(TicTacToe(), 1, settings=settings).play(6)
    among = make_worker(TicTacToe(), 6, settings=settings)
    games = {}
    original = among._samples

    def listen(slots, last_plies, rewards):
        for i, slot in enumerate(slots):
            games[int(among.games[slot])] = original(slots[[i]], last_plies[[i]], rewards[[i]])
        return original(slots, last_plies, rewards)

    among._samples = listen
    together = among.play(20)
    assert sum(map(len, games.values())) == len(together)
    first_six = Samples.join([games[number] for number in range(6)])
    for name, array in alone.arrays().items():
        np.testing.assert_array_equal(array[: len(first_six)], first_six.arrays()[name])


def test_a_worker_whose_time_is_up_finishes_a_few_games_and_goes_on_with_the_others():
    """Two games are over after no time at all; every game of later calls is one that an unhurried worker plays."""
    whole = games_of(make_worker(TicTacToe(), 6, seed=3).play(60))
    hurried = make_worker(TicTacToe(), 6, seed=3)
    first = hurried.play(30, Until(seconds=0))
    assert hurried.num_games == len(games_of(first)) == LEAST_GAMES == 2
    assert hurried.play(1, Until(seconds=0)) is not None and hurried.num_games == 3
    rest = hurried.play(10)
    assert hurried.num_games >= 13
    assert {*games_of(first), *games_of(rest)} <= set(whole)


def never_waited_for(seconds: float = math.inf) -> Until:
    """Fails the test of a worker that asks for ever whether to stop, and plays nothing."""
    asked = itertools.count()

    def is_over() -> bool:
        assert next(asked) < 10_000, "it plays no more"
        return False

    return Until(is_over, seconds)


def test_a_worker_with_one_slot_whose_time_is_up_returns():
    worker = make_worker(TicTacToe(), 1)
    assert len(worker.play(3, never_waited_for(0))) and worker.num_games == 1
    assert len(worker.play(3, never_waited_for())) and worker.num_games == 4


def test_games_go_on_with_their_searches_where_all_trees_search_together():
    """As on a GPU: all searches end together, and trees rest that the newest call of `start` does not name."""
    worker = make_worker(TicTacToe(), 4, seed=3)
    search, start, finished = worker.search, worker.search.start, worker.search.finished

    def start_alone(trees, *arguments):
        search.tree.remaining[:] = 0
        search.running = trees
        start(trees, *arguments)

    search.start = start_alone
    search.finished = lambda: search.running[: len(search.running) * (len(finished()) == 4)]
    for search_anew in (True, False, False):
        assert len(worker.play(3, never_waited_for(), search_anew=search_anew))
    assert worker.num_games >= 9
