"""The results of a tournament: ratings, scores and times, as text, and as files in its folder:

results.json                    as `--json`
standings.csv, matches.csv      its words and single numbers, as tables
*.png, *.svg                    pictures, if matplotlib is installed
report.html                     all of it on one page that needs no other file
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alphazero.errors import count_of, shorten
from alphazero.game import Game
from alphazero.game.record import GameRecord, lone_seat
from alphazero.matches.intervals import mean_with_interval, score_interval, show_share
from alphazero.matches.openings import describe_openings
from alphazero.pages import NO_PICTURES, embed, has_matplotlib, make_page, make_table, new_figure, save_figure
from alphazero.storage.files import atomic_write, to_json
from alphazero.tournaments.bradley_terry import DRAW, WIN, Ratings, rate, warnings
from alphazero.tournaments.folder import GAMES, Pairing, Tournament, key_of
from alphazero.tournaments.tournament import tally

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RESULTS, REPORT = "results.json", "report.html"
MOST_CROSSED = 24
"""Contestants that a cross table on the page may have."""
MOST_NAMED = 40
"""Contestants whose names fit beside a picture."""
WIDEST = 12
"""Contestants whose cross table fits a terminal."""


@dataclass(frozen=True)
class Row:
    """One contestant's results, as `--json` has them."""

    name: str
    wins: int
    draws: int
    losses: int
    forfeits: int
    """Games among its losses that it gave up."""
    score: float
    """Mean score per game (a draw is 1/2); 0.5 if no game was played."""
    score_interval: tuple[float, float]
    score_when_first: float | None
    """Mean score in the games in which it moved first; None if there are none."""
    ms_per_move: float
    lengths: tuple[int, ...]
    """Plies of each of its games, the openings included; `--json` describes them under `plies`."""
    rating: float
    """Elo points."""
    rating_error: float
    """Half the width of the 95% interval, as in `Ratings.errors`."""
    better_than_next: float | None
    """Probability that it is stronger than the contestant below it in the table; None for the last."""

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses


class Standings:
    """The results of the games that a tournament has so far."""

    def __init__(self, tournament: Tournament, records: Sequence[GameRecord], game: Game, anchor: str | None = None):
        self.tournament, self.records, self.names = tournament, records, list(tournament.contestants)
        self.game, self.anchor = game, anchor or ("random" if "random" in self.names else None)
        self.counts = tally(self.names, records)
        """`int64[n, n, 3]`: wins, draws and losses of i beginning against j."""
        self.both = self.counts + self.counts.swapaxes(0, 1)[..., ::-1]
        """The same of i against j, whoever began."""
        # where nobody begins, each has half of its games in each place
        seated = self.both / 2 if game.num_players == 1 else self.counts
        self.ratings: Ratings = rate(seated, self.names.index(self.anchor) if self.anchor else None)
        self.opening_plies = max((len(record.opening) for record in records), default=0)
        self.forfeits = Counter(record.contestants[record.result == "1-0"] for record in records if record.forfeit)
        """Games that each contestant gave up, by name."""
        self.warnings = warnings(self.counts, self.names)
        if pairs := sum(2 * distinct < sum(counts) for *counts, distinct in self.matches.values()):
            self.warnings.append(
                f"{count_of(pairs, 'pair')} played fewer different games than half of all, and ratings take all games "
                "for different ones: the errors are too small, and with many draws distances, too; choose other "
                "openings, or contestants that use chance"
            )

    @cached_property
    def rows(self) -> list[Row]:
        """The strongest first."""
        return self.rows_of(self.names)

    def rows_of(self, names: Sequence[str]) -> list[Row]:
        """The contestants of these names, the strongest first."""
        order = [int(i) for i in np.argsort(-self.ratings.elo, kind="stable") if self.names[i] in names]
        return [self._row(i, j) for i, j in zip(order, [*order[1:], None], strict=True)]

    @cached_property
    def matches(self) -> dict[Pairing, tuple[int, int, int, int]]:
        """Wins, draws and losses of the first contestant in each match, and different games, in their order."""
        games: dict[Pairing, set[tuple[str, ...]]] = {pairing: set() for pairing in self.tournament.pairings}
        for record in self.records:
            games.setdefault(key_of(record)[0], set()).add((*record.opening, *record.moves, "", *record.others))
        found = {}
        for pairing, different in games.items():
            if different:
                wins, draws, losses = self.both[*map(self.names.index, pairing)].tolist()
                found[pairing] = wins, draws, losses, len(different)
        return found

    @property
    def distinct_games(self) -> int:
        """Different games, counted in each match by itself."""
        return sum(distinct for *_, distinct in self.matches.values())

    @property
    def num_played_on(self) -> int:
        """Pairs that an adaptive tournament gave more games than it was asked for."""
        return sum(wins + draws + losses > self.tournament.games for wins, draws, losses, _ in self.matches.values())

    @cached_property
    def _times(self) -> dict[str, float]:
        """Milliseconds that each contestant took for a move."""
        seconds, moves = dict.fromkeys(self.names, 0.0), dict.fromkeys(self.names, 0)
        for record in self.records:
            for name, taken, number in zip(record.contestants, record.seconds, _moves(record, self.game), strict=True):
                seconds[name] += taken
                moves[name] += number
        return {name: 1000 * seconds[name] / max(1, moves[name]) for name in self.names}

    def _row(self, i: int, below: int | None) -> Row:
        first, both = self.counts[i].sum(axis=0), self.both[i].sum(axis=0)
        name, score = self.names[i], score_of(both)
        lengths = (_length(each, name) for each in self.records if name in each.contestants)
        wins, draws, losses = both.tolist()
        return Row(
            name, wins, draws, losses, self.forfeits[name], 0.5 if score is None else score,
            score_interval(wins, draws, losses), None if self.game.num_players == 1 else score_of(first),
            self._times[name], tuple(lengths), float(self.ratings.elo[i]),
            float(self.ratings.errors[i]), None if below is None else self.ratings.superiority(i, below),
        )  # fmt: skip


