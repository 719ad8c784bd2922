#!/usr/bin/env bash
# numba gives `word if condition else 0` of a uint64 the type float64, so that large words lose their last bits.
#
# One expects: the 0 becomes a uint64, as numpy 2 makes it in `word + 0`, or an error. Plain Python keeps the word.
# What happens: uint64 and int64 have float64 for a common type, without a warning. 2**63 + 1 comes back as 2**63.
# Where our users meet it: in compiled rules, whose states are words of 64 bits. The plain rules are right, and
# `alphazero check`, which compares both, finds it only where a word is so large. Write `np.uint64(0)`.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q numba==0.68.1 numpy==2.4.6 2> /dev/null
"$folder/venv/bin/python" - <<'PYTHON'
import numba
import numpy as np


def kept(words, condition):
    words[1] = words[0] if condition else 0


def kept_as_word(words, condition):
    words[1] = words[0] if condition else np.uint64(0)


found = []
for function in (kept, numba.njit(kept), numba.njit(kept_as_word)):
    words = np.array([2**63 + 1, 0], np.uint64)
    function(words, True)
    found.append(int(words[1]) - 2**63)
print(f"numba {numba.__version__}: 2**63 + 1 comes back as 2**63 + {found[0]} plain, {found[1]} compiled, "
      f"{found[2]} compiled with np.uint64(0)")
assert found == [1, 0, 1], found
PYTHON
