"""Game classes as people write them for alpha-zero-general; tests wrap them unmodified."""

import numpy as np


class TicTacToeGame:
    """After the fashion of that project's own: a draw is 1e-4."""

    def __init__(self, n=3):
        self.n = n

    def getInitBoard(self):
        return np.zeros((self.n, self.n), dtype=int)

    def getBoardSize(self):
        return (self.n, self.n)

    def getActionSize(self):
        return self.n * self.n + 1

    def getNextState(self, board, player, action):
        board[action // self.n][action % self.n] = player  # in place, as many do
        return (board, -player)

    def getValidMoves(self, board, player):
        valids = [0] * self.getActionSize()
        for x, y in np.argwhere(board == 0):
            valids[self.n * x + y] = 1
        return np.array(valids)

    def getGameEnded(self, board, player):
        lines = [*board, *board.T, board.diagonal(), board[::-1].diagonal()]
        for side in (player, -player):
            if any((line == side).all() for line in lines):
                return 1 if side == player else -1
        return 0 if (board == 0).any() else 1e-4

    def getCanonicalForm(self, board, player):
        return player * board

    def getSymmetries(self, board, pi):
        assert len(pi) == self.n**2 + 1
        pi_board = np.reshape(pi[:-1], (self.n, self.n))
        images = []
        for turns in range(1, 5):
            for flip in (True, False):
                turned, turned_pi = np.rot90(board, turns), np.rot90(pi_board, turns)
                if flip:
                    turned, turned_pi = np.fliplr(turned), np.fliplr(turned_pi)
                images.append((turned, [*turned_pi.ravel(), pi[-1]]))
        return images

    def stringRepresentation(self, board):
        return board.tobytes()


class MoveAgainGame:
    """A pile of twelve: take one to three; who takes one from an odd pile moves again; more stones win.

    The board is (pile, stones of player 1, stones of player -1).
    """

    def getInitBoard(self):
        return np.array([[12, 0, 0]])

    def getBoardSize(self):
        return (1, 3)

    def getActionSize(self):
        return 3

    def getNextState(self, board, player, action):
        board = board.copy()
        again = action == 0 and board[0, 0] % 2 == 1
        board[0, 0] -= action + 1
        board[0, 1 if player == 1 else 2] += action + 1
        return board, player if again else -player

    def getValidMoves(self, board, player):
        return (board[0, 0] >= np.arange(1, 4)).astype(int)

    def getGameEnded(self, board, player):
        if board[0, 0]:
            return 0
        lead = player * (board[0, 1] - board[0, 2])
        return 1 if lead > 0 else -1 if lead < 0 else 1e-4

    def getCanonicalForm(self, board, player):
        return board if player == 1 else board[:, [0, 2, 1]]

    def getSymmetries(self, board, pi):
        return [(board, pi)]

    def stringRepresentation(self, board):
        return str(board)


class DrawIsALoss(TicTacToeGame):
    """The well-known mistake: the end of a drawn game is -1 for both."""

    def getGameEnded(self, board, player):
        value = super().getGameEnded(board, player)
        return -1 if value == 1e-4 else value


class NeverEnds(TicTacToeGame):
    def getGameEnded(self, board, player):
        return 0

    def getValidMoves(self, board, player):
        return np.ones(self.getActionSize())

    def getNextState(self, board, player, action):
        return board, -player


class WrongLength(TicTacToeGame):
    def getValidMoves(self, board, player):
        return super().getValidMoves(board, player)[:-1]


class NoSize(TicTacToeGame):
    def getActionSize(self):
        self.n * self.n + 1  # nobody returns it


class NoPlayer(TicTacToeGame):
    def getNextState(self, board, player, action):
        return super().getNextState(board, player, action)[0], 0


class Raises(TicTacToeGame):
    def getCanonicalForm(self, board, player):
        if np.abs(board).sum() == 3:
            raise RuntimeError("three stones")
        return super().getCanonicalForm(board, player)


class NoMoves(TicTacToeGame):
    def getValidMoves(self, board, player):
        return np.zeros(self.getActionSize())


class StuckHasLost(TicTacToeGame):
    """Who is to move on a full board has lost; the other one is told 0."""

    def getGameEnded(self, board, player):
        if not (board == 0).any():
            return -1 if player * board.sum() <= 0 else 0  # who moved last has as many stones or more
        return 0


class Dominoes:
    """Player 1 lays vertical dominoes, the other one horizontal ones; who has no room has lost.

    The other player sees the board turned, so that all dominoes are vertical ones.
    """

    def getInitBoard(self):
        return np.zeros((4, 4), int)

    def getBoardSize(self):
        return (4, 4)

    def getActionSize(self):
        return 16

    def getNextState(self, board, player, action):
        view = (board if player == 1 else board.T).copy()
        row, column = divmod(action, 4)
        view[row : row + 2, column] = player
        return view if player == 1 else view.T, -player

    def getValidMoves(self, board, player):
        view = board if player == 1 else board.T
        free = np.zeros((4, 4), int)
        free[:-1] = (view[:-1] == 0) & (view[1:] == 0)
        return free.ravel()

    def getGameEnded(self, board, player):
        return 0 if self.getValidMoves(board, player).any() else -1

    def getCanonicalForm(self, board, player):
        return board if player == 1 else -board.T

    def getSymmetries(self, board, pi):
        return [(board, pi)]

    def stringRepresentation(self, board):
        return board.tobytes()


class Columns:
    """Stones fall into ten columns of ten; nobody wins."""

    def getInitBoard(self):
        return np.zeros((10, 10), int)

    def getBoardSize(self):
        return (10, 10)

    def getActionSize(self):
        return 10

    def getNextState(self, board, player, action):
        board = board.copy()
        board[np.flatnonzero(board[:, action] == 0)[0], action] = player
        return board, -player

    def getValidMoves(self, board, player):
        return (board[-1] == 0).astype(int)

    def getGameEnded(self, board, player):
        return 0 if (board == 0).any() else 1e-4

    def getCanonicalForm(self, board, player):
        return player * board

    def getSymmetries(self, board, pi):
        return [(board, pi), (board[:, ::-1], pi[::-1])]

    def stringRepresentation(self, board):
        return board.tobytes()


class OwnBoard(TicTacToeGame):
    """Computes on a board that the object keeps."""

    def getNextState(self, board, player, action):
        self.board = board.copy()
        for _ in range(20):
            np.sort(np.arange(2000))  # time for another thread to come in
        self.board[action // self.n][action % self.n] = player
        return self.board, -player


class Planes(TicTacToeGame):
    """4 x 5 cells, in two planes that lie first or last."""

    def __init__(self, first):
        self.first = first

    def getInitBoard(self):
        return np.zeros((2, 4, 5) if self.first else (4, 5, 2))

    def getBoardSize(self):
        return self.getInitBoard().shape

    def getActionSize(self):
        return 20

    def getNextState(self, board, player, action):
        cell = (1, action // 5, action % 5)
        board[cell if self.first else (*cell[1:], cell[0])] = player
        return board, -player

    def getValidMoves(self, board, player):
        return (np.take(board, 1, 0 if self.first else 2).ravel() == 0).astype(int)

    def getGameEnded(self, board, player):
        return 0 if (np.take(board, 1, 0 if self.first else 2) == 0).any() else 1e-4


class WinnersColour(TicTacToeGame):
    """getGameEnded gives the colour of the winner, whoever asks."""

    def getGameEnded(self, board, player):
        return super().getGameEnded(board, 1)


class Stones:
    """A board that is an object."""

    def __init__(self, cells):
        self.cells = cells

    def __array__(self, dtype=None, copy=None):
        return np.array(self.cells, dtype)


class OneBoard(TicTacToeGame):
    """Both players see the same board, an object; only the player tells whose turn it is."""

    def getInitBoard(self):
        return Stones(super().getInitBoard().tolist())

    def getNextState(self, board, player, action):
        board.cells[action // self.n][action % self.n] = player
        return board, -player

    def getValidMoves(self, board, player):
        return super().getValidMoves(np.array(board), player)

    def getGameEnded(self, board, player):
        return super().getGameEnded(np.array(board), player)

    def getCanonicalForm(self, board, player):
        return board


class NoArray(OneBoard):
    def getInitBoard(self):  # no array
        return object()


class DrawsItsStart(TicTacToeGame):
    def getInitBoard(self):
        board = super().getInitBoard()
        board[np.random.randint(3), np.random.randint(3)] = np.random.choice([1, -1])
        return board


class Dice(TicTacToeGame):
    """Some stones fall on another empty square."""

    random = np.random.default_rng(0)

    def getNextState(self, board, player, action):
        if self.random.random() < 0.2:
            x, y = self.random.permutation(np.argwhere(board == 0))[0]
            action = self.n * x + y
        return super().getNextState(board, player, action)


class TurnsTheBoardAlone(TicTacToeGame):
    """The images of policies are wrong."""

    def getSymmetries(self, board, pi):
        return [(np.rot90(board, turns), pi) for turns in range(4)]


class FlatBoard(TicTacToeGame):
    """A board of one dimension, whatever size getBoardSize tells."""

    def __init__(self, size=(1, 9)):
        self.n, self.size = 3, size

    def getInitBoard(self):
        return np.zeros(9)

    def getBoardSize(self):
        return self.size

    def getNextState(self, board, player, action):
        board[action] = player
        return [board, -player]  # two values, as a search takes them apart

    def getValidMoves(self, board, player):
        return [*(board == 0), False]

    def getGameEnded(self, board, player):
        return np.float32(super().getGameEnded(board.reshape(3, 3), player))

    def getSymmetries(self, board, pi):
        return [(image.ravel(), policy) for image, policy in super().getSymmetries(board.reshape(3, 3), pi)]


class ListBoard(TicTacToeGame):
    """A board of lists, which methods of lists work on."""

    def getInitBoard(self):
        return [[0] * 3 for _ in range(3)]

    def getNextState(self, board, player, action):
        board = [row.copy() for row in board]
        board[action // 3].insert(action % 3, player)
        del board[action // 3][action % 3 + 1]
        return board, -player

    def getValidMoves(self, board, player):
        return super().getValidMoves(np.array(board), player)

    def getGameEnded(self, board, player):
        if sum(row.count(0) for row in board) > 4:
            return 0
        return super().getGameEnded(np.array(board), player)

    def getCanonicalForm(self, board, player):
        return [[player * cell for cell in row] for row in board]


class FourByFour(TicTacToeGame):
    """Chooses the arguments of another class, and no more."""

    def __init__(self):
        super().__init__(4)


class NoSymmetries(TicTacToeGame):
    getSymmetries = None


class SymmetriesOfNothing(TicTacToeGame):
    def getSymmetries(self, board, pi):
        return []


class SymmetriesThatFail(TicTacToeGame):
    def getSymmetries(self, board, pi):
        raise AssertionError("a board of stones")


class OtherShapes(TicTacToeGame):
    def getCanonicalForm(self, board, player):
        return player * (board if (board == 0).all() else board[:, :1])


class ForgetsTheBoard(TicTacToeGame):
    def getInitBoard(self):
        super().getInitBoard()
