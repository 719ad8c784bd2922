"""A torch network as a `Program` of the page."""

from __future__ import annotations

import numpy as np

from alphazero.errors import NetError
from alphazero.game import Game
from alphazero.nets.kernels.layer_program import LayerProgram, Rows, TapLayer, check_layers, layers_of
from alphazero.nets.neural_net import NeuralNet
from alphazero.nets.torch_net import TorchNet
from alphazero.wasm.layers import CELLS, CHANNELS, Layer, Program


def program_of(net: NeuralNet, game: Game) -> Program:
    """The network's program; raises NetError for a network that is not of torch, or has an operation unknown here."""
    if not isinstance(net, TorchNet):
        raise NetError(f"a web page runs only networks of torch, and this one is a {type(net).__name__}")
    module = net.frozen_float().cpu()
    try:
        program = layers_of(module, game.observation_shape)
        check_layers(module, game.observation_shape)
    except NetError as error:
        raise NetError(f"a web page cannot run this network: {error}") from error
    return _Writer().program(program)


class _Writer:
    """Gives all layers their places in the memory of the page.

    A tensor is a row of channels for each cell, filled up to whole blocks of cells and of channels; after the last
    block of cells comes a row of zeros.
    """

    def __init__(self) -> None:
        self.weights: list[np.ndarray] = []
        self.num_weights = 0
        self.tables: dict[bytes, int] = {}
        """Where each list of cells is among all."""
        self.num_entries = 0
        self.starts: list[int] = []
        """Where each tensor begins in the activations, by its number."""
        self.num_activations = 0

    def program(self, program: LayerProgram) -> Program:
        self._add_rows(program.observation)
        layers = tuple(self._layer(layer) for layer in program.layers)
        policy, value = program.policy, program.value
        places = [self._place(policy, action) for action in range(policy.cells * policy.channels)]
        return Program(
            layers=layers, weights=np.concatenate(self.weights), num_activations=self.num_activations,
            tables=np.frombuffer(b"".join(self.tables), np.int32),
            num_planes=_up(program.observation.channels, CHANNELS),
            policy_places=np.array(places, np.int32), value_place=self._place(value, 0),
        )  # fmt: skip

    def _layer(self, layer: TapLayer) -> Layer:
        source, target = layer.source, layer.target
        start, stored = self._add_rows(target), _up(source.channels, CHANNELS)
        zero_row, outputs = _up(source.cells, CELLS), _up(target.channels, CHANNELS)
        cells = np.full((_up(target.cells, CELLS), layer.cells.shape[1]), -1, np.int32)
        cells[: target.cells] = layer.cells
        table = (np.where(cells < 0, np.int32(zero_row), cells) * np.int32(stored)).tobytes()
        if table not in self.tables:
            self.tables[table] = self.num_entries
            self.num_entries += len(table) // 4
        taps, inputs = layer.weights.shape[:2]
        packed = np.zeros((taps, inputs, outputs), np.float32)
        packed[..., : target.channels] = layer.weights
        blocks = packed.reshape(taps, inputs, outputs // CHANNELS, CHANNELS).transpose(2, 0, 1, 3)
        shift = np.zeros(outputs, np.float32)
        shift[: target.channels] = layer.bias
        return Layer(
            source=self.starts[source.number], target=start,
            residual=-1 if layer.residual is None else self.starts[layer.residual.number], table=self.tables[table],
            taps=taps, blocks=len(cells) // CELLS, weights=self._add_weights(blocks), bias=self._add_weights(shift),
            inputs=inputs, outputs=outputs, activation=layer.activation,
        )  # fmt: skip

    def _add_rows(self, rows: Rows) -> int:
        start = self.num_activations
        self.starts.append(start)
        self.num_activations += (_up(rows.cells, CELLS) + 1) * _up(rows.channels, CHANNELS)
        return start

    def _place(self, rows: Rows, index: int) -> int:
        """Where number `index` of the tensor is in the activations."""
        cell, channel = rows.place(index)
        return self.starts[rows.number] + cell * _up(rows.channels, CHANNELS) + channel

    def _add_weights(self, weights: np.ndarray) -> int:
        start = self.num_weights
        self.weights.append(weights.ravel())
        self.num_weights += weights.size
        return start


def _up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple
