"""A program that speaks the Go Text Protocol as a player: `gtp:"gnugo --mode gtp"`.

https://www.lysator.liu.se/~gunnar/gtp/gtp2-spec-draft2/gtp2-spec.html. Commands have no ids, since not all engines
know them; ids in answers are ignored. The engine is sent the moves that it does not know yet, else the whole game.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
import threading
import time
import weakref
from collections import deque
from functools import partial
from typing import IO, Any

from alphazero import interruption
from alphazero.errors import IllegalAction, InvalidSetting, quote
from alphazero.game import Game, Position
from alphazero.game.gtp_words import COLOURS, GtpWords
from alphazero.invocation import WINDOWS
from alphazero.players.child_processes import end_program, start_program
from alphazero.players.player import FollowingPlayer, Forfeit

TIMEOUT = 60.0
"""Seconds to wait for an answer unless told otherwise."""
NEEDED = ("boardsize", "clear_board", "genmove", "play", "quit")
MAX_LINE, MAX_ANSWER = 1 << 16, 1 << 20
"""The characters that are read of a line at once, and those of the longest answer that an engine may give."""
GRACE = 1.0
"""Seconds that an engine has to end by itself."""


def split_command(line: str) -> list[str]:
    """The words of a program's command line, as a shell takes them; raises ValueError."""
    words = shlex.split(line, posix=not WINDOWS)  # a backslash is a part of a path there
    return [word.strip("\"'") for word in words] if WINDOWS else words


class EngineFault(Exception):
    """The engine did not answer as it should; `str(error)` says how, after the engine's name."""


class EngineEnded(EngineFault):
    """The engine's process has ended, or closed its output."""


class Refusal(EngineFault):
    """The engine refused a command, by an answer that begins with a question mark."""


class GtpProcess:
    """A program that speaks GTP; `log`, if given, keeps every line of the dialogue, commands behind `> `."""

    def __init__(self, command: list[str], timeout: float, log: list[str] | None = None):
        self._timeout, self._log = timeout, deque[str](maxlen=0) if log is None else log
        try:
            self._process = start_program(command, subprocess.PIPE)
        except (OSError, ValueError) as error:
            raise EngineFault(f"cannot be started: {getattr(error, 'strerror', None) or error}") from error
        pipes: tuple[Any, ...] = self._process.stdin, self._process.stdout, self._process.stderr
        self._stdin, self._stdout, errors = pipes
        self._complaints: deque[str] = deque(maxlen=1)
        self._overhearing = threading.Thread(target=_overhear, args=(errors, self._complaints), daemon=True)
        self._overhearing.start()
        self.close = weakref.finalize(self, _end, self._process, self._stdin, self._stdout)
        """Ends the program and its children; by itself when nobody has this object any more."""

        self.kill = partial(end_program, self._process)
        """Ends the program and its children at once, from any thread: while it thinks it does not hear a `quit`."""

    def ask(self, command: str) -> str:
        """The answer without its sign; raises EngineFault when there is none, or it is a refusal."""
        self._log.append(f"> {command}")
        # for the command and its whole answer, however slowly they go; a program that is killed is waited for no more
        begin, limit = time.monotonic(), threading.Timer(self._timeout, self.kill)
        limit.daemon = True
        limit.start()
        try:
            with contextlib.suppress(OSError):  # it has ended; its last words tell why
                self._stdin.write(command + "\n")
            sign, text = self._answer(command)
        except EngineEnded:
            if time.monotonic() - begin < self._timeout:
                raise
            raise EngineFault(f"has not answered {quote(command)} for {self._timeout:g} s") from None
        finally:
            limit.cancel()
        if sign == "?":
            raise Refusal(f"refused {quote(command)}: {text or 'it gave no reason'}")
        return text

    def _answer(self, command: str) -> tuple[str, str]:
        """The sign and the text of an answer, which an empty line ends."""
        lines, length = list[str](), 0
        while True:
            read = self._stdout.readline(MAX_LINE)
            if not read:
                raise EngineEnded(f"{self._last_words()} without an answer to {quote(command)}")
            # control characters mean nothing in the protocol, but for tabs, which are spaces
            line = re.sub(r"[\x00-\x1f\x7f]", "", read.replace("\t", " ")).rstrip()
            if line or lines:
                self._log.append(line)
                lines.append(line)
            if lines and not line:
                break
            length += len(read)
            if lines and lines[0][0] not in "=?":
                raise EngineFault(
                    f"answered {quote(lines[0])} to {quote(command)}, which is not GTP: it must begin with = or ?"
                )
            if length > MAX_ANSWER:
                raise EngineFault(f"gave an answer without end to {quote(command)}")
        return lines[0][0], re.sub(r"^[=?]\d*\s*", "", "\n".join(lines)).strip()

    def _last_words(self) -> str:
        """Tells how the program has ended, and its last complaint."""
        how = "closed its output"
        with contextlib.suppress(subprocess.TimeoutExpired):
            how = f"ended (exit code {self._process.wait(GRACE)})"
        self._overhearing.join(GRACE)
        return how + (f", saying {quote(self._complaints[0], 200)}" if self._complaints else "")


def _overhear(pipe: IO[str], complaints: deque[str]) -> None:
    with pipe, contextlib.suppress(ValueError, OSError):
        while line := pipe.readline(MAX_LINE):
            if line.strip():
                complaints.append(line.strip())


