"""Tables, JSON, CSV and the page of a tournament, from results that were made up."""

import csv
import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.game.record import GameRecord
from alphazero.matches.intervals import score_interval
from alphazero.players.contestants import ContestantText
from alphazero.tournaments.standings import Standings, as_csv, as_json, as_text, score_of, write_report
from alphazero.tournaments.tournament import make_tournament
from tests.game.double_move_game import DoubleMove
from tests.search.row_game import ROW

TIC_TAC_TOE = registry.load("tictactoe").game
NAMES = ("a", "<b>", "c")


def record(first, second, number, result, moves=("a1", "b1", "a2", "b2", "a3"), opening=(), seconds=(0.3, 0.1)):
    return GameRecord("tictactoe", number, (first, second), tuple(opening), tuple(moves), result, seconds, 0)


RECORDS = [
    record("a", "<b>", 0, "1-0"),
    record("<b>", "a", 1, "1/2-1/2"),
    record("a", "c", 0, "1-0", moves=("b1", "a2", "b2", "a3", "c3"), opening=("a1",)),
    record("c", "a", 1, "1-0"),
    record("<b>", "c", 0, "0-1"),
    record("c", "<b>", 1, "0-1"),
]


@pytest.fixture
def standings():
    tournament = make_tournament("tictactoe", "round-robin", list(map(ContestantText.parse, NAMES)), 2, None, 0, False)
    return Standings(tournament, RECORDS, TIC_TAC_TOE)


def test_pairs_that_played_on_are_told(standings):
    assert "played on" not in as_text(standings) and as_json(standings)["pairs_that_played_on"] == 0
    more = [record("a", "<b>", 2, "1-0"), record("<b>", "a", 3, "1-0")]
    longer = Standings(standings.tournament, [*RECORDS, *more], TIC_TAC_TOE)
    assert "1 pair played on because" in as_text(longer)
    assert as_json(longer)["pairs_that_played_on"] == 1


def test_scores_by_hand(standings):
    rows = {row.name: row for row in standings.rows}
    a, b, c = (rows[name] for name in NAMES)
    assert (a.wins, a.draws, a.losses, a.score, a.score_when_first) == (2, 1, 1, 2.5 / 4, 1.0)
    assert (b.wins, b.draws, b.losses, b.score, b.score_when_first) == (1, 1, 2, 1.5 / 4, 0.25)
    assert (c.wins, c.draws, c.losses, c.score, c.score_when_first) == (2, 0, 2, 0.5, 0.5)
    assert [row.name for row in standings.rows] == ["a", "c", "<b>"]
    assert sum(row.rating for row in standings.rows) == pytest.approx(0.0)
    assert a.better_than_next > 0.5 and b.better_than_next is None
    first, second = standings.rows_of(["<b>", "a"])
    assert first.name == "a" and first.better_than_next > a.better_than_next and second.better_than_next is None
    assert a.lengths == (5, 5, 6, 5) and b.lengths == (5, 5, 5, 5)
    assert score_of(standings.both[0, 1]) == 0.75 and score_of(standings.both[1, 0]) == 0.25


def test_time_is_shared_among_the_moves_that_each_has_chosen(standings):
    # as first player 3 of 5 moves, as second 2; with one ply of opening the second player has 3 of 5
    rows = {row.name: row for row in standings.rows}
    assert rows["a"].ms_per_move == pytest.approx(1000 * (0.3 + 0.1 + 0.3 + 0.1) / (3 + 2 + 2 + 2))
    assert rows["c"].ms_per_move == pytest.approx(1000 * (0.1 + 0.3 + 0.1 + 0.3) / (3 + 3 + 2 + 3))


def test_moves_are_counted_where_a_player_moves_twice_in_a_row():
    game = DoubleMove()
    position, words = game.start(), []
    while not position.terminal:
        words.append((position.to_play, position.format(position.legal_actions[0])))
        position = position.play(position.legal_actions[0])
    moves = [word for _, word in words]
    tournament = make_tournament("double", "round-robin", list(map(ContestantText.parse, NAMES)), 1, None, 0, False)
    played = record("a", "<b>", 0, "1-0", moves=moves[1:], opening=moves[:1])
    rows = {row.name: row for row in Standings(tournament, [played], game).rows}
    by_second = sum(player for player, _ in words[1:])
    assert rows["<b>"].ms_per_move == pytest.approx(100 / by_second)
    assert rows["a"].ms_per_move == pytest.approx(300 / (len(words) - 1 - by_second))
    assert by_second != len(moves[1:]) // 2, "this game would not tell"


