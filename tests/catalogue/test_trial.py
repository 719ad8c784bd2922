"""The trial of rules that nobody has checked: what begins with a game refuses broken laws first, and tries once."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import alphazero as az
from alphazero.catalogue import registry
from alphazero.commands import pit, publish, serve, train
from alphazero.commands.rules import benchmark
from alphazero.commands.shared import run_command
from alphazero.errors import LawBroken
from alphazero.game import Game
from alphazero.game.kernels import Kernel
from alphazero.invocation import command_line
from games.tictactoe.game import TicTacToe
from tests.api.test_wrong_arguments import SMALL, uniform
from tests.catalogue.test_foreign_games import FILE as GENERAL_GAMES

FAULTS = {
    "three players": ("", "", "return int(state[1]) % 3", "must give the number of a player, 0 to 1"),
    "a puzzle": ("", "", "return 0", "one of them never moved: `num_players` is 2"),
    "chance": (
        "", "if np.random.random() < 0.2: action = (action + 1) % 9", "return int(state[1]) % 2",
        "`step` must do the same each time: what dice show comes by `chance` and `settle`",
    ),
    "hidden state": (
        "or square == LAST[0]", "LAST[0] = action // 2", "return int(state[1]) % 2",
        "the rules must say the same of a position whenever they are asked, but `legal` changed",
    ),
}  # fmt: skip
"""What a fault adds to `legal` and to `step`, the player to move, and the law."""
RULES = """
import numpy as np
from alphazero.game import Game, Rules

LAST = [-1]

def init(state):
    state[:] = 0

def legal(state, legal_mask):
    for square in range(9):
        legal_mask[square] = not (int(state[0]) >> square & 1) LEGAL

def step(state, action):
    STEP
    state[0] |= np.uint64(1) << np.uint64(action)
    state[1] += np.uint64(1)

def is_terminal(state):
    return state[1] == np.uint64(7)

def terminal_value(state):
    return 0.0

