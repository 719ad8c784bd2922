"""Moves and boards as people and other programs write them: what is read, and what is refused in a sentence."""

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import IllegalAction, InputError
from alphazero.game import Game, Position
from alphazero.game.reading.gtp_words import default_words
from games.connect4.game import Connect4
from games.othello.game import Othello

GAMES = {name: registry.load(name).game for name in registry.NAMES}
PASSED = "d3c3e6d2d1e1b2c1", "a3"
"""A game of Othello up to a pass, and the move after it."""


SPELLINGS = [
    *(PASSED[0] + spelling + PASSED[1] for spelling in ("pass", "PASS", "PA", "pa", "ps", "--", "@@", "")),
    "D3C3E6D2D1E1B2C1 A3",
    "d3-c3-e6-d2-d1-e1-b2-c1-a3",
    "d3-c3-e6-d2-d1-e1-b2-c1-PA-a3",
    "1. d3 c3 2. e6 d2 3. d1 e1 4. b2 c1 5. -- a3",
    "1.d3 c3 2.e6 d2 3.d1 e1 4.b2 c1 5.a3",
    "1. d3 1... c3 2. e6 2... d2\n3. d1, e1, 4. b2, c1, 5. pass, a3",
    "1.d3 2.c3 3.e6 4.d2 5.d1 6.e1 7.b2 8.c1 9.a3",
    "1. d3 c3 2. e6 d2 3. d1 e1 4. b2 c1 5... a3",
]


@pytest.mark.parametrize("text", SPELLINGS)
def test_a_transcript_is_read_however_it_spells_its_pass(text: str):
    game = GAMES["othello"]
    squares = "d3 c3 e6 d2 d1 e1 b2 c1 pass a3"
    assert game.position(text).actions == game.position(squares.split()).actions


@pytest.mark.parametrize(
    ("name", "text", "same"),
    [
        ("connect4", "4-4-5-3", "4453"),
        ("connect4", "1. 4 4 2. 5 3", "4453"),
        ("connect4", "1.44 2.53", "4453"),
        ("connect4", "4,4,5,3", "4453"),
        ("hex", "a1-b2-c3", "a1 b2 c3"),
        ("hex", "1. A1 2. B2 3. C3", "a1 b2 c3"),
        ("hex_swap", "a2 swap-pieces c3", "a2 swap c3"),
        ("hex_swap", "a2-Swap-c3", "a2 swap c3"),
        ("hex_swap", "a2swap-pieces C3b4", "a2 swap c3 b4"),
        ("gomoku15", "h8i9h10", "h8 i9 h10"),
        ("othello", "f5 d6 1-0", "f5 d6"),
        ("othello", "1. f5 d6 2. c3 1/2-1/2", "f5 d6 c3"),
        ("breakthrough", "a2a3 b5b4 *", "a2-a3 b5-b4"),
        ("hex", "a1 b2  0-1 ", "a1 b2"),
        ("gomoku15", "7,7 8,7 0,14", "h8 i8 a15"),
        ("gomoku15", "7,7,8,7", "h8 i8"),
        ("gomoku15", "h8,i8", "h8 i8"),
        ("breakthrough", "a2a3 b5b4 a3xb4", "a2-a3 b5-b4 a3xb4"),
        ("breakthrough", "A2:A3 b5-b4 a3b4", "a2-a3 b5-b4 a3xb4"),
        ("breakthrough", "1. a2-a3 b5-b4 2. a3xb4", "a2-a3 b5-b4 a3xb4"),
        (
            "chess",
            '[Event "a {b} \\"game\\""] [Variant "Standard"]\n[Opening "Four Knights"]\n\n'
            "1. e4 { [%eval 0.17] [%clk 0:05:00] } 1... e5 $1 {a\nb}{} 2. Nf3 $14 {1. d4} 2... Nc6 { White wins. } 1-0",
            "e2e4 e7e5 g1f3 b8c6",
        ),
        ("othello", "1. f5 {good} d6 2. c3 *", "f5 d6 c3"),
        ("dots_and_boxes", "0-12-3", "0 12 3"),
        ("dots_and_boxes", "1. 12 3", "12 3"),
        ("nim", "1. 4-7 3-5", "4-7 3-5"),
        ("tictactoe", "1. b2 a1 2. c3", "b2 a1 c3"),
        ("tictactoe", "1.b2 1...a1 2.b1 2...b3", "b2 a1 b1 b3"),
    ],
)
def test_other_spellings_are_the_same_game(name: str, text: str, same: str):
    game = GAMES[name]
    words = same if name == "connect4" else same.split()
    assert game.position(text).actions == game.position(list(words)).actions


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("othello", "d3 z9", r"^'z9' is not a legal action here \(legal: c3, "),
        ("othello", f"{PASSED[0]}b1", r"^'b1' is not a legal action here \(legal: pass\)"),  # X's own square is taken
        ("othello", "PA", r"^'PA' is not a legal action here \(legal: d3, c4, f5, e6\)"),
        ("othello", "d3--c3", r"^'--' is not a legal action here"),
        ("othello", "1. d3 3. c3", r"^move numbers count 1\., 2\., 3\. and so on: 3\. is out of place"),
        ("othello", "2. d3", r"^move numbers .*: 2\. is out of place"),
        ("othello", "1. d3 1...", r"is not a legal action"),
        ("chess", '[SetUp "1"] [FEN "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"] 1. e4', r"SetUp"),
        ("chess", "1. e4 (1. d4) e5", r"'\(1\.' is not a legal action"),
        ("chess", "1. e4 {e5", r"'\{e5' is not a legal action"),
        ("connect4", "-4", r"^'-' is not a legal action"),
        ("connect4", "48", r"^'8' is not a legal action"),
        ("dots_and_boxes", "-3", r"^'-3' is not a legal action"),
        ("hex_swap", "a2 swap-sides", r"^'swap-sides' is not a legal action"),
        ("hex_swap", "a2-swap-sides", r"^'swap-sides' is not a legal action"),
        ("othello", "1-0", r"^'10' is not a legal action"),
        ("hex", "swap-pieces", r"^'swap-pieces' is not a legal action"),
        ("gomoku15", "8,8,13", r"^'13' is not a legal action"),
        ("gomoku15", "15,0", r"^'15,0' is not a legal action"),
        ("nim", "47", r"^'47' is not a legal action"),
        ("nim", "4-9", r"^'4-9' is not a legal action"),
        ("breakthrough", "a2-a4", r"^'a2-a4' is not a legal action"),
    ],
)
def test_what_is_no_legal_move_is_refused_with_the_legal_ones(name: str, text: str, said: str):
    with pytest.raises(IllegalAction, match=said):
        GAMES[name].position(text)


