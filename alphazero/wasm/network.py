"""A torch network in WebAssembly: its layers, those of `nets.layer_program`, as a `Program` and its compiled code.

A cell outside of the board is a row of zeros after the others. Numbers are float32, channels lie side by side, and
there are no fused operations, so that every browser computes the same bits. `add_network` gives the templates the names
of one network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from alphazero.errors import NetError
from alphazero.game import Game
from alphazero.nets.kernels.layer_program import RELU, TANH, LayerProgram, Rows, check_layers, layers_of
from alphazero.nets.neural_net import NeuralNet
from alphazero.nets.torch_net import TorchNet
from alphazero.wasm.engine import ModuleBuilder
from alphazero.wasm.mathematics import exponential

CELLS = 4
"""Output cells that are computed at once."""
LANES = 4
"""Numbers in a vector."""
VECTORS = 2
CHANNELS = LANES * VECTORS
"""Output channels that are computed at once."""


class NetworkArrays(NamedTuple):
    """The memory of a network."""

    weights: Annotated[np.ndarray, "float32[w]"]
    activations: Annotated[np.ndarray, "float32[a]"]  # all zero before the first position
    sums: Annotated[np.ndarray, "float32[tile]"]


class Layer(NamedTuple):
    """One layer as the compiled code takes it; offsets are in numbers."""

    source: int  # of the input's first row in the activations
    target: int
    residual: int  # -1: none
    table: int  # of the lists of cells: offsets of rows from the source, `taps` for each output cell
    taps: int
    blocks: int  # output cells / CELLS
    weights: int  # [outputs / CHANNELS, taps, inputs, CHANNELS]
    bias: int  # [outputs]
    inputs: int  # channels
    outputs: int  # channels, a multiple of CHANNELS
    activation: int


@dataclass(frozen=True)
class Program:
    """A network: all layers in their order, with the weights in float32."""

    layers: tuple[Layer, ...]
    tables: np.ndarray
    """`int32[t]`: the lists of cells."""
    weights: np.ndarray
    """`float32[w]`."""
    num_activations: int
    num_planes: int
    """Channels of a row of the input, which begins the activations."""
    policy_places: np.ndarray
    """`int32[A]`: where the logits are among the activations."""
    value_places: np.ndarray
    """`int32[V]`."""


def program_of(net: NeuralNet, game: Game) -> Program:
    """The network's program; raises NetError for a network that is not of torch, or has an operation unknown here."""
    if not isinstance(net, TorchNet):
        raise NetError(f"a web page runs only networks of torch, and this one is a {type(net).__name__}")
    module = net.frozen_float().cpu()
    try:
        check_layers(module, game.observation_shape)
        program = layers_of(module, game.observation_shape)
    except NetError as error:
        raise NetError(f"a web page cannot run this network: {error}") from error
    return _placed(program)


