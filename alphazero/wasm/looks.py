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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from alphazero.errors import GameError
from alphazero.game import Game, Position
from alphazero.game.board import cells_in_line
from alphazero.game.kernels import kernels_of
from alphazero.game.record import words_of

POSITIONS = 2000
"""Positions to learn from in each round, and as many to be right in."""
ROUNDS, MOST_ROUNDS = 4, 12
"""Rounds of learning before a game is given up; the second number if few positions are still wrong by the first."""
RARE = 0.01
"""The share of wrong positions that counts as few."""
MOST_DEPTH = 16
LINES = range(3, 8)

Tree = int | list[Any]
"""A leaf is the number of a value; a question is [bit, tree if it is 0, tree if it is 1].

Bit 0 is who moves, then come the 64 bits of each word, then a bit for each cell: it has a piece."""


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


def bits_of(position: Position, pieces: Mapping[int, Any]) -> np.ndarray:
    """The bits that trees ask about, `bool[1 + 64 K + cells]`; `pieces` by cell."""
    words = np.unpackbits(position.state.astype("<u8").view(np.uint8), bitorder="little").astype(bool)
    taken = np.zeros(len(position.game.board.cells), bool)
    taken[list(pieces)] = True
    return np.concatenate([[bool(position.to_play)], words, taken])


def answer(looks: Looks, tree: Tree, bits: np.ndarray) -> Any:
    """The value to which the bits lead; the page does the same."""
    while isinstance(tree, list):
        tree = tree[1 + int(bits[tree[0]])]
    return looks.values[tree]


def told(looks: Looks, position: Position) -> tuple[dict[int, Any], dict[int, str], dict[int, Any]]:
    """The trees' answers for a position, as `facts`."""
    bits = bits_of(position, {})
    found = {cell: answer(looks, tree, bits) for cell, tree in enumerate(looks.pieces)}
    pieces = {cell: piece for cell, piece in found.items() if piece is not None}
    bits, legal = bits_of(position, pieces), position.legal_actions
    words = {action: answer(looks, looks.words[action], bits) for action in legal}
    return pieces, words, {action: answer(looks, looks.clicks[action], bits) for action in legal}


def looks_of(game: Game) -> Looks:
    """The looks of a game; raises GameError for a game whose pieces, names or clicks need more than a few bits."""
    if not game.board.cells:
        raise GameError(
            f"{game.name} draws no board, so a web page cannot show it: give its class `pieces`, or a `board`"
        )
    learner, positions = _Learner(game), list(some_positions(game, POSITIONS, 0))
    for round in range(1, MOST_ROUNDS + 1):
        learner.add(positions)
        looks = learner.learn()
        positions = list(some_positions(game, POSITIONS, round))
        wrong = [position for position in positions if told(looks, position) != facts(position)]
        if not wrong:
            return looks
        if round >= ROUNDS and len(wrong) > RARE * len(positions):
            break
    parts = zip(("pieces", "names", "clicks"), told(looks, wrong[0]), facts(wrong[0]), strict=True)
    which = " and ".join(part for part, shown, right in parts if shown != right)
    raise GameError(
        f"a web page cannot show {game.name}: its {which} depend on more than a few bits of the position, as after "
        f"{' '.join(words_of(game.start(), wrong[0].actions)) or 'no move'}: keep one bit for each piece and cell"
    )


def some_positions(game: Game, count: int, seed: int) -> Iterator[Position]:
    """Positions of random games, all of each, so that they come with their neighbours."""
    rng, found = np.random.default_rng(seed), 0
    kernels = kernels_of(game)
    while found < count:
        position = game.start()
        while True:
            yield position
            found += 1
            if position.terminal:
                break
            masks, _, _ = kernels.describe_all(position.state[None])
            action = int(rng.choice(np.flatnonzero(masks[0])))
            state, to_play = position.state[None].copy(), np.array([position.to_play], np.int8)
            kernels.play(state, to_play, np.array([action]))
            position = Position(game, state[0], int(to_play[0]), (*position.actions, action))


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


def facts(position: Position) -> tuple[dict[int, Any], dict[int, str], dict[int, Any]]:
    """The pieces by cell, the names and the clicks by action, as the page knows them: without the history."""
    game, alone = position.game, without_history(position)
    pieces = {piece.cell: {**asdict(piece), "cell": None} for piece in game.pieces(alone)}
    legal = alone.legal_actions
    clicks: dict[int, list[list[int]]] = {action: [] for action in legal}
    for path, action in (game.clicks(alone) if legal else {}).items():
        clicks[action].append(list(path))
    return pieces, {action: alone.format(action) for action in legal}, clicks


