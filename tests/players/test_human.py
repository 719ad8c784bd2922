"""Someone at the terminal: what is asked, shown and done; by calls, and through a pipe."""

import io
import re
import shlex
from pathlib import Path

import pytest

from alphazero.catalogue import registry
from alphazero.catalogue.loaded import LoadedGame
from alphazero.commands import pit
from alphazero.commands.shared import run_command
from alphazero.game import Game
from alphazero.game.kernels import Kernels
from alphazero.game.record import read_records
from alphazero.matches.arena import Arena
from alphazero.players.contestants import make_player
from alphazero.players.human import COMMANDS, HumanLeft, HumanPlayer, expected, mark_changes, told
from alphazero.players.player import Player, TakeBack
from tests.game.double_move_game import DoubleMove
from tests.search.dice_games import PointsRace
from tests.search.test_dice import RACE

ROOT = Path(__file__).resolve().parents[2]
TIC_TAC_TOE, CONNECT_4, OTHELLO6 = (registry.load(name) for name in ("tictactoe", "connect4", "othello6"))
MO = registry.load("tictacmo")


def human(loaded: LoadedGame = TIC_TAC_TOE) -> HumanPlayer:
    player = make_player("human", loaded, seed=1, threads=1)
    assert isinstance(player, HumanPlayer)
    return player


@pytest.fixture
def types(monkeypatch):
    """Sets what the human types; every prompt is printed."""

    def set_answers(*answers: str) -> None:
        left = iter(answers)

        def ask(prompt: str) -> str:
            print(prompt)
            answer = next(left, None)
            if answer is None:
                raise EOFError
            return answer

        monkeypatch.setattr("builtins.input", ask)

    return set_answers


def test_a_human_is_asked_again_until_the_action_is_legal(types, capsys):
    position = TIC_TAC_TOE.game.position("a1 b2")
    types("z9", "a1", "", " C3 ")
    assert human().choose(position, 0) == 8
    assert capsys.readouterr().out.count("b1, c1, a2, c2, a3, b3, c3") == 4  # at first and after each wrong answer


@pytest.mark.parametrize("answers", [["quit"], ["QUIT "], []])
def test_a_human_may_leave(types, answers):
    types(*answers)
    with pytest.raises(HumanLeft):
        human().choose(TIC_TAC_TOE.game.start(), 0)


def test_a_human_sees_whose_turn_it_is_where_a_player_moves_twice(types, capsys):
    game = DoubleMove()
    player = HumanPlayer(game, human()._adviser, None, 1)
    types("2")
    assert player.choose(game.position("3 1"), 0) == 1  # the second player has taken one and moves again
    shown = capsys.readouterr().out
    assert "pile 8, first player 3, second player[1]" in shown and "Player 2:" in shown and "plays" not in shown


def test_a_human_is_told_what_the_dice_showed_and_takes_back_to_a_choice(types, capsys):
    pig = registry.load("pig")
    position = pig.game.position("roll 5 roll 1 roll 6 roll 2 hold")
    types("undo", "9", "Roll")
    with pytest.raises(TakeBack) as back:
        human(pig).choose(position, 0)
    assert back.value.ply == 2  # before the roll of 1
    assert human(pig).choose(position, 0) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("\nDice: 1\nPlayer 2 plays roll (6), roll (2), hold\n\n player 1     0 + 0\n")
    assert "'9' is not a legal action here (legal: roll)" in shown
    types("roll")
    human(pig).choose(pig.game.position("roll 5"), 0)
    assert "Dice: 5\n\n player 1     0 + 5" in capsys.readouterr().out


def test_a_die_that_comes_after_a_move_is_told_with_it_whoever_moves_next():
    position = RACE.position("0 3 2 1")  # the first player throws 3 and 2
    assert told(position.history[:-1], position.actions) == ["Player 1 plays 0 (3) (2)", "Player 2 plays 1"]


def test_in_a_game_for_one_nobody_is_called_the_first_and_hints_are_points(types, capsys):
    loaded = registry.load("2048")
    position = loaded.game.position("b3=2 a3=2 left c1=2")  # 4 points so far
    types("hint", "up")
    HumanPlayer(loaded.game, make_player("mcts:40", loaded, seed=0, threads=1), None, 0).choose(position, 0)
    shown = capsys.readouterr().out
    assert "New: c1=2\n" in shown and "You: " in shown and not re.search("[Pp]layer", shown)
    points = [int(number.replace(",", "")) for number in re.findall(r" ([\d,]+) points  ", shown)]
    assert len(points) == 3 and all(4 < number < 20_000 for number in points)
    assert "layer" not in repr(position) + Game.render(loaded.game, position.state, 0) + position.svg()


