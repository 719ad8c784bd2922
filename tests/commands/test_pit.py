"""The command `pit.py`: reports, exit codes, and what a wrong command line gets."""

import dataclasses
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch

from alphazero.catalogue import registry
from alphazero.commands import pit
from alphazero.commands.shared import parse, run_command
from alphazero.errors import InputError
from alphazero.game.record import GameRecord, read_records, write_records
from alphazero.nets.torch_net import TorchNet
from alphazero.progress import Progress, say

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = shlex.quote(str(ROOT / "pit.py"))


def run_pit(*arguments):
    return run_command(pit.main, [str(argument) for argument in arguments])


def figure(report: str, name: str) -> str:
    return re.search(rf"^{name} +(.*)$", report, re.MULTILINE)[1]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    loaded = registry.load("tictactoe")
    path = tmp_path_factory.mktemp("nets") / "net.safetensors"
    loaded.make_net(loaded.game, {"blocks": 1, "channels": 8}).save(path, {})
    return path


def test_a_match_is_reported_and_written(capsys, tmp_path):
    file = tmp_path / "result.json"
    assert run_pit("random", "greedy", "--games", 50, "--seed", 3, "--json", file) == 0
    report, errors = capsys.readouterr()
    assert report.startswith("connect4: random against greedy, 50 games\n") and errors == ""
    written = json.loads(file.read_text())
    first, second = written["contestants"]
    assert [first["name"], second["name"]] == ["random", "greedy"]
    assert first["wins"] + first["draws"] + first["losses"] == written["games"] == 50
    assert (first["wins"], first["draws"], first["losses"]) == (second["losses"], second["draws"], second["wins"])
    assert [first[name] for name in ("wins", "draws", "losses")] == [
        int(figure(report, name)) for name in ("wins", "draws", "losses")
    ]
    assert first["score"] == (first["wins"] + first["draws"] / 2) / 50 == pytest.approx(1 - second["score"])
    assert figure(report, "score").startswith(f"{first['score']:.1%} (95% interval ")
    low, high = first["score_interval"]
    assert low < first["score"] < high and second["score_interval"] == pytest.approx([1 - high, 1 - low])
    assert (written["game"], written["seed"], written["forfeits"]) == ("connect4", 3, 0)
    elo, (low, high) = written["elo_difference"], written["elo_interval"]
    assert figure(report, "Elo difference") == f"{elo:+.0f} ({low:+.0f} to {high:+.0f})" and low < elo < 0
    assert written["distinct_games"] == int(figure(report, "distinct games"))
    assert first["ms_per_move"] > 0 and second["ms_per_move"] > 0


@pytest.mark.parametrize("others", [["random"], ["random", "greedy"]], ids=["match", "tournament"])
def test_the_device_reaches_the_nets(checkpoint, others: list[str], tmp_path, monkeypatch, capsys):
    devices: list[str] = []
    use_device = TorchNet.use_device
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(TorchNet, "use_device", lambda self, name: (devices.append(name), use_device(self, name))[1])
    assert run_pit(checkpoint, *others, "--device", "cpu", "--games", 2, "--simulations", 2) == 0
    assert devices == ["cpu"]


def test_the_same_seed_gives_the_same_match(tmp_path):
    results = []
    for i, (seed, threads) in enumerate([(1, 1), (1, 2), (2, 1)]):
        file = tmp_path / f"{i}.json"
        arguments = ("mcts:20", "mcts:10@temperature=1", "--game", "tictactoe", "--games", 40)
        assert run_pit(*arguments, "--seed", seed, "--threads", threads, "--json", file) == 0
        results.append(re.sub(r'"ms_per_move": .*', "", file.read_text()))
    assert results[0] == results[1] != results[2]


def test_the_game_is_that_of_the_checkpoint(checkpoint, capsys):
    assert run_pit("random", f"{checkpoint}@simulations=4", "--games", 4) == 0
    assert capsys.readouterr().out.startswith("tictactoe: random against ")
    assert run_pit(checkpoint, checkpoint, "--games", 4, "--simulations", 0) == 0
    assert run_pit(checkpoint, "random", "--game", "connect4") == 2
    assert "a net for tictactoe, not for connect4" in capsys.readouterr().err


