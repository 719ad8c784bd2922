"""Files that users name: none is replaced without asking, and names that no file can have are refused in a sentence."""

import os
import sys
from pathlib import Path

import pytest

from alphazero.commands import doctor, pit, publish, tournament, train
from alphazero.commands.rules import benchmark
from alphazero.commands.shared import run_command
from alphazero.errors import InvalidSetting
from alphazero.players.human import HumanPlayer
from alphazero.storage.files import check_output_file
from alphazero.storage.run_folder import RunFolder

MATCH = ["random", "greedy", "--game", "tictactoe", "--games", "2"]
COMMANDS = {
    "pit --json": (pit.main, [*MATCH, "--json", "FILE"]),
    "pit --save-games": (pit.main, [*MATCH, "--save-games", "FILE"]),
    "tournament --json": (tournament.main, ["random", "greedy", "minimax:2", "--json", "FILE"]),
    "ladder --json": (tournament.ladder, ["run", "--json", "FILE"]),
    "benchmark --json": (benchmark.main, ["best", "--game", "connect4", "--json", "FILE"]),
    "publish": (publish.main, ["run", "FILE"]),
    "report --output": (doctor.report, ["run", "--output", "FILE"]),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_that_exists_is_left_as_it_is(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    RunFolder.create("run", {}).close()
    main, words = COMMANDS[name]
    file = tmp_path / {"publish": "net.safetensors", "report --output": "page.html"}.get(name, "out.json")
    file.write_text("precious")
    assert run_command(main, [word.replace("FILE", str(file)) for word in words]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("error: ") and "exists already" in said and said.endswith("or replace it by --overwrite")
    assert file.read_text() == "precious"


def test_the_card_of_another_net_is_left_as_it_is(tmp_path, capsys):
    (tmp_path / "net.json").write_text("precious")
    assert run_command(publish.main, ["run", str(tmp_path / "net.safetensors")]) == 2
    assert "net.json' exists already" in capsys.readouterr().err and (tmp_path / "net.json").read_text() == "precious"


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("", 2), ("no", 2)])
def test_at_a_terminal_it_is_asked(answer, code, tmp_path, monkeypatch):
    file, asked = tmp_path / "out.json", []
    file.write_text("precious")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: asked.append(question) or answer)
    assert run_command(pit.main, [*MATCH, "--json", str(file)]) == code
    assert len(asked) == 1 and str(file) in asked[0]
    assert (file.read_text() == "precious") == (code == 2)


def test_the_end_of_the_input_means_no(tmp_path, monkeypatch, capsys):
    def end(question):
        raise EOFError

    file = tmp_path / "out.json"
    file.write_text("precious")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", end)
    assert run_command(pit.main, [*MATCH, "--json", str(file)]) == 2
    assert file.read_text() == "precious" and "is left as it is" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_to_is_said_at_once(tmp_path, monkeypatch):
    """Before the work whose result goes there. The superuser may write anywhere, so the answer is given here."""
    asked = []
    monkeypatch.setattr("os.access", lambda folder, mode: asked.append((folder, mode)))
    with pytest.raises(
        InvalidSetting, match="--json takes a file in a folder .* that you can write to, not .*out.json"
    ):
        check_output_file("--json", tmp_path / "out.json")
    assert asked == [(tmp_path, os.W_OK | os.X_OK)]


def test_overwrite_replaces_files_and_nothing_else(tmp_path, capsys):
    file = tmp_path / "out.json"
    file.write_text("precious")
    assert run_command(pit.main, [*MATCH, "--json", str(file), "--overwrite"]) == 0
    assert '"seed"' in file.read_text()
    assert run_command(pit.main, [*MATCH, "--json", "/dev/null", "--overwrite"]) == 2
    assert not Path("/dev/null").is_file() and "'/dev/null' exists already" in capsys.readouterr().err


def test_save_leaves_a_file_as_it_is(tmp_path, capsys):
    file = tmp_path / "game.jsonl"
    file.write_text("precious")
    HumanPlayer._save(HumanPlayer.__new__(HumanPlayer), None, 0, str(file))
    assert "exists already, and is left as it is" in capsys.readouterr().out and file.read_text() == "precious"


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "x" * 250, "\ud800", "", ".."])
def test_a_name_that_no_file_can_have_is_refused(name, tmp_path):
    with pytest.raises(InvalidSetting, match="--json takes a file in a folder that exists"):
        check_output_file("--json", tmp_path / name)


@pytest.mark.parametrize("flags", [[], ["--resume"]], ids=["new", "resumed"])
@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "\ud800"], ids=["long", "NUL", "surrogate"])
def test_a_run_folder_that_cannot_be_is_refused(name, flags, tmp_path, capsys):
    assert run_command(train.main, ["--game", "tictactoe", "--run", str(tmp_path / name), *flags]) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(said) == 1


@pytest.mark.parametrize("name", ["a\0b", "\ud800"], ids=["NUL", "surrogate"])
@pytest.mark.parametrize(
    ("main", "words"),
    [
        (pit.main, [*MATCH, "--json"]), (pit.main, [*MATCH, "--save-games"]),
        (tournament.main, [*MATCH, "minimax:2", "--folder"]), (tournament.ladder, []), (pit.replay, []),
    ],
)  # fmt: skip
def test_a_name_in_a_command_is_refused_or_used(name, main, words, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = run_command(main, [*words, name])
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert (code, len(said)) in {(2, 1), (0, 0)}
