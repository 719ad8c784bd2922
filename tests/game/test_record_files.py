"""Games in the files of other programs: chosen by the suffix, and PGN beside python-chess 1.11.2."""

import pytest

from alphazero.catalogue import registry
from alphazero.commands import pit
from alphazero.commands.shared import run_command
from alphazero.errors import InvalidSetting, StorageError
from alphazero.game.reading import pgn
from alphazero.game.reading.record_files import FORMATS, check_format, read_games, write_games
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
    assert pgn.read(b"") == pgn.read(b'[White "nobody"]\n(e4)') == []


def test_what_no_record_can_hold_is_told_with_its_file_and_game(tmp_path):
    file = tmp_path / "games.pgn"
    file.write_text('1. e4 *\n\n[White "' + "x" * 5000 + '"]\n\n1. d4 *\n')
    with pytest.raises(StorageError, match=r"games\.pgn: game 1.*contestants"):
        read_games(file)
