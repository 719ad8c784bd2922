"""Engines that speak the Go Text Protocol as players: what real ones said, and what bad ones do to us."""

import itertools
import os
import shlex
import shutil
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.commands import pit
from alphazero.commands.shared import run_command
from alphazero.errors import InvalidSetting
from alphazero.game.kernels import Kernels
from alphazero.game.reading.gtp_words import default_words
from alphazero.game.record import read_records, words_of
from alphazero.matches.arena import Arena
from alphazero.players import engine_process
from alphazero.players.baselines import RandomPlayer
from alphazero.players.contestants import make_player, open_opponents
from alphazero.players.engine_process import EngineFault
from alphazero.players.function_player import FunctionPlayer
from alphazero.players.gtp_player import GtpPlayer, ask
from alphazero.players.player import Forfeit

FAKE, DATA = Path(__file__).parent / "fake_gtp_engine.py", Path(__file__).parent / "data"
TIC_TAC_TOE = registry.load("tictactoe")
KERNELS = Kernels(TIC_TAC_TOE.game)
GO = "openspiel:go(board_size=9,komi=7.5)"


def fake(*words: object) -> str:
    return shlex.join([sys.executable, str(FAKE), *map(str, words)])


def engine(*words: object, timeout: float = 30.0) -> GtpPlayer:
    """Has `timeout` once it has started, which takes a busy machine longer."""
    player = GtpPlayer(TIC_TAC_TOE.game, default_words(TIC_TAC_TOE.game), fake(*words))
    player._engine._timeout = timeout
    return player


@pytest.mark.parametrize(
    ("name", "file", "boards"),
    [
        ("othello", "gtp_rhino_othello.txt", ["set_game Othello", "boardsize 8", "clear_board"]),
        (GO, "gtp_gnugo_go9.txt", ["boardsize 9", "clear_board", "komi 7.5"]),
    ],
)
def test_a_game_with_a_real_engine_is_played_again_word_for_word(name, file, boards, log):
    """gtp-rhino 0.16.1 and GNU Go 3.8, as Debian has them; the fake refuses any word that they were not told."""
    words = (DATA / file).read_text().partition("\n")[0].removeprefix("# ").split()
    loaded = registry.load(name)
    player = GtpPlayer(loaded.game, loaded.gtp_words(loaded.game), fake("replay", DATA / file))
    position, chosen = loaded.game.start(), 0
    for word in words:
        action = position.parse(word)
        if position.ply >= 2 and position.to_play == 1:  # the opening was given, and the engine had white
            assert player.choose(position, 0) == action
            chosen += 1
        position = position.play(action)
    assert position.terminal and chosen > 25
    said = [line.removeprefix("> ") for line in log if line.startswith("> ")]
    assert [word for word in said if word in boards] == boards
    assert f"# {' '.join(words)}\n" + "\n".join(log) + "\n" == (DATA / file).read_text()


@pytest.fixture(scope="module")
def game_with_passes():
    """Moves of a game of Othello on 6 x 6 in which either player has to pass."""
    game, rng = registry.load("othello6").game, np.random.default_rng(1)
    while True:
        position, passes = game.start(), set()
        words: list[str] = []
        while not position.terminal:
            action = int(rng.choice(position.legal_actions))
            words.append(position.format(action))
            if words[-1] == "pass":
                passes.add(position.to_play)
            position = position.play(action)
        if passes == {0, 1}:
            return words


@pytest.mark.parametrize("engine_first", [True, False])
def test_a_forced_pass_is_played_for_an_engine_that_passes_by_itself(game_with_passes, engine_first, log):
    loaded = registry.load("othello6")
    words, kernels = loaded.gtp_words(loaded.game), Kernels(loaded.game)
    player = GtpPlayer(loaded.game, words, fake("game", *game_with_passes))
    other = FunctionPlayer(loaded.game, lambda position: position.parse(game_with_passes[position.ply]))
    result = Arena(kernels, *((player, other) if engine_first else (other, player)), 1, seed=1, opening_plies=0).play()
    assert result.forfeits == ("",)
    assert words_of(loaded.game.start(), result.actions[0]) == game_with_passes
    refused = [before for before, line in itertools.pairwise(log) if line.startswith("?")]
    colour = "black" if engine_first else "white"
    assert f"> genmove {colour}" in refused and sum(command.endswith(" pass") for command in refused) == 1


