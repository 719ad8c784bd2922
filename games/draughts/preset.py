"""Settings of draughts runs, after those of Othello."""

from __future__ import annotations

from dataclasses import replace

from alphazero.game import Game
from alphazero.nets.resnet import NetConfig
from alphazero.search.mcts import SearchConfig
from alphazero.training.config import EvaluationConfig, GateConfig, LearnerConfig, RunConfig, SelfPlayConfig


def presets(game: Game) -> dict[str, RunConfig]:
    """`quick`: half an hour on a laptop; `standard`: a night on a laptop, or a GPU in less; `strong`: a GPU."""
    quick = RunConfig(
        generations=60,
        minutes=30.0,
        net=NetConfig(blocks=3, channels=32),
        search=SearchConfig(num_simulations=24, gumbel_actions=8),
        self_play=SelfPlayConfig(games_per_generation=256, num_slots=256, random_plies=8, td_lambda=0.95),
        learner=LearnerConfig(batch_size=512, learning_rate=4e-3, sample_reuse=1.6),
        gate=GateConfig(games=40, simulations=4),
        evaluation=EvaluationConfig(opponents=("random", "greedy", "minimax:4")),
    )
    standard = replace(
        quick,
        generations=800,
        minutes=0.0,
        net=NetConfig(blocks=5, channels=64),
        search=SearchConfig(num_simulations=48, gumbel_actions=8),
        gate=GateConfig(games=40, simulations=8),
    )
    strong = replace(
        standard,
        generations=1600,
        net=NetConfig(blocks=8, channels=96, head_channels=32, value_hidden=128),
        self_play=replace(standard.self_play, games_per_generation=1024),
    )
    return {"quick": quick, "standard": standard, "strong": strong}
