"""Dobutsu shogi for people: texts, boards and clicks. The rules are in rules.py."""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np

from alphazero.game import Board, Cell, Clicks, Colors, Game, Piece, Position, edge_labels, grid_cells, square
from games.dobutsu.rules import (
    CHICK,
    COLUMNS,
    DIRECTIONS,
    HAND,
    HEN,
    KINDS,
    LION,
    MOST_PLIES,
    NEIGHBOURS,
    NUM_ACTIONS,
    NUM_SQUARES,
    PLAIN_ATTACKERS,
    PLAIN_FIND,
    PLAIN_TURN,
    PLAYER,
    PLIES,
    POSITION,
    ROWS,
    RULES,
    STATE_WORDS,
    THEIRS,
    WAYS,
)

LETTERS = ".CGELH"
COLORS = Colors("#4b5d3a", "#f4f1e4", "#f6edd0", "#e3d4a4", "#8a7a4c", first="#2f7d4f", second="#2b6cb0")


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
    rules = RULES

    @cached_property
    def symmetries(self) -> tuple[np.ndarray, np.ndarray]:
        """The board itself, and with left and right exchanged."""
        cells = np.arange(NUM_SQUARES).reshape(ROWS, COLUMNS)
        mirrored = [
            way if way >= DIRECTIONS else WAYS.index((WAYS[way][0], -WAYS[way][1])) for way in range(DIRECTIONS + KINDS)
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
        plies = int(state[PLIES])
        return f"{board}[{held}] {'wb'[player]} - - 0 {1 + (plies + (player - plies) % 2) // 2}"

    def read_board(self, text: str) -> Position | None:
        """Such a text, with a hen as +C or H; empty hands and all behind who moves may be left out. It has no history.

        Raises ValueError for a board that no game leads to.
        """
        found = re.match(
            r"\s*([cgelh+\d]+(?:/[cgelh+\d]+)+)(?:\[([cge-]*)\])?(?:\s+(\w+))?(?=[\s;]|$)([^;]*)", text, re.IGNORECASE
        )
        if found is None:
            return None
        if not re.fullmatch(r"(\s+(-|\d+)){0,4}\s*", found[4]):
            raise ValueError(f"behind who moves stands {' '.join(found[4].split()):.40}; moves follow the word moves")
        held, side = found[2] or "", (found[3] or "").lower()
        if side not in ("w", "b"):
            raise ValueError("behind the board must stand who moves: w or b")
        rows = [re.sub(r"\d", lambda run: "." * int(run[0]), row) for row in found[1].split("/")]
        rows = [row.replace("+c", "h").replace("+C", "H") for row in rows]
        if len(rows) != ROWS or any(len(row) != COLUMNS or "+" in row for row in rows):
            raise ValueError(f"it has {ROWS} rows of {COLUMNS} squares")
        board, word = "".join(rows[::-1]), 0
        for at, letter in enumerate(board):
            owner = THEIRS * letter.islower()
            word |= (LETTERS.index(letter.upper()) + owner * (letter != ".")) << 4 * at
        for letter in held.replace("-", ""):
            word += 1 << HAND + 6 * letter.islower() + 2 * (LETTERS.index(letter.upper()) - CHICK)
        everything = (board + held).upper().replace("H", "C")
        if board.count("L") != 1 or board.count("l") != 1 or max(map(everything.count, "CGE")) > 2:
            raise ValueError("each side has one lion; there are two chicks, two giraffes and two elephants at most")
        player, state = int(side == "b"), np.zeros(STATE_WORDS, np.uint64)
        turned = PLAIN_TURN(np.uint64(word))
        own, other = (turned, np.uint64(word)) if player else (np.uint64(word), turned)
        if PLAIN_ATTACKERS(other, PLAIN_FIND(other, LION)):
            raise ValueError("who does not move could lose the lion at once")
        if PLAIN_FIND(own, LION) >= NUM_SQUARES - COLUMNS:
            raise ValueError("who moves has won before, since the lion is on the last row")
        state[POSITION] = own
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
