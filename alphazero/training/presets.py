"""Settings for a game that has none of its own, by the size of the game."""

from __future__ import annotations

from dataclasses import replace

from alphazero.game import Game
from alphazero.game.rules import room_for_pairs
from alphazero.nets.resnet import NetConfig
from alphazero.search.mcts import SearchConfig
from alphazero.training import config


def presets(game: Game) -> dict[str, config.RunConfig]:
    """`quick`: ten minutes on a laptop; `standard`: a night there, or a GPU in less; `strong`: a GPU."""
    wide = game.num_actions > 128  # games are long, and 512 of them would take minutes
    large = game.num_actions > 1024 and not room_for_pairs(game)  # where policy targets fill the memory
    # opponents whose time for a move is bounded whatever the game: minimax deeper than `greedy`'s two plies is not
    matches = config.EvaluationConfig(opponents=("random", "greedy", "mcts:200"))
    if not game.compiled:
        matches = config.EvaluationConfig(opponents=("random", "mcts:20"), games=20, simulations=32)
    elif wide:
        matches = replace(matches, games=40)
    quick = config.RunConfig(
        generations=40,
        minutes=10.0,
        net=NetConfig(blocks=3, channels=32),
        search=SearchConfig(
            num_simulations=16 if game.num_actions <= 16 else 32, gumbel_actions=min(16, game.num_actions)
        ),
        self_play=config.SelfPlayConfig(
            games_per_generation=(128 if wide else 512) if game.compiled else 64 if not large else 16,
            num_slots=256 if game.compiled else 32,
            random_plies=min(8, game.max_plies // 10),
            td_lambda=0.95,
        ),
        replay=config.ReplayConfig(window_max=5 if large else 20),
        learner=config.LearnerConfig(batch_size=512 if game.compiled else 128, learning_rate=4e-3, sample_reuse=1.6),
        gate=config.GateConfig(games=40, simulations=4),
        evaluation=matches,
    )
    standard = replace(
        quick,
        generations=400,
        minutes=0.0,
        net=NetConfig(blocks=5, channels=64),
        self_play=replace(
            quick.self_play, games_per_generation=2 * quick.self_play.games_per_generation, td_lambda=0.9
        ),
        learner=replace(quick.learner, sample_reuse=2.5),
        gate=config.GateConfig(games=40, simulations=8),
    )
    strong = replace(
        standard,
        generations=800,
        net=NetConfig(blocks=8, channels=96, head_channels=32, value_hidden=128),
        search=replace(quick.search, num_simulations=2 * quick.search.num_simulations),
    )
    return {"quick": quick, "standard": standard, "strong": strong}
