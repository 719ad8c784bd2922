"""The inner loops of convolutions as vector code: numba cannot be trusted to find the vectors in them by itself.

Numbers are float32, and vectors have LANES of them. A product and a sum are one operation, with one rounding.

Winograd's convolutions (Lavin and Gray 2016): 3x3 convolutions of a whole tile with fewer multiplications.

Of a tile of m numbers in a row and three weights g, y[i] = sum over k of g[k] d[i + k] takes 3 m multiplications. It is
a product of polynomials, and these can be multiplied value by value at m + 1 points and at infinity:

    y = back @ ((filters @ g) * (into @ d))

In two dimensions it is done along columns, then along rows, for tiles of m x n numbers: with 4x4 tiles 36
multiplications do the work of 144. The sums over channels come before `back`, so they are products of matrices.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 8
"""Numbers in a vector; where the processor's own are shorter, the compiler takes two."""
ROWS = 4
PANEL = 16
"""`multiply` computes ROWS rows of PANEL numbers, for which the sums stay in sixteen registers."""

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
def multiply(typing_context, rows, offsets, taps, inputs, weights, first, out, place, stride):  # type: ignore[no-untyped-def]
    """Writes ROWS x PANEL sums over taps and inputs: row r goes to `out[place + r stride:]`, `out float32[...]`.

    `rows float32[...]`: for tap t the inputs of row r begin at `offsets[ROWS t + r]`, `offsets int64[...]`. The weights
    are `weights[first:]`, `float32[taps, inputs, PANEL]`.
    """
    arguments = (rows, offsets, taps, inputs, weights, first, out, place, stride)
    return types.none(*arguments), _generate_multiply


def _generate_multiply(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    rows, offsets, weights, out = (_array(context, builder, signature, arguments, index) for index in (0, 1, 4, 6))
    taps, inputs, first, place, stride = (arguments[index] for index in (2, 3, 5, 7, 8))
    vectors = range(PANEL // LANES)
    sums = [[cgutils.alloca_once(builder, _vector) for _ in vectors] for _ in range(ROWS)]
    for row in sums:
        for total in row:
            builder.store(ir.Constant(_vector, [0.0] * LANES), total)
    with cgutils.for_range(builder, taps) as tap:
        of_tap = builder.add(first, builder.mul(builder.mul(tap.index, inputs), _long(PANEL)))
        at_offset = builder.mul(tap.index, _long(ROWS))
        starts = [_load(builder, offsets, builder.add(at_offset, _long(r)), _long) for r in range(ROWS)]
        with cgutils.for_range(builder, inputs) as channel:
            at = builder.add(of_tap, builder.mul(channel.index, _long(PANEL)))
            factors = [_load(builder, weights, builder.add(at, _long(LANES * j))) for j in vectors]
            for start, row in zip(starts, sums, strict=True):
                same = _in_all_lanes(builder, _load(builder, rows, builder.add(start, channel.index), _number))
                for factor, total in zip(factors, row, strict=True):
                    builder.store(_fma(builder, same, factor, builder.load(total)), total)
    for r, row in enumerate(sums):
        at_row = builder.add(place, builder.mul(_long(r), stride))
        for j, total in enumerate(row):
            _store(builder, builder.load(total), out, builder.add(at_row, _long(LANES * j)))
    return context.get_dummy_value()


@intrinsic
def accumulate(typing_context, rows, first, row_stride, others, start, stride, count, out, place, out_stride):  # type: ignore[no-untyped-def]
    """Adds ROWS x PANEL sums over `count` products: those of row r to `out[place + r out_stride:]`, `out float32[...]`.

    Product k is of `rows[first + k row_stride + r]` and of `others[start + k stride:]`, PANEL numbers; both are
    `float32[...]`.
    """
    arguments = (rows, first, row_stride, others, start, stride, count, out, place, out_stride)
    return types.none(*arguments), _generate_accumulate


def _generate_accumulate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    rows, others, out = (_array(context, builder, signature, arguments, index) for index in (0, 3, 7))
    first, row_stride, start, stride, count, place, out_stride = (arguments[index] for index in (1, 2, 4, 5, 6, 8, 9))
    vectors, sums = range(PANEL // LANES), []
    for r in range(ROWS):
        at_row = builder.add(place, builder.mul(_long(r), out_stride))
        sums.append([(cgutils.alloca_once(builder, _vector), builder.add(at_row, _long(LANES * j))) for j in vectors])
        for total, at in sums[r]:
            builder.store(_load(builder, out, at), total)
    with cgutils.for_range(builder, count) as step:
        at_factors = builder.add(start, builder.mul(step.index, stride))
        factors = [_load(builder, others, builder.add(at_factors, _long(LANES * j))) for j in vectors]
        at_numbers = builder.add(first, builder.mul(step.index, row_stride))
        for r in range(ROWS):
            same = _in_all_lanes(builder, _load(builder, rows, builder.add(at_numbers, _long(r)), _number))
            for factor, (total, _) in zip(factors, sums[r], strict=True):
                builder.store(_fma(builder, same, factor, builder.load(total)), total)
    for row in sums:
        for total, at in row:
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
