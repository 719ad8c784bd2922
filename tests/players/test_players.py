"""Every player against plain, independent answers; alone and in a batch."""

import gc
import subprocess
import sys
import threading
import time
import weakref
from collections import Counter

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import InvalidSetting, Stopped
from alphazero.game import Game, Position
from alphazero.game.kernels import Kernels
from alphazero.players.baselines import GreedyPlayer, MinimaxPlayer, RandomPlayer
from alphazero.players.contestants import make_player
from alphazero.players.net_players import PolicyPlayer, SearchPlayer
from alphazero.players.player import Player, Temperature
from alphazero.search.mcts import SearchConfig
from alphazero.search.rollouts import Playouts
from tests.game.double_move_game import DoubleMove

GAMES = {name: registry.load(name).game for name in ("tictactoe", "connect4")} | {"double_move": DoubleMove()}
KERNELS = {name: Kernels(game) for name, game in GAMES.items()}
CONFIG = SearchConfig(num_simulations=60, noise_fraction=0.0)


def select(player: Player, positions: list[Position], first_game: int = 0) -> list[int]:
    """The player's actions, position i being from game `first_game` + i."""
    states = np.stack([position.state for position in positions])
    numbers = np.arange(first_game, first_game + len(positions))
    plies = np.array([position.ply for position in positions])
    return [int(action) for action in player.select_actions(states, numbers, plies)]


def random_positions(game: Game, count: int, seed: int = 0) -> list[Position]:
    rng, positions = np.random.default_rng(seed), []
    while len(positions) < count:
        position = game.start()
        for _ in range(rng.integers(game.max_plies)):
            if not position.terminal:
                position = position.play(rng.choice(position.legal_actions))
        if not position.terminal:
            positions.append(position)
    return positions


def plain_minimax(position: Position, depth: int, player: int) -> float:
    """The value for `player` (0 or 1): sooner wins and later losses are better; no cuts, no sign changes."""
    if position.terminal:
        return position.outcome * (1 if player == 0 else -1) * (2.0 + depth)
    if depth == 0:
        return 0.0
    values = [plain_minimax(position.play(action), depth - 1, player) for action in position.legal_actions]
    return max(values) if position.to_play == player else min(values)


def best_actions(position: Position, depth: int) -> set[int]:
    mover = position.to_play
    values = {a: plain_minimax(position.play(a), depth - 1, mover) for a in position.legal_actions}
    return {action for action, value in values.items() if value == max(values.values())}


@pytest.mark.parametrize(
    ("name", "depth", "count"),
    [("tictactoe", 1, 40), ("tictactoe", 4, 20), ("connect4", 3, 20), ("double_move", 5, 40)],
)
def test_minimax_plays_the_best_actions_and_all_of_them(name, depth, count):
    player = MinimaxPlayer(KERNELS[name], depth, seed=1, threads=2)
    for position in random_positions(GAMES[name], count):
        chosen = select(player, [position] * 60)
        assert set(chosen) == best_actions(position, depth), position


@pytest.mark.parametrize("depth", [-1, 0, 43])
def test_minimax_refuses_a_depth_out_of_range(depth):
    with pytest.raises(InvalidSetting, match="between 1 and 42"):
        MinimaxPlayer(KERNELS["connect4"], depth, seed=1)


@pytest.mark.parametrize(
    ("name", "text", "action"),
    [("connect4", "1 2 1 2 1 2", "1"), ("connect4", "4 1 4 1 4", "4"), ("tictactoe", "a1 b1 a2 b2", "a3")],
)
def test_greedy_and_search_take_a_win_or_the_only_block(name, text, action):
    position, kernels = GAMES[name].position(text), KERNELS[name]
    search = SearchPlayer("mcts", kernels, [Playouts(kernels, 1)], seed=1, config=CONFIG)
    for player in (GreedyPlayer(kernels, 1), search):
        assert set(select(player, [position] * 20)) == {position.parse(action)}


def test_random_takes_every_legal_action_equally_often():
    position = GAMES["tictactoe"].position("a1 b1 c1")
    counts = Counter(select(RandomPlayer(KERNELS["tictactoe"], 1), [position] * 6000))
    assert sorted(counts) == position.legal_actions
    assert all(abs(count - 1000) < 150 for count in counts.values())  # five standard deviations


def make_players(name: str, seed: int) -> list[Player]:
    kernels = KERNELS[name]
    evaluate = Playouts(kernels, seed)
    return [
        RandomPlayer(kernels, seed),
        GreedyPlayer(kernels, seed),
        MinimaxPlayer(kernels, 3, seed, threads=2),
        PolicyPlayer("policy", kernels, [evaluate, evaluate], seed),
        SearchPlayer("search", kernels, [evaluate], seed, config=CONFIG),
        SearchPlayer("drawing", kernels, [evaluate] * 2, seed, temperature=Temperature(1.0), config=CONFIG),
    ]


