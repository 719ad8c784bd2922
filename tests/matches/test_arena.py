"""Matches: pairs, colours, openings, counting, stopping early, and a game in which a player moves twice."""

import random
from dataclasses import dataclass

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import EvaluationError, GameError, IllegalAction, InvalidSetting, count_of
from alphazero.game.kernels import Kernels
from alphazero.game.record import read_records, write_records
from alphazero.matches import arena
from alphazero.matches.arena import Arena
from alphazero.matches.openings import LEAST_PLIES, Balance
from alphazero.matches.result import MatchResult, records_of
from alphazero.players.baselines import GreedyPlayer, MinimaxPlayer, RandomPlayer
from alphazero.players.net_players import SearchPlayer
from alphazero.players.player import FollowingPlayer, Forfeit, Player, TakeBack, Temperature
from alphazero.search.mcts import SearchConfig
from alphazero.search.rollouts import Playouts
from tests.game.double_move_game import DoubleMove

TIC_TAC_TOE, CONNECT_4, DOUBLE_MOVE = registry.load("tictactoe").game, registry.load("connect4").game, DoubleMove()
GAMES = [TIC_TAC_TOE, CONNECT_4, DOUBLE_MOVE]
KERNELS = {game.name: Kernels(game) for game in GAMES}


class FirstLegal(Player):
    """Plays the lowest legal action and notes what it was asked."""

    name = "first legal"

    def __init__(self, kernels):
        self.kernels, self.asked = kernels, []

    def select_actions(self, states, games, plies):
        self.asked += list(zip(games.tolist(), plies.tolist(), strict=True))
        return self.kernels.describe_all(states)[0].argmax(axis=1)


@dataclass
class Fixed(Player):
    """Always answers with the same action."""

    action: int
    name: str = "fixed"

    def select_actions(self, states, games, plies):
        return np.full(len(states), self.action)


def test_the_interval_of_two_equal_players_holds_one_half():
    kernels = KERNELS["tictactoe"]
    result = Arena(kernels, RandomPlayer(kernels, 1), RandomPlayer(kernels, 2), 500, seed=1).play()
    low, high = result.score_interval
    assert low < 0.5 < high < low + 0.1


def test_a_match_with_fewer_openings_than_pairs_says_so_before_it_begins(caplog):
    kernels, loaded = KERNELS["tictactoe"], registry.load("tictactoe")
    for num_games, said in ((20, False), (1000, True)):
        next(arena.shown(loaded, RandomPlayer(kernels, 1), RandomPlayer(kernels, 2), num_games, seed=1))
        assert ("there are only" in caplog.text) == said
    assert "different openings for 500 pairs of games, so some are played again" in caplog.text


def test_one_of_a_kind_is_named_in_the_singular():
    nouns = {"game": "games", "ply": "plies", "random ply": "random plies", "loss": "losses", "draw": "draws"}
    for noun, several in nouns.items():
        assert count_of(1, noun) == f"1 {noun}" and count_of(0, noun) == f"0 {several}"
        assert count_of(2000, noun) == f"2,000 {several}"


def replayed(game, result):
    return [game.position(actions) for actions in result.actions]


@pytest.mark.parametrize("game", GAMES, ids=lambda game: game.name)
def test_outcomes_are_those_of_the_rules(game):
    kernels = KERNELS[game.name]
    result = Arena(kernels, RandomPlayer(kernels, 1), GreedyPlayer(kernels, 2), 60, seed=3).play()
    finals = replayed(game, result)
    assert all(final.terminal for final in finals)
    assert [final.outcome * (1 - 2 * (n % 2)) for n, final in enumerate(finals)] == list(result.outcomes)
    assert result.numbers == tuple(range(60)) and result.num_games == 60
    assert (result.wins, result.draws, result.losses) == tuple(result.outcomes.count(x) for x in (1, 0, -1))
    assert result.score == (result.wins + result.draws / 2) / 60 < 0.5
    assert result.distinct_games == len({tuple(final.actions) for final in finals})


@pytest.mark.parametrize("game", GAMES, ids=lambda game: game.name)
def test_every_ply_is_asked_of_the_player_to_move(game):
    kernels = KERNELS[game.name]
    first, second = FirstLegal(kernels), FirstLegal(kernels)
    result = Arena(kernels, first, second, 10, seed=1, opening_plies=2).play()
    expected = [[], []]
    for number, actions in enumerate(result.actions):
        for ply in range(2, len(actions)):
            expected[game.position(actions[:ply]).to_play ^ (number % 2)].append((number, ply))
    assert [sorted(first.asked), sorted(second.asked)] == [sorted(asked) for asked in expected]
    assert result.moves == (len(first.asked), len(second.asked))


