"""Chess by the rules of FIDE, and Gardner's chess on 5 x 5 squares (M. Gardner 1969)."""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np

from alphazero.game import Board, Clicks, Colors, Game, Piece, Position, edge_labels, grid_cells
from games.chess import rules
from games.chess.moves import COLOR, EN_PASSANT, FIFTY, FLAGS, LETTERS, OWN, REPEATS, ends_of, piece_at
from games.chess.rules import COUNT, HISTORY, MOST_QUIET, PLIES, STATE_WORDS, square_of

COLORS = Colors("#4d3826", "#f3e6d2", "#f0d9b5", "#c29a6f", "#a37c52", first="#fbfaf6", second="#262626")
NAMES = {"P": "pawn", "N": "knight", "B": "bishop", "R": "rook", "Q": "queen", "K": "king"}
WORTH = {"pawn": 1, "knight": 3, "bishop": 3, "rook": 5, "queen": 9}
HOMES = {"K": (60, 63), "Q": (60, 56), "k": (4, 7), "q": (4, 0)}
"""The cells of the king and the rook of each right to castle, in the order of the flags as White sees them."""
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
        "neither side can mate": rules.PLAIN_IS_DEAD(state),
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
        self.rules = rules.make_rules(self.size, self.max_plies)
        self.files = "abcdefgh"[: self.size]
        self.names = [f"{file}{rank}" for rank in range(self.size, 0, -1) for file in self.files]
        """The squares of the board, row by row from Black's side."""

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
        return f"{self.files[column]}{self.size - row if color else row + 1}"

    def square_of(self, name: str, color: int) -> int:
        """The square of that name as a player sees it; raises ValueError."""
        return square_of(self.names.index(name), self.size, color)

    def letter_at(self, state: np.ndarray, square: int) -> str:
        """The piece on a square, as a capital letter, or a dot."""
        return LETTERS[piece_at.py_func(state, square)]

    def letters(self, state: np.ndarray) -> str:
        """The piece on each of the squares `names`, White's as capital letters, or a dot."""
        found, color = "", color_of(state)
        for cell in range(self.size**2):
            square = square_of(cell, self.size, color)
            letter, is_own = self.letter_at(state, square), int(state[OWN]) >> square & 1
            found += letter if is_own != color else letter.lower()
        return found

    def rows(self, state: np.ndarray) -> list[str]:
        """The rows from the top as White sees them, a letter or a dot for each square."""
        letters = self.letters(state)
        return [letters[first : first + self.size] for first in range(0, len(letters), self.size)]

    def render(self, state: np.ndarray, to_play: int) -> str:
        rows = [f"{self.size - i} " + " ".join(row) for i, row in enumerate(self.rows(state))]
        return "\n".join([*rows, "  " + " ".join(self.files), self.turn(to_play)])

    def turn(self, to_play: int) -> str:
        return ("White", "Black")[to_play] + " to move"

    # --- moves ---

    def format_action(self, action: int, state: np.ndarray) -> str:
        origin, target, piece = ends_of(self.size)[action]
        color = color_of(state)
        is_queen = not piece and target // 8 == self.size - 1 and self.letter_at(state, origin) == "P"
        return self.name_of(origin, color) + self.name_of(target, color) + piece + "q" * is_queen

    def parse_action(self, text: str, state: np.ndarray) -> int:
        word, color = text.lower(), color_of(state)
        ends = self.square_of(word[:2], color), self.square_of(word[2:4], color), word[4:].replace("q", "")
        action = self.numbers[ends]
        if self.format_action(action, state) != word:  # e7e8 without a piece, or a queen of no pawn
            raise ValueError(text)
        return action

    # --- FEN ---

    def fen_of(self, position: Position) -> str:
        """The position in Forsyth-Edwards Notation; en passant only where the capture is legal."""
        state, color = position.state, color_of(position.state)
        rows = "/".join(re.sub(r"\.+", lambda run: str(len(run[0])), row) for row in self.rows(state))
        rights = "".join(right for i, right in enumerate(HOMES) if int(state[FLAGS]) >> (i ^ 2 * color) & 1)
        passed = flag(state, EN_PASSANT, 63)
        plies, before = int(state[PLIES] & COUNT), int(state[PLIES]) >> 32
        number = before + 1 + (plies + (color - plies) % 2) // 2
        where = self.name_of(passed, color) if passed else "-"
        return f"{rows} {'wb'[color]} {rights or '-'} {where} {flag(state, FIFTY, 127)} {number}"

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
        own, other = (rules.state_of(found[1], self.size, mover) for mover in (color, 1 - color))
        if rules.is_check(other):
            raise ValueError("who does not move is in check")
        own[FLAGS] |= np.uint64(self.read_rights(rights, own, color) | min(int(quiet), MOST_QUIET) << int(FIFTY))
        own[PLIES] = max(0, int(number) - 1) << 32  # some programs count from 0
        if passed != "-":
            self.read_passed(passed, own, color)
        return Position(self, own, color, ())

    def read_rights(self, text: str, state: np.ndarray, color: int) -> int:
        """The flags of the rights to castle; raises ValueError."""
        letters, found = self.letters(state), 0
        for right in text.replace("-", ""):
            home = "".join(letters[cell] for cell in HOMES.get(right, ()) if self.size == 8)
            if home != ("KR" if right.isupper() else "kr"):
                raise ValueError(f"nobody can have the right to castle {right!r}")
            found |= 1 << ([*HOMES].index(right) ^ 2 * color)
        return found

    def read_passed(self, name: str, state: np.ndarray, color: int) -> None:
        """Notes in the state that a pawn has just passed a square; raises ValueError."""
        column = self.letters(state)[self.names.index(name) % 8 :: 8] if name in self.names else ""
        if self.size != 8 or name[1:] != "63"[color] or (column[4:7] != "P.." if color else column[1:4] != "..p"):
            raise ValueError(f"no pawn has just passed {name}")
        rules.PLAIN_MARK_PASSED(state, self.square_of(name, color))

    # --- pictures ---

    @cached_property
    def board(self) -> Board:
        """The board as White sees it: row by row from the far side."""
        cells = grid_cells(self.size, self.size, self.names, "checkered")
        labels = edge_labels([str(rank) for rank in range(self.size, 0, -1)], self.files)
        return Board(cells, labels, shapes=("king", "king"), colors=COLORS, worth=WORTH, bottom=0)

    def pieces(self, position: Position) -> list[Piece]:
        found = [(cell, letter) for cell, letter in enumerate(self.letters(position.state)) if letter != "."]
        return [Piece(cell, int(letter.islower()), NAMES[letter.upper()]) for cell, letter in found]

    def clicks(self, position: Position) -> Clicks:
        """A click on the piece, then one on its target, and perhaps a choice: what a pawn becomes."""
        found = {}
        for action in position.legal_actions:
            word = position.format(action)
            choice = [NAMES[piece.upper()] for piece in word[4:]]
            found[self.names.index(word[:2]), self.names.index(word[2:4]), *choice] = action
        return found

    def remark(self, position: Position) -> str:
        if not position.terminal or position.outcome:
            return ("checkmate" if position.terminal else "check") * self.in_check(position)
        return reason_of_draw(position.state, self.max_plies)

    def in_check(self, position: Position) -> bool:
        """The player to move is in check."""
        return rules.is_check(position.state)


class Gardner(Chess):
    """The same on 5 x 5 squares, a1-e5: no castling, and no pawn goes two squares at once."""

    name = "gardner"
    size = 5
    mean_legal = 16
    max_plies = 256
