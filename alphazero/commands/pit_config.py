"""The settings of `alphazero pit`, and which of them go together."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import tyro

from alphazero.api.cluster import cluster_at
from alphazero.commands.shared import Contestant, Overwrite, Threads, argument, keep_apart
from alphazero.errors import InvalidSetting, UnknownName
from alphazero.invocation import command_line
from alphazero.machine import count_cores
from alphazero.matches.openings import KINDS as OPENINGS
from alphazero.matches.sprt import Sprt
from alphazero.nets.devices import check_device, want_inference, wanted_inference
from alphazero.settings import check_ranges
from alphazero.storage.files import check_output_file
from alphazero.tournaments.tournament import Elsewhere


@dataclass(frozen=True)
class PitConfig:
    """Plays two contestants against each other and says who is stronger. Three or more play a tournament.

    A contestant is random, greedy, minimax:DEPTH, mcts:SIMULATIONS, human, a shipped net (beginner, club or best in
    Connect Four), a run folder (its best net), folder:GENERATION, a checkpoint file, python:MODULE:FUNCTION (your own
    function), gtp:"COMMAND" (a program that speaks GTP), or a player of the game's own (solver in Connect Four and
    Othello). Contestants that search take settings, as in runs/c4@simulations=200,temperature=0.2.
    """

    contestants: Annotated[tuple[Contestant, ...], tyro.conf.Positional, tyro.conf.arg(metavar="A B ...")] = ()
    """The contestants. With --replay: the number of a game, or nothing."""
    game: Annotated[str | None, argument("NAME", "that of a checkpoint, else connect4")] = None
    """The game: a name, a Python file or a module."""
    games: Annotated[
        int | None, argument("INT", "100; 2 with a human, 20 with --ladder, at most 20,000 with --sprt")
    ] = None
    """Games per pair of contestants; each contestant begins half of them."""
    simulations: Annotated[int | None, argument("INT", "200 for nets, 16 with --ladder; mcts needs a number")] = None
    """Simulations per ply, for contestants that search and do not set their own. With 0, nets play without a search."""
    seed: int = 0
    """Random seed. The same seed gives the same match, if --inference names a library."""
    threads: Threads = field(default_factory=count_cores)
    """Processor cores to use."""
    device: str = "auto"
    """The device that nets run on: auto (a GPU if there is one), cpu or cuda."""
    inference: str = field(default_factory=wanted_inference)
    """The library that runs nets on the CPU: auto (the fastest here), torch, openvino or winograd (ours)."""
    json: Annotated[Path | None, argument("FILE", "none")] = None
    """Also write the result into this file, as JSON."""
    sprt: Annotated[str | None, argument("ELO0,ELO1", "none")] = None
    """End the match once it is clear whether A is at least ELO1 points stronger, or at most ELO0.
    This is a sequential probability ratio test, as in --sprt 0,20."""

    openings: Annotated[str, argument("KIND", "random")] = "random"
    """Openings: random (a few random plies), balanced (random plies to an even position) or none (the start).
    Balanced ones need a game with a solver or a shipped net."""
    save_games: Annotated[Path | None, argument("FILE", "none")] = None
    """Write all games into this file, one line of JSON each, with the moves in the game's notation."""
    overwrite: Overwrite = False
    replay: Annotated[Path | None, argument("FILE", "none")] = None
    """List the games in a file of --save-games, or step through one of them: --replay FILE NUMBER."""

    web: bool = False
    """Play in the browser: A or B is human. `alphazero serve` has further options."""

    tournament: Annotated[Path | None, argument("FILE.toml", "none")] = None
    """Play the tournament that this file describes: its contestants and settings."""
    gauntlet: bool = False
    """Tournament: the first contestant plays all others, and the others do not play each other."""
    adaptive: bool = False
    """Tournament: pairs whose ratings overlap play up to five times as many games."""
    anchor: Annotated[str | None, argument("CONTESTANT", "random if it takes part, else the mean is 0")] = None
    """Tournament: the contestant whose rating is set to 0."""
    folder: Annotated[Path | None, argument("FOLDER", "one in tournaments/, the same for the same command")] = None
    """Tournament: the folder for its games. Run the same command again to go on with a stopped tournament."""
    ladder: Annotated[Path | None, argument("RUN", "none")] = None
    """Rate all generations of this run, on one core.
    They play each other; some also play random, greedy, mcts:100, mcts:400 and the contestants given."""

    cluster: Annotated[str, argument("ADDRESS", "none")] = ""
    """Tournament: play the games on a Ray cluster. On processors of one kind the games are as without a cluster.
    auto: this machine's cluster, or a new one on its cores; local: always a new one; HOST:PORT: that of this head."""
    cluster_workers: Annotated[int | None, argument("INT", "one for each core, or for each GPU")] = None
    """Tournament: maximum number of workers on the cluster."""

    def __post_init__(self) -> None:
        self.test()
        check_device(self.device)
        if self.openings not in OPENINGS:
            raise UnknownName("kind of openings", self.openings, OPENINGS)
        if self.sprt is not None and self.openings == "none":
            raise InvalidSetting(
                "--sprt needs another opening for each pair of games, since players without randomness repeat their "
                "games: leave --openings none out"
            )
        want_inference(self.inference)
        check_ranges(self, games=(1, 1_000_000), simulations=(0, 1_000_000), seed=(0, (1 << 63) - 1), threads=(1, 4096))
        self.find_cluster()
        for option, path in (("--json", self.json), ("--save-games", self.save_games)):
            if path is not None:
                check_output_file(option, path)
        keep_apart("--json", self.json, "--save-games", self.save_games)

    def find_cluster(self) -> Elsewhere | None:
        """The cluster that plays, not connected yet."""
        return cluster_at(self.cluster, self.cluster_workers, self.threads)

    @property
    def is_tournament(self) -> bool:
        """More than two contestants, a tournament file or a ladder is asked for."""
        return self.tournament is not None or self.ladder is not None or len(self.contestants) > 2

    def check_contestants(self) -> None:
        """Raises InvalidSetting if the number of contestants, or an option, does not fit what is asked for."""
        if self.replay is not None:
            if replace(self, contestants=(), game=None, replay=None) != PitConfig():
                raise InvalidSetting("--replay goes only with --game: leave the other options out")
            if len(self.contestants) > 1 or not all(re.fullmatch(r"\d{1,9}", word.text) for word in self.contestants):
                raise InvalidSetting(
                    "--replay takes a file and the number of a game in it, as in --replay games.jsonl 3"
                )
        elif self.web:
            self._check_page()
        elif self.is_tournament:
            self._check_tournament()
        elif len(self.contestants) != 2:
            raise InvalidSetting(
                f"pit takes two contestants, as in {command_line('pit', 'random', 'greedy')}, "
                f"not {len(self.contestants)}; three or more play a tournament; --help says more"
            )
        elif self.gauntlet or self.adaptive or self.anchor or self.folder or self.cluster:
            raise InvalidSetting(
                "--gauntlet, --adaptive, --anchor, --folder and --cluster are for tournaments: name three contestants "
                "or more"
            )

    def _check_page(self) -> None:
        if replace(self, contestants=(), game=None, device="auto", web=False) != PitConfig():
            raise InvalidSetting(
                "--web goes only with --game, --device and --inference: leave the other options out, or use "
                "alphazero serve"
            )
        if not any(one.name == "human" for one in self.contestants):
            raise InvalidSetting("--web is for games with a human: name human as a contestant, or use alphazero serve")
        if len(self.contestants) != 2:
            raise InvalidSetting("--web takes one contestant beside human: name one, or use alphazero serve")

    def _check_tournament(self) -> None:
        if self.tournament is not None and (self.contestants or self.ladder or self.gauntlet):
            raise InvalidSetting(
                "--tournament takes contestants and kind from its file: leave names, --ladder and --gauntlet out"
            )
        if self.ladder is not None and (self.gauntlet or self.adaptive):
            raise InvalidSetting("--ladder chooses the pairs itself: leave --gauntlet and --adaptive out")
        if self.sprt or self.save_games:
            raise InvalidSetting(
                "--sprt and --save-games are for matches of two; a tournament keeps its games in its folder"
            )

    def test(self) -> Sprt | None:
        """The test that `--sprt` asks for."""
        return None if self.sprt is None else Sprt.parse(self.sprt)

    def num_games(self) -> int:
        """Games of a match without a human."""
        return self.games or (100 if self.sprt is None else 20_000)
