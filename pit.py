"""Plays contestants against each other and says who is stronger: `python pit.py A B`, or a tournament of more."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

import games
from alphazero.arena import MatchResult, get_ready, play_match
from alphazero.command import Progress, check_output_file, count_cores, parse, run_command
from alphazero.contestants import DEVICES, game_of, open_contestant
from alphazero.errors import InvalidSetting, UnknownName
from alphazero.game import Game
from alphazero.game_record import read_records, records_of, write_records
from alphazero.human import HumanLeft, HumanPlayer
from alphazero.kernels import Kernels
from alphazero.ladder import FOLDER as LADDER
from alphazero.ladder import THREADS, Ladder
from alphazero.package import GamePackage
from alphazero.players import Player
from alphazero.rating import elo_difference, superiority
from alphazero.sprt import Sprt
from alphazero.standings import Standings, as_text, check_anchor
from alphazero.storage import write_json
from alphazero.tournament import FOLDER, default_folder, make_tournament, play_tournament
from alphazero.tournament_file import read_tournament
from alphazero.tournament_folder import GAMES, Tournament
from alphazero.tournament_report import REPORT, write_report


def _option(metavar: str, default: str) -> Any:
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=f"(default: {default})")


@dataclass(frozen=True)
class PitConfig:
    """Play two contestants against each other and say who is stronger; three or more play a tournament.

    A contestant is random, greedy, minimax:DEPTH, mcts:SIMULATIONS, human, a checkpoint file, a run folder (its best
    net), folder:GENERATION, python:MODULE:FUNCTION (your function from observations to logits), gtp:"COMMAND" (a
    program that speaks GTP), or what the game adds (solver in Connect Four). Those that search take settings, as in
    runs/c4@simulations=200,temperature=0.2.
    """

    contestants: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="A B ...")] = ()
    """The contestants; with --replay the number of a game, or nothing."""
    game: Annotated[str | None, _option("NAME", "that of a checkpoint, else connect4")] = None
    """The game: a name, a Python file or a module."""
    games: Annotated[int | None, _option("INT", "100, or 2 with a human")] = None
    """Games that a pair plays, half of them with each colour."""
    simulations: Annotated[int | None, _option("INT", "200")] = None
    """Simulations per ply of contestants that search and do not say how many; at 0 nets play without a search."""
    seed: int = 0
    """The same seed gives the same match."""
    threads: Annotated[int, _option("INT", "every core")] = field(default_factory=count_cores)
    """Processor cores to use."""
    device: str = "auto"
    """Where nets compute: auto (a GPU if there is one), cpu or cuda."""
    json: Annotated[Path | None, _option("FILE", "none")] = None
    """Write the result into this file as well."""
    sprt: Annotated[str | None, _option("ELO0,ELO1", "none")] = None
    """Stop as soon as it is clear whether A is at least ELO1 points stronger or at most ELO0, as in --sprt 0,20."""

    save_games: Annotated[Path | None, _option("FILE", "none")] = None
    """Write all games into this file, one a line of JSON, with their moves in the game's notation."""
    replay: Annotated[Path | None, _option("FILE", "none")] = None
    """List the games of such a file, or step through one: --replay FILE NUMBER."""

    tournament: Annotated[Path | None, _option("FILE.toml", "none")] = None
    """A tournament whose contestants and settings are in a file."""
    gauntlet: bool = False
    """In a tournament, the first contestant meets all others, and these do not meet each other."""
    adaptive: bool = False
    """In a tournament, pairs whose ratings overlap play up to five times as many games."""
    anchor: Annotated[str | None, _option("CONTESTANT", "random; without it, the mean is 0")] = None
    """The contestant of a tournament whose rating is 0."""
    folder: Annotated[Path | None, _option("FOLDER", "one in tournaments/, the same for the same command")] = None
    """Where a tournament is kept; the same command again goes on where it was stopped."""
    ladder: Annotated[Path | None, _option("RUN", "none")] = None
    """Rate all generations of a run, and random, greedy, mcts:100, mcts:400 and the contestants named, on one core."""

    def __post_init__(self) -> None:
        self.test()
        if self.device not in DEVICES:
            raise UnknownName("device", self.device, DEVICES)
        for name, value, low, high in (
            ("--games", self.games, 1, 1_000_000),
            ("--simulations", self.simulations, 0, 1_000_000),
            ("--seed", self.seed, 0, 2**63 - 1),
            ("--threads", self.threads, 1, 4096),
        ):
            if value is not None and not low <= value <= high:
                raise InvalidSetting(f"{name} must lie between {low:,} and {high:,}, not {value:,}")
        for option, path in (("--json", self.json), ("--save-games", self.save_games)):
            if path is not None:
                check_output_file(option, path)

    @property
    def is_tournament(self) -> bool:
        """More than one match is asked for."""
        return self.tournament is not None or self.ladder is not None or len(self.contestants) > 2

    def check_contestants(self) -> None:
        """There are as many as are needed, and no option for another number; raises InvalidSetting."""
        if self.replay is not None:
            if not re.fullmatch(r"\d{0,9}", "".join(self.contestants)):
                raise InvalidSetting(
                    "--replay takes a file and the number of a game in it, as in --replay games.jsonl 3"
                )
        elif self.is_tournament:
            self._check_tournament()
        elif len(self.contestants) != 2:
            raise InvalidSetting(
                f"pit.py takes two contestants, as in pit.py random greedy, not {len(self.contestants)}; "
                "three or more play a tournament; --help says more"
            )
        elif self.gauntlet or self.adaptive or self.anchor or self.folder:
            raise InvalidSetting(
                "--gauntlet, --adaptive, --anchor and --folder are for tournaments: name three contestants or more"
            )

    def _check_tournament(self) -> None:
        if self.tournament is not None and (self.contestants or self.ladder or self.gauntlet):
            raise InvalidSetting("--tournament takes contestants and kind from its file: leave the others out")
        if self.ladder is not None and (self.gauntlet or self.adaptive):
            raise InvalidSetting("--ladder chooses who meets whom: leave --gauntlet and --adaptive out")
        if self.sprt or self.save_games:
            raise InvalidSetting(
                "--sprt and --save-games are for two contestants; a tournament keeps its games in its folder"
            )

    def test(self) -> Sprt | None:
        """What `--sprt` asks for."""
        if self.sprt is None:
            return None
        try:
            elo0, elo1 = (float(word) for word in self.sprt.split(","))
        except ValueError:
            raise InvalidSetting(
                f"--sprt takes two Elo differences, as in --sprt 0,20, not {self.sprt!r:.80}"
            ) from None
        return Sprt(elo0, elo1)

    def num_games(self) -> int:
        """Games between two who are not human."""
        return self.games or (100 if self.sprt is None else 20_000)


