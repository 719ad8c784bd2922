"""Functions of a word of bits, beside Python's whole numbers."""

import numpy as np
import pytest

from alphazero.game import count_bits, flip_rows, lowest_bit, reverse_bits

ALL = 2**64 - 1
WORDS = [
    0,
    ALL,
    *(1 << bit for bit in range(64)),
    *map(int, np.random.default_rng(0).integers(ALL, size=200, dtype=np.uint64)),
]


@pytest.mark.parametrize(
    ("function", "plain"),
    [
        (count_bits, int.bit_count),
        (lowest_bit, lambda word: (word & -word).bit_length() - 1 if word else 64),
        (flip_rows, lambda word: int.from_bytes(word.to_bytes(8, "little"), "big")),
        (reverse_bits, lambda word: int(f"{word:064b}"[::-1], 2)),
    ],
)
def test_functions_of_bits_are_those_of_whole_numbers(function, plain):
    assert [int(function(np.uint64(word))) for word in WORDS] == [plain(word) for word in WORDS]
