"""The looks of games with dice, and of games for one, as data: `looks`, and what these games need besides.

They have numbers that random games do not reach, such as large tiles, so pieces are learned from shaken positions, too.
A game without cells shows the text of `render`: its numbers, and what is between them, are the pieces. Names and
clicks may depend on what else is legal, and outcomes have names.

So are those of other games whose random games show some piece on a cell too seldom, as rooks on each square in chess.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from alphazero.errors import GameError
from alphazero.game import Game, Position
from alphazero.game.kernels import kernels_of
from alphazero.wasm import looks
from alphazero.wasm.looks import Facts, Learner, Looks, Tree, answer, bits_of, facts, grown, pieces_of, told

POSITIONS, SHAKEN = 1000, 4000
"""Positions to learn from in each round; the second number: shaken ones of a game with rare pieces."""
GAMES = 500
"""Random games in which positions are looked for where an action is legal."""
OF_ACTION = 3
"""Positions of each action and mover in each round."""
MOST_CHANGES = 64
"""Depth of a tree over the bits that an outcome changes, most of which are alone."""
CHANGED = 20
"""Positions of games, and shaken ones, in which each bit is changed, to see on which ones a piece depends."""
BESIDE = 3
"""Bits so near to one on which a piece depends may belong to the same number, in games with dice and for one."""


@dataclass(frozen=True)
class DiceLooks(Looks):
    """The looks of a game with dice, or for one."""

    outcomes: list[Tree]
    """The name of each outcome: a tree over the bits of the position that it changes, from 0 for the first."""
    text: tuple[int, int]
    """Lines of the text that is shown, and parts of a line, which are the pieces; (0, 0) in a game with cells."""


def dice_looks_of(game: Game) -> DiceLooks:
    """The looks of a game; raises GameError for a game whose pieces, names or clicks need more than a few bits."""
    try:
        return _DiceLearner(game).learned(POSITIONS if has_numbers(game) else SHAKEN)
    except GameError:  # positions that no game has may need more bits than all others
        return _DiceLearner(game).learned(0)


def has_numbers(game: Game) -> bool:
    """The game is one of those that show numbers."""
    return game.num_outcomes > 0 or game.num_players == 1


class _DiceLearner(Learner):
    order = -1  # what else is legal says more than the bits by which it is

    def __init__(self, game: Game):
        self.text, cells = looks.NO_TEXT, len(game.board.cells)
        self.ignored = []  # of two actions with the same clicks one has none
        if not cells:
            texts = [looks.parts_of(position) for position in looks.some_positions(game, POSITIONS, 0)]
            self.text = max(map(len, texts)), max(len(line) for text in texts for line in text)
        super().__init__(game, (cells or math.prod(self.text), game.num_actions, game.num_actions))
        self.thrown: list[tuple[int, np.ndarray, str]] = []
        """Outcomes, the bits that they change, and their names."""
        self.kept, self.asked = dict[int, Tree](), dict[int, np.ndarray]()
        """By list of labels the last tree; of pieces the bits that it may ask about."""

    def learned(self, shakes: int) -> DiceLooks:
        """The looks, learned from that many shaken positions besides in each round."""
        made, few = None, looks.RARE * shakes if has_numbers(self.game) else 0
        for round in range(1 + looks.MOST_ROUNDS):
            played, seen = list(looks.some_positions(self.game, POSITIONS, round)), len(self.labels[0][0])
            known = [(at, facts(at, self.text)) for at in (*played, *positions_of_actions(self.game, round))]
            others = list(shaken(played, self.text, shakes, round))
            if round == 0 and shakes:
                self.find_asked(
                    [*played[:: len(played) // CHANGED], *(at for at, _ in others[:CHANGED])], room_of(played)
                )
            self.add(known, [np.append(bits_of(at, right[0]), at.legal_mask) for at, right in known])
            if others:
                self.add(others, [np.append(bits_of(at, {}), [False] * self.game.num_actions) for at, _ in others])
            thrown = [found for at in played for found in outcomes_of(at)]
            if made is not None:
                wrong = self.wrong(seen)
                first = wrong[: len(known)]
                named = all(answer(made, made.outcomes[i], bits) == word for i, bits, word in thrown)
                named &= all(told(made, at) == right for at, right in known[: len(played)])
                if named and not first.any() and (wrong.sum() <= few or round >= looks.ROUNDS):
                    return made
                if round >= looks.ROUNDS and first.mean() > looks.RARE:
                    break
            self.thrown += thrown
            made = self.looks()
        raise looks.needs_more_bits(self.game, known[int(first.argmax())][0])

    def wrong(self, seen: int) -> np.ndarray:
        """Whether a tree is wrong, `bool[n]`, in each position but the first ones, from which it was learned."""
        assert self.bits is not None
        bits = self.bits[seen:]
        found = np.zeros(len(bits), bool)
        for labels in chain(*self.labels):
            numbers = np.array(labels[seen:])
            found |= (numbers >= 0) & (numbers != answers(self.kept[id(labels)], bits))
        return found

    def _tree(self, labels: list[int], known: np.ndarray, unseen: Any) -> Tree:
        """The tree of the round before, if it is right; else a new one, of a piece over the bits that change it."""
        tree, numbers = self.kept.get(id(labels)), np.array(labels)
        if tree is None or ((numbers >= 0) & (numbers != answers(tree, known))).any():
            tree = self.kept[id(labels)] = super()._tree(labels, known & self.asked.get(id(labels), True), unseen)
        return tree

    def find_asked(self, positions: Sequence[Position], room: Sequence[int]) -> None:
        """Finds the bits that change each piece: changes one after another, also the mover. Those beside them count."""
        places, first, players = self.labels[0], looks.mover_bits(self.game), self.game.num_players
        beside = BESIDE if has_numbers(self.game) else 0
        self.asked = {id(labels): np.zeros(first + 64 * len(room), bool) for labels in places}
        for at in positions:
            before = pieces_of(at, self.text)
            others = [(0, at.state, (at.to_play + i) % players) for i in range(1, players)]
            for number in range(64 * len(room)):
                if room[number // 64] >> number % 64:
                    state = at.state.copy()
                    state[number // 64] ^= np.uint64(1 << number % 64)
                    others.append((first + number, state, at.to_play))
            for number, state, mover in others:
                with contextlib.suppress(Exception):  # a game need not know such positions
                    after = pieces_of(Position(self.game, state, mover, ()), self.text)
                    for place in before.keys() | after.keys():
                        if before.get(place) != after.get(place):
                            self.asked[id(places[place])][max(0, number - beside) : number + beside + 1] = True

    def looks(self) -> DiceLooks:
        """The trees that are right in all positions."""
        outcomes = np.array([outcome for outcome, _, _ in self.thrown])
        words = np.array([self.number(word) for _, _, word in self.thrown])
        each = [set(words[outcomes == outcome].tolist()) for outcome in range(self.game.num_outcomes)]
        trees: list[Tree] = [found.pop() if found else self.number("?") for found in each if len(found) < 2]
        if len(trees) < len(each):  # the same for all, since few outcomes are seen in all positions
            bits = np.array([bits for _, bits, _ in self.thrown])
            trees = [grown(np.arange(len(words)), words, bits, most=MOST_CHANGES)] * len(each)
        return DiceLooks(**vars(self.learn()), outcomes=trees, text=self.text)


def positions_of_actions(game: Game, seed: int) -> Iterator[Position]:
    """Positions of random games, some for each action that is legal in one and each mover."""
    kernels, rng, numbers = kernels_of(game), np.random.default_rng(seed), np.arange(GAMES)
    states, movers, plies = kernels.start_states(GAMES), np.zeros(GAMES, np.int8), np.zeros(GAMES, np.int64)
    kernels.find_movers(states, movers)
    left = np.full((game.num_players, game.num_actions), OF_ACTION)
    for ply in range(game.max_plies):
        kernels.roll(states, movers, seed, numbers, plies + ply)
        masks, over, _ = kernels.describe_all(states)
        if over.all():
            break
        for i in np.flatnonzero(~over).tolist():
            if (left[movers[i]][masks[i]] > 0).any():
                left[movers[i]][masks[i]] -= 1
                yield Position(game, states[i].copy(), int(movers[i]), ())
        actions = np.where(over, -1, (rng.random(masks.shape) * masks).argmax(axis=1))
        kernels.play(states, movers, actions)


def shaken(
    played: Sequence[Position], text: tuple[int, int], count: int, seed: int
) -> Iterator[tuple[Position, Facts]]:
    """Up to so many positions whose words have other bits, one more than were seen, and their pieces alone."""
    rng, game = np.random.default_rng(seed), played[0].game
    room = room_of(played)
    for number in range(count):
        state = played[int(rng.integers(len(played)))].state.copy()
        for word in range(len(room)):
            flips, size = int(rng.integers(2**64, dtype=np.uint64)), int(rng.integers(1, 9))
            if number % 2:  # some bits side by side alone, as a number may have them
                flips &= (1 << size) - 1 << int(rng.integers(64))
            state[word] ^= np.uint64(flips & room[word])
        position = Position(game, state, int(rng.integers(game.num_players)), ())
        with contextlib.suppress(Exception):  # a game need not know such positions
            pieces = pieces_of(position, text)
            bits_of(position, pieces)
            yield position, (pieces, {}, {})


def room_of(played: Sequence[Position]) -> list[int]:
    """For each word the bits up to the one after the highest that was seen; none in a word that was always 0."""
    seen = np.bitwise_or.reduce([looks.shown(position) for position in played])
    return [min((1 << int(word).bit_length() + 1) - 1, 2**64 - 1) if word else 0 for word in seen]


def answers(tree: Tree, bits: np.ndarray) -> np.ndarray:
    """The number of the tree's value for each row of bits, `int64[n]`."""
    if not isinstance(tree, list):
        return np.full(len(bits), tree)
    return np.where(bits[:, tree[0]], answers(tree[2], bits), answers(tree[1], bits))


def outcomes_of(position: Position) -> Iterator[tuple[int, np.ndarray, str]]:
    """Each outcome of the die that is due, the bits that it changes, and its name."""
    for outcome in range(len(position.chances)):
        yield outcome, looks.bits_in(position.state ^ position.play(outcome).state), position.format(outcome)