def main(argv: list[str]) -> None:
    config = parse(PitConfig, argv)
    config.check_contestants()  # not sooner: a mistyped option takes the words behind it for contestants
    if config.replay is not None:
        replay(config.replay, int(config.contestants[0]) if config.contestants else None, config.game)
        return
    if config.is_tournament:
        climb(config, config.ladder) if config.ladder else compete(config)
        return
    contestants = config.contestants[0], config.contestants[1]
    game_name, package = _load_game(config)
    first, second = (
        open_contestant(
            text,
            package,
            seed=config.seed,
            threads=config.threads,
            simulations=config.simulations,
            device=config.device,
        )
        for text in contestants
    )
    alone = not any(isinstance(player, HumanPlayer) for player in (first, second))
    if config.sprt and not alone:
        raise InvalidSetting("--sprt takes hundreds of games, which nobody wants to play: leave it out with a human")
    play = play_alone if alone else play_with_human
    try:
        result = play(package.game, first, second, config)
    except HumanLeft:
        print("You have left the match.")
        return
    print(describe(package.game.name, contestants, result, config.test()))
    if config.save_games is not None:
        write_records(config.save_games, records_of(result, package.game, game_name, contestants, config.seed))
    if config.json is not None:
        write_json(config.json, as_json(contestants, result, config.test()))


def _load_game(config: PitConfig) -> tuple[str, GamePackage]:
    """The game that is asked for, or that a contestant's card names, and its name."""
    if config.game:
        return config.game, games.load(config.game)
    for contestant in config.contestants:
        if named := game_of(contestant):
            return named, games.load_named(named, contestant)
    return "connect4", games.load("connect4")


def compete(config: PitConfig) -> None:
    """A tournament of the contestants on the command line or in a file."""
    config, name = _with_file(config)
    game_name, package = _load_game(config)
    tournament = make_tournament(
        game_name, "gauntlet" if config.gauntlet else "round-robin", config.contestants, config.num_games(),
        config.simulations, config.seed, config.adaptive,
    )  # fmt: skip
    folder = config.folder or (FOLDER / name if name else default_folder(tournament))
    standings = play_and_rate(folder, tournament, package, config.threads, config)
    report(folder, standings, write_report(folder, standings), None, config)


