"""Golden trees: searches whose every node is kept in tests/search/golden.

`PYTHONPATH=. python tests/search/test_golden_trees.py --write` writes them anew: only after a change of the search that
was meant to change its results, and only once the tests against the reference pass.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.search.dense import dense
from tests.search.reference_search import planted, plies_of, random_positions, states_of
from tests.search.searches import BASE, GAMES, finish, make_search

GOLDEN = Path(__file__).parent / "golden"

GOLDEN_CASES: dict[str, tuple[str, str, int, dict[str, Any]]] = {
    # name: game, moves before, plies searched, settings
    "puct_tictactoe": ("tictactoe", "b2", 1, {"num_simulations": 150, "noise_fraction": 0.25}),
    "puct_connect4": ("connect4", "4 4", 1, {"num_simulations": 200, "noise_fraction": 0.25}),
    "puct_double_move": ("double_move", "1 2", 1, {"num_simulations": 120}),
    "leaves_connect4": ("connect4", "1 7 2 7", 1, {"num_simulations": 150, "leaves_per_step": 4}),
    "gumbel_tictactoe": ("tictactoe", "a1 b2", 1, {"num_simulations": 64, "gumbel_actions": 4, "noise_fraction": 0.25}),
    "gumbel_connect4": ("connect4", "", 1, {"num_simulations": 100, "gumbel_actions": 16, "noise_fraction": 0.25}),
    "reuse_tictactoe": ("tictactoe", "", 3, {"num_simulations": 60, "reuse_subtree": True, "noise_fraction": 0.25}),
    "reuse_connect4": ("connect4", "4", 3, {"num_simulations": 80, "reuse_subtree": True, "noise_fraction": 0.25}),
}


def grow_golden(name: str, others: int, row: int) -> list[dict[str, Any]]:
    """The searches of one case, ply after ply, in tree `row` among `others` random ones of other games."""
    game_name, moves, num_plies, settings = GOLDEN_CASES[name]
    game, count = GAMES[game_name], others + 1
    rng = np.random.default_rng()
    search = make_search(game, replace(BASE, **settings), planted(20), count)
    position, played = game.position(moves), -1
    found = []
    for _ in range(num_plies):
        positions = random_positions(game, count, seed=int(rng.integers(1 << 30)))
        numbers, actions = rng.integers(1 << 40, size=count), np.full(count, -1)
        positions[row], numbers[row], actions[row] = position, 5, played
        search.start(np.arange(count), states_of(positions), numbers, plies_of(positions), actions)
        finish(search)
        result, tree, size = search.read(np.array([row])), dense(search.tree, row), int(search.tree.size[row])
        played = int(result.actions[0])
        found.append(
            {
                "position": str(position).splitlines(),
                "visit_counts": result.visit_counts[0].tolist(),
                "q": [round(float(q), 6) for q in result.q[0]],
                "policy": [round(float(share), 6) for share in result.policy[0]],
                "value": round(float(result.values[0]), 6),
                "action": played,
                "parent": tree.parent[row, 1:size].tolist(),
                "incoming_action": tree.action[row, 1:size].tolist(),
                "proven": tree.proven[row, :size].tolist(),
            }
        )
        position = position.play(played)
    return found


@pytest.mark.parametrize("name", GOLDEN_CASES)
@pytest.mark.parametrize(("others", "row"), [(0, 0), (9, 4)])
def test_golden_trees_grow_again(name, others, row):
    stored = json.loads((GOLDEN / f"{name}.json").read_text())
    grown = grow_golden(name, others, row)
    assert len(grown) == len(stored)
    for ply, (new, old) in enumerate(zip(grown, stored, strict=True)):
        for key in ("q", "policy", "value"):
            assert new.pop(key) == pytest.approx(old.pop(key), abs=2e-5), f"{key} at ply {ply}"
        assert new == old, f"ply {ply}"


def write_golden() -> None:
    GOLDEN.mkdir(exist_ok=True)
    for name in GOLDEN_CASES:
        plies = [json.dumps(ply) for ply in grow_golden(name, 0, 0)]
        (GOLDEN / f"{name}.json").write_text("[\n" + ",\n".join(plies) + "\n]\n")
        print(GOLDEN / f"{name}.json")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: PYTHONPATH=. python tests/search/test_golden_trees.py --write")
    write_golden()
