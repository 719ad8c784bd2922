"""English draughts (American checkers) on the 32 dark squares of a board of 8 x 8.

Squares have the numbers 1 to 32 of PDN; the first player, Black, begins on 1 to 12 and moves down this picture. A bit
is a square's number less 1 as the mover sees it; after each move the board turns round, so that the mover's men always
go to higher numbers:

     .  1  .  2  .  3  .  4
     5  .  6  .  7  .  8  .
     ...
    29  . 30  . 31  . 32  .

A man goes a step forward on a slant, a king also backward. Who can jump over a piece of the opponent's to the square
behind it, which takes the piece, must, and must go on with the same piece while it can. A man that reaches the last
row becomes a king, which ends its move. Who cannot move loses. A position that comes for the third time is a draw, and
so is a game after 40 moves of each player without a jump or a move of a man.

Each step and each jump is an action, 4 * bit + direction: the position tells which of both, since all are jumps where
one is. `state` is (pieces, kings and more, history ...). The first word has the mover's pieces in its low half, the
opponent's in the high one; reversing all its bits turns the board and exchanges the players. The second has the kings
of both in its low half, and these fields:

bit + 1 of the piece that jumps on, or 0    player to move    earlier times of the position    quiet moves
6 bits                                      1 bit             2 bits                           7 bits

The history is the moves of kings since the last jump or move of a man, nine of 7 bits in a word: all that a position
can be repeated by. Undone one by one from the present, they tell how often it was there. Its last word counts actions.
"""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np
from numba import njit

from alphazero.game import Board, Colors, Game, Label, Piece, Position, Rules, edge_labels, grid_cells, reverse_bits