def test_who_leaves_keeps_the_games_that_are_over(monkeypatch, capsys, tmp_path):
    answers = ["a1", "b1", "a2", "b2", "a3", "b1", "quit"]
    monkeypatch.setattr("builtins.input", lambda prompt: answers.pop(0))
    file, result = tmp_path / "games.jsonl", tmp_path / "x.json"
    line = ("human", "human", "--game", "tictactoe", "--games", 4, "--save-games", file, "--json", result)
    assert run_pit(*line) == 0
    report = capsys.readouterr().out
    assert "You have left the match." in report and figure(report, "wins") == "1" and answers == []
    assert [record.moves for record in read_records(file)] == [("a1", "b1", "a2", "b2", "a3")]
    assert json.loads(result.read_text())["games"] == 1


WRONG = [
    ("", f"pit takes two contestants, as in python {SCRIPT} random greedy, not 0"),
    ("random greedy random", "is there twice"),
    ("random greedy --simulatons 5", "did you mean --simulations?"),
    ("random --gmaes 5 greedy", "did you mean --games?"),
    ("random greedy -x", "unknown option '-x'"),
    ("random greedy --games", "--games needs a value"),
    ("random greedy --games ten", "--games takes a number, not 'ten'"),
    ("random greedy --games -5", "--games must lie between 1 and 1,000,000, not -5"),
    ("random greedy --device gpu", "unknown device 'gpu'; did you mean 'cuda'? (allowed: auto, cpu, cuda)"),
    ("random greedy --seed x", "--seed takes a whole number, not 'x'"),
    ("random greedy --game conect4", "did you mean 'connect4'?"),
    ("random greedy --json /none/x.json", "--json takes a file in a folder that exists"),
    ("random greedy --json x --save-games ../{0}/x", "two options name one file"),
    ("random gredy", "did you mean 'greedy'?"),
]


