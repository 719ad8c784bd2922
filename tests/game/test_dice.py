"""Games with dice: positions where one is due, and the laws of `chance` and `settle`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from alphazero.errors import IllegalAction, LawBroken
from alphazero.game import Game, Score
from alphazero.game.validator import validate
from tests.search.test_dice import RACE, Race, terminal_value


def changed(rules: dict[str, Any] | None = None, **attributes: Any) -> Game:
    """The race of coins with other rules or attributes."""
    made: Game = type("Changed", (Race,), attributes | {"rules": replace(Race.rules, **(rules or {}))})()
    return made


def plain_race(**attributes: Any) -> Game:
    return changed(**{"compiled": False, **attributes})


def chance_of(*shares: float) -> Callable[..., int]:
    def chance(state, probabilities):
        probabilities[: len(shares)] = shares
        return len(shares) if state[2] else 0

    return chance


def draws(state, probabilities):
    probabilities[:] = np.random.default_rng().dirichlet([1, 1, 1])
    return 3 if state[2] else 0


def nothing(state, outcome):
    pass


def writes_nothing(state, probabilities):
    return 3 if state[2] else 0


def ten_times(state):
    return 10 * terminal_value(state)


LOST = 77
"""Steps from which there is no way on."""


def rarely(harm: Callable[[Any], None]) -> Game:
    """A race in which a fourth outcome, which no game meets, does harm."""

    def settle(state, outcome):
        Race.rules.settle(state, outcome)
        if outcome == 3:
            harm(state)

    def legal(state, legal_mask):
        legal_mask[:] = state[0] != LOST

    chance = chance_of(0.5, 0.25, 0.25 - 1e-12, 1e-12)
    return plain_race(rules={"chance": chance, "settle": settle, "legal": legal}, num_outcomes=4)


def leaves_no_action(state):
    state[0] = LOST


def is_due_again(state):
    state[2] = 2


def writes_word_9(state):
    state[9] = 1


def writes(*words: str) -> Callable[..., str]:
    return lambda self, outcome, state: words[outcome]


class Mirror(Race):
    """A die puts a stone to the left or to the right; who finds as many on both sides after the last one wins."""

    num_actions, num_outcomes, dice_in_a_row, observation_shape, compiled = 1, 2, 1, (1, 1, 2), False
    symmetries = [[0, 1], [1, 0]], [[0], [0]]  # type: ignore[assignment]

    def step(state, action):  # type: ignore[misc]
        state[2], state[3] = 1, state[3] + 1

    def settle(state, outcome):  # type: ignore[misc]
        state[2], state[outcome] = 0, state[outcome] + 1

    def transform(state, symmetry):  # type: ignore[misc]
        if symmetry:
            state[0], state[1] = state[1], state[0]

    def observe(state, planes):  # type: ignore[misc]
        planes[0, 0] = state[:2]

    rules = replace(
        Race.rules, step=step, settle=settle, transform=transform, observe=observe, chance=chance_of(0.5, 0.5),
        is_terminal=lambda state: state[3] >= 8 and not state[2],
        terminal_value=lambda state: float(state[0] == state[1]),
    )  # fmt: skip


def mirror(chance: Callable[..., int]) -> Game:
    made: Game = type("Bent", (Mirror,), {"rules": replace(Mirror.rules, chance=chance)})()
    return made


BROKEN: dict[str, tuple[Game, str]] = {
    "no sum of 1": (plain_race(rules={"chance": chance_of(0.5, 0.25, 0.5)}), "above 0, and 1 in sum"),
    "a probability of 0": (plain_race(rules={"chance": chance_of(0.5, 0.5, 0.0)}), "above 0, and 1 in sum"),
    "not written": (plain_race(rules={"chance": writes_nothing}), "say the same of a state|above 0"),
    "draws lots": (plain_race(rules={"chance": draws}), "tells probabilities, and draws nothing"),
    "never settled": (plain_race(rules={"settle": nothing}), "after `dice_in_a_row` = 2 dice"),
    "more in a row": (plain_race(dice_in_a_row=1), "after `dice_in_a_row` = 1 dice"),
    "none in a row": (plain_race(dice_in_a_row=0), "`dice_in_a_row` one above 0"),
    "no settle": (plain_race(rules={"settle": None}), "has `chance`, `settle` and `num_outcomes`"),
    "no outcomes": (plain_race(num_outcomes=0), "has `chance`, `settle` and `num_outcomes`"),
    "three players": (plain_race(num_players=3), "has `returns`"),
    "a score that does not cancel out": (plain_race(score=Score(0, 3)), "minus the highest"),
    "a score with its name first": (plain_race(score=Score("points", -3, 3)), "a Score of two finite numbers"),  # type: ignore[arg-type]
    "a score without a name": (plain_race(score=Score(-3, 3, None)), "and of their name"),  # type: ignore[arg-type]
    "a score the wrong way round": (plain_race(score=Score(3, -3)), "the lower first"),
    "points out of range": (
        plain_race(rules={"terminal_value": ten_times}, score=Score(-3, 3)), "must give -3 to 3 points",
    ),
    "fewer points than the fewest": (plain_race(num_players=1, score=Score(0, 3)), "must give 0 points or more"),
    "a rare outcome raises": (rarely(writes_word_9), "`settle` raised IndexError"),
    "a rare outcome without an action": (rarely(leaves_no_action), "must have a legal action"),
    "a rare outcome with more dice": (rarely(is_due_again), "after `dice_in_a_row` = 2 dice"),
    "an outcome of two words": (plain_race(format_outcome=writes("a 1", "2", "3")), "must give one printable word"),
    "an outcome that is no text": (plain_race(format_outcome=writes(1, 2, 3)), "must give one printable word"),
    "outcomes that look alike": (plain_race(format_outcome=writes("heads", "tails", "tails")), "heads, tails, tails"),
    "no word for an outcome": (plain_race(format_outcome=writes("heads", "tails")), "`format_outcome` raised"),
    "another die in the mirror": (mirror(chance_of(0.6, 0.4)), "keep what dice bring"),
    "points without a score": (plain_race(rules={"terminal_value": ten_times}), "-1, 0 or 1"),
}  # fmt: skip


@pytest.mark.parametrize(("game", "law"), BROKEN.values(), ids=BROKEN)
def test_a_broken_law_is_named(game: Game, law: str):
    with pytest.raises(LawBroken, match=law):
        validate(game, 20)


def test_a_die_that_is_the_same_in_the_mirror_keeps_all_laws():
    assert validate(mirror(chance_of(0.5, 0.5)), 20).num_games == 20


def test_a_game_with_dice_keeps_all_laws_and_its_length_counts_players_alone():
    findings = validate(RACE, 30)
    assert not findings.warnings and max(findings.lengths) <= RACE.max_plies
    assert " throw" not in findings.example and findings.compiled_per_second


def test_points_are_results_on_the_scale_of_the_score():
    game = changed(rules={"terminal_value": ten_times}, score=Score(-20, 20))
    assert validate(game, 10).num_games == 10
    end = game.position([1] * 7)
    assert end.terminal and end.points == 10 and end.outcome == 1
    assert [Score(-3, 3).value(points) for points in (-9, 0, 3, 4)] == [-1, 0, 1, 1]


def test_a_position_where_a_die_is_due():
    due = RACE.start().play(0)
    assert due.chances == (0.5, 0.25, 0.25) and due.legal_actions == [0, 1, 2] and not due.legal_mask.any()
    assert due.play(2).chances == due.chances and due.play(2).play(1).chances == ()
    assert due.format(2) == "3" and due.parse("3") == 2 and "a die is due" in repr(due)
    with pytest.raises(IllegalAction, match=r"action 3 is not legal here \(legal: 1, 2, 3\)"):
        due.play(3)
    assert RACE.position("0 3 2 1").actions == (0, 2, 1, 1) and RACE.position("0 3 2 1") != due
    assert due.svg().startswith("<svg")
