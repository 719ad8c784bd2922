"""Random numbers as pure functions of a key: the same on every thread, in every batch and on every device.

A key is a 64-bit word; draw i of a key is a hash of (key, i). The hash is the finaliser of SplitMix64
(Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators", constants of variant 13).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)

# what a draw is for: keeps the streams of one (seed, game, ply) apart
ROOT_NOISE, ROOT_GUMBEL, MOVE, ROLLOUT, TIE, OPENING, EXPLORATION, CHANCE = 0, 1, 2, 4, 5, 6, 7, 8


@njit
def mix(word):
    word = np.uint64(word)
    word = (word ^ (word >> np.uint64(30))) * MIX_1
    word = (word ^ (word >> np.uint64(27))) * MIX_2
    return word ^ (word >> np.uint64(31))


@njit
def combine(key, number):
    """A new key from a key and a number."""
    return mix(np.uint64(key) + GOLDEN * (np.uint64(number) + np.uint64(1)))


@njit
def make_key(seed, game, ply, purpose):
    """The key of one purpose at one ply of one game of one run."""
    return combine(combine(combine(combine(np.uint64(0), seed), game), ply), purpose)


@njit
def uniform(key, i):
    """Draw i of `key`: a float64 in (0, 1), never 0 or 1."""
    return (float(combine(key, i) >> np.uint64(12)) + 0.5) * (1.0 / 4503599627370496.0)


@njit
def gumbel(key, i):
    """A standard Gumbel variate."""
    return -math.log(-math.log(uniform(key, i)))


@njit
def gamma(key, shape):
    """A Gamma(shape, 1) variate (Marsaglia and Tsang 2000, "A simple method for generating gamma variables")."""
    boost = 1.0
    if shape < 1.0:
        boost = uniform(key, 0) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    i = 1
    while True:
        # one normal variate from two uniform ones (Box and Muller)
        normal = math.sqrt(-2.0 * math.log(uniform(key, i))) * math.cos(2.0 * math.pi * uniform(key, i + 1))
        v = 1.0 + c * normal
        v = v * v * v
        if v > 0.0 and math.log(uniform(key, i + 2)) < 0.5 * normal * normal + d - d * v + d * math.log(v):
            return boost * d * v
        i += 3