def test_an_engine_plays_a_match_and_is_told_every_game(log):
    result = Arena(KERNELS, RandomPlayer(KERNELS, 1), engine("well"), 8, seed=1).play()
    assert result.num_games == 8 and result.forfeits == ("",) * 8
    assert log.count("> clear_board") == 8  # one game after the other, none told again
    for number, actions in enumerate(result.actions):
        for ply in range(2, len(actions)):
            if ply % 2 != number % 2:
                assert actions[ply] == min(set(range(9)) - set(actions[:ply]))


def test_a_game_that_does_not_go_on_is_told_again(log):
    player, start = engine("well"), TIC_TAC_TOE.game.start()
    assert player.choose(start, 0) == 0
    assert player.choose(start.play(0).play(4), 0) == 1
    assert [line for line in log if line.startswith("> play")] == ["> play white B2"]
    assert player.choose(start.play(8).play(0), 0) == 1  # somebody took moves back
    assert [line for line in log if line.startswith(">")][-4:] == [
        "> clear_board", "> play black C3", "> play white A1", "> genmove black",
    ]  # fmt: skip


def test_a_board_that_is_no_square_has_columns_and_rows(log):
    """KataGo and Benzene hear them in boardsize; it was not said at all to an engine without rectangular_boardsize."""
    loaded = registry.load("connect4")
    GtpPlayer(loaded.game, default_words(loaded.game), fake("well"))
    assert "> boardsize 7 6" in log
    GtpPlayer(loaded.game, default_words(loaded.game), fake("rectangles"))
    assert "> rectangular_boardsize 7 6" in log and log.count("> boardsize 7 6") == 1
    with pytest.raises(InvalidSetting, match="refused 'boardsize 7 6': unacceptable size"):
        GtpPlayer(loaded.game, default_words(loaded.game), fake("squares"))


def test_the_swap_of_an_engine_for_hex_is_understood(log):
    """Its name is the one that MoHex 2.0 has for it; the log was written by hand after its source."""
    loaded = registry.load("hex_swap")
    player = GtpPlayer(loaded.game, loaded.gtp_words(loaded.game), fake("replay", DATA / "gtp_mohex_swap.txt"))
    opened = loaded.game.start().play(loaded.game.start().parse("d4"))
    assert opened.format(player.choose(opened, 0)) == "swap"
    player.choose(opened.play(opened.parse("swap")).play(0), 0)
    assert "> boardsize 7" in log and log[-3:] == ["> genmove white", "= e3", ""]


FAULTS = {
    "crash": "ended (exit code 3), saying 'out of ideas' without an answer to 'genmove",
    "garbage": "answered 'I think I play A1' to 'genmove",
    "illegal": "played 'Z9', which is not legal",
    "refuse": "refused 'genmove",
    "resign": "resigns",
    "endless": "gave an answer without end",
    "flood": "gave an answer without end",
}


@pytest.mark.parametrize("mode", FAULTS)
def test_what_an_engine_does_wrong_loses_its_game_and_the_next_one_begins(mode, caplog):
    result = Arena(KERNELS, engine(mode), RandomPlayer(KERNELS, 1), 3, seed=1).play()
    assert result.outcomes == (-1, -1, -1) and result.score == 0.0
    assert all(FAULTS[mode] in reason for reason in result.forfeits)
    assert [record.getMessage().count(FAULTS[mode]) for record in caplog.records] == [1, 1, 1]
    assert all("\n" not in reason for reason in result.forfeits)


