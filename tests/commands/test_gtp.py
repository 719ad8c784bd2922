"""Our players as an engine: answers of the form and the sense that the Go Text Protocol asks for."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.commands import serve
from alphazero.commands.shared import run_command
from alphazero.game.reading.gtp_words import GtpWords
from alphazero.players import gtp_server
from alphazero.players.contestants import make_player
from alphazero.players.gtp_server import Server

ROOT = Path(__file__).resolve().parents[2]


class Talk:
    """A server and what it says to each line."""

    def __init__(self, game: str, player: str = "greedy"):
        loaded, self.out = registry.load(game), io.StringIO()
        self.server = Server(loaded, make_player(player, loaded, seed=1, threads=1), self.out)

    def __call__(self, line: str, steps: int = 0) -> str:
        self.out.seek(0)
        self.out.truncate()
        left = iter(range(steps))
        self.going_on = self.server.handle(line + "\n", lambda: next(left, None) is None)
        return self.out.getvalue()


def test_answers_have_the_form_of_the_protocol():
    talk = Talk("othello")
    assert talk("protocol_version") == "= 2\n\n"
    assert talk("17 protocol_version") == "=17 2\n\n"
    assert talk("\t 17  protocol_version\x01 # a comment") == "=17 2\n\n"
    assert talk("") == talk("# only a comment") == talk("   ") == ""
    assert talk("5 fly") == "?5 unknown command\n\n"
    assert talk("clear_board") == "= \n\n"
    assert talk("known_command genmove") == "= true\n\n" and talk("known_command fly") == "= false\n\n"
    assert talk("name") == "= alphazero greedy\n\n"
    assert talk("list_games") == "= Othello\n\n" and talk("set_game othello") == "= \n\n"
    assert talk("set_game Go") == "? this engine plays Othello\n\n"
    assert talk.going_on and talk("9 quit") == "=9 \n\n" and not talk.going_on


def test_every_listed_command_is_known_and_answers_end_with_one_empty_line():
    talk = Talk("othello6")
    listed = talk("list_commands").removeprefix("= ").split()
    needed = (
        "protocol_version name version known_command list_commands quit boardsize clear_board komi play genmove undo"
    )
    assert set(needed.split()) <= set(listed) and "kata-analyze" not in listed
    for command in listed:
        answer = talk(command)
        assert answer.endswith("\n\n") and "\n\n" not in answer[:-2] and "unknown" not in answer


def test_a_game_of_othello_with_passes_left_out():
    talk = Talk("othello")
    assert talk("boardsize 8") == "= \n\n" and talk("boardsize 9") == "? unacceptable size\n\n"
    assert talk("rectangular_boardsize 8 8") == "= \n\n"
    assert talk("play b A1") == "? illegal move\n\n"
    assert talk("play black d3") == "= \n\n"
    assert talk("play b c3") == "? illegal move: it is white's turn\n\n"
    assert talk("undo") == "= \n\n" and talk("undo") == "? cannot undo\n\n"
    # from random play: black has to pass at the end of it
    moves = "f5 d6 c4 d3 e2 b4 a4 b3 b5 f4 c2 f6 e6 c3 g6 a3 b2 a5 c6 d2 d1 a1 a2 b6 f3 c5 b7 a6 a7 a8"
    for ply, move in enumerate(moves.split()):
        assert talk(f"play {'bw'[ply % 2]} {move}") == "= \n\n"
    assert talk.server.position.legal_actions == [64]
    assert re.fullmatch(r"= [A-H][1-8]\n\n", talk("genmove w"))
    assert talk.server.position.actions[30] == 64 and talk.server.position.ply == 32
    assert talk("undo") == "= \n\n" and talk.server.position.ply == 30  # the pass went with the move
    assert talk("play b PASS") == "= \n\n" and talk.server.position.ply == 31
    assert "\n1 O . . X . . . .\n" in talk("showboard")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("play b", "play takes a colour and a vertex"),
        ("play red A1", "a colour is b, w, black or white"),
        ("genmove", "a colour is b, w, black or white"),
        ("play b Z9", "illegal move"),
        ("boardsize", "unacceptable size"),
        ("boardsize x", "unacceptable size"),
        ("boardsize 3 2", "unacceptable size"),
        ("rectangular_boardsize 3", "unacceptable size"),
        ("komi", "komi takes a number"),
        ("komi x", "komi takes a number"),
        ("kata-analyze", "unknown command"),
    ],
)
def test_what_is_wrong_is_refused(line, complaint):
    talk = Talk("tictactoe")
    assert talk(line) == f"? {complaint}\n\n" and talk("genmove b").startswith("= ")


def test_go_from_openspiel_knows_its_komi_and_passes():
    pytest.importorskip("pyspiel")
    talk = Talk("openspiel:go(board_size=9,komi=7.5)", "random")
    assert talk("komi 7.5") == "= \n\n" and talk("komi 6.5") == "? the komi of this game is 7.5\n\n"
    assert talk("boardsize 9") == "= \n\n" and talk("play b J9") == "= \n\n"
    assert talk("play w i5") == "? illegal move\n\n"
    assert talk("play b A1") == "= \n\n" and talk.server.position.ply == 3  # white has passed
    assert re.fullmatch(r"= ([A-HJ][1-9]|pass)\n\n", talk("genmove w"))
    with pytest.raises(registry.GameError, match="handicap"):
        loaded = registry.load("openspiel:go(board_size=9,handicap=2)")
        loaded.gtp_words(loaded.game)


def test_every_action_of_every_game_has_a_vertex_of_its_own(game):
    loaded = registry.load(game.name)
    words: GtpWords = loaded.gtp_words(game)
    position = game.start()
    while not position.terminal and position.ply < 12:
        vertices = [words.vertex(position, action) for action in position.legal_actions]
        assert [words.action(position, vertex.lower()) for vertex in vertices] == position.legal_actions
        position = position.play(position.legal_actions[position.ply % len(position.legal_actions)])


@pytest.mark.parametrize("name", ["chess", "nine_mens_morris"])
def test_every_action_of_openspiel_has_a_vertex_of_its_own(name):
    pytest.importorskip("pyspiel")
    loaded, rng = registry.load(f"openspiel:{name}"), np.random.default_rng(1)
    words, position = loaded.gtp_words(loaded.game), loaded.game.start()
    while not position.terminal and position.ply < 30:
        vertices = [words.vertex(position, action) for action in position.legal_actions]
        assert len(set(vertices)) == len(vertices)
        assert [words.action(position, vertex) for vertex in vertices] == position.legal_actions
        position = position.play(int(rng.choice(position.legal_actions)))


def test_a_bishop_is_told_from_a_pawn():
    pytest.importorskip("pyspiel")
    talk = Talk("openspiel:chess", "random")
    for ply, move in enumerate(["d4", "E6", "Bd2", "bb4", "a3", "Bc3"]):
        assert talk(f"play {'wb'[ply % 2]} {move}") == "= \n\n"
    position, words = talk.server.position, talk.server._words
    assert {words.vertex(position, position.parse(move)) for move in ("Bxc3", "bxc3", "Nxc3")} == {
        "Bxc3", "bxc3", "NXC3",
    }  # fmt: skip
    assert talk("play w BXC3") == "? illegal move\n\n"
    for move in ("Bxc3", "bxc3"):
        assert talk(f"play w {move}") == "= \n\n" and talk.server.position.actions[-1] == position.parse(move)
        talk("undo")


def test_an_analysis_goes_on_until_something_is_asked(monkeypatch):
    monkeypatch.setattr(gtp_server.time, "monotonic", iter(range(100_000)).__next__)  # every simulation takes a second
    talk = Talk("tictactoe", "mcts:20")
    assert "kata-analyze" in talk("list_commands")
    for move in ("b A1", "w B2", "b A2"):
        talk(f"play {move}")
    lines = talk("3 kata-analyze w 1000 maxmoves 2", steps=200).split("\n")
    assert lines[0] == "=3" and lines[-2:] == ["", ""] and len(lines) > 10
    assert all(line.startswith("info move ") and line.count("info move ") <= 2 for line in lines[1:-2])
    found = re.fullmatch(
        r"info move (\S+) visits (\d+) utility (\S+) winrate (\S+) prior (\S+) order 0 pv (.*?)( info .*)?", lines[-3]
    )
    assert found is not None
    move, visits, utility, winrate, prior, line, _ = found.groups()
    assert move == "A3"  # else black wins there
    assert line.split()[0] == "A3" and len(line.split()) > 1
    assert int(visits) > 100 and float(prior) == pytest.approx(1 / 6, abs=1e-6)
    assert float(winrate) == pytest.approx((1 + float(utility)) / 2, abs=1e-6)
    assert talk("genmove w") == "= A3\n\n"


@pytest.mark.parametrize("command", ["kata-genmove_analyze", "lz-genmove_analyze"])
def test_a_move_is_analysed_and_played(command):
    talk = Talk("tictactoe", "mcts:60")
    assert talk(f"known_command {command}") == "= true\n\n"
    for move in ("b A1", "w B2", "b A2"):
        talk(f"play {move}")
    lines = talk(f"3 {command} w 1000").split(
        "\n"
    )  # nothing interrupts it, and the search is shorter than the interval
    assert lines[0] == "=3" and len(lines) == 5
    assert lines[1].startswith("info move A3 ")
    assert sum(int(visits) for visits in re.findall(r" visits (\d+) ", lines[1])) == 60
    assert lines[2:] == ["play A3", "", ""] and talk.server.position.ply == 4
    assert talk(f"{command} w").startswith("? illegal move: it is black's turn") and talk.server.position.ply == 4
    assert len(talk(f"{command} interval 1 maxmoves 1").split("info move ")) >= 2 and talk.server.position.ply == 5


def test_a_move_that_is_analysed_is_drawn_at_the_players_temperature():
    moves = set()
    talk = Talk("tictactoe", "mcts:60@temperature=1")
    for _ in range(12):
        talk("clear_board")
        moves.add(talk("kata-genmove_analyze b").split("\n")[-3])
    assert len(moves) > 2


@pytest.mark.parametrize(
    ("command", "player"), [("kata-genmove_analyze", "mcts:2"), ("lz-genmove_analyze", "mcts:2@temperature=1")]
)
def test_a_move_that_is_analysed_is_no_proven_loss_while_others_are_left(command, player):
    """Black wins in B1 unless white plays there; both simulations go to A1, which is lost then."""
    talk = Talk("tictactoe", player)
    for move in ("b B2", "w A2", "b B3"):
        talk(f"play {move}")
    lines = talk(f"{command} w 1000").split("\n")
    assert lines[1].startswith("info move A1 visits 2 ") and lines[1].count("info move ") == 1
    assert lines[2:] == ["play B1", "", ""]


@pytest.mark.parametrize(
    ("moves", "score"),
    [("A1 A2 B1 B2 C1", "B+1"), ("A1 A2 B1 B2 C3 C2", "W+1"), ("B2 A1 C1 A3 A2 C2 B1 B3 C3", "0")],
)
def test_the_score_of_a_game_that_is_over(moves, score):
    talk = Talk("tictactoe")
    for number, move in enumerate(moves.split()):
        assert talk("7 final_score") == "?7 cannot score: the game is not over\n\n"
        assert talk(f"play {'bw'[number % 2]} {move}") == "= \n\n"
    assert talk("7 final_score") == f"=7 {score}\n\n"


def test_an_analysis_that_cannot_begin_is_refused():
    talk = Talk("tictactoe", "mcts:20")
    assert talk("kata-analyze w").startswith("? illegal move: it is black's turn")
    assert talk("kata-analyze b 50 ownership").startswith("? an analysis takes a colour")
    for word in ("avoid", "allow"):
        assert talk(f"kata-analyze b interval 20 {word} b A1,B1 5").startswith("? an analysis takes a colour")
    assert talk("kata-analyze interval x").startswith("? interval takes a number")
    assert talk("kata-analyze") == "=\n\n"


def test_bytes_that_are_no_text_are_an_unknown_command(tmp_path):
    """And what a player prints is no answer."""
    policy = tmp_path / "noisy.py"
    policy.write_text("def f(x):\n    print('thinking')\n    return x.reshape(len(x), -1)[:, :9]\n")
    done = subprocess.run(
        [sys.executable, "-m", "alphazero", "gtp", f"python:{policy}:f", "--game", "tictactoe"], cwd=ROOT, timeout=120,
        input=b"\xff\xfe\n1 genmove b\n\nkomi 6.5\n2 showboard", capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
    )  # fmt: skip
    assert done.returncode == 0
    assert re.fullmatch(rb"\? unknown command\n\n=1 [ABC][123]\n\n= \n\n=2 (\n.+){4}\n\n", done.stdout)
    assert done.stderr.strip() == b"thinking"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("radnom --game tictactoe", "did you mean 'random'?"),
        ("random --game tictactoe --seed -1", "--seed must lie between"),
        ("random --game pig", "knows two players and no dice, so it cannot play pig"),
        ("random --game 2048", "knows two players and no dice, so it cannot play 2048"),
        ("random --game tictacmo", "knows two players and no dice, so it cannot play tictacmo"),
    ],
)
def test_a_wrong_command_line_gets_one_sentence(line, message, capsys):
    assert run_command(serve.gtp, line.split()) == 2
    shown, errors = capsys.readouterr()
    assert shown == "" and errors.count("\n") == 1 and message in errors


HANDICAPS = {  # as GNU Go 3.8 places them
    "go7": ("C3 E5", "C3 E5 C5", "C3 E5 C5 E3"),
    "go9": (
        "C3 G7", "C3 G7 C7", "C3 G7 C7 G3", "C3 G7 C7 G3 E5", "C3 G7 C7 G3 C5 G5", "C3 G7 C7 G3 C5 G5 E5",
        "C3 G7 C7 G3 C5 G5 E3 E7", "C3 G7 C7 G3 C5 G5 E3 E7 E5",
    ),
    "go19": ("D4 Q16", "D4 Q16 D16", "D4 Q16 D16 Q4", "D4 Q16 D16 Q4 K10"),
}  # fmt: skip


@pytest.mark.parametrize("game", HANDICAPS)
def test_a_fixed_handicap_is_set_up_and_white_is_to_move(game):
    talk = Talk(game, "random")
    for number, points in enumerate(HANDICAPS[game], 2):
        assert talk("clear_board") == "= \n\n"
        assert talk(f"{'fixed' if number % 2 else 'place_free'}_handicap {number}") == f"= {points}\n\n"
        position = talk.server.position
        assert position.to_play == 1 and position.is_set_up and str(position).count("X") == number
        assert {
            position.game.format_action(piece.cell, position.state) for piece in position.game.pieces(position)
        } == {*points.split()}
        assert talk("undo") == "? cannot undo\n\n" and talk("fixed_handicap 2") == "? board not empty\n\n"
        assert talk("genmove w").startswith("= ") and talk("undo") == "= \n\n"


def test_handicaps_that_cannot_be():
    talk = Talk("go7", "random")
    for wrong in (
        "fixed_handicap 1",
        "fixed_handicap 5",
        "fixed_handicap",
        "fixed_handicap x",
        "place_free_handicap 9",
    ):
        assert talk(wrong).startswith("? ")
    for wrong in ("", "A1", "A1 A1", "A1 pass", "A1 H1", "A1 I1"):
        assert talk(f"set_free_handicap {wrong}") == "? bad vertex list\n\n"
    everything = " ".join(talk.server._points.values())
    assert talk(f"set_free_handicap {everything}").startswith("? this is no board")
    assert talk("set_free_handicap a1 B2") == "= a1 B2\n\n" and talk.server.position.to_play == 1
    assert talk("clear_board") == "= \n\n" and talk("play b A1") == "= \n\n"
    assert talk("set_free_handicap A2 B2") == "? board not empty\n\n"
    assert Talk("go5", "random")("fixed_handicap 2").startswith("? ")
    for other in ("othello", "hex"):
        assert Talk(other, "random")("fixed_handicap 2") == "? unknown command\n\n"


def test_the_score_of_go_counts_points_and_all_stones_are_alive():
    talk = Talk("go5", "random")
    for move in ("b C3", "w B1", "b C2", "w B2", "b C1", "w B3", "b C4", "w B4", "b C5", "w B5", "b E5", "w pass"):
        assert talk(f"play {move}") == "= \n\n"
    assert talk("final_score") == "? cannot score: the game is not over\n\n"
    assert talk("play b pass") == "= \n\n"
    assert talk("final_score") == "= B+5\n\n" and talk.server.position.points == 5
    assert talk("final_status_list dead") == talk("final_status_list seki") == "= \n\n"
    assert {*talk("final_status_list alive")[2:].split()} == {
        "E5",
        *(f"{column}{row}" for column in "BC" for row in range(1, 6)),
    }
    assert talk("final_status_list") == talk("final_status_list red")
    assert talk("final_status_list").startswith("? final_status_list takes")
    assert "\nX . X" not in talk("gogui-rules_board") and talk("gogui-rules_board").count("X") == 6


def test_openspiels_go_tells_who_has_won_alone():
    pytest.importorskip("pyspiel")
    talk = Talk("openspiel:go(board_size=9,komi=7.5)", "random")
    for move in ("b E5", "w A1", "b pass", "w pass"):
        assert talk(f"play {move}") == "= \n\n"
    assert talk("final_score") == "= W+1\n\n"
    for command in ("fixed_handicap 2", "final_status_list dead"):
        assert talk(command) == "? unknown command\n\n"


def test_a_file_of_sgf_is_loaded(tmp_path):
    file, talk = tmp_path / "a game.sgf", Talk("go9", "random")
    file.write_text("(;GM[1]SZ[9]AB[cc][gg];W[ee];B[dd](;W[ff])(;W[aa]))")
    assert talk(f"loadsgf {file}") == "= \n\n" and talk.server.position.ply == 3
    assert talk("loadsgf") == "? loadsgf takes a file\n\n"
    assert talk(f"loadsgf {file} 3") == "= \n\n" and talk.server.position.ply == 2
    assert talk("undo") == talk("undo") == "= \n\n" and str(talk.server.position).count("X") == 2
    assert talk(f"loadsgf {file} 1") == "= \n\n" and talk.server.position.ply == 0
    assert talk("play w A1") == "= \n\n"
    for content in ("(;SZ[7];B[aa])", "(;GM[2];B[d3])", "(;SZ[9];B[aa];W[aa])", "", "text", "(;SZ[9];B[zz])"):
        file.write_text(content)
        assert talk(f"loadsgf {file}").startswith("? ") and talk.server.position.ply == 1
    assert talk("loadsgf").startswith("? ") and talk(f"loadsgf {tmp_path / 'none.sgf'}").startswith("? ")


def test_moves_of_a_file_count_without_the_passes_that_it_leaves_out(tmp_path):
    """As GNU Go 3.8 counts them."""
    file, talk = tmp_path / "a.sgf", Talk("go9", "random")
    for moves, number, black, white in (
        ("W[dd];B[ee];W[cc]", 2, "", "D6"),
        ("B[cc];B[gg];W[dd]", 3, "C7 G3", ""),
        ("B[cc];W[];B[];W[dd];B[gg]", 5, "C7", "D6"),
    ):
        file.write_text(f"(;GM[1]SZ[9];{moves})")
        assert talk(f"loadsgf {file} {number}") == "= \n\n"
        pieces = talk.server.position.game.pieces(talk.server.position)
        names = [" ".join(talk.server._points[piece.cell] for piece in pieces if piece.player == of) for of in (0, 1)]
        assert names == [black, white]
    for left in range(4, 0, -1):
        assert talk("undo") == "= \n\n", left
    assert talk("undo") == "? cannot undo\n\n"


def test_go_goes_on_after_two_passes_where_players_do_not_agree():
    talk = Talk("go9", "random")
    for line in ("play b E5", "play w pass", "play b pass"):
        assert talk(line) == "= \n\n"
    assert talk("final_score").startswith("= ")
    assert re.fullmatch(r"= (pass|[A-J]\d)\n\n", talk("genmove w"))
    assert talk("undo") == "= \n\n" and talk("final_score").startswith("= ")
    assert talk("play b C3") == "= \n\n" and not talk.server.position.terminal  # white passes first
    assert talk("play w D4") == "= \n\n"
    for lines in (("b C3", "w pass", "b pass", "w pass", "b pass"), ("b C3", "b pass")):
        talk = Talk("go9", "random")
        for line in lines:
            assert talk(f"play {line}") == "= \n\n"
        score = talk("final_score")
        assert score.startswith("= ") and talk("play w pass") == "= \n\n" and talk("final_score") == score
        assert talk("play w D4") == "= \n\n" and talk("final_score").startswith("? ")
    othello = Talk("othello6", "random")
    while not othello.server.position.terminal:
        assert othello(f"genmove {'bw'[othello.server.position.to_play]}").startswith("= ")
    assert othello("genmove b") == "? the game is over\n\n"


def test_a_file_whose_first_game_cannot_be_held_is_not_loaded(tmp_path):
    file, talk = tmp_path / "a.sgf", Talk("go9", "random")
    file.write_text("(;GM[1]SZ[9];B[cc];AB[dd])(;GM[1]SZ[9];B[ee])")
    assert talk(f"loadsgf {file}") == "? cannot load file: no record can hold its first game\n\n"
    file.write_text("(;GM[1]SZ[9];B[cc];W[];B[];W[])")
    assert talk(f"loadsgf {file}") == "= \n\n" and talk("final_score") == "= B+73.5\n\n"
    assert talk("play w D4") == "= \n\n"
