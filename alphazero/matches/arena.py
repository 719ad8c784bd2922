"""Matches: many games between two players, side by side, with paired openings and both colours.

Games 2i and 2i + 1 start from the same random opening with the players swapped, so that neither the opening nor the
right to begin favours anyone. Openings are distinct positions as long as the game has them.
"""

from __future__ import annotations

import logging
import math
import time
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from alphazero.errors import EvaluationError, IllegalAction, listed, shorten
from alphazero.game import Game, Position
from alphazero.game.kernels import Kernels, check_length
from alphazero.matches.balance import Balance
from alphazero.matches.intervals import score_interval
from alphazero.matches.openings import AT_ONCE, Openings, announce_choice, choose_openings, warn_of_few
from alphazero.players.player import FollowingPlayer, Forfeit, Player, TakeBack
from alphazero.progress import Progress
from alphazero.settings import check_range

logger = logging.getLogger(__name__)

SIDE_BY_SIDE = 256
"""Games in progress at once."""
PAUSE = 0.1
"""Seconds between two looks at a match in which no game has ended meanwhile."""
MOST_FORFEIT = 400
"""Characters of the reason for a forfeit: a file takes them, also if each is written as an escape of ten."""


@dataclass(frozen=True)
class MatchResult:
    """The finished games of a match; every sequence is in the order of the games' numbers."""

    games: tuple[int, ...]
    """Numbers of the finished games; the first contestant plays first in the even ones."""
    actions: tuple[tuple[int, ...], ...]
    """All actions of each game, its opening included."""
    outcomes: tuple[int, ...]
    """+1 if the first contestant won, -1 if the second, 0 for a draw."""
    moves: tuple[int, int]
    """Actions that each contestant has chosen, in unfinished games too."""
    seconds: tuple[float, float]
    """Seconds that each contestant took for them."""
    game_seconds: tuple[tuple[float, float], ...] = ()
    """The same for each game."""
    opening_plies: int = 0
    """Random plies at the start of every game."""
    forfeits: tuple[str, ...] = ()
    """For each game the reason of the loser who gave it up; "" if it was played to its end."""

    @property
    def num_games(self) -> int:
        """Games finished."""
        return len(self.outcomes)

    @property
    def wins(self) -> int:
        """Games won by the first contestant."""
        return self.outcomes.count(1)

    @property
    def draws(self) -> int:
        return self.outcomes.count(0)

    @property
    def losses(self) -> int:
        """Games won by the second contestant."""
        return self.outcomes.count(-1)

    @property
    def points(self) -> float:
        """Points of the first contestant; a draw is half a point."""
        return self.wins + self.draws / 2

    @property
    def score(self) -> float:
        """Points per game of the first contestant, in [0, 1]; 0.5 before any game is finished."""
        return self.points / self.num_games if self.num_games else 0.5

    @property
    def score_interval(self) -> tuple[float, float]:
        """95% interval on the score."""
        return score_interval(self.wins, self.draws, self.losses)

    def whole_pairs(self) -> MatchResult:
        """The result of the pairs of games up to the first that is not finished; moves and their times are of all.

        While a match goes on, short games end before long ones, so the finished games favour whoever wins quickly.
        """
        in_a_row = next((place for place, game in enumerate(self.games) if game != place), len(self.games))
        kept = slice(in_a_row - in_a_row % 2)
        return replace(
            self, games=self.games[kept], actions=self.actions[kept], outcomes=self.outcomes[kept],
            game_seconds=self.game_seconds[kept], forfeits=self.forfeits[kept],
        )  # fmt: skip

    @property
    def pairs(self) -> tuple[int, int, int, int, int]:
        """Pairs of games from one opening that brought the first contestant 0, 1/2, 1, 3/2 and 2 points.

        Those of `whole_pairs`. Players without chance play the same two games from the same opening again; these
        tell nothing new and count once. If an opening has led to other games, chance decides, and all pairs count:
        those that repeat are the likely ones.
        """
        whole = self.whole_pairs()
        played, uses_chance = dict[tuple[int, ...], tuple[tuple[int, ...], ...]](), False
        every, once = [0] * 5, [0] * 5
        for game in range(0, whole.num_games, 2):
            points, actions = sum(whole.outcomes[game : game + 2]), whole.actions[game : game + 2]
            opening = actions[0][: self.opening_plies]
            every[2 + points] += 1
            once[2 + points] += opening not in played
            uses_chance |= played.setdefault(opening, actions) != actions
        return tuple(every if uses_chance else once)  # type: ignore[return-value]

    @property
    def distinct_games(self) -> int:
        """Different sequences of actions among the games."""
        return len(set(self.actions))

    @property
    def repeats_itself(self) -> bool:
        """Fewer than half of the games differ, so intervals, which take all for different ones, are too narrow."""
        return 2 * self.distinct_games < self.num_games

    @property
    def ms_per_move(self) -> tuple[float, float]:
        """Milliseconds that each contestant took for an action, on average over its batches."""
        first, second = (1000 * t / max(1, n) for t, n in zip(self.seconds, self.moves, strict=True))
        return first, second

    def as_dict(self) -> dict[str, Any]:
        """The result for a run or a card, seen by the first contestant."""
        return {
            "games": self.num_games, "distinct_games": self.distinct_games,
            "wins": self.wins, "draws": self.draws, "losses": self.losses,
            "score": self.score, "score_interval": list(self.score_interval),
        }  # fmt: skip


