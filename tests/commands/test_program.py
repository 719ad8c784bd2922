"""The command `alphazero`: its list, its answers to wrong names, and the cost of asking."""

import errno
import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from alphazero import invocation
from alphazero._version import __version__
from alphazero.commands import program, shared
from alphazero.commands.shared import _flags, parse, run_command
from alphazero.errors import InputError

ROOT = Path(__file__).resolve().parents[2]


def test_the_list_has_every_command_and_one_line_for_each(capsys):
    for words in ([], ["help"], ["--help"], ["-h"]):
        assert program.main(words) == 0
        shown = capsys.readouterr().out
        listed = re.findall(r"^  (\w+) +[A-Z].*\.$", shown, re.MULTILINE)
        assert listed == [*program.COMMANDS, "version", "help"]
        assert all(len(line) <= 100 for line in shown.splitlines())


def test_every_command_is_in_the_reference():
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^<!-- help: (\w+) -->$", page, re.MULTILINE)) == set(program.COMMANDS)


def test_every_command_shows_its_options(capsys):
    for command in program.COMMANDS:
        for words in ([command, "--help"] if command != "pit" else ["help", command],):
            with pytest.raises(SystemExit) as leaving:
                program.main(words)
            assert not leaving.value.code
            assert f"usage: {invocation.command_line(command)} " in " ".join(capsys.readouterr().out.split())


def test_the_version_is_that_of_the_package(capsys):
    assert program.main(["--version"]) == program.main(["version"]) == 0
    assert capsys.readouterr().out == f"alphazero {__version__}\n" * 2