def test_points_are_expected_in_the_words_of_the_score():
    assert [expected(game.start(), 0.25) for game in (TIC_TAC_TOE.game, PointsRace())] == [
        "value +0.25",
        "+0.50 points",
    ]


def test_a_human_is_told_what_the_other_one_played_and_where(types, capsys):
    game = TIC_TAC_TOE.game
    types("a1")
    human().choose(game.start(), 0)
    shown = capsys.readouterr().out
    assert "plays" not in shown and "[" not in shown
    types("c3")
    human().choose(game.position("a1 b2"), 0)
    shown = capsys.readouterr().out
    assert "Player 2 plays b2\n\n 1 X . .\n 2 .[O].\n 3 . . .\n" in shown
    types("3 1")  # nothing of his own yet: all is the other's
    with pytest.raises(HumanLeft):
        human().choose(game.position("a1"), 0)
    assert "Player 1 plays a1\n\n 1[X]. .\n" in capsys.readouterr().out


def test_only_what_was_empty_is_marked_and_where_there_is_room():
    assert mark_changes("X O .  3\nX . .  1", "X O .  5\nX X .  1", ".") == "X O .  5\nX[X].  1"
    assert mark_changes(" X . O .", " . . X .", ".") == "[.].[X]."  # taken: where it came from as well
    assert mark_changes("+++\n+++", "+X+\n+++", "+") == "+X+\n+++"
    assert mark_changes("a", "ab", ".") == "ab" and mark_changes("a", "a", ".") == "a"


def test_undo_takes_back_ones_own_move_and_the_answer(types, capsys):
    types("undo", "a1")
    assert human().choose(TIC_TAC_TOE.game.start(), 0) == 0
    assert "There is no move of yours to take back." in capsys.readouterr().out
    for text, ply in (("a1 b1", 0), ("a1 b1 c1", 1), ("a1 b1 c1 a2", 2)):
        types("undo")
        with pytest.raises(TakeBack) as caught:
            human().choose(TIC_TAC_TOE.game.position(text), 0)
        assert caught.value.ply == ply


class Recorder(Player):
    """Plays the lowest legal action and notes what it was asked."""

    name = "recorder"

    def __init__(self) -> None:
        self.plies: list[int] = []

    def select_actions(self, states, games, plies):
        self.plies += plies.tolist()
        return Kernels(TIC_TAC_TOE.game).describe_all(states)[0].argmax(axis=1)


