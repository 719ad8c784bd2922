"""Settings of Go runs, after those of Othello."""

from __future__ import annotations

from dataclasses import replace

from alphazero.game import Game
from alphazero.nets.resnet import NetConfig
from alphazero.search.mcts import SearchConfig
from alphazero.training.config import EvaluationConfig, GateConfig, LearnerConfig, RunConfig, SelfPlayConfig


def presets(game: Game) -> dict[str, RunConfig]:
    """`quick`: a first impression; `standard`: a night on a laptop for the small boards; `strong`: a GPU."""
    size = game.observation_shape[1]
    quick = RunConfig(
        generations=40,
        net=NetConfig(blocks=3, channels=32),
        search=SearchConfig(num_simulations=32, gumbel_actions=8),
        self_play=SelfPlayConfig(games_per_generation=256, num_slots=128, random_plies=size, td_lambda=0.95),
        learner=LearnerConfig(batch_size=512, learning_rate=4e-3, sample_reuse=2.0),
        gate=GateConfig(games=40, simulations=8),
        evaluation=EvaluationConfig(opponents=("random", "greedy", "mcts:400")),
    )
    standard = replace(
        quick,
        generations=400,
        net=NetConfig(blocks=5, channels=64),
        search=SearchConfig(num_simulations=64, gumbel_actions=16),
        self_play=replace(quick.self_play, games_per_generation=512),
    )
    strong = replace(
        standard,
        generations=800,
        net=NetConfig(blocks=8, channels=96, head_channels=32, value_hidden=128),
        self_play=replace(standard.self_play, games_per_generation=2048),
    )
    return {"quick": quick, "standard": standard, "strong": strong}
