"""Networks in WebAssembly answer as torch does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import alphazero as az
from alphazero.catalogue import registry
from alphazero.errors import NetError
from alphazero.game import Game
from alphazero.game.kernels import Kernels
from alphazero.nets.any_module import forward
from alphazero.nets.resnet import NetConfig, ResNet
from alphazero.nets.torch_net import TorchNet
from alphazero.players.net_players import PolicyPlayer
from alphazero.search.evaluator import Evaluator
from alphazero.wasm.engine import ModuleBuilder
from alphazero.wasm.network import Program, add_network, program_of
from alphazero.web.one_file import in_half_precision, make_file
from games.connect4.benchmark import make_benchmark
from tests.game.many_actions import ManyActions
from tests.wasm.engines import Answers, needs_node, positions_of, random_games, run_node, with_random_weights

page: Any
ask_network: Any


def ask():
    """An entry point of the tests alone: the network's answer about the position."""
    here = page()  # noqa: F821
    ask_network(here.planes, here.legal_mask, here.policy, here.value)  # noqa: F821


def answers_of(game: Game, program: Program, positions: list[list[int]], folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """The priors and values of the positions after these actions, none of them terminal, as node computes them."""
    builder = ModuleBuilder(game)
    add_network(builder, program)
    builder.add("ask", ask)
    (folder / "weights.bin").write_bytes(program.weights.astype(np.float32).tobytes())
    request = {"evaluations": positions, "weights": str(folder / "weights.bin")}
    found = Answers(run_node(builder.build(), request, folder))
    rows = [(found.take(np.float32)[0], found.take(np.float32, game.num_actions)) for _ in positions]
    assert found.ended
    return np.stack([priors for _, priors in rows]), np.array([value for value, _ in rows])


@torch.inference_mode()
def torch_answers(net: TorchNet, game: Game, positions: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """The same in float32 torch."""
    kernels = Kernels(game)
    states, _ = positions_of(kernels, positions)
    masks, terminal, _ = kernels.describe_all(states)
    assert not terminal.any()
    logits, values = forward(net.module.eval().float(), torch.from_numpy(kernels.observations(states)))
    priors = torch.softmax(logits.masked_fill(~torch.from_numpy(masks), -torch.inf), dim=1)
    return priors.numpy(), values.clamp(-1, 1).numpy()


def some_positions(game: Game, count: int) -> list[list[int]]:
    rng = np.random.default_rng(2)
    return [actions[: int(rng.integers(len(actions)))] for actions in random_games(Kernels(game), count, seed=2)]


def compare(net: TorchNet, game: Game, count: int, folder: Path) -> None:
    positions = some_positions(game, count)
    priors, values = answers_of(game, program_of(net, game), positions, folder)
    expected_priors, expected_values = torch_answers(net, game, positions)
    assert np.abs(priors - expected_priors).max() < 1e-4
    assert np.abs(values - expected_values).max() < 1e-4
    assert values.std() > 0.01 and expected_priors.std() > 0.01, "an answer that is always the same shows nothing"


@needs_node
@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "name"),
    [("connect4", "beginner"), ("connect4", "club"), ("connect4", "best"), ("othello", "best"), ("othello6", "best")],
)
def test_every_shipped_network_answers_as_torch_does(game: str, name: str, tmp_path: Path):
    loaded = registry.load(game)
    compare(az.load_net(name, loaded.game), loaded.game, 1000, tmp_path)


@needs_node
def test_bottlenecks_and_lines_answer_as_torch_does(tmp_path: Path):
    game = registry.load("tictactoe").game
    config = NetConfig(blocks=2, channels=20, bottleneck=12, lines=16, line_length=3, head_channels=5, value_hidden=30)
    module = with_random_weights(ResNet(game.observation_shape, game.num_actions, config))
    compare(TorchNet(game, module), game, 100, tmp_path)


@needs_node
def test_a_policy_of_planes_answers_as_torch_does(tmp_path: Path):
    game, config = ManyActions(), NetConfig(blocks=1, channels=20)
    game.action_places = np.random.default_rng(0).permutation(game.num_actions)
    module = ResNet(game.observation_shape, game.num_actions, config, action_places=game.action_places)
    compare(TorchNet(game, with_random_weights(module)), game, 100, tmp_path)


class Perceptron(nn.Module):
    """Another network of operations that the page knows."""

    def __init__(self, game: Game, front: nn.Module | None = None):
        super().__init__()
        self.front = front or nn.Identity()
        size = self.front(torch.zeros(1, *game.observation_shape)).numel()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(size, 30), nn.Tanh(), nn.Linear(30, 17))
        self.policy, self.value = nn.Linear(17, game.num_actions), nn.Linear(17, 1)

    def forward(self, observations):
        features = self.body(self.front(observations * 2.0)) + 0.5
        return self.policy(features + torch.relu(features)), torch.tanh(self.value(features)).squeeze(1)


class Softer(Perceptron):
    """A network with an operation that the page does not know."""

    def forward(self, observations):
        policy, value = super().forward(observations)
        return nn.functional.gelu(policy), value


class Uniform(az.NeuralNet):
    """A network without torch."""

    def evaluate(self, observations, legal_masks):
        return legal_masks / legal_masks.sum(axis=1, keepdims=True), np.zeros(len(observations), np.float32)

    def save(self, path, card):
        raise NotImplementedError

    def load(self, path):
        raise NotImplementedError


