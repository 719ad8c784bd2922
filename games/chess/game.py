"""Chess by the rules of FIDE, and Gardner's chess on 5 x 5 squares (M. Gardner 1969)."""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np

from alphazero.game import Board, Clicks, Colors, Game, Piece, Position, edge_labels, grid_cells
from games.chess.moves import COLOR, EN_PASSANT, FIFTY, FLAGS, OWN, REPEATS
from games.chess.rules import (
    COUNT,
    HISTORY,
    MOST_QUIET,
    PLAIN_CAN_TAKE,
    PLAIN_IS_DEAD,
    PLAIN_SURVEY,
    PLIES,
    STATE_WORDS,
    TYPES,
    ends_of,
    make_rules,
)

COLORS = Colors("#4d3826", "#f3e6d2", "#f0d9b5", "#c29a6f", "#a37c52", first="#fbfaf6", second="#262626")
LETTERS = {number: letter for letter, number in TYPES.items()}
NAMES = {"P": "pawn", "N": "knight", "B": "bishop", "R": "rook", "Q": "queen", "K": "king"}
WORTH = {"pawn": 1, "knight": 3, "bishop": 3, "rook": 5, "queen": 9}
RIGHTS = "KQkq"
FEN = re.compile(r"\s*([pnbrqkPNBRQK\d]+(?:/[pnbrqkPNBRQK\d]+)+)(?:\s+(.*?))?\s*$", re.DOTALL)


def flag(state: np.ndarray, shift: np.uint64, mask: int) -> int:
    """A number among the flags."""
    return int(state[FLAGS]) >> int(shift) & mask


def color_of(state: np.ndarray) -> int:
    """The player to move, 0 for White."""
    return flag(state, COLOR, 1)


def reason_of_draw(state: np.ndarray, max_plies: int) -> str:
    """Why a game that is over is drawn."""
    reasons = {
        "the position came three times": flag(state, REPEATS, 3) >= 2,
        "fifty moves each without a capture or a pawn's move": flag(state, FIFTY, 127) >= MOST_QUIET,
        "neither side can mate": PLAIN_IS_DEAD(state),
        "the game is too long": int(state[PLIES] & COUNT) >= max_plies,
    }
    return next((reason for reason, holds in reasons.items() if holds), "stalemate")