@pytest.mark.parametrize("name", sorted(GAMES))
def test_alone_as_in_a_batch_and_the_seed_decides(name):
    positions = random_positions(GAMES[name], 23)
    for player, again, other in zip(make_players(name, 1), make_players(name, 1), make_players(name, 2), strict=True):
        together = select(player, positions)
        assert all(action in position.legal_actions for action, position in zip(together, positions, strict=True))
        assert together == [select(again, [position], i)[0] for i, position in enumerate(positions)]
        repeated = positions * 10
        assert select(player, repeated) != select(other, repeated) or isinstance(player, SearchPlayer)


@pytest.mark.parametrize("name", ["mcts:20", "minimax:2", "best@simulations=4", "best@simulations=0"])
def test_a_player_that_nobody_has_any_more_is_gone(name: str):
    """And its threads with it: those of finished matches once stayed until Python looked for cycles."""
    player = make_player(name, registry.load("connect4"), seed=1, threads=2)
    gone, pool = weakref.ref(player), player._pool
    gc.collect()
    gc.disable()
    try:
        select(player, [GAMES["connect4"].start()] * 8)
        del player
        pool.shutdown()  # a thread holds the player for a moment after its last task
        assert gone() is None
    finally:
        gc.enable()


def planted(weights):
    """An `evaluate` with these priors everywhere, on illegal actions too."""

    def evaluate(states, legal_masks):
        return np.tile(np.array(weights, np.float32), (len(states), 1)), np.zeros(len(states), np.float32)

    return evaluate


def test_the_policy_alone_plays_the_highest_legal_prior():
    kernels, game = KERNELS["tictactoe"], GAMES["tictactoe"]
    player = PolicyPlayer("net", kernels, [planted([9, 8, 7, 6, 5, 4, 3, 2, 1])], seed=1)
    assert select(player, [game.start(), game.position([0]), game.position([0, 1])]) == [0, 1, 2]
    no_prior = PolicyPlayer("net", kernels, [planted([1, 1] + [0] * 7)], seed=1)
    assert set(select(no_prior, [game.position([0, 1])] * 100)) == set(range(2, 9))


@pytest.mark.parametrize(("temperature", "share"), [(1.0, 0.75), (0.5, 0.9), (2.0, 0.634)])
def test_the_temperature_sharpens_and_flattens(temperature, share):
    # priors 3 : 1 become 3^(1/T) : 1
    player = PolicyPlayer("net", KERNELS["tictactoe"], [planted([3, 1] + [0] * 7)], 1, Temperature(temperature))
    chosen = select(player, [GAMES["tictactoe"].start()] * 2000)
    assert chosen.count(0) / 2000 == pytest.approx(share, abs=0.04)


def test_the_temperature_of_a_game_changes_once():
    """Even at 1 every other action is taken in the first two plies, and never from then on."""
    player = PolicyPlayer("net", KERNELS["tictactoe"], [planted([5, 4] + [0] * 7)], 1, Temperature(1.0, 2, 0.0))
    states = np.stack([GAMES["tictactoe"].start().state] * 300)
    chosen = [player.select_actions(states, np.arange(300), np.full(300, ply)) for ply in range(4)]
    assert [set(actions.tolist()) for actions in chosen] == [{0, 1}, {0, 1}, {0}, {0}]
    assert Temperature(0.5, 3, 0.1).at(np.array([0, 2, 3, 9])).tolist() == [0.5, 0.5, 0.1, 0.1]
    with pytest.raises(InvalidSetting, match="temperature_plies"):
        Temperature(1.0, -1)


@pytest.mark.parametrize("temperature", [1.0, 3.0, 10.0, 100.0])
def test_an_action_without_prior_is_drawn_only_where_no_legal_one_has_any(temperature):
    kernels, game = KERNELS["tictactoe"], GAMES["tictactoe"]
    player = PolicyPlayer("net", kernels, [planted([1, 0, 1] + [0] * 6)], 1, Temperature(temperature))
    assert set(select(player, [game.start()] * 1000)) == {0, 2}
    assert set(select(player, [game.position([0])] * 200)) == {2}
    assert set(select(player, [game.position([0, 2])] * 200)) == {1, *range(3, 9)}
    mixed = select(player, [game.position([0, 2]), game.position([0])] * 100)
    assert set(mixed[::2]) == {1, *range(3, 9)} and set(mixed[1::2]) == {2}


