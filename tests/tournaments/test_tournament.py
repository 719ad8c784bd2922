"""Tournaments: what is played, what is kept, and that a killed one goes on without losing or doubling a game."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.commands import pit
from alphazero.commands.shared import run_command
from alphazero.errors import InputError
from alphazero.game.record import read_records
from alphazero.matches import openings
from alphazero.matches.openings import Balance
from alphazero.players import contestants
from alphazero.players.contestants import ContestantText, load_net
from alphazero.storage.files import sha256_of, write_sealed_json
from alphazero.storage.run_folder import RunFolder
from alphazero.storage.run_names import resolve_checkpoint
from alphazero.tournaments import folder as tournament_folder
from alphazero.tournaments import tournament as tournament_module
from alphazero.tournaments.bradley_terry import rate
from alphazero.tournaments.folder import GAMES, SEAL, SETTINGS, Pairing, key_of, read_games
from alphazero.tournaments.tournament import (
    POCOCK,
    default_folder,
    make_tournament,
    play_tournament,
    tally,
)
from tests.storage.resealing import without_seals

ROOT = Path(__file__).resolve().parents[2]
FOUR = ("random", "greedy", "mcts:8", "mcts:16@temperature=0.5")


def make(contestants=FOUR, games=6, kind="round-robin", **fields):
    settings = {"simulations": None, "seed": 5, "adaptive": False} | fields
    return make_tournament("tictactoe", kind, list(map(ContestantText.parse, contestants)), games, **settings)


def play(folder, tournament):
    return play_tournament(folder, tournament, registry.load("tictactoe"), threads=1)


def moves_by_key(records):
    return {key_of(record): (record.opening, record.moves, record.result) for record in records}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return moves_by_key(play(folder, make()))


# --- what is played ---


def test_everybody_meets_everybody_or_the_first_meets_all():
    names = ["a", "b", "c"]
    assert make(names).pairings == (Pairing("a", "b"), Pairing("a", "c"), Pairing("b", "c"))
    assert make(names, kind="gauntlet").pairings == (Pairing("a", "b"), Pairing("a", "c"))


def test_every_pair_plays_its_games_in_both_colours(uninterrupted):
    assert set(uninterrupted) == {(pairing, number) for pairing in make().pairings for number in range(6)}
    for (pairing, number), (opening, _, _) in uninterrupted.items():
        assert opening == uninterrupted[pairing, number ^ 1][0]


def test_a_match_is_the_one_that_two_contestants_play_alone(uninterrupted, tmp_path):
    file = tmp_path / "games.jsonl"
    line = ["mcts:8", "mcts:16@temperature=0.5", "--game", "tictactoe", "--games", "6", "--seed", "5"]
    assert run_command(pit.main, [*line, "--save-games", str(file)]) == 0
    alone = moves_by_key(read_records(file))
    assert len(alone) == 6 and all(uninterrupted[key] == alone[key] for key in alone)


def test_the_tally_counts_by_who_began(tmp_path):
    records = play(tmp_path, make(games=5))
    counts = tally(FOUR, records)
    for i, first in enumerate(FOUR):
        for j, second in enumerate(FOUR):
            results = [record.result for record in records if record.contestants == (first, second)]
            assert counts[i, j].tolist() == [results.count(word) for word in ("1-0", "1/2-1/2", "0-1")]
    assert counts[0, 1].sum() == 3 and counts[1, 0].sum() == 2  # of five games, the first begins three


def test_an_adaptive_tournament_plays_on_where_ratings_overlap(tmp_path, monkeypatch):
    """Also one that was not adaptive at first, and one that was stopped between two rounds."""
    names = ("random", "mcts:16", "mcts:17", "mcts:18")
    tournament = make(names, games=4, adaptive=True)
    records = play(tmp_path / "adaptive", tournament)
    played = tally(names, records).sum(axis=2)
    played += played.T
    assert set(np.unique(played)) <= {0, 4, 8, 12, 16, 20} and played[0, 1:].max() < 20
    assert played[1:, 1:].max() == 20, "three players of one strength cannot be told apart"
    play(tmp_path / "later", make(names, games=4))
    assert len(play(tmp_path / "later", tournament)) > 24
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(tournament_module, "overlapping", stop)
        play(tmp_path / "adaptive", tournament)
    assert moves_by_key(play(tmp_path / "adaptive", tournament)) == moves_by_key(records)


def stop(*arguments):
    raise KeyboardInterrupt


def test_equal_players_are_told_apart_at_one_of_five_looks_in_a_twentieth_of_all_cases():
    """That is 3 of 60; with the bound of a single look it would be 8."""
    rng, told_apart = np.random.default_rng(3), 0
    for _ in range(60):
        games = np.zeros((2, 2, 3), np.int64)
        for _ in range(5):
            for i, j in ((0, 1), (1, 0)):
                games[i, j] += rng.multinomial(50, (0.5, 0.0, 0.5))
            if abs(rate(games).evidence(0, 1)) > POCOCK:
                told_apart += 1
                break
    assert 1 <= told_apart <= 6


# --- going on ---


def test_contestants_join_and_games_are_added(tmp_path, uninterrupted):
    play(tmp_path, make(FOUR[:3], games=4))
    first = (tmp_path / GAMES).read_bytes()
    records = play(tmp_path, make((FOUR[3], *FOUR[2::-1]), games=6))  # in another order, too
    assert (tmp_path / GAMES).read_bytes().startswith(first)
    assert len(records) == 36 == len(moves_by_key(records))
    met = {frozenset(record.contestants) for record in records}
    assert len(met) == 6
    for key in moves_by_key(records).keys() & uninterrupted.keys():
        assert moves_by_key(records)[key] == uninterrupted[key]


@pytest.fixture
def lengths(monkeypatch):
    """The plies of openings that were drawn, one entry for each time that the draw began."""
    lengths, draw = [], openings._draw_all
    monkeypatch.setattr(openings, "_draw_all", lambda *of: lengths.append(of[1]) or draw(*of))
    return lengths


def test_all_pairs_share_openings_that_are_drawn_once(lengths, tmp_path, uninterrupted):
    for _ in range(2):  # the second time nothing is left to play
        assert moves_by_key(play(tmp_path, make())) == uninterrupted
        assert lengths == [2]
    assert play(tmp_path, make()) == read_records(tmp_path / GAMES)


def test_an_adaptive_tournament_lets_the_net_judge_openings_when_they_are_needed(tmp_path, monkeypatch):
    judged = []

    def are_balanced(states):
        judged.extend(states[:, 0].tolist())
        return np.ones(len(states), bool)

    monkeypatch.setattr(openings, "AT_ONCE", 1)
    monkeypatch.setattr(openings, "LEAST_PLIES", 2)
    monkeypatch.setattr(tournament_folder, "balance_of", lambda *_: Balance(are_balanced, by_net=True))
    monkeypatch.setattr(tournament_folder, "checkpoint_of", lambda *_: (None, "0" * 64))
    loaded, tournament = registry.load("tictactoe"), make(games=4, adaptive=True)
    with tournament_folder.TournamentFolder(tmp_path, tournament, loaded) as folder:
        first = folder.openings(4)
        assert len(judged) == 2 and folder.openings(10)[:2] == first
        assert len(judged) == 5 and len(folder.openings(4)) == 2


SCENARIO = """
import sys
from pathlib import Path
from tests.tournaments import test_tournament as t
t.play(Path(sys.argv[1]), t.make())
"""


def start(folder: Path, **environment: str) -> subprocess.Popen:
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", SCENARIO, str(folder)],
        env={**os.environ, "PYTHONPATH": paths, **environment}, stderr=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize(
    "fault",
    ["append.within:1", pytest.param("append.after:2", marks=pytest.mark.slow),
     pytest.param("append.within:9", marks=pytest.mark.slow), "rename.before:1"],
)  # fmt: skip
def test_killed_in_the_middle_of_a_write_it_goes_on_exactly(fault, tmp_path, uninterrupted):
    killed = start(tmp_path, ALPHAZERO_FAULT=fault)
    assert killed.wait(60) == -signal.SIGKILL
    kept = (tmp_path / GAMES).read_bytes() if (tmp_path / GAMES).exists() else b""
    torn = not kept.endswith(b"\n") and kept != b""
    assert torn == ("within" in fault) and kept.count(b"\n") < 36
    records = play(tmp_path, make())
    whole_lines = kept[: kept.rfind(b"\n") + 1]
    assert (tmp_path / GAMES).read_bytes().startswith(whole_lines), "no finished game is lost"
    assert len(records) == 36 and moves_by_key(records) == uninterrupted


@pytest.mark.slow
def test_killed_from_outside_at_any_moment_it_goes_on_exactly(tmp_path, uninterrupted):
    for least in (1, 12, 24):
        process, file = start(tmp_path), tmp_path / GAMES
        while process.poll() is None and (not file.exists() or file.read_bytes().count(b"\n") < least):
            time.sleep(0.001)
        process.kill()
        process.wait(60)
    records = play(tmp_path, make())
    assert len(records) == 36 and moves_by_key(records) == uninterrupted


def test_two_do_not_play_in_one_folder(tmp_path):
    folder = tournament_folder.TournamentFolder(tmp_path, make(), registry.load("tictactoe"))
    with folder, pytest.raises(InputError, match="is in use by"):
        play(tmp_path, make())
    assert not (tmp_path / GAMES).exists()


LOST = {
    "unlocked": lambda path: (path / "lock").unlink(),
    "locked by another": lambda path: (path / "lock_holder").write_text("1 elsewhere\n"),
    "moved": lambda path: path.rename(path.with_name("away")),
    "replaced": lambda path: (path.rename(path.with_name("away")), path.mkdir()),
    "replaced by a copy": lambda path: shutil.copytree(path.rename(path.with_name("away")), path),
}


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    return play(tmp_path_factory.mktemp("whole"), make())


@pytest.mark.parametrize("lose", LOST.values(), ids=LOST)
def test_a_tournament_that_has_lost_its_folder_says_so_and_writes_to_no_other(lose, tmp_path, records):
    path = tmp_path / "folder"
    with tournament_folder.TournamentFolder(path, make(adaptive=True), registry.load("tictactoe")) as folder:
        folder.add(records[:5])
        lose(path)
        there = {file.name: file.read_bytes() for file in path.iterdir()} if path.exists() else {}
        for write in (lambda: folder.add(records[5:6]), lambda: folder.add_games(make().pairings)):
            with pytest.raises(InputError, match="is no longer this tournament's folder"):
                write()
    assert ({file.name: file.read_bytes() for file in path.iterdir()} if path.exists() else {}) == there


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": 6}, "seed: 5 -> 6"),
        ({"simulations": 50}, "simulations: null -> 50"),
        ({"games": 4}, "games: 6 -> 4"),
        ({"kind": "gauntlet"}, 'kind: "round-robin" -> "gauntlet"'),
        ({"contestants": FOUR[:3]}, "mcts:16@temperature=0.5 takes no part now"),
    ],
)
def test_another_tournament_is_refused_saying_what_differs(changes, said, tmp_path):
    with tournament_folder.TournamentFolder(tmp_path, make(), registry.load("tictactoe")):
        pass
    with pytest.raises(InputError, match=re.escape(f"holds another tournament ({said})")):
        play(tmp_path, make(**changes))


def test_a_tournament_does_not_go_on_under_other_rules(tmp_path, monkeypatch):
    rules = registry.load("tictactoe").game.rules

    def terminal_value(state):
        return 0.0

    play(tmp_path, make())
    monkeypatch.setattr(type(registry.load("tictactoe").game), "rules", replace(rules, terminal_value=terminal_value))
    with pytest.raises(InputError, match=r"holds another tournament \(the rules of the game have changed\)"):
        play(tmp_path, make(games=8))


def test_a_tournament_does_not_go_on_with_other_openings(tmp_path, monkeypatch):
    play(tmp_path, make())
    monkeypatch.setattr(openings, "OPENING", openings.OPENING + 100)  # as a version that draws them otherwise
    assert len(play(tmp_path, make())) == 36  # nothing is left to play
    with pytest.raises(InputError, match="was begun with other openings .*: choose another folder"):
        play(tmp_path, make(games=8))


def test_a_tournament_goes_on_only_with_the_net_that_chose_its_openings(tmp_path):
    play(tmp_path, make())
    resealed(tmp_path, judge="0" * 64)
    with pytest.raises(InputError, match="the net that chooses balanced openings is another one now"):
        play(tmp_path, make())


def test_a_net_that_has_changed_under_its_name_is_refused(tmp_path):
    loaded, net = registry.load("tictactoe"), tmp_path / "net.safetensors"
    contestants = ("random", "greedy", f"{net}@simulations=2")
    for expected in (None, "has other weights now"):
        loaded.make_net(loaded.game, {"blocks": 1, "channels": 8}).save(net, {})
        if expected is None:
            play(tmp_path / "folder", make(contestants, games=2))
        else:
            with pytest.raises(InputError, match=expected):
                play(tmp_path / "folder", make(contestants, games=2))


def promote(run: RunFolder, generation: int, loaded) -> str:
    """Commits a generation with a fresh net, which is the run's best; gives the SHA-256 of its weights."""
    file = run.path / f"generation_{generation:04d}.safetensors"
    net = loaded.make_net(loaded.game, {"blocks": 1, "channels": 8})
    net.save(file, {})
    files = [file, file.with_suffix(".json")]
    run.commit(generation, {path.name: sha256_of(path) for path in files}, {"best": generation})
    return sha256_of(file)


