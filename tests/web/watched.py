"""A folder with a small run and a small tournament, for the tests that watch them."""

from __future__ import annotations

from pathlib import Path

from alphazero.commands.program import main as alphazero

TINY = [
    "--net.blocks", "1", "--net.channels", "8", "--search.num-simulations", "4",
    "--self-play.games-per-generation", "12", "--self-play.random-plies", "3", "--gate.games", "4", "--threads", "1",
    "--evaluation.games", "2", "--evaluation.opponents", "random",
]  # fmt: skip


def make_run_and_tournament(folder: Path, run: str, generations: int) -> None:
    """Trains `folder/runs/RUN` in tic-tac-toe, and plays `folder/tournaments/cup`."""
    path = str(folder / "runs" / run)
    assert alphazero(["train", "--game", "tictactoe", "--run", path, "--generations", str(generations), *TINY]) == 0
    tournament = ["pit", "random", "greedy", "minimax:2", "--game", "tictactoe", "--games", "4", "--folder"]
    assert alphazero([*tournament, str(folder / "tournaments" / "cup")]) == 0
