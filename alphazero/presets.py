"""Settings for a game that has none of its own, by the size of the game."""

from __future__ import annotations

from dataclasses import replace

from alphazero.coach import GateConfig, RunConfig
from alphazero.game import Game
from alphazero.learner import LearnerConfig
from alphazero.mcts import SearchConfig
from alphazero.resnet import NetConfig
from alphazero.selfplay import SelfPlayConfig


def presets(game: Game) -> dict[str, RunConfig]:
    """`quick`: minutes on a laptop; `standard`: a night on a laptop, or a GPU in less; `strong`: a GPU."""
    temperature_plies = max(2, min(30, game.max_plies // 4))
    quick = RunConfig(
        generations=20,
        net=NetConfig(blocks=3, channels=32),
        search=SearchConfig(num_simulations=32),
        self_play=SelfPlayConfig(games_per_generation=256, num_slots=128, temperature_plies=temperature_plies),
        gate=GateConfig(games=60, simulations=16),
    )
    standard = replace(
        quick,
        generations=60,
        net=NetConfig(blocks=5, channels=64),
        search=SearchConfig(num_simulations=64),
        self_play=replace(quick.self_play, games_per_generation=1000, num_slots=256),
        learner=LearnerConfig(batch_size=512),
        gate=GateConfig(games=100, simulations=32),
    )
    strong = replace(
        standard,
        generations=150,
        net=NetConfig(blocks=8, channels=96, head_channels=32, value_hidden=128),
        search=SearchConfig(num_simulations=160),
        self_play=replace(standard.self_play, games_per_generation=2000),
    )
    return {"quick": quick, "standard": standard, "strong": strong}