@pytest.mark.parametrize("most_open", [1, 16])
def test_a_net_promoted_meanwhile_does_not_play_under_the_name_of_the_one_before_it(most_open, tmp_path, monkeypatch):
    loaded, opened = registry.load("tictactoe"), list[str]()
    tournament = make((str(tmp_path / "run"), "random", "greedy"), games=2, simulations=0)
    with RunFolder.create(tmp_path / "run", {}) as run:
        first = promote(run, 1, loaded)

        def open_folder(*arguments):
            promote(run, 2, loaded)  # between the contestants' check and the first game
            return tournament_folder.TournamentFolder(*arguments)

        def open_net(path, *arguments):
            opened.append(sha256_of(resolve_checkpoint(path)))
            return load_net(path, *arguments)

        monkeypatch.setattr(tournament_module, "MOST_OPEN", most_open)
        monkeypatch.setattr(tournament_module, "TournamentFolder", open_folder)
        monkeypatch.setattr(contestants, "load_net", open_net)
        play(tmp_path / "folder", tournament)
    sealed = json.loads((tmp_path / "folder" / SETTINGS).read_text())["contestants"]
    assert set(opened) == {first} and sealed[str(tmp_path / "run")] == first
    assert (len(opened) > 1) == (most_open == 1)


def test_a_net_whose_file_is_replaced_meanwhile_plays_no_more(tmp_path, monkeypatch):
    loaded, net = registry.load("tictactoe"), tmp_path / "net.safetensors"

    def replace_net(*arguments):
        loaded.make_net(loaded.game, {"blocks": 1, "channels": 8}).save(net, {})

    replace_net()
    monkeypatch.setattr(tournament_module, "MOST_OPEN", 1)
    monkeypatch.setattr(tournament_module, "get_ready", replace_net)
    with pytest.raises(InputError, match="no longer has the weights with which this tournament began"):
        play(tmp_path / "folder", make((f"{net}@simulations=0", "random", "greedy"), games=2))


