"""What programs that use GTP engines send, word for word, from their start to a game's end, and our answers.

A session is named after the program and the version whose source sends it. `>` begins what the program sends. Of an
answer, `...` may be anything on its line.
"""

import io
import re

import pytest

from alphazero.game import registry
from alphazero.players.contestants import open_contestant
from alphazero.players.function_player import FunctionPlayer
from alphazero.players.gtp_server import Server

HEXGUI_0_10 = """
> name
= alphazero ...

> version
= ...

> hexgui-analyze_commands
= plist/Best Move/reg_genmove %c
string/Board/showboard
string/Result/final_score
plist/Legal Moves/gogui-rules_legal_moves

> boardsize 7 7
=

> clear_board
=

> showboard
=
  a b c d e f g
1 . . . . . . .
 2 . . . . . . .
  3 . . . . . . .
   4 . . . . . . .
    5 . . . . . . .
     6 . . . . . . .
      7 . . . . . . .
X connects top and bottom, O left and right

> play black d4
=

> genmove white
= ...

> undo
=

> undo
=

> # interrupt
> boardsize 11 11
? unacceptable size

> boardsize 7 6
? unacceptable size

> quit
=

"""

HEXGUI_0_10_SWAPS = """
> boardsize 7 7
=

> play black b3
=

> clear_board
=

> play white c2
=

> genmove black
= ...

"""

GOGUI_TWOGTP_1_5 = """
> protocol_version
= 2

> name
= alphazero ...

> version
= ...

> list_commands
= boardsize
clear_board
cputime
final_score
genmove
gogui-analyze_commands
gogui-rules_board
gogui-rules_board_size
gogui-rules_final_result
gogui-rules_game_id
gogui-rules_legal_moves
gogui-rules_side_to_move
hexgui-analyze_commands
kata-analyze
kata-genmove_analyze
known_command
komi
list_commands
list_games
lz-analyze
lz-genmove_analyze
name
play
protocol_version
quit
rectangular_boardsize
reg_genmove
set_game
showboard
time_left
time_settings
undo
version

> cputime
= ...

> boardsize 8
=

> clear_board
=

> komi 6.5
=

> time_settings 60 0 0
=

> genmove b
= ...

> play w A1
? illegal move

> final_score
? cannot score: the game is not over

> quit
=

"""

GOGUI_1_5_RULES = """
> gogui-rules_game_id
= othello

> gogui-rules_board_size
= 8

> play b D3
=

> gogui-rules_board
=
. . . . . . . .
. . . . . . . .
. . . . . . . .
. . . X O . . .
. . . X X . . .
. . . X . . . .
. . . . . . . .
. . . . . . . .

> gogui-rules_side_to_move
= white

> gogui-rules_legal_moves
= C3 E3 C5

> gogui-rules_final_result
? cannot score: the game is not over

> undo
=

"""

SABAKI_0_52 = """
> name
= alphazero ...

> version
= ...

> protocol_version
= 2

> list_commands
= ...
...

> komi 6.5
=

> boardsize 3
=

> clear_board
=

> play B A1
=

> kata-genmove_analyze W 1000
=
info move ... visits ... winrate 0... order 0 pv ...
play ...

> undo
=

> kata-analyze W 50 ownership true
=

> protocol_version
= 2

> quit
=

"""

LIZZIE_0_7 = """
> 1 name
=1 alphazero ...

> 2 version
=2 ...

> 3 boardsize 9
=3

> 4 komi 7.5
=4

> 5 lz-analyze 10
=5

> 6 play B E5
=6

> 7 time_settings 0 2 1
=7

> 8 lz-genmove_analyze W 1000
=8
info move ... visits ... winrate ... order 0 pv ...
play ...

> 9 undo
=9

> 10 clear_board
=10

> 11 fixed_handicap 2
?11 unknown command

> 12 quit
=12

"""

GTP2OGS_9 = """
> list_commands
= ...
...

> boardsize 9
=

> clear_board
=

> komi 7.5
=

> play black e5
=

> play white pass
=

> showboard
=
...

> time_settings 600 30 1
=

> time_left black 570 0
=

> time_left white 600 0
=

> genmove black
= ...

> quit
=

"""

KGSGTP_3_5 = """
> list_commands
= ...
...

> name
= alphazero ...

> version
= ...

> boardsize 9
=

> clear_board
=

> komi 7.5
=

> time_settings 600 30 25
=

> play b e5
=

> time_left w 595 0
=

> genmove w
= ...

> undo
=

> final_status_list dead
? unknown command

> quit
=

"""

GOMILL_0_8 = """
> protocol_version
= 2

> known_command gomill-describe_engine
= false

> known_command gomill-cpu_time
= false

> boardsize 9
=

> clear_board
=

> komi 7.5
=

> known_command gomill-genmove_ex
= false

> genmove b
= ...

> play w a1
=

> final_score
? cannot score: the game is not over

> known_command gomill-explain_last_move
= false

> quit
=

"""

