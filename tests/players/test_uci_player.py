"""Engines that speak the Universal Chess Interface as players: what a real one said, and what bad ones do to us."""

import shlex
import shutil
import sys
import time
from pathlib import Path

import pytest

from alphazero.catalogue import registry
from alphazero.commands import pit
from alphazero.commands.shared import run_command
from alphazero.errors import InvalidSetting, UnknownName
from alphazero.game.kernels import Kernels
from alphazero.matches.arena import Arena
from alphazero.players.baselines import RandomPlayer
from alphazero.players.contestants import ContestantText, make_player
from alphazero.players.player import Forfeit
from alphazero.players.uci_player import UciPlayer

FAKE, DATA = Path(__file__).parent / "fake_uci_engine.py", Path(__file__).parent / "data"
GARDNER = registry.load("gardner")
GAME = GARDNER.game
FAIRY = shutil.which("fairy-stockfish", path="/usr/games") or shutil.which("fairy-stockfish")


def fake(*words: object) -> str:
    return shlex.join([sys.executable, str(FAKE), *map(str, words)])


def engine(mode: str, timeout: float = 30.0, **options: str) -> UciPlayer:
    """Has `timeout` once it has started, which takes a busy machine longer."""
    player = UciPlayer(GAME, fake(mode), {"nodes": 10}, options)
    player._engine._timeout = timeout
    return player


def said(log: list[str]) -> list[str]:
    return [line.removeprefix("> ") for line in log if line.startswith("> ")]


def test_a_game_with_a_real_engine_is_played_again_word_for_word(log):
    """Fairy-Stockfish 11.1 as Debian has it, at UCI_Elo 1350; the fake ends at a word that it was not told."""
    file = DATA / "uci_fairy_stockfish_gardner.txt"
    words = file.read_text().partition("\n")[0].removeprefix("# ").split()
    player = UciPlayer(GAME, fake("replay", file), {"nodes": 500}, {"UCI_Elo": "1350"})
    position, chosen = GAME.start(), 0
    for word in words:
        action = position.parse(word)
        if position.ply >= 2 and position.to_play == 0:  # the opening was given, and the engine had White
            assert player.choose(position, 0) == action
            chosen += 1
        position = position.play(action)
    assert position.terminal and chosen > 5
    assert said(log)[:5] == [
        "uci", "setoption name UCI_LimitStrength value true", "setoption name UCI_Elo value 1350",
        "setoption name UCI_Variant value gardner", "isready",
    ]  # fmt: skip
    assert f"# {' '.join(words)}\n" + "\n".join(log) + "\n" == file.read_text()


def test_an_engine_is_told_the_whole_game_or_its_board_before_each_move(log):
    player = engine("well")
    board = GAME.position("2k2/1p3/5/P4/2K2 w - - 3 9")
    for position in (GAME.start(), GAME.position("b2b3 a4b3"), GAME.start(), board, board.play(board.parse("c1d1"))):
        if position.to_play == 0:
            assert position.format(player.choose(position, 0)) == "a2a3"
    later = board.play(board.parse("c1d1")).play(GAME.position("2k2/1p3/5/P4/3K1 b - - 4 9").parse("c5d5"))
    player.choose(later, 0)
    assert [line for line in said(log) if line.startswith(("position", "ucinewgame", "go"))] == [
        "ucinewgame",
        "position startpos", "go nodes 10",
        "ucinewgame", "position startpos moves b2b3 a4b3", "go nodes 10",
        "ucinewgame", "position startpos", "go nodes 10",
        "ucinewgame", "position fen 2k2/1p3/5/P4/2K2 w - - 3 9", "go nodes 10",
        "ucinewgame", "position fen 2k2/1p3/5/P4/2K2 w - - 3 9 moves c1d1 c5d5", "go nodes 10",
    ]  # fmt: skip


FAULTS = {
    "crash": "ended (exit code 3), saying 'out of ideas' without an answer to 'go nodes 10'",
    "garbage": "played 'banana', which is not legal",
    "illegal": "played 'a1a5', which is not legal",
    "none": "played '(none)', which is not legal",
    "empty": "played '', which is not legal",
    "endless": "gave an answer without end to 'go nodes 10'",
    "flood": "gave an answer without end to 'go nodes 10'",
}


@pytest.mark.parametrize("mode", FAULTS)
def test_what_an_engine_does_wrong_loses_its_game_and_the_next_one_begins(mode):
    result = Arena(Kernels(GAME), engine(mode), RandomPlayer(Kernels(GAME), 1), 2, seed=1).play()
    assert result.outcomes == (-1, -1) and all(FAULTS[mode] in reason for reason in result.forfeits)