def climb(config: PitConfig, run: Path) -> None:
    """The ladder of a run."""
    ladder = Ladder(run, config.contestants)
    game_name, package = _load_game(replace(config, contestants=tuple(ladder.texts.values())))
    tournament = ladder.tournament(game_name, config.games, config.simulations, config.seed)
    folder = config.folder or run / LADDER
    standings = play_and_rate(folder, tournament, package, THREADS, config)
    result = write_report(folder, standings, ladder.fields(), ladder.drawings(standings))
    report(folder, standings, result, ladder.shown(standings), config)


def play_and_rate(
    folder: Path, tournament: Tournament, package: GamePackage, threads: int, config: PitConfig
) -> Standings:
    """Plays what is missing; an interruption says how to go on."""
    check_anchor(tournament, config.anchor)
    try:
        records = play_tournament(folder, tournament, package, threads, config.device)
    except KeyboardInterrupt:
        print(f"\nthe games so far are in {folder}; the same command goes on from there", file=sys.stderr)
        raise
    return Standings(tournament, records, package.game, config.anchor)


def report(
    folder: Path, standings: Standings, result: dict[str, Any], shown: Sequence[str] | None, config: PitConfig
) -> None:
    """Prints the table and what to do next, and writes `--json`."""
    print(as_text(standings, shown))
    print(
        f"\nNext: open {folder / REPORT} in a browser, or step through the first game: "
        f"python pit.py --replay {folder / GAMES} 0\n"
        + (
            "The same command again plays what has come since: the games of new generations."
            if config.ladder
            else f"More --games, or more contestants with --folder {folder}, add to what has been played."
        )
    )
    if config.json is not None:
        write_json(config.json, result)


def _with_file(config: PitConfig) -> tuple[PitConfig, str]:
    """The settings with those of the tournament's file, and that file's name without its ending."""
    if config.tournament is None:
        return config, ""
    found, default = read_tournament(config.tournament), PitConfig()
    for name in ("games", "simulations", "seed", "adaptive"):
        if name in found and getattr(config, name) != getattr(default, name):
            raise InvalidSetting(f"{config.tournament} says its {name} already: leave --{name} out")
    if config.game is None and "game" in found:
        games.load_named(found["game"], str(config.tournament))  # what a file names is not run
    known = {name: found[name] for name in ("games", "simulations", "seed", "adaptive") if name in found}
    asked = replace(
        config,
        **known,
        contestants=tuple(found["contestants"]),
        game=config.game or found.get("game"),
        gauntlet=found.get("kind") == "gauntlet",
    )
    return asked, config.tournament.stem


def play_alone(game: Game, first: Player, second: Player, config: PitConfig) -> MatchResult:
    """A match with a progress bar."""
    num_games, kernels, test = config.num_games(), Kernels(game), config.test()

    def show(result: MatchResult) -> None:
        # before games end, their progress is at least the share of the plies that they can have
        fraction = max(result.num_games, sum(result.moves) / game.max_plies) / num_games
        progress.show(min(1.0, fraction), f"{result.num_games} of {num_games} games, score {result.score:.1%}")

    for player in (first, second):
        get_ready(kernels, player)
    with Progress(f"{first.name} - {second.name}") as progress:
        return play_match(
            kernels, first, second, num_games, config.seed, on_progress=show,
            decided=(lambda result: test.verdict(result.pairs) is not None) if test else None,
        )  # fmt: skip


def play_with_human(game: Game, first: Player, second: Player, config: PitConfig) -> MatchResult:
    """Games one after the other from the start position; says how each ended."""
    num_shown = 0

    def show(result: MatchResult) -> None:
        nonlocal num_shown
        if result.num_games > num_shown:
            num_shown = result.num_games
            winner = {1: f"{first.name} wins", -1: f"{second.name} wins", 0: "a draw"}[result.outcomes[-1]]
            print(f"\n{game.position(result.actions[-1])}\n\nGame {num_shown}: {winner}.")

    return play_match(Kernels(game), first, second, config.games or 2, config.seed, opening_plies=0, on_progress=show)


