"""The reports in a tournament's folder, for people and programs.

results.json                    as `--json`
standings.csv, matches.csv      the same as tables
*.png, *.svg                    pictures, if matplotlib is installed
report.html                     all of it on one page that needs no other file
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alphazero.errors import count_of
from alphazero.pages import NO_PICTURES, embed, has_matplotlib, make_page, make_table, new_figure, save_figure
from alphazero.storage.files import atomic_write, to_json
from alphazero.tournaments.standings import HEAD, Standings, as_csv, as_json, cross_cells, remarks, table_cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Pictures = Mapping[str, "Figure"]
"""By title."""

RESULTS, REPORT = "results.json", "report.html"
MOST_CROSSED = 24
"""Contestants that a cross table on the page may have."""
MOST_NAMED = 40
"""Contestants whose names fit beside a picture."""


def write_report(
    folder: Path,
    standings: Standings,
    more: Mapping[str, Mapping[str, Any]] | None = None,
    draw_more: Mapping[str, Callable[[Axes], None]] | None = None,
) -> dict[str, Any]:
    """Writes all files and returns what is in `results.json`.

    `more`: further fields of contestants by their names; `draw_more`: further pictures by their titles, put first.
    """
    result = as_json(standings, more)
    atomic_write(folder / RESULTS, to_json(result))  # of any size: of a hundred contestants it has more than 1 MB
    atomic_write(folder / "standings.csv", as_csv(result["contestants"]))
    atomic_write(folder / "matches.csv", as_csv(result["matches"]))
    drawings = {**(draw_more or {}), **_drawings(standings)} if has_matplotlib() else {}
    pictures = {title: _figure(title, draw) for title, draw in drawings.items()}
    for title, figure in pictures.items():
        for ending in (".png", ".svg"):
            save_figure(figure, folder / (title.replace(" ", "_") + ending))
    atomic_write(folder / REPORT, _page(standings, pictures).encode(errors="replace"))
    return result


def _page(standings: Standings, pictures: Pictures) -> str:
    title = f"{standings.game.name}: {standings.tournament.kind} of {len(standings.names)}"
    drawn = "".join(embed(name, figure) for name, figure in pictures.items())
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{count_of(len(standings.records), 'game')}, {standings.distinct_games:,} of them distinct.</p>",
        make_table(HEAD, table_cells(standings.rows)),
        *(f"<p>{escape(sentence)}</p>" for sentence in remarks(standings)),
        "<h2>Pictures</h2>",
        f'<div class="pictures">{drawn}</div>' if drawn else f"<p>{escape(NO_PICTURES)}</p>",
    ]
    if len(standings.names) <= MOST_CROSSED:
        parts += ["<h2>Each against each</h2>", make_table(*cross_cells(standings))]
    parts += [
        "<h2>Matches</h2>",
        make_table(("first", "second", "wins", "draws", "losses", "distinct"), _lines(standings)),
    ]
    return make_page(title, parts)


def _lines(standings: Standings) -> list[Sequence[object]]:
    return [(pairing.first, pairing.second, *numbers) for pairing, numbers in standings.matches.items()]


# --- pictures --------------------------------------------------------------------------------------------------------


def _figure(title: str, draw: Callable[[Axes], None]) -> Figure:
    figure = new_figure(7.0, 4.5)
    axes = figure.add_subplot()
    axes.set_title(title, parse_math=False)
    draw(axes)
    return figure


def _drawings(standings: Standings) -> dict[str, Callable[[Axes], None]]:
    """The functions that draw the pictures, by title."""
    return {
        "ratings": lambda axes: draw_ratings(axes, standings),
        "scores": lambda axes: draw_scores(axes, standings),
        "game lengths": lambda axes: draw_lengths(axes, standings),
        "game lengths by contestant": lambda axes: draw_lengths_of_each(axes, standings),
        "time per move": lambda axes: draw_times(axes, standings),
    }


def draw_ratings(axes: Axes, standings: Standings) -> None:
    """Each rating with its interval, the strongest on top."""
    rows = standings.rows[::-1]
    axes.errorbar([row.rating for row in rows], range(len(rows)), xerr=[row.rating_error for row in rows], fmt="o")
    _name_lines(axes, [row.name for row in rows])
    axes.set_xlabel("Elo points")
    axes.grid(axis="x", alpha=0.3)


def draw_scores(axes: Axes, standings: Standings) -> None:
    """The score of each against each as colours, and as percent where there is room."""
    order = [standings.names.index(row.name) for row in standings.rows]
    scores = [[standings.score(i, j) if i != j else None for j in order] for i in order]
    shown = np.array([[np.nan if score is None else 100 * score for score in line] for line in scores])
    axes.figure.colorbar(axes.imshow(shown, vmin=0, vmax=100, cmap="RdYlGn", aspect="auto"), label="score in %")
    if len(order) <= 12:
        for (row, column), percent in np.ndenumerate(shown):
            if np.isfinite(percent):
                axes.text(column, row, f"{percent:.0f}", ha="center", va="center")
    _name_lines(axes, [standings.names[i] for i in order])
    axes.set_xticks(range(len(order)) if len(order) <= MOST_NAMED else [])
    if len(order) <= MOST_NAMED:
        axes.set_xticklabels([str(number) for number in range(1, len(order) + 1)])


def draw_lengths(axes: Axes, standings: Standings) -> None:
    """A histogram of the plies of all games."""
    low, high = min(standings.lengths), max(standings.lengths)
    axes.hist(standings.lengths, bins=np.linspace(low - 0.5, high + 0.5, min(high - low + 1, 50) + 1).tolist())
    axes.set(xlabel="plies, the opening included", ylabel="games")


def draw_lengths_of_each(axes: Axes, standings: Standings) -> None:
    """Plies of each contestant's games, in the order of the ratings: median, middle half, and middle 80%."""
    rows = [row for row in standings.rows[::-1] if row.lengths]
    lowest, low, median, high, highest = np.transpose(
        [np.quantile(row.lengths, (0.1, 0.25, 0.5, 0.75, 0.9)) for row in rows]
    )
    axes.hlines(range(len(rows)), lowest, highest)
    axes.hlines(range(len(rows)), low, high, linewidth=6)
    axes.plot(median, range(len(rows)), "wo", markeredgecolor="black")
    _name_lines(axes, [row.name for row in rows])
    axes.set_xlabel("plies, the opening included")


def draw_times(axes: Axes, standings: Standings) -> None:
    """Milliseconds per move of each contestant, in the order of the ratings."""
    rows = standings.rows[::-1]
    axes.barh(range(len(rows)), [max(row.ms_per_move, 1e-3) for row in rows])
    axes.set_xscale("log")
    _name_lines(axes, [row.name for row in rows])
    axes.set_xlabel("ms per move, all games side by side")


def _name_lines(axes: Axes, names: Sequence[str]) -> None:
    """The contestants' names, or the ends of them, beside the lines."""
    if len(names) > MOST_NAMED:
        axes.set_yticks([])
        return
    axes.set_yticks(range(len(names)))
    axes.set_yticklabels([name if len(name) <= 27 else f"…{name[-26:]}" for name in names], parse_math=False)
