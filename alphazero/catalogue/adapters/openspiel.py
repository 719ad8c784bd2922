"""Any fitting game of OpenSpiel, unmodified: `--game "openspiel:breakthrough(rows=6,columns=6)"`.

A fitting game has two players who move in turn and a zero-sum result at the end, or one player and points. Nothing is
hidden, and all probabilities of its dice are known. Needs `pip install open_spiel`. The rules run at the speed of
Python.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from alphazero.catalogue.adapters import openspiel_texts as texts
from alphazero.errors import GameError, UnknownName, quote, shorten, warn_once
from alphazero.game.board import Board, Piece
from alphazero.game.game import Game, Position
from alphazero.game.python_game import PythonGame
from alphazero.game.reading.gtp_words import GtpWords
from alphazero.game.rules import Score
from alphazero.game.spec import GameSpec

_say = functools.cache(logging.getLogger(__name__).info)
"""Logs a sentence, once."""

PREFIX = "openspiel:"
MOST_PLAYERS = 8
TOO_MANY = "it must have eight players at most"
NO_CHANCE = "it must be free of chance, or declare it and tell the probabilities of all outcomes"
MOST_PLIES = 512
"""Longer games end there as draws: some games of OpenSpiel may go on for thousands of plies."""

MOST_TEXT = 200
"""Characters in a game's name and parameters."""
MOST_ACTIONS, MOST_NUMBERS = 1 << 17, 1 << 20
"""The most actions of a game, and the most numbers in an observation."""
HEX_SIZE, GOMOKU_SIZE = 11, 15
"""Sizes of boards in OpenSpiel unless told otherwise."""
MOST_LINES = 1 << 21
"""Cells of a Gomoku times the directions of its lines, of which there are about 3**dims."""
LARGEST = 1000
"""The largest whole number among a game's parameters: products of larger ones overflow in OpenSpiel."""


