"""Hostile files, generated: some 900 of them, each with the format that it pretends to be.

`cases()` gives all.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import socket
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from alphazero.storage.arrays import write_npz
from alphazero.storage.files import LINE_SEAL, sha256_of, to_json, write_sealed_json
from tests.fuzzing import formats
from tests.fuzzing.formats import FORMATS, reseal

CANARY = "CANARY"
"""The file that a gadget would make."""


@dataclass(frozen=True)
class Case:
    """A hostile file: `spoil(path)` takes the place of a valid file of the format."""

    format: str
    attack: str
    spoil: Callable[[Path], None]

    @property
    def name(self) -> str:
        return f"{self.format}: {self.attack}"


class Gadget:
    """Makes the canary when it is unpickled."""

    def __init__(self, folder: Path):
        self._path = str(folder / CANARY)

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self._path,)


def replaced(content: bytes) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        path.unlink()
        # a list of games whose last line has no end is cut off there, as after a kill
        path.write_bytes(content + b"\n" * (path.name == "all_games.jsonl"))

    return spoil


def _link(target: Callable[[Path], str]) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        path.unlink()
        path.symlink_to(target(path))

    return spoil


def _outside(path: Path) -> str:
    secret = path.parent.parent / "secret"
    secret.write_text('{"password": 1}')
    return str(secret)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _socket(path: Path) -> None:
    path.unlink()
    here = os.getcwd()
    os.chdir(path.parent)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path.name)
    os.chdir(here)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _sparse(size: int) -> Callable[[Path], None]:
    return lambda path: os.truncate(path, size)


def _bomb() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", bytes(300_000_000))
    return buffer.getvalue()


def _half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


FILES: dict[str, Callable[[Path], None]] = {
    "missing": Path.unlink,
    "empty": _sparse(0),
    "cut in half": _half,
    "a folder": _folder,
    "a pipe": _pipe,
    "a socket": _socket,
    "a link to /dev/zero": _link(lambda path: "/dev/zero"),
    "a link to /dev/tty": _link(lambda path: "/dev/tty"),
    "a link out of the folder": _link(_outside),
    "a link to itself": _link(lambda path: path.name),
    "a terabyte of nothing": _sparse(1 << 40),
    "60 MB in one line": lambda path: replaced(b"x" * 60_000_000)(path),
    "60 MB of brackets": lambda path: replaced(b"[" * 60_000_000)(path),
    "700 kB of brackets": replaced(b"[" * 700_000),
    "700 kB of names": replaced(b'{"a":' * 140_000),
    "a number of 5,000 digits": replaced(b"9" * 5_000),
    "a pickle": lambda path: replaced(pickle.dumps(Gadget(path.parent.parent)))(path),
    "a zip bomb": lambda path: replaced(_bomb())(path),
    "a gzip bomb": lambda path: replaced(gzip.compress(bytes(300_000_000), 1))(path),
    "noise": replaced(np.random.default_rng(0).bytes(10_000)),
    "UTF-16": replaced('{"a": 1}'.encode("utf-16")),
    "code": replaced(b"import os; os.mkdir('CANARY')\n"),
    "nan": replaced(b"NaN"),
    "null": replaced(b"null"),
    "a list": replaced(b"[]\n"),
    "half a character": replaced(b'{"\\ud800": "\\udc00"}'),
    "a string for an object": replaced(b'"games"'),
}
RECORDS = "records", "records with dice", "records for one", "records for three", "sgf", "ggf", "pgn"
FINE = {
    **{name: {"empty"} for name in RECORDS},
    "tournament games": {"empty", "missing", "cut in half"},
    "tournament": {"missing", "a link to itself"},
    "manifest": {"missing"},
    "card": set(),
}
"""What is no attack: a file of no games, a tournament that begins, a run before its first generation."""


def sealed(name: str, change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Changes the content of a sealed file and seals it again."""

    def spoil(path: Path) -> None:
        value = json.loads(path.read_text())
        write_sealed_json(path, change(value) or value, FORMATS[name].seal)

    return spoil


def plain(change: Callable[[Any], Any]) -> Callable[[Path], None]:
    """Changes the first line of a file of JSON, and takes off its seal, which lines of other programs do not have."""

    def spoil(path: Path) -> None:
        first, *rest = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        value = json.loads(first)
        changed = change(value) or value
        if isinstance(changed, dict):
            changed.pop(LINE_SEAL, None)
        path.write_text("\n".join([json.dumps(changed), *rest]) + "\n")

    return spoil


