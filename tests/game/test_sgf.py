"""SGF, GGF and WTHOR: what we write comes back, and SGF beside sgfmill 1.1.1."""

import re
import struct

import numpy as np
import pytest
from sgfmill import sgf as sgfmill
from sgfmill.common import format_vertex

from alphazero.catalogue import registry
from alphazero.errors import InputError, InvalidSetting
from alphazero.game import Game, Position
from alphazero.game.reading import sgf, wthor
from alphazero.game.record import RESULTS, GameRecord, words_of

# of GGS, 2003: https://skatgame.net/mburo/ggs/game-archive/Othello/
SAIO = (
    "(;GM[Othello]PC[GGS/os]DT[2003.12.15_13:24:03.MST]PB[Saio1200]PW[Saio3000]RB[2197.01]RW[2199.72]TI[05:00//02:00]"
    "TY[8]RE[+0.000]BO[8 -------- -------- -------- ---O*--- ---*O--- -------- -------- -------- *]"
    "B[d3//0.01]W[c5//0.01]B[e6//0.01]W[d2//0.01]B[c6//0.01]W[d6//0.01]B[b5//0.01]W[f5//0.01]B[e7//0.01]W[f6//0.01]"
    "B[f4//0.01]W[f3//0.01]B[g4//0.01]W[d7//0.01]B[g3//0.01]W[g5//0.01]B[h6//0.01]W[h5//0.01]B[h4//0.01]W[e8//0.01]"
    "B[c7//0.01]W[h3//0.01]B[c3//0.01]W[h7//0.01]B[e3//0.01]W[b6//0.01]B[g6//5.42]W[f7//0.01]B[d8//0.01]W[c2//0.01]"
    "B[d1//0.01]W[c4//0.01]B[b4//0.01]W[a5//0.01]B[f8//0.01]W[f2//0.01]B[e2//0.01]W[a4//17.38]B[a3//19.10]W[b3//0.01]"
    "B[f1//4.90]W[g7//0.01]B[b7//0.01]W[c8//0.01]B[a6//0.01]W[a7//0.01]B[c1//0.01]W[b2//0.01]B[a8//0.01]W[b8//0.01]"
    "B[a2//0.01]W[e1//0.01]B[h8//0.01]W[g8//0.01]B[h2//0.01]W[g1//0.01]B[h1//3.80]W[g2//0.01]B[pass]W[a1//0.01]"
    "B[b1//0.01];)"
)


def random_record(game: Game, seed: int, board: str = "") -> GameRecord:
    """A game at random, to its end or for 300 plies."""
    rng, start = np.random.default_rng(seed), game.position(board)
    end = start
    while not end.terminal and end.ply < 300:
        end = end.play(int(rng.choice(end.legal_actions)))
    result = RESULTS[end.outcome] if end.terminal else "*"
    words = tuple(words_of(start, end.actions))
    return GameRecord(game.name, seed, ("a [b] \\ c:d", "e"), (), words, result, (0.0, 0.0), 0, board=board)


def read_one(text: str) -> GameRecord:
    (record,) = sgf.read(text.encode())
    return record


def end_of(record: GameRecord) -> Position:
    return record.positions(registry.load(record.game).game)[-1]


@pytest.mark.parametrize(
    ("name", "write"),
    [(name, sgf.write_sgf) for name in ("othello", "othello6", "go5", "go9", "gomoku", "hex", "hex_swap")]
    + [(name, sgf.write_ggf) for name in ("othello", "othello6")],
)
def test_games_come_back_from_a_file(name, write):
    game = registry.load(name).game
    records = [random_record(game, number) for number in range(4)]
    found = sgf.read(write(game, records))
    assert [record.positions(game)[-1] for record in found] == [record.positions(game)[-1] for record in records]
    assert [(one.contestants, one.number, one.moves, one.result, one.board) for one in found] == [
        (one.contestants, one.number, one.moves, one.result, "") for one in records
    ]
    assert {one.game for one in found} <= {name, name.removesuffix("_swap")}


@pytest.mark.parametrize("write", [sgf.write_sgf, sgf.write_ggf])
def test_a_game_from_a_board_comes_back(write):
    game = registry.load("othello").game
    board = "-" * 19 + "OX------" * 3 + "OX" + "-" * 19 + " O"
    record = random_record(game, 0, board)
    (found,) = sgf.read(write(game, [record]))
    assert found.positions(game) == record.positions(game) and found.positions(game)[0].to_play == 1
    assert found.result == record.result != "*"


