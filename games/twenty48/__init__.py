"""2048, a game for one."""

from alphazero.game.spec import GameSpec

SPEC = GameSpec(games={"2048": ".game:Twenty48"}, presets=".preset:presets", make_benchmark=".benchmark:make_benchmark")
