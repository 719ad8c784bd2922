"""Dobutsu shogi (M. Kitao 2008): shogi on 3 x 4 squares, with drops. The second player wins (T. Tanaka 2009).

     a b c
   4 g l e    A lion goes a step in any direction, a giraffe along rows and columns, an elephant on a slant, a chick
   3 . c .    forward. A chick that goes to the last row becomes a hen, which goes any way but back on a slant. Captured
   2 . C .    pieces belong to who took them, hens as chicks, and may be dropped on an empty square in place of a move.
   1 E L G

Nobody may leave the lion where it can be taken; who has no move loses. A lion that comes to the last row wins. A
position that comes for the third time is a draw. Small letters are the second player's.

Square 3 * row + column as the mover sees it, row 0 at home; after each move the board turns round. An action is a
square that a piece leaves, in a direction, or a square that it is dropped on: 12 * (direction, or 8 + piece) + square.
`state` is (position, times it was there before, plies, positions before each ply). A position has four bits for each
square, a piece or 8 + a piece of the opponent's; from bit 48 on two bits for each kind in hand, chicks, giraffes and
elephants, first the mover's; and in bit 60 who moves. So equal positions are equal words.
"""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np
from numba import njit

from alphazero.game import Board, Cell, Clicks, Colors, Game, Piece, Position, Rules, edge_labels, grid_cells, square

