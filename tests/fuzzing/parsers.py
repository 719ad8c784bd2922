"""Parsers of what a person, a program or a file supplies, each with a strategy for its input.

`PARSERS` is the list: name -> a function that gives (strategy, read). `read(data, folder)` gives the input to the
parser that production code uses; whatever it raises but InputError, or an exception that stands for an answer, is a
fault.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from hypothesis import strategies as st

from alphazero.catalogue import registry
from alphazero.commands.pit import PitConfig
from alphazero.commands.shared import parse
from alphazero.commands.tournament import TournamentConfig
from alphazero.game.record import line_of
from alphazero.matches.intervals import Sprt
from alphazero.players.contestants import ContestantText, find_checkpoint, make_player
from alphazero.players.engine_process import EngineFault, EngineProcess
from alphazero.players.gtp_player import Refusal, ask
from alphazero.players.gtp_server import Server
from alphazero.players.human import HumanLeft, HumanPlayer
from alphazero.players.player import TakeBack
from alphazero.players.uci_player import UciPlayer
from alphazero.players.uci_server import UciServer
from alphazero.search.mcts import SearchConfig
from alphazero.storage.arrays import write_npz
from alphazero.storage.files import write_sealed_json
from alphazero.storage.folder_lock import _read_holder
from alphazero.storage.metrics_file import METRICS, read_metrics
from alphazero.storage.run_names import choose_folder, resolve_checkpoint
from alphazero.training.health import new_warnings
from alphazero.training.parts.journal import describe_progress
from alphazero.web.engine import Engine, Stage
from alphazero.web.message import Question, parse_message
from alphazero.web.searches import Stop
from tests.fuzzing import formats
from tests.fuzzing.formats import FORMATS, Format, dice_records, tictactoe

Read = Callable[[Any, Path], Any]

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-3, 3)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["", "\0", "../x", "\x1b[2J", "\u202e", "x" * 300, "1e999", "openspiel:hex(board_size=99999)"])
)
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)


# --- strategies ------------------------------------------------------------------------------------------------------


@st.composite
def mutated(draw: st.DrawFn, valid: Any) -> Any:
    """A valid document with some of its parts replaced, removed or added."""
    whole = json.loads(json.dumps(valid))
    for _ in range(draw(st.integers(1, 3))):
        place = whole
        while isinstance(place, dict | list) and place:
            keys = sorted(place) if isinstance(place, dict) else range(len(place))
            key = draw(st.sampled_from(list(keys)))
            inner = place[key]
            if isinstance(inner, dict | list) and inner and draw(st.booleans()):
                place = inner
                continue
            action = draw(st.sampled_from(("replace", "replace", "remove", "add")))
            if action == "remove":
                del place[key]
            elif action == "replace":
                place[key] = draw(JSON)
            elif isinstance(place, dict):
                place[draw(st.text(max_size=8))] = draw(JSON)
            else:
                place.append(draw(JSON))
            break
    return whole


@st.composite
def damaged(draw: st.DrawFn, valid: bytes) -> bytes:
    """The bytes of a valid file, some of them changed, cut out or put in."""
    content = bytearray(valid)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        action = draw(st.sampled_from(("flip", "flip", "put", "cut", "end")))
        if action == "flip" and at < len(content):
            content[at] ^= draw(st.integers(1, 255))
        elif action == "put":
            content[at:at] = draw(st.binary(max_size=8))
        elif action == "cut":
            del content[at : at + draw(st.integers(1, 50))]
        elif action == "end":
            del content[at:]
    return bytes(content)


def texts(*words: str) -> st.SearchStrategy[str]:
    """Texts of these words, of numbers, and of anything."""
    word = (
        st.sampled_from(words)
        | st.integers().map(str)
        | st.text(max_size=6)
        | st.sampled_from(list(":@=,.()[]\"'/ -#~"))
    )
    return st.lists(word, max_size=8).map("".join) | st.lists(word, max_size=8).map(" ".join)


# --- files -----------------------------------------------------------------------------------------------------------


def as_bytes(value: Any) -> bytes:
    """The JSON of any value, also of what is no JSON."""
    return json.dumps(value).encode()


@cache
def valid_bytes(name: str) -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return FORMATS[name].write(Path(folder)).read_bytes()


def read_file(name: str) -> Read:
    """Writes the data in the place of a valid file, sealed where the format is, and reads it."""
    kind: Format = FORMATS[name]

    def read(data: Any, folder: Path) -> Any:
        path = kind.write(folder)
        if isinstance(data, bytes):
            path.write_bytes(data)
        elif kind.seal and isinstance(data, dict):
            try:
                write_sealed_json(path, data, kind.seal)
            except ValueError:  # nan, which JSON does not know
                path.write_bytes(as_bytes(data))
        else:
            path.write_bytes(as_bytes(data))
        return kind.read(path)

    return read


def file_parser(name: str) -> tuple[st.SearchStrategy[Any], Read]:
    valid = valid_bytes(name)
    try:
        document = json.loads(valid.splitlines()[0] if name.startswith(("records", "tournament games")) else valid)
    except ValueError:
        return damaged(valid) | st.binary(max_size=200), read_file(name)
    return mutated(document) | mutated(document) | damaged(valid) | JSON, read_file(name)


@st.composite
def arrays(draw: st.DrawFn, valid: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Some of the arrays in other shapes, types and values."""
    found = dict(valid)
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from(sorted(found)))
        shape = tuple(draw(st.lists(st.integers(0, 5), max_size=3)))
        kind = draw(st.sampled_from(("f4", "f8", "i1", "i8", "u8", "?")))
        action = draw(st.sampled_from(("replace", "type", "fill", "remove", "add")))
        if action == "remove" and len(found) > 1:
            del found[name]
        elif action == "add":
            found[draw(st.sampled_from(("evil", "games_1", "x" * 300)))] = np.zeros(shape, kind)
        elif action == "type":
            found[name] = found[name].astype(kind)
        elif action == "fill":
            number = draw(st.sampled_from((np.nan, np.inf, -1.0, 1e9, 2.0)))
            found[name] = np.full(found[name].shape, 0).astype(found[name].dtype)
            if found[name].dtype.kind == "f":
                found[name] += np.float32(number)
            elif found[name].dtype == np.uint64:
                found[name] += np.uint64(draw(st.integers(0, (1 << 64) - 1)))
        else:
            found[name] = np.zeros(shape, kind)
    return found