def test_perfect_players_of_tic_tac_toe_always_draw():
    kernels = KERNELS["tictactoe"]
    first, second = MinimaxPlayer(kernels, 9, 1), MinimaxPlayer(kernels, 9, 2)
    result = Arena(kernels, first, second, 40, seed=1, opening_plies=1).play()
    assert result.draws == 40 and result.score == 0.5
    # after two random plies a game may be lost already, but then for both sides of the pair
    result = Arena(kernels, first, second, 100, seed=1).play()
    assert all(a == -b for a, b in zip(result.outcomes[::2], result.outcomes[1::2], strict=True))


def test_perfect_play_of_the_double_move_game_is_a_draw():
    kernels = KERNELS["double_move"]
    result = Arena(kernels, MinimaxPlayer(kernels, 12, 1), MinimaxPlayer(kernels, 12, 2), 20, 1, opening_plies=0).play()
    assert result.draws == 20  # as by brute force, exact_result() == 0
    assert any(
        DOUBLE_MOVE.position(actions[:ply]).to_play == DOUBLE_MOVE.position(actions[: ply + 1]).to_play
        for actions in result.actions
        for ply in range(len(actions) - 1)
    )
    result = Arena(kernels, MinimaxPlayer(kernels, 12, 1), RandomPlayer(kernels, 2), 40, 1, opening_plies=0).play()
    assert result.losses == 0 and result.wins > 20


@pytest.mark.parametrize("game", GAMES, ids=lambda game: game.name)
def test_openings_come_in_pairs_with_the_players_swapped(game):
    kernels = KERNELS[game.name]
    result = Arena(kernels, RandomPlayer(kernels, 1), RandomPlayer(kernels, 2), 20, seed=5, opening_plies=2).play()
    openings = [actions[:2] for actions in result.actions]
    assert openings[::2] == openings[1::2]
    assert result.moves[0] + result.moves[1] == sum(len(actions) - 2 for actions in result.actions)
    if game is not DOUBLE_MOVE:  # it has six openings of two plies
        assert len({game.position(opening).state.tobytes() for opening in openings}) == 10


def test_openings_repeat_only_when_there_are_no_more():
    kernels = KERNELS["connect4"]
    result = Arena(kernels, RandomPlayer(kernels, 1), RandomPlayer(kernels, 2), 30, seed=5, opening_plies=1).play()
    columns = [actions[0] for actions in result.actions[::2]]
    # up to the mirror there are four
    assert sorted(min(column, 6 - column) for column in columns[:4]) == list(range(4))
    assert columns == (4 * columns[:4])[:15]


def test_a_net_chooses_openings_when_games_begin(monkeypatch):
    kernels, drawn = KERNELS["connect4"], []
    balance = Balance(lambda states: (drawn.extend(states), np.ones(len(states), bool))[1], by_net=True)
    monkeypatch.setattr(arena, "balance_of", lambda kind, loaded: balance)
    players = RandomPlayer(kernels, 1), RandomPlayer(kernels, 2)
    match = arena.shown(registry.load("connect4"), *players, 2000, 1, "balanced")
    result = next(so_far for so_far in match if so_far.num_games)
    assert result.opening_plies == LEAST_PLIES and len(drawn) <= arena.SIDE_BY_SIDE


def test_an_opening_that_ends_every_game_is_refused():
    with pytest.raises(InvalidSetting, match="fewer opening plies"):
        Arena(KERNELS["double_move"], Fixed(0), Fixed(0), 2, 1, opening_plies=12).play()


def test_no_games_are_refused():
    with pytest.raises(InvalidSetting, match="the number of games must be 1 or more, not 0"):
        Arena(KERNELS["tictactoe"], Fixed(0), Fixed(0), 0, 1).play()


def test_same_seed_same_match_however_many_games_are_side_by_side(monkeypatch):
    kernels = KERNELS["connect4"]

    def play(seed):
        config = SearchConfig(num_simulations=30, noise_fraction=0.0)
        search = SearchPlayer("mcts", kernels, [Playouts(kernels, seed)] * 2, seed, Temperature(0.5), config=config)
        return Arena(kernels, search, GreedyPlayer(kernels, seed), 12, seed).play().actions

    together = play(1)
    assert together == play(1) != play(2)
    monkeypatch.setattr(arena, "SIDE_BY_SIDE", 5)
    assert play(1) == together
    monkeypatch.setattr(SearchPlayer, "one_at_a_time", True)
    assert play(1) == together


def test_players_without_randomness_repeat_their_games():
    kernels = KERNELS["connect4"]
    result = Arena(kernels, FirstLegal(kernels), FirstLegal(kernels), 20, seed=1, opening_plies=0).play()
    assert result.num_games == 20 and result.distinct_games == 1
    assert result.wins == result.losses == 10  # whoever begins wins, and each begins in half of them