def test_in_a_game_for_three_the_moves_of_one_seat_are_those_of_the_contestant_that_is_alone():
    game, names = registry.load("tictacmo").game, NAMES[:2]
    tournament = make_tournament("tictacmo", "round-robin", list(map(ContestantText.parse, NAMES)), 4, None, 0, False)
    moves = ("b1", "e2", "b2", "d1", "a2", "c3")  # after a1 the second and the third player have two each
    games = [
        GameRecord("tictacmo", number, names[:: 1 - 2 * (number % 2)], ("a1",), moves, "0-1", (0.3, 0.8), 0)
        for number in (2, 3)
    ]
    shown = Standings(tournament, games, game)
    assert {row.name: row.ms_per_move for row in shown.rows} == pytest.approx({"a": 1100 / 6, "<b>": 1100 / 6, "c": 0})
    alone = Standings(tournament, games[:1], game)  # a has the second seat: 2 of 6 moves
    assert {row.name: row.ms_per_move for row in alone.rows} == pytest.approx({"a": 150.0, "<b>": 200.0, "c": 0})
    assert "One seat against all others is worth" in as_text(shown) and "Moving first" not in as_text(shown)


def test_matches_and_distinct_games(standings):
    written = as_json(standings)
    assert [(m["first"], m["second"], m["wins"], m["draws"], m["losses"]) for m in written["matches"]] == [
        ("a", "<b>", 1, 1, 0), ("a", "c", 1, 0, 1), ("<b>", "c", 1, 0, 1),
    ]  # fmt: skip
    assert [m["distinct_games"] for m in written["matches"]] == [1, 2, 1] and written["distinct_games"] == 4
    assert [row["name"] for row in written["contestants"]] == list(NAMES) and written["games"] == 6


def test_the_text_has_a_table_a_cross_table_and_what_to_know(standings):
    text = as_text(standings)
    assert text.startswith("tictactoe: round-robin of 3 contestants, 6 games, 4 of them distinct\n")
    assert re.search(r"^1  a +\+\d+ ± \d+ +4  62.5%  100.0%", text, re.MULTILINE)
    assert re.search(r"^1  a +-  50.0  75.0$", text, re.MULTILINE)
    assert "the mean is 0" in text and "Warning" not in text
    assert "<b>" not in as_text(standings, ["a", "c"]).split("score in %")[0]


def test_doubts_are_said():
    tournament = make_tournament("tictactoe", "gauntlet", list(map(ContestantText.parse, NAMES)), 2, None, 0, False)
    records = [RECORDS[0], RECORDS[1], record("a", "c", 0, "1-0"), record("c", "a", 1, "0-1")]
    standings = Standings(tournament, records, TIC_TAC_TOE)
    assert "Warning: c: nothing but wins or nothing but losses" in as_text(standings)
    assert score_of(standings.both[1, 2]) is None


def test_who_never_moved_first_has_no_score_of_moving_first():
    tournament = make_tournament("tictactoe", "gauntlet", list(map(ContestantText.parse, NAMES)), 1, None, 0, False)
    standings = Standings(tournament, [RECORDS[0], record("a", "c", 0, "0-1")], TIC_TAC_TOE)
    rows = {row.name: row for row in standings.rows}
    assert rows["a"].score_when_first == 0.5 and rows["c"].score_when_first is None
    assert re.search(r"^1  c .* 100\.0%  +\d+\.\d\d ", as_text(standings), re.MULTILINE)
    written = as_json(standings)["contestants"]
    assert [row["score_when_first"] for row in written] == [0.5, None, None]
    cells = [row["score_when_first"] for row in csv.DictReader(io.StringIO(as_csv(written).decode()))]
    assert cells == ["0.5", "", ""]


def test_in_a_game_for_one_nobody_moves_first():
    """Rows that say who begins would rate the place in a pair, which nobody has seen there."""
    solo = registry.load("2048").game
    tournament = make_tournament("2048", "round-robin", list(map(ContestantText.parse, NAMES)), 2, None, 0, False)
    moves = {"moves": ("down",), "opening": ("b3=2", "a1=4")}
    records = [replace(each, game="2048", **moves) for each in RECORDS]
    standings = Standings(tournament, records, solo)
    told = as_text(standings)
    assert "first" not in told and "Equal players draw" in told and standings.ratings.advantage == pytest.approx(0)
    assert standings.rows[0].score == Standings(tournament, RECORDS, TIC_TAC_TOE).rows[0].score
    assert [row["score_when_first"] for row in as_json(standings)["contestants"]] == [None] * 3


