"""Runs and tournaments for the page, read from their folders while others write to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from alphazero.errors import InputError, StorageError
from alphazero.game import Game
from alphazero.game.record import GameRecord
from alphazero.matches.intervals import score_interval, show_share
from alphazero.storage.folder_lock import holder_of
from alphazero.storage.manifest import CONFIG
from alphazero.storage.metrics_file import METRICS, read_metrics
from alphazero.tournaments.folder import GAMES, SavedTournament, read_games, read_settings
from alphazero.tournaments.standings import Standings, cross_cells, remarks
from alphazero.training.health import Watch
from alphazero.training.parts.pace import seconds_left
from alphazero.training.selfplay.shown_games import read_shown, shown_generations
from alphazero.web.message import Question
from alphazero.web.seats import Kept
from alphazero.web.tables import as_numbers, config_of, find_folder, newest_runs, newest_tournaments

FIGURES = (
    "policy_loss", "value_loss", "gate_score", "policy_entropy", "policy_surprise", "value_calibration_error",
    "simulations_per_s", "games", "positions", "plies_per_game", "drawn_positions", "distinct_positions",
    "cache_hits", "learning_rate", "window_positions",
)  # fmt: skip
"""Figures of a generation that the page can draw, besides those of the game's benchmark."""
MOST_LISTED = 100
"""Runs and tournaments that are listed, the newest."""
MOST_LINES = 500
"""Generations in an answer; of a longer run, evenly chosen ones."""
MOST_WARNINGS = 30
MOST_GAMES = 2000
"""Games of a tournament that are listed, the newest."""
_LAST_LINES = Kept[Sequence[Mapping[str, Any]]](lambda file: read_metrics(file.parent)[-1:], MOST_LISTED)
"""The last line of each run's metrics, in a list that is empty before there is one."""
_ALL_LINES = Kept[Sequence[Mapping[str, Any]]](lambda file: read_metrics(file.parent), 32)
"""All lines of the runs that somebody watches: a viewer up to six (`MOST_SHOWN` in runs.js)."""
_GAME_COUNTS = Kept[int](lambda file: len(read_games(file.parent)), MOST_LISTED)


# --- runs ---


def list_runs(folder: Path | None) -> list[dict[str, Any]]:
    """The runs in the folder, the one that changed last first."""
    found = list[dict[str, Any]]()
    for path in newest_runs(folder)[:MOST_LISTED]:
        try:
            found.append(_headline(path, config_of(path), _LAST_LINES.get(path / METRICS)))
        except InputError as error:
            found.append({"name": path.name, "fault": str(error)[:300]})
    return found


def describe_run(folder: Path | None, question: Question) -> dict[str, Any]:
    """A run with its figures after generation `after`, its warnings, and the generations with games to step through.

    `identity` tells it from one that had the same name.
    `total_games` of a generation are all games up to it, also of generations that are not in the answer.
    """
    path = find_folder(newest_runs(folder), question.name)
    saved, lines = config_of(path), _ALL_LINES.get(path / METRICS)
    after = question.after
    names = (*FIGURES, *_benchmark_names(lines))
    games = accumulate(as_numbers(line, ("games",)).get("games", 0.0) for line in lines)
    totals = dict(zip((line["generation"] for line in lines), games, strict=True))
    new = [line for line in lines if line["generation"] > after]
    if len(new) > MOST_LINES:
        new = [new[round(i * (len(new) - 1) / (MOST_LINES - 1))] for i in range(MOST_LINES)]
    rows = [
        {
            "generation": line["generation"], **as_numbers(line, ("seconds", *names)),
            "total_games": totals[line["generation"]],
        }
        for line in new
    ]  # fmt: skip
    return {
        **_headline(path, saved, lines),
        "identity": str((path / CONFIG).stat().st_mtime_ns),
        "figures": list(dict.fromkeys(names)),
        "rows": rows,
        "warnings": _warnings(lines),
        "shown": shown_generations(path),
    }


