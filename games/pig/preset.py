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
        generations=50,
        net=NetConfig(blocks=2, channels=32),
        # the values of both actions differ little: visits of PUCT hardly tell which is better
        search=SearchConfig(num_simulations=16, gumbel_actions=2),
        # the dice decide most of a game: twice the games teach more than each of them learned twice; and searches look
        # at bad actions too, so their values are too low, and little of them enters the targets
        self_play=SelfPlayConfig(games_per_generation=1024, num_slots=512, td_lambda=0.98),
        learner=LearnerConfig(batch_size=512, sample_reuse=1),
        gate=GateConfig(enabled=False),  # between good nets the dice decide
        evaluation=EvaluationConfig(opponents=("random", "solver"), games=400),
    )
    return {"quick": quick, "standard": replace(quick, generations=100), "strong": replace(quick, generations=400)}
