"""The command that trains: what wrong input gets, and how it is interrupted."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import alphazero as az
from alphazero.api import runs
from alphazero.api.runs import find_preset
from alphazero.catalogue import registry
from alphazero.commands import doctor
from alphazero.commands.shared import parse, run_command
from alphazero.commands.train import Options, _first_look, _next_commands, _results, main
from alphazero.errors import InputError, RunFolderError
from alphazero.storage.checkpoint import load_checkpoint, read_card
from alphazero.storage.manifest import read_config
from alphazero.storage.run_names import choose_folder
from alphazero.training.config import RunConfig
from alphazero.training.run import TrainedRun
from tests.storage.resealing import reseal_config

ROOT = Path(__file__).resolve().parents[2]
TINY = [
    "--game", "tictactoe", "--net.blocks", "1", "--net.channels", "8", "--search.num-simulations", "4",
    "--self-play.games-per-generation", "8", "--self-play.num-slots", "4", "--gate.games", "4",
    "--gate.simulations", "2", "--evaluation.games", "4", "--evaluation.opponents", "random", "--threads", "1",
]  # fmt: skip


def fails(capsys, *argv: str) -> str:
    """The one line on stderr of a command that must fail with exit code 2."""
    assert run_command(main, list(argv)) == 2
    shown = capsys.readouterr().err.strip().splitlines()
    said = [line for line in shown if line.startswith("error: ")]
    assert len(said) == 1 and "Traceback" not in "".join(shown)
    return said[0]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--game", "tictactoe", "--evaluation.opponents", "nobody"], ["unknown contestant 'nobody'"]),
        (["--game", "tictactoe", "--evaluation.opponents", "human"], ["human", "--evaluation.opponents"]),
        (["--game", "conect4"], ["conect4", "connect4", "tictactoe"]),
        (["--preset", "quik"], ["quik", "quick", "standard", "strong"]),
        (["--generatoins", "3"], ["--generatoins", "--generations"]),
        (["--generations", "many"], ["--generations", "many"]),
        (["--device", "gpu"], ["gpu", "cuda", "cpu"]),
        (["--game", "tictactoe", "--device", "cpu,cpu", "--deterministic"], ["one device"]),
        (["--search.num-simulations", "0"], ["num_simulations", "0"]),
        (["--net.lines", "8", "--net.line-length", "7"], ["line_length", "6", "7"]),
        (["--learner.batch-size", "1"], ["--learner.batch-size must lie between 2 and"]),
        (["--game", "tictactoe", "--deterministic", "--minutes", "5"], ["--deterministic", "--minutes"]),
        (["--game", "tictactoe", "--deterministic", "--cluster", "auto"], ["--deterministic", "--cluster"]),
        (["--cluster", "nowhere"], ["--cluster", "HOST:PORT", "nowhere"]),
        (["--cluster", "auto", "--cluster-workers", "0"], ["--cluster-workers", "0"]),
        (["--run", "nowhere", "--resume"], ["nowhere", "--resume"]),
        (["--resume"], ["runs/", "--run"]),
        (["--resume=runs/x"], ["--resume takes no value", "--run"]),
        (["--resume", "--preset", "quick"], ["--preset", "--resume", "its own settings"]),
    ],
    ids=lambda x: " ".join(x)[:40],
)
def test_wrong_input_gets_one_sentence(capsys, tmp_path, monkeypatch, argv, words):
    monkeypatch.chdir(tmp_path)
    said = fails(capsys, *argv)
    assert all(word in said for word in words), said
    assert not (tmp_path / "runs").exists()


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A run of one generation; look, do not touch."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    assert run_command(main, [*TINY, "--run", str(folder), "--generations", "1"]) == 0
    return folder


@pytest.fixture
def finished(tmp_path, trained) -> Path:
    """A run of one generation."""
    return shutil.copytree(trained, tmp_path / "run")


def test_a_folder_that_holds_a_run_is_not_overwritten(capsys, finished):
    before = {file: file.read_bytes() for file in finished.rglob("*") if file.is_file()}
    assert "--resume" in fails(capsys, *TINY, "--run", str(finished))
    assert {file: file.read_bytes() for file in finished.rglob("*") if file.is_file()} == before


def test_a_run_of_another_game_is_not_resumed(capsys, finished):
    said = fails(capsys, "--game", "connect4", "--run", str(finished), "--resume")
    assert "tictactoe" in said and "connect4" in said


def test_the_net_of_a_run_cannot_change(capsys, finished):
    argv = ["--game", "tictactoe", "--run", str(finished), "--resume", "--net.channels", "16"]
    assert "settings.net.channels: 8 -> 16" in fails(capsys, *argv)
    with pytest.raises(RunFolderError, match="^a resumed run keeps its network, so net and"):
        az.train("tictactoe", folder=finished, resume=True, net={"channels": 16}, progress=False)


def start_from(net: str, *more: str) -> list[str]:
    sizes = TINY.index("--net.blocks")
    return [*TINY[:sizes], *TINY[sizes + 4 :], "--initial-net", net, "--generations", "1", *more]


def test_a_run_can_start_from_another_net(capsys, tmp_path, finished):
    run = tmp_path / "next"
    assert run_command(main, start_from(f"{finished}:1", "--run", str(run))) == 0
    tensors, card = load_checkpoint(run / "generation_0000.safetensors")
    origin, origin_card = load_checkpoint(finished / "generation_0001.safetensors")
    assert tensors.keys() == origin.keys() and all(np.array_equal(tensors[name], origin[name]) for name in tensors)
    assert card["net"] == origin_card["net"]
    assert card["started_from"] == {"net": f"{finished}:1", "card_sha256": origin_card["card_sha256"]}
    learned, _ = load_checkpoint(run / "generation_0001.safetensors")
    assert not all(np.array_equal(learned[name], origin[name]) for name in tensors)
    saved = json.loads((run / "config.json").read_text())["settings"]
    assert (saved["net"]["blocks"], saved["net"]["channels"]) == (1, 8)
    capsys.readouterr()
    other = fails(capsys, "--game", "tictactoe", "--run", str(run), "--resume", "--initial-net", str(finished))
    assert "cannot be changed" in other


def test_a_run_from_python_takes_the_sizes_of_the_net_to_begin_with(monkeypatch, finished):
    monkeypatch.setattr(runs.run, "train", lambda loaded, config, *others, **more: config.net_settings)
    card = read_card(finished / "generation_0001.safetensors")
    assert az.train("tictactoe", initial_net=str(finished)) == card["net"]
    wider = {"channels": 12}
    assert az.train("tictactoe", initial_net=str(finished), net=wider) == card["net"] | wider
    config = az.RunConfig()  # all settings are given
    assert az.train("tictactoe", config, initial_net=str(finished)) == config.net_settings
    with pytest.raises(InputError, match="initial_net must be"):
        az.train("tictactoe", initial_net=3)


def test_a_run_whose_candidates_do_not_pass_says_whose_net_is_the_best(capsys, tmp_path, finished, monkeypatch):
    flags = ["--net.channels", "12", "--gate.threshold", "1"]
    figures = {"promoted": False, "gate_score": 0.0, "gate_games": 4, "gate_distinct_games": 4, "gate_seconds": 0.1}
    monkeypatch.setattr("alphazero.training.coach.judge", lambda run, generation: generation.figures.update(figures))
    assert run_command(main, [*start_from(f"{finished}:1", "--run", str(tmp_path / "next")), *flags]) == 0
    assert f"No candidate has passed the gate: the best net is still {finished}:1. With" in capsys.readouterr().out


def test_a_net_to_begin_with_may_be_named_with_an_underscore(finished):
    words = start_from(str(finished), "--learner.batch-size=32")
    spelt = [word.replace("initial-net", "initial_net").replace("batch-size", "batch_size") for word in words]
    assert spelt != words

    def options(argv):
        preset = find_preset(None, registry.load("tictactoe"), _first_look(argv).initial_net)
        return parse(Options, argv, default=Options(config=preset))

    assert options(spelt) == options(words) and options(words).config.net.channels == 8


def test_what_a_run_cannot_start_from_is_refused_before_there_is_a_run(capsys, tmp_path, finished):
    run, weights = tmp_path / "next", finished / "generation_0001.safetensors"
    grown = start_from(str(finished), "--run", str(run), "--net.channels", "16")
    assert "the gate, which is off" in fails(capsys, *grown, "--gate.no-enabled")
    assert "connect4" in fails(capsys, "--game", "connect4", "--initial-net", str(finished), "--run", str(run))
    assert "nowhere" in fails(capsys, *start_from("nowhere", "--run", str(run)))
    assert "(beginner, best, club)" in fails(capsys, "--game", "connect4", "--initial-net", "bestt", "--run", str(run))
    weights.write_bytes(weights.read_bytes()[:-8])
    assert "generation_0001" in fails(capsys, *start_from(f"{finished}:1", "--run", str(run)))
    assert not run.exists()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--device", "cpu,cpu", "--threads", "2"], "--threads 1"),
        (["--device", "cpu,cpu"], "on 2 x cpu"),
        (["--self-play.num-slots", "2"], "--self-play.num-slots"),
    ],
)
def test_a_refused_resume_leaves_no_trace(capsys, finished, flags, words):
    """Its settings would be those of the next one."""
    before = {file: file.read_bytes() for file in finished.rglob("*.json")}
    assert words in fails(capsys, "--game", "tictactoe", "--run", str(finished), "--resume", *flags)
    assert {file: file.read_bytes() for file in finished.rglob("*.json")} == before


def test_a_run_of_an_older_version_is_sealed_when_it_goes_on_and_lists_what_changes(capsys, caplog, finished):
    path, argv = finished / "config.json", ["--game", "tictactoe", "--run", str(finished), "--resume"]
    saved = json.loads(path.read_text())
    del saved["settings"]["initial_net"], saved["config_sha256"]
    path.write_text(json.dumps(saved))
    assert run_command(main, argv) == 0 and "config_sha256" in json.loads(path.read_text())
    with caplog.at_level("INFO"):
        assert run_command(main, [*argv, "--generations", "2"]) == 0
    assert "generations: 1 -> 2" in caplog.text and "initial_net" not in caplog.text
    assert read_config(finished)["settings"]["generations"] == 2
    assert len((finished / "metrics.jsonl").read_text().splitlines()) == 2
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    assert "config.json is damaged or was changed by hand" in fails(capsys, *argv)


def test_a_run_folder_starts_no_code(capsys, caplog, finished):
    marks = [finished.parent / "started", finished.parent / "imported"]
    (finished / "policy.py").write_text(
        f"import pathlib\npathlib.Path({str(marks[1])!r}).touch()\ndef f(observations): return 0\n"
    )
    code = [f'gtp:"touch {marks[0]}"', f"python:{finished / 'policy.py'}:f"]
    reseal_config(finished, lambda config: config["settings"]["evaluation"].update(opponents=["random", *code]))
    assert run_command(main, ["--game", "tictactoe", "--run", str(finished), "--resume"]) == 0
    assert not any(mark.exists() for mark in marks)
    assert "a run folder never starts code, so gtp:" in caplog.text
    # a person may name it
    argv = ["--game", "tictactoe", "--run", str(finished), "--resume", "--evaluation.opponents", *code]
    assert "plays one game at a time" in fails(capsys, *argv[:-1])
    assert not marks[0].exists()  # refused before it is started
    run_command(main, [*argv[:-2], code[1]])
    assert marks[1].exists()


@pytest.fixture
def at_once(monkeypatch, finished):
    """Trainings that are over at once: their folders get the files of a run of one generation."""

    def train(loaded, config, folder, **rest):
        shutil.copytree(finished, folder, dirs_exist_ok=True)
        return TrainedRun(loaded, folder, evaluation={"benchmark": {}, "matches": []})

    monkeypatch.setattr("alphazero.training.run.train", train)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("name", ["best", "-two words"])
def test_the_last_lines_can_be_typed(name, tmp_path, monkeypatch, capsys):
    """Also for a run whose folder has the name of a shipped net, and which had no opponents."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("alphazero.training.report.has_matplotlib", lambda: False)  # pictures take seconds
    assert run_command(main, ["--game", "tictactoe", f"--run={name}", "--wandb", "my project"]) == 0
    out, path = capsys.readouterr().out, f"./{name}"
    assert "it scores" not in out
    play, rival, _, more, report = (shlex.split(line)[2:] for line in out.splitlines() if line.startswith("  python"))
    assert (play, rival) == ([path, "human"], [path, "mcts:400"]) and more[-4:-2] == ["--wandb", "my project"]
    assert run_command(doctor.report, report[2:]) == 0 and (tmp_path / name / "report.html").exists()


