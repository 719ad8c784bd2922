"""The health of a run: figures of every generation that show what goes wrong, and a line of advice when one does.

The figures are taken before the network learns from the new games, so they are those of positions it has not seen.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alphazero.game.kernels import Kernels
from alphazero.invocation import option
from alphazero.nets.neural_net import NeuralNet
from alphazero.search.evaluator import Evaluator
from alphazero.training.policies import unpacked
from alphazero.training.replay_buffer import Samples

MAX_POSITIONS = 2048
"""Most positions that the network is asked about."""
BINS = 10
"""Intervals of the value in which prediction and outcome are compared."""
FEW_POSITIONS = 5_000
"""A game with more of them has more than a generation's samples, about."""
TREND = 8
"""Generations over which the benchmark's figure should lie near a straight line."""
TINY = 1e-9


def describe_samples(kernels: Kernels, samples: Samples, net: NeuralNet) -> dict[str, Any]:
    """Figures of new samples, and of the network on them:

    `distinct_positions` the share that is left when equal positions and mirror images are merged, of all positions of
    the game where those are fewer than the samples; `policy_entropy` of the policy targets, in nats; `policy_surprise`
    how far they are from the network's policy (Kullback-Leibler divergence, in nats); `value_calibration` `[mean value,
    mean outcome, positions]` for each interval of the network's value, and `value_calibration_error` their mean
    difference, weighted by positions (Guo et al. 2017).
    """
    distinct = np.unique(kernels.canonical(samples.states)[0], axis=0)
    rows = np.linspace(0, len(samples) - 1, min(len(samples), MAX_POSITIONS)).astype(np.int64)
    states, outcomes = kernels.rows(samples.states[rows]), samples.outcomes[rows]
    legal_masks, _, _ = kernels.describe_all(states)
    targets = unpacked(samples.policies[rows], kernels.game.num_actions)
    priors, values = Evaluator(kernels, net, 0)(states, legal_masks)
    log_targets, log_priors = np.log(np.maximum(targets, TINY)), np.log(np.maximum(priors, TINY))
    bins = np.minimum(((values + 1) / 2 * BINS).astype(np.int64), BINS - 1)
    calibration = [
        [float(values[inside].mean()), float(outcomes[inside].mean()), int(inside.sum())]
        for inside in (bins == i for i in range(BINS))
        if inside.any()
    ]
    error = sum(abs(value - outcome) * count for value, outcome, count in calibration) / len(rows)
    return {
        "distinct_positions": round(len(distinct) / min(len(samples), count_positions(kernels) or len(samples)), 4),
        "policy_entropy": round(float((targets * -log_targets).sum(axis=1).mean()), 4),
        "policy_surprise": round(float((targets * (log_targets - log_priors)).sum(axis=1).mean()), 4),
        "value_calibration_error": round(error, 4),
        "value_calibration": [[round(value, 3), round(outcome, 3), count] for value, outcome, count in calibration],
    }


@functools.lru_cache(maxsize=4)
def count_positions(kernels: Kernels) -> int | None:
    """The positions of a small, compiled game without dice that are not over, mirror images as one; else None."""
    if kernels.game.num_outcomes:
        return None
    reached = set[bytes]()
    frontier = kernels.canonical(kernels.start_states(1))[0]
    while len(frontier):
        if not kernels.game.compiled or len(reached) + len(frontier) > FEW_POSITIONS:
            return None
        reached |= {state.tobytes() for state in frontier}
        legal_masks, _, _ = kernels.describe_all(frontier)
        rows, actions = np.nonzero(legal_masks)
        children = frontier[rows]
        kernels.play(children, np.zeros(len(rows), np.int8), actions)
        _, terminal, _ = kernels.describe_all(children)
        found = np.unique(kernels.canonical(children[~terminal])[0], axis=0)
        frontier = found[[state.tobytes() not in reached for state in found]]
    return len(reached)


def oscillation(figures: Sequence[float]) -> float | None:
    """The root mean square distance of the last `TREND` figures from a straight line; None if there are fewer."""
    if len(figures) < TREND:
        return None
    generations, last = np.arange(TREND), np.array(figures[-TREND:])
    line = np.polynomial.Polynomial.fit(generations, last, 1)
    return round(float(np.sqrt(np.mean((last - line(generations)) ** 2))), 5)


@dataclass(frozen=True)
class Check:
    """The range of a healthy figure, and advice for one outside, in which `[learner.sample_reuse]` is a setting."""

    figure: str
    low: float
    high: float
    too_low: str = ""
    too_high: str = ""
    from_generation: int = 1
    """The first generation that is checked: a young network is allowed more."""

    def warning(self, metrics: Mapping[str, Any]) -> str:
        """A sentence on a wrong figure in a line of metrics and its remedy; empty if the figure is right."""
        value = metrics.get(self.figure)
        if value is None or metrics["generation"] < self.from_generation or self.low <= value <= self.high:
            return ""
        advice = self.too_low if value < self.low else self.too_high
        advice = re.sub(r"\[([\w.-]+)\]", lambda found: option(found[1]), advice)
        return f"{self.figure.replace('_', ' ')} is {value:.3g}: {advice}"


CHECKS = (
    Check(
        "sample_reuse", 0.25, 12.0,
        too_low="most samples are never learned from; raise [learner.sample_reuse]",
        too_high="the network may overfit these games; lower [learner.sample_reuse]",
    ),
    Check(
        "distinct_positions", 0.2, 1.0,
        too_low="the games repeat each other; raise [self_play.random_plies] or [self_play.temperature_plies]",
    ),
    Check(
        "policy_entropy", 0.02, float("inf"), from_generation=5,
        too_low="the policy targets are nearly certain, so self-play explores little; raise [self_play.random_plies]",
    ),
    Check(
        "policy_surprise", 0.01, 1.5, from_generation=5,
        too_low="the search hardly changes the network's policy; raise [search.num_simulations]",
        too_high="the network does not follow its search; raise [learner.sample_reuse] or the network's size",
    ),
    Check(
        "value_calibration_error", 0.0, 0.2, from_generation=5,
        too_high="the values are too sure or too unsure; lower [learner.sample_reuse] or raise [replay.window_start]",
    ),
    Check(
        "drawn_positions", 0.0, 0.95, from_generation=5,
        too_high="nearly all games are drawn and teach little; raise [self_play.random_plies]",
    ),
    Check(
        "benchmark_oscillation", 0.0, 0.015, from_generation=TREND + 4,
        too_high="the network forgets and learns again; lower [learner.learning_rate] or raise [replay.window_max]",
    ),
    Check(
        "generations_since_promotion", 0, 12,
        too_high="perhaps it has learned all it can; if not, raise [gate.games] or lower [learner.learning_rate]",
    ),
)  # fmt: skip


def new_warnings(metrics: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """The warnings about a generation, less those about figures that were wrong in the line `before`, or {}."""
    found = ((check, check.warning(metrics)) for check in CHECKS)
    return [warning for check, warning in found if warning and not check.warning(before)]
