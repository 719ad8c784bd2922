"""The network: masks, folding, reduced precision, learning, and what goes to disk."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from alphazero.errors import CheckpointError, InvalidSetting, TrainingError
from alphazero.nets.neural_net import Batch
from alphazero.nets.resnet import Lines, NetConfig, ResNet, make_net
from alphazero.nets.torch_net import MUON_RATE, OnDevice, TorchNet, fold, losses
from games.connect4.game import Connect4
from games.tictactoe.game import TicTacToe


def random_batch(game, count: int, seed: int = 0) -> Batch:
    """Random observations, at least one legal action each, targets within the legal ones."""
    rng = np.random.default_rng(seed)
    masks = rng.random((count, game.num_actions)) < 0.6
    masks[np.arange(count), rng.integers(game.num_actions, size=count)] = True
    policies = rng.random((count, game.num_actions)).astype(np.float32) ** 4 * masks
    policies /= policies.sum(axis=1, keepdims=True)
    observations = (rng.random((count, *game.observation_shape)) < 0.3).astype(np.float32)
    return Batch(observations, masks, policies, rng.uniform(-1, 1, count).astype(np.float32))


@pytest.fixture(params=[{}, {"bottleneck": 8, "lines": 6}], ids=["plain", "lines"])
def trained(request: pytest.FixtureRequest) -> TorchNet:
    """A small network whose batch norms and heads have left their initial values."""
    torch.manual_seed(1)
    net = make_net(Connect4(), {"blocks": 3, "channels": 16} | request.param)
    batch = random_batch(Connect4(), 64)
    for _ in range(30):
        net.train_step(batch, 3e-3)
    net.finish_training()
    return net


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


def test_priors_are_a_distribution_over_the_legal_actions(trained):
    batch = random_batch(Connect4(), 130)
    priors, values = trained.evaluate(batch.observations, batch.legal_masks)
    assert priors.dtype == values.dtype == np.float32
    np.testing.assert_allclose(priors.sum(axis=1), 1, atol=1e-5)
    assert (priors[~batch.legal_masks] == 0).all() and (np.abs(values) <= 1).all()


def test_an_untrained_network_has_no_opinion():
    batch = random_batch(TicTacToe(), 9)
    priors, values = make_net(TicTacToe(), {"blocks": 1, "channels": 8}).evaluate(batch.observations, batch.legal_masks)
    np.testing.assert_allclose(priors, batch.legal_masks / batch.legal_masks.sum(axis=1, keepdims=True), atol=1e-6)
    assert (values == 0).all()


def test_folding_batch_norms_changes_nothing_but_rounding(trained):
    observations = torch.from_numpy(random_batch(Connect4(), 50).observations)
    with torch.no_grad():
        kept = trained.averaged.eval()(observations)
        folded = fold(make_copy(trained).eval())
        found = folded(observations)
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in folded.modules())
    for a, b in zip(kept, found, strict=True):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-4)


def make_copy(net: TorchNet) -> ResNet:
    game = Connect4()
    module = ResNet(game.observation_shape, game.num_actions, NetConfig(**net.card["net"]))
    module.load_state_dict(net.averaged.state_dict())
    return module


def test_what_plays_is_close_to_float32(trained):
    """bf16 keeps 8 bits: an error of 0.4% of a layer's numbers, a few percent at the end at most."""
    batch = random_batch(Connect4(), 500, seed=3)
    with torch.no_grad():
        logits, values = trained.averaged.eval()(torch.from_numpy(batch.observations))
    exact = torch.softmax(logits.masked_fill(~torch.from_numpy(batch.legal_masks), -1e9), dim=1).numpy()
    priors, found = trained.evaluate(batch.observations, batch.legal_masks)
    prior_errors, value_errors = np.abs(priors - exact).max(axis=1), np.abs(found - values.numpy())
    assert np.mean(prior_errors) < 0.01 and np.quantile(prior_errors, 0.99) < 0.04 and prior_errors.max() < 0.1
    assert np.mean(value_errors) < 0.01 and np.quantile(value_errors, 0.99) < 0.04 and value_errors.max() < 0.1


def test_an_answer_hardly_depends_on_the_batch(trained):
    batch = random_batch(Connect4(), 200, seed=4)
    together, _ = trained.evaluate(batch.observations, batch.legal_masks)
    for row in (0, 63, 64, 199):
        alone, _ = trained.evaluate(batch.observations[row : row + 1], batch.legal_masks[row : row + 1])
        np.testing.assert_allclose(alone[0], together[row], atol=0.02)


def test_it_learns_one_batch_by_heart():
    torch.manual_seed(0)
    net = make_net(TicTacToe(), {"blocks": 2, "channels": 32})
    batch = random_batch(TicTacToe(), 32)
    entropy = -(batch.policy_targets * np.log(np.maximum(batch.policy_targets, 1e-9))).sum(axis=1).mean()
    for _ in range(150):
        found = net.train_step(batch, 3e-3)
    assert found["policy_loss"] - entropy < 0.1 and found["value_loss"] < 0.02
    for _ in range(100):  # the average follows
        net.train_step(batch, 1e-4)
    net.finish_training()
    _, values = net.evaluate(batch.observations, batch.legal_masks)
    assert np.abs(values - batch.value_targets).mean() < 0.15


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_batch_that_is_not_finite_changes_nothing(trained, bad):
    batch = random_batch(Connect4(), 16)
    batch.value_targets[3] = bad
    before = {name: tensor.clone() for name, tensor in trained.module.state_dict().items()}
    assert not np.isfinite(float(trained.train_step(batch, 1e-2)["value_loss"]))
    assert all(torch.equal(before[name], tensor) for name, tensor in trained.module.state_dict().items())


