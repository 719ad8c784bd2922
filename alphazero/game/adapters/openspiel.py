"""Any fitting game of OpenSpiel, unmodified: `--game "openspiel:breakthrough(rows=6,columns=6)"`.

Fitting is what has two players in turn, no chance, nothing hidden, and a zero-sum result at the end. Needs
`pip install -e ".[openspiel]"`. The rules run at the speed of Python.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from alphazero.errors import GameError, UnknownName
from alphazero.game.adapters.text_board import TextBoard, read_board
from alphazero.game.board import Board, Piece
from alphazero.game.game import Game, Position
from alphazero.game.gtp_words import GtpWords
from alphazero.game.python_game import PythonGame, as_planes
from alphazero.game.spec import GameSpec

PREFIX = "openspiel:"
MOST_PLIES = 512
"""Longer games count as draws: some games of OpenSpiel may go on for thousands of plies."""


class OpenSpielGame(PythonGame[Any]):
    """One game by its name and parameters, as `pyspiel.load_game` takes them."""

    name = "openspiel"

    def __init__(self, text: str):
        self.game = load_game(text)
        self.name = PREFIX + text  # type: ignore[misc]
        self.num_actions = self.game.num_distinct_actions()
        # one more than OpenSpiel says, since some of its games forget to count the swap
        self.max_plies = min(MOST_PLIES, self.game.max_game_length() + 1)
        shape = self.game.observation_tensor_shape()
        # what is no board of rows and columns is seen as planes of a single cell
        planes, *board = {3: tuple(shape), 2: (1, *shape)}.get(len(shape), (int(np.prod(shape)), 1, 1))
        self._tensor_shape = planes, *board
        self.observation_shape = planes + 1, *board  # who moves: many of its observations do not tell
        self.prepare()

    def begin(self) -> Any:
        return self.game.new_initial_state()

    def after(self, position: Any, action: int) -> Any:
        return position.child(action)

    def allowed(self, position: Any) -> Iterable[int]:
        return position.legal_actions()

    def over(self, position: Any) -> bool:
        return position.is_terminal() or position.move_number() >= self.max_plies

    def result(self, position: Any) -> float:
        return float(np.sign(position.returns()[0])) if position.is_terminal() else 0.0

    def player(self, position: Any) -> int:
        return 0 if position.is_terminal() else position.current_player()

    def planes(self, position: Any) -> np.ndarray:
        player = self.player(position)
        seen = as_planes(position.observation_tensor(player), self._tensor_shape)
        return np.concatenate([seen, np.full((1, *seen.shape[1:]), player, np.float32)])

    @cached_property
    def _text_board(self) -> TextBoard:
        start = self.begin()
        return read_board(str(start), [str(start.child(action)) for action in start.legal_actions()[:10]])

    @property
    def board(self) -> Board:  # type: ignore[override]
        """The board that OpenSpiel prints, if it is rows of cells."""
        return self._text_board.board

    def pieces(self, position: Position) -> list[Piece]:
        return self._text_board.pieces(str(position))

    def render(self, state: np.ndarray, to_play: int) -> str:
        return str(self.object_of(state)).rstrip("\n")

    def format_action(self, action: int, state: np.ndarray) -> str:
        """In OpenSpiel's words, less the spaces; by its number where two actions are called alike."""
        names = self._names(state)
        return names.get(action, str(action))

    def parse_action(self, text: str, state: np.ndarray) -> int:
        found = [action for action, name in self._names(state).items() if name == text]
        return found[0] if found else int(text)

    def _names(self, state: np.ndarray) -> dict[int, str]:
        """The legal actions and what they are called."""
        position = self.object_of(state)
        actions = [] if position.is_terminal() else position.legal_actions()
        names = {action: "_".join(position.action_to_string(action).split()) for action in actions}
        counts = Counter(names.values())
        return {action: name if counts[name] == 1 else str(action) for action, name in names.items()}


def gtp_words(game: Game) -> GtpWords:
    """In the Go Text Protocol: B_h8 is H8, for OpenSpiel says who plays it. Raises GameError for handicap stones."""
    assert isinstance(game, OpenSpielGame)
    parameters = game.game.get_parameters()
    if parameters.get("handicap"):
        raise GameError(f"{game.name} begins with handicap stones, which cannot be told in GTP: leave out handicap")
    _, rows, columns = game.observation_shape
    size = parameters.get("board_size", parameters.get("size"))
    if isinstance(size, int):
        rows = columns = size
    name = game.game.get_type().short_name
    return GtpWords(name, rows, columns, parameters.get("komi"), lambda word: word.rpartition("_")[2])


SPEC = GameSpec(gtp_words=gtp_words)


def load_game(text: str) -> Any:
    """`pyspiel.load_game`; raises UnknownName, or GameError if the game does not fit."""
    try:
        import pyspiel
    except ImportError as error:
        raise GameError(f'{PREFIX}{text} needs OpenSpiel: pip install -e ".[openspiel]"') from error
    name = text.partition("(")[0]
    known = pyspiel.registered_names()
    if name not in known:
        raise UnknownName("OpenSpiel game", name, difflib.get_close_matches(name, known, n=5, cutoff=0.0))
    try:
        game = pyspiel.load_game(text)
    except pyspiel.SpielError as error:
        reason = " ".join(str(error).split())
        raise GameError(f"OpenSpiel cannot load {text!r}: {reason:.300}; write it as {name}(size=5)") from error
    kind = game.get_type()
    wanted = {
        "it must have two players": game.num_players() == 2,
        "its players must move in turn": kind.dynamics == pyspiel.GameType.Dynamics.SEQUENTIAL,
        "it must be free of chance": kind.chance_mode == pyspiel.GameType.ChanceMode.DETERMINISTIC,
        "nothing may be hidden": kind.information == pyspiel.GameType.Information.PERFECT_INFORMATION,
        "it must be zero-sum": kind.utility == pyspiel.GameType.Utility.ZERO_SUM,
        "its result must come at the end": kind.reward_model == pyspiel.GameType.RewardModel.TERMINAL,
        "it must give observations as tensors": kind.provides_observation_tensor,
    }
    for words, holds in wanted.items():
        if not holds:
            raise GameError(f"the OpenSpiel game {text} cannot be used here: {words}")
    return game
