"""Shows the exact result of every move in a position, in games that have a solver.

alphazero solve 4453 --game connect4
alphazero solve b3b4a5c2b1e2c5b5e5a3b2e4e3c6a6e6f1a4d5e1 --game othello6
alphazero solve "--XXXXX--OOOXX-O-OOOXXOX-OXOXOXXOXXXOXXX--XOXOXX-XXXOOO--OOOOO-- X" --game othello
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

import tyro

from alphazero.catalogue import registry
from alphazero.commands.options import argument
from alphazero.commands.shared import parse
from alphazero.errors import InputError, count_of


@dataclass(frozen=True)
class SolveConfig:
    """Shows the exact result of every move in a position, in games that have a solver."""

    moves: Annotated[tuple[str, ...], tyro.conf.Positional, argument("[MOVES ...]", "none")] = ()
    """The moves that lead to the position, as in 4453 or f5 d6 c4, or its board; nothing = the start position."""
    game: Annotated[str, tyro.conf.arg(metavar="NAME")] = "connect4"
    """The game: a name, a Python file or a module."""


def main(argv: list[str]) -> None:
    # a board may begin with the signs of empty squares, which no option does
    argv = [f" {word}" if re.match(r"-[-._XxOo*]{5}", word) else word for word in argv]
    config = parse(SolveConfig, argv, command="solve")
    loaded = registry.load(config.game)
    if loaded.make_oracle is None:
        solved = [name for name in registry.NAMES if registry.load(name).make_oracle is not None]
        raise InputError(f"{loaded.game.name} has no solver; the games that have one are {', '.join(solved)}")
    position = loaded.game.position(" ".join(config.moves))
    where = " on a board" if position.is_set_up else f" after {count_of(position.ply, 'ply')}"
    if position.terminal:
        winner = {1: "the first player has won", -1: "the second player has won", 0: "a draw"}[position.outcome]
        print(f"{position}\n\nThe game is over{'' if position.is_set_up else where}: {winner}.")
        return
    oracle = loaded.make_oracle(loaded.game)
    found = oracle.results(position)
    if not found:
        raise InputError(f"{oracle.too_far(position)}; add moves")
    mover = "first" if position.to_play == 0 else "second"
    print(f"{position}\n\n{mover} player to move{where}")
    for action, result in found.items():
        print(f"  {position.format(action):<8}{oracle.words(result)}")
