"""Settings of chess runs."""

from __future__ import annotations

from dataclasses import replace

from alphazero.game import Game
from alphazero.nets.resnet import NetConfig
from alphazero.search.mcts import SearchConfig
from alphazero.training.config import (
    EvaluationConfig,
    GateConfig,
    LearnerConfig,
    ReplayConfig,
    RunConfig,
    SelfPlayConfig,
)


def presets(game: Game) -> dict[str, RunConfig]:
    """`quick`: half an hour on a laptop; `standard`: a night on a laptop, or a GPU in less; `strong`: a GPU."""
    small = game.num_actions < 1000
    quick = RunConfig(
        generations=200,
        minutes=30.0,
        net=NetConfig(blocks=4, channels=32),
        search=SearchConfig(num_simulations=32, gumbel_actions=8),
        self_play=SelfPlayConfig(
            games_per_generation=256 if small else 64,
            num_slots=256 if small else 64,
            random_plies=4,
            td_lambda=0.95,
        ),
        replay=ReplayConfig(window_max=20 if small else 10),
        learner=LearnerConfig(batch_size=512, learning_rate=4e-3, sample_reuse=1.6),
        gate=GateConfig(enabled=False),  # a third of the games is drawn, so a better net seldom gets 55%
        evaluation=EvaluationConfig(opponents=("random", "greedy", "minimax:3"), games=100 if small else 40),
    )
    standard = replace(
        quick,
        generations=1000,
        minutes=0.0,
        net=NetConfig(blocks=6, channels=64),
        search=SearchConfig(num_simulations=64, gumbel_actions=8),
        self_play=replace(quick.self_play, num_slots=256, games_per_generation=512, td_lambda=0.9),
    )
    strong = replace(
        standard,
        generations=4000,
        net=NetConfig(blocks=10, channels=128, head_channels=32, value_hidden=128),
        self_play=replace(standard.self_play, games_per_generation=2048),
    )
    return {"quick": quick, "standard": standard, "strong": strong}
