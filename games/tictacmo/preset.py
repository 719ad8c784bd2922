"""Settings of tic-tac-mo runs: small, since the game has few positions."""

from __future__ import annotations

from dataclasses import replace

from alphazero.game import Game
from alphazero.nets.resnet import NetConfig
from alphazero.search.mcts import SearchConfig
from alphazero.training.config import EvaluationConfig, GateConfig, LearnerConfig, RunConfig, SelfPlayConfig


def presets(game: Game) -> dict[str, RunConfig]:
    """`quick`: a few minutes on a laptop; the others are the same, for longer."""
    quick = RunConfig(
        generations=30,
        net=NetConfig(blocks=5, channels=32),
        search=SearchConfig(num_simulations=90, gumbel_actions=15),
        # positions that no careful player reaches are learned, too
        self_play=SelfPlayConfig(games_per_generation=600, num_slots=128, random_plies=12),
        learner=LearnerConfig(batch_size=128, sample_reuse=4),
        gate=GateConfig(games=102, simulations=8),
        evaluation=EvaluationConfig(opponents=("random", "mcts:100"), games=102),
    )
    return {"quick": quick, "standard": replace(quick, generations=60), "strong": replace(quick, generations=120)}
