"""Pictures of results, by matplotlib, which is needed for them alone."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from alphazero.errors import InputError, InvalidSetting
from alphazero.storage import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDINGS = (".png", ".svg", ".pdf")


def new_figure(width: float = 8.0, height: float = 4.5) -> Figure:
    """An empty picture, sizes in inches; raises InputError if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("a picture needs matplotlib: pip install matplotlib") from None
    return Figure(figsize=(width, height), layout="constrained")


def has_matplotlib() -> bool:
    """Whether pictures can be drawn."""
    try:
        new_figure()
    except InputError:
        return False
    return True


def check_picture_file(option: str, path: Path) -> None:
    """Raises InputError if no picture can be drawn into `path`, as long as nothing has been computed for it yet."""
    if path.suffix not in ENDINGS:
        raise InvalidSetting(f"{option} takes a file that ends in {', '.join(ENDINGS)}, not {str(path)!r:.200}")
    new_figure()


def save_figure(figure: Figure, path: Path) -> None:
    """Writes the picture, atomically."""
    if path.suffix == ".svg":
        atomic_write(path, as_svg(figure))
        return
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:])
    atomic_write(path, content.getvalue())


def as_svg(figure: Figure) -> bytes:
    """The picture as SVG: the same picture is the same bytes."""
    from matplotlib import rc_context

    content = io.BytesIO()
    with rc_context({"svg.hashsalt": "alphazero"}):  # else its ids are random
        figure.savefig(content, format="svg", metadata={"Date": None})
    return content.getvalue()
