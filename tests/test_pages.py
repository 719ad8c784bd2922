"""Pictures: written whole, and what is said without matplotlib."""

import sys

import pytest

from alphazero.errors import InputError
from alphazero.pages import has_matplotlib, new_figure, save_figure

FIRST_BYTES = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("ending", FIRST_BYTES)
def test_a_picture_is_of_the_kind_that_its_name_says(ending, tmp_path):
    path = tmp_path / f"picture{ending}"
    figure = new_figure()
    figure.add_subplot().plot([1, 2], [3, 4])
    save_figure(figure, path)
    assert path.read_bytes().startswith(FIRST_BYTES[ending])
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_without_matplotlib_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match="pip install matplotlib"):
        new_figure()
    assert not has_matplotlib()