def play_match(
    kernels: Kernels,
    first: Player,
    second: Player,
    num_games: int,
    seed: int,
    opening_plies: int | None = None,
    on_progress: Callable[[MatchResult], None] | None = None,
    decided: Callable[[MatchResult], bool] | None = None,
    numbers: Sequence[int] | None = None,
    balance: Balance | None = None,
    openings: Sequence[Position] | Openings | None = None,
) -> MatchResult:
    """Plays `num_games` games; the same seed and players give the same match.

    `opening_plies`: random plies before the players take over; None asks `choose_openings`. `on_progress` is
    called with the result so far when games have ended, and otherwise ten times a second at most.
    `decided(result so far)`, asked when games have ended, ends the match when it answers true: the games in progress
    are dropped. The games of such a match are those that ended first: see `MatchResult.whole_pairs`.
    `numbers`: those of the games 0 to `num_games` - 1 that are to be played, ascending; None for all. `balance`:
    what openings have to be, as `balance_of` says. `openings`: those of `openings_of`, if they are known, or some that
    are drawn when games begin.
    """
    check_range("the number of games", num_games, 1)
    if openings is None:
        openings = openings_of(kernels.game, num_games, seed, opening_plies, balance)
    match = _Match(kernels, (first, second), range(num_games) if numbers is None else numbers, openings)
    shown = -math.inf
    while match.seat_waiting_games():
        ended, now = match.play_one_ply(), time.monotonic()
        if not ended and now < shown + PAUSE:
            continue
        result, shown = match.result(), now
        if on_progress:
            on_progress(result)
        if decided and ended and decided(result):
            break
    return match.result()


def side_by_side(players: Sequence[Player], num_games: int) -> int:
    """The games of a match that are played at the same time."""
    return 1 if any(player.one_at_a_time for player in players) else min(num_games, SIDE_BY_SIDE)


def openings_of(
    game: Game, num_games: int, seed: int, opening_plies: int | None = None, balance: Balance | None = None
) -> list[Position]:
    """The openings of a match, one for each pair of games or fewer if the game has no more; as for `play_match`."""
    check_range("the number of games", num_games, 1)
    num_pairs = (num_games + 1) // 2
    if opening_plies is None:
        return choose_openings(game, num_pairs, seed, balance).first(num_pairs)
    return Openings(game, opening_plies, seed, balance).some(num_pairs)


def get_ready(kernels: Kernels, player: Player) -> None:
    """Lets the player compile its code, so that the time does not count as thinking about its first move."""
    if not isinstance(player, FollowingPlayer):
        player.select_actions(kernels.start_states(1), np.zeros(1, np.int64), np.zeros(1, np.int64))


def play_and_show(
    kernels: Kernels,
    first: Player,
    second: Player,
    num_games: int,
    seed: int,
    opening_plies: int | None = None,
    decided: Callable[[MatchResult], bool] | None = None,
    balance: Balance | None = None,
    on_progress: Callable[[MatchResult], None] | None = None,
) -> MatchResult:
    """As `play_match`, with a progress bar, after both players have compiled what they need."""

    def show(result: MatchResult) -> None:
        if on_progress:
            on_progress(result)
        # before games end, their progress is at least the share of the plies that they can have
        fraction = max(result.num_games, sum(result.moves) / kernels.game.max_plies) / num_games
        score = f", score {result.score:.1%}" if result.num_games else ""
        progress.show(min(1.0, fraction), f"{result.num_games} of {num_games} games{score}")

    for player in (first, second):
        get_ready(kernels, player)
    announce_choice(balance)
    openings: Sequence[Position] | Openings
    if decided and balance and balance.by_net:  # it takes about a second for each, and most are for games never played
        openings = choose_openings(kernels.game, min((num_games + 1) // 2, AT_ONCE), seed, balance)
    else:
        openings = openings_of(kernels.game, num_games, seed, opening_plies, balance)
        if opening_plies is None:  # else they were told to be few
            warn_of_few(len(openings), num_games)
    with Progress(f"{first.name} - {second.name}") as progress:
        return play_match(kernels, first, second, num_games, seed, on_progress=show, decided=decided, openings=openings)


def gate_decided(threshold: float, num_games: int) -> Callable[[MatchResult], bool]:
    """A `decided` that stops once it is certain whether the score of all `num_games` reaches `threshold`.

    The score so far then lies on the same side of the threshold: being at least it is the verdict.
    """

    def decided(result: MatchResult) -> bool:
        worst = result.points / num_games
        best = (result.points + num_games - result.num_games) / num_games
        return worst >= threshold or best < threshold

    return decided


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
        f"{player.name} must return one whole number for each of {count} positions, and returned {found}"
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


class _Match:
    """The games in progress, one per row, and the results of the finished ones."""

    def __init__(
        self,
        kernels: Kernels,
        players: tuple[Player, Player],
        numbers: Sequence[int],
        openings: Sequence[Position] | Openings,
    ):
        self._kernels, self._players, self._openings = kernels, players, openings
        self._waiting: Iterator[int] = iter(numbers)
        rows = side_by_side(players, len(numbers))
        self._games = np.full(rows, -1, np.int64)  # -1: no game
        self._states = kernels.start_states(rows)
        self._to_play = np.zeros(rows, np.int8)
        self._actions: list[list[int]] = [[] for _ in range(rows)]
        self._finished = _FinishedGames([], [], [], [], [])
        self._moves, self._seconds = [0, 0], [0.0, 0.0]
        self._game_seconds = np.zeros((max(numbers, default=-1) + 1, 2))
        for player, opponent in (players, players[::-1]):
            if isinstance(player, FollowingPlayer):
                player.meet(opponent)

    def _opening_of(self, pair: int) -> Position:
        openings = self._openings
        return openings.of_pair(pair) if isinstance(openings, Openings) else openings[pair % len(openings)]

    def seat_waiting_games(self) -> bool:
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

    def play_one_ply(self) -> bool:
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
