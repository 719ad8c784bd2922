"""Our own kernels answer as torch does, the same in every batch, for every network they take."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn

import alphazero as az
from alphazero.catalogue import registry
from alphazero.errors import NetError
from alphazero.game.functions import fingerprint
from alphazero.nets.any_module import CannotConvert
from alphazero.nets.convolutions import fastest
from alphazero.nets.kernels import winograd, winograd_kernels
from alphazero.nets.kernels.openvino import OpenVinoInference
from alphazero.nets.kernels.winograd import WinogradInference, filters_at_points
from alphazero.nets.kernels.winograd_kernels import POINTS, matrices, tile_length
from alphazero.nets.torch_net import TorchNet
from alphazero.wasm.network import program_of
from games.connect4.game import Connect4
from tests.nets.batches import assert_answers_of, exact_answers, played_positions, random_batch, sizes_of

PLANES, HEIGHT, WIDTH = Connect4().observation_shape
INPUTS = PLANES * HEIGHT * WIDTH


def test_the_matrices_are_those_of_the_paper():
    """Rows of Lavin and Gray's F(4x4, 3x3), where theirs and ours have the same scale."""
    into, filters, back = matrices(4)
    np.testing.assert_array_equal(into[[0, -1]], [[4, 0, -5, 0, 1, 0], [0, 4, 0, -5, 0, 1]])
    np.testing.assert_array_equal(filters[[0, -1]], [[1 / 4, 0, 0], [0, 0, 1]])
    np.testing.assert_array_equal(
        back, [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]]
    )


@pytest.mark.parametrize("length", POINTS)
def test_a_tile_is_what_the_definition_says(length):
    rng = np.random.default_rng(length)
    numbers, weights = rng.normal(size=length + 2), rng.normal(size=3)
    into, filters, back = matrices(length)
    expected = [sum(weights[k] * numbers[i + k] for k in range(3)) for i in range(length)]
    np.testing.assert_allclose(back @ ((filters @ weights) * (into @ numbers)), expected, rtol=1e-12, atol=1e-12)


def test_filters_are_transformed_along_columns_and_rows():
    weights = np.random.default_rng(0).normal(size=(9, 16, 32)).astype(np.float32)
    found = filters_at_points(weights, 3, 4)
    assert found.shape == (30, 2, 16, 16)
    square = weights[:, 5, 20].reshape(3, 3).astype(np.float64)
    expected = matrices(3).filters @ square @ matrices(4).filters.T
    np.testing.assert_allclose(found[:, 1, 5, 4].reshape(5, 6), expected, rtol=1e-5, atol=1e-6)


def test_tiles_take_the_fewest_multiplications():
    """Connect Four's board is covered by two tiles of 3 rows and two of 4 columns: 10 x 12 for 6 x 7 x 9."""
    assert [tile_length(size) for size in (1, 3, 4, 6, 7, 8, 9, 15)] == [3, 3, 4, 3, 4, 4, 3, 4]


