"""A program that speaks the Go Text Protocol as a player: `gtp:"gnugo --mode gtp"`.

https://www.lysator.liu.se/~gunnar/gtp/gtp2-spec-draft2/gtp2-spec.html. Commands have no ids, since not all engines
know them; ids in answers are ignored. The engine is sent the moves that it does not know yet, else the whole game.
"""

from __future__ import annotations

import re

from alphazero.errors import InvalidSetting, quote
from alphazero.game import Game, Position
from alphazero.game.reading.gtp_words import COLOURS, GtpWords
from alphazero.players.engine_process import TIMEOUT, EngineFault, EnginePlayer, EngineProcess

NEEDED = ("boardsize", "clear_board", "genmove", "play", "quit")


class Refusal(EngineFault):
    """The engine refused a command, by an answer that begins with a question mark."""


def ask(engine: EngineProcess, command: str) -> str:
    """The answer without its sign, up to an empty line; raises EngineFault when there is none, or it is a refusal."""

    def is_last(lines: list[str]) -> bool:
        if lines[0][0] not in "=?":
            raise EngineFault(
                f"answered {quote(lines[0])} to {quote(command)}, which is not GTP: it must begin with = or ?"
            )
        return not lines[-1]

    lines = engine.exchange([command], is_last)
    text = re.sub(r"^[=?]\d*\s*", "", "\n".join(lines)).strip()
    if lines[0][0] == "?":
        raise Refusal(f"refused {quote(command)}: {text or 'it gave no reason'}")
    return text


class GtpPlayer(EnginePlayer):
    """Lets an engine play that speaks the Go Text Protocol."""

    kind, example = "gtp", '"gnugo --mode gtp"'

    def __init__(self, game: Game, words: GtpWords, command: str, timeout: float = TIMEOUT):
        self._words, self._action, self._hears_of_passes = words, words.action, True
        super().__init__(game, command, timeout)

    def choose(self, position: Position, game: int) -> int:
        if position.is_set_up:
            raise InvalidSetting(f"{self.name} follows games from their start: it cannot play on from a board")
        return super().choose(position, game)

    def _begin_game(self, engine: EngineProcess) -> None:
        for command in self._set_up:
            ask(engine, command)

    def _ask_move(self, engine: EngineProcess, position: Position, known: tuple[int, ...]) -> str:
        earlier = self._game.position(known)
        for action in position.actions[len(known) :]:
            self._tell(engine, earlier, action)
            earlier = earlier.play(action)
        try:
            return ask(engine, f"genmove {COLOURS[position.to_play]}")
        except Refusal:
            if not self._must_pass(position):
                raise
            self._tell(engine, position, position.legal_actions[0])
            return "pass"

    def _tell(self, engine: EngineProcess, position: Position, action: int) -> None:
        """Tells the engine what was played. Some engines pass by themselves where they must, and refuse the word."""
        forced = self._must_pass(position)
        if forced and not self._hears_of_passes:
            return
        try:
            ask(engine, f"play {COLOURS[position.to_play]} {self._words.vertex(position, action)}")
        except Refusal:
            if not forced:
                raise
            self._hears_of_passes = False

    def _must_pass(self, position: Position) -> bool:
        return len(legal := position.legal_actions) == 1 and self._words.vertex(position, legal[0]) == "pass"

    def _prepare(self, engine: EngineProcess) -> None:
        commands = ask(engine, "list_commands").split()
        if missing := [command for command in NEEDED if command not in commands]:
            raise EngineFault(f"does not know {', '.join(missing)}, without which it cannot play")
        if "set_game" in commands:
            names = ask(engine, "list_games").split("\n") if "list_games" in commands else [self._words.name]
            found = [name for name in map(str.strip, names) if name.lower() == self._words.name.lower()]
            if not found:
                raise EngineFault(f"does not play {self._words.name}, but {', '.join(names)}")
            ask(engine, f"set_game {found[0]}")
        words = self._words
        size = f"boardsize {words.columns}"
        if words.rows != words.columns:  # as KataGo and Benzene hear it
            size = f"{'rectangular_' * ('rectangular_boardsize' in commands)}{size} {words.rows}"
        komi = [] if words.komi is None or "komi" not in commands else [f"komi {words.komi:g}"]
        self._set_up = [size, "clear_board", *komi]