VALUES: dict[str, Any] = {
    "null": None,
    "a text": "x",
    "a list": [1],
    "an object": {"a": 1},
    "true": True,
    "minus one": -1,
    "a huge number": 10**30,
    "half": 0.5,
    "a long text": "x" * 5000,
    "a deep list": json.loads("[" * 90 + "]" * 90),
}
PLACES = {
    "card": "weights weights.bytes weights.sha256 game net net.channels search",
    "config": "game seed threads settings settings.generations settings.search",
    "manifest": "generation files state state.best state.replay state.samples settings",
    "records": "number contestants moves result seconds",
    "tournament": "games contestants pairings opening_plies pairings.0.2",
    "evaluation": "generation matches matches.0.score matches.0.score_interval",
}
"""Entries of each format; those inside of others with dots."""
FITS = {
    "net.channels": ("true",),
    "seed": (),
    "search": ("an object",),
    "settings": ("an object",),
    "net": ("an object",),
    "opening_plies": (),
    "state.samples": ("null", "a list"),
    "state.replay": ("a list",),
    "state": (),
    "matches.0.score": ("minus one", "half"),
    "game": ("a text",),
}
"""Values that an entry may have."""


def put(value: Any, place: tuple[Any, ...], found: Any) -> None:
    for step in place[:-1]:
        value = value[step]
    value[place[-1]] = found


def _put(name: str, found: Any, *place: Any) -> Callable[[Path], None]:
    return sealed(name, partial(put, place=place, found=found))


def _wrong_values() -> Iterator[Case]:
    for name, places in PLACES.items():
        for place in places.split():
            for kind, value in VALUES.items():
                if kind not in FITS.get(place, ()) or (name, place) == ("card", "net.channels"):
                    steps = tuple(int(step) if step.isdigit() else step for step in place.split("."))
                    change = partial(put, place=steps, found=value)
                    spoil = sealed(name, change) if FORMATS[name].seal else plain(change)
                    yield Case(name, f"{place} is {kind}", spoil)


def _tensors(change: Callable[[dict[str, np.ndarray]], Any]) -> Callable[[Path], None]:
    """Weights whose tensors are changed, with a card that vouches for them; they are written without any check."""
    import safetensors.numpy

    def spoil(path: Path) -> None:
        tensors = {name: tensor.copy() for name, tensor in formats.net_tensors().items()}
        change(tensors)
        weights = path.with_suffix(".safetensors")
        weights.write_bytes(safetensors.numpy.save(tensors))
        reseal(weights)

    return spoil


def _set(name: str, value: Any) -> Callable[[dict[str, np.ndarray]], None]:
    def change(tensors: dict[str, np.ndarray]) -> None:
        tensors[name] = value(tensors[name]) if callable(value) else value

    return change


FIRST = "stem.0.weight"


