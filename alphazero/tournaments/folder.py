"""A tournament's folder: every game is saved as soon as it is over, so that a stopped tournament can go on.

    lock, lock_holder      held by the process that plays
    tournament.json        who takes part, how they search, and how many games each pair is to play; sealed
    all_games.jsonl        one line per finished game, in the order in which they ended

Game n of A and B is the same whenever it is played: it follows from the seed, n and the contestants. So a
tournament goes on by playing the missing numbers. A line that a killed process did not finish is cut off, and its game
is played again. Contestants and games may be added later. Everything else must stay, also the weights behind a name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct, to_builtins

from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import InvalidSetting, RunFolderError, StorageError, count_of, quote
from alphazero.fingerprint import name_rules, rules_changed
from alphazero.game import Position
from alphazero.game.record import GameRecord, append_records, read_records, words_of
from alphazero.invocation import option
from alphazero.matches.openings import JUDGE, Balance, Openings, balance_of, choose_openings, warn_of_few
from alphazero.matches.seating import group_of, groups_of
from alphazero.players.contestants import ContestantText, checkpoint_of
from alphazero.settings import settings_changed
from alphazero.storage.files import drop_torn_line, read_sealed_json, remove_stray_temporary_files, write_sealed_json
from alphazero.storage.folder_lock import HOLDER, LOCK, FolderLock
from alphazero.storage.manifest import CONFIG
from alphazero.storage.schema import Count, Sha256, Text, check

FORMAT = 1
SETTINGS, GAMES = "tournament.json", "all_games.jsonl"
GENERATION = "generation "
"""The beginning of the names of a ladder's generations."""
SEAL = "settings_sha256"
"""The entry of the settings that is the SHA-256 of the others."""
MOST_GAMES = 1_000_000
"""Games of a pair that a tournament may ask for."""
MOST = 5
"""An adaptive tournament gives a pair at most this many times the games."""
ADVICE = "; bring it back or choose another folder"


class Pairing(NamedTuple):
    """A match: the first contestant begins in the games with even numbers."""

    first: str
    second: str


@dataclass(frozen=True)
class Tournament:
    """The settings of a tournament."""

    game: str
    """The name by which the game is loaded."""
    kind: str
    """`round-robin`, `gauntlet` or `ladder`."""
    contestants: Mapping[str, ContestantText]
    """By their names in the results."""
    pairings: tuple[Pairing, ...]
    games: int
    """Games of a pair."""
    simulations: int | None = None
    """Simulations per ply of contestants that search and do not say how many."""
    seed: int = 0
    adaptive: bool = False
    """Pairs whose ratings overlap play on, up to `MOST` times the games."""
    openings: str = "random"
    """The kind of openings: one of `alphazero.matches.openings.KINDS`."""
    weights: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of the weights of each contestant that is a net, by its name."""


class SavedTournament(Struct, forbid_unknown_fields=True):
    """`tournament.json`."""

    format: Count
    game: Text
    kind: Text
    seed: Count
    simulations: Annotated[Count | None, Meta(description="a whole number or null")]
    openings: Text
    rules: Text
    """The answer of `name_rules`."""
    judge: Sha256 | None
    """The weights of the net that chooses balanced openings, if one does."""
    games: Annotated[int, Meta(ge=1, le=MOST_GAMES, description=f"a whole number from 1 to {MOST_GAMES:,}")]
    contestants: Annotated[dict[Text, Sha256 | None], Meta(description="the SHA-256 of the weights, or null, by name")]
    opening_plies: Count
    pairings: Annotated[list[tuple[Text, Text, Count]], Meta(description="a list of two names and a number each")]

    def tournament(self) -> Tournament:
        """The tournament; its contestants' names stand for their texts."""
        pairings = tuple(Pairing(first, second) for first, second, _ in self.pairings)
        named = {name: ContestantText.parse(name) for name in self.contestants}
        return Tournament(
            self.game, self.kind, named, pairings, self.games, self.simulations, self.seed, openings=self.openings
        )