def _placed(program: LayerProgram) -> Program:
    """All layers with their places in the memory of the page.

    A tensor is a row of channels for each cell, filled up to whole blocks of cells and of channels; after the last
    block of cells comes a row of zeros.
    """
    tensors = [program.observation, *(layer.target for layer in program.layers)]
    sizes = [(_up(rows.cells, CELLS) + 1) * _up(rows.channels, CHANNELS) for rows in tensors]
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    layers, weights, tables = list[Layer](), list[np.ndarray](), dict[bytes, int]()
    for layer in program.layers:
        source, target, (taps, inputs) = layer.source, layer.target, layer.weights.shape[:2]
        cells = np.full((_up(target.cells, CELLS), taps), -1, np.int32)
        cells[: target.cells] = layer.cells
        rows = np.where(cells < 0, np.int32(_up(source.cells, CELLS)), cells)
        table = (rows * np.int32(_up(source.channels, CHANNELS))).tobytes()
        tables.setdefault(table, sum(map(len, tables)) // 4)
        outputs = _up(target.channels, CHANNELS)
        packed, shift = np.zeros((taps, inputs, outputs), np.float32), np.zeros(outputs, np.float32)
        packed[..., : target.channels], shift[: target.channels] = layer.weights, layer.bias
        blocks = packed.reshape(taps, inputs, outputs // CHANNELS, CHANNELS).transpose(2, 0, 1, 3)
        first = sum(map(len, weights))
        weights += [blocks.ravel(), shift]
        layers.append(
            Layer(
                source=starts[source.number], target=starts[target.number],
                residual=-1 if layer.residual is None else starts[layer.residual.number], table=tables[table],
                taps=taps, blocks=len(cells) // CELLS, weights=first, bias=first + blocks.size,
                inputs=inputs, outputs=outputs, activation=layer.activation,
            )
        )  # fmt: skip

    def places(rows: Rows) -> np.ndarray:
        """Where the numbers of the tensor are in the activations."""
        start, width = starts[rows.number], _up(rows.channels, CHANNELS)
        return np.array([start + cell * width + channel for cell, channel in rows.places()], np.int32)

    return Program(
        layers=tuple(layers), weights=np.concatenate(weights), num_activations=sum(sizes),
        tables=np.frombuffer(b"".join(tables), np.int32), num_planes=_up(program.observation.channels, CHANNELS),
        policy_places=places(program.policy), value_places=places(program.value),
    )  # fmt: skip


def _up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


@intrinsic
def add_tile(typing_context, cells, weights, sums, table, source, first_weight, taps, inputs):  # type: ignore[no-untyped-def]
    """Adds all taps of CELLS output cells and CHANNELS channels to `sums float32[CELLS * CHANNELS]`.

    `cells float32[...]` are the activations, and the input's rows begin at `source`. `table int32[...]` begins with the
    lists of these cells. The weights of these channels are `weights[first_weight:]`, `[taps, inputs, CHANNELS]`.
    """
    return types.none(cells, weights, sums, table, source, first_weight, taps, inputs), _generate_tile


def _generate_tile(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    arrays = zip(signature.args[:4], arguments[:4], strict=True)
    cells, weights, sums, table = (context.make_array(kind)(context, builder, value).data for kind, value in arrays)
    source, first_weight, taps, inputs = arguments[4:]
    number, vector, long = ir.FloatType(), ir.VectorType(ir.FloatType(), LANES), ir.IntType(64)
    nothing, first_lane = ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
    rows, vectors = range(CELLS), range(VECTORS)

    def at(array: Any, index: Any, kind: Any) -> Any:
        place = builder.gep(array, [index if isinstance(index, ir.Value) else long(index)])
        return builder.bitcast(place, kind.as_pointer())

    def load(array: Any, index: Any, kind: Any) -> Any:
        value = builder.load(at(array, index, kind))
        value.align = 4
        return value

    places = [[cgutils.alloca_once(builder, vector) for _ in vectors] for _ in rows]
    for i in rows:
        for j in vectors:
            builder.store(load(sums, CHANNELS * i + LANES * j, vector), places[i][j])
    with cgutils.for_range(builder, taps) as tap:
        starts = []
        for i in rows:
            row = load(table, builder.add(builder.mul(long(i), taps), tap.index), ir.IntType(32))
            starts.append(builder.add(source, builder.sext(row, long)))
        of_tap = builder.add(first_weight, builder.mul(builder.mul(tap.index, inputs), long(CHANNELS)))
        with cgutils.for_range(builder, inputs) as channel:
            of_channel = builder.add(of_tap, builder.mul(channel.index, long(CHANNELS)))
            factors = [load(weights, builder.add(of_channel, long(LANES * j)), vector) for j in vectors]
            for i in rows:
                one = load(cells, builder.add(starts[i], channel.index), number)
                same = builder.insert_element(nothing, one, ir.IntType(32)(0))
                same = builder.shuffle_vector(same, nothing, first_lane)
                for j in vectors:
                    total = builder.load(places[i][j])
                    builder.store(builder.fadd(total, builder.fmul(same, factors[j])), places[i][j])
    for i in rows:
        for j in vectors:
            stored = builder.store(builder.load(places[i][j]), at(sums, CHANNELS * i + LANES * j, vector))
            stored.align = 4
    return context.get_dummy_value()


@njit
def tangent(x):
    """The hyperbolic tangent of a float32."""
    power = exponential(2.0 * min(max(np.float64(x), -20.0), 20.0))
    return np.float32((power - 1.0) / (power + 1.0))


def _run_layer(index):
    """Computes one layer."""
    arrays = network()
    cells, sums = arrays.activations, arrays.sums
    source, target, residual, table = LAYERS[index, 0], LAYERS[index, 1], LAYERS[index, 2], LAYERS[index, 3]
    taps, blocks, weights, bias = LAYERS[index, 4], LAYERS[index, 5], LAYERS[index, 6], LAYERS[index, 7]
    inputs, outputs, activation = LAYERS[index, 8], LAYERS[index, 9], LAYERS[index, 10]
    for first in range(0, outputs, CHANNELS):
        for block in range(blocks):
            for i in range(CELLS):
                place = (CELLS * block + i) * outputs + first
                for j in range(CHANNELS):
                    added = cells[residual + place + j] if residual >= 0 else np.float32(0.0)
                    sums[CHANNELS * i + j] = arrays.weights[bias + first + j] + added
            of_cells = CELL_TABLES[table + CELLS * block * taps :]
            add_tile(cells, arrays.weights, sums, of_cells, source, weights + first * taps * inputs, taps, inputs)
            for i in range(CELLS):
                place = target + (CELLS * block + i) * outputs + first
                for j in range(CHANNELS):
                    value = sums[CHANNELS * i + j]
                    if activation == RELU:
                        value = max(value, np.float32(0.0))
                    elif activation == TANH:
                        value = tangent(value)
                    cells[place + j] = value


def _ask_network(planes, legal_mask, weights, values):
    """Writes the probabilities of the legal actions, 0 for the others, and the values, in [-1, 1].

    `planes float32[P, H, W]`, `legal_mask bool[A]`, `weights float32[A]`, `values float32[V]`.
    """
    cells, width = network().activations, planes.shape[2]
    for plane in range(planes.shape[0]):
        for row in range(planes.shape[1]):
            for column in range(width):
                cells[(row * width + column) * NUM_PLANES + plane] = planes[plane, row, column]
    for index in range(len(LAYERS)):
        run_layer(index)
    peak = np.float32(-np.inf)
    for action in range(len(weights)):
        if legal_mask[action]:
            peak = max(peak, cells[POLICY_PLACES[action]])
    total = 0.0
    for action in range(len(weights)):
        weights[action] = np.float32(0.0)
        if legal_mask[action]:
            share = exponential(np.float64(cells[POLICY_PLACES[action]]) - np.float64(peak))
            weights[action] = np.float32(share)
            total += share
    for action in range(len(weights)):
        weights[action] = np.float32(np.float64(weights[action]) / total)
    for seat in range(len(values)):
        values[seat] = min(max(cells[VALUE_PLACES[seat]], np.float32(-1.0)), np.float32(1.0))


def add_network(builder: ModuleBuilder, program: Program) -> None:
    """Makes `ask_network` known to the engine's templates. The page writes `program.weights` to the place `weights`."""
    arrays = builder.arrays(NetworkArrays, w=len(program.weights), a=program.num_activations, tile=CELLS * CHANNELS)
    builder.readable["weights"] = arrays.weights
    builder.name(
        network=builder.layout.placed(arrays),
        LAYERS=np.array(program.layers, np.int64),
        CELL_TABLES=program.tables,
        POLICY_PLACES=program.policy_places,
        VALUE_PLACES=program.value_places,
        NUM_PLANES=program.num_planes,
    )
    builder.bind(_run_layer, _ask_network)