class OpenSpielGame(PythonGame):
    """One game by its name and parameters, as `pyspiel.load_game` takes them."""

    name = "openspiel"

    def __init__(self, text: str):
        self.game = load_game(text)
        self.name = PREFIX + text  # type: ignore[misc]
        self.num_actions, self.num_players = self.game.num_distinct_actions(), self.game.num_players()
        self.num_outcomes = self.game.max_chance_outcomes() if _has_dice(self.game) else 0
        if self.num_players == 1:
            self.score = Score(self.game.min_utility(), self.game.max_utility())
        self._ends = "there as draws" if self.num_players == 2 else "there"
        with _telling(text):  # random games may meet what the start does not
            self.max_plies = self._most_plies()
            self.dice_in_a_row = texts.dice_in_a_row(self.game, self.max_plies) if self.num_outcomes else 1
            hides = texts.looks_alike(self.game)
            seen = [str(position) for _, position in texts.random_games(self.game, self.max_plies)] if hides else []
        tensor = self.game.observation_tensor_shape()
        tensor = [1, *tensor] if self.num_players == 1 and len(tensor) == 2 else tensor  # rows and columns
        self._text_planes = texts.TextPlanes(seen) if hides else None
        self._seen_shape = self._text_planes.shape if self._text_planes else fold(tensor, self.game.get_parameters())
        planes, rows, columns = self._seen_shape
        self.observation_shape = planes + 1, rows, columns  # who moves: many of its observations do not tell
        self.prepare()
        if hides:
            alike = f"{self.name}: OpenSpiel's observation is the same for many positions with different legal actions"
            _say(f"{alike}. So the network sees the characters of OpenSpiel's text instead")
        if self.game.max_game_length() + 1 > MOST_PLIES:
            _say(f"{self.name}: games longer than {MOST_PLIES} plies end {self._ends}")
        if rows * columns == 1:
            _say(f"{self.name}: its observation, {tensor}, is no board; the network sees numbers without convolutions")

    def _most_plies(self) -> int:
        """One ply more than OpenSpiel says; twice the plies of a random game where that shows the limit to be wrong."""
        limit = self.game.max_game_length() + 1  # some of its games forget to count the swap
        longest = texts.longest_game(self.game, MOST_PLIES) if limit < MOST_PLIES else 0
        if longest <= limit:
            return min(MOST_PLIES, limit)
        plies = min(MOST_PLIES, 2 * longest)
        _say(f"{self.name}: some games are longer than OpenSpiel says; here they end after {plies} plies")
        return plies

    def begin(self) -> Any:
        return self.game.new_initial_state()

    def after(self, position: Any, action: int) -> Any:
        return position.child(_outcomes_of(position)[action][0] if position.is_chance_node() else action)

    def allowed(self, position: Any) -> Iterable[int]:
        return position.legal_actions()

    def odds(self, position: Any) -> Sequence[float]:
        if not position.is_chance_node() or self.cut(position):
            return ()
        last = itertools.islice(reversed(position.full_history()), self.dice_in_a_row)
        if sum(played.player < 0 for played in last) == self.dice_in_a_row:  # trees and records have room for no more
            row = f"{self.dice_in_a_row} dice came one after another and another one is due"
            raise GameError(f"{self.name} cannot be used here: {row}, though random games had half as many at most")
        return [probability for _, probability in _outcomes_of(position)]

    def over(self, position: Any) -> bool:
        return position.is_terminal() or self.cut(position)

    def cut(self, position: Any) -> bool:
        found = position.move_number() >= self.max_plies and not position.is_terminal()
        if found and self.num_outcomes:
            found = sum(played.player >= 0 for played in position.full_history()) >= self.max_plies
        if found and self.max_plies < MOST_PLIES:
            warn_once(f"{self.name}: games longer than {self.max_plies} plies end {self._ends}")
        return found

    def result(self, position: Any) -> float:
        if self.num_players == 1:
            return float(position.returns()[0])
        return float(np.sign(position.returns()[0])) if position.is_terminal() else 0.0

    def results(self, position: Any) -> Sequence[float]:
        most = max(abs(self.game.min_utility()), abs(self.game.max_utility()))
        return np.array(position.returns() if position.is_terminal() else [0.0] * self.num_players) / most

    def player(self, position: Any) -> int:
        return max(0, position.current_player())  # negative at the end, and where a die is due

    def planes(self, position: Any) -> np.ndarray:
        player = self.player(position)
        look = self._text_planes(str(position)) if self._text_planes else position.observation_tensor(player)
        seen = np.asarray(look, np.float32).reshape(self._seen_shape)
        return np.concatenate([seen, np.full((1, *seen.shape[1:]), player, np.float32)])

    @functools.cached_property
    def _text_board(self) -> texts.TextBoard:
        start = self.begin()
        return texts.read_board(str(start), [str(start.child(action)) for action in start.legal_actions()[:10]])

    @property
    def board(self) -> Board:  # type: ignore[override]
        """The board that OpenSpiel prints; without cells if that is not one character for each cell."""
        return self._text_board.board

    def pieces(self, position: Position) -> list[Piece]:
        return self._text_board.pieces(str(position))

    def render(self, state: np.ndarray, to_play: int) -> str:
        return str(self.object_of(state)).rstrip("\n")

    def format_action(self, action: int, state: np.ndarray) -> str:
        """The action's name in OpenSpiel without spaces; its number where two actions have the same name."""
        return _names_at(self.object_of(state)).get(action, str(action))

    def parse_action(self, text: str, state: np.ndarray) -> int:
        found = {name: action for action, name in _names_at(self.object_of(state)).items()}
        return found[text] if text in found else int(text)

    def format_outcome(self, outcome: int, state: np.ndarray) -> str:
        """The outcome's name in OpenSpiel without spaces."""
        position = self.object_of(state)
        return _names_at(position)[_outcomes_of(position)[outcome][0]]

    def split_moves(self, text: str) -> list[str]:
        """The moves of a text, with spaces between them: many names hold commas, as x(2,2)."""
        return text.split()


@functools.lru_cache(maxsize=1)  # whoever formats one action often formats all
def _names_at(position: Any) -> dict[int, str]:
    """The legal actions and what they are called."""
    names = {action: "_".join(position.action_to_string(action).split()) for action in position.legal_actions()}
    counts = Counter(names.values())
    return {action: name if counts[name] == 1 else str(action) for action, name in names.items()}


@functools.lru_cache(maxsize=1)
def _outcomes_of(position: Any) -> list[tuple[int, float]]:
    """The outcomes of the die that is due that can be, by OpenSpiel's numbers, and their probabilities."""
    return [(outcome, probability) for outcome, probability in position.chance_outcomes() if probability > 0]