def test_a_swap_is_told_as_other_programs_for_hex_do():
    game = registry.load("hex_swap").game
    record = GameRecord("hex_swap", 0, ("a", "b"), (), ("c2", "swap", "d1"), "*", (0.0, 0.0), 0)
    text = sgf.write_sgf(game, [record]).decode()
    assert ";B[c2];W[swap-pieces];B[d1]" in text and "GM[11]SZ[7]" in text
    assert (found := read_one(text)).game == "hex_swap" and found.moves == record.moves


def test_who_gave_up_is_told():
    game = registry.load("othello").game
    for forfeit, result, ours, ggf in (
        ("b resigns", "1-0", "RE[B+R]", "RE[+64:r]"),
        ("a is late", "0-1", "RE[W+F]", "RE[-64:r]"),
        ("", "*", "RE[?]", "RE[?]"),
    ):
        record = GameRecord("othello", 0, ("a", "b"), (), ("d3",), result, (0.0, 0.0), 0, forfeit)
        for text, words in ((sgf.write_sgf(game, [record]), ours), (sgf.write_ggf(game, [record]), ggf)):
            assert words in text.decode() and sgf.read(text)[0].result == result


def test_a_game_of_go_tells_its_points_and_its_handicap():
    game = registry.load("go5").game
    record = GameRecord(
        "go5", 0, ("a", "b"), (), ("pass", "C3", "pass", "pass"), "1-0", (0.0, 0.0), 0, board="X" + "." * 23 + "XO"
    )
    text = sgf.write_sgf(game, [record]).decode()
    assert "RE[B+25]" in text and "HA[2]AB[aa][ee]PL[W]" in text and ";W[];B[cc];W[];B[])" in text
    theirs = sgfmill.Sgf_game.from_string(text)
    assert theirs.get_handicap() == 2 and theirs.get_komi() == 0 and theirs.get_winner() == "b"
    assert read_one(text).positions(game) == record.positions(game)


def test_sgfmill_reads_what_we_write():
    game = registry.load("gomoku").game
    record = random_record(game, 1)
    theirs = sgfmill.Sgf_game.from_bytes(sgf.write_sgf(game, [record]))
    moves = [node.get_move() for node in theirs.get_main_sequence()[1:]]
    assert [colour for colour, _ in moves] == ["bw"[ply % 2] for ply in range(len(moves))]
    assert [game.size * (game.size - 1 - row) + column for _, (row, column) in moves] == [
        action for action in record.positions(game)[-1].actions
    ]
    assert (
        theirs.get_player_name("b") == "a [b] \\ c:d" and theirs.get_winner() == {"1-0": "b", "0-1": "w"}[record.result]
    )


@pytest.mark.parametrize("size", [5, 9, 19])
def test_what_sgfmill_writes_is_read(size):
    """Go, with passes, variations, comments, and handicap stones."""
    rng = np.random.default_rng(size)
    theirs, words = sgfmill.Sgf_game(size, encoding="UTF-8"), []
    root = theirs.get_root()
    root.set("KM", 0.5)
    root.set("HA", 2)
    root.set("C", "brackets ] \\] (;B[aa] :")
    root.set("PB", "J. \\ Ω ]")
    root.set("RE", "W+3.5")
    points = [divmod(int(point), size) for point in rng.choice(size * size, 2 + size, replace=False)]
    root.set_setup_stones(points[:2], [])
    for number, point in enumerate([None, *points[2:]]):
        node = theirs.extend_main_sequence()
        node.set_move("wb"[number % 2], point)
        words.append("pass" if point is None else format_vertex(point))
        if number:
            node.parent.new_child().set_move("wb"[number % 2], points[0])
    (found,) = sgf.read(theirs.serialise())
    assert found.game == f"go{size}" and found.moves == tuple(words) and found.result == "0-1"
    assert found.contestants == ("J. \\ Ω ]", "?")
    signs = [found.board[size * (size - 1 - row) + column] for row, column in points]
    assert signs == ["X", "X"] + ["-"] * size and found.board.count("X") == 2 and found.board[-1] == "O"