def score_of(counts: np.ndarray) -> float | None:
    """Points a game by wins, draws and losses, `int64[3]`; None without a game."""
    total = counts.sum()
    return float((counts[WIN] + counts[DRAW] / 2) / total) if total else None


def _length(record: GameRecord, name: str) -> int:
    """The plies of a game, or in a game for one of what that contestant has played of it."""
    own = record.others if record.others and name == record.contestants[1] else (*record.opening, *record.moves)
    return len(own)


def _moves(record: GameRecord, game: Game) -> tuple[int, int]:
    """The number of moves that each player has chosen."""
    if game.num_players == 2 and game.plain_rules.to_play is None and not game.num_outcomes:  # they take turns
        late, early = len(record.moves) // 2, (len(record.moves) + 1) // 2
        return (early, late) if len(record.opening) % 2 == 0 else (late, early)
    first, *second = (
        [at for at in record.positions(game, other)[len(record.opening) : -1] if not at.chances]
        for other in (False, True)[: 1 + (game.num_players == 1)]
    )
    if second:
        return len(first), len(second[0])
    by_first = sum(position.to_play == lone_seat(game, record.number) for position in first)
    return by_first, len(first) - by_first


# --- as text ---------------------------------------------------------------------------------------------------------


def as_text(standings: Standings, shown: Sequence[str] | None = None) -> str:
    """The table of the contestants, or of those `shown`, the cross table if it is not too wide, and remarks."""
    rows = standings.rows if shown is None else standings.rows_of(shown)
    headline = (
        f"{standings.game.name}: {standings.tournament.kind} of {len(standings.names)} contestants, "
        f"{count_of(len(standings.records), 'game')}, {standings.distinct_games:,} of them distinct"
    )
    parts = [headline, _table(*contestant_cells(rows))]
    if len(standings.names) <= WIDEST:
        parts.append(_table(*cross_cells(standings)))
    return "\n\n".join([*parts, "\n".join(remarks(standings))])


HEAD = ("", "contestant", "rating", "games", "score", "first", "ms/move", "better than next")


