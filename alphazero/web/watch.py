"""Runs and tournaments for the page, read from their folders while others write to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from alphazero.errors import InputError, StorageError, quote
from alphazero.matches.intervals import show_share
from alphazero.storage.folder_lock import holder_of
from alphazero.storage.manifest import CONFIG
from alphazero.storage.metrics_file import METRICS, read_metrics
from alphazero.tournaments.folder import GAMES, SavedTournament, read_games, read_settings
from alphazero.tournaments.standings import Standings, cross_cells, remarks
from alphazero.training.health import new_warnings
from alphazero.training.parts.pace import seconds_left
from alphazero.training.selfplay.shown_games import read_shown, shown_generations
from alphazero.web.message import Question
from alphazero.web.seats import is_figure, kept
from alphazero.web.tables import RUN, TOURNAMENT, Stage, Table, config_of, newest

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
_last_line = kept(lambda run: read_metrics(run)[-1:], MOST_LISTED, METRICS)
"""The last line of a run's metrics, in a list that is empty before there is one."""
_all_lines = kept(lambda run: read_metrics(run), 32, METRICS)
"""All lines of the runs that somebody watches: a viewer up to six (`MOST_SHOWN` in runs.js)."""
_count_games = kept(lambda path: len(read_games(path)), MOST_LISTED, GAMES)


class Watched:
    """Answers the questions about the runs and tournaments of a page, whose tables are found by the name of a game."""

    def __init__(self, stage: Stage, table_named: Callable[[str], Table]):
        self._runs, self._tournaments, self._table_named = stage.runs, stage.tournaments, table_named

    def runs(self, question: Question) -> dict[str, Any]:
        """The runs of the folder, the one that changed last first."""
        return {"runs": _listed(newest(self._runs, *RUN), lambda path: _headline(path, _last_line(path)))}

    def run(self, question: Question) -> dict[str, Any]:
        """A run with its figures after generation `after`, its warnings, and the generations that have games to show.

        `identity` tells it from one that had the same name.
        `total_games` of a generation are all games up to it, also of generations that are not in the answer.
        """
        path = _find(newest(self._runs, *RUN), question.name)
        lines = _all_lines(path)
        names = (*FIGURES, *(lines[-1].get("benchmark_figures", ()) if lines else ()))
        warnings = [
            {"generation": line["generation"], "text": text}
            for before, line in pairwise([{}, *lines])
            for text in new_warnings(line, before)
        ]
        games = accumulate(_numbers(line, "games").get("games", 0.0) for line in lines)
        new = [pair for pair in zip(lines, games, strict=True) if pair[0]["generation"] > question.after]
        if len(new) > MOST_LINES:
            new = [new[round(i * (len(new) - 1) / (MOST_LINES - 1))] for i in range(MOST_LINES)]
        return {
            **_headline(path, lines),
            "identity": str((path / CONFIG).stat().st_mtime_ns),
            "figures": list(dict.fromkeys(names)),
            "rows": [
                {"generation": line["generation"], **_numbers(line, "seconds", *names), "total_games": total}
                for line, total in new
            ],
            "warnings": warnings[::-1][:MOST_WARNINGS],
            "shown": shown_generations(path),
        }

    def run_games(self, question: Question) -> dict[str, Any]:
        """The games of one generation that a run keeps."""
        path = _find(newest(self._runs, *RUN), question.name)
        table = self._table_named(str(config_of(path).get("game")))
        return {"games": [table.record_fields(record) for record in read_shown(path, question.generation)]}

    def tournaments(self, question: Question) -> dict[str, Any]:
        """The tournaments of the folder, the one that changed last first."""

        def headline(path: Path) -> dict[str, Any]:
            return {**_tournament_headline(path, read_settings(path)), "played": _count_games(path)}

        return {"tournaments": _listed(newest(self._tournaments, *TOURNAMENT), headline)}

    def tournament(self, question: Question) -> dict[str, Any]:
        """A tournament's standings with intervals, its cross table, and a list of its games."""
        path = _find(newest(self._tournaments, *TOURNAMENT), question.name)
        settings, records = read_settings(path), read_games(path)
        answer: dict[str, Any] = {
            **_tournament_headline(path, settings), "played": len(records), "rows": [], "cross": None, "remarks": [],
        }  # fmt: skip
        if records:
            standings = Standings(settings.tournament(), records, self._table_named(settings.game).game)
            head, lines = cross_cells(standings)
            answer["cross"] = {"head": list(head), "lines": [list(line) for line in lines]}
            answer["remarks"] = remarks(standings)
            answer["rows"] = [
                {
                    "name": row.name, "rating": round(row.rating), "error": round(row.rating_error), "games": row.games,
                    "wins": row.wins, "draws": row.draws, "losses": row.losses, "score": row.score,
                    "interval": row.score_interval, "ms": row.ms_per_move,
                    "better": None if row.better_than_next is None else show_share(row.better_than_next),
                }
                for row in standings.rows
            ]  # fmt: skip
        answer["games"] = [
            {
                "number": number, "contestants": list(record.contestants), "result": record.result,
                "plies": len(record.opening) + len(record.moves),
            }
            for number, record in enumerate(records)
        ][-MOST_GAMES:]  # fmt: skip
        return answer

    def tournament_game(self, question: Question) -> dict[str, Any]:
        """One game of a tournament."""
        path = _find(newest(self._tournaments, *TOURNAMENT), question.name)
        records = read_games(path)
        if question.number >= len(records):
            raise InputError(f"this tournament has no game {question.number} yet: come back when it is over")
        return self._table_named(read_settings(path).game).record_fields(records[question.number])


