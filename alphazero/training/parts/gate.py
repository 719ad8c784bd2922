"""The matches of a run: the gate, in which a better candidate takes over, and those at the end; the benchmark."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from alphazero.errors import count_of
from alphazero.invocation import option
from alphazero.matches.arena import get_ready, play_in_time
from alphazero.matches.result import MatchResult
from alphazero.matches.seating import boards_of, whole_groups
from alphazero.nets.neural_net import NeuralNet
from alphazero.players.net_players import make_net_player
from alphazero.players.player import Player
from alphazero.progress import Progress
from alphazero.training.parts.journal import Generation, describe_progress, show_duration
from alphazero.training.parts.lineup import Benchmark, Run
from alphazero.training.parts.pace import MATCHES_SHARE, MOST_GATE_SHARE, games_that_fit

logger = logging.getLogger(__name__)

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
    plies = boards_of(lineup.kernels.game) * generation.figures["plies_per_game"]
    wanted = whole_groups(lineup.kernels.game, run.pace.gate_games(plies * gate.simulations / max(rate, 1e-9), last))
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


# --- the benchmark, and the matches at the end ---


def score(run: Run, generation: Generation) -> None:
    """Adds the benchmark's figures of the candidate, which `save` has written, and those of the run as a whole."""
    lineup = run.lineup
    found = benchmark_figures(run.benchmark, net_player(run, "candidate", lineup.net, 0))
    # a network of new sizes has much to learn before the gate says anything about the run
    since_promotion = None if lineup.grows else generation.number - lineup.best_generation
    progress = describe_progress(run.journal.lines, found, since_promotion)
    generation.figures = found | generation.figures | progress  # the run's own figures keep their names


def benchmark_figures(benchmark: Benchmark | None, player: Player) -> dict[str, float]:
    """The figures that are finite; none without a benchmark."""
    figures = {name: float(figure) for name, figure in benchmark(player).items()} if benchmark else {}
    finite = {name: figure for name, figure in figures.items() if math.isfinite(figure)}
    if wrong := sorted(figures.keys() - finite.keys()):
        logger.warning("the game's benchmark gave no finite numbers for %s, so they are left out", ", ".join(wrong))
    return finite


def describe_matches(run: Run, opponents: Sequence[Player]) -> str:
    """A sentence on what will be played after the last generation."""
    if not opponents:
        return "after the last generation the best net plays no games"
    names = "each of " * (len(opponents) > 1) + ", ".join(opponent.name for opponent in opponents)
    games = whole_groups(run.lineup.kernels.game, run.plan.config.evaluation.games)
    limit = run.pace.share_of_minutes(MATCHES_SHARE)
    sentence = f"after the last generation the best net plays {count_of(games, 'game')} against {names}"
    if math.isfinite(limit):
        sentence += f"; that takes additional time after {option('minutes')}, about {show_duration(limit)} at most"
    return sentence


def play_matches(run: Run, opponents: Sequence[Player]) -> list[dict[str, Any]]:
    """The results, with --minutes of fewer games where they are slow; an opponent may have no match then."""
    results, settings = [], run.plan.config.evaluation
    num_games = whole_groups(run.lineup.kernels.game, settings.games)
    for opponent in opponents:
        run.journal.enter(f"matches at the end: {count_of(num_games, 'game')} against {opponent.name}")
        seconds = run.pace.share_of_minutes(MATCHES_SHARE) / len(opponents)
        match = play_against(run, opponent, num_games, seconds)
        if match.num_games:
            results.append({
                "opponent": opponent.name, "simulations": settings.simulations, "opening_plies": match.opening_plies,
                **match.as_dict(),
            })  # fmt: skip
        else:
            logger.warning(
                "no two games against %s were over in %s, so nothing is known about it: give more %s, or fewer %s",
                opponent.name, show_duration(seconds), option("minutes"), option("evaluation.simulations"),
            )  # fmt: skip
    return results


def play_against(run: Run, opponent: Player, num_games: int, seconds: float) -> MatchResult:
    """A match of the best net that is over after so many seconds, of as many games as fit."""
    lineup, simulations = run.lineup, run.plan.config.evaluation.simulations
    player, plies = net_player(run, "best", lineup.best, simulations), 0.0
    for line in run.journal.lines[-1:]:
        plies = line["plies_per_game"]
        if rate := lineup.rate_of_match(line):  # before all games begin side by side, and each ply takes long
            own = plies * boards_of(lineup.kernels.game) / 2
            num_games = whole_groups(
                lineup.kernels.game, games_that_fit(num_games, 2, own * simulations / rate, seconds)
            )
    if lineup.kernels.game.compiled:  # what is compiled takes no time of the match
        for each in (player, opponent):
            get_ready(lineup.kernels, each)
    match = play_in_time(lineup.kernels, player, opponent, num_games, run.plan.seed, seconds, plies, run.stop)
    with Progress(f"evaluation against {opponent.name}") as progress:
        for result, share in match:
            text = f", score {result.score:.2f}" if result.num_games else ""
            progress.show(share, f"{result.num_games} of {num_games} games{text}")
    return result
