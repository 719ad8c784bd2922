"""Updates that a GPU replays. Without one, a stand-in replays them on the processor's memory by Python."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from alphazero.catalogue import registry
from alphazero.nets import cuda_updates
from alphazero.nets.cuda_updates import BEFORE, CudaUpdates
from alphazero.nets.neural_net import Batch
from alphazero.nets.resnet import NetConfig, ResNet
from alphazero.nets.torch_net import TorchNet
from games.connect4.game import Connect4
from tests.nets.batches import random_batch

CPU = torch.device("cpu")
NET = NetConfig(blocks=2, channels=16, lines=8)


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Nothing is captured: each replay launches again; this counts the replays of each graph."""
    launches = list[int]()

    def capture(launch: Callable[[], None], stream: object) -> Callable[[], None]:
        launches.append(0)

        def replay() -> None:
            launches[-1] += 1
            launch()

        return replay

    monkeypatch.setattr(cuda_updates, "capture", capture)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: None)
    return launches


def batch_of(size: int, fill: float) -> Batch:
    return Batch(np.full((size, 1), fill, np.float32), np.ones((size, 2), bool), np.ones((size, 2), np.float32),
                 np.full(size, fill, np.float32))  # fmt: skip


def noting(calls: list[tuple[float, float, float]]) -> cuda_updates.Update:
    def update(batch: Batch, rate: Tensor, share: Tensor) -> list[Tensor]:
        calls.append((float(batch.observations.sum()), float(rate), float(share)))
        return [batch.observations.sum()]

    return update


def test_each_update_gets_its_batch_rate_and_share_and_keeps_its_results(launches: list[int]):
    calls = list[tuple[float, float, float]]()
    updates, update = CudaUpdates(CPU), noting(calls)
    results = [updates(update, batch_of(4, i), 0.5 * i, 0.25 * i, replays=True)[0] for i in range(1, 8)]
    assert calls == [(4.0 * i, 0.5 * i, 0.25 * i) for i in range(1, 8)]
    assert [float(result) for result in results] == [4.0 * i for i in range(1, 8)]
    assert launches == [7 - BEFORE], "the first ones are not replayed"


def test_another_size_gets_a_graph_of_its_own(launches: list[int]):
    calls = list[tuple[float, float, float]]()
    updates, update = CudaUpdates(CPU), noting(calls)
    for size in (4,) * 5 + (3,) + (4,) * 3 + (6,) * 6:
        updates(update, batch_of(size, 1.0), 1.0, 1.0, replays=True)
    assert launches == [5 - BEFORE, 6 - BEFORE]
    assert [seen for seen, _, _ in calls] == [4.0] * 5 + [3.0] + [4.0] * 3 + [6.0] * 6


def test_without_replays_nothing_is_captured(launches: list[int]):
    calls = list[tuple[float, float, float]]()
    updates, update = CudaUpdates(CPU), noting(calls)
    for _ in range(6):
        updates(update, batch_of(4, 1.0), 1.0, 1.0, replays=False)
    assert launches == [] and len(calls) == 6
    for replays in (True, False, True):  # as when a batch must be learned in parts
        updates(update, batch_of(4, 1.0), 1.0, 1.0, replays=replays)
    assert launches == [2] and len(calls) == 9


