"""The laws of `Game`, each tried with plain Python rules, and said in a sentence when it is broken."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from alphazero.errors import listed, quote
from alphazero.game.laws.questions import Facts, Questions
from alphazero.game.reading.moves import meant_by
from alphazero.game.rules import Rules, Score, points_so_far, shown_words, without_points

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


def check_declaration(laws: Questions) -> None:
    """Raises LawBroken unless the sizes and the rules that the class declares are sound."""
    game, must = laws.game, laws.must
    for name, (is_right, law) in DECLARED.items():
        value = getattr(game, name, None)
        must(is_right(value), f"`{name}` must be {law}, not {quote(value, 60)}")
    rules, players = game.rules, game.num_players
    for field in fields(Rules):
        rule = getattr(rules, field.name)
        may_lack = rule is field.default or (field.name == "terminal_value" and game.value_shape)
        must(callable(rule) or may_lack, f"the rule `{field.name}` must be a function")
    dice = {rules.chance is not None, rules.settle is not None, game.num_outcomes != 0}
    must(len(dice) == 1, "a game with dice has `chance`, `settle` and `num_outcomes`; others have none of them")
    law = "`num_outcomes` must be a whole number, and `dice_in_a_row` one above 0"
    must(_is_size(game.dice_in_a_row) and (game.num_outcomes == 0 or _is_size(game.num_outcomes)), law)
    kept, room, places = game.history_words, game.mean_legal, game.action_places
    law = "`history_words` must be a whole number below `state_words`"
    must(kept == 0 or (_is_size(kept) and kept < game.state_words), law)
    must(room is None or _is_size(room), "`mean_legal` must be None or a whole number above 0")
    most = MOST_PLANES * math.prod(game.observation_shape[1:])
    law = f"`action_places` must be None, or for each action another whole number from 0 to {most - 1}"
    are_places = places is None or sorted(set(np.ravel(places)) & set(range(most))) == sorted(np.ravel(places))
    must(are_places and (places is None or np.shape(places) == (game.num_actions,)), law)
    must(_is_size(players) and players <= MOST_PLAYERS, f"`num_players` must be 1 to {MOST_PLAYERS}")
    there = rules.terminal_value is not None, rules.returns is not None
    law = "a game for more than two has `returns`, and None in place of `terminal_value`; others have no `returns`"
    must(there == (players <= 2, players > 2), law)
    score, word = game.score, game.points_word
    law = "a Score of two finite numbers, the lower first, and of their name"
    law = f"a game for one needs a `score`: {law}" if players == 1 else f"`score` must be {law}"
    must(_is_sound(score) or (score is None and players > 1), law)
    law = "`score` must be a Score whose lowest number is minus the highest, since one wins what the other loses"
    must(players != 2 or score is None or score.high == -score.low, law)
    law = "`points_word` must be None, or in a game for one the index of a word of the state"
    must(word is None or (players == 1 and word in range(shown_words(game))), law)


def _is_sound(score: Any) -> bool:
    return (
        isinstance(score, Score)
        and all(isinstance(number, int | float | np.number) for number in (score.low, score.high))
        and -math.inf < score.low < score.high < math.inf
        and isinstance(score.unit, str)
    )


class Laws(Questions):
    """The laws of one game."""

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

    # --- one position, and playing an action there ---

    def mover(self, state: np.ndarray, alternating: int) -> int:
        asked = self.rules.to_play is not None and self.game.num_players > 1
        return int(self.ask("to_play", state, alternating)) if asked else self.game.mover(state, alternating)

    def facts(self, state: np.ndarray, player: int) -> Facts:
        """The answers of the rules about a position; what they write must not depend on what the arrays held before."""
        over, values = bool(self.ask("is_terminal", state, player)), (0.0,) * self.game.num_values
        planes, mask = np.zeros(self.game.observation_shape, np.float32), np.zeros(self.game.num_actions, bool)
        self.ask("observe", state, player, planes)
        self.must(np.isfinite(planes).all(), "`observe` must write finite numbers", state, player)
        if over:
            values = self.results(state, player) if self.game.value_shape else self.result(state, player)
        else:
            self.written("legal", state, player, "every entry of the mask", mask, ~mask)
            law = "a position that is not over must have a legal action: end the game there, or make passing an action"
            self.must(mask.any(), law, state, player)
            if self.rules.heuristic is not None:
                self.ask("heuristic", state, player)
        found = Facts(over, self.mover(state, player), values, mask, planes)
        word = self.game.points_word
        if word is not None and state[word]:  # what the network sees
            without = self.facts(without_points(state, word), player)
            same = without.is_terminal == over and np.array_equal(without.legal, mask)
            law = "nothing but the result may depend on the points so far, which `points_word` counts"
            self.must(same and np.array_equal(without.observe, planes), law, state, player)
        if self.game.history_words and state[shown_words(self.game) :].any():
            self.history(state, player, found)
        return found

    def history(self, state: np.ndarray, player: int, found: Facts) -> None:
        """The position without its history, and with another one, looks the same and has the same legal actions."""
        for filling in (0, 0x5A5A5A5A5A5A5A5A):
            other, planes = state.copy(), np.zeros_like(found.observe)
            other[shown_words(self.game) :] = filling
            self.ask("observe", other, player, planes)
            law = "must not read the last `history_words` of a state: what it needs of them, `step` writes elsewhere"
            self.must(np.array_equal(planes, found.observe), f"`observe` {law}", state, player)
            if not found.is_terminal:
                legal = found.legal.copy()
                self.ask("legal", other, player, legal)
                self.must(np.array_equal(legal, found.legal), f"`legal` {law}", state, player)
                over = filling == 0 and self.ask("is_terminal", other, player)
                self.must(not over, "a position that goes on must go on without its history, too", state, player)

    def result(self, state: np.ndarray, player: int) -> tuple[float]:
        """The result by `terminal_value`, on the scale from -1 to 1, as compiled rules give it."""
        value, score = float(self.ask("terminal_value", state, player)), self.game.score
        allowed, law = value in (-1, 0, 1), "-1, 0 or 1"
        if score is not None and self.game.num_players == 1:
            allowed, law = score.low <= value < math.inf, f"{score.low:g} {score.unit} or more"
        elif score is not None:
            allowed, law = score.low <= value <= score.high, f"{score.low:g} to {score.high:g} {score.unit}"
        law = f"`terminal_value` must give {law} for the player to move; it gave {value:g}"
        self.must(allowed, law, state, player)
        value -= float(points_so_far(state, self.game.points_word))
        return (value if score is None else float(np.float32(score.value(value))),)

    def results(self, state: np.ndarray, player: int) -> tuple[float, ...]:
        """The results by `returns`, on the scale from -1 to 1, as compiled rules give them."""
        results = np.full(self.game.num_players, 1e9, np.float32)
        self.written("returns", state, player, "a number for each player", results, -results)
        score = self.game.score or Score(-1, 1, "for each player")
        law = f"`returns` must write {score.low:g} to {score.high:g} {score.unit}; it wrote {results.tolist()}"
        self.must(((score.low <= results) & (results <= score.high)).all(), law, state, player)
        values = np.array([score.value(float(result)) for result in results], np.float32)
        if values.max() == 1:
            others = tuple(np.roll(results, -int(values.argmax())).tolist())
            self._when_won = self._when_won or others
            law = "whoever gets the most that there is has won alone: in `returns` the others must then always get the "
            law += f"same, but they got {list(others[1:])} and {list(self._when_won[1:])}"
            law += ": give `score` a higher end than anybody can reach" * (self.game.score is not None)
            self.must(others == self._when_won, law, state, player)
        return tuple(values.tolist())

    def written(
        self, name: str, state: np.ndarray, player: int, what: str, first: np.ndarray, second: np.ndarray
    ) -> None:
        """Lets a rule write into two arrays; raises LawBroken if it leaves something of what they hold."""
        self.ask(name, state, player, first)
        self.ask(name, state, player, second)
        self.must(np.array_equal(first, second), f"`{name}` must write {what}", state, player)

    def moved(self, name: str, state: np.ndarray, player: int, number: int, law: str) -> np.ndarray:
        """The state after `step` or `settle`; raises LawBroken unless it is the same each time."""
        after, again = state.copy(), state.copy()
        self.ask(name, after, player, number)
        self.ask(name, again, player, number)
        self.must(np.array_equal(after, again), f"`{name}` must do the same each time{law}", state, player)
        return after

    def play(self, state: np.ndarray, player: int, action: int) -> np.ndarray:
        return self.moved("step", state, player, action, ": what dice show comes by `chance` and `settle`")

    # --- whole games ---

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
        """Settles one die in place; returns who moves then."""
        state[:] = self.moved("settle", state, player, outcome, ", and write what the die showed into the state")
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
        players = self.game.num_players
        law = f"`to_play` must give all players their turns; one of them never moved: `num_players` is {players}"
        self.must({player for _, player, _ in self.visited} >= set(range(players)), law)