def resealed(folder: Path, **changes) -> None:
    """Writes other settings, with a seal that fits."""
    write_sealed_json(folder / SETTINGS, json.loads((folder / SETTINGS).read_text()) | changes, SEAL)


def edited(name, change):
    return lambda folder: (folder / name).write_text(change(without_seals((folder / name).read_text())))


def by_hand(before, after):
    def edit(folder):
        text = (folder / SETTINGS).read_text()
        (folder / SETTINGS).write_text(text.replace(before, after))

    return edit


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (edited(GAMES, lambda text: text + text.splitlines()[3] + "\n"), "line 37: game 3 of .* is there twice"),
        (edited(GAMES, lambda text: text.replace('"number": 5', '"number": 6', 1)), "is no game of this tournament"),
        (edited(GAMES, lambda text: text.replace("mcts:8", "mcts:9", 1)), "is no game of this tournament"),
        (
            edited(GAMES, lambda text: text.replace('"mcts:8"]', '"mcts:8", "mcts:8"]', 1)),
            "is no game of this tournament",
        ),
        (edited(GAMES, lambda text: "\n" + text), "line 1 is not valid JSON"),
        (lambda folder: resealed(folder, format=7), "is not the settings of a tournament of this version"),
        (by_hand('"opening_plies": 2', '"opening_plies": 3'), "was changed by hand: .*; bring"),
        (by_hand('"seed": 5', '"seed":  5'), "was changed by hand"),
        (by_hand('"games"', ""), "is not valid JSON"),
        (lambda folder: resealed(folder, opening_plies="2"), "opening_plies must be a whole number of 0 or more"),
        (lambda folder: resealed(folder, opening_plies=9), "9 opening plies, .* fewer than 9"),
        (lambda folder: resealed(folder, games=1_000_001), "games must be a whole number from 1 to 1,000,000, not 1"),
        (lambda folder: resealed(folder, pairings=[["random", "random", 6]]), "has a pair that cannot be"),
        (lambda folder: (folder / SETTINGS).unlink(), r"holds games without tournament\.json"),
    ],
)
def test_damage_is_found_and_said(damage, said, tmp_path, records):
    with tournament_folder.TournamentFolder(tmp_path, make(), registry.load("tictactoe")) as folder:
        folder.add(records)
    damage(tmp_path)
    with pytest.raises(InputError, match=said):
        play(tmp_path, make())


