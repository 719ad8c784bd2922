"""Games: loading and checking them."""

from __future__ import annotations

from pathlib import Path

from alphazero.catalogue import registry
from alphazero.game import Game
from alphazero.game.validator import Findings, validate
from alphazero.settings import check_range, plain


def load_game(name: str | Path) -> Game:
    """A game, by any name that `--game` takes.

    `name` is a game that comes with alphazero, a Python file (`my_game.py` or `my_game.py:MyGame`), a dotted module
    name, or `openspiel:NAME`. Raises UnknownName, or GameError if the file cannot be used.

    >>> import alphazero as az
    >>> game = az.load_game("tictactoe")
    >>> game.num_actions, game.observation_shape
    (9, (2, 3, 3))
    >>> print(game.position("b2 a1"))
    1 O . .
    2 . X .
    3 . . .
      a b c
    """
    return registry.of(name).game


def check_game(game: Game | type[Game] | str | Path, games: int = 100, seed: int = 0) -> Findings:
    """Plays random games and checks every law of `Game` at every position; returns what the games were like.

    `game` is a Game, its class, or a name as `load_game` takes it. Raises LawBroken with the law and the position.

    >>> import alphazero as az
    >>> findings = az.check_game("tictactoe", games=20)
    >>> findings.num_games, findings.warnings
    (20, [])
    """
    check_range("seed", seed, 0, (1 << 63) - 1)
    return validate(registry.of(game).game, plain(games), plain(seed))
