"""Chess and Gardner's chess against published counts, and in step with python-chess and pyffish.

The versions that the differences below are known of: python-chess 1.11.2, pyffish 0.0.90, OpenSpiel 2.0.2.
"""

import random

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import IllegalAction, InputError
from alphazero.game import Position
from alphazero.game.kernels import Kernels
from games.chess.moves import EN_PASSANT, FLAGS, ends_of
from tests.game.perft import count_games

CHESS, GARDNER = (registry.load(name).game for name in ("chess", "gardner"))
KERNELS = {game.name: Kernels(game) for game in (CHESS, GARDNER)}
START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
COUNTS = {
    START: (20, 400, 8902, 197281, 4865609),
    KIWIPETE: (48, 2039, 97862, 4085603),
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1": (14, 191, 2812, 43238, 674624),
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1": (6, 264, 9467, 422333),
    "r2q1rk1/pP1p2pp/Q4n2/bbp1p3/Np6/1B3NBn/pPPP1PPP/R3K2R b KQ - 0 1": (6, 264, 9467, 422333),
    "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8": (44, 1486, 62379, 2103487),
    "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10": (46, 2079, 89890, 3894594),
}
"""Published at https://www.chessprogramming.org/Perft_Results; the fifth is the fourth with colours exchanged."""


@pytest.mark.parametrize("fen", COUNTS)
def test_as_many_games_as_published(fen: str):
    position = CHESS.position(fen)
    found = tuple(count_games(KERNELS["chess"], depth, position) for depth in range(1, len(COUNTS[fen]) + 1))
    assert found == COUNTS[fen]


# --- in step with other programs ---


class InStep:
    """Random games of a game, some dozens at a time, by the compiled rules and those of another program."""

    def __init__(self, game, seed: int):
        self.game, self.kernels, self.random = game, KERNELS[game.name], random.Random(seed)
        self.words = [(origin, target, piece) for origin, target, piece in ends_of(game.size)]
        self.ends: dict[str, int] = {}

    def play(self, games: int, make_other) -> None:
        """Plays so many games to the end; `make_other()` makes the other program's board."""
        states, others = self.kernels.start_states(games), [make_other() for _ in range(games)]
        to_play = np.zeros(games, np.int8)
        for ply in range(self.game.max_plies + 1):
            masks, terminal, values = self.kernels.describe_all(states)
            going = []
            for i, other in enumerate(others):
                end = other.end()
                over = bool(end) or ply == self.game.max_plies
                assert terminal[i] == over, (end, other.history())
                if over:
                    self.ends[end or "too long"] = self.ends.get(end or "too long", 0) + 1
                    assert values[i] == (-1.0 if end == "mate" else 0.0), (end, other.history())
                    continue
                actions = np.flatnonzero(masks[i]).tolist()
                moves = {self.number(word, ply % 2): word for word in other.moves()}
                assert sorted(moves) == actions, other.history()
                if self.random.random() < 0.02:
                    position = Position(self.game, states[i].copy(), ply % 2, ())
                    assert [position.format(action) for action in actions] == [moves[action] for action in actions]
                    assert self.game.fen_of(position) == other.fen()
                    assert self.game.fen_of(self.game.position(other.fen())) == other.fen()
                other.push(moves[action := self.random.choice(actions)])
                going.append((i, action))
            if not going:
                return
            rows, played = (np.array(column) for column in zip(*going, strict=True))
            states, others, to_play = states[rows], [others[row] for row in rows], to_play[rows]
            self.kernels.play(states, to_play, played)

    def number(self, word: str, color: int) -> int:
        """The action of a move's word, by the squares that its player sees."""
        ends = []
        for column, row in (word[:2], word[2:4]):
            seen = self.game.size - int(row) if color else int(row) - 1
            ends.append(8 * seen + "abcdefgh".index(column))
        return self.game.numbers[ends[0], ends[1], word[4:].replace("q", "")]


class PythonChess:
    """A board of python-chess, where a position's third time and the fiftieth quiet move end the game."""

    def __init__(self):
        self.board = pytest.importorskip("chess").Board()

    def end(self) -> str:
        board = self.board
        if board.is_checkmate():
            return "mate"
        if board.is_stalemate():
            return "stalemate"
        if board.is_insufficient_material():
            return "dead"
        if board.halfmove_clock >= 100:
            return "fifty"
        return "threefold" if board.is_repetition(3) else ""

    def moves(self) -> list[str]:
        return [move.uci() for move in self.board.legal_moves]

    def push(self, word: str) -> None:
        self.board.push_uci(word)

    def fen(self) -> str:
        return self.board.fen(en_passant="legal")

    def history(self) -> str:
        return " ".join(move.uci() for move in self.board.move_stack)


