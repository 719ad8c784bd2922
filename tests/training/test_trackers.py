"""The figures of a run in TensorBoard and wandb."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from alphazero.catalogue import registry
from alphazero.errors import InvalidSetting, StorageError
from alphazero.storage.files import write_json
from alphazero.training.parts.journal import TensorBoard, Wandb
from alphazero.training.run import train
from tests.training.test_coach import TINY

CONFIG = replace(
    TINY, generations=2, gate=replace(TINY.gate, enabled=False), evaluation=replace(TINY.evaluation, opponents=())
)  # fmt: skip


def wait_for_losses(path: Path, rows: list[dict[str, Any]]) -> None:
    """wandb writes them in a process of its own."""
    end, missing = time.monotonic() + 60, [json.dumps(row["policy_loss"]).encode() for row in rows]
    while missing:
        assert time.monotonic() < end, (path, missing)
        missing = [loss for loss in missing if loss not in path.read_bytes()]
        time.sleep(0.1)


def test_wandb_gets_the_figures_offline_and_goes_on_with_the_same_run(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    loaded, folder = registry.load("tictactoe"), tmp_path / "run"
    train(loaded, replace(CONFIG, generations=1), folder, threads=2, wandb="boards")
    known = json.loads((folder / "wandb.json").read_text())
    run = train(loaded, CONFIG, folder, threads=2, resume=True, wandb="boards")
    assert json.loads((folder / "wandb.json").read_text()) == known and known["project"] == "boards"
    first, second = sorted((folder / "wandb").glob(f"offline-run-*/run-{known['id']}.wandb"))
    for file, rows in ((first, run.metrics[:1]), (second, run.metrics)):
        wait_for_losses(file, rows)
    assert json.dumps(run.metrics[1]["policy_loss"]).encode() not in first.read_bytes()


def test_a_run_outlives_wandbs_own_process(tmp_path, monkeypatch, caplog):
    calls = []

    def fail(*arguments, **named):
        calls.append(named)
        raise ConnectionResetError("Connection lost")

    board = Wandb.__new__(Wandb)
    board._run = SimpleNamespace(log=fail, finish=fail)
    monkeypatch.setattr("alphazero.training.run.Wandb", lambda *arguments: board)
    run = train(registry.load("tictactoe"), CONFIG, tmp_path, threads=1, wandb="boards")
    assert len(run.metrics) == CONFIG.generations > 1 and calls == [{"step": 1}, {}]
    assert sum("Wandb fails (Connection lost)" in message for message in caplog.messages) == 1


def test_a_run_folder_sends_nothing_anywhere_by_itself(tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr("alphazero.training.run.Wandb", lambda *arguments: begun.append(arguments))
    loaded, folder = registry.load("tictactoe"), tmp_path / "run"
    train(loaded, replace(CONFIG, generations=1), folder, threads=1)
    write_json(folder / "wandb.json", {"project": "strangers", "id": "0a1b2c3d"})
    train(loaded, CONFIG, folder, threads=1, resume=True)
    assert begun == []


class LikeTensorBoard:
    """Writes a file into its folder, as TensorBoard's writer does."""

    def __init__(self, folder: Path, purge_step: int):
        folder.mkdir(exist_ok=True)
        (folder / f"events.{purge_step}").touch()

    def __enter__(self):
        return self

    def __exit__(self, *raised: object) -> None: ...

    def add_scalar(self, name: str, value: float, step: int) -> None: ...


def test_tensorboard_gets_no_figures_through_a_link(tmp_path, monkeypatch):
    monkeypatch.setattr("alphazero.training.parts.journal.importlib.util.find_spec", lambda name: True)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=LikeTensorBoard))
    run, outside = tmp_path / "run", tmp_path / "outside"
    run.mkdir()
    outside.mkdir()
    (run / "events").symlink_to("../outside")
    with pytest.raises(StorageError, match=f"{run / 'events'} is a link"):
        TensorBoard(run).add({"generation": 1, "loss": 0.5})
    assert list(outside.iterdir()) == []
    (run / "events").unlink()
    TensorBoard(run).add({"generation": 3, "loss": 0.5})
    assert [file.name for file in (run / "events").iterdir()] == ["events.3"]


def test_wandb_does_not_begin_through_a_link(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    (tmp_path / "outside").mkdir()
    for name in ("wandb", ".wandb"):  # wandb takes the second where there is one
        run = tmp_path / f"run{name}"
        run.mkdir()
        (run / name).symlink_to("../outside")
        with pytest.raises(InvalidSetting, match=f"{name} is a link: move it away"):
            Wandb("boards", run, {}, [])
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_wandb_that_cannot_begin_leaves_no_run(tmp_path, monkeypatch):
    def refuse(**settings):
        (settings["dir"] / "wandb").mkdir()
        raise wandb.errors.Error("api_key not configured (no-tty)")

    wandb = ModuleType("wandb")
    wandb.errors = SimpleNamespace(Error=type("Error", (Exception,), {}))
    wandb.Settings, wandb.init = SimpleNamespace, refuse
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setattr("alphazero.training.parts.journal.importlib.util.find_spec", lambda name: wandb)
    with pytest.raises(InvalidSetting, match="log in by `wandb login`"):
        train(registry.load("tictactoe"), CONFIG, tmp_path / "run", wandb="boards", threads=1)
    assert list(tmp_path.iterdir()) == []


def test_without_wandb_one_sentence_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr("alphazero.training.parts.journal.importlib.util.find_spec", lambda name: None)
    with pytest.raises(InvalidSetting, match="`pip install wandb`"):
        train(registry.load("tictactoe"), CONFIG, tmp_path / "run", wandb="boards")
    assert not (tmp_path / "run").exists()
