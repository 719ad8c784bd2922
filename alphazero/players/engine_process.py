"""Programs of others that play by lines of text, and what players of the Go Text Protocol and of UCI share."""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
import threading
import time
import weakref
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import IO, Any, ClassVar

from alphazero import interruption
from alphazero.errors import IllegalAction, InvalidSetting, quote
from alphazero.game import Game, Position
from alphazero.invocation import WINDOWS
from alphazero.players.child_processes import end_program, start_program
from alphazero.players.player import FollowingPlayer, Forfeit

TIMEOUT = 60.0
"""Seconds to wait for an answer unless told otherwise."""
MAX_LINE, MAX_ANSWER = 1 << 16, 1 << 20
"""The characters that are read of a line at once, and those of the longest answer that an engine may give."""
GRACE = 1.0
"""Seconds that an engine has to end by itself."""
AGAIN = "was to be started again, and "


def split_command(line: str) -> list[str]:
    """The words of a program's command line, as a shell takes them; raises ValueError."""
    words = shlex.split(line, posix=not WINDOWS)  # a backslash is a part of a path there
    return [word.strip("\"'") for word in words] if WINDOWS else words


class EngineFault(Exception):
    """The engine did not answer as it should; `str(error)` says how, after the engine's name."""


class EngineEnded(EngineFault):
    """The engine's process has ended, or closed its output."""


class EngineProcess:
    """A program that answers to lines."""

    def __init__(self, command: list[str], timeout: float):
        self._timeout = timeout
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

    def exchange(self, commands: list[str], is_last: Callable[[list[str]], bool]) -> list[str]:
        """The lines that answer the last command, up to the one with which `is_last(lines)`; empty ones before them do
        not count. Raises EngineFault when there is no answer."""
        # for the commands and the whole answer, however slowly they go; who is killed is waited for no more
        begin, limit = time.monotonic(), threading.Timer(self._timeout, self.kill)
        limit.daemon = True
        limit.start()
        try:
            with contextlib.suppress(OSError):  # it has ended; its last words tell why
                self._stdin.write("".join(f"{command}\n" for command in commands))
            return self._lines(commands[-1], is_last)
        except EngineEnded:
            if time.monotonic() - begin < self._timeout:
                raise
            raise EngineFault(f"has not answered {quote(commands[-1])} for {self._timeout:g} s") from None
        finally:
            limit.cancel()

    def _lines(self, command: str, is_last: Callable[[list[str]], bool]) -> list[str]:
        """As `exchange`, without spaces at their ends."""
        lines, length = list[str](), 0
        while read := self._stdout.readline(MAX_LINE):
            # control characters mean nothing in the protocols, but for tabs, which are spaces
            line = re.sub(r"[\x00-\x1f\x7f]", "", read.replace("\t", " ")).rstrip()
            if line or lines:
                lines.append(line)
                if is_last(lines):
                    return lines
            length += len(read)
            if length > MAX_ANSWER:
                raise EngineFault(f"gave an answer without end to {quote(command)}")
        raise EngineEnded(f"{self._last_words()} without an answer to {quote(command)}")

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


class EnginePlayer(FollowingPlayer):
    """Lets an engine play. If it fails or plays an illegal move, it forfeits the game, and is started anew.

    Raises InvalidSetting if it does not start, at first or later, or cannot play such a game.
    """

    kind: ClassVar[str]
    """The contestant's name."""
    example: ClassVar[str]
    _action: Callable[[Position, str], int]
    """The legal action that a word of the engine means; raises IllegalAction."""

    def __init__(self, game: Game, command: str, timeout: float = TIMEOUT):
        super().__init__(game)
        self.name = f"{self.kind}:{command}"
        self._timeout = timeout
        try:
            self._command = split_command(command)
        except ValueError:  # a quotation mark that is not closed
            self._command = []
        if not self._command:
            raise InvalidSetting(f"{self.kind} takes the command line of an engine, as in {self.kind}:{self.example}")
        self._engine: EngineProcess | None = None
        self._known: tuple[int, ...] | None = None
        """The actions on the engine's board; None: it is not set up."""
        self._start("")

    @abstractmethod
    def _prepare(self, engine: EngineProcess) -> None:
        """Learns from a fresh engine what it can; raises EngineFault if it cannot play the game."""

    @abstractmethod
    def _begin_game(self, engine: EngineProcess) -> None:
        """Has the engine set up the start of a game."""

    @abstractmethod
    def _ask_move(self, engine: EngineProcess, position: Position, known: tuple[int, ...]) -> str:
        """The engine's word for its move; `known` are the actions on its board."""

    def choose(self, position: Position, game: int) -> int:
        try:
            word = self._ask(position)
        except EngineFault as fault:
            self._stop()
            raise Forfeit(str(fault)) from fault
        if word.lower() == "resign":
            self._known = None
            raise Forfeit("resigns")
        try:
            action = self._action(position, word)
        except IllegalAction:
            self._known = None  # it may have played that on its own board
            raise Forfeit(f"played {quote(word)}, which is not legal") from None
        self._known = (*position.actions, action)
        return action

    def interrupt(self) -> None:
        if self._engine is not None:
            self._engine.kill()  # whoever waits for its answer hears that it has ended

    def _ask(self, position: Position) -> str:
        engine, known = self._engine or self._start(AGAIN), self._known
        if known is None or position.actions[: len(known)] != known:
            try:
                self._begin_game(engine)
            except EngineEnded:  # some engines play one game and leave
                self._stop()
                engine = self._start(AGAIN)
            known = ()
        return self._ask_move(engine, position, known)

    def _start(self, note: str) -> EngineProcess:
        """A fresh process that is ready to play; raises InvalidSetting, so that a file that is gone loses no games."""
        try:
            engine = self._engine = EngineProcess(self._command, self._timeout)
            self._prepare(engine)
            self._begin_game(engine)
        except EngineFault as fault:
            self._stop()
            line = quote(self.name.removeprefix(f"{self.kind}:"), 200)
            raise InvalidSetting(f"the engine {line} {note}{fault}") from None
        self._known = ()
        return engine

    def _stop(self) -> None:
        if self._engine is not None:
            self._engine.kill()
            self._engine.close()
        self._engine = self._known = None
