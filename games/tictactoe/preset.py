"""Settings of tic-tac-toe runs: small, since the whole game has 765 positions up to symmetry."""

from __future__ import annotations

from dataclasses import replace

from alphazero.game import Game
from alphazero.nets.resnet import NetConfig
from alphazero.search.mcts import SearchConfig
from alphazero.training.config import EvaluationConfig, GateConfig, LearnerConfig, RunConfig, SelfPlayConfig


def presets(game: Game) -> dict[str, RunConfig]:
    """`quick`: under two minutes on a laptop; the others are the same, for longer."""
    quick = RunConfig(
        generations=30,
        net=NetConfig(blocks=2, channels=32),
        search=SearchConfig(num_simulations=32),
        self_play=SelfPlayConfig(games_per_generation=256, num_slots=128, temperature_plies=4),
        learner=LearnerConfig(batch_size=128, sample_reuse=4),
        gate=GateConfig(games=100, simulations=2),  # few simulations: else all good nets draw
        evaluation=EvaluationConfig(opponents=("random", "minimax:9"), games=180),  # it has 95 openings
    )
    return {"quick": quick, "standard": replace(quick, generations=60), "strong": replace(quick, generations=120)}
