"""The steps of a generation that write: its samples, its net, and all that the next one starts from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from alphazero.training.parts.journal import Generation
from alphazero.training.parts.lineup import Lineup
from alphazero.training.parts.pace import Pace
from alphazero.training.parts.store import Store
from alphazero.training.replay_buffer import ReplayBuffer, Samples
from alphazero.training.selfplay.shown_games import records_of_games, write_shown


class Saving:
    """Writes by the store."""

    def __init__(self, lineup: Lineup, pace: Pace, window: ReplayBuffer, store: Store):
        self._lineup, self._pace, self._window, self._store = lineup, pace, window, store

    def begin(self) -> None:
        """Writes generation 0."""
        self._lineup.begin()
        self._commit({})

    def keep(self, generation: Generation, samples: Samples) -> None:
        """Adds the samples to the window, and keeps a few of their games for people."""
        workers, plan, folder = self._lineup.workers, self._lineup.plan, self._store.folder
        self._store.add_samples(generation.number, samples, self._window, workers.arrays())
        game, player = plan.loaded.game, f"generation {self._lineup.best_generation}"
        name, finished = str(folder.config.get("game", game.name)), workers.all[0].finished_games()
        write_shown(folder.path, generation.number, records_of_games(game, name, finished, plan.seed, player))

    def save(self, generation: Generation) -> None:
        """Writes the candidate."""
        generation.enter("saving")
        self._pace.generation = generation.number
        self._lineup.save(generation)

    def commit(self, generation: Generation) -> None:
        """Writes all that the next generation starts from; the manifest comes last and makes it count."""
        self._pace.seconds += generation.seconds
        generation.add_times(self._pace.seconds)
        self._commit(generation.figures)

    def _commit(self, figures: Mapping[str, Any]) -> None:
        lineup, pace = self._lineup, self._pace
        self._store.commit(
            pace.generation, lineup.best_generation, lineup.learner.trainer, lineup.games_in_progress(), self._window,
            {"seconds": pace.seconds, "inference": lineup.inference, **lineup.workers.state()}, figures,
        )  # fmt: skip
        lineup.workers.committed()
