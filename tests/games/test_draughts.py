"""Draughts in step with pydraughts 0.6.7, beside known numbers of moves, and on positions drawn by hand."""

import re

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import IllegalAction, InputError
from alphazero.game import Position
from alphazero.game.kernels import Kernels
from games.draughts.game import MOST_ACTIONS, MOST_QUIET

draughts = pytest.importorskip("draughts")
GAME = registry.load("draughts").game
FORTY = "B:WK32,K31:BK1,K2"


def moves_of(position: Position) -> dict[tuple[int, ...], Position]:
    """The whole moves: the squares of each, and the position after it."""
    found, open_moves = {}, [((), position)]
    while open_moves:
        squares, before = open_moves.pop()
        for action in before.legal_actions:
            after = before.play(action)
            start, end = map(int, re.split("[-x]", before.format(action)))
            path = (*(squares or (start,)), end)
            if after.to_play == position.to_play:
                open_moves.append((path, after))
            else:
                found[path] = after
    return found


def pieces_of(fen: str) -> tuple[str, set[str], set[str]]:
    """Who moves, and the squares of Black and White in a FEN of PDN."""
    mover, *lists = fen.split(":")
    sides = {side[0]: set(filter(None, side[1:].split(","))) for side in lists}
    return mover, sides["B"], sides["W"]


def fen_of(position: Position) -> str:
    squares = {cell.name: number for number, cell in enumerate(GAME.board.cells)}
    names = {number: name for name, number in squares.items()}
    pieces = [(piece.player, "K" * (piece.shape == "crowned") + names[piece.cell]) for piece in GAME.pieces(position)]
    sides = [[name for player, name in pieces if player == side] for side in (0, 1)]
    return f"{'BW'[position.to_play]}:W{','.join(sides[1])}:B{','.join(sides[0])}"


def play_in_step(seed: int, fen: str = "") -> tuple[str, int]:
    """A random game beside pydraughts: how it ended, and its moves."""
    theirs = draughts.Board("english", fen or "startpos")
    rng, position = np.random.default_rng(seed), GAME.position(fen)
    while not position.terminal:
        assert theirs.winner() is None
        ours, found = moves_of(position), theirs.legal_moves()
        steps = [tuple(move.steps_move) for move in found]
        assert sorted(ours) == sorted(set(steps))
        chosen = int(rng.integers(len(steps)))
        theirs.push(found[chosen])
        position = ours[steps[chosen]]
        assert pieces_of(fen_of(position)) == pieces_of(theirs.fen)
        assert GAME.position(theirs.fen).legal_mask.tolist() == position.legal_mask.tolist() or position.terminal
    winner = {1: draughts.BLACK, -1: draughts.WHITE, 0: 0}[position.outcome]
    if int(position.state[-1]) >= MOST_ACTIONS:
        return "cut", len(theirs.move_stack)
    assert theirs.winner() == winner
    return ("no move" if winner else "drawn"), len(theirs.move_stack)


@pytest.mark.parametrize("seed", range(40))
def test_random_games_go_in_step_with_pydraughts(seed: int):
    play_in_step(seed)


def their_square(number: str) -> str:
    """A square in the names of OpenSpiel, whose first player begins below, on a1."""
    row, column = divmod(next(cell for cell in range(64) if GAME.board.cells[cell].name == number), 8)
    return f"{'hgfedcba'[column]}{row + 1}"


def test_random_games_go_in_step_with_openspiel_until_it_ends_them():
    """Version 2.0.2 draws a game after 40 actions without a jump, also if men moved, and sees no repetition."""
    pyspiel = pytest.importorskip("pyspiel")
    rng, ends = np.random.default_rng(0), []
    for _ in range(100):
        position, theirs = GAME.start(), pyspiel.load_game("checkers").new_initial_state()
        while not position.terminal and not theirs.is_terminal():
            words = {
                "".join(map(their_square, re.split("[-x]", position.format(a)))): a for a in position.legal_actions
            }
            found = {theirs.action_to_string(action): action for action in theirs.legal_actions()}
            assert words.keys() == found.keys() and position.to_play == theirs.current_player()
            word = sorted(words)[rng.integers(len(words))]
            position = position.play(words[word])
            theirs.apply_action(found[word])
        ends.append(theirs.returns()[0])
        assert position.outcome == ends[-1] if position.terminal else ends[-1] == 0
    assert {1, 0, -1} >= set(ends) >= {1, -1}


