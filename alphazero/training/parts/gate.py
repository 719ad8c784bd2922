"""The third step of a generation: the candidate meets the best net, and takes over if it is better."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from alphazero.errors import count_of
from alphazero.matches.arena import play_in_time
from alphazero.nets.neural_net import NeuralNet
from alphazero.players.net_players import make_net_player
from alphazero.players.player import Player
from alphazero.progress import Progress
from alphazero.training.parts.journal import Generation
from alphazero.training.parts.lineup import Run
from alphazero.training.parts.pace import MOST_GATE_SHARE

UNCONTESTED: dict[str, Any] = {"gate_score": None, "promoted": True}
"""The gate's figures of a net that had no gate to pass."""


def judge(run: Run, generation: Generation) -> None:
    """The match, or none where the gate is off; the last one of a run asks for more than half alone."""
    generation.enter("gate")
    gate, lineup, begin = run.plan.config.gate, run.lineup, time.monotonic()
    if not gate.enabled:
        generation.figures |= UNCONTESTED
        return
    last = run.pace.is_last(generation.seconds)
    rate = lineup.rate_of_match(generation.figures)
    wanted = run.pace.gate_games(generation.figures["plies_per_game"] * gate.simulations / max(rate, 1e-9), last)
    threshold = _threshold(run, wanted, last)
    candidate = net_player(run, "candidate", lineup.net, gate.simulations)
    best = net_player(run, "best", lineup.best, gate.simulations)
    seconds, seed = run.pace.share_of_minutes(MOST_GATE_SHARE), run.plan.seed + generation.number
    match = play_in_time(lineup.kernels, candidate, best, wanted, seed, seconds, 0.0, run.stop)
    with Progress(f"generation {generation.number}: gate") as progress:
        for result, share in match:
            games = count_of(result.num_games, "game")
            progress.show(share, f"score {result.score:.3f} after {games} (promoted from {threshold:.3f})")
            if result.decides(threshold, wanted):
                break
    played = result.num_games
    generation.figures |= {
        "gate_score": round(result.score, 4) if played else None,
        # where no two games are over in time, nothing speaks against the net that has learned more
        "promoted": not played or result.score >= _threshold(run, played, last),
        "gate_games": played,
        "gate_distinct_games": result.distinct_games,
        "gate_seconds": round(time.monotonic() - begin, 3),
    }


def _threshold(run: Run, num_games: int, last: bool) -> float:
    threshold = run.plan.config.gate.threshold
    return min(threshold, (num_games + 1) / (2 * num_games)) if last else threshold


def net_player(run: Run, name: str, net: NeuralNet, simulations: int) -> Player:
    """The network with a search of so many simulations; its policy alone for 0."""
    plan = run.plan
    config = replace(plan.config.search, num_simulations=simulations, noise_fraction=0.0) if simulations else None
    return make_net_player(name, run.lineup.kernels, net, config, seed=plan.seed, threads=plan.threads)
