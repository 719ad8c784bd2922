"""Our players as engines by the Universal Chess Interface: what Cute Chess sends, python-chess 1.11.2, and the clock.

A file of uci_sessions/ is named after the program and the version that sends it; its first line is the game and the
player. `>` begins what the program sends. Of an answer, `...` may be anything on its line, or lines. Cute Chess's was
read in its source (uciengine.cpp, chessengine.cpp).
"""

import io
import re
import shutil
import sys
import threading
import time
from pathlib import Path

import chess
import chess.engine
import pytest

from alphazero.catalogue import registry
from alphazero.commands import serve
from alphazero.commands.shared import run_command
from alphazero.game import Position
from alphazero.players import uci_server
from alphazero.players.contestants import make_player
from alphazero.players.player import Player
from alphazero.players.uci_server import OVERHEAD, UciServer, _limits, centipawns
from tests.commands.test_gtp_programs import pattern

SESSIONS = sorted((Path(__file__).parent / "uci_sessions").iterdir())


class Talk:
    """A server and what it says to a line; it is waited for where it thinks without waiting itself."""

    def __init__(self, player: str = "mcts:20", game: str = "gardner"):
        loaded, self.out = registry.load(game), io.StringIO()
        self.server = UciServer(loaded, player, lambda: make_player(player, loaded, seed=1, threads=1), self.out)
        self.server._player.result()

    def __call__(self, line: str, wait: bool = True) -> str:
        self.out.seek(0)
        self.out.truncate()
        self.going_on = self.server.handle(line + "\r\n")
        if (thread := self.server._thread) is not None and wait:
            thread.join(60)
            assert not thread.is_alive()
        return self.out.getvalue()

    def best(self, line: str) -> str:
        """The move that it plays after `go`."""
        return self(line).rpartition("bestmove ")[2].split()[0]


@pytest.fixture(scope="module")
def talk() -> Talk:
    return Talk()


@pytest.mark.parametrize("session", SESSIONS, ids=lambda path: path.stem)
def test_a_session_is_answered_word_for_word(session):
    head, _, text = session.read_text().partition("\n")
    game, player = head.removeprefix("# ").split()
    talk, said = Talk(player, game), ""
    talks = re.findall(r"^> (.*)\n((?:(?!> ).*\n)*)", text, re.MULTILINE)
    assert len(talks) > 20
    for command, answer in talks:
        said = talk(command, wait="ponder " not in command)
        assert re.fullmatch(pattern(answer.rstrip("\n")), said.rstrip("\n")), (command, said)
        if command.startswith("go") and "ponder" not in command:
            best = re.search(r"bestmove (\S+)", said)[1]
            assert talk.server._position.parse(best) in talk.server._position.legal_actions
    assert not talk.going_on


def test_what_is_no_uci_is_passed_over_and_what_is_wrong_is_told(talk):
    for line in (
        "",
        "  ",
        "debug on",
        "register later",
        "xyzzy",
        "stop",
        "ponderhit",
        "setoption name Ponder value true",
    ):
        assert talk(line) == "" and talk.going_on
    talk("position startpos moves a2a3")
    for line in (
        "position startpos moves a2a4", "position fen 5/5", "position fen rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1 moves xx",
        "setoption name Threads value 4", "setoption name MultiPV value 0", "setoption name MultiPV value x",
        "setoption", "setoption name Simulations", "setoption name UCI_Variant value chess",
    ):  # fmt: skip
        said = talk(line)
        assert said.startswith("info string ") and said.count("\n") == 1
        if line.startswith("position"):  # lines of an earlier position would be taken for those of this one
            assert talk("go nodes 5") == "bestmove (none)\n"
            talk("position startpos moves a2a3")
    assert talk.server._position.ply == 1
    assert talk("setoption name uci_variant value gardner") == ""


def test_a_search_ends_by_the_nodes_that_are_asked_for(talk):
    said = talk("ucinewgame") + talk("position startpos") + talk("go")
    assert 20 <= int(re.findall(r" nodes (\d+) ", said)[-1]) <= 28  # those of mcts:20
    talk("setoption name Simulations value 37")
    for line, nodes in (("go nodes 100", 100), ("go", 37), ("go infinite nodes 5", None)):
        talk("ucinewgame")
        talk("position startpos")
        said = talk(line, wait="infinite" not in line) + (talk("stop") if "infinite" in line else "")
        found = re.search(r" nodes (\d+) .*\nbestmove [a-e][1-5][a-e][1-5]q?( ponder \w+)?\n$", said)
        assert found and (nodes is None or nodes <= int(found[1]) <= nodes + 8)  # leaves under way count


