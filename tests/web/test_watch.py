"""Runs and tournaments as the page sees them, also damaged ones; the games that a run keeps."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from alphazero.catalogue import registry
from alphazero.errors import InputError, StorageError
from alphazero.storage.checkpoint import load_checkpoint, save_checkpoint
from alphazero.storage.files import sha256_of
from alphazero.storage.manifest import read_config
from alphazero.storage.metrics_file import read_metrics
from alphazero.storage.run_folder import RunFolder
from alphazero.training.selfplay.shown_games import (
    MOST_GAMES,
    actions_of,
    read_shown,
    shown_generations,
)
from alphazero.web import seats, tables, watch
from alphazero.web.engine import Engine, Stage
from alphazero.web.message import question_of
from alphazero.web.searches import Stop
from tests.web.watched import make_run_and_tournament


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("watched")
    make_run_and_tournament(made, "one", 2)
    return made


@pytest.fixture
def engine(folder) -> Engine:
    stage = Stage("connect4", registry.load("connect4"), (), folder / "runs", folder / "tournaments", "cpu")
    return Engine(stage)


def ask(engine: Engine, kind: str, **fields: Any) -> dict[str, Any]:
    found = engine.quick[kind](object(), question_of({"id": 1, "ask": kind, **fields}))
    return json.loads(json.dumps(found, allow_nan=False))


def test_the_runs_of_the_folder(engine):
    (run,) = ask(engine, "runs")["runs"]
    assert (run["name"], run["game"], run["generation"], run["generations"]) == ("one", "tictactoe", 2, 2)
    assert not run["training"] and run["left"] == 0 and run["seconds"] > 0


def test_a_run_in_full_and_what_is_new(engine):
    run = ask(engine, "run", name="one")
    assert [row["generation"] for row in run["rows"]] == [1, 2] and run["shown"] == [1, 2]
    assert {"policy_loss", "value_loss", "seconds"} <= set(run["rows"][0]) and "policy_loss" in run["figures"]
    assert [row["generation"] for row in ask(engine, "run", name="one", after=1)["rows"]] == [2]


def test_files_that_have_not_changed_are_not_read_again(folder, tmp_path, monkeypatch):
    """The page asks every two seconds, and every move asks for the contestants."""
    shutil.copytree(folder, tmp_path / "copy")
    runs, cups = tmp_path / "copy" / "runs", tmp_path / "copy" / "tournaments"
    engine = Engine(Stage("connect4", registry.load("connect4"), (), runs, cups, "cpu"))
    read: list[str] = []
    for module, name in ((watch, "read_metrics"), (watch, "read_games"), (tables, "read_config")):
        old = getattr(module, name)
        monkeypatch.setattr(module, name, lambda path, old=old, name=name: (read.append(name), old(path))[1])

    def look() -> tuple[int, int]:
        read.clear()
        for game in ("connect4", "tictactoe"):
            ask(engine, "game", game=game)
        (run,), (cup,) = ask(engine, "runs")["runs"], ask(engine, "tournaments")["tournaments"]
        return run["generation"], cup["played"]

    assert look() == (2, 12) and sorted(read) == ["read_config", "read_games", "read_metrics"]
    assert look() == (2, 12) and read == []
    ask(engine, "run", name="one")
    metrics, games = runs / "one" / "metrics.jsonl", cups / "cup" / "all_games.jsonl"
    metrics.write_bytes(metrics.read_bytes() + json.dumps({"generation": 3, "seconds": 1}).encode() + b"\n")
    games.write_bytes(games.read_bytes()[:-20])
    assert look() == (3, 11) and sorted(read) == ["read_games", "read_metrics"]
    assert ask(engine, "run", name="one")["rows"][-1]["generation"] == 3


def test_every_row_carries_all_games_up_to_it(folder, tmp_path):
    """Also where generations are left out of the answer, and where it begins in the middle."""
    runs = tmp_path / "runs"
    shutil.copytree(folder / "runs" / "one", runs / "one")
    line = read_metrics(runs / "one")[-1]
    lines = [{**line, "generation": number, "games": 10} for number in range(1, 1501)]
    (runs / "one" / "metrics.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    engine = Engine(Stage("tictactoe", registry.load("tictactoe"), (), runs, None, "cpu"))
    for after, first in ((-1, 1), (700, 701)):
        rows = ask(engine, "run", name="one", after=after)["rows"]
        assert len(rows) == 500 and (rows[0]["generation"], rows[-1]["generation"]) == (first, 1500)
        assert all(row["total_games"] == 10 * row["generation"] for row in rows)


def test_a_run_that_goes_on_says_so(folder, engine):
    with RunFolder.open(folder / "runs" / "one"):
        (run,) = ask(engine, "runs")["runs"]
        assert run["training"]
    (run,) = ask(engine, "runs")["runs"]
    assert not run["training"]


def test_the_games_of_a_generation_begin_at_the_start_and_end(engine, folder):
    game = registry.load("tictactoe").game
    for generation in (1, 2):
        games = ask(engine, "run_games", name="one", generation=generation)["games"]
        assert 1 <= len(games) <= MOST_GAMES
        for found in games:
            assert game.position(found["actions"]).terminal and found["result"] != "*"
    records = read_shown(folder / "runs" / "one", 2)
    assert any(record.opening for record in records), "random plies are the opening"
    assert len({(*record.opening, *record.moves) for record in records}) > 1


def test_kept_games_do_not_depend_on_where_they_were_played(tmp_path):
    """A game of self-play in a process of its own is the same, and so is the one that is kept."""
    from alphazero.game.kernels import Kernels
    from alphazero.search.mcts import SearchConfig
    from alphazero.training.config import SelfPlayConfig
    from alphazero.training.selfplay import SelfPlay

    kernels = Kernels(registry.load("connect4").game)

    def evaluate(states, masks):
        return masks.astype("float32"), (states[:, 0] % 7).astype("float32") / 10

    play = SelfPlay(kernels, SelfPlayConfig(random_plies=6), SearchConfig(num_simulations=4), evaluate, 8, seed=5)
    play.play(10)
    assert len(play.finished_games()) == MOST_GAMES
    assert len({finished.opening_plies for finished in play.finished_games()}) > 1
    for finished in play.finished_games():
        actions, opening = actions_of(kernels.game, finished, 5), finished.opening_plies
        assert actions is not None and kernels.game.position(actions).terminal
        assert (kernels.game.position(actions).state == finished.states[-1]).all()
        assert len(actions) == opening + len(finished.states) - 1
        assert actions_of(kernels.game, finished._replace(opening_plies=max(1, opening)), 6) != actions, (
            "another seed has other openings"
        )


def test_kept_games_are_sealed(folder, tmp_path):
    path = folder / "runs" / "one" / "shown_0001.json"
    content = path.read_bytes()
    for offset in range(0, len(content), max(1, len(content) // 40)):
        damaged = bytearray(content)
        damaged[offset] ^= 1
        (tmp_path / "shown_0001.json").write_bytes(damaged)
        with pytest.raises(StorageError):
            read_shown(tmp_path, 1)
    (tmp_path / "shown_0001.json").write_bytes(content)
    assert read_shown(tmp_path, 1) and shown_generations(tmp_path) == [1] and len(content) < 20_000


def test_a_runs_generations_are_contestants(folder):
    stage = Stage("tictactoe", registry.load("tictactoe"), (), folder / "runs", None, "cpu")
    engine = Engine(stage)
    (run,) = [player for player in ask(engine, "game", game="tictactoe")["players"] if player["id"] == "run:one"]
    assert run["generations"] == [0, 1, 2] and run["searches"]
    opinions = [
        ask(engine, "policy", game="tictactoe", actions=[], player={"id": "run:one", "generation": generation})
        for generation in (0, 1)
    ]
    assert opinions[0] != opinions[1]
    with pytest.raises(InputError, match="has no generation"):
        ask(engine, "policy", game="tictactoe", actions=[], player={"id": "run:one", "generation": 77})


def test_a_run_in_a_folder_called_as_a_shipped_net_is_the_run(tmp_path, monkeypatch):
    """As with `serve --runs .` where such a folder lies."""
    monkeypatch.chdir(tmp_path)
    loaded = registry.load("connect4")
    arrays, card = load_checkpoint(loaded.nets["beginner"])
    card = {name: value for name, value in card.items() if name not in ("format", "weights", "card_sha256")}
    with RunFolder.create("best", {"game": "connect4", "seed": 0, "threads": 1, "settings": {}}) as run:
        save_checkpoint(run.path / "generation_0001.safetensors", arrays, card)
        names = ["generation_0001.safetensors", "generation_0001.json"]
        run.commit(1, {name: sha256_of(run.path / name) for name in names}, {"best": 1})
    engine = Engine(Stage("connect4", loaded, (), Path("."), None, "cpu"))

    def opinion(id: str) -> dict[str, Any]:
        return ask(engine, "policy", game="connect4", actions=[], player={"id": id})

    assert opinion("run:best") == opinion("beginner") != opinion("best")


def test_an_analysis_asks_the_new_best_net_of_its_run(folder, monkeypatch):
    run, viewer = folder / "runs" / "one", object()
    engine = Engine(Stage("tictactoe", registry.load("tictactoe"), (), folder / "runs", None, "cpu"))

    def tree_after(actions: list[int]) -> object:
        fields = {"game": "tictactoe", "actions": actions, "player": {"id": "run:one"}, "limit": 8}
        list(engine.searches["analyse"](viewer, question_of({"id": 1, "ask": "analyse", **fields}), Stop()))
        return engine.trees.get((viewer, 0))

    for generation, is_new in ((0, True), (0, False), (1, True)):
        best, before = run / f"generation_{generation:04d}.safetensors", engine.trees.get((viewer, 0))
        monkeypatch.setattr(seats, "find_checkpoint", lambda text, loaded, best=best: best)
        assert (tree_after([]) is not before) == is_new
    kept = engine.trees.get((viewer, 0))
    assert tree_after([4]) is kept, "a move keeps the tree"


def test_a_net_that_was_replaced_is_read_anew(folder, tmp_path):
    shutil.copytree(folder / "runs", tmp_path / "runs")
    engine = Engine(Stage("tictactoe", registry.load("tictactoe"), (), tmp_path / "runs", None, "cpu"))

    def opinion(generation: int) -> dict[str, Any]:
        player = {"id": "run:one", "generation": generation}
        return ask(engine, "policy", game="tictactoe", actions=[], player=player)

    before = opinion(1)
    for ending in ("safetensors", "json"):
        run = tmp_path / "runs" / "one"
        shutil.copy(run / f"generation_0000.{ending}", run / f"generation_0001.{ending}")
    assert opinion(1) == opinion(0) != before


@pytest.mark.parametrize("stage", ["mine.py", "./mine.py", "/elsewhere/mine.py", "mine"])
def test_a_game_of_ones_own_may_be_spelled_otherwise(folder, monkeypatch, stage):
    class Mine(type(registry.load("tictactoe").game)):  # type: ignore[misc]
        name = "mine"

    for module in (tables, watch):
        monkeypatch.setattr(module, "config_of", lambda path: {**read_config(path), "game": "folder/mine.py"})
    engine = Engine(Stage(stage, registry.of(Mine), (), folder / "runs", None, "cpu"))
    assert "run:one" in [player["id"] for player in ask(engine, "game", game=stage)["players"]]
    games = ask(engine, "run_games", name="one", generation=1)["games"]
    assert games and {found["game"] for found in games} == {stage}
    text = ask(engine, "record", game=stage, actions=[4], first="a", second="b")["text"].replace(stage, r"..\\mine.py")
    assert ask(engine, "load", text=text)["game"] == stage
    with pytest.raises(InputError, match="no game"):
        ask(engine, "game", game="other.py")


def test_a_file_with_a_shipped_games_name_is_another_game():
    shipped, mine = SimpleNamespace(name="connect4"), SimpleNamespace(name="my_connect4")
    assert tables.is_game("connect4", "connect4", shipped) and tables.is_game("./connect4.py", "connect4.py", mine)
    assert not tables.is_game("./connect4.py", "connect4", shipped)
    assert not tables.is_game("connect4", "connect4.py", mine)


def test_a_tournament_with_its_standings(engine):
    (found,) = ask(engine, "tournaments")["tournaments"]
    assert (found["name"], found["contestants"], found["played"], found["planned"]) == ("cup", 3, 12, 12)
    cup = ask(engine, "tournament", name="cup")
    assert [row["games"] for row in cup["rows"]] == [8, 8, 8]
    for row in cup["rows"]:
        assert (
            row["wins"] + row["draws"] + row["losses"] == 8 and row["interval"][0] <= row["score"] <= row["interval"][1]
        )
    assert len(cup["games"]) == 12 and len(cup["cross"]["lines"]) == 3
    game = ask(engine, "tournament_game", name="cup", number=5)
    assert game["game"] == "tictactoe" and registry.load("tictactoe").game.position(game["actions"]).terminal


def test_a_line_that_is_being_written_does_no_harm(engine, folder):
    path = folder / "tournaments" / "cup" / "all_games.jsonl"
    content = path.read_bytes()
    try:
        path.write_bytes(content[:-20])
        assert ask(engine, "tournament", name="cup")["played"] == 11
    finally:
        path.write_bytes(content)


@pytest.mark.parametrize("name", ["..", ".", "", "one/../one", "/", "one/", "nothing", "cup", "x" * 199])
def test_names_lead_nowhere_else(engine, name):
    for kind in ("run", "run_games"):
        with pytest.raises(InputError):
            ask(engine, kind, name=name, generation=1)


def test_links_and_damaged_folders_are_left_out_or_told(folder, tmp_path):
    runs = tmp_path / "runs"
    (runs / "broken").mkdir(parents=True)
    (runs / "broken" / "config.json").write_text("{")
    (runs / "odd").mkdir()
    (runs / "odd" / "config.json").write_text('{"game": ["x"], "settings": 5}')
    (runs / "empty").mkdir()
    (runs / "link").symlink_to(folder / "runs" / "one")
    (runs / "file").write_text("x")
    engine = Engine(Stage("tictactoe", registry.load("tictactoe"), (), runs, runs, "cpu"))
    found = {run["name"]: run for run in ask(engine, "runs")["runs"]}
    assert set(found) == {"broken", "odd"} and all(run["fault"] for run in found.values())
    assert ask(engine, "tournaments")["tournaments"] == []
    assert Engine(Stage("tictactoe", registry.load("tictactoe"), (), tmp_path / "no", None, "cpu"))
    assert ask(Engine(Stage("tictactoe", registry.load("tictactoe"), (), tmp_path / "no", None)), "runs")["runs"] == []


def test_a_folder_that_may_not_be_entered_is_left_out(folder, tmp_path, monkeypatch):
    """The superuser may enter every folder, so the answer is given here."""
    runs, stat = tmp_path / "runs", os.stat
    shutil.copytree(folder / "runs" / "one", runs / "one")
    (runs / "closed").mkdir()

    def refuse(path, *arguments, **options):
        if str(path).startswith(str(runs / "closed") + os.sep):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", refuse)
    engine = Engine(Stage("tictactoe", registry.load("tictactoe"), (), runs, runs, "cpu"))
    assert [run["name"] for run in ask(engine, "runs")["runs"]] == ["one"]
    assert "run:one" in [player["id"] for player in ask(engine, "game", game="tictactoe")["players"]]


def test_a_run_in_the_place_of_another_has_another_identity(folder, tmp_path):
    runs = tmp_path / "runs"
    engine = Engine(Stage("tictactoe", registry.load("tictactoe"), (), runs, None, "cpu"))
    shutil.copytree(folder / "runs" / "one", runs / "one")
    first = ask(engine, "run", name="one")["identity"]
    assert ask(engine, "run", name="one")["identity"] == first
    shutil.rmtree(runs / "one")
    shutil.copytree(folder / "runs" / "one", runs / "one", copy_function=shutil.copy)
    assert ask(engine, "run", name="one")["identity"] != first


def test_figures_that_are_no_numbers_are_left_out(folder, tmp_path):
    runs = tmp_path / "runs"
    shutil.copytree(folder / "runs" / "one", runs / "one")
    line = {"generation": 3, "seconds": "x", "policy_loss": None, "benchmark_figures": 5, "games": 1e300}
    with (runs / "one" / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    engine = Engine(Stage("tictactoe", registry.load("tictactoe"), (), runs, None, "cpu"))
    assert ask(engine, "runs")["runs"][0]["generation"] == 2
    assert [row["generation"] for row in ask(engine, "run", name="one")["rows"]] == [1, 2]


def test_the_page_is_told_of_a_game_for_one_and_of_points():
    table = tables.Table(Stage("2048", registry.load("2048")))
    position = table.game.position("b3=2 b2=2 up")
    assert table.fields()["alone"] and table.position_fields(position)["view"]["points"] == "4 points"
    pig = tables.Table(Stage("pig", registry.load("pig")))
    assert not pig.fields()["alone"] and "points" not in pig.position_fields(pig.game.start())["view"]