def test_a_pass_is_put_in_only_where_nothing_else_is_legal():
    """A game in which one may always pass: the moves of a text are those that it has."""

    class MayPass(Othello):
        name = "may_pass"

        def format_action(self, action, state):
            return "pass" if action == 19 else super().format_action(action, state)

    assert MayPass().position("pass").actions == (19,)  # d3
    with pytest.raises(IllegalAction, match="'z9'"):
        MayPass().position("z9")


def test_the_words_of_a_game_come_first():
    """What a game's own notation reads means that, also where it looks like numbers and hyphens."""

    class Odd(Connect4):
        def split_moves(self, text):
            return text.split()

        def format_action(self, action, state):
            return ("1.", "1-2", "2", "pa", "--", "1...", "3")[action]

        def parse_action(self, text, state):
            return [self.format_action(action, state) for action in range(7)].index(text)

    assert Odd().position("1. 1-2 2 pa -- 1... 3").actions == (0, 1, 2, 3, 4, 5, 6)
    with pytest.raises(IllegalAction, match=r"'1-5' is not a legal action here \(legal: 1\., 1-2, 2"):
        Odd().position("1-5")


def test_a_word_that_may_mean_two_moves_is_refused():
    class Twice(Connect4):
        def format_action(self, action, state):
            return ("a1-b2", "a1xb2")[action] if action < 2 else str(action)

        def parse_action(self, text, state):
            return [self.format_action(action, state) for action in range(7)].index(text)

    start = Twice().start()
    assert (start.parse("a1-b2"), start.parse("a1xb2")) == (0, 1)
    with pytest.raises(IllegalAction, match="'a1b2' is not a legal action"):
        start.parse("a1b2")