class OneConvolution(nn.Module):
    """A 3x3 convolution before both answers, and one more that adds what it was given."""

    def __init__(self, game, channels):
        super().__init__()
        planes, height, width = game.observation_shape
        self.first = nn.Conv2d(planes, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        self.policy = nn.Linear(channels * height * width, game.num_actions)
        self.value = nn.Linear(channels * height * width, 1)

    def forward(self, observations):
        x = torch.relu(self.first(observations))
        x = torch.relu(self.second(x) + x).flatten(1)
        return self.policy(x), torch.tanh(self.value(x)).squeeze(1)


class Board:
    """As much of a game as a network asks for."""

    name, num_actions = "board", 5

    def __init__(self, planes, height, width):
        self.observation_shape = planes, height, width


@pytest.mark.parametrize(
    ("height", "width", "channels"),
    [(1, 1, 5), (1, 9, 32), (2, 3, 5), (4, 5, 32), (6, 7, 32), (8, 8, 5), (11, 4, 5), (15, 15, 32)],
)
def test_boards_of_all_sizes(height, width, channels):
    torch.manual_seed(height * width + channels)
    module = OneConvolution(Board(3, height, width), channels)
    observations = np.random.default_rng(0).normal(size=(7, 3, height, width)).astype(np.float32)
    inference = WinogradInference(module, torch.zeros(2, 3, height, width))
    logits, values = inference(observations)
    with torch.no_grad():
        expected, expected_values = module.double()(torch.from_numpy(observations).double())
    np.testing.assert_allclose(logits, expected.numpy(), atol=2e-5)
    np.testing.assert_allclose(values, expected_values.numpy(), atol=2e-5)
    assert logits.dtype == values.dtype == np.float32 and np.ptp(logits) > 0.1


def with_random_weights(net: TorchNet, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    for parameter in net.module.parameters():
        nn.init.normal_(parameter, 0, 0.2)
    for layer in net.module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.normal_(0, 0.3)
            layer.running_var.uniform_(0.5, 2)
    return net.frozen_float()


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("connect4", {"lines": 16, "blocks": 1}),
        ("connect4", {"lines": 8, "blocks": 2, "channels": 20, "bottleneck": 12, "head_channels": 5}),
        *(pytest.param(name, sizes_of(name), marks=pytest.mark.slow) for name in registry.NAMES),
    ],
)
def test_networks_of_every_game(name, sizes):
    """Also with new weights, which need no new operations."""
    loaded = registry.load(name)
    net = loaded.make_net(loaded.game, sizes)
    modules = [with_random_weights(net, seed) for seed in range(2)]
    inference = WinogradInference(modules[0], net._example)
    observations = random_batch(loaded.game, 10).observations
    answers = []
    for module in modules:
        inference.set_weights(module)
        answers.append(assert_answers_of(module, inference, observations))
    assert np.abs(answers[0] - answers[1]).max() > 0.01


def test_what_plays_is_float32():
    """In 500 positions; Winograd's sums lose a little more than those of the definition."""
    net, batch = az.load_net("club", "connect4", inference="torch"), played_positions(500)
    assert net.use_inference("winograd") == "winograd"
    exact, expected = exact_answers(net, batch)
    priors, values = net.evaluate(batch.observations, batch.legal_masks)
    errors, value_errors = np.abs(priors - exact), np.abs(values - expected)
    assert errors.mean() < 1e-6 and errors.max() < 1e-4
    assert value_errors.mean() < 1e-6 and value_errors.max() < 1e-4


def test_a_position_has_the_same_answer_in_every_batch_and_thread():
    net = az.load_net("club", "connect4")
    inference = WinogradInference(net.frozen_float(), net._example)
    observations = random_batch(Connect4(), 40, seed=1).observations
    whole = inference(observations)
    for count in (1, 2, 3, 4, 5, 39):
        for one, other in zip(inference(observations[-count:]), whole, strict=True):
            np.testing.assert_array_equal(one, other[-count:])
    with ThreadPoolExecutor(4) as pool:
        for answers in pool.map(lambda _: inference(observations), range(12)):
            for one, other in zip(whole, answers, strict=True):
                np.testing.assert_array_equal(one, other)
    assert 1 <= len(inference._idle) <= 5
    assert inference(observations[:0])[0].shape == (0, 7)


def test_numbers_that_are_none_are_not_hidden():
    net = az.load_net("club", "connect4")
    with torch.no_grad():
        net.module.blocks[0].first[0].weight[3, 2, 1, 1] = float("nan")
    logits, values = WinogradInference(net.frozen_float(), net._example)(random_batch(Connect4(), 5).observations)
    assert np.isnan(logits).all() and np.isnan(values).all()


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(INPUTS, 30), nn.Tanh(), nn.Dropout(), nn.Linear(30, 17))
        self.policy, self.value = nn.Linear(17, 7), nn.Linear(17, 1)

    def forward(self, observations):
        x = self.body(2 * observations) * 0.5
        return self.policy(x) + 1, torch.tanh(self.value(torch.relu(x)))


