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

Draw = Callable[["Axes", Standings], None]
"""Draws one picture."""
RESULTS, REPORT = "results.json", "report.html"
MOST_CROSSED = 24
"""Contestants that a cross table on the page may have."""
MOST_NAMED = 40
"""Contestants whose names fit beside a picture."""


def write_report(
    folder: Path,
    standings: Standings,
    more: Mapping[str, Mapping[str, Any]] | None = None,
    draw_more: Mapping[str, Draw] | None = None,
) -> dict[str, Any]:
    """Writes all files and returns what is in `results.json`.

    `more`: further fields of contestants by their names; `draw_more`: further pictures by their titles, put first.
    """
    result = as_json(standings, more)
    atomic_write(folder / RESULTS, to_json(result))  # of any size: of a hundred contestants it has more than 1 MB
    atomic_write(folder / "standings.csv", as_csv(result["contestants"]))
    atomic_write(folder / "matches.csv", as_csv(result["matches"]))
    drawings = {**(draw_more or {}), "ratings": draw_ratings, "scores": draw_scores, "game lengths": draw_lengths}
    pictures = []
    for title, draw in drawings.items() if has_matplotlib() else ():
        figure = new_figure(7.0, 4.5)
        axes = figure.add_subplot()
        axes.set_title(title, parse_math=False)
        draw(axes, standings)
        pictures.append(embed(title, figure))
        for ending in (".png", ".svg"):
            save_figure(figure, folder / (title.replace(" ", "_") + ending))
    atomic_write(folder / REPORT, _page(standings, "".join(pictures)).encode(errors="replace"))
    return result


def _page(standings: Standings, pictures: str) -> str:
    title = f"{standings.game.name}: {standings.tournament.kind} of {len(standings.names)}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{count_of(len(standings.records), 'game')}, {standings.distinct_games:,} of them distinct.</p>",
        make_table(HEAD, table_cells(standings.rows)),
        *(f"<p>{escape(sentence)}</p>" for sentence in remarks(standings)),
        "<h2>Pictures</h2>",
        f'<div class="pictures">{pictures}</div>' if pictures else f"<p>{escape(NO_PICTURES)}</p>",
    ]
    if len(standings.names) <= MOST_CROSSED:
        parts += ["<h2>Each against each</h2>", make_table(*cross_cells(standings))]
    matches = [(*pairing, *numbers) for pairing, numbers in standings.matches.items()]
    parts += ["<h2>Matches</h2>", make_table(("first", "second", "wins", "draws", "losses", "distinct"), matches)]
    return make_page(title, parts)


# --- pictures --------------------------------------------------------------------------------------------------------


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
    numbers = [str(number) for number in range(1, len(order) + 1) if len(order) <= MOST_NAMED]
    axes.set_xticks(range(len(numbers)), numbers)


def draw_lengths(axes: Axes, standings: Standings) -> None:
    """A histogram of the plies of all games."""
    low, high = min(standings.lengths), max(standings.lengths)
    axes.hist(standings.lengths, bins=np.linspace(low - 0.5, high + 0.5, min(high - low + 1, 50) + 1).tolist())
    axes.set(xlabel="plies, the opening included", ylabel="games")


def _name_lines(axes: Axes, names: Sequence[str]) -> None:
    """The contestants' names, or the ends of them, beside the lines."""
    there = len(names) <= MOST_NAMED
    labels = [name if len(name) <= 27 else f"…{name[-26:]}" for name in names if there]
    axes.set_yticks(range(len(labels)), labels, parse_math=False)
