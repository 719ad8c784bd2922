"""Settings of Connect Four runs; docs/log.md gives the source of each number."""

from __future__ import annotations

from dataclasses import replace

from alphazero.game import Game
from alphazero.nets.resnet import NetConfig
from alphazero.search.mcts import SearchConfig
from alphazero.training.config import GateConfig, LearnerConfig, ReplayConfig, RunConfig, SelfPlayConfig


def presets(game: Game) -> dict[str, RunConfig]:
    """`quick`: minutes on a laptop; `standard`: a night on a laptop, or a GPU in less; `strong`: a GPU."""
    quick = RunConfig(
        generations=28,
        net=NetConfig(blocks=2, channels=32),
        search=SearchConfig(num_simulations=16, gumbel_actions=4),
        self_play=SelfPlayConfig(games_per_generation=1024, num_slots=512, random_plies=8, td_lambda=0.9),
        learner=LearnerConfig(batch_size=512, learning_rate=4e-3, sample_reuse=1.6),
        gate=GateConfig(games=40, simulations=4),
    )
    standard = replace(
        quick,
        generations=400,
        net=NetConfig(blocks=5, channels=64, lines=32),
        # mistakes on purpose, as soon as the network judges them well: after ten minutes of two cores
        self_play=replace(quick.self_play, epsilon=0.25, epsilon_after=16_000),
        replay=ReplayConfig(window_max=40),
        learner=replace(quick.learner, batch_size=1024, learning_rate=8.5e-3, sample_reuse=2.5),
    )
    strong = replace(
        standard,
        generations=800,
        net=NetConfig(blocks=8, channels=96, head_channels=32, value_hidden=128, lines=32),
        search=SearchConfig(num_simulations=32, gumbel_actions=7),
        self_play=replace(standard.self_play, games_per_generation=2048),
    )
    return {"quick": quick, "standard": standard, "strong": strong}