def test_a_bad_batch_that_is_not_waited_for_moves_the_weights_by_decay_alone():
    """As on a GPU. By hand: without any gradient before it, matrices shrink by rate times decay, all else stays."""
    net = make_net(TicTacToe(), {"blocks": 1, "channels": 8})
    net.prepare_training(weight_decay=0.5)
    before = {name: parameter.detach().clone() for name, parameter in net.module.named_parameters()}
    for parameter in net.module.parameters():
        parameter.grad = torch.full_like(parameter, math.nan)
    net._step(0.1, torch.tensor(False))
    for name, parameter in net.module.named_parameters():
        kept = 1 - MUON_RATE * 0.1 * 0.5 if any(parameter is matrix for matrix in net.matrices) else 1.0
        torch.testing.assert_close(parameter.detach(), kept * before[name])


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
    nets = [TorchNet(TicTacToe(), copy.deepcopy(module), {}) for _ in range(2)]
    for threads, net in zip((1, 3), nets, strict=True):
        net.dtype = torch.float32  # of the passes: bf16 would hide a small mistake
        net.prepare_training(threads=threads)
    for seed in range(5):
        batch = random_batch(TicTacToe(), 32, seed)
        one, three = (net.train_step(batch, 1e-3) for net in nets)
        for name in one:
            assert float(one[name]) == pytest.approx(float(three[name]), abs=1e-5)
    for a, b in zip(nets[0].module.parameters(), nets[1].module.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-4)


def test_a_batch_that_does_not_fit_is_learned_in_parts_from_then_on(monkeypatch, caplog):
    game = TicTacToe()
    whole, parted = (
        TorchNet(game, ResNet(game.observation_shape, 9, NetConfig(blocks=1, channels=8)), {}) for _ in "ab"
    )
    parted.module.load_state_dict(whole.module.state_dict())
    parted._hand_out_buffers()
    gradients, sizes = TorchNet._gradients, []

    def little_memory(self, replica, batch, piece):
        sizes.append(piece.stop - piece.start)
        if sizes[-1] > 8:
            raise torch.OutOfMemoryError
        return gradients(self, replica, batch, piece)

    whole.prepare_training(threads=4)
    batch = random_batch(game, 32)
    expected = [float(whole.train_step(batch, 1e-3)["policy_loss"]) for _ in range(3)]
    monkeypatch.setattr(TorchNet, "_gradients", little_memory)
    assert [float(parted.train_step(batch, 1e-3)["policy_loss"]) for _ in range(3)] == expected
    assert sizes[0] == 32 and sizes[-8:] == [8] * 8 and "learned in 4 parts" in caplog.text


def test_a_device_that_holds_nothing_is_reported(monkeypatch):
    def no_memory(*arguments):
        raise torch.OutOfMemoryError

    game = TicTacToe()
    net = TorchNet(game, ResNet(game.observation_shape, 9, NetConfig(blocks=1, channels=8)), {})
    monkeypatch.setattr(TorchNet, "_gradients", no_memory)
    with pytest.raises(TrainingError, match="four positions"):
        net.train_step(random_batch(game, 32), 1e-3)