def contestant_cells(rows: Sequence[Row]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and lines of words: one for each contestant. Where nobody has begun a game, `first` is left out."""
    lines: list[tuple[str, ...]] = [
        (
            str(number), row.name, f"{row.rating:+z.0f} ± {row.rating_error:.0f}", f"{row.games:,}", f"{row.score:.1%}",
            "" if row.score_when_first is None else f"{row.score_when_first:.1%}", f"{row.ms_per_move:.2f}",
            "" if row.better_than_next is None else show_share(row.better_than_next),
        )
        for number, row in enumerate(rows, 1)
    ]  # fmt: skip
    shown = [i for i, name in enumerate(HEAD) if name != "first" or any(line[i] for line in lines)]
    head, *lines = [tuple(line[i] for i in shown) for line in (HEAD, *lines)]
    return head, lines


def cross_cells(standings: Standings) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and lines of words: the score of each contestant against each, in percent."""
    order = [standings.names.index(row.name) for row in standings.rows]
    head = ("", "score in % against", *(str(number) for number in range(1, len(order) + 1)))
    lines = []
    for number, i in enumerate(order, 1):
        both = standings.both[i]
        words = ("-" if i == j else "" if (x := score_of(both[j])) is None else f"{100 * x:.1f}" for j in order)
        lines.append((str(number), standings.names[i], *words))
    return head, lines


def remarks(standings: Standings) -> list[str]:
    """Sentences below the table."""
    ratings, zero = standings.ratings, f"{standings.anchor} is 0" if standings.anchor else "the mean is 0"
    draws = f"equal players draw {ratings.draw_rate:.1%} of their games."
    if standings.game.num_players > 1:
        first = "One seat against all others" if standings.game.num_players > 2 else "Moving first"
        draws = f"{first} is worth {ratings.advantage:+z.0f} ± {ratings.advantage_error:.0f} points; {draws}"
    found = [
        f"Ratings are Elo points, {zero}; ± is a 95% interval of the distance from the level of the field, a mean in "
        "which each rating counts by how well it is known.",
        draws[0].upper() + draws[1:],
    ]
    if standings.records:
        found.append(describe_openings(standings.tournament.openings, standings.opening_plies, standings.game))
    if standings.num_played_on:
        found.append(
            f"{count_of(standings.num_played_on, 'pair')} played on because ratings overlapped. A pair stops at the "
            "first look that tells its two players apart, so 95% intervals hold the truth a little less often."
        )
    for name in standings.names:
        if number := standings.forfeits[name]:
            found.append(f"{shorten(name)} gave up {count_of(number, 'game')}, counted as lost; {GAMES} says why.")
    return [*found, *(f"Warning: {warning}." for warning in standings.warnings)]


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Columns of words, the second to the left, all others to the right."""
    widths = [max(len(line[i]) for line in (head, *lines)) for i in range(len(head))]
    shape = "  ".join(f"{{:{'<' if i == 1 else '>'}{width}}}" for i, width in enumerate(widths))
    return "\n".join(shape.format(*line).rstrip() for line in (head, *lines))


# --- for programs ----------------------------------------------------------------------------------------------------


def as_json(standings: Standings, more: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, Any]:
    """The results for `--json`; `more` holds further fields of contestants by their names."""
    rows = {row.name: vars(row).copy() for row in standings.rows}
    for row in rows.values():
        lengths, row["plies"] = row.pop("lengths"), None
        if lengths:
            mean, interval = mean_with_interval(np.array(lengths))
            low, median, high = np.quantile(lengths, (0.1, 0.5, 0.9))
            row["plies"] = {
                "mean": mean, "interval": interval, "quantile_10": low, "median": median, "quantile_90": high,
            }  # fmt: skip
    ratings, tournament = standings.ratings, standings.tournament
    return {
        "contestants": [{**rows[name], **(more or {}).get(name, {})} for name in standings.names],
        "games": len(standings.records),
        "distinct_games": standings.distinct_games,
        "matches": [
            {
                "first": pairing.first, "second": pairing.second,
                "wins": wins, "draws": draws, "losses": losses, "distinct_games": distinct,
                "score": (wins + draws / 2) / (wins + draws + losses),
                "score_interval": list(score_interval(wins, draws, losses)),
            }
            for pairing, (wins, draws, losses, distinct) in standings.matches.items()
        ],
        "game": standings.game.name,
        "kind": tournament.kind,
        "seed": tournament.seed,
        "simulations": tournament.simulations,
        "openings": tournament.openings,
        "opening_plies": standings.opening_plies,
        "anchor": standings.anchor,
        "first_move_advantage": ratings.advantage,
        "first_move_advantage_error": ratings.advantage_error,
        "draw_rate": ratings.draw_rate,
        "pairs_that_played_on": standings.num_played_on,
        "warnings": standings.warnings,
    }  # fmt: skip


def as_csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """A table with the columns that hold words and single numbers."""
    columns = [name for name, value in rows[0].items() if not isinstance(value, dict | list | tuple)] if rows else []
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


# --- as files --------------------------------------------------------------------------------------------------------


def write_report(
    folder: Path,
    standings: Standings,
    more: Mapping[str, Mapping[str, Any]] | None = None,
    draw_more: Mapping[str, Callable[[Axes, Standings], None]] | None = None,
) -> dict[str, Any]:
    """Writes all files and returns what is in `results.json`.

    `more`: further fields of contestants by their names; `draw_more`: further pictures by their titles, put first.
    """
    result = as_json(standings, more)
    atomic_write(folder / RESULTS, to_json(result))  # of any size: of a hundred contestants it has more than 1 MB
    atomic_write(folder / "standings.csv", as_csv(result["contestants"]))
    atomic_write(folder / "matches.csv", as_csv(result["matches"]))
    pictures, drawings = [], {**(draw_more or {}), "ratings": draw_ratings}
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
        make_table(*contestant_cells(standings.rows)),
        *(f"<p>{escape(sentence)}</p>" for sentence in remarks(standings)),
        "<h2>Pictures</h2>",
        f'<div class="pictures">{pictures}</div>' if pictures else f"<p>{escape(NO_PICTURES)}</p>",
    ]
    if len(standings.names) <= MOST_CROSSED:
        parts += ["<h2>Each against each</h2>", make_table(*cross_cells(standings))]
    matches = [(*pairing, *numbers) for pairing, numbers in standings.matches.items()]
    parts += ["<h2>Matches</h2>", make_table(("first", "second", "wins", "draws", "losses", "distinct"), matches)]
    return make_page(title, parts)


def draw_ratings(axes: Axes, standings: Standings) -> None:
    """Each rating with its interval, the strongest on top, and the contestants' names, or the ends of them."""
    rows = standings.rows[::-1]
    axes.errorbar([row.rating for row in rows], range(len(rows)), xerr=[row.rating_error for row in rows], fmt="o")
    names = [row.name if len(row.name) <= 27 else f"…{row.name[-26:]}" for row in rows if len(rows) <= MOST_NAMED]
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set_xlabel("Elo points")
    axes.grid(axis="x", alpha=0.3)