def test_gtp_reads_the_spellings_of_a_pass_and_of_two_squares():
    othello, breakthrough = GAMES["othello"], GAMES["breakthrough"]
    must_pass = othello.position(PASSED[0])
    for word in ("pass", "PASS", "pa", "PS", "--", "@@"):
        assert default_words(othello).action(must_pass, word) == 64
    start = breakthrough.start()
    assert default_words(breakthrough).action(start, "A2A3") == start.parse("a2-a3")
    with pytest.raises(IllegalAction):
        default_words(othello).action(othello.start(), "PA")


# --- boards ---

# problem 40 of FForum, from fforum-40-59.obf of Edax (abulmo/edax-reversi, commit 75848c8)
FFO_40 = "O--OOOOX-OOOOOOXOOXXOOOXOOXOOOXXOOOOOOXX---OOOOX----O--X--------"


def drawn(position: Position) -> str:
    """The board of a drawing, without its labels."""
    rows = [line.replace(" ", "") for line in str(position).splitlines()]
    return "".join(row.lstrip("0123456789") for row in rows if set(row.lstrip("0123456789")) <= set(".XO") and row)


@pytest.mark.parametrize(
    ("side", "to_play"),
    [
        *[("X", 0), (" X; A2:+38; C7:+36;", 0), (" O", 1), (" *", 0), ("w", 1), (" b;", 0), ("\no\n", 1)],
        *[
            ("black", 0),
            (" Black", 0),
            (" WHITE; A2:+38;", 1),
            (" white to move", 1),
            (" x to move", 0),
            (" O to play", 1),
        ],
        *[("\nfirst player to move\n", 0), (" second", 1)],
    ],
)
def test_a_board_of_othello_and_who_moves(side: str, to_play: int):
    position = GAMES["othello"].position(FFO_40 + side)
    assert drawn(position) == FFO_40.replace("-", ".") and position.to_play == to_play
    assert position.actions == () and position.is_set_up
    legal = {position.format(action) for action in position.legal_actions}
    if to_play == 0:  # the moves of the line in that file
        assert legal >= {"a2", "c7", "d8", "c1", "b1", "g7", "d7", "c6", "f7", "a6"}


def test_boards_are_read_in_many_writings():
    othello, expected = GAMES["othello"], GAMES["othello"].position(FFO_40 + " X")
    rows = [FFO_40[at : at + 8] for at in range(0, 64, 8)]
    table = "\n".join(["  a b c d e f g h", *(f"{n} {' '.join(row)} {n}" for n, row in enumerate(rows, 1))])
    writings = [
        "\n".join(rows), "/".join(rows), " | ".join(rows), table, FFO_40.lower(), FFO_40.replace("-", "."),
        FFO_40.replace("X", "*"), FFO_40.replace("X", "B").replace("O", "W"), " ".join(table.split()),
    ]  # fmt: skip
    for writing in writings:
        assert othello.position(f"{writing} X") == expected


@pytest.mark.parametrize(
    "name", ["connect4", "gomoku", "gomoku15", "hex", "hex_swap", "tictactoe", "othello6", "breakthrough"]
)
def test_the_boards_of_random_games_are_read(name: str):
    """All that are drawn, to the end; who moves is told where it does not follow."""
    game, rng = GAMES[name], np.random.default_rng(1)
    for _ in range(3):
        position = game.start()
        while True:
            told = (
                "" if name in ("connect4", "gomoku", "gomoku15", "hex", "tictactoe") else f" {'XO'[position.to_play]}"
            )
            found = game.position(drawn(position) + told)
            assert found == position and found.terminal == position.terminal and found.actions == ()
            if position.terminal:
                break
            position = position.play(int(rng.choice(position.legal_actions)))


FEN = {
    "pppppp/pppppp/6/6/PPPPPP/PPPPPP w": "",
    "pppppp/pppppp/6/6/PPPPPP/PPPPPP w - - 0 1": "",
    "pppppp/1ppppp/pP4/6/P1PPPP/PPPPPP b - - 0 2": "b2-b3 a5-a4 b3-b4",
}


@pytest.mark.parametrize(("text", "moves"), FEN.items())
def test_breakthrough_reads_a_fen(text: str, moves: str):
    assert GAMES["breakthrough"].position(text) == GAMES["breakthrough"].position(moves)


