"""Connect Four's figures of a player, in every generation of a run: policy and value against the solver's truth."""

from __future__ import annotations

from collections.abc import Callable

from alphazero.game import Game
from alphazero.players.player import Player
from games.connect4.labelled import load_frozen
from games.connect4.pons import FIGURES, judge


def make_benchmark(game: Game) -> Callable[[Player], dict[str, float]]:
    """Scores a player on the frozen set; a figure that it has no opinion on is left out."""
    labelled = load_frozen()

    def benchmark(player: Player) -> dict[str, float]:
        figures = judge(player, labelled).figures()
        return {f"pons_{name}": round(figures[name], 5) for name in FIGURES if figures[name] is not None}

    return benchmark