def archive_parser(name: str, valid: dict[str, np.ndarray]) -> tuple[st.SearchStrategy[Any], Read]:
    def read(data: Any, folder: Path) -> Any:
        path = FORMATS[name].write(folder)
        path.write_bytes(data) if isinstance(data, bytes) else write_npz(path, data)
        return FORMATS[name].read(path)

    return arrays(valid) | damaged(valid_bytes(name)), read


@cache
def page() -> Engine:
    return Engine(Stage("pig", registry.load("pig"), device="cpu"))


def page_reader() -> Read:
    engine = page()

    def read_message(message: dict[str, Any], folder: Path) -> None:
        question = parse_message(json.dumps({"id": 1, **message}))
        assert isinstance(question, Question)
        if question.ask == "move":
            list(engine.searches["move"](None, question, Stop()))
        else:
            engine.quick[question.ask](None, question)

    for game in DICE_GAMES:  # compiles now, not while an input is timed
        engine.quick["roll"](None, Question(1, "roll", game))
    return read_message


def read_figures(data: Any, folder: Path) -> None:
    """Lines of metrics are never refused: a run goes on with those that are sound."""
    (folder / METRICS).write_bytes(data if isinstance(data, bytes) else as_bytes(data) + b"\n")
    for line in (lines := read_metrics(folder)):
        new_warnings(line, {})
    describe_progress(lines, {"accuracy": 0.5}, None)


def read_holder(data: bytes, folder: Path) -> None:
    (folder / "lock_holder").write_bytes(data)
    assert len(_read_holder(folder / "lock_holder")) < 1100


# --- what people and programs say ------------------------------------------------------------------------------------


def read_contestant(text: str, folder: Path) -> None:
    contestant = ContestantText.parse(text)
    if contestant.name in ("mcts", "minimax"):  # whose numbers ask for work and memory
        contestant.settings_as(get_type_hints(SearchConfig))
        contestant.whole_argument("a number", "mcts:400")
    elif not contestant.runs_code and not contestant.plays_alone:
        make_player(contestant, tictactoe(), seed=0, threads=1)


