"""N1: numbers that are not finite in samples, losses and gradients never reach a network on disk."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import torch

from alphazero.catalogue import registry
from alphazero.errors import TrainingError
from alphazero.nets import torch_trainer
from alphazero.nets.neural_net import Batch
from alphazero.training.replay_buffer import TrainingSet
from alphazero.training.run import train
from tests.training.test_coach import TINY

CONFIG = replace(TINY, generations=2, evaluation=replace(TINY.evaluation, opponents=("random",)))
BEGINS_AT = 12
"""The first batch that is bad: in the second generation, so that there is a generation to go back to."""


def spoil_samples(field: str, number: float) -> Callable[..., object]:
    """In place of `TrainingSet.batch`: the same batch with one number replaced while `bad()`."""

    def spoiled(bad: Callable[[], bool], original: Callable[..., Batch]) -> Callable[..., Batch]:
        def batch(self: TrainingSet, *arguments: np.ndarray) -> Batch:
            made = original(self, *arguments)
            if not bad():
                return made
            array = getattr(made, field).copy()
            array.flat[0] = number
            return replace(made, **{field: array})

        return batch

    return spoiled


def spoil_loss(bad: Callable[[], bool], original: Callable[..., object]) -> Callable[..., object]:
    def losses(*arguments: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        policy, value = original(*arguments)
        return (policy * float("nan"), value) if bad() else (policy, value)

    return losses


def spoil_gradient(bad: Callable[[], bool], original: Callable[..., object]) -> Callable[..., object]:
    """The losses stay finite; one entry of one gradient does not."""

    def gradients(self: object, *arguments: object) -> object:
        losses, found = original(self, *arguments)
        if bad():
            found[0][(0,) * found[0].ndim] = float("inf")
        return losses, found

    return gradients


CASES: dict[str, tuple[object, str, Callable[..., object]]] = {
    "NaN in an observation": (TrainingSet, "batch", spoil_samples("observations", np.nan)),
    "infinity in a policy target": (TrainingSet, "batch", spoil_samples("policy_targets", np.inf)),
    "NaN in a value target": (TrainingSet, "batch", spoil_samples("value_targets", np.nan)),
    "NaN in a loss": (torch_trainer, "losses", spoil_loss),
    "infinity in a gradient": (torch_trainer.TorchTrainer, "_gradients", spoil_gradient),
}
QUICK = {"NaN in a loss", "infinity in a gradient"}


def plant(case: str, first: int, how_many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spoils `how_many` calls in a row, from the one with number `first` on."""
    holder, name, make = CASES[case]
    calls = itertools.count()
    monkeypatch.setattr(holder, name, make(lambda: first <= next(calls) < first + how_many, getattr(holder, name)))


def assert_finite(folder: Path, generations: int) -> None:
    """Every number of every network and of the state of learning, read without our own checks."""
    files = [*folder.glob("generation_*.safetensors"), *folder.glob("learner_*.safetensors")]
    assert len(files) >= generations + 1
    for file in files:
        for name, array in safetensors.numpy.load(file.read_bytes()).items():
            assert np.isfinite(array).all(), f"{file.name}: {name}"


def test_bad_batches_between_good_ones_are_skipped_counted_and_said(tmp_path: Path, monkeypatch, caplog):
    for i, case in enumerate(CASES):
        plant(case, BEGINS_AT + 2 * i, 1, monkeypatch)
    run = train(registry.load("tictactoe"), CONFIG, tmp_path / "run", threads=1)
    assert run.generation == 2
    assert f"{len(CASES)} of " in caplog.text and "batches gave no finite loss and were skipped" in caplog.text
    assert all(np.isfinite([row["policy_loss"], row["value_loss"]]).all() for row in run.metrics)
    assert_finite(tmp_path / "run", 2)


@pytest.mark.parametrize("case", [pytest.param(x, marks=() if x in QUICK else pytest.mark.slow) for x in CASES])
def test_three_bad_batches_in_a_row_stop_the_run_and_the_generation_before_goes_on(
    case: str, tmp_path: Path, monkeypatch
):
    loaded, folder = registry.load("tictactoe"), tmp_path / "run"
    plant(case, BEGINS_AT, 1000, monkeypatch)
    with pytest.raises(TrainingError, match=r"three batches in a row .*learner\.learning_rate .*resume=True"):
        train(loaded, CONFIG, folder, threads=1)
    assert_finite(folder, 1)
    monkeypatch.undo()
    assert train(loaded, CONFIG, folder, threads=1, resume=True).generation == 2
    assert_finite(folder, 2)