def test_a_search_ends_by_the_depth_that_is_asked_for(talk):
    for depth in (1, 3, 6):
        talk("ucinewgame")
        talk("position startpos")
        reached = re.findall(r"info depth (\d+)", talk(f"go depth {depth}"))
        assert int(reached[-1]) == depth


def test_a_search_is_over_once_it_has_proved_the_result(talk):
    """More simulations would change nothing; an analysis goes on until it is stopped."""
    talk("position fen 4k/R4/1R3/5/K4 w - - 0 1")
    for words in ("mate 1", "mate 3", "nodes 5000", "depth 9", "wtime 3600000"):
        found = re.search(r" nodes (\d+) .*\nbestmove b3b5\n$", talk("ucinewgame") + talk(f"go {words}"))
        assert found and int(found[1]) < 1000
    assert talk("go infinite", wait=False) == ""
    while not talk.server._analysis[1].settled:
        time.sleep(0.01)
    time.sleep(0.05)
    assert "bestmove" not in talk.out.getvalue() and talk("stop").endswith("bestmove b3b5\n")


@pytest.mark.parametrize(
    ("board", "score", "plies"),
    [
        ("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1", "mate 1", 1),
        ("7k/8/8/5K2/8/8/8/6Q1 w - - 0 1", "mate 2", 3),
        ("7k/8/5K2/8/8/8/8/6Q1 b - - 0 1", "mate -1", 2),
        ("k7/8/2K5/8/8/8/8/7R b - - 0 1", "mate -2", 4),
    ],
)
def test_a_proven_win_is_a_mate_in_so_many_moves(board, score, plies):
    """Its length is that of the known endings, and python-chess plays the line to the mate."""
    talk = Talk("mcts:20", "chess")
    talk(f"position fen {board}")
    last = re.findall(r"multipv 1 score (.*) nodes \d+ nps .* pv (.*)", talk("go mate 9"))[-1]
    assert last[0] == score and len(last[1].split()) == plies
    end = chess.Board(board)
    for word in last[1].split():
        end.push_uci(word)
    assert end.is_checkmate()


def test_the_time_spent_pondering_counts_in_the_report(talk):
    """Its nodes do, so a rate without it would be too high."""
    talk("position startpos moves a2a3")
    talk("go ponder btime 1000", wait=False)
    time.sleep(0.3)
    found = re.findall(r" nodes (\d+) nps (\d+) time (\d+) ", talk("ponderhit"))[-1]
    nodes, rate, passed = map(int, found)
    assert passed >= 300 and rate <= 1000 * nodes / passed


def test_lines_tell_depth_score_and_expected_play(talk):
    talk("setoption name MultiPV value 3")
    talk("position fen 4k/R4/1R3/5/K4 w - - 0 1")
    lines = [line for line in talk("go nodes 200").split("\n") if line.startswith("info")][-3:]
    talk("setoption name MultiPV value 1")
    fields = [
        re.fullmatch(
            r"info depth (\d+) multipv (\d) score (mate 1|cp -?\d+) nodes \d+ nps \d+ time \d+ pv ([a-e1-5 ]+)", line
        ).groups()
        for line in lines
    ]
    assert [order for _, order, _, _ in fields] == ["1", "2", "3"]
    assert all(int(depth) == len(moves.split()) for depth, _, _, moves in fields)
    assert fields[0][2:] == ("mate 1", "b3b5") and fields[1][2].startswith("cp ")


def test_a_score_is_that_of_leela_chess_zero():
    """Its source, for its score type "centipawn": 90 tan(1.5637541897 q)."""
    assert [centipawns(value) for value in (0.0, 0.5, -0.5, 0.9)] == [0, 89, -89, 546]


def test_only_the_moves_that_are_asked_for_are_searched(talk):
    talk("setoption name MultiPV value 9")
    for words in ("searchmoves a2a3 d2d3 nodes 60", "nodes 60 searchmoves a2a3 d2d3 e2e5"):
        talk("ucinewgame")
        talk("position startpos")
        said = talk("go " + words)
        assert {move[:4] for move in re.findall(r" pv (\w+)", said)} == {"a2a3", "d2d3"}
        assert re.search(r"bestmove (\w+)", said)[1] in ("a2a3", "d2d3")
    assert len(set(re.findall(r" pv (\w+)", talk("go nodes 60")))) > 2  # the next search has all again
    talk("position startpos moves a2a3")
    assert talk.best("go nodes 60 searchmoves xyz")
    talk("setoption name MultiPV value 1")