class OneOperation(nn.Module):
    """A network with one operation of the test's choice behind its convolution."""

    def __init__(self, game: Game, operation: Callable[[torch.Tensor], torch.Tensor]):
        super().__init__()
        self.convolution = nn.Conv2d(game.observation_shape[0], 8, 3, padding=1)
        self.operation = operation
        with torch.no_grad():
            size = operation(self.convolution(torch.zeros(1, *game.observation_shape))).flatten(1).shape[1]
        self.policy, self.value = nn.Linear(size, game.num_actions), nn.Linear(size, 1)

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        last = self.operation(self.convolution(observations)).flatten(1)
        return self.policy(last), torch.tanh(self.value(last)).squeeze(1)


class Reshaped(nn.Module):
    """A convolution that sees the numbers as another image."""

    def __init__(self, convolution: nn.Module, *shape: int):
        super().__init__()
        self.convolution, self.shape = convolution, shape

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.convolution(x.view(-1, *self.shape))


def activated_behind_ones_back(x: torch.Tensor) -> torch.Tensor:
    y = x + 0.5
    nn.functional.relu(y.flatten(1), inplace=True)
    return y + x


class InPlace(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x)
        y += torch.tanh(x)
        return y


@needs_node
def test_a_network_of_ones_own_answers_as_torch_does(tmp_path: Path):
    """With operations in place, and a change of shape that leaves the numbers where they are."""
    game = registry.load("tictactoe").game
    convolution = nn.Conv2d(game.observation_shape[0], 8, 3, padding=1)
    reshaped = Reshaped(nn.Conv2d(8, 8, (1, 3), padding=(0, 1)), 8, 1, 9)
    module = Perceptron(game, nn.Sequential(convolution, nn.ReLU(inplace=True), InPlace(), reshaped))
    compare(TorchNet(game, with_random_weights(module)), game, 100, tmp_path)


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (Reshaped(nn.Conv2d(1, 4, 3), 1, 8, 9), "the operation convolution.default of another form, and"),
        (Reshaped(nn.Conv2d(24, 4, (1, 3)), 24, 1, 3), "convolution.default of another form"),
        (Reshaped(nn.ConvTranspose2d(2, 4, 3), 2, 6, 6), "convolution.default of another form"),
        (lambda x: x * x, "the operation mul.Tensor of another form"),
        (lambda x: x[:, [0, 2, 1]], r"the operation index\.Tensor"),
        (activated_behind_ones_back, r"the operation relu_\.default on a tensor that is used again"),
    ],
)
def test_operations_that_would_be_written_wrongly_are_refused(operation: Any, reason: str):
    game = registry.load("tictactoe").game
    with pytest.raises(NetError, match=reason):
        program_of(TorchNet(game, OneOperation(game, operation)), game)


class Scaled(nn.Module):
    """Its first layer is so many times as strong; what follows makes up for it."""

    def __init__(self, scale: float):
        super().__init__()
        game = registry.load("tictactoe").game
        self.scale, self.hidden = scale, nn.Linear(int(np.prod(game.observation_shape)), 16)
        self.policy, self.value = nn.Linear(16, game.num_actions), nn.Linear(16, 1)
        self.hidden.weight.data *= scale
        self.hidden.bias.data *= scale

    def forward(self, x: Any) -> Any:
        x = torch.tanh(self.hidden(x.flatten(1)) * (1 / self.scale))
        return self.policy(x), torch.tanh(self.value(x))


@pytest.mark.parametrize(("scale", "largest"), [(1e6, r"\de\+05"), (1e-9, r"[\d.]+e-10"), (1e-6, r"[\d.]+e-07")])
def test_weights_that_half_precision_does_not_hold_are_refused(scale: float, largest: str):
    """Too large ones would be infinite, and too small ones 0 or a coarse step."""
    loaded = registry.load("tictactoe")
    with pytest.raises(
        NetError, match=f"keeps weights in float16, .* weights up to [\\d.]*{largest}: scale its layers"
    ):
        make_file(loaded, TorchNet(loaded.game, Scaled(scale)), "scaled", {})


def test_a_bias_that_half_precision_does_not_hold_is_the_one_that_is_named():
    loaded, module = registry.load("tictactoe"), Scaled(1.0)
    module.hidden.bias.data[0] = 1e6
    with pytest.raises(NetError, match=r"weights up to 1e\+06: scale its layers"):
        make_file(loaded, TorchNet(loaded.game, module), "scaled", {})


@pytest.mark.parametrize("scale", [1e4, 1.0, 1e-2])
def test_weights_that_half_precision_holds_change_little(scale: float):
    program = program_of(TorchNet(registry.load("tictactoe").game, Scaled(scale)), registry.load("tictactoe").game)
    np.testing.assert_allclose(in_half_precision(program).astype(float), program.weights, rtol=1e-3, atol=1e-7)


def test_networks_that_a_page_cannot_run_are_refused_with_the_reason():
    game = registry.load("tictactoe").game
    with pytest.raises(NetError, match=r"gelu\.default.*convolutions"):
        program_of(TorchNet(game, Softer(game)), game)
    with pytest.raises(NetError, match="only networks of torch, and this one is a Uniform"):
        program_of(Uniform(), game)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["club", "best"])
def test_half_precision_costs_no_accuracy(name: str):
    """A file has its weights in float16: Connect Four's accuracy stays within 0.2 points on 7,000 positions."""
    loaded = registry.load("connect4")
    accuracies = []
    for rounded in (False, True):
        net = az.load_net(name, loaded.game)
        net.frozen, net.dtype = net.frozen_float(), torch.float32
        if rounded:
            for parameter in net.frozen.parameters():
                parameter.data = parameter.data.half().float()
        evaluator = Evaluator(Kernels(loaded.game), net, sees_wins=True)
        player = PolicyPlayer(name, Kernels(loaded.game), [evaluator], seed=0)
        accuracies.append(make_benchmark(loaded.game)(player)["pons_accuracy"])
    print(accuracies)
    assert abs(accuracies[0] - accuracies[1]) < 0.002 and accuracies[0] > 0.7
