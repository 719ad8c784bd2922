"""HTML pages in one file, with their tables and pictures inside; and pictures as files of their own."""

from __future__ import annotations

import base64
import contextlib
import io
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from alphazero.errors import InputError
from alphazero.storage.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure


NO_PICTURES = (
    "There are no pictures, since matplotlib is missing: pip install matplotlib, and run the same command again."
)
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h1, h2 { font-weight: 600 } h2 { margin-top: 2.5rem }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(24rem, 1fr)); gap: 1rem }
img { width: 100% } table { border-collapse: collapse } td, th { padding: .15rem 1rem .15rem 0; text-align: left }
td { border-top: 1px solid #ddd; font-variant-numeric: tabular-nums } .warning { color: #a40 }
"""


def make_page(title: str, parts: Sequence[str]) -> str:
    """A whole HTML page; `title` is plain text, and `parts` are HTML."""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(parts) + "\n</body>\n</html>\n"
    )


def make_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as HTML; the cells are plain text."""
    heads = "".join(f"<th>{escape(word)}</th>" for word in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{heads}</tr>{body}</table>"


# --- pictures ---


def new_figure(width: float = 8.0, height: float = 4.5) -> Figure:
    """An empty picture; sizes are in inches. Raises InputError if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("pictures need matplotlib: pip install matplotlib") from None
    return Figure(figsize=(width, height), layout="constrained")


def has_matplotlib() -> bool:
    """True if matplotlib is installed."""
    with contextlib.suppress(InputError):
        return bool(new_figure())
    return False


def save_figure(figure: Figure, path: Path) -> None:
    """Writes the picture, atomically."""
    atomic_write(path, _render(figure, path.suffix[1:]))


def _render(figure: Figure, kind: str) -> bytes:
    """The picture as a file of that kind; equal pictures give equal bytes as SVG."""
    from matplotlib import rc_context

    content = io.BytesIO()
    with rc_context({"svg.hashsalt": "alphazero"}):  # else its ids are random
        figure.savefig(content, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return content.getvalue()


def embed(title: str, figure: Figure) -> str:
    """The picture as HTML that holds all of it, as SVG."""
    source = base64.b64encode(_render(figure, "svg")).decode()
    return f'<img alt="{escape(title)}" src="data:image/svg+xml;base64,{source}">'
