"""Learning: the losses, threads that share a batch, memory that does not do, going on from disk."""

from __future__ import annotations

import copy
import itertools
import math
import time

import numpy as np
import pytest
import torch
from torch import nn

from alphazero.errors import TrainingError
from alphazero.nets import convolutions, resnet, torch_trainer
from alphazero.nets.muon import MUON_RATE
from alphazero.nets.resnet import NetConfig, ResNet, make_net
from alphazero.nets.torch_net import TorchNet
from alphazero.nets.torch_trainer import TorchTrainer, losses
from games.connect4.game import Connect4
from games.tictactoe.game import TicTacToe
from tests.nets.batches import random_batch


def test_the_loss_is_that_worked_out_by_hand():
    """Legal logits 0 and ln 3 give 1/4 and 3/4; the illegal action's huge logit counts for nothing."""
    logits = torch.tensor([[0.0, np.log(3.0), 50.0]])
    mask, target = torch.tensor([[True, True, False]]), torch.tensor([[0.5, 0.5, 0.0]])
    policy, value = losses(logits, torch.tensor([0.5]), mask, target, torch.tensor([-1.0]))
    assert policy.item() == pytest.approx(-0.5 * (np.log(0.25) + np.log(0.75)), abs=1e-6)
    assert value.item() == pytest.approx(1.5**2)


def test_illegal_actions_get_no_gradient():
    logits = torch.randn(8, 5, requires_grad=True)
    mask = torch.rand(8, 5) < 0.5
    mask[:, 0] = True
    target = torch.softmax(torch.randn(8, 5).masked_fill(~mask, -1e9), dim=1)
    policy, _ = losses(logits, torch.zeros(8), mask, target, torch.zeros(8))
    policy.backward()
    assert (logits.grad[~mask] == 0).all() and (logits.grad[mask] != 0).any()


@pytest.mark.parametrize("low", [-1e9, -1e30])
def test_legal_logits_of_any_finite_size_have_the_right_loss_and_gradient(low):
    """Two legal actions with one logit are worth ln 2; so are they beside a legal one that is given up by -inf."""
    logits = torch.tensor([[0.0, low, low, -torch.inf]], requires_grad=True)
    mask, target = torch.tensor([[False, True, True, True]]), torch.tensor([[0.0, 1.0, 0.0, 0.0]])
    policy, _ = losses(logits, torch.zeros(1), mask, target, torch.zeros(1))
    policy.backward()
    assert policy.item() == pytest.approx(np.log(2))
    assert logits.grad.tolist() == [[0.0, -0.5, 0.5, 0.0]]


def test_a_target_for_an_illegal_action_makes_no_finite_loss():
    mask, target = torch.tensor([[False, True]]), torch.tensor([[0.5, 0.5]])
    policy, _ = losses(torch.zeros(1, 2), torch.zeros(1), mask, target, torch.zeros(1))
    assert not policy.isfinite()


def test_it_learns_one_batch_by_heart():
    torch.manual_seed(0)
    net = make_net(TicTacToe(), {"blocks": 1, "channels": 16})
    trainer = net.trainer()
    batch = random_batch(TicTacToe(), 8)
    entropy = -(batch.policy_targets * np.log(np.maximum(batch.policy_targets, 1e-9))).sum(axis=1).mean()
    for _ in range(120):
        found = trainer.train_step(batch, 3e-3)
    assert found["policy_loss"] - entropy < 0.1 and found["value_loss"] < 0.02
    for _ in range(100):  # the average follows
        trainer.train_step(batch, 1e-4)
    trainer.finish()
    _, values = net.evaluate(batch.observations, batch.legal_masks)
    assert np.abs(values - batch.value_targets).mean() < 0.15


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_batch_that_is_not_finite_changes_nothing(trainer, bad):
    batch = random_batch(Connect4(), 16)
    batch.value_targets[3] = bad
    before = {name: tensor.clone() for name, tensor in trainer.module.state_dict().items()}
    assert not np.isfinite(float(trainer.train_step(batch, 1e-2)["value_loss"]))
    assert all(torch.equal(before[name], tensor) for name, tensor in trainer.module.state_dict().items())


