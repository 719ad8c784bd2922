"""Functions of a word of 64 bits, for rules that keep a square in each bit; they are compiled with the rules."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit
def count_bits(word):
    """The number of bits that are 1, `int64` of a `uint64`, in a form that compilers know as one instruction."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit
def lowest_bit(word):
    """The place of the lowest bit that is 1, from 0 to 63; 64 if there is none."""
    return count_bits(~word & (word - np.uint64(1)))


@njit
def swapped(word, swaps):
    """Exchanges neighbouring groups of so many bits, for each (bits, mask of every second group)."""
    for shift, mask in swaps:
        half, kept = np.uint64(shift), np.uint64(mask)
        word = ((word >> half) & kept) | ((word & kept) << half)
    return word


@njit
def flip_rows(word):
    """On a board of 8 x 8, a bit for each square: row 0 becomes row 7, row 1 row 6, and so on."""
    return swapped(word, ((8, 0x00FF00FF00FF00FF), (16, 0x0000FFFF0000FFFF), (32, 0x00000000FFFFFFFF)))


@njit
def reverse_bits(word):
    """Bit 0 becomes bit 63, bit 1 bit 62, and so on: a board of 8 x 8 turned by 180 degrees."""
    return flip_rows(swapped(word, ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F))))