class _Learner:
    """Collects positions, and grows trees that are right in all of them."""

    def __init__(self, game: Game):
        self.game = game
        self.bits = np.zeros((0, 1 + 64 * game.state_words + len(game.board.cells)), bool)
        """`bool[n, 1 + 64 K + cells]` of `bits_of`."""
        self.values: dict[str, int] = {}
        """Every value, as JSON, by its number."""
        cells, actions = len(game.board.cells), game.num_actions
        self.labels = {"pieces": [list[int]() for _ in range(cells)]}
        self.labels |= {name: [list[int]() for _ in range(actions)] for name in ("words", "clicks")}
        """The number of the value in each position, -1 where the action is not legal."""
        self.ended: list[Position] = []

    def add(self, positions: Sequence[Position]) -> None:
        """Adds what the game says of some positions."""
        rows = []
        for position in positions:
            pieces, words, clicks = facts(position)
            rows.append(bits_of(position, pieces))
            for name, known in (("pieces", pieces), ("words", words), ("clicks", clicks)):
                for item, labels in enumerate(self.labels[name]):
                    missing = self._number(None) if name == "pieces" else -1
                    labels.append(self._number(known[item]) if item in known else missing)
            if position.terminal:
                self.ended.append(position)
        self.bits = np.concatenate([self.bits, np.stack(rows)])

    def learn(self) -> Looks:
        """The trees that are right in all positions."""
        trees = {name: [self._tree(name, item) for item in range(len(items))] for name, items in self.labels.items()}
        line, beside = self._line(), list[list[int]]()
        if not line and self._chains(neighbours(self.game)):
            beside = neighbours(self.game)
        values = [json.loads(value) for value in self.values]
        return Looks(values=values, owned=self._owned(), line=line, beside=beside, **trees)

    def _number(self, value: Any) -> int:
        return self.values.setdefault(json.dumps(value), len(self.values))

    def _tree(self, name: str, item: int) -> Tree:
        labels = np.array(self.labels[name][item])
        rows = np.flatnonzero(labels >= 0)
        if len(rows):
            known = len(self.bits[0]) - len(self.game.board.cells) * (name == "pieces")
            return self._grown(rows, labels, self.bits[:, :known], 0)
        if name != "words":
            return self._number([])  # an action that no random game had: a button, with its name at the start
        try:
            return self._number(self.game.start().format(item))
        except Exception:  # a game's notation need not know an action where it is not legal
            return self._number(f"action {item}")

    def _grown(self, rows: np.ndarray, labels: np.ndarray, known: np.ndarray, depth: int) -> Tree:
        """A tree for some of the positions: who moves first, then the bits that tell most."""
        kinds, own = np.unique(labels[rows], return_inverse=True)
        if len(kinds) == 1 or depth == MOST_DEPTH:
            return int(kinds[np.bincount(own).argmax()])
        bits = known[rows]
        ones = bits.T.astype(np.float32) @ np.eye(len(kinds), dtype=np.float32)[own]
        zeros = np.bincount(own) - ones
        disorder = _disorder(ones) + _disorder(zeros)
        useless = (ones.sum(axis=1) == 0) | (zeros.sum(axis=1) == 0)
        disorder[useless] = np.inf
        best = 0 if depth == 0 and not useless[0] else int(disorder.argmin())
        if useless[best]:
            return int(kinds[np.bincount(own).argmax()])
        parts = [self._grown(rows[bits[:, best] == side], labels, known, depth + 1) for side in (False, True)]
        return parts[0] if parts[0] == parts[1] else [best, *parts]

    def _line(self) -> int:
        """The length of a line whose cells the game marks at its end."""
        _, rows, columns = self.game.observation_shape
        if len(self.game.board.cells) != rows * columns:
            return 0
        marked = [(self.game.pieces(end), set(self.game.winning_cells(end))) for end in self.ended]
        for length in LINES if any(cells for _, cells in marked) else ():
            if all(set(cells_in_line(pieces, columns, length)) == cells for pieces, cells in marked):
                return length
        return 0

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
        marks = False
        for end in self.ended:
            last, marked = end.view.last, set(end.view.winning)
            if marked and end.outcome == 0:
                return False
            owners = {piece.cell: piece.player for piece in self.game.pieces(end)}
            if marked and (len(last) != 1 or last[0] not in owners or chain_through(last[0], owners, beside) != marked):
                return False
            marks = marks or bool(marked)
        return marks


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
    total = counts.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.nansum(np.where(counts > 0, counts * np.log(counts / total), 0.0), axis=1)
