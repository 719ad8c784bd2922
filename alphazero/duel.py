"""A match of two contestants, shown while it goes on."""

from __future__ import annotations

import logging

from alphazero.arena import MatchResult, get_ready, play_match
from alphazero.command import Progress
from alphazero.game import Game
from alphazero.human import HumanLeft
from alphazero.kernels import Kernels
from alphazero.package import AreBalanced
from alphazero.players import Player
from alphazero.sprt import Sprt

logger = logging.getLogger(__name__)


def play_alone(
    game: Game,
    first: Player,
    second: Player,
    num_games: int,
    seed: int,
    test: Sprt | None = None,
    are_balanced: AreBalanced | None = None,
) -> MatchResult:
    """A match with a progress bar, which ends when `test`, if there is one, has its verdict."""
    kernels = Kernels(game)

    def show(result: MatchResult) -> None:
        # before games end, their progress is at least the share of the plies that they can have
        fraction = max(result.num_games, sum(result.moves) / game.max_plies) / num_games
        progress.show(min(1.0, fraction), f"{result.num_games} of {num_games} games, score {result.score:.1%}")

    for player in (first, second):
        get_ready(kernels, player)
    if are_balanced is not None:
        logger.info("choosing balanced openings (a minute if there are thousands of games)")
    with Progress(f"{first.name} - {second.name}") as progress:
        return play_match(
            kernels, first, second, num_games, seed, on_progress=show, are_balanced=are_balanced,
            decided=(lambda result: test.verdict(result.pairs) is not None) if test else None,
        )  # fmt: skip


def play_with_human(game: Game, first: Player, second: Player, num_games: int, seed: int) -> MatchResult:
    """Games one after the other from the start position; says how each ended. Who leaves keeps those that are over."""
    so_far = MatchResult((), (), (), (0, 0), (0.0, 0.0))

    def show(result: MatchResult) -> None:
        nonlocal so_far
        if result.num_games > so_far.num_games:
            so_far = result
            winner = {1: f"{first.name} wins", -1: f"{second.name} wins", 0: "a draw"}[result.outcomes[-1]]
            print(f"\n{game.position(result.actions[-1])}\n\nGame {result.num_games}: {winner}.")

    try:
        return play_match(Kernels(game), first, second, num_games, seed, opening_plies=0, on_progress=show)
    except HumanLeft:
        print("You have left the match.")
        return so_far