def test_a_bad_batch_that_is_not_waited_for_moves_the_weights_by_decay_alone():
    """As on a GPU. By hand: without any gradient before it, matrices shrink by rate times decay, all else stays."""
    trainer = make_net(TicTacToe(), {"blocks": 1, "channels": 8}).trainer(weight_decay=0.5)
    before = {name: parameter.detach().clone() for name, parameter in trainer.module.named_parameters()}
    gradients = [torch.full_like(parameter, math.nan) for parameter in trainer.parameters]
    trainer.optimizer.step(gradients, 0.1, torch.tensor(False))
    for name, parameter in trainer.module.named_parameters():
        kept = 1 - MUON_RATE * 0.1 * 0.5 if any(parameter is matrix for matrix in trainer.optimizer.matrices) else 1.0
        torch.testing.assert_close(parameter.detach(), kept * before[name])


def _norm_relu_of_torch(norm, x, added=None):
    return torch.relu(norm(x) if added is None else norm(x) + added)


def test_gradients_in_bf16_are_no_further_from_float32_than_torchs_own(trainer, monkeypatch):
    """Of a whole network: what bf16 rounds is torch's, and the faster functions of the processor add no error."""
    batch, filters = random_batch(Connect4(), 64, 5), []
    real = convolutions.gradient_of_filters
    monkeypatch.setattr(convolutions, "gradient_of_filters", lambda *a: filters.append(a) or real(*a))

    def gradient(dtype):
        trainer.dtype = dtype
        _, found = trainer._gradients(trainer.replicas[0], batch, slice(0, 64))
        trainer._hand_out_buffers()
        return torch.cat([each.flatten() for each in found])

    exact = gradient(torch.float32)
    assert not filters
    ours = gradient(torch.bfloat16)
    assert len(filters) >= sum(isinstance(m, nn.Conv2d | nn.ConvTranspose2d) for m in trainer.module.modules())
    monkeypatch.setattr(torch_trainer, "fastest", lambda dtype: None)
    monkeypatch.setattr(resnet, "norm_relu", _norm_relu_of_torch)
    filters.clear()
    torchs = gradient(torch.bfloat16)
    assert not filters and not torch.equal(ours, torchs)
    assert (ours - exact).norm() <= 1.1 * (torchs - exact).norm()


def test_threads_share_a_batch_and_learn_as_one_would():
    """Without batch norm, whose statistics are those of a thread's part, the gradients add up to the same update."""

    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.policy, self.value = nn.Linear(18, 32), nn.Linear(32, 9), nn.Linear(32, 1)

        def forward(self, x):
            hidden = torch.tanh(self.first(x.flatten(1)))
            return self.policy(hidden), torch.tanh(self.value(hidden)).squeeze(1)

    torch.manual_seed(3)
    module = Plain()
    trainers = [TorchNet(TicTacToe(), copy.deepcopy(module), {}).trainer(threads=threads) for threads in (1, 3)]
    for trainer in trainers:
        trainer.dtype = torch.float32  # of the passes: bf16 would hide a small mistake
    for seed in range(5):
        batch = random_batch(TicTacToe(), 32, seed)
        one, three = (trainer.train_step(batch, 1e-3) for trainer in trainers)
        for name in one:
            assert float(one[name]) == pytest.approx(float(three[name]), abs=1e-5)
    for a, b in zip(*(trainer.module.parameters() for trainer in trainers), strict=True):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-4)