ROWS, COLUMNS = 4, 3
NUM_SQUARES, DIRECTIONS, KINDS = ROWS * COLUMNS, 8, 3
NUM_ACTIONS = (DIRECTIONS + KINDS) * NUM_SQUARES
EMPTY, CHICK, GIRAFFE, ELEPHANT, LION, HEN = range(6)
LETTERS = ".CGELH"
THEIRS = 8
WAYS = [(row, column) for row in (-1, 0, 1) for column in (-1, 0, 1) if row or column]
"""Steps in rows and columns; ways d and 7 - d are opposite."""
MOVES = np.array([0b00000000, 0b01000000, 0b01011010, 0b10100101, 0b11111111, 0b11111010], np.uint8)
"""For each piece a bit for each way that it goes."""
NEIGHBOURS = np.array(
    [
        [
            COLUMNS * (at // COLUMNS + row) + at % COLUMNS + column
            if 0 <= at // COLUMNS + row < ROWS and 0 <= at % COLUMNS + column < COLUMNS
            else -1
            for row, column in WAYS
        ]
        for at in range(NUM_SQUARES)
    ],
    np.int8,
)
"""The square next to each one in each direction, or -1."""
ZERO, ONE, FOUR, FIFTEEN = (np.uint64(number) for number in (0, 1, 4, 15))
HAND, PLAYER = 48, 60
MOST_PLIES = 256
LAST = np.uint64(MOST_PLIES - 1)
POSITION, REPEATS, PLIES, EARLIER = range(4)
STATE_WORDS = EARLIER + MOST_PLIES
START = sum(
    piece << 4 * at
    for at, piece in {
        0: ELEPHANT, 1: LION, 2: GIRAFFE, 4: CHICK, 7: THEIRS + CHICK, 9: THEIRS + GIRAFFE, 10: THEIRS + LION,
        11: THEIRS + ELEPHANT,
    }.items()
)  # fmt: skip
WORTH = np.array([0, 1, 3, 3, 0, 4, 0, 0], np.float32)  # the last two are no pieces, but may be in a hostile file
COLORS = Colors("#4b5d3a", "#f4f1e4", "#f6edd0", "#e3d4a4", "#8a7a4c", first="#2f7d4f", second="#2b6cb0")


@njit
def piece_at(position, at):
    return np.int64((position >> np.uint64(4 * at)) & FIFTEEN)


@njit
def neighbour(at, way):
    return np.int64(NEIGHBOURS[at, way])


@njit
def in_hand(position, owner, kind):
    """The number of pieces of a kind, from 0, that the mover (`owner` 0) or the opponent (1) holds."""
    return np.int64((position >> np.uint64(HAND + 6 * owner + 2 * kind)) & np.uint64(3))


@njit
def find(position, piece):
    """The first square of a piece; -1 if it is nowhere, as in a hostile file."""
    for at in range(NUM_SQUARES):
        if piece_at(position, at) == piece:
            return at
    return -1


@njit
def attackers(position, at):
    """The squares of the opponent's pieces that attack a square, a bit for each."""
    found = 0
    for way in range(DIRECTIONS):
        near = neighbour(at, way)
        if near >= 0:
            piece = piece_at(position, near) - THEIRS
            if 0 < piece <= HEN and MOVES[piece] >> way & 1:
                found |= 1 << near
    return found


@njit
def mark(position, legal_mask):
    """Marks the legal actions and returns their number.

    Pieces go a step at a time, so nothing can be put between a lion and its attacker, and no piece is pinned.
    """
    lion, count = find(position, LION), 0
    checkers = attackers(position, lion) if lion >= 0 else 0
    several = checkers & (checkers - 1) != 0
    for at in range(NUM_SQUARES):
        piece = piece_at(position, at)
        for way in range(DIRECTIONS):
            target = neighbour(at, way)
            goes = piece <= HEN and target >= 0 and MOVES[piece] >> way & 1 == 1
            if goes:
                there = piece_at(position, target)
                goes = there == EMPTY or (there > THEIRS and there != THEIRS + LION)
            if goes and piece == LION:
                goes = attackers(position, target) == 0
            elif goes and checkers:
                goes = not several and checkers >> target & 1 == 1
            legal_mask[NUM_SQUARES * way + at] = goes
            count += int(goes)
        for kind in range(KINDS):
            goes = piece == EMPTY and checkers == 0 and in_hand(position, 0, kind) > 0
            legal_mask[NUM_SQUARES * (DIRECTIONS + kind) + at] = goes
            count += int(goes)
    return count


@njit
def init(state):
    state[:] = ZERO
    state[POSITION] = START


@njit
def legal(state, legal_mask):
    mark(state[POSITION], legal_mask)


@njit
def turn_round(position):
    """The same position as the other player sees it, who moves next."""
    turned = ((position >> np.uint64(PLAYER)) & ONE ^ ONE) << np.uint64(PLAYER)
    for at in range(NUM_SQUARES):
        piece = (position >> np.uint64(4 * at)) & FIFTEEN
        if piece:
            turned |= (piece ^ np.uint64(THEIRS)) << np.uint64(4 * (NUM_SQUARES - 1 - at))
    hands = (position >> np.uint64(HAND)) & np.uint64(4095)
    return turned | ((hands >> np.uint64(6)) | (hands & np.uint64(63)) << np.uint64(6)) << np.uint64(HAND)


@njit
def plies_of(state):
    """The plies so far, but the last one where a hostile file has more."""
    return np.int64(min(state[PLIES], LAST))


@njit
def step(state, action):
    position, way, at = state[POSITION], action // NUM_SQUARES, action % NUM_SQUARES
    plies = plies_of(state)
    state[EARLIER + plies] = position
    if way >= DIRECTIONS:
        position |= np.uint64(way - DIRECTIONS + CHICK) << np.uint64(4 * at)
        position -= ONE << np.uint64(HAND + 2 * (way - DIRECTIONS))
    else:
        target, piece = neighbour(at, way), piece_at(position, at)
        taken = piece_at(position, target) - THEIRS
        if taken > 0:
            position += ONE << np.uint64(HAND + (0 if taken == HEN else 2 * (taken - CHICK)))
        if piece == CHICK and target >= NUM_SQUARES - COLUMNS:
            piece = HEN
        position &= ~(FIFTEEN << np.uint64(4 * at) | FIFTEEN << np.uint64(4 * target))
        position |= np.uint64(piece) << np.uint64(4 * target)
    position = turn_round(position)
    times = 0
    for ply in range(plies + 1):
        times += state[EARLIER + ply] == position
    state[POSITION], state[REPEATS], state[PLIES] = position, np.uint64(times), np.uint64(plies + 1)


@njit
def is_lost(state):
    """The opponent's lion has come to the mover's home row, or the mover has no move."""
    lion = find(state[POSITION], THEIRS + LION)
    return 0 <= lion < COLUMNS or mark(state[POSITION], np.empty(NUM_ACTIONS, np.bool_)) == 0


@njit
def is_terminal(state):
    return state[REPEATS] >= np.uint64(2) or state[PLIES] >= np.uint64(MOST_PLIES) or is_lost(state)


@njit
def terminal_value(state):
    return -1.0 if is_lost(state) else 0.0


@njit
def observe(state, planes):
    """The mover's chicks, giraffes, elephants, lion and hens, the opponent's; both hands; the times it was there."""
    position = state[POSITION]
    for at in range(NUM_SQUARES):
        row, column, piece = at // COLUMNS, at % COLUMNS, piece_at(position, at)
        if piece:
            planes[piece - 1 if piece < THEIRS else piece - THEIRS + HEN - 1, row, column] = 1.0
        for kind in range(KINDS):
            planes[10 + kind, row, column] = in_hand(position, 0, kind) / 2.0
            planes[13 + kind, row, column] = in_hand(position, 1, kind) / 2.0
        planes[16, row, column] = state[REPEATS] > ZERO


@njit
def transform(state, symmetry):
    """Left and right change places."""
    if symmetry:
        position = state[POSITION] >> np.uint64(HAND) << np.uint64(HAND)
        for at in range(NUM_SQUARES):
            other = at + COLUMNS - 1 - 2 * (at % COLUMNS)
            position |= np.uint64(piece_at(state[POSITION], other)) << np.uint64(4 * at)
        state[POSITION] = position


@njit
def to_play(state):
    return np.int64((state[POSITION] >> np.uint64(PLAYER)) & ONE)


@njit
def heuristic(state):
    """The mover's lead in material: a chick 1, a giraffe or an elephant 3, a hen 4."""
    position, lead = state[POSITION], np.float32(0.0)
    for at in range(NUM_SQUARES):
        piece = piece_at(position, at)
        lead += WORTH[piece] if piece < THEIRS else -WORTH[piece - THEIRS]
    for kind in range(KINDS):
        lead += WORTH[CHICK + kind] * (in_hand(position, 0, kind) - in_hand(position, 1, kind))
    return lead / (6.0 + abs(lead))


def name_of(at: int, player: int) -> str:
    """The name of a square that a player sees."""
    row, column = divmod(NUM_SQUARES - 1 - at if player else at, COLUMNS)
    return f"{'abc'[column]}{row + 1}"


class Dobutsu(Game):
    """People write moves as programs for shogi variants do: b2b3, b3b4+ where a chick becomes a hen, C@a2 to drop."""

    name = "dobutsu"
    num_actions, state_words, history_words, mean_legal = NUM_ACTIONS, STATE_WORDS, STATE_WORDS - PLIES, 14
    max_plies = MOST_PLIES
    observation_shape = (17, ROWS, COLUMNS)
    action_places = np.arange(NUM_ACTIONS)
    rules = Rules(
        init, legal, step, is_terminal, terminal_value, observe, to_play, transform=transform, heuristic=heuristic
    )

    @cached_property
    def symmetries(self) -> tuple[np.ndarray, np.ndarray]:
        """The board itself, and with left and right exchanged."""
        cells = np.arange(NUM_SQUARES).reshape(ROWS, COLUMNS)
        mirrored = [
            (8 + way - DIRECTIONS if way >= DIRECTIONS else WAYS.index((WAYS[way][0], -WAYS[way][1])))
            for way in range(DIRECTIONS + KINDS)
        ]
        flipped = cells[:, ::-1].ravel()
        actions = np.concatenate([NUM_SQUARES * way + flipped for way in mirrored])
        return np.stack([cells.ravel(), flipped]), np.stack([np.arange(NUM_ACTIONS), actions])

    # --- texts ---

    def letters(self, state: np.ndarray, to_play: int) -> dict[str, str]:
        """The piece on each square that is not empty, by the square's name; small letters are the second player's."""
        found = {}
        for at in range(NUM_SQUARES):
            piece = int(state[POSITION]) >> 4 * at & 15
            if 0 < piece % THEIRS <= HEN:
                letter, owner = LETTERS[piece % THEIRS], to_play ^ piece // THEIRS
                found[name_of(at, to_play)] = letter.lower() if owner else letter
        return found

    def hand(self, state: np.ndarray, to_play: int, player: int) -> dict[str, int]:
        """The number of pieces of each kind that a player holds, by their letters."""
        shift = HAND + 6 * (to_play ^ player)
        return {LETTERS[CHICK + kind]: int(state[POSITION]) >> shift + 2 * kind & 3 for kind in range(KINDS)}

    def render(self, state: np.ndarray, to_play: int) -> str:
        letters, rows = self.letters(state, to_play), []
        for row in range(ROWS, 0, -1):
            cells = " ".join(letters.get(f"{column}{row}", ".") for column in "abc")
            held = {ROWS: 1, 1: 0}.get(row)
            hand = {} if held is None else self.hand(state, to_play, held)
            text = " ".join((letter.lower() if held else letter) * number for letter, number in hand.items() if number)
            rows.append(f"{row} {cells}" + f"   in hand: {text}" * bool(text))
        return "\n".join([*rows, "  a b c", self.turn(to_play)])

    def format_action(self, action: int, state: np.ndarray) -> str:
        way, at = divmod(action, NUM_SQUARES)
        player = int(state[POSITION]) >> PLAYER & 1
        if way >= DIRECTIONS:
            return f"{LETTERS[CHICK + way - DIRECTIONS]}@{name_of(at, player)}"
        target = int(NEIGHBOURS[at, way])
        if target < 0:
            return ""
        crowned = target >= NUM_SQUARES - COLUMNS and int(state[POSITION]) >> 4 * at & 15 == CHICK
        return name_of(at, player) + name_of(target, player) + "+" * crowned

    def parse_action(self, text: str, state: np.ndarray) -> int:
        words, word = {self.format_action(action, state).lower(): action for action in range(NUM_ACTIONS)}, text.lower()
        return words[word if word in words else f"{word}+"]  # a chick has no choice on the last row

    def fen_of(self, position: Position) -> str:
        """The position in the form of Forsyth-Edwards Notation that programs for variants use; a hen is +C."""
        state, player = position.state, position.to_play
        letters = {
            at: f"+{'cC'[each == 'H']}" if each in "hH" else each for at, each in self.letters(state, player).items()
        }
        rows = ["".join(letters.get(f"{column}{row}", ".") for column in "abc") for row in range(ROWS, 0, -1)]
        board = re.sub(r"\.+", lambda run: str(len(run[0])), "/".join(rows))
        hands = [self.hand(state, player, owner) for owner in (0, 1)]
        held = "".join(letter * number for letter, number in hands[0].items())
        held += "".join(letter.lower() * number for letter, number in hands[1].items())
        return f"{board}[{held}] {'wb'[player]} - - 0 {1 + (int(state[PLIES]) + 1) // 2}"

    def read_board(self, text: str) -> Position | None:
        """Such a text, with a hen as +C or H; all behind who moves may be left out. Its position has no history."""
        found = re.match(r"\s*([cgelh+\d]+(?:/[cgelh+\d]+)+)\[([cge-]*)\] ([wb])(?:\s|$)", text, re.IGNORECASE)
        if found is None:
            return None
        rows = [re.sub(r"\d", lambda run: "." * int(run[0]), row) for row in found[1].split("/")]
        rows = [row.replace("+c", "h").replace("+C", "H") for row in rows]
        if len(rows) != ROWS or any(len(row) != COLUMNS or "+" in row for row in rows):
            raise ValueError(f"it has {ROWS} rows of {COLUMNS} squares")
        board, word = "".join(rows[::-1]), 0
        for at, letter in enumerate(board):
            owner = THEIRS * letter.islower()
            word |= (LETTERS.index(letter.upper()) + owner * (letter != ".")) << 4 * at
        for letter in found[2].replace("-", ""):
            word += 1 << HAND + 6 * letter.islower() + 2 * (LETTERS.index(letter.upper()) - CHICK)
        everything = (board + found[2]).upper().replace("H", "C")
        if board.count("L") != 1 or board.count("l") != 1 or max(map(everything.count, "CGE")) > 2:
            raise ValueError("each side has one lion; there are two chicks, two giraffes and two elephants at most")
        player, state = int(found[3].lower() == "b"), np.zeros(STATE_WORDS, np.uint64)
        state[POSITION] = turn_round.py_func(np.uint64(word)) if player else word
        return Position(self, state, player, ())

    # --- pictures ---

    @cached_property
    def board(self) -> Board:
        """The board as the first player sees it; at the right what that one holds, at the left the other."""
        names = [f"{column}{row}" for row in range(ROWS, 0, -1) for column in "abc"]
        labels = edge_labels([str(row) for row in range(ROWS, 0, -1)], "abc")
        hands = [
            Cell(
                f"{letter.lower() if owner else letter} in hand",
                square(kind if owner else kind + 1, -1.9 if owner else 3.5),
            )
            for owner in (0, 1)
            for kind, letter in enumerate("CGE")
        ]
        return Board((*grid_cells(ROWS, COLUMNS, names, "checkered"), *hands), labels, colors=COLORS, bottom=0)

    def cell_of(self, name: str) -> int:
        """The cell of a square's name."""
        return COLUMNS * (ROWS - int(name[1])) + "abc".index(name[0])

    def pieces(self, position: Position) -> list[Piece]:
        """Their letters; a number says how many of a kind a player holds, if there are two."""
        state, player = position.state, position.to_play
        found = [
            Piece(self.cell_of(name), int(letter.islower()), text=letter.upper())
            for name, letter in self.letters(state, player).items()
        ]
        for owner in (0, 1):
            held = enumerate(self.hand(state, player, owner).items(), NUM_SQUARES + KINDS * owner)
            found += [Piece(cell, owner, text=f"2{letter}"[2 - number :]) for cell, (letter, number) in held if number]
        return found

    def clicks(self, position: Position) -> Clicks:
        """A click on the piece, on the board or in hand, and one on its target."""
        found = {}
        for action in position.legal_actions:
            word, kind = position.format(action), action // NUM_SQUARES - DIRECTIONS
            start = NUM_SQUARES + KINDS * position.to_play + kind if kind >= 0 else self.cell_of(word[:2])
            found[start, self.cell_of(word[2:4])] = action
        return found