class TournamentFolder(AbstractContextManager["TournamentFolder"]):
    """The folder of the process that plays; raises InputError for one that holds something else."""

    def __init__(self, path: Path, tournament: Tournament, loaded: LoadedGame):
        self._game, balance = loaded.game, balance_of(tournament.openings, loaded)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:  # the second for a NUL in the name
            reason = getattr(error, "strerror", error)
            raise InvalidSetting(f"cannot make the folder {path}: {reason}; choose another one") from error
        there = {name for name in os.listdir(path) if not name.startswith(".")} - {LOCK, HOLDER}
        if CONFIG in there or (there and not there & {SETTINGS, GAMES}):
            what = f"is a run's folder, since it holds {CONFIG}" if CONFIG in there else "holds other files"
            raise InvalidSetting(f"{path} {what}: choose another {option('folder')}")
        self.path, self._tournament = path, tournament
        self._lock = FolderLock(path)
        try:
            remove_stray_temporary_files(path)
            self.targets: dict[Pairing, int] = {}
            """The number of games that each pair is to play."""
            self._gone: dict[Pairing, int] = {}
            """The pairs of a ladder of whom one's net was removed; their games stay in the folder, and do not count."""
            self._checked = 0
            """Openings of which it is known that the games of the folder have begun with them."""
            self._begin(loaded, balance)
            self.opening_of = self._openings.of_pair
            """The opening of each pair of games; `openings` comes before."""
            self.records = self._read_games()
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def missing(self) -> dict[Pairing, list[int]]:
        """The numbers of the games that are still to be played, for each pair that has some."""
        there = {key_of(record) for record in self.records}
        missing = {
            pairing: [number for number in range(games) if (pairing, number) not in there]
            for pairing, games in self.targets.items()
        }
        return {pairing: numbers for pairing, numbers in missing.items() if numbers}

    def add(self, records: Sequence[GameRecord]) -> None:
        """Keeps finished games; they are on disk when it returns. Raises RunFolderError if the folder is lost."""
        self._check_lock()
        append_records(self.path / GAMES, records)
        self.records += records

    def add_games(self, pairings: Iterable[Pairing]) -> None:
        """Lets the pairs play as many games again as they should have at first, up to `MOST` times as many."""
        games = self._tournament.games
        if more := [pairing for pairing in pairings if self.targets[pairing] + games <= MOST * games]:
            self.targets |= {pairing: self.targets[pairing] + games for pairing in more}
            self._save()

    def openings(self, num_games: int) -> list[Position]:
        """The openings of a pair that plays so many games: one for each group of them, or all that there are.

        Raises InvalidSetting if games of the folder have other openings, as those of another version may.
        """
        groups = groups_of(self._game, num_games)
        openings = self._openings.first(groups)
        if groups > self._checked:
            drawn = [tuple(words_of(self._game.start(), opening.actions)) for opening in openings]
            begun = ((group_of(self._game, record.number), record.opening) for record in self.records)
            if any(opening != drawn[group] for group, opening in begun if group < len(drawn)):
                raise InvalidSetting(
                    f"{self.path} was begun with other openings than those that its seed gives now, so its pairs would "
                    f"no longer play the same ones: choose another {option('folder')}"
                )
            self._checked = groups
            if self._tournament.openings != "none" and not self._game.num_outcomes:
                warn_of_few(len(openings), groups, self._game)
        return openings

    def _begin(self, loaded: LoadedGame, balance: Balance | None) -> None:
        """Takes the settings that the folder holds, if they fit, and writes them with what is new."""
        tournament, where, judge = self._tournament, self.path / SETTINGS, None
        if balance is not None and balance.by_net and (found := checkpoint_of(ContestantText.parse(JUDGE), loaded)):
            judge = found[1]
        now = self._settings = SavedTournament(
            FORMAT, tournament.game, tournament.kind, tournament.seed, tournament.simulations, tournament.openings,
            name_rules(loaded.game), judge, tournament.games,
            {name: tournament.weights.get(name) for name in tournament.contestants}, 0, [],
        )  # fmt: skip
        if where.exists():
            saved = read_settings(self.path)
            _check(self.path, saved, now)
            for first, second, games in saved.pairings:
                there = {first, second} <= now.contestants.keys()
                (self.targets if there else self._gone)[Pairing(first, second)] = games
            now.contestants = saved.contestants | now.contestants
            now.opening_plies = saved.opening_plies
            if now.opening_plies >= loaded.game.max_plies:
                raise StorageError(
                    f"{where} asks for {count_of(now.opening_plies, 'opening ply')}, and {loaded.name} takes fewer "
                    f"than {loaded.game.max_plies:,}{ADVICE}"
                )
            self._openings = Openings(loaded.game, now.opening_plies, tournament.seed, balance)
        else:
            if (self.path / GAMES).exists():
                raise StorageError(f"{self.path} holds games without {SETTINGS}{ADVICE}")
            if tournament.openings == "none":
                self._openings = Openings(loaded.game, 0, tournament.seed)
            else:  # of a length that gives each pair of games its own
                most = tournament.games * (MOST if tournament.adaptive else 1)
                self._openings = choose_openings(loaded.game, groups_of(loaded.game, most), tournament.seed, balance)
            now.opening_plies = self._openings.plies
        for pairing in tournament.pairings:
            swapped = Pairing(pairing.second, pairing.first)
            known = swapped if swapped in self.targets else pairing
            self.targets[known] = max(tournament.games, self.targets.get(known, 0))
        self._save()

    def _save(self) -> None:
        self._check_lock()
        planned = self.targets | self._gone
        self._settings.pairings = [(pairing.first, pairing.second, games) for pairing, games in planned.items()]
        write_sealed_json(self.path / SETTINGS, to_builtins(self._settings), SEAL)

    def _check_lock(self) -> None:
        if not self._lock.is_held():
            raise RunFolderError(
                f"{self.path} is no longer this tournament's folder: it was closed, removed or replaced"
            )

    def _read_games(self) -> list[GameRecord]:
        path, planned = self.path / GAMES, self.targets | self._gone
        drop_torn_line(path)
        try:
            records = read_records(path) if path.exists() else []
        except StorageError as error:
            raise StorageError(f"{error}; remove the line, and its game is played again") from error
        seen = set[tuple[Pairing, int]]()
        for line, record in enumerate(records, 1):
            key, tournament = key_of(record), self._tournament
            ours = (record.game, record.seed) == (tournament.game, tournament.seed) and len(record.contestants) == 2
            over = record.result != "*" and record.number in range(planned.get(key[0], 0))
            if key in seen or not (ours and over):
                what = "there twice" if key in seen else "no game of this tournament"
                raise StorageError(
                    f"{path}, line {line}: game {record.number} of {' - '.join(record.contestants):.200} is {what}"
                )
            seen.add(key)
        return [record for record in records if key_of(record)[0] in self.targets]