def _filled(number: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda array: np.full_like(array, number)


def _nets() -> Iterator[Case]:
    changes: dict[str, Callable[[dict[str, np.ndarray]], Any]] = {
        "weights of nan": _set(FIRST, _filled(np.nan)),
        "weights of inf": _set(FIRST, _filled(np.inf)),
        "a tensor too many": lambda t: t.update(evil=np.zeros(3, np.float32)),
        "a tensor missing": lambda t: t.pop(FIRST),
        "no tensor": lambda t: t.clear(),
        "a tensor of another shape": _set(FIRST, lambda x: x[:1]),
        "a tensor turned": _set(FIRST, lambda x: x.T),
        **{
            f"weights of {kind}": _set(FIRST, lambda x, kind=kind: x.astype(kind))
            for kind in ("float64", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
        },
        "30,000 tensors": lambda t: t.update({f"x{i}": np.zeros(1, np.float32) for i in range(30_000)}),
    }
    for attack, change in changes.items():
        yield Case("card", attack, _tensors(change))
    sizes: dict[str, dict[str, Any]] = {
        "4,096 channels and blocks": {"channels": 4096, "blocks": 4096},
        "4,096 blocks": {"blocks": 4096},
        "4,096 channels": {"channels": 4096},
        "a wide head": {"head_channels": 4096, "value_hidden": 4096},
        "a wide value": {"value_hidden": 4096},
        "many lines": {"lines": 4096, "line_length": 3},
        "2^62 channels": {"channels": 1 << 62},
        "no channel": {"channels": 0},
        "an unknown size": {"depth": 3},
        "half a block": {"blocks": 0.5},
    }
    for attack, more in sizes.items():
        yield Case("card", attack, sealed("card", lambda card, more=more: card["net"].update(more)))
    for file in ("../net.safetensors", "/etc/passwd", "", "a\0b", "x" * 300, "a/b"):
        yield Case("card", f"weights in {file[:20]!r}", _put("card", file, "weights", "file"))
    games = "openspiel:hex(board_size=50000)", "evil.py", "os", "../../evil.py:Game", "connect4", "\x1b[31m", "x" * 4000
    for game in games:
        yield Case("card", f"the game {game[:40]!r}", _put("card", game, "game"))


def _vouched_for(tensors: list[int], num_bytes: int, **sizes: int) -> Callable[[Path], None]:
    """Weights of one tensor of float32, and nothing but zeros: sparse, with a card that vouches for them."""

    def spoil(path: Path) -> None:
        weights = path.with_suffix(".safetensors")
        offsets = [0, 4 * int(np.prod(tensors))]
        header = to_json({"a": {"dtype": "F32", "shape": tensors, "data_offsets": offsets}}, None)
        weights.write_bytes(struct.pack("<Q", len(header)) + header)
        os.truncate(weights, 8 + len(header) + num_bytes)
        card = json.loads(path.with_suffix(".json").read_text())
        card["net"].update(sizes)
        card["weights"]["bytes"] = 8 + len(header) + num_bytes
        if num_bytes < 1 << 27:
            card["weights"]["sha256"] = sha256_of(weights)
        write_sealed_json(path.with_suffix(".json"), card, "card_sha256")

    return spoil


def _sparse_nets() -> Iterator[Case]:
    """Nets that are large and take no space: their cards vouch for them, and nobody should read or make them."""
    wide = {"channels": 1, "head_channels": 4096, "value_hidden": 4096}
    yield Case("card", "a wide head, and a file of 34 MB", _vouched_for([8_500_000], 34_000_000, **wide))
    yield Case("card", "a tensor of 100 MB for a small net", _vouched_for([25_000_000], 100_000_000))
    for name in ("card", "weights"):
        yield Case(name, "40 GB that its card vouches for", _vouched_for([10_000_000_000], 40_000_000_000))
        yield Case(name, "300 MB beyond its header", _vouched_for([2], 300_000_000))
        yield Case(name, "300 MB less than its header", _vouched_for([200_000_000], 500_000_000))


def _manifests() -> Iterator[Case]:
    entry = {"bytes": 1, "sha256": "0" * 64}
    for name in ("../x", "/etc/passwd", "a\0b", "generation_0009.safetensors", "\x1b[2J", "..", "x" * 300):
        full = f"generation_{name}" if name != "generation_0009.safetensors" else name
        yield Case("manifest", f"the file {full[:40]!r}", _put("manifest", entry, "files", full))
    for name in ("learner_0001.safetensors", "games_0001.npz", "replay_0001.npz", "generation_0000.json"):
        yield Case("manifest", f"no {name}", sealed("manifest", lambda m, name=name: m["files"].pop(name) and None))
    yield Case("manifest", "an entry too many", sealed("manifest", lambda m: m.update(evil=1)))
    yield Case("manifest", "counts of other generations", _put("manifest", [1, 2], "state", "samples"))
    yield Case("manifest", "a billion generations", _put("manifest", [10**9], "state", "replay"))


def _with(fields: dict[str, Any]) -> Callable[[Path], None]:
    return plain(lambda line: line.update(fields))


def _texts() -> Iterator[Case]:
    contestants = 'contestants = ["random", "greedy", "mcts:4"]\n'
    for attack, text in {
        "300,000 dots": contestants + "a" + ".a" * 300_000 + " = 1",
        "30,000 dots": contestants + "a" + ".a" * 30_000 + " = 1",
        "a deep array": contestants + "seed = " + "[" * 1_000 + "]" * 1_000,
        "a deep table": contestants + "seed = " + "{a=" * 1_000 + "1" + "}" * 1_000,
        "digits": contestants + "seed = " + "9" * 5_000,
        "a program": 'contestants = ["random", "greedy", "gtp:touch CANARY"]',
        "a function": 'contestants = ["random", "greedy", "python:evil.py:f"]',
        "no contestants": "seed = 1",
        "a million contestants": "contestants = [" + '"a",' * 16_000 + "]",
        "a number": "contestants = [1]",
        "a kind": contestants + 'kind = "cup"',
        "a date": contestants + "seed = 1979-05-27",
        "inf": contestants + "seed = inf",
        "a setting": contestants + "sed = 1",
        "twice": contestants + contestants,
        "an escape": contestants + '"\\u001b" = 1',
    }.items():
        yield Case("toml", attack, replaced(text.encode()))
    for attack, change in {
        "10^12 games": lambda t: put(t, ("pairings", 0, 2), 10**12),
        "a stranger": lambda t: put(t, ("pairings", 0, 0), "eve"),
        "10^12 games of all": lambda t: t.update(games=10**12, pairings=[[a, b, 10**12] for a, b, _ in t["pairings"]]),
        "an old format": lambda t: put(t, ("format",), 0),
        "something else": lambda t: put(t, ("evil",), 1),
        "other weights": lambda t: put(t, ("contestants", "random"), "0" * 64),
    }.items():
        yield Case("tournament", attack, sealed("tournament", change))
    for attack, fields in {
        "an unknown result": {"result": "2-0"},
        "an unfinished game": {"result": "*"},
        "a stranger": {"contestants": ["eve", "random"]},
        "another game": {"game": "othello"},
        "another seed": {"seed": 99},
        "game 10^12": {"number": 10**12},
        "something else": {"evil": 1},
    }.items():
        yield Case("tournament games", attack, _with(fields))
    for attack, fields in {
        "an illegal move": {"moves": ["a1"]},
        "no move": {"moves": ["z9"]},
        "a move of 1 MB": {"moves": ["x" * 900_000]},
        "100,000 moves": {"moves": ["a1"] * 100_000},
        "an escape as move": {"moves": ["\x1b[2J"]},
        "a NUL": {"opening": ["\0"]},
        "endless time": {"seconds": [1e300, 1]},
        "three players": {"contestants": ["a", "b", "c"]},
    }.items():
        yield Case("records", attack, _with(fields))


def _dice() -> Iterator[Case]:
    for attack, moves in {
        "a 7": "roll 7",
        "a 0": "roll 0",
        "minus 1": "roll -1",
        "5,000 digits": f"roll {'4' * 5_000}",
        "no die": "roll hold",
        "a roll that is not due": "roll 4 4",
        "a roll at the start": "4",
        "a tile": "roll b3=2",
        "an escape as outcome": "roll \x1b[2J",
        "100,000 rolls": "roll 4 " * 100_000,
    }.items():
        yield Case("records with dice", attack, _with({"moves": moves.split(" ")}))
    for attack, moves in {
        "a tile on another": "b3=2 b3=2",
        "one tile too few": "b3=2 down",
        "one too many": "b3=2 a2=2 c1=2",
        "an 8": "b3=8",
        "beyond the board": "e5=2",
        "a 7": "7",
    }.items():
        for entry in ("moves", "others"):
            yield Case("records for one", f"{attack}, in {entry}", _with({entry: moves.split()}))
    for attack, change in {
        "results above the most points": ("outcomes", np.float32(1.5)),
        "results below the fewest": ("outcomes", np.float32(-1.5)),
        "values that are no numbers": ("values", np.float32(np.nan)),
        "shares above 1": ("policies", np.float32(2)),
    }.items():
        for of in ("one", "three"):
            yield Case(f"replay for {of}", attack, partial(_samples_with, of=of, name=change[0], number=change[1]))


def _samples_with(path: Path, of: str, name: str, number: np.float32) -> None:
    arrays = formats.sample_arrays(formats.REPLAYS[f" for {of}"])
    arrays[name][...] = number
    write_npz(path, arrays)


def _seats() -> Iterator[Case]:
    """Games of other numbers of players, in their notation and as samples."""
    for attack, change in {
        "one contestant": {"contestants": ["random"]},
        "nine contestants": {"contestants": ["random"] * 9},
        "names that are numbers": {"contestants": [1, 2, 3]},
        "a square that is taken": {"moves": ["a1", "a1"]},
        "a square beyond the board": {"moves": ["f1"]},
        "moves behind the end": {"moves": ["a1", "b1", "e2", "b2", "d1", "a2", "c3", "e3"]},
        "a result of four": {"result": "1-0-0"},
        "a number below 0": {"number": -1},
    }.items():
        yield Case("records for three", attack, _with(change))
    for name in ("outcomes", "values"):
        for seats in ((), (1,), (2,), (4,), (3, 1)):
            spoil = partial(_values_of, name=name, shape=(formats.SAMPLES, *seats))
            yield Case("replay for three", f"{name} of the shape {seats}", spoil)


def _values_of(path: Path, name: str, shape: tuple[int, ...]) -> None:
    write_npz(path, formats.sample_arrays("tictacmo") | {name: np.zeros(shape, np.float32)})


def _figures() -> Iterator[Case]:
    for attack, more in {
        "60,000 figures": {f"{i:x}": 0 for i in range(60_000)},
        "60,000 figures of a benchmark": {"a": 0, "benchmark_figures": ["a"] * 60_000},
        "60,000 parts of a calibration": {"value_calibration": [[0, 0, 0]] * 60_000},
    }.items():
        yield Case("figures", attack, plain(lambda line, more=more: line.update(more)))


def cases() -> list[Case]:
    """All of them."""
    files = [
        Case(name, attack, spoil)
        for name in FORMATS
        for attack, spoil in FILES.items()
        if attack not in FINE.get(name, ())
    ]
    return [
        *files,
        *_wrong_values(),
        *_nets(),
        *_sparse_nets(),
        *_manifests(),
        *_texts(),
        *_dice(),
        *_seats(),
        *_figures(),
    ]
