"""Go: area scoring, positional superko, no suicide; two passes in a row end the game.

Rows count from the top, point = size * row + column, and the last action is the pass:

     A B C D E
   5 . . . . .       Go players number rows from the bottom, and leave out the letter I
   4 . . . . .
   ...

A set of points is a few words, as in points.py. Below, `words` is the number of words that a board fills. `state` is

    own stones, the other's, points where the mover may play      `words` words each
    1 if White is to move, + 2 for each pass in a row             1 word
    points where own stones were captured, the other's            `words` words each; from here on: history
    the key of the position, the number of plies, and the key of the position before each ply

Positional superko: no play leads to a position of stones that was there before. That takes a stone on a point where
the mover's stones were captured, so only there are keys compared (A. Zobrist 1970, 64 bits; equal keys of different
positions are possible, and are not looked for). All stones on the board count as alive, so dead ones must be captured.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache, cached_property
from itertools import product

import numpy as np
from numba import njit

from alphazero.game import (
    Board,
    Colors,
    Game,
    Piece,
    Position,
    Rules,
    Score,
    Stroke,
    edge_labels,
    enclosed,
    grid_cells,
    images_of_square,
    read_grid,
)
from games.go.points import (
    NOTHING,
    ONE,
    ZERO,
    both,
    count,
    either,
    is_empty,
    make_points,
    mirrored,
    plain_points,
    without,
    words_of,
)

TWO = np.uint64(2)
NO_STATE = np.zeros(0, np.uint64)
LETTERS = "ABCDEFGHJKLMNOPQRST"
COLORS = Colors(panel="#dfb36a", text="#3d2a0e", line="#7d5a24", first="#181818", second="#fafaf5")


@cache  # games of the same functions share compiled code
def make_rules(size: int, komi: float, by_points: bool, max_plies: int) -> Rules:
    """The rules on `size` x `size` points; `by_points`: the result is points, and else won, lost or drawn."""
    points, pass_action = size * size, size * size
    keys = np.random.PCG64(0).random_raw((2, points))  # of a stone of each colour on each point
    words = words_of(size)
    board, in_row, row_of, point, lowest, load, store, around, connected, smothered, captured_by = make_points(size)
    own_at, other_at, playable_at, turn_at = 0, words, 2 * words, 3 * words
    lost_at, taken_at, key_at = turn_at + 1, turn_at + 1 + words, turn_at + 1 + 2 * words
    plies_at, keys_at = key_at + 1, key_at + 2
    last_ply = np.uint64(max_plies - 1)

    @njit
    def has(state, at, cell):
        return (row_of(state, at, cell // size) >> np.uint64(cell % size)) & ONE == ONE

    @njit
    def key_of(stones, colour):
        key = ZERO
        for word in range(words):
            rest = stones[word]
            while rest:
                key ^= keys[colour, lowest(word, rest)]
                rest &= rest - ONE
        return key

    @njit
    def was_there(state, key, plies):
        for ply in range(plies):
            if state[keys_at + ply] == key:
                return True
        return False

    @njit
    def find_playable(state, own, other, lost, colour, key, plies):
        """The points where the owner of `own` may play; only those without empty neighbours can be suicide."""
        empty = without(board, either(own, other))
        playable = both(empty, around(empty))
        doubtful = either(without(empty, playable), both(empty, lost))
        for word in range(words):
            rest = doubtful[word]
            while rest:
                cell = lowest(word, rest)
                rest &= rest - ONE
                stone = point(cell)
                empty_then = without(empty, stone)
                captured = captured_by(cell, other, empty_then)
                allowed = not is_empty(both(stone, playable)) or not is_empty(captured)
                allowed = allowed or is_empty(smothered(stone, own, empty_then))
                if allowed and not is_empty(both(stone, lost)):
                    allowed = not was_there(state, key ^ keys[colour, cell] ^ key_of(captured, 1 - colour), plies)
                playable = either(playable, stone) if allowed else without(playable, stone)
        return playable

    @njit
    def init(state):
        state[:] = ZERO
        store(state, playable_at, board)

    @njit
    def legal(state, legal_mask):
        for row in range(size):
            bits = row_of(state, playable_at, row)
            for column in range(size):
                legal_mask[size * row + column] = (bits >> np.uint64(column)) & ONE == ONE
        legal_mask[pass_action] = True

    @njit
    def step(state, action):
        own, other = load(state, own_at), load(state, other_at)
        lost, taken = load(state, lost_at), load(state, taken_at)
        colour, passes = np.int64(state[turn_at] & ONE), (state[turn_at] >> ONE) + ONE
        key, plies = state[key_at], np.int64(min(state[plies_at], last_ply))
        if key == ZERO:  # at the start, and where there is no history
            key = key_of(own, colour) ^ key_of(other, 1 - colour)
        state[keys_at + plies] = key
        if action != pass_action:
            stone, passes = point(action), ZERO
            captured = captured_by(action, other, without(board, either(either(own, other), stone)))
            own, other, taken = either(own, stone), without(other, captured), either(taken, captured)
            key ^= keys[colour, action] ^ key_of(captured, 1 - colour)
        plies += 1
        store(state, own_at, other)  # the board turns round
        store(state, other_at, own)
        store(state, playable_at, find_playable(state, other, own, taken, 1 - colour, key, plies))
        state[turn_at] = np.uint64(1 - colour) | (min(passes, TWO) << ONE)
        store(state, lost_at, taken)
        store(state, taken_at, lost)
        state[key_at], state[plies_at] = key, np.uint64(plies)

    @njit
    def is_terminal(state):
        return state[turn_at] >> ONE >= TWO or state[plies_at] > last_ply

    @njit
    def lead_of(state):
        """The mover's stones, the empty points that only they reach, and the komi, less the other's."""
        own, other = load(state, own_at), load(state, other_at)
        empty = without(board, either(own, other))
        near_own, near_other = connected(own, empty), connected(other, empty)
        lead = count(without(near_own, near_other)) - count(without(near_other, near_own))
        return lead + (komi if state[turn_at] & ONE else -komi)

    @njit
    def terminal_value(state):
        lead = lead_of(state)
        return lead if by_points else 1.0 if lead > 0.0 else -1.0 if lead < 0.0 else 0.0

    @njit
    def observe(state, planes):
        """Stones, own and the other's; where the mover may play; chains with 1, 2 and 3 liberties; the board; White to
        move, who gets the komi; the other has passed."""
        own, other = load(state, own_at), load(state, other_at)
        rest = either(own, other)
        empty = without(board, rest)
        white, passed = float(state[turn_at] & ONE), 1.0 if state[turn_at] > ONE else 0.0
        for cell in range(points):
            row, column = cell // size, cell % size
            planes[0, row, column] = has(state, own_at, cell)
            planes[1, row, column] = has(state, other_at, cell)
            planes[2, row, column] = has(state, playable_at, cell)
            planes[6, row, column] = 1.0
            planes[7, row, column] = white
            planes[8, row, column] = passed
            if not is_empty(both(rest, point(cell))):
                chain = connected(point(cell), own if has(state, own_at, cell) else other)
                rest = without(rest, chain)
                liberties = count(both(around(chain), empty))
                if liberties <= 3:
                    for word in range(words):
                        stones = chain[word]
                        while stones:
                            stone = lowest(word, stones)
                            stones &= stones - ONE
                            planes[2 + max(liberties, 1), stone // size, stone % size] = 1.0

    @njit
    def transform(state, symmetry):
        """Bit 0: rows and columns change places; bit 1: the first row becomes the last; bit 2: so do the columns."""
        for at in (own_at, other_at, playable_at):
            image = NOTHING
            for row in range(size):
                source, bits = size - 1 - row if symmetry & 2 else row, ZERO
                if symmetry & 1:
                    for column in range(size):
                        bits |= ((row_of(state, at, column) >> np.uint64(source)) & ONE) << np.uint64(column)
                else:
                    bits = row_of(state, at, source)
                image = either(image, in_row(row, mirrored(bits, size) if symmetry & 4 else bits))
            store(state, at, image)

    @njit
    def heuristic(state):
        """The lead on the board, as if the game ended here."""
        lead = lead_of(state)
        return lead / (size + abs(lead))

    return Rules(init, legal, step, is_terminal, terminal_value, observe, transform=transform, heuristic=heuristic)


class Go(Game):
    """The actions are the points row by row from the top, and the pass; people write them as C3, and "pass"."""

    size: int
    komi: float
    """The points that White gets for moving second."""

    def __init__(self) -> None:
        points = self.size**2
        self.words = words_of(self.size)
        self.num_actions = points + 1
        self.max_plies = max(2 * points, 100)  # on 19 x 19 that of AlphaGo Zero (Silver et al. 2017)
        self.history_words = 2 * self.words + 2 + self.max_plies
        self.state_words = 3 * self.words + 1 + self.history_words
        self.observation_shape = (9, self.size, self.size)
        self.rules = make_rules(self.size, self.komi, self.score is not None, self.max_plies)

    @cached_property
    def symmetries(self) -> tuple[np.ndarray, np.ndarray]:
        cells = images_of_square(self.size)
        return cells, np.hstack([cells, np.full((8, 1), self.size**2)])

    def owners(self, state: np.ndarray, to_play: int) -> dict[int, int]:
        """The owner of the stone on each point that has one."""
        row_of, size, found = plain_points(self.size).row_of, self.size, dict[int, int]()
        for row, side in product(range(size), (0, 1)):
            bits = int(row_of(state, side * self.words, row))
            found |= {size * row + column: to_play ^ side for column in range(size) if bits >> column & 1}
        return found

    def render(self, state: np.ndarray, to_play: int) -> str:
        owners = self.owners(state, to_play)
        marks = ["XO"[owners[cell]] if cell in owners else "." for cell in range(self.size**2)]
        rows = [marks[at : at + self.size] for at in range(0, self.size**2, self.size)]
        lines = [f"{self.size - row:2} " + " ".join(signs) for row, signs in enumerate(rows)]
        return "\n".join(["   " + " ".join(LETTERS[: self.size]), *lines])

    @cached_property
    def board(self) -> Board:
        middles, last = [index + 0.5 for index in range(self.size)], self.size - 0.5
        strokes = [Stroke(((0.5, at), (last, at))) for at in middles]
        strokes += [Stroke(((at, 0.5), (at, last))) for at in middles]
        near, middle = 2 if self.size < 13 else 3, self.size // 2
        places = product((near, middle, self.size - 1 - near) if self.size > 8 else (middle,), repeat=2)
        stars = [(x, y) for x, y in places if self.size > 13 or (x == middle) == (y == middle)]
        strokes += [Stroke(((middles[x], middles[y]),) * 2, 0.2) for x, y in stars if self.size % 2]
        names = [self.format_action(cell, NO_STATE) for cell in range(self.size**2)]
        labels = edge_labels([str(self.size - row) for row in range(self.size)], LETTERS[: self.size])
        return Board(grid_cells(self.size, self.size, names, "open"), labels, tuple(strokes), colors=COLORS)

    def pieces(self, position: Position) -> list[Piece]:
        """The stones, and at the end the territory."""
        stones = [Piece(*stone) for stone in self.owners(position.state, position.to_play).items()]
        return stones + (enclosed(stones, self.size, self.size) if position.terminal else [])

    def remark(self, position: Position) -> str:
        """The stones that were captured; at the end the areas."""
        counts = Counter(piece.player for piece in self.pieces(position))
        if position.terminal:
            return f"area: Black {counts[0]}, White {counts[1]}" + (f" + {self.komi:g}" if self.komi else "")
        start = position.start
        placed = Counter(self.owners(start.state, start.to_play).values())
        placed.update((start.to_play + i) % 2 for i, a in enumerate(position.actions) if a < self.size**2)
        lost = placed[0] - counts[0], placed[1] - counts[1]
        return f"captured: {lost[1]} by Black, {lost[0]} by White" if any(lost) else ""

    def format_action(self, action: int, state: np.ndarray) -> str:
        row, column = divmod(action, self.size)
        return "pass" if action == self.size**2 else f"{LETTERS[column]}{self.size - row}"

    def parse_action(self, text: str, state: np.ndarray) -> int:
        if text.lower() == "pass":
            return self.size**2
        column, row = LETTERS[: self.size].index(text[0].upper()), self.size - int(text[1:])
        if not 0 <= row < self.size:
            raise ValueError(text)
        return self.size * row + column

    def read_board(self, text: str) -> Position | None:
        """A sign for each point, then the sign of the player to move, who is Black if there is none."""
        # as GNU Go draws the marked points, and what it says beside the board
        text = re.sub(r"(WHITE|BLACK) \([OX]\) has captured \d+ stones", "", text.replace("+", "."))
        grid = read_grid(text, self.size, self.size)
        if grid is None:
            return None
        sets, mover, state = plain_points(self.size), grid.to_play or 0, np.zeros(self.state_words, np.uint64)
        # as the other player sees it, who passes, so that the points where the mover may play are found
        sides = (grid.first, grid.second) if mover else (grid.second, grid.first)
        for side, cells in enumerate(sides):
            for cell in cells:
                state[side * self.words : (side + 1) * self.words] |= np.array(sets.point(cell)[: self.words])
        stones = [sets.load(state, side * self.words) for side in (0, 1)]
        empty = without.py_func(sets.board, either.py_func(*stones))
        for side, cells in enumerate(sides):
            for cell in cells:
                if any(sets.smothered(sets.point(cell), stones[side], empty)):
                    raise ValueError(f"the stone on {self.format_action(cell, NO_STATE)} has no liberty")
        state[3 * self.words] = 1 - mover
        self.plain_rules.step(state, self.size**2)
        state[3 * self.words] = mover
        state[-self.history_words :] = 0
        return Position(self, state, mover, ())


class Go5(Go):
    """On 5 x 5 points without komi; the result counts in points, and Black wins all 25 (van der Werf 2003)."""

    name, size, komi, score = "go5", 5, 0.0, Score(-25, 25)


class Go6(Go):
    """On 6 x 6 points, where Black wins by 4: with this komi perfect play is a draw."""

    name, size, komi = "go6", 6, 4.0


class Go7(Go):
    """On 7 x 7 points, where Black wins by 9, as strong players believe: with this komi perfect play is a draw."""

    name, size, komi = "go7", 7, 9.0


class Go9(Go):
    name, size, komi = "go9", 9, 7.5


class Go13(Go):
    name, size, komi = "go13", 13, 7.5


class Go19(Go):
    name, size, komi = "go19", 19, 7.5
