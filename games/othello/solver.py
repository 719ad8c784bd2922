"""The end of an Othello game solved exactly: the final disc difference of any position, and of every move in it.

The score is that of the player to move, own discs less the opponent's; squares that stay empty go to the winner, as in
tournaments (World Othello Federation, rule 15). The method is the usual one (G. Andersson, "Writing an Othello
program", 2007): negamax with null windows, a transposition table, moves first that leave the opponent fewest replies,
and towards the very end those into regions with an odd number of empty squares. All players and results of a board
size use one solver, so its transposition tables are in memory once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import numpy as np
from numba import njit

from alphazero.errors import InvalidSetting, count_of
from alphazero.game import Game, Position
from alphazero.game.kernels import Kernels, kernel
from alphazero.game.spec import ExactResult, Oracle
from alphazero.players.baselines import NO_SCORE, ExactSolver, MinimaxPlayer, ScorePlayer
from alphazero.players.player import Player
from games.othello.game import ZERO, Othello, board_of, count_bits, moves_of, squares_where, turned_by

TABLE_ENTRIES = 1 << 17
"""Entries of 24 bytes in each thread's transposition table."""
SORTED_FROM = 5
"""Positions with at least this many empty squares sort their moves by the number of replies."""
STORED_FROM = 6
"""Positions with at least this many empty squares are kept in the transposition table."""
EMPTY_SQUARES = 16
"""Default number of empty squares from which the solver plays perfectly; a position takes about 0.1 s."""
MOST_EMPTY_SQUARES = 22
DEPTH = 4
"""Depth of the minimax search that the solver plays by earlier in the game."""

# What follows is compiled. Words as in `games.othello.game`; `field uint64[8]` describes the board: all squares, those
# of the inner columns, the corners, and the four quarters.

ONE = np.uint64(1)
BOARD, INNER, CORNERS, QUARTERS = 0, 1, 2, 3
GOLDEN, OTHER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


@njit
def final_score(own, opponent, num_empty):
    """The score of a game that is over."""
    lead = count_bits(own) - count_bits(opponent)
    return lead + num_empty if lead > 0 else lead - num_empty if lead < 0 else 0


@njit
def last_square(own, opponent, square, inner):
    """The score when one square is left: the mover takes it, or else the opponent, or nobody."""
    lead = count_bits(own) - count_bits(opponent)
    turned = turned_by(own, opponent, square, inner)
    if turned:
        return lead + 2 * count_bits(turned) + 1
    turned = turned_by(opponent, own, square, inner)
    if turned:
        return lead - 2 * count_bits(turned) - 1
    return final_score(own, opponent, 1)


@njit
def odd_quarters(empty, field):
    """All squares of the quarters that have an odd number of empty ones."""
    squares = ZERO
    for quarter in range(QUARTERS, QUARTERS + 4):
        if count_bits(empty & field[quarter]) & 1:
            squares |= field[quarter]
    return squares


@njit
def slot_of(own, opponent, table):
    """The row of a position in a table of 2^n rows."""
    mixed = own * GOLDEN ^ (opponent * OTHER)
    mixed ^= mixed >> np.uint64(32)
    return np.int64((mixed * GOLDEN) >> np.uint64(64 - count_bits(np.uint64(len(table) - 1))))


@njit
def unpack(word):
    """The bounds of a score that a row of the transposition table holds."""
    return np.int64(word & np.uint64(255)) - 128, np.int64(word >> np.uint64(8)) - 128


