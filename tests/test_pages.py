"""Pictures: written whole, refused early."""

import sys
from pathlib import Path

import pytest

from alphazero.errors import InputError, InvalidSetting
from alphazero.pages import check_picture_file, new_figure, save_figure

FIRST_BYTES = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("ending", FIRST_BYTES)
def test_a_picture_is_of_the_kind_that_its_name_says(ending, tmp_path):
    path = tmp_path / f"picture{ending}"
    check_picture_file("--plot", path)
    figure = new_figure()
    figure.add_subplot().plot([1, 2], [3, 4])
    save_figure(figure, path)
    assert path.read_bytes().startswith(FIRST_BYTES[ending])
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_another_ending_is_refused():
    with pytest.raises(InvalidSetting, match=r"--plot takes a file that ends in \.png, \.svg, \.pdf, not 'a\.gif'"):
        check_picture_file("--plot", Path("a.gif"))


def test_without_matplotlib_it_is_said_before_anything_is_computed(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match="pip install matplotlib"):
        check_picture_file("--plot", Path("a.png"))
