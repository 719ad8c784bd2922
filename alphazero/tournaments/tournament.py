"""Tournaments: many matches between many contestants, which go on where they were stopped."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType

from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import CheckpointError, InputError, InvalidSetting, StorageError, Terminated, quote
from alphazero.game.kernels import kernels_of
from alphazero.game.record import GameRecord
from alphazero.invocation import option
from alphazero.matches.arena import Arena, get_ready
from alphazero.matches.openings import KINDS as OPENINGS
from alphazero.matches.result import records_of
from alphazero.players.contestants import ContestantText, checkpoint_of, make_player
from alphazero.players.human import HumanPlayer
from alphazero.players.player import Player
from alphazero.progress import Progress
from alphazero.storage.files import read_bytes, to_json
from alphazero.storage.schema import Text, Truth, check
from alphazero.tournaments.bradley_terry import rate
from alphazero.tournaments.folder import Pairing, Tournament, TournamentFolder

FOLDER = Path("tournaments")
"""Holds the default folders of tournaments."""
MOST_OPEN = 16
"""Contestants in memory at once."""

POCOCK = 2.413
"""Evidence, in standard errors, by which an adaptive tournament tells two players apart.

Pocock (1977), "Group sequential methods in the design and analysis of clinical trials": with five looks, one after each
`games` of the pair, two equal players are then told apart in 5% of all cases; with the 1.96 of a single look it would
be 14%. Each round looks at all pairs, so there are more looks at a pair if others play on after it.
"""

MAX_BYTES = 1 << 16
MOST_DOTS = 100
"""Dots outside of texts and remarks. The time and memory for a key grow with the square of its dots."""
QUOTED = re.compile(r""""(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*""")
MOST_CONTESTANTS = 1000
KINDS = ("round-robin", "gauntlet")


def make_tournament(
    game: str,
    kind: str,
    contestants: Sequence[ContestantText],
    games: int,
    simulations: int | None,
    seed: int,
    adaptive: bool,
    openings: str = "random",
) -> Tournament:
    """A tournament of these contestants, by their texts: everybody against everybody, or in a gauntlet the first one
    against all others."""
    if len(contestants) < 3:
        raise InvalidSetting(f"a tournament takes three contestants or more, not {len(contestants)}")
    named = {one.text: one for one in contestants}
    if len(named) < len(contestants):
        raise InvalidSetting("a contestant takes part in a tournament once, and one of these is there twice")
    pairs = itertools.combinations(named, 2)
    pairings = tuple(Pairing(*pair) for pair in pairs if kind != "gauntlet" or pair[0] == contestants[0].text)
    return Tournament(game, kind, named, pairings, games, simulations, seed, adaptive, openings)


def _one_of(names: Sequence[str]) -> Meta:
    """The annotation of a text that is one of these names."""
    return Meta(pattern=rf"\A(?:{'|'.join(names)})\Z", description=f"one of {', '.join(names)}")


Whole = Annotated[int, Meta(description="a whole number")]
"""The command line says in which range."""


class TournamentFile(Struct, forbid_unknown_fields=True):
    """The file's settings; those left out are UNSET."""

    contestants: Annotated[
        tuple[Text, ...],
        Meta(
            max_length=MOST_CONTESTANTS,
            description=f'a list of {MOST_CONTESTANTS:,} words at most, as in ["random", "greedy", "minimax:2"]',
        ),
    ]
    game: Text | UnsetType = UNSET
    kind: Annotated[str, _one_of(tuple(KINDS))] | UnsetType = UNSET
    games: Whole | UnsetType = UNSET
    simulations: Whole | UnsetType = UNSET
    seed: Whole | UnsetType = UNSET
    openings: Annotated[str, _one_of(OPENINGS)] | UnsetType = UNSET
    adaptive: Truth | UnsetType = UNSET
    anchor: Text | UnsetType = UNSET


def read_tournament(path: Path) -> dict[str, Any]:
    """The settings in the file, of the right types, those left out missing; raises InputError."""
    try:
        text = read_bytes(path, MAX_BYTES).decode("utf-8-sig")  # editors of Windows begin a file with a mark
        if QUOTED.sub("", text).count(".") > MOST_DOTS:
            raise ValueError("its keys are nested, and no setting is")
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{path} is not valid TOML: {error!s:.200}") from error
    texts = check(TournamentFile, found, str(path), InvalidSetting).contestants
    named = tuple(map(ContestantText.parse, texts))
    for contestant in named:
        if contestant.runs_code:  # who writes a file is not always who opens it
            raise InvalidSetting(
                f"{path}: {quote(contestant.text)} runs a program or Python code, which a file may not do: give all "
                "contestants on the command line"
            )
    return found | {"contestants": named}


def default_folder(tournament: Tournament) -> Path:
    """The default folder of a tournament: the same one for the same contestants and settings."""
    names = list(tournament.contestants)
    leading = names[:1] if tournament.kind == "gauntlet" else []
    settings = [tournament.game, leading, sorted(names), tournament.simulations, tournament.seed]
    if tournament.openings != "random":  # else it is the folder that it was before there was a choice
        settings.append(tournament.openings)
    digest = hashlib.sha256(to_json(settings)).hexdigest()[:8]
    return FOLDER / f"{re.sub(r'[^A-Za-z0-9]+', '_', tournament.game)[-40:]}-{tournament.kind}-{digest}"


