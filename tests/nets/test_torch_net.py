"""A network that plays: masks, folding, reduced precision, the GPU's evaluator, and files."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle

import numpy as np
import pytest
import torch
from torch import nn

import alphazero as az
from alphazero.catalogue import registry
from alphazero.errors import CheckpointError
from alphazero.nets.any_module import fold, to_priors
from alphazero.nets.resnet import make_net
from alphazero.nets.torch_net import TorchCudaEvaluator, TorchNet
from games.connect4.game import Connect4
from games.tictactoe.game import TicTacToe
from tests.nets.batches import random_batch


def test_priors_are_a_distribution_over_the_legal_actions(trained):
    batch = random_batch(Connect4(), 130)
    priors, values = trained.evaluate(batch.observations, batch.legal_masks)
    assert priors.dtype == values.dtype == np.float32
    np.testing.assert_allclose(priors.sum(axis=1), 1, atol=1e-5)
    assert (priors[~batch.legal_masks] == 0).all() and (np.abs(values) <= 1).all()


class Given(nn.Module):
    """Answers every position of Tic-tac-toe by the same logits."""

    def __init__(self, logits):
        super().__init__()
        self.register_buffer("logits", torch.tensor(logits))
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return self.logits + self.weight + 0 * x.flatten(1)[:, :9], 0 * x[:, 0, 0, 0]


@pytest.mark.parametrize("low", [-1e9, -3e38])
def test_logits_of_any_finite_size_make_a_policy_of_the_legal_actions(low, tmp_path):
    """The first two actions are not legal; the others, by their logits, have 0, 1/2, 0 and so on. The last row of
    masks is that of a game that is over, as a search on a GPU sends it."""
    logits = [0.0, 3e38, *[1.1 * low] * 5, low, low]
    masks = np.array([[0, 0, *[1] * 7], [1] + [0] * 8, [0] * 9], bool)
    expected = np.float32([[*[0] * 7, 0.5, 0.5], [1] + [0] * 8, [0] * 9])
    observations = np.zeros((3, *TicTacToe().observation_shape), np.float32)
    net = TorchNet(TicTacToe(), Given(logits))
    np.testing.assert_array_equal(net.evaluate(observations, masks)[0], expected)
    priors, values = np.full((3, 9), -1, np.float32), np.zeros(3, np.float32)
    TorchCudaEvaluator(net)(observations, masks, priors, values)
    np.testing.assert_array_equal(priors, expected)
    weights = np.float32([logits] * 3)
    to_priors(weights, values, masks)
    np.testing.assert_array_equal(weights, expected)


def test_folding_batch_norms_changes_nothing_but_rounding(trained):
    observations = torch.from_numpy(random_batch(Connect4(), 50).observations)
    with torch.no_grad():
        kept = copy.deepcopy(trained.module).eval()(observations)
        folded = fold(copy.deepcopy(trained.module).eval())
        found = folded(observations)
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in folded.modules())
    for a, b in zip(kept, found, strict=True):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-4)


def test_what_plays_is_close_to_float32(trained):
    """bf16 keeps 8 bits: an error of 0.4% of a layer's numbers, a few percent at the end at most."""
    batch = random_batch(Connect4(), 500, seed=3)
    with torch.no_grad():
        logits, values = copy.deepcopy(trained.module).eval()(torch.from_numpy(batch.observations))
    exact = torch.softmax(logits.masked_fill(~torch.from_numpy(batch.legal_masks), -1e9), dim=1).numpy()
    priors, found = trained.evaluate(batch.observations, batch.legal_masks)
    prior_errors, value_errors = np.abs(priors - exact).max(axis=1), np.abs(found - values.numpy())
    assert np.mean(prior_errors) < 0.01 and np.quantile(prior_errors, 0.99) < 0.04 and prior_errors.max() < 0.1
    assert np.mean(value_errors) < 0.01 and np.quantile(value_errors, 0.99) < 0.04 and value_errors.max() < 0.1