@pytest.mark.parametrize("action", [-1, 0, 7, 100])
def test_an_illegal_action_stops_the_match(action):
    with pytest.raises(IllegalAction, match=f"fixed chose {action} after .* not a legal action"):
        Arena(KERNELS["connect4"], Fixed(action), Fixed(action), 2, seed=1, opening_plies=0).play()


@pytest.mark.parametrize(
    "answer", [lambda n: [3] * (n - 1), lambda n: 3, lambda n: [0.5] * n, lambda n: [[3], []], lambda n: None],
    ids=["too few", "a scalar", "halves", "ragged", "None"],
)  # fmt: skip
def test_an_answer_that_is_no_action_for_each_position_is_refused(answer):
    player = Fixed(3)
    player.select_actions = lambda states, games, plies: answer(len(states))
    with pytest.raises(EvaluationError, match="fixed must return one whole number for each of 2 positions, not "):
        Arena(KERNELS["connect4"], player, player, 4, seed=1, opening_plies=0).play()


class Follower(FollowingPlayer):
    """Plays the lowest legal action, but gives up the games in `lost`, and takes back once at each of `regrets`."""

    name = "follower"

    def __init__(self, game, lost=(), regrets=()):
        super().__init__(game)
        self.lost, self.regrets, self.met, self.asked = lost, dict(regrets), [], []

    def meet(self, opponent):
        self.met.append(opponent)

    def choose(self, position, game):
        self.asked.append((game, position.actions))
        if game in self.lost and position.ply >= 2:
            raise Forfeit(f"tired of {game}")
        if (game, position.ply) in self.regrets:
            raise TakeBack(self.regrets.pop((game, position.ply)))
        return position.legal_actions[0]


@pytest.mark.parametrize("follower_first", [True, False])
def test_a_forfeited_game_is_lost_and_the_others_go_on(follower_first, caplog):
    kernels = KERNELS["tictactoe"]
    follower, other = Follower(TIC_TAC_TOE, lost=(1, 2)), FirstLegal(kernels)
    players = (follower, other) if follower_first else (other, follower)
    result = Arena(kernels, *players, 6, seed=1, opening_plies=2).play()
    assert follower.met == [other] and result.num_games == 6
    lost = -1 if follower_first else 1
    assert [outcome for game, outcome in enumerate(result.outcomes) if game in (1, 2)] == [lost, lost]
    assert result.forfeits == ("", "follower: tired of 1", "follower: tired of 2", "", "", "")
    assert [record.getMessage() for record in caplog.records] == [
        f"follower loses game {n}: tired of {n}" for n in (1, 2)
    ]
    finals = replayed(TIC_TAC_TOE, result)
    assert [final.terminal for final in finals] == [game not in (1, 2) for game in range(6)]
    assert all(finals[game].ply in (2, 3) for game in (1, 2))  # what was played stays


def test_a_reason_of_any_length_can_be_read_again_from_a_file(tmp_path):
    kernels, file = KERNELS["tictactoe"], tmp_path / "games.jsonl"
    follower = Follower(TIC_TAC_TOE, lost=(0,))
    follower.name = "\U0010ffff" * 5000  # a character that is shown as an escape of ten
    result = Arena(kernels, follower, FirstLegal(kernels), 1, seed=1).play()
    write_records(file, records_of(result, TIC_TAC_TOE, "tictactoe", ("follower", "other"), 1))
    (record,) = read_records(file)
    assert record.forfeit.endswith(": tired of 0")


def test_a_follower_knows_the_whole_game():
    kernels, follower = KERNELS["double_move"], Follower(DOUBLE_MOVE)
    result = Arena(kernels, follower, RandomPlayer(kernels, 1), 4, seed=1, opening_plies=1).play()
    assert all(result.actions[game][: len(actions)] == actions for game, actions in follower.asked)
    assert result.moves[0] == len(follower.asked) and result.forfeits == ("",) * 4


def test_moves_that_are_taken_back_are_forgotten():
    kernels, follower = KERNELS["tictactoe"], Follower(TIC_TAC_TOE, regrets={(0, 4): 2, (1, 3): 1}.items())
    result = Arena(kernels, follower, FirstLegal(kernels), 2, seed=1, opening_plies=0).play()
    assert result.actions == ((0, 1, 2, 3, 4, 5, 6),) * 2
    assert [len(actions) for game, actions in follower.asked if game == 0] == [0, 2, 4, 2, 4, 6]
    assert [len(actions) for game, actions in follower.asked if game == 1] == [1, 3, 1, 3, 5]


