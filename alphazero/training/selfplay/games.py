"""Games of a network against itself: the source of all samples.

A number of slots each hold a game; a finished game's slot starts the next one at once, and games that are still going
when a generation ends go on in the next one, so that none is dropped for being long or short.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from alphazero.game import Game
from alphazero.game.kernels import Kernels, check_length
from alphazero.game.rules import points_so_far, seen_by, shown_words
from alphazero.nets.neural_net import CudaEvaluator
from alphazero.players.player import Chooser, Temperature
from alphazero.search.evaluator import Evaluator
from alphazero.search.mcts import Evaluate, SearchConfig
from alphazero.search.placement import make_search
from alphazero.search.rollouts import _play_at_random
from alphazero.storage.arrays import Array
from alphazero.training.config import SelfPlayConfig
from alphazero.training.policies import ROUNDING, packed, policies_of
from alphazero.training.replay_buffer import Samples, no_samples
from alphazero.training.selfplay.exploration import explore, open_games
from alphazero.training.selfplay.shown_games import MOST_GAMES, FinishedGame
from alphazero.training.selfplay.value_targets import Recordings, ValueTargets, check_targets, lambda_returns, record
from alphazero.training.selfplay.worker import LEAST_GAMES, NO_LIMIT, SelfPlayCounts, Until, Worker


class SelfPlay(Worker):
    """A `Worker` on the thread that calls it."""

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
        value_targets: ValueTargets | None = None,
    ):
        """Games are numbered `first_game`, `first_game + game_stride`, ...; the number keys a game's randomness."""
        self.kernels, self.config, self.seed = kernels, config, seed
        self.value_targets = value_targets or lambda_returns
        self._evaluator = evaluate if isinstance(evaluate, Evaluator) else None
        self.search = make_search(kernels, search_config, evaluate, num_slots, seed)
        self._open_games = kernels.bind(open_games, _play_at_random)
        self.num_slots, self.stride = num_slots, game_stride
        self.games, self.plies, self.first_plies = np.zeros((3, num_slots), np.int64)
        self.states, self.to_play = kernels.start_states(num_slots), np.zeros(num_slots, np.int8)
        self.past = Past(kernels.game, num_slots)
        self.weights = 0
        """The generation of the weights that play, for whoever asks which ones a game saw."""
        self._first_weights = np.zeros(num_slots, np.int64)
        self._searching, self._paused = np.zeros(num_slots, bool), np.zeros(num_slots, bool)
        self._budgets = np.zeros(num_slots, np.int32)
        """The simulations of each slot's search."""
        self._finished: list[FinishedGame] = []
        self._ended: list[np.ndarray] = []
        self.num_games = self.num_positions = self.num_simulations = 0
        """Counts so far; other threads may read them to show progress."""
        numbers = first_game + game_stride * np.arange(num_slots)
        self.next_game = first_game + game_stride * num_slots
        self._begin_games(np.arange(num_slots), numbers)

    def state(self) -> dict[str, np.ndarray]:
        return self._arrays() | {"next_game": np.array(self.next_game)}

    def _arrays(self) -> dict[str, np.ndarray]:
        own = {name: getattr(self, name) for name in ("games", "plies", "first_plies", "states", "to_play")}
        return own | self.past.arrays()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on with the games of `state`, whose plies were played with the settings of then."""
        for name, array in self._arrays().items():
            array[...] = state[name]
        self.next_game = int(state["next_game"])

    def counts(self) -> SelfPlayCounts:
        asked = (self._evaluator.num_requests, self._evaluator.num_evaluations) if self._evaluator else (0, 0)
        return SelfPlayCounts(self.num_games, self.num_positions, self.num_simulations, *asked)

    def begin_at(self, first_game: int) -> None:
        self.next_game = first_game
        self._begin_games(np.arange(self.num_slots), self._take_numbers(self.num_slots))

    def play(self, num_games: int, until: Until = NO_LIMIT, search_anew: bool = True) -> Samples:
        """As in Worker; in a hurry, with the games nearest to their ends. Without `search_anew` the searches go on."""
        finished = [no_samples(self.kernels.game)]
        begin, before, enough = time.monotonic(), self.num_games, self.num_games + num_games
        hurried, self._finished, self._ended = False, [], []
        self._paused[:] = False
        # the weights may be new, so nothing of the trees before is kept
        idle = np.arange(self.num_slots) if search_anew else np.flatnonzero(~self._searching)
        if len(idle):  # on a GPU, trees that a start does not name rest
            self._start(idle)
        while self.num_games < enough and not until.is_over():
            passed = time.monotonic() - begin
            if passed > until.most_seconds:
                break
            if not hurried and passed > until.seconds:
                least = before + min(LEAST_GAMES, self.num_slots)  # a slot rests when its game is over
                hurried, enough = True, min(enough, max(least, self.num_games))
                self._paused[np.argsort(-self.plies, kind="stable")[enough - self.num_games :]] = True
                continue
            self.search.step()
            slots = self.search.finished()
            slots = slots[self._searching[slots]]
            if len(slots):
                finished.append(self._play_ply(slots, go_on=not hurried))
        return Samples.join(finished)

    def finished_games(self) -> list[FinishedGame]:
        return self._finished

    def ended_games(self) -> np.ndarray:
        """`int64[n, 3]`: number, samples, first weights of each game that ended in the last call of `play`."""
        return np.concatenate([np.empty((0, 3), np.int64), *self._ended])

    def forget(self) -> None:
        """Clears the cache of the network's answers."""
        if self._evaluator:
            self._evaluator.clear()

    def _begin_games(self, slots: np.ndarray, numbers: np.ndarray) -> None:
        """Begins the games of those numbers in the slots."""
        states, to_play = self.kernels.start_states(len(slots)), np.zeros(len(slots), np.int8)
        self.kernels.find_movers(states, to_play)
        plies, mask = np.zeros(len(slots), np.int64), np.zeros(self.kernels.game.num_actions, bool)
        self.kernels.roll(states, to_play, self.seed, numbers, plies)
        if self.config.random_plies and not self.kernels.game.num_outcomes:  # dice make games differ
            self._open_games(states, to_play, self.seed, numbers, self.config.random_plies, mask, plies)
        self.games[slots], self.states[slots], self.to_play[slots] = numbers, states, to_play
        self.plies[slots] = self.first_plies[slots] = plies
        self._first_weights[slots] = self.weights

    def _start(self, slots: np.ndarray, actions: np.ndarray | None = None) -> None:
        """Begins the searches of `slots`; `actions` as for `Search.start`."""
        self._searching[slots] = True
        given = self.states[slots], self.games[slots], self.plies[slots], actions
        config, most = self.search.config, self.search.config.gumbel_actions
        self._budgets[slots] = config.num_simulations
        if not (most and self.kernels.game.num_outcomes):
            self.search.start(slots, *given)
            return
        # as many simulations for an action as where there are `most`: further ones would see the luck of single rolls
        legal_masks, _, _ = self.kernels.describe_all(given[0])
        counts = np.minimum(legal_masks.sum(axis=1), most)
        self._budgets[slots] = np.ceil(config.num_simulations * counts / most)
        self.search.start(slots, *given, self._budgets[slots])

    def _play_ply(self, slots: np.ndarray, go_on: bool) -> Samples:
        """Plays one action in each of `slots`, starts the next searches, and returns the samples of games now over.

        Without `go_on` a game that is over has no successor yet, and paused games get no search.
        """
        found = self.search.read(slots)
        self._searching[slots] = False
        plies, config = self.plies[slots], self.config
        actions = found.actions
        if self.search.config.gumbel_actions == 0:  # sequential halving explores by its own noise
            temperature = Temperature(config.temperature, config.temperature_plies, config.final_temperature)
            actions = Chooser(self.seed).at_temperature(temperature, found.policy, actions, self.games[slots], plies)
        states, to_play = self.states[slots], self.to_play[slots]
        explored = np.zeros(len(slots), np.int8)
        if config.epsilon:
            masks, _, _ = self.kernels.describe_all(states)
            explore(masks, config.epsilon, config.epsilon_after, self.seed, self.games[slots], plies, actions, explored)
        past, at = self.past, (slots, plies)
        past.states[at], past.policies[at] = states[:, : past.states.shape[2]], packed(found.policy, past.policies)
        past.values[at], past.to_play[at], past.explored[at] = found.values, to_play, explored
        self.kernels.play(states, to_play, actions)
        self.kernels.roll(states, to_play, self.seed, self.games[slots], plies + 1)
        _, terminal, results = self.kernels.describe_all(states)
        self.num_positions += len(slots)
        # of searches that are over: those under way at the end of a generation begin anew
        self.num_simulations += int(self._budgets[slots].sum())
        check_length(self.kernels.game, plies[~terminal].max(initial=-1) + 1)
        fresh = slots[terminal]
        results = seen_by(self.to_play[fresh], to_play[terminal], (results + past.value_so_far(states))[terminal])
        samples = self._samples(fresh, plies[terminal], results)
        for slot, last, end in zip(
            fresh[: MOST_GAMES - len(self._finished)], plies[terminal], states[terminal], strict=False
        ):
            first = int(self.first_plies[slot])
            path = np.vstack([self.past.states[slot, first : last + 1], end[None, : self.past.states.shape[2]]])
            self._finished.append(FinishedGame(int(self.games[slot]), path, first))
        self.states[slots], self.to_play[slots], self.plies[slots] = states, to_play, plies + 1
        if len(fresh):
            self._begin_games(fresh, self._take_numbers(len(fresh)))
            self.num_games += len(fresh)
        if not go_on:
            self._paused[fresh] = True
        going = ~self._paused[slots]
        if going.any():
            self._start(slots[going], np.where(terminal, -1, actions)[going])
        return samples

    def _take_numbers(self, count: int) -> np.ndarray:
        """The numbers `int64[count]` of the next games to begin."""
        numbers = self.next_game + self.stride * np.arange(count)
        self.next_game += self.stride * count
        return numbers

    def _samples(self, slots: np.ndarray, last_plies: np.ndarray, rewards: np.ndarray) -> Samples:
        """The samples of the games in `slots`, which ended with `rewards` for who played last."""
        if not len(slots):  # a value target need not know what to say about no games
            return no_samples(self.kernels.game)
        config = self.config
        if config.td_lambda_after:  # each game has a lambda of its own
            if len(slots) > 1:
                each = [
                    self._samples(*(array[[i]] for array in (slots, last_plies, rewards))) for i in range(len(slots))
                ]
                return Samples.join(each)
            share = min(1.0, int(self.games[slots[0]]) / config.td_lambda_after)
            config = replace(config, td_lambda=1.0 - share**2 * (1.0 - config.td_lambda))
        samples, counts = self.past.samples(
            slots, self.first_plies[slots], last_plies, rewards, lambda games: self.value_targets(games, config)
        )
        self._ended.append(np.stack([self.games[slots], counts, self._first_weights[slots]], axis=1))
        return samples


