"""The looks of a game as data: pieces, names and clicks of a position without Python.

What a game says about a position in Python, a page must know from the bits of the position. Each cell's piece, each
action's name and each action's clicks become a small decision tree: its questions are who moves, single bits of the
position, and for names and clicks also whether a cell has a piece. The trees are learned from positions of random
games, and must be right in thousands of others.

What the bits do not hold is learned as a rule that fits all games seen: a piece that belongs to who made it, as a box
in Dots and Boxes, and the cells that a finished game marks, a line or the chain through the last move.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr

from alphazero.errors import GameError
from alphazero.game import Game, Position
from alphazero.game.board import cells_in_line, enclosed
from alphazero.game.kernels import TERMINAL_STYLES
from alphazero.game.record import words_of
from alphazero.game.rules import shown_words

POSITIONS = 2000
"""Positions to learn from in each round, and as many to be right in."""
ROUNDS, MOST_ROUNDS = 4, 12
"""Rounds of learning before a game is given up; the second number if few positions are still wrong by the first."""
RARE = 0.01
"""The share of wrong positions that counts as few."""
MOST_DEPTH = 16
LINES = range(3, 8)
NO_TEXT = (0, 0)

Facts = tuple[dict[int, Any], dict[int, str], dict[int, Any]]
Tree = int | list[Any]
"""A leaf is the number of a value; a question is [bit, tree if it is 0, tree if it is 1].

The first bits, `mover_bits`, are the number of who moves; then come the 64 bits of each word but the history's, then
a bit for each cell: it has a piece; then, for `DiceLooks` alone, one for each action: it is legal."""


@dataclass(frozen=True)
class Looks:
    """The looks of a game; `asdict` gives the page's JSON."""

    values: list[Any]
    """All values of the trees: pieces without their cell, names, lists of clicks."""
    pieces: list[Tree]
    """For each cell."""
    words: list[Tree]
    """For each action, where it is legal."""
    clicks: list[Tree]
    """For each action, where it is legal: the ways to click it, the first of which is marked."""
    owned: list[int]
    """The cells whose pieces belong to the player after whose move they are first there."""
    line: int
    """Pieces of one player in a line that are marked as winning; 0: no lines are marked."""
    beside: list[list[int]]
    """For each cell those that share a side with it, if the winner's chain through the last move is marked."""
    territory: bool
    """At the end, dots mark the empty cells whose region only one player's pieces touch."""


def bits_of(position: Position, pieces: Mapping[int, Any]) -> np.ndarray:
    """The bits that trees ask about, `bool[m + 64 K + cells]` without the history's words; `pieces` by cell."""
    taken = np.zeros(len(position.game.board.cells), bool)
    if len(taken):
        taken[list(pieces)] = True
    mover = [bool(position.to_play >> bit & 1) for bit in range(mover_bits(position.game))]
    return np.concatenate([mover, bits_in(shown(position)), taken])


def mover_bits(game: Game) -> int:
    """The bits of a player's number, the lowest first."""
    return max(1, (game.num_players - 1).bit_length())


def shown(position: Position) -> np.ndarray:
    """The words of a position without those of its history."""
    return position.state[: shown_words(position.game)]


def bits_in(state: np.ndarray) -> np.ndarray:
    """The bits of all words, the lowest first."""
    return np.unpackbits(state.astype("<u8").view(np.uint8), bitorder="little").astype(bool)


def answer(looks: Looks, tree: Tree, bits: np.ndarray) -> Any:
    """The value to which the bits lead; the page does the same."""
    while isinstance(tree, list):
        tree = tree[1 + int(bits[tree[0]])]
    return looks.values[tree]


def told(looks: Looks, position: Position) -> Facts:
    """The trees' answers for a position, as `facts`; the page does the same.

    If two actions have the same clicks, the one of the higher number has them.
    """
    bits = bits_of(position, {})
    found = {cell: answer(looks, tree, bits) for cell, tree in enumerate(looks.pieces)}
    pieces = {cell: piece for cell, piece in found.items() if piece is not None}
    bits = np.append(bits_of(position, pieces), position.legal_mask)
    legal, taken = np.flatnonzero(position.legal_mask).tolist(), list[Any]()
    words, clicks = {action: answer(looks, looks.words[action], bits) for action in legal}, dict[int, Any]()
    for action in reversed(legal):
        clicks[action] = [way for way in answer(looks, looks.clicks[action], bits) if way not in taken]
        taken += clicks[action]
    return pieces, words, clicks


def looks_of(game: Game) -> Looks:
    """The looks of a game; raises GameError for a game whose pieces, names or clicks need more than a few bits."""
    if not game.board.cells:
        raise GameError(
            f"{game.name} draws no board, so a web page cannot show it: give its class `pieces`, or a `board`"
        )
    learner = Learner(game, (len(game.board.cells), game.num_actions, game.num_actions))
    for round in range(1 + MOST_ROUNDS):
        known = [(position, facts(position)) for position in some_positions(game, POSITIONS, round)]
        if round > 0:
            looks = learner.learn()
            wrong = [position for position, right in known if told(looks, position) != right]
            if not wrong:
                return looks
            if round >= ROUNDS and len(wrong) > RARE * len(known):
                break
        learner.add(known, [bits_of(position, right[0]) for position, right in known])
    raise needs_more_bits(game, wrong[0])