class Fairy:
    """A board of pyffish, a library of Fairy-Stockfish; each question takes it 1.5 ms."""

    def __init__(self):
        self.program = pytest.importorskip("pyffish")
        self.start = self.now = self.program.start_fen("gardner")
        self.legal = self.program.legal_moves("gardner", self.now, [])
        self.quiet: list[str] = []
        self.all: list[str] = []

    def moves(self) -> list[str]:
        return self.legal

    def end(self) -> str:
        if not self.legal:
            return "mate" if self.program.gives_check("gardner", self.now, []) else "stalemate"
        few = sum(map(str.isalpha, self.now.split()[0])) < 8
        if few and all(self.program.has_insufficient_material("gardner", self.now, [])):
            return "dead"
        if len(self.quiet) < 8 or not self.program.is_optional_game_end("gardner", self.start, self.quiet)[0]:
            return ""
        return "fifty" if len(self.quiet) >= 100 else "threefold"

    def push(self, word: str) -> None:
        self.all.append(word)
        self.quiet.append(word)
        self.now = self.program.get_fen("gardner", self.now, [word])
        self.legal = self.program.legal_moves("gardner", self.now, [])
        if self.now.split()[4] == "0":
            self.start, self.quiet = self.now, []

    def fen(self) -> str:
        return self.now

    def history(self) -> str:
        return " ".join(self.all)