PAST = "states", "policies", "values", "to_play", "explored"


class Past:
    """All plies that were played in each slot."""

    def __init__(self, game: Game, num_slots: int):
        self._game, described = game, saved_arrays(game, num_slots)
        self.states, self.policies, self.values, self.to_play, self.explored = (
            described[f"past_{name}"].zeros() for name in PAST
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays by their names in `saved_arrays`."""
        return {f"past_{name}": getattr(self, name) for name in PAST}

    def value_so_far(self, states: np.ndarray) -> np.ndarray:
        """The value `float32[...]`, or 0, of the points along the way; it comes to what the network says of states."""
        if self._game.points_word is None:
            return np.zeros(1, np.float32)
        points, score = points_so_far(states, self._game.points_word), self._game.score
        return (points / score.size if score else points).astype(np.float32)

    def samples(
        self, slots: np.ndarray, first_plies: np.ndarray, last_plies: np.ndarray, rewards: np.ndarray,
        targets_of: Callable[[Recordings], Any],
    ) -> tuple[Samples, np.ndarray]:  # fmt: skip
        """The samples of the games in `slots`, game after game, and their number of each game.

        `first_plies`: the first ones that were searched. `rewards`: the results, for whoever played the last plies. All
        of a ply at once: a loop over games in Python would keep the other threads waiting.
        """
        rows, plies = np.arange(len(slots)), np.arange(last_plies.max() + 1)
        kinds = ((), bool), (self._game.value_shape, np.float32)
        done, all_rewards = (np.zeros((len(rows), len(plies), *shape), kind) for shape, kind in kinds)
        done[rows, last_plies], all_rewards[rows, last_plies] = True, rewards
        past = slots, slice(len(plies))
        explored = (self.explored[past] == 1) & (plies <= last_plies[:, None])
        states = self.states[past]
        so_far = self.value_so_far(states)
        games = record(self.to_play[past], done, all_rewards, self.values[past] + so_far, explored)
        kept = games.known & (plies >= first_plies[:, None])
        games = games._replace(
            known=kept, z=np.where(kept.reshape(kept.shape + (1,) * (games.z.ndim - 2)), games.z, np.float32(0))
        )
        targets = check_targets(targets_of(games), games, so_far)
        z = games.z if self._game.points_word is None else np.clip(games.z - so_far, -1.0, 1.0)
        samples = Samples(states[kept], self.policies[past][kept], z[kept], targets[kept])
        return samples, kept.sum(axis=1)


def saved_arrays(game: Game, slots: int | str = "slots") -> dict[str, Array]:
    """The arrays of games in progress, in any number of slots or in so many, by the names that files have for them."""
    history = slots, game.max_plies
    return {
        "games": Array(np.int64, (slots,), 0),
        "plies": Array(np.int64, (slots,), 0, game.max_plies - 1),
        "first_plies": Array(np.int64, (slots,), 0, game.max_plies - 1),
        "states": Array(np.uint64, (slots, game.state_words)),
        "to_play": Array(np.int8, (slots,), 0, game.num_players - 1),
        "past_states": Array(np.uint64, (*history, shown_words(game))),
        "past_policies": policies_of(game, *history),
        "past_values": Array(np.float32, (*history, *game.value_shape), -1.0 - ROUNDING, 1.0 + ROUNDING),
        "past_to_play": Array(np.int8, history, 0, game.num_players - 1),
        "past_explored": Array(np.int8, history, 0, 1),
        "next_game": Array(np.int64, (), 0),
    }