def _headline(path: Path, saved: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A run in a few fields; raises StorageError for settings that are none."""
    settings, last = saved.get("settings"), lines[-1] if lines else {}
    if not isinstance(settings, dict) or not isinstance(saved.get("game"), str):
        raise StorageError(f"{path / 'config.json'} is not the settings of a run of this version")
    generation, seconds = last.get("generation", 0), as_numbers(last, ("seconds",)).get("seconds", 0.0)
    limits = as_numbers(settings, ("generations", "minutes"))
    most, minutes = int(limits.get("generations", 0)), limits.get("minutes", 0.0)
    holder = holder_of(path)
    left = seconds_left(most, minutes, generation, seconds) if holder else 0.0
    return {
        "name": path.name, "game": saved["game"], "generation": generation, "generations": most, "minutes": minutes,
        "seconds": seconds, "training": holder is not None, "left": left,
        "benchmark": as_numbers(last, _benchmark_names(lines)),
    }  # fmt: skip


def _benchmark_names(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """The figures of the game's benchmark in the last line."""
    names = lines[-1].get("benchmark_figures") if lines else None
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _warnings(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The newest warnings about a run's health, the newest first."""
    health, found = Watch(), list[dict[str, Any]]()
    for line in lines:
        try:
            found += [{"generation": line["generation"], "text": text} for text in health.new_warnings(line)]
        except TypeError:
            continue  # a figure that is no number
    return found[::-1][:MOST_WARNINGS]


def games_of_run(folder: Path | None, question: Question) -> tuple[str, list[GameRecord]]:
    """The name of a run's game, and the games of one generation that the run keeps."""
    path = find_folder(newest_runs(folder), question.name)
    name = config_of(path).get("game")
    return str(name), read_shown(path, question.generation)


# --- tournaments ---


def list_tournaments(folder: Path | None) -> list[dict[str, Any]]:
    """The tournaments in the folder, the one that changed last first."""
    found = list[dict[str, Any]]()
    for path in newest_tournaments(folder)[:MOST_LISTED]:
        try:
            headline = _tournament_headline(path, read_settings(path))
            found.append({**headline, "played": _GAME_COUNTS.get(path / GAMES)})
        except InputError as error:
            found.append({"name": path.name, "fault": str(error)[:300]})
    return found


def _tournament_headline(path: Path, settings: SavedTournament) -> dict[str, Any]:
    return {
        "name": path.name, "game": settings.game, "kind": settings.kind,
        "contestants": len(settings.contestants), "planned": sum(games for _, _, games in settings.pairings),
        "playing": holder_of(path) is not None,
    }  # fmt: skip


def read_tournament(folder: Path | None, question: Question) -> tuple[Path, SavedTournament, Sequence[GameRecord]]:
    """The folder of the tournament that a question names, its settings and its games; raises StorageError."""
    path = find_folder(newest_tournaments(folder), question.name)
    return path, read_settings(path), read_games(path)


def describe_tournament(
    path: Path, settings: SavedTournament, records: Sequence[GameRecord], game: Game
) -> dict[str, Any]:
    """The standings with intervals, the cross table, and a list of the games."""
    answer: dict[str, Any] = {
        **_tournament_headline(path, settings), "played": len(records), "rows": [], "cross": None, "remarks": [],
    }  # fmt: skip
    if records:
        standings = Standings(settings.tournament(), records, game)
        head, lines = cross_cells(standings)
        answer["cross"] = {"head": list(head), "lines": [list(line) for line in lines]}
        answer["remarks"] = remarks(standings)
        answer["rows"] = [
            {
                "name": row.name, "rating": round(row.rating), "error": round(row.rating_error), "games": row.games,
                "wins": row.wins, "draws": row.draws, "losses": row.losses, "score": row.score,
                "interval": list(score_interval(row.wins, row.draws, row.losses)),
                "ms": row.ms_per_move,
                "better": None if row.better_than_next is None else show_share(row.better_than_next),
            }
            for row in standings.rows
        ]  # fmt: skip
    first = max(0, len(records) - MOST_GAMES)
    answer["games"] = [
        {
            "number": number, "contestants": list(record.contestants), "result": record.result,
            "plies": len(record.opening) + len(record.moves),
        }
        for number, record in enumerate(records[first:], first)
    ]  # fmt: skip
    return answer