def test_a_draw_that_others_have_to_claim_does_not_end_the_game(talk):
    shuffle = "b1a3 b5c3 a3b1 c3b5 " * 2
    for line in (
        f"position startpos moves {shuffle}", f"position startpos moves {shuffle} b1a3",
        "position fen 4k/5/R4/5/K4 w - - 100 60", "position fen 4k/5/R4/5/K4 w - - 99 60 moves a3b3",
        "position fen 4k/5/R4/5/K4 w - - 120 60 moves a3b3",
    ):  # fmt: skip
        assert talk(line) == ""
        assert re.fullmatch(r"[a-e]\d[a-e]\d", talk.best("go nodes 5"))
        assert talk.server._position.ply <= 2
    for over in ("4k/5/5/5/K4 w - - 0 1", "k4/2Q2/1K3/5/5 b - - 0 1"):  # no pieces to mate with; stalemate
        talk(f"position fen {over}")
        assert talk.best("go nodes 5") == "(none)"


def test_the_game_is_over_in_no_move_and_a_forced_one_is_played(talk):
    talk("position fen 1R2k/R4/5/5/K4 b - - 0 1")
    assert talk("go nodes 5") == "bestmove (none)\n"


@pytest.mark.parametrize(
    ("words", "limits"),
    [
        ("nodes 7", (7, None, 0)),
        ("movetime 1000", (0, 1 - OVERHEAD, 0)),
        ("movetime 1", (0, 0.01, 0)),
        ("wtime 60000 btime 1 winc 1000", (0, 60 / 25 + 0.75 - OVERHEAD, 0)),
        ("wtime 10000 movestogo 10", (0, 1 - OVERHEAD, 0)),
        ("wtime 10000 movestogo 1", (0, 5 - OVERHEAD, 0)),
        ("wtime 100 winc 60000", (0, 0.08 - OVERHEAD, 0)),
        ("wtime -50", (0, 0.01, 0)),
        ("btime 60000", (0, None, 0)),
        ("infinite", (0, None, 0)),
        ("depth 4 nodes 9", (9, None, 4)),
        ("nodes 99999999999999", (99_999_999_999_999, None, 0)),
        ("wtime x nodes y depth", (0, None, 0)),
    ],
)
def test_the_clock_of_the_side_to_move_gives_a_share(words, limits):
    assert uci_server._limits(words.split(), "w") == pytest.approx(limits)


def test_the_time_of_a_move_is_kept(talk):
    talk("position startpos")
    begin = time.monotonic()
    talk("go movetime 300")
    assert time.monotonic() - begin >= 0.2  # and no bound above: the machine may be busy


def test_a_player_that_does_not_search_answers_too():
    talk = Talk("greedy")
    talk("position startpos moves a2a3")
    assert re.fullmatch(r"bestmove [a-e]\d[a-e]\d\n", talk("go movetime 1"))
    assert talk("go infinite", wait=False) == ""
    assert re.fullmatch(r"bestmove [a-e]\d[a-e]\d\n", talk("stop"))
    assert talk("go searchmoves a2a3").startswith("info string greedy does not search")


def test_the_player_is_made_after_uciok_and_the_first_search_waits_for_it(monkeypatch):
    loaded, out, go_on, at_begin = registry.load("gardner"), io.StringIO(), threading.Event(), list[str]()

    def make() -> Player:
        at_begin.append(out.getvalue())
        assert go_on.wait(60)
        return make_player("random", loaded, seed=1, threads=1)

    monkeypatch.setattr(uci_server, "PATIENCE", 0.01)
    server = UciServer(loaded, "random", make, out)
    assert at_begin == []
    for line in ("uci", "isready", "position startpos", "go nodes 1"):
        assert server.handle(line)
    assert out.getvalue().endswith("uciok\nreadyok\n")
    go_on.set()
    assert not server.handle("quit")
    assert len(at_begin) == 1 and at_begin[0].endswith("uciok\n")
    assert re.search(r"readyok\nbestmove [a-e]\d[a-e]\d\n$", out.getvalue())


def test_a_net_that_cannot_be_read_ends_the_program_after_uciok(tmp_path, monkeypatch, capsys):
    folder = shutil.copytree(registry.load("gardner").nets["best"].parent, tmp_path / "net")
    weights = folder / registry.load("gardner").nets["best"].name
    weights.write_bytes(weights.read_bytes()[:-100])
    monkeypatch.setattr("sys.stdin", io.StringIO("uci\nquit\n"))
    assert run_command(serve.uci, [str(weights), "--game", "gardner"]) == 2
    shown, errors = capsys.readouterr()
    assert shown.endswith("uciok\n") and weights.name in errors


