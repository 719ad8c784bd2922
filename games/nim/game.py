"""Nim: piles of 1, 3, 5 and 7 objects; a ply takes any number from one pile, and who takes the last object wins.

`state` is one word, four bits a pile. Solved (C. L. Bouton 1901): who moves loses against best play exactly where the
exclusive or of all piles is 0, as it is at the start.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numba import njit

from alphazero.game import Board, Cell, Clicks, Colors, Game, Label, Piece, Position, Rules, square

PILES = (1, 3, 5, 7)
LARGEST = max(PILES)
OBJECTS = [(pile, i) for pile, size in enumerate(PILES) for i in range(size)]
COLORS = Colors(cell="#34435a", shaded="#2b384c", neutral="#d9b26f")
ZERO, PILE = np.uint64(0), np.uint64(0b1111)
START = np.uint64(sum(size << 4 * pile for pile, size in enumerate(PILES)))


@njit
def pile_size(state, pile):
    return np.int64((state[0] >> np.uint64(4 * pile)) & PILE)


@njit
def init(state):
    state[0] = START


@njit
def legal(state, legal_mask):
    for action in range(len(legal_mask)):
        legal_mask[action] = pile_size(state, action % 4) > action // 4


@njit
def step(state, action):
    state[0] -= np.uint64(action // 4 + 1) << np.uint64(4 * (action % 4))


@njit
def is_terminal(state):
    return state[0] == ZERO


@njit
def terminal_value(state):
    return -1.0  # the opponent took the last object


@njit
def observe(state, planes):
    """A row for each pile, filled from the left."""
    for pile in range(4):
        for column in range(min(pile_size(state, pile), LARGEST)):
            planes[0, pile, column] = 1.0


class Nim(Game):
    """Action (n - 1) * 4 + p takes n objects from pile p; people write the pile and the number, as 4-7."""

    name = "nim"
    num_actions, state_words, max_plies = LARGEST * len(PILES), 1, sum(PILES)
    observation_shape = (1, len(PILES), LARGEST)
    rules = Rules(init, legal, step, is_terminal, terminal_value, observe)

    def render(self, state: np.ndarray, to_play: int) -> str:
        sizes = [int(state[0]) >> 4 * pile & 15 for pile in range(len(PILES))]
        return "\n".join(f"pile {pile + 1}: {'|' * size or '-'}" for pile, size in enumerate(sizes))

    @cached_property
    def board(self) -> Board:
        """A row of objects for each pile."""
        cells = [Cell(f"pile {pile + 1}, object {i + 1}", square(pile, i), "hole") for pile, i in OBJECTS]
        labels = tuple(Label((-0.3, pile + 0.5), str(pile + 1)) for pile in range(len(PILES)))
        return Board(tuple(cells), labels, colors=COLORS)

    def pieces(self, position: Position) -> list[Piece]:
        sizes = [int(position.state[0]) >> 4 * pile & 15 for pile in range(len(PILES))]
        return [Piece(cell, None, "stone") for cell, (pile, i) in enumerate(OBJECTS) if i < sizes[pile]]

    def clicks(self, position: Position) -> Clicks:
        """A click on an object takes it and all objects to its right."""
        sizes = [int(position.state[0]) >> 4 * pile & 15 for pile in range(len(PILES))]
        places = [(cell, pile, sizes[pile] - i) for cell, (pile, i) in enumerate(OBJECTS) if i < sizes[pile]]
        return {(cell,): (number - 1) * len(PILES) + pile for cell, pile, number in places}

    def format_action(self, action: int, state: np.ndarray) -> str:
        return f"{action % 4 + 1}-{action // 4 + 1}"

    def parse_action(self, text: str, state: np.ndarray) -> int:
        pile, number = (int(word) for word in text.split("-"))
        if not 1 <= pile <= len(PILES) or not 1 <= number <= LARGEST:
            raise ValueError(text)
        return (number - 1) * 4 + pile - 1
