"""Dobutsu shogi in step with pyffish 0.0.90, and on positions drawn by hand."""

import re

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import IllegalAction, InputError
from alphazero.game import Position
from alphazero.game.kernels import kernels_of
from games.dobutsu.rules import MOST_PLIES, NUM_SQUARES, POSITION

GAME = registry.load("dobutsu").game


class Fairy:
    """The same game as pyffish plays it, where lions are taken: moves that allow it are left out here."""

    def __init__(self) -> None:
        self.library = pytest.importorskip("pyffish")
        self.start, self.moves = self.library.start_fen("dobutsu"), list[str]()

    @property
    def reached(self) -> str:
        return self.library.get_fen("dobutsu", self.start, self.moves)

    def legal(self) -> set[str]:
        reached = self.reached
        board, _, player = parts_of(reached)
        rows = re.sub(r"\d", lambda run: "." * int(run[0]), board.replace("+", "")).split("/")
        lion = "L" if player == "w" else "l"
        (home,) = [f"{'abc'[row.index(lion)]}{4 - i}" for i, row in enumerate(rows) if lion in row]

        def is_safe(move: str) -> bool:
            after = move[2:4] if move[:2] == home else home
            replies = self.library.legal_moves("dobutsu", reached, [move])  # none where the game is over
            return all(reply[2:4] != after for reply in replies)

        return set(filter(is_safe, self.library.legal_moves("dobutsu", reached, [])))

    def outcome(self, to_play: int) -> int | None:
        """+1 if the first player has won, 0 for a draw, None while the game goes on or somebody is mated."""
        for end in ("is_immediate_game_end", "is_optional_game_end"):
            is_over, value = getattr(self.library, end)("dobutsu", self.start, self.moves)
            if is_over:
                return int(np.sign(value)) * (-1 if to_play else 1)
        return None


def parts_of(fen: str) -> tuple[str, list[str], str]:
    """The board, the letters of both hands, and who moves."""
    board, hands, player = re.match(r"(\S+)\[([^]]*)\] (\w)", fen).groups()
    return board, sorted(hands.replace("-", "")), player


def play_in_step(seed: int, plies: int = MOST_PLIES, cautious: bool = False) -> int | None:
    """A random game beside pyffish, and its outcome. Cautious players end no game while they need not."""
    rng, position, theirs = np.random.default_rng(seed), GAME.start(), Fairy()
    while not position.terminal and position.ply < plies:
        assert theirs.outcome(position.to_play) is None
        words = {position.format(action): action for action in position.legal_actions}
        assert words.keys() == theirs.legal()
        ours = GAME.fen_of(position)
        assert parts_of(ours) == parts_of(theirs.reached) and ours.split()[-1] == theirs.reached.split()[-1]
        again = GAME.position(theirs.reached)
        assert again.legal_mask.tolist() == position.legal_mask.tolist() and again.state[0] == position.state[0]
        after = {word: position.play(action) for word, action in words.items()}
        calm = [word for word in sorted(words) if not after[word].terminal] if cautious else []
        word = (calm or sorted(words))[rng.integers(len(calm or words))]
        theirs.moves.append(word)
        position = after[word]
    if position.terminal and position.ply < MOST_PLIES and theirs.outcome(position.to_play) != position.outcome:
        if position.outcome == 0:  # Fairy-Stockfish waits for the fourth time
            assert sum(state.state[POSITION] == position.state[POSITION] for state in position.history) == 3
        else:
            assert not theirs.legal() and position.outcome == (1 if position.to_play else -1)
    return position.outcome if position.terminal else None


def test_random_games_go_in_step_with_pyffish():
    assert [play_in_step(seed) for seed in (0, 1, 5045)] == [-1, 1, 0]


def test_longer_games_go_in_step_with_pyffish():
    play_in_step(0, 40, cautious=True)


def test_perft_beside_pyffish():
    """Sequences of 1 to 6 moves; a game that is over has none."""
    kernels, theirs, found = kernels_of(GAME), Fairy(), []
    states = kernels.start_states(1)
    for _ in range(6):
        masks, terminal, _ = kernels.describe_all(states)
        parents, actions = np.nonzero(masks & ~terminal[:, None])
        states = states[parents]
        kernels.play(states, np.zeros(len(states), np.int8), actions)
        found.append(len(states))

    def count(depth: int) -> int:
        if theirs.outcome(len(theirs.moves) % 2) is not None:
            return 0
        moves, total = theirs.legal(), 0
        for move in moves if depth > 1 else ():
            theirs.moves.append(move)
            total += count(depth - 1)
            theirs.moves.pop()
        return total if depth > 1 else len(moves)

    assert found == [4, 13, 67, 398, 2179, 12636] and [count(depth) for depth in (1, 2, 3)] == found[:3]


def after(text: str, fen: str = "") -> Position:
    position = GAME.position(fen)
    for word in text.split():
        position = position.play(position.parse(word))
    return position