def test_a_changed_figure_of_a_game_is_found_and_its_game_is_played_again(tmp_path):
    """Its line is sealed: a bit that made another move of a move was once believed."""
    records, path = play(tmp_path, make()), tmp_path / GAMES
    lines = path.read_bytes().splitlines(keepends=True)
    changed = lines[3].replace(b'"seconds": [0', b'"seconds": [1', 1)
    path.write_bytes(b"".join([*lines[:3], changed, *lines[4:]]))
    for read in (lambda: play(tmp_path, make()), lambda: read_games(tmp_path)):
        with pytest.raises(InputError, match="line 4 is damaged"):
            read()
    record = json.loads(without_seals(lines[3].decode()))
    path.write_text(json.dumps(record | {"contestants": [*record["contestants"], "random"]}) + "\n")
    with pytest.raises(InputError, match="no game of this tournament"):
        read_games(tmp_path)
    path.write_bytes(b"".join([*lines[:3], *lines[4:]]))
    assert moves_by_key(play(tmp_path, make())) == moves_by_key(records)


def test_more_pairs_than_the_settings_can_hold_are_refused(tmp_path):
    tournament = make([f"mcts:{number}@temperature=0.5" for number in range(2, 202)])
    with pytest.raises(InputError, match=r"tournament\.json would hold"):
        play(tmp_path, tournament)
    assert not (tmp_path / GAMES).exists()


