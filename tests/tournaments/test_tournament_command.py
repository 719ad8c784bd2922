"""The command that plays tournaments: its report, its files, and what wrong words get."""

import json
import re
import shlex
from pathlib import Path

import pytest

from alphazero.commands import pit, tournament
from alphazero.commands.shared import run_command

ROOT = Path(__file__).resolve().parents[2]
FOUR = ("random", "greedy", "mcts:8", "mcts:16@temperature=0.5")


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    """They take seconds."""
    monkeypatch.setattr("alphazero.tournaments.standings.has_matplotlib", lambda: False)


def play(*arguments):
    return run_command(tournament.main, [*map(str, arguments)])


def run_pit(*arguments):
    again = ["--overwrite"] if {"--json", "--save-games"} & set(arguments) else []
    return run_command(pit.main, [*map(str, arguments), *again])


def test_a_tournament_is_reported_and_written(tmp_path, capsys):
    file, folder = tmp_path / "result.json", tmp_path / "folder"
    assert run_pit(*FOUR, "--game", "tictactoe", "--games", 6, "--seed", 5, "--folder", folder, "--json", file) == 0
    report, errors = capsys.readouterr()
    assert "error" not in errors and report.startswith("tictactoe: round-robin of 4 contestants, 36 games, ")
    written = json.loads(file.read_text())
    assert written == json.loads((folder / "results.json").read_text())
    rows = {row["name"]: row for row in written["contestants"]}
    assert list(rows) == list(FOUR) and rows["random"]["rating"] == 0.0
    strongest = max(rows.values(), key=lambda row: row["rating"])
    line = next(line for line in report.splitlines() if line.startswith("1  "))
    assert f"{strongest['rating']:+.0f} ± {strongest['rating_error']:.0f}" in line and strongest["name"] in line
    assert len(written["matches"]) == 6 and written["games"] == 36
    for name, row in rows.items():
        wins = sum(m["wins"] for m in written["matches"] if m["first"] == name)
        wins += sum(m["losses"] for m in written["matches"] if m["second"] == name)
        assert row["wins"] == wins and row["wins"] + row["draws"] + row["losses"] == 18
        assert row["score"] == (row["wins"] + row["draws"] / 2) / 18
    assert " replay " in report and "report.html" in report
    assert run_pit(*FOUR, "--game", "tictactoe", "--games", 6, "--seed", 5, "--folder", folder) == 0
    assert capsys.readouterr().out == report


def test_the_next_command_of_a_tournament_in_a_game_of_ones_own_works(tmp_path, capsys):
    game = str(ROOT / "tests" / "game" / "double_move_game.py")
    words = ["random", "greedy", "minimax:1", "--game", game, "--games", 2, "--folder", tmp_path / "t"]
    assert run_pit(*words) == 0
    (line,) = re.findall(r"step through the first game: (.*)", capsys.readouterr().out)
    words = shlex.split(line)
    assert run_command(pit.replay, words[words.index("replay") + 1 :]) == 0
    assert words[-2:] == ["--game", game]