def needs_more_bits(game: Game, wrong: Position) -> GameError:
    """The error for a game whose looks were not learned, as one position shows."""
    moves = " ".join(words_of(game.start(), wrong.actions)) or "no move"
    return GameError(
        f"a web page cannot show {game.name}: its pieces, names or clicks depend on more than a few bits of the "
        f"position, as after {moves}: keep one bit for each piece and cell"
    )


def some_positions(game: Game, count: int, seed: int) -> Iterator[Position]:
    """Positions of random games, all of each, so that they come with their neighbours."""
    rng, found = np.random.default_rng(seed), 0
    while found < count:
        position = game.start()
        while not position.terminal:
            yield position
            found += 1
            position = position.play(int(rng.choice(position.legal_actions)))
        yield position
        found += 1


def chain_through(cell: int, pieces: Mapping[int, Any], beside: Sequence[Sequence[int]]) -> set[int]:
    """The cells that pieces of one player connect with a cell."""
    chain, edge = {cell}, [cell]
    for one in edge:
        found = {other for other in beside[one] if other in pieces and pieces[other] == pieces[cell]} - chain
        chain |= found
        edge += found
    return chain


def neighbours(game: Game) -> list[list[int]]:
    """For each cell of the board those whose outlines share two corners with its own."""
    corners = [{(round(x, 2), round(y, 2)) for x, y in cell.outline} for cell in game.board.cells]
    return [
        [other for other, theirs in enumerate(corners) if other != cell and len(own & theirs) == 2]
        for cell, own in enumerate(corners)
    ]


def facts(position: Position, text: tuple[int, int] = NO_TEXT) -> Facts:
    """The pieces by cell, the names and the clicks by action, as the page knows them: without the history."""
    alone, legal = without_history(position), np.flatnonzero(position.legal_mask).tolist()
    clicks: dict[int, list[list[int]]] = {action: [] for action in legal}
    for path, action in (alone.game.clicks(alone) if legal else {}).items():
        clicks[action].append(list(path))
    return pieces_of(alone, text), {action: alone.format(action) for action in legal}, clicks


def pieces_of(position: Position, text: tuple[int, int] = NO_TEXT) -> dict[int, Any]:
    """The pieces by cell, without the territory at the end; or the parts of the text by their place."""
    if text == NO_TEXT:
        found = [piece for piece in position.game.pieces(position) if piece.shape != "dot" or not position.terminal]
        return {piece.cell: {**vars(piece), "cell": None} for piece in found}
    rows, columns = text
    lines = parts_of(position)[:rows]
    return {row * columns + i: part for row, line in enumerate(lines) for i, part in enumerate(line[:columns])}


def parts_of(position: Position) -> list[list[str]]:
    """The numbers of each line of a position's text, and what is between them."""
    return [re.findall(r"\d+|\D+", line) for line in TERMINAL_STYLES.sub("", str(position)).split("\n")]


