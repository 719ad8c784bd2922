"""A run on a page: its figures, curves and warnings."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec import Struct

from alphazero.errors import RunFolderError, StorageError, count_of
from alphazero.invocation import option
from alphazero.pages import NO_PICTURES, embed, has_matplotlib, make_page, make_table, new_figure
from alphazero.settings import flat_settings
from alphazero.storage.files import read_json_less_seal
from alphazero.storage.folder_lock import holder_of
from alphazero.storage.formats import EVALUATION, EVALUATION_SEAL, Evaluation
from alphazero.storage.manifest import read_settings
from alphazero.storage.metrics_file import METRICS, read_metrics
from alphazero.storage.schema import Count, Figure, Seconds, check
from alphazero.training.health import new_warnings

logger = logging.getLogger(__name__)

Lines = Sequence[Mapping[str, Any]]
"""The lines of a run's `metrics.jsonl`."""


class ReportedFigures(Struct):
    """The figures that every run has had from the beginning."""

    generation: Count
    seconds: Seconds
    games: Count
    positions: Count
    promoted: bool | Figure


def make_report(run: Path) -> str:
    """The HTML page of a run folder; raises InputError about what it cannot read."""
    saved, lines = read_settings(run), read_metrics(run)
    if not lines:
        raise RunFolderError(
            f"{run / METRICS} has no valid line, so there is nothing to show: wait for the first generation, or bring "
            "the file back"
        )
    for line in lines:
        check(ReportedFigures, line, f"{run / METRICS}, generation {line['generation']}", RunFolderError)
    if lost := lost_matches(run, saved["settings"], lines[-1]):
        logger.warning("%s", lost)
    figures = [(name.replace("_", " "), f"{x:,.5g}" if isinstance(x, float) else x) for name, x in lines[-1].items()]
    warnings = "".join(
        f'<li class="warning">generation {line["generation"]}: {escape(text)}</li>'
        for before, line in pairwise([{}, *lines])
        for text in new_warnings(line, before)
    )
    parts = [
        f"<h1>{escape(saved['game'])}: {escape(run.resolve().name)}</h1>",
        _summary(lines),
        _matches(read_evaluation(run)),
        "<h2>Warnings</h2>",
        f"<ul>{warnings}</ul>" if warnings else "<p>None.</p>",
        "<h2>Pictures</h2>",
        _pictures(lines) if has_matplotlib() else f"<p>{NO_PICTURES}</p>",
        "<h2>The last generation</h2>",
        make_table(("figure", "value"), figures),
        "<h2>Settings</h2>",
        make_table(("setting", "value"), sorted(flat_settings(saved).items())),
    ]
    return make_page(run.resolve().name, parts)


def _summary(lines: Lines) -> str:
    last, games = lines[-1], sum(line["games"] for line in lines)
    sentences = [
        f"{count_of(len(lines), 'generation')} in {last['seconds'] / 60:,.1f} minutes, {count_of(games, 'game')}, "
        f"{count_of(sum(line['positions'] for line in lines), 'position')}.",
        f"Best net: generation {max((line['generation'] for line in lines if line['promoted']), default=0)}.",
    ]
    for name in last.get("benchmark_figures", ())[:1]:
        best = max((line for line in lines if line.get(name) is not None), key=lambda line: line[name])
        sentences.append(
            f"{name.replace('_', ' ').capitalize()}: {last[name]:.3f} now; the highest was {best[name]:.3f}, "
            f"in generation {best['generation']}."
        )
    return f"<p>{escape(' '.join(sentences))}</p>"


def read_evaluation(run: Path) -> Evaluation | None:
    """The matches at the end of a run, from `evaluation.json`; None if it is not there. Raises RunFolderError."""
    path = run / EVALUATION
    if not os.path.lexists(path):
        return None
    try:
        found = read_json_less_seal(path, EVALUATION_SEAL)
    except StorageError as error:
        raise RunFolderError(f"{error}; move it away, or play the matches again by {option('resume', True)}") from error
    return check(Evaluation, found, str(path), RunFolderError, "; move it away")


def lost_matches(run: Path, settings: Mapping[str, Any], last: Mapping[str, Any]) -> str:
    """A sentence if a run is over after its `last` line of metrics and has no `evaluation.json`; else ""."""
    generations, minutes = settings.get("generations"), settings.get("minutes")
    if not isinstance(generations, int) or not isinstance(minutes, int | float):  # whatever wrote them
        return ""
    is_over = last["generation"] >= generations or 0 < 60 * minutes <= last["seconds"]
    if not is_over or os.path.lexists(run / EVALUATION) or holder_of(run):
        return ""
    return f"{run} is over without {EVALUATION}, its last matches: {option('resume', True)} plays them again"


def _matches(evaluation: Evaluation | None) -> str:
    if evaluation is None:
        return ""
    rows = [
        (
            match.opponent, f"{match.score:.1%}", "{:.1%} to {:.1%}".format(*match.score_interval),
            match.wins, match.draws, match.losses, match.simulations,
        )
        for match in evaluation.matches
    ]  # fmt: skip
    head = ("opponent", "score", "95% interval", "wins", "draws", "losses", "simulations")
    return f"<h2>Matches of generation {evaluation.generation}</h2>" + make_table(head, rows)


# --- pictures --------------------------------------------------------------------------------------------------------

CURVES = {
    "policy loss": ("policy_loss", "policy_entropy"),
    "value loss": ("value_loss",),
    "gate: the candidate's score": ("gate_score",),
    "policy surprise": ("policy_surprise",),
    "value calibration error": ("value_calibration_error",),
    "shares of positions": ("distinct_positions", "drawn_positions", "cache_hits"),
    "plies per game": ("plies_per_game",),
    "simulations per second": ("simulations_per_s",),
    "seconds of a generation": ("self_play_seconds", "learning_seconds", "gate_seconds"),
    "positions in the window": ("window_positions",),
    "learning rate": ("learning_rate",),
}
"""The figures in each picture, by its title."""


def _pictures(lines: Lines) -> str:
    curves = {name.replace("_", " "): (name,) for name in lines[-1].get("benchmark_figures", ())} | CURVES
    return f'<div class="pictures">{"".join(_picture(lines, title, names) for title, names in curves.items())}</div>'


def _picture(lines: Lines, title: str, names: Sequence[str]) -> str:
    """Each figure over time, where a generation has it."""
    figure = new_figure(6.0, 3.4)
    axes = figure.add_subplot()
    axes.set_title(title, parse_math=False)
    axes.grid(alpha=0.3)
    unit, seconds = ("hours", 3600) if lines[-1]["seconds"] > 3 * 3600 else ("minutes", 60)
    for name in names:
        known = [(line["seconds"] / seconds, line[name]) for line in lines if line.get(name) is not None]
        axes.plot(*zip(*known, strict=True) if known else ([], []), ".-", label=name.replace("_", " "))
    axes.set_xlabel(unit)
    if len(names) > 1:
        axes.legend()
    return embed(title, figure)