def test_training_on_threads_repeats_bit_for_bit():
    def weights():
        torch.manual_seed(4)
        net = make_net(TicTacToe(), {"blocks": 1, "channels": 8})
        net.prepare_training(threads=3)
        for seed in range(6):
            net.train_step(random_batch(TicTacToe(), 24, seed), 1e-3)
        return net.averaged.state_dict()

    first, again = weights(), weights()
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_a_saved_network_plays_the_same(trained, tmp_path):
    path = tmp_path / "net.safetensors"
    card = trained.save(path, {"generation": 7})
    assert card["generation"] == 7 and card["game"] == "connect4" and card["parameters"] > 0
    other = make_net(Connect4(), card["net"])
    other.load(path)
    batch = random_batch(Connect4(), 20)
    for a, b in zip(*(net.evaluate(batch.observations, batch.legal_masks) for net in (trained, other)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_learning_goes_on_from_disk_as_if_never_stopped(trained, tmp_path):
    trained.save_training(tmp_path / "learner.safetensors")
    other = make_net(Connect4(), trained.card["net"])
    other.load_training(tmp_path / "learner.safetensors")
    for net in (trained, other):
        for seed in range(3):
            net.train_step(random_batch(Connect4(), 32, seed), 1e-3)
    for a, b in zip(trained.averaged.state_dict().values(), other.averaged.state_dict().values(), strict=True):
        assert torch.equal(a, b)


def test_a_network_of_another_game_or_size_is_refused(trained, tmp_path):
    path = tmp_path / "net.safetensors"
    trained.save(path, {})
    with pytest.raises(CheckpointError, match="connect4"):
        make_net(TicTacToe(), {"blocks": 3, "channels": 16}).load(path)
    with pytest.raises(CheckpointError):
        make_net(Connect4(), {"blocks": 2, "channels": 16}).load(path)


@pytest.mark.parametrize("settings", [{"blocks": 0}, {"channels": -1}, {"layers": 3}, {"bottleneck": -1},
     {"line_length": 4, "lines": 8}])  # fmt: skip
def test_wrong_sizes_are_refused(settings):
    with pytest.raises(InvalidSetting, match=next(iter(settings))):
        make_net(TicTacToe(), settings)


def test_flops_are_counted_by_hand():
    """One 3x3 convolution from 2 to 8 planes on 9 cells takes 2 * 2 * 8 * 9 * 9 operations; and so on."""
    net = make_net(TicTacToe(), {"blocks": 1, "channels": 8, "head_channels": 4, "value_hidden": 16})
    convolutions = 2 * 9 * 9 * (2 * 8 + 8 * 8 + 8 * 8) + 2 * 9 * (8 * 4 + 8 * 4)
    linear = 2 * (4 * 9 * 9 + 4 * 9 * 16 + 16 * 1)
    assert net.card["flops_per_position"] == convolutions + linear
    sizes = {"blocks": 1, "channels": 8, "head_channels": 4, "value_hidden": 16, "bottleneck": 4}
    sizes |= {"lines": 5, "line_length": 2}
    blocks = 2 * 9 * (9 * 2 * 8 + 8 * 4 + 9 * (4 * 4 + 4 * 4) + 4 * 8) + 2 * 9 * (8 * 4 + 8 * 4)
    # six lines of two along rows, six along columns; four filters of 2x2 squares hold both diagonals
    lines = 2 * (6 * 2 + 6 * 2 + 4 * 2 * 4) * 5 * (2 + 8)
    assert make_net(TicTacToe(), sizes).card["flops_per_position"] == blocks + lines + linear


def test_lines_are_all_that_fit_on_the_board():
    """Against a loop over every line of three on a board of 4 x 5: what it sees, and what it tells its squares."""
    torch.manual_seed(0)
    height, width, length = 4, 5, 3
    layer = Lines(2, 6, 4, length)
    x = torch.randn(1, 2, height, width)
    expected = (layer.to_rows.bias + layer.to_columns.bias)[:, None, None].expand(6, height, width).clone()
    directions = [
        (0, 1, layer.rows.weight[:, :, 0], layer.rows.bias, layer.to_rows.weight[:, :, 0]),
        (1, 0, layer.columns.weight[..., 0], layer.columns.bias, layer.to_columns.weight[..., 0]),
        (1, 1, layer.diagonals, 0.0, layer.to_diagonals),
        (1, -1, layer.diagonals, 0.0, layer.to_diagonals),
    ]
    with torch.no_grad():
        for down, right, see, bias, tell in directions:
            for row, column in np.ndindex(height, width):
                squares = [(row + k * down, column + k * right) for k in range(length)]
                if all(0 <= r < height and 0 <= c < width for r, c in squares):
                    seen = sum(see[:, :, k] @ x[0, :, r, c] for k, (r, c) in enumerate(squares)) + bias
                    for k, (r, c) in enumerate(squares):
                        expected[:, r, c] += torch.relu(seen) @ tell[:, :, k]
        torch.testing.assert_close(layer(x)[0], expected)


def test_a_search_on_the_device_gets_the_same_answers_and_new_weights_too(trained):
    """What runs on a GPU, here on the processor's memory: the arrays stay, the weights are replaced."""
    game, count = Connect4(), 24
    batch = random_batch(game, count)
    priors, values = np.full((count, game.num_actions), -1, np.float32), np.full(count, 9, np.float32)
    evaluate = OnDevice(trained)
    weights = {name: tensor.data_ptr() for name, tensor in trained.frozen.state_dict().items()}
    for round in range(2):
        evaluate(batch.observations, batch.legal_masks, priors, values)
        expected_priors, expected_values = trained.evaluate(batch.observations, batch.legal_masks)
        np.testing.assert_allclose(priors, expected_priors, atol=2e-3)
        np.testing.assert_allclose(values, expected_values, atol=2e-2)
        assert (priors[~batch.legal_masks] == 0).all()
        if round == 0:
            before = priors.copy()
            for _ in range(20):
                trained.train_step(batch, 3e-3)
            trained.finish_training()
    assert np.abs(priors - before).max() > 0.01
    # another search may use it, too, with arrays of its own
    others = np.full_like(priors, -1), np.full_like(values, 9)
    evaluate(batch.observations, batch.legal_masks, *others)
    np.testing.assert_array_equal(others[0], priors)
    np.testing.assert_array_equal(others[1], values)
    assert {name: tensor.data_ptr() for name, tensor in trained.frozen.state_dict().items()} == weights


def test_a_network_on_the_processor_offers_no_search_on_a_device(trained):
    assert trained.device_evaluate() is None