class Learner:
    """Collects positions, and grows trees that are right in all of them; `counts` of pieces, names and clicks."""

    order = 1
    """See `grown`."""
    ignored: Any = None
    """A value that says nothing."""

    def __init__(self, game: Game, counts: tuple[int, int, int]):
        self.game = game
        self.bits: np.ndarray | None = None
        self.values = {"null": 0}
        """Every value, as JSON, by its number."""
        self.labels = [[list[int]() for _ in range(count)] for count in counts]
        """For each piece, name and list of clicks the number of the value in each position; -1: no legal action."""
        self.ended: list[Position] = []

    def add(self, known: Sequence[tuple[Position, Facts]], bits: Sequence[np.ndarray]) -> None:
        """Adds positions, what the game says of them, and their bits."""
        for _, right in known:
            for items, values, missing in zip(self.labels, right, (0, -1, -1), strict=True):
                for item, labels in enumerate(items):
                    value = values.get(item)
                    labels.append(missing if value is None or value == self.ignored else self.number(value))
        self.bits = np.array(bits) if self.bits is None else np.concatenate([self.bits, bits])
        self.ended += [position for position, _ in known if position.actions and position.terminal]

    def learn(self) -> Looks:
        """The trees that are right in all positions."""
        pieces, words, clicks = self.labels
        assert self.bits is not None
        # a piece does not depend on pieces
        before = self.bits[:, : mover_bits(self.game) + 64 * shown_words(self.game)]
        line, beside = self._line(), neighbours(self.game)
        trees = (
            [self._tree(labels, before, None) for labels in pieces],
            [self._tree(labels, self.bits, self._name(action)) for action, labels in enumerate(words)],
            [self._tree(labels, self.bits, []) for labels in clicks],
        )
        chains = not line and self._chains(beside)
        return Looks(
            [json.loads(value) for value in self.values],
            *trees, self._owned(), line, beside if chains else [], self._territory(),
        )  # fmt: skip

    def number(self, value: Any) -> int:
        return self.values.setdefault(json.dumps(value), len(self.values))

    def _name(self, action: int) -> str:
        try:
            return self.game.start().format(action)
        except Exception:  # a game's notation need not know an action where it is not legal
            return f"action {action}"

    def _tree(self, labels: list[int], known: np.ndarray, unseen: Any) -> Tree:
        """A tree for what has these labels; of an action that no random game had, the value `unseen`."""
        numbers = np.array(labels)
        rows = np.flatnonzero(numbers >= 0)
        if (numbers[rows] == numbers[rows[:1]]).all():
            return int(numbers[rows[0]]) if len(rows) else self.number(unseen)
        return grown(rows, numbers, known, self.order)

    def _line(self) -> int:
        """The length of a line whose cells the game marks at its end."""
        _, rows, columns = self.game.observation_shape
        if len(self.game.board.cells) != rows * columns:
            return 0
        marked = [(self.game.pieces(end), set(self.game.winning_cells(end))) for end in self.ended]
        if not any(cells for _, cells in marked):
            return 0
        lengths = (n for n in LINES if all(set(cells_in_line(pieces, columns, n)) == cells for pieces, cells in marked))
        return next(lengths, 0)

    def _owned(self) -> list[int]:
        """The cells whose owner only the history knows, if it is always who made the piece; else none."""
        found = set[int]()
        for end in self.ended:
            alone = {piece.cell: piece.player for piece in self.game.pieces(without_history(end))}
            owners = {piece.cell: piece.player for piece in self.game.pieces(end)}
            hidden = {cell for cell, owner in owners.items() if cell in alone and alone[cell] != owner}
            makers = _makers(end) if hidden else {}
            if any(makers[cell] != owners[cell] for cell in hidden):
                return []
            found |= hidden
        return sorted(found)

    def _chains(self, beside: list[list[int]]) -> bool:
        """All games that mark cells mark the chain of pieces through the last move, and none of them is drawn."""
        marking = [end for end in self.ended if end.view.winning]
        for end in marking:
            last, owners = end.view.last, {piece.cell: piece.player for piece in self.game.pieces(end)}
            if end.outcome == 0 or len(last) != 1 or last[0] not in owners:
                return False
            if chain_through(last[0], owners, beside) != set(end.view.winning):
                return False
        return bool(marking)

    def _territory(self) -> bool:
        """Whether finished games have dots; raises GameError if these are not those of `enclosed`."""
        _, rows, columns = self.game.observation_shape
        for end in self.ended:
            pieces = self.game.pieces(end)
            dots = {(piece.cell, piece.player) for piece in pieces if piece.shape == "dot"}
            stones = [piece for piece in pieces if piece.shape != "dot"]
            if dots and dots != {(piece.cell, piece.player) for piece in enclosed(stones, rows, columns)}:
                raise needs_more_bits(self.game, end)
            if dots:
                return True
        return False


def grown(rows: np.ndarray, labels: np.ndarray, known: np.ndarray, order: int = 1, most: int = MOST_DEPTH) -> Tree:
    """A tree of at most that depth for some of the positions: who moves first, then the bits that tell most.

    Of equally good bits it takes the first one, or with the order -1 the last one.
    """
    here = known[rows]
    differing = np.flatnonzero(here.any(axis=0) & ~here.all(axis=0))  # the others tell nothing
    differing = np.concatenate([differing[differing == 0], differing[differing > 0][::order]])
    return _grown(labels[rows], here[:, differing].astype(np.float32), differing, 0, most)


def _grown(labels: np.ndarray, bits: np.ndarray, names: np.ndarray, depth: int, most: int) -> Tree:
    kinds, own = np.unique(labels, return_inverse=True)
    counts = np.bincount(own)
    if len(kinds) == 1 or depth == most:
        return int(kinds[counts.argmax()])
    ones = (bits.T @ np.eye(len(kinds), dtype=np.float32)[own]).astype(np.float64)
    zeros = counts - ones
    useless = (ones.sum(axis=1) == 0) | (zeros.sum(axis=1) == 0)
    if useless.all():
        return int(kinds[counts.argmax()])
    disorder = np.where(useless, np.inf, _disorder(ones) + _disorder(zeros))
    best = 0 if depth == 0 and names[0] == 0 and not useless[0] else int(disorder.argmin())
    sides = (bits[:, best] == side for side in (0, 1))
    parts = [_grown(labels[rows], bits[rows], names, depth + 1, most) for rows in sides]
    return parts[0] if parts[0] == parts[1] else [int(names[best]), *parts]


def without_history(position: Position) -> Position:
    return Position(position.game, position.state.copy(), position.to_play, ())


def _makers(end: Position) -> dict[int, int]:
    """For each cell that has a piece the player after whose move it was first there."""
    at, makers = end.game.start(), dict[int, int]()
    for action in end.actions:
        mover, at = at.to_play, at.play(action)
        for piece in at.game.pieces(without_history(at)):
            makers.setdefault(piece.cell, mover)
    return makers


def _disorder(counts: np.ndarray) -> np.ndarray:
    """The entropy of each row of counts, times their sum."""
    return entr(counts).sum(axis=1) - entr(counts.sum(axis=1))