@pytest.mark.parametrize(
    ("mode", "timeout", "fault"),
    [("hang", 0.5, "for 0.5 s"), ("drip", 0.5, "for 0.5 s"), ("flood", 60.0, "without end")],
)
def test_the_limits_are_for_the_whole_answer(mode, timeout, fault):
    player, begin = engine(mode, timeout=timeout), time.monotonic()
    with pytest.raises(Forfeit, match=f"'genmove black'.*{fault}|{fault}.*'genmove black'"):
        player.choose(TIC_TAC_TOE.game.start(), 0)
    assert time.monotonic() - begin < 20


def test_an_engine_that_does_not_read_is_ended_when_its_pipe_is_full():
    process = engine("deaf", timeout=1.0)._engine
    with pytest.raises(EngineFault):
        for _ in range(5000):
            ask(process, "play black " + "A1" * 500)
    assert process._process.poll() is not None


def test_an_engine_that_nobody_waits_for_any_more_ends_at_once():
    player, begin = engine("hang", timeout=300.0), time.monotonic()
    threading.Timer(0.3, player.interrupt).start()
    for _ in range(2):  # the second time it is interrupted before it is asked
        with pytest.raises(Forfeit, match="ended"):
            player.choose(TIC_TAC_TOE.game.start(), 0)
        player._start("").kill()
    assert time.monotonic() - begin < 60


def test_an_engine_that_has_crashed_is_started_again(tmp_path):
    result = Arena(KERNELS, engine("crash-once", tmp_path / "crashed"), RandomPlayer(KERNELS, 1), 4, seed=1).play()
    assert [bool(reason) for reason in result.forfeits] == [True, False, False, False]


def test_an_engine_that_leaves_after_each_game_loses_none_by_that(caplog):
    result = Arena(KERNELS, engine("one-game"), RandomPlayer(KERNELS, 1), 4, seed=1).play()
    assert not any(result.forfeits) and not caplog.records


def test_an_engine_that_starts_no_more_ends_the_match(tmp_path):
    """Its remaining games were all lost within seconds, and kept in a tournament for good."""
    file, ended = tmp_path / "there", []
    file.touch()

    with pytest.raises(InvalidSetting, match=r"was to be started again, and ended \(exit code 4\)"):
        for result in Arena(KERNELS, engine("crash", file), RandomPlayer(KERNELS, 1), 4, seed=1):
            ended[:] = result.numbers
            file.unlink(missing_ok=True)
    assert ended == [0]


def test_forfeits_are_written_with_the_games_and_shown(tmp_path, capsys):
    file = tmp_path / "games.jsonl"
    arguments = ["random", f"gtp:{fake('garbage')}", "--game", "tictactoe", "--games", "2", "--save-games", str(file)]
    assert run_command(pit.main, arguments) == 0
    report, errors = capsys.readouterr()
    assert "wins            2\n" in report and "forfeits        2" in report
    assert errors.count("which is not GTP") == 2
    records = read_records(file)
    assert [record.result for record in records] == ["1-0", "0-1"]
    assert all("which is not GTP" in record.forfeit for record in records)
    assert run_command(pit.replay, [str(file), "0"]) == 0
    assert "1-0 (gtp:" in capsys.readouterr().out


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def test_an_engine_is_ended_with_its_children(tmp_path):
    player = engine("child", tmp_path / "pid")
    child = int((tmp_path / "pid").read_text())
    assert is_running(child)
    player.choose(TIC_TAC_TOE.game.start(), 0)
    del player
    end = time.monotonic() + 10
    while is_running(child) and time.monotonic() < end:
        time.sleep(0.02)
    assert not is_running(child)


def test_engines_are_not_waited_for_one_after_the_other_when_the_process_was_asked_to_end(tmp_path, monkeypatch):
    players = [engine("child", tmp_path / f"pid{i}") for i in range(3)]
    monkeypatch.setattr(engine_process.interruption, "asked", lambda: True)
    begin = time.monotonic()
    for player in players:
        player._engine.close()
    assert time.monotonic() < begin + engine_process.GRACE