def observe(state, planes):
    for square in range(9):
        planes[0, square // 3, square % 3] = int(state[0]) >> square & 1

def to_play(state):
    TO_PLAY

class MyGame(Game):
    name = "broken"
    num_actions, state_words, max_plies, observation_shape = 9, 2, 9, (1, 3, 3)
    rules = Rules(init, legal, step, is_terminal, terminal_value, observe, to_play=to_play)
"""


def write(path: Path, legal: str, step: str, to_play: str) -> str:
    path.write_text(RULES.replace("LEGAL", legal).replace("STEP", step or "pass").replace("TO_PLAY", to_play))
    return str(path)


@pytest.fixture(autouse=True)
def there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a machine that is busy."""
    monkeypatch.setattr(registry, "TRIAL_SECONDS", 60.0)


@pytest.fixture
def broken(tmp_path: Path) -> str:
    return write(tmp_path / "three.py", *FAULTS["three players"][:3])


@pytest.fixture
def empty_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder."""
    folder = tmp_path_factory.mktemp("empty")
    monkeypatch.chdir(folder)
    return folder


def with_rules(**changes: Callable[..., Any]) -> Game:
    class Changed(TicTacToe):
        name = "changed"
        rules = replace(TicTacToe.rules, **changes)

    return Changed()


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[Game]:
    """The games whose rules are played, one item for each random game; no game is known as tried."""
    played: list[Game] = []

    class Counted(registry.Check):
        def random_game(self, rng):
            played.append(self.game)
            yield from super().random_game(rng)

    monkeypatch.setattr(registry, "Check", Counted)
    monkeypatch.setattr(registry, "_tried_rules", set())
    return played


@pytest.mark.parametrize(("legal", "step", "to_play", "law"), FAULTS.values(), ids=FAULTS)
def test_a_broken_law_is_said_before_there_is_a_run(legal, step, to_play, law, tmp_path, capsys, empty_folder):
    file = write(tmp_path / "mine.py", legal, step, to_play)
    assert run_command(train.main, ["--game", file, "--minutes", "1", "--run", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and said.endswith(f": {command_line('check', file)}\n"), said
    for begin in (lambda: az.train(file, **SMALL), lambda: az.train(registry.load(file).game, **SMALL)):
        with pytest.raises(LawBroken, match=f"^broken: .*{law}"):
            begin()
    assert not (tmp_path / "run").exists() and not list(empty_folder.iterdir())


COMMANDS = {
    "pit": (pit.main, ["random", "greedy"]),
    "a tournament": (pit.main, ["random", "greedy", "minimax:2"]),
    "serve": (serve.main, ["random", "--port", "0"]),
    "gtp": (serve.gtp, ["random"]),
    "export": (publish.export, ["best", "net.onnx"]),
    "publish": (publish.main, ["best", "page.html"]),
    "benchmark": (benchmark.main, ["random"]),
}


@pytest.mark.parametrize(("main", "argv"), COMMANDS.values(), ids=COMMANDS)
def test_every_command_that_begins_with_a_game_tries_it(main, argv, broken, capsys, empty_folder):
    assert run_command(main, [*argv, "--game", broken]) == 2
    shown, said = capsys.readouterr()
    assert shown == "" and said.count("\n") == 1 and "`num_players` is 2; it gave 2; to see where, " in said
    assert not list(empty_folder.iterdir())


LIBRARY: dict[str, Callable[[Game], Any]] = {
    "match": lambda game: az.match("random", "random", game, games=2),
    "match of a class": lambda game: az.match("random", "random", type(game), games=2),
    "search": lambda game: az.search(game.start(), uniform),
    "evaluate": lambda game: az.evaluate(game.start(), registry.of(game).make_net(game, {})),
    "page": lambda game: az.play_web("random", game, port=0, wait=False),
}


@pytest.mark.parametrize("begin", LIBRARY.values(), ids=LIBRARY)
def test_every_function_that_begins_with_a_game_tries_it(begin, broken, empty_folder):
    with pytest.raises(
        LawBroken, match=r"`num_players` is 2; it gave 2; to see where, and for all laws: az.check_game\(game\)$"
    ):
        begin(az.load_game(broken))


@pytest.mark.parametrize("name", ["tictactoe", "openspiel:tic_tac_toe"])
def test_games_that_are_known_cost_nothing(name: str, trials, monkeypatch):
    if name.startswith("openspiel"):
        pytest.importorskip("pyspiel")
    monkeypatch.setattr(registry, "_try", lambda game: pytest.fail("it was tried"))
    assert len(az.match("random", "random", name, games=2).games) == 2 and trials == []


def test_rules_are_tried_once_in_a_process(tmp_path: Path, trials):
    file = write(tmp_path / "mine.py", "", "", "return int(state[1]) % 2")
    for _ in range(2):
        az.match("random", "random", file, games=2)
    az.match("random", "random", registry.load(file).game, games=2)
    assert len(trials) == registry.TRIAL_GAMES
    write(tmp_path / "mine.py", "", "", "return int(state[1] + state[1] + state[1]) % 2")
    az.match("random", "random", file, games=2)
    assert len(trials) == 2 * registry.TRIAL_GAMES


def test_an_object_of_another_framework_is_tried_once(trials):
    game = az.load_game(f"{GENERAL_GAMES}:TicTacToeGame")
    for _ in range(2):
        registry.try_rules(game)
    assert len(trials) == registry.TRIAL_GAMES
    registry.try_rules(az.load_game(f"{GENERAL_GAMES}:TicTacToeGame"))
    assert len(trials) == 2 * registry.TRIAL_GAMES


def test_nothing_is_compiled(trials, monkeypatch):
    monkeypatch.setattr(Kernel, "_compile", lambda *arguments: pytest.fail("it was compiled"))
    registry.try_rules(with_rules(heuristic=lambda state: 0.25))
    assert len(trials) == registry.TRIAL_GAMES


def test_a_game_for_which_there_is_no_time_is_cut_short(trials, monkeypatch):
    """A search needs no end, and whether a long game has one is for `validate` to say."""
    monkeypatch.setattr(registry, "TRIAL_SECONDS", 0.0)

    class Long(Game):
        name = "long"
        num_actions, state_words, max_plies, observation_shape = 1, 1, 1 << 30, (1, 1, 1)
        rules = az.Rules(
            init=lambda state: state.fill(0),
            legal=lambda state, legal_mask: legal_mask.fill(True),
            step=lambda state, action: np.add(state, np.uint64(1), out=state) is None or None,
            is_terminal=lambda state: False,
            terminal_value=lambda state: 0.0,
            observe=lambda state, planes: None,
        )

    registry.try_rules(Long())
    assert len(trials) <= 1


def test_a_third_player_is_found_however_slow_the_rules_are(broken, trials, monkeypatch):
    monkeypatch.setattr(registry, "TRIAL_SECONDS", 0.0)
    with pytest.raises(LawBroken, match="`to_play` must give the number of a player"):
        registry.try_rules(az.load_game(broken))


def test_a_wrong_symmetry_is_refused(trials):
    def transform(state, symmetry):
        TicTacToe.rules.transform(state, (symmetry + 1) % 8 if symmetry else 0)

    with pytest.raises(LawBroken, match="changed: `transform` by symmetry 1 must permute what"):
        registry.try_rules(with_rules(transform=transform))


class Unusual(TicTacToe):
    """Cannot be drawn, and whoever has three in a row has lost: that is no broken law."""

    name = "unusual"
    rules = replace(TicTacToe.rules, terminal_value=lambda state: -TicTacToe().plain_rules.terminal_value(state))

    def render(self, state, to_play):
        raise NotImplementedError

    def format_action(self, action, state):
        return "a word and another"


def test_a_game_that_is_only_unusual_is_played(trials):
    assert len(az.match("random", "random", Unusual, games=2).games) == 2
    assert len(trials) == registry.TRIAL_GAMES
