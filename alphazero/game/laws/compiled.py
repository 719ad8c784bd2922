"""The compiled rules: what they say is what plain Python says."""

from __future__ import annotations

import contextlib
import functools
import timeit
from collections.abc import Callable

import numpy as np

from alphazero.game.game import Game
from alphazero.game.kernels import Kernels, _roll
from alphazero.game.laws.laws import Laws
from alphazero.game.laws.questions import Facts
from alphazero.machine import done_beside
from alphazero.storage.kernel_cache import needs_compiling

CHECKED = 200
"""Positions that are compared with all their images, or are asked of once more, at most."""


def begin_compiling(game: Game, beside: contextlib.ExitStack) -> Callable[[], None]:
    """Lets another process compile while this one plays; what it gives compiles the rest."""
    kernels, movers, numbers = Kernels(game), np.empty(0, np.int8), np.empty(0, np.int64)
    none = np.empty((0, game.state_words), np.uint64)
    works = [  # the longest first
        lambda: kernels.describe_all(none), lambda: kernels.observations(none), lambda: kernels.canonical(none),
        lambda: kernels.roll(none, movers, 0, numbers, numbers), lambda: kernels.play(none, movers, numbers),
    ]  # fmt: skip
    kept = not needs_compiling(kernels.describe.compiled)
    return (lambda: None) if kept else beside.enter_context(done_beside(works))


def compare(check: Laws) -> float | None:
    """Compares the compiled rules with plain Python at the visited positions; raises LawBroken.

    Returns how many positions a second they describe, observe and play on one core; None if numba cannot compile them.
    """
    kernels, going_on = Kernels(check.game), list[tuple[np.ndarray, int, int]]()
    for number, (state, player, _) in enumerate(check.visited):
        difference = functools.partial(_difference, check, kernels, number, going_on)
        wrong = check.call("compiled rules", difference, state, player)
        check.must(not wrong, f"compiled rules must do what plain Python does, but `{wrong}` differs", state, player)
    if not all(kernel.is_compiled for kernel in (kernels.describe, kernels.observe, kernels.play)):
        return None
    states, to_play, actions = (np.array(part) for part in zip(*going_on, strict=True))
    to_play = to_play.astype(np.int8)

    def once() -> None:
        kernels.describe_all(states)
        kernels.observations(states)
        kernels.play(states.copy(), to_play.copy(), actions)

    return len(states) / max(1e-9, min(timeit.repeat(once, number=1, repeat=5)))


def _difference(check: Laws, kernels: Kernels, number: int, going_on: list[tuple[np.ndarray, int, int]]) -> str:
    """The rule that the compiled rules have otherwise at a visited position, else empty; adds an action to go on by."""
    state, player, first = check.visited[number]
    states, to_play = state[None].copy(), np.array([player], np.int8)
    (legal,), (over,), (found,) = kernels.describe_all(states)
    if check.game.rules.to_play is not None:
        kernels.find_movers(states, to_play)
    facts = Facts(
        bool(over), int(to_play[0]), tuple(np.atleast_1d(found).tolist()), legal, kernels.observations(states)[0]
    )
    if (wrong := first.difference(facts.kept())) or over:
        return wrong
    choice, rare = np.flatnonzero(legal), number % (1 + len(check.visited) // CHECKED) == 0
    going_on.append((state, player, int(choice[number % len(choice)])))
    child, children = state.copy(), states.copy()
    check.ask("step", child, player, going_on[-1][2])
    kernels.play(children, to_play, np.array([going_on[-1][2]]))
    if not np.array_equal(children[0], child):
        wrong = "step"
    if check.game.num_outcomes:
        copies, movers = [children.copy() for _ in range(2)], to_play.copy()
        shown = np.empty((1, check.game.dice_in_a_row), np.int64)
        kernels.bind(_roll).plain(copies[0], movers, 0, [number], [0], np.empty(check.game.num_outcomes), shown)
        outcomes = kernels.roll(copies[1], to_play, 0, np.array([number]), np.zeros(1, np.int64))
        if not (
            np.array_equal(copies[0], copies[1]) and np.array_equal(shown, outcomes) and np.array_equal(movers, to_play)
        ):
            wrong = "chance` or `settle"
    if rare and kernels.canonicalize is not None:
        plain, symmetry = states.copy(), np.zeros(1, np.int64)
        kernels.canonicalize.plain(plain, symmetry, *np.empty((2, len(state)), state.dtype))
        if not all(map(np.array_equal, kernels.canonical(states), (plain, symmetry))):
            wrong = "transform"
    return wrong
