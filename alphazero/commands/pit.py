"""Plays contestants against each other: `alphazero pit A B`, or a tournament of three or more."""

from __future__ import annotations

from pathlib import Path

from alphazero.catalogue import registry
from alphazero.commands.pit_config import PitConfig
from alphazero.commands.serve import ServeConfig, serve
from alphazero.commands.shared import parse, say, spare_files
from alphazero.commands.tournament import DEFAULT_GAME, climb, compete
from alphazero.commands.watch import list_games, step_through
from alphazero.errors import InputError, InvalidSetting, Terminated, count_of
from alphazero.game.kernels import kernels_of
from alphazero.game.record import read_records, write_records
from alphazero.matches.arena import GAMES_WITH_HUMAN, LEFT, play_with_human, ready_arena, shown
from alphazero.matches.openings import balance_of, plies_of
from alphazero.matches.report import as_json, describe, records_of
from alphazero.matches.result import MatchResult
from alphazero.players.contestant_text import ContestantText
from alphazero.players.contestants import load_game, make_player
from alphazero.players.human import HumanLeft, HumanPlayer
from alphazero.storage.files import write_json


def main(argv: list[str]) -> None:
    config = parse(PitConfig, argv, command="pit")
    config.check_contestants()  # not sooner: a mistyped option takes the words behind it for contestants
    if config.replay is not None:
        replay(config, config.replay)
    elif config.ladder is not None:
        climb(config, config.ladder)
    elif config.is_tournament:
        compete(config, argv)
    elif config.web:
        serve(ServeConfig(config.contestants, config.game, device=config.device, inference=config.inference))
    else:
        spare_files(config.overwrite, config.save_games, config.json)
        play(config, (config.contestants[0], config.contestants[1]))


def play(config: PitConfig, contestants: tuple[ContestantText, ContestantText]) -> None:
    """Plays a match and reports it."""
    game_name, loaded = load_game(config.game, contestants, DEFAULT_GAME)
    first, second = (
        make_player(
            contestant, loaded, seed=config.seed, threads=config.threads, simulations=config.simulations,
            device=config.device,
        )
        for contestant in contestants
    )  # fmt: skip
    names = contestants[0].text, contestants[1].text
    humans = [player for player in (first, second) if isinstance(player, HumanPlayer)]
    alone = not humans
    for human in humans:
        human.loaded_as = game_name
    if config.sprt and not alone:
        raise InvalidSetting("--sprt needs hundreds of games: leave it out in a match with a human")
    if config.openings != "random" and not alone:
        raise InvalidSetting("games with a human begin at the start: leave --openings out")
    test, balance = config.test(), balance_of(config.openings, loaded)

    def report(result: MatchResult) -> None:
        openings = config.openings if alone else "none"
        say(describe(loaded.game, names, result, test, openings))
        if config.save_games is not None:
            write_records(config.save_games, records_of(result, loaded.game, game_name, names, config.seed))
        if config.json is not None:
            write_json(config.json, as_json(loaded.game.name, config.seed, names, result, test, openings))

    if alone:
        match = ready_arena(
            kernels_of(loaded.game), first, second, config.num_games(), config.seed, plies_of(config.openings), balance
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
        report(result.whole_pairs() if result.num_games < config.num_games() else result)
    else:
        try:
            report(play_with_human(loaded.game, first, second, config.games or GAMES_WITH_HUMAN, config.seed))
        except HumanLeft:
            print(LEFT)


def replay(config: PitConfig, path: Path) -> None:
    """Lists the games of a file written by `--save-games`, or steps through one."""
    records = read_records(path)
    if not config.contestants:
        list_games(records)
        return
    number = int(config.contestants[0].text)
    if number >= len(records):
        there = f"{count_of(len(records), 'game')}, the first of which is game 0" if records else "no games"
        raise InvalidSetting(f"{path} holds {there}")
    named = records[number].game
    loaded = registry.load(config.game) if config.game else registry.load_named(named, str(path))
    step_through(records[number], loaded.game)