ZERO, ONE, HALF = np.uint64(0), np.uint64(1), np.uint64(32)
ALL, LAST_ROW = np.uint64(0xFFFFFFFF), np.uint64(0xF0000000)
UPPER, LOWER = np.uint64(0x0F0F0F0F), np.uint64(0xF0F0F0F0)
"""Rows 1, 3, 5, 7 of the picture, whose squares lie to the right, and the others."""
LOWER_INNER, UPPER_INNER = np.uint64(0xE0E0E0E0), np.uint64(0x07070707)
"""Without the squares at the left edge, and at the right one."""
NUM_SQUARES, DIRECTIONS = 32, 4
NUM_ACTIONS = DIRECTIONS * NUM_SQUARES
BACK_LEFT, BACK_RIGHT, LEFT = 0, 1, 2
"""Directions, of which d and 3 - d are opposite; the last one is forward to the right. Action 0 is never legal, so that
it means none in the history."""
JUMPS = -9, -7, 7, 9
"""The difference that a jump in each direction makes to the square."""
JUMPER, PLAYER, REPEATED, QUIET = np.uint64(32), np.uint64(38), np.uint64(39), np.uint64(41)
"""The lowest bits of the fields."""
HISTORY, IN_A_WORD, BITS = 2, 9, 7
MOST_QUIET, MOST_ACTIONS = 80, 400
"""Moves of both players; and actions after which a game is drawn, which hardly one reaches."""
COUNT = HISTORY + -(-MOST_QUIET // IN_A_WORD)
COLORS = Colors("#3b2a1f", "#f1e4d3", "#ecd9b8", "#8c6a4a", "#6f5238", first="#1d1d1d", second="#f7f3ea")


@njit
def field(state, bit, size):
    return np.int64((state[1] >> bit) & ((ONE << np.uint64(size)) - ONE))


@njit
def neighbours(squares, direction):
    """The squares next to some, in one direction."""
    if direction == BACK_LEFT:
        return ((squares & UPPER) >> np.uint64(4)) | ((squares & LOWER_INNER) >> np.uint64(5))
    if direction == BACK_RIGHT:
        return ((squares & LOWER) >> np.uint64(4)) | ((squares & UPPER_INNER) >> np.uint64(3))
    if direction == LEFT:
        return (((squares & UPPER) << np.uint64(4)) | ((squares & LOWER_INNER) << np.uint64(3))) & ALL
    return (((squares & LOWER) << np.uint64(4)) | ((squares & UPPER_INNER) << np.uint64(5))) & ALL


@njit
def starts(own, opponent, kings, direction, jumps):
    """The squares of those of `own` that can go a step in a direction, or jump."""
    target = ALL & ~(own | opponent)
    if jumps:
        target = opponent & neighbours(target, 3 - direction)
    return (own if direction >= LEFT else own & kings) & neighbours(target, 3 - direction)


@njit
def all_starts(own, opponent, kings, jumps):
    found = ZERO
    for direction in range(DIRECTIONS):
        found |= starts(own, opponent, kings, direction, jumps)
    return found


@njit
def sides(state):
    return state[0] & ALL, state[0] >> HALF, state[1] & ALL


@njit
def init(state):
    state[:] = ZERO
    state[0] = np.uint64(0xFFF00000_00000FFF)


@njit
def legal(state, legal_mask):
    own, opponent, kings = sides(state)
    jumps = all_starts(own, opponent, kings, True) != ZERO
    jumper = field(state, JUMPER, 6)
    movable = ONE << np.uint64(jumper - 1) if jumper > 0 else ALL
    for direction in range(DIRECTIONS):
        found = starts(own, opponent, kings, direction, jumps) & movable
        for square in range(NUM_SQUARES):
            legal_mask[DIRECTIONS * square + direction] = (found >> np.uint64(square)) & ONE == ONE


@njit
def times_before(state, quiet):
    """The earlier times of the position since the last jump or move of a man, as far as the history tells."""
    pieces, times = state[0], 0
    for back in range(1, quiet + 1):
        number = quiet - back
        action = (state[HISTORY + number // IN_A_WORD] >> np.uint64(BITS * (number % IN_A_WORD))) & np.uint64(127)
        if action == ZERO:
            break
        before = ONE << (action >> np.uint64(2))
        both = before | neighbours(before, np.int64(action & np.uint64(3)))
        pieces ^= reverse_bits(both) if back % 2 else both
        times += pieces == state[0] and back % 2 == 0
    return times


@njit
def step(state, action):
    own, opponent, kings = sides(state)
    player, quiet = field(state, PLAYER, 1), min(field(state, QUIET, 7), MOST_QUIET - 1)
    square, direction = action // DIRECTIONS, action % DIRECTIONS
    before = ONE << np.uint64(square)
    after = neighbours(before, direction)
    jumped = after & opponent
    if jumped:
        after = neighbours(jumped, direction)
    was_king = kings & before != ZERO
    own ^= before | after
    opponent &= ~jumped
    kings &= ~(before | jumped)
    if was_king or after & LAST_ROW:
        kings |= after
    state[0] = own | opponent << HALF
    state[COUNT] += ONE
    if was_king and jumped == ZERO:
        state[HISTORY + quiet // IN_A_WORD] |= np.uint64(action) << np.uint64(BITS * (quiet % IN_A_WORD))
        quiet += 1
    else:
        quiet = 0
        for word in range(HISTORY, COUNT):
            state[word] = ZERO
    was_crowned = kings & after != ZERO and not was_king
    if jumped and not was_crowned and all_starts(own, opponent, kings, True) & after:
        state[1] = kings | np.uint64(square + JUMPS[direction] + 1) << JUMPER | np.uint64(player) << PLAYER
    else:
        state[0] = reverse_bits(state[0])
        state[1] = reverse_bits(kings) >> HALF | np.uint64(1 - player) << PLAYER | np.uint64(quiet) << QUIET
        state[1] |= np.uint64(times_before(state, quiet)) << REPEATED


@njit
def cannot_move(state):
    own, opponent, kings = sides(state)
    return (all_starts(own, opponent, kings, False) | all_starts(own, opponent, kings, True)) == ZERO


@njit
def is_terminal(state):
    is_drawn = field(state, REPEATED, 2) >= 2 or field(state, QUIET, 7) >= MOST_QUIET
    return is_drawn or state[COUNT] >= np.uint64(MOST_ACTIONS) or cannot_move(state)


@njit
def terminal_value(state):
    return -1.0 if cannot_move(state) else 0.0


@njit
def observe(state, planes):
    """Men and kings, own and the opponent's; pieces of both that can jump; the one that jumps on; whether the position
    was there before; the share of quiet moves; the dark squares. The mover's first row is row 0."""
    own, opponent, kings = sides(state)
    jumping = all_starts(own, opponent, kings, True)
    turned = reverse_bits(state[0])
    theirs = all_starts(turned & ALL, turned >> HALF, reverse_bits(kings) >> HALF, True)
    jumper = field(state, JUMPER, 6) - 1
    sets = (own & ~kings, own & kings, opponent & ~kings, opponent & kings, jumping, reverse_bits(theirs) >> HALF)
    for square in range(NUM_SQUARES):
        row = square // 4
        column = 2 * (square % 4) + 1 - row % 2
        for plane in range(len(sets)):
            planes[plane, row, column] = (sets[plane] >> np.uint64(square)) & ONE
        planes[6, row, column] = square == jumper
        planes[7, row, column] = min(field(state, REPEATED, 2), 1)
        planes[8, row, column] = field(state, QUIET, 7) / MOST_QUIET
        planes[9, row, column] = 1.0


@njit
def to_play(state):
    return field(state, PLAYER, 1)


@njit
def worth(pieces, kings):
    """100 for a man and 3 for each row behind it, 140 for a king."""
    total = 0
    for square in range(NUM_SQUARES):
        if (pieces >> np.uint64(square)) & ONE:
            total += 140 if (kings >> np.uint64(square)) & ONE else 100 + 3 * (square // 4)
    return total


@njit
def heuristic(state):
    turned = reverse_bits(state[0])
    theirs = worth(turned & ALL, reverse_bits(state[1] & ALL) >> HALF)
    lead = worth(state[0] & ALL, state[1] & ALL) - theirs
    return lead / (300.0 + abs(lead))


def place(square: int) -> tuple[int, int]:
    """Row and column of a square, which counts from 0."""
    row = square // 4
    return row, 2 * (square % 4) + 1 - row % 2


class Draughts(Game):
    """People write both squares: 11-15 and, for a jump, 15x24. Each jump of several is a move of its own."""

    name = "draughts"
    num_actions, state_words, history_words, mean_legal = NUM_ACTIONS, COUNT + 1, COUNT + 1 - HISTORY, 10
    max_plies = MOST_ACTIONS
    observation_shape = (10, 8, 8)
    rules = Rules(init, legal, step, is_terminal, terminal_value, observe, to_play, heuristic=heuristic)

    def format_action(self, action: int, state: np.ndarray) -> str:
        square, direction = divmod(action, DIRECTIONS)
        (row, column), sign = place(square), "-"
        for _ in range(2):
            row, column = row + (1 if direction >= LEFT else -1), column + (1 if direction % 2 else -1)
            if not (0 <= row < 8 and 0 <= column < 8):
                return ""
            target = 4 * row + column // 2
            if not int(state[0]) >> 32 + target & 1:
                break
            sign = "x"
        first, second = (31 - square, 31 - target) if int(state[1]) >> 38 & 1 else (square, target)
        return f"{first + 1}{sign}{second + 1}"

    def parse_action(self, text: str, state: np.ndarray) -> int:
        square = int(re.split("[-x]", text)[0]) - 1
        square = 31 - square if int(state[1]) >> 38 & 1 else square
        actions = range(max(DIRECTIONS * square, 0), DIRECTIONS * (square + 1))
        return {self.format_action(action, state): action for action in actions}[text]

    def split_moves(self, text: str) -> list[str]:
        """A capture of several jumps may be written as one word, 9x18x25."""
        return super().split_moves(re.sub(r"(?<=x)(\d+)(?=x)", r"\1 \1", text))

    @cached_property
    def board(self) -> Board:
        """The board with Black above; beside each row the numbers of its first and last square."""
        places = {place(square): str(square + 1) for square in range(NUM_SQUARES)}
        names = [places.get((row, column), "light square") for row in range(8) for column in range(8)]
        ends = [Label((8.3, row + 0.5), str(4 * row + 4)) for row in range(8)]
        labels = (*edge_labels([str(4 * row + 1) for row in range(8)], ""), *ends)
        cells, worth = grid_cells(8, 8, names, "checkered"), {"crowned": 1.5, "stone": 1}
        return Board(cells, labels, colors=COLORS, worth=worth, bottom=1)

    def pieces(self, position: Position) -> list[Piece]:
        return [
            Piece(8 * row + column, owner, ("stone", "crowned")[is_king])
            for (row, column), (owner, is_king) in placed(position.state, position.to_play).items()
        ]

    def render(self, state: np.ndarray, to_play: int) -> str:
        """Men are x and o, kings X and O; behind each row stand its squares' numbers."""
        signs = {at: ("xo", "XO")[is_king][owner] for at, (owner, is_king) in placed(state, to_play).items()}
        empty = {place(square): "." for square in range(NUM_SQUARES)}
        cells = [" ".join((empty | signs).get((row, column), " ") for column in range(8)) for row in range(8)]
        return "\n".join(f"{cells[row]}   {4 * row + 1}-{4 * row + 4}" for row in range(8))

    def read_board(self, text: str) -> Position | None:
        """A FEN of PDN, as W:W21-32:BK1,5; the letter before the first colon says who moves."""
        plain = re.sub(r"(?<=[:,WBK-])\s+|\s+(?=[:,.-])", "", text.upper().replace('"', "").strip())
        found = re.fullmatch(r"([WB]):([WB])([K\d,-]*):(?!\2)[WB]([K\d,-]*)\.?(.*)", plain, re.DOTALL)
        if found is None:
            return None
        if found[5]:
            raise ValueError(f"behind the pieces stands {' '.join(found[5].split()):.40}; moves follow the word moves")
        lists, words, kings = (found[3], found[4]), [0, 0], 0
        for player, items in enumerate(lists if found[2] == "B" else lists[::-1]):
            for item in filter(None, items.split(",")):
                squares = re.fullmatch(r"(K?)(\d{1,2})(?:-(\d{1,2}))?", item)
                if squares is None:
                    raise ValueError(f"{item:.20} is no square")
                first, last = int(squares[2]), int(squares[3] or squares[2])
                if last < first:
                    raise ValueError(f"{item} counts down")
                for number in range(first, last + 1):
                    bit = 1 << number - 1 if 1 <= number <= NUM_SQUARES else 0
                    if not bit or (words[0] | words[1]) & bit:
                        raise ValueError(f"squares are 1 to {NUM_SQUARES}, each at most once, and not {number}")
                    words[player] |= bit
                    kings |= bit if squares[1] else 0
        if max(word.bit_count() for word in words) > 12:
            raise ValueError("a player has 12 pieces at most")
        if (words[0] & 0xF0000000 | words[1] & 0xF) & ~kings:
            raise ValueError("a man on the last row is a king")
        state = np.zeros(self.state_words, np.uint64)
        state[0], state[1] = words[0] | words[1] << 32, kings
        if mover := int(found[1] == "W"):
            turned = [int(f"{int(word):064b}"[::-1], 2) for word in state[:2]]
            state[0], state[1] = turned[0], turned[1] >> 32 | 1 << 38
        return Position(self, state, mover, ())


def placed(state: np.ndarray, to_play: int) -> dict[tuple[int, int], tuple[int, bool]]:
    """The owner of the piece on each place, and whether it is a king."""
    found = {}
    for bit in range(2 * NUM_SQUARES):
        if int(state[0]) >> bit & 1:
            square = bit % NUM_SQUARES
            is_king = bool(int(state[1]) >> square & 1)
            found[place(31 - square if to_play else square)] = (to_play ^ bit // NUM_SQUARES, is_king)
    return found
