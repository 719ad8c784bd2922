"""From scalar rules to batch kernels: the same functions under a loop.

The templates below call the rules by their names (`step`, `legal`, ...). `Kernels.bind` gives them the functions of
one game and compiles the result, kept on disk under the fingerprint of all that went into it. A kernel is serial and
lets go of Python's lock, so that threads run many of them side by side, each on its own positions.
References to arrays are not counted, unless the rules make arrays: counting takes longer than most rules.
Where numba cannot compile a game's rules, the same templates run them as plain Python.
"""

from __future__ import annotations

import functools
import logging
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit
from numba.core.registry import CPUDispatcher
from numpy.typing import ArrayLike

from alphazero.errors import GameError, quote
from alphazero.game.functions import bound, fingerprint, for_processor, plain, recursive, rule_functions, with_callees
from alphazero.game.game import Game
from alphazero.game.randomness import CHANCE, make_key, uniform
from alphazero.game.rules import shown_words
from alphazero.storage.kernel_cache import cached, needs_compiling

logger = logging.getLogger(__name__)
DIE = 8
"""Is added to `to_play` of a search's node where a die is due."""
NO_POINTS = NO_HISTORY = np.uint64(0)
LONGEST_LABEL = 60
"""Characters of a game's name in those of its compiled code, after which files are named."""
TERMINAL_STYLES = re.compile(r"\x1b\[[0-9;]*m")


def _init_states(states):
    """Writes the start position into every row of `uint64[n, K]`."""
    for i in range(len(states)):
        init(states[i])


def _describe(states, legal_masks, terminal, values):
    """Legal actions `bool[n, A]`, over or not `bool[n]`, and the result `float32[n, V]` of every state.

    V is 1, for the result of the player to move, or in a game for more than two their number: see `Game.value_shape`.
    """
    for i in range(len(states)):
        legal_masks[i] = False
        for seat in range(values.shape[1]):
            values[i, seat] = 0.0
        terminal[i] = is_terminal(states[i])
        if terminal[i]:
            write_result(states[i], values, i)
        else:
            legal(states[i], legal_masks[i])


def _play(states, to_play, actions):
    """Plays `actions[i]` in place in row i; -1 leaves the row alone. `to_play int8[n]` is kept up to date."""
    for i in range(len(states)):
        if actions[i] >= 0:
            step(states[i], int(actions[i]))  # numpy's whole numbers shift no uint64, where rules are not compiled
            to_play[i] = mover(states[i], following(to_play[i]))


def _find_movers(states, to_play):
    """Writes who moves into `to_play int8[n]`, which comes with the player to assume where players alternate."""
    for i in range(len(states)):
        to_play[i] = mover(states[i], to_play[i])


def _advance(states, to_play, parents, actions, children, terminal, values, leaf_states, leaf_masks):
    """Plays one action per pair (parent, child) of rows and describes the result; returns how many need a network.

    `states uint64[R, K]`, `to_play int8[R]`: all nodes of all trees; `parents`, `actions`, `children int[n]`: rows,
    -1 = skip. Writes `terminal bool[n]`, `values float32[n, V]` (the result where terminal), and packs the states
    and legal masks of the others, in order, into `leaf_states uint64[n, K]`, `leaf_masks bool[n, A]`.
    """
    count = 0
    for i in range(len(parents)):
        parent, child = parents[i], children[i]
        if parent < 0:
            continue
        state = states[child]
        for word in range(states.shape[1]):  # copying a slice might need new memory, which some targets do not have
            state[word] = states[parent, word]
        step(state, int(actions[i]))
        to_play[child] = mover(state, following(to_play[parent]))
        terminal[i] = is_terminal(state)
        if terminal[i]:
            write_result(state, values, i)
        else:
            for word in range(states.shape[1]):
                leaf_states[count, word] = state[word]
            legal(state, leaf_masks[count])
            count += 1
    return count


