"""Texts out of files never steer the terminal: no control character and no mark that turns the direction of writing."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from alphazero.commands import doctor, pit, publish, train
from alphazero.commands.shared import run_command, say
from alphazero.errors import InputError, printable
from alphazero.game.record import GameRecord, write_records
from alphazero.web import one_file as make_page

TINY = [
    "--game", "tictactoe", "--generations", "1", "--net.blocks", "1", "--net.channels", "8", "--threads", "1",
    "--search.num-simulations", "4", "--self-play.games-per-generation", "8", "--self-play.num-slots", "4",
    "--evaluation.games", "2", "--evaluation.simulations", "2", "--evaluation.opponents", "random",
]  # fmt: skip
EVIL = "\x1b[2J\x07\x9b31m\u202eevil\u2066\u2028\r"


def test_all_that_steers_is_escaped_and_nothing_else():
    shown = printable(EVIL)
    assert shown == r"\x1b[2J\x07\x9b31m\u202eevil\u2066\u2028\r"
    for text in ("runs/c4:12@simulations=200", "größer ± 5 · █ ♟ 囲碁", ""):
        assert printable(text) == text
    for number in (*range(0x500), 0x2028, 0x202E, 0xD800, 0xFEFF):
        assert printable(chr(number)).isprintable()


def record(**changes: object) -> GameRecord:
    fields = {
        "game": "tictactoe", "number": 0, "contestants": ("random", EVIL), "opening": (), "moves": ("a1", "b2"),
        "result": "0-1", "seconds": (0.0, 0.0), "seed": 0, "forfeit": f"{EVIL} gave up",
    }  # fmt: skip
    return GameRecord(**(fields | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("words", [[], ["0"]], ids=["list", "step through"])
def test_a_replay_shows_texts_as_text(words, tmp_path: Path, capsys):
    write_records(tmp_path / "games.jsonl", [record()])
    assert run_command(pit.replay, [str(tmp_path / "games.jsonl"), *words]) == 0
    shown = capsys.readouterr().out
    assert r"\x1b[2J" in shown
    assert all(c.isprintable() or c == "\n" for c in shown)


@pytest.mark.parametrize("changes", [{"moves": [EVIL]}, {EVIL: 1}])
def test_errors_show_texts_as_text(changes, tmp_path: Path, capsys):
    path = tmp_path / "games.jsonl"
    write_records(path, [record()])
    path.write_text(json.dumps(json.loads(path.read_text()) | changes) + "\n")
    assert run_command(pit.replay, [str(path), "0"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and said[:-1].isprintable()


def test_logs_and_reports_show_texts_as_text(capsys):
    def main(argv: list[str]) -> None:
        logging.getLogger("alphazero").warning("opponent %s", EVIL)
        say(f"first {EVIL}\nsecond")
        raise InputError(f"no {EVIL}")

    assert run_command(main, []) == 2
    shown, said = capsys.readouterr()
    assert shown == f"first {printable(EVIL)}\nsecond\n"
    assert said.splitlines() == [f"opponent {printable(EVIL)}", f"error: no {printable(' '.join(EVIL.split()))}"]


def test_the_names_of_folders_are_shown_as_text(tmp_path: Path, monkeypatch, capsys):
    """A folder may be copied from somebody else, under the name that it had there."""
    monkeypatch.setattr(make_page, "make_file", lambda *_: "a page")
    run = str(tmp_path / f"run {EVIL}")
    for main, *words in (
        (train.main, *TINY, "--run", run, "--gate.no-enabled"),
        (doctor.main, run),
        (doctor.report, run),
        (publish.main, run, f"{run}/net.safetensors", "--opponents", "random", "--games", "2", "--threads", "1"),
        (publish.main, run, f"{run}/page.html"),
    ):
        assert run_command(main, words) == 0
        shown = capsys.readouterr().out
        assert printable(f"run {EVIL}") in shown, main
        assert all(c.isprintable() or c == "\n" for c in shown), main
