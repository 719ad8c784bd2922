"""Convolutions in 8 bits: as exact as they are said to be, repeatable, and left out where they would not be."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import alphazero as az
from alphazero.catalogue import registry
from alphazero.nets.kernels import int8
from alphazero.nets.kernels import openvino as inference_openvino
from alphazero.nets.kernels.int8 import Int8Inference
from alphazero.nets.kernels.library import CannotConvert
from alphazero.nets.kernels.openvino import OpenVinoInference
from alphazero.nets.torch_net import TorchNet
from games.connect4.game import Connect4
from tests.nets.batches import exact_answers, played_positions, random_batch

try:
    inference_openvino._openvino()
except CannotConvert:
    pytest.skip("OpenVINO is not installed", allow_module_level=True)


def load(name: str, game: str) -> TorchNet:
    net = az.load_net(name, game, inference="int8")
    assert isinstance(net, TorchNet) and type(net._inference) is Int8Inference
    return net


@pytest.fixture(scope="module")
def club() -> TorchNet:
    """One for all tests that leave it as it is."""
    return load("club", "connect4")


@pytest.mark.parametrize("name", ["best", "club"])
def test_what_plays_is_close_to_float32(name):
    """Mean and largest error of a probability and of the value on 1,000 positions."""
    net, batch = load(name, "connect4"), played_positions(1000)
    exact, exact_values = exact_answers(net, batch)
    priors, values = net.evaluate(batch.observations, batch.legal_masks)
    prior_errors, value_errors = np.abs(priors - exact).max(axis=1), np.abs(values - exact_values)
    assert 0 < prior_errors.mean() < 0.03 and prior_errors.max() < 0.5
    assert 0 < value_errors.mean() < 0.02 and value_errors.max() < 0.5


@pytest.mark.parametrize("game", ["othello", "othello6", "hex", "breakthrough", "gomoku", "dots_and_boxes"])
def test_the_nets_of_all_games_are_rounded(game):
    net = load("best", game)
    batch = played_positions(300, net._game)
    exact, exact_values = exact_answers(net, batch)
    priors, values = net.evaluate(batch.observations, batch.legal_masks)
    assert net._inference._playing is not None and _rounded(net._inference._playing)
    assert np.abs(priors - exact).max(axis=1).mean() < 0.03 and np.abs(values - exact_values).mean() < 0.03


def _rounded(model) -> int:
    """The layers whose numbers are rounded."""
    return sum(node.get_type_name() == "FakeQuantize" for node in model.get_ops())


def test_a_layer_is_rounded_as_worked_out_by_hand():
    """Inputs from 0 to 2 have steps of 2/255, filters up to 1 steps of 1/127; one input of 1 is 127.5, so 128 steps."""

    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Conv2d(1, 1, 1, bias=False), nn.Conv2d(1, 1, 3, padding=1, bias=False)
            with torch.no_grad():
                self.first.weight.fill_(1.0)
                self.second.weight.zero_()
                self.second.weight[0, 0, 1, 1] = 1.0

        def forward(self, x):
            y = self.second(torch.relu(self.first(x))).flatten(1)
            return y, torch.tanh(y[:, 0] * 0)

    example = torch.zeros(Int8Inference.num_examples, 1, 4, 4)
    example[0, 0, 0, 0] = 2.0
    inference = Int8Inference(Plain().eval(), example, bf16=False)
    rows = np.zeros((1, 1, 4, 4), np.float32)
    rows[0, 0, 0, :4] = 2.0, 1.0, 0.5, 4.0
    logits, _ = inference(rows)
    assert logits[0, :4] == pytest.approx([2.0, 128 * 2 / 255, 64 * 2 / 255, 2.0], abs=2e-3)  # 63.75 is 64; 4 is cut


def test_new_weights_are_measured_anew():
    """Ten times as large numbers in the trunk, of which the heads take a tenth: the answers are those of before."""
    net, batch = load("club", "connect4"), played_positions(300)
    before, _ = net.evaluate(batch.observations, batch.legal_masks)
    with torch.no_grad():
        for norm in (net.module.stem[1], *(block.second[1] for block in net.module.blocks)):
            norm.weight.mul_(10.0)
            norm.bias.mul_(10.0)
        for convolve in (net.module.policy_head[0], net.module.value_head[0], *(b.first[0] for b in net.module.blocks)):
            convolve.weight.div_(10.0)
    net.freeze()
    exact, _ = exact_answers(net, batch)
    after, _ = net.evaluate(batch.observations, batch.legal_masks)
    assert np.abs(before - exact).max(axis=1).mean() < 0.02, "the same network"
    assert np.abs(after - exact).max(axis=1).mean() < 0.02 and _rounded(net._inference._playing)


def test_weights_that_rounding_would_spoil_are_not_rounded(monkeypatch, club):
    frozen, example = club.frozen_float(), club._positions(Int8Inference.num_examples)
    batch = random_batch(Connect4(), 50)
    monkeypatch.setattr(int8, "MOST_ERROR", 0.0)
    spoilt, plain = (library(frozen, example, bf16=False) for library in (Int8Inference, OpenVinoInference))
    for one, other in zip(spoilt(batch.observations), plain(batch.observations), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not _rounded(spoilt._playing)


@pytest.mark.parametrize("count", [1, 9, 32, 100])
def test_two_of_them_answer_alike_bit_for_bit(club, count):
    """As a resumed run must, and each worker of a run."""
    other, batch = load("club", "connect4"), random_batch(Connect4(), count, seed=count)
    answers = [net.evaluate(batch.observations, batch.legal_masks) for net in (club, other, club)]
    for again in answers[1:]:
        for one, two in zip(answers[0], again, strict=True):
            np.testing.assert_array_equal(one, two)


def test_examples_are_different_positions_and_always_the_same(club):
    positions = club._positions(256).numpy()
    np.testing.assert_array_equal(positions, club._positions(256).numpy())
    assert len(np.unique(positions.reshape(256, -1), axis=0)) > 200
    legal_sizes = positions.reshape(256, -1).sum(axis=1)
    assert len(np.unique(legal_sizes)) > 10, "of all stages"


class Dense(nn.Module):
    """A network without convolutions."""

    def __init__(self):
        super().__init__()
        inputs = int(np.prod(Connect4.observation_shape))
        self.policy, self.value = nn.Linear(inputs, 7), nn.Linear(inputs, 1)

    def forward(self, observations):
        x = observations.flatten(1)
        return self.policy(x), torch.tanh(self.value(x)).squeeze(1)


def test_a_network_without_convolutions_is_refused():
    with pytest.raises(CannotConvert, match="int8 is for convolutions behind the first, and Dense has none"):
        TorchNet(Connect4(), Dense()).use_inference("int8")


def test_an_untrained_network_plays():
    """All its answers are equal, and some of its layers' numbers zero."""
    loaded = registry.load("connect4")
    net = loaded.make_net(loaded.game, {"blocks": 1, "channels": 16})
    assert net.use_inference("int8") == "int8"
    batch = random_batch(loaded.game, 40)
    priors, values = net.evaluate(batch.observations, batch.legal_masks)
    assert np.isfinite(priors).all() and not values.any()
    assert priors.sum(axis=1) == pytest.approx(1.0)


def test_it_is_never_chosen_by_itself(monkeypatch, club):
    seen = []
    monkeypatch.setattr(TorchNet, "_fastest", lambda net, others: seen.extend(others))
    net = az.load_net("club", "connect4")
    net.use_inference("auto")
    assert seen and "int8" not in [other.name for other in seen]
