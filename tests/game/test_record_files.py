"""Games in the files of other programs: chosen by the suffix, and PGN beside python-chess 1.11.2."""

import io
from functools import cache
from typing import Any

import chess
import chess.pgn
import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.commands import pit
from alphazero.commands.shared import run_command
from alphazero.errors import IllegalAction, InvalidSetting, StorageError
from alphazero.game import Game, Position
from alphazero.game.reading import pgn
from alphazero.game.reading.record_files import FORMATS, check_format, read_games, write_games
from alphazero.game.reading.san import san
from alphazero.game.record import GameRecord

SHORT = GameRecord("tictactoe", 0, ("random", "greedy"), (), ("b2",), "*", (0.0, 0.0), 1)


def test_lines_of_json_are_what_no_suffix_takes_for_another_format(tmp_path):
    game = registry.load("tictactoe").game
    for name in ("games.jsonl", "games", "games.txt"):
        check_format(tmp_path / name, game)
        write_games(tmp_path / name, game, [SHORT])
        assert read_games(tmp_path / name) == [SHORT]


@pytest.mark.parametrize("suffix", [*FORMATS, ".PGN"])
def test_a_game_without_words_in_a_format_is_refused_before_it_is_played(suffix, tmp_path, capsys):
    file = tmp_path / f"games{suffix}"
    with pytest.raises(InvalidSetting, match="2048"):
        check_format(file, registry.load("2048").game)
    command = ["random", "random", "--game", "2048", "--games", "2", "--save-games", str(file)]
    assert run_command(pit.main, command) == 2 and not file.exists()
    assert capsys.readouterr().out == ""


def test_what_pgn_files_of_other_programs_hold_is_read():
    found = pgn.read(
        b"""\xef\xbb\xbf% an escaped line
[Event "one"] ; a comment to the end of its line 1-0
[White "A \\"B\\" C\\\\D"]
[Black "gtp:"engine" -x"]
[Result "1-0"]

1. e4 {a comment (with 2. brackets) and 0-1
over lines} e5 $1 2.Nf3!? (2. f4 (2. d4) exf4 1-0) 2... Nc6 3 Bb5 a6?! 4. O-O exd6 e.p.
5. a8=Q+ 1-0

[White "no result"]
1. d4

[Variant "Gardner"]
[FEN "rnbqk/ppppp/5/PPPPP/RNBQK b - - 0 7"]

7... a3 1/2-1/2
e4 * 1. d4 {an open comment"""
    )
    assert [(game.game, " ".join(game.moves), game.result) for game in found] == [
        ("chess", "e4 e5 Nf3!? Nc6 Bb5 a6?! O-O exd6 a8=Q+", "1-0"),
        ("chess", "d4", "*"),
        ("gardner", "a3", "1/2-1/2"),
        ("chess", "e4", "*"),
        ("chess", "d4", "*"),
    ]
    assert found[0].contestants == ('A "B" C\\D', 'gtp:"engine" -x') and found[1].contestants == ("no result", "?")
    assert found[2].board.endswith(" b - - 0 7") and [game.number for game in found] == [0, 1, 2, 3, 4]
    assert pgn.read(b"") == pgn.read(b" \n") == []


def test_tags_are_those_of_one_game_and_tell_its_result():
    found = pgn.read(
        b'[Event "a"]\n[White "A"]\n\n[Event "b"]\n[Black "B"]\n[Result "1-0"]\n\n1. Pe4 e5\n\n[Event "c"]\n\n1. d4 *'
    )
    assert [(game.contestants, " ".join(game.moves), game.result) for game in found] == [
        (("A", "?"), "", "*"), (("?", "B"), "Pe4 e5", "1-0"), (("?", "?"), "d4", "*"),
    ]  # fmt: skip
    game = registry.load("chess").game
    assert game.start().parse("Pe4") == game.start().parse("e2e4")
    assert game.position("e4 d5 exd5 e5 dxe6 e.p. Bxe6") == game.position("e4 d5 exd5 e5 dxe6 Bxe6")


