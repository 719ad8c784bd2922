"""A program that speaks the Universal Chess Interface as a player: `uci:fairy-stockfish@nodes=1000,UCI_Elo=1350`.

https://www.shredderchess.com/chess-features/uci-universal-chess-interface.html. The engine is sent the whole game
before each move. It is not asked to ponder, and has no clock: its search ends by nodes, milliseconds or depth.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from alphazero.errors import InvalidSetting, UnknownName, quote
from alphazero.game import Game, Position
from alphazero.game.reading.san import CHESS, with_fen
from alphazero.game.record import words_of
from alphazero.players.engine_process import TIMEOUT, EnginePlayer, EngineProcess

LIMITS = ("nodes", "movetime", "depth")
"""The settings that end a search; movetime counts milliseconds."""
USUAL = {"movetime": 100}


def ask(engine: EngineProcess, *commands: str, until: str) -> list[str]:
    """The lines that follow the commands, up to the one that begins with the word `until`; raises EngineFault."""
    return engine.exchange([*commands], lambda lines: lines[-1].split()[:1] == [until])


class UciPlayer(EnginePlayer):
    """Lets an engine play that speaks UCI.

    `limits`: of LIMITS; `options`: the engine's own, with underscores for spaces, in letters of any size. Raises
    InvalidSetting for an option that the engine does not have, since it would say nothing.
    """

    kind, example = "uci", "fairy-stockfish@nodes=1000,UCI_Elo=1350"

    def __init__(
        self, game: Game, command: str, limits: Mapping[str, int], options: Mapping[str, str], timeout: float = TIMEOUT
    ):
        self._notation, self._action, limits = with_fen(game), Position.parse, limits or USUAL
        self._go = " ".join(["go", *(f"{name} {limit}" for name, limit in limits.items())])
        self._options = {_plain(name): value for name, value in options.items()}
        if "uci_elo" in self._options:  # engines heed it only then
            self._options = {"uci_limitstrength": "true", **self._options}
        if game.name != CHESS or "uci_variant" in self._options:  # the last: a file by VariantPath may define it
            self._options["uci_variant"] = self._options.pop("uci_variant", game.name)
        super().__init__(game, command, timeout + limits.get("movetime", 0) / 1000)

    def _prepare(self, engine: EngineProcess) -> None:
        told = [re.match(r"option name (.+?) type (.+)", line) for line in ask(engine, "uci", until="uciok")]
        known = {_plain(option[1]): option for option in told if option}
        commands = list[str]()
        for name, value in self._options.items():
            if name == "uci_variant" and name not in known:
                raise InvalidSetting(f"{self.name} plays chess alone: it has no option UCI_Variant")
            if name not in known:
                allowed = [option[1].replace(" ", "_") for option in known.values()]
                raise UnknownName(f"option of {self.name}", name, allowed, meant=name)
            if not _fits(value, known[name][2]) and not (name == "uci_variant" and "variantpath" in self._options):
                raise InvalidSetting(
                    f"{known[name][1]} of {self.name} is a {known[name][2]:.400}, and not {quote(value)}"
                )
            commands.append(f"setoption name {known[name][1]} value {value}")
        ask(engine, *commands, "isready", until="readyok")

    def _begin_game(self, engine: EngineProcess) -> None:
        ask(engine, "ucinewgame", "isready", until="readyok")

    def _ask_move(self, engine: EngineProcess, position: Position, known: tuple[int, ...]) -> str:
        start = f"fen {self._notation.fen_of(position.start)}" if position.is_set_up else "startpos"
        words = words_of(position.start, position.actions)
        played = ask(
            engine, " ".join(["position", start, *["moves", *words] * bool(words)]), self._go, until="bestmove"
        )
        return " ".join(played[-1].split()[1:2])


def _plain(name: str) -> str:
    return name.lower().replace(" ", "_")


def _fits(value: str, kind: str) -> bool:
    """The value is one of an option that the engine declares as `spin default 20 min -20 max 20`, or another kind."""
    if kind.startswith("combo"):
        return value in re.split(r"\s+var\s+", kind)[1:]
    if kind.startswith("spin"):
        low, high = (re.search(rf"\b{word} (-?\d+)", kind) for word in ("min", "max"))
        whole = re.fullmatch(r"-?\d{1,18}", value)
        return bool(whole) and not ((low and int(value) < int(low[1])) or (high and int(value) > int(high[1])))
    return not kind.startswith("check") or value in ("true", "false")