def test_the_same_command_finds_its_folder_again():
    assert default_folder(make()) == default_folder(make(FOUR[::-1], games=50))
    assert default_folder(make()) != default_folder(make(seed=6))
    assert default_folder(make(kind="gauntlet")) != default_folder(make(FOUR[::-1], kind="gauntlet"))
    assert re.fullmatch(r"tournaments/tictactoe-round-robin-[0-9a-f]{8}", default_folder(make()).as_posix())


@pytest.mark.parametrize(
    ("game", "few", "more", "each"),
    [("tictacmo", 6, 12, 6), ("tests.search.row_game", 4, 6, 1), ("connect4", 6, 12, 2)],
)
def test_a_tournament_goes_on_with_an_opening_for_each_group(game, few, more, each, tmp_path, caplog):
    """In games for more than two a group has as many games as there are seatings, in games for one a single game."""
    loaded, plans = registry.load(game), []
    for games in (few, more):
        tournament = make_tournament(
            game, "round-robin", list(map(ContestantText.parse, FOUR[:3])), games, None, 5, False
        )
        records = play_tournament(tmp_path, tournament, loaded, threads=1)
        assert len(records) == 3 * games
        plans.append(moves_by_key(records))
    assert plans[0].items() <= plans[1].items()
    first = {record.opening: set[int]() for record in records}
    for record in records:
        first[record.opening].add(record.number)
    expected = [set(range(start, start + each)) for start in range(0, more, each)]
    assert sorted(first.values(), key=min) == expected
    assert "different opening" not in caplog.text  # there are enough for all


def test_an_adaptive_tournament_of_a_game_for_three_ends(tmp_path):
    tournament = make_tournament("tictacmo", "round-robin", list(map(ContestantText.parse, FOUR[1:])), 6, None, 5, True)
    records = play_tournament(tmp_path, tournament, registry.load("tictacmo"), threads=1)
    assert len(records) > 18 and len(records) % 6 == 0
