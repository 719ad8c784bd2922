"""A training as one call: its result, stopping it, its value target, its time limit, its determinism."""

from __future__ import annotations

import gc
import itertools
import shutil
import sys
import threading
import weakref
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import alphazero as az
from alphazero.catalogue import registry
from alphazero.errors import InvalidSetting, RunFolderError
from alphazero.fingerprint import game_fingerprint
from alphazero.interruption import State
from alphazero.matches import arena
from alphazero.storage.manifest import latest_manifest, read_config
from alphazero.storage.run_folder import RunFolder
from alphazero.training import coach as coach_module
from alphazero.training import plan
from alphazero.training.coach import Coach
from alphazero.training.config import SelfPlayConfig
from alphazero.training.parts import gate, journal, lineup, steps
from alphazero.training.parts.journal import Journal
from alphazero.training.parts.lineup import Lineup, same_sizes
from alphazero.training.plan import RunPlan
from alphazero.training.replay_buffer import ReplayBuffer
from alphazero.training.run import read_saved, train
from alphazero.training.selfplay import Recordings, games
from alphazero.training.selfplay.value_targets import check_targets, record
from tests.storage.resealing import reseal_config
from tests.training.test_coach import TINY, checksums

SLOW = str(Path(__file__).with_name("slow_game.py"))
CONFIG = replace(TINY, generations=2, evaluation=replace(TINY.evaluation, opponents=("random",)))
SMALL = replace(
    CONFIG, generations=1, gate=replace(CONFIG.gate, enabled=False),
    evaluation=replace(CONFIG.evaluation, opponents=()),
    self_play=replace(CONFIG.self_play, games_per_generation=3, num_slots=3),
)  # fmt: skip
"""Three games, and no matches."""


def test_nothing_of_a_run_stays_in_memory(tmp_path, monkeypatch):
    """Nobody has to look for cycles: a notebook that trains often would keep every window meanwhile."""
    parts, kinds = [], (Lineup, Journal, ReplayBuffer)
    for kind in kinds:

        def known(part, *arguments, begin=kind.__init__):
            parts.append(weakref.ref(part))
            begin(part, *arguments)

        monkeypatch.setattr(kind, "__init__", known)
    gc.collect()
    gc.disable()
    try:
        train(registry.load("tictactoe"), replace(SMALL, gate=CONFIG.gate), tmp_path / "run", threads=1)
        left = [part() for part in parts]  # not later: what follows may look for cycles
    finally:
        gc.enable()
    assert left == [None] * len(kinds)


def test_settings_of_a_net_that_are_tuples_are_those_of_its_card():
    """It holds lists."""
    assert same_sizes({"sizes": (8, 4)}, {"sizes": [8, 4]}) and not same_sizes({"sizes": (8, 4)}, {"sizes": [4, 8]})


def test_a_run_leaves_torch_as_many_threads_as_it_found(tmp_path):
    plan = RunPlan(registry.load("tictactoe"), CONFIG, ["cpu"], threads=1, seed=0, deterministic=False)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with RunFolder.create(tmp_path / "run", {}) as folder, Coach(plan, folder):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_a_stopped_training_is_saved_and_can_go_on(tmp_path, monkeypatch):
    """By an event in the second generation, by an interrupt in the third."""
    loaded, stop, learn = registry.load("tictactoe"), threading.Event(), coach_module.learn
    config, folder = replace(SMALL, generations=3), tmp_path / "run"

    def learn_until_stopped(run, generation, num_new):
        if generation.number == 3:
            raise KeyboardInterrupt
        if generation.number == 2 and run.stop is stop:
            stop.set()
        learn(run, generation, num_new)

    monkeypatch.setattr(coach_module, "learn", learn_until_stopped)
    run = train(loaded, config, folder, threads=1, stop=stop)
    assert run.stopped and run.generation == 1 and not run.evaluation
    assert len(run.metrics) == 1 and run.net.card["parameters"] > 0
    run = train(loaded, config, folder, threads=1, resume=True)
    assert run.stopped and run.generation == 2
    monkeypatch.setattr(coach_module, "learn", learn)
    assert train(loaded, config, folder, threads=1, resume=True).generation == 3


