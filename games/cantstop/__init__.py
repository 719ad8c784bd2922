"""Can't Stop for two, three and four players."""

from alphazero.game.spec import GameSpec

SPEC = GameSpec(
    games={"cantstop": ".game:CantStop", "cantstop3": ".game:CantStop3", "cantstop4": ".game:CantStop4"},
    presets=".preset:presets",
    make_net="alphazero.nets.towers:make_net",
)
