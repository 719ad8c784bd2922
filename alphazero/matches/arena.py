"""Matches: many games between two players, side by side, with paired openings and both colours.

Games 2i and 2i + 1 start from the same random opening with the players swapped, so that neither the opening nor the
right to begin favours anyone. Openings are distinct positions as long as the game has them.

In a game for one, each contestant plays every game by itself, with the same dice; who has more points wins.

In a game for more than two, one contestant has one seat and the other one all others: see `lone_seat`. Whoever has the
best result wins; a contestant that shares it with the other one draws.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import EvaluationError, IllegalAction, Stopped, count_of, listed, quote, shorten
from alphazero.game import Game, Position
from alphazero.game.kernels import Kernels, check_length, kernels_of
from alphazero.matches.openings import Openings, balance_of, choose_openings, warn_of_few
from alphazero.matches.result import Ended, MatchResult, compared
from alphazero.matches.seating import boards_of, contestant_at, games_of_group, group_of, groups_of, outcome_of
from alphazero.players.human import HumanLeft
from alphazero.players.player import FollowingPlayer, Forfeit, Player, TakeBack
from alphazero.progress import Progress
from alphazero.settings import check_range

logger = logging.getLogger(__name__)

SIDE_BY_SIDE = 256
"""Games in progress at once."""
PAUSE = 0.1
"""Seconds between two looks at a match in which no game has ended meanwhile, and at the clock while players think."""
PLIES_TO_JUDGE = 2
"""Plies after which it is clear how long a match takes."""
SHARE = 0.8
"""Share of the time that is left which fewer games are to take."""
GAMES_WITH_HUMAN = 2
"""Games of a match with a human, unless told otherwise: nobody wants to play a hundred by hand."""
LEFT = "You have left the match."
MOST_FORFEIT = 400
"""Characters of the reason for a forfeit: a file takes them, also if each is written as an escape of ten."""


def side_by_side(players: Sequence[Player], num_games: int) -> int:
    """The games of a match that are played at the same time."""
    return 1 if any(player.one_at_a_time for player in players) else min(num_games, SIDE_BY_SIDE)


def get_ready(kernels: Kernels, player: Player) -> None:
    """Lets the player compile its code, so that the time does not count as thinking about its first move."""
    if not isinstance(player, FollowingPlayer):
        player.select_actions(kernels.rolled_states(1), np.zeros(1, np.int64), np.zeros(1, np.int64))


def shown(
    loaded: LoadedGame, first: Player, second: Player, num_games: int, seed: int, kind: str = "random"
) -> Iterator[MatchResult]:
    """The results of a match for people to watch: both players have compiled what they need, and a bar shows progress.

    Raises InputError for a `kind` of openings that the game has not, and says if there are few.
    """
    check_range("the number of games", num_games, 1)
    balance, kernels = balance_of(kind, loaded), kernels_of(loaded.game)
    for player in (first, second):
        get_ready(kernels, player)
    openings = Openings(loaded.game, 0, seed)
    if kind != "none" and not loaded.game.num_outcomes:
        openings = choose_openings(loaded.game, groups_of(loaded.game, num_games), seed, balance)
        if not (balance and balance.by_net):  # else few were asked for
            warn_of_few(len(openings.drawn), groups_of(loaded.game, num_games), loaded.game)
    match = Arena(kernels, first, second, num_games, seed, opening_of=openings.of_pair)
    with Progress(f"{first.name} - {second.name}") as progress:
        for result in match:
            # before games end, their progress is at least the share of the plies that they can have
            fraction = max(result.num_games, sum(result.moves) / loaded.game.max_plies) / num_games
            score = f", score {result.score:.1%}" if result.num_games else ""
            progress.show(min(1.0, fraction), f"{result.num_games} of {num_games} games{score}")
            yield result


def _checked(player: Player, answer: Any, count: int) -> np.ndarray:
    """The answer for `count` positions as `int64[count]`; raises EvaluationError if it is none."""
    try:
        actions = np.asarray(answer)
    except ValueError:  # lists of several lengths
        actions = np.empty(0)
    if actions.shape != (count,) or not np.issubdtype(actions.dtype, np.integer):
        raise EvaluationError(
            f"{player.name} must return one whole number for each of {count_of(count, 'position')}, not {quote(answer)}"
        )
    return actions.astype(np.int64)


def _plies_of(position: Position) -> int:
    """The actions of players that led to a position."""
    if not position.game.num_outcomes:
        return position.ply
    return sum(not earlier.chances for earlier in position.history[:-1])


class Arena:
    """A match between two players; the same seed and players give the same match.

    `opening_plies`: the random plies of the openings; None asks `choose_openings`. `numbers`: those of the games 0 to
    `num_games` - 1 that are to be played, ascending; None for all. `opening_of`: the opening of each pair of games,
    where that is known.
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
        opening_of: Callable[[int], Position] | None = None,
    ):
        check_range("the number of games", num_games, 1)
        if opening_of is None and opening_plies is None:
            opening_of = choose_openings(kernels.game, groups_of(kernels.game, num_games), seed).of_pair
        elif opening_of is None:
            opening_of = Openings(kernels.game, opening_plies or 0, seed).of_pair
        self._kernels, self._players, self._opening_of = kernels, (first, second), opening_of
        self._seed = seed
        numbers = range(num_games) if numbers is None else numbers
        self._boards, self._alone = boards_of(kernels.game), kernels.game.num_players == 1
        boards = [self._boards * number + index for number in numbers for index in range(self._boards)]
        self._waiting: Iterator[int] = iter(boards)
        """The games to begin; in a game for one 2i and 2i + 1 are the first and the second contestant's game i."""
        rows = side_by_side(self._players, len(boards))
        self._games = np.full(rows, -1, np.int64)  # -1: no game
        self._states = kernels.start_states(rows)
        self._to_play = np.zeros(rows, np.int8)
        self._plies = np.zeros(rows, np.int64)
        self._actions: list[list[int]] = [[] for _ in range(rows)]
        self._finished: tuple[list[Any], ...] = tuple([] for _ in Ended._fields)
        """A list for each field of the games that have ended, in the order of their numbers."""
        self._waits: dict[int, Ended] = {}
        """In a game for one, the games that the other contestant has not finished yet."""
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

    def _seat_waiting_games(self) -> bool:
        """Gives free rows to waiting games; false when nothing is left to play."""
        for row, game in zip(np.flatnonzero(self._games < 0), self._waiting, strict=False):
            opening = self._opening_of(group_of(self._kernels.game, game // self._boards))
            self._games[row] = game
            self._states[row], self._to_play[row] = opening.state, opening.to_play
            self._actions[row], self._plies[row] = list(opening.actions), _plies_of(opening)
        self._roll()
        return bool((self._games >= 0).any())

    def _roll(self) -> None:
        """Settles the dice that are due; both games of a pair have the same ones after as many plies."""
        if not self._kernels.game.num_outcomes:
            return
        groups = group_of(self._kernels.game, self._games // self._boards)
        outcomes = self._kernels.roll(self._states, self._to_play, self._seed, groups, self._plies)
        for actions, shown in zip(self._actions, outcomes.tolist(), strict=True):
            actions += [outcome for outcome in shown if outcome >= 0]

    def _play_one_ply(self) -> bool:
        """One action in every game, chosen by the player to move there; true if games have ended."""
        num_games = len(self._finished[0])
        actions = np.full(len(self._games), -1, np.int64)
        movers = contestant_at(self._kernels.game, self._games, self._to_play)
        for index in (0, 1):
            rows = np.flatnonzero((self._games >= 0) & (movers == index))
            if len(rows):
                actions[rows] = self._ask(index, rows)
        self._kernels.play(self._states, self._to_play, actions)
        played = np.flatnonzero(actions >= 0)
        for row in played:
            self._actions[row].append(int(actions[row]))
        self._plies[played] += 1
        self._roll()
        self._collect()
        return len(self._finished[0]) > num_games

    def _ask(self, index: int, rows: np.ndarray) -> np.ndarray:
        """`int64[n]`: the actions that the player chooses; -1 for a game that was forfeited or taken back."""
        player, states, games = self._players[index], self._states[rows], self._games[rows]
        begin = time.perf_counter()
        answered = np.ones(len(rows), bool)
        if isinstance(player, FollowingPlayer):
            answers = [self._ask_follower(player, index, int(row)) for row in rows]
            answered = np.array([answer is not None for answer in answers])
            actions = np.array([-1 if answer is None else answer for answer in answers])
        else:
            actions = _checked(player, player.select_actions(states.copy(), games, self._plies[rows]), len(rows))
        taken = time.perf_counter() - begin
        if num_answers := int(answered.sum()):
            self._seconds[index] += taken
            self._game_seconds[games[answered] // self._boards, index] += taken / num_answers
            self._moves[index] += num_answers
        legal_masks, last = self._kernels.describe_all(states)[0], self._kernels.game.num_actions - 1
        legal = (actions == actions.clip(0, last)) & legal_masks[np.arange(len(rows)), actions.clip(0, last)]
        if not (legal | ~answered).all():
            wrong = int(np.flatnonzero(~legal & answered)[0])
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
            self._actions[row], self._plies[row] = list(earlier.actions), _plies_of(earlier)
        return None

    def _collect(self) -> None:
        """Finishes the games that are over; raises GameError if one goes on for too long."""
        _, terminal, values = self._kernels.describe_all(self._states)
        for row in np.flatnonzero(terminal & (self._games >= 0)):
            mover = int(self._to_play[row])
            self._finish(int(row), outcome_of(self._kernels.game, int(self._games[row]), mover, values[row]))
        going_on = np.flatnonzero(self._games >= 0)
        check_length(self._kernels.game, int(self._plies[going_on].max(initial=0)))

    def _finish(self, row: int, outcome: int, forfeit: str = "") -> None:
        """Moves a finished game out of its row."""
        number, game, earned = int(self._games[row]), self._kernels.game, (0.0, 0.0)
        if game.score and not forfeit:
            position = Position(game, self._states[row].copy(), int(self._to_play[row]), ())
            results = np.array([*position.results, *[0.0] * self._alone])
            owners = contestant_at(game, number, np.arange(len(results)))
            earned = float(results[owners == 0].mean()), float(results[owners == 1].mean())
        self._games[row] = -1
        ended = Ended(number, tuple(self._actions[row]), outcome, (0.0, 0.0), forfeit, earned)
        if self._alone:
            other = self._waits.pop(number // 2, None)
            if other is None:
                self._waits[number // 2] = ended
                return
            ended = compared(*sorted((ended, other)))
        first, second = self._game_seconds[ended.number].tolist()
        place = bisect(self._finished[0], ended.number)
        for column, value in zip(self._finished, ended._replace(seconds=(first, second)), strict=True):
            column.insert(place, value)

    def result(self) -> MatchResult:
        """The games so far."""
        # a long match asks often, so it must not take the games apart each time
        games, actions, outcomes, seconds, forfeits, earned, others = map(tuple, self._finished)
        return MatchResult(
            games, actions, outcomes, (self._moves[0], self._moves[1]), (self._seconds[0], self._seconds[1]), seconds,
            self._opening_of(0).ply, forfeits, earned if self._kernels.game.score else (), others,
            self._kernels.game.num_values,
        )  # fmt: skip


def play_with_human(game: Game, first: Player, second: Player, num_games: int, seed: int) -> MatchResult:
    """Plays games one after the other from the start position, and prints how each ended.

    A human who leaves keeps the games that are over; raises HumanLeft if there are none.
    """
    numbers = None
    if game.num_players > 2:  # a human has one seat
        numbers = range(int(second.one_at_a_time and not first.one_at_a_time), 2 * num_games, 2)
    match = Arena(kernels_of(game), first, second, num_games, seed, opening_plies=0, numbers=numbers)
    so_far = match.result()
    try:
        for result in match:
            if result.num_games > so_far.num_games:
                winner = {1: f"{first.name} wins", -1: f"{second.name} wins", 0: "a draw"}[result.outcomes[-1]]
                if game.num_players == 1:
                    first_points, second_points = result.earned[-1]
                    winner = f"{first_points:,g} and {second_points:,g} points, so {winner}"
                end = game.position(result.actions[-1])
                if game.num_players > 2 and end.terminal:
                    winner += (
                        f": {'players' if len(end.winners) > 1 else 'player'} {listed(n + 1 for n in end.winners)}"
                    )
                print(f"\n{end}\n\nGame {result.num_games}: {winner}.")
            so_far = result
    except HumanLeft:
        if not so_far.num_games:
            raise
        print(LEFT)
    return so_far


def play_in_time(
    kernels: Kernels,
    first: Player,
    second: Player,
    num_games: int,
    seed: int,
    seconds: float,
    plies_per_game: float,
    stop: threading.Event,
) -> Iterator[tuple[MatchResult, float]]:
    """The results of an `Arena`, over after about so many `seconds`; each with the share of the match that has passed.

    The last result has all games, or the groups of games that are over by then; there is at least one result.
    PLIES_TO_JUDGE plies of the games side by side tell how long these take, with `plies_per_game`. If that is too
    long, fewer are begun anew: a group at least, which may not be over in time either. Raises Stopped when `stop` is
    set, also while a player thinks.
    """
    deadline, over = time.monotonic() + seconds, MatchResult((), (), (), (0, 0), (0.0, 0.0))
    try:
        with _interrupting((first, second), deadline, stop):
            each, least = boards_of(kernels.game), max(2, games_of_group(kernels.game))
            while num_games:
                rows = side_by_side((first, second), each * num_games)
                begin, moves_before, judged = 0.0, 0, num_games <= least
                fewer = 0
                for result in Arena(kernels, first, second, num_games, seed):
                    now, moves = time.monotonic(), sum(result.moves) - moves_before
                    if stop.is_set() or now > deadline:
                        raise Stopped
                    if not begin:  # after the first ply: before it, players may compile what they need
                        begin, moves_before = now, moves
                    elif not judged and moves >= PLIES_TO_JUDGE * rows:
                        judged, expected = True, (now - begin) / moves * plies_per_game * rows
                        if begin + expected > deadline:
                            fitting = int(rows * SHARE * (deadline - now) / expected)
                            fewer = max(least, fitting // (least * each) * least)
                            break
                    over = result
                    passed = 1 - (deadline - now) / seconds if seconds < math.inf else 0.0
                    yield over, max(passed, over.num_games / num_games)
                num_games = fewer
    except Stopped:
        if stop.is_set() or time.monotonic() <= deadline:
            raise
        yield over.whole_pairs(), 1.0


@contextlib.contextmanager
def _interrupting(players: tuple[Player, Player], deadline: float, stop: threading.Event) -> Iterator[None]:
    """Inside, the players' thinking ends after the deadline, or when `stop` is set: a ply of a slow game takes long."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(PAUSE):
            if stop.is_set() or time.monotonic() > deadline:
                for player in players:
                    player.interrupt()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
