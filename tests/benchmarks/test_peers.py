"""The benchmark beside other programs: our part of it, and the table."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import InvalidSetting
from alphazero.game.kernels import Kernels
from alphazero.nets.torch_net import TorchNet
from alphazero.search.mcts import SearchConfig
from alphazero.storage.files import write_json
from alphazero.training.config import SelfPlayConfig
from alphazero.training.selfplay import SelfPlay
from benchmarks.peers import ours, plain_numpy
from benchmarks.peers.__main__ import (
    CONSIDERED,
    FIGURES,
    PACKAGES,
    PeersBenchmark,
    Worker,
    make_environment,
    openings,
    table,
)
from benchmarks.peers.ours import Counted, stagger
from benchmarks.peers.plain_numpy import PlainSearch
from benchmarks.peers.turns import serve

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("worker", "game", "net"),
    [(ours, "connect4", [1, 8]), (ours, "2048", [1, 8]), (ours, "backgammon", [8, 8]), (ours, "tictacmo", [1, 8]),
     (plain_numpy, "tictacmo", [1, 8]), (plain_numpy, "cantstop3", [8, 8])],
)  # fmt: skip
def test_our_workers_measure_every_figure(worker, game, net, monkeypatch, capsys):
    task = {"game": game, "net": net, "batch": 4, "simulations": 4, "considered": CONSIDERED.get(game, 0),
            "openings": [] if game in CONSIDERED else openings(game, 4)}  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["ours", json.dumps(task)])
    monkeypatch.setattr(sys, "stdin", [f"{figure} 0.01\n" for figure in FIGURES])
    monkeypatch.setattr(TorchNet, "use_inference", lambda net, name: "torch")  # the others take seconds to begin
    worker.main()
    ready, *rates = map(json.loads, capsys.readouterr().out.splitlines())
    found = dict(zip(FIGURES, (answer["rate"] for answer in rates), strict=True))
    assert ready["ready"] and set(ready["figures"]) == set(FIGURES)
    assert found["network"] > 0 and found["search"] > found["self-play"] > 0  # simulations; positions of four each


def test_the_plain_search_finds_a_win_and_blocks_one():
    """The first player has two in a row; then the last one, who can only block, and each looks for itself."""
    game = registry.load("tictacmo").game
    kernels, positions = Kernels(game), [game.position(moves) for moves in ("a1 e1 e3 b1 d2 a3", "a1 e1 e3 b1 d3")]
    masks = np.ones((2, game.num_actions), bool)

    def free(states, masks):
        return masks / masks.sum(1, keepdims=True), np.zeros((len(states), 3), np.float32)

    search = PlainSearch(kernels, free, 2, 2000)
    states, movers = np.array([at.state for at in positions]), np.array([at.to_play for at in positions], np.int8)
    visits = np.where(masks, search.run(states, movers), 0)
    assert visits.sum(1).tolist() == [2000, 2000]
    assert [at.format(int(best)) for at, best in zip(positions, visits.argmax(1), strict=True)] == ["c1", "c1"]
    plain = [(at.legal_mask | ~seen).all() for at, seen in zip(positions, visits > 0, strict=True)]
    assert plain == [True, True]


def test_a_worker_is_asked_line_by_line_and_says_when_it_ends():
    code = "from benchmarks.peers.turns import *; serve({'work': lambda: len(read_task()['openings'])})"
    worker = Worker([sys.executable, "-c", code], {"openings": [[1]]}, ROOT)
    try:
        assert worker.measure("work", 0.0) > 0
        with pytest.raises(InvalidSetting, match="a worker ended with exit status 1"):
            worker.measure("play", 0.0)
    finally:
        worker.end()


def test_positions_with_a_choice_are_counted():
    """Backgammon has none where the mover has only to roll."""
    kernels, slots = Kernels(registry.load("backgammon").game), 8

    def free(states, legal_masks):
        return np.ones(legal_masks.shape, np.float32), np.zeros(len(states), np.float32)

    config = SearchConfig(num_simulations=4, gumbel_actions=4)
    worker, choices = Counted(kernels, SelfPlayConfig(), config, free, slots, 0), 0
    while worker.num_positions < 40 * slots:
        choices += worker.play_on()
    played = [worker.past.states[slot, : worker.plies[slot]] for slot in range(slots)]
    assert worker.num_games == 0
    masks, _, _ = kernels.describe_all(np.concatenate(played))
    assert choices == (masks.sum(axis=1) > 1).sum() < 0.8 * len(masks)


def test_self_play_is_measured_with_games_at_all_stages():
    kernels, slots = Kernels(registry.load("connect4").game), 16

    def free(states, legal_masks):
        return np.ones(legal_masks.shape, np.float32), np.zeros(len(states), np.float32)

    worker = SelfPlay(kernels, SelfPlayConfig(), SearchConfig(num_simulations=2), free, slots, 0)
    stagger(worker, free)
    assert len(set(worker.plies)) > 6 and worker.num_games == 0
    for slot in range(slots):
        state = worker.states[slot : slot + 1]
        assert int(np.bitwise_count(state).sum()) >= worker.plies[slot]  # a stone for each ply
    assert worker.play(slots)  # the games go on to their ends


def test_every_measurement_begins_anew(monkeypatch, capsys):
    done = []
    monkeypatch.setattr(sys, "stdin", ["work 0.0\n", "work 0.0\n"])
    serve({"work": lambda: done.append("work") or 1}, lambda: done.append("begin"))
    assert done == ["work", "begin", "work", "begin", "work"]
    assert capsys.readouterr().out.count('{"rate": ') == 2


def test_openings_are_the_same_for_all_and_end_no_game():
    drawn = openings("connect4", 30)
    assert drawn == openings("connect4", 30) and len({tuple(actions) for actions in drawn}) > 20
    assert not any(registry.load("connect4").game.position(actions).terminal for actions in drawn)


def test_the_table_has_ratios_to_ours():
    figures = {"this framework": dict.fromkeys(FIGURES, 1000.0), "another": dict.fromkeys(FIGURES, 400.0)}
    first, *_, ours, another = table("connect4", PeersBenchmark(rounds=3), figures).strip().split("\n")
    assert first.startswith("connect4, 5x64 net, 64 simulations") and "medians of 3 alternating rounds" in first
    assert ours == "| this framework | 1,000 | 1,000 | 1,000 |"
    assert another == "| another | 400 (1/2.5) | 400 (1/2.5) | 400 (1/2.5) |"


def test_an_environment_that_is_complete_is_not_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("pip was called"))
    write_json(tmp_path / "packages.json", list(PACKAGES))
    assert Path(make_environment(tmp_path)).parent.parent == tmp_path


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [({"games": ("hex",)}, "--games")] + [({"net": net}, "--net") for net in ("free", "5", "5x", "x64", "5x64x2")],
)
def test_a_wrong_game_or_net_is_refused_before_anything_is_installed(wrong, sentence):
    with pytest.raises(InvalidSetting, match=sentence):
        PeersBenchmark(**wrong)
