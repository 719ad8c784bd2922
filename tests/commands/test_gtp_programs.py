"""What programs that use GTP engines send, word for word, from their start to a game's end, and our answers.

A file of gtp_sessions/ is named after the program and the version that sends it; its first line is the game and the
player. `>` begins what the program sends. Of an answer, `...` may be anything on its line. The sessions of Lizzie,
Quarry, gomill and Sabaki were heard from the program or its library, those of the others read in its source or its
documentation.
"""

import io
import re
from pathlib import Path

import pytest

from alphazero.catalogue import registry
from alphazero.players.contestants import make_player
from alphazero.players.function_player import FunctionPlayer
from alphazero.players.gtp_server import Server

SESSIONS = sorted((Path(__file__).parent / "gtp_sessions").iterdir())
GO = "openspiel:go(board_size=9,komi=7.5)"


def make_server(game: str, player: str = "random") -> tuple[Server, io.StringIO]:
    """The server of a game and what it writes; skips the test if the game needs a library that is not there."""
    if game.startswith("openspiel:"):
        pytest.importorskip("pyspiel")
    loaded, out = registry.load(game), io.StringIO()
    return Server(loaded, make_player(player, loaded, seed=1, threads=1), out), out


def answers(server: Server, out: io.StringIO, *lines: str) -> str:
    """What the server writes to the lines."""
    out.seek(0)
    out.truncate()
    for line in lines:
        server.handle(line)
    return out.getvalue()


def pattern(answer: str) -> str:
    """The regular expression of an answer: `...` on a line of its own is any number of lines."""
    lines = [
        r"(?:.+\n)*?.+" if line == "..." else re.escape(line).replace(r"\.\.\.", ".+") for line in answer.split("\n")
    ]
    return "\n".join(lines)


@pytest.mark.parametrize("session", SESSIONS, ids=lambda path: path.stem)
def test_a_session_is_answered_word_for_word(session):
    head, _, text = session.read_text().partition("\n")
    server, out = make_server(*head.removeprefix("# ").split())
    talks = re.findall(r"^> (.*)\n((?:(?!> ).*\n)*)", text, re.MULTILINE)
    assert talks
    for command, answer in talks:
        said = re.sub(r"(?<=\S) +$", "", answers(server, out, command + "\r\n"), flags=re.MULTILINE)
        assert re.fullmatch(pattern(answer), said), (command, said)


@pytest.mark.parametrize("game", ["hex", "hex_swap", "othello", "connect4", "dots_and_boxes", GO])
def test_no_command_is_listed_or_offered_that_is_not_known(game):
    server, out = make_server(game)
    said = answers(server, out, "list_commands", "gogui-analyze_commands").split("\n\n")
    listed, offers = (answer.removeprefix("= ").split("\n") for answer in said[:2])
    offered = {offer.split("/")[2].split()[0] for offer in offers}
    assert "reg_genmove" in offered and offered <= set(listed)
    for command in listed:
        assert "unknown command" not in answers(server, out, command)


def test_a_swap_is_called_as_hexgui_and_benzene_call_it():
    loaded, out = registry.load("hex_swap"), io.StringIO()
    server = Server(loaded, FunctionPlayer(loaded.game, lambda position: position.parse("swap")), out)
    assert answers(server, out, "play b b3", "genmove white") == "= \n\n= SWAP-PIECES\n\n"
    assert answers(server, out, "undo", "play white swap-pieces") == "= \n\n= \n\n"
    assert str(server.position).count("O") == 2  # one is in the legend
    answers(server, out, "undo")
    legal = answers(server, out, "gogui-rules_legal_moves").removeprefix("= ").split()
    assert len(legal) == 48 and "SWAP-PIECES" not in legal  # which is no point of a Go board


@pytest.mark.parametrize(
    ("game", "answer", "ply"),
    [("hex", "? illegal move: it is black's turn\n\n", 0), ("hex_swap", "= \n\n", 2), (GO, "= \n\n", 2)],
)
def test_a_first_stone_of_white_is_a_swap_or_follows_a_pass(game, answer, ply):
    server, out = make_server(game)
    assert answers(server, out, "play w e3") == answer and server.position.ply == ply
    assert answers(server, out, "undo").startswith("=") == (ply > 0) and server.position.ply == 0


@pytest.mark.parametrize(
    ("game", "right", "wrong"),
    [
        ("hex", ["boardsize 7 7", "boardsize 7"], ["boardsize 7 6", "boardsize 11 11", "boardsize 7 7 7"]),
        ("othello", ["boardsize 8 8"], ["boardsize 8 6"]),
        ("connect4", ["boardsize 7 6", "rectangular_boardsize 7 6"], ["boardsize 6 7", "boardsize 7", "boardsize 6"]),
    ],
)
def test_a_size_is_heard_as_columns_and_rows(game, right, wrong):
    server, out = make_server(game)
    assert answers(server, out, *right, *wrong) == "= \n\n" * len(right) + "? unacceptable size\n\n" * len(wrong)


def test_gogui_is_told_columns_without_an_i_and_how_a_game_has_ended():
    server, out = make_server("gomoku")
    moves = ["b J9", "w A1", "b H9", "w B1", "b G9", "w C1", "b F9", "w D1", "b E9"]
    answers(server, out, *(f"play {move}" for move in moves))
    empty = ". . . . . . . . .\n" * 7
    assert answers(server, out, "gogui-rules_board", "gogui-rules_legal_moves", "gogui-rules_final_result") == (
        f"= \n. . . . X X X X X\n{empty}O O O O . . . . .\n\n= \n\n= black wins\n\n"
    )