@pytest.mark.parametrize(
    ("text", "timeout"),
    [
        (f'gtp:"{fake("well")}"@timeout=7.5', 7.5),
        (f"gtp:{fake('well')}", 60.0),
        (f'gtp:"{fake("well", "a@b=1,x")}"', 60.0),
    ],
)
def test_an_engine_may_have_quotation_marks_and_a_timeout(text, timeout):
    player = make_player(text, TIC_TAC_TOE, seed=1)
    assert player._timeout == timeout and player.choose(TIC_TAC_TOE.game.start(), 0) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('gtp:""', "gtp takes the command line of an engine"),
        ("gtp:no-such-engine --mode gtp", "cannot be started: No such file or directory"),
        ("gtp:'open", "gtp takes the command line of an engine"),
        ("gtp:x@speed=1", "unknown setting 'speed' (allowed: timeout)"),
        ("gtp:x@timeout=soon", "setting timeout takes a number, not 'soon'"),
        ("gtp:x@timeout=0", "the timeout of gtp must lie between 0.01 and 86,400, not 0"),
        (f"gtp:{fake('poor')}", "does not know boardsize, clear_board, genmove, play, quit"),
        (f"gtp:{fake('games')}", "does not play tictactoe, but Go, Hex"),
        (f"gtp:{fake('mute')}@timeout=0.3", "has not answered 'list_commands' for 0.3 s"),
        (f"gtp:{fake('well')} {'x' * 4096}", "characters, and a contestant has 4,096 at most: put a long command into"),
        (f"gtp:{sys.executable} -c 1", "ended (exit code 0) without an answer to 'list_commands'"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(text, message, capsys):
    assert run_command(pit.main, ["random", text, "--game", "tictactoe"]) == 2
    shown, errors = capsys.readouterr()
    assert shown == "" and errors.count("\n") == 1 and errors.startswith("error: ") and message in errors


def test_an_engine_that_cannot_take_part_is_not_started(tmp_path):
    names = ["random", f"gtp:{fake('child', tmp_path / 'pid')}"]
    with pytest.raises(InvalidSetting, match="cannot be one of --opponents: it plays one game at a time"):
        open_opponents(names, "--opponents", TIC_TAC_TOE, seed=1, threads=1)
    assert not (tmp_path / "pid").exists()


def test_an_engine_cannot_be_asked_about_single_positions():
    player = engine("well")
    start, zero, one = TIC_TAC_TOE.game.start(), np.array([0]), np.array([1])
    with pytest.raises(InvalidSetting, match="follows whole games"):
        player.select_actions(start.play(0).state[None], zero, one)
    assert player.select_actions(start.state[None], zero, zero).tolist() == [0]


def test_our_own_engine_is_one():
    """Both ends of the protocol are ours here, in a game with a player who moves twice."""
    loaded = registry.load("dots_and_boxes")
    command = f"{sys.executable} -m alphazero gtp greedy --game dots_and_boxes"
    player = make_player(f"gtp:{command}", loaded, seed=1, threads=1)
    kernels = Kernels(loaded.game)
    result = Arena(kernels, player, RandomPlayer(kernels, 1), 2, seed=1).play()
    assert result.forfeits == ("", "") and result.num_games == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "command"),
    [("othello", "gtp-rhino -l 1"), (GO, "gnugo --mode gtp --level 1 --chinese-rules --capture-all-dead")],
)
def test_a_real_engine_plays_twenty_games(name, command, log):
    path = shutil.which(command.split()[0], path=f"{os.environ['PATH']}:/usr/games")
    if path is None:
        pytest.skip(f"{command.split()[0]} is not installed")
    loaded = registry.load(name)
    kernels = Kernels(loaded.game)
    words = loaded.gtp_words(loaded.game)
    player = GtpPlayer(loaded.game, words, " ".join([path, *command.split()[1:]]))
    result = Arena(kernels, make_player("mcts:50", loaded, seed=1, threads=2), player, 20, seed=1).play()
    assert result.num_games == 20 and result.forfeits == ("",) * 20
    refused = [before for before, line in itertools.pairwise(log) if line.startswith("?")]
    assert all(command.endswith(" pass") for command in refused) and len(refused) <= 1
