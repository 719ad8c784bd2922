"""Go against a plain implementation, OpenSpiel, GNU Go, and positions drawn by hand."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import IllegalAction, InputError
from alphazero.game import Game, Position
from alphazero.game.kernels import Kernels
from games.go.game import Go
from tests.conftest import kernels_by_name
from tests.games.plain_go import PlainGo

SIZES = {"go5": 5, "go6": 6, "go7": 7, "go9": 9, "go13": 13, "go19": 19}
MORE_GAMES = {"go6": 200, "go7": 100, "go9": 100, "go13": 10, "go19": 3}
"""Games of each size for the slow tests."""


def go(name: str) -> Game:
    return registry.load(name).game


def eager_game(kernels: Kernels, seed: int, plies: int, pass_rate: float) -> Iterator[tuple[int, np.ndarray]]:
    """The actions of a random game with few passes, each before the state that it leads to."""
    rng, states, movers = np.random.default_rng(seed), kernels.start_states(1), np.zeros(1, np.int8)
    for _ in range(plies):
        masks, terminal, _ = kernels.describe_all(states)
        if terminal[0]:
            return
        points = np.flatnonzero(masks[0, :-1])
        passes = len(points) == 0 or rng.random() < pass_rate
        action = kernels.game.num_actions - 1 if passes else int(rng.choice(points))
        kernels.play(states, movers, np.array([action]))
        yield action, states.copy()


def in_step(name: str, games: int, plies: int, pass_rate: float) -> int:
    """Compares legal plays, ends and results with the plain game's; the number of plays that superko forbade."""
    kernels, size, forbidden = kernels_by_name(name), SIZES[name], 0
    for seed in range(games):
        plain = PlainGo(size)
        for ply, (action, states) in enumerate(eager_game(kernels, seed, plies, pass_rate), 1):
            plain.play(None if action == size * size else divmod(action, size))
            masks, terminal, values = kernels.describe_all(states)
            assert terminal[0] == (plain.passes == 2 or ply == kernels.game.max_plies)
            expected = plain.legal()
            if terminal[0]:
                lead = (plain.lead() - kernels.game.komi) * (1 - 2 * plain.mover)
                assert values[0] == (np.float32(lead / 25) if name == "go5" else np.sign(lead))
            else:
                assert {divmod(cell, size) for cell in np.flatnonzero(masks[0, :-1]).tolist()} == expected
                assert masks[0, -1]
            plain.earlier, kept = [], plain.earlier
            forbidden += len(plain.legal()) - len(expected)
            plain.earlier = kept
    return forbidden


@pytest.mark.parametrize(("name", "games"), [("go5", 40), ("go9", 6)])
def test_random_games_go_as_by_plain_rules(name: str, games: int):
    assert in_step(name, games, 1000, 0.02) > 0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "games"), MORE_GAMES.items())
def test_more_random_games_go_as_by_plain_rules(name: str, games: int):
    assert in_step(name, games, 1000, 0.01) > 0


# --- other programs ---

SUPERKO = "A4 D2 E1 D1 B2 C3 E2 B4 E3 B1 B3 A2 C5 A3 A1"
"""Black has taken A2 and A3 by A1. White's A2 would take it, and make the board that was there three plies ago."""
GNU_GO = ["/usr/games/gnugo", "--mode", "gtp", "--chinese-rules", "--level", "0"]
with_gnu_go = pytest.mark.skipif(shutil.which(GNU_GO[0]) is None, reason="GNU Go is not installed")


