"""Any module that is a policy and a value plays and learns; of any other, one sentence says what is wrong."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from alphazero.errors import NetError
from alphazero.nets.torch_net import TorchCudaEvaluator, TorchNet
from games.connect4.game import Connect4
from games.tictactoe.game import TicTacToe
from tests.nets.batches import random_batch

GAME = Connect4()
PLANES, HEIGHT, WIDTH = GAME.observation_shape
CELLS = HEIGHT * WIDTH


class Mlp(nn.Module):
    """`view`, which takes no other layout than the usual one, and values `[n, 1]`."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(PLANES * CELLS, 32)
        self.policy, self.value = nn.Linear(32, 7), nn.Linear(32, 1)

    def forward(self, x):
        x = torch.relu(self.hidden(x.view(-1, PLANES * CELLS)))
        return self.policy(x), torch.tanh(self.value(x))


class Transformer(nn.Module):
    """A token for each cell."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(PLANES, 16)
        self.place = nn.Parameter(0.02 * torch.randn(1, CELLS, 16))
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.policy, self.value = nn.Linear(16, 7), nn.Linear(16, 1)

    def forward(self, x):
        x = self.layers(self.embed(x.flatten(2).mT) + self.place).mean(dim=1)
        return self.policy(x), torch.tanh(self.value(x)).squeeze(1)


class ViewAfterConvolution(nn.Module):
    """As in many a textbook: with channels last, `view` would fail."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(PLANES, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
        self.policy, self.value = nn.Linear(8 * 20, 7), nn.Linear(8 * 20, 1)

    def forward(self, x):
        x = self.stem(x)
        x = x.view(-1, 8 * 20)
        return torch.log_softmax(self.policy(x), dim=1), torch.tanh(self.value(x))


class Odd(nn.Module):
    """Gives a list; has parameters of four dimensions without a convolution, frozen, unused and with gaps; one table
    makes its bf16 fail; values leave [-1, 1]."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2, 3, 4, 5))
        self.gaps = nn.Parameter(torch.randn(7, PLANES).T)
        self.unused = nn.Linear(3, 3)
        self.frozen = nn.Parameter(torch.ones(7), requires_grad=False)
        self.value = nn.Linear(PLANES, 1)
        self.table = [torch.eye(PLANES)]  # neither parameter nor buffer: it stays in float32

    def forward(self, x):
        x = x.mean(dim=(2, 3)) @ self.table[0]
        return [x @ self.gaps * self.frozen + self.scale.view(-1)[:7], 50 * self.value(x).squeeze(1) + 3]


@pytest.mark.parametrize("make", [Mlp, Transformer, ViewAfterConvolution, Odd])
def test_any_policy_and_value_plays_learns_and_goes_to_disk(make, tmp_path):
    torch.manual_seed(0)
    net = TorchNet(GAME, make(), {"size": 3})
    trainer = net.trainer(threads=2)
    batch = random_batch(GAME, 32)
    first, *_, last = (trainer.train_step(batch, 3e-3) for _ in range(30))
    assert float(last["policy_loss"]) < float(first["policy_loss"])
    assert float(last["value_loss"]) < float(first["value_loss"])
    trainer.finish()
    priors, values = net.evaluate(batch.observations, batch.legal_masks)
    assert priors.shape == (32, 7) and values.shape == (32,) and (np.abs(values) <= 1).all()
    np.testing.assert_allclose(priors.sum(axis=1), 1, atol=1e-5)

    found = np.full_like(priors, -1), np.full_like(values, 9)
    TorchCudaEvaluator(net)(batch.observations, batch.legal_masks, *found)  # the processor stands for the GPU
    np.testing.assert_allclose(found[0], priors, atol=2e-2)
    np.testing.assert_allclose(found[1], values, atol=2e-2)

    net.save(tmp_path / "net.safetensors", {})
    trainer.save(tmp_path / "trainer.safetensors")
    for each in (net.module, trainer.module):
        for parameter in each.parameters():
            parameter.data.zero_()
    net.load(tmp_path / "net.safetensors")
    np.testing.assert_array_equal(net.evaluate(batch.observations, batch.legal_masks)[0], priors)
    trainer.load(tmp_path / "trainer.safetensors")
    again = float(trainer.train_step(batch, 3e-3)["policy_loss"])
    assert again == pytest.approx(float(last["policy_loss"]), abs=0.1)


class StandardizedConvolution(nn.Conv2d):
    """Computes its filters from its weights, as other people's layers do."""

    def forward(self, x):
        weight = self.weight - self.weight.mean(dim=(1, 2, 3), keepdim=True)
        return self._conv_forward(x, weight / weight.std(dim=(1, 2, 3), keepdim=True), self.bias)


def hooked(layer):
    layer.register_forward_hook(lambda layer, inputs, output: output.square())
    return layer


