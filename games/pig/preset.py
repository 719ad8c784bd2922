"""Settings of Pig runs."""

from __future__ import annotations

from dataclasses import replace

from alphazero.game import Game
from alphazero.nets.resnet import NetConfig
from alphazero.search.mcts import SearchConfig
from alphazero.training.config import EvaluationConfig, GateConfig, LearnerConfig, RunConfig, SelfPlayConfig


def presets(game: Game) -> dict[str, RunConfig]:
    """`quick`: under five minutes on two cores; the others are the same, for longer."""
    quick = RunConfig(
        generations=60,
        net=NetConfig(blocks=2, channels=32),
        # the values of both actions differ little: visits of PUCT hardly tell which is better
        search=SearchConfig(num_simulations=16, gumbel_actions=2),
        self_play=SelfPlayConfig(games_per_generation=512, num_slots=256, td_lambda=0.95),
        learner=LearnerConfig(batch_size=512, sample_reuse=2),
        gate=GateConfig(enabled=False),  # between good nets the dice decide
        evaluation=EvaluationConfig(opponents=("random", "solver"), games=400),
    )
    return {"quick": quick, "standard": replace(quick, generations=120), "strong": replace(quick, generations=400)}
