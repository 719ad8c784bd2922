"""Compiled code on disk: damaged, cut off, or with no folder to keep it in."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from numba import config
from numba.core import caching

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


Run = Callable[[Path], tuple[str, str]]


@pytest.fixture
def run_here(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> Iterator[Run]:
    """What that program prints and logs in this process, to which its function is as new: numba is loaded already."""
    monkeypatch.setattr(kernel_cache, "READY", kernel_cache.READY)  # programs set it

    def run_in_this_process(folder: Path) -> tuple[str, str]:
        kernel_cache.ready_level.cache_clear()
        caplog.clear()
        runpy.run_path(str(folder / "program.py"), run_name="__main__")
        return capsys.readouterr().out, caplog.text

    yield run_in_this_process
    kernel_cache.ready_level.cache_clear()


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
def test_damaged_code_is_compiled_anew_once_and_this_is_said(folder, which, damage, run_here):
    path = next(path for path in files(folder) if path.suffix == which)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    shown, said = run_here(folder)
    assert shown == "compiled\n"
    assert "compiled code on disk is not used, and is compiled anew" in said and "Traceback" not in said
    assert run_here(folder) == ("found\n", "")


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
    assert caplog.text.count("compiled code on disk is not used, and is compiled anew") == 1
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


def test_where_nothing_can_be_written_to_everything_is_compiled(tmp_path, monkeypatch, run_here):
    """As in a container whose file system is read-only."""
    (tmp_path / "program.py").write_text(SOURCE)

    def refuse(self):
        raise OSError(30, "Read-only file system")

    for locator in caching.InTreeCacheLocator, caching.UserWideCacheLocator:
        monkeypatch.setattr(locator, "ensure_cache_path", refuse)
    shown, said = run_here(tmp_path)
    assert shown == "compiled\n" and said.count("compiled code cannot be kept") == 1


def test_files_are_not_made_for_everybody(tmp_path, tmp_path_factory, monkeypatch, run_here):
    """With a umask of 0 those that we made were everybody's, and so were never used."""
    (tmp_path / "program.py").write_text(SOURCE)
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path_factory.mktemp("kept") / "new"))
    before = os.umask(0)
    try:
        assert [run_here(tmp_path) for _ in range(2)] == [("compiled\n", ""), ("found\n", "")]
    finally:
        os.umask(before)


def test_a_disk_that_takes_nothing_costs_the_cache_and_nothing_else(folder):
    for path in files(folder):
        path.unlink()
    source = (folder / "program.py").read_text()
    limited = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
    limited += "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    (folder / "program.py").write_text(source.replace("made =", limited + "made ="))
    shown = run(folder)
    assert shown.stdout == "compiled\n" and "compiled code cannot be kept" in shown.stderr


READY = """
import os
from pathlib import Path
from alphazero.storage import kernel_cache
kernel_cache.READY = Path(__file__).parent / "ready"
if "NUMBA_CPU_NAME" in os.environ:
    kernel_cache.make_ready("generic")
"""


@pytest.fixture(scope="module")
def made_ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program and its code, compiled ahead for all processors."""
    folder = tmp_path_factory.mktemp("ready")
    (folder / "program.py").write_text(READY + SOURCE)
    assert run(folder, NUMBA_CPU_NAME="generic").stdout == "compiled\n"
    assert not list(folder.glob("__pycache__/*.nb?"))
    return folder


@pytest.fixture
def ready(made_ready: Path, tmp_path: Path) -> Path:
    """A copy of that folder."""
    return shutil.copytree(made_ready, tmp_path / "folder")


def test_code_that_was_compiled_ahead_is_taken(ready: Path, run_here: Run):
    assert run_here(ready) == ("found\n", "")
    assert not list(ready.glob("__pycache__/*.nb?"))


def test_code_that_was_compiled_ahead_for_another_processor_is_not_taken(ready: Path, run_here: Run):
    (ready / "ready" / "generic").rename(ready / "ready" / "x86-64-v9")
    assert run_here(ready)[0] == "compiled\n"


def test_code_that_was_compiled_ahead_from_another_source_is_not_taken(ready: Path, run_here: Run):
    with (ready / "program.py").open("a") as file:
        file.write("\n")
    assert run_here(ready)[0] == "compiled\n"


def test_damaged_code_that_was_compiled_ahead_is_compiled_anew_and_this_is_said(ready: Path, run_here: Run):
    path = next((ready / "ready" / "generic").glob("*.nbc"))
    path.write_bytes(DAMAGE["a bit"](path.read_bytes()))
    shown, said = run_here(ready)
    assert shown == "compiled\n" and said.count("compiled code on disk is not used") == 1
    assert run_here(ready)[0] == "found\n", "its own"


def test_a_level_is_for_processors_that_have_all_it_needs(monkeypatch: pytest.MonkeyPatch):
    has = dict.fromkeys(" ".join(kernel_cache.LEVELS.values()).split(), True)
    for missing, levels in (("none", 3), ("avx512vl", 2), ("movbe", 2), ("fma", 1)):
        monkeypatch.setattr(
            kernel_cache.binding, "get_host_cpu_features", lambda missing=missing: has | {missing: False}
        )
        assert len(kernel_cache.levels_here()) == levels
        assert kernel_cache.levels_here()[-1] == "generic"


posix = pytest.mark.skipif(not hasattr(os, "getuid"), reason="modes of Windows say nothing about others")


@pytest.fixture
def kept(tmp_path, monkeypatch) -> Path:
    """The folder of the compiled code of `double`, below the one that is named for it, with its file."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "kept"))
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
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_no_code_is_taken_from_a_file_that_others_may_write_to(kept, suffix):
    """As after a change of modes."""
    path = next(path for path in kept.iterdir() if path.suffix == suffix)
    path.chmod(0o664)
    assert not is_found_again(kept.parent)
    assert path.stat().st_mode & 0o777 == 0o644, "it is written anew"
    assert is_found_again(kept.parent)


@posix
def test_no_code_is_taken_from_a_file_of_somebody_else(kept, monkeypatch, caplog):
    """As in a folder that others may write to, or that has changed hands."""
    made = cached(double)
    number = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: number + 1)  # only root can give files away
    assert made(3) == 6 and not made.stats.cache_hits
    assert "another user may have written" in caplog.text


@pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0 or shutil.which("setpriv") is None,
    reason="only root can run a program as another user, by setpriv",
)
def test_no_code_is_kept_in_the_current_folder():
    """Without a home, `~` stays as it is, and would be a folder in the current one, which may be somebody else's."""
    with tempfile.TemporaryDirectory() as name:  # which NOBODY may read, other than the folders of pytest
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "program.py").write_text(SOURCE)
        (folder / "here").mkdir()
        os.chown(folder / "here", NOBODY, NOBODY)
        become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        become += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]  # Python may lie in root's home
        kept = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
        shown = subprocess.run(
            [*become, sys.executable, str(folder / "program.py")], capture_output=True, text=True, timeout=120,
            cwd=folder / "here", env={**kept, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert shown.stdout == "compiled\n" and shown.stderr.count("compiled code cannot be kept") == 1
        assert list((folder / "here").iterdir()) == []