def read_game(text: str, folder: Path) -> None:
    registry.load_named(text, "a file")


def read_position(text: str, folder: Path) -> None:
    str(tictactoe().game.position(text))


def read_checkpoint_name(text: str, folder: Path) -> None:
    choose_folder(text, resume=False)
    find_checkpoint(text, tictactoe())
    resolve_checkpoint(text)


@cache
def server() -> tuple[Server, io.StringIO]:
    """The server and what it writes; its search is compiled."""
    out = io.StringIO()
    ours = Server(tictactoe(), make_player("mcts:4", tictactoe(), seed=0, threads=1), out)
    ours.handle("genmove black")
    ours.handle("clear_board")
    return ours, out


def gtp_reader() -> Read:
    ours, out = server()  # compiles now, not while an input is timed

    def read_gtp_line(text: str, folder: Path) -> None:
        out.seek(out.truncate(0))
        ours.handle(text)
        answer = out.getvalue()
        assert not answer or (answer[0] in "=?" and answer.endswith("\n\n") and "\n\n" not in answer[:-2])

    return read_gtp_line


def uci_reader() -> Read:
    loaded, out = registry.load("gardner"), io.StringIO()
    ours = UciServer(loaded, "mcts:4", lambda: make_player("mcts:4", loaded, seed=0, threads=1), out)
    ours.handle("isready")

    def read_uci_lines(lines: list[str], folder: Path) -> None:
        out.seek(out.truncate(0))
        for line in lines:
            ours.handle(line)
        ours.handle("stop")
        for line in out.getvalue().splitlines():
            assert line.split()[0] in ("id", "option", "uciok", "readyok", "info", "bestmove") and line.isprintable()

    return read_uci_lines


class Ended:
    """A process that is over, and a thread that has read its last words."""

    def wait(self, seconds: float) -> int:
        return 0

    def poll(self) -> int:
        return 0

    def join(self, seconds: float) -> None:
        pass


def engine_that_says(text: str) -> Any:
    engine: Any = EngineProcess.__new__(EngineProcess)
    engine._timeout, engine.kill, engine._stdin = 60.0, None, io.StringIO()
    engine._stdout, engine._complaints = io.StringIO(text), []
    engine._process = engine._overhearing = Ended()
    return engine


def read_engine(lines: list[str], folder: Path) -> None:
    try:
        assert "\n\n" not in ask(engine_that_says("".join(f"{line}\n" for line in lines)), "genmove black")
    except Refusal as refusal:
        assert "\n\n" not in str(refusal)
    except EngineFault as fault:
        assert "\n" not in str(fault)


def read_options(options: list[str], folder: Path) -> None:
    """Of an engine that speaks UCI."""
    player: Any = UciPlayer.__new__(UciPlayer)
    player.name, player._options = "uci:x", {"skill_level": "3", "uci_variant": "gardner"}
    player._prepare(engine_that_says("\n".join([*options, "uciok", "readyok", ""])))


def move_reader() -> Read:
    adviser: Any = make_player("mcts:4", tictactoe(), seed=0, threads=1)
    human = HumanPlayer(tictactoe().game, adviser, None, 0)
    read_moves(human, ["hint", "c3"], Path())  # compiles now, not while an input is timed
    return partial(read_moves, human)


def read_moves(human: HumanPlayer, lines: list[str], folder: Path) -> None:
    import builtins
    import os

    waiting, before, here = iter(lines), builtins.input, os.getcwd()

    def answer(prompt: str) -> str:
        try:
            return next(waiting)
        except StopIteration:
            raise EOFError from None

    builtins.input = answer
    os.chdir(folder)
    try:
        action = human.choose(tictactoe().game.position("a1 b2"), 0)
        assert 0 <= action < 9
    except (HumanLeft, TakeBack):
        pass
    finally:
        builtins.input = before
        os.chdir(here)


def read_flags(words: list[str], folder: Path) -> None:
    try:
        parse(TournamentConfig if "--folder" in words else PitConfig, words)
    except SystemExit as leaving:
        assert not leaving.code


def read_sprt(text: str, folder: Path) -> None:
    Sprt.parse(text)


