"""Bounds on what reading a file may cost."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import pytest


def assert_bounded(read: Callable[[], object]) -> None:
    """`read` takes at most 2 seconds of processor time and 200 MB; two calls, since measuring memory is slow."""
    begin = time.process_time()
    read()
    assert time.process_time() - begin < 2
    tracemalloc.start()
    try:
        read()
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()


def assert_refused(read: Callable[[], object], error: type[Exception], words: str) -> None:
    """`read` raises an `error` that matches these words, within the bounds."""

    def refuse() -> None:
        with pytest.raises(error, match=words):
            read()

    assert_bounded(refuse)
