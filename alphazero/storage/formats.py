"""The schemas of the files that `storage` keeps: manifests, settings, cards and figures of a run.

Other formats have theirs beside the code that writes them: games in `game/record.py`, tournaments in `tournaments/`,
the state of a run in `training/parts/resume.py`. Arrays are described by `storage/arrays.py`.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from alphazero.errors import StorageError, quote
from alphazero.storage.schema import Count, Figure, Names, Sha256, Text, check

MAX_WEIGHTS_BYTES = 1 << 29
"""The most bytes of a net: 134 million weights. A larger file is refused unread, whoever vouches for it."""
MAX_HEADER_BYTES = 1 << 20
"""Room for about 8,000 tensors. Parsing a header takes many times its size in memory."""
MOST_FIGURES = 1000
"""Entries in a line of metrics, and in each of its lists."""
EVALUATION = "evaluation.json"
EVALUATION_SEAL, WANDB_SEAL = "evaluation_sha256", "wandb_sha256"
"""The entries of that file and of `wandb.json` that are the SHA-256 of the others."""
LISTS = ("benchmark_figures", "value_calibration")
"""The entries of a line of metrics that are lists."""


class FileEntry(Struct, forbid_unknown_fields=True):
    """A file in a manifest."""

    bytes: Count
    sha256: Sha256


class ManifestFile(Struct, forbid_unknown_fields=True):
    """`manifest_NNNN.json`."""

    format: Annotated[int, Meta(ge=1, le=1, description="1")]
    generation: Count
    files: Annotated[dict[str, FileEntry], Meta(description="the bytes and sha256 of each file")]
    state: Names
    manifest_sha256: Sha256
    settings: Annotated[tuple[Sha256, ...], Meta(max_length=2, description="a list of at most two SHA-256")] = ()
    """The SHA-256 of the run's settings; older versions wrote it."""


class SavedRun(Struct, forbid_unknown_fields=True):
    """`config.json` without its seal."""

    game: Text
    seed: Count
    threads: Annotated[int, Meta(ge=1, le=1024, description="a whole number from 1 to 1024")]
    settings: Names


class Weights(Struct, forbid_unknown_fields=True):
    """The weights on a card."""

    file: Annotated[str, Meta(pattern=r"\A[^/\0]{1,255}\Z", description="the name of a file in the same folder")]
    bytes: Count
    sha256: Sha256


class Card(Struct):
    """A card; a net's own has more entries than these."""

    format: Count
    weights: Weights
    card_sha256: Sha256
    game: Text = ""
    net: Names = msgspec.field(default_factory=dict)
    search: Names = msgspec.field(default_factory=dict)
    generation: Count = 0
    num_updates: Count = 0
    parameters: Count = 0
    flops_per_position: Count = 0


class NetCard(Card, kw_only=True):
    """The card of a net that plays."""

    game: Text
    net: Names


class LearnerCard(Card, kw_only=True):
    """The card of the state of learning."""

    num_updates: Count


class MetricsLists(Struct):
    """The entries of a line of metrics that are no plain numbers."""

    generation: Count
    benchmark_figures: Annotated[list[Text], Meta(max_length=MOST_FIGURES, description="a list of names")] = (
        msgspec.field(default_factory=list)
    )
    value_calibration: Annotated[
        list[tuple[Figure, Figure, Figure]], Meta(max_length=MOST_FIGURES, description="a list of three numbers each")
    ] = msgspec.field(default_factory=list)


class Match(Struct):
    """A match in `evaluation.json`."""

    opponent: Text
    score: Figure
    score_interval: Annotated[tuple[Figure, Figure], Meta(description="two numbers")]
    wins: Count
    draws: Count
    losses: Count
    simulations: Count


class Evaluation(Struct, forbid_unknown_fields=True):
    """`evaluation.json`."""

    generation: Count
    benchmark: Names
    matches: Annotated[list[Match], Meta(description="a list of matches")]


class WandbRun(Struct, forbid_unknown_fields=True):
    """`wandb.json`."""

    project: Text
    id: Annotated[str, Meta(pattern=r"\A[\w-]{1,64}\Z", description="letters and digits")]


MetricsLine: Any = Annotated[
    dict[str, Any], Meta(max_length=MOST_FIGURES, description=f"at most {MOST_FIGURES:,} names and values")
]
MetricsFigure: Any = Annotated[bool | Figure | None, Meta(description="a number")]


def check_metrics(value: Any, where: str) -> dict[str, Any]:
    """A line of `metrics.jsonl`: numbers, or null, by name, and the two lists; raises StorageError."""
    line: dict[str, Any] = check(MetricsLine, value, where)
    lists = check(MetricsLists, line, where)
    for name, figure in line.items():
        if name not in LISTS:
            check(MetricsFigure, figure, f"{where}, {quote(name)}")
    for name in lists.benchmark_figures:
        if not name.isprintable():
            raise StorageError(f"{where}: a benchmark figure is called {quote(name)}, which cannot be shown")
        check(Figure, line.get(name), f"{where}, benchmark figure {quote(name)}")  # type: ignore[arg-type]
    return line
