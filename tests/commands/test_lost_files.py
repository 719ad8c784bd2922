"""A run of which one file is lost: every command says so once, what can be saved, and never sends in a circle."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from alphazero.commands.program import main
from tests.commands.test_report import TINY

RESUME = ["train", "--game", "tictactoe", "--resume", "--run"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two generations."""
    path = tmp_path_factory.mktemp("runs") / "tiny-1"
    assert main(["train", *TINY, "--run", str(path)]) == 0
    return path


@pytest.fixture
def run(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(finished, "run"))


def ways(run: Path) -> list[list[str]]:
    return [
        [*RESUME, str(run)], ["train", "--game", "tictactoe", "--run", str(run)], ["report", str(run)],
        ["publish", str(run), "net.safetensors"],
    ]  # fmt: skip


def test_no_command_sends_to_another_that_sends_back(run: Path, capsys):
    """Without its settings, `--resume` once said to leave it out, and without it a run was told to add it."""
    (run / "config.json").unlink()
    newest = f"begin a new run with its newest net by --initial-net {run}/generation_0002.safetensors"
    for argv in ways(run):
        capsys.readouterr()
        assert main(argv) == 2
        said = capsys.readouterr().err.splitlines()[-1]
        assert "config.json" in said and "restore the file" in said and newest in said, argv
        assert "leave --resume out" not in said and "add --resume" not in said
        if argv[0] == "train" and "--resume" not in argv:  # who begins a run has asked about no settings
            assert said.startswith(f"error: {run} already holds a run: choose another folder. ")
    with pytest.raises(SystemExit):
        main(["doctor", str(run)])
    examined = " ".join(capsys.readouterr().out.split())
    assert "can be resumed" in examined and "no: its settings cannot be used" in examined and newest in examined
    assert main(["pit", str(run), "random", "--games", "2", "--simulations", "2"]) == 0  # the nets are whole
    new = ["train", *TINY, "--run", "next", "--initial-net", f"{run}/generation_0002.safetensors"]
    assert main([*new, "--generations", "1"]) == 0


@pytest.mark.parametrize(
    "name", ["metrics.jsonl", "generation_0002.safetensors", pytest.param("manifest_0002.json", marks=pytest.mark.slow)]
)
def test_a_lost_file_is_said_once_by_every_command_or_does_not_matter(run: Path, name: str, capsys, caplog):
    """Going back to an older generation was once said two or three times by one command."""
    (run / name).unlink()
    before = Path(shutil.copytree(run, "before"))
    for argv in (["report", str(run)], ["pit", str(run), "random", "--games", "2", "--simulations", "2"], ways(run)[0]):
        caplog.clear()
        capsys.readouterr()
        with caplog.at_level(logging.WARNING):
            code = main(argv)
        warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
        assert len(warnings) == len(set(warnings)), argv
        said = capsys.readouterr().err.splitlines()
        assert code in (0, 2) and (code == 0 or (said[-1].startswith("error: ") and name in said[-1])), argv
        assert argv[0] != "train" or code == 0
        shutil.rmtree(run)
        shutil.copytree(before, run)
    if name == "metrics.jsonl":
        assert "lacks the generations 1-2" in "".join(warnings)


def test_lost_matches_are_said_and_played_again(run: Path, capsys, caplog):
    """A run that was over without its `evaluation.json` looked to every command as if nothing were missing."""
    played = (run / "evaluation.json").read_bytes()
    (run / "evaluation.json").unlink()
    sentence = "run is over without evaluation.json, its last matches: --resume plays them again"
    assert main(["report", str(run)]) == 0
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [sentence]
    assert main(["doctor", str(run)]) == 0
    assert " ".join(capsys.readouterr().out.split()).count(sentence) == 1
    caplog.clear()
    assert main(ways(run)[0]) == 0
    assert (run / "evaluation.json").read_bytes() == played
    caplog.clear()
    assert main(["report", str(run)]) == 0 and sentence not in caplog.text
    (run / "evaluation.json").write_text("{")
    with pytest.raises(SystemExit):
        main(["doctor", str(run)])
    assert "play the matches again by --resume" in " ".join(capsys.readouterr().out.split())