def _advance_to_die(
    states, to_play, parents, actions, children, terminal, values, leaf_states, leaf_masks, chances, probabilities
):
    """`_advance` in a game with dice, whose nodes have DIE added to `to_play` where one is due.

    An action of such a node is an outcome. Writes the probabilities of the die that is due after each action into a
    row of `chances float32[n, C]`, 0 first if none is. `probabilities float64[C]` is scratch space.
    """
    count = 0
    for i in range(len(parents)):
        parent, child = parents[i], children[i]
        if parent < 0:
            continue
        state = states[child]
        for word in range(states.shape[1]):
            state[word] = states[parent, word]
        if to_play[parent] >= DIE:
            settle(state, int(actions[i]))
            to_play[child] = mover(state, to_play[parent] - DIE)
        else:
            step(state, int(actions[i]))
            to_play[child] = mover(state, following(to_play[parent]))
        chances[i, 0] = 0.0
        terminal[i] = is_terminal(state)
        if terminal[i]:
            write_result(state, values, i)
            continue
        due = chance(state, probabilities)
        if due > 0:
            to_play[child] += DIE
            for outcome in range(chances.shape[1]):
                chances[i, outcome] = probabilities[outcome] if outcome < due else 0.0
        else:
            for word in range(states.shape[1]):
                leaf_states[count, word] = state[word]
            legal(state, leaf_masks[count])
            count += 1
    return count


def _roll_dice(state, player, key, probabilities, outcomes):
    """Settles the dice that are due, in place, by draws of `key`; returns who moves then.

    Writes the outcomes into `outcomes int64[D]`, -1 behind them. `probabilities float64[C]` is scratch space.
    """
    outcomes[:] = -1
    number = 0
    while not is_terminal(state):
        due = chance(state, probabilities)
        if due == 0:
            break
        left, outcome = uniform(key, number), 0
        while outcome < due - 1 and left > probabilities[outcome]:
            left -= probabilities[outcome]
            outcome += 1
        settle(state, outcome)
        player = mover(state, player)
        if number < len(outcomes):
            outcomes[number] = outcome
        number += 1
    return player


def _no_dice(state, player, key, probabilities, outcomes):
    return player


def _roll(states, to_play, seed, games, plies, probabilities, outcomes):
    """`_roll_dice` for each of `states uint64[n, K]`, by a hash of (seed, game, ply); `outcomes int64[n, D]`."""
    for i in range(len(states)):
        key = make_key(seed, games[i], plies[i], CHANCE)
        to_play[i] = roll_dice(states[i], to_play[i], key, probabilities, outcomes[i])


def _find_die(states, probabilities):
    """The first of `states uint64[n, K]` where a die is due, or -1. `probabilities float64[C]` is scratch space."""
    for i in range(len(states)):
        if chance(states[i], probabilities) > 0:
            return i
    return -1


def _wins_by(state, action, after):
    """The action ends the game at once with the best result for who plays it; `after uint64[K]` is scratch space."""
    for word in range(len(state)):
        after[word] = state[word]
    step(after, action)
    if not is_terminal(after):
        return False
    player = mover(state, 0)
    result = terminal_value(after)
    return result >= 1.0 if mover(after, following(player)) == player else result <= -1.0


def _observe_states(states, planes):
    """Writes the observations `float32[n, P, H, W]` of `uint64[n, K]`."""
    planes[:] = 0.0
    for i in range(len(states)):
        observe(states[i], planes[i])


def _to_canonical(state, image, canonical):
    """Writes the smallest of the state's mirror images to `canonical uint64[K]`; returns by which symmetry it is one.

    It has none of the points so far, and no history. `image uint64[K]` is scratch space.
    """
    chosen, shown = 0, len(state) - HISTORY_WORDS
    for word in range(shown):
        canonical[word] = state[word] if word != POINTS_WORD else NO_POINTS
    for word in range(shown, len(state)):
        canonical[word] = image[word] = NO_HISTORY
    for symmetry in range(1, NUM_SYMMETRIES):
        for word in range(shown):
            image[word] = state[word] if word != POINTS_WORD else NO_POINTS
        transform(image, symmetry)
        for word in range(shown):
            if image[word] != canonical[word]:
                if image[word] < canonical[word]:
                    chosen = symmetry
                    for other in range(shown):
                        canonical[other] = image[other]
                break
    return chosen


