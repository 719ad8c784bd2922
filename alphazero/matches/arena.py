"""Matches: many games between two players, side by side, with paired openings and both colours.

Games 2i and 2i + 1 start from the same random opening with the players swapped, so that neither the opening nor the
right to begin favours anyone. Openings are distinct positions as long as the game has them.
"""

from __future__ import annotations

import logging
import math
import time
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alphazero.errors import EvaluationError, IllegalAction, count_of, listed, shorten
from alphazero.game import Game, Position
from alphazero.game.kernels import Kernels, check_length, kernels_of
from alphazero.matches.openings import Balance, Openings, announce_choice, choose_openings, warn_of_few
from alphazero.matches.result import MatchResult
from alphazero.players.human import HumanLeft
from alphazero.players.player import FollowingPlayer, Forfeit, Player, TakeBack
from alphazero.progress import Progress
from alphazero.settings import check_range

logger = logging.getLogger(__name__)

SIDE_BY_SIDE = 256
"""Games in progress at once."""
PAUSE = 0.1
"""Seconds between two looks at a match in which no game has ended meanwhile."""
GAMES_WITH_HUMAN = 2
"""Games of a match with a human, unless told otherwise: nobody wants to play a hundred by hand."""
LEFT = "You have left the match."
MOST_FORFEIT = 400
"""Characters of the reason for a forfeit: a file takes them, also if each is written as an escape of ten."""


def side_by_side(players: Sequence[Player], num_games: int) -> int:
    """The games of a match that are played at the same time."""
    return 1 if any(player.one_at_a_time for player in players) else min(num_games, SIDE_BY_SIDE)


def openings_of(
    game: Game, num_games: int, seed: int, opening_plies: int | None = None, balance: Balance | None = None
) -> Openings:
    """The openings of a match, each for a pair of games; raises InvalidSetting if there are none.

    `opening_plies`: their random plies; None asks `choose_openings`. `balance`: what they have to be, as `balance_of`
    says.
    """
    check_range("the number of games", num_games, 1)
    num_pairs = (num_games + 1) // 2
    if opening_plies is None:
        return choose_openings(game, num_pairs, seed, balance)
    openings = Openings(game, opening_plies, seed, balance)
    openings.some(num_pairs)
    return openings


def get_ready(kernels: Kernels, player: Player) -> None:
    """Lets the player compile its code, so that the time does not count as thinking about its first move."""
    if not isinstance(player, FollowingPlayer):
        player.select_actions(kernels.start_states(1), np.zeros(1, np.int64), np.zeros(1, np.int64))


def ready_arena(
    kernels: Kernels,
    first: Player,
    second: Player,
    num_games: int,
    seed: int,
    opening_plies: int | None = None,
    balance: Balance | None = None,
) -> Arena:
    """An arena for people to watch: both players have compiled what they need, and what is said of openings is said."""
    for player in (first, second):
        get_ready(kernels, player)
    announce_choice(balance)
    openings = openings_of(kernels.game, num_games, seed, opening_plies, balance)
    if opening_plies is None and not (balance and balance.by_net):  # else few were asked for
        warn_of_few(openings.num_drawn, num_games)
    return Arena(kernels, first, second, num_games, seed, openings=openings)


def shown(match: Arena, title: str) -> Iterator[MatchResult]:
    """The results of a match, with a progress bar."""
    with Progress(title) as progress:
        for result in match:
            # before games end, their progress is at least the share of the plies that they can have
            fraction = max(result.num_games, sum(result.moves) / match.max_plies) / match.num_games
            score = f", score {result.score:.1%}" if result.num_games else ""
            progress.show(min(1.0, fraction), f"{result.num_games} of {match.num_games} games{score}")
            yield result


def _checked(player: Player, answer: Any, count: int) -> np.ndarray:
    """The player's answer for `count` positions as `int64[count]`; raises EvaluationError if it is none."""
    try:
        actions = np.asarray(answer)
    except ValueError:  # lists of several lengths
        found = f"a {type(answer).__name__}"
    else:
        if actions.shape == (count,) and np.issubdtype(actions.dtype, np.integer):
            return actions.astype(np.int64)
        found = f"an array of {actions.dtype} of shape {actions.shape}"
    raise EvaluationError(
        f"{player.name} must return one whole number for each of {count_of(count, 'position')}, and returned {found}"
    )