class Chess(Game):
    """Actions are pairs of squares that a queen or a knight connects, then promotions to other pieces than a queen.

    The mover sees the board from the own side. People write moves as engines do: e2e4, e1g1 to castle, e7e8q.
    """

    name = "chess"
    size = 8
    state_words, history_words = STATE_WORDS, STATE_WORDS - HISTORY
    mean_legal = 40
    max_plies = 512

    def __init__(self) -> None:
        self.num_actions = len(ends_of(self.size))
        self.observation_shape = (20 if self.size == 8 else 15, self.size, self.size)
        self.rules = make_rules(self.size, self.max_plies)

    @cached_property
    def action_places(self) -> list[int]:
        """A plane for each step of a piece, and for each promotion to another piece than a queen."""
        steps = [(end // 8 - at // 8, end % 8 - at % 8, piece) for at, end, piece in ends_of(self.size)]
        planes = {step: plane for plane, step in enumerate(sorted(set(steps)))}
        squares = [self.size * (at // 8) + at % 8 for at, *_ in ends_of(self.size)]
        return [self.size**2 * planes[step] + square for step, square in zip(steps, squares, strict=True)]

    @cached_property
    def numbers(self) -> dict[tuple[int, int, str], int]:
        """The action of both squares and the letter of a promotion, empty for a queen."""
        return {ends: action for action, ends in enumerate(ends_of(self.size))}

    # --- squares and pieces ---

    def name_of(self, square: int, color: int) -> str:
        """The name of a square that a player sees, 0 for White."""
        row, column = divmod(square, 8)
        return f"{'abcdefgh'[column]}{self.size - row if color else row + 1}"

    def square_of(self, name: str, color: int) -> int:
        """The square of that name as a player sees it; raises ValueError."""
        column, row = "abcdefgh"[: self.size].index(name[0]), int(name[1:]) - 1
        if not 0 <= row < self.size:
            raise ValueError(name)
        return 8 * (self.size - 1 - row if color else row) + column

    def letters(self, state: np.ndarray) -> dict[str, str]:
        """The piece on each square that is not empty, by the square's name: capital letters are White's."""
        color, found = color_of(state), {}
        for square in (8 * row + column for row in reversed(range(self.size)) for column in range(self.size)):
            bits = [int(state[word]) >> square & 1 for word in range(4)]
            if letter := LETTERS.get(bits[0] + 2 * bits[1] + 4 * bits[2]):
                is_white = bits[OWN] == (color == 0)
                found[self.name_of(square, color)] = letter if is_white else letter.lower()
        return found

    def rows(self, state: np.ndarray) -> list[str]:
        """The rows from the top as White sees them, a letter or a dot for each square."""
        letters, files = self.letters(state), "abcdefgh"[: self.size]
        return ["".join(letters.get(f"{file}{row}", ".") for file in files) for row in range(self.size, 0, -1)]

    def render(self, state: np.ndarray, to_play: int) -> str:
        rows = [f"{self.size - i} " + " ".join(row) for i, row in enumerate(self.rows(state))]
        return "\n".join([*rows, "  " + " ".join("abcdefgh"[: self.size]), self.turn(to_play)])

    def turn(self, to_play: int) -> str:
        return ("White", "Black")[to_play] + " to move"

    # --- moves ---

    def format_action(self, action: int, state: np.ndarray) -> str:
        origin, target, piece = ends_of(self.size)[action]
        color, last = color_of(state), 8 * (self.size - 1)
        promoted = piece or ("q" if target >= last and self.is_pawn(state, origin) else "")
        return self.name_of(origin, color) + self.name_of(target, color) + promoted

    def is_pawn(self, state: np.ndarray, square: int) -> bool:
        """A pawn stands on a square."""
        return [int(state[word]) >> square & 1 for word in range(3)] == [0, 0, 1]

    def parse_action(self, text: str, state: np.ndarray) -> int:
        origin, target, piece = re.fullmatch(r"([a-h]\d)([a-h]\d)([nbrq]?)", text.lower()).groups()  # type: ignore[union-attr]
        color = color_of(state)
        action = self.numbers[self.square_of(origin, color), self.square_of(target, color), piece.replace("q", "")]
        if self.format_action(action, state) != text.lower():  # e7e8 without a piece, or a queen of no pawn
            raise ValueError(text)
        return action

    # --- FEN ---

    def fen_of(self, position: Position) -> str:
        """The position in Forsyth-Edwards Notation; en passant only where the capture is legal."""
        state, color = position.state, color_of(position.state)
        rows = "/".join(re.sub(r"\.+", lambda run: str(len(run[0])), row) for row in self.rows(state))
        own_first = RIGHTS if color == 0 else RIGHTS[2:] + RIGHTS[:2]
        rights = "".join(sorted(own_first[bit] for bit in range(4) if int(state[FLAGS]) >> bit & 1)) or "-"
        passed = flag(state, EN_PASSANT, 63)
        plies, before = int(state[PLIES] & COUNT), int(state[PLIES]) >> 32
        number = before + 1 + (plies + (color - plies) % 2) // 2
        where = self.name_of(passed, color) if passed else "-"
        return f"{rows} {'wb'[color]} {rights} {where} {flag(state, FIFTY, 127)} {number}"

    def read_board(self, text: str) -> Position | None:
        """A FEN; castling, en passant and both counters may be left out. Its position has no history.

        The operations of an EPD count for nothing. After more than fifty moves without a capture, which other programs
        allow, the game is over.
        """
        found = FEN.match(text.partition(";")[0])
        if found is None:
            return None
        words = re.sub(r"^((?:\S+\s+){3})[A-Za-z]\S*\s.*", r"\1", found[2] or "", flags=re.DOTALL).split()
        side, rights, passed, quiet, number, *more = words + ["", "-", "-", "0", "1"][len(words) :]
        if more:
            raise ValueError(f"behind its six fields stands {' '.join(more):.40}; moves follow the word moves")
        if side not in ("w", "b"):
            raise ValueError("behind the board must stand who moves: w or b")
        if not all(re.fullmatch("[0-9]{1,9}", count) for count in (quiet, number)):
            raise ValueError("its last two words are numbers: plies without a capture, and the number of the move")
        color = int(side == "b")
        own, other = (self.read_rows(found[1], mover) for mover in (color, 1 - color))
        if PLAIN_SURVEY(other)[3]:
            raise ValueError("who does not move is in check")
        own[FLAGS] |= np.uint64(self.read_rights(rights, own, color) | min(int(quiet), MOST_QUIET) << int(FIFTY))
        own[PLIES] = max(0, int(number) - 1) << 32  # some programs count from 0
        if passed != "-":
            if self.size != 8 or not re.fullmatch("[a-h][1-8]", passed):
                raise ValueError(f"no pawn has just passed {passed}")
            square = self.square_of(passed, color)
            column = [self.letters(own).get(self.name_of(square + step, color)) for step in (8, 0, -8)]
            if square // 8 != 5 or column != [None, None, "pP"[color]]:
                raise ValueError(f"no pawn has just passed {passed}")
            own[FLAGS] |= np.uint64(square * PLAIN_CAN_TAKE(own, square) << int(EN_PASSANT))
        return Position(self, own, color, ())

    def read_rows(self, text: str, color: int) -> np.ndarray:
        """The state of the rows of a FEN, seen by a player, without a right to castle; raises ValueError."""
        rows = [re.sub(r"\d", lambda run: "." * int(run[0]), row) for row in text.split("/")]
        if len(rows) != self.size or any(len(row) != self.size for row in rows):
            raise ValueError(f"it has {self.size} rows of {self.size} squares")
        letters, state = "".join(rows), np.zeros(STATE_WORDS, np.uint64)
        if any(letters.count(king) != 1 for king in "Kk") or {"P", "p"} & {*rows[0], *rows[-1]}:
            raise ValueError("each side has one king, and no pawn stands in the first or last row")
        state[FLAGS] = color << int(COLOR)
        for cell, letter in enumerate(letters):
            row = cell // self.size if color else self.size - 1 - cell // self.size
            square = 8 * row + cell % self.size
            bit = np.uint64(1 << square)
            for word in range(3):
                state[word] |= bit * np.uint64(TYPES.get(letter.upper(), 0) >> word & 1)
            state[OWN] |= bit * np.uint64(letter.isalpha() and letter.islower() == bool(color))
        return state

    def read_rights(self, text: str, state: np.ndarray, color: int) -> int:
        """The flags of the rights to castle; raises ValueError."""
        letters, found = self.letters(state), 0
        for letter in text.replace("-", ""):
            row, side = ("1", str.upper) if letter.isupper() else ("8", str.lower)
            home = {f"e{row}": side("k"), f"{'h' if letter in 'Kk' else 'a'}{row}": side("r")}
            if letter not in RIGHTS or self.size != 8 or not home.items() <= letters.items():
                raise ValueError(f"nobody can have the right to castle {letter!r}")
            found |= 1 << (RIGHTS.index(letter) ^ 2 * color)
        return found

    # --- pictures ---

    @cached_property
    def board(self) -> Board:
        """The board as White sees it: row by row from the far side."""
        files, ranks = "abcdefgh"[: self.size], range(self.size, 0, -1)
        cells = grid_cells(self.size, self.size, [f"{file}{rank}" for rank in ranks for file in files], "checkered")
        labels, shapes = edge_labels([str(rank) for rank in ranks], files), ("king", "king")
        return Board(cells, labels, shapes=shapes, colors=COLORS, worth=WORTH, bottom=0)

    def cell_of(self, name: str) -> int:
        """The cell of a square's name."""
        return self.size * (self.size - int(name[1])) + "abcdefgh".index(name[0])

    def pieces(self, position: Position) -> list[Piece]:
        letters = self.letters(position.state).items()
        return [Piece(self.cell_of(name), int(letter.islower()), NAMES[letter.upper()]) for name, letter in letters]

    def clicks(self, position: Position) -> Clicks:
        """A click on the piece, then one on its target, and perhaps a choice: what a pawn becomes."""
        found = {}
        for action in position.legal_actions:
            word = position.format(action)
            choice = [NAMES[piece.upper()] for piece in word[4:]]
            found[self.cell_of(word[:2]), self.cell_of(word[2:4]), *choice] = action
        return found

    def remark(self, position: Position) -> str:
        if not position.terminal or position.outcome:
            return ("checkmate" if position.terminal else "check") * self.in_check(position)
        return reason_of_draw(position.state, self.max_plies)

    def in_check(self, position: Position) -> bool:
        """The player to move is in check."""
        return bool(PLAIN_SURVEY(position.state)[3])


class Gardner(Chess):
    """The same on 5 x 5 squares, a1-e5: no castling, and no pawn goes two squares at once."""

    name = "gardner"
    size = 5
    mean_legal = 16
    max_plies = 256