def replay(path: Path, number: int | None, game_name: str | None) -> None:
    """Lists the games of a file written by `--save-games`, or steps through one."""
    records = read_records(path)
    if number is None:
        print(f"{len(records)} games; step through one by adding its number")
        for i, record in enumerate(records):
            moves = " ".join((*record.opening, *record.moves))
            print(f"{i:>5}  {record.result:<7}  {' - '.join(record.contestants)}  {moves:.80}")
        return
    if number >= len(records):
        raise InvalidSetting(f"{path} holds the games 0 to {len(records) - 1}, and no game {number}")
    record = records[number]
    name = game_name or record.game
    game = (games.load(name) if game_name else games.load_named(name, str(path))).game
    positions, words = record.positions(game), ("", *record.opening, *record.moves)
    asks, shown = sys.stdin.isatty(), 0
    while shown < len(positions):
        who = "" if shown == 0 else "opening: " if shown <= len(record.opening) else ""
        if shown > len(record.opening):
            who = f"{record.contestants[positions[shown - 1].to_play]} plays "
        print(f"\n{shown} of {len(positions) - 1}  {who}{words[shown]}\n\n{positions[shown]}")
        answer = input("\nEnter: next, b: back, q: quit  ").strip().lower() if asks else ""
        if answer.startswith("q"):
            return
        shown = max(0, shown - 1) if answer.startswith("b") else shown + 1
    print(f"\n{' - '.join(record.contestants)}: {record.result}" + (record.forfeit and f" ({record.forfeit})"))


def describe(game_name: str, contestants: tuple[str, str], result: MatchResult, test: Sprt | None = None) -> str:
    """The report of a match, seen by the first contestant."""
    low, high = result.score_interval
    elo, elo_low, elo_high = (elo_difference(score, result.num_games) for score in (result.score, low, high))
    ms_first, ms_second = result.ms_per_move
    num_forfeits = sum(map(bool, result.forfeits))
    return (
        f"{game_name}: {contestants[0]} against {contestants[1]}, {result.num_games} games\n"
        f"wins            {result.wins}\n"
        f"draws           {result.draws}\n"
        f"losses          {result.losses}\n"
        f"score           {result.score:.1%} (95% interval {low:.1%} to {high:.1%})\n"
        f"Elo difference  {elo:+.0f} ({elo_low:+.0f} to {elo_high:+.0f})\n"
        f"superiority     {superiority(result.wins, result.losses):.1%} likely that the first is the stronger\n"
        f"distinct games  {result.distinct_games}\n"
        f"ms per move     {ms_first:.2f} and {ms_second:.2f}"
        + (f"\nforfeits        {num_forfeits}, as told above" if num_forfeits else "")
    ) + (f"\nSPRT            {describe_test(test, contestants[0], result)}" if test else "")


def describe_test(test: Sprt, name: str, result: MatchResult) -> str:
    """What the test says of the first contestant."""
    ratio, (low, high) = test.log_likelihood_ratio(result.pairs), test.bounds
    verdict = {
        "H1": f"H1 accepted: {name} is stronger by {test.elo1:g} points or more",
        "H0": f"H0 accepted: {name} is stronger by {test.elo0:g} points at most",
        None: "not decided: give it more --games",
    }[test.verdict(result.pairs)]
    return f"{verdict} (log-likelihood ratio {ratio:.2f} of {low:.2f} to {high:.2f}, {sum(result.pairs)} pairs)"


def as_json(contestants: tuple[str, str], result: MatchResult, test: Sprt | None = None) -> dict[str, Any]:
    """What `--json` writes."""
    low, high = result.score_interval
    sides = (
        (result.wins, result.losses, result.score, [low, high]),
        (result.losses, result.wins, 1 - result.score, [1 - high, 1 - low]),
    )
    return {
        "contestants": [
            {
                "name": name,
                "wins": wins,
                "draws": result.draws,
                "losses": losses,
                "score": score,
                "score_interval": interval,
                "superiority": superiority(wins, losses),
                "ms_per_move": ms_per_move,
            }
            for name, (wins, losses, score, interval), ms_per_move in zip(
                contestants, sides, result.ms_per_move, strict=True
            )
        ],
        "games": result.num_games,
        "distinct_games": result.distinct_games,
        **({} if test is None else {"sprt": test_as_json(test, result)}),
    }


def test_as_json(test: Sprt, result: MatchResult) -> dict[str, Any]:
    """The test's verdict, `H0`, `H1` or null, and what it rests on."""
    return {
        "elo0": test.elo0,
        "elo1": test.elo1,
        "verdict": test.verdict(result.pairs),
        "log_likelihood_ratio": test.log_likelihood_ratio(result.pairs),
        "bounds": list(test.bounds),
        "pairs": list(result.pairs),
    }


if __name__ == "__main__":
    sys.exit(run_command(main))
