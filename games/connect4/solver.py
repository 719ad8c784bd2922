"""Connect Four solved exactly: the score of any position, and of every move in it.

The score is positive if the player to move wins, negative if the opponent does, 0 for a draw; its size says how early:
22 less the number of stones that the winner will have played, which is half the stones left on the board, plus one.

The method is that of Pascal Pons' series "Solving Connect 4" (blog.gamesolver.org): bitboards, negamax with null
windows that close in on the score, only moves that do not lose at once, those that make most threats first, and a
transposition table; a book of all positions of 12 stones spares what lies below them (see `games.connect4.book`).

    python -m games.connect4.solver 4453            the board, and what every column leads to
    python -m games.connect4.solver --file FILE     checks a file of lines `moves score`
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from numba import njit

from alphazero.commands.shared import parse, run_command
from alphazero.errors import InputError, InvalidSetting, StorageError
from alphazero.game import Position
from alphazero.game.kernels import Kernels, kernel
from alphazero.progress import Progress, count_cores
from alphazero.storage.files import read_npz
from games.connect4.game import completing_squares
from games.connect4.notation import GAME, parse_moves, parse_scored_line, read_lines

BOOK_PLY = 12
"""The book holds every position of so many stones."""
BOOK_FILE = Path(__file__).parent / "data" / "book.npz"
NO_SCORE = -100
"""In arrays of column scores: the column cannot be played."""
TABLE_ENTRIES = 1 << 20
"""Entries of 8 bytes in each thread's transposition table; more would find more but leave the processor's cache."""
POSITIONS_PER_CALL = 64
"""Positions that a thread takes at once, at most."""

# What follows is compiled. `own` and `stones` are uint64: the mover's stones, and those of both. Seven bits a column,
# the lowest at the bottom, the highest always 0.

ONE = np.uint64(1)
SIX = np.uint64(0b111111)
SEVEN = np.uint64(0b1111111)
BOTTOM = np.uint64(sum(1 << 7 * column for column in range(7)))
BOARD = np.uint64(sum(0b111111 << 7 * column for column in range(7)))
SQUARES = 42
CENTRE_FIRST = (3, 2, 4, 1, 5, 0, 6)
MIRRORED_PLIES = 14
"""Up to here mirror images share an entry of the transposition table; later they hardly ever meet."""
LOOK_AHEAD_PLIES = 30
"""Up to here a position's children are sought in the transposition table before any is searched; later the search is
quicker than the look."""
SCORE_OFFSET = 32
"""Makes a score a positive number in the transposition table."""
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
BOOK_BITS = 5
BOOK_OFFSET = 15
"""A score in the book is stored as a number of 5 bits, less this."""


@njit
def count_bits(word):
    """How many bits of a uint64 are 1."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit
def open_squares(stones):
    """The lowest empty square of every column that is not full."""
    return (stones + BOTTOM) & BOARD


@njit
def can_win(own, stones):
    """The mover has a stone to play that makes four."""
    return completing_squares(own) & open_squares(stones) != np.uint64(0)


@njit
def safe_squares(own, stones):
    """Squares to play on after which the opponent cannot win at once, if the mover cannot win now."""
    threats = completing_squares(own ^ stones) & (BOARD ^ stones)
    squares = open_squares(stones)
    forced = squares & threats
    if forced:
        if forced & (forced - ONE):
            return np.uint64(0)  # two wins to block with one stone
        squares = forced
    return squares & ~(threats >> ONE)  # nor below a square where the opponent wins


@njit
def make_key(own, stones):
    """A number of 49 bits that no other position has: each column's stones under a bit that shows their height."""
    return own + stones + BOTTOM


@njit
def mirror(word):
    """The word of seven columns with left and right exchanged."""
    image = np.uint64(0)
    for column in range(7):
        image |= ((word >> np.uint64(7 * column)) & SEVEN) << np.uint64(7 * (6 - column))
    return image


@njit
def canonical_key(own, stones):
    """The same key for a position and its mirror image."""
    key = make_key(own, stones)
    return min(key, mirror(key))