def test_games_of_ggs_are_read():
    record = read_one(f"1 {SAIO}\n")
    assert record.contestants == ("Saio1200", "Saio3000") and record.result == "1/2-1/2" and record.board == ""
    assert len(record.moves) == 61 and record.moves[58] == "pass"
    assert end_of(record).terminal and end_of(record).outcome == 0
    first, second = sgf.read(
        b"2 (;GM[Othello]PB[edax]PW[Roxane]TY[s8r18]RE[-10.000:r]BO[8 --**O--- --**---- --*OO--- ****OO-- "
        b"---O*--- --O-*--- -------- -------- *]B[f1/-6.00/26.00]W[C5/8.00/25.36]B[d6/-8.00/9.00];)"
        b"(;GM[Othello]TY[0]RE[?];)"
    )
    assert first.moves == ("f1", "c5", "d6") and first.result == "0-1" and second.result == "*"
    assert str(first.positions(registry.load("othello").game)[0]).startswith("  a b c d e f g h\n1 . . X X O . . .\n")
    assert second.game == "othello" and second.moves == ()


def test_wthor_is_read_and_its_passes_put_in():
    moves = [word for word in read_one(SAIO).moves if word != "pass"]
    squares = bytes(10 * int(word[1]) + "-abcdefgh".index(word[0]) for word in moves).ljust(60, b"\0")
    game = struct.pack("<HHHBB", 3, 17, 4, 32, 40) + squares
    header = struct.pack("<4BIHHBBBB", 20, 3, 12, 15, 2, 0, 2003, 8, 0, 24, 0)
    found = wthor.read(header + 2 * game)
    assert (
        [record.number for record in found] == [0, 1]
        and "17" in found[0].contestants[0]
        and found[0].result == "1/2-1/2"
    )
    assert end_of(found[1]) == end_of(read_one(SAIO)) and len(found[1].moves) == 60
    assert wthor.read(header[:4] + bytes(4) + header[8:]) == []
    wrong = (header, header[:15], header + game, header[:12] + b"\x0a" + header[13:] + 2 * game)
    for data in (*wrong, header + 2 * game.replace(b"\x22", b"\x5a")):
        with pytest.raises(InputError):
            wthor.read(data)
    with pytest.raises(InvalidSetting, match="othello"):
        wthor.write(registry.load("othello").game, [])


@pytest.mark.parametrize(
    ("text", "game", "board", "moves", "result"),
    [
        # as Cassio and other programs for Othello do
        ("(;GM[2]FF[4]SZ[8]AB[e4][d5]AW[d4][e5]PL[B];B[d3];W[c3])", "othello", "", "d3 c3", "*"),
        ("(;GM[2];B[dc];W[cc]RE[Draw])", "othello", "", "d3 c3", "1/2-1/2"),
        # Little Golem's colours, PlayHex's swap
        ("(;FF[4]GM[11]SZ[7]RE[B];W[am];B[ii])", None, "", "", ""),
        ("(;FF[4]GM[11]SZ[7]RE[B];W[ag];B[ee];W[resign])", "hex", "", "a7 e5", "1-0"),
        ("(;FF[4]GM[11]SZ[7]RE[B+Resign];B[A2];W[swap-pieces];B[f6])", "hex_swap", "", "a2 swap f6", "1-0"),
        ("(;GM[4]SZ[15];B[hh];W[]RE[0])", "gomoku15", "", "h8 pass", "1/2-1/2"),
        # FF[3] and older
        ("(;GaMe[1]SiZe[9];Black[ee];White[tt];B[])", "go9", "", "E5 pass pass", "*"),
        ("(;SZ[5];B[aa](;W[bb];B[cc](;W[dd])(;W[ee]))(;W[ab];B[ac]))", "go5", "", "A5 B4 C3 D2", "*"),
        ("junk (\n;SZ[7:7]RE[W+Time]\n;B[dd]C[a \\] ) b];B[ee])junk)", "go7", "", "D4 pass E3", "0-1"),
        ("(;SZ[5]AB[aa:bb]AW[ee]AE[ab];W[cc])", "go5", "XX---" + "-X---" + "-" * 14 + "OO", "C3", "*"),
        ("(;SZ[5]HA[2]AB[aa]AB[bb])", "go5", "X-----X" + "-" * 18 + "O", "", "*"),
        ("(;SZ[5]HA[2]AB[aa][bb]PL[B])", "go5", "X-----X" + "-" * 18 + "X", "", "*"),
        ("(;SZ[5];B[aa];AB[bb])", None, "", "", ""),
        ("(;SZ[5:7];B[aa])", None, "", "", ""),
        ("(;SZ[99];B[aa])", None, "", "", ""),
        ("(;SZ[5];B[fa])", None, "", "", ""),
        ("(;SZ[5];B[a])", None, "", "", ""),
        ("(;SZ[5];B[a3])", None, "", "", ""),
        ("(;GM[3];B[aa])", None, "", "", ""),
        ("(;GM[chess];B[aa])", None, "", "", ""),
        ("(;SZ[5];B[aa]", None, "", "", ""),
        ("(;SZ[5];B[aa)", None, "", "", ""),
        ("no game", None, "", "", ""),
        ("(;AB" + "[aa:ss]" * 5000 + ")", None, "", "", ""),
        ("(;PB[" + "x" * 5000 + "])", None, "", "", ""),
    ],
)  # fmt: skip
def test_what_other_programs_write(text, game, board, moves, result):
    if game is None:
        with pytest.raises(InputError):
            sgf.read(text.encode())
        return
    record = read_one(text)
    assert (record.game, record.board, record.moves, record.result) == (game, board, tuple(moves.split()), result)