def test_the_sides_of_a_game_are_read_by_their_words():
    """White moves first in Breakthrough, black in the other games."""
    breakthrough, start = GAMES["breakthrough"], "pppppp/pppppp/6/6/PPPPPP/PPPPPP"
    for side in ("w", "W", "white", "White", "white to move", "X", "x", "first player"):
        assert breakthrough.position(f"{start} {side}") == breakthrough.start()
    for side in ("b", "black", "BLACK to play", "o", "second"):
        assert breakthrough.position(f"{start} {side}").to_play == 1
    for name, text, side in (
        ("gomoku", "9/9/9/9/4X4/9/9/9/9", "white"),
        ("connect4", "7/7/7/7/3O3/2OXX2", "black to move"),
    ):
        assert GAMES[name].position(f"{text} {side}") == GAMES[name].position(text)
    assert GAMES["hex_swap"].position("XO5/7/7/7/7/7/7 white").to_play == 1
    with pytest.raises(InputError, match="behind it may stand who moves, X or O, black or white$"):
        GAMES["othello"].position(f"{FFO_40} red")


NO_BOARDS = {
    "connect4": {
        "7/7/7/7/7/2XX3": "not 2 X and 0 O",
        "7/7/7/3X3/7/3O3": "in column 4 a stone lies above an empty cell",
        ("." * 41 + " X"): "and not 41",
        "7/7/7/7/7/3X3 X": "O is to move, and the text says X",
        "7/7/7/7/XXXX3/OOOO3": "the game was over before",
        "7/7/7/7/7/8": "each of its rows has 7 cells",
        "7/7/7/7/7": "it has 42 cells, 6 rows of 7 from the top, and not 35",
        "7/7/7/7/7/3Z3": "'Z' is none of them",
    },
    "tictactoe": {
        "XXX/OOO/...": "no order of moves leads to it",
        "XXX/OO./O..": "no order of moves leads to it",
        "O../.../...": "not 0 X and 1 O",
        "XXXOO... ": "it has 9 cells",
    },
    "gomoku": {"XXXXX4/9/9/9/9/9/9/9/OOOOO4": "no order of moves leads to it"},
    "hex": {"XX5/7/7/7/7/7/7": "not 2 X and 0 O", "O6/7/7/7/7/7/7": "not 0 X and 1 O"},
    "hex_swap": {"XO5/7/7/7/7/7/7": "behind the board must stand who moves", "OO5/7/7/7/7/7/7": "not 0 X and 2 O"},
    "othello": {
        FFO_40: "behind the board must stand who moves",
        FFO_40[:-1] + " X": "it has 64 cells, 8 rows of 8 from the top, and not 63",
        FFO_40 + "- X": "and not 65",
        "------------------\nXX\n--": "and not 22",
        "-" * 64 + "X": "the four squares in the middle are never empty",
    },
    "breakthrough": {
        "pppppp/pppppp/6/6/PPPPPP/PPPPPP": "who moves: w or b",
        "P5/6/6/6/6/5p w": "the game was over before",
        "6/6/2p3/6/6/6 b": "the game was over before",
        "pppppp/pppppp/p5/6/6/PPPPPP w": "a player has 12 pawns at most",
    },
}  # fmt: skip
WRONG = [(name, text, said) for name, boards in NO_BOARDS.items() for text, said in boards.items()]


@pytest.mark.parametrize(("name", "text", "said"), WRONG)
def test_boards_that_no_game_leads_to_are_refused_in_a_sentence(name: str, text: str, said: str):
    with pytest.raises(InputError) as caught:
        GAMES[name].position(text)
    sentence = str(caught.value)
    assert sentence.startswith(f"this is no board of {name}: ") and said in sentence and "\n" not in sentence


def test_a_win_ends_the_game_at_its_last_stone():
    """A board with two lines through one stone can be; and who has won is known without a history."""
    crossed = GAMES["tictactoe"].position("XXX/XOO/XOO")
    assert crossed.terminal and crossed.outcome == 1
    lost = GAMES["breakthrough"].position("P5/6/2p3/6/6/6 b")
    assert lost.terminal and lost.outcome == 1


def test_a_position_of_a_board_begins_its_own_history():
    game = GAMES["connect4"]
    board = game.position("7/7/7/7/3O3/2OXX2")
    after = board.play(2).play(2)
    assert (board.ply, after.ply, after.start, after.history[0]) == (0, 2, board, board)
    assert after.follows(board) and not board.follows(after) and not after.follows(game.position("33"))
    assert repr(after) == "<connect4 after 2 plies from a board: player 1 to move>"
    assert not game.position("4453").is_set_up and board == game.position("4453")


