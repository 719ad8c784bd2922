"""Parts of the site that are made from the code: facts of games, boards, settings and the commands' own help.

A page asks for a part by a comment on a line of its own:

    <!-- facts: connect4 -->          the table of a game's sizes
    <!-- board: connect4 4453 -->     a picture of a position
    <!-- settings -->                 every setting of a run, with the values of Connect Four's presets
    <!-- help: train -->              the help text of `alphazero train`
    <!-- api -->                      every public name of the library
"""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import griffe

import alphazero as az
from alphazero.catalogue import registry
from alphazero.training.config import RunConfig

HEAD = "", "| setting | default; presets | meaning |", "|---|---|---|"
ROOT = Path(__file__).resolve().parents[1]


PLAYABLE = "connect4", "othello", "hex"
"""The games of the page "Play now"; each file has the net `best`."""


def on_post_build(config: Any, **_: Any) -> None:
    """Writes the files that play.md links to, two at once: each is compiled for half a minute.

    With DOCS_WITHOUT_FILES=1 they are left out, as where every change is tested: tests of their own publish some.
    """
    if os.environ.get("DOCS_WITHOUT_FILES") == "1":
        return
    folder = Path(config["site_dir"]) / "play"
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: _program("publish", "best", str(folder / f"{name}.html"), "--game", name), PLAYABLE))


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replaces the comments of a page by the parts that they ask for."""
    return re.sub(r"^<!-- (\w+)(?:: (.+?))? -->$", _part, markdown, flags=re.MULTILINE)


def _part(match: re.Match[str]) -> str:
    maker = PARTS.get(match[1])
    return maker(*(match[2] or "").split()) if maker else match[0]


def facts(name: str) -> str:
    """A table of a game's sizes."""
    game = registry.load(name).game
    planes, rows, columns = game.observation_shape
    symmetries = len(game.symmetries[1])
    merged = "merged by `transform`" if game.rules.transform is not None and symmetries > 1 else "not merged"
    lines = [
        ("name", f"`--game {name}`"),
        ("actions", f"{game.num_actions:,}"),
        ("observation", f"{planes} planes of {rows} x {columns}"),
        ("state", f"{game.state_words} words of 64 bits"),
        ("longest game", f"{game.max_plies:,} plies"),
        ("symmetries", f"{symmetries}, {merged}" if symmetries > 1 else "none but the identity"),
        ("players", "may move twice in a row" if game.rules.to_play is not None else "alternate"),
    ]
    return "\n".join(["| size | |", "|---|---|", *(f"| {what} | {value} |" for what, value in lines)])


def board(name: str, *moves: str) -> str:
    """The picture of a position after moves in the game's notation."""
    position = registry.load(name).game.position(" ".join(moves))
    return f'<div class="board">{position.svg()}</div>'


def settings() -> str:
    """Every setting of a run in its group: flag, default, the presets' values where they differ from it, meaning."""
    presets = {name: dict(_flat(config)) for name, config in registry.load("connect4").presets().items()}
    meanings, lines, group = dict(_meanings(RunConfig())), ["## The run", *HEAD], ""
    for name, default in _flat(RunConfig()):
        found = name.rpartition(".")[0]
        if found != group:
            group = found
            lines += ["", f"## {group.replace('_', '-')}", *HEAD]
        values = [_show(default)]
        values += [f"{preset} {_show(flat[name])}" for preset, flat in presets.items() if flat[name] != default]
        lines.append(f"| `--{name.replace('_', '-')}` | {', '.join(values)} | {meanings[name]} |")
    return "\n".join(lines)


def _flat(config: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            yield from _flat(value, f"{prefix}{field.name}.")
        else:
            yield prefix + field.name, value


def _meanings(config: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """The documentation under each field."""
    found = griffe.load(type(config).__module__, search_paths=[ROOT])[type(config).__name__]
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            yield from _meanings(value, f"{prefix}{field.name}.")
        else:
            docstring = found[field.name].docstring
            yield prefix + field.name, " ".join(docstring.value.split()).replace("|", "\\|") if docstring else ""


def _show(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"`{item}`" for item in value)
    return f"`{value}`" if value != "" else "empty"


def help_of(*command: str) -> str:
    """The help text of a command."""
    return f"```text\n{_program(*command, '--help').rstrip()}\n```"


def _program(*arguments: str) -> str:
    """Runs `alphazero` with these arguments; what it prints."""
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "alphazero", *arguments],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True,
    ).stdout  # fmt: skip


def api() -> str:
    """A directive for every public name, functions first; mkdocstrings writes its signature and docstring."""
    names = [name for name in az.__all__ if name != "errors"]
    functions = [name for name in names if name[0].islower()]
    classes = [name for name in names if name not in functions]
    parts = ["## Functions", *map(_directive, functions), "## Classes", *map(_directive, classes)]
    return "\n\n".join([*parts, "## Errors", "::: alphazero.errors\n    options: {show_root_heading: false}"])


def _home(name: str) -> str:
    value = getattr(az, name)
    if isinstance(value, types.ModuleType):  # the package `search`, which can be called
        return "alphazero.search.analysis.search_position"
    return f"{value.__module__}.{value.__name__}"


def _directive(name: str) -> str:
    options = f'heading: "az.{name}", toc_label: "az.{name}", show_root_heading: true, heading_level: 3'
    options += ", inherited_members: true" * (name == "Match")
    return f"::: {_home(name)}\n    options: {{{options}}}"


PARTS: dict[str, Callable[..., str]] = {
    "api": api,
    "board": board,
    "facts": facts,
    "help": help_of,
    "settings": settings,
}
