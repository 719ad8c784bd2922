"""A second solver of Othello endgames, which shares nothing with ours: a board of cells and plain alpha-beta.

`board` is `int8[(size + 2)**2]`, rows with a border of WALL around them; a player is 1 or -1, an empty square 0.
"""

from __future__ import annotations

import numpy as np
from numba import njit

WALL = 9


def board_of(state: np.ndarray, size: int) -> np.ndarray:
    """The board of `uint64[2]`, where 1 is the player to move."""
    board = np.full((size + 2, size + 2), WALL, np.int8)
    for row in range(size):
        for column in range(size):
            own, opponent = (int(word) >> 8 * row + column & 1 for word in state)
            board[row + 1, column + 1] = own - opponent
    return board.ravel()


@njit
def turn_over(board, square, player, width):
    """Puts a disc down and turns over what it encloses; returns the squares turned, none if it is not allowed."""
    turned = [square for _ in range(0)]
    for direction in (1, -1, width, -width, width + 1, width - 1, 1 - width, -width - 1):
        end = square + direction
        while board[end] == -player:
            end += direction
        if board[end] == player:
            end -= direction
            while end != square:
                turned.append(end)
                end -= direction
    if len(turned):
        board[square] = player
        for other in turned:
            board[other] = player
    return turned


@njit
def take_back(board, square, player, turned):
    board[square] = 0
    for other in turned:
        board[other] = -player


@njit
def count(board, player):
    """The final difference of discs, empty squares to the winner."""
    own, opponent = np.sum(board == player), np.sum(board == -player)
    empty = np.sum(board == 0)
    return own - opponent + (empty if own > opponent else -empty if own < opponent else 0)


@njit
def at_least(board, empty, player, wanted, passed, width):
    """Whether the player to move can end with a difference of `wanted` or more."""
    moved = False
    for square in empty:
        if board[square] == 0:
            turned = turn_over(board, square, player, width)
            if len(turned):
                moved = True
                good = not at_least(board, empty, -player, 1 - wanted, False, width)
                take_back(board, square, player, turned)
                if good:
                    return True
    if moved:
        return False
    if passed:
        return count(board, player) >= wanted
    return not at_least(board, empty, -player, 1 - wanted, True, width)


@njit
def agrees(board, scores, none, size):
    """The scores of all moves of 1, `int8[A]` with `none` where one is not allowed, are the exact ones."""
    width = size + 2
    empty = np.flatnonzero(board == 0)
    for action in range(size * size):
        square = (action // size + 1) * width + action % size + 1
        turned = [square for _ in range(0)]
        if board[square] == 0:
            turned = turn_over(board, square, 1, width)
        if (len(turned) == 0) != (scores[action] == none):
            return False
        if len(turned):
            score = np.int64(scores[action])
            # the opponent reaches -score, and no more
            exact = at_least(board, empty, -1, -score, False, width) and not at_least(
                board, empty, -1, 1 - score, False, width
            )
            take_back(board, square, 1, turned)
            if not exact:
                return False
    return True
