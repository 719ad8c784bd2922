"""The options that several commands have, and the check of their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from alphazero.api.extras import cluster_at
from alphazero.catalogue import registry
from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import UnknownName
from alphazero.machine import count_cores
from alphazero.matches.openings import KINDS as OPENINGS
from alphazero.nets.devices import check_device, want_inference, wanted_inference
from alphazero.players.contestants import ContestantText, game_of
from alphazero.settings import check_ranges
from alphazero.storage.files import check_output_file

if TYPE_CHECKING:
    from alphazero.tournaments.tournament import Elsewhere

LIMITS = {"threads": (1, 4096), "seed": (0, (1 << 63) - 1), "simulations": (0, 1_000_000)}
CLUSTER = """A Ray cluster that plays the games. On processors of one kind a tournament's games are as without one.
auto: this machine's cluster, or a new one on its cores; local: always a new one; HOST:PORT: that of this head."""


def argument(metavar: str, default: str, text: str | None = None) -> Any:
    """Names an option's value, and tells its default in words, in the help; `text` stands for a docstring."""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=f"(default: {default})", help=text)


def positional(metavar: str) -> Any:
    """Names the words that need no option; the help tells no default of theirs."""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint="")


Contestant = Annotated[
    ContestantText,
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="CONTESTANT",
        instance_from_str=lambda words: ContestantText.parse(words[0]),
        is_instance=lambda value: isinstance(value, ContestantText),
        str_from_instance=lambda contestant: [contestant.text],
    ),
]
"""A contestant, which is read as it is typed."""
GameName = Annotated[
    str | None,
    argument("NAME", "that of a checkpoint, else connect4", "The game: a name, a Python file or a module."),
]
Threads = Annotated[int, argument("INT", "every core", "Processor cores to use.")]
Seed = Annotated[int, tyro.conf.arg(help="Random seed. The same seed gives the same result.")]
Device = Annotated[str, tyro.conf.arg(help="The device that nets run on: auto (a GPU if there is one), cpu or cuda.")]
Inference = Annotated[
    str,
    tyro.conf.arg(help="The library that runs nets on the CPU: auto (the fastest), torch, openvino or winograd."),
]
Cluster = Annotated[str, argument("ADDRESS", "none", CLUSTER)]
ClusterWorkers = Annotated[
    int | None, argument("INT", "one for each core, or for each GPU", "Maximum number of workers on the cluster.")
]
Json = Annotated[Path | None, argument("FILE", "none", "Also write the result into this file, as JSON.")]
Overwrite = Annotated[
    bool,
    tyro.conf.arg(
        help="Replace existing files without asking. "
        "Otherwise the command asks at a terminal, and elsewhere leaves them."
    ),
]


def load_game(game: str | None, contestants: Sequence[ContestantText]) -> tuple[str, LoadedGame]:
    """The name of a game and the game: `game`, that of the first checkpoint among the contestants, or connect4."""
    if game:
        return game, registry.tried(game)
    for contestant in contestants:
        if named := game_of(contestant):
            return named, registry.tried(registry.load_named(named, contestant.text))
    return "connect4", registry.load("connect4")


def check_options(config: Any, **limits: tuple[float, float]) -> None:
    """Raises InputError for a wrong value of a common option, by its name; `limits` are those of numbers beside."""
    names = {field.name for field in fields(config)}
    known: dict[str, Any] = {name: LIMITS[name] for name in LIMITS if name in names}
    check_ranges(config, **known | limits)
    if "device" in names:
        check_device(config.device)
    if "inference" in names:
        want_inference(config.inference)
    for name in sorted({"json", "save_games"} & names):
        if (path := getattr(config, name)) is not None:
            check_output_file(f"--{name.replace('_', '-')}", path)


@dataclass(frozen=True)
class PlayOptions:
    """The options of `pit`, `tournament`, `ladder` and `tables`."""

    game: GameName = None
    games: Annotated[int | None, argument("INT", "100")] = None
    """Games per pair of contestants; each contestant begins half of them."""
    simulations: Annotated[int | None, argument("INT", "200 for nets; mcts needs a number")] = None
    """Simulations per ply, for contestants that search and do not set their own. With 0, nets play without a search."""
    seed: int = 0
    """Random seed. The same seed gives the same games, if --inference names a library."""
    threads: Threads = field(default_factory=count_cores)
    device: Device = "auto"
    inference: Inference = field(default_factory=wanted_inference)
    json: Json = None
    overwrite: Overwrite = False

    def __post_init__(self) -> None:
        check_options(self, games=(1, 1_000_000))


@dataclass(frozen=True)
class MatchOptions(PlayOptions):
    """The further option of `pit`, `tournament` and `ladder`."""

    openings: Annotated[str, argument("KIND", "random")] = "random"
    """Openings: random (a few random plies), balanced (random plies to an even position) or none (the start).
    Balanced ones need a game with a solver or a shipped net."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.openings not in OPENINGS:
            raise UnknownName("kind of openings", self.openings, OPENINGS)


@dataclass(frozen=True)
class TournamentOptions(MatchOptions):
    """The further options of `tournament` and `ladder`."""

    anchor: Annotated[str | None, argument("CONTESTANT", "random if it takes part, else the mean is 0")] = None
    """The contestant whose rating is set to 0."""
    folder: Annotated[Path | None, argument("FOLDER", "the same for the same command")] = None
    """The folder for its games. Run the same command again to go on with a stopped tournament."""
    cluster: Cluster = ""
    cluster_workers: ClusterWorkers = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.find_cluster()

    def find_cluster(self) -> Elsewhere | None:
        """The cluster that plays, not connected yet."""
        found = cluster_at(self.cluster, self.cluster_workers, self.threads)
        return found.spread if found else None


@dataclass(frozen=True)
class ScoreOptions:
    """The options of what scores a contestant on positions whose exact result is known."""

    contestant: Annotated[Contestant, tyro.conf.Positional, tyro.conf.arg(metavar="CONTESTANT")]
    """The player, as for the command pit: best, runs/connect4-1, mcts:400, minimax:4 and so on."""
    simulations: tuple[int, ...] = (0,)
    """Simulations per position, one or several numbers. 0: the policy of a net without a search."""
    json: Json = None
    overwrite: Overwrite = False
    seed: Seed = 0
    threads: Threads = field(default_factory=count_cores)

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True)
class TournamentConfig(TournamentOptions):
    """Plays a tournament of three or more contestants, and rates them. `alphazero pit --help` says what they can be."""

    contestants: Annotated[tuple[Contestant, ...], tyro.conf.Positional, positional("A B C ...")] = ()
    """The contestants; or a file FILE.toml with the contestants and settings, which the options here replace."""
    gauntlet: bool = False
    """The first contestant plays all others, and the others do not play each other."""
    adaptive: bool = False
    """Pairs whose ratings overlap play up to five times as many games."""
