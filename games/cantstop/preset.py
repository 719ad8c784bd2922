"""Settings of Can't Stop runs."""

from __future__ import annotations

from dataclasses import replace

from alphazero.game import Game
from alphazero.nets.towers import TowerConfig
from alphazero.search.mcts import SearchConfig
from alphazero.training import config


def presets(game: Game) -> dict[str, config.RunConfig]:
    """`quick`: 18 minutes on two cores; the others go on for hours, `strong` with a larger network."""
    quick = config.RunConfig(
        generations=40,
        net=TowerConfig(128, 64),
        search=SearchConfig(num_simulations=32, gumbel_actions=16, gumbel_value_scale=2.0),
        self_play=config.SelfPlayConfig(games_per_generation=1024, num_slots=512, td_lambda=0.99),
        replay=config.ReplayConfig(window_max=16, merge=False),
        learner=config.LearnerConfig(batch_size=1024, learning_rate=4e-3, sample_reuse=1.0),
        gate=config.GateConfig(enabled=False),  # between good nets the dice decide
        evaluation=config.EvaluationConfig(opponents=("random", "greedy"), games=60 * game.num_players, simulations=64),
    )
    standard = replace(quick, generations=400, net=TowerConfig())
    return {"quick": quick, "standard": standard, "strong": replace(standard, generations=2000, net=TowerConfig(512))}
