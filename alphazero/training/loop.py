"""The loop of AlphaZero: play, learn, judge, save; again, until the pace says that the run is over.

What each step does is in `parts/`; docs/method.md says why. Each step adds its figures to the generation.
"""

from __future__ import annotations

from alphazero.training.parts.gate import judge, score
from alphazero.training.parts.lineup import Run
from alphazero.training.parts.resume import commit, keep, save
from alphazero.training.parts.steps import learn, play


def train(run: Run) -> None:
    """Trains until the run is over; raises Stopped when it is to end early."""
    while not run.pace.is_over:
        generation = run.journal.begin(run.pace.generation + 1)
        # the best net plays against itself
        samples = play(run, generation)
        if not len(samples):  # the minutes are used up before a game was over
            break
        # the samples join the replay window, from which the candidate learns
        keep(run, generation, samples)
        learn(run, generation, len(samples))
        # the candidate meets the best net; the figure `promoted` is the verdict
        judge(run, generation)
        save(run, generation)
        # if it is promoted, it plays from now on
        run.lineup.take_turns(generation)
        # the game's benchmark
        score(run, generation)
        # all that the next generation starts from; the manifest comes last and makes the generation count
        commit(run, generation)
        run.journal.end(generation)
