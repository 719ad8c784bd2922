"""Hex on 7x7, without and with the swap rule."""

from alphazero.game.spec import GameSpec


def gtp_vertex(word: str) -> str:
    """The swap as MoHex and HexGui call it; with them, "swap" alone changes the players' colours."""
    return "swap-pieces" if word == "swap" else word


SPEC = GameSpec(
    games={"hex": ".game:Hex", "hex_swap": ".game:HexWithSwap"},
    gtp_name="Hex",
    gtp_vertex=gtp_vertex,
)