def gtp_words(game: Game) -> GtpWords:
    """The game's words in the Go Text Protocol: OpenSpiel's B_h8 is H8. Raises GameError for handicap stones."""
    assert isinstance(game, OpenSpielGame)
    parameters = game.game.get_parameters()
    if parameters.get("handicap"):
        raise GameError(f"{game.name} begins with handicap stones, which cannot be told in GTP: leave out handicap")
    _, rows, columns = game.observation_shape
    if isinstance(size := parameters.get("board_size", parameters.get("size")), int):
        rows = columns = size
    name = game.game.get_type().short_name
    return GtpWords(name, rows, columns, parameters.get("komi"), lambda word: re.sub("^[BW]_", "", word))


SPEC = GameSpec(gtp_words=gtp_words)


def fold(shape: Sequence[int], parameters: Mapping[str, Any]) -> tuple[int, int, int]:
    """Planes, rows and columns of an observation of that shape, as far as the shape or the game's size tells them.

    Numbers that make no board are planes of one cell each.
    """
    if len(shape) == 3:
        return shape[0], shape[1], shape[2]
    planes, cells = (shape[0], shape[1]) if len(shape) == 2 else (1, math.prod(shape))
    rows, columns = (parameters.get(name, parameters.get(short)) for name, short in (("rows", "m"), ("columns", "n")))
    size = parameters.get("board_size", parameters.get("size", math.isqrt(cells) if len(shape) == 2 else 0))
    for height, width in ((rows, columns), (size, size)):
        if isinstance(height, int) and isinstance(width, int) and height * width > 1 and cells % (height * width) == 0:
            return planes * cells // (height * width), height, width
    return (1, planes, cells) if len(shape) == 2 else (cells, 1, 1)


def load_game(text: str) -> Any:
    """`pyspiel.load_game`; raises UnknownName, or GameError if the game does not fit."""
    try:
        import pyspiel
    except ImportError as error:
        raise GameError(f"{PREFIX}{text} needs OpenSpiel: pip install open_spiel") from error
    if len(text) > MOST_TEXT:  # brackets nested too deep would end the process
        raise GameError(f"the name of an OpenSpiel game has at most {MOST_TEXT} characters, not {len(text):,}")
    name = text.partition("(")[0]
    kinds = {kind.short_name: kind for kind in pyspiel.registered_games()}
    _check_kind(name, kinds, text)
    if _is_made_from_another(kinds[name]) and "game=" not in text:
        example = f"{name}(game=tic_tac_toe())"
        raise GameError(f"the OpenSpiel game {name} is made from another game, which `game` names, as in {example}")
    with _telling(text, kinds[name].parameter_specification):
        given = pyspiel.game_parameters_from_string(text)
        _check_parameters(text, given)
        _check_inner_games(given, kinds)
        game = pyspiel.load_game(text)
        if words := _misfit(game.get_type()):
            raise _unfit(text, words)
        _check_size(text, game)
        start = game.new_initial_state()  # much is checked nowhere else
        if start.is_chance_node() and not _has_dice(game):  # the start of Chess960 is drawn by lot
            raise _unfit(text, NO_CHANCE)
        if not 1 <= game.num_players() <= MOST_PLAYERS:
            raise _unfit(text, TOO_MANY)
        if name == "quoridor" and game.num_players() > 2:
            raise _unfit(text, "it gives the win to another player than the one who has won; with two it is right")
        start.observation_tensor(0)
        start.legal_actions()
    return game


def _has_dice(game: Any) -> bool:
    kind = game.get_type()
    return bool(kind.chance_mode != kind.ChanceMode.DETERMINISTIC)


def _unfit(text: str, why: str) -> GameError:
    return GameError(f"the OpenSpiel game {shorten(text)} cannot be used here: {why}")


@contextlib.contextmanager
def _telling(text: str, parameters: Iterable[str] = ()) -> Iterator[None]:
    """Turns whatever OpenSpiel raises into a GameError of one sentence; not all of it is a SpielError."""
    try:
        yield
    except (GameError, UnknownName):
        raise
    except Exception as error:
        reason = " ".join(str(error).split()).rstrip(".")
        form = "7.5 or 7.0 for a number with a point, 5 for a whole one"
        takes = f"; its parameters are {', '.join(parameters)}, without spaces: {form}, true or false"
        raise GameError(f"OpenSpiel cannot load {quote(text)}: {reason:.300}{takes if parameters else ''}") from error


