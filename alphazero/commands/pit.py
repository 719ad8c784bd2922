"""Plays two contestants against each other: `alphazero pit A B`; what is typed for more of them goes on from here."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import tyro

from alphazero.commands import ladder, replay, serve, tournament
from alphazero.commands.options import DEFAULT_GAME, Contestant, MatchOptions, argument, positional
from alphazero.commands.shared import keep_apart, parse, say, spare_files
from alphazero.errors import InputError, InvalidSetting, Terminated, count_of
from alphazero.game.kernels import kernels_of
from alphazero.game.record import write_records
from alphazero.invocation import command_line
from alphazero.matches.arena import GAMES_WITH_HUMAN, LEFT, play_with_human, ready_arena, shown
from alphazero.matches.openings import balance_of, plies_of
from alphazero.matches.report import as_json, describe, records_of
from alphazero.matches.result import MatchResult
from alphazero.matches.sprt import Sprt
from alphazero.players.contestants import load_game, make_player
from alphazero.players.human import HumanLeft, HumanPlayer
from alphazero.storage.files import write_json

ELSEWHERE = {"--replay": replay, "--ladder": ladder, "--tournament": tournament, "--web": serve}
"""Words that stand for commands of their own, which were parts of this one."""


@dataclass(frozen=True)
class PitConfig(MatchOptions):
    """Plays two contestants against each other and says who is stronger. Three or more play a tournament.

    A contestant is random, greedy, minimax:DEPTH, mcts:SIMULATIONS, human, a shipped net (beginner, club or best in
    Connect Four), a run folder (its best net), folder:GENERATION, a checkpoint file, python:MODULE:FUNCTION (your own
    function), gtp:"COMMAND" (a program that speaks GTP), or a player of the game's own (solver in Connect Four and
    Othello). Contestants that search take settings, as in runs/c4@simulations=200,temperature=0.2.
    """

    contestants: Annotated[tuple[Contestant, ...], tyro.conf.Positional, positional("A B")] = ()
    """The contestants. The options for more than two are those of `alphazero tournament`."""
    games: Annotated[int | None, argument("INT", "100; 2 with a human, at most 20,000 with --sprt")] = None
    """Games; each contestant begins half of them."""
    sprt: Annotated[str | None, argument("ELO0,ELO1", "none")] = None
    """End the match once it is clear whether A is at least ELO1 points stronger, or at most ELO0.
    This is a sequential probability ratio test, as in --sprt 0,20."""
    save_games: Annotated[Path | None, argument("FILE", "none")] = None
    """Write all games into this file, one line of JSON each, with the moves in the game's notation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.test()
        if self.sprt is not None and self.openings == "none":
            raise InvalidSetting(
                "--sprt needs another opening for each pair of games, since players without randomness repeat their "
                "games: leave --openings none out"
            )
        keep_apart("--json", self.json, "--save-games", self.save_games)

    def test(self) -> Sprt | None:
        """The test that `--sprt` asks for."""
        return None if self.sprt is None else Sprt.parse(self.sprt)


_MORE = (each.name for each in fields(tournament.TournamentConfig) if each.name not in PitConfig.__dataclass_fields__)
FOR_MORE = {f"--{name.replace('_', '-')}" for name in _MORE}
"""Options of tournaments alone."""


def main(argv: list[str]) -> None:
    for word, command in ELSEWHERE.items():
        if word in argv:
            command.main([other for other in argv if other != word])
            return
    asked = {word.partition("=")[0] for word in argv}
    if asked & FOR_MORE or len((config := parse(PitConfig, argv, command="pit")).contestants) > 2:
        tournament.main(argv)
    else:
        play(config)


def play(config: PitConfig) -> None:
    """Plays a match and reports it."""
    if len(config.contestants) != 2:
        raise InvalidSetting(
            f"pit takes two contestants, as in {command_line('pit', 'random', 'greedy')}, "
            f"not {len(config.contestants)}; three or more play a tournament; --help says more"
        )
    spare_files(config.overwrite, config.save_games, config.json)
    game_name, loaded = load_game(config.game, config.contestants, DEFAULT_GAME)
    first, second = (
        make_player(
            contestant, loaded, seed=config.seed, threads=config.threads, simulations=config.simulations,
            device=config.device,
        )
        for contestant in config.contestants
    )  # fmt: skip
    names, alone = (config.contestants[0].text, config.contestants[1].text), True
    for player in (first, second):
        if isinstance(player, HumanPlayer):
            player.loaded_as, alone = game_name, False
    if not alone and (config.sprt or config.openings != "random"):
        raise InvalidSetting("games with a human are few, and begin at the start: leave --sprt and --openings out")
    test, balance = config.test(), balance_of(config.openings, loaded)

    def report(result: MatchResult) -> None:
        openings = config.openings if alone else "none"
        say(describe(loaded.game, names, result, test, openings))
        if config.save_games is not None:
            write_records(config.save_games, records_of(result, loaded.game, game_name, names, config.seed))
        if config.json is not None:
            write_json(config.json, as_json(loaded.game.name, config.seed, names, result, test, openings))

    if not alone:
        try:
            report(play_with_human(loaded.game, first, second, config.games or GAMES_WITH_HUMAN, config.seed))
        except HumanLeft:
            print(LEFT)
        return
    num_games = config.games or (20_000 if test else 100)
    match = ready_arena(
        kernels_of(loaded.game), first, second, num_games, config.seed, plies_of(config.openings), balance
    )  # fmt: skip
    result = match.result()
    try:
        for result in shown(match, f"{first.name} - {second.name}"):
            if test and test.verdict(result.pairs) is not None:
                break
    except (InputError, KeyboardInterrupt, Terminated):
        if (whole := result.whole_pairs()).num_games:
            print(f"The match was not finished; these are its first {count_of(whole.num_games, 'game')}.")
            report(whole)
        raise
    report(result.whole_pairs() if result.num_games < num_games else result)
