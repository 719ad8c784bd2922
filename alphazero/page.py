"""Pages for the browser that need nothing but themselves: tables, and pictures as part of the page."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from alphazero.picture import as_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h1, h2 { font-weight: 600 } h2 { margin-top: 2.5rem }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(24rem, 1fr)); gap: 1rem }
img { width: 100% } table { border-collapse: collapse } td, th { padding: .15rem 1rem .15rem 0; text-align: left }
td { border-top: 1px solid #ddd; font-variant-numeric: tabular-nums } .warning { color: #a40 }
"""


def make_page(title: str, parts: Sequence[str]) -> str:
    """A page of HTML, `parts` being HTML already."""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(parts) + "\n</body>\n</html>\n"
    )


def make_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """HTML of a table of words."""
    heads = "".join(f"<th>{escape(word)}</th>" for word in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{heads}</tr>{body}</table>"


def embed(title: str, figure: Figure) -> str:
    """HTML of a picture, which is in it as SVG."""
    source = base64.b64encode(as_svg(figure)).decode()
    return f'<img alt="{escape(title)}" src="data:image/svg+xml;base64,{source}">'
