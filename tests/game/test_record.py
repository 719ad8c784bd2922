"""Games on disk: what `pit.py --save-games` writes is what was played, and `--replay` shows it."""

import json
import re
import sys
from pathlib import Path

import pytest

from alphazero.catalogue import registry
from alphazero.commands import pit
from alphazero.commands.shared import run_command
from alphazero.errors import IllegalAction, InputError
from alphazero.game.record import GameRecord, read_records, write_records
from tests.storage.resealing import without_seals
from tests.storage.small_run import flip

PLAYED: dict[tuple[str, ...], bytes] = {}
"""The lists of games that were played, by the arguments."""


def saved(tmp_path: Path, *argv: str) -> Path:
    path = tmp_path / "games.jsonl"
    if argv not in PLAYED:
        assert run_command(pit.main, [*argv, "--save-games", str(path)]) == 0
        PLAYED[argv] = path.read_bytes()
    path.write_bytes(PLAYED[argv])
    return path


@pytest.mark.parametrize("name", ["tictactoe", "dots_and_boxes", pytest.param("othello6", marks=pytest.mark.slow)])
def test_saved_games_are_those_that_were_played(name: str, tmp_path: Path, capsys):
    path = saved(tmp_path, "greedy", "random", "--game", name, "--games", "8", "--seed", "3")
    report = capsys.readouterr().out
    records = read_records(path)
    assert [record.number for record in records] == list(range(8))
    wins = 0
    for record in records:
        assert record.game == name and record.seed == 3
        assert record.contestants == (("greedy", "random") if record.number % 2 == 0 else ("random", "greedy"))
        partner = records[record.number ^ 1]
        assert record.opening == partner.opening and len(record.opening) >= 2
        positions = record.positions(registry.load(name).game)
        assert positions[-1].terminal
        assert record.result == {1: "1-0", 0: "1/2-1/2", -1: "0-1"}[positions[-1].outcome]
        assert all(seconds >= 0 for seconds in record.seconds)
        wins += record.result == ("1-0" if record.number % 2 == 0 else "0-1")
    assert f"wins            {wins}\n" in report


def test_a_replay_lists_the_games_and_shows_every_position(tmp_path: Path, capsys):
    path = saved(tmp_path, "greedy", "random", "--game", "tictactoe", "--games", "4")
    capsys.readouterr()
    assert run_command(pit.replay, [str(path)]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed[0].startswith("4 games") and len(listed) == 5
    record = read_records(path)[1]
    assert run_command(pit.replay, [str(path), "1"]) == 0
    shown = capsys.readouterr().out
    for position in record.positions(registry.load("tictactoe").game):
        assert f"\n\n{position}\n" in shown
    assert f"opening: {record.opening[0]}" in shown and f"{record.contestants[0]} plays" in shown
    assert shown.rstrip().endswith(f"random - greedy: {record.result}")


def test_a_replay_at_a_terminal_goes_forward_back_and_ends(tmp_path: Path, capsys, monkeypatch):
    path = saved(tmp_path, "greedy", "random", "--game", "tictactoe", "--games", "2")
    capsys.readouterr()
    answers = iter(["", "", "b", "q"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(answers))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert run_command(pit.replay, [str(path), "0"]) == 0
    last = len(read_records(path)[0].moves) + 2
    shown = [line for line in capsys.readouterr().out.splitlines() if f" of {last}" in line]
    assert [line.split()[0] for line in shown] == ["0", "1", "2", "1"]


@pytest.mark.parametrize("words", [["0", "1"], ["0", "random"], ["2"], ["-1"], ["x"], [""]])
def test_a_replay_takes_the_number_of_one_game(words, tmp_path: Path, capsys):
    path = saved(tmp_path, "greedy", "random", "--game", "tictactoe", "--games", "2")
    capsys.readouterr()
    assert run_command(pit.replay, [str(path), *words]) == 2
    shown, errors = capsys.readouterr()
    assert shown == "" and errors.count("\n") == 1


def changed(path: Path, **fields: object) -> None:
    value = json.loads(without_seals(path.read_text()).splitlines()[0])
    path.write_text(json.dumps(value | fields) + "\n")


@pytest.mark.parametrize(
    "fields", [{"moves": "b2"}, {"moves": [1]}, {"number": "0"}, {"more": 1}, {"contestants": ["a"]}, {"seed": 1.5}]
)
def test_a_line_of_another_form_is_refused_with_its_number(fields, tmp_path: Path):
    path = saved(tmp_path, "greedy", "random", "--game", "tictactoe", "--games", "2")
    changed(path, **fields)
    with pytest.raises(InputError, match=r"games.jsonl, line 1: .* --save-games writes such lines"):
        read_records(path)


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_no_flipped_bit_of_a_list_of_games_is_believed(step: int, tmp_path: Path):
    path = saved(tmp_path, "greedy", "random", "--game", "tictactoe", "--games", "1")
    content, records = path.read_bytes(), read_records(path)
    for bit in range(0, 8 * (len(content) - 1), step):  # the last byte is the line break
        path.write_bytes(content)
        flip(path, bit)
        with pytest.raises(InputError, match=r"games.jsonl, line 1"):
            read_records(path)
    path.write_text(without_seals(content.decode()))
    assert read_records(path) == records


def test_what_a_file_names_is_not_run_and_illegal_moves_are_found(tmp_path: Path, capsys):
    path = saved(tmp_path, "greedy", "random", "--game", "tictactoe", "--games", "2")
    (tmp_path / "evil.py").write_text("raise SystemExit(99)")
    changed(path, game=str(tmp_path / "evil.py"))
    assert run_command(pit.replay, [str(path), "0"]) == 2
    assert "does not come with alphazero" in capsys.readouterr().err
    changed(path, game="tictactoe", moves=["z9"])
    with pytest.raises(IllegalAction, match="z9"):
        read_records(path)[0].positions(registry.load("tictactoe").game)
    assert run_command(pit.replay, [str(path), "0"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("argv", [["no/file"], [".", "0"], ["x", "1", "2", "a"]])
def test_wrong_replays_get_one_sentence(argv, capsys):
    assert run_command(pit.replay, argv) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_replay_shows_a_forced_pass_that_the_file_leaves_out(tmp_path: Path, capsys):
    """As files of WTHOR do; and an opening may have one."""
    moves = ["d3", "c3", "e6", "d2", "d1", "e1", "b2", "c1", "a3"]
    for number, opening in ((0, 0), (1, 9)):
        record = GameRecord("othello", number, ("a", "b"), (*moves[:opening],), (*moves[opening:],), "*", (0.0, 0.0), 0)
        write_records(tmp_path / "games.jsonl", [record])
        assert run_command(pit.replay, [str(tmp_path / "games.jsonl"), "0"]) == 0
        steps = re.findall(r"\n\d+ of 10  (.*)\n", capsys.readouterr().out)
        names = ("a plays ", "b plays ") if number == 0 else ("opening: ", "opening: ")
        assert steps[1:] == [names[i % 2] + word for i, word in enumerate([*moves[:8], "pass", "a3"])]