@pytest.mark.parametrize("mode", ["hang", "drip"])
def test_the_limit_is_for_the_whole_answer(mode):
    player, begin = engine(mode, timeout=0.5), time.monotonic()
    with pytest.raises(Forfeit, match="'go nodes 10' for 0.5 s"):
        player.choose(GAME.start(), 0)
    assert time.monotonic() - begin < 20


def test_an_engine_that_leaves_after_a_game_is_started_again():
    player = engine("one-game")
    for game in range(3):
        assert GAME.start().format(player.choose(GAME.start(), game)) == "a2a3"
        player._known = None


@pytest.mark.parametrize(
    ("options", "commands"),
    [
        ({"skill_level": "-3"}, ["Skill Level value -3", "UCI_Variant value gardner"]),
        ({"uci_ELO": "1400", "UCI_LimitStrength": "false"},
         ["UCI_LimitStrength value false", "UCI_Elo value 1400", "UCI_Variant value gardner"]),
        ({"UCI_Variant": "my game"}, ["UCI_Variant value my game"]),
        ({"UCI_Variant": "mine", "VariantPath": "/a b/x"}, ["VariantPath value /a b/x", "UCI_Variant value mine"]),
    ],
)  # fmt: skip
def test_options_are_said_by_the_engines_own_names_and_the_variant_last(options, commands, log):
    engine("well", **options)
    assert [line.removeprefix("setoption name ") for line in said(log) if line.startswith("setoption")] == commands


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"Skil_Level": "3"}, UnknownName, "did you mean 'Skill_Level'"),
        ({"UCI_Elo": "1200"}, InvalidSetting, "UCI_Elo.*min 1350.*'1200'"),
        ({"UCI_Elo": "much"}, InvalidSetting, "'much'"),
        ({"UCI_LimitStrength": "yes"}, InvalidSetting, "'yes'"),
        ({"UCI_Variant": "shogi"}, InvalidSetting, "var gardner.*'shogi'"),
    ],
)
def test_an_option_that_the_engine_would_pass_over_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        engine("well", **options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('uci:""', "uci takes the command line of an engine"),
        ("uci:no-such-engine", "cannot be started: No such file or directory"),
        ("uci:x@nodes=0", "nodes of uci must"),
        ("uci:x@depth=deep", "setting depth takes a whole number"),
        (f"uci:{fake('poor')}", "it has no option UCI_Variant"),
        (f"uci:{fake('mute')}@timeout=0.3", "has not answered 'uci' for 0.4 s"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(text, message, capsys):
    assert run_command(pit.main, ["random", text, "--game", "gardner"]) == 2
    shown, errors = capsys.readouterr()
    assert shown == "" and errors.count("\n") == 1 and errors.startswith("error: ") and message in errors


def test_a_game_that_is_no_chess_is_refused_before_the_engine_starts(capsys):
    assert run_command(pit.main, ["random", "uci:no-such-engine", "--game", "othello"]) == 2
    assert "no words for othello" in capsys.readouterr().err


def test_limits_and_options_stand_in_the_text_of_a_contestant():
    text = f'uci:"{fake("well")}"@movetime=250,depth=3,timeout=7.5,Skill_Level=2'
    player = make_player(text, GARDNER, seed=1)
    assert player._go == "go movetime 250 depth 3" and player._options["skill_level"] == "2"
    assert player._timeout == 7.75
    assert make_player(f"uci:{fake('well')}", GARDNER, seed=1)._go == "go movetime 100"
    named = ContestantText.parse(text)
    assert named.runs_code and named.plays_alone


def test_our_own_engine_is_one():
    """Both ends of the protocol are ours here."""
    player = make_player(f"uci:{sys.executable} -m alphazero uci greedy --game gardner", GARDNER, seed=1, threads=1)
    result = Arena(Kernels(GAME), player, RandomPlayer(Kernels(GAME), 1), 2, seed=1).play()
    assert result.forfeits == ("", "") and result.num_games == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gardner", "chess"])
@pytest.mark.skipif(FAIRY is None, reason="fairy-stockfish is not installed")
def test_a_real_engine_plays_ten_games(name, log):
    loaded = registry.load(name)
    player = UciPlayer(loaded.game, str(FAIRY), {"nodes": 200}, {"Skill_Level": "0"})
    result = Arena(Kernels(loaded.game), player, RandomPlayer(Kernels(loaded.game), 1), 10, seed=1).play()
    assert result.forfeits == ("",) * 10 and result.score > 0.8
    assert not [line for line in log if "No such" in line or "Unknown" in line]
