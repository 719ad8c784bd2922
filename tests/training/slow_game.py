"""A game of alpha-zero-general's kind whose rules are slow on purpose."""

import time

import numpy as np

SECONDS_PER_PLY = 0.002


class SlowGame:
    """Twelve plies, each of which puts one or two stones on the next square; more stones win."""

    def getInitBoard(self):
        return np.zeros((3, 4), int)

    def getBoardSize(self):
        return 3, 4

    def getActionSize(self):
        return 2

    def getNextState(self, board, player, action):
        time.sleep(SECONDS_PER_PLY)
        following = board.copy()
        following.flat[np.count_nonzero(board)] = player * (1 + action)
        return following, -player

    def getValidMoves(self, board, player):
        return np.ones(2, int)

    def getGameEnded(self, board, player):
        if not board.all():
            return 0
        lead = player * board.sum()
        return 1e-4 if lead == 0 else 1 if lead > 0 else -1

    def getCanonicalForm(self, board, player):
        return player * board

    def getSymmetries(self, board, pi):
        return [(board, pi)]

    def stringRepresentation(self, board):
        return board.tobytes()