class Normed(nn.Module):
    """A batch norm that has seen positions after a convolution, in a sequence."""

    def __init__(self, convolution):
        super().__init__()
        norm = nn.BatchNorm2d(8)
        nn.init.uniform_(norm.running_mean, -1, 1)
        nn.init.uniform_(norm.running_var, 0.5, 2)
        nn.init.uniform_(norm.weight, 0.5, 2)
        nn.init.uniform_(norm.bias, -1, 1)
        self.stem = nn.Sequential(nn.Conv2d(PLANES, 8, 3, padding=1), nn.Sequential(convolution, norm), nn.ReLU())
        self.policy, self.value = nn.Linear(8 * CELLS, 7), nn.Linear(8 * CELLS, 1)

    def forward(self, x):
        x = self.stem(x).flatten(1)
        return self.policy(x), torch.tanh(self.value(x))


class Apart(Normed):
    """Uses what the convolution gives without its batch norm, too: its sequence is no more than a list."""

    def forward(self, x):
        convolution, norm = self.stem[1]
        x = convolution(self.stem[0](x))
        x = torch.relu(norm(x) + x).flatten(1)
        return self.policy(x), torch.tanh(self.value(x))


class Overwritten(nn.Module):
    """Changes a tensor of which `flatten` has given a view; with channels last it gives a copy."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(PLANES, 8, 3, padding=1)
        self.policy, self.value = nn.Linear(8 * CELLS, 7), nn.Linear(8 * CELLS, 1)

    def forward(self, x):
        x = self.stem(x)
        rows = x.flatten(1)
        x.relu_()
        return self.policy(rows), torch.tanh(self.value(rows))


NORMED = {
    "plain": lambda: Normed(nn.Conv2d(8, 8, 3, padding=1)),
    "standardized": lambda: Normed(StandardizedConvolution(8, 8, 3, padding=1)),
    "weight norm": lambda: Normed(nn.utils.parametrizations.weight_norm(nn.Conv2d(8, 8, 3, padding=1))),
    "apart": lambda: Apart(nn.Conv2d(8, 8, 3, padding=1)),
    "hook": lambda: Normed(hooked(nn.Conv2d(8, 8, 3, padding=1))),
}


@pytest.mark.parametrize("make", [Mlp, Transformer, ViewAfterConvolution, Odd, Overwritten, *NORMED.values()])
def test_what_plays_is_close_to_the_module_itself(make):
    torch.manual_seed(0)
    module, batch = make().eval(), random_batch(GAME, 90)
    with torch.no_grad():
        logits, values = module(torch.from_numpy(batch.observations))
    net = TorchNet(GAME, module)
    exact = torch.softmax(logits.masked_fill(~torch.from_numpy(batch.legal_masks), -1e9), dim=1).numpy()
    priors, found = net.evaluate(batch.observations, batch.legal_masks)
    assert np.abs(priors - exact).max() < 0.02
    assert np.abs(found - values.flatten().clamp(-1, 1).numpy()).max() < 0.03


def test_what_is_frozen_or_unused_stays_as_it_is():
    net = TorchNet(GAME, Odd())
    trainer = net.trainer(weight_decay=0.0)
    before = {name: tensor.clone() for name, tensor in trainer.module.state_dict().items()}
    for seed in range(3):
        trainer.train_step(random_batch(GAME, 16, seed), 1e-2)
    moved = {name for name, tensor in trainer.module.state_dict().items() if not torch.equal(tensor, before[name])}
    assert moved == {"scale", "gaps", "value.weight", "value.bias"}


def test_layouts_and_precision_are_those_that_the_module_can():
    convolutions = nn.Conv2d(PLANES, 8, 3, padding=1)

    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.policy, self.value = convolutions, nn.Linear(8, 7), nn.Linear(8, 1)

        def forward(self, x):
            x = self.stem(x).mean(dim=(2, 3))
            return self.policy(x), self.value(x)

    assert TorchNet(GAME, Plain()).layout == torch.channels_last
    for module in (Mlp(), Transformer(), ViewAfterConvolution(), Odd()):
        assert TorchNet(GAME, module).layout == torch.contiguous_format
    assert TorchNet(GAME, Odd()).dtype == torch.float32
    assert TorchNet(GAME, Mlp().double()).module.hidden.weight.dtype == torch.float32


class Gives(nn.Module):
    """Gives what a function makes of the batch's size."""

    def __init__(self, answer):
        super().__init__()
        self.answer, self.weight = answer, nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.answer(len(x))


@pytest.mark.parametrize(
    ("answer", "given"),
    [
        (lambda n: (torch.zeros(n, 10), torch.zeros(n)), r"float32\[2, 10\] and float32\[2\]$"),
        (lambda n: (torch.zeros(n, 9), torch.zeros(n, 3)), r"float32\[2, 9\] and float32\[2, 3\]$"),
        (lambda n: (torch.zeros(9), torch.zeros(1)), r"float32\[9\] and float32\[1\]$"),
        (lambda n: torch.zeros(n, 9), r"float32\[2, 9\]$"),
        (lambda n: (torch.zeros(n, 9).squeeze(), torch.zeros(n)), r"n = 1, float32\[9\] and float"),
        (lambda n: (torch.zeros(n, 9), 0.5), "and a float$"),
        (lambda n: {"policy": torch.zeros(n, 9)}, "a dict$"),
        (lambda n: (torch.zeros(n, 9, dtype=torch.int64), torch.zeros(n)), r"int64\[2, 9\] and"),
        (lambda n: (torch.full((n, 9), torch.nan), torch.zeros(n)), "not finite"),
        (lambda n: 1 / 0, "ZeroDivisionError: division by zero"),
    ],
)
def test_what_is_no_policy_and_value_is_said_in_one_sentence(answer, given):
    with pytest.raises(NetError, match=given) as caught:
        TorchNet(TicTacToe(), Gives(answer))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 600