@njit
def mix(word):
    """Scatters the bits of a word (the finalizer of MurmurHash3)."""
    word = (word ^ (word >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    word = (word ^ (word >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return word ^ (word >> np.uint64(33))


@njit
def book_cells(key, seed, num_segments, segment_size):
    """The three cells that hold a key's score, in neighbouring segments (Graf and Lemire 2022, "Binary Fuse Filters").

    `segment_size` is a power of two; the table has `num_segments` + 2 of them.
    """
    scattered = mix(key ^ seed)
    first = ((scattered >> np.uint64(32)) * num_segments * segment_size) >> np.uint64(32)
    last_bits = segment_size - ONE
    second = (first + segment_size) ^ (scattered & last_bits)
    third = (first + segment_size + segment_size) ^ ((scattered >> np.uint64(16)) & last_bits)
    return first, second, third


@njit
def read_cell(book, cell):
    """The `BOOK_BITS` bits of one cell."""
    bit = cell * np.uint64(BOOK_BITS) + np.uint64(8 * BOOK_HEADER)
    byte = bit >> np.uint64(3)
    pair = np.uint64(book[byte]) | np.uint64(book[byte + ONE]) << np.uint64(8)
    return (pair >> (bit & np.uint64(7))) & np.uint64((1 << BOOK_BITS) - 1)


BOOK_HEADER = 24
"""Bytes before the cells: seed, number of segments, size of a segment; 8 each, the lowest byte first."""


@njit
def read_word(book, start):
    """Eight bytes of the header."""
    word = np.uint64(0)
    for i in range(8):
        word |= np.uint64(book[start + i]) << np.uint64(8 * i)
    return word


@njit
def look_up(own, stones, book):
    """The score of a position of 12 stones; the mover cannot win at once and has a safe square."""
    key = canonical_key(own, stones)
    first, second, third = book_cells(key, read_word(book, 0), read_word(book, 8), read_word(book, 16))
    stored = read_cell(book, first) ^ read_cell(book, second) ^ read_cell(book, third)
    return np.int64(stored) - BOOK_OFFSET


@njit
def table_key(own, stones, ply):
    """The key in the transposition table of a position of `ply` stones."""
    return canonical_key(own, stones) if ply <= MIRRORED_PLIES else make_key(own, stones)


@njit
def slot_of(key, table):
    """Where a key is kept in a table of 2^n entries."""
    return (key * GOLDEN) >> np.uint64(64 - count_bits(np.uint64(len(table) - 1)))


@kernel
def negamax(own, stones, ply, alpha, beta, table, moves, book):
    """The score, if it lies between alpha and beta; else a bound of it on the same side.

    The mover cannot win at once. `table uint64[2^n]`: the transposition table; an entry is a key and, in the lowest
    byte, 2 * (score + 32), plus 1 if the score is a lower bound, else it is an upper one. `moves uint64[8 * 43]` is
    scratch space, whose first word counts the positions looked at; `book uint8[...]` may be empty.

    Call it with variables for alpha and beta: numba takes a literal for a type of its own, and what it then keeps on
    disk of a recursive function crashes (its issue 6061).
    """
    moves[0] += ONE
    squares = safe_squares(own, stones)
    if not squares:
        return -((SQUARES - ply) // 2)  # the opponent's next stone wins
    if ply >= SQUARES - 2:
        return 0
    if ply == BOOK_PLY and len(book):
        return look_up(own, stones, book)
    alpha = max(alpha, -((SQUARES - 2 - ply) // 2))  # the opponent cannot win before the stone after next
    beta = min(beta, (SQUARES - 1 - ply) // 2)  # nor the mover before the next but one
    if alpha >= beta:
        return alpha
    key = table_key(own, stones, ply)
    slot = slot_of(key, table)
    entry = table[slot]
    if entry >> np.uint64(8) == key:
        bound = np.int64((entry & np.uint64(0xFF)) >> ONE) - SCORE_OFFSET
        if entry & ONE:
            alpha = max(alpha, bound)
        else:
            beta = min(beta, bound)
        if alpha >= beta:
            return bound
    # most threats first, then from the centre outwards; a move and its threats share a word
    empty = BOARD ^ stones
    first = 8 + 8 * ply
    end = first
    for column in CENTRE_FIRST:
        square = squares & (SIX << np.uint64(7 * column))
        if square:
            if ply < LOOK_AHEAD_PLIES:  # does an entry show that this move is good enough?
                child = table_key(own ^ stones, stones | square, ply + 1)
                entry = table[slot_of(child, table)]
                if entry >> np.uint64(8) == child and not entry & ONE:
                    bound = SCORE_OFFSET - np.int64((entry & np.uint64(0xFF)) >> ONE)
                    if bound >= beta:
                        return bound
            num_threats = np.uint64(count_bits(completing_squares(own | square) & empty))
            place = end
            while place > first and moves[place - 1] >> np.uint64(56) < num_threats:
                moves[place] = moves[place - 1]
                place -= 1
            moves[place] = square | num_threats << np.uint64(56)
            end += 1
    for place in range(first, end):
        square = moves[place] & BOARD
        score = -negamax(own ^ stones, stones | square, ply + 1, -beta, -alpha, table, moves, book)
        if score >= beta:
            table[slot] = key << np.uint64(8) | np.uint64(2 * (score + SCORE_OFFSET) + 1)
            return score
        alpha = max(alpha, score)
    table[slot] = key << np.uint64(8) | np.uint64(2 * (alpha + SCORE_OFFSET))
    return alpha


@kernel
def solve_one(own, stones, weak, table, moves, book):
    """The score of a position that is not over; its sign alone if `weak`."""
    ply = count_bits(stones)
    if can_win(own, stones):
        return 1 if weak else (SQUARES + 1 - ply) // 2
    low, high = -((SQUARES - ply) // 2), (SQUARES + 1 - ply) // 2
    if weak:
        low, high = -1, 1
    while low < high:
        middle = low + (high - low) // 2
        if middle <= 0 and -(-low // 2) < middle:  # scores near 0 are likelier, and quicker to prove
            middle = -(-low // 2)
        elif middle >= 0 and high // 2 > middle:
            middle = high // 2
        bound = negamax(own, stones, ply, middle, middle + 1, table, moves, book)
        if bound <= middle:
            high = bound
        else:
            low = bound
    return min(max(low, -1), 1) if weak else low


@kernel
def solve_many(states, weak, table, moves, book, scores):
    """Writes `scores int8[n]` of `states uint64[n, 2]`, none of them over."""
    for i in range(len(states)):
        scores[i] = solve_one(states[i, 0], states[i, 0] | states[i, 1], weak, table, moves, book)


# --- the face ---


class Solver:
    """Solves positions on all cores; keeps what it has found in one table of 8 MB for each thread.

    `book` false: without the opening book.
    """

    def __init__(self, threads: int | None = None, book: bool = True):
        self._threads = count_cores() if threads is None else threads
        self._pool = ThreadPoolExecutor(self._threads)
        self._own = threading.local()
        self._memories: list[np.ndarray] = []
        self._book = read_book() if book else np.zeros(0, np.uint8)
        self._kernels = Kernels(GAME)

    @property
    def num_nodes(self) -> int:
        """Positions looked at so far."""
        return sum(int(moves[0]) for moves in self._memories)

    def solve(self, position: Position, weak: bool = False) -> int:
        """The score of a position; -1, 0 or 1 if `weak`."""
        return int(self.solve_all(position.state[None], weak)[0])

    def column_scores(self, position: Position, weak: bool = False) -> list[int | None]:
        """The score of playing each column, for the player to move; None where a column cannot be played."""
        scores = self.column_scores_all(position.state[None], weak)[0]
        return [None if score == NO_SCORE else int(score) for score in scores]

    def solve_all(self, states: np.ndarray, weak: bool = False) -> np.ndarray:
        """Scores `int8[n]` of `states uint64[n, 2]`, as the game has them."""
        _, terminal, values = self._kernels.describe_all(states)
        lost_by = (SQUARES + 2 - np.bitwise_count(states).sum(axis=1, dtype=np.int64)) // 2
        scores = np.where(values < 0, -1 if weak else -lost_by, 0).astype(np.int8)
        scores[~terminal] = self._solve_open(states[~terminal], weak)
        return scores

    def column_scores_all(self, states: np.ndarray, weak: bool = False) -> np.ndarray:
        """The score `int8[n, 7]` of every column of `states uint64[n, 2]`; NO_SCORE where it cannot be played."""
        legal_masks, _, _ = self._kernels.describe_all(states)
        rows, columns = np.nonzero(legal_masks)
        children = states[rows]
        self._kernels.play(children, np.zeros(len(rows), np.int8), columns)
        scores = np.full(legal_masks.shape, NO_SCORE, np.int8)
        scores[rows, columns] = -self.solve_all(children, weak)
        return scores

    def solve_timed(self, states: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """`(scores int8[m], seconds float64[m])` of `states uint64[n, 2]`, piece after piece, none of them over.

        The seconds are of processor time: those that a thread waits for others do not count.
        """

        def work(piece: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            scores, seconds = np.empty(len(piece), np.int8), np.empty(len(piece))
            memory = self._memory()
            for i in range(len(piece)):
                one, score = piece[i : i + 1], scores[i : i + 1]
                begin = time.thread_time()
                solve_many(one, False, *memory, self._book, score)
                seconds[i] = time.thread_time() - begin
            return scores, seconds

        return self._pool.map(work, np.array_split(states, math.ceil(len(states) / 8)))

    def _solve_open(self, states: np.ndarray, weak: bool) -> np.ndarray:
        """Scores of positions that are not over."""
        scores = np.empty(len(states), np.int8)
        size = max(1, min(POSITIONS_PER_CALL, len(states) // (8 * self._threads)))

        def work(start: int) -> None:
            piece = slice(start, start + size)
            solve_many(states[piece], weak, *self._memory(), self._book, scores[piece])

        list(self._pool.map(work, range(0, len(states), size)))
        return scores

    def _memory(self) -> tuple[np.ndarray, np.ndarray]:
        """This thread's transposition table and scratch space."""
        if not hasattr(self._own, "memory"):
            table = np.full(TABLE_ENTRIES, 0, np.uint64)  # unlike zeros, it touches its memory now, not in a search
            self._own.memory = table, np.zeros(8 * (SQUARES + 1), np.uint64)
            self._memories.append(self._own.memory[1])
        return self._own.memory


def read_book(path: Path = BOOK_FILE) -> np.ndarray:
    """The book `uint8[...]` in a file; raises StorageError if it is none."""
    book = read_npz(path, 1 << 23).get("book", np.zeros(0))
    if book.dtype == np.uint8 and book.ndim == 1 and len(book) > BOOK_HEADER:
        _, num_segments, segment_size = (int(word) for word in book[:BOOK_HEADER].view("<u8"))
        num_bits = (num_segments + 2) * segment_size * BOOK_BITS
        if segment_size & (segment_size - 1) == 0 and len(book) == BOOK_HEADER + -(-num_bits // 8) + 1:
            return book
    raise StorageError(f"{path} is not an opening book; make it anew by python -m games.connect4.book --make")


@cache
def shared_solver() -> Solver:
    """The one that the functions below use."""
    return Solver()


def solve(position: Position, weak: bool = False) -> int:
    """The exact score of a position for the player to move; -1, 0 or 1 if `weak`."""
    return shared_solver().solve(position, weak)


def column_scores(position: Position, weak: bool = False) -> list[int | None]:
    """The exact score of each column for the player to move, None where it cannot be played."""
    return shared_solver().column_scores(position, weak)


def solve_all(states: np.ndarray, weak: bool = False) -> np.ndarray:
    """Scores `int8[n]` of `states uint64[n, 2]`, on all cores."""
    return shared_solver().solve_all(states, weak)


def column_scores_all(states: np.ndarray, weak: bool = False) -> np.ndarray:
    """Column scores `int8[n, 7]` of `states uint64[n, 2]`, on all cores; NO_SCORE where a column cannot be played."""
    return shared_solver().column_scores_all(states, weak)


# --- the command ---


@dataclass(frozen=True)
class SolverConfig:
    """Solves a Connect Four position exactly: what every column leads to when both play perfectly.

    A score is positive if the player to move wins, negative if the opponent does; its size says how early.
    """

    moves: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[MOVES]")] = ""
    """The columns played so far, 1-7, as in 4453; nothing = the empty board."""
    file: Path | None = None
    """Check this file instead: one position a line, as `moves score`."""
    book: bool = True
    """Use the opening book; with --no-book the solver searches alone."""
    threads: int = field(default_factory=count_cores)
    """Processor threads."""

    def __post_init__(self) -> None:
        if not 1 <= self.threads <= 1024:
            raise InvalidSetting(f"--threads must lie between 1 and 1,024, not {self.threads}")
        if self.file is not None and self.moves:
            raise InvalidSetting("MOVES and --file exclude each other: give one of them")


def main(argv: list[str]) -> None:
    config = parse(SolverConfig, argv)
    if config.file is not None:
        check_file(config.file, Solver(config.threads, config.book))
    else:
        show_position(parse_moves(config.moves), Solver(config.threads, config.book))


def show_position(position: Position, solver: Solver) -> None:
    """Prints the board and what each column leads to."""
    print(f"{position}\n")
    if position.terminal:
        print({1: "X has won", -1: "O has won", 0: "a draw"}[position.outcome] + f" after {position.ply} moves")
        return
    scores = solver.column_scores(position)
    best = max(score for score in scores if score is not None)
    outcome = describe(best, position) if best else "it is a draw"
    print(f"{'XO'[position.to_play]} to move after {position.ply} moves; with perfect play {outcome}\n")
    print("column  score")
    for action, score in enumerate(scores):
        if score is None:
            print(f"{action + 1:>6}      -  full")
        else:
            print(f"{action + 1:>6}  {score:>5}  {describe(score, position)}")
    columns = [str(action + 1) for action, score in enumerate(scores) if score == best]
    print(f"\nbest: {', '.join(columns)}")


def describe(score: int, position: Position) -> str:
    """A score in words, for the player to move; the moves counted are the winner's."""
    if score == 0:
        return "draw"
    mover_wins = score > 0
    stones = (position.ply + (0 if mover_wins else 1)) // 2
    return f"{'wins' if mover_wins else 'loses'} in {SQUARES // 2 + 1 - abs(score) - stones}"


def check_file(path: Path, solver: Solver) -> None:
    """Solves every line of a file, prints the wrong ones and how long it took; raises InputError if any is wrong."""
    lines = [(place, *parse_scored_line(line, place)) for place, line in read_lines(path)]
    states = np.array([position.state for _, position, _ in lines])
    solver.solve(parse_moves("112233"))  # loads what is compiled
    before, num_done, num_wrong = solver.num_nodes, 0, 0
    seconds: list[float] = []
    with Progress(f"solving {path}") as progress:
        for scores, times in solver.solve_timed(states):
            for (place, _, given), score in zip(lines[num_done:], scores, strict=False):
                if score != given:
                    num_wrong += 1
                    print(f"{place}: the score is {score}, not {given}")
            num_done += len(scores)
            seconds += times.tolist()
            progress.show(num_done / len(lines), f"{num_done} of {len(lines)} positions, {num_wrong} wrong")
    num_nodes = solver.num_nodes - before
    print(
        f"{len(lines) - num_wrong} of {len(lines)} right; mean {1e3 * sum(seconds) / len(lines):.4f} ms, "
        f"worst {1e3 * max(seconds):.3f} ms; mean {num_nodes / len(lines):,.0f} nodes, "
        f"{num_nodes / sum(seconds) / 1e6:.2f} million nodes/s"
    )
    if num_wrong:
        raise InputError(f"wrong scores in {path}: {num_wrong} of {len(lines)}; mend the lines named above")


if __name__ == "__main__":
    sys.exit(run_command(main))
