"""Settings of dobutsu runs."""

from __future__ import annotations

from dataclasses import replace

from alphazero.game import Game
from alphazero.nets.resnet import NetConfig
from alphazero.search.mcts import SearchConfig
from alphazero.training.config import EvaluationConfig, GateConfig, LearnerConfig, RunConfig, SelfPlayConfig


def presets(game: Game) -> dict[str, RunConfig]:
    """`quick`: a quarter of an hour on a laptop; `standard`: two hours; `strong`: a GPU."""
    quick = RunConfig(
        generations=200,
        minutes=15.0,
        net=NetConfig(blocks=3, channels=48),
        search=SearchConfig(num_simulations=32, gumbel_actions=8),
        self_play=SelfPlayConfig(games_per_generation=512, num_slots=256, random_plies=4, td_lambda=0.95),
        learner=LearnerConfig(batch_size=512, learning_rate=4e-3, sample_reuse=1.6),
        gate=GateConfig(games=40, simulations=8),
        evaluation=EvaluationConfig(opponents=("random", "greedy", "minimax:4")),
    )
    standard = replace(quick, generations=1000, minutes=120.0, net=NetConfig(blocks=4, channels=64))
    return {"quick": quick, "standard": standard, "strong": replace(standard, generations=4000, minutes=0.0)}
