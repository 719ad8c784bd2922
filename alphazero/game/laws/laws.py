"""The laws of `Game`, each checked at one position of plain Python rules, and said in a sentence when it is broken."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from alphazero.errors import listed, quote
from alphazero.game.laws.positions import PositionLaws
from alphazero.game.laws.questions import Facts
from alphazero.game.reading.moves import meant_by
from alphazero.game.rules import Rules, Score, shown_words

ALL_TRIED = 8
"""So many of the first dice, and ever fewer of the others, are tried with all their outcomes."""
MOST_TRIED = 100
"""Outcomes of one die that are tried, at most."""
MOST_PLAYERS = 8
MOST_PLANES = 4096
"""A policy has no more of them."""


def _is_size(value: Any) -> bool:
    return isinstance(value, int | np.integer) and bool(value > 0)


DECLARED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "name": (
        lambda value: isinstance(value, str) and value != "", 'the word for it on the command line, as name = "my_game"'
    ),
    **dict.fromkeys(("num_actions", "state_words", "max_plies"), (_is_size, "a whole number above 0")),
    "observation_shape": (
        lambda value: isinstance(value, tuple) and len(value) == 3 and all(map(_is_size, value)),
        "a tuple of three whole numbers above 0: (planes, rows, columns)",
    ),
    "rules": (lambda value: isinstance(value, Rules), "a Rules of functions, as rules = Rules(init, legal, step, ...)"),
}  # fmt: skip
"""The attributes of a game: a test of each, and what it must be."""


class Laws(PositionLaws):
    """The laws of one game."""

    def declaration(self) -> None:
        """The sizes and the rules that the class declares."""
        for name, (is_right, law) in DECLARED.items():
            value = getattr(self.game, name, None)
            self.must(is_right(value), f"`{name}` must be {law}, not {quote(value, 60)}")
        for field in fields(Rules):
            rule = getattr(self.game.rules, field.name)
            may_lack = rule is field.default or (field.name == "terminal_value" and self.game.value_shape)
            self.must(callable(rule) or may_lack, f"the rule `{field.name}` must be a function")
        rules, sizes = self.game.rules, (self.game.num_outcomes, self.game.dice_in_a_row)
        dice = {rules.chance is not None, rules.settle is not None, self.game.num_outcomes != 0}
        law = "a game with dice has `chance`, `settle` and `num_outcomes`; others have none of them"
        self.must(len(dice) == 1, law)
        law = "`num_outcomes` must be a whole number, and `dice_in_a_row` one above 0"
        self.must(_is_size(sizes[1]) and (sizes[0] == 0 or _is_size(sizes[0])), law)
        kept, room = self.game.history_words, self.game.mean_legal
        law = "`history_words` must be a whole number below `state_words`"
        self.must(kept == 0 or (_is_size(kept) and kept < self.game.state_words), law)
        self.must(room is None or _is_size(room), "`mean_legal` must be None or a whole number above 0")
        places, most = self.game.action_places, MOST_PLANES * math.prod(self.game.observation_shape[1:])
        law = f"`action_places` must be None, or for each action another whole number from 0 to {most - 1}"
        are_places = places is None or sorted(set(np.ravel(places)) & set(range(most))) == sorted(np.ravel(places))
        self.must(are_places and (places is None or np.shape(places) == (self.game.num_actions,)), law)
        players = self.game.num_players
        self.must(_is_size(players) and players <= MOST_PLAYERS, f"`num_players` must be 1 to {MOST_PLAYERS}")
        there = {name: getattr(rules, name) is not None for name in ("terminal_value", "returns")}
        law = "a game for more than two has `returns`, and None in place of `terminal_value`; others have no `returns`"
        self.must(there == {"terminal_value": players <= 2, "returns": players > 2}, law)
        alone, score, word = self.game.num_players == 1, self.game.score, self.game.points_word
        law = "a Score of two finite numbers, the lower first, and of their name"
        law = f"a game for one needs a `score`: {law}" if alone else f"`score` must be {law}"
        given = Score(-1, 1) if score is None and not alone else score
        self.must(
            isinstance(given, Score)
            and all(isinstance(number, int | float | np.number) for number in (given.low, given.high))
            and -math.inf < given.low < given.high < math.inf
            and isinstance(given.unit, str),
            law,
        )
        assert isinstance(given, Score)
        law = "`score` must be a Score whose lowest number is minus the highest, since one wins what the other loses"
        self.must(players != 2 or given.high == -given.low, law)
        law = "`points_word` must be None, or in a game for one the index of a word of the state"
        self.must(word is None or (alone and word in range(shown_words(self.game))), law)

    def permutations(self) -> tuple[np.ndarray, np.ndarray]:
        """The declared permutations of cells and of actions."""
        found = self.call("symmetries", lambda: [np.asarray(part) for part in self.game.symmetries])
        sizes = math.prod(self.game.observation_shape[1:]), self.game.num_actions
        law = f"`symmetries` must be two arrays with a row for each symmetry: permutations of the {sizes[0]} cells, "
        law += f"and of the {sizes[1]} actions, as whole numbers; the first is the identity"
        self.must(len(found) == 2, law)
        for table, size in zip(found, sizes, strict=True):
            rows = table.ndim == 2 and table.dtype.kind in "iu" and 0 < len(table) == len(found[0])
            rows = rows and table.shape[1] == size and (np.sort(table, axis=1) == np.arange(size)).all()
            self.must(rows and np.array_equal(table[0], np.arange(size)), law)
        return found[0], found[1]

    def start(self) -> tuple[np.ndarray, int]:
        """The start position, the same whatever was in memory before."""
        states = [np.full(self.game.state_words, filling, np.uint64) for filling in (0, 0x5A5A5A5A)]
        for state in states:
            self.ask("init", state, 0)
        self.must(np.array_equal(states[0], states[1]), "`init` must write every word of the state", states[0])
        return states[0], self.mover(states[0], 0)

    def dice(self, state: np.ndarray, player: int) -> np.ndarray:
        """The probabilities of the die that is due; none where a player is to move."""
        most = self.game.num_outcomes
        if not most or bool(self.ask("is_terminal", state, player)):
            return np.empty(0)
        found = np.full((2, most), np.nan)
        counts = [self.ask("chance", state, player, row) for row in found]
        law = "`chance` must say the same of a state whenever it is asked: it tells probabilities, and draws nothing"
        self.must(counts[0] == counts[1] <= most, f"{law}, for `num_outcomes` = {most} at most", state, player)
        due = found[:, : counts[0]]
        self.must(np.array_equal(due[0], due[1]), law, state, player)
        law = "the probabilities of `chance` must be above 0, and 1 in sum"
        self.must(not counts[0] or ((due > 0).all() and abs(due[0].sum() - 1) < 1e-6), law, state, player)
        return due[0]

    def rolled(self, state: np.ndarray, player: int, rng: np.random.Generator, before: int | None = None) -> int:
        """Settles the dice that are due, in place, by what `rng` draws; returns who moves then.

        `before` of them are settled already; all outcomes of some dice are tried unless it is given.
        """
        for number in range(before or 0, self.game.dice_in_a_row + 1):
            if not len(due := self.dice(state, player)):
                return player
            self._dice += before is None
            if before is None and self._dice % max(1, self._dice // ALL_TRIED) == 0:
                self.all_outcomes(state, player, len(due), rng, number + 1)
            player = self.settled(state, player, int(rng.choice(len(due), p=due / due.sum())))
        law = f"a player must move, or the game be over, after `dice_in_a_row` = {self.game.dice_in_a_row} dice"
        raise self.fail(law, state, player)

    def settled(self, state: np.ndarray, player: int, outcome: int) -> int:
        """Settles one die in place, the same each time; returns who moves then."""
        outcomes = [state.copy() for _ in range(2)]
        for after in outcomes:
            self.ask("settle", after, player, outcome)
        law = "`settle` must do the same each time, and write what the die showed into the state"
        self.must(np.array_equal(outcomes[0], outcomes[1]), law, state, player)
        state[:] = outcomes[0]
        self.line = [*self.line, outcome]
        return self.mover(state, player)

    def all_outcomes(self, state: np.ndarray, player: int, due: int, rng: np.random.Generator, number: int) -> None:
        """Each outcome of a die, however rare, has a word of its own and leads to a sound position.

        Of a die with thousands of outcomes some are tried.
        """
        line, busy, words = self.line, self.busy, dict[int, str]()
        for outcome in range(due) if due <= MOST_TRIED else sorted(rng.permutation(due)[:MOST_TRIED].tolist()):
            write = functools.partial(self.game.format_outcome, outcome, state.copy())
            words[outcome] = self.call("format_outcome", write, state, player)
            self.one_word("format_outcome", words[outcome], state, player)
            after = state.copy()
            self.facts(after, self.rolled(after, self.settled(after, player, outcome), rng, number))
            self.line, self.busy = line, busy  # how fast games are is measured without this
        law = f"`format_outcome` must have a word of its own for each outcome; it has {listed(words.values())}"
        self.must(all(meant_by(word, words) == outcome for outcome, word in words.items()), law, state, player)

    def random_game(self, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, int, Facts]]:
        """Plays a random game; gives each position, its mover and the facts."""
        self.line, (state, player) = [], self.start()
        player = self.rolled(state, player, rng)
        for ply in range(self.game.max_plies + 1):
            facts = self.facts(state, player)
            self.visited.append((state, player, facts.kept()))
            self.must(ply or not facts.is_terminal, "the start position must not be over", state, player)
            yield state, player, facts
            if facts.is_terminal:
                return
            action = int(rng.choice(np.flatnonzero(facts.legal)))
            state = self.play(state, player, action)
            self.line = [*self.line, action]
            player = self.rolled(state, self.mover(state, self.game.following(player)), rng)
        most = self.game.max_plies
        raise self.fail(f"a game must end within `max_plies` = {most}: {self.game.too_long}", state, player)

    def all_move(self) -> None:
        """Each player has had a turn in the games that were played."""
        law = "`to_play` must give all players their turns; one of them never moved: `num_players` is "
        law += f"{self.game.num_players}"
        seats = set(range(self.game.num_players))
        self.must({player for _, player, _ in self.visited} >= seats, law)