DICE_GAMES = "pig", "2048", "backgammon"
MESSAGES = st.fixed_dictionaries(
    {
        "ask": st.sampled_from(["position", "roll", "record", "load", "game", "move"]),
        "game": st.sampled_from((*DICE_GAMES, "tictacmo")),
    },
    optional={
        "actions": st.lists(st.integers(0, 5) | st.integers(0, 200) | st.integers(), max_size=12),
        "moves": texts("roll", "hold", "4", "0", "7", "b3=2", "b3=8", "left", "31", "13/10", "a1", "c2"),
        "player": st.just({"id": "random"}), "seed": st.integers(), "resigned": st.integers(-1, 8),
        "text": st.sampled_from(
            [line_of(record) for record in (*dice_records("pig"), *dice_records("2048"), *formats.seat_records())]
        ),
    },
)  # fmt: skip
FLAGS = (
    "--games --seed --simulations --sprt --json --openings --device --anchor "
    "--gauntlet --threads --folder random greedy 1 -1 -- -h ="
)
COMMANDS = (
    "name version boardsize komi clear_board play genmove undo showboard kata-analyze lz-analyze "
    "kata-genmove_analyze b w a1 B2 pass resign interval maxmoves list_commands known_command set_game loadsgf "
    "rectangular_boardsize # 12"
)
UCI = (
    "uci isready ucinewgame position startpos fen moves a2a3 5/5 w - 0 1 rnbqk/ppppp/5/PPPPP/RNBQK go nodes 3 movetime "
    "depth infinite ponder ponderhit stop quit setoption name value MultiPV Simulations UCI_Variant wtime -5 9999999"
)
OPTIONS = texts(
    "option name", "Skill Level", "UCI_Variant", "type", "spin", "combo", "check", "min", "max 9", "var gardner"
)
CONTESTANTS = "random greedy minimax mcts solver best runs/x x.safetensors temperature true"
GAMES = "tictactoe connect4 openspiel hex board_size breakthrough rows columns game misere"
FIGURES = {
    "generation": 1, "seconds": 1.5, "benchmark_figures": ["f"], "f": 0.5, "sample_reuse": 2.0,
    "value_calibration": [[0.5, 0.5, 3]],
}  # fmt: skip
MOVES = texts("a1", "c3", "undo", "hint", "eval", "save", "quit", "help", "game.jsonl", "\0")
ANSWERS = st.sampled_from(["=", "? no", "= a1", "", "\x1b[2J", "=12 b2"]) | st.text(max_size=10)

PARSERS: dict[str, Callable[[], tuple[st.SearchStrategy[Any], Read]]] = {
    **{name: partial(file_parser, name) for name in FORMATS if not name.startswith(("replay", "games in"))},
    **{
        f"replay{of}": partial(lambda of, game: archive_parser(f"replay{of}", formats.sample_arrays(game)), of, game)
        for of, game in formats.REPLAYS.items()
    },
    "games in progress": lambda: archive_parser("games in progress", formats.game_arrays()),
    "metrics": lambda: (mutated(FIGURES) | JSON | st.binary(max_size=100), read_figures),
    "lock holder": lambda: (st.binary(max_size=1200), read_holder),
    "contestant": lambda: (texts(*CONTESTANTS.split()), read_contestant),
    "game": lambda: (texts(*GAMES.split()), read_game),
    "moves": lambda: (texts("a1", "b2", "c3", "a2", "z9", "4453"), read_position),
    "checkpoint name": lambda: (texts("runs", "best", "tictactoe-1", "\0"), read_checkpoint_name),
    "page with dice": lambda: (MESSAGES, page_reader()),
    "GTP server": lambda: (texts(*COMMANDS.split()), gtp_reader()),
    "GTP player": lambda: (st.lists(ANSWERS, max_size=5), read_engine),
    "UCI server": lambda: (st.lists(texts(*UCI.split()), max_size=5), uci_reader()),
    "UCI player": lambda: (st.lists(OPTIONS, max_size=5), read_options),
    "human": lambda: (st.lists(MOVES, max_size=4), move_reader()),
    "flags": lambda: (st.lists(st.sampled_from(FLAGS.split()) | st.text(max_size=6), max_size=6), read_flags),
    "sprt": lambda: (texts("0,20", "-5", "nan", "inf", "1e999"), read_sprt),
}
