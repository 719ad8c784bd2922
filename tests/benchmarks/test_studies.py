"""The studies of docs/studies.md: their files are tournaments, and their tables land on the page."""

import re

import pytest

from alphazero.commands.shared import run_command
from alphazero.errors import InputError
from alphazero.tournaments.tournament import read_tournament
from benchmarks import studies
from benchmarks.studies import PAGE, STUDIES, StudiesConfig, insert, study

PAGE_OF_ONE = "# Before\n\n<!-- small -->\nold\n<!-- end of small -->\n\nAfter\n"


def test_every_study_has_its_file_and_its_place_on_the_page():
    assert set(STUDIES) == {"simulations", "temperature"}
    for name, path in STUDIES.items():
        found = read_tournament(path)
        assert all(str(text).startswith("best@simulations=") for text in found["contestants"])
        insert(PAGE.read_text(), name, "")
    simulations = read_tournament(STUDIES["simulations"])["contestants"]
    assert [int(str(text).split("=")[1]) for text in simulations] == [0, 20, 100, 200, 400, 800]


def test_a_study_is_played_and_its_tables_are_written(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("benchmarks.studies.time.strftime", lambda form: "2026-11-20")  # no midnight between
    file, page = tmp_path / "small.toml", tmp_path / "page.md"
    file.write_text('contestants = ["random", "greedy", "minimax:2"]\ngame = "tictactoe"\n')
    page.write_text(PAGE_OF_ONE)
    config = StudiesConfig(games=4, folder=tmp_path / "played" / "here", threads=1)
    study(file, config, page)
    written = page.read_text()
    assert written.startswith("# Before\n\n<!-- small -->\n") and written.endswith("\n<!-- end of small -->\n\nAfter\n")
    assert "2026-11-20: 12 games, " in written and "old" not in written
    assert re.search(
        r"\n\| `random` \| [+-]0 ± \d+ \| [\d.]+% \([\d.]+% to [\d.]+%\) \| [\d.]+ "
        r"\| \d\.\d \(\d\.\d to \d\.\d\) \| \d, \d, \d \|\n",
        written,
    )
    lines = re.findall(
        r"\n\| `(\S+)` \| `(\S+)` \| (\d), (\d), (\d) \| [\d.]+% \([\d.]+% to [\d.]+%\) "
        r"\| [+-]\d+ \([+-]\d+ to [+-]\d+\) \|(?=\n)",
        written,
    )
    assert len(lines) == 3 and all(sum(map(int, line[2:])) == 4 for line in lines)
    study(file, config, page)
    assert page.read_text() == written


def test_a_page_without_the_place_is_left_alone():
    with pytest.raises(InputError, match="no lines <!-- large --> and <!-- end of large -->"):
        insert(PAGE_OF_ONE, "large", "tables")


@pytest.mark.parametrize(
    ("line", "message"), [("--only temprature", "did you mean 'temperature'?"), ("--games 0", "--games must lie")]
)
def test_a_wrong_command_line_gets_one_sentence(line, message, capsys):
    assert run_command(studies.main, line.split()) == 2
    shown, errors = capsys.readouterr()
    assert shown == "" and errors.count("\n") == 1 and message in errors
