"""Shows the examples in docstrings as code on the API page: an extension of griffe, which reads the docstrings."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


class Doctests(griffe.Extension):
    """Fences every example."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each object that griffe has read."""
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