def test_progress_counts_up_to_the_result():
    kernels = KERNELS["tictactoe"]
    match = Arena(kernels, RandomPlayer(kernels, 1), RandomPlayer(kernels, 2), 30, 1)
    seen = list(match)
    result = match.result()
    assert seen[0].num_games == 0 and seen[0].score == 0.5 and seen[-1] == result
    assert sorted(seen, key=lambda so_far: (so_far.num_games, so_far.moves)) == seen
    assert all(ms > 0 for ms in result.ms_per_move)


def test_results_are_made_when_games_end_and_not_for_every_ply(monkeypatch):
    kernels, made, plies = KERNELS["tictactoe"], [], []
    result_so_far, play_one_ply = Arena.result, Arena._play_one_ply
    monkeypatch.setattr(Arena, "result", lambda self: (made.append(1), result_so_far(self))[1])
    monkeypatch.setattr(Arena, "_play_one_ply", lambda self: (plies.append(1), play_one_ply(self))[1])
    monkeypatch.setattr(RandomPlayer, "one_at_a_time", True)
    monkeypatch.setattr(arena.time, "monotonic", lambda: 0.0)  # so quick that nothing else is worth showing
    seen = list(Arena(kernels, RandomPlayer(kernels, 1), RandomPlayer(kernels, 2), 20, 1))
    assert [so_far.num_games for so_far in seen] == list(range(21))
    assert len(made) == 1 + 20 and len(plies) > 100


def test_a_match_stops_when_it_is_decided():
    kernels = KERNELS["tictactoe"]
    greedy, other = GreedyPlayer(kernels, 1), RandomPlayer(kernels, 2)
    whole = Arena(kernels, greedy, other, 300, 1).play()
    result = next(so_far for so_far in Arena(kernels, greedy, other, 300, 1) if so_far.decides(0.55, 300))
    assert whole.score >= 0.55 and result.score >= 0.55
    assert result.points >= 165 and result.num_games < 300
    numbers = dict(zip(whole.numbers, whole.actions, strict=True))
    assert all(numbers[n] == actions for n, actions in zip(result.numbers, result.actions, strict=True))


@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.55, 0.7, 1.0])
def test_stopping_early_never_changes_the_verdict(threshold):
    rng = random.Random(int(threshold * 100))
    for _ in range(300):
        num_games = rng.randint(1, 60)
        weights = [rng.random() + 0.01 for _ in range(3)]
        outcomes = rng.choices([1, 0, -1], weights, k=num_games)
        verdict = make_result(outcomes).score >= threshold
        stops = []
        for n in range(1, num_games + 1):
            if make_result(outcomes[:n]).decides(threshold, num_games):
                stops.append(n)
                assert (make_result(outcomes[:n]).score >= threshold) == verdict
        assert stops and stops == list(range(stops[0], num_games + 1))  # once certain, always certain


def make_result(outcomes):
    return MatchResult(tuple(range(len(outcomes))), ((),) * len(outcomes), tuple(outcomes), (0, 0), (0.0, 0.0))


def test_some_games_of_a_match_are_the_same_games():
    kernels = KERNELS["connect4"]
    players = RandomPlayer(kernels, 1), GreedyPlayer(kernels, 2)
    whole = Arena(kernels, *players, 20, seed=3).play()
    part = Arena(kernels, *players, 20, seed=3, numbers=[3, 4, 11, 19]).play()
    assert part.numbers == (3, 4, 11, 19)
    assert part.actions == tuple(whole.actions[i] for i in part.numbers)
    assert part.outcomes == tuple(whole.outcomes[i] for i in part.numbers)
    assert len(part.game_seconds) == 4


def test_the_records_of_a_match_are_those_that_its_file_gives_back(tmp_path):
    kernels = KERNELS["tictactoe"]
    result = Arena(kernels, RandomPlayer(kernels, 1), GreedyPlayer(kernels, 2), 4, seed=3).play()
    records = records_of(result, TIC_TAC_TOE, "tictactoe", ("random", "greedy"), 3)
    write_records(tmp_path / "games.jsonl", records)
    assert read_records(tmp_path / "games.jsonl") == records


def test_a_game_that_goes_on_after_its_max_plies_ends_the_match():
    class Shorter(DoubleMove):
        max_plies = 11

    kernels = Kernels(Shorter())
    first = kernels.game.start().legal_actions[0]  # one stone each time: twelve plies
    result = Arena(KERNELS["double_move"], Fixed(first), Fixed(first), 2, seed=1, opening_plies=0).play()
    assert [len(actions) for actions in result.actions] == [12, 12]
    with pytest.raises(GameError, match="went on after its max_plies = 11: raise max_plies, or let"):
        Arena(kernels, Fixed(first), Fixed(first), 2, seed=1, opening_plies=0).play()
