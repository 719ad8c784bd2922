"""Five in a row on 9x9 and 15x15."""

from alphazero.game.reading.gtp_words import without_i
from alphazero.game.spec import GameSpec

SPEC = GameSpec(
    games={"gomoku": ".game:Gomoku", "gomoku15": ".game:Gomoku15"},
    gtp_name="Gomoku",
    gtp_vertex=without_i,
)