@pytest.mark.usefixtures("at_once")
def test_new_runs_get_folders_of_their_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert run_command(main, ["--game", "tictactoe"]) == 0
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["tictactoe-1", "tictactoe-2"]
    assert "pit.py runs/tictactoe-2" in capsys.readouterr().out


def test_the_first_lines_say_what_comes_and_the_last_ones_what_the_scores_mean(tmp_path, caplog, capsys):
    flags = ["--generations", "2", "--minutes", "0.5", "--evaluation.opponents", "random", "greedy"]
    with caplog.at_level("INFO"):
        assert run_command(main, [*TINY, *flags, "--run", str(tmp_path / "run")]) == 0
    first = caplog.messages[:3]
    assert first == [
        f"training a network for tictactoe with preset quick and 1 thread, in {tmp_path / 'run'}",
        "each generation plays games by self-play and learns from them, then pits the new net against the best one; "
        "the run ends after generation 2 or 0.5 minutes, whichever comes first",
        "Ctrl-C stops the run and keeps all finished generations; --resume goes on with it",
    ]
    on_top = [line for line in caplog.messages if "additional time after --minutes" in line]
    assert on_top and "random, greedy" in on_top[0]
    assert caplog.messages.index(on_top[0]) < next(i for i, x in enumerate(caplog.messages) if "generation 1" in x)
    last = capsys.readouterr().out.splitlines()
    (line,) = [line for line in last if line.startswith("These games begin")]
    assert re.match(r"These games begin with \d random pl(y|ies), and each opening is played twice", line)
    assert last.index(line) > next(i for i, x in enumerate(last) if "against greedy" in x)


