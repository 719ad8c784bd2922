"""A program that speaks the Go Text Protocol as a player: `gtp:"gnugo --mode gtp"`.

https://www.lysator.liu.se/~gunnar/gtp/gtp2-spec-draft2/gtp2-spec.html. Commands have no ids, since not all engines
know them; ids in answers are ignored. The engine is sent only the moves that it does not know yet. If a game does not
go on from them, the engine is sent the whole game again.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import subprocess
import threading
import time
import weakref
from collections import deque
from typing import IO

from alphazero import interruption
from alphazero.errors import IllegalAction, InvalidSetting, listed, quote
from alphazero.game import Game, Position
from alphazero.game.gtp_words import COLOURS, GtpWords
from alphazero.invocation import split_command
from alphazero.players.child_processes import end_program, start_program
from alphazero.players.player import FollowingPlayer, Forfeit

TIMEOUT = 60.0
"""Seconds to wait for an answer unless told otherwise."""
NEEDED = ("boardsize", "clear_board", "genmove", "play", "quit")
MAX_LINE, MAX_LINES, MAX_ANSWER = 1 << 16, 1 << 14, 1 << 20
"""The longest line, in characters, and the longest answer, in lines and in characters, that an engine may give."""
GAMES = "/usr/games"
"""Where Debian puts engines, and where programs of root and of services do not look."""
GRACE = 1.0
"""Seconds that an engine has to end by itself."""


class EngineFault(Exception):
    """The engine did not answer as it should; `str(error)` says how, after the engine's name."""


class EngineEnded(EngineFault):
    """The engine's process has ended, or closed its output."""


class Refusal(EngineFault):
    """The engine refused a command, by an answer that begins with a question mark."""


class Engine:
    """One engine process; `log`, if given, keeps every line of the dialogue, commands behind `> `."""

    def __init__(self, command: list[str], timeout: float, log: list[str] | None = None):
        self._timeout, self._log = timeout, log
        try:
            self._process = start_program(command, subprocess.PIPE)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            beside = os.path.join(GAMES, command[0])
            if isinstance(error, FileNotFoundError) and os.path.isfile(beside):
                reason += f"; it is {beside}, in a folder that is not searched: name it in full"
            raise EngineFault(f"cannot be started: {reason}") from error
        self._lines = Inbox()
        self._complaints: deque[str] = deque(maxlen=1)
        self._commands: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._written = threading.Semaphore(0)
        # the threads do not know this object, so that it can be collected while they wait
        threads = [
            threading.Thread(target=work, args=arguments, daemon=True)
            for work, *arguments in (
                (_speak, self._process.stdin, self._commands, self._written),
                (_listen, self._process.stdout, self._lines),
                (_overhear, self._process.stderr, self._complaints),
            )
        ]
        for thread in threads:
            thread.start()
        self._overhearing = threads[-1]
        self.close = weakref.finalize(self, _end, self._process, self._commands)
        """Ends the engine and its children; at the end of the program by itself."""

    def kill(self) -> None:
        """Ends the engine and its children at once: while it thinks it does not hear that it should quit."""
        if self.close.detach() is not None:
            self._commands.put(None)
            end_program(self._process)

    def ask(self, command: str) -> str:
        """The answer without its sign; raises EngineFault when there is none, or it is a refusal."""
        self._note(f"> {command}")
        deadline = time.monotonic() + self._timeout  # for the command and its whole answer, however slowly it comes
        self._commands.put(command)
        if not self._written.acquire(timeout=self._timeout):
            raise EngineFault(f"has not read {quote(command)} for {self._timeout:g} s")
        sign, text = self._answer(command, deadline)
        if sign == "?":
            raise Refusal(f"refused {quote(command)}: {text or 'it gave no reason'}")
        return text

    def _answer(self, command: str, deadline: float) -> tuple[str, str]:
        """The sign and the text of an answer, which an empty line ends."""
        lines: list[str] = []
        length = 0
        while True:
            line = self._next_line(command, deadline)
            length += len(line)
            if line or lines:
                self._note(line)
            if not line and lines:
                break
            if line:
                lines.append(line)
            if lines and lines[0][0] not in "=?":
                raise EngineFault(
                    f"answered {quote(lines[0])} to {quote(command)}, which is not GTP: it must begin with = or ?"
                )
            if len(lines) > MAX_LINES or length > MAX_ANSWER:
                raise EngineFault(f"gave an answer without end to {quote(command)}")
        first = re.sub(r"^[=?]\d*\s*", "", lines[0])
        return lines[0][0], "\n".join([first, *lines[1:]]).strip()

    def _next_line(self, command: str, deadline: float) -> str:
        try:
            line = self._lines.take(max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise EngineFault(f"has not answered {quote(command)} for {self._timeout:g} s") from None
        if line is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE)
            self._overhearing.join(GRACE)  # its last words may still be on their way
            code = self._process.poll()
            how = "closed its output" if code is None else f"ended (exit code {code})"
            said = f", saying {quote(self._complaints[0], 200)}" if self._complaints else ""
            raise EngineEnded(f"{how}{said} without an answer to {quote(command)}")
        # control characters mean nothing in the protocol, but for tabs, which are spaces
        return re.sub(r"[\x00-\x1f\x7f]", "", line.replace("\t", " ")).rstrip()

    def _note(self, line: str) -> None:
        if self._log is not None:
            self._log.append(line)


