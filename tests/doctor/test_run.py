"""The doctor looks at run folders: sound, damaged, hostile, in use. It changes nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

import alphazero as az
from alphazero.commands import doctor
from alphazero.commands.shared import run_command
from alphazero.doctor.findings import Section, show
from alphazero.storage.files import write_sealed_json
from alphazero.storage.folder_lock import holder_of
from alphazero.storage.manifest import read_config
from alphazero.storage.metrics_file import MAX_METRICS_BYTES
from alphazero.storage.run_folder import RunFolder
from tests.storage.resealing import reseal_config, reseal_manifest
from tests.storage.small_run import flip


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three generations; look, do not touch."""
    folder = tmp_path_factory.mktemp("runs") / "tictactoe-1"
    az.train(
        "tictactoe", folder=folder, generations=3, net={"blocks": 1, "channels": 8}, threads=1,
        search={"num_simulations": 4}, self_play={"games_per_generation": 8, "num_slots": 4},
        gate={"enabled": False}, evaluation={"opponents": ()}, progress=False,
    )  # fmt: skip
    return folder


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    """A copy of that run, to damage."""
    return Path(shutil.copytree(trained, tmp_path / "run", symlinks=True))


def examine(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code and all that is printed, with single spaces."""
    try:
        code = run_command(doctor.main, [str(folder)])
    except SystemExit as leaving:
        code = leaving.code
    shown, errors = capsys.readouterr()
    lines = shown.splitlines()
    assert all((len(line) <= 100 or line.startswith(("  command ", "run "))) and line.isprintable() for line in lines)
    return code, " ".join((shown + errors).split())


def test_a_run_that_has_only_begun_can_be_resumed(trained, tmp_path, capsys):
    """By a command to be copied, which stands on one line."""
    young = tmp_path / ("a long name with spaces " * 5)
    RunFolder.create(young, read_config(trained)).close()
    code, shown = examine(young, capsys)
    assert code == 0 and "can be resumed yes, from the beginning" in shown
    assert f"--game tictactoe --run '{young}' --resume" in shown
    (young / "manifest_0000.json").write_text("{}")
    code, shown = examine(young, capsys)
    assert code == 1 and "can be resumed no: no generation is whole" in shown


def contents(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file with its size, the time of its last change, and its bytes."""
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_size, path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_sound_run_is_described(folder: Path, capsys):
    before = contents(folder)
    code, shown = examine(folder, capsys)
    assert code == 0 and shown.startswith("nothing is wrong")
    for words in (
        "training now nobody", "can be resumed from generation 3", "best net generation 3", "values whole",
        "manifest 2 whole: ", "manifest 3 whole: ", "figures of 3 generations", "nets 4 of 4 whole",
        "--game tictactoe --run",
    ):  # fmt: skip
        assert words in shown, words
    assert contents(folder) == before


def test_bytes_are_told_by_the_kind_of_file(folder: Path, capsys):
    (folder / "ladder").mkdir()
    for name in ("ladder/tournament.json", "ladder/games.jsonl", "notes.txt"):
        (folder / name).write_bytes(b"12345")
    code, shown = examine(folder, capsys)
    assert code == 0 and "ladder 10 bytes in 2 files" in shown and "notes.txt 5 bytes in 1 file" in shown
    assert re.search(r"generation [\d.]+ kB in 8 files", shown)


def test_the_command_goes_on_as_the_run_was_begun(folder: Path, capsys):
    assert "--deterministic" not in examine(folder, capsys)[1]
    reseal_manifest(folder / "manifest_0003.json", lambda manifest: manifest["state"].update(deterministic=True))
    code, shown = examine(folder, capsys)
    assert code == 0 and "--resume --deterministic" in shown


def test_a_run_in_progress_is_left_alone(folder: Path, capsys):
    with RunFolder.open(folder) as run:
        before = contents(folder)
        assert holder_of(folder).startswith(f"process {os.getpid()} on ")
        code, shown = examine(folder, capsys)
        assert code == 0 and f"training now process {os.getpid()} on " in shown and "--resume" not in shown
        assert contents(folder) == before
        run.append_metrics({"generation": 4})  # it has kept its lock
        run.commit(4, {}, {"best": 3})
    assert holder_of(folder) is None


def reseed(folder: Path) -> None:
    path = folder / "config.json"
    path.write_bytes(path.read_bytes().replace(b'"seed": 0', b'"seed": 1'))


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "replay cut": (
        lambda folder: os.truncate(folder / "replay_0003.npz", 100),
        "generation 3 cannot be resumed: .*replay_0003.npz is damaged.*; the run can go back to generation 2",
    ),
    "older replay cut": (
        lambda folder: os.truncate(folder / "replay_0002.npz", 100),
        "replay_0002.npz is damaged.*; the next --resume goes on without it",
    ),
    "all replay gone": (
        lambda folder: [path.unlink() for path in folder.glob("replay_*")],
        "no generation of the run is whole, so it cannot go on: bring back its files, or begin a new run",
    ),
    "manifest flipped": (lambda folder: flip(folder / "manifest_0003.json"), "generation 3 cannot be resumed: "),
    "old net flipped": (
        lambda folder: flip(folder / "generation_0001.safetensors"), "the net of generation 1 cannot be used: ",
    ),
    "settings changed": (reseed, "config.json is damaged or was changed by hand"),
    "state of nonsense": (
        lambda folder: reseal_manifest(folder / "manifest_0003.json", lambda saved: saved.update(state={"best": 7})),
        "generation 3 cannot be resumed: .*; move manifest_0003.json away; the run can go back to generation 2",
    ),
    "games of a cluster": (
        lambda folder: (folder / "arrived_000000003.npz").write_bytes(b"half a file"),
        "the games in arrived_000000003.npz are lost: .*; the run goes on without them",
    ),
    "an old net gone": (
        lambda folder: (folder / "generation_0001.safetensors").unlink(),
        "a net is gone, and its card is there: .*generation_0001",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("ruin", "sentence"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_comes_first_with_advice(folder: Path, ruin, sentence: str, capsys):
    ruin(folder)
    names = sorted(path.name for path in folder.iterdir())
    code, shown = examine(folder, capsys)
    assert code == 1 and shown.startswith("wrong: ")
    assert re.search(sentence, shown.partition(f"run {folder}")[0]), shown
    assert sorted(path.name for path in folder.iterdir()) == names


def test_small_things_get_advice_and_no_alarm(folder: Path, capsys):
    lines = (folder / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_bytes(lines[0] + lines[2])
    code, shown = examine(folder, capsys)
    assert code == 0 and shown.startswith("advice: ")
    assert "metrics.jsonl lacks the generations 2: " in shown


def test_a_net_of_a_generation_that_was_not_finished_is_nothing_wrong(folder: Path, capsys):
    """Its card is written after its weights, and the manifest last of all."""
    shutil.copy(folder / "generation_0003.safetensors", folder / "generation_0004.safetensors")
    code, shown = examine(folder, capsys)
    assert code == 0 and "nets 4 of 4 whole" in shown


def spoil_figures(folder: Path, how: str) -> None:
    path = folder / "metrics.jsonl"
    if how == "too large":
        os.truncate(path, MAX_METRICS_BYTES + 1)
    elif how == "a folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_text(path.read_text() + '{"generation": \n')


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("too large", "metrics.jsonl is too large: .*; the next --resume moves it aside, and the run is not harmed"),
        ("a folder", "metrics.jsonl.*; the next --resume moves it aside, and the run is not harmed"),
        ("half a line", "metrics.jsonl has damaged lines \\(1\\): the next --resume moves them aside"),
    ],
)
def test_figures_that_cannot_be_read_get_advice(folder: Path, how: str, sentence: str, capsys):
    spoil_figures(folder, how)
    code, shown = examine(folder, capsys)
    assert code == 0 and re.match(f"advice: .*{sentence}", shown.partition(f"run {folder}")[0]), shown


def line_of_the_future(folder: Path) -> None:
    with open(folder / "metrics.jsonl", "a") as file:
        file.write('{"generation": 3000000}\n')
    for path in folder.glob("manifest_*"):
        path.unlink()


def manifest_of_the_future(folder: Path) -> None:
    manifest = json.loads((folder / "manifest_0003.json").read_text())
    for name in [name for name in manifest["files"] if name.startswith(("learner_0003", "games_0003"))]:
        later = name.replace("0003", "3000000")
        shutil.copy(folder / name, folder / later)
        manifest["files"][later] = manifest["files"].pop(name)
    write_sealed_json(folder / "manifest_3000000.json", manifest | {"generation": 3_000_000}, "manifest_sha256")


@pytest.mark.parametrize("add", [line_of_the_future, manifest_of_the_future])
def test_an_absurd_number_of_a_generation_takes_no_memory(folder: Path, add, capsys):
    add(folder)
    examine(folder, capsys)  # what it imports and loads is not counted
    tracemalloc.start()
    try:
        shown = examine(folder, capsys)[1]
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
    last = 3_000_000 - (add is line_of_the_future)
    assert f"metrics.jsonl lacks the generations 4-{last}: " in shown


def test_the_last_lines_of_the_log_are_shown_without_their_tricks(folder: Path, capsys):
    (folder / "run.log").unlink(missing_ok=True)
    assert "run.log" not in examine(folder, capsys)[1]
    lines = [f"line {number}" for number in range(100_000)]
    (folder / "run.log").write_text("\n".join([*lines, "\x1b[31mred \u202e", "x" * 10_000]), encoding="utf-8")
    code, shown = examine(folder, capsys)
    assert code == 0
    _, _, last = shown.partition("last lines of run.log ")
    assert last.startswith(r"line 99997 line 99998 line 99999 \x1b[31mred \u202e xxx") and len(last) < 500


def test_no_game_is_loaded_from_a_file_that_settings_name(folder: Path, tmp_path: Path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    canary = tmp_path / "canary"
    game = tmp_path / "game.py"
    game.write_text(f"open({str(canary)!r}, 'w')\n")
    reseal_config(folder, lambda config: config.update(game="game.py"))
    code, shown = examine(folder, capsys)
    assert code == 0 and "not checked: the game is not one that comes with alphazero" in shown
    assert not canary.exists() and "--game game.py --run" in shown


def test_settings_of_another_version_are_named(folder: Path, capsys):
    reseal_config(folder, lambda config: config["settings"]["search"].update(c_pukt=1.0))
    code, shown = examine(folder, capsys)
    assert code == 1 and "unknown name 'c_pukt'" in shown
    (folder / "config.json").write_text(json.dumps(read_config(folder) | {"settings": 3}))
    assert examine(folder, capsys)[0] == 1


def test_what_is_no_run_is_a_mistake(tmp_path: Path, capsys):
    for name in ("nothing", "", "x" * 5000):
        code, shown = examine(tmp_path / name, capsys)
        assert code == 2 and shown.startswith("error: ") and "name the folder of a run" in shown


@pytest.mark.parametrize("before", range(60, 100, 3))
def test_an_option_stays_whole_wherever_a_line_ends(before):
    """`--initial-net` was once cut in two after its hyphen, where a path was of an unlucky length."""
    section = Section("run")
    section.wrong.append(f"{'x' * before} begin anew by --initial-net runs/my-run/generation_0002.safetensors")
    words = show([section]).split()
    assert "--initial-net" in words and "runs/my-run/generation_0002.safetensors" in words
