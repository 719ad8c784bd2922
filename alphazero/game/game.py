"""The interface that a game fills in, and `Position`, a checked and immutable position for people and players.

Write the rules once as scalar functions (see `Rules`), name them in a `Game`, and every engine of the
framework can run them. The search never pays for the checks that `Position` makes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, SupportsIndex

import numpy as np

from alphazero.errors import GameError, IllegalAction, count_of, listed, quote, shorten
from alphazero.game import views
from alphazero.game.board import Board, Clicks, Piece, View
from alphazero.game.drawing import draw
from alphazero.game.functions import plain, rule_functions, rules_fingerprint
from alphazero.game.reading.moves import parse_action, read_position, whole
from alphazero.game.rules import Rules, Score, results_of, shown_words, without_points


class Game:
    """A game with perfect information for one to eight players, with or without dice.

    Laws, which `alphazero check` tries in any game; it misses wrong rules that make another consistent game:
    - a position is over, or has a legal action; a game ends within `max_plies`;
    - `terminal_value` is -1, 0 or +1 for the player to move in the terminal position, or points within the `score`;
    - `step` depends on the state and the action alone, and changes no other state; dice come by `chance` and `settle`;
    - a symmetry of the observation permutes the legal actions and keeps who has won, and what dice bring.

    >>> import alphazero as az
    >>> from dataclasses import replace
    >>> tictactoe = az.load_game("tictactoe")
    >>> value_of_three = tictactoe.rules.terminal_value
    >>> def value(state):
    ...     return -value_of_three(state)
    >>> class ThreeLoses(type(tictactoe)):
    ...     name = "three_loses"
    ...     rules = replace(tictactoe.rules, terminal_value=value)  # `Rules` shows how to write all of them
    >>> ThreeLoses().position("a1 b1 a2 b2 a3").outcome, tictactoe.position("a1 b1 a2 b2 a3").outcome
    (-1, 1)
    """

    name: ClassVar[str]
    """The name on the command line and in every checkpoint."""
    num_actions: int
    """A: actions are 0 ... A-1; a forced pass is an action of its own."""
    state_words: int
    """K: words of a state."""
    max_plies: int
    """No game is longer."""
    too_long: ClassVar[str] = "raise max_plies, or let the rules end such a game"
    """The cure for a game that is longer all the same."""
    observation_shape: tuple[int, int, int]
    """(P, H, W): planes, rows, columns of what the network sees."""
    rules: Rules
    num_players: int = 2
    """From 1 to 8."""
    num_outcomes: int = 0
    """C: the most outcomes that a die of `chance` has; 0 in a game without dice."""
    dice_in_a_row: int = 1
    """The most dice that are due one after another before a player moves again."""
    score: Score | None = None
    """The meaning of `terminal_value`, unless it is -1, 0 or +1; a game for one needs it."""
    points_word: int | None = None
    """In a game for one with points along the way, the index of the state's word that counts those so far.
    The network never sees it, and says how many are to come; only `terminal_value` may depend on it."""
    history_words: int = 0
    """The last so many words of a state only tell what was there before, for repetitions; all 0: nothing. `legal`,
    `observe` and `transform` do not read them: what they forbid, `step` writes into other words."""
    mean_legal: int | None = None
    """The legal actions of a position on average: a search has room for so many at each node. None: for all actions."""
    action_places: Any = None
    """`int[A]`: each action's plane x H x W + square; then the policy of a residual network is planes of the board."""
    compiled: ClassVar[bool] = True
    """False: the rules run as plain Python, and numba does not try to compile them."""

    @property
    def value_shape(self) -> tuple[int, ...]:
        """A value is a number, for the player to move; for more than two, a number for each, from that player on."""
        return () if self.num_players <= 2 else (self.num_players,)

    @property
    def num_values(self) -> int:
        """V: the numbers of a value of that shape."""
        return math.prod(self.value_shape)

    @cached_property
    def symmetries(self) -> tuple[np.ndarray, np.ndarray]:
        """`(cells int64[S, H*W], actions int64[S, A])`; row 0 is the identity, and the default is it alone.

        Symmetry s maps an observation to `planes[..., cells[s]]` (cells row by row), a policy to `policy[actions[s]]`.
        """
        _, height, width = self.observation_shape
        return np.arange(height * width)[None], np.arange(self.num_actions)[None]

    def render(self, state: np.ndarray, to_play: int) -> str:
        """The board as text; `to_play` tells whose view `state` is: 0 for the first player."""
        return f"{self.turn(to_play)}: " + " ".join(f"{int(word):x}" for word in state[: shown_words(self)])

    def turn(self, to_play: int) -> str:
        """Whose turn it is, in words."""
        return "to move" if self.num_players == 1 else f"player {to_play + 1} to move"

    def format_action(self, action: int, state: np.ndarray) -> str:
        """The action in the notation of the game."""
        return str(action)

    def parse_action(self, text: str, state: np.ndarray) -> int:
        """The action that `text` means; raises ValueError if it means none (legality is not checked)."""
        return int(text)

    def format_outcome(self, outcome: int, state: np.ndarray) -> str:
        """The outcome of a die in the notation of the game: one word."""
        return str(outcome + 1)

    @cached_property
    def board(self) -> Board:
        """The cells for pictures and web pages. Default: the squares of the observation, row by row from the top.

        It has none, so that the text of `render` is shown, if the observation does not have stones as `pieces` says.
        """
        grid, is_own = views.grid_board(self), type(self).pieces is not Game.pieces
        return grid if not grid.cells or is_own or views.shows_stones(self.start()) else Board()

    def pieces(self, position: Position) -> Sequence[Piece]:
        """The pieces on the board. Default: plane 0 of the observation shows the mover's stones, 1 the opponent's."""
        return views.pieces_of_planes(position)

    def clicks(self, position: Position) -> Clicks:
        """The legal action that each click, or sequence of clicks, plays. Actions without a click are buttons.

        Keys are cells, one after another. Several clicks may play the same action; pictures mark it at the first.
        Default: cell i plays action i if the actions are the cells, or these and a pass; else `clicks_by_difference`.
        """
        are_cells = self.num_actions - len(self.board.cells) in (0, 1)
        return views.clicks_of_cells(position) if are_cells else views.clicks_by_difference(position)

    def winning_cells(self, position: Position) -> Sequence[int]:
        """The cells that decided a finished game, such as a line of four. Default: none."""
        return ()

    def remark(self, position: Position) -> str:
        """A few words besides the board, as `check` or how many stones were captured. Default: none."""
        return ""

    def start(self) -> Position:
        """The start position."""
        state = np.zeros(self.state_words, np.uint64)
        self.plain_rules.init(state)
        return Position(self, state, self.mover(state, 0), ())

    def position(self, moves: str | Sequence[SupportsIndex | str]) -> Position:
        """The position after some moves from the start, or of a board; raises IllegalAction, or InputError for a board.

        `moves` is a text in the game's notation, as "f5 d6", a board as `read_board` takes it, or a sequence of
        actions. A text of moves may be numbered and spelled as other programs do, and leave out forced passes.
        """
        if isinstance(moves, str):
            return read_position(self, moves)
        if not isinstance(moves, Iterable):
            raise IllegalAction(f'moves are a text, as "f5 d6", or a sequence of actions, not {quote(moves)}')
        position = self.start()
        for move in moves:
            position = position.play(position.parse(move) if isinstance(move, str) else move)
        return position

    def split_moves(self, text: str) -> list[str]:
        """The moves of a text; override it in a game whose moves hold commas, or need no spaces between them."""
        return text.replace(",", " ").split()

    def read_board(self, text: str) -> Position | None:
        """The position of a board that is written as text, without its history; None if the text is no board.

        Raises ValueError, which says why, for a board that no game leads to. Default: None, so that a text is moves.
        `read_grid` reads a sign for each cell; `placed_in_turn` makes a position of it if the actions are the cells.
        """
        return None

    @cached_property
    def plain_rules(self) -> Rules:
        """The rules as plain Python functions, in which words overflow silently, as compiled ones do."""
        given = {name: rule for name, rule in rule_functions(self.rules).items() if rule is not None}
        return replace(self.rules, **{name: np.errstate(over="ignore")(plain(rule)) for name, rule in given.items()})

    def __getstate__(self) -> dict[str, Any]:
        """The attributes that another process needs to make the same game."""
        return {name: value for name, value in vars(self).items() if name not in ("plain_rules", "_fingerprint")}

    def is_like(self, other: Game) -> bool:
        """True if the two are one object, or of one class with equal rules: their positions mean the same."""
        same_class = type(self) is type(other) and self.name == other.name
        return self is other or (same_class and self._fingerprint == other._fingerprint)

    @cached_property
    def _fingerprint(self) -> str:
        """A name for the rules; to find it takes milliseconds."""
        return rules_fingerprint(self.rules)

    def following(self, player: int) -> int:
        """The next player where players take turns."""
        return (player + 1) % self.num_players

    def mover(self, state: np.ndarray, alternating: int) -> int:
        """The player to move at `state`: the answer of the rules, or `alternating` where players take turns."""
        to_play = (lambda state: 0) if self.num_players == 1 else self.plain_rules.to_play
        return alternating if to_play is None else int(to_play(state))