def test_in_a_game_for_one_times_lengths_and_games_are_of_what_each_has_played():
    tournament = make_tournament(
        "tests.search.row_game", "round-robin", list(map(ContestantText.parse, NAMES)), 2, None, 0, False
    )
    games = [
        GameRecord(
            "row", number, names, (), ("0",) * 8, "1-0", (0.8, 1.6), 0, others=("1", "2")[number : number + 1] * 4
        )
        for number, names in enumerate([("a", "<b>"), ("<b>", "a")])
    ]
    standings = Standings(tournament, games, ROW)
    rows = {row.name: row for row in standings.rows}
    # 8 and 4 plies each: 0.8 and 1.6 s of a, 1.6 and 0.8 of the other one
    assert rows["a"].ms_per_move == pytest.approx(1000 * (0.8 + 1.6) / 12) == rows["<b>"].ms_per_move
    assert rows["a"].lengths == (8, 4) and rows["<b>"].lengths == (4, 8)
    assert standings.distinct_games == 2  # the first one's moves are the same in both


def test_nothing_is_worth_minus_zero_points(standings):
    standings.ratings = replace(standings.ratings, advantage=-0.3, elo=np.array([-0.2, -0.4, 0.6]))
    assert "Moving first is worth +0 ± " in as_text(standings) and "-0 ±" not in as_text(standings)


def test_scores_and_lengths_have_intervals(standings):
    written = as_json(standings)
    plies = written["contestants"][0]["plies"]
    assert plies["mean"] == 5.25 and plies["median"] == 5.0 and plies["quantile_90"] == pytest.approx(5.7)
    # the deviation of 5, 5, 6, 5 is sqrt(0.75 / 3), that of their mean half of it
    assert plies["interval"] == pytest.approx([5.25 - 3.18245 / 4, 5.25 + 3.18245 / 4], abs=1e-4)  # Student's t
    match = written["matches"][0]
    assert match["score"] == 0.75 and match["score_interval"] == list(score_interval(1, 1, 0))


def test_tables_are_csv(standings):
    rows = list(csv.DictReader(io.StringIO(as_csv(as_json(standings)["contestants"]).decode())))
    assert [row["name"] for row in rows] == list(NAMES) and float(rows[0]["score"]) == 0.625
    assert "score_interval" not in rows[0] and float(rows[0]["better_than_next"]) > 0.5
    assert [row["better_than_next"] for row in rows if row["name"] == "<b>"] == [""], "nobody is below the last"
    matches = list(csv.DictReader(io.StringIO(as_csv(as_json(standings)["matches"]).decode())))
    assert float(matches[0]["score"]) == 0.75


def test_pairs_that_play_the_same_games_again_are_told(standings):
    """Ratings from 5 games, of which each was played 16 times, once came without a word."""
    assert not any("different games" in warning for warning in standings.warnings)
    again = [replace(RECORDS[number], number=number + 2 * i) for i in (1, 2) for number in (0, 1)]
    repeated = Standings(standings.tournament, [*RECORDS, *again], TIC_TAC_TOE)
    (warning,) = (warning for warning in repeated.warnings if "different games" in warning)
    assert warning.startswith("1 pair played fewer different games")
    assert f"Warning: {warning}." in as_text(repeated)


def test_the_folder_gets_every_file_and_a_page_of_its_own(standings, tmp_path):
    write_report(tmp_path, standings)
    pictures = {"ratings.png", "ratings.svg"}
    assert {path.name for path in tmp_path.iterdir()} == {
        *pictures, "results.json", "standings.csv", "matches.csv", "report.html",
    }  # fmt: skip
    page = (tmp_path / "report.html").read_text()
    assert page.count("data:image/svg+xml;base64,") == 1 and "&lt;b&gt;" in page and "<b>" not in page
    assert not re.search(r'(?:src|href)="(?!data:)', page)


def test_results_of_any_size_are_written_for_programs(standings, tmp_path, monkeypatch):
    monkeypatch.setattr("alphazero.storage.files.MAX_JSON_BYTES", 100)  # a hundred contestants have more than 1 MB
    monkeypatch.setattr("alphazero.tournaments.standings.has_matplotlib", lambda: False)
    write_report(tmp_path, standings)
    assert json.loads((tmp_path / "results.json").read_text())


def test_games_that_were_given_up_are_told(standings):
    assert "gave up" not in as_text(standings) and {row.forfeits for row in standings.rows} == {0}
    given_up = [replace(RECORDS[0], forfeit="<b>: resigns"), *RECORDS[1:3], replace(RECORDS[3], forfeit="a: ended")]
    more = [*given_up, *RECORDS[4:], replace(record("<b>", "a", 3, "0-1"), forfeit="<b>: resigns")]
    told = Standings(standings.tournament, more, TIC_TAC_TOE)
    text, rows = as_text(told), as_json(told)["contestants"]
    assert "a gave up 1 game, counted as lost; all_games.jsonl says why." in text
    assert "<b> gave up 2 games, " in text and "c gave up" not in text
    assert [row["forfeits"] for row in rows] == [1, 2, 0]
    assert [row["forfeits"] for row in csv.DictReader(io.StringIO(as_csv(rows).decode()))] == ["1", "2", "0"]