def test_the_settings_of_a_strangers_run_start_no_code_in_python(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    folder, mark = tmp_path / "stranger", tmp_path / "imported"
    train(registry.load("tictactoe"), SMALL, folder, threads=1)
    (folder / "policy.py").write_text(
        f"import pathlib\npathlib.Path({str(mark)!r}).touch()\ndef f(observations): return 0\n"
    )
    code = f"python:{folder / 'policy.py'}:f"
    reseal_config(folder, lambda config: config["settings"]["evaluation"].update(opponents=["random", code]))
    caplog.clear()
    config = az.load_run("stranger").config
    assert config.evaluation.opponents == ("random",)
    assert "a run folder never starts code, so python:" in caplog.text and len(caplog.messages) == 1
    assert not az.train("tictactoe", config, folder=tmp_path / "mine", threads=1).stopped
    assert not mark.exists()


def test_a_run_knows_whether_it_is_deterministic_and_gives_torch_back_what_it_has_found(tmp_path, caplog):
    loaded, folder = registry.load("tictactoe"), tmp_path / "run"
    for generations, deterministic, begun in ((1, True, None), (2, True, None), (3, False, True), (4, True, False)):
        caplog.clear()
        config = replace(SMALL, generations=generations)
        train(loaded, config, folder, threads=1, deterministic=deterministic, resume=generations > 1)
        assert not torch.are_deterministic_algorithms_enabled()
        words = ("with", "without") if begun else ("without", "with")
        said = "was begun {} deterministic=True, and goes on {} it".format(*words) in caplog.text
        assert said == (begun is not None) == ("deterministic" in caplog.text)
        assert latest_manifest(folder).state["deterministic"] is deterministic


MINE = """
from games.tictactoe.game import TicTacToe

class MyGame(TicTacToe):
    name = "mine"
    compiled = False
"""


@pytest.fixture(scope="module")
def run_of_a_file(tmp_path_factory):
    """A run of one generation of the game in `my_game.py`."""
    folder = tmp_path_factory.mktemp("file")
    (folder / "my_game.py").write_text(MINE)
    loaded = registry.load(str(folder / "my_game.py"))
    train(loaded, SMALL, folder / "run", game_name="my_game.py", threads=1)
    return folder / "run"


@pytest.mark.parametrize(
    ("begun", "now", "own_name", "goes_on"),
    [
        ("my_game.py", "/elsewhere/my_game.py:MyGame", "mine", True),
        ("my_game.py", "mine", "mine", True),  # from a notebook
        ("mine", "my_game.py", "mine", True),  # begun there
        ("my_game.py", "./my_game.py", "other", False),
        ("connect4", "connect4.py", "mine", False),
        ("connect4.py", "connect4", "mine", False),
    ],
)
def test_a_game_can_be_named_in_many_ways_on_resume(
    run_of_a_file, tmp_path, monkeypatch, begun, now, own_name, goes_on
):
    folder = shutil.copytree(run_of_a_file, tmp_path / "run")
    reseal_config(folder, lambda config: config.update(game=begun))
    if goes_on:
        assert read_saved(folder, now, own_name=own_name).game == begun
        return
    monkeypatch.setattr(State, "command_runs", True)
    with pytest.raises(RunFolderError, match=f"is a run of {begun}, not of {now}: .*--game {begun}"):
        read_saved(folder, now, own_name=own_name)


def test_a_run_that_goes_on_under_another_name_keeps_the_first(run_of_a_file, tmp_path, monkeypatch):
    folder = shutil.copytree(run_of_a_file, tmp_path / "run")
    monkeypatch.chdir(run_of_a_file.parent)
    assert az.train("./my_game.py", folder=folder, resume=True, generations=2, progress=False).generation == 2
    assert read_config(folder)["game"] == "my_game.py"


def test_changed_rules_are_said_when_a_run_goes_on(run_of_a_file, tmp_path, caplog):
    folder, file = shutil.copytree(run_of_a_file, tmp_path / "run"), tmp_path / "my_game.py"

    def go_on(source: str, generations: int) -> str:
        file.write_text(source)
        caplog.clear()
        train(registry.load(f"{file}"), replace(SMALL, generations=generations), folder, threads=1, resume=True)
        return caplog.text

    assert "have changed" not in go_on(f"# a comment, and another file\n{MINE}", 2)
    turned = """
    def terminal_value(state):
        return 1.0

    rules = replace(TicTacToe.rules, terminal_value=terminal_value)
"""
    said = go_on(f"from dataclasses import replace\n{MINE}{turned}", 3)
    assert said.count("the rules of mine have changed since generation 2") == 1
    assert f"begin a new one by initial_net='{folder}'" in said


def test_a_game_in_python_may_lose_its_file_while_it_trains(tmp_path):
    """Its manifests name the rules that are played, whatever becomes of the file."""
    file = Path(shutil.copy(SLOW, tmp_path / "slow.py"))
    loaded = registry.load(f"{file}:SlowGame")
    before = f"{sys.version_info[0]}.{sys.version_info[1]} {game_fingerprint(loaded.game)}"
    run = train(loaded, SMALL, tmp_path / "run", threads=1, on_start=lambda coach: file.unlink())
    assert run.generation == 1 and latest_manifest(run.folder).state["rules"] == before


# --- another value target --------------------------------------------------------------------------------------------


def outcome_alone(games: Recordings, settings: SelfPlayConfig) -> np.ndarray:
    """The result of the game."""
    return games.z


@pytest.mark.parametrize("devices", [["cpu"], pytest.param(["cpu", "cpu"], marks=pytest.mark.slow)], ids=len)
def test_the_outcome_as_value_target_equals_a_lambda_of_one_bit_for_bit(tmp_path, devices):
    """Of two devices the second is a process, which gets the function, too."""
    loaded, one = registry.load("tictactoe"), replace(CONFIG, generations=1)
    ones = replace(one, self_play=replace(TINY.self_play, td_lambda=1.0))
    train(loaded, ones, tmp_path / "lambda", threads=2, devices=devices)
    train(replace(loaded, value_targets=outcome_alone), one, tmp_path / "target", threads=2, devices=devices)
    assert checksums(tmp_path / "target") == checksums(tmp_path / "lambda")


@pytest.mark.parametrize(
    ("target", "devices", "words"),
    [
        (lambda games, settings: 2 * games.z, ["cpu"], "between -1 and 1"),
        (lambda games, settings: games.z, ["cpu", "cpu"], "top level of a module"),
    ],
)
def test_a_value_target_that_cannot_be_is_refused_in_a_sentence(tmp_path, target, devices, words):
    with pytest.raises(InvalidSetting, match=words):
        train(replace(registry.load("tictactoe"), value_targets=target), CONFIG, tmp_path, threads=2, devices=devices)
    assert not (tmp_path / "config.json").exists() or devices == ["cpu"]


@pytest.mark.parametrize("target", [np.zeros((2, 3)), np.full((2, 4), np.nan), "none"], ids=["short", "nan", "text"])
def test_a_value_target_is_one_number_for_each_ply(target):
    played = np.zeros((2, 4), np.int8)
    games = record(played, played == 0, np.zeros((2, 4)), np.zeros((2, 4)), played == 1)
    with pytest.raises(InvalidSetting, match=r"between -1 and 1 .*\(2, 4\)"):
        check_targets(target, games)


# --- a time limit ----------------------------------------------------------------------------------------------------


def test_a_slow_game_keeps_to_its_minutes(tmp_path, caplog, monkeypatch):
    """A whole generation of 64 games would take a minute, the gate and each match some seconds; all of it has six.

    A ply of mcts:20 takes longer than its match may, which has no game then.

    The clock is planted: only the game's rules take time.
    """
    now = 0.0

    def sleep(seconds):
        nonlocal now
        now += seconds

    loaded = registry.load(SLOW)
    (rules,) = [module for module in sys.modules.values() if getattr(module, "__file__", None) == SLOW]
    clock = SimpleNamespace(monotonic=lambda: now, perf_counter=lambda: now, process_time=lambda: now, sleep=sleep)
    for module in (rules, lineup, gate, journal, steps, games, plan, arena):
        monkeypatch.setattr(module, "time", clock)
    caplog.set_level("INFO")
    config = replace(loaded.presets()["quick"], minutes=0.1, net=TINY.net)
    evaluate, times = Coach.evaluate, []

    def timed(*arguments):
        times.append(now)
        found = evaluate(*arguments)
        times.append(now)
        return found

    monkeypatch.setattr(Coach, "evaluate", timed)
    run = train(loaded, config, tmp_path, game_name=SLOW, threads=1)
    assert any("additional time after minutes, about 0:00:01 at most" in line for line in caplog.messages)
    for row in run.metrics:
        # of 0.3 s, by 4 simulations on 4 plies (games begin with random plies) at 500 simulations/s: 9, rounded down
        assert 2 <= row["games"] < 32 and row["gate_games"] <= 8
    ends = [0.0, *(row["seconds"] for row in run.metrics)]
    assert len(run.metrics) >= 2 and ends[-2] < 6  # no generation is begun after that
    assert max(end - begin for begin, end in itertools.pairwise(ends)) < 3
    assert ends[-1] < 6 + 0.6  # the self-play of a generation that begins late has a tenth
    assert [(match["opponent"], match["games"]) for match in run.evaluation["matches"]] == [("random", 2)]
    assert "no two games against mcts:20 were over in 0:00:01" in caplog.text
    longest = 2 * 20 * 12 * 0.002  # two games, each with 20 playouts of twelve plies at most: nobody interrupts them
    assert times[1] - times[0] < 1.2 + longest
