"""Winograd's convolutions (Lavin and Gray 2016): 3x3 convolutions of a whole tile with fewer multiplications.

Of a tile of m numbers in a row and three weights g, y[i] = sum over k of g[k] d[i + k] takes 3 m multiplications. It is
a product of polynomials, and these can be multiplied value by value at m + 1 points and at infinity:

    y = back @ ((filters @ g) * (into @ d))

In two dimensions it is done along columns, then along rows, for tiles of m x n numbers: with 4x4 tiles 36
multiplications do the work of 144. The sums over channels come before `back`, so they are products of matrices.

The inner loops are vector code, as numba cannot be trusted to find the vectors in them by itself. Numbers are float32,
and vectors have LANES of them. A product and a sum are one operation, with one rounding.

A `board` is (height, width, tall, wide): its size, and that of its tiles. `columns float32[TILE widest]` holds zeros,
then a tile between its two transformations; `offsets int64[6 or more]` is scratch space.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any, NamedTuple

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from alphazero.game.kernels import kernel

LANES = 8
"""Numbers in a vector; where the processor's own are shorter, the compiler takes two."""
ROWS = 4
PANEL = 16
"""`multiply` computes ROWS rows of PANEL numbers, for which the sums stay in sixteen registers."""

GROUP = 4
"""Boards whose tiles are multiplied at once."""
LEARNED = 16
"""The same for gradients of filters, whose sums take more memory than the second-level cache has."""
TILE = 37
"""Rows of the widest tensor in `columns`: one of zeros, and 6 x 6 points at most."""
POINTS = {3: (0, 1, -1, 2), 4: (0, 1, -1, 2, -2)}
"""Where the polynomials are evaluated, by the length of a tile. Small numbers, since errors grow with them."""

_long, _number, _vector = ir.IntType(64), ir.FloatType(), ir.VectorType(ir.FloatType(), LANES)


class Matrices(NamedTuple):
    """For tiles of length m, with t = m + 2 points."""

    into: np.ndarray
    """`float64[t, t]`, for what the tile depends on."""
    filters: np.ndarray
    """`float64[t, 3]`, for the weights."""
    back: np.ndarray
    """`float64[m, t]`, for the products."""


@functools.cache
def matrices(length: int) -> Matrices:
    """The matrices of Cook and Toom for tiles of that length.

    Row j of `into` has the coefficients of the polynomial that is zero at all points but j, and row j of `filters` the
    powers of point j over what that polynomial is there. The last rows are for infinity.
    """
    points = np.array(POINTS[length], np.float64)
    others = [np.delete(points, j) for j in range(len(points))]
    into, filters, back = np.zeros((length + 2, length + 2)), np.zeros((length + 2, 3)), np.zeros((length, length + 2))
    into[:-1, :-1], into[-1] = [np.poly(zeros)[::-1] for zeros in others], np.poly(points)[::-1]
    filters[:-1] = [at ** np.arange(3) / np.prod(at - zeros) for at, zeros in zip(points, others, strict=True)]
    back[:, :-1] = np.vander(points, length, increasing=True).T
    filters[-1, -1] = back[-1, -1] = 1.0
    return Matrices(into + 0.0, filters + 0.0, back)  # without zeros that are negative