def _check_parameters(text: str, given: Mapping[str, Any]) -> None:
    """Raises GameError for numbers with which OpenSpiel overflows or ends the process.

    `given` are the parameters as OpenSpiel reads them, those of games that others are made from included.
    """
    for name, value in given.items():
        if isinstance(value, Mapping):
            _check_parameters(text, value)
        elif isinstance(value, int) and not (least := -LARGEST if name == "komi" else 0) <= value <= LARGEST:
            raise _unfit(text, f"{shorten(name)} must lie between {least:,} and {LARGEST:,}, not {value}")
        elif isinstance(value, str) and max(map(int, re.findall(r"\d+", value)), default=0) > MOST_ACTIONS:
            raise _unfit(text, f"numbers in {shorten(name)} must lie between 0 and {MOST_ACTIONS:,}")
    size, dims = given.get("size", GOMOKU_SIZE), given.get("dims", 0)
    if isinstance(size, int) and isinstance(dims, int) and (3 * size) ** dims > MOST_LINES:
        raise _unfit(text, f"it is too large: (3 size)**dims is {MOST_LINES:,} at most")
    size = given.get("board_size", HEX_SIZE)
    for name in ("plain_obs_tensor", "swap"):  # on other boards of Hex they write outside of its memory
        if given.get(name) and given.get("num_rows", size) != given.get("num_cols", size):
            raise _unfit(text, f"{name} needs as many rows as columns")


def _check_kind(name: str, kinds: Mapping[str, Any], text: str) -> None:
    """Raises UnknownName, or GameError unless the type of the game of that name says that it fits."""
    if name not in kinds:
        raise UnknownName("OpenSpiel game", name, [name for name, kind in kinds.items() if not _misfit(kind)])
    if not _is_made_from_another(kinds[name]) and (words := _misfit(kinds[name])):
        raise _unfit(text, words)


def _check_inner_games(given: Mapping[str, Any], kinds: Mapping[str, Any]) -> None:
    """Raises GameError or UnknownName unless the games that one is made from fit, at every depth; loads none of them.

    Games of other kinds open the files that their parameters name, as efg_game(filename=...) does, and the name of a
    game may come from a stranger's run or net.
    """
    for value in given.values():
        if isinstance(value, Mapping):
            _check_kind(value["name"], kinds, value["name"])
            _check_inner_games(value, kinds)


def _is_made_from_another(kind: Any) -> bool:
    """Games of this type, as misere(game=...), are of no certain kind before they are loaded."""
    return "game" in kind.parameter_specification and kind.dynamics == kind.Dynamics.SEQUENTIAL


def _check_size(text: str, game: Any) -> None:
    """Raises GameError if the game is too large to make its first position; where sizes overflow, they lie."""
    shape, actions = game.observation_tensor_shape(), game.num_distinct_actions()
    numbers = math.prod(shape) if min(shape, default=0) > 0 else 0
    if not (0 < numbers <= MOST_NUMBERS and 0 < actions <= MOST_ACTIONS and game.max_game_length() > 0):
        most = f"{MOST_ACTIONS:,} actions and observations of {MOST_NUMBERS:,} numbers"
        raise _unfit(text, f"it is too large: it may have {most} at most")


def _misfit(kind: Any) -> str:
    """The reason why games of this type cannot be used; empty if they can."""
    from pyspiel import GameType

    alone = kind.max_num_players == 1
    wanted = {
        TOO_MANY: kind.min_num_players <= MOST_PLAYERS,
        "its players must move in turn": kind.dynamics == GameType.Dynamics.SEQUENTIAL,
        NO_CHANCE: kind.chance_mode != GameType.ChanceMode.SAMPLED_STOCHASTIC,
        "nothing may be hidden": kind.information == GameType.Information.PERFECT_INFORMATION,
        "it must be zero-sum": alone or kind.utility == GameType.Utility.ZERO_SUM,
        "its result must come at the end": alone or kind.reward_model == GameType.RewardModel.TERMINAL,
        "it must give observations as tensors": kind.provides_observation_tensor,
    }
    return next((words for words, holds in wanted.items() if not holds), "")
