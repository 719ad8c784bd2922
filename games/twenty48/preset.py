"""Settings of 2048 runs."""

from __future__ import annotations

from dataclasses import replace

from alphazero.game import Game
from alphazero.search.mcts import SearchConfig
from alphazero.training.config import (
    EvaluationConfig,
    GateConfig,
    LearnerConfig,
    ReplayConfig,
    RunConfig,
    SelfPlayConfig,
)
from games.twenty48.net import GroupsConfig


def presets(game: Game) -> dict[str, RunConfig]:
    """`quick`: fifteen minutes on two cores; `standard`: an hour; `strong`: as long as you like."""
    quick = RunConfig(
        generations=10_000,
        minutes=15,
        net=GroupsConfig(),
        search=SearchConfig(num_simulations=16, gumbel_actions=4, gumbel_value_scale=0.5),
        # values grow by the points of some ten plies a generation, so there are many, and first results alone
        self_play=SelfPlayConfig(games_per_generation=64, num_slots=64, td_lambda=0.9, td_lambda_after=128),
        replay=ReplayConfig(window_start=6, window_max=8, merge=False),
        # higher rates let the values of neighbouring positions differ by more than those of two actions
        learner=LearnerConfig(batch_size=512, learning_rate=1e-3, final_learning_rate=5e-5, sample_reuse=4),
        gate=GateConfig(enabled=False),  # one game in a hundred seeds takes longer than a generation
        evaluation=EvaluationConfig(opponents=("random", "greedy"), games=100, simulations=50),
    )
    return {"quick": quick, "standard": replace(quick, minutes=60), "strong": replace(quick, minutes=600)}
