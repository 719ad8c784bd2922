"""Settings of Othello runs, after those that learn Connect Four fastest (docs/ablations.md)."""

from __future__ import annotations

from dataclasses import replace

from alphazero.game import Game
from alphazero.nets.resnet import NetConfig
from alphazero.search.mcts import SearchConfig
from alphazero.training.config import EvaluationConfig, GateConfig, LearnerConfig, RunConfig, SelfPlayConfig


def presets(game: Game) -> dict[str, RunConfig]:
    """`quick`: 18 minutes on a laptop; `standard`: a night on a laptop, or a GPU in less; `strong`: a GPU."""
    quick = RunConfig(
        generations=40,
        minutes=18.0,
        net=NetConfig(blocks=3, channels=32),
        search=SearchConfig(num_simulations=16, gumbel_actions=8),
        self_play=SelfPlayConfig(games_per_generation=512, num_slots=256, random_plies=12, td_lambda=0.95),
        learner=LearnerConfig(batch_size=512, learning_rate=4e-3, sample_reuse=1.6),
        gate=GateConfig(games=40, simulations=4),
        evaluation=EvaluationConfig(opponents=("random", "greedy", "minimax:3")),
    )
    standard = replace(
        quick,
        generations=400,
        minutes=0.0,
        net=NetConfig(blocks=5, channels=64),
        search=SearchConfig(num_simulations=32, gumbel_actions=8),
        self_play=replace(quick.self_play, games_per_generation=1024, td_lambda=0.9),
        gate=GateConfig(games=40, simulations=8),
    )
    strong = replace(
        standard,
        generations=800,
        net=NetConfig(blocks=8, channels=96, head_channels=32, value_hidden=128),
        self_play=replace(standard.self_play, games_per_generation=2048),
    )
    return {"quick": quick, "standard": standard, "strong": strong}
