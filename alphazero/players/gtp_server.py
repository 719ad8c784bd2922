"""One of our players as an engine that speaks the Go Text Protocol, version 2.

https://www.lysator.liu.se/~gunnar/gtp/gtp2-spec-draft2/gtp2-spec.html. A player that searches also knows
`kata-analyze` and `lz-analyze`, as KataGo's documentation describes them
(https://github.com/lightvector/KataGo/blob/master/docs/GTP_Extensions.md): the search goes on until the next command
arrives, up to MOST_SIMULATIONS, and reports at intervals. `kata-genmove_analyze` and `lz-genmove_analyze` report while
the player searches for a move, and play it.
"""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

import numpy as np

from alphazero._version import __version__
from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import InputError, InvalidSetting, printable
from alphazero.game import Position
from alphazero.game.gtp_words import COLOURS, COLUMNS, GtpWords, points_of
from alphazero.players.net_players import SearchPlayer
from alphazero.players.player import Player
from alphazero.search.analysis import Analysis, Line

MOST_SIMULATIONS = 20_000
"""Most simulations of one analysis; fewer in games with many actions, whose trees take more memory."""
MOST_EDGES = 1 << 22
"""Most edges that one analysis adds to its tree: about 200 MB with what the tree keeps of the last position."""
ANALYSES = ("kata-analyze", "kata-genmove_analyze", "lz-analyze", "lz-genmove_analyze")
INTERVAL = 100
"""Hundredths of a second between two reports of an analysis, by default."""


class Refused(Exception):
    """A command cannot be carried out; `str(error)` is the answer after the question mark."""


