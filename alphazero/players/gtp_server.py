"""One of our players as an engine that speaks the Go Text Protocol, version 2.

https://www.lysator.liu.se/~gunnar/gtp/gtp2-spec-draft2/gtp2-spec.html. A player that searches also knows
`kata-analyze`, `kata-genmove_analyze` and the same with `lz-`, as
https://github.com/lightvector/KataGo/blob/master/docs/GTP_Extensions.md describes them.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
import time
from collections.abc import Callable, Mapping
from typing import TextIO

import numpy as np

from alphazero._version import __version__
from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import InputError, printable
from alphazero.game import Position
from alphazero.game.reading.gtp_words import COLOURS, COLUMNS, GtpWords, points_of
from alphazero.players import gtp_go
from alphazero.players.gtp_go import Command, Refused, number_of
from alphazero.players.net_players import SearchPlayer
from alphazero.players.player import Player
from alphazero.search.analysis import Analysis, Line

MOST_SIMULATIONS = 20_000
"""Most simulations of one analysis; fewer in games with many actions, whose trees take more memory."""
MOST_EDGES = 1 << 22
"""Most edges that one analysis adds to its tree: about 200 MB with what the tree keeps of the last position."""
ANALYSES = ("kata-analyze", "kata-genmove_analyze", "lz-analyze", "lz-genmove_analyze")
INTERVAL = "100"
"""Hundredths of a second between two reports of an analysis, by default."""


class Server:
    """One player at one board; `handle` answers one line of the protocol."""

    def __init__(self, loaded: LoadedGame, player: Player, out: TextIO):
        self._game, self._player, self._number = loaded.game, player, 0
        self._say = functools.partial(print, end="", file=out, flush=True)
        self._words: GtpWords = loaded.gtp_words(loaded.game)
        self._points = points_of(loaded.game, self._words)
        self._positions = [loaded.game.start()]
        """The start position and the one after each `play` and `genmove`; a pass left out has no entry of its own."""
        self._analyses: dict[int, Analysis] = {}
        """Prepared searches by their number of simulations."""
        self._commands = self._protocol()
        self._names = sorted([*self._commands, "quit", *(ANALYSES if isinstance(player, SearchPlayer) else [])])

    @property
    def position(self) -> Position:
        """The position on the board."""
        return self._positions[-1]

    def handle(self, line: str, interrupted: Callable[[], bool] = lambda: True) -> bool:
        """Writes the answer to a line; returns False after `quit`. An analysis goes on until `interrupted()`."""
        line = re.sub(r"[\x00-\x08\x0a-\x1f\x7f]", "", line.partition("#")[0]).strip()
        match = re.fullmatch(r"(\d+\b)?\s*(\S*)\s*(.*)", line)
        assert match is not None
        number, command, words = match[1] or "", match[2], match[3].split()
        if not command:
            return True
        try:
            if command not in self._names:
                raise Refused("unknown command")
            if command in ANALYSES:
                self._analyze(number, command, words, interrupted)
                return True
            sign, text = "=", self._commands[command](words) if command != "quit" else ""
        except (Refused, InputError) as error:
            sign, text = "?", " ".join(str(error).split())
        # an empty line would end the answer
        self._say(f"{sign}{number} " + re.sub(r"\n[ \t]*(?=\n)", "\n ", text.rstrip()) + "\n\n")
        return command != "quit"

    def _protocol(self) -> dict[str, Command]:
        offers = ["plist/Best Move/reg_genmove %c", "string/Board/showboard", "string/Result/final_score"]
        offers += ["plist/Legal Moves/gogui-rules_legal_moves"] if self._points else []
        rules: dict[str, Command] = {  # by which GoGui learns a game that it does not know
            "gogui-rules_game_id": lambda words: self._words.name.lower(),
            "gogui-rules_board_size": lambda words: str(self._words.rows),
            "gogui-rules_board": lambda words: _diagram(self.position, self._points, self._words.rows),
            "gogui-rules_legal_moves": self._legal_moves,
            "gogui-rules_side_to_move": lambda words: COLOURS[self.position.to_play],
            "gogui-rules_final_result": lambda words: self._result("black wins", "draw", "white wins"),
        }
        return {
            **(rules if self._points else {}),
            "protocol_version": lambda words: "2",
            "name": lambda words: f"alphazero {self._player.name}",
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
            **dict.fromkeys(("time_settings", "time_left", "kgs-time_settings"), lambda words: ""),
            **dict.fromkeys(("gogui-analyze_commands", "hexgui-analyze_commands"), lambda words: "\n".join(offers)),
            **gtp_go.commands(self._game, self._words, self._points, self._positions),
        }

    # --- the board ---

    def _set_game(self, words: list[str]) -> str:
        if " ".join(words).lower() != self._words.name.lower():
            raise Refused(f"this engine plays {self._words.name}")
        return self._clear_board(words)

    def _set_size(self, words: list[str]) -> str:
        if words != [str(self._words.columns), str(self._words.rows)]:
            raise Refused("unacceptable size")
        return self._clear_board(words)

    def _set_komi(self, words: list[str]) -> str:
        """Any komi is accepted in a game that has none, and changes nothing."""
        if number_of(" ".join(words), float, "komi") != self._words.komi is not None:
            raise Refused(f"the komi of this game is {self._words.komi:g}")
        return ""

    def _clear_board(self, words: list[str]) -> str:
        self._positions[:] = [self._game.start()]
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
        played = _after_swap(self.position, self._points, _colour(words[0]), words[1].upper())
        if played is None:
            position = self._turn_of(words[0])
            try:
                played = self._after(position, self._words.action(position, words[1]))
            except InputError:
                raise Refused("illegal move") from None
        self._positions.append(played)
        return ""

    def _turn_of(self, word: str) -> Position:
        """The position with that colour to move: the one on the board, or the one after a pass that was left out.

        After two passes Go goes on from the position before them, as where players do not agree on dead stones.
        """
        player, position = _colour(word), gtp_go.before_passes(self.position, self._words)
        if position.terminal:
            raise Refused("the game is over")
        if position.to_play == player:
            return position
        with contextlib.suppress(InputError):
            passed = position.play(self._words.action(position, "pass"))
            if passed.to_play == player and not passed.terminal:
                return passed
        raise Refused(f"illegal move: it is {COLOURS[position.to_play]}'s turn")

    def _after(self, position: Position, action: int) -> Position:
        """The position after an action in that of `_turn_of`; one more pass does not change a game that is over."""
        is_pass = self._words.vertex(position, action) == "pass"
        return self.position if self.position.terminal and is_pass else position.play(action)

    def _result(self, black: str, draw: str, white: str) -> str:
        """The word for the one who has won."""
        if not self.position.terminal:
            raise Refused("cannot score: the game is not over")
        return {1: black, 0: draw, -1: white}[self.position.outcome]

    def _generate_move(self, words: list[str]) -> str:
        position, action = self._choose(words)
        self._positions.append(self._after(position, action))
        return self._words.vertex(position, action)

    def _choose(self, words: list[str]) -> tuple[Position, int]:
        """The position in which that colour is to move, and the player's action there."""
        position = self._turn_of(words[0] if words else "")
        at = np.array([self._number]), np.array([position.ply])
        return position, int(self._player.select_actions(position.state[None].copy(), *at)[0])

    def _legal_moves(self, words: list[str]) -> str:
        """Legal points and passes; a Go board has no place for a swap."""
        vertices = [self._words.vertex(self.position, action) for action in self.position.legal_actions]
        return " ".join(vertex for vertex in vertices if vertex in {"pass", *self._points.values()})

    # --- analysis ---

    def _analyze(self, number: str, command: str, words: list[str], interrupted: Callable[[], bool]) -> None:
        """Reports at intervals, until it is interrupted or, if it is to move, until its search is done; then plays."""
        colour, seconds, most_moves = _analysis_options(words)
        position = self._turn_of(colour or COLOURS[self.position.to_play])
        assert isinstance(self._player, SearchPlayer)
        moves = "genmove" in command
        room = min(MOST_SIMULATIONS, max(1, MOST_EDGES // self._game.num_actions))
        room = self._player.num_simulations if moves else room
        analysis = self._analyses[room] = self._analyses.get(room) or self._player.analysis(room)
        self._say(f"={number}\n")
        try:
            analysis.begin(position)
            next_report = time.monotonic() + seconds
            while not (analysis.finished if moves else interrupted()):
                if analysis.finished:
                    time.sleep(0.01)
                    continue
                analysis.step()
                if time.monotonic() >= next_report or analysis.finished:
                    next_report = time.monotonic() + seconds
                    said = enumerate(analysis.lines()[:most_moves])
                    self._say(" ".join(_info(self._words, command, position, *each) for each in said) + "\n")
            if moves:
                action = self._player.choose_after(analysis, self._number, position.ply)
                self._positions.append(self._after(position, action))
                self._say(f"play {self._words.vertex(position, action)}\n")
        except InputError as error:  # the answer has begun: it can be no refusal any more
            print("error: " + printable(" ".join(str(error).split())), file=sys.stderr)
        self._say("\n")


def _after_swap(start: Position, points: Mapping[int, str], player: int, point: str) -> Position | None:
    """The position in which the other player has swapped: HexGui clears the board and sends this stone alone."""
    if start.ply or start.to_play == player or len(points) != start.game.num_actions - 1:
        return None
    for first in map(start.play, start.legal_actions):
        for second in [first.play(action) for action in first.legal_actions if action not in points]:
            if [(points[piece.cell], piece.player) for piece in start.game.pieces(second)] == [(point, player)]:
                return second
    return None


def _diagram(position: Position, points: Mapping[int, str], size: int) -> str:
    """The stones X and O of black and white, as a Go board has them: A1 is at the lower left."""
    stones = {points[piece.cell]: "O" if piece.player else "X" for piece in gtp_go.stones(position)}
    rows = [[stones.get(f"{letter}{row}", ".") for letter in COLUMNS[:size]] for row in range(size, 0, -1)]
    return "".join("\n" + " ".join(row) for row in rows)


def _info(words: GtpWords, command: str, position: Position, order: int, line: Line) -> str:
    """One move in the format of `kata` (KataGo) or `lz` (Leela Zero); the winrate counts a draw as half a win."""
    vertices, place, exact = [], position, command.startswith("kata")
    for action in line.moves:
        vertices.append(words.vertex(place, action))
        place = place.play(action)
    number = (lambda share: f"{share:.6f}") if exact else (lambda share: f"{round(10_000 * share)}")
    utility = f" utility {line.value:.6f}" if exact else ""
    return (
        f"info move {vertices[0]} visits {line.visits}{utility} winrate {number((1 + line.value) / 2)}"
        f" prior {number(line.prior)} order {order} pv {' '.join(vertices)}"
    )


def _analysis_options(words: list[str]) -> tuple[str, float, int]:
    """Reads `[colour] [hundredths of a second] [interval N] [maxmoves N]`: the colour, seconds and most moves.

    Ignores other pairs of KataGo, but for those that choose which moves are searched. These are refused.
    """
    colour = words[0] if words and words[0].lower() in ("b", "w", *COLOURS) else ""
    words = words[1:] if colour else words
    if words and words[0].isdigit():
        words = ["interval", *words]
    if len(words) % 2 or {"avoid", "allow"} & set(words):
        raise Refused("an analysis takes a colour, an interval and pairs of a key and a value, but no avoid or allow")
    values = {"interval": INTERVAL, "maxmoves": "1000000", **dict(zip(words[::2], words[1::2], strict=True))}
    interval, most_moves = (max(1, number_of(values[key], int, key)) for key in ("interval", "maxmoves"))
    return colour, interval / 100, int(most_moves)


def _colour(word: str) -> int:
    """0 for b or black, 1 for w or white."""
    colours = {"b": 0, "black": 0, "w": 1, "white": 1}
    if word.lower() not in colours:
        raise Refused("a colour is b, w, black or white")
    return colours[word.lower()]