def test_the_value_of_one_position_may_be_a_number_alone():
    net = TorchNet(TicTacToe(), Gives(lambda n: (torch.zeros(n, 9), torch.zeros(n, 1).squeeze())))
    assert net.evaluate(net._example[:1].numpy(), np.ones((1, 9), bool))[1].shape == (1,)


def test_what_is_no_module_or_cannot_learn_is_refused():
    with pytest.raises(NetError, match="takes a Game and a torch module, not a Connect4 and a function"):
        TorchNet(GAME, lambda x: x)  # type: ignore[arg-type]
    module = Mlp().requires_grad_(False)
    with pytest.raises(NetError, match="Mlp has no parameters that can learn"):
        TorchNet(GAME, module).trainer()


class Closed(Mlp):
    """Goes on with the parameters of the module of which it is a copy."""

    def __init__(self):
        super().__init__()
        self.answer = lambda x: Mlp.forward(self, x)

    def forward(self, x):
        return self.answer(x)


def test_a_module_whose_copies_cannot_learn_is_refused():
    with pytest.raises(NetError, match="the answers of Closed do not depend on .*: let `forward` use"):
        TorchNet(GAME, Closed()).trainer().train_step(random_batch(GAME, 16, 0), 1e-2)


def test_parameters_that_learn_nothing_are_named_once(caplog):
    module = Mlp()
    module.forgotten = nn.Linear(3, 3)
    trainer = TorchNet(GAME, module).trainer(threads=2)
    for seed in range(2):
        trainer.train_step(random_batch(GAME, 16, seed), 1e-2)
    sentence = "the answers of Mlp do not depend on forgotten.weight, forgotten.bias, so these learn nothing"
    assert caplog.messages == [sentence]


class Body(nn.Module):
    """Two heads after any layer that gives 8 numbers."""

    def __init__(self, layer):
        super().__init__()
        self.layer, self.policy, self.value = layer, nn.Linear(8, 7), nn.Linear(8, 1)

    def forward(self, x):
        x = self.layer(x.flatten(1))
        return self.policy(x), torch.tanh(self.value(x))


def test_weights_must_have_their_shapes_and_be_able_to_learn():
    module = Body(nn.LazyLinear(8))
    with pytest.raises(NetError, match="Body must have only tensors .* with shapes"):
        TorchNet(GAME, module)
    module(torch.zeros(2, *GAME.observation_shape))
    TorchNet(GAME, module)
    with torch.inference_mode(), pytest.raises(NetError, match="inference_mode"):
        TorchNet(GAME, Mlp())


def test_a_policy_that_is_a_parameter_and_masks_moves_by_minus_infinity_plays():
    """A view of a parameter has gradients even where torch counts none."""

    class SamePolicy(nn.Module):
        def __init__(self):
            super().__init__()
            self.logits, self.value = nn.Parameter(torch.arange(7.0)), nn.Linear(PLANES * CELLS, 1)

        def forward(self, x):
            logits = self.logits.expand(x.shape[0], 7).masked_fill(x[:, :2, 0].sum(1) > 0, -torch.inf)
            return logits, torch.tanh(self.value(x.flatten(1)))

    net, position = TorchNet(GAME, SamePolicy()), GAME.start()
    priors, _ = net.evaluate(position.observation[None], position.legal_mask[None])
    assert priors.argmax() == 6


@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated")
def test_a_module_that_cannot_be_copied_is_told_so():
    with pytest.raises(NetError, match="^Body .* its copies; it fails by RuntimeError: Only Tensors"):
        TorchNet(GAME, Body(nn.utils.weight_norm(nn.Linear(PLANES * CELLS, 8))))


def test_a_state_that_is_no_tensor_is_refused():
    class Counting(nn.Linear):
        def get_extra_state(self):
            return {"calls": 3}

        def set_extra_state(self, state):
            pass

    with pytest.raises(NetError, match=r"^Body must have only tensors in its state_dict"):
        TorchNet(GAME, Body(Counting(PLANES * CELLS, 8)))


def test_arrays_that_cannot_be_written_are_taken_without_a_warning():
    position, net = GAME.position([3]), TorchNet(GAME, Mlp())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        priors, _ = net.evaluate(position.observation[None], position.legal_mask[None])
    expected, _ = net.evaluate(position.observation[None].copy(), position.legal_mask[None].copy())
    np.testing.assert_array_equal(priors, expected)