@kernel
def negamax(own, opponent, alpha, beta, field, table, moves):
    """The score, if it lies between alpha and beta; else a bound of it on the same side.

    `table uint64[2^n, 3]`: the transposition table; a row holds own, opponent, and the bounds of the score, 128 +
    lower in the lowest byte and 128 + upper in the next. `moves uint64[65, 40, 2]` is scratch space, a page for each
    number of empty squares; `moves[0, 0, 0]` counts the positions looked at. Call it with variables for alpha and beta:
    numba takes a literal for a type of its own, and what it then keeps on disk of a recursive function crashes (its
    issue 6061).
    """
    moves[0, 0, 0] += ONE
    board, inner = field[BOARD], field[INNER]
    empty = board & ~(own | opponent)
    num_empty = count_bits(empty)
    if num_empty == 0:
        return final_score(own, opponent, num_empty)
    if num_empty == 1:
        return last_square(own, opponent, empty, inner)
    playable = moves_of(own, opponent, board, inner)
    if playable == ZERO:
        if moves_of(opponent, own, board, inner) == ZERO:
            return final_score(own, opponent, num_empty)
        return -negamax(opponent, own, -beta, -alpha, field, table, moves)
    slot, low, high = 0, -64, 64
    if num_empty >= STORED_FROM:
        slot = slot_of(own, opponent, table)
        if table[slot, 0] == own and table[slot, 1] == opponent:
            low, high = unpack(table[slot, 2])
            if low >= beta or low == high:
                return low
            if high <= alpha:
                return high
            alpha, beta = max(alpha, low), min(beta, high)
    page, count = moves[num_empty], 0
    odd = odd_quarters(empty, field)
    rest = playable
    while rest:
        square = rest & (~rest + ONE)
        rest ^= square
        rank = np.int64(8 if square & odd else 0)
        if num_empty >= SORTED_FROM:
            turned = turned_by(own, opponent, square, inner)
            replies = moves_of(opponent ^ turned, own | turned | square, board, inner)
            # a corner among the replies counts twice
            rank -= 16 * (count_bits(replies) + count_bits(replies & field[CORNERS]))
            if square & field[CORNERS]:
                rank += 24
        place = count
        while place > 0 and np.int64(page[place - 1, 1]) < rank + 4096:
            page[place, 0], page[place, 1] = page[place - 1, 0], page[place - 1, 1]
            place -= 1
        page[place, 0], page[place, 1] = square, np.uint64(rank + 4096)
        count += 1
    best, floor = -65, alpha
    for place in range(count):
        square = page[place, 0]
        turned = turned_by(own, opponent, square, inner)
        child_own, child_opponent = opponent ^ turned, own | turned | square
        if place == 0:
            score = -negamax(child_own, child_opponent, -beta, -floor, field, table, moves)
        else:  # is it better than the best so far? mostly not, which a null window shows at least cost
            score = -negamax(child_own, child_opponent, -floor - 1, -floor, field, table, moves)
            if floor < score < beta:
                score = -negamax(child_own, child_opponent, -beta, -score, field, table, moves)
        if score > best:
            best = score
            floor = max(floor, score)
            if score >= beta:
                break
    if num_empty >= STORED_FROM:
        if best >= beta:
            low = max(low, best)
        elif best <= alpha:
            high = min(high, best)
        else:
            low = high = best
        table[slot, 0], table[slot, 1] = own, opponent
        table[slot, 2] = np.uint64(low + 128) | np.uint64(high + 128) << np.uint64(8)
    return best


