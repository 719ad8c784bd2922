"""Which version of the framework and of a game a machine has: a hash of their source.

Workers of other versions would play other games under the same numbers, so they are refused.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import sys
from collections.abc import Iterable
from pathlib import Path

from alphazero._version import __version__
from alphazero.game import Game
from alphazero.game.functions import rules_fingerprint
from alphazero.game.python_game import PythonGame

FRAMEWORK = Path(__file__).resolve().parent


@functools.cache
def framework_fingerprint() -> str:
    """Version and hash of every source file of the framework."""
    return f"{__version__}-{_hash(_files_below(FRAMEWORK), FRAMEWORK)[:16]}"


def game_fingerprint(game: Game) -> str:
    """Hash of the game's sizes, its own attributes, and the source files beside and below the one that defines it.

    Beside it lie its network and its value targets. A file that is no part of a package counts alone; what it imports
    from elsewhere does not count.
    """
    cls = type(getattr(game, "wrapped", game))  # the object behind an adapter
    sources, file = list[Path](), Path()
    with contextlib.suppress(TypeError, OSError):  # of a notebook, or compiled
        file = Path(inspect.getfile(cls)).resolve()
    if file.is_file():  # a program from standard input has the file <stdin>
        sources = _files_below(file.parent) if (file.parent / "__init__.py").exists() else [file]
    sizes = [game.name, game.num_actions, game.state_words, game.max_plies, list(game.observation_shape), cls.__name__]
    found = hashlib.sha256(repr(sizes).encode())
    found.update(_hash(sources, file.parent).encode())
    return found.hexdigest()[:16]


def name_rules(game: Game) -> str:
    """A name for the rules, which changes with them; and after Python's version, since each has its own byte code."""
    name = game_fingerprint(game) if isinstance(game, PythonGame) else rules_fingerprint(game.rules)
    return f"{sys.version_info[0]}.{sys.version_info[1]} {name}"


def rules_changed(before: str, now: str) -> bool:
    """Two names of one game's rules tell that they differ; another Python tells nothing, nor does an empty name."""
    return before != now and before.split()[:1] == now.split()[:1]


def _files_below(folder: Path) -> list[Path]:
    """The source files; those of editors, whose names or folders begin with a dot, do not count."""
    found = [path.relative_to(folder) for path in folder.rglob("*.py")]
    kept = [path for path in found if not any(part.startswith(".") for part in path.parts)]
    return sorted(path for path in (folder / path for path in kept) if path.is_file())


def _hash(files: Iterable[Path], root: Path) -> str:
    found = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        found.update(f"{file.relative_to(root).as_posix()} {len(content)}\n".encode())
        found.update(content)
    return found.hexdigest()
