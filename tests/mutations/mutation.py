"""What a line of the lists of protections says."""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """One place of the source, changed so that one protection is gone."""

    protection: str
    file: str
    old: str
    """The text that is replaced; it occurs exactly once in the file."""
    new: str
    test: str
    """The test that then fails, as pytest takes it; without its parameters, all of them are run."""
