"""The loop of AlphaZero: play, learn, judge, save; again, until the pace says that the run is over.

What each step does is in `parts/`; docs/method.md says why. Each step adds its figures to the generation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from alphazero.training.parts.journal import Generation, Journal
from alphazero.training.parts.pace import Pace
from alphazero.training.replay_buffer import Samples

Step = Callable[[Generation], None]


@dataclass(frozen=True)
class Run:
    """The parts of a run, as its loop calls them."""

    pace: Pace
    journal: Journal
    play: Callable[[Generation], Samples]
    """The best net plays against itself; the samples of its games."""
    keep: Callable[[Generation, Samples], None]
    """Adds the samples to the replay window, in memory and on disk."""
    learn: Callable[[Generation, int], None]
    """The candidate learns from the window, which has so many new samples."""
    judge: Step
    """The candidate meets the best net; the figure `promoted` is the verdict."""
    save: Step
    """Writes the candidate."""
    take_turns: Step
    """The candidate plays from now on, if it is promoted."""
    score: Step
    """The game's benchmark scores the candidate."""
    commit: Step
    """Writes what the next generation starts from; the manifest comes last and makes the generation count."""


def train(run: Run) -> None:
    """Trains until the run is over; raises Stopped when it is to end early."""
    while not run.pace.is_over:
        generation = run.journal.begin(run.pace.generation + 1)
        samples = run.play(generation)
        if not len(samples):  # the minutes are used up before a game was over
            break
        run.keep(generation, samples)
        run.learn(generation, len(samples))
        run.judge(generation)
        run.save(generation)
        run.take_turns(generation)
        run.score(generation)
        run.commit(generation)
        run.journal.end(generation)