def test_the_arena_goes_back_and_the_game_goes_on(types):
    opponent = Recorder()
    types("c3", "c2", "undo", "undo", "b2", "c2", "c1", "a3")  # the recorder takes a1, b1; then a1, b1, a2
    result = Arena(Kernels(TIC_TAC_TOE.game), human(), opponent, 1, seed=1, opening_plies=0).play()
    words = " ".join("abc"[action % 3] + str(action // 3 + 1) for action in result.actions[0])
    assert words.startswith("b2 a1 c2 b1 c1 a2 a3") and result.outcomes == (1,)
    assert opponent.plies == [1, 3, 1, 3, 5]


def test_a_hint_comes_from_the_opponent_if_it_searches_and_can_be_played(types, capsys):
    position = CONNECT_4.game.position("1 2 1 2 1 2")
    player = human(CONNECT_4)
    types("hint", "1")
    assert player.choose(position, 0) == 0
    shown = capsys.readouterr().out
    assert re.search(r"mcts:400, \d+ simulations:\n  1 +\d+ visits  value \+1\.00  1\n", shown)
    player.meet(make_player("mcts:32", CONNECT_4, seed=1, threads=1))
    types("hint", "1")
    player.choose(CONNECT_4.game.start(), 0)
    shown = capsys.readouterr().out
    assert "mcts:32, 32 simulations:\n" in shown and shown.count(" visits  value ") == 3
    player.meet(make_player("random", CONNECT_4, seed=1, threads=1))
    assert player._opponent == "random"


def test_the_solver_tells_the_truth(types, capsys):
    types("eval", "1")
    human(CONNECT_4).choose(CONNECT_4.game.position("4 4 3 3"), 0)  # 4 4 3 3 5 or 2: wins with the next one
    shown = capsys.readouterr().out
    told = dict(re.findall(r"^  (\d) +(.*)$", shown, re.MULTILINE))
    assert told["5"] == told["2"] == "wins in 2 moves" and len(told) == 7
    assert next(iter(told)) in "25"  # the best first
    types("eval", "a1")
    human().choose(TIC_TAC_TOE.game.start(), 0)
    assert "tictactoe has no solver" in capsys.readouterr().out


def test_a_position_that_is_too_far_from_the_end_is_not_solved(types, capsys):
    position = OTHELLO6.game.start()
    types("eval", position.format(position.legal_actions[0]))
    human(OTHELLO6).choose(position, 0)
    assert "this position is too far from the end to be solved: it has " in capsys.readouterr().out


def test_a_game_is_saved_and_can_be_stepped_through(types, capsys, tmp_path):
    file = tmp_path / "game.jsonl"
    player = human()
    player.meet(make_player("greedy", TIC_TAC_TOE, seed=1, threads=1))
    types("save", f"save {tmp_path / 'none' / 'x'}", f"save {file}", "c3")
    assert player.choose(TIC_TAC_TOE.game.position("a1 b2 b1"), 3) == 8
    shown = capsys.readouterr().out
    assert "save takes the name of a new file, as in save game.jsonl" in shown
    assert shown.count("save takes a file in a folder that exists") == 1
    (record,) = read_records(file)
    assert record.contestants == ("greedy", "human") and record.moves == ("a1", "b2", "b1") and record.result == "*"
    assert record.number == 3 and record.seed == 1
    assert run_command(pit.replay, [str(file), "0"]) == 0
    assert "1 X X .\n2 . O .\n3 . . .\n" in capsys.readouterr().out


def test_a_human_has_one_seat_of_three_and_is_told_which_and_who_won(types, capsys, tmp_path):
    file, wins = tmp_path / "game.jsonl", ["c3", "b3", "a3", "e3"]
    types("hint", "d3", f"save {file}", *3 * wins)
    argv = ["mcts:9", "human", "--game", "tictacmo", "--games", "2", "--seed", "3"]
    assert run_command(pit.main, [*argv, "--save-games", str(tmp_path / "all.jsonl")]) == 0
    shown = capsys.readouterr().out
    assert "You are player 1 of 3; the others are mcts:9." in shown
    assert re.search(r"  values: player 1 [+-]0\.\d\d, player 2 [+-]0\.\d\d, player 3 [+-]0\.\d\d\n", shown)
    for record in read_records(tmp_path / "all.jsonl"):
        (seat,) = (seat for seat in range(3) if record.player_at(seat, MO.game) == "human")
        assert seat == record.number // 2
        end = record.positions(MO.game)[-1]
        numbers = ", ".join(str(winner + 1) for winner in end.winners)
        assert f"{end}\n\nGame {seat + 1}: " in shown and re.search(f": players? {numbers}\\.\n", shown)
        assert (record.result == "1-0") == (end.winners == (seat,))
    assert "human has one of 3 in every game" in shown and "Elo" not in shown
    assert run_command(pit.replay, [str(file), "0"]) == 0
    shown = capsys.readouterr().out
    assert "1 of 3  human plays d3" in shown and "2 of 3  mcts:9 plays" in shown and "3 of 3  mcts:9 plays" in shown


def test_a_saved_game_of_ones_own_can_be_stepped_through(types, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    game = str(ROOT / "tests" / "game" / "double_move_game.py")
    types('save "game.jsonl"', "quit")
    assert run_command(pit.main, ["human", "random", "--game", game, "--games", "1"]) == 0
    (line,) = re.findall(r"; (.*) steps through it", capsys.readouterr().out)
    words = shlex.split(line)
    assert words[-2:] == ["--game", game] and run_command(pit.replay, words[words.index("replay") + 1 :]) == 0
    assert read_records(Path("game.jsonl"))[0].game == game  # as `pit --save-games` says it


def test_a_whole_game(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    typed = "help\nc3\nundo\nb2\nhint\neval\nsave game.jsonl\nc1\na3\nc2\nquit\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert run_command(pit.main, ["human", "minimax:9", "--game", "tictactoe", "--seed", "1"]) == 0
    shown = capsys.readouterr().out
    assert "You have left the match.\ntictactoe: human against minimax:9, 1 game\n" in shown
    assert all(f"  {command}" in shown for command in COMMANDS)
    assert shown.count("Player 2 plays ") >= 2 and "mcts:400, 400 simulations" in shown
    (record,) = read_records(tmp_path / "game.jsonl")
    assert record.contestants == ("human", "minimax:9") and record.moves[0] == "b2" and len(record.moves) == 2