def test_the_third_time_is_a_draw_and_the_network_sees_the_second():
    circle = "c1c2 a4a3 c2c1 a3a4"
    assert after(circle).observation[16].max() == 1 and not after(circle).terminal
    third, theirs = after(f"{circle} {circle}"), Fairy()
    assert third.terminal and third.outcome == 0
    # Fairy-Stockfish waits for the fourth time, as in shogi
    theirs.moves = circle.split() * 2 + ["c1c2"]
    assert theirs.outcome(1) is None
    theirs.moves = circle.split() * 3
    assert theirs.outcome(0) == 0


def test_a_lion_that_comes_to_the_last_row_wins_and_may_not_where_it_could_be_taken():
    won = after("a3a4", "2l/L2/3/3[] w - - 0 1")
    assert won.terminal and won.outcome == 1
    guarded = GAME.position("1gl/L2/3/3[] w - - 0 1")
    assert {guarded.format(action) for action in guarded.legal_actions} == {"a3a2", "a3b2"}


def test_who_has_no_move_loses():
    """A chick is dropped beside the lion, guarded by an elephant, which attacks a3 as well; then there is no guard."""
    mated = after("C@a1", "3/1eG/lE1/2L[GC] w - - 0 1")
    assert mated.terminal and mated.outcome == 1
    free = after("C@a1", "3/1eG/l2/2L[GC] w - - 0 1")
    assert {free.format(action) for action in free.legal_actions} == {"a2a1", "a2a3"}


def test_chicks_become_hens_and_are_chicks_again_in_hand():
    hen = after("b3b4+", "2l/1C1/3/L2[] w - - 0 1")
    assert hen == after("b3b4", "2l/1C1/3/L2[] w - - 0 1")  # as Fairy-Stockfish 11.1 may have it
    assert GAME.fen_of(hen).startswith("1+Cl/3/3/L2[] b")
    taken = after("c4b4", GAME.fen_of(hen))
    assert GAME.fen_of(taken).startswith("1l1/3/3/L2[c] w")
    dropped = after("c@b1", "1l1/3/3/L2[c] b - - 0 1")
    assert GAME.fen_of(dropped).startswith("1l1/3/3/Lc1[] w")  # on the last row it stays a chick, and never moves
    assert str(dropped).splitlines()[3] == "1 L c ."


def test_left_and_right_may_change_places():
    cells, actions = GAME.symmetries
    position = after("b2b3 c4b3 c1c2")
    state = position.state.copy()
    GAME.rules.transform(state, 1)
    turned = Position(GAME, state, position.to_play, ())
    assert (turned.observation.reshape(17, -1) == position.observation.reshape(17, -1)[:, cells[1]]).all()
    assert (turned.legal_mask == position.legal_mask[actions[1]]).all()


def test_boards_are_read_and_wrong_ones_refused():
    assert GAME.position("gle/1c1/1C1/ELG[-] w 0 1") == GAME.start()
    for start in ("gle/1c1/1C1/ELG w", "gle/1c1/1C1/ELG[]  w ", "gle/1c1/1C1/ELG[] W; the start"):
        assert GAME.position(start) == GAME.start()
    with pytest.raises(InputError, match="who moves: w or b"):
        GAME.position("gle/1c1/1C1/ELG[]")
    assert GAME.position("1Hl/3/3/L2[] b").state[0] == GAME.position("1+Cl/3/3/L2[] b - - 0 1").state[0]
    for wrong in (
        "gle/1c1/1C1/EGG[] w", "gle/1c1/1C1/ELG[c] w", "gle/1c1/1C1[] w", "gle/1c1/1C1/EL[] w", "1l1/3/3/3[] w",
        "g+le/1c1/1C1/ELG[] w", "1l1/1C1/3/1L1[] w", "1L1/1c1/3/1l1[] b", "2L/3/l2/3[] w", "1l1/3/L2/2l[] b",
    ):  # fmt: skip
        with pytest.raises(InputError):
            GAME.position(wrong)


def test_moves_are_read_and_wrong_ones_refused():
    assert after("b2b3 C4B3").ply == 2
    for wrong in ("", "b2", "b2b4", "b2b3+", "C@b3", "z1a1", "h@a2", "a0a1"):
        with pytest.raises(IllegalAction):
            GAME.start().parse(wrong)


def test_people_see_hands_and_click_on_them():
    position = after("b2b3 c4b3")
    texts = {piece.cell: piece.text for piece in GAME.pieces(position)}
    assert texts == {0: "G", 1: "L", 4: "E", 9: "E", 10: "L", 11: "G", 12: "C", 15: "C"}
    first = after("c1c2 b3b2")
    drops = [clicks for clicks in GAME.clicks(after("a1b2", GAME.fen_of(first))) if clicks[0] >= NUM_SQUARES]
    assert all(clicks[0] == NUM_SQUARES + 3 for clicks in drops) and drops
