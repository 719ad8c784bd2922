"""The laws of a single position, and of playing an action there."""

from __future__ import annotations

import math

import numpy as np

from alphazero.game.laws.questions import Facts, Questions
from alphazero.game.rules import Score, points_so_far, shown_words, without_points


class PositionLaws(Questions):
    """Each law is tried at a position that is given."""

    def mover(self, state: np.ndarray, alternating: int) -> int:
        asked = self.rules.to_play is not None and self.game.num_players > 1
        return int(self.ask("to_play", state, alternating)) if asked else self.game.mover(state, alternating)

    def facts(self, state: np.ndarray, player: int) -> Facts:
        """The answers of the rules about a position; what they write must not depend on what the arrays held before."""
        over, values = bool(self.ask("is_terminal", state, player)), (0.0,) * self.game.num_values
        planes, masks = np.zeros(self.game.observation_shape, np.float32), np.zeros((2, self.game.num_actions), bool)
        self.ask("observe", state, player, planes)
        self.must(np.isfinite(planes).all(), "`observe` must write finite numbers", state, player)
        if over and self.game.value_shape:
            values = self.results(state, player)
        elif over:
            value = float(self.ask("terminal_value", state, player))
            score = self.game.score
            allowed = value in (-1, 0, 1) if score is None else score.low <= value <= score.high
            law = "-1, 0 or 1" if score is None else f"{score.low:g} to {score.high:g} {score.unit}"
            if score is not None and self.game.num_players == 1:
                allowed, law = score.low <= value < math.inf, f"{score.low:g} {score.unit} or more"
            law = f"`terminal_value` must give {law} for the player to move; it gave {value:g}"
            self.must(allowed, law, state, player)
            value -= float(points_so_far(state, self.game.points_word))
            values = (value if score is None else float(np.float32(score.value(value))),)  # as compiled rules give it
        else:
            masks[1] = True
            for mask in masks:
                self.ask("legal", state, player, mask)
            self.must(np.array_equal(masks[0], masks[1]), "`legal` must write every entry of the mask", state, player)
            law = "a position that is not over must have a legal action: end the game there, or make passing an action"
            self.must(masks.any(), law, state, player)
            if self.rules.heuristic is not None:
                self.ask("heuristic", state, player)
        found = Facts(over, self.mover(state, player), values, masks[0], planes)
        word = self.game.points_word
        if word is not None and state[word]:  # what the network sees
            without = self.facts(without_points(state, word), player)
            same = without.is_terminal == over and np.array_equal(without.legal, found.legal)
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

    def results(self, state: np.ndarray, player: int) -> tuple[float, ...]:
        """The results by `returns`, on the scale from -1 to 1, as compiled rules give them."""
        found = np.array([[1e9] * self.game.num_players, [-1e9] * self.game.num_players], np.float32)
        for row in found:
            self.ask("returns", state, player, row)
        self.must(np.array_equal(found[0], found[1]), "`returns` must write a number for each player", state, player)
        score, results = self.game.score or Score(-1, 1, "for each player"), found[0]
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

    def play(self, state: np.ndarray, player: int, action: int) -> np.ndarray:
        """The state after an action, the same each time."""
        children = [state.copy() for _ in range(2)]
        for child in children:
            self.ask("step", child, player, action)
        law = "`step` must do the same each time: what dice show comes by `chance` and `settle`"
        self.must(np.array_equal(children[0], children[1]), law, state, player)
        return children[0]