def test_marks_and_comments_may_touch_what_they_stand_behind():
    (record,) = pgn.read(b"1. e4$1 e5{good} 2. Nf3$14$1 1-0{White won}")
    assert (record.moves, record.result) == (("e4", "e5", "Nf3"), "1-0")


def test_pgn_may_be_latin_1_as_its_standard_says():
    text = '[White "Müller"]\n[Black "Schön"]\n\n1. e4 *\n'
    assert pgn.read(text.encode("latin-1")) == pgn.read(text.encode()) != []


def test_a_move_that_is_none_is_not_left_out():
    """As `--` and `Z0` stand where nobody has moved: without it the other moves would be those of the other side."""
    (found,) = pgn.read(b"1. e4 -- 2. d4 Z0 *")
    assert found.moves == ("e4", "--", "d4", "Z0")


@pytest.mark.parametrize("variant", ["Standard", "Chess", "From Position", "Classical", "Normal", ""])
def test_the_words_of_lichess_and_python_chess_for_chess_mean_chess(variant):
    (found,) = pgn.read(f'[Variant "{variant}"]\n\n1. e4 e5 *'.encode())
    assert found.game == "chess"


@pytest.mark.parametrize("text", ['[White "nobody"]\n(e4)', "[]", "{e4} $1 ; e4", "\0", "12.", "(" * 100_000])
def test_a_file_that_holds_something_and_no_game_is_refused(text):
    with pytest.raises(StorageError):
        pgn.read(text.encode())


def test_what_no_record_can_hold_is_told_with_its_file_and_game(tmp_path):
    file = tmp_path / "games.pgn"
    file.write_text('1. e4 *\n\n[White "' + "x" * 5000 + '"]\n\n1. d4 *\n')
    with pytest.raises(StorageError, match=r"games\.pgn: game 1.*contestants"):
        read_games(file)


# --- chess ---


@cache
def game_of(name: str) -> Game:
    return registry.load(name).game


def random_game(game: Game, seed: int, most_plies: int = 160) -> list[str]:
    """The moves of a game in the game's own notation."""
    rng, position, words = np.random.default_rng(seed), game.start(), list[str]()
    while not position.terminal and len(words) < most_plies:
        words.append(position.format(int(rng.choice(position.legal_actions))))
        position = position.play(position.parse(words[-1]))
    return words


def record_of_chess(words: list[str], number: int = 0, **fields: Any) -> GameRecord:
    fields = {"game": "chess", "contestants": ("a", "b"), "result": "*", **fields}
    return GameRecord(number=number, opening=(), moves=tuple(words), seconds=(0.0, 0.0), seed=0, **fields)


def test_python_chess_reads_what_we_write_and_writes_the_same_words():
    game = game_of("chess")
    records = [record_of_chess(random_game(game, seed), seed) for seed in range(12)]
    text = io.StringIO(pgn.write(game, records).decode())
    for record, back in zip(records, pgn.read(text.getvalue().encode()), strict=True):
        read = chess.pgn.read_game(text)
        assert read.errors == [] and [move.uci() for move in read.mainline_moves()] == list(record.moves)
        assert read.headers["Round"] == str(record.number + 1) and read.headers["Result"] == "*"
        assert [position.format(action) for position, action in played(back, game)] == list(record.moves)
        board = chess.Board()
        for word, uci in zip(back.moves, record.moves, strict=True):
            assert word == board.san(chess.Move.from_uci(uci))
            board.push_uci(uci)
    assert chess.pgn.read_game(text) is None


def played(record: GameRecord, game: Game) -> list[tuple[Position, int]]:
    *positions, last = record.positions(game)
    return list(zip(positions, last.actions, strict=True))


def test_we_read_what_python_chess_writes():
    game = game_of("chess")
    for seed in range(20, 26):
        words, theirs = random_game(game, seed), chess.pgn.Game()
        node = theirs
        for number, word in enumerate(words):
            node = node.add_variation(chess.Move.from_uci(word))
            if number % 7 == 3:
                node.comment, node.nags = "a comment (with 1. e4 1-0)", {1, 14}
                node.parent.add_variation(next(iter(node.parent.board().legal_moves)))
        theirs.headers.update({"White": 'x "y"', "Result": "1/2-1/2"})
        (back,) = pgn.read(str(theirs).encode())
        assert back.contestants == ('x "y"', "?") and back.result == "1/2-1/2"
        assert [position.format(action) for position, action in played(back, game)] == words