class Normed(nn.Module):
    """Two batch norms, one after the other."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.BatchNorm1d(18), nn.BatchNorm1d(18)
        self.policy, self.value = nn.Linear(18, 9), nn.Linear(18, 1)

    def forward(self, x):
        hidden = self.second(torch.tanh(self.first(x.flatten(1))))
        return self.policy(hidden), torch.tanh(self.value(hidden)).squeeze(1)


def test_statistics_are_the_mean_over_the_threads():
    """Each of three threads sees its third; counts of batches are those of one. The average follows the mean."""
    torch.manual_seed(4)
    net = TorchNet(TicTacToe(), Normed(), {})
    trainer = net.trainer(threads=3)
    trainer.dtype = torch.float32
    batch = random_batch(TicTacToe(), 30, 0)
    parts = [copy.deepcopy(trainer.module).train() for _ in range(3)]
    for i, part in enumerate(parts):
        part(torch.as_tensor(batch.observations[10 * i : 10 * i + 10]))
    before = {name: tensor.clone() for name, tensor in net.module.state_dict().items()}
    trainer.train_step(batch, 1e-3)
    for name, buffer in trainer.module.named_buffers():
        found = [dict(part.named_buffers())[name] for part in parts]
        expected = sum(found) / 3 if buffer.dtype.is_floating_point else found[0]
        torch.testing.assert_close(buffer, expected)
        for replica in trainer.replicas:
            assert torch.equal(dict(replica.named_buffers())[name], buffer)
    for name, tensor in net.module.state_dict().items():
        new = trainer.module.state_dict()[name]
        # after one update the average takes 1 - 1 / 11 of the new weights
        expected = before[name] / 11 + new * 10 / 11 if tensor.dtype.is_floating_point else new
        torch.testing.assert_close(tensor, expected)


class WithoutBf16(Normed):
    """In bf16 it fails behind the batch norms: on the first thread at once, on others later."""

    calls = itertools.count()

    def forward(self, x):
        reduced = torch.is_autocast_enabled("cpu")
        if reduced and next(self.calls):
            time.sleep(0.1)
        found = super().forward(x)
        if reduced:
            raise RuntimeError("\"layer\" not implemented for 'BFloat16'")
        return found


@pytest.mark.parametrize("threads", [1, 3])
def test_a_module_that_fails_in_bf16_learns_in_float32_as_if_it_had_never_tried(threads, caplog):
    torch.manual_seed(4)
    WithoutBf16.calls, module = itertools.count(), WithoutBf16()
    tries, does_not = (TorchNet(TicTacToe(), copy.deepcopy(module), {}).trainer(threads=threads) for _ in range(2))
    tries.dtype, does_not.dtype = torch.bfloat16, torch.float32
    for trainer, seed in itertools.product((tries, does_not), range(2)):
        trainer.train_step(random_batch(TicTacToe(), 30, seed), 1e-3)
    for a, b in zip(*(each.module.state_dict().values() for each in (tries, does_not)), strict=True):
        assert torch.equal(a, b)
    (said,) = caplog.messages
    assert said.startswith("this network learns in float32, since it fails in bf16") and "BFloat16" in said


def test_weights_with_two_names_are_averaged_once():
    """After one update the average takes 1 - 1 / 11 of the new weights."""

    class Tied(Normed):
        def __init__(self):
            super().__init__()
            self.also_value = self.value

    torch.manual_seed(4)
    net = TorchNet(TicTacToe(), Tied(), {})
    trainer, before = net.trainer(), net.module.value.weight.detach().clone()
    trainer.train_step(random_batch(TicTacToe(), 30), 1e-3)
    torch.testing.assert_close(net.module.value.weight, before / 11 + trainer.module.value.weight * 10 / 11)


def test_two_parameters_with_one_gradient_are_clipped_once():
    """autograd gives a sum's parts one tensor. With a norm of at most a thousandth, its two copies have less each."""

    class Sum(Normed):
        def __init__(self):
            super().__init__()
            self.a, self.b = (nn.Parameter(torch.zeros(9)) for _ in range(2))

        def forward(self, x):
            logits, value = super().forward(x)
            return logits + (self.a + self.b), value

    torch.manual_seed(4)
    gradients = []
    for threads in (1, 3):
        net = TorchNet(TicTacToe(), Sum(), {})
        trainer = net.trainer(max_gradient_norm=1e-3, threads=threads)
        trainer.dtype = torch.float32
        trainer.train_step(random_batch(TicTacToe(), 30), 1e-3)
        total = torch.stack([each.grad.square().sum() for each in trainer.parameters]).sum().sqrt()
        assert total.item() == pytest.approx(1e-3, rel=1e-3)
        assert torch.equal(trainer.module.a.grad, trainer.module.b.grad)
        gradients.append(trainer.module.a.grad)
    assert gradients[0].norm() > 0.3 * gradients[1].norm()