def test_what_follows_two_passes_in_go():
    """IGS wants three passes; and some games go on after a look at the dead stones."""
    for text, moves, numbers in (
        ("B[ee];W[tt];B[tt];W[tt]", "E5 pass pass", [0, 1, 2, 3, 3]),
        ("B[ee];W[];B[];W[cc];B[gg]", "E5 C7 G3", [0, 1, 1, 1, 2, 3]),
        ("B[ee];W[];B[];B[cc]", "E5 pass C7", [0, 1, 2, 2, 3]),
        ("B[];B[cc];W[dd]", "C7 D6", [0, 0, 1, 2]),
        ("B[cc];W[];W[];W[]", "C7 pass pass", [0, 1, 2, 3, 3]),
        ("B[ee];W[];B[];W[];B[cc];W[];B[]", "E5 pass C7 pass pass", [0, 1, 2, 2, 2, 3, 4, 5]),
    ):
        ((record, found),) = sgf.read_numbered(f"(;GM[1]SZ[9];{text})".encode())
        assert (" ".join(record.moves), found) == (moves, numbers), text
        assert record.positions(registry.load("go9").game)[-1].terminal == moves.endswith("pass pass")


def test_one_game_that_no_record_can_hold_does_not_hide_the_others(caplog):
    good, bad = "(;GM[1]SZ[9];B[ee])", "(;GM[1]SZ[9];B[ee];AB[cc])"
    found = sgf.read((good + bad + good).encode())
    assert [record.number for record in found] == [0, 2]
    assert (
        "game 1 of the file, from 0: stones are set up after a move, which no record can hold; it is left"
        in caplog.text
    )
    with pytest.raises(InputError, match="game 0 of the file, from 0: stones are set up"):
        sgf.read((bad + bad).encode())


def test_resumed_games_are_read_in_the_time_of_others():
    """Going through all moves at each pair of passes would take minutes here."""
    ((record, numbers),) = sgf.read_numbered(b"(;GM[1]SZ[9]" + b";B[aa];W[];B[];W[]" * 20_000 + b")")
    assert len(numbers) == 80_001 and len(record.moves) < 50_000


@pytest.mark.parametrize(
    ("encoding", "name"), [("gb2312", "柯洁"), ("cp936", "柯洁"), ("Shift_JIS", "井山裕太"), ("EUC-KR", "이세돌")]
)
def test_a_file_tells_its_encoding(encoding: str, name: str):
    assert sgf.read(f"(;SZ[5]CA[{encoding}]PB[{name}])".encode(encoding))[0].contestants[0] == name
    wrong = f"(;SZ[5]CA[unicode_escape]PB[{name}])".encode(encoding)
    assert sgf.read(wrong)[0].contestants[0] == name.encode(encoding).decode("latin-1")


def test_text_that_is_not_utf_8_is_latin_1():
    assert sgf.read("(;SZ[5]PB[Müller])".encode("latin-1"))[0].contestants[0] == "Müller"
    assert sgf.read(b"") == sgf.read(b"\n") == []


@pytest.mark.parametrize(
    "text", ["(" * 10**6, "[" * 10**6, "(;" * 10**6, "(;B[" + "\\" * 10**6, "(;" + "a" * 10**6, ")" * 10**6]
)
def test_no_text_is_read_more_often_than_once(text):
    """Else this would take hours."""
    with pytest.raises(InputError):
        sgf.read(text.encode())


def test_othellos_boards_of_ggf_and_obf_are_read():
    game = registry.load("othello").game
    told = re.search(r"BO\[(.*?)\]", SAIO)
    assert told is not None and game.position(told[1]) == game.start()
    assert game.position("-" * 27 + "OX" + "-" * 6 + "XO" + "-" * 27 + " X; d3:+0;") == game.start()
    assert game.position("-" * 27 + "O*" + "-" * 6 + "*O" + "-" * 27 + "\nblack to move") == game.start()