def test_a_game_without_boards_reads_moves_alone():
    assert GAMES["nim"].read_board("XO.") is None and Game.read_board(GAMES["nim"], "7/7") is None
    with pytest.raises(IllegalAction, match="is not a legal action here"):
        GAMES["dots_and_boxes"].position("......./.......")


def test_long_texts_are_refused_at_once():
    for text in ("/" * 20_000, "9" * 20_000 + "/", "1." * 10_000, "-" * 20_000, "a1-" * 6_000, "X" * 20_000):
        for game in GAMES.values():
            with pytest.raises(InputError):
                game.position(text)


SPELLED = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1"


@pytest.mark.parametrize(
    ("name", "board", "moves"),
    [
        ("chess", SPELLED, "e7e5 Nf3"),
        ("dobutsu", "gle/1c1/1C1/ELG[] w - - 0 1", "b2b3"),
        ("go9", "9/9/9/9/4X4/9/9/9/9 w", "E4 E3"),
        ("othello", "8/8/8/3OX3/3XO3/8/8/8 X", "d3"),
        ("breakthrough", "pppppp/pppppp/6/6/PPPPPP/PPPPPP w", "a2a3"),
        ("draughts", "B:W31,32:B1,2", "2-7"),
    ],
)
def test_moves_behind_a_board_are_played_after_their_word_and_never_dropped(name: str, board: str, moves: str):
    game = GAMES[name]
    after = game.position(f"{board} moves {moves}")
    assert after.ply == len(moves.split())
    assert game.position(f"{board} moves").ply == 0
    with pytest.raises(InputError, match="moves follow the word moves"):
        game.position(f"{board} {moves}")


@pytest.mark.parametrize("text", ["B:W31,32:B1,2 2", "B:W21-32:B12-1", SPELLED + " garbage", SPELLED + " 1... e5"])
def test_no_word_behind_a_board_becomes_a_part_of_it(text: str):
    with pytest.raises(InputError, match="this is no board"):
        GAMES["chess" if "k" in text else "draughts"].position(text)


def test_a_capture_of_several_jumps_may_leave_out_the_squares_between():
    moves, game = "11-16 22-18 10-14 25-22 7-11 30-25 2-7 24-20 7-10 21-17", GAMES["draughts"]
    assert game.position(f"{moves} 14x30 29-25") == game.position(f"{moves} 14x21 21x30 29-25")
    with pytest.raises(IllegalAction):
        game.position(f"{moves} 14x29")
    # the white man on 26 may jump 22 and 14 or 23 and 15 to 10
    with pytest.raises(IllegalAction, match="26x10"):
        game.position("W:WK26:B22,14,23,15 moves 26x10")


@pytest.mark.parametrize("size", [9, 19])
def test_the_board_that_gnu_go_shows_is_read(size: int):
    """Written by GNU Go 3.8 after B E5, W D4, B D3."""
    letters = "ABCDEFGHJKLMNOPQRST"[:size]
    stars, stones = ((2, 6), 4) if size == 9 else ((3, 9, 15), 9), {(5, 4): "X", (4, 3): "O", (3, 3): "X"}
    rows = []
    for row in range(size, 0, -1):
        marked = [row - 1 in stars[0] and column in stars[0] for column in range(size)]
        cells = " ".join(stones.get((row, c), "+" if marked[c] else ".") for c in range(size))
        rows.append(f"{row:2} {cells} {row}")
    rows[1] += "     WHITE (O) has captured 0 stones"
    rows[2] += "     BLACK (X) has captured 0 stones"
    text = "\n".join(["   " + " ".join(letters), *rows, "   " + " ".join(letters)])
    board = GAMES["go9" if size == 9 else "go19"].position(text)
    assert sorted(piece.player for piece in board.game.pieces(board)) == [0, 0, 1]


@pytest.mark.parametrize("remark", [" ; White moves first", ' ; id "x moves e2e4";', "; hello moves e2e4"])
def test_a_remark_behind_a_board_has_no_moves(remark: str):
    board = GAMES["chess"].position(SPELLED + remark)
    assert board.ply == 0 and board == GAMES["chess"].position(SPELLED)