GO = "openspiel:go(board_size=9,komi=7.5)"
SESSIONS = {
    "HexGui 0.10": ("hex", "mcts:20", HEXGUI_0_10),
    "HexGui 0.10, its user swaps": ("hex_swap", "greedy", HEXGUI_0_10_SWAPS),
    "gogui-twogtp 1.5": ("othello", "mcts:20", GOGUI_TWOGTP_1_5),
    "GoGui 1.5, as the rules": ("othello", "greedy", GOGUI_1_5_RULES),
    "Sabaki 0.52": ("tictactoe", "mcts:20", SABAKI_0_52),
    "Lizzie 0.7": (GO, "mcts:20", LIZZIE_0_7),
    "gtp2ogs 9": (GO, "random", GTP2OGS_9),
    "kgsGtp 3.5": (GO, "random", KGSGTP_3_5),
    "gomill 0.8": (GO, "random", GOMILL_0_8),
}


def pattern(answer: str) -> str:
    """The regular expression of an answer: `...` on a line of its own is any number of lines."""
    lines = [
        r"(?:.+\n)*?.+" if line == "..." else re.escape(line).replace(r"\.\.\.", ".+") for line in answer.split("\n")
    ]
    return "\n".join(lines)


@pytest.mark.parametrize("session", SESSIONS)
def test_a_session_is_answered_word_for_word(session):
    game, player, text = SESSIONS[session]
    if game.startswith("openspiel:"):
        pytest.importorskip("pyspiel")
    loaded, out = registry.load(game), io.StringIO()
    server = Server(loaded, open_contestant(player, loaded, seed=1, threads=1), out)
    talks = re.findall(r"^> (.*)\n((?:(?!> ).*\n)*)", text, re.MULTILINE)
    assert talks
    for command, answer in talks:
        out.seek(0)
        out.truncate()
        assert server.handle(command + "\r\n") == (command.split()[-1] != "quit")
        said = re.sub(r"(?<=\S) +$", "", out.getvalue(), flags=re.MULTILINE)
        assert re.fullmatch(pattern(answer), said), (command, said)


@pytest.mark.parametrize("game", ["hex", "hex_swap", "othello", "connect4", "dots_and_boxes", GO])
def test_no_command_is_listed_or_offered_that_is_not_known(game):
    if game.startswith("openspiel:"):
        pytest.importorskip("pyspiel")
    loaded, out = registry.load(game), io.StringIO()
    server = Server(loaded, open_contestant("random", loaded, seed=1, threads=1), out)
    for line in ("list_commands", "gogui-analyze_commands"):
        server.handle(line)
    listed, offers = (answer.removeprefix("= ").split("\n") for answer in out.getvalue().split("\n\n")[:2])
    offered = {offer.split("/")[2].split()[0] for offer in offers}
    assert "reg_genmove" in offered and offered <= set(listed)
    for command in listed:
        out.truncate(0)
        server.handle(command)
        assert "unknown command" not in out.getvalue()


def test_a_swap_is_called_as_hexgui_and_benzene_call_it():
    loaded, out = registry.load("hex_swap"), io.StringIO()
    server = Server(loaded, FunctionPlayer(loaded.game, lambda position: position.parse("swap")), out)
    server.handle("play b b3")
    out.truncate(0)
    server.handle("genmove white")
    assert out.getvalue().endswith("= SWAP-PIECES\n\n")
    for line in ("undo", "play white swap-pieces"):
        server.handle(line)
    assert out.getvalue().endswith("= \n\n") and str(server.position).count("O") == 2  # one in the legend


@pytest.mark.parametrize(
    ("game", "right", "wrong"),
    [
        ("hex", ["boardsize 7 7", "boardsize 7"], ["boardsize 7 6", "boardsize 11 11", "boardsize 7 7 7"]),
        ("othello", ["boardsize 8 8"], ["boardsize 8 6"]),
        ("connect4", ["boardsize 7 6", "rectangular_boardsize 7 6"], ["boardsize 6 7", "boardsize 7", "boardsize 6"]),
    ],
)
def test_a_size_is_heard_as_columns_and_rows(game, right, wrong):
    loaded, out = registry.load(game), io.StringIO()
    server = Server(loaded, open_contestant("random", loaded, seed=1, threads=1), out)
    for line in [*right, *wrong]:
        server.handle(line)
    assert out.getvalue() == "= \n\n" * len(right) + "? unacceptable size\n\n" * len(wrong)


@pytest.mark.parametrize("game", ["connect4", "breakthrough", "dots_and_boxes", "nim"])
def test_a_game_without_points_offers_no_rules_to_gogui(game):
    loaded, out = registry.load(game), io.StringIO()
    Server(loaded, open_contestant("random", loaded, seed=1, threads=1), out).handle("list_commands")
    assert "reg_genmove" in out.getvalue() and "gogui-rules" not in out.getvalue()


def test_gogui_is_told_columns_without_an_i_and_how_a_game_has_ended():
    loaded, out = registry.load("gomoku"), io.StringIO()
    server = Server(loaded, open_contestant("random", loaded, seed=1, threads=1), out)
    for line in (
        "play b J9",
        "play w A1",
        "play b H9",
        "play w B1",
        "play b G9",
        "play w C1",
        "play b F9",
        "play w D1",
    ):
        server.handle(line)
    out.truncate(0)
    server.handle("play b E9")
    for line in ("gogui-rules_board", "gogui-rules_legal_moves", "gogui-rules_final_result"):
        server.handle(line)
    empty = ". . . . . . . . .\n" * 7
    assert out.getvalue().lstrip("\0") == (
        f"= \n\n= \n. . . . X X X X X\n{empty}O O O O . . . . .\n\n= \n\n= black wins\n\n"
    )