class Server:
    """One player at one board; `handle` answers one line of the protocol."""

    def __init__(self, loaded: LoadedGame, player: Player, out: TextIO):
        if player.one_at_a_time:
            raise InvalidSetting(
                f"{player.name} cannot be offered as an engine: choose a player that is in this program"
            )
        self._game, self._player, self._out = loaded.game, player, out
        self._words: GtpWords = loaded.gtp_words(loaded.game)
        self._points = points_of(loaded.game, self._words)
        self._positions = [loaded.game.start()]
        """The start position and the one after each `play` and `genmove`; a pass left out has no entry of its own."""
        self._number = 0
        self._analyses: dict[int, Analysis] = {}
        """Prepared searches by their number of simulations."""
        self._commands: dict[str, Callable[[list[str]], str]] = {
            "protocol_version": lambda words: "2",
            "name": lambda words: f"alphazero {player.name}",
            "version": lambda words: __version__,
            "known_command": lambda words: "true" if words and words[0] in self._names else "false",
            "list_commands": lambda words: "\n".join(self._names),
            "list_games": lambda words: self._words.name,
            "set_game": self._set_game,
            # as KataGo and Benzene do, we hear columns and rows here, too; HexGui says nothing else
            "boardsize": lambda words: self._set_size(words * 2 if len(words) == 1 else words),
            "rectangular_boardsize": self._set_size,
            "clear_board": self._clear_board,
            "komi": self._set_komi,
            "play": self._play,
            "genmove": self._generate_move,
            "reg_genmove": lambda words: self._words.vertex(*self._choose(words)),
            "undo": self._undo,
            "showboard": lambda words: f"\n{self.position}",
            "final_score": lambda words: self._result("B+1", "0", "W+1"),  # games have results and no points
            "cputime": lambda words: f"{time.process_time():.2f}",
            # a player takes as long as its simulations do, which programs that run tournaments ask us to know
            "time_settings": lambda words: "",
            "time_left": lambda words: "",
            "gogui-analyze_commands": lambda words: "\n".join(self._offers),
            "hexgui-analyze_commands": lambda words: "\n".join(self._offers),
        }
        self._offers = ["plist/Best Move/reg_genmove %c", "string/Board/showboard", "string/Result/final_score"]
        """The menu entries of GoGui and HexGui."""
        if self._points:
            self._commands |= self._rules()
            self._offers.append("plist/Legal Moves/gogui-rules_legal_moves")
        self._names = sorted([*self._commands, "quit", *(ANALYSES if isinstance(player, SearchPlayer) else [])])

    @property
    def position(self) -> Position:
        """The position on the board."""
        return self._positions[-1]

    def handle(self, line: str, interrupted: Callable[[], bool] = lambda: True) -> bool:
        """Writes the answer to a line; returns False after `quit`. A line without a command gets no answer.

        An analysis goes on until `interrupted()` is true.
        """
        line = re.sub(r"[\x00-\x08\x0a-\x1f\x7f]", "", line.partition("#")[0]).strip()
        match = re.fullmatch(r"(\d+\b)?\s*(\S*)\s*(.*)", line)
        assert match is not None
        number, command, words = match[1] or "", match[2], match[3].split()
        if not command:
            return True
        try:
            if command in ANALYSES and command in self._names:
                self._analyze(number, command, words, interrupted)
                return True
            if command != "quit" and command not in self._commands:
                raise Refused("unknown command")
            answer = "=" + number, self._commands[command](words) if command != "quit" else ""
        except (Refused, InputError) as error:
            answer = "?" + number, " ".join(str(error).split())
        # an empty line would end the answer
        text = re.sub(r"\n[ \t]*(?=\n)", "\n ", answer[1].rstrip()) if answer[1] else ""
        self._say(f"{answer[0]} {text}\n\n")
        return command != "quit"

    def _say(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    # --- the board ---

    def _set_game(self, words: list[str]) -> str:
        if " ".join(words).lower() != self._words.name.lower():
            raise Refused(f"this engine plays {self._words.name}")
        return self._clear_board(words)

    def _set_size(self, words: list[str]) -> str:
        """Takes the columns and the rows."""
        if words != [str(self._words.columns), str(self._words.rows)]:
            raise Refused("unacceptable size")
        return self._clear_board(words)

    def _set_komi(self, words: list[str]) -> str:
        """Any komi is accepted in a game that has none, and changes nothing."""
        komi = _number(words, float, "komi is a number")
        if self._words.komi is not None and komi != self._words.komi:
            raise Refused(f"the komi of this game is {self._words.komi:g}")
        return ""

    def _clear_board(self, words: list[str]) -> str:
        self._positions = [self._game.start()]
        self._number += 1
        return ""

    def _undo(self, words: list[str]) -> str:
        if len(self._positions) == 1:
            raise Refused("cannot undo")
        self._positions.pop()
        return ""

    def _play(self, words: list[str]) -> str:
        if len(words) != 2:
            raise Refused("play takes a colour and a vertex")
        swapped = self._after_swap(_colour(words[0]), words[1].upper())
        if swapped is not None:
            self._positions.append(swapped)
            return ""
        position = self._turn_of(words[0])
        try:
            action = self._words.action(position, words[1])
        except InputError:
            raise Refused("illegal move") from None
        self._positions.append(position.play(action))
        return ""

    def _after_swap(self, player: int, point: str) -> Position | None:
        """The position in which the other player has swapped, and has the only stone at `point`.

        HexGui tells a swap by clearing the board and sending this stone alone.
        """
        start = self.position
        if start.ply or start.to_play == player or len(self._points) != self._game.num_actions - 1:
            return None
        for first in map(start.play, start.legal_actions):
            for second in [first.play(action) for action in first.legal_actions if action not in self._points]:
                stones = [(self._points[piece.cell], piece.player) for piece in self._game.pieces(second)]
                if stones == [(point, player)]:
                    return second
        return None

    def _turn_of(self, word: str) -> Position:
        """The position with that colour to move: the one on the board, or the one after a pass that was left out."""
        player = _colour(word)
        if self.position.terminal:
            raise Refused("the game is over")
        if self.position.to_play != player:
            with contextlib.suppress(InputError):
                passed = self.position.play(self._words.action(self.position, "pass"))
                if passed.to_play == player and not passed.terminal:
                    return passed
            raise Refused(f"illegal move: it is {COLOURS[self.position.to_play]}'s turn")
        return self.position

    def _result(self, black: str, draw: str, white: str) -> str:
        """The word for the one who has won."""
        if not self.position.terminal:
            raise Refused("cannot score: the game is not over")
        return {1: black, 0: draw, -1: white}[self.position.outcome]

    def _generate_move(self, words: list[str]) -> str:
        position, action = self._choose(words)
        self._positions.append(position.play(action))
        return self._words.vertex(position, action)

    def _choose(self, words: list[str]) -> tuple[Position, int]:
        """The position in which that colour is to move, and the player's action there."""
        position = self._turn_of(words[0] if words else "")
        return position, int(self._player.select_actions(position.state[None].copy(), *self._keys(position))[0])

    def _keys(self, position: Position) -> tuple[np.ndarray, np.ndarray]:
        return np.array([self._number]), np.array([position.ply])

    def _rules(self) -> dict[str, Callable[[list[str]], str]]:
        """The commands from which GoGui learns the rules of a game that it does not know."""
        return {
            "gogui-rules_game_id": lambda words: self._words.name.lower(),
            "gogui-rules_board_size": lambda words: str(self._words.rows),
            "gogui-rules_board": self._diagram,
            "gogui-rules_legal_moves": self._legal_moves,
            "gogui-rules_side_to_move": lambda words: COLOURS[self.position.to_play],
            "gogui-rules_final_result": lambda words: self._result("black wins", "draw", "white wins"),
        }

    def _legal_moves(self, words: list[str]) -> str:
        """Points and passes; a Go board has no place for a swap."""
        vertices = [self._words.vertex(self.position, action) for action in self.position.legal_actions]
        return " ".join(vertex for vertex in vertices if vertex == "pass" or vertex in self._points.values())

    def _diagram(self, words: list[str]) -> str:
        """The stones X and O of black and white, as a Go board has them: A1 is at the lower left."""
        pieces = self._game.pieces(self.position)
        stones = {self._points[piece.cell]: "O" if piece.player else "X" for piece in pieces}
        size = self._words.rows
        rows = [[stones.get(f"{letter}{row}", ".") for letter in COLUMNS[:size]] for row in range(1, size + 1)]
        return "".join("\n" + " ".join(row) for row in reversed(rows))

    # --- analysis ---

    def _analyze(self, number: str, command: str, words: list[str], interrupted: Callable[[], bool]) -> None:
        """Reports at intervals, until it is interrupted or, if it is to move, until its search is done; then plays."""
        options = _analysis_options(words)
        position = self._turn_of(options.colour) if options.colour else self._turn_of(COLOURS[self.position.to_play])
        assert isinstance(self._player, SearchPlayer)
        room = min(MOST_SIMULATIONS, max(1, MOST_EDGES // self._game.num_actions))
        moves = not command.endswith("-analyze")
        analysis = self._make_analysis(self._player, self._player.num_simulations if moves else room)
        self._say(f"={number}\n")
        try:
            self._go_on(analysis, position, command.partition("-")[0], options, interrupted if not moves else None)
            if moves:
                action = self._player.choose_after(analysis, self._number, position.ply)
                self._positions.append(position.play(action))
                self._say(f"play {self._words.vertex(position, action)}\n")
        except InputError as error:  # the answer has begun: it can be no refusal any more
            print("error: " + printable(" ".join(str(error).split())), file=sys.stderr)
        self._say("\n")

    def _go_on(
        self,
        analysis: Analysis,
        position: Position,
        dialect: str,
        options: _AnalysisOptions,
        interrupted: Callable[[], bool] | None,
    ) -> None:
        """Searches and reports, until it is interrupted; None: until the search is done."""
        analysis.begin(position)
        next_report = time.monotonic() + options.seconds
        while not (interrupted() if interrupted else analysis.finished):
            if analysis.finished:
                time.sleep(0.01)
                continue
            analysis.step()
            if time.monotonic() >= next_report or analysis.finished:
                next_report = time.monotonic() + options.seconds
                self._report(dialect, position, analysis.lines()[: options.most_moves])

    def _make_analysis(self, player: SearchPlayer, num_simulations: int) -> Analysis:
        if num_simulations not in self._analyses:
            self._analyses[num_simulations] = player.analysis(num_simulations)
        return self._analyses[num_simulations]

    def _report(self, dialect: str, position: Position, lines: list[Line]) -> None:
        self._say(" ".join(self._info(dialect, position, order, line) for order, line in enumerate(lines)) + "\n")

    def _info(self, dialect: str, position: Position, order: int, line: Line) -> str:
        """One move in the format of `kata` (KataGo) or `lz` (Leela Zero); the winrate counts a draw as half a win."""
        vertices, place = [], position
        for action in line.moves:
            vertices.append(self._words.vertex(place, action))
            place = place.play(action)
        number = (lambda share: f"{share:.6f}") if dialect == "kata" else (lambda share: f"{round(10_000 * share)}")
        utility = f" utility {line.value:.6f}" if dialect == "kata" else ""
        prior = "" if line.prior is None else f" prior {number(line.prior)}"
        return (
            f"info move {vertices[0]} visits {line.visits}{utility} winrate {number((1 + line.value) / 2)}"
            f"{prior} order {order} pv {' '.join(vertices)}"
        )


@dataclass(frozen=True)
class _AnalysisOptions:
    colour: str = ""
    seconds: float = INTERVAL / 100
    most_moves: int = 1_000_000


def _analysis_options(words: list[str]) -> _AnalysisOptions:
    """Reads `[colour] [hundredths of a second] [interval N] [maxmoves N]`.

    Ignores other pairs of KataGo, but for those that choose which moves are searched. These are refused.
    """
    words = list(words)
    colour = words.pop(0) if words and not words[0].isdigit() and words[0].lower() in ("b", "w", *COLOURS) else ""
    interval, most_moves = float(INTERVAL), float(_AnalysisOptions.most_moves)
    if words and words[0].isdigit():
        interval = _number([words.pop(0)], int, "")
    if {"avoid", "allow"} & set(words):
        raise Refused("all legal moves are searched: leave avoid and allow out")
    if len(words) % 2:
        raise Refused("after the colour and the interval, an analysis takes pairs of a key and a value")
    for key, value in zip(words[::2], words[1::2], strict=True):
        if key in ("interval", "maxmoves"):
            number = max(1, _number([value], int, f"{key} takes a whole number"))
            interval, most_moves = (number, most_moves) if key == "interval" else (interval, number)
    return _AnalysisOptions(colour, max(1.0, interval) / 100, int(most_moves))


def _number(words: list[str], kind: Callable[[str], float], complaint: str) -> float:
    try:
        (word,) = words
        return kind(word[:18])
    except ValueError:
        raise Refused(complaint) from None


def _colour(word: str) -> int:
    """0 for b or black, 1 for w or white."""
    for player, colour in enumerate(COLOURS):
        if word and word.lower() in (colour[0], colour):
            return player
    raise Refused("a colour is b, w, black or white")
