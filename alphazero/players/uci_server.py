"""One of our players as an engine that speaks the Universal Chess Interface (UCI).

https://www.shredderchess.com/chess-features/uci-universal-chess-interface.html. It thinks on a thread of its own, so
that it hears `stop` and `ponderhit`. The depth of a tree search is the length of its best line. The player is made, and
its search compiled, after `uciok`, for which programs wait no longer than half a minute.
"""

from __future__ import annotations

import functools
import math
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from itertools import pairwise
from typing import TextIO

import numpy as np

from alphazero._version import __version__
from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import InputError, UnknownName, printable
from alphazero.game import Position
from alphazero.game.reading.san import with_fen
from alphazero.game.record import words_of
from alphazero.machine import Threads
from alphazero.players.net_players import SearchPlayer
from alphazero.players.player import Player
from alphazero.search.analysis import Analysis, Line
from alphazero.search.tree import bytes_of_simulation
from alphazero.settings import check_range

MOST_SIMULATIONS, MOST_BYTES = 200_000, 1 << 28
"""Most simulations of one search, and the memory of its tree."""
MOST_LINES = 100
INTERVAL = 0.5
"""Seconds between two reports of a search."""
PATIENCE = 8.0
"""Seconds until `isready` is answered though the search is not compiled: Cute Chess gives up after 15, python-chess
after 10. The first `go` waits for the rest."""
MOVES_LEFT, OVERHEAD = 25, 0.05
"""Moves that a clock lasts for if nobody says how many; seconds of each move that pass outside of the search."""


