"""Compiled code on disk: damaged, cut off, or with no folder to keep it in."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partialmethod
from pathlib import Path
from types import SimpleNamespace

import pytest
from filelock import FileLock
from numba import config

from alphazero.storage import kernel_cache
from alphazero.storage.kernel_cache import cached

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 54321
"""A number that no user has, as containers are run by."""
SOURCE = """
import logging, sys
logging.basicConfig(format="%(message)s")
from alphazero.storage.kernel_cache import cached

def double(x):
    return 2 * x

made = cached(double, nogil=True)
assert made(21) == 42
print("found" if made.stats.cache_hits else "compiled")
"""


def run(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """What a fresh process prints that compiles the function of `folder / program.py`."""
    return subprocess.run(
        [sys.executable, str(folder / "program.py")], capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program, and its code compiled."""
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "program.py").write_text(SOURCE)
    assert run(folder).stdout == "compiled\n"
    return folder


@pytest.fixture
def folder(compiled: Path, tmp_path: Path) -> Path:
    """A copy of that folder. The files keep their times, by which numba knows the program again."""
    return shutil.copytree(compiled, tmp_path / "folder")


def files(folder: Path) -> list[Path]:
    """The index and the code."""
    found = sorted((folder / "__pycache__").glob("*.nb[ic]"))
    assert [path.suffix for path in found] == [".nbc", ".nbi"] or [path.suffix for path in found] == [".nbi", ".nbc"]
    return found


def test_code_is_found_again(folder):
    assert run(folder).stdout == "found\n"


