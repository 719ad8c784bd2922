"""The library inside servers, pools and pipelines of others: what reaches other processes, and what it leaves alone."""

import copy
import inspect
import pickle

import pytest

from alphazero import errors

ERRORS = [
    kind for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, BaseException) and kind.__module__ == errors.__name__
]  # fmt: skip


@pytest.mark.parametrize("again", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy], ids=["pickle", "copy"])
@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_reaches_another_process(kind, again):
    """A pool of processes breaks if an error of its work cannot be read there."""
    error = kind("game", "conect4", ["connect4"]) if kind is errors.UnknownName else kind("a sentence")
    error.add_note("a remark")
    found = again(error)
    assert (type(found), str(found), vars(found)) == (kind, str(error), vars(error))
