"""The way to a game of one's own: the written skeleton and the tutorial do what they say."""

import subprocess
import sys
from pathlib import Path

import pytest

from alphazero.catalogue import registry
from alphazero.commands import pit, publish, serve
from alphazero.commands import train as main_module
from alphazero.commands.rules import new
from alphazero.commands.shared import run_command

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL, BETTER = (
    (ROOT / "docs" / "guides" / name).read_text(encoding="utf-8") for name in ("writing_rules.md", "a_better_game.md")
)


QUICKLY = [
    "--generations", "1", "--net.blocks", "1", "--net.channels", "8", "--self-play.games-per-generation", "8",
    "--search.num-simulations", "4", "--gate.games", "4", "--evaluation.games", "2",
]  # fmt: skip
MAINS = {"main.py": main_module.main, "pit.py": pit.main}


def new_game(*argv: object) -> int:
    return run_command(new.main, [str(word) for word in argv])


@pytest.mark.parametrize(
    ("flags", "words"),
    [([], "draw"), (["--dice"], "players alternate"), (["--solo"], "a game for one"), (["--players", "3"], "player 3")],
    ids=["board", "dice", "solo", "players"],
)
def test_a_new_game_is_short_passes_its_test_and_keeps_all_laws(
    flags: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert new_game("my_game", "--folder", tmp_path, *flags) == 0
    said = capsys.readouterr().out
    assert "alphazero check" in said and "main.py" in said
    text = (tmp_path / "my_game.py").read_text()
    assert len(text.splitlines()) <= 80 and text.startswith('"""My game: ') and max(map(len, text.splitlines())) <= 120
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_game.py"]
    command += ["-k", "not laws"] if flags else []  # which `check` checks below
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0 and f"{1 if flags else 2} passed" in result.stdout, result.stdout
    assert run_command(new.check, [str(tmp_path / "my_game.py")]) == 0
    said = capsys.readouterr().out
    assert "keeps all laws" in said and "warning" not in said and "compiled" in said and words in said


@pytest.mark.slow
@pytest.mark.parametrize("flag", ["--dice", "--solo"])
def test_a_new_game_with_a_die_is_learned(flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert new_game("thrown", "--folder", tmp_path, flag) == 0
    argv = ["--game", str(tmp_path / "thrown.py"), "--run", str(tmp_path / "run"), *QUICKLY]
    assert run_command(main_module.main, argv) == 0, capsys.readouterr()
    assert "generation 1/1" in capsys.readouterr().err


def test_a_file_that_is_there_stays_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "test_shogi.py").write_text("mine")
    assert new_game("shogi", "--folder", tmp_path) == 2
    assert "test_shogi.py is there already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["test_shogi.py"]
    assert (tmp_path / "test_shogi.py").read_text() == "mine"


@pytest.mark.parametrize("name", ["shogi.py", "test_shogi.py"])
def test_a_link_is_not_followed(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / name).symlink_to(tmp_path / "elsewhere")  # which is not there
    assert new_game("shogi", "--folder", tmp_path / "folder") == 2
    assert f"{name} is there already, and nothing was written" in capsys.readouterr().err
    assert not (tmp_path / "elsewhere").exists() and len(list((tmp_path / "folder").iterdir())) == 1


@pytest.mark.parametrize(
    "argv",
    [
        ["My-Game"],
        ["class"],
        ["none"],
        ["numpy"],
        ["othello6"],
        ["../x"],
        [""],
        [],
        ["x", "--folder", "no/such"],
        ["x", "--dice", "--solo"],
        ["x", "--dice", "--players", "3"],
        ["x", "--players", "9"],
    ],
)
def test_wrong_names_get_one_sentence(argv: list[str], tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert new_game(*argv) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_tutorial_from_nothing_to_a_trained_net(tmp_path: Path, monkeypatch, capsys):
    """Its game, then every command that it names, in order; training is cut short."""
    monkeypatch.chdir(tmp_path)
    blocks = [part.split("\n", 1) for part in TUTORIAL.split("```")[1::2]]  # language, text
    game, *_ = (text for language, text in blocks if language == "python")
    Path("domineering.py").write_text(game)
    ran = []
    for line in "".join(text for language, text in blocks if not language).splitlines():
        words = line.split()
        assert words[0] in ("python", "alphazero")
        command, argv = words[1], words[2:]
        if "human" in argv:
            monkeypatch.setattr("builtins.input", lambda prompt: "quit")
        if command == "main.py":
            argv = [*argv[:2], *QUICKLY]
        elif command == "pit.py":
            argv = ["runs/domineering-1@simulations=4" if word == "runs/domineering-1" else word for word in argv]
            argv += ["--games", "2"] * ("human" not in argv)
        elif command == "serve":
            pytest.importorskip("fastapi")
            monkeypatch.setattr(
                "alphazero.web.server.PageServer.run", lambda server: (ran.append(server.address), server.close())
            )
            argv = [*argv, "--port", "0", "--no-browser"]
        mains = {"check": new.check, "main.py": main_module.main, "pit.py": pit.main}
        run = (mains | {"serve": serve.main, "publish": publish.main})[command]
        assert run_command(run, argv) == 0, capsys.readouterr()
        ran.append(command)
        said = capsys.readouterr()
        if command == "check":
            assert "keeps all laws" in said.out and "warning" not in said.out
    address, html = ran.pop(4), Path("domineering.html").read_text(encoding="utf-8")
    assert ran == ["check", "main.py", "pit.py", "pit.py", "serve", "publish"]
    assert address.startswith("http://127.0.0.1:") and "domineering" in html


def example_with(words: str) -> str:
    """The one example of the guide that holds these words."""
    examples = [part.removeprefix("python\n") for part in BETTER.split("```") if part.startswith("python\n")]
    (found,) = (example for example in examples if words in example)
    return found


def test_the_tutorials_mirror_image_is_a_symmetry(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """What the tutorial shows of symmetries, put into the game that `new_game` writes."""
    mirrored = example_with("def symmetries")
    assert new_game("mirrored", "--folder", tmp_path) == 0
    path = tmp_path / "mirrored.py"
    path.write_text(path.read_text() + "\n" + mirrored)
    assert run_command(new.check, [str(path), "--games", "20"]) == 0
    assert "symmetries    2" in capsys.readouterr().out
    path.write_text(path.read_text().replace("return images, images", "return images, images[[0, 0]]"))
    assert run_command(new.check, [str(path), "--games", "20"]) == 2
    assert "symmetry 1 must turn a game into a game" in capsys.readouterr().err


def test_the_tutorials_presets_are_those_of_the_game(tmp_path: Path):
    """What the tutorial shows of presets, put into the game that `new_game` writes."""
    presets = example_with("def presets")
    assert new_game("timed", "--folder", tmp_path) == 0
    path = tmp_path / "timed.py"
    path.write_text(path.read_text() + "\n" + presets)
    found = registry.load(str(path)).presets()
    assert found["quick"].minutes == 5.0 and set(found) >= {"quick", "standard"}


@pytest.mark.slow
def test_the_new_games_board_can_be_made_larger(tmp_path: Path):
    assert new_game("my_game", "--folder", tmp_path) == 0
    path = tmp_path / "my_game.py"
    path.write_text(path.read_text().replace("SIZE = 4", "SIZE = 8"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_game.py"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0 and "2 passed" in result.stdout, result.stdout


def test_a_second_try_with_the_same_name_says_that_it_is_there(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    assert new_game("my_game") == 0
    assert new_game("my_game") == 2
    assert "my_game.py is there already" in capsys.readouterr().err