DAMAGE = {
    "empty": lambda content: b"",
    "cut off": lambda content: content[: len(content) // 2],
    "a bit": lambda content: content[:-50] + bytes([content[-50] ^ 4]) + content[-49:],
    "zeros": lambda content: bytes(len(content)),
}


@pytest.mark.parametrize(
    ("damage", "which"),
    [
        pytest.param(damage, which, marks=() if damage in ("a bit", "empty") else pytest.mark.slow)
        for damage in DAMAGE
        for which in (".nbi", ".nbc")
    ],
)
def test_damaged_code_is_compiled_anew_once_and_this_is_said(folder, which, damage):
    path = next(path for path in files(folder) if path.suffix == which)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    again = run(folder)
    assert again.stdout == "compiled\n"
    assert "compiled code on disk is damaged, and is compiled anew" in again.stderr and "Traceback" not in again.stderr
    if damage == "a bit":  # one program more, and no other damage differs here
        assert run(folder).stdout == "found\n"


@pytest.mark.slow
def test_code_whose_index_is_gone_is_compiled_anew(folder):
    next(path for path in files(folder) if path.suffix == ".nbi").unlink()
    assert run(folder).stdout == "compiled\n"
    assert run(folder).stdout == "found\n"


def double(x):
    return x * 2


def test_code_of_other_arguments_is_not_taken(tmp_path, monkeypatch, caplog):
    """Two programs that compile at once have left an index that names the other's code."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    made = cached(double)
    assert made(3) == 6 and made(2.5) == 5.0
    first, second = sorted(tmp_path.rglob("*.nbc"))
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    again = cached(double)
    assert again(2.5) == 5.0 and again(3) == 6 and not again.stats.cache_hits
    assert caplog.text.count("compiled code on disk is damaged, and is compiled anew") == 1
    found = cached(double)
    assert found(2.5) == 5.0 and found(3) == 6 and len(found.stats.cache_hits) == 2


def test_code_is_not_kept_while_another_program_keeps_its_own(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernel_cache, "PATIENCE", 0.0)
    made = cached(double)
    with FileLock(Path(made._cache.cache_path) / kernel_cache.LOCK):
        assert made(3) == 6 and not caplog.text
    assert not list(tmp_path.rglob("*.nb[ic]"))
    assert made(2.5) == 5.0 and len(list(tmp_path.rglob("*.nbc"))) == 1


NOWHERE = """
import numba.core.caching as caching

def refuse(self):
    raise OSError(30, "Read-only file system")

for locator in caching.InTreeCacheLocator, caching.UserWideCacheLocator:
    locator.ensure_cache_path = refuse
"""


def test_who_may_write_nowhere_else_has_a_folder_of_its_own(folder, tmp_path_factory):
    """As in containers: installed by root, run by a number without a home."""
    temporary = tmp_path_factory.mktemp("temporary")
    own = temporary / f"alphazero-kernels-{os.getuid()}"
    (folder / "program.py").write_text(NOWHERE + SOURCE)
    for known in ("compiled\n", "found\n"):
        shown = run(folder, TMPDIR=str(temporary))
        assert shown.stdout == known, shown.stderr
        assert shown.stderr.count(f"compiled code is kept in {own}") == 1
        assert stat.S_IMODE(own.stat().st_mode) == 0o700
    own.chmod(0o777)  # others could put code of theirs there
    shown = run(folder, TMPDIR=str(temporary))
    assert shown.stdout == "compiled\n" and "compiled code cannot be kept" in shown.stderr
    own.chmod(0o700)
    assert run(folder, TMPDIR=str(temporary)).stdout == "found\n"


@pytest.mark.slow
def test_where_nothing_can_be_written_to_everything_is_compiled(folder):
    """As in a container whose file system is read-only: Python then finds no folder for temporary files."""
    no_folder = "import tempfile\ndef gettempdir(): raise FileNotFoundError('no usable temporary directory')\n"
    (folder / "program.py").write_text(NOWHERE + f"{no_folder}tempfile.gettempdir = gettempdir\n" + SOURCE)
    shown = run(folder)
    assert shown.stdout == "compiled\n" and shown.stderr.count("compiled code cannot be kept") == 1


def test_folders_are_not_made_for_everybody(tmp_path, tmp_path_factory):
    """With a umask of 0 those that we made were everybody's, and so were never used."""
    (tmp_path / "program.py").write_text("import os\nos.umask(0)\n" + SOURCE)
    kept = tmp_path_factory.mktemp("kept") / "new"
    for known in ("compiled\n", "found\n"):
        shown = run(tmp_path, NUMBA_CACHE_DIR=str(kept))
        assert (shown.stdout, shown.stderr) == (known, "")


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give a folder away")
def test_the_folder_among_temporary_files_must_be_ones_own(folder, tmp_path_factory):
    temporary = tmp_path_factory.mktemp("temporary")
    own = temporary / "alphazero-kernels-0"
    own.mkdir(mode=0o700)
    os.chown(own, NOBODY, NOBODY)
    (folder / "program.py").write_text(NOWHERE + SOURCE)
    shown = run(folder, TMPDIR=str(temporary))
    assert shown.stdout == "compiled\n" and "compiled code cannot be kept" in shown.stderr
    assert list(own.iterdir()) == []


def test_a_disk_that_takes_nothing_costs_the_cache_and_nothing_else(folder):
    for path in files(folder):
        path.unlink()
    source = (folder / "program.py").read_text()
    limited = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
    limited += "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    (folder / "program.py").write_text(source.replace("made =", limited + "made ="))
    shown = run(folder)
    assert shown.stdout == "compiled\n" and "compiled code cannot be kept" in shown.stderr


def test_no_code_is_taken_from_a_folder_that_everybody_may_write_to(tmp_path, tmp_path_factory):
    (tmp_path / "program.py").write_text(SOURCE)
    kept, temporary = tmp_path_factory.mktemp("kept"), tmp_path_factory.mktemp("temporary")
    environment = {"NUMBA_CACHE_DIR": str(kept), "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(temporary / "home")}
    assert run(tmp_path, **environment).stdout == "compiled\n"
    (below,) = (path for path in kept.rglob("*") if path.is_dir())
    assert run(tmp_path, **environment).stdout == "found\n"
    index = next(below.glob("*.nbi"))
    index.write_bytes(b"what somebody else has put there")
    below.chmod(0o777)
    for known in ("compiled\n", "found\n"):  # elsewhere
        shown = run(tmp_path, **environment)
        assert shown.stdout == known and "damaged" not in shown.stderr
        assert shown.stderr.count(f"compiled code in {below} is not used, since others may write there") == 1
    assert index.read_bytes() == b"what somebody else has put there"
    below.chmod(0o755)
    assert "compiled code on disk is damaged" in run(tmp_path, **environment).stderr


posix = pytest.mark.skipif(not hasattr(os, "getuid"), reason="modes of Windows say nothing about others")


def set_group(monkeypatch, *members: str) -> None:
    """The group of all files is called as their user is, and has these members."""
    monkeypatch.setattr(kernel_cache.pwd, "getpwuid", lambda number: SimpleNamespace(pw_name="adam"))
    monkeypatch.setattr(kernel_cache.grp, "getgrgid", lambda number: SimpleNamespace(gr_name="adam", gr_mem=members))


@pytest.fixture
def kept(tmp_path, monkeypatch) -> Path:
    """The folder of the compiled code of `double`, below the one that is named for it, with its file."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "kept"))
    kernel_cache._say_not_used.cache_clear()
    made = cached(double)
    assert made(3) == 6
    assert is_found_again(tmp_path / "kept")
    return Path(made._cache.cache_path)


def is_found_again(folder: Path) -> bool:
    """A program that begins now takes compiled code from there."""
    made = cached(double)
    assert made(3) == 6
    return Path(made._cache.cache_path).is_relative_to(folder) and bool(made.stats.cache_hits)


@posix
@pytest.mark.parametrize("which", ["folder", "the one above"])
def test_no_code_is_taken_from_a_folder_that_a_group_may_write_to(kept, which, monkeypatch, caplog):
    set_group(monkeypatch, "adam", "eva")
    path = kept if which == "folder" else kept.parent
    path.chmod(0o775)
    assert not is_found_again(kept.parent)
    assert caplog.text.count(f"compiled code in {path} is not used, since others may write there") == 1
    path.chmod(0o755)
    assert is_found_again(kept.parent)


@posix
def test_code_is_taken_from_folders_that_ones_own_group_may_write_to(kept, monkeypatch):
    """Many systems give each user a group, and a umask of 002."""
    set_group(monkeypatch)
    for path in (kept.parent, kept, *kept.iterdir()):
        path.chmod(0o775)
    assert is_found_again(kept.parent)


@posix
def test_code_is_taken_below_a_folder_in_which_nobody_can_rename_it(kept):
    kept.parent.chmod(0o1777)
    assert is_found_again(kept.parent)


@posix
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_no_code_is_taken_from_a_file_that_others_may_write_to(kept, suffix, monkeypatch):
    """As after a change of modes, or in another folder that has taken the place of ours since the program began."""
    set_group(monkeypatch, "eva")
    path = next(path for path in kept.iterdir() if path.suffix == suffix)
    path.chmod(0o664)
    assert not is_found_again(kept.parent)
    assert path.stat().st_mode & 0o777 == 0o644, "it is written anew"
    assert is_found_again(kept.parent)


@posix
def test_no_code_is_taken_from_a_folder_that_has_changed_hands(kept, monkeypatch, caplog):
    """Who owns the folder above puts one of theirs in the place of ours after the program has begun."""
    made = cached(double)
    number = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: number + 1)  # only root can give files away
    assert made(3) == 6 and not made.stats.cache_hits
    assert "another user may have written" in caplog.text


@posix
@pytest.mark.parametrize("which", ["folder", "the one above"])
def test_no_code_is_taken_from_what_belongs_to_somebody_else(kept, which, monkeypatch, caplog):
    """Only root could write there, and only root can give a folder away."""
    foreign = kept if which == "folder" else kept.parent

    def belongs_to_somebody(path, look, **options):
        found = look(path, **options)
        return os.stat_result((*found[:4], NOBODY, *found[5:])) if path == foreign else found

    for name in ("stat", "lstat"):
        monkeypatch.setattr(Path, name, partialmethod(belongs_to_somebody, getattr(Path, name)))
    assert not is_found_again(kept.parent)
    said = f"compiled code in {foreign} is not used, since it belongs to another user"
    assert (said in caplog.text) is (which == "the one above")


@pytest.fixture
def shared(tmp_path_factory) -> Iterator[Path]:
    """A folder with the program that everybody may read and root alone may change, and a folder to be in that NOBODY
    has."""
    if not hasattr(os, "getuid") or os.getuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can run a program as another user, by setpriv")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "program.py").write_text(SOURCE)
        (folder / "here").mkdir()
        os.chown(folder / "here", NOBODY, NOBODY)
        (folder / "temporary").mkdir(mode=0o1777)
        (folder / "temporary").chmod(0o1777)
        yield folder


def run_as_nobody(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The program, run by NOBODY, who may read everything (Python may lie in root's home) and write as others may."""
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    become += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    kept = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    temporary = str(folder / "temporary")
    return subprocess.run(
        [*become, sys.executable, str(folder / "program.py")], capture_output=True, text=True, timeout=120,
        cwd=folder / "here", env={**kept, "PYTHONPATH": str(ROOT), "TMPDIR": temporary, **environment},
    )  # fmt: skip


@pytest.mark.parametrize("named", [{}, pytest.param({"XDG_CACHE_HOME": "cache"}, marks=pytest.mark.slow)])
def test_no_code_is_taken_from_the_current_folder(shared, named):
    """Without a home, `~` stays as it is, and would be a folder in the current one, which may be somebody else's."""
    own = shared / "temporary" / f"alphazero-kernels-{NOBODY}"
    for known in ("compiled\n", "found\n"):
        shown = run_as_nobody(shared, **named)
        assert shown.stdout == known, shown.stderr
        assert shown.stderr.count(f"compiled code is kept in {own}") == 1
        assert list((shared / "here").iterdir()) == []


@pytest.mark.parametrize("mode", [0o777, pytest.param(0o775, marks=pytest.mark.slow)], ids=["everybody", "a group"])
def test_no_code_is_taken_from_a_folder_of_somebody_else(shared, mode):
    others = shared / "others"
    assert run_as_nobody(shared, NUMBA_CACHE_DIR=str(shared / "here")).stdout == "compiled\n"
    shutil.copytree(shared / "here", others)
    for path in (others, *others.rglob("*")):  # root's, and they may write there
        os.chown(path, 0, NOBODY)
        path.chmod(mode)
    shown = run_as_nobody(shared, NUMBA_CACHE_DIR=str(others))
    assert shown.stdout == "compiled\n" and shown.stderr.count("compiled code is kept in ") == 1
