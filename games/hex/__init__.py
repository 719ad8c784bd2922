"""Hex on 7x7, without and with the swap rule."""

from alphazero.game.spec import GameSpec

SPEC = GameSpec(
    games={"hex": ".game:Hex", "hex_swap": ".game:HexWithSwap"},
    gtp_name="Hex",
)