def _find(folders: Sequence[Path], name: str) -> Path:
    """The folder of that name among those found; so no name leads out of their folder. Raises StorageError."""
    for path in folders:
        if path.name == name:
            return path
    raise StorageError(f"there is no folder {quote(name)} here; go back to the list")


def _listed(folders: Sequence[Path], headline: Callable[[Path], dict[str, Any]]) -> list[dict[str, Any]]:
    """The headlines of the first folders, or what is wrong with one."""
    found = list[dict[str, Any]]()
    for path in folders[:MOST_LISTED]:
        try:
            found.append(headline(path))
        except InputError as error:
            found.append({"name": path.name, "fault": str(error)[:300]})
    return found


def _numbers(line: Mapping[str, Any], *names: str) -> dict[str, float]:
    """The entries of these names that are finite numbers, rounded."""
    return {name: float(f"{value:.6g}") for name in names if is_figure(value := line.get(name))}


def _headline(path: Path, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A run in a few fields; raises StorageError for settings that are none."""
    saved, last = config_of(path), lines[-1] if lines else dict[str, Any]()
    settings = saved.get("settings")
    if not isinstance(settings, dict) or not isinstance(saved.get("game"), str):
        raise StorageError(f"{path / CONFIG} is not the settings of a run of this version")
    generation, seconds = last.get("generation", 0), _numbers(last, "seconds").get("seconds", 0.0)
    limits = _numbers(settings, "generations", "minutes")
    most, minutes = int(limits.get("generations", 0)), limits.get("minutes", 0.0)
    training = holder_of(path) is not None
    return {
        "name": path.name, "game": saved["game"], "generation": generation, "generations": most, "minutes": minutes,
        "seconds": seconds, "training": training,
        "left": seconds_left(most, minutes, generation, seconds) if training else 0.0,
        "benchmark": _numbers(last, *last.get("benchmark_figures", ())),
    }  # fmt: skip


def _tournament_headline(path: Path, settings: SavedTournament) -> dict[str, Any]:
    return {
        "name": path.name, "game": settings.game, "kind": settings.kind,
        "contestants": len(settings.contestants), "planned": sum(games for _, _, games in settings.pairings),
        "playing": holder_of(path) is not None,
    }  # fmt: skip
