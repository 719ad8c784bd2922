"""Connect Four, with a perfect solver and a benchmark of 7,000 positions."""

from alphazero.game.spec import GameSpec

SPEC = GameSpec(
    games={"connect4": ".game:Connect4"},
    presets=".preset:presets",
    make_net=".net:make_net",
    make_benchmark=".benchmark:make_benchmark",
    contestants={"solver": ".solver:make_solver"},
    make_oracle=".solver:make_oracle",
    make_balance=".solver:make_balance",
)