def test_a_processor_with_many_cores_learns_on_few_of_them():
    """On two cores sixteen threads wait for Python's lock longer than one takes for the whole batch."""
    trainer = make_net(TicTacToe(), {"blocks": 1, "channels": 8}).trainer(threads=16)
    found = trainer._gradients_of_all(random_batch(TicTacToe(), 64, 0))
    assert len(found) == len(trainer.replicas) == torch_trainer.MOST_THREADS == 4


def test_a_batch_that_does_not_fit_is_learned_in_parts_from_then_on(monkeypatch, caplog):
    game = TicTacToe()
    module = ResNet(game.observation_shape, 9, NetConfig(blocks=1, channels=8))
    whole, parted = (TorchNet(game, copy.deepcopy(module), {}).trainer(threads=threads) for threads in (4, 1))
    gradients, sizes = TorchTrainer._gradients, []

    def little_memory(self, replica, batch, piece):
        sizes.append(piece.stop - piece.start)
        if sizes[-1] > 8:
            raise torch.OutOfMemoryError
        return gradients(self, replica, batch, piece)

    batch = random_batch(game, 32)
    expected = [float(whole.train_step(batch, 1e-3)["policy_loss"]) for _ in range(3)]
    monkeypatch.setattr(TorchTrainer, "_gradients", little_memory)
    assert [float(parted.train_step(batch, 1e-3)["policy_loss"]) for _ in range(3)] == expected
    assert sizes[0] == 32 and sizes[-8:] == [8] * 8 and "learned in 4 parts" in caplog.text


def test_a_device_that_holds_nothing_is_reported(monkeypatch):
    def no_memory(*arguments):
        raise torch.OutOfMemoryError

    game = TicTacToe()
    net = TorchNet(game, ResNet(game.observation_shape, 9, NetConfig(blocks=1, channels=8)), {})
    monkeypatch.setattr(TorchTrainer, "_gradients", no_memory)
    with pytest.raises(TrainingError, match="four positions"):
        net.trainer().train_step(random_batch(game, 32), 1e-3)


def test_training_on_threads_repeats_bit_for_bit():
    def weights():
        torch.manual_seed(4)
        trainer = make_net(TicTacToe(), {"blocks": 1, "channels": 8}).trainer(threads=3)
        for seed in range(6):
            trainer.train_step(random_batch(TicTacToe(), 24, seed), 1e-3)
        return trainer.net.module.state_dict()

    first, again = weights(), weights()
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_offsets_and_scales_move_as_by_torchs_adamw(tmp_path):
    """By its class, which keeps moments of its own; a trainer that goes on from disk, too."""
    torch.manual_seed(2)
    trainer = make_net(Connect4(), {"blocks": 1, "channels": 8}).trainer(ema_decay=0.9)
    theirs = [nn.Parameter(each.detach().clone()) for each in trainer.optimizer.others]
    reference = torch.optim.AdamW(theirs, weight_decay=0.0, fused=True)
    for i, rate in enumerate((1e-3, 3e-3, 1e-3, 2e-3)):
        if i == 2:
            trainer.save(tmp_path / "learner.safetensors")
            trainer = make_net(Connect4(), {"blocks": 1, "channels": 8}).trainer(ema_decay=0.9)
            trainer.load(tmp_path / "learner.safetensors")
        trainer.train_step(random_batch(Connect4(), 32), rate)
        for parameter, ours in zip(theirs, trainer.optimizer.others, strict=True):
            parameter.grad = ours.grad
        reference.param_groups[0]["lr"] = rate
        reference.step()
    for parameter, ours in zip(theirs, trainer.optimizer.others, strict=True):
        assert torch.equal(parameter, ours)


def test_learning_goes_on_from_disk_as_if_never_stopped(trainer, tmp_path):
    trainer.save(tmp_path / "learner.safetensors")
    other = make_net(Connect4(), trainer.net.card["net"]).trainer()
    other.load(tmp_path / "learner.safetensors")
    for each in (trainer, other):
        for seed in range(3):
            each.train_step(random_batch(Connect4(), 32, seed), 1e-3)
    for a, b in zip(*(each.net.module.state_dict().values() for each in (trainer, other)), strict=True):
        assert torch.equal(a, b)