class Position:
    """One position of a game: immutable, with its history and every rule checked.

    The history of a board that was set up begins with the board. Positions are equal if the game, the state and the
    player to move are, whatever has led there.

    >>> import alphazero as az
    >>> position = az.load_game("connect4").position("4453")
    >>> position.ply, position.to_play, position.terminal, position.legal_actions
    (4, 0, False, [0, 1, 2, 3, 4, 5, 6])
    >>> print(position.play(position.parse("4")))
    . . . . . . .
    . . . . . . .
    . . . . . . .
    . . . X . . .
    . . . O . . .
    . . O X X . .
    1 2 3 4 5 6 7
    """

    def __init__(
        self, game: Game, state: np.ndarray, to_play: int, actions: tuple[int, ...], start: Position | None = None
    ):
        self.game = game
        self.state = state
        """`uint64[K]`, read-only."""
        self.to_play = to_play
        """The player to move: 0 for the first one."""
        self.actions = actions
        """The actions that led here from `start`."""
        self._start = start
        state.setflags(write=False)

    @property
    def ply(self) -> int:
        """Actions played so far."""
        return len(self.actions)

    @property
    def start(self) -> Position:
        """The position where `actions` begin: the start of the game, or a board that was set up."""
        return self._start or (self.game.start() if self.actions else self)

    @property
    def is_set_up(self) -> bool:
        """The history begins with another board than the start of the game."""
        return self.start != self.game.start()

    @property
    def history(self) -> list[Position]:
        """All positions from `start` to this one; raises IllegalAction if the actions do not lead here."""
        return list(accumulate(self.actions, Position.play, initial=self.start))

    def follows(self, earlier: Position) -> bool:
        """`earlier` is part of this position's history, or equal to this position."""
        return self.actions[: earlier.ply] == earlier.actions and self.start == earlier.start

    @cached_property
    def terminal(self) -> bool:
        """The game is over."""
        return bool(self.game.plain_rules.is_terminal(self.state))

    @property
    def outcome(self) -> int:
        """+1 if the first player has won, -1 if the second, 0 for a draw; GameError if the game is not over.

        In a game for more than two it is 0 if the first player shares the best result, -1 if another one has it.
        """
        if self.game.value_shape:
            return int(self.winners == (0,)) - int(0 not in self.winners)
        return int(np.sign(self.points))

    @cached_property
    def points(self) -> float:
        """The first player's result as the rules count; GameError if the game is not over."""
        return self.results[0]

    @cached_property
    def results(self) -> tuple[float, ...]:
        """Each player's result as the rules count, the first player's first; GameError if the game is not over."""
        if not self.terminal:
            raise GameError("the game is not over, so it has no outcome")
        return results_of(self.game.plain_rules, self.state, self.to_play, self.game.num_players)

    @property
    def winners(self) -> tuple[int, ...]:
        """The players with the best result, more than one if they share it; GameError if the game is not over."""
        return tuple(player for player, result in enumerate(self.results) if result == max(self.results))

    @cached_property
    def chances(self) -> tuple[float, ...]:
        """The probability of each outcome of the die that is due; none where a player is to move."""
        chance, found = self.game.plain_rules.chance, np.zeros(self.game.num_outcomes)
        return () if chance is None or self.terminal else tuple(found[: int(chance(self.state, found))].tolist())

    @cached_property
    def legal_mask(self) -> np.ndarray:
        """`bool[A]`, true = allowed; all false when the game is over, or a die is due."""
        mask = np.zeros(self.game.num_actions, bool)
        if not self.terminal and not self.chances:
            self.game.plain_rules.legal(self.state, mask)
        mask.setflags(write=False)
        return mask

    @property
    def legal_actions(self) -> list[int]:
        """The allowed actions, ascending; where a die is due, its outcomes."""
        return list(range(len(self.chances))) or [int(action) for action in np.flatnonzero(self.legal_mask)]

    @cached_property
    def observation(self) -> np.ndarray:
        """`float32[P, H, W]`: what the network sees."""
        planes = np.zeros(self.game.observation_shape, np.float32)
        self.game.plain_rules.observe(without_points(self.state, self.game.points_word), planes)
        planes.setflags(write=False)
        return planes

    def play(self, action: SupportsIndex) -> Position:
        """The position after `action`, or an outcome of the die; raises IllegalAction naming the legal ones."""
        action = whole(action)
        if self.terminal:
            raise IllegalAction("the game is over: no action can be played")
        if action not in self.legal_actions:
            legal = listed(map(self.format, self.legal_actions))
            raise IllegalAction(f"action {shorten(action)} is not legal here (legal: {legal})")
        state, rules = self.state.copy(), self.game.plain_rules
        (rules.settle if self.chances else rules.step)(state, action)  # type: ignore[misc]
        start = self._start if self.actions else self
        mover = self.game.mover(state, self.to_play if self.chances else self.game.following(self.to_play))
        return Position(self.game, state, mover, (*self.actions, action), start)

    def parse(self, text: str) -> int:
        """The legal action, or outcome of the die, that `text` means; raises IllegalAction naming the legal ones."""
        return parse_action(self, text)

    def format(self, action: SupportsIndex) -> str:
        """`action`, or an outcome of the die, in the game's notation; IllegalAction if it is no whole number."""
        write = self.game.format_outcome if self.chances else self.game.format_action
        return write(whole(action), self.state)

    @cached_property
    def view(self) -> View:
        """The pieces, and the clicks that play each legal action, as data. The cells are in `Game.board`."""
        return views.view_of(self)

    def svg(
        self,
        policy: Mapping[int, float] | Sequence[float] | np.ndarray | None = None,
        values: Mapping[int, float] | Sequence[float] | np.ndarray | None = None,
    ) -> str:
        """A picture of the position as SVG.

        `policy` shades each action by its share of the sum, as visit counts. `values` stand on the actions, or on those
        with a share. Each is an array of A numbers, or maps actions to numbers; GameError for another size.
        """
        for numbers in (policy, values):
            if not (numbers is None or isinstance(numbers, Mapping)) and np.shape(numbers) != (self.game.num_actions,):
                law = f"one number for each of the {self.game.num_actions} actions, or map actions to numbers"
                raise GameError(f"a policy and values have {law}; this one has the shape {np.shape(numbers)}")
        return draw(self.game.board, self.view, self.game.name, policy, values, self.game.num_players)

    _repr_svg_ = svg

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Position):
            return NotImplemented
        here, there = (self.to_play, self.state.tobytes()), (other.to_play, other.state.tobytes())
        return here == there and self.game.is_like(other.game)

    def __hash__(self) -> int:
        return hash((self.game.name, self.to_play, self.state.tobytes()))

    def __deepcopy__(self, memo: dict[int, Any]) -> Position:
        return self  # immutable; with its game anew, it would be compiled anew

    def __reduce__(self) -> tuple[Any, ...]:
        """By `__init__`, since an array that is read from a pickle can be written to."""
        return type(self), (self.game, self.state, self.to_play, self.actions, self._start)

    def __repr__(self) -> str:
        status = "a die is due" if self.chances else self.game.turn(self.to_play)
        status = "the game is over" if self.terminal else status
        return f"<{self.game.name} after {count_of(self.ply, 'ply')}{' from a board' * self.is_set_up}: {status}>"

    def __str__(self) -> str:
        return self.game.render(self.state, self.to_play)