def _end(process: subprocess.Popen[str], stdin: IO[str], stdout: IO[str]) -> None:
    """Asks the program to quit, then kills it and its children."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        stdin.write("quit\n")
        if not interruption.asked():  # else this process has too little time to wait for one program after the other
            process.wait(GRACE)
    end_program(process)
    for pipe in (stdin, stdout):
        with contextlib.suppress(OSError):
            pipe.close()


class GtpPlayer(FollowingPlayer):
    """Lets an engine play. If it fails or plays an illegal move, it forfeits the game, and is started anew.

    Raises InvalidSetting if it does not start, at first or later, or cannot play such a game.
    """

    def __init__(
        self, game: Game, words: GtpWords, command: str, timeout: float = TIMEOUT, log: list[str] | None = None
    ):
        super().__init__(game)
        self.name = f"gtp:{command}"
        self._words, self._timeout, self._log = words, timeout, log
        try:
            self._command = split_command(command)
        except ValueError:  # a quotation mark that is not closed
            self._command = []
        if not self._command:
            raise InvalidSetting('gtp takes the command line of an engine, as in gtp:"gnugo --mode gtp"')
        self._engine: GtpProcess | None = None
        self._known: tuple[int, ...] | None = None
        """The actions on the engine's board; None: it is not set up."""
        self._hears_of_passes = True
        self._start("")

    def choose(self, position: Position, game: int) -> int:
        if position.is_set_up:
            raise InvalidSetting(f"{self.name} follows games from their start: it cannot play on from a board")
        try:
            vertex = self._ask_move(position)
        except EngineFault as fault:
            self._stop()
            raise Forfeit(str(fault)) from fault
        if vertex.lower() == "resign":
            self._known = None
            raise Forfeit("resigns")
        try:
            action = self._words.action(position, vertex)
        except IllegalAction:
            self._known = None  # it may have played that on its own board
            raise Forfeit(f"played {quote(vertex)}, which is not legal") from None
        self._known = (*position.actions, action)
        return action

    def interrupt(self) -> None:
        if self._engine is not None:
            self._engine.kill()  # whoever waits for its answer hears that it has ended

    def _ask_move(self, position: Position) -> str:
        again = "was to be started again, and "
        engine, known = self._engine or self._start(again), self._known
        if known is None or position.actions[: len(known)] != known:
            try:
                for command in self._set_up:
                    engine.ask(command)
            except EngineEnded:  # some engines play one game and leave
                self._stop()
                engine = self._start(again)
            known = ()
        earlier = self._game.position(known)
        for action in position.actions[len(known) :]:
            self._tell(engine, earlier, action)
            earlier = earlier.play(action)
        try:
            return engine.ask(f"genmove {COLOURS[position.to_play]}")
        except Refusal:
            if not self._must_pass(position):
                raise
            self._tell(engine, position, position.legal_actions[0])
            return "pass"

    def _tell(self, engine: GtpProcess, position: Position, action: int) -> None:
        """Tells the engine what was played. Some engines pass by themselves where they must, and refuse the word."""
        forced = self._must_pass(position)
        if forced and not self._hears_of_passes:
            return
        try:
            engine.ask(f"play {COLOURS[position.to_play]} {self._words.vertex(position, action)}")
        except Refusal:
            if not forced:
                raise
            self._hears_of_passes = False

    def _must_pass(self, position: Position) -> bool:
        return len(legal := position.legal_actions) == 1 and self._words.vertex(position, legal[0]) == "pass"

    def _start(self, note: str) -> GtpProcess:
        """A fresh process that is ready to play; raises InvalidSetting, so that a file that is gone loses no games."""
        try:
            engine = self._engine = GtpProcess(self._command, self._timeout, self._log)
            self._set_up = self._commands_for(engine)
            for command in self._set_up:
                engine.ask(command)
        except EngineFault as fault:
            self._stop()
            raise InvalidSetting(f"the engine {quote(self.name.removeprefix('gtp:'), 200)} {note}{fault}") from None
        self._known = ()
        return engine

    def _commands_for(self, engine: GtpProcess) -> list[str]:
        """The commands that set the board up for a game, which the engine is asked to play; raises EngineFault."""
        commands = engine.ask("list_commands").split()
        if missing := [command for command in NEEDED if command not in commands]:
            raise EngineFault(f"does not know {', '.join(missing)}, without which it cannot play")
        if "set_game" in commands:
            names = engine.ask("list_games").split("\n") if "list_games" in commands else [self._words.name]
            found = [name for name in map(str.strip, names) if name.lower() == self._words.name.lower()]
            if not found:
                raise EngineFault(f"does not play {self._words.name}, but {', '.join(names)}")
            engine.ask(f"set_game {found[0]}")
        words = self._words
        size = f"boardsize {words.columns}"
        if words.rows != words.columns:  # as KataGo and Benzene hear it
            size = f"{'rectangular_' * ('rectangular_boardsize' in commands)}{size} {words.rows}"
        komi = [] if words.komi is None or "komi" not in commands else [f"komi {words.komi:g}"]
        return [size, "clear_board", *komi]

    def _stop(self) -> None:
        if self._engine is not None:
            self._engine.kill()
            self._engine.close()
        self._engine = self._known = None