def tile_length(size: int) -> int:
    """The length of the tiles that cover `size` numbers with the fewest multiplications; of two, the shorter."""
    return min(POINTS, key=lambda length: (-(-size // length) * (length + 2), length))


# functions, and no class: what is compiled is kept under a name that says which functions wrote it


def has_fma() -> bool:
    """The processor multiplies and adds at once; where it does not, that is a slow function of the C library."""
    try:
        return bool(binding.get_host_cpu_features().get("fma", True))  # processors that are no x86 do not say it
    except RuntimeError:
        return True


def _array(context: Any, builder: Any, signature: Any, arguments: Any, index: int) -> Any:
    """The first number of the array that is the argument of this index."""
    return context.make_array(signature.args[index])(context, builder, arguments[index]).data


def _load(builder: Any, array: Any, place: Any, kind: Any = _vector) -> Any:
    value = builder.load(_pointer(builder, array, place, kind))
    value.align = 8 if kind is _long else 4
    return value


def _store(builder: Any, value: Any, array: Any, place: Any) -> None:
    builder.store(value, _pointer(builder, array, place, _vector)).align = 4


def _pointer(builder: Any, array: Any, place: Any, kind: Any) -> Any:
    return builder.bitcast(builder.gep(array, [place]), kind.as_pointer())


def _fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c."""
    kind = ir.FunctionType(_vector, [_vector] * 3)
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{LANES}f32"), [a, b, c])


def _in_all_lanes(builder: Any, number: Any) -> Any:
    nothing = ir.Constant(_vector, ir.Undefined)
    single = builder.insert_element(nothing, number, ir.IntType(32)(0))
    return builder.shuffle_vector(single, nothing, ir.Constant(ir.VectorType(ir.IntType(32), LANES), None))


@intrinsic
def multiply(  # type: ignore[no-untyped-def]
    typing_context, rows, offsets, stride, taps, inputs, weights, first, weight_stride, out, place, out_stride, adds
):
    """Writes ROWS x PANEL sums over taps and inputs: row r goes to `out[place + r out_stride:]`, `out float32[...]`.

    For tap t and input i the number of row r is `rows[offsets[ROWS t + r] + i stride]`, `rows float32[...]` and
    `offsets int64[...]`. Its PANEL weights begin at `weights[first + (t inputs + i) weight_stride]`. With `adds` 1
    the sums are added to what is there.
    """
    arguments = (rows, offsets, stride, taps, inputs, weights, first, weight_stride, out, place, out_stride, adds)
    return types.none(*arguments), _generate_multiply


def _generate_multiply(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    rows, offsets, weights, out = (_array(context, builder, signature, arguments, index) for index in (0, 1, 5, 8))
    stride, taps, inputs, first, weight_stride = (arguments[index] for index in (2, 3, 4, 6, 7))
    place, out_stride, adds = arguments[9:]
    vectors, sums = range(PANEL // LANES), []
    for r in range(ROWS):
        at_row = builder.add(place, builder.mul(_long(r), out_stride))
        sums.append([(cgutils.alloca_once(builder, _vector), builder.add(at_row, _long(LANES * j))) for j in vectors])
    for total, at in itertools.chain(*sums):
        builder.store(ir.Constant(_vector, [0.0] * LANES), total)
        with builder.if_then(cgutils.is_not_null(builder, adds)):
            builder.store(_load(builder, out, at), total)
    with cgutils.for_range(builder, taps) as tap:
        of_tap = builder.add(first, builder.mul(builder.mul(tap.index, inputs), weight_stride))
        at_offset = builder.mul(tap.index, _long(ROWS))
        starts = [_load(builder, offsets, builder.add(at_offset, _long(r)), _long) for r in range(ROWS)]
        with cgutils.for_range(builder, inputs) as channel:
            at_factors = builder.add(of_tap, builder.mul(channel.index, weight_stride))
            factors = [_load(builder, weights, builder.add(at_factors, _long(LANES * j))) for j in vectors]
            at_number = builder.mul(channel.index, stride)
            for start, row in zip(starts, sums, strict=True):
                same = _in_all_lanes(builder, _load(builder, rows, builder.add(start, at_number), _number))
                for factor, (total, _) in zip(factors, row, strict=True):
                    builder.store(_fma(builder, same, factor, builder.load(total)), total)
    for total, at in itertools.chain(*sums):
        _store(builder, builder.load(total), out, at)
    return context.get_dummy_value()


INTO, BACK, FROM = range(3)
"""From numbers to points, from points to numbers, and the transpose of that, for gradients."""


@intrinsic
def transform(typing_context, kind, tile, rows, offsets, out, place, stride, length):  # type: ignore[no-untyped-def]
    """Transforms a side of a tile, of `tile` numbers, each of which is a vector of `length`, a multiple of LANES.

    Component k of `rows float32[...]` begins at `offsets[k]`, `offsets int64[...]`. Component i goes to
    `out[place + i stride:]`, `out float32[...]`.
    """
    return types.none(kind, tile, rows, offsets, out, place, stride, length), _generate_transform


def _generate_transform(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    rows, offsets, out = (_array(context, builder, signature, arguments, index) for index in range(2, 5))
    wanted, tile, place, stride, length = (arguments[index] for index in (0, 1, 5, 6, 7))
    for size in POINTS:
        found = matrices(size)
        for kind, matrix in ((INTO, found.into), (BACK, found.back), (FROM, found.back.T)):
            is_kind = builder.icmp_signed("==", wanted, wanted.type(kind))
            is_size = builder.icmp_signed("==", tile, tile.type(size))
            with builder.if_then(builder.and_(is_kind, is_size)):
                starts = [_load(builder, offsets, _long(k), _long) for k in range(matrix.shape[1])]
                with cgutils.for_range(builder, builder.udiv(length, _long(LANES))) as step:
                    at = builder.mul(step.index, _long(LANES))
                    parts = [_load(builder, rows, builder.add(start, at)) for start in starts]
                    for i, weights in enumerate(matrix):
                        at_row = builder.add(builder.add(place, at), builder.mul(_long(i), stride))
                        _store(builder, _sum(builder, weights, parts), out, at_row)
    return context.get_dummy_value()


def _sum(builder: Any, weights: np.ndarray, parts: list[Any]) -> Any:
    """The parts times their weights, from the first to the last."""
    total = None
    for weight, part in zip(weights.tolist(), parts, strict=True):
        factor = ir.Constant(_vector, [weight] * LANES)
        if weight == 0.0:
            continue
        if total is None:
            total = part if weight == 1.0 else builder.fmul(part, factor)
        elif abs(weight) == 1.0:
            total = (builder.fadd if weight > 0 else builder.fsub)(total, part)
        else:
            total = _fma(builder, part, factor, total)
    return total


@kernel
def num_tiles(board):
    """The number of tiles that cover the board."""
    height, width, tall, wide = board
    return -(-height // tall) * -(-width // wide)


@kernel
def spread_tile(kind, numbers, cells, board, tile, columns, offsets, spread, place, point_stride):
    """Writes what a tile makes at its points: those of point p to `spread[place + p point_stride:]`.

    INTO takes all that the tile's results depend on, FROM the gradient of its results. `cells` says where the channels
    of cell c are in `numbers float32[...]`, which begin with zeros: at `start + c stride`, and how many.
    """
    start, stride, channels = cells
    height, width, tall, wide = board
    tile_row, tile_column = divmod(tile, -(-width // wide))
    edge = 1 if kind == INTO else 0
    top, left, rows, across = tile_row * tall - edge, tile_column * wide - edge, tall + 2 * edge, wide + 2 * edge
    base, points = len(columns) // TILE, wide + 2
    for a in range(rows):
        if 0 <= top + a < height:
            for b in range(across):
                cell = (top + a) * width + left + b
                offsets[b] = start + cell * stride if 0 <= left + b < width else 0
            transform(kind, wide, numbers, offsets, columns, base + a * points * channels, channels, channels)
    for b in range(points):
        for a in range(rows):
            offsets[a] = base + (a * points + b) * channels if 0 <= top + a < height else 0
        transform(kind, tall, columns, offsets, spread, place + b * point_stride, points * point_stride, channels)


@kernel
def multiply_points(spread, rows, inputs, filters, first, outputs, board, offsets, products):
    """Multiplies `spread [rows, points, inputs]` by the filters of each point, to `products [rows, points, outputs]`.

    The filters are `filters[first:]`, `float32[points, outputs / PANEL, inputs, PANEL]`. `products` has room for as
    many rows as the next multiple of ROWS.
    """
    _, _, tall, wide = board
    points = (tall + 2) * (wide + 2)
    for point in range(points):
        for channel in range(0, outputs, PANEL):
            panel = first + (point * outputs + channel) * inputs
            for row in range(0, rows, ROWS):
                for r in range(ROWS):
                    offsets[r] = (min(row + r, rows - 1) * points + point) * inputs
                place = (row * points + point) * outputs + channel
                multiply(spread, offsets, 1, 1, inputs, filters, panel, PANEL, products, place, points * outputs, 0)


@kernel
def gather_tile(products, row, channels, board, rows, columns, offsets, lines):
    """Writes the first `rows` of a tile to `lines float32[tall, wide, channels]`; its products are `products[row]`."""
    _, _, tall, wide = board
    points, base = wide + 2, len(columns) // TILE
    place = row * (tall + 2) * points * channels
    for b in range(points):
        for a in range(tall + 2):
            offsets[a] = place + (a * points + b) * channels
        transform(BACK, tall, products, offsets, columns, base + b * channels, points * channels, channels)
    for a in range(rows):
        for b in range(points):
            offsets[b] = base + (a * points + b) * channels
        transform(BACK, wide, columns, offsets, lines, a * wide * channels, channels, channels)


@kernel
def transform_filters(weights, columns, rows, filters):
    """Writes `filters float32[points, n]` of `weights float32[9, n]`, by the matrices `float64[t, 3]` of both sides."""
    for a in range(len(columns)):
        for b in range(len(rows)):
            out = filters[a * len(rows) + b]
            for j in range(out.size):
                total = 0.0
                for i in range(3):
                    left, middle, right = weights[3 * i, j], weights[3 * i + 1, j], weights[3 * i + 2, j]
                    total += columns[a, i] * (rows[b, 0] * left + rows[b, 1] * middle + rows[b, 2] * right)
                out[j] = total


@kernel
def convolve_boards(boards, filters, board, workspace, results):
    """3x3 convolutions of `boards float32[n, cells, inputs]` to `results float32[n, cells, outputs]`.

    `filters float32[...]` as in `multiply_points`. `workspace` is (padded, spread, products, columns, lines, offsets);
    its first array begins with zeros for inputs and for outputs.
    """
    padded, spread, products, columns, lines, offsets = workspace
    height, width, tall, wide = board
    inputs, outputs, tiles = boards.shape[2], results.shape[2], num_tiles(board)
    base, points = max(inputs, outputs), (tall + 2) * (wide + 2)
    for first in range(0, len(boards), GROUP):
        count = min(GROUP, len(boards) - first)
        for i in range(count):
            pad(boards[first + i].reshape(-1), padded, base)
            for tile in range(tiles):
                cells = (base, inputs, inputs)
                place = (i * tiles + tile) * points * inputs
                spread_tile(INTO, padded, cells, board, tile, columns, offsets, spread, place, inputs)
        multiply_points(spread, count * tiles, inputs, filters, 0, outputs, board, offsets, products)
        for i in range(count):
            result = results[first + i].reshape(-1)
            for tile in range(tiles):
                tile_row, tile_column = divmod(tile, -(-width // wide))
                top, left = tile_row * tall, tile_column * wide
                rows = min(tall, height - top)
                gather_tile(products, i * tiles + tile, outputs, board, rows, columns, offsets, lines)
                for a in range(rows):
                    place = ((top + a) * width + left) * outputs
                    line = result[place : place + min(wide, width - left) * outputs]
                    for j in range(line.size):
                        line[j] = lines[a * wide * outputs + j]


@kernel
def add_gradients(boards, gradients, board, workspace, filters):
    """Adds the gradient of the filters at each point to `filters float32[points, inputs, outputs]`, made flat.

    `boards float32[n, cells, inputs]` are what was convolved, `gradients float32[n, cells, outputs]` those of the
    results. `workspace` as in `convolve_boards`, whose first array begins with zeros for inputs and for outputs.
    """
    padded, spread, products, columns, _, offsets = workspace
    _, _, tall, wide = board
    inputs, outputs, tiles = boards.shape[2], gradients.shape[2], num_tiles(board)
    points, base = (tall + 2) * (wide + 2), max(inputs, outputs)
    # a row more, or the numbers of one tile would all fall on the same place of the first-level cache
    to_spread, to_products = (LEARNED * tiles + 1) * inputs, (LEARNED * tiles + 1) * outputs
    for first in range(0, len(boards), LEARNED):
        count = min(LEARNED, len(boards) - first)
        for i in range(count):
            pad(boards[first + i].reshape(-1), padded, base)
            for tile in range(tiles):
                cells, row = (base, inputs, inputs), i * tiles + tile
                spread_tile(INTO, padded, cells, board, tile, columns, offsets, spread, row * inputs, to_spread)
            pad(gradients[first + i].reshape(-1), padded, base)
            for tile in range(tiles):
                cells, row = (base, outputs, outputs), i * tiles + tile
                spread_tile(FROM, padded, cells, board, tile, columns, offsets, products, row * outputs, to_products)
        for point in range(points):
            for channel in range(0, outputs, PANEL):
                panel = point * to_products + channel
                for row in range(0, inputs, ROWS):
                    for r in range(ROWS):
                        offsets[r] = point * to_spread + row + r
                    place = (point * inputs + row) * outputs + channel
                    multiply(
                        spread, offsets, inputs, 1, count * tiles, products, panel, outputs, filters, place, outputs, 1
                    )


@kernel
def pad(numbers, padded, base):
    """Copies a board behind the zeros."""
    copied = padded[base : base + numbers.size]
    for j in range(numbers.size):
        copied[j] = numbers[j]