def test_an_interrupted_run_says_how_to_go_on(tmp_path):
    """By Ctrl-C; tests/reliability/test_r3_signals.py sends the other signals."""
    command = [sys.executable, "main.py", *TINY, "--run", str(tmp_path / "run"), "--generations", "10000"]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    deadline, manifest = time.monotonic() + 300, tmp_path / "run" / "manifest_0002.json"
    while not manifest.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    came = manifest.exists()
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    _, said = process.communicate(timeout=60)
    assert came and process.returncode == 130, said
    assert time.monotonic() - begin < 10 and "Traceback" not in said
    assert f"--run {tmp_path / 'run'} --resume" in said
    done = int(said.split("up to generation ")[1].split()[0])
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert done >= 2 and lines[done - 1]["generation"] == done


def test_a_run_on_a_part_of_a_cluster_goes_on_there(tmp_path, monkeypatch, capsys):
    def stopped(loaded, config, folder, **settings):
        return TrainedRun(loaded, folder, stopped=True)

    monkeypatch.setattr("alphazero.training.run.train", stopped)
    monkeypatch.setattr(TrainedRun, "generation", 3)
    cluster = ["--cluster", "local", "--cluster-workers", "3"]
    with pytest.raises(SystemExit):
        run_command(main, [*TINY, *cluster, "--run", str(tmp_path / "run")])
    assert f"--run {tmp_path / 'run'} --resume --cluster local --cluster-workers 3\n" in capsys.readouterr().err


