"""The plies of games in progress, and the samples that they become when their games are over."""

from __future__ import annotations

import numpy as np

from alphazero.game import Game
from alphazero.search.mcts import SearchResult
from alphazero.storage.arrays import Array
from alphazero.training.config import SelfPlayConfig
from alphazero.training.replay_buffer import ROUNDING, Samples
from alphazero.training.selfplay.value_targets import ValueTargets, check_targets, record


def saved_arrays(game: Game) -> dict[str, Array]:
    """The arrays of games in progress, in any number of slots, by the names that files have for them."""
    history = "slots", game.max_plies
    return {
        "games": Array(np.int64, ("slots",), 0),
        "plies": Array(np.int64, ("slots",), 0, game.max_plies - 1),
        "first_plies": Array(np.int64, ("slots",), 0, game.max_plies - 1),
        "states": Array(np.uint64, ("slots", game.state_words)),
        "to_play": Array(np.int8, ("slots",), 0, 1),
        "past_states": Array(np.uint64, (*history, game.state_words)),
        "past_policies": Array(np.float32, (*history, game.num_actions), 0.0, 1.0 + ROUNDING),
        "past_values": Array(np.float32, history, -1.0 - ROUNDING, 1.0 + ROUNDING),
        "past_to_play": Array(np.int8, history, 0, 1),
        "past_explored": Array(np.int8, history, 0, 1),
        "next_game": Array(np.int64, (), 0),
    }


class Past:
    """All plies that were played in each slot."""

    def __init__(self, game: Game, num_slots: int):
        history = num_slots, game.max_plies
        self.states = np.zeros((*history, game.state_words), np.uint64)
        self.policies = np.zeros((*history, game.num_actions), np.float32)
        self.values = np.zeros(history, np.float32)
        self.to_play = np.zeros(history, np.int8)
        self.explored = np.zeros(history, np.int8)

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays by their names in `saved_arrays`."""
        return {f"past_{name}": array for name, array in vars(self).items()}

    def add(
        self, slots: np.ndarray, plies: np.ndarray, states: np.ndarray, to_play: np.ndarray, found: SearchResult,
        explored: np.ndarray,
    ) -> None:  # fmt: skip
        """A ply of each slot: the position, who moves, what the search found, and whether chance chose the action."""
        self.states[slots, plies] = states
        self.policies[slots, plies] = found.policy
        self.values[slots, plies] = found.values
        self.to_play[slots, plies] = to_play
        self.explored[slots, plies] = explored

    def samples(
        self,
        slots: np.ndarray,
        first_plies: np.ndarray,
        last_plies: np.ndarray,
        rewards: np.ndarray,
        value_targets: ValueTargets,
        config: SelfPlayConfig,
    ) -> tuple[Samples, np.ndarray]:
        """The samples of the games in `slots`, game after game, and their number of each game.

        `first_plies`: the first ones that were searched. `rewards`: the results, for whoever played the last plies. All
        of a ply at once: a loop over games in Python would keep the other threads waiting.
        """
        rows, plies = np.arange(len(slots)), np.arange(last_plies.max() + 1)
        done, all_rewards = np.zeros((len(rows), len(plies)), bool), np.zeros((len(rows), len(plies)), np.float32)
        done[rows, last_plies], all_rewards[rows, last_plies] = True, rewards
        past = slots, slice(len(plies))
        explored = (self.explored[past] == 1) & (plies <= last_plies[:, None])
        games = record(self.to_play[past], done, all_rewards, self.values[past], explored)
        kept = games.known & (plies >= first_plies[:, None])
        games = games._replace(known=kept, z=np.where(kept, games.z, np.float32(0)))
        targets = check_targets(value_targets(games, config), games)
        return Samples(self.states[past][kept], self.policies[past][kept], games.z[kept], targets[kept]), kept.sum(
            axis=1
        )
