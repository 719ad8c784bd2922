"""Matches of a human at the terminal or in a notebook, who sees how each game ends."""

from __future__ import annotations

from alphazero.game import Game
from alphazero.game.kernels import kernels_of
from alphazero.matches.arena import Arena
from alphazero.matches.result import MatchResult
from alphazero.players.human import HumanLeft
from alphazero.players.player import Player

GAMES = 2
"""Games of a match with a human, unless told otherwise: nobody wants to play a hundred by hand."""
LEFT = "You have left the match."


def play_with_human(game: Game, first: Player, second: Player, num_games: int, seed: int) -> MatchResult:
    """Plays games one after the other from the start position, and prints how each ended.

    A human who leaves keeps the games that are over; raises HumanLeft if there are none.
    """
    match = Arena(kernels_of(game), first, second, num_games, seed, opening_plies=0)
    so_far = match.result()
    try:
        for result in match:
            if result.num_games > so_far.num_games:
                winner = {1: f"{first.name} wins", -1: f"{second.name} wins", 0: "a draw"}[result.outcomes[-1]]
                print(f"\n{game.position(result.actions[-1])}\n\nGame {result.num_games}: {winner}.")
            so_far = result
    except HumanLeft:
        if not so_far.num_games:
            raise
        print(LEFT)
    return so_far
