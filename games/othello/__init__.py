"""Othello on 8x8 and 6x6, with an exact endgame solver and a benchmark of endgames."""

from alphazero.game.spec import GameSpec

SPEC = GameSpec(
    games={"othello": ".game:Othello", "othello6": ".game:Othello6"},
    presets=".preset:presets",
    make_benchmark=".benchmark:make_benchmark",
    contestants={"greedy": ".solver:make_greedy", "solver": ".solver:make_solver"},
    make_oracle=".solver:make_oracle",
    gtp_name="Othello",
)
