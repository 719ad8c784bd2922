"""Who plays and learns where: several devices do what one would."""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch

from alphazero.catalogue import registry
from alphazero.errors import InvalidSetting, RunFolderError, TrainingError, is_out_of_memory
from alphazero.game import Game
from alphazero.nets.devices import INFERENCE_VARIABLE
from alphazero.nets.neural_net import NeuralNet
from alphazero.storage.manifest import latest_manifest
from alphazero.storage.run_folder import RunFolder
from alphazero.training.coach import Coach
from alphazero.training.config import RunConfig
from alphazero.training.plan import RunPlan
from alphazero.training.workers import LocalWorkers
from tests.training.test_coach import TINY


def run(path: Path, devices: list[str], generations: int = 2, config: RunConfig = TINY) -> Coach:
    torch.manual_seed(5)
    with RunFolder.create(path, {}) as folder, make_coach(folder, devices, generations, config) as coach:
        coach.run()
    return coach


def make_coach(folder: RunFolder, devices: list[str], generations: int = 2, config: RunConfig = TINY) -> Coach:
    config = replace(config, generations=generations)
    return Coach(RunPlan(registry.load("tictactoe"), config, devices, threads=2, seed=3, deterministic=False), folder)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Coach:
    """A run of two threads on one device."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(INFERENCE_VARIABLE, "torch")
        return run(tmp_path_factory.mktemp("alone") / "run", ["cpu"])


@pytest.mark.parametrize("inference", ["torch", pytest.param("openvino", marks=pytest.mark.slow)])
def test_two_devices_play_and_learn_what_two_threads_would_bit_for_bit_and_a_death_is_named(
    inference: str, alone: Coach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Every process plays its share of the games and adds its part to every update, as threads do."""
    if inference == "openvino":
        pytest.importorskip("openvino")
    monkeypatch.setenv(INFERENCE_VARIABLE, inference)
    one = alone if inference == "torch" else run(tmp_path / "1", ["cpu"])
    torch.manual_seed(5)
    with RunFolder.create(tmp_path / "2", {}) as folder, make_coach(folder, ["cpu", "cpu"]) as two:
        two.run()
        assert one.lineup.inference == two.lineup.inference == inference
        expect_equal(one, two)
        # a process that dies while learning ends the run and is named
        learn, (child,) = two.lineup.learner.learn, two.lineup.workers.learners
        monkeypatch.setattr(two.pace, "config", replace(two.config, generations=3))
        monkeypatch.setattr(two.lineup.learner, "learn", lambda *job: (child.process.kill(), learn(*job))[1])
        with pytest.raises(TrainingError, match="has died"):
            two.run()
        manifest = latest_manifest(folder.path)
        assert manifest is not None and manifest.generation == 2


def test_a_game_that_other_processes_cannot_import_takes_one_device(tmp_path: Path):
    made = type("Made", (type(registry.load("tictactoe").game),), {"__module__": "__main__"})
    with pytest.raises(
        InvalidSetting, match="tictactoe is defined where other processes cannot import it.* one device"
    ):
        RunPlan(registry.of(made), TINY, ["cpu", "cpu"], threads=2, seed=0, deterministic=False)
    RunPlan(registry.of(made), TINY, ["cpu"], threads=2, seed=0, deterministic=False)


def test_a_game_in_python_that_other_processes_cannot_import_plays_on_threads_and_says_so(tmp_path: Path, caplog):
    made = type("Made", (type(registry.load("tictactoe").game),), {"__module__": "__main__", "compiled": False})
    plan = RunPlan(registry.of(made), TINY, ["cpu"], threads=2, seed=0, deterministic=False)
    with RunFolder.create(tmp_path / "run", {}) as folder, Coach(plan, folder) as coach:
        assert len(coach.lineup.workers.all) == 2
    assert "cannot import it, so all games are played in this process" in caplog.text