def test_a_new_folder_is_numbered_after_those_of_the_same_game_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("openspiel-hex-1", "openspiel-hex-board_size-5-3", "hex-7", "hex_swap-9", "hex-x"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "config.json").touch()
    (tmp_path / "runs" / "hex-8").mkdir()  # taken by a process that has not begun yet
    assert choose_folder("hex", True) == Path("runs/hex-7")
    assert choose_folder("openspiel:hex", True) == Path("runs/openspiel-hex-1")
    assert choose_folder("openspiel:hex", False) == Path("runs/openspiel-hex-2")
    assert choose_folder("openspiel:hex(board_size=5)", True) == Path("runs/openspiel-hex-board_size-5-3")
    assert choose_folder("hex", False) == Path("runs/hex-9")
    assert choose_folder(":::", False) == Path("runs/game-1")


def test_a_page_is_offered_only_of_rules_that_a_page_can_run(finished):
    """After a run of a game in plain Python the last lines once named a `publish` that refuses it."""
    for game, offered in (("tictactoe", True), (f"{ROOT / 'tests/training/slow_game.py'}:SlowGame", False)):
        run = TrainedRun(registry.load(game), finished)
        assert any("page" in what for what, _ in _next_commands(run, Options(game=game), "train")) == offered


def test_a_run_says_how_its_matches_share_openings():
    match = {"score": 0.5, "score_interval": (0.4, 0.6), "opponent": "random", "wins": 1, "draws": 0, "losses": 1}
    match |= {"games": 2, "opening_plies": 1}
    for game, words in (
        ("tictactoe", "twice, with the sides swapped"),
        ("tictacmo", "with each contestant in each seat"),
    ):
        evaluation = {"matches": [match], "benchmark": {}}
        run = SimpleNamespace(loaded=registry.load(game), best_generation=1, generation=1, evaluation=evaluation)
        assert words in _results(run, RunConfig())


def test_a_program_for_chess_is_offered_a_net_of_chess_alone(finished):
    for game, offered in (("gardner", True), ("tictactoe", False)):
        commands = dict(_next_commands(TrainedRun(registry.load(game), finished), Options(game=game), "train"))
        assert any(" uci " in command for command in commands.values()) == offered
