"""A run on a page: its figures, curves and warnings."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from alphazero.training.health import Watch

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    parts = [
        f"<h1>{escape(saved['game'])}: {escape(run.resolve().name)}</h1>",
        _summary(lines),
        _matches(read_evaluation(run)),
        "<h2>Warnings</h2>",
        _warnings(lines),
        "<h2>Pictures</h2>",
        _pictures(lines) if has_matplotlib() else f"<p>{NO_PICTURES}</p>",
        "<h2>The last generation</h2>",
        make_table(("figure", "value"), [(name.replace("_", " "), _show(value)) for name, value in lines[-1].items()]),
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


def _warnings(lines: Lines) -> str:
    watch = Watch()
    found = [(line["generation"], warning) for line in lines for warning in watch.new_warnings(line)]
    items = "".join(f'<li class="warning">generation {number}: {escape(text)}</li>' for number, text in found)
    return f"<ul>{items}</ul>" if items else "<p>None.</p>"


def _show(value: object) -> str:
    return f"{value:,.5g}" if isinstance(value, float) else str(value)


# --- pictures --------------------------------------------------------------------------------------------------------


def _pictures(lines: Lines) -> str:
    benchmark = lines[-1].get("benchmark_figures", ())
    drawn: list[tuple[str, Callable[[Axes, Lines], None]]] = [
        *((name.replace("_", " "), _curves(name)) for name in benchmark),
        ("policy loss", _curves("policy_loss", "policy_entropy")),
        ("value loss", _curves("value_loss")),
        ("gate: the candidate's score", _gate),
        ("policy surprise", _curves("policy_surprise")),
        ("value against outcome, last generation", _calibration),
        ("value calibration error", _curves("value_calibration_error")),
        ("shares of positions", _curves("distinct_positions", "drawn_positions", "cache_hits")),
        ("plies per game", _curves("plies_per_game")),
        ("simulations per second", _curves("simulations_per_s")),
        ("seconds of a generation", _seconds),
        ("positions in the window", _curves("window_positions")),
        ("learning rate", _curves("learning_rate")),
    ]
    return f'<div class="pictures">{"".join(_picture(title, lines, draw) for title, draw in drawn)}</div>'


def _picture(title: str, lines: Lines, draw: Callable[[Axes, Lines], None]) -> str:
    figure = new_figure(6.0, 3.4)
    axes = figure.add_subplot()
    axes.set_title(title, parse_math=False)
    axes.grid(alpha=0.3)
    draw(axes, lines)
    return embed(title, figure)


def _times(axes: Axes, lines: Lines) -> list[float]:
    """The time after each generation, and its unit under the picture."""
    unit, seconds = ("hours", 3600) if lines[-1]["seconds"] > 3 * 3600 else ("minutes", 60)
    axes.set_xlabel(unit)
    return [line["seconds"] / seconds for line in lines]


def _curves(*names: str) -> Callable[[Axes, Lines], None]:
    """One line for each figure, where a generation has it."""

    def draw(axes: Axes, lines: Lines) -> None:
        for name in names:
            _plot(axes, lines, name, name.replace("_", " "), ".-")
        if len(names) > 1:
            axes.legend()

    return draw


def _plot(axes: Axes, lines: Lines, name: str, label: str, style: str, promoted: bool | None = None) -> None:
    """One figure over time, where a generation has it; of the promoted nets alone, or of the others, if so asked."""
    known = [
        (time, line[name])
        for time, line in zip(_times(axes, lines), lines, strict=True)
        if line.get(name) is not None and promoted in (None, line["promoted"])
    ]
    axes.plot(*zip(*known, strict=True) if known else ([], []), style, label=label)


def _gate(axes: Axes, lines: Lines) -> None:
    _plot(axes, lines, "gate_score", "promoted", ".", True)
    _plot(axes, lines, "gate_score", "not promoted", "x", False)
    axes.set_ylim(-0.02, 1.02)
    axes.legend()


def _calibration(axes: Axes, lines: Lines) -> None:
    bins = lines[-1].get("value_calibration", [])
    axes.plot([-1, 1], [-1, 1], color="gray", linewidth=1)
    axes.plot([value for value, _, _ in bins], [outcome for _, outcome, _ in bins], marker="o")
    axes.set(xlabel="value", ylabel="mean outcome")


def _seconds(axes: Axes, lines: Lines) -> None:
    parts = ("self_play_seconds", "learning_seconds", "gate_seconds")
    playing, *others = [[line.get(name) or 0.0 for line in lines] for name in parts]
    whole = [end - begin for begin, end in itertools.pairwise([0.0, *(line["seconds"] for line in lines)])]
    # on a cluster, games go on while the network learns: one second must not be drawn twice
    alone = [max(0.0, total - sum(known)) for total, *known in zip(whole, *others, strict=True)]
    heights = [list(map(min, playing, alone)), *others]
    rest = [max(0.0, total - sum(known)) for total, *known in zip(whole, *heights, strict=True)]
    labels = [*(name.removesuffix("_seconds").replace("_", "-") for name in parts), "other"]
    axes.stackplot(_times(axes, lines), *heights, rest, labels=labels)
    axes.legend(loc="lower left")