def expect_equal(one: Coach, two: Coach) -> None:
    """The same games and the same weights, bit for bit."""
    files = [{path.name: path.read_bytes() for path in coach.folder.path.glob("replay_*.npz")} for coach in (one, two)]
    assert files[0] and files[0] == files[1]
    for name, tensor in one.lineup.net.module.state_dict().items():
        assert torch.equal(two.lineup.net.module.state_dict()[name], tensor), name


def test_other_devices_are_refused_on_resume_before_anything_is_set_up(alone: Coach, monkeypatch):
    monkeypatch.setattr("alphazero.training.parts.lineup.kernels_of", None)
    for devices in (["cpu", "cpu"], ["cuda"]):
        with (
            RunFolder.open(alone.folder.path) as folder,
            pytest.raises(RunFolderError, match=f"1 x cpu, .* x {devices[0]}"),
        ):
            make_coach(folder, devices).prepare()


_made: list[str] = []


def make_one_net_in_a_process(game: Game, sizes: Mapping[str, Any]) -> NeuralNet:
    """A process other than the run's own has no room for the net that learns beside the one that plays."""
    if multiprocessing.parent_process() is not None:
        if _made:
            raise InvalidSetting("planted: no room for a second network")
        _made.append(game.name)
    return registry.load("tictactoe").make_net(game, sizes)


@pytest.mark.slow
def test_a_process_that_cannot_begin_to_learn_says_why_and_is_not_waited_for(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("alphazero.nets.torch_trainer.PATIENCE", timedelta(seconds=15))
    loaded = replace(registry.load("tictactoe"), make_net=make_one_net_in_a_process)
    plan = RunPlan(loaded, TINY, ["cpu", "cpu"], threads=2, seed=3, deterministic=False)
    with (
        RunFolder.create(tmp_path / "run", {}) as folder,
        Coach(plan, folder) as coach,
        pytest.raises(InvalidSetting, match="no room for a second network"),
    ):
        coach.run()


def test_no_worker_begins_that_would_never_get_a_game(tmp_path: Path):
    games = replace(TINY.self_play, games_per_generation=3)
    plan = RunPlan(registry.load("tictactoe"), replace(TINY, self_play=games), ["cpu"], 5, 3, deterministic=False)
    with RunFolder.create(tmp_path / "run", {}) as folder, Coach(plan, folder) as coach:
        assert [worker.num_slots for worker in coach.lineup.workers.all] == [1, 1, 1]
        assert [worker.stride for worker in coach.lineup.workers.all] == [3, 3, 3]
    other = replace(plan, config=replace(TINY, self_play=replace(games, games_per_generation=4)))
    with (
        RunFolder.open(tmp_path / "run") as folder,
        pytest.raises(RunFolderError, match="3 workers.* has 4 .*games_per_generation"),
    ):
        Coach(other, folder).prepare()


def test_a_batch_must_do_for_all_devices(tmp_path: Path):
    config = replace(TINY, learner=replace(TINY.learner, batch_size=3))
    with RunFolder.create(tmp_path / "run", {}) as folder, pytest.raises(InvalidSetting, match="batch_size"):
        make_coach(folder, ["cpu", "cpu"], config=config)


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (torch.OutOfMemoryError(), True),
        (RuntimeError("GET was unable to find an engine to execute this computation"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (MemoryError(), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
    ],
)
def test_what_a_lack_of_memory_looks_like(error: Exception, is_one: bool):
    assert is_out_of_memory(error) == is_one


def test_workers_of_both_kinds_play_the_games_of_threads(alone: Coach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("alphazero.training.workers.FEW", 1)
    monkeypatch.setattr("alphazero.training.workers.SECONDS_UNDER_LOCK", math.inf)
    started, start = list[int](), LocalWorkers._start_process
    monkeypatch.setattr(LocalWorkers, "_start_process", lambda self, i: (started.append(i), start(self, i))[1])
    both = run(tmp_path / "both", ["cpu"])
    assert started == [1], "the second worker is a process, the first is not"
    expect_equal(alone, both)