def test_a_search_breaks_ties_at_random_and_draws_by_its_temperature():
    kernels, start = KERNELS["tictactoe"], GAMES["tictactoe"].start()
    config = SearchConfig(num_simulations=9, noise_fraction=0.0)  # one visit each
    equal = SearchPlayer("mcts", kernels, [planted([1] * 9)], seed=1, config=config)
    assert set(select(equal, [start] * 200)) == set(range(9))
    leaning = planted([5] + [1] * 8)
    counts = [
        Counter(select(SearchPlayer("mcts", kernels, [leaning], 1, Temperature(at), config=CONFIG), [start] * 200))
        for at in (0.0, 0.1, 1.0)
    ]
    assert len(counts[0]) == 1 and counts[0][0] == 200
    assert counts[1][0] > counts[2][0] and len(counts[2]) > 5


def test_sequential_halving_plays_its_winner():
    config = SearchConfig(num_simulations=32, gumbel_actions=7, noise_fraction=0.0)
    position, kernels = GAMES["connect4"].position("1 2 1 2 1 2"), KERNELS["connect4"]
    assert select(SearchPlayer("mcts", kernels, [Playouts(kernels, 1)], 1, config=config), [position]) == [0]
    # with Gumbel noise the winner varies, though the improved policy always likes the same action best
    noisy = SearchConfig(num_simulations=8, gumbel_actions=2, noise_fraction=0.25)
    player = SearchPlayer("mcts", kernels, [planted([5] + [1] * 6)], seed=1, config=noisy)
    assert len(set(select(player, [GAMES["connect4"].start()] * 50))) > 2


WITHOUT_TORCH = """
import sys
from alphazero.catalogue import registry
from alphazero.game.kernels import Kernels
from alphazero.matches.arena import Arena
from alphazero.players.contestants import make_player

loaded = registry.load("tictactoe")
first, second = (make_player(name, loaded, seed=1) for name in ("random", "greedy"))
Arena(Kernels(loaded.game), first, second, 4, seed=1).play()
print([name for name in ("torch", "tyro", "matplotlib") if name in sys.modules])
"""


def test_a_match_of_players_without_a_net_loads_no_torch():
    result = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


@pytest.mark.parametrize("name", ["minimax:40", "mcts:1000000"])
def test_a_move_that_nobody_waits_for_any_more_ends_soon(name: str):
    """Each of them would take hours, or at least a minute."""
    player = make_player(name, registry.load("connect4"), seed=1, threads=1)
    states, zero = KERNELS["connect4"].start_states(1), np.zeros(1, np.int64)
    threading.Timer(1.0, player.interrupt).start()
    begin = time.monotonic()
    with pytest.raises(Stopped):
        player.select_actions(states, zero, zero)
    assert time.monotonic() - begin < 100  # of which compiling takes the most


@pytest.mark.parametrize("name", ["minimax:3", "mcts:50"])
def test_a_player_that_was_interrupted_plays_on(name: str):
    """An interruption ends one call: the one that runs, or else the next."""
    player, fresh = (make_player(name, registry.load("tictactoe"), seed=1, threads=2) for _ in range(2))
    positions = random_positions(GAMES["tictactoe"], 40)
    player.interrupt()
    with pytest.raises(Stopped):
        select(player, positions)
    assert select(player, positions) == select(fresh, positions)


def test_a_search_player_plays_on_after_ctrl_c():
    """As after the stop button of a notebook. The other thread ends too: the next call needs its trees."""
    pressed, running, busy = [True], [], threading.Event()
    uniform = planted([1] * 9)

    def on_this_thread(states, legal_masks):
        if pressed:
            assert busy.wait(60)
            raise KeyboardInterrupt
        return uniform(states, legal_masks)

    def on_the_other(states, legal_masks):
        busy.set()
        running.append(time.sleep(0.02))
        return uniform(states, legal_masks)

    config = SearchConfig(num_simulations=1000, noise_fraction=0.0)
    player = SearchPlayer("two", KERNELS["tictactoe"], [on_this_thread, on_the_other], seed=1, config=config)
    with pytest.raises(KeyboardInterrupt):
        select(player, [GAMES["tictactoe"].start()] * 2)
    calls = len(running)
    time.sleep(0.1)
    assert 0 < calls == len(running) < 200
    pressed.clear()
    player_alone = SearchPlayer("one", KERNELS["tictactoe"], [uniform], seed=1, config=config)
    assert select(player, [GAMES["tictactoe"].start()]) == select(player_alone, [GAMES["tictactoe"].start()])
