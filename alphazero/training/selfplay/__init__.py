"""Self-play: games of a network against itself, the source of all samples."""

from alphazero.training.selfplay.games import SelfPlay
from alphazero.training.selfplay.shown_games import FinishedGame
from alphazero.training.selfplay.value_targets import Recordings, ValueTargets, lambda_returns
from alphazero.training.selfplay.worker import NO_LIMIT, SelfPlayCounts, Until, Worker, play_games

__all__ = [
    "NO_LIMIT", "FinishedGame", "Recordings", "SelfPlay", "SelfPlayCounts", "Until", "ValueTargets", "Worker",
    "lambda_returns", "play_games",
]  # fmt: skip