def _canonicalize(states, symmetries, image, canonical):
    """Turns every state into the smallest of its mirror images; `symmetries int64[n]` says by which symmetry.

    `image`, `canonical uint64[K]` are scratch space.
    """
    for i in range(len(states)):
        symmetries[i] = to_canonical(states[i], image, canonical)
        for word in range(len(image)):
            states[i, word] = canonical[word]


def kernel(function: Callable[..., Any]) -> Any:
    """Compiles a function that knows no game; kept on disk under the fingerprint of all that it calls, in any file.

    The arrays belong to the caller, so kernels need not count references to them, which costs more than the search
    itself (2.5 times slower); numba's own name for that is `_nrt`. Division by zero gives inf or nan without a branch.
    """
    function.__qualname__ += f"_{fingerprint(function)}"
    return cached(function, nogil=True, error_model="numpy", _nrt=False)


def inlined(function: Callable[..., Any]) -> Any:
    """Compiles a function that kernels call, into their own code; a call from Python raises TypeError.

    The code by which Python could call it would take as long to compile as the function: a search's trees are many
    arrays, which it would take out of Python's objects.
    """
    compiler = njit(forceinline=True, error_model="numpy", _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    made = compiler(function)
    if isinstance(made, CPUDispatcher):  # else numba is switched off
        made.__class__ = _Inlined
    return made


class _Inlined(CPUDispatcher):  # type: ignore[misc]
    def __call__(self, *arguments: Any) -> Any:
        """Else the process would crash."""
        raise TypeError(f"{self.__name__} is compiled for kernels to call, not for Python")


def entry_point(function: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """The compiled function for arguments of these types: 0.8 instead of 8 microseconds a call of a search's kernels.

    numba looks at the type of every array and number of every call; this looks once. So each call must have arguments
    of the same types: number types, dimensions and layout of arrays; others are not noticed, and read wrong memory. A
    plain function is returned as it is.
    """
    dispatcher: Any = function
    if not hasattr(dispatcher, "compile"):
        return function
    signature = tuple(dispatcher.typeof_pyval(argument) for argument in arguments)
    dispatcher.compile(signature)
    return dispatcher.overloads[signature].entry_point


def of_fixed_types(function: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel, which looks at the types of its arguments in the first call alone: see `entry_point`."""
    entry: Callable[..., Any] | None = None

    def call(*arguments: Any) -> Any:
        nonlocal entry
        if entry is None:
            entry = entry_point(function, *arguments)
        return entry(*arguments)

    return call


def _bound(template: Callable[..., Any], *helpers: Callable[..., Any]) -> functools.cached_property[Kernel]:
    """A property of Kernels: the template, bound to the game when it is first asked for."""
    return functools.cached_property(lambda kernels: kernels.bind(template, *helpers))


class BoundRules:
    """The rules of a game, and the templates that were bound to them."""

    def __init__(self, game: Game):
        self._name, self._compiled = game.name, game.compiled
        rules = {name: rule for name, rule in rule_functions(game.rules).items() if rule is not None}
        self.scope: dict[str, Any] = {
            "NUM_SYMMETRIES": len(game.symmetries[1]), "NUM_PLAYERS": game.num_players,
            "POINTS_WORD": -1 if game.points_word is None else game.points_word, "HISTORY_WORDS": game.history_words,
            "heuristic": _no_heuristic, "transform": _no_transform,
            "terminal_value": _no_heuristic,  # which templates for two may ask for
            **rules,
        }  # fmt: skip
        if game.score:
            result = "returns" if game.value_shape else "terminal_value"
            self.scope |= {"LOW_SCORE": float(game.score.low), "HIGH_SCORE": float(game.score.high)}
            self.scope["unscaled"] = self.scope[result]
            self.scope[result] = bound(_scaled_returns if game.value_shape else _scaled_value, self.scope)
        templates: dict[str, Callable[..., Any]] = {
            "write_result": _write_returns if game.value_shape else _write_value,
            "gained": _nothing if game.points_word is None else _gained,
            "following": _following,
            "mover": _ask_rules if "to_play" in rules and game.num_players > 1 else _alternate,
            "roll_dice": _roll_dice if "chance" in rules else _no_dice,
        }
        for name, template in templates.items():
            self.scope[name] = bound(template, self.scope)  # it may call those before it
        self._made: dict[bool, dict[Callable[..., Any], Any]] = {False: {}, True: {}}
        """The compiled functions that the kernels call, by source; without and with counts of references."""
        self._bound: dict[tuple[Callable[..., Any], ...], Kernel] = {}
        self._scopes: dict[tuple[Callable[..., Any], ...], dict[str, Any]] = {}
        self._lock = threading.RLock()
        """Held while functions are made: those that are not compiled yet are in `_made`, too."""

    def bind(self, template: Callable[..., Any], *helpers: Callable[..., Any]) -> Kernel:
        parts = template, *helpers
        with self._lock:
            if parts not in self._bound:
                self._bound[parts] = self._bind(template, helpers)
            return self._bound[parts]

    def _bind(self, template: Callable[..., Any], helpers: Sequence[Any]) -> Kernel:
        kept = {helper.py_func: helper for helper in helpers if hasattr(helper, "py_func")}
        scope = self._scope_with(tuple(helper for helper in helpers if not hasattr(helper, "py_func")))
        function = bound(template, scope)
        if not self._compiled:
            return Kernel(self._name, lambda counted: function, kept)
        # numba keeps compiled code under the function's name: make it say all that went into it
        label = re.sub(r"\W", "_", self._name)[:LONGEST_LABEL]
        name = f"{label}{template.__name__}_{{}}_{fingerprint(function)}"

        def compiled(counted: bool) -> Any:
            with self._lock:
                self._made[counted].update(kept)
                made = with_callees(function, functools.partial(for_processor, counted=counted), self._made[counted])
                made.__qualname__ = name.format("counted" if counted else "bare")
                if recursive(function):  # numba keeps code of it on disk that may crash when loaded (its issue 6061)
                    return njit(made, nogil=True, _nrt=counted, no_cfunc_wrapper=True)
                return cached(made, nogil=True, _nrt=counted)

        return Kernel(self._name, compiled, kept)

    def _scope_with(self, helpers: tuple[Callable[..., Any], ...]) -> dict[str, Any]:
        """The rules and these templates by name; each may call those before it. Kernels with equal ones share them."""
        if not helpers:
            return self.scope
        if helpers not in self._scopes:
            scope, name = self._scope_with(helpers[:-1]), helpers[-1].__name__[1:]
            function = bound(helpers[-1], scope)
            function.__globals__[name] = function  # it may call itself
            self._scopes[helpers] = scope | {name: function}
        return self._scopes[helpers]


MOST_RULES = 64
"""Bound rules that are kept for further game objects."""
_kept_rules: dict[tuple[Any, ...], BoundRules] = {}
_keeping = threading.Lock()


def _bind_rules(game: Game) -> BoundRules:
    """The rules of an earlier game object, if these are the same functions and all that they use is the same.

    numba keeps what it has compiled for ever. So a server that names a game in every call, or a process that is sent
    positions, must not compile the rules for every object. A class that is defined anew has other functions, and never
    shares code with the old one; what the same functions use may have changed, which their fingerprint tells.
    """
    if not game.compiled:
        return BoundRules(game)
    rules = tuple(rule_functions(game.rules).values())
    numbers = len(game.symmetries[1]), game.num_players, game.score, game.points_word, game.history_words
    key = game.name, numbers, fingerprint(*rules), *map(id, rules)  # what is kept has them: ids stay
    with _keeping:
        if key not in _kept_rules:
            if len(_kept_rules) == MOST_RULES:
                del _kept_rules[next(iter(_kept_rules))]  # the oldest
            _kept_rules[key] = BoundRules(game)
        return _kept_rules[key]


class Kernels:
    """The batch kernels of one game; every one is compiled, or found on disk, when it is first called.

    >>> import alphazero as az
    >>> kernels = az.Kernels(az.load_game("tictactoe"))
    >>> legal_masks, terminal, values = kernels.describe_all(kernels.start_states(3))
    >>> legal_masks.shape, terminal.any()
    ((3, 9), np.False_)
    """

    def __init__(self, game: Game):
        if not isinstance(game, Game):
            raise GameError(f"kernels are made of a Game, as az.load_game gives it, not of {quote(game)}")
        self.game = game
        self.rules = _bind_rules(game)
        """Shared by all game objects that have them."""
        self.scope = self.rules.scope

    def bind(self, template: Callable[..., Any], *helpers: Callable[..., Any]) -> Kernel:
        """The template with this game's rules, made at the first call.

        `helpers` are what it calls: templates, by name less the underscore, and kernels that know no game. The same
        template gives the same kernel, also in another game object of the same rules.
        """
        return self.rules.bind(template, *helpers)

    @functools.cached_property
    def symmetries(self) -> tuple[np.ndarray, np.ndarray]:
        """The game's own, `int64[S, H W]` and `int64[S, A]`: a game may give lists, or other whole numbers."""
        cells, actions = (np.ascontiguousarray(table, np.int64) for table in self.game.symmetries)
        return cells, actions

    init_states = _bound(_init_states)
    describe = _bound(_describe)
    play = _bound(_play)
    find_movers = _bound(_find_movers)
    advance = _bound(_advance)
    advance_to_die = _bound(_advance_to_die)
    find_die = _bound(_find_die)
    observe = _bound(_observe_states)

    @functools.cached_property
    def canonicalize(self) -> Kernel | None:
        """None if the network sees all states as they are."""
        has_images = self.game.rules.transform is not None and len(self.game.symmetries[1]) > 1
        if not has_images and self.game.points_word is None and not self.game.history_words:
            return None
        return self.bind(_canonicalize, _to_canonical)

    def roll(
        self, states: np.ndarray, to_play: np.ndarray, seed: int, games: np.ndarray, plies: np.ndarray
    ) -> np.ndarray:
        """Settles the dice that are due in `states uint64[n, K]`, in place, and keeps `to_play int8[n]` up to date.

        What they show depends on (seed, game, ply) alone. Returns the outcomes `int64[n, D]`, -1 behind them; D is
        `dice_in_a_row`, or 0 in a game without dice.
        """
        game = self.game
        outcomes = np.full((len(states), game.dice_in_a_row if game.num_outcomes else 0), -1)
        if game.num_outcomes:
            self.bind(_roll)(states, to_play, seed, games, plies, np.empty(game.num_outcomes), outcomes)
        return outcomes

    def canonical(self, states: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """`(states uint64[n, K], symmetries int64[n])`: the smallest mirror image of each state, for the network.

        `symmetries` says which symmetry s led to the image: its action a is the state's own `symmetries[1][s, a]`.
        In a game without `transform`, each state is its own image. An image has no history. Raises ValueError for
        states of another shape.
        """
        states = self.rows(states).copy()
        symmetries = np.zeros(len(states), np.int64)
        if self.canonicalize is not None:
            self.canonicalize(states, symmetries, *np.empty((2, states.shape[1]), states.dtype))
        return states, symmetries

    def start_states(self, count: int) -> np.ndarray:
        """`uint64[count, K]`: the start position, `count` times."""
        states = np.zeros((count, self.game.state_words), np.uint64)
        self.init_states(states)
        return states

    def rolled_states(self, count: int) -> np.ndarray:
        """`uint64[count, K]`: the start position with the dice of `count` games, if any are due there."""
        states, games = self.start_states(count), np.arange(count)
        self.roll(states, np.zeros(count, np.int8), 0, games, np.zeros(count, np.int64))
        return states

    def rows(self, states: ArrayLike) -> np.ndarray:
        """The states as kernels take them: `uint64[n, K]`; raises ValueError for another shape.

        States without their history words get those of no history. A kernel that is called with another type at first
        could become plain Python, for good.
        """
        rows, words = np.ascontiguousarray(states, np.uint64), self.game.state_words
        if rows.ndim != 2 or rows.shape[1] not in (words, shown_words(self.game)):
            raise ValueError(f"states must have the shape (n, {words}), not {np.shape(states)}")
        return rows if rows.shape[1] == words else np.pad(rows, ((0, 0), (0, self.game.history_words)))

    def observations(self, states: ArrayLike) -> np.ndarray:
        """`float32[n, P, H, W]` of `uint64[n, K]`; raises ValueError for states of another shape."""
        states = self.rows(states)
        planes = np.empty((len(states), *self.game.observation_shape), np.float32)
        self.observe(states, planes)
        return planes

    def describe_all(self, states: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`(legal_masks bool[n, A], terminal bool[n], values float32[n])` of `uint64[n, K]`.

        Values are the results of the players to move, or of all players: see `Game.value_shape`. Raises ValueError for
        states of another shape.
        """
        states = self.rows(states)
        masks = np.empty((len(states), self.game.num_actions), bool)
        terminal, values = np.empty(len(states), bool), np.empty((len(states), self.game.num_values), np.float32)
        self.describe(states, masks, terminal, values)
        return masks, terminal, values.reshape(-1, *self.game.value_shape)


kernels_of = functools.lru_cache(maxsize=16)(Kernels)
"""The kernels of a game, made once for all callers."""


def check_length(game: Game, plies: int) -> None:
    """Raises GameError for a game that is not over after so many plies though the class says that it must be."""
    if plies >= game.max_plies:
        raise GameError(f"{game.name}: a game went on after its max_plies = {game.max_plies}: {game.too_long}")


class Kernel:
    """One template bound to one game: compiled, or plain Python from the first call that numba cannot compile.

    `make(counted)` gives the function that numba compiles. With `counted` it counts the references to its arrays, which
    rules that make new arrays need, and which makes others several times slower; so it is the second choice.
    `kept` are the kernels in it that know no game, by source: they stay compiled.
    """

    def __init__(self, game_name: str, make: Callable[[bool], Any], kept: dict[Callable[..., Any], Any]):
        self._game_name, self._make, self._kept = game_name, make, kept
        self._run: Callable[..., Any] | None = None
        self._lock = threading.Lock()
        """Held while it is compiled; who holds it may take that of `Kernels` and numba's own, never the reverse."""
        self.compiled = make(False)

    def __call__(self, *arguments: Any) -> Any:
        if self._run is not None:
            return self._run(*arguments)
        run, reason = self._made_ready(arguments)
        result = run(*arguments)
        if reason is not None:  # plain Python can do it, so it was not the arguments that numba could not compile
            self._fall_back(reason)
        return result

    def _made_ready(self, arguments: tuple[Any, ...]) -> tuple[Callable[..., Any], Exception | None]:
        """The function to run, compiled by the first thread that needs it; if it is not compiled, the reason why."""
        with self._lock:
            run, reason = self._compile(arguments) if self._run is None else (self._run, None)
            if reason is None:
                self._run = run
            return run, reason

    def _ready(self, arguments: tuple[Any, ...]) -> Any:
        """The function to run; plain Python for good where numba cannot compile it for these arguments."""
        run, reason = self._made_ready(arguments)
        if reason is not None:
            self._fall_back(reason)
        return run

    def _fall_back(self, reason: Exception) -> None:
        """From now on plain Python runs; the reason is said once for each game."""
        self._run = self.plain
        if self._game_name not in _said:
            _said.add(self._game_name)
            told = "numba cannot compile the rules of %s; they run as plain Python, slower: %s"
            logger.warning(told, self._game_name, reason_of(reason))

    def _compile(self, arguments: tuple[Any, ...]) -> tuple[Callable[..., Any], Exception | None]:
        """Compiles before anything runs, so that an error of numba is never taken for one of the rules."""
        if not hasattr(self.compiled, "compile"):  # a Python game, or numba is switched off (NUMBA_DISABLE_JIT)
            return self.plain, None
        types = tuple(self.compiled.typeof_pyval(argument) for argument in arguments)
        # first what was compiled before, so that the other is not tried in vain at every start
        for choice in sorted((self.compiled, self._make(True)), key=needs_compiling):
            try:
                choice.compile(types)
                self.compiled = choice
                return choice, None
            except OSError:  # the disk's fault, not the rules'
                raise
            except Exception as error:  # not all that numba raises is a NumbaError
                reason = error
        return self.plain, reason

    def entry_point(self, *arguments: Any) -> Callable[..., Any]:
        """See `entry_point`; plain Python where numba cannot compile the rules."""
        return entry_point(self._ready(arguments), *arguments)

    def address(self, *arguments: Any) -> int:
        """Where the code for arguments of these types begins, for kernels that call it; 0 if it is not compiled."""
        run = self._ready(arguments)
        if not hasattr(run, "overloads"):
            return 0
        signature = tuple(run.typeof_pyval(argument) for argument in arguments)
        run.compile(signature)  # it may be ready for arguments of other types alone
        code = run.overloads[signature]
        return int(code.library.get_pointer_to_function(code.fndesc.llvm_func_name))

    @property
    def is_compiled(self) -> bool:
        """It has run, and not as plain Python."""
        return self._run is not None and self._run is self.compiled

    @functools.cached_property
    def plain(self) -> Callable[..., Any]:
        """The same kernel run by Python: slow, and the yardstick of the compiled one."""
        return np.errstate(over="ignore")(plain(self.compiled, self._kept))


_said: set[str] = set()


def reason_of(error: Exception) -> str:
    """One line that says why numba cannot compile a function."""
    # numba puts a line about itself before the reason for each function on the way, some in bold
    lines = TERMINAL_STYLES.sub("", str(error)).split("\n")
    reason = " ".join(" ".join(line for line in lines if not line.startswith("Failed in ")).split())[:300]
    tables = any(words in reason for words in ("reflected list", "class 'dict'", "class 'type'"))
    return reason + "; write tables as tuples or arrays of numpy at the top of the file" * tables


def _ask_rules(state, alternating):
    return to_play(state)


def _following(player):
    return (player + 1) % NUM_PLAYERS


def _write_value(state, values, i):
    values[i, 0] = terminal_value(state)


def _write_returns(state, values, i):
    returns(state, values[i])


def _alternate(state, alternating):
    return alternating


def _scaled_value(state):
    """`Score.value` of the points that the end brings, without those that `points_word` has counted."""
    points = float(unscaled(state))
    if POINTS_WORD >= 0:
        points -= float(np.int64(state[POINTS_WORD]))
    return min(max(points, LOW_SCORE), HIGH_SCORE) / max(-LOW_SCORE, HIGH_SCORE)


def _scaled_returns(state, results):
    """`Score.value` of each player's points."""
    unscaled(state, results)
    for seat in range(len(results)):
        results[seat] = min(max(results[seat], LOW_SCORE), HIGH_SCORE) / max(-LOW_SCORE, HIGH_SCORE)


def _gained(before, after):
    """The value of the points that `points_word` has counted from one state to a later one."""
    points = np.int64(after[POINTS_WORD]) - np.int64(before[POINTS_WORD])
    return float(points) / max(-LOW_SCORE, HIGH_SCORE)


def _nothing(before, after):
    return 0.0


def _no_heuristic(state):
    return 0.0


def _no_transform(state, symmetry):
    """Is never called: a game without `transform` has one symmetry, which changes nothing."""