class Inbox:
    """Lines on their way from the thread that reads them to the one that asks."""

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._put = self._taken = 0  # characters; each is counted by one thread

    def put(self, line: str | None) -> bool:
        """Adds a line, or None behind the last; false if more wait than any answer may have."""
        self._put += len(line or "")
        self._lines.put(line)
        return self._put - self._taken <= 4 * MAX_ANSWER

    def take(self, timeout: float) -> str | None:
        """The next line; raises queue.Empty if none comes in so many seconds."""
        line = self._lines.get(timeout=timeout)
        self._taken += len(line or "")
        return line


def _speak(pipe: IO[str], commands: queue.SimpleQueue[str | None], written: threading.Semaphore) -> None:
    """Writes every command, says so, and closes the pipe behind the last; waits as long as the engine does not read."""
    while (command := commands.get()) is not None:
        with contextlib.suppress(OSError, ValueError):  # it has ended; its last words tell why
            pipe.write(command + "\n")
            pipe.flush()
        written.release()
    written.release()  # nothing more is written: who asks now hears from `_listen` that the engine has ended
    with contextlib.suppress(OSError):
        pipe.close()


def _listen(pipe: IO[str], lines: Inbox) -> None:
    """Puts every line into the inbox, and None behind the last; stops reading if the engine does not stop writing."""
    with pipe, contextlib.suppress(ValueError, OSError):
        while (line := pipe.readline(MAX_LINE)) and lines.put(line):
            pass
    lines.put(None)


def _overhear(pipe: IO[str], complaints: deque[str]) -> None:
    with pipe, contextlib.suppress(ValueError, OSError):
        while line := pipe.readline(MAX_LINE):
            if line.strip():
                complaints.append(line.strip())


def _end(process: subprocess.Popen[str], commands: queue.SimpleQueue[str | None]) -> None:
    """Asks the engine to quit, then kills it and its children."""
    commands.put("quit")
    commands.put(None)
    if not interruption.asked():  # else this process has too little time to wait for one engine after the other
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    end_program(process)