@dataclass(frozen=True)
class _FinishedGames:
    """The columns of a `MatchResult`, which grow in the order of the games' numbers: to copy them is quick."""

    games: list[int]
    actions: list[tuple[int, ...]]
    outcomes: list[int]
    seconds: list[tuple[float, float]]
    forfeits: list[str]

    def add(
        self, game: int, actions: tuple[int, ...], outcome: int, seconds: tuple[float, float], forfeit: str
    ) -> None:
        place = bisect(self.games, game)
        self.games.insert(place, game)
        self.actions.insert(place, actions)
        self.outcomes.insert(place, outcome)
        self.seconds.insert(place, seconds)
        self.forfeits.insert(place, forfeit)


class Arena:
    """A match between two players; the same seed and players give the same match.

    `opening_plies`: as for `openings_of`. `numbers`: those of the games 0 to `num_games` - 1 that are to be played,
    ascending; None for all. `openings`: where they are known, one for each pair; the first ones come again after the
    last.
    """

    def __init__(
        self,
        kernels: Kernels,
        first: Player,
        second: Player,
        num_games: int,
        seed: int,
        opening_plies: int | None = None,
        *,
        numbers: Sequence[int] | None = None,
        openings: Sequence[Position] | Openings | None = None,
    ):
        check_range("the number of games", num_games, 1)
        if openings is None:
            openings = openings_of(kernels.game, num_games, seed, opening_plies)
        self.num_games, self.max_plies = num_games, kernels.game.max_plies
        self._kernels, self._players, self._openings = kernels, (first, second), openings
        numbers = range(num_games) if numbers is None else numbers
        self._waiting: Iterator[int] = iter(numbers)
        rows = side_by_side(self._players, len(numbers))
        self._games = np.full(rows, -1, np.int64)  # -1: no game
        self._states = kernels.start_states(rows)
        self._to_play = np.zeros(rows, np.int8)
        self._actions: list[list[int]] = [[] for _ in range(rows)]
        self._finished = _FinishedGames([], [], [], [], [])
        self._moves, self._seconds = [0, 0], [0.0, 0.0]
        self._game_seconds = np.zeros((max(numbers, default=-1) + 1, 2))

    def __iter__(self) -> Iterator[MatchResult]:
        """Plays, and gives the result so far when games have ended, and otherwise ten times a second at most.

        The last result is of all games. Whoever leaves the loop ends the match: the games in progress are dropped. The
        games of such a match are those that ended first: see `MatchResult.whole_pairs`.
        """
        for player, opponent in (self._players, self._players[::-1]):
            if isinstance(player, FollowingPlayer):
                player.meet(opponent)
        shown = -math.inf
        while self._seat_waiting_games():
            if self._play_one_ply() or time.monotonic() >= shown + PAUSE:
                yield self.result()
                shown = time.monotonic()

    def play(self) -> MatchResult:
        """Plays all games."""
        for _ in self:
            pass
        return self.result()

    def _opening_of(self, pair: int) -> Position:
        openings = self._openings
        return openings.of_pair(pair) if isinstance(openings, Openings) else openings[pair % len(openings)]

    def _seat_waiting_games(self) -> bool:
        """Gives free rows to waiting games; false when nothing is left to play."""
        for row in np.flatnonzero(self._games < 0):
            game = next(self._waiting, None)
            if game is None:
                break
            opening = self._opening_of(game // 2)
            self._games[row] = game
            self._states[row], self._to_play[row] = opening.state, opening.to_play
            self._actions[row] = list(opening.actions)
        return bool((self._games >= 0).any())

    def _play_one_ply(self) -> bool:
        """One action in every game, chosen by the player to move there; true if games have ended."""
        num_games = len(self._finished.games)
        actions = np.full(len(self._games), -1, np.int64)
        movers = self._contestants_to_move()
        for index in (0, 1):
            rows = np.flatnonzero((self._games >= 0) & (movers == index))
            if len(rows):
                actions[rows] = self._ask(index, rows)
        self._kernels.play(self._states, self._to_play, actions)
        for row in np.flatnonzero(actions >= 0):
            self._actions[row].append(int(actions[row]))
        self._collect()
        return len(self._finished.games) > num_games

    def _contestants_to_move(self) -> np.ndarray:
        """`int64[rows]`: 0 where the first contestant is to move, 1 where the second is."""
        return self._to_play ^ (self._games & 1)

    def _ask(self, index: int, rows: np.ndarray) -> np.ndarray:
        """`int64[n]`: the actions that the player chooses; -1 for a game that was forfeited or taken back."""
        player, states, games = self._players[index], self._states[rows], self._games[rows]
        plies = np.array([len(self._actions[row]) for row in rows], np.int64)
        begin = time.perf_counter()
        answered = np.ones(len(rows), bool)
        if isinstance(player, FollowingPlayer):
            answers = [self._ask_follower(player, index, int(row)) for row in rows]
            answered = np.array([answer is not None for answer in answers])
            actions = np.array([-1 if answer is None else answer for answer in answers])
        else:
            actions = _checked(player, player.select_actions(states.copy(), games, plies), len(rows))
        taken = time.perf_counter() - begin
        num_answers = int(answered.sum())
        if num_answers:
            self._seconds[index] += taken
            self._game_seconds[games[answered], index] += taken / num_answers
            self._moves[index] += num_answers
        legal_masks, _, _ = self._kernels.describe_all(states)
        allowed = (actions >= 0) & (actions < legal_masks.shape[1])
        allowed[allowed] = legal_masks[allowed, actions[allowed]]
        allowed |= ~answered
        if not allowed.all():
            wrong = int(np.flatnonzero(~allowed)[0])
            history = self._actions[rows[wrong]]
            raise IllegalAction(
                f"{player.name} chose {actions[wrong]} after {listed(history)}, which is not a legal action"
            )
        return actions

    def _ask_follower(self, player: FollowingPlayer, index: int, row: int) -> int | None:
        """The action, or None if the game has been forfeited or taken back instead."""
        game, history = int(self._games[row]), tuple(self._actions[row])
        position = Position(self._kernels.game, self._states[row].copy(), int(self._to_play[row]), history)
        try:
            return player.choose(position, game)
        except Forfeit as error:
            logger.warning("%s loses game %d: %s", player.name, game, error)
            self._finish(row, -1 if index == 0 else 1, shorten(f"{player.name}: {error}", MOST_FORFEIT))
        except TakeBack as back:
            earlier = self._kernels.game.position(history[: back.ply])
            self._states[row], self._to_play[row] = earlier.state, earlier.to_play
            self._actions[row] = list(earlier.actions)
        return None

    def _collect(self) -> None:
        """Finishes the games that are over; raises GameError if one goes on for too long."""
        _, terminal, values = self._kernels.describe_all(self._states)
        movers = self._contestants_to_move()
        for row in np.flatnonzero(terminal & (self._games >= 0)):
            outcome = int(values[row]) * (1 if movers[row] == 0 else -1)
            self._finish(int(row), outcome)
        going_on = np.flatnonzero(self._games >= 0)
        check_length(self._kernels.game, max((len(self._actions[row]) for row in going_on), default=0))

    def _finish(self, row: int, outcome: int, forfeit: str = "") -> None:
        """Moves a finished game out of its row."""
        game = int(self._games[row])
        first, second = (float(seconds) for seconds in self._game_seconds[game])
        self._finished.add(game, tuple(self._actions[row]), outcome, (first, second), forfeit)
        self._games[row] = -1

    def result(self) -> MatchResult:
        """The games so far."""
        finished = self._finished
        return MatchResult(
            games=tuple(finished.games),
            actions=tuple(finished.actions),
            outcomes=tuple(finished.outcomes),
            moves=(self._moves[0], self._moves[1]),
            seconds=(self._seconds[0], self._seconds[1]),
            game_seconds=tuple(finished.seconds),
            opening_plies=self._opening_of(0).ply,
            forfeits=tuple(finished.forfeits),
        )


def play_with_human(game: Game, first: Player, second: Player, num_games: int, seed: int) -> MatchResult:
    """Plays games one after the other from the start position, and prints how each ended.

    A human who leaves keeps the games that are over; raises HumanLeft if there are none.
    """
    match = Arena(kernels_of(game), first, second, num_games, seed, opening_plies=0)
    so_far = match.result()
    try:
        for result in match:
            if result.num_games > so_far.num_games:
                winner = {1: f"{first.name} wins", -1: f"{second.name} wins", 0: "a draw"}[result.outcomes[-1]]
                print(f"\n{game.position(result.actions[-1])}\n\nGame {result.num_games}: {winner}.")
            so_far = result
    except HumanLeft:
        if not so_far.num_games:
            raise
        print(LEFT)
    return so_far
