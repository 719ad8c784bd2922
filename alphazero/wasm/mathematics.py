"""Powers, exponentials and logarithms, which WebAssembly does not have; the same bits in every browser.

All take and give float64. A relative error is a few units of the last place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
"""log 2 in two parts: a small whole number times the first is exact."""
TERMS = 15
HALF_ROOT, ROOT = 0.7071067811865476, 1.4142135623730951
LEAST, MOST = -745.0, 709.0
MOST_WHOLE = 1024.0
"""Powers to whole numbers up to this are products, so those of small whole numbers are exact, as in Python."""


@njit
def exponential(x):
    """e to the power of x: 0 below LEAST, inf above MOST."""
    if x < LEAST:
        return 0.0
    if x > MOST:
        return np.inf
    whole = np.floor(x * 1.4426950408889634 + 0.5)
    rest = (x - whole * LN2_HIGH) - whole * LN2_LOW
    total = 1.0
    for order in range(TERMS, 0, -1):
        total = 1.0 + total * rest / order
    for _ in range(int(abs(whole))):
        total = total * 2.0 if whole > 0.0 else total * 0.5
    return total


@njit
def logarithm(x):
    """The natural logarithm: -inf at 0, nan below."""
    if x <= 0.0:
        return -np.inf if x == 0.0 else np.nan
    if x == np.inf:
        return x
    whole = 0.0
    while x < HALF_ROOT:
        x *= 2.0
        whole -= 1.0
    while x > ROOT:
        x *= 0.5
        whole += 1.0
    ratio = (x - 1.0) / (x + 1.0)
    square, total = ratio * ratio, 0.0
    for order in range(2 * TERMS - 5, 0, -2):
        total = total * square + 1.0 / order
    return whole * LN2_HIGH + (2.0 * ratio * total + whole * LN2_LOW)


@njit
def product(x, count):
    """x multiplied by itself; exact if that is a whole number below 2**53."""
    total = 1.0
    while count > 0:
        if count & 1:
            total *= x
        x *= x
        count >>= 1
    return total


@njit
def power(x, exponent):
    """x to a power: 1 for the power 0; nan for a negative x and a power that is no whole number."""
    if exponent == 0.0:
        return 1.0
    if np.isnan(x) or np.isnan(exponent):
        return np.nan
    if x == 0.0:
        return 0.0 if exponent > 0.0 else np.inf
    whole = np.floor(exponent) == exponent
    size = product(abs(x), int(abs(exponent))) if whole and abs(exponent) <= MOST_WHOLE else 0.0
    if not 0.0 < size < np.inf:  # the inverse of such a product may be a number all the same
        size = exponential(exponent * logarithm(abs(x)))
    elif exponent < 0.0:
        size = 1.0 / size
    if x > 0.0:
        return size
    if not whole:
        return np.nan
    return -size if np.floor(exponent * 0.5) * 2.0 != exponent else size


@njit
def power_of_2(exponent):
    """2 to a power, into which LLVM turns `2.0 ** x`."""
    return power(2.0, exponent)


FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "exp": (exponential, 1),
    "exp2": (power_of_2, 1),
    "log": (logarithm, 1),
    "pow": (power, 2),
}
"""By the name under which compiled code calls each, with the number of arguments."""