class GtpPlayer(FollowingPlayer):
    """Lets an engine play. If the engine fails or plays an illegal move, it forfeits the game.

    It is started anew for the next one then, as also if it ends between two games. Raises InvalidSetting if it does not
    start, at first or later, or cannot play such a game.
    """

    def __init__(
        self, game: Game, words: GtpWords, command: str, timeout: float = TIMEOUT, log: list[str] | None = None
    ):
        super().__init__(game)
        self.name = f"gtp:{command}"
        self._words, self._timeout, self._log = words, timeout, log
        try:
            self._command = split_command(command)
        except ValueError as error:
            raise InvalidSetting(f"{quote(command, 200)} is no command line: {error}") from None
        if not self._command:
            raise InvalidSetting('gtp takes the command line of an engine, as in gtp:"gnugo --mode gtp"')
        self._engine: Engine | None = None
        self._known: tuple[int, ...] | None = None
        """The actions on the engine's board; None: it is not set up."""
        self._hears_of_passes = True
        self._start_or_fail("")

    def _start_or_fail(self, note: str) -> Engine:
        """A fresh process that is ready; raises InvalidSetting, so that a file that is gone loses no games."""
        try:
            return self._start()
        except EngineFault as fault:
            self._stop()
            raise InvalidSetting(f"the engine {quote(self.name.removeprefix('gtp:'), 200)} {note}{fault}") from None

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
            legal = listed(self._words.vertex(position, action) for action in position.legal_actions)
            raise Forfeit(f"played {quote(vertex)}, which is not legal (legal: {legal})") from None
        self._known = (*position.actions, action)
        return action

    def interrupt(self) -> None:
        if self._engine is not None:
            self._engine.kill()  # whoever waits for its answer hears that it has ended

    def _ask_move(self, position: Position) -> str:
        engine, again = self._engine, "was to be started again, and "
        if engine is None:
            engine = self._start_or_fail(again)
        known = self._known
        if known is None or position.actions[: len(known)] != known:
            try:
                for command in self._set_up:
                    engine.ask(command)
            except EngineEnded:  # some engines play one game and leave
                self._stop()
                engine = self._start_or_fail(again)
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

    def _tell(self, engine: Engine, position: Position, action: int) -> None:
        """Tells the engine what was played. Some engines pass by themselves where they must, and refuse the word."""
        vertex, forced = self._words.vertex(position, action), self._must_pass(position)
        if forced and not self._hears_of_passes:
            return
        try:
            engine.ask(f"play {COLOURS[position.to_play]} {vertex}")
        except Refusal:
            if not forced:
                raise
            self._hears_of_passes = False

    def _must_pass(self, position: Position) -> bool:
        legal = position.legal_actions
        return len(legal) == 1 and self._words.vertex(position, legal[0]) == "pass"

    def _start(self) -> Engine:
        """A fresh process that is ready to play the game; raises EngineFault."""
        self._engine, self._known = Engine(self._command, self._timeout, self._log), None
        commands = self._engine.ask("list_commands").split()
        missing = [command for command in NEEDED if command not in commands]
        if missing:
            raise EngineFault(f"does not know {', '.join(missing)}, without which it cannot play")
        if "set_game" in commands:
            self._choose_game(self._engine, "list_games" in commands)
        size = f"boardsize {self._words.columns}"
        if self._words.rows != self._words.columns:
            size += f" {self._words.rows}"  # as KataGo and Benzene hear it
            if "rectangular_boardsize" in commands:
                size = f"rectangular_{size}"
        komi = [] if self._words.komi is None or "komi" not in commands else [f"komi {self._words.komi:g}"]
        self._set_up = [size, "clear_board", *komi]
        for command in self._set_up:
            self._engine.ask(command)
        self._known = ()
        return self._engine

    def _choose_game(self, engine: Engine, lists: bool) -> None:
        names = engine.ask("list_games").split("\n") if lists else [self._words.name]
        found = [name for name in map(str.strip, names) if name.lower() == self._words.name.lower()]
        if not found:
            raise EngineFault(f"does not play {self._words.name}, but {', '.join(names)}")
        engine.ask(f"set_game {found[0]}")

    def _stop(self) -> None:
        if self._engine is not None:
            self._engine.close()
        self._engine = self._known = None