WRITTEN = [  # a board, a move, and its word by the PGN standard
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "g1f3", "Nf3"),
    ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "e1g1", "O-O"),
    ("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1", "e8c8", "O-O-O"),
    ("5k2/8/8/8/8/8/8/4K2R w K - 0 1", "e1g1", "O-O+"),
    ("4k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a7a8q", "a8=Q+"),
    ("1n2k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a7b8n", "axb8=N"),
    ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "e5d6", "exd6"),
    ("6k1/5ppp/8/8/8/8/8/R3R1K1 w - - 0 1", "a1d1", "Rad1"),
    ("4k3/8/8/R7/8/8/8/R3K3 w - - 0 1", "a1a3", "R1a3"),
    ("4k3/8/8/8/8/Q1Q5/8/Q3K3 w - - 0 1", "a3b2", "Qa3b2"),
    ("4k3/8/8/8/8/Q1Q5/8/Q3K3 w - - 0 1", "a1b2", "Q1b2"),
    ("4k3/8/8/8/1b6/8/3N4/4K1N1 w - - 0 1", "g1f3", "Nf3"),  # the other knight is pinned
    ("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1", "a1a8", "Ra8#"),
    ("rnbqkbnr/pppp1ppp/8/4p3/6P1/5P2/PPPPP2P/RNBQKBNR b KQkq - 0 2", "d8h4", "Qh4#"),
]


@pytest.mark.parametrize(("board", "word", "text"), WRITTEN)
def test_a_move_has_the_word_of_the_standard_and_of_people(board, word, text):
    assert chess.Board(board).san(chess.Move.from_uci(word)) == text
    position = game_of("chess").position(board)
    assert san(position, position.parse(word)) == text
    for spelling in (text, text.rstrip("+#"), f"{text}!?", text.replace("O", "0"), text.replace("=", "")):
        assert position.format(position.parse(spelling)) == word
    if "x" in text:
        for spelling in (text.replace("x", ""), f"{text}e.p.", text.replace("x", "-")):
            assert position.format(position.parse(spelling)) == word


@pytest.mark.parametrize("text", ["Rd1", "Nf3", "O-O-O", "e9", "Kxe2", "", "e4e5e6", "bxc3", "--"])
def test_a_word_of_no_move_or_of_two_is_refused(text):
    position = game_of("chess").position("6k1/5ppp/8/8/8/8/8/R3R1K1 w - - 0 1")
    with pytest.raises(IllegalAction):
        position.parse(text)


def test_a_board_a_variant_and_a_forfeit_are_kept(tmp_path):
    board, file = "2k2/1p3/5/P4/2K2 b - - 3 9", tmp_path / "games.PGN"
    record = record_of_chess(["b4b3"], game="gardner", board=board, forfeit='a: said "no"\n', result="1-0")
    write_games(file, game_of("gardner"), [record, record_of_chess([], game="gardner")])
    first, second = read_games(file)
    assert "9... b3 1-0\n" in file.read_text() and '[Termination "a: said \\"no\\""]' in file.read_text()
    assert first.board == board and first.game == second.game == "gardner" and first.moves == ("b3",)
    assert second.positions(game_of("gardner")) == [game_of("gardner").start()]
    assert not second.positions(game_of("gardner"))[0].is_set_up


def test_a_match_is_saved_and_stepped_through(tmp_path, capsys):
    file = tmp_path / "games.pgn"
    assert run_command(pit.main, f"random greedy --game gardner --games 2 --save-games {file}".split()) == 0
    capsys.readouterr()
    assert run_command(pit.replay, [str(file)]) == 0 and "2 games" in capsys.readouterr().out
    assert run_command(pit.replay, [str(file), "1"]) == 0
    shown = capsys.readouterr().out
    assert "greedy plays " in shown and f"greedy - random: {read_games(file)[1].result}" in shown