@pytest.mark.parametrize("games", [12, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("game", "make_other"), [(CHESS, PythonChess), (GARDNER, Fairy)], ids=["chess", "gardner"])
def test_random_games_are_those_of_another_program(game, make_other, games: int):
    trial = InStep(game, seed=games)
    for first in range(0, games, 50):
        trial.play(min(50, games - first), make_other)
    print(trial.ends)
    assert sum(trial.ends.values()) == games


# --- draws, by hand ---


def played(start: str, moves: str, game=CHESS) -> Position:
    """The position after these moves, none of which comes after the end."""
    position = game.position(start)
    for word in moves.split():
        position = position.play(position.parse(word))
    return position


KNIGHTS = "4k3/8/8/8/8/8/8/1N1NK3 w - - 0 1"
ROOKS = "4k2r/8/8/8/8/8/8/4K2R w Kk - 0 1"


@pytest.mark.parametrize(
    ("start", "moves", "ends"),
    [
        (START, "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8", True),  # the start counts, too
        (START, "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1", False),
        # the first of these positions has other rights to castle
        (ROOKS, "h1g1 h8g8 g1h1 g8h8 h1g1 h8g8 g1h1 g8h8", False),
        (ROOKS, "h1g1 h8g8 g1h1 g8h8 h1g1 h8g8 g1h1 g8h8 h1g1 h8g8", True),
        # the first has a capture en passant
        ("4k3/8/8/8/3p4/8/4P3/4K3 w - - 0 1", "e2e4 e8d8 e1d1 d8e8 d1e1 e8d8 e1d1 d8e8 d1e1", False),
        # two pieces of a kind change places, and again
        (KNIGHTS, 2 * "b1a3 e8e7 d1c3 e7e8 c3b1 e8e7 a3c4 e7e8 c4e3 e8e7 e3d1 e7e8 ", True),
    ],
)  # fmt: skip
def test_the_third_time_ends_the_game(start: str, moves: str, ends: bool):
    position = played(start, moves)
    assert position.terminal == ends and (not ends or position.outcome == 0)


def test_a_pawn_that_goes_past_a_pinned_one_makes_no_other_position():
    """OpenSpiel 2.0.2 takes the square en passant for part of the position: its third time comes a ply later."""
    pyspiel, chess = pytest.importorskip("pyspiel"), pytest.importorskip("chess")
    start = "3k4/8/8/8/3p4/8/4P3/3RK3 w - - 0 1"
    moves = ["e2e4", *["d8d7", "e1f1", "d7d8", "f1e1"] * 2, "d8d7"]
    ours, board, state = CHESS.position(start), chess.Board(start), pyspiel.load_game("chess").new_initial_state(start)
    ends: dict[str, int] = {}
    for ply, move in enumerate(moves, 1):
        if not ours.terminal:
            ours = ours.play(ours.parse(move))
        state.apply_action(next(a for a in state.legal_actions() if state.action_to_string(a) in SHORT[move]))
        board.push_uci(move)
        for name, is_over in {
            "ours": ours.terminal,
            "python-chess": board.is_repetition(3),
            "OpenSpiel": state.is_terminal(),
        }.items():
            if is_over:
                ends.setdefault(name, ply)
    assert ends == {"ours": 9, "python-chess": 9, "OpenSpiel": 10}


SHORT = {"e2e4": ["e4"], "d8d7": ["Kd7", "Kd7+"], "e1f1": ["Kf1"], "d7d8": ["Kd8"], "f1e1": ["Ke1"]}


@pytest.mark.parametrize(
    ("board", "ends", "outcome"),
    [
        ("8/8/4k3/8/8/3K4/8/7R w - - 99 90", False, None),
        ("8/8/4k3/8/8/3K4/8/7R b - - 100 90", True, 0),
        ("7k/8/6K1/8/8/8/8/R7 w - - 99 90", False, None),
        ("R6k/8/6K1/8/8/8/8/8 b - - 100 90", True, 1),  # mated by the last quiet move
        ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", True, 0),  # stalemate
        ("8/8/4k3/8/8/3K4/8/8 w - - 0 1", True, 0),
        ("8/8/4k3/8/8/3K4/8/7N w - - 0 1", True, 0),
        ("8/8/4k3/8/8/3K4/8/6NN w - - 0 1", False, None),
        ("8/8/4k1n1/8/8/3K4/8/7N w - - 0 1", False, None),
        ("8/8/4k1b1/8/8/3K4/8/B1B1B3 w - - 0 1", False, None),
        ("8/8/4k1b1/8/8/3K4/8/1B1B1B2 w - - 0 1", True, 0),
        ("8/8/4k1b1/8/8/3K4/8/7N w - - 0 1", False, None),
        ("8/8/4k1p1/8/8/3K4/8/8 w - - 0 1", False, None),
    ],
)
def test_quiet_moves_stalemate_and_dead_material(board: str, ends: bool, outcome: int | None):
    """As python-chess has them, a mate before all others."""
    position, other = CHESS.position(board), pytest.importorskip("chess").Board(board)
    assert position.terminal == ends and (not ends or position.outcome == outcome)
    over = other.is_checkmate() or other.is_stalemate() or other.is_insufficient_material()
    assert (over or other.halfmove_clock >= 100) == ends


@pytest.mark.parametrize(
    ("game", "cycle"), [(CHESS, "g1f3 g8f6 f3g1 f6g8"), (GARDNER, "b1c3 b5c3")], ids=["chess", "gardner"]
)
def test_a_game_of_the_most_plies_is_drawn(game, cycle: str):
    position = played(game.fen_of(game.start()), cycle.split()[0], game)
    state = position.state.copy()
    state[-1] = game.max_plies - 1
    before = Position(game, state, position.to_play, ())
    after = before.play(before.parse(cycle.split()[1]))
    assert not before.terminal and after.terminal and after.outcome == 0


# --- texts ---


@pytest.mark.parametrize(
    "board",
    [
        "8/8/8/8/8/8/8/8 w - - 0 1",  # no kings
        "k7/8/8/8/8/8/8/K6P w - - 0 1",  # a pawn in the first row
        "k6K/8/8/8/8/8/8 w - - 0 1",  # seven rows
        "k6K/9/8/8/8/8/8/8 w - - 0 1",
        "k7/8/8/8/8/8/8/K7",  # who moves?
        "k6R/8/8/8/8/8/8/K7 w - - 0 1",  # who does not move is in check
        "4k3/8/8/8/8/8/8/4K2R w Q - 0 1",
        "4k3/8/8/8/8/8/8/4K2R w X - 0 1",
        "4k3/8/8/8/8/8/4P3/4K3 w - e6 0 1",
        "4k3/8/8/3PP3/8/8/8/4K3 w - d6 0 1",  # the own pawn has passed
        "4k3/8/8/8/4P3/8/8/4K3 b - e9 0 1",
        "4k3/8/8/8/8/8/8/4K2R w - - -1 1",
        "4k3/8/8/8/8/8/8/4K2R w - - 0 1234567890",
        "rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1",
    ],
)
def test_a_board_that_no_game_leads_to_is_refused(board: str):
    with pytest.raises(InputError):
        CHESS.position(board)


@pytest.mark.parametrize(
    ("board", "sentence"),
    [
        ("4k3/8/8/8/8/8/8/4K2R w - x", "no pawn has just passed x"),
        ("4k3/8/8/8/8/8/8/4K2R w - e9", "no pawn has just passed e9"),
        ("4k3/9/8/8/8/8/8/4K2R w - - 0 1", "8 rows of 8 squares"),
        ("4k3/8/8/8/8/8/8/4K2R w - - 0 -1", "its last two words are numbers"),
    ],
)
def test_the_sentence_about_a_board_names_what_is_wrong(board: str, sentence: str):
    with pytest.raises(InputError, match=sentence):
        CHESS.position(board)


def test_boards_as_other_programs_write_them_are_read():
    board = "4k3/8/8/3pP3/8/8/8/4K2R w K d6"
    plain = CHESS.position(f"{board} 0 1")
    for words in ("", " 0 0", ' bm exd6; id "one 1";', " acn 12; acs 3;"):  # FEN, and EPD with its operations
        assert CHESS.position(board + words) == plain
    assert CHESS.position(f"{board} 0 1; white is better") == plain
    assert CHESS.fen_of(CHESS.position(f"{board} 0 12345")).endswith(" 0 12345")
    late = CHESS.position("4k3/8/8/8/8/8/8/4K2R w K - 130 90")  # elsewhere a draw after fifty moves is claimed
    assert late.terminal and late.outcome == 0 and CHESS.fen_of(late).endswith(" 100 90")


def test_texts_of_positions_and_moves():
    white, black = (CHESS.position(f"r3k3/1P6/8/8/8/8/6p1/4K2R {side}") for side in "wb")
    assert CHESS.fen_of(white) == "r3k3/1P6/8/8/8/8/6p1/4K2R w - - 0 1"
    words = {position: [position.format(action) for action in position.legal_actions] for position in (white, black)}
    assert {"b7a8q", "b7b8n", "h1g1"} <= {*words[white]} and {"g2h1r", "g2g1q", "a8a1"} <= {*words[black]}
    assert str(black).splitlines()[0] == "8 r . . . k . . ." and str(black).splitlines()[-1] == "Black to move"
    for word in ("b7b8", "h1h2q", "b7b8k", "e1"):
        with pytest.raises(IllegalAction):
            white.parse(word)
    assert CHESS.in_check(played(START, "e2e4 f7f6 d1h5")) and not CHESS.in_check(CHESS.start())
    number = played("4k3/8/8/8/8/8/8/4K2R b K - 12 34", "e8d8 e1g1")
    assert CHESS.fen_of(number) == "3k4/8/8/8/8/8/8/5RK1 b - - 14 35"


def test_planes_are_the_movers_view():
    position = CHESS.position("4k3/8/8/3pP3/8/8/8/R3K3 w Q d6 7 9")
    planes = {
        (plane, row, column)
        for plane, row, column in zip(*np.nonzero(position.observation), strict=True)
        if plane not in (12, 13)
    }
    rights = {(16, row, column) for row in range(8) for column in range(8)}
    assert planes == {(1, 0, 0), (3, 4, 4), (5, 0, 4), (9, 4, 3), (11, 7, 4), (19, 5, 3)} | rights
    assert position.observation[13, 0, 0] == np.float32(0.07)
    turned = CHESS.position("r3k3/8/8/8/3Pp3/8/8/4K3 b q d3 7 9")
    assert (turned.observation == position.observation).all()


def test_what_may_be_won_is_a_lead_in_material():
    guess = CHESS.plain_rules.heuristic
    assert guess(CHESS.start().state) == 0
    assert guess(CHESS.position("3qk3/8/8/8/8/8/8/R3KB2 b - -").state) == pytest.approx(1 / 11)


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ("e2e4", ""),
        ("e2e4 f7f6 d1h5", "check"),
        ("f2f3 e7e5 g2g4 d8h4", "checkmate"),
        ("7k/5Q2/6K1/8/8/8/8/8 b", "stalemate"),
        ("7k/8/6K1/8/8/8/8/8 b", "neither side can mate"),
        ("7k/8/6K1/8/8/8/8/R7 b - - 100 90", "fifty moves each without a capture or a pawn's move"),
        (" ".join(["g1f3 g8f6 f3g1 f6g8"] * 2), "the position came three times"),
    ],
)
def test_the_board_says_check_and_how_a_game_ended(text, remark):
    assert CHESS.position(text).view.remark == remark


def test_a_promotion_is_chosen_by_the_piece():
    clicks = {click.name: (click.cells, click.choice) for click in GARDNER.position("5/P3k/5/5/4K w").view.clicks}
    assert clicks["a4a5q"] == ((5, 0), "queen") and clicks["a4a5n"] == ((5, 0), "knight")
    assert clicks["e1e2"] == ((24, 19), "")


def test_a_damaged_state_of_gardner_is_seen_within_its_planes():
    """Nothing is taken en passant there, so it has no plane for that."""
    game, planes = registry.load("gardner").game, np.zeros((20, 5, 5), np.float32)
    state = game.start().state.copy()
    state[FLAGS] |= np.uint64(40) << EN_PASSANT
    game.rules.observe(state, planes[: len(game.start().observation)])
    assert planes[:15].any() and not planes[15:].any()