class Normed(nn.Module):
    """Batch norms that no convolution takes up: before an activation and a convolution, and after an activation."""

    def __init__(self):
        super().__init__()
        self.image, self.hidden = nn.BatchNorm2d(PLANES), nn.Linear(INPUTS, 9)
        self.rows, self.policy, self.value = nn.BatchNorm1d(9, affine=False), nn.Linear(9, 7), nn.Linear(9, 1)
        with torch.no_grad():
            for _ in range(5):  # statistics of their own
                self(torch.randn(20, PLANES, HEIGHT, WIDTH) * 2 + 1)
        nn.init.normal_(self.image.weight)
        nn.init.normal_(self.image.bias)

    def forward(self, observations):
        x = torch.relu(self.hidden(torch.relu(self.image(observations)).flatten(1)))
        x = self.rows(x)
        return self.policy(x), torch.tanh(self.value(x))


class OneNumber(nn.Module):
    """Padding as a list of one number, which torch takes."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, PLANES, 3, 3))

    def forward(self, x):
        return nn.functional.conv2d(x, self.weight, padding=[1])


@pytest.mark.parametrize("make", [Perceptron, Normed, lambda: Headed(Connect4(), OneNumber(), 4 * HEIGHT * WIDTH)])
def test_other_modules_of_known_operations_are_answered_for(make):
    torch.manual_seed(0)
    net, batch = TorchNet(Connect4(), make()), random_batch(Connect4(), 9)
    assert net.use_inference("winograd") == "winograd"
    found, expected = net.evaluate(batch.observations, batch.legal_masks), exact_answers(net, batch)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other.reshape(one.shape), atol=1e-4)


def test_without_compiled_code_the_kernels_are_not_used(monkeypatch):
    net = az.load_net("club", "connect4")
    monkeypatch.setattr("alphazero.nets.kernels.winograd.run_network", lambda *arguments: None)
    with pytest.raises(CannotConvert, match="slow without numba"):
        net.use_inference("winograd")


def test_what_is_kept_on_disk_knows_the_vector_code(monkeypatch):
    """Compiled code is found by a name that says all that went into it, also what an intrinsic writes."""
    before = fingerprint(winograd.convolve)
    monkeypatch.setattr(winograd_kernels, "LANES", 4)
    assert fingerprint(winograd.convolve) != before
    monkeypatch.undo()
    monkeypatch.setattr(winograd_kernels, "_fma", lambda builder, a, b, c: builder.fadd(builder.fmul(a, b), c))
    assert fingerprint(winograd.convolve) != before
    monkeypatch.undo()
    monkeypatch.setattr(winograd_kernels, "_vector", winograd_kernels.ir.VectorType(winograd_kernels.ir.FloatType(), 2))
    assert fingerprint(winograd.convolve) != before
    monkeypatch.undo()
    assert fingerprint(winograd.convolve) == before
    monkeypatch.setattr(winograd_kernels, "POINTS", {3: (0, 1, -1, 3)})
    assert fingerprint(winograd.convolve) != before


class Headed(nn.Module):
    """A body, and one linear layer for each answer."""

    def __init__(self, game, body, inputs):
        super().__init__()
        self.body = body
        self.policy, self.value = nn.Linear(inputs, game.num_actions), nn.Linear(inputs, 1)

    def forward(self, observations):
        x = self.body(observations).flatten(1)
        return self.policy(x), torch.tanh(self.value(x)).squeeze(1)


def test_new_weights_may_need_more_memory():
    """Taps whose weights are all zero are left out."""
    module = OneConvolution(Board(2, 6, 7), 16)
    for layer in (module.policy, module.value):
        nn.init.zeros_(layer.weight)
    inference = WinogradInference(module, torch.zeros(2, 2, 6, 7))
    observations = np.random.default_rng(0).normal(size=(7, 2, 6, 7)).astype(np.float32)
    inference(observations)
    for layer in (module.policy, module.value):
        nn.init.normal_(layer.weight)
    inference.set_weights(module)
    with torch.no_grad():
        expected, _ = module(torch.from_numpy(observations))
    np.testing.assert_allclose(inference(observations)[0], expected.numpy(), rtol=1e-4, atol=1e-4)
    assert inference._idle[0].offsets.size >= 4 * 42


class Changed(nn.Module):
    """A body of one function and one weight."""

    def __init__(self, change, *weights):
        super().__init__()
        self.change, self.weights = change, nn.ParameterList(weights)

    def forward(self, x):
        return self.change(x, *self.weights)


def by_numpy(x):
    """No recorder of torch's operations sees it."""
    return torch.relu(x) + torch.from_numpy(x.float().numpy().mean((2, 3), keepdims=True)).to(x.dtype)