def test_closed_inputs_and_outputs_show_no_traceback(tmp_path: Path):
    (tmp_path / "out.json").write_text("precious")
    words = "pit random greedy --game tictactoe --games 2 --json out.json <&- >&-"
    done = subprocess.run(
        ["sh", "-c", f"{shlex.quote(sys.executable)} -m alphazero {words}"], cwd=tmp_path, capture_output=True,
        text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 2 and "Traceback" not in done.stderr and "is left as it is" in done.stderr
    assert (tmp_path / "out.json").read_text() == "precious"


def test_a_reader_that_leaves_or_a_full_disk_shows_no_traceback():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "alphazero", "help"]
    done = subprocess.run(command, cwd=ROOT, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")
    if os.path.exists("/dev/full"):
        with open("/dev/full", "w") as full:
            done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 2
        assert done.stderr == "error: the output cannot be written: No space left on device\n"


def test_a_folder_that_was_deleted_is_told_in_a_sentence(tmp_path: Path, monkeypatch, capsys):
    """Libraries fail there with long tracebacks, or end the process."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert run_command(lambda argv: None, []) == 2
    said = "error: the current folder was deleted: change to another one, or to the one made anew\n"
    assert capsys.readouterr().err == said
    assert invocation.command_line("pit", "random", "greedy")  # as a library says it


@pytest.mark.parametrize(("terminal", "coloured"), [("dumb", False), ("xterm", None)])
def test_a_terminal_without_colours_gets_none(terminal, coloured, monkeypatch):
    """As in Emacs; otherwise coloredlogs finds out."""
    monkeypatch.setenv("TERM", terminal)
    given = list[object]()
    monkeypatch.setattr("coloredlogs.install", lambda **settings: given.append(settings["isatty"]))
    assert run_command(lambda argv: None, []) == 0 and given == [coloured]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trian"], "unknown command 'trian'; did you mean 'train'?"),
        (["help", "benhcmark"], "unknown command 'benhcmark'; did you mean 'benchmark'?"),
        (["--game", "connect4"], "unknown command '--game' (allowed: benchmark, check, "),
        (["pit", "random", "gredy"], "unknown contestant 'gredy'; did you mean 'greedy'?"),
        (["solve", "--gmae", "connect4"], "unknown option '--gmae'; did you mean --game?"),
    ],
)
def test_a_wrong_word_gets_one_sentence(words, message, capsys):
    assert program.main(words) == 2
    shown, errors = capsys.readouterr()
    assert shown == "" and errors.startswith("error: ") and errors.count("\n") == 1 and message in errors


def test_the_list_loads_nothing_that_is_slow():
    code = (
        "import sys; from alphazero.commands.program import main; main(['--help']); "
        "print(sorted({'torch', 'numba', 'numpy', 'tyro', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_command_that_compiles_loads_no_linear_algebra_and_looks_for_no_garbage_in_what_it_imports(tmp_path):
    code = (
        "import gc, sys; from alphazero.commands.program import main; sys.argv[1:] = ['check', 'tictactoe']; main(); "
        "print('scipy.linalg' in sys.modules, gc.get_freeze_count() > 10_000, gc.isenabled()); "
        "import numba, numpy; print(numba.njit(lambda a: a @ a)(numpy.full((2, 2), 3.0))[0, 0])"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout.splitlines()[-2:] == ["False True True", "18.0"], done


def test_python_m_alphazero_is_the_same_and_names_itself(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "alphazero", "new", "my_game", "--folder", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0 and "  python -m alphazero check" in done.stdout, done


@pytest.mark.parametrize(
    ("started", "is_clone", "expected"),
    [
        ("main.py", True, ["python main.py --run 'a b'", "python -m alphazero report", "python -m alphazero solve"]),
        ("/usr/bin/alphazero", True, ["alphazero train --run 'a b'", "alphazero report", "alphazero solve"]),
        ("alphazero.exe", False, ["alphazero train --run 'a b'", "alphazero report", "alphazero solve"]),
        (
            "/x/alphazero/report.py",
            False,
            ["python -m alphazero train --run 'a b'", "python -m alphazero report", "python -m alphazero solve"],
        ),
    ],
)
def test_messages_name_commands_as_the_user_started_us(started, is_clone, expected, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", [started])
    monkeypatch.setattr(invocation, "ROOT", ROOT if is_clone else tmp_path)
    line = invocation.command_line
    assert [line("train", "--run", Path("a b")), line("report"), line("solve")] == expected


def test_messages_say_where_the_script_is_when_it_is_elsewhere(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", [str(ROOT / "pit.py")])
    monkeypatch.chdir(tmp_path)
    shown = f"python {shlex.quote(str(ROOT / 'pit.py'))} random greedy"
    assert invocation.command_line("pit", "random", "greedy") == shown
    (tmp_path / "pit.py").touch()  # somebody else's
    assert invocation.command_line("pit", "random", "greedy") == shown


def test_the_home_folder_may_stand_behind_an_equals_sign(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    seen: list[str] = []
    assert run_command(seen.extend, ["--run=~/x", "~/x", "--opponents=a=~", "--run", "a~b"]) == 0
    assert seen == [f"--run={tmp_path / 'x'}", "~/x", "--opponents=a=~", "--run", "a~b"]


@pytest.mark.parametrize("command", [name for name in program.COMMANDS if name not in ("train", "solve")])
def test_an_option_that_no_command_has_is_called_so(command, capsys):
    """`alphazero doctor -x` once answered in Python's words about str and bytes."""
    assert program.main([command, "-x"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: unknown option '-x'; ") and said.count("\n") == 1


@pytest.mark.parametrize("command", [name for name in program.COMMANDS if name not in program.GUESTS])
def test_every_option_without_its_value_or_with_none_gets_plain_words(command, monkeypatch):
    """One sentence, in which there is nothing of Python; the module has the options of its guests, too."""
    folder = "alphazero.commands." + "rules." * (command in program.ABOUT_RULES)
    module = importlib.import_module(folder + command)
    all_settings = [
        found for name, found in vars(module).items()
        if name.endswith(("Config", "Options"))
        and getattr(found, "__module__", "") == module.__name__
    ]  # fmt: skip
    refused, known = 0, {each: _flags(each, {}) for each in all_settings}
    monkeypatch.setattr(shared, "_flags", lambda settings, defaults: known[settings])  # half of the time
    flags = [(each, flag) for each in all_settings for flag in sorted(known[each] - {"--help"})]
    flags = flags[:: 12 if len(flags) > 100 else 1]  # a run has many settings of few kinds
    for settings, flag in flags:
        for words in ([flag], [flag, "a\0b"]):
            try:
                parse(settings, words, command=command)
            except InputError as error:
                refused += 1
                said = str(error)
                assert not re.search(r"Error parsing|expected str|bytes|NoneType|object|\n", said), said
                assert len(said) < 500
    assert refused >= len(flags) > 0 or command == "doctor"


# --- no memory ---

REFUSED = (
    MemoryError(),
    OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
    RuntimeError("can't start new thread"),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes. Error code 12"),
    ImportError("libtorch_cpu.so: failed to map segment from shared object"),
)


@pytest.mark.parametrize("error", REFUSED, ids=lambda error: type(error).__name__)
def test_a_command_that_gets_no_memory_or_thread_says_so_in_a_sentence(error, monkeypatch, capsys):
    def fail(argv):
        try:
            raise error
        except Exception as reason:
            raise ImportError("as numpy does") from reason

    monkeypatch.setattr("alphazero.commands.doctor.main", fail)
    assert program.main(["doctor"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch("error: the system gives no more memory or threads: raise this process's limits.*", line)


def test_an_error_of_another_kind_shows_its_traceback(monkeypatch):
    def fail(argv):
        raise RuntimeError("a bug")

    monkeypatch.setattr("alphazero.commands.doctor.main", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        program.main(["doctor"])
