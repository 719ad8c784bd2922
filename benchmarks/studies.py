"""The studies of docs/studies.md: plays them, and writes their tables into that page.

    python -m benchmarks.studies                                     what is missing of all of them
    python -m benchmarks.studies --only temperature --games 200      more games of one

A study is a file for `alphazero tournament` in benchmarks/studies/, and is kept as every tournament: a stopped one goes
on, games can be added, and another net takes another --folder. Its tables stand between two comments on the page.
"""

from __future__ import annotations

import json
import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from alphazero.commands import tournament
from alphazero.commands.shared import parse, run_command
from alphazero.errors import InputError, UnknownName
from alphazero.machine import count_cores
from alphazero.matches.intervals import elo_difference, elo_interval
from alphazero.settings import check_ranges
from alphazero.storage.files import atomic_write
from alphazero.tournaments.standings import RESULTS
from alphazero.tournaments.tournament import read_tournament

ROOT = Path(__file__).parents[1]
STUDIES = {path.stem: path for path in sorted((ROOT / "benchmarks" / "studies").glob("*.toml"))}
PAGE = ROOT / "docs" / "studies.md"


@dataclass(frozen=True)
class StudiesConfig:
    """Plays the studies of docs/studies.md and writes their tables into it."""

    only: str | None = None
    """One study; without it, all."""
    games: int = 100
    """Games of each pair."""
    folder: Path = Path("tournaments/studies")
    """Holds a folder for each."""
    threads: int = field(default_factory=count_cores)
    """Processor threads."""

    def __post_init__(self) -> None:
        if self.only is not None and self.only not in STUDIES:
            raise UnknownName("study", self.only, STUDIES)
        check_ranges(self, games=(2, 100_000), threads=(1, 1024))


def main(argv: list[str]) -> None:
    config = parse(StudiesConfig, argv)
    for name in [config.only] if config.only else STUDIES:
        study(STUDIES[name], config, PAGE)


def study(path: Path, config: StudiesConfig, page: Path) -> None:
    """Plays what is missing of one, and writes its tables."""
    folder, contestants = config.folder / path.stem, read_tournament(path)["contestants"]
    folder.parent.mkdir(parents=True, exist_ok=True)
    options = {
        "--folder": folder, "--anchor": contestants[0], "--games": config.games, "--threads": config.threads,
    }  # fmt: skip
    tournament.main([str(path), *(str(word) for option in options.items() for word in option)])
    result = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
    text = page.read_text(encoding="utf-8")
    atomic_write(page, insert(text, path.stem, as_markdown(result, config.threads)).encode())


def insert(page: str, name: str, tables: str) -> str:
    """The page with the tables of a study between its comments; raises InputError if they are not there."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    if not re.search(f"{begin}\n.*{end}", page, re.DOTALL):
        raise InputError(f"the page has no lines {begin} and {end} for the tables to stand between")
    return page[: page.index(begin)] + f"{begin}\n{tables}\n" + page[page.index(end) :]


def as_markdown(result: dict[str, Any], threads: int) -> str:
    """The result of a tournament: strength, time and game lengths of all contestants, and the score of each pair."""
    played = f"{result['games']:,} games, {result['distinct_games']:,} of them different"
    lines = [
        f"{time.strftime('%Y-%m-%d')}: {played}; `--threads {threads}`; ratings relative to `{result['anchor']}`.",
        "",
        "| contestant | Elo points | score | ms a move | plies a game | 10%, half, 90% of games within |",
        "|---|---|---|---|---|---|",
    ]
    for row in result["contestants"]:
        plies = row["plies"]
        lines.append(
            f"| `{row['name']}` | {row['rating']:+.0f} ± {row['rating_error']:.0f} "
            f"| {row['score']:.1%} ({_percent(row['score_interval'])}) | {row['ms_per_move']:.2f} "
            f"| {plies['mean']:.1f} ({plies['interval'][0]:.1f} to {plies['interval'][1]:.1f}) "
            f"| {plies['quantile_10']:.0f}, {plies['median']:.0f}, {plies['quantile_90']:.0f} |"
        )
    lines += ["", "| first | second | wins, draws, losses | score of the first | Elo points |", "|---|---|---|---|---|"]
    for match in result["matches"]:
        wins, draws, losses = (match[word] for word in ("wins", "draws", "losses"))
        elo = elo_difference(match["score"], wins + draws + losses)
        low, high = elo_interval(*match["score_interval"])
        lines.append(
            f"| `{match['first']}` | `{match['second']}` | {wins}, {draws}, {losses} "
            f"| {match['score']:.1%} ({_percent(match['score_interval'])}) | {elo:+.0f} ({low:+.0f} to {high:+.0f}) |"
        )
    return "\n".join(lines)


def _percent(interval: list[float]) -> str:
    return f"{interval[0]:.1%} to {interval[1]:.1%}"


if __name__ == "__main__":
    sys.exit(run_command(main))
