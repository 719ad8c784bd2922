"""The coach of a run: its parts, put together."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

from alphazero.errors import count_of
from alphazero.invocation import option
from alphazero.players.player import Player
from alphazero.storage.files import write_sealed_json
from alphazero.storage.formats import EVALUATION, EVALUATION_SEAL
from alphazero.storage.run_folder import RunFolder
from alphazero.training.loop import Run, train
from alphazero.training.parts.gate import Gate, net_player
from alphazero.training.parts.journal import Journal, show_duration
from alphazero.training.parts.learning import LearningStep
from alphazero.training.parts.lineup import Lineup
from alphazero.training.parts.pace import Pace
from alphazero.training.parts.resume import Saving, read_saved
from alphazero.training.parts.scores import LastMatches, Scores
from alphazero.training.parts.self_play import SelfPlayStep
from alphazero.training.parts.store import Store
from alphazero.training.parts.trackers import TensorBoard, Tracker
from alphazero.training.plan import RunPlan
from alphazero.training.replay_buffer import ReplayBuffer
from alphazero.training.selfplay.calibration import compile_all

logger = logging.getLogger(__name__)


class Coach:
    """One run: `prepare` gets it ready, `run` goes on from the newest generation in the folder to the end.

    Use it in a `with` statement, which prepares the run and ends its processes. `az.train` does all of this:

    >>> import alphazero as az
    >>> from alphazero.storage.run_folder import RunFolder
    >>> from alphazero.training.plan import RunPlan
    >>> run = az.load_run("runs/tictactoe-1")
    >>> plan = RunPlan(run.loaded, run.config, devices=["cpu"], threads=1, seed=0, deterministic=True)
    >>> with RunFolder.create("runs/by-hand", {}) as folder, az.Coach(plan, folder) as coach:
    ...     coach.run()
    """

    def __init__(
        self, plan: RunPlan, folder: RunFolder, trackers: Sequence[Tracker] = (), stop: threading.Event | None = None
    ):
        self.plan, self.folder, self.config = plan, folder, plan.config
        self.stop = stop or threading.Event()
        """Set it from any thread, and `run` and `evaluate` raise Stopped within about a second; all generations so far
        are saved."""
        self._trackers = trackers
        self.pace = Pace(plan.config)
        self.lineup: Lineup
        """There from `prepare` on, as are the next five."""
        self.window: ReplayBuffer
        self.journal: Journal
        self.scores: Scores
        self.matches: LastMatches
        self.steps: Run

    def prepare(self) -> None:
        """Compiles the search, makes the nets and starts the workers; reads the run from its folder, or begins it.

        Raises InputError about what does not fit, before anything of a run that goes on is changed.
        """
        plan, found = self.plan, read_saved(self.plan, self.folder)
        logger.info("getting ready")
        store, saved = Store(self.folder, plan), found.state if found else None
        playing = store.checkpoint(saved.best) if saved else None
        lineup = self.lineup = Lineup(plan, store, self.stop, playing, saved.inference if saved else None)
        self.window = ReplayBuffer(lineup.kernels, plan.config.replay)
        saving = Saving(lineup, self.pace, self.window, store)
        try:
            lineup.make(saved.slots if saved else None, found.manifest.generation if found else 0)
            logger.info("%s", lineup.workers.describe())
            if found:
                saving.restore(found)
            else:
                saving.begin()
            lineup.workers.start()
            compile_all(lineup.kernels, plan.config.self_play, plan.config.search, lineup.best)
            lineup.workers.get_ready()  # last: processes find on disk what was compiled here
            self._put_together(store, saving)
        except BaseException:
            self.close()
            raise

    def _put_together(self, store: Store, saving: Saving) -> None:
        lineup, pace, stop, loaded = self.lineup, self.pace, self.stop, self.plan.loaded
        trackers = TensorBoard(self.folder.path), *self._trackers
        journal = self.journal = Journal(self.folder, pace, trackers, lambda: lineup.cpu_seconds)
        self.scores = Scores(lineup, journal, loaded.make_benchmark(loaded.game) if loaded.make_benchmark else None)
        self.matches = LastMatches(lineup, pace, journal, stop)
        self.steps = Run(
            pace, journal, SelfPlayStep(lineup, pace, journal, stop).play, saving.keep,
            LearningStep(lineup, pace, self.window, store, stop).learn, Gate(lineup, pace, journal, stop).judge,
            saving.save, lineup.take_turns, self.scores.add, saving.commit,
        )  # fmt: skip

    def close(self) -> None:
        """Ends the run's processes; a second call does nothing."""
        if hasattr(self, "lineup"):
            self.lineup.close()

    def __enter__(self) -> Coach:
        self.prepare()
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def run(self) -> None:
        """Trains until the generations or the minutes are used up; raises Stopped when `stop` is set."""
        if self.lineup.grows:
            logger.info("%s plays until the network of the new sizes passes the gate", self.config.initial_net)
        if self.pace.is_over:
            logger.info(
                "there is nothing left to train: %s and %s count from the beginning of the run, which has %s in %s",
                option("generations"), option("minutes"), count_of(self.pace.generation, "generation"),
                show_duration(self.pace.seconds),
            )  # fmt: skip
        train(self.steps)

    def evaluate(self, opponents: Sequence[Player]) -> dict[str, Any]:
        """The best network's `benchmark` figures and its `matches` against `opponents`, as many games as configured.

        With --minutes the games are fewer where they are slow, and there may be none. Written to `evaluation.json` too.
        """
        matches = self.matches.play(opponents)
        best = net_player(self.lineup, "best", self.lineup.best, 0)
        evaluation = {
            "generation": self.lineup.best_generation, "benchmark": self.scores.of(best), "matches": matches,
        }  # fmt: skip
        self.folder.check()
        write_sealed_json(self.folder.path / EVALUATION, evaluation, EVALUATION_SEAL)
        return evaluation