@kernel
def score_moves(states, size, best_only, lowest, field, table, moves, scores):
    """Writes the score of every move of `states uint64[n, 2]` into `scores int8[n, A]`, NO_SCORE where there is none.

    A finished game has no move. `best_only`: a move that is not among the best may get any lower score. `lowest` is
    -65: see `negamax`.
    """
    for i in range(len(states)):
        own, opponent = states[i, 0], states[i, 1]
        playable = moves_of(own, opponent, field[BOARD], field[INNER])
        may_pass = playable == ZERO and moves_of(opponent, own, field[BOARD], field[INNER]) != ZERO
        floor = lowest
        for action in range(size * size + 1):
            square = ONE << np.uint64(8 * (action // size) + action % size) if action < size * size else ZERO
            allowed = may_pass if action == size * size else playable & square != ZERO
            scores[i, action] = NO_SCORE
            if allowed:
                turned = turned_by(own, opponent, square, field[INNER]) if square else ZERO
                low = max(floor - 1, lowest) if best_only else lowest
                score = -negamax(opponent ^ turned, own | turned | square, lowest, -low, field, table, moves)
                scores[i, action] = score
                floor = max(floor, score)


def field_of(size: int) -> np.ndarray:
    """`uint64[8]` for `negamax`."""
    board, inner = board_of(size)
    ends, half = (0, size - 1), size // 2
    corners = squares_where(size, lambda row, col: row in ends and col in ends)
    quarters = [
        squares_where(size, lambda row, col, q=quarter: (row >= half) + 2 * (col >= half) == q) for quarter in range(4)
    ]
    return np.array([board, inner, corners, *quarters, 0], np.uint64)


# --- the face ---


class Solver(ExactSolver):
    """Solves positions of one board size on all cores, with a transposition table for each thread."""

    def __init__(self, game: Othello, threads: int | None = None):
        super().__init__(lambda: (np.zeros((TABLE_ENTRIES, 3), np.uint64), np.zeros((65, 40, 2), np.uint64)), threads)
        self._game, self._field = game, field_of(game.size)

    def num_empty(self, states: np.ndarray) -> np.ndarray:
        """Empty squares `int64[n]` of `states uint64[n, 2]`."""
        return self._game.size**2 - np.bitwise_count(states).sum(axis=1, dtype=np.int64)

    def move_scores(self, states: np.ndarray, best_only: bool = False, threads: int | None = None) -> np.ndarray:
        """The score `int8[n, A]` of every action of `states uint64[n, 2]`, for its mover; NO_SCORE where not allowed.

        With `best_only` the best ones are exact, and the others are anything lower; that is faster. `threads`: the
        number of cores to use, if it is to be fewer than the solver has.
        """
        scores = np.empty((len(states), self._game.num_actions), np.int8)
        order = np.argsort(-self.num_empty(states), kind="stable")  # what takes longest first

        def work(place: slice, table: np.ndarray, moves: np.ndarray) -> None:
            row = order[place.start]
            one, found = states[row : row + 1], scores[row : row + 1]
            score_moves(one, self._game.size, best_only, -65, self._field, table, moves, found)

        self.share(len(states), 1, work, threads)
        return scores


@cache
def shared_solver(board: type[Othello]) -> Solver:
    """The solver of this process for a board size."""
    return Solver(board())


# --- for the framework ---


class SolverPlayer(Player):
    """Plays for the most discs, perfectly, with at most `empty_squares` empty squares; before that by minimax."""

    def __init__(self, kernels: Kernels, empty_squares: int, seed: int, threads: int):
        self.name = f"solver:{empty_squares}"
        assert isinstance(kernels.game, Othello)
        solver = shared_solver(type(kernels.game))  # type: ignore[arg-type]
        self._solver, self._empty_squares = solver, empty_squares
        self._exact = ScorePlayer("", seed, lambda x: solver.move_scores(x, best_only=True, threads=threads))
        self._minimax = MinimaxPlayer(kernels, DEPTH, seed, threads)

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        actions = np.empty(len(states), np.int64)
        solved = self._solver.num_empty(states) <= self._empty_squares
        for rows, player in ((solved, self._exact), (~solved, self._minimax)):
            if rows.any():
                actions[rows] = player.select_actions(states[rows], games[rows], plies[rows])
        return actions


def make_greedy(kernels: Kernels, argument: str, settings: Mapping[str, str], *, seed: int, threads: int) -> Player:
    """Takes the move that turns over the most discs."""
    if argument or settings:
        raise InvalidSetting("greedy takes no argument and no settings; write greedy")

    def count_discs(states: np.ndarray) -> np.ndarray:
        legal_masks, _, _ = kernels.describe_all(states)
        counts = np.zeros(legal_masks.shape, np.int64)
        rows, actions = np.nonzero(legal_masks)
        children = states[rows]
        kernels.play(children, np.zeros(len(rows), np.int8), actions)
        counts[rows, actions] = 1 + np.bitwise_count(children[:, 1])  # the mover's discs, seen from the other side
        return counts

    return ScorePlayer("greedy", seed, count_discs)


def make_solver(
    kernels: Kernels, argument: str, settings: Mapping[str, str], *, seed: int, threads: int
) -> SolverPlayer:
    wanted = argument or str(EMPTY_SQUARES)
    if settings or not re.fullmatch("[0-9]{1,2}", wanted) or not 1 <= int(wanted) <= MOST_EMPTY_SQUARES:
        raise InvalidSetting(
            "solver takes no settings, and as its argument the number of empty squares from which it plays perfectly, "
            f"1 to {MOST_EMPTY_SQUARES}: write solver or solver:20"
        )
    return SolverPlayer(kernels, int(wanted), seed, threads)


def make_oracle(game: Game) -> Oracle:
    assert isinstance(game, Othello)
    solver = shared_solver(type(game))  # type: ignore[arg-type]

    def num_empty(position: Position) -> int:
        return int(solver.num_empty(position.state[None].copy())[0])

    def limit(position: Position) -> str:
        return f"it has {count_of(num_empty(position), 'empty square')}, and {EMPTY_SQUARES} or fewer can be solved"

    def solve(position: Position) -> dict[int, ExactResult]:
        if num_empty(position) > EMPTY_SQUARES:
            return {}
        scores = solver.move_scores(position.state[None].copy())[0].tolist()
        best_first = sorted(position.legal_actions, key=lambda action: -scores[action])
        return {action: ExactResult(int(np.sign(scores[action])), abs(scores[action]) or None) for action in best_first}

    return Oracle(solve, how="by", unit="disc", limit=limit)