Play = Callable[[TournamentFolder, Mapping[Pairing, list[int]]], None]
"""Plays missing games of a tournament, and keeps each in its folder."""


Elsewhere = Callable[[Tournament, LoadedGame, str], AbstractContextManager[Play]]
"""Other machines that play the games of a tournament, nets on the device named, within its `with` statement."""


def play_tournament(
    path: Path,
    tournament: Tournament,
    loaded: LoadedGame,
    threads: int,
    device: str = "auto",
    elsewhere: Elsewhere | None = None,
    stopped: Callable[[list[GameRecord]], None] | None = None,
) -> list[GameRecord]:
    """Plays what is missing in the folder `path`, and returns all games; raises InputError for what does not fit.

    `stopped` gets the games so far if an error or an interruption ends the tournament. The games that `elsewhere` plays
    are the same where its processors multiply as ours do. `device` is where nets compute, here or there.
    """
    tournament = with_nets_found(tournament, loaded)
    play = players_of(tournament, loaded, threads, device)
    with contextlib.ExitStack() as stack:
        if elsewhere:
            play = stack.enter_context(elsewhere(tournament, loaded, device))
        folder = stack.enter_context(TournamentFolder(path, tournament, loaded))
        try:
            while True:
                if missing := folder.missing():
                    play(folder, missing)
                if tournament.adaptive:  # also where an earlier command ended here, or was not adaptive
                    folder.add_games(overlapping(folder))
                if not folder.missing():
                    return folder.records
        except (InputError, KeyboardInterrupt, Terminated):
            if stopped and folder.records:
                stopped(folder.records)
            raise


def with_nets_found(tournament: Tournament, loaded: LoadedGame) -> Tournament:
    """The tournament with the file and the weights that each net's text means now: a run has a better net later."""
    contestants, weights = dict(tournament.contestants), dict[str, str]()
    for name, contestant in tournament.contestants.items():
        if (found := checkpoint_of(contestant, loaded)) is not None:
            contestants[name], weights[name] = contestant.at(found[0]), found[1]
    return replace(tournament, contestants=contestants, weights=weights)


def tally(names: Sequence[str], records: Sequence[GameRecord]) -> np.ndarray:
    """`int64[n, n, 3]`: wins, draws and losses of i beginning against j."""
    index, games = {name: i for i, name in enumerate(names)}, np.zeros((len(names), len(names), 3), np.int64)
    for record in records:
        first, second = record.contestants
        games[index[first], index[second], ("1-0", "1/2-1/2", "0-1").index(record.result)] += 1
    return games


def overlapping(folder: TournamentFolder) -> list[Pairing]:
    """The pairs whose games do not show, by `POCOCK`, which player is stronger."""
    names = sorted({name for pairing in folder.targets for name in pairing})
    ratings = rate(tally(names, folder.records))
    return [pair for pair in folder.targets if abs(ratings.evidence(*map(names.index, pair))) <= POCOCK]


def players_of(tournament: Tournament, loaded: LoadedGame, threads: int, device: str) -> Play:
    """Opens each contestant once, so that errors are raised before a game is played; those that play are in memory."""
    kernels = kernels_of(loaded.game)

    @functools.lru_cache(MOST_OPEN)
    def open_(name: str) -> Player:
        contestant, weights = tournament.contestants[name], tournament.weights.get(name)
        player = open_contestant(name, contestant, tournament, loaded, threads, device)
        if isinstance(player, HumanPlayer):
            raise InvalidSetting("a tournament has hundreds of games, too many to play by hand: leave human out")
        if weights and (checkpoint_of(contestant, loaded) or ("", ""))[1] != weights:
            raise CheckpointError(
                f"{name} no longer has the weights with which this tournament began: bring them back, or choose "
                f"another {option('folder')}"
            )
        return player

    def play(folder: TournamentFolder, missing: Mapping[Pairing, list[int]]) -> None:
        folder.openings(max(folder.targets[pairing] for pairing in missing))  # before there is a bar of progress
        before, total = len(folder.records), sum(map(len, missing.values()))
        with Progress(f"{len(tournament.contestants)} contestants") as progress:
            for pairing, numbers in missing.items():
                kept, target = set[int](), folder.targets[pairing]
                first, second = map(open_, pairing)
                for result in Arena(
                    kernels, first, second, target, tournament.seed, numbers=numbers, opening_of=folder.opening_of
                ):
                    if result.num_games > len(kept):
                        folder.add(records_of(result, kernels.game, tournament.game, pairing, tournament.seed, kept))
                        kept |= set(result.numbers)
                    note = f"{show_games(folder)}, now {' - '.join(pairing)}"
                    progress.show((len(folder.records) - before) / total, note)

    for name in tournament.contestants:
        open_(name)
    return play


def open_contestant(
    name: str, contestant: ContestantText, tournament: Tournament, loaded: LoadedGame, threads: int, device: str
) -> Player:
    """A contestant of that name, who has compiled what it needs."""
    player = make_player(
        contestant, loaded, seed=tournament.seed, threads=threads, simulations=tournament.simulations, device=device
    )
    player.name = name
    get_ready(kernels_of(loaded.game), player)
    return player


def show_games(folder: TournamentFolder) -> str:
    """The games so far, for a bar of progress."""
    return f"{len(folder.records):,} of {sum(folder.targets.values()):,} games"