def _check(path: Path, saved: SavedTournament, now: SavedTournament) -> None:
    """Raises InvalidSetting, saying what differs, unless the tournament in the folder is this one or less of it."""
    parts = ("game", "kind", "seed", "simulations", "openings")
    differences = settings_changed(*({name: getattr(one, name) for name in parts} for one in (saved, now)))
    if saved.games > now.games:
        differences.append(f"games: {saved.games} -> {now.games}")
    for name, weights in saved.contestants.items():
        if name not in now.contestants and not name.startswith(GENERATION):  # a run removes old nets
            differences.append(f"{name} takes no part now")
        elif weights != now.contestants.get(name, weights):
            differences.append(f"{name} has other weights now")
    if saved.judge != now.judge:
        differences.append("the net that chooses balanced openings is another one now")
    if rules_changed(saved.rules, now.rules):
        differences.append("the rules of the game have changed")
    if differences:
        raise InvalidSetting(
            f"{path} holds another tournament ({'; '.join(differences[:5])}): choose another {option('folder')}, or go "
            "on with the same contestants and settings; contestants and games can only be added"
        )


def read_settings(path: Path) -> SavedTournament:
    """For readers, without the lock: the settings in a tournament's folder; raises StorageError."""
    where = path / SETTINGS
    try:
        saved = {name: value for name, value in read_sealed_json(where, SEAL).items() if name != SEAL}
    except StorageError as error:
        raise StorageError(f"{error}{ADVICE}") from error
    if saved.get("format") != FORMAT:
        raise StorageError(f"{where} is not the settings of a tournament of this version; choose another folder")
    found = check(SavedTournament, saved, str(where), advice=ADVICE)
    for first, second, games in found.pairings:
        if first == second or games > MOST * found.games or not {first, second} <= found.contestants.keys():
            raise StorageError(
                f"{where} has a pair that cannot be, {quote(first)} and {quote(second)} with "
                f"{count_of(games, 'game')}{ADVICE}"
            )
    return found


def read_games(path: Path) -> list[GameRecord]:
    """For readers, without the lock: the finished games in a tournament's folder; raises InputError."""
    file, names = path / GAMES, set(read_settings(path).contestants)
    records = read_records(file, whole=False) if file.exists() else []
    for record in records:
        ours = names.issuperset(record.contestants) and len(record.contestants) == 2
        if not ours or record.result not in ("1-0", "0-1", "1/2-1/2"):
            raise StorageError(f"{file}: game {record.number} is no game of this tournament")
    return records


def key_of(record: GameRecord) -> tuple[Pairing, int]:
    """The match that a game belongs to, and its number there."""
    first, second = record.contestants[:2] if record.number % 2 == 0 else record.contestants[1::-1]
    return Pairing(first, second), record.number
