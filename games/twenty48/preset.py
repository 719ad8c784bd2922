"""Settings of 2048 runs."""

from __future__ import annotations

from dataclasses import replace

from alphazero.game import Game
from alphazero.nets.resnet import NetConfig
from alphazero.search.mcts import SearchConfig
from alphazero.training.config import EvaluationConfig, GateConfig, LearnerConfig, RunConfig, SelfPlayConfig


def presets(game: Game) -> dict[str, RunConfig]:
    """`quick`: fifteen minutes on two cores; `standard`: an hour; `strong`: as long as you like.

    Dice make games differ, so that longer runs need no noise. Their returns look ever fewer plies ahead: what a whole
    game brings is mostly luck.
    """
    quick = RunConfig(
        generations=10_000,
        minutes=15,
        net=NetConfig(blocks=2, channels=32),
        search=SearchConfig(num_simulations=16, gumbel_actions=4, gumbel_value_scale=0.5),
        self_play=SelfPlayConfig(games_per_generation=64, num_slots=128, td_lambda=0.99),
        learner=LearnerConfig(batch_size=512, sample_reuse=2),
        gate=GateConfig(enabled=False),  # one game in a hundred seeds takes longer than a generation
        evaluation=EvaluationConfig(opponents=("random", "greedy"), games=100, simulations=50),
    )
    standard = replace(
        quick,
        minutes=60,
        search=replace(quick.search, num_simulations=24, noise_fraction=0.0),
        self_play=replace(quick.self_play, games_per_generation=128, td_lambda=0.9, td_lambda_after=8192),
    )
    return {"quick": quick, "standard": standard, "strong": replace(standard, minutes=600)}