def test_what_cannot_be_captured_is_said_once_and_done_as_before(
    launches: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def refuse(launch: Callable[[], None], stream: object) -> Callable[[], None]:
        raise RuntimeError("operation not permitted")

    monkeypatch.setattr(cuda_updates, "capture", refuse)
    calls = list[tuple[float, float, float]]()
    updates, update = CudaUpdates(CPU), noting(calls)
    for _ in range(8):
        updates(update, batch_of(4, 1.0), 1.0, 1.0, replays=True)
    assert len(calls) == 8
    assert len(caplog.records) == 1 and "operation not permitted" in caplog.text


def learned(device: str, replays: bool, updates: int = 12) -> tuple[list[Tensor], list[float]]:
    """Weights, averages and losses after some updates, of which one has a batch that is not finite."""
    torch.manual_seed(0)
    game = Connect4()
    net = TorchNet(game, ResNet(game.observation_shape, game.num_actions, NET))
    net.use_device(device)
    trainer = net.trainer()
    trainer._same_steps = replays
    if trainer._cuda_updates is None:  # on the processor
        trainer._cuda_updates, trainer._on_gpu = CudaUpdates(CPU), True
    found = []
    for i in range(updates):
        batch = random_batch(game, 32, i)
        if i == updates - 3:
            batch.value_targets[0] = np.nan
        found += trainer.train_step(batch, 1e-3 * (i + 1)).values()
    trainer.finish()
    tensors = [
        *trainer.module.state_dict().values(),
        *net.module.state_dict().values(),
        *trainer.optimizer.momenta,
    ]
    return [tensor.detach().cpu().clone() for tensor in tensors], [float(loss) for loss in found]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_replayed_updates_learn_exactly_what_others_learn(
    device: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
):
    """On a GPU the graph itself is tested, in a fixed order of sums."""
    launches = list[int]()
    if device == "cpu":
        launches = request.getfixturevalue("launches")
    elif not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    else:
        real = cuda_updates.capture
        monkeypatch.setattr(cuda_updates, "capture", lambda *given: launches.append(0) or real(*given))
        monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        (expected, losses), (found, others) = learned(device, False), learned(device, True)
    finally:
        torch.use_deterministic_algorithms(before)
    assert len(launches) == 1, "one graph was captured"
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))
    assert np.array_equal(losses, others, equal_nan=True)
    assert np.isnan(losses).sum() == 2 and np.isfinite(losses[-4:]).all()


class Linear(nn.Module):
    """One layer, which a GPU may replay."""

    same_steps = True

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(24 * 42, 8)
        self.register_buffer("mean", torch.zeros(24 * 42))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.layer(x.flatten(1) - self.mean)
        return y[:, :7], torch.tanh(y[:, 7])


class Wavering(Linear):
    """Does something else in each pass, and does not say that it may be replayed."""

    passes = 0

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        self.passes += 1
        policy, values = super().forward(x)
        return policy * (self.passes % 2), values


class Reading(Linear):
    """Reads a number back in each pass, which no graph can do."""

    same_steps = True

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        assert x.sum().item() >= 0
        return super().forward(x)


@pytest.mark.parametrize(("module", "expected"), [(Linear, [3]), (Wavering, [])])
def test_a_module_is_replayed_only_if_its_class_says_so(module: type[Linear], expected: list[int], launches: list[int]):
    game = Connect4()
    trainer = TorchNet(game, module()).trainer()
    trainer._cuda_updates, trainer._on_gpu = CudaUpdates(CPU), True
    for i in range(BEFORE + 3):
        trainer.train_step(random_batch(game, 16, i), 1e-3)
    assert launches == expected


@pytest.mark.parametrize("name", ["connect4", "tictactoe"])
def test_the_nets_of_the_games_are_replayed(name: str):
    loaded = registry.load(name)
    assert loaded.make_net(loaded.game, {"blocks": 1}).trainer()._same_steps


def test_a_trainer_that_nobody_holds_is_freed_at_once(monkeypatch: pytest.MonkeyPatch):
    # as a graph, it holds what was captured and not the function
    monkeypatch.setattr(cuda_updates, "capture", lambda launch, stream: launch() or (lambda: None))
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: None)
    game = Connect4()
    trainer = TorchNet(game, Linear()).trainer()
    trainer._cuda_updates, trainer._on_gpu = CudaUpdates(CPU), True
    for i in range(BEFORE + 1):
        trainer.train_step(random_batch(game, 16, i), 1e-3)
    freed = weakref.ref(trainer.module)
    gc.collect()
    gc.disable()
    try:
        del trainer
        assert freed() is None, "its memory on the GPU would stay until Python tidies up"
    finally:
        gc.enable()


@pytest.mark.cuda
def test_an_update_that_no_graph_can_hold_is_learned_as_before(caplog: pytest.LogCaptureFixture):
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    game = Connect4()
    net = TorchNet(game, Reading())
    net.use_device("cuda")
    trainer, stream = net.trainer(), torch.cuda.current_stream()
    found = [trainer.train_step(random_batch(game, 16, 0), 1e-2) for _ in range(2 * BEFORE)]
    assert len(caplog.records) == 1 and "cannot be replayed" in caplog.text
    assert float(found[-1]["policy_loss"]) < float(found[0]["policy_loss"])
    assert torch.cuda.current_stream() == stream
    torch.cuda.empty_cache()  # fails where a capture is left open
    learned("cuda", True)
