"""Shapes of pieces that are drawn by a path alone, such as those of chess: a game may add its own.

A path is the data of an SVG path around (0, 0), in hundredths of the distance from the middle of a cell to its sides.
It is filled with the player's colour, and its lines are drawn in a colour that stands out from it.
"""

from collections.abc import Mapping

GLYPHS: Mapping[str, str] = {
    "pawn": "M-15-14A27 27 0 1 1 15-14H26V-1H15C18 29 29 43 51 52V77H-51V52C-29 43-18 29-15-1H-26V-14Z",
    "knight": (
        "M56 77H-41C-43 45-29 32-5 9C-16 16-27 17-36 23C-43 31-52 35-59 27C-68 17-66 10-59 1"
        "C-50-12-47-25-41-36C-37-45-33-52-25-56L-24-77-7-62C36-61 61-9 56 77ZM-24-31L-21-27-19-31-21-33Z"
        "M-53 15L-51 12M9-43C31-29 38 7 36 59"
    ),
    "bishop": (
        "M0-82A10 10 0 0 1 6-63C25-49 38-28 38-8C38 10 29 23 20 29H32V43H19C24 50 34 54 53 56V77H-53V56"
        "C-34 54-24 50-19 43H-32V29H-20C-29 23-38 10-38-8C-38-28-25-49-6-63A10 10 0 0 1 0-82ZM0-34V5M-15-17"
        "H15M-20 29H20M-19 43H19"
    ),
    "rook": (
        "M-51-63H-28V-49H-12V-63H12V-49H28V-63H51V-34L34-20V36L47 52H58V77H-58V52H-47L-34 36V-20L-51-34Z"
        "M-34-20H34M-34 36H34M-47 52H47"
    ),
    "queen": (
        "M-45 32L-67-38-37-5-34-54-14-9 0-63 14-9 34-54 37-5 67-38 45 32C50 43 45 52 47 59V77H-47V59"
        "C-45 52-50 43-45 32ZM-77-41A10 10 0 1 0-56-41A10 10 0 1 0-77-41ZM-44-60A10 10 0 1 0-24-60"
        "A10 10 0 1 0-44-60ZM-10-69A10 10 0 1 0 10-69A10 10 0 1 0-10-69ZM24-60A10 10 0 1 0 44-60"
        "A10 10 0 1 0 24-60ZM56-41A10 10 0 1 0 77-41A10 10 0 1 0 56-41ZM-45 32C-16 23 16 23 45 32M-47 56"
        "C-16 47 16 47 47 56"
    ),
    "king": (
        "M-6-90H6V-80H16V-69H6V-50H-6V-69H-16V-80H-6ZM0-41C11-61 68-59 64-18C62 5 45 16 44 34V77H-44V34"
        "C-45 16-62 5-64-18C-68-59-11-61 0-41V27M-44 34C-16 25 16 25 44 34M-44 56C-16 47 16 47 44 56"
    ),
    "crowned": "M-82 0A82 82 0 1 0 82 0A82 82 0 1 0-82 0ZM-38 25H38L47-25 20 0 0-38-20 0-47-25ZM-38 40H38",
}
"""The six pieces of chess, and a crowned stone."""