@pytest.mark.parametrize(("files", "said"), [
    (("report.html", "results.json", "standings.csv"), "mine holds other files: choose another"),
    (("config.json", "report.html"), "mine is a run's folder, since it holds config.json: choose another --folder"),
    (("config.json", "tournament.json"), "mine is a run's folder, since it holds config.json: choose another --folder"),
])  # fmt: skip
def test_a_folder_with_other_files_is_refused_and_left_as_it_is(files, said, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    for name in files:
        Path("mine", name).write_text("precious")
    assert run_pit("random", "greedy", "minimax:2", "--game", "tictactoe", "--games", 2, "--folder", "mine") == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1 and said in errors
    assert {path.name: path.read_text() for path in Path("mine").iterdir()} == dict.fromkeys(files, "precious")


def test_a_folder_with_hidden_files_and_a_lock_left_behind_is_taken(tmp_path):
    for name in (".DS_Store", "lock", "lock_holder"):
        (tmp_path / name).write_text("1 elsewhere\n")
    assert run_pit("random", "greedy", "minimax:2", "--game", "tictactoe", "--games", 2, "--folder", tmp_path) == 0


def test_a_file_holds_a_tournament(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("spring.toml").write_text(
        'contestants = ["mcts:8", "random", "greedy"]\ngame = "tictactoe"\nkind = "gauntlet"\ngames = 4\nseed = 2\n'
    )
    assert play("spring.toml", "--anchor", "greedy") == 0
    assert "greedy is 0" in capsys.readouterr().out
    written = json.loads(Path("tournaments/spring/results.json").read_text())
    assert [(match["first"], match["second"]) for match in written["matches"]] == [
        ("mcts:8", "random"), ("mcts:8", "greedy"),
    ]  # fmt: skip
    assert written["seed"] == 2 and written["games"] == 8 and written["contestants"][2]["rating"] == 0.0
    with Path("spring.toml").open("a") as file:
        file.write('anchor = "mcts:8"\n')
    assert play("spring.toml") == 0
    assert "mcts:8 is 0" in capsys.readouterr().out
    assert play("spring.toml", "--anchor", "greedy") == 0
    assert "greedy is 0" in capsys.readouterr().out


@pytest.mark.parametrize(("error", "code"), [("KeyboardInterrupt", 130), ("InputError('no more')", 2)])
def test_a_tournament_that_is_not_finished_shows_its_table(tmp_path, capsys, error, code):
    program = tmp_path / "player.py"
    program.write_text(
        "import numpy as np\nfrom alphazero.errors import InputError\nasked = 0\n\n"
        "def last(planes):\n    global asked\n    asked += 1\n"
        f"    if asked > 8:\n        raise {error}\n    return np.tile(np.arange(9.0), (len(planes), 1))\n"
    )
    names = ["random", "greedy", f"python:{program}:last"]
    folder = tmp_path / "folder"
    assert run_pit(*names, "--game", "tictactoe", "--games", 200, "--folder", folder) == code
    said = capsys.readouterr().out
    assert said.startswith("Not finished; the table of the games so far:\ntictactoe: round-robin of 3 contestants, ")
    played = len((folder / "all_games.jsonl").read_text().splitlines())
    assert f"of 3 contestants, {played:,} games" in said and 200 <= played < 600


@pytest.mark.parametrize("first", ["--gauntlet", "--anchor=greedy", "--game=tictactoe"])
def test_options_may_stand_before_the_contestants(first, tmp_path, capsys):
    names = ["random", "greedy", "minimax:1"]
    assert run_pit(first, *names, "--game", "tictactoe", "--games", 2, "--folder", tmp_path / "t") == 0
    shown = capsys.readouterr().out
    assert f"{'gauntlet' if first == '--gauntlet' else 'round-robin'} of 3 contestants" in shown
    assert (" greedy is 0;" in shown) == ("greedy" in first)


def test_the_advice_after_a_tournament_can_be_followed(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = 'contestants = ["random", "greedy", "minimax:1"]\ngame = "tictactoe"\n'
    Path("a.toml").write_text(f"{text}games = 2\n")
    assert play("a.toml", "--folder", "t ü") == 0
    shown = capsys.readouterr().out
    advice = "To add games, raise games or add contestants in a.toml, and run the same command again."
    assert shown.splitlines()[-1] == advice and "open 't ü/report.html' in a browser" in shown
    Path("a.toml").write_text(text)
    assert play("a.toml", "--folder", "t ü", "--games", 4) == 0
    shown = capsys.readouterr().out
    assert "12 games" in shown and shown.splitlines()[-1] == advice
    assert run_pit("random", "greedy", "minimax:1", "--game", "tictactoe", "--games", 4, "--folder", "t ü") == 0
    assert "contestants and --folder 't ü', to add" in capsys.readouterr().out


WRONG = [
    ("random greedy random", "is there twice"),
    ("random greedy mcts:5 --sprt 0,20", "unknown option '--sprt'"),
    ("random greedy mcts:5 --anchor minimax:2", "--anchor names 'minimax:2', who takes no part"),
    ("random greedy human", "leave human out"),
    ("random greedy gredy", "did you mean 'greedy'?"),
    ("random greedy none.safetensors", "'none.safetensors' is no file or folder here"),
    ("random greedy --gauntlet", "a tournament takes three contestants or more, not 2"),
    ("random greedy mcts:5 --folder a.toml", "cannot make the folder a.toml"),
    ("none.toml", "there is no file none.toml"),
    ("a.toml --openings fair", "kind of openings 'fair'"),
]


@pytest.mark.parametrize(("line", "message"), WRONG, ids=[line for line, _ in WRONG])
def test_a_wrong_command_line_gets_one_sentence(line, message, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("a.toml").write_text(
        'contestants = ["random", "greedy", "mcts:4"]\ngames = 6\nopenings = "random"\nseed = 3\nadaptive = true\n'
    )
    assert play(*line.split()) == 2
    shown, errors = capsys.readouterr()
    assert shown == "" and errors.count("\n") == 1
    assert errors.startswith("error: ") and message in errors
    assert [path.name for path in tmp_path.iterdir()] == ["a.toml"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("games = 5", "contestants is missing"),
        ("contestants = 5", "contestants must be a list of 1,000 words at most"),
        ('contestants = ["a", 1]', "contestants[1] must be a"),
        ('contestants = ["random", "greedy"]', "a tournament takes three contestants or more, not 2"),
        ('contestants = ["a", "b", "c"]\nkind = "cup"', "kind must be one of round-robin, gauntlet, not 'cup'"),
        ('contestants = ["a", "b", "c"]\nkind = ["cup"]', "kind must be one of round-robin, gauntlet, not ['cup']"),
        (
            'contestants = ["a", "b", "c"]\nopenings = "fair"',
            "one of random, balanced, none, not 'fair'",
        ),
        ('contestants = ["a", "b", "c"]\nsed = 1', "did you mean 'seed'?"),
        ('contestants = ["a", "b", "c"]\nseed = true', "seed must be a whole number, not True"),
        ('contestants = ["a", "b", "c"]\ngames = -1', "--games must lie between"),
        (
            'contestants = ["a", "b", "c"]\ngame = "evil.py"',
            "does not come with alphazero: name its file or module by --game",
        ),
        ('contestants = ["a", "b", "python:evil.py:f"]', "give all contestants on the command line"),
        ('contestants = ["a", "b", "gtp:touch x"]', "give all contestants on the command line"),
        ("contestants = [", "is not valid TOML"),
        ('contestants = ["a", "b", "c"]\n' + "#" * (1 << 16), "a.toml is too large: 65,566 bytes, and at most 65,536 "),
        ('contestants = ["a", "b", "c"]\n' + "a." * 101 + "b = 1", "its keys are nested, and no setting is"),
    ],
)
def test_a_wrong_file_gets_one_sentence(text, message, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("a.toml").write_text(text)
    Path("evil.py").write_text("raise SystemExit('executed')")
    assert play("a.toml") == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1 and message in errors