class UciServer:
    """One player at one board; `handle` answers one line of the protocol."""

    def __init__(self, loaded: LoadedGame, name: str, make: Callable[[], Player], out: TextIO):
        """`make` gives the player, which plays many games at a time, and which is called `name`."""
        self._notation = with_fen(loaded.game)
        self._variant = self._notation.name
        self._game, self._name, self._make, self._number = loaded.game, name, make, 0
        self._most = max(1, min(MOST_SIMULATIONS, MOST_BYTES // bytes_of_simulation(loaded.game)))
        self._numbers = {"simulations": 0, "multipv": 1}
        self._say = functools.partial(print, file=out, flush=True)
        self._position: Position | None = loaded.game.start()
        """None after one that was refused."""
        self._read: tuple[list[str], list[str], Position] = [], [], loaded.game.start()
        """The words of the newest board and of its moves, and the position after them: most positions go on from it."""
        self._late = 0.0
        """The seconds that reading it took, while a clock may have run: `go` comes at once."""
        self._analysis: tuple[int, Analysis] | None = None
        """The newest search, which a game goes on with, and its simulations."""
        self._thread: threading.Thread | None = None
        self._stopped, self._ponderhit = threading.Event(), threading.Event()

    @functools.cached_property
    def _player(self) -> Future[Player]:
        """The player, which is begun when it is first asked for."""

        def prepared() -> Player:
            player = self._make()
            if isinstance(player, SearchPlayer):  # it compiles before a clock runs
                player.analysis(1).run(self._game.start())
            return player

        return Threads(1).submit(prepared)

    def handle(self, line: str, interrupted: object = None) -> bool:
        """Answers a line; returns False after `quit`. What the protocol does not have is passed over, as it asks.

        Raises what hinders the player.
        """
        command, *words = line.split() or [""]
        if command == "uci":
            self._introduce()
        wait([self._player], {"isready": PATIENCE, "quit": None}.get(command, 0))
        if self._player.done():
            self._player.result()
        try:
            if command in ("stop", "quit", "ucinewgame", "position", "go"):
                self._halt()
            if command == "isready":
                self._say("readyok")
            elif command == "setoption":
                self._set_option(" ".join(words))
            elif command == "ucinewgame":
                self._number, self._analysis = self._number + 1, None
            elif command == "position":
                begin, self._position = time.monotonic(), None
                self._position = self._read_position(words)
                self._late = time.monotonic() - begin
            elif command == "go":
                self._stopped.clear()
                self._ponderhit.clear()
                self._thread = threading.Thread(target=self._think, args=(self._position, words), daemon=True)
                self._thread.start()
            elif command == "ponderhit":
                self._ponderhit.set()
        except InputError as error:
            self._complain(error)
        return command != "quit"

    def _halt(self) -> None:
        """Ends the search, if one is going on, whose best move is said."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _complain(self, error: InputError) -> None:
        self._say("info string " + printable(" ".join(str(error).split())))

    def _introduce(self) -> None:
        self._say(
            f"id name alphazero {__version__} {self._name}\nid author alphazero\n"
            f"option name Simulations type spin default 0 min 0 max {self._most}\n"
            f"option name MultiPV type spin default 1 min 1 max {MOST_LINES}\n"
            "option name Ponder type check default false\n"
            f"option name UCI_Variant type combo default {self._variant} var {self._variant}\nuciok"
        )

    def _set_option(self, text: str) -> None:
        found = re.fullmatch(r"name (.+?)(?: value (.*))?", text)
        name, value = (found[1].lower(), found[2] or "") if found else ("", "")
        if name in self._numbers:
            least, most = (0, self._most) if name == "simulations" else (1, MOST_LINES)
            number = int(value) if re.fullmatch(r"\d{1,9}", value) else -1
            check_range(name, number, least, most)
            self._numbers[name] = number
        elif name == "uci_variant" and value != self._variant:
            raise UnknownName("variant", value, [self._variant])
        elif name not in ("uci_variant", "ponder"):
            raise UnknownName("option", name, ["Simulations", "MultiPV", "Ponder", "UCI_Variant"])

    def _read_position(self, words: list[str]) -> Position:
        """`startpos` or `fen` with a board, then `moves`."""
        end = words.index("moves") if "moves" in words else len(words)
        board, moves = words[:end], words[end + 1 :]
        known, played, position = self._read
        if board != known or moves[: len(played)] != played:
            position = self._unclaimed(self._game.position(" ".join(board[1:]) if board[:1] == ["fen"] else ""))
            played = []
        for word in moves[len(played) :]:
            position = self._unclaimed(position.play(position.parse(word)))
        self._read = board, moves, position
        return position

    def _unclaimed(self, position: Position) -> Position:
        """The position; after a draw that elsewhere has to be claimed, without its past, so that the game goes on."""
        if not position.terminal or position.outcome:
            return position
        *board, _, number = self._notation.fen_of(position).split()
        return self._game.position(" ".join([*board, "0", number]))

    # --- on the other thread ---

    def _think(self, position: Position | None, words: list[str]) -> None:
        """Says the best move by the limits behind `go`, and the expected answer to it."""
        best = list[str]()
        try:
            if position is not None and not position.terminal:
                best = words_of(position, self._choose(position, words)[:2])
        except InputError as error:
            self._complain(error)
        self._say("bestmove " + (" ponder ".join(best) or "(none)"))

    def _choose(self, position: Position, words: list[str]) -> tuple[int, ...]:
        """The action, and the expected ones after it."""
        begin = time.monotonic()
        clock_begin, self._late = begin - self._late, 0.0
        player = self._player.result()
        nodes, seconds, depth = _limits(words, "wb"[position.to_play])
        waits, at = not {"infinite", "ponder"}.isdisjoint(words), (np.array([self._number]), np.array([position.ply]))
        named = words[words.index("searchmoves") + 1 :] if "searchmoves" in words else []
        among = [action for action in position.legal_actions if position.format(action) in named]
        if not isinstance(player, SearchPlayer):
            if named:
                self._complain(InputError(f"{player.name} does not search, so searchmoves is passed over"))
            best = int(player.select_actions(position.state[None].copy(), *at)[0])
            while waits and not self._ponderhit.is_set() and not self._stopped.wait(0.01):
                pass
            return (best,)
        usual = self._numbers["simulations"] or player.num_simulations
        nodes = min(nodes or (self._most if seconds or depth or "mate" in words else usual), self._most)
        room = self._most if waits else nodes
        if self._analysis is None or self._analysis[0] != room:
            self._analysis = room, player.analysis(room)
        analysis, told = self._analysis[1], time.monotonic()
        analysis.begin(position, among)
        kept, done = analysis.simulations, False
        while not done:
            if waits and self._ponderhit.is_set():
                waits, clock_begin = False, time.monotonic()
            if analysis.finished:
                time.sleep(0.01 * waits)
            else:
                analysis.step()
            now, count = time.monotonic(), analysis.simulations
            over = seconds is not None and now >= clock_begin + seconds
            deep = depth > 0 and len(analysis.lines()[0].moves) >= depth
            enough = analysis.settled or analysis.finished or count >= nodes or over or deep
            done = self._stopped.is_set() or (enough and not waits)
            if done or now >= told + INTERVAL:
                told, passed = now, max(1, round(1000 * (now - begin)))
                rate = 1000 * (count - kept) // passed
                for order, line in enumerate(analysis.lines()[: self._numbers["multipv"]], 1):
                    words = words_of(position, line.moves)
                    self._say(
                        f"info depth {len(words)} multipv {order} score {_score(line)} nodes {count} nps {rate} "
                        f"time {passed} pv {' '.join(words)}"
                    )
        action = player.choose_after(analysis, self._number, position.ply)
        return next((line.moves for line in analysis.lines() if line.action == action), (action,))


def _limits(words: list[str], colour: str) -> tuple[int, float | None, int]:
    """The nodes, the seconds by a limit or by the clock of a colour, and the depth that `go` gives the search.

    Of nodes and depth 0 is none.
    """
    numbers = {name: int(word) for name, word in pairwise(words) if re.fullmatch(r"-?\d{1,18}", word)}
    to_go = numbers.get("movestogo", 0)  # some programs send 0 for none
    nodes, depth = (max(0, numbers.get(name, 0)) for name in ("nodes", "depth"))
    if "movetime" in numbers:
        return nodes, max(0.01, numbers["movetime"] / 1000 - OVERHEAD), depth
    if (left := numbers.get(f"{colour}time")) is None:
        return nodes, None, depth
    share = left / max(2, to_go if to_go > 0 else MOVES_LEFT) + 0.75 * numbers.get(f"{colour}inc", 0)
    return nodes, max(0.01, min(share, 0.8 * left) / 1000 - OVERHEAD), depth


def _score(line: Line) -> str:
    """Mate in so many moves at most, negative for a loss; where none is proven hundredths of a pawn."""
    return f"mate {int(line.value) * ((line.plies + 1) // 2)}" if line.plies else f"cp {centipawns(line.value)}"


def centipawns(value: float) -> int:
    """A value in [-1, 1] in hundredths of a pawn, as Leela Chess Zero tells it: 100 for 0.54."""
    return round(90 * math.tan(1.5637541897 * value))
