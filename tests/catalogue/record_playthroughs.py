"""Writes playthroughs.jsonl: a random game of OpenSpiel's for each of our games that it has, ply by ply.

python -m tests.catalogue.record_playthroughs
"""

import json
import random
from pathlib import Path

import pyspiel

from alphazero.catalogue import registry
from tests.catalogue.openspiel_games import GAMES

FILE = Path(__file__).with_name("playthroughs.jsonl")


def record(name: str, seed: int) -> dict[str, object]:
    """OpenSpiel's answers to every position of one game, in our numbers of the actions."""
    rng, theirs = random.Random(seed), GAMES[name]
    position, state = registry.load(name).game.start(), pyspiel.load_game(theirs.name).new_initial_state()
    actions, legal, players = [], [], []
    while not state.is_terminal():
        ours = {theirs.action(position, action, state): action for action in range(position.game.num_actions)
                if position.legal_mask[action]}  # fmt: skip
        legal.append(sorted(ours[action] for action in state.legal_actions()))
        players.append(state.current_player())
        chosen = rng.choice(state.legal_actions())
        actions.append(ours[chosen])
        position = position.play(ours[chosen])
        state.apply_action(chosen)
    return {"game": name, "openspiel": theirs.name, "actions": actions, "legal": legal, "players": players,
            "returns": state.returns()}  # fmt: skip


if __name__ == "__main__":
    names = [name for name in GAMES if name != "gomoku15"]  # long, and its rules are gomoku's
    FILE.write_text("".join(json.dumps(record(name, seed=7), separators=(",", ":")) + "\n" for name in names))
