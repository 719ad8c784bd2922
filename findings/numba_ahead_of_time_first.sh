#!/usr/bin/env bash
# Expected: a program may compile functions ahead of time and, afterwards, others with `njit`, in any order.
# Happens: numba makes its runtime once, with the first context that compiles anything. If that is the one of
# `numba.pycc`, whose code cannot be called in the process, two `njit` functions that call each other cannot be compiled
# any more: numba raises an AttributeError of its own. The other order works.
# Our users would meet it where a page for the browser is compiled before a game: our code for WebAssembly is made by a
# context of this kind, so the processor's context makes the runtime first. Needs a C compiler, as `numba.pycc` does.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q numba==0.68.1 llvmlite==0.50.0 numpy==2.4.6 setuptools==84.2.1
cd "$folder"
cat >both.py <<'PYTHON'
import sys
import warnings

warnings.simplefilter("ignore")  # numba.pycc is to be replaced one day
from numba import njit
from numba.pycc import CC


@njit
def is_even(count):
    return count == 0 or is_odd(count - 1)


@njit
def is_odd(count):
    return count != 0 and is_even(count - 1)


def ahead_of_time():
    module = CC("made")
    module.export("double", "i4(i4)")(lambda number: 2 * number)
    module.compile()


def just_in_time():
    try:
        return is_odd(7)
    except AttributeError as error:
        return f"AttributeError: {error}"


if sys.argv[1] == "first":
    ahead_of_time()
print(just_in_time())
PYTHON
"$folder/venv/bin/python" -c 'import numba, llvmlite; print("numba", numba.__version__, "llvmlite", llvmlite.__version__)'
alone=$("$folder/venv/bin/python" both.py alone)
first=$("$folder/venv/bin/python" both.py first)
echo "is_odd(7), with njit alone: $alone"
echo "is_odd(7), after numba.pycc: $first"
[[ $alone == True && $first == AttributeError:* ]]
