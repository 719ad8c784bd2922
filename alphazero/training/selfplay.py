"""Games of a network against itself: the source of all samples.

A number of slots each hold a game; a finished game's slot starts the next one at once, and games that are still going
when a generation ends go on in the next one, so that none is dropped for being long or short.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numba import njit

from alphazero.errors import GameError, InvalidSetting
from alphazero.game.kernels import Kernels, kernel
from alphazero.game.randomness import EXPLORATION, MOVE, OPENING, make_key, uniform
from alphazero.nets.neural_net import CudaEvaluator
from alphazero.search.cuda_search import make_search
from alphazero.search.mcts import Evaluate, SearchConfig
from alphazero.search.rollouts import _play_at_random
from alphazero.training.replay_buffer import Samples

# Names that `Kernels.bind` replaces by one game's own.
init: Any
is_terminal: Any
mover: Any
play_at_random: Any


@dataclass(frozen=True)
class SelfPlayConfig:
    """How games are played to learn from."""

    games_per_generation: int = 400
    """Finished games after which the network learns."""
    num_slots: int = 256
    """Games going on at once on each thread; more keep the network busier, and use more memory."""
    temperature: float = 1.0
    """Actions are drawn by visits^(1/temperature) at first; not with sequential halving, which has noise of its own."""
    temperature_plies: int = 12
    """Plies played at `temperature`; later ones at `final_temperature`."""
    final_temperature: float = 0.25
    """0 plays the most visited action."""
    random_plies: int = 0
    """A game begins with up to so many plies at random, any number equally likely; they give no samples."""
    epsilon: float = 0.0
    """Later, up to this share of a game's plies is played at random, any share equally likely, so that the network
    learns what mistakes are worth; value targets do not look past such a ply (Watkins 1989)."""
    epsilon_after: int = 0
    """Games of the run before the first one with such plies: values that are cut there must be good ones."""
    td_lambda: float = 0.9
    """The value target is the lambda-return (Sutton 1988) of the search's values and the game's outcome: 1 is the
    outcome alone, 0 the search's value of the position alone."""

    def __post_init__(self) -> None:
        for name, low, high in (
            ("games_per_generation", 1, 1 << 24),
            ("num_slots", 1, 1 << 16),
            ("temperature", 0.0, 100.0),
            ("temperature_plies", 0, 1 << 16),
            ("final_temperature", 0.0, 100.0),
            ("random_plies", 0, 1 << 16),
            ("epsilon", 0.0, 1.0),
            ("epsilon_after", 0, 1 << 48),
            ("td_lambda", 0.0, 1.0),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise InvalidSetting(f"self-play setting {name} must lie between {low:g} and {high:g}, not {value}")


def value_targets(
    to_play: np.ndarray,
    done: np.ndarray,
    rewards: np.ndarray,
    values: np.ndarray,
    explored: np.ndarray,
    td_lambda: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value targets and z, `float32[n, T]`, and whether they are known, `bool[n, T]`, for the player of each ply.

    The n recordings have T plies each, game after game.

    `done bool[n, T]`: the ply ended its game; `rewards float32[n, T]`: the result there for the player who made it
    (`to_play int8[n, T]`); `values float32[n, T]`: the search's, for that player. The target of a ply is the
    lambda-return (1 - lambda) value + lambda * the next ply's target, or after the last ply the result (Sutton 1988).
    Where `explored bool[n, T]`, the ply was played at random, and what came of it says nothing about the position: the
    search's value takes the place of the target and of z. A ply after the last finished game has neither: 0, and not
    known.
    """
    targets, z = np.zeros(done.shape, np.float32), np.zeros(done.shape, np.float32)
    known = np.logical_or.accumulate(done[:, ::-1], axis=1)[:, ::-1]
    # what is handed back from ply to ply, seen by `player`
    target, outcome = np.zeros(len(done), np.float32), np.zeros(len(done), np.float32)
    player = np.zeros(len(done), np.int8)
    for ply in reversed(range(done.shape[1])):
        ends, mover = done[:, ply], to_play[:, ply]
        sign = np.where(mover == player, 1, -1)
        target, outcome = (np.where(ends, rewards[:, ply], sign * x) for x in (target, outcome))
        target = np.where(known[:, ply], (1 - td_lambda) * values[:, ply] + td_lambda * target, 0.0)
        judged = explored[:, ply] & known[:, ply]
        target, outcome = (np.where(judged, values[:, ply], x) for x in (target, outcome))
        player = mover
        targets[:, ply], z[:, ply] = target, outcome
    return targets, z, known


@kernel
def draw_actions(policies, temperatures, seed, games, plies, actions):
    """Draws `actions int64[n]` by policies^(1 / temperature); a temperature of 0 leaves `actions[i]` as it is."""
    for i in range(len(actions)):
        if temperatures[i] > 0.0:
            peak, total = 0.0, 0.0
            for action in range(policies.shape[1]):
                peak = max(peak, float(policies[i, action]))
            for action in range(policies.shape[1]):
                total += (policies[i, action] / peak) ** (1.0 / temperatures[i])
            mark = uniform(make_key(seed, games[i], plies[i], MOVE), 0) * total
            for action in range(policies.shape[1]):
                weight = (policies[i, action] / peak) ** (1.0 / temperatures[i])
                if weight > 0.0:
                    actions[i] = action
                    mark -= weight
                    if mark <= 0.0:
                        break


@njit
def _explores(epsilon, after, seed, game, ply):
    """The ply is played at random; each game from number `after` on has a share of such plies of its own."""
    if game < after:
        return False
    share = epsilon * uniform(make_key(seed, game, 0, EXPLORATION), 0)
    return uniform(make_key(seed, game, ply, EXPLORATION), 1) < share


@kernel
def explore(legal_masks, epsilon, after, seed, games, plies, actions):
    """Replaces `actions int64[n]` at plies that are played at random, by any legal one of `bool[n, A]`."""
    for i in range(len(actions)):
        if _explores(epsilon, after, seed, games[i], plies[i]):
            count = 0
            for action in range(legal_masks.shape[1]):
                count += legal_masks[i, action]
            left = int(uniform(make_key(seed, games[i], plies[i], EXPLORATION), 2) * count)
            for action in range(legal_masks.shape[1]):
                if legal_masks[i, action]:
                    if left == 0:
                        actions[i] = action
                    left -= 1


@kernel
def find_explored(epsilon, after, seed, games, explored):
    """Which plies of the games are played at random: `bool[n, T]`."""
    for i in range(len(games)):
        for ply in range(explored.shape[1]):
            explored[i, ply] = _explores(epsilon, after, seed, games[i], ply)


def _open_games(states, to_play, seed, games, max_plies, legal_mask, plies):
    """Plays up to `max_plies` random plies from every start position; `plies int64[n]` says how many.

    A game that would be over by then begins without any. `legal_mask bool[A]` is scratch space.
    """
    for i in range(len(states)):
        key = make_key(seed, games[i], 0, OPENING)
        plies[i] = int(uniform(key, 0) * (max_plies + 1))
        for ply in range(plies[i]):
            play_at_random(states[i], uniform(key, ply + 1), legal_mask)
            to_play[i] = mover(states[i], 1 - to_play[i])
            if is_terminal(states[i]):
                init(states[i])
                to_play[i] = mover(states[i], 0)
                plies[i] = 0
                break


class SelfPlay:
    """The slots of one thread."""

    def __init__(
        self,
        kernels: Kernels,
        config: SelfPlayConfig,
        search_config: SearchConfig,
        evaluate: Evaluate | CudaEvaluator,
        num_slots: int,
        seed: int,
        first_game: int = 0,
        game_stride: int = 1,
    ):
        """Games are numbered `first_game`, `first_game + game_stride`, ...; the number keys a game's randomness."""
        game = kernels.game
        self.kernels, self.config, self.seed = kernels, config, seed
        self.search = make_search(kernels, search_config, evaluate, num_slots, seed)
        self.num_slots = num_slots
        self.stride, self.next_game = game_stride, first_game + num_slots * game_stride
        self.games = first_game + np.arange(num_slots) * game_stride
        self._open_games = kernels.bind(_open_games, _play_at_random)
        self.states, self.to_play, self.plies = self._new_games(self.games)
        self.first_plies = self.plies.copy()
        history = num_slots, game.max_plies
        self.past_states = np.zeros((*history, game.state_words), np.uint64)
        self.past_policies = np.zeros((*history, game.num_actions), np.float32)
        self.past_values = np.zeros(history, np.float32)
        self.past_to_play = np.zeros(history, np.int8)
        self.num_games = self.num_positions = self.num_simulations = 0
        """Played so far; other threads may read them to show progress."""

    STATE = (
        "games", "plies", "first_plies", "states", "to_play",
        "past_states", "past_policies", "past_values", "past_to_play",
    )  # fmt: skip

    def state(self) -> dict[str, np.ndarray]:
        """The games that are going on, for `restore`."""
        return {name: getattr(self, name) for name in self.STATE} | {"next_game": np.array(self.next_game)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Goes on with the games of `state`."""
        for name in self.STATE:
            getattr(self, name)[...] = state[name]
        self.next_game = int(state["next_game"])

    def play(self, num_games: int, stop: threading.Event | None = None) -> Samples:
        """Plays until `num_games` more games are over; returns their samples. `stop` ends it early."""
        nobody = np.empty(0, np.int64)
        finished = [self._samples(nobody, nobody, np.empty(0, np.float32))]
        enough = self.num_games + num_games
        everyone = np.arange(len(self.games))
        # the weights may be new, so nothing of the trees before is kept
        self._start(everyone)
        while self.num_games < enough and not (stop is not None and stop.is_set()):
            self.search.step()
            slots = self.search.finished()
            if len(slots):
                finished.append(self._play_ply(slots))
        return Samples.join(finished)

    cpu_seconds = 0.0
    """A thread's processor time counts as that of its process."""

    def close(self) -> None:
        """Nothing to end: a thread lives only while it plays."""

    def _new_games(self, games: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """States, movers and plies at which the games of those numbers begin."""
        states, to_play = self.kernels.start_states(len(games)), np.zeros(len(games), np.int8)
        self.kernels.find_movers(states, to_play)
        plies, mask = np.zeros(len(games), np.int64), np.zeros(self.kernels.game.num_actions, bool)
        if self.config.random_plies:
            self._open_games(states, to_play, self.seed, games, self.config.random_plies, mask, plies)
        return states, to_play, plies

    def _start(self, slots: np.ndarray, actions: np.ndarray | None = None) -> None:
        """Begins the searches of `slots`; `actions` as for `Search.start`."""
        self.num_simulations += len(slots) * self.search.config.num_simulations
        self.search.start(slots, self.states[slots], self.games[slots], self.plies[slots], actions)

    def _play_ply(self, slots: np.ndarray) -> Samples:
        """Plays one action in each of `slots`, starts the next searches, and returns the samples of games now over."""
        found = self.search.read(slots)
        plies = self.plies[slots]
        self.past_states[slots, plies] = self.states[slots]
        self.past_policies[slots, plies] = found.policy
        self.past_values[slots, plies] = found.values
        self.past_to_play[slots, plies] = self.to_play[slots]
        config = self.config
        temperatures = np.where(plies < config.temperature_plies, config.temperature, config.final_temperature)
        actions = found.actions
        if self.search.config.gumbel_actions == 0:  # sequential halving explores by its own noise
            draw_actions(found.policy, temperatures, self.seed, self.games[slots], plies, actions)
        states, to_play = self.states[slots], self.to_play[slots]
        if config.epsilon:
            masks, _, _ = self.kernels.describe_all(states)
            explore(masks, config.epsilon, config.epsilon_after, self.seed, self.games[slots], plies, actions)
        self.kernels.play(states, to_play, actions)
        _, terminal, results = self.kernels.describe_all(states)
        self.num_positions += len(slots)
        game = self.kernels.game
        if (plies[~terminal] + 1 >= game.max_plies).any():
            raise GameError(f"{game.name}: a game went on after its max_plies = {game.max_plies}")
        fresh = slots[terminal]
        # the result is for the player to move there; turn it to the one who made the last ply
        same = to_play[terminal] == self.to_play[fresh]
        samples = self._samples(fresh, plies[terminal], np.where(same, results[terminal], -results[terminal]))
        self.states[slots], self.to_play[slots], self.plies[slots] = states, to_play, plies + 1
        if len(fresh):
            self.games[fresh] = self.next_game + self.stride * np.arange(len(fresh))
            self.next_game += self.stride * len(fresh)
            self.states[fresh], self.to_play[fresh], self.plies[fresh] = self._new_games(self.games[fresh])
            self.first_plies[fresh] = self.plies[fresh]
            self.num_games += len(fresh)
        self._start(slots, np.where(terminal, -1, actions))
        return samples

    def _samples(self, slots: np.ndarray, last_plies: np.ndarray, rewards: np.ndarray) -> Samples:
        """The samples of the games in `slots`, game after game, which ended with `rewards` for who played last.

        All of a ply at once: a loop over games in Python would keep the other threads waiting.
        """
        rows, plies = np.arange(len(slots)), np.arange(last_plies.max(initial=-1) + 1)
        done, all_rewards = np.zeros((len(rows), len(plies)), bool), np.zeros((len(rows), len(plies)), np.float32)
        done[rows, last_plies], all_rewards[rows, last_plies] = True, rewards
        explored = np.zeros_like(done)
        find_explored(self.config.epsilon, self.config.epsilon_after, self.seed, self.games[slots], explored)
        past = slots, slice(len(plies))
        targets, z, known = value_targets(
            self.past_to_play[past], done, all_rewards, self.past_values[past], explored, self.config.td_lambda
        )
        kept = known & (plies >= self.first_plies[slots, None])
        return Samples(self.past_states[past][kept], self.past_policies[past][kept], z[kept], targets[kept])


class Worker(Protocol):
    """Plays games on one thread or in one process."""

    def play(self, num_games: int, stop: threading.Event | None = None) -> Samples:
        """As `SelfPlay.play`."""


def play_games(
    workers: Sequence[Worker],
    num_games: int,
    stop: threading.Event,
    use_threads: Callable[[int], object],
    on_progress: Callable[[], None] = lambda: None,
) -> Samples:
    """Lets every worker play its share of `num_games` on a thread of its own; joins the samples in order.

    `use_threads(1)` is called in each thread first, so that network calls stay on it; `on_progress` now and then.
    """
    shares = [num_games // len(workers) + (i < num_games % len(workers)) for i in range(len(workers))]
    with ThreadPoolExecutor(len(workers), initializer=use_threads, initargs=(1,)) as pool:
        futures = [pool.submit(worker.play, share, stop) for worker, share in zip(workers, shares, strict=True)]
        try:
            while waiting := wait(futures, timeout=0.5, return_when=FIRST_EXCEPTION).not_done:
                for future in set(futures) - waiting:
                    future.result()  # raises what the worker raised
                on_progress()
            return Samples.join([future.result() for future in futures])
        except BaseException:
            stop.set()  # one worker failed, or the user wants to leave: the others need not go on
            raise
