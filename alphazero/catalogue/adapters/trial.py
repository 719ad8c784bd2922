"""A few random games of OpenSpiel show how long they are and whether observations hide what the rules depend on."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

GAMES = 4
OPENING = 4
"""Plies from the start within which observations are compared."""
CHILDREN = 32
"""Positions that are compared after each of these plies, at most."""
HIDDEN = 0.2
"""The share of positions that look like others, from which on a network cannot learn the game. In quoridor it is 0.34
to 0.98, on boards of all sizes. In hive it is 0.03 to 0.07, since its observations do not number bugs of a kind; in all
other games it is 0."""


def random_games(game: Any, most: int) -> Iterator[tuple[int, Any]]:
    """Ply and position for all positions of GAMES games, the same ones each time, up to ply `most`."""
    rng = random.Random(0)
    for _ in range(GAMES):
        position = game.new_initial_state()
        for ply in range(most + 1):
            yield ply, position
            if position.is_terminal():
                break
            actions = position.legal_actions()
            position = position.child(actions[int(rng.random() * len(actions))])


def longest_game(game: Any, most: int) -> int:
    """Plies of the longest of the random games, `most` at most."""
    return max(ply for ply, _ in random_games(game, most))


def looks_alike(game: Any) -> bool:
    """Whether the observations of many positions are like those of others with other legal actions.

    Compared are those that different actions lead to from the same position.
    """
    compared = alike = 0
    for _, position in random_games(game, OPENING):
        seen: dict[tuple[int, bytes], list[int]] = {}
        actions = position.legal_actions()
        for action in actions[:: -(-len(actions) // CHILDREN) or 1]:
            child = position.child(action)
            if not child.is_terminal():
                compared += 1
                player, legal = child.current_player(), child.legal_actions()
                look = np.float32(child.observation_tensor(player)).tobytes()
                alike += seen.setdefault((player, look), legal) != legal
    return alike > HIDDEN * compared


class TextPlanes:
    """Planes of a text that differs in the same places all the time, as one that draws a board.

    There is a plane for each character, blanks aside. Lines, columns and characters that are the same in all the texts
    are left out.
    """

    def __init__(self, texts: list[str]):
        lines = [text.split("\n") for text in texts]
        self._height, self._width = max(map(len, lines)), max(len(line) for text in lines for line in text)
        grids = np.stack([self._grid(text) for text in texts])
        differs = (grids != grids[0]).any(axis=0)
        self._places = np.ix_(differs.any(axis=1), differs.any(axis=0))
        self._characters = np.setdiff1d(grids[:, differs], [ord(" ")])
        self.shape = len(self._characters), *grids[0][self._places].shape
        """Planes, rows, columns."""

    def __call__(self, text: str) -> np.ndarray:
        """`float32` of that shape."""
        return (self._grid(text)[self._places] == self._characters[:, None, None]).astype(np.float32)

    def _grid(self, text: str) -> np.ndarray:
        """The text's characters as numbers, in rows and columns, filled up with blanks."""
        lines = [line.ljust(self._width)[: self._width] for line in text.split("\n")]
        lines += [" " * self._width] * (self._height - len(lines))
        codes = "".join(lines[: self._height]).encode("utf-32-le")
        return np.frombuffer(codes, "<u4").reshape(self._height, self._width)
