"""The half that the benchmark commands of all games share: options, progress, and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tyro

from alphazero.catalogue.loaded import LoadedGame
from alphazero.commands.shared import Contestant, Overwrite, Threads, keep_apart, spare_files
from alphazero.machine import count_cores
from alphazero.matches.judge import Judge, Judgement, describe, draw, open_players
from alphazero.pages import check_picture_file
from alphazero.players.player import Player
from alphazero.progress import Progress
from alphazero.settings import check_ranges
from alphazero.storage.files import check_output_file, write_json

Item = TypeVar("Item")


@dataclass(frozen=True)
class JudgeConfig:
    """Options of a game's benchmark."""

    contestant: Annotated[Contestant, tyro.conf.Positional, tyro.conf.arg(metavar="CONTESTANT")]
    """The player to score."""
    simulations: tuple[int, ...] = (0,)
    """Simulations per position, one or several numbers. 0: the policy of a net without a search."""
    positions: Path | None = None
    """Score on the positions of this file instead: moves or a board in each line, and perhaps the exact score."""
    json: Path | None = None
    """Write the figures into this file as well."""
    plot: Path | None = None
    """Draw the accuracy by ply into this file (.png, .svg or .pdf)."""
    overwrite: Overwrite = False
    seed: int = 0
    """Breaks ties between equally good moves."""
    threads: Threads = field(default_factory=count_cores)
    """Processor threads."""

    def __post_init__(self) -> None:
        check_ranges(self, threads=(1, 1024), seed=(0, (1 << 63) - 1), simulations=(0, 1_000_000))
        for name, path in (("--json", self.json), ("--plot", self.plot)):
            if path is not None:
                check_output_file(name, path)
        if self.plot is not None:
            check_picture_file("--plot", self.plot)
        keep_apart("--json", self.json, "--plot", self.plot)

    def players(self, loaded: LoadedGame) -> list[Player]:
        """The contestant with each number of simulations that it takes; raises InputError, also for files there are."""
        spare_files(self.overwrite, self.json, self.plot)
        return open_players(self.contestant, loaded, self.simulations, seed=self.seed, threads=self.threads)


def report(
    config: JudgeConfig,
    players: Sequence[Player],
    judge: Judge,
    *,
    about: str,
    label: str,
    phases: Mapping[str, tuple[int, int]],
    entry: Callable[[Player, Judgement], dict[str, Any]],
    details: Callable[[Judgement], str] = lambda _: "",
) -> None:
    """Judges the players; prints and writes all that the options ask for.

    `about` says what the positions are, `label` what the first figure is; `entry` is one of the file of `--json`.
    """
    judgements = []
    for player in players:
        with Progress(player.name) as progress:
            show = progress.show
            judgements.append(judge(player, lambda done, show=show: show(done, f"{done:.0%}")))  # type: ignore[misc]
    judged = list(zip(players, judgements, strict=True))
    if config.json is not None:
        write_json(config.json, [{"contestant": config.contestant.text, **entry(*pair)} for pair in judged])
    if config.plot is not None:
        draw(config.plot, config.contestant.text, label, players, judgements)
    print(f"{config.contestant} on {about}")
    for player, judgement in judged:
        print(f"\n{describe(player, judgement, phases)}{details(judgement)}")


@dataclass(frozen=True)
class LabelConfig:
    """Options of a command that makes the frozen positions of a game's benchmark anew."""

    folder: Path
    """The folder to write into."""
    positions: int
    """Number of positions."""
    seed: int = 0
    """The same seed gives the same file."""
    threads: Threads = field(default_factory=count_cores)
    """Processor threads."""

    def __post_init__(self) -> None:
        check_ranges(self, positions=(1, 7000), threads=(1, 1024), seed=(0, (1 << 63) - 1))
        check_output_file("--folder", self.folder / "positions.npz")


def take(items: Iterator[Item], count: int, title: str) -> list[Item]:
    """The first `count` items, with a progress bar."""
    found: list[Item] = []
    with Progress(title) as progress:
        for item in items:
            found.append(item)
            progress.show(len(found) / count, f"{len(found)} of {count}")
            if len(found) == count:
                break
    return found
