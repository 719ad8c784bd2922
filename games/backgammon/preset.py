"""Settings of Backgammon runs."""

from __future__ import annotations

from dataclasses import replace

from alphazero.game import Game
from alphazero.nets.towers import TowerConfig
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
    """`quick`: minutes on a laptop; `standard`: hours; `strong`: a larger network, for a night."""
    quick = RunConfig(
        generations=20,
        net=TowerConfig(128, 64),
        # a visit asks the network before the next roll: a second one would add the luck of one roll. Moves differ by
        # hundredths of the range of values: below the root values choose, with little weight on priors
        search=SearchConfig(
            num_simulations=16, c_puct=0.1, fpu_reduction=0.0, gumbel_actions=16, gumbel_value_scale=10.0
        ),
        self_play=SelfPlayConfig(games_per_generation=256, num_slots=256, td_lambda=0.9),
        replay=ReplayConfig(window_max=16, merge=False),
        learner=LearnerConfig(batch_size=1024, learning_rate=4e-3, sample_reuse=3.0),
        gate=GateConfig(enabled=False),  # between good nets the dice decide
        evaluation=EvaluationConfig(opponents=("random", "greedy"), games=400, simulations=100),
    )
    standard = replace(quick, generations=200, net=TowerConfig(policy_units=256))
    search = replace(quick.search, num_simulations=32)
    strong = replace(standard, generations=2000, net=TowerConfig(512, 256), search=search)
    return {"quick": quick, "standard": standard, "strong": strong}
