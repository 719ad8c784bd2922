"""In a game for more than two, whatever plays matches gives each contestant each seat equally often."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from alphazero.commands import publish, tournament, train
from alphazero.matches.arena import play_in_time
from alphazero.matches.result import MatchResult
from alphazero.storage.checkpoint import load_checkpoint
from alphazero.training.parts import gate

TRAINING = shlex.split(
    "--game tictacmo --generations 2 --net.blocks 1 --net.channels 8 --search.num-simulations 4 "
    "--search.gumbel-actions 4 --self-play.games-per-generation 8 --gate.enabled --gate.games 4 --gate.simulations 2 "
    "--evaluation.opponents random --evaluation.games 7 --evaluation.simulations 2 --threads 1"
)


def test_gate_matches_and_publications_have_whole_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run, output, asked = tmp_path / "run", tmp_path / "net.safetensors", []

    def play(*words: Any) -> Iterator[tuple[MatchResult, float]]:
        asked.append(words[3])
        return play_in_time(*words)

    monkeypatch.setattr(gate, "play_in_time", play)
    train.main([*TRAINING, "--run", str(run)])
    assert len(asked) == 3 and not any(games % 6 for games in asked)  # two gates, and the match at the end
    [match] = json.loads((run / "evaluation.json").read_text())["matches"]
    assert match["games"] == asked[2] == 12
    words = ["--description", "A test.", "--opponents", "random", "--games", "8", "--match-simulations", "2"]
    publish.main([f"{run}:1", str(output), *words, "--threads", "1"])
    assert load_checkpoint(output)[1]["matches"][0]["games"] == 12


def test_a_tournament_has_whole_groups(tmp_path: Path):
    found = tmp_path / "results.json"
    words = ["random", "greedy", "minimax:1", "--game", "tictacmo", "--games", "7", "--folder", str(tmp_path / "cup")]
    tournament.main([*words, "--json", str(found)])
    matches = json.loads(found.read_text())["matches"]
    assert [match["wins"] + match["draws"] + match["losses"] for match in matches] == [12, 12, 12]
