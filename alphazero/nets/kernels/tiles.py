"""Winograd's convolutions (Lavin and Gray 2016): 3x3 convolutions of a whole tile with fewer multiplications.

Of a tile of m numbers in a row and three weights g, y[i] = sum over k of g[k] d[i + k] takes 3 m multiplications. It is
a product of polynomials, and these can be multiplied value by value at m + 1 points and at infinity:

    y = back @ ((filters @ g) * (into @ d))

In two dimensions it is done along columns, then along rows, for tiles of m x n numbers: with 4x4 tiles 36
multiplications do the work of 144. The sums over channels come before `back`, so they are products of matrices.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import NamedTuple

import numpy as np

POINTS = {3: (0, 1, -1, 2), 4: (0, 1, -1, 2, -2)}
"""Where the polynomials are evaluated, by the length of a tile. Small numbers, since errors grow with them."""


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
    """The matrices of Cook and Toom for tiles of that length, from exact fractions.

    Row j of `into` has the coefficients of the polynomial that is zero at all points but j, and row j of `filters` the
    powers of point j over what that polynomial is there. The last rows are for infinity.
    """
    points = [Fraction(point) for point in POINTS[length]]
    into, filters = [], []
    for j, point in enumerate(points):
        others = points[:j] + points[j + 1 :]
        scale = Fraction(1)
        for other in others:
            scale *= point - other
        into.append([*_with_zeros_at(others), Fraction(0)])
        filters.append([point**k / scale for k in range(3)])
    into.append(_with_zeros_at(points))
    filters.append([Fraction(0), Fraction(0), Fraction(1)])
    back = [[point**i for point in points] + [Fraction(i == length - 1)] for i in range(length)]
    return Matrices(*(np.array(matrix, np.float64) for matrix in (into, filters, back)))


def _with_zeros_at(points: list[Fraction]) -> list[Fraction]:
    """The coefficients of the polynomial with these zeros, from the constant one on; the last is 1."""
    coefficients = [Fraction(1)]
    for point in points:
        lower = [Fraction(0), *coefficients]
        coefficients = [a - point * b for a, b in zip(lower, [*coefficients, Fraction(0)], strict=True)]
    return coefficients


def tile_length(size: int) -> int:
    """The length of the tiles that cover `size` numbers with the fewest multiplications; of two, the shorter."""
    return min(POINTS, key=lambda length: (-(-size // length) * (length + 2), length))