def test_torch_tells_points_in_float32():
    """What two actions differ by is less than what its answer in bf16 rounds away."""
    assert registry.load("2048").make_net(registry.load("2048").game, {}).dtype == torch.float32


def test_an_answer_hardly_depends_on_the_batch(trained):
    batch = random_batch(Connect4(), 200, seed=4)
    together, _ = trained.evaluate(batch.observations, batch.legal_masks)
    for row in (0, 63, 64, 199):
        alone, _ = trained.evaluate(batch.observations[row : row + 1], batch.legal_masks[row : row + 1])
        np.testing.assert_allclose(alone[0], together[row], atol=0.02)


def test_a_saved_network_plays_the_same(trained, tmp_path):
    path = tmp_path / "net.safetensors"
    card = trained.save(path, {"generation": 7})
    assert card["generation"] == 7 and card["game"] == "connect4" and card["parameters"] > 0
    other = make_net(Connect4(), card["net"])
    other.load(path)
    batch = random_batch(Connect4(), 20)
    for a, b in zip(*(net.evaluate(batch.observations, batch.legal_masks) for net in (trained, other)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_weights_are_hashed_once_when_they_are_written_and_once_when_they_are_loaded(tmp_path, monkeypatch):
    net, path, sizes = az.load_net("beginner", "connect4", inference="torch"), tmp_path / "a.safetensors", list[int]()
    digest, sha256 = hashlib.file_digest, hashlib.sha256

    def of_file(file, *how):
        sizes.append(os.fstat(file.fileno()).st_size)
        return digest(file, *how)

    monkeypatch.setattr(hashlib, "file_digest", of_file)
    monkeypatch.setattr(hashlib, "sha256", lambda *given: (sizes.append(len(b"".join(given))), sha256(*given))[1])
    net.save(path, {})
    assert sizes.count(path.stat().st_size) == 1
    az.load_net(path, "connect4", inference="torch")
    assert sizes.count(path.stat().st_size) == 2


def test_a_network_of_another_game_or_size_is_refused(trained, tmp_path):
    path = tmp_path / "net.safetensors"
    trained.save(path, {})
    with pytest.raises(CheckpointError, match="connect4"):
        make_net(TicTacToe(), {"blocks": 3, "channels": 16}).load(path)
    with pytest.raises(CheckpointError):
        make_net(Connect4(), {"blocks": 2, "channels": 16}).load(path)


def test_a_search_on_the_device_gets_the_same_answers_and_new_weights_too(trainer):
    """What runs on a GPU, here on the processor's memory: the arrays stay, the weights are replaced."""
    game, count = Connect4(), 24
    batch = random_batch(game, count)
    priors, values = np.full((count, game.num_actions), -1, np.float32), np.full(count, 9, np.float32)
    trained = trainer.net
    assert trained.cuda_evaluator() is None, "it is on the processor"
    evaluate = TorchCudaEvaluator(trained)
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
                trainer.train_step(batch, 3e-3)
            trainer.finish()
    assert np.abs(priors - before).max() > 0.01
    # another search may use it, too, with arrays of its own
    others = np.full_like(priors, -1), np.full_like(values, 9)
    evaluate(batch.observations, batch.legal_masks, *others)
    np.testing.assert_array_equal(others[0], priors)
    np.testing.assert_array_equal(others[1], values)
    assert {name: tensor.data_ptr() for name, tensor in trained.frozen.state_dict().items()} == weights


@pytest.mark.parametrize("library", ["torch", "openvino", "winograd"])
def test_a_net_in_another_process_answers_as_here(library):
    """The libraries themselves cannot be pickled; their answers differ a little, so the same one must answer."""
    if library == "openvino":
        pytest.importorskip("openvino")
    batch = random_batch(Connect4(), 8)
    net = az.load_net("beginner", "connect4", inference=library)
    other = pickle.loads(pickle.dumps(net))
    assert other.card == net.card and other.module is not net.module
    for expected, found in zip(*(x.evaluate(batch.observations, batch.legal_masks) for x in (net, other)), strict=True):
        np.testing.assert_array_equal(found, expected)