class Engine:
    """GNU Go 3.8 as a program of its own."""

    def __init__(self, *options: str):
        self.program = subprocess.Popen([*GNU_GO, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line: str) -> str:
        assert self.program.stdin is not None and self.program.stdout is not None
        print(line, file=self.program.stdin, flush=True)
        answer = "".join(iter(self.program.stdout.readline, "\n"))
        assert answer.startswith("="), (line, answer)
        return answer[1:].strip()


@pytest.fixture(params=[("--positional-superko",), ()], ids=["superko", "ko"])
def gnu_go(request: pytest.FixtureRequest) -> Iterator[tuple[Engine, bool]]:
    """The engine, and whether it knows superko."""
    engine = Engine(*request.param)
    yield engine, bool(request.param)
    engine.ask("quit")
    engine.program.communicate()


def from_bottom(cell: int, size: int) -> int:
    """The point's number where rows count from the bottom."""
    return (size - 1 - cell // size) * size + cell % size


def test_superko_forbids_what_repeats_a_board_of_three_plies_ago():
    position = go("go5").position(SUPERKO)
    with pytest.raises(IllegalAction):
        position.parse("A2")
    before = str(go("go5").position(SUPERKO.rsplit(" ", 2)[0])).splitlines()
    assert before[1:] == [" 5 . . X . .", " 4 X O . . .", " 3 . X O . X", " 2 O X . O X", " 1 . O . O X"]
    now = str(position).splitlines()
    assert now[1:] == [" 5 . . X . .", " 4 X O . . .", " 3 . X O . X", " 2 . X . O X", " 1 X O . O X"]


def test_openspiel_ends_a_game_as_a_draw_where_superko_forbids_the_play():
    pyspiel = pytest.importorskip("pyspiel")
    state = pyspiel.load_game("go(board_size=5,komi=0.0)").new_initial_state()
    for move in [*SUPERKO.split(), "A2"]:
        state.apply_action(state.string_to_action(f"{'BW'[state.current_player()]} {move.lower()}"))
    assert state.is_terminal() and state.returns() == [0.0, 0.0]


def beside_openspiel(name: str, games: int) -> int:
    """Plays random games in step with OpenSpiel 2.0.2; the number of plays that superko forbids, and OpenSpiel ends."""
    pyspiel = pytest.importorskip("pyspiel")
    kernels, size, different = kernels_by_name(name), SIZES[name], 0
    komi, plies = kernels.game.komi, kernels.game.max_plies
    theirs = pyspiel.load_game(f"go(board_size={size},komi={komi},max_game_length={plies})")
    for seed in range(games):
        state = theirs.new_initial_state()
        for action, states in eager_game(kernels, seed, plies, 0.02):
            state.apply_action(from_bottom(action, size) if action < size * size else action)
            masks, terminal, values = kernels.describe_all(states)
            assert state.is_terminal() == terminal[0]
            if terminal[0]:
                black_moves = states[0, 3 * kernels.game.words] & np.uint64(1) == 0
                assert state.returns()[0] == np.sign(values[0] if black_moves else -values[0])
                continue
            ours = {from_bottom(cell, size) for cell in np.flatnonzero(masks[0, :-1]).tolist()}
            allowed = {*state.legal_actions()} - {size * size}
            assert ours <= allowed
            for point in allowed - ours:
                after = state.child(point)
                assert after.is_terminal() and after.returns() == [0.0, 0.0]
                different += 1
        assert state.is_terminal()
    return different


@pytest.mark.parametrize(
    ("name", "games"), [("go5", 40), *(pytest.param(*each, marks=pytest.mark.slow) for each in MORE_GAMES.items())]
)
def test_openspiel_differs_only_where_superko_forbids(name: str, games: int):
    assert beside_openspiel(name, games) > 0


@with_gnu_go
def test_gnu_go_forbids_by_superko_only_if_told(gnu_go: tuple[Engine, bool]):
    engine, superko = gnu_go
    engine.ask("boardsize 5")
    for ply, move in enumerate(SUPERKO.split()):
        engine.ask(f"play {'bw'[ply % 2]} {move}")
    assert engine.ask("is_legal white A2") == ("0" if superko else "1")


@with_gnu_go
@pytest.mark.parametrize("name", ["go5", "go9"])
def test_gnu_go_allows_the_same_plays(name: str, gnu_go: tuple[Engine, bool]):
    engine, superko = gnu_go
    kernels, game = kernels_by_name(name), go(name)
    engine.ask(f"boardsize {game.observation_shape[1]}")
    for seed in range(10 if name == "go5" else 2):
        engine.ask("clear_board")
        for ply, (action, states) in enumerate(eager_game(kernels, seed, 1000, 0.02)):
            engine.ask(f"play {'bw'[ply % 2]} {game.format_action(action, states[0])}")
            masks, terminal, _ = kernels.describe_all(states)
            if not terminal[0]:
                allowed = {*engine.ask(f"all_legal {'wb'[ply % 2]}").split()}
                ours = {game.format_action(cell, states[0]) for cell in np.flatnonzero(masks[0, :-1]).tolist()}
                assert ours == allowed if superko else ours <= allowed


# --- by hand ---


def test_a_ko_is_taken_back_only_after_a_play_elsewhere():
    ko = go("go5").position("B4 C4 A3 D3 B2 C2 C3 B3")  # White has taken C3
    assert str(ko).splitlines()[3] == " 3 X O . O ."
    with pytest.raises(IllegalAction):
        ko.parse("C3")
    later = ko.play(ko.parse("E5")).play(ko.parse("E1"))
    assert str(later.play(later.parse("C3"))).splitlines()[3] == " 3 X . X O ."


def test_two_passes_end_the_game_and_a_play_between_them_does_not():
    start = go("go9").start()
    assert not go("go9").position("pass E5 pass C3 pass").terminal
    assert [go(name).position("pass pass").points for name in SIZES] == [0, -1, -1, -1, -1, -1]
    assert start.play(81).play(81).terminal


def test_points_between_both_count_for_nobody_and_stones_count_as_alive():
    """White's B1 is as good as dead, but nobody has taken it: A2 to B5 touch both colours."""
    assert go("go5").position("C1 D1 C2 D2 C3 D3 C4 D4 C5 D5 A1 B1 pass pass").points == 6 - 11
    assert go("go5").position("C1 D1 C2 D2 C3 D3 C4 D4 C5 D5 pass pass").points == 15 - 10
    assert go("go7").position("D1 E1 D2 E2 D3 E3 D4 E4 D5 E5 D6 E6 D7 E7 pass pass").points == -1  # 28 - 21 < 9


def test_stones_without_liberties_are_taken_and_suicide_is_forbidden():
    corner = go("go5").position("A2 A1 B1")
    assert str(corner).splitlines()[-1] == " 1 . X . . ."
    with pytest.raises(IllegalAction):
        corner.parse("A1")
    # where it takes, a stone may be put between the other's
    assert str(go("go5").position("A2 B2 B1 A3 E5 C1 E4 A1")).splitlines()[-2:] == [" 2 . O . . .", " 1 O . O . ."]


def test_the_board_may_be_won_at_once_by_all_points():
    """The second pass of who owns the whole board is the best result that there is."""
    position = go("go5").position("C3 pass")
    assert position.play(25).points == 25


# --- boards as text ---


@pytest.mark.parametrize("name", ["go5", "go9", "go19"])
def test_a_board_that_was_drawn_is_read(name: str):
    kernels, game = kernels_by_name(name), go(name)
    for ply, (_, states) in enumerate(eager_game(kernels, 3, 60, 0.02), 1):
        if ply % 10 == 0:
            position = Position(game, states[0], ply % 2, ())
            read = game.position(f"{position} {'XO'[ply % 2]}")
            assert str(read) == str(position) and read.to_play == position.to_play
            assert not read.state[-game.history_words :].any()
            assert set(position.legal_actions) <= set(read.legal_actions)  # it knows of no ko
            plain = PlainGo(game.size)
            cells = product(range(game.size), repeat=2)
            signs = "".join("".join(line.split()[1:]) for line in str(position).splitlines()[1:])
            plain.board = {cell: "XO".index(sign) for cell, sign in zip(cells, signs, strict=True) if sign != "."}
            plain.mover, plain.earlier = ply % 2, []
            assert {divmod(cell, game.size) for cell in read.legal_actions[:-1]} == plain.legal()


def test_black_is_to_move_on_a_board_that_does_not_say_and_stones_need_liberties():
    text = "..... ..X.. ..O.. ..... ....."
    assert (go("go5").position(text).to_play, go("go5").position(f"{text} white to move").to_play) == (0, 1)
    with pytest.raises(InputError, match="A5"):
        go("go5").position("OX... X.... ..... ..... .....")


def test_all_positions_of_two_by_two_points_are_found():
    """57 of the 81 boards have liberties for all stones (J. Tromp, G. Farneback 2007)."""

    class Smallest(Go):
        name, size, komi = "go2", 2, 0.5

    legal = 0
    for signs in product(".XO", repeat=4):
        with contextlib.suppress(InputError):
            legal += Smallest().position(f"{signs[0]}{signs[1]} {signs[2]}{signs[3]} X") is not None
    assert legal == 57


def test_territory_and_captured_stones_are_told():
    game = go("go5")
    position = game.position("C2 A1 A2 D5 B1")
    assert position.view.remark == "captured: 1 by Black, 0 by White"
    assert {piece.shape for piece in position.view.pieces} == {""}
    # White has the corner right of D, Black the two points of the other one; column C is nobody's
    ended = game.position(".XX.O XX..O .X.OO XX.O. .X.O. O").play(25).play(25)
    dots = {(game.board.cells[piece.cell].name, piece.player) for piece in ended.view.pieces if piece.shape == "dot"}
    assert dots == {("A5", 0), ("A3", 0), ("A1", 0), ("E2", 1), ("E1", 1)}
    assert ended.view.remark == "area: Black 11, White 8" and ended.points == 3
    assert game.position("C2 pass pass").view.remark == "area: Black 25, White 0"
    assert go("go9").position("pass pass").view.remark == "area: Black 0, White 0 + 7.5"
