"""The results of an examination, and how they are shown."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

from alphazero.errors import shorten

COLUMNS = 100
"""Width of what is shown."""


@dataclass
class Section:
    """One topic: a table of facts, sentences on what is wrong, and sentences on what could be better."""

    title: str
    rows: list[tuple[str, str]] = field(default_factory=list)
    """A name and a fact each."""
    wrong: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)

    def add(self, name: str, fact: object) -> None:
        self.rows.append((name, str(fact)))


def show(sections: Sequence[Section]) -> str:
    """First what is wrong, then what could be better, then the tables; no line is longer than COLUMNS."""
    lines = [line for section in sections for text in section.wrong for line in _wrap("wrong: ", text)]
    lines += [line for section in sections for text in section.advice for line in _wrap("advice: ", text)]
    lines = lines or ["nothing is wrong"]
    for section in sections:
        width = 2 + max((len(name) for name, _ in section.rows), default=0)
        lines += ["", section.title]
        for name, fact in section.rows:
            begin = f"  {name:<{width}}"
            whole = name == "command"  # it is there to be copied
            lines += [begin + shorten(fact, 20 * COLUMNS)] if whole else _wrap(begin, fact)
    return "\n".join(lines)


def _wrap(begin: str, text: str) -> list[str]:
    """Lines that break between words, not at the hyphens of an option or a path, which are there to be copied."""
    text, indent = shorten(text, 20 * COLUMNS), " " * len(begin)
    lines = textwrap.wrap(text, COLUMNS, initial_indent=begin, subsequent_indent=indent, break_on_hyphens=False)
    return lines or [begin.rstrip()]


def show_bytes(count: float) -> str:
    """`1.5 GB` and the like, in units of 1,000."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