def moved(kernels: Kernels, states: np.ndarray) -> np.ndarray:
    """All positions after one whole move from each of these, in which the same player is to move."""
    found = []
    while len(states):
        masks, _, _ = kernels.describe_all(states)
        parents, actions = np.nonzero(masks)
        before, states, to_play = player_of(states), states[parents], np.zeros(len(parents), np.int8)
        kernels.play(states, to_play, actions)
        goes_on = player_of(states) == before[parents]
        found.append(states[~goes_on])
        states = states[goes_on]
    return np.concatenate(found)


def player_of(states: np.ndarray) -> np.ndarray:
    return states[:, 1] >> np.uint64(38) & np.uint64(1)


def test_perft():
    """Whole moves from the start, as programs of many have counted them."""
    kernels, found = Kernels(GAME), []
    states = kernels.start_states(1)
    for _ in range(8):
        states = moved(kernels, states)
        found.append(len(states))
    assert found == [7, 49, 302, 1469, 7361, 36768, 179740, 845931]


def test_a_king_jumps_round_and_home_again():
    position = GAME.position("B:BK2:W6,7,14,15")
    paths = moves_of(position)
    assert set(paths) == {(2, 9, 18, 11, 2), (2, 11, 18, 9, 2)}
    assert {after.outcome for after in paths.values()} == {1}
    assert all(piece.shape == "crowned" for after in paths.values() for piece in GAME.pieces(after))


def test_a_man_that_becomes_a_king_stops():
    """22x31 takes a man; a king on 31 could jump on over 27, but the move is over."""
    position = GAME.position("B:B22:W26,27,21")
    after = position.play(position.parse("22x31"))
    assert after.to_play == 1 and not after.terminal
    assert str(after).splitlines()[7] == ".   .   X   .     29-32"
    king = GAME.position("B:BK22:W26,27,21").play(position.parse("22x31"))
    assert king.to_play == 0 and [king.format(action) for action in king.legal_actions] == ["31x24"]


def test_the_third_time_is_a_draw_and_the_network_sees_the_second():
    position = GAME.position("B:BK1,K2:WK32,K31")
    circle = "1-6 32-28 6-1 28-32"
    for times in range(2):
        assert position.observation[7].max() == (times > 0) and not position.terminal
        for word in circle.split():
            position = position.play(position.parse(word))
    assert position.terminal and position.outcome == 0


def test_forty_moves_of_kings_each_are_a_draw():
    """Of moves that bring no position for the third time and let nobody jump."""
    position, theirs, rng = GAME.position(FORTY), draughts.Board("english", FORTY), np.random.default_rng(0)
    while not position.terminal:
        assert theirs.winner() is None and position.observation[8].max() == np.float32(position.ply / MOST_QUIET)
        after = {path: reached for path, reached in moves_of(position).items() if int(reached.state[1]) >> 39 & 3 < 2}
        quiet = [path for path, reached in after.items() if not reached.observation[4].any()]
        path = quiet[rng.integers(len(quiet))]
        theirs.push(draughts.Move(theirs, steps_move=list(path)))
        position = after[path]
    assert position.ply == MOST_QUIET and position.outcome == 0 == theirs.winner()
    assert int(position.state[1]) >> 39 & 3 < 2


def test_boards_are_read_and_wrong_ones_refused():
    assert GAME.position("B:W21-32:B1-12") == GAME.start()
    position = GAME.position("W:W21,22,K3:B1,2.")
    assert position.to_play == 1 and pieces_of(fen_of(position)) == ("W", {"1", "2"}, {"21", "22", "K3"})
    assert GAME.position('"W:B1,2:W21,22,K3"') == position
    for wrong in ("B:W33:B1", "B:W5:B5", "B:W0:B1", "B:W3:B1", "B:WK3:B30", "B:W13-26:B1", "B:W5,:B1--2", "B:W5:BK"):
        with pytest.raises(InputError):
            GAME.position(wrong)


def test_moves_are_read_as_pdn_writes_them():
    joined = GAME.position("1. 9-14 23-18 2. 14x23 27x18 3. 5-9 26-23 4. 12-16 30-26 5. 16-19 24x15 6. 10x19 23x16")
    assert joined.ply == 12
    for wrong in ("", "x", "9", "9-15", "0-4", "33-1", "9x14", "-9-14", "14-9", "99-1", "1-99"):
        with pytest.raises(IllegalAction):
            GAME.start().parse(wrong)
