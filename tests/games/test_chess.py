"""Chess and Gardner's chess against published counts, and in step with python-chess and pyffish.

The versions that the differences below are known of: python-chess 1.11.2, pyffish 0.0.90, OpenSpiel 2.0.2.
"""

import random

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.game import Position
from alphazero.game.kernels import Kernels
from games.chess.rules import ends_of
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
    """A board of pyffish, a library of Fairy-Stockfish."""

    def __init__(self):
        self.program = pytest.importorskip("pyffish")
        self.start = self.now = self.program.start_fen("gardner")
        self.quiet: list[str] = []
        self.all: list[str] = []

    def moves(self) -> list[str]:
        return self.program.legal_moves("gardner", self.now, [])

    def end(self) -> str:
        if not self.moves():
            return "mate" if self.program.gives_check("gardner", self.now, []) else "stalemate"
        if all(self.program.has_insufficient_material("gardner", self.now, [])):
            return "dead"
        is_drawn, _ = self.program.is_optional_game_end("gardner", self.start, self.quiet)
        return "" if not is_drawn else "fifty" if int(self.now.split()[4]) >= 100 else "threefold"

    def push(self, word: str) -> None:
        self.all.append(word)
        self.quiet.append(word)
        self.now = self.program.get_fen("gardner", self.now, [word])
        if self.now.split()[4] == "0":
            self.start, self.quiet = self.now, []

    def fen(self) -> str:
        return self.now

    def history(self) -> str:
        return " ".join(self.all)


@pytest.mark.parametrize("games", [16, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("game", "make_other"), [(CHESS, PythonChess), (GARDNER, Fairy)], ids=["chess", "gardner"])
def test_random_games_are_those_of_another_program(game, make_other, games: int):
    trial = InStep(game, seed=games)
    for first in range(0, games, 50):
        trial.play(min(50, games - first), make_other)
    print(trial.ends)
    assert sum(trial.ends.values()) == games