def test_the_end_of_the_input_ends_a_search_as_quit_does(monkeypatch, capsys):
    for end in ("", "quit\n"):
        monkeypatch.setattr("sys.stdin", io.StringIO("position startpos\ngo infinite\n" + end))
        assert run_command(serve.uci, ["mcts:20", "--game", "gardner"]) == 0
        assert re.search(r"^bestmove [a-e]\d[a-e]\d", capsys.readouterr().out, re.MULTILINE)


def test_python_chess_plays_and_analyses():
    """An independent client, which complains about each wrong word, and a process of ours."""
    command = [sys.executable, "-m", "alphazero", "uci", "mcts:30", "--game", "chess", "--threads", "1"]
    with chess.engine.SimpleEngine.popen_uci(command, timeout=120) as engine:
        assert engine.id["author"] == "alphazero" and "Simulations" in engine.options
        engine.configure({"Simulations": 20})
        board = chess.Board()
        for limit in (
            chess.engine.Limit(nodes=10), chess.engine.Limit(time=0.1), chess.engine.Limit(depth=2),
            chess.engine.Limit(white_clock=2, black_clock=2, white_inc=0.1, black_inc=0.1),
        ):  # fmt: skip
            played = engine.play(board, limit, info=chess.engine.INFO_ALL, ponder=board.ply() == 2)
            assert played.move in board.legal_moves and played.info["pv"][0] == played.move
            board.push(played.move)
        lines = engine.analyse(board, chess.engine.Limit(nodes=40), multipv=3)
        assert len(lines) == 3 and all(line["pv"][0] in board.legal_moves for line in lines)
        mate = chess.Board("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1")
        assert engine.play(mate, chess.engine.Limit(nodes=200)).move == chess.Move.from_uci("a1a8")
        with engine.analysis(board) as analysis:  # without end
            assert next(iter(analysis)) is not None
        assert engine.ping() is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("random --game othello", "no words for othello"),
        ("radnom --game gardner", "did you mean 'random'?"),
        ("human --game gardner", "cannot be offered as an engine"),
    ],
)
def test_a_wrong_command_line_gets_one_sentence(line, message, capsys):
    assert run_command(serve.uci, line.split()) == 2
    shown, errors = capsys.readouterr()
    assert shown == "" and errors.count("\n") == 1 and message in errors


def test_a_game_that_goes_on_is_not_read_again_from_its_start(monkeypatch):
    """It took half a second after 300 plies, which ran on the clock of the first move after them."""
    talk, plies = Talk(), []
    moves = ["a2a3", "b4a3", "b1a3", "d4d3"]
    play = Position.play
    monkeypatch.setattr(Position, "play", lambda position, action: plies.append(action) or play(position, action))
    for known, more in ((0, 3), (3, 4), (4, 2), (0, 2)):
        plies.clear()
        talk("position startpos moves " + " ".join(moves[:more]))
        assert len(plies) == (more - known if more > known else more), (known, more)
        assert talk.server._position == registry.load("gardner").game.position(" ".join(moves[:more]))
        if more == 2:
            talk("position fen rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1")
            assert talk.server._position is not None and talk.server._position.ply == 0


def test_the_time_for_reading_a_position_runs_on_the_clock(monkeypatch):
    """A search whose time has passed before it begins makes one step, and its time counts once."""
    talk, hour = Talk("mcts:2000"), 3600.0
    read, passed = talk.server._read_position, [0.0]
    clock = time.monotonic

    def slowly(words: list[str]) -> Position:
        passed[0] += hour
        return read(words)

    monkeypatch.setattr(uci_server.time, "monotonic", lambda: clock() + passed[0])
    monkeypatch.setattr(talk.server, "_read_position", slowly)
    talk("position startpos")
    late = re.findall(r" nodes (\d+) ", talk("go nodes 2000 movetime 60000"))
    again = re.findall(r" nodes (\d+) ", talk("go nodes 2000 movetime 60000"))
    assert int(late[-1]) < 100 and int(again[-1]) >= 2000


def test_no_moves_to_go_are_as_none_told():
    assert _limits(["wtime", "10000", "btime", "10000", "movestogo", "0"], "w") == _limits(["wtime", "10000"], "w")
    assert _limits(["wtime", "10000", "movestogo", "-3"], "w") == _limits(["wtime", "10000"], "w")
