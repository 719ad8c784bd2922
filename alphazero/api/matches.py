"""Matches of two contestants."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from alphazero.catalogue import registry
from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import InputError, InvalidSetting, count_of
from alphazero.game import Game
from alphazero.game.record import GameRecord
from alphazero.invocation import option
from alphazero.machine import count_cores
from alphazero.matches.arena import GAMES_WITH_HUMAN, play_with_human, shown
from alphazero.matches.intervals import elo_difference, elo_interval
from alphazero.matches.result import MatchResult, describe, describe_counts, records_of
from alphazero.matches.seating import whole_groups
from alphazero.nets.devices import check_device
from alphazero.players.contestants import Contestant, make_player
from alphazero.players.human import HumanLeft, HumanPlayer
from alphazero.players.player import Player
from alphazero.progress import showing
from alphazero.settings import check_range, plain


@dataclass(frozen=True, kw_only=True)
class Match(MatchResult):
    """The result of a match, as the first contestant sees it; `print` gives the whole report.

    >>> import alphazero as az
    >>> result = az.match("minimax:9", "random", "tictactoe", games=20, openings="none")
    >>> result.wins + result.draws, result.losses, result.score > 0.75
    (20, 0, True)
    >>> [position.ply for position in result.games[0].positions(az.load_game("tictactoe"))][:3]
    [0, 1, 2]
    """

    contestants: tuple[str, str]
    game: Game
    openings: str
    seed: int

    @property
    def interval(self) -> tuple[float, float]:
        """95% interval on the score."""
        return self.score_interval

    @property
    def elo(self) -> float:
        """The score as a difference in Elo points."""
        return elo_difference(self.score, self.num_games)

    @property
    def elo_interval(self) -> tuple[float, float]:
        """95% interval on the difference in Elo points; a limit is infinite if one contestant won every game."""
        return elo_interval(*self.interval)

    @cached_property
    def games(self) -> list[GameRecord]:
        """All games; `record.positions(game)` plays one through again."""
        return records_of(self, self.game, self.game.name, self.contestants, self.seed)

    def __str__(self) -> str:
        return describe(self.game, self.contestants, self, openings=self.openings)

    def __repr__(self) -> str:
        low, high = self.interval
        first, second = self.contestants
        note = f"; only {count_of(self.distinct_games, 'different game')}" if self.repeats_itself else ""
        return (
            f"<Match of {first} against {second}: {describe_counts(self.wins, self.draws, self.losses)}, "
            f"score {self.score:.1%} ({low:.1%} to {high:.1%}){note}>"
        )


def match(
    first: Contestant,
    second: Contestant,
    game: Game | type[Game] | str | Path,
    *,
    games: int | None = None,
    simulations: int = 200,
    openings: str = "random",
    seed: int = 0,
    threads: int | None = None,
    device: str = "auto",
    progress: bool | None = None,
) -> Match:
    """Plays games between two contestants, each opening with each contestant in each seat.

    A contestant is a text as on the command line (`"random"`, `"mcts:400"`, `"best"`, a run folder), a net, a Player,
    or a function from a Position to one of its legal actions. `simulations` per ply are for contestants that search and
    do not say how many; with 0, nets play by their policies alone. `openings`: `random` begins each pair of games with
    a few random plies; `balanced` takes even ones, in games that have a solver or a shipped net; `none` begins at the
    start position, as games with a human do. `games`: None is 100, or 2 with a human; who leaves keeps the games that
    are over. `threads`: None takes every core. `progress`: None shows a bar on a terminal and in a notebook. The same
    seed gives the same match, as long as the same library runs the nets: give `inference="torch"` to `az.load_net`,
    which otherwise takes the fastest.

    >>> import alphazero as az
    >>> def last(position):
    ...     return position.legal_actions[-1]
    >>> result = az.match(last, "minimax:2", "tictactoe", games=50)
    >>> result.score < 0.5, len(result.games)
    (True, 50)
    """
    loaded = registry.tried(game)
    threads, simulations, seed = plain(count_cores() if threads is None else threads), plain(simulations), plain(seed)
    check_range("threads", threads, 1, 4096)
    check_range("simulations", simulations, 0, 1_000_000)
    check_range("seed", seed, 0, (1 << 63) - 1)
    check_device(device)
    players = [
        make_player(contestant, loaded, seed=seed, threads=threads, simulations=simulations, device=device)
        for contestant in (first, second)
    ]
    try:
        with showing(progress):
            *_, result = results_of(loaded, players, games, openings, seed)
    except HumanLeft as left:
        raise InputError(str(left)) from left
    except BaseException:  # in a notebook, the traceback keeps the players, and an engine would think on
        for contestant, player in zip((first, second), players, strict=True):
            if isinstance(contestant, str | Path):  # others are the caller's, who may use them again
                player.interrupt()
        raise
    finally:
        if torch := sys.modules.get("torch"):  # threads that begin later take the number that any thread set last
            torch.set_num_threads(torch.get_num_threads())
    names = players[0].name, players[1].name
    if names[0] == names[1]:
        names = f"{names[0]} (first)", f"{names[1]} (second)"
    shown_openings = "none" if has_human(players) else openings
    return Match(**vars(result), contestants=names, game=loaded.game, openings=shown_openings, seed=seed)


def has_human(players: Sequence[Player]) -> bool:
    """Somebody at this terminal or notebook plays."""
    return any(isinstance(player, HumanPlayer) for player in players)


def results_of(
    loaded: LoadedGame, players: Sequence[Player], games: int | None, openings: str, seed: int
) -> Iterator[MatchResult]:
    """The results of a match so far, with a progress bar; with a human the last one alone. Raises HumanLeft."""
    first, second = players
    if has_human(players):
        if openings not in ("random", "none"):
            raise InvalidSetting(f"games with a human begin at the start: leave {option('openings')} out")
        yield play_with_human(loaded.game, first, second, GAMES_WITH_HUMAN if games is None else games, seed)
        return
    yield from shown(loaded, first, second, whole_groups(loaded.game, 100 if games is None else games), seed, openings)