@pytest.mark.parametrize(("line", "message"), WRONG, ids=[line for line, _ in WRONG])
def test_a_wrong_command_line_gets_one_sentence(line, message, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert run_pit(*line.format(tmp_path.name).split()) == 2
    shown, errors = capsys.readouterr()
    assert shown == "" and errors.count("\n") == 1
    assert errors.startswith("error: ") and message in errors


def test_a_game_is_stepped_through_without_a_standard_input(capsys, monkeypatch, tmp_path):
    file = tmp_path / "games.jsonl"
    assert run_pit("random", "greedy", "--game", "tictactoe", "--games", 2, "--save-games", file) == 0
    monkeypatch.setattr(sys, "stdin", None)
    assert run_command(pit.replay, [str(file), "1"]) == 0
    assert "greedy - random: " in capsys.readouterr().out
    sys.stdin.close()  # the empty one that the command has put in its place


def test_both_contestants_games_are_stepped_through_in_a_game_for_one(capsys, tmp_path):
    moves, others = ("b3=2 a3=2 left c1=2", "b3=2 a3=2 up c4=4")
    record = GameRecord("2048", 0, ("random", "greedy"), (), tuple(moves.split()), "0-1", (0.0, 0.0), 1)
    write_records(tmp_path / "games.jsonl", [dataclasses.replace(record, others=tuple(others.split()))])
    assert run_command(pit.replay, [str(tmp_path / "games.jsonl"), "0"]) == 0
    steps = re.findall(r"\n\d of 9  (.*)\n", shown := capsys.readouterr().out)
    assert steps[:5] == ["", "then b3=2", "then a3=2", "random plays left", "then c1=2"]
    assert steps[5:] == ["greedy begins", "then b3=2", "then a3=2", "greedy plays up", "then c4=4"]
    assert shown.endswith("random - greedy: 0-1\n")


@pytest.mark.parametrize(("error", "code"), [("KeyboardInterrupt", 130), ("InputError('no more')", 2)])
def test_a_match_that_is_not_finished_keeps_its_games(tmp_path, capsys, error, code):
    """After hours with slow engines, Ctrl-C once left nothing of them."""
    program, games, result = tmp_path / "player.py", tmp_path / "games.jsonl", tmp_path / "result.json"
    program.write_text(
        "import numpy as np\nfrom alphazero.errors import InputError\nasked = 0\n\n"
        "def last(planes):\n    global asked\n    asked += 1\n"
        f"    if asked > 5:\n        raise {error}\n    return np.tile(np.arange(9.0), (len(planes), 1))\n"
    )
    argv = [f"python:{program}:last", "random", "--game", "tictactoe", "--games", 2000]
    assert run_pit(*argv, "--save-games", games, "--json", result) == code
    said = capsys.readouterr().out
    finished = json.loads(result.read_text())["games"]
    assert [record.number for record in read_records(games)] == list(range(finished)) and 100 < finished < 2000
    assert said.startswith(f"The match was not finished; these are its first {finished} games.\ntictactoe: ")


def test_the_exit_codes(capsys):
    def interrupted(argv):
        raise KeyboardInterrupt

    def broken(argv):
        raise ZeroDivisionError

    def refused(argv):
        raise InputError("two\nlines")

    def unread(argv):
        raise BrokenPipeError

    assert run_command(lambda argv: None, []) == 0 and run_command(unread, []) == 1
    assert run_command(refused, []) == 2
    assert capsys.readouterr().err == "error: two lines\n"
    assert run_command(interrupted, []) == 130
    assert capsys.readouterr().err == "\ninterrupted\n"
    with pytest.raises(ZeroDivisionError):  # a bug of ours: Python shows it and exits with 1
        run_command(broken, [])


TERMINATED = """
import os, signal, sys, time
from concurrent.futures import ThreadPoolExecutor
from alphazero.commands.shared import run_command

def main(argv):
    try:
        {}
    finally:
        print("ended what it began")

sys.exit(run_command(main))
"""


@pytest.mark.parametrize(
    "work",
    [
        # as searches in compiled code, which cannot be interrupted
        "ThreadPoolExecutor().submit(time.sleep, 60); os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)",
        "from alphazero.catalogue import registry; registry.load('game.py')",
    ],
)
def test_a_command_that_is_terminated_ends_what_it_began(work, tmp_path):
    (tmp_path / "game.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n")
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", TERMINATED.format(work)], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=50,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (143, "ended what it began\n", "\nterminated\n")
    assert time.monotonic() - begin < 30


@dataclasses.dataclass(frozen=True)
class Inner:
    rate: float = 0.5


@dataclasses.dataclass(frozen=True)
class Outer:
    inner: Inner = dataclasses.field(default_factory=Inner)
    colour: str = "red"
    width: int = 1


def test_parse_knows_nested_settings_and_defaults():
    assert parse(Outer, ["--inner.rate", "2"]) == Outer(Inner(2.0))
    assert parse(Outer, ["--width=3"], default=Outer(Inner(4.0), "blue")) == Outer(Inner(4.0), "blue", 3)
    for argv, message in (
        (["--iner.rate", "2"], "unknown option '--iner.rate'; did you mean --inner.rate?"),
        (["--inner.rate", "x"], "--inner.rate takes a number, not 'x' (see --help)"),
        (["--color", "x"], "unknown option '--color'; did you mean --colour?"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            parse(Outer, argv)


def test_progress_without_a_terminal_is_a_line_now_and_then(monkeypatch, capsys):
    monkeypatch.setitem(
        sys.modules, "ipykernel", ModuleType("ipykernel")
    )  # a program that runs notebooks loads it, too
    monkeypatch.setattr("alphazero.progress._SECONDS_BETWEEN_LINES", 10.0)
    clock = iter([0, *range(1, 1000, 3)])
    monkeypatch.setattr("alphazero.progress.time.monotonic", lambda: float(next(clock)))
    with Progress("match") as progress:
        for done in range(1, 8):
            progress.show(done / 8, f"{done} of 8")
    lines = capsys.readouterr().err.splitlines()
    assert 0 < len(lines) < 7
    assert all(re.fullmatch(r"match: \d of 8, about \d\d:\d\d left", line) for line in lines)


@pytest.mark.parametrize("on_terminal", [True, False])
def test_work_goes_on_where_nobody_reads_its_progress(monkeypatch, on_terminal):
    tried = []

    def broken(*arguments):
        tried.append(arguments)
        raise BrokenPipeError

    stderr = SimpleNamespace(write=broken, flush=broken, isatty=lambda: on_terminal, encoding="utf-8")
    monkeypatch.setattr("alphazero.progress._SECONDS_BETWEEN_LINES", 0)
    monkeypatch.setattr(sys, "stderr", stderr)
    say("begun")
    with Progress("match") as progress:
        for done in range(1, 4):
            progress.show(done / 3, "games")
    assert ("begun",) in tried and len(tried) > 3, "all of it was written, and none of it ended the work"


def test_a_card_cannot_make_a_file_run(tmp_path, capsys):
    """A checkpoint is data: the game that its card names is never looked for among files and modules."""
    (tmp_path / "evil.py").write_text("raise SystemExit('executed')")
    net = tmp_path / "net.safetensors"
    for name in (str(tmp_path / "evil.py"), "antigravity"):
        loaded = registry.load("tictactoe")
        settings = {"blocks": 1, "channels": 8, "head_channels": 4, "value_hidden": 8}
        loaded.make_net(loaded.game, settings).save(net, {"game": name})
        assert run_command(pit.main, [str(net), "random"]) == 2
        said = capsys.readouterr().err
        assert "name its file or module by --game" in said and "executed" not in said