@pytest.mark.parametrize(
    ("body", "inputs", "reason"),
    [
        # the same numbers for all cells, until they learn
        (
            Changed(lambda x, places: torch.relu(x + places), torch.zeros(1, PLANES, HEIGHT, WIDTH)),
            INPUTS, "a constant that differs from cell to cell",
        ),
        (
            Changed(lambda x, scale: x.reshape(-1, PLANES * HEIGHT, WIDTH) * scale, torch.ones(PLANES * HEIGHT, 1)),
            INPUTS, "a constant that differs from cell to cell",
        ),
        (
            Changed(lambda x, weight: nn.functional.linear(x.flatten(2), weight), torch.randn(3, HEIGHT * WIDTH)),
            3 * PLANES, r"it has the operation view\.default",
        ),
        (Changed(lambda x: torch.cat([x, x], 1)), 2 * INPUTS, "it has the operation cat.default"),
        (Changed(lambda x: torch.max(x, dim=1)[0]), HEIGHT * WIDTH, r"it has the operation max\.dim, and only"),
        (nn.Sequential(nn.Flatten(), nn.BatchNorm1d(INPUTS)), INPUTS, "native_batch_norm.default of another form"),
        (Changed(by_numpy), INPUTS, "it computes something outside of torch"),
    ],
)  # fmt: skip
def test_modules_that_would_be_answered_for_wrongly_are_refused(body, inputs, reason):
    net = TorchNet(Connect4(), Headed(Connect4(), body, inputs))
    with pytest.raises(CannotConvert, match=reason):
        net.use_inference("winograd")
    with pytest.raises(NetError, match=f"a web page cannot run this network: .*{reason}"):
        program_of(net, Connect4())


@pytest.mark.parametrize("library", [OpenVinoInference, WinogradInference])
def test_a_layer_may_have_two_names(library):
    net = az.load_net("club", "connect4")
    net.module.again = net.module.policy
    observations = random_batch(Connect4(), 9).observations
    inference = library(net.frozen_float(), net._example, False)
    for _ in range(2):
        with torch.no_grad():
            expected, _ = net.frozen_float()(torch.from_numpy(observations))
            np.testing.assert_allclose(inference(observations)[0], expected.numpy(), atol=1e-3, rtol=1e-4)
            net.module.policy.weight.mul_(0.5)
        inference.set_weights(net.frozen_float())


def test_a_processor_without_fma_leaves_networks_and_learning_to_torch(monkeypatch):
    monkeypatch.setattr(winograd_kernels.binding, "get_host_cpu_features", lambda: {"fma": False})
    net = az.load_net("club", "connect4")
    with pytest.raises(CannotConvert, match="without FMA"):
        net.use_inference("winograd")
    assert fastest(torch.float32) is None
    monkeypatch.setattr(winograd_kernels.binding, "get_host_cpu_features", lambda: {})
    assert winograd_kernels.has_fma(), "processors that are no x86 do not say it"
