"""Command lines for messages and of other programs, as the shells of each system take them."""

import subprocess
import sys
from pathlib import Path

import pytest

from alphazero import invocation
from alphazero.invocation import command_line, quoted
from alphazero.players import engine_process
from alphazero.players.engine_process import split_command

WORDS = [
    "runs/c4-1", "a b", "it's", "", "$HOME", "*", "x;y", "größer", 'gtp:"gnugo --mode gtp"',
    "runs/c4@simulations=2,temperature=0",
]  # fmt: skip


def test_a_shell_gives_back_the_words_that_were_quoted():
    line = quoted(sys.executable, "-c", "import sys; print(ascii(sys.argv[1:]))", *WORDS)
    shown = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=60, check=True).stdout
    assert shown == f"{WORDS!a}\n"


def test_a_name_that_begins_with_a_hyphen_is_no_option():
    """`report -run` once followed a run in --run=-run."""
    assert command_line("report", Path("-run")).endswith("report ./-run")
    assert quoted("--run", Path("-run"), "--resume", "--game", "-x.py") == "--run ./-run --resume --game=-x.py"
    assert quoted("--initial-net", Path("-run") / "net") == "--initial-net ./-run/net"


@pytest.fixture
def windows(monkeypatch):
    monkeypatch.setattr(invocation, "WINDOWS", True)
    monkeypatch.setattr(engine_process, "WINDOWS", True)


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("a b", '"a b"'), ("", '""'), ("$HOME", '"$HOME"'), ("runs/c4-1", "runs/c4-1"),
        ('gtp:"x y"', '"gtp:\\"x y\\""'),
        ("C:\\my runs\\", '"C:\\my runs\\\\"'), ('a\\"b', '"a\\\\\\"b"'), ('a\\\\b "c', '"a\\\\b \\"c"'),
    ],
)  # fmt: skip
def test_words_are_quoted_as_programs_of_windows_read_them(windows, word: str, line: str):
    """Docs of Microsoft's C, "Parsing C command-line arguments": backslashes count before a quotation mark alone."""
    assert quoted("pit", word, "human") == f"pit {line} human"


def test_paths_of_windows_need_no_quotation_marks_and_commas_need_them(windows):
    assert quoted("report", r"runs\c4-1") == r"report runs\c4-1"
    assert quoted("--sprt", "0,20") == '--sprt "0,20"'  # PowerShell takes a bare comma for two words


def test_a_command_line_is_split_as_a_shell_does():
    assert split_command(r"gnugo --mode 'a b' c\ d") == ["gnugo", "--mode", "a b", "c d"]


def test_backslashes_are_parts_of_paths_on_windows(windows):
    assert split_command(r'"C:\Program Files\g.exe" --mode x\y') == [r"C:\Program Files\g.exe", "--mode", r"x\y"]


def test_a_stream_without_a_character_shows_its_number():
    code = "from alphazero.machine import take_any_text\ntake_any_text()\nprint('\u2588 ok')"
    shown = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", code], capture_output=True, timeout=60, check=True,
        env={"PYTHONIOENCODING": "cp1252", "PYTHONPATH": str(invocation.ROOT)},
    ).stdout  # fmt: skip
    assert shown.split() == [b"\\u2588", b"ok"]
