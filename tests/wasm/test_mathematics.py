"""Functions that WebAssembly does not have, against the processor's."""

import math

import numpy as np

from alphazero.wasm.mathematics import exponential, logarithm, power, power_of_2


def test_exponentials_logarithms_and_powers_are_right_to_the_last_places():
    rng = np.random.default_rng(0)
    for x in rng.uniform(-700, 700, 3000):
        assert math.isclose(exponential(x), math.exp(x), rel_tol=1e-14)
    for x in np.exp(rng.uniform(-600, 600, 3000)):
        assert math.isclose(logarithm(x), math.log(x), rel_tol=1e-14, abs_tol=1e-15)
    for x, exponent in zip(rng.uniform(1e-9, 1, 3000), rng.uniform(0.1, 3, 3000), strict=True):
        assert math.isclose(power(x, exponent), x**exponent, rel_tol=1e-13)


def test_the_ends_of_their_range():
    assert (exponential(-1000.0), exponential(1000.0), exponential(0.0)) == (0.0, math.inf, 1.0)
    assert (logarithm(0.0), logarithm(1.0), logarithm(math.inf)) == (-math.inf, 0.0, math.inf)
    assert math.isnan(logarithm(-1.0))
    assert (power(0.0, 0.5), power(1.0, 0.5), power(0.25, 0.5)) == (0.0, 1.0, 0.5)
    assert (power(0.0, 0.0), power(-3.0, 0.0), power(0.0, -1.0)) == (1.0, 1.0, math.inf)
    assert (power(-1.0, 3.0), power(-1.0, -2.0), power(math.inf, 0.0)) == (-1.0, 1.0, 1.0)
    assert math.isclose(power(-2.0, 2.0), 4.0, rel_tol=1e-14) and math.isclose(power(-2.0, 3.0), -8.0, rel_tol=1e-14)
    assert math.isnan(power(-1.0, 0.5)) and math.isnan(power(math.nan, 2.0))


def test_whole_powers_of_small_numbers_are_exact():
    """Rules that count by them, as `int(5.0 ** i)`, are those of Python in a published page."""
    for base in range(2, 40):
        exponent = 0
        while base**exponent < 2**53:
            assert power(float(base), float(exponent)) == base**exponent == (-1) ** exponent * power(-base, exponent)
            assert math.isclose(power(float(base), float(-exponent)), base**-exponent, rel_tol=1e-15)
            exponent += 1
    for exponent in range(-1022, 1024):
        assert power_of_2(float(exponent)) == 2.0**exponent


def test_powers_that_are_too_large_or_too_small():
    assert (power(10.0, 400.0), power(10.0, -400.0), power_of_2(1024.0)) == (math.inf, 0.0, math.inf)
    assert math.isclose(power(1e-200, -1.5), 1e300, rel_tol=1e-12) and power(1e-200, -2.0) == math.inf
    assert math.isclose(power(10.0, -310.0), 1e-310, rel_tol=1e-12)
    assert (power(0.5, math.inf), power(2.0, math.inf)) == (0.0, math.inf)
