"""A run's ladder: who meets whom, what a second call still plays, and strength against hours."""

import json
import re
from pathlib import Path

import pytest

from alphazero.catalogue import registry
from alphazero.commands import tournament
from alphazero.commands.shared import run_command
from alphazero.game.record import read_records
from alphazero.storage.metrics_file import seconds_of_generations
from alphazero.storage.run_folder import RunFolder
from alphazero.tournaments.folder import GAMES, Pairing, key_of, read_games
from alphazero.tournaments.ladder import BASELINES, pair_up

TIC_TAC_TOE = registry.load("tictactoe")


def test_a_generation_meets_neighbours_and_distant_ones():
    met = {(p.first, p.second) for p in pair_up(range(70), ("x", "y"))}
    mine = {int(second.split()[1]) for first, second in met if first == "generation 69"}
    assert mine == {68, 61, 5}
    assert {first for first, second in met if second == "x"} == {
        f"generation {generation}" for generation in (0, 1, 2, 4, 8, 16, 32, 64)
    }
    assert ("x", "y") in met


def test_new_generations_only_add_matches():
    before, after = pair_up(range(20), BASELINES), pair_up(range(21), BASELINES)
    assert set(after) - set(before) == {Pairing("generation 20", f"generation {g}") for g in (19, 12)}
    assert set(before) < set(after)


def test_a_generation_that_is_gone_is_passed_over():
    assert Pairing("generation 3", "generation 2") not in pair_up((0, 1, 3), ())


def test_a_generation_that_would_meet_nobody_meets_the_last_one_before_it():
    assert pair_up((0, 1, 128, 384), ()) == tuple(
        Pairing(f"generation {a}", f"generation {b}") for a, b in ((1, 0), (128, 1), (384, 128))
    )


def add_generation(folder: RunFolder, generation: int) -> None:
    net = TIC_TAC_TOE.make_net(TIC_TAC_TOE.game, {"blocks": 1, "channels": 8})
    net.save(folder.path / f"generation_{generation:04d}.safetensors", {"generation": generation})
    if generation:
        folder.append_metrics({"generation": generation, "seconds": 1800.0 * generation})


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Two baselines, and no pictures, which take seconds."""
    monkeypatch.setattr("alphazero.tournaments.ladder.BASELINES", ("random", "greedy"))
    monkeypatch.setattr("alphazero.tournaments.standings.has_matplotlib", lambda: False)


def climb(path: Path, *more: str) -> dict:
    line = [str(path), "--games", "2", "--simulations", "2", *more]
    assert run_command(tournament.ladder, line) == 0
    return json.loads((path / "ladder" / "results.json").read_text())


def test_a_run_is_rated_and_goes_on_being_rated(tmp_path, capsys, monkeypatch):
    with RunFolder.create(tmp_path / "run", {}) as folder:
        for generation in range(3):
            add_generation(folder, generation)
        first = climb(folder.path)
        rows = {row["name"]: row for row in first["contestants"]}
        assert list(rows) == ["generation 0", "generation 1", "generation 2", "random", "greedy"]
        assert [rows[f"generation {g}"]["hours"] for g in range(3)] == [0.0, 0.5, 1.0]
        assert rows["generation 2"]["generation"] == 2 and "hours" not in rows["random"]
        assert first["kind"] == "ladder" and first["games"] == 2 * (2 + 3 * 2 + 1)
        assert re.match(r"tictactoe: ladder of 5 contestants, 18 games", capsys.readouterr().out)
        before = (folder.path / "ladder" / "report.html").read_text()
        games_before = (folder.path / "ladder" / GAMES).read_bytes()
        add_generation(folder, 3)
        add_generation(folder, 4)
        monkeypatch.setattr("alphazero.tournaments.standings.has_matplotlib", lambda: True)
        drawn = list[str]()
        monkeypatch.setattr("alphazero.tournaments.standings.save_figure", lambda figure, path: drawn.append(path.name))
        monkeypatch.setattr("alphazero.tournaments.standings.embed", lambda title, figure: title)
        second = climb(folder.path, "minimax:2")
    assert (folder.path / "ladder" / GAMES).read_bytes().startswith(games_before)
    records = read_records(folder.path / "ladder" / GAMES)
    new = {key_of(record)[0] for record in records[18:]}
    names = {name for pairing in new for name in (pairing.first, pairing.second)}
    assert "minimax:2" in names and second["games"] == len(records) == len({key_of(record) for record in records})
    assert all({"generation 3", "generation 4", "minimax:2"} & {p.first, p.second} for p in new)
    page = (folder.path / "ladder" / "report.html").read_text()
    assert drawn[:2] == ["strength_over_time.png", "strength_over_time.svg"]
    assert "strength over time" in page and "matplotlib is missing" in before


def test_a_ladder_goes_on_when_a_net_was_removed(tmp_path, monkeypatch):
    """Its games stay in the folder, for readers too, and count no more."""
    with RunFolder.create(tmp_path / "run", {}) as folder:
        for generation in range(3):
            add_generation(folder, generation)
        climb(folder.path)
        before = (folder.path / "ladder" / GAMES).read_bytes()
        (folder.path / "generation_0001.safetensors").unlink()
        add_generation(folder, 3)
        for _ in range(2):  # the second time there is nothing to play
            result = climb(folder.path)
            assert [row["name"] for row in result["contestants"]] == [
                "generation 0", "generation 2", "generation 3", "random", "greedy",
            ]  # fmt: skip
            assert result["games"] == 2 * (2 + 2 * 2 + 1), "3 meets 2, 2 meets 0, both the baselines"
    there = read_games(folder.path / "ladder")
    assert (folder.path / "ladder" / GAMES).read_bytes().startswith(before)
    assert sum("generation 1" in record.contestants for record in there) == 2 * (2 + 2)
    monkeypatch.setattr("alphazero.tournaments.ladder.BASELINES", ("random",))
    assert run_command(tournament.ladder, [str(folder.path), "--games", "2", "--simulations", "2"]) == 2, (
        "only nets are removed"
    )


def test_hours_come_from_the_metrics(tmp_path):
    with RunFolder.create(tmp_path / "run", {}) as folder:
        add_generation(folder, 0)
        add_generation(folder, 1)
        folder.append_metrics({"generation": 2, "seconds": 5000.0})  # its net is not there (yet)
        assert seconds_of_generations(folder.path) == {0: 0.0, 1: 1800.0}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [({}, "no net yet"), ({"generation": 1}, "seconds: it"), ({"generation": 1, "seconds": "x"}, "no net yet")],
)
def test_a_run_without_a_net_or_a_time_is_refused(line, sentence, tmp_path, capsys):
    with RunFolder.create(tmp_path / "run", {}) as folder:
        if line:
            folder.append_metrics(line)
        assert run_command(tournament.ladder, [str(folder.path)]) == 2
    assert sentence in capsys.readouterr().err
