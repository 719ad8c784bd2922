"""The coach of a run: the loop of AlphaZero, and all that its steps share.

The steps are in `parts/`, and each adds its figures to the generation; docs/method.md says why they are as they are.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

from alphazero.fingerprint import name_rules
from alphazero.invocation import option
from alphazero.players.player import Player
from alphazero.storage.files import write_sealed_json
from alphazero.storage.formats import EVALUATION, EVALUATION_SEAL
from alphazero.storage.run_folder import RunFolder
from alphazero.training.parts.gate import benchmark_figures, judge, net_player, play_matches, score
from alphazero.training.parts.journal import Journal, TensorBoard, Tracker
from alphazero.training.parts.lineup import Lineup, Run
from alphazero.training.parts.pace import Pace
from alphazero.training.parts.resume import begin, commit, keep, read_saved, restore, save
from alphazero.training.parts.steps import learn, play
from alphazero.training.plan import RunPlan
from alphazero.training.replay_buffer import ReplayBuffer
from alphazero.training.selfplay.calibration import compile_all

logger = logging.getLogger(__name__)


class Coach(Run):
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
        self,
        plan: RunPlan,
        folder: RunFolder,
        trackers: Sequence[Tracker] = (),
        stop: threading.Event | None = None,
    ):
        """Set `stop` from any thread, and `run` and `evaluate` raise Stopped within about a second."""
        self.plan, self.folder, self.config = plan, folder, plan.config
        self.stop = stop or threading.Event()
        self.pace = Pace(plan.config)
        self._trackers = trackers

    def run(self) -> None:
        """Trains until the generations or the minutes are used up; raises Stopped when `stop` is set."""
        if self.lineup.grows:
            logger.info("%s plays until the network of the new sizes passes the gate", self.config.initial_net)
        if self.pace.is_over:
            logger.info(
                "there is nothing left to train: %s and %s count from the beginning of the run",
                option("generations"), option("minutes"),
            )  # fmt: skip
        while not self.pace.is_over:
            generation = self.journal.begin(self.pace.generation + 1)
            # the best net plays against itself
            samples = play(self, generation)
            if not len(samples):  # the minutes are used up before a game was over
                break
            # the samples join the replay window, from which the candidate learns
            keep(self, generation, samples)
            learn(self, generation, len(samples))
            # the candidate meets the best net; the figure `promoted` is the verdict
            judge(self, generation)
            save(self, generation)
            # if it is promoted, it plays from now on
            self.lineup.take_turns(generation)
            # the game's benchmark
            score(self, generation)
            # all that the next generation starts from; the manifest comes last and makes the generation count
            commit(self, generation)
            self.journal.end(generation)

    def prepare(self) -> None:
        """Compiles the search, makes the nets and workers, and reads the run or begins it; raises InputError."""
        plan, found = self.plan, read_saved(self.plan, self.folder)
        logger.info("getting ready")
        _, saved = found or (None, None)
        self.rules = name_rules(plan.loaded.game)
        lineup = self.lineup = Lineup(
            plan, self.folder, self.stop, saved.best if saved else None, saved.inference if saved else None
        )
        self.window, self.window_files = ReplayBuffer(lineup.kernels, plan.config.replay), {}
        try:
            lineup.make(saved.slots if saved else None)
            logger.info("%s", lineup.workers.describe())
            if prospect := self.pace.prospect(plan.loaded.game, lineup.workers.network_rate):
                logger.info("%s", prospect)
            if found:
                restore(self, *found)
            else:
                begin(self)
            lineup.workers.start()
            compile_all(lineup.kernels, plan.config.self_play, plan.config.search, lineup.best)
            lineup.workers.get_ready()  # last: processes find on disk what was compiled here
            trackers = TensorBoard(self.folder.path), *self._trackers
            self.journal = Journal(self.folder, self.pace, trackers, lambda: lineup.cpu_seconds)
            loaded = plan.loaded
            self.benchmark = loaded.make_benchmark(loaded.game) if loaded.make_benchmark else None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the run's processes; a second call does nothing."""
        if hasattr(self, "lineup"):
            self.lineup.close()

    def __enter__(self) -> Coach:
        self.prepare()
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def evaluate(self, opponents: Sequence[Player]) -> dict[str, Any]:
        """The best net's `benchmark` figures and its `matches`; written to `evaluation.json`, too."""
        matches = play_matches(self, opponents)
        figures = benchmark_figures(self.benchmark, net_player(self, "best", self.lineup.best, 0))
        evaluation = {"generation": self.lineup.best_generation, "benchmark": figures, "matches": matches}
        self.folder.check()
        write_sealed_json(self.folder.path / EVALUATION, evaluation, EVALUATION_SEAL)
        return evaluation
