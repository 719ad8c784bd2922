"""Games from elsewhere: OpenSpiel's, and classes of alpha-zero-general's kind, unmodified."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.catalogue.adapters import openspiel
from alphazero.commands import pit
from alphazero.commands import train as main_module
from alphazero.commands.shared import run_command
from alphazero.errors import GameError, LawBroken, UnknownName
from alphazero.game import validator
from alphazero.game.kernels import Kernels
from alphazero.game.python_game import PythonGame
from alphazero.game.validator import validate

FILE = str(Path(__file__).parent / "general_games.py")
OPENSPIEL = (
    "openspiel:tic_tac_toe",
    "openspiel:breakthrough(rows=5,columns=4)",
    "openspiel:dots_and_boxes(num_rows=2,num_cols=2)",
)
GENERAL = (f"{FILE}:TicTacToeGame", f"{FILE}:TicTacToeGame(4)", f"{FILE}:MoveAgainGame")


@pytest.fixture(autouse=True)
def has_openspiel(request: pytest.FixtureRequest) -> None:
    if "openspiel" in str(request.node.callspec.params if hasattr(request.node, "callspec") else ""):
        pytest.importorskip("pyspiel")


@pytest.fixture(autouse=True)
def no_rules_are_called_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that is busy all rules are."""
    monkeypatch.setattr(validator, "SLOW", 0.0)


@pytest.mark.parametrize("name", [*OPENSPIEL, *GENERAL], ids=lambda name: name.rpartition("/")[2])
def test_they_keep_all_laws(name: str):
    findings = validate(registry.load(name).game, num_games=25)
    assert findings.warnings == []
    assert findings.compiled_per_second is None


# --- states ---


def test_a_state_is_found_again_after_it_was_forgotten():
    game = registry.load(f"{FILE}:TicTacToeGame").game
    position = game.position([4, 0, 8, 2])
    drawn = str(position)
    game.forget()
    assert game.render(position.state, 0) == drawn
    assert game.actions_of(position.state) == [4, 0, 8, 2]


def test_remembered_positions_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("alphazero.game.python_game.REMEMBERED", 10)
    game = registry.load(f"{FILE}:MoveAgainGame").game
    validate(game, num_games=30)
    assert len(game._kept) == 10


class SharedSums(PythonGame):
    """Each takes one of eight numbers; the larger sum wins. `after` forgets to copy the sums."""

    name, num_actions, max_plies, observation_shape = "shared", 8, 8, (2, 1, 8)

    def __init__(self):
        self.prepare()

    def begin(self):
        return 0, [], [0, 0]

    def after(self, position, action):
        ply, taken, sums = position
        sums[ply % 2] += action + 1
        return ply + 1, [*taken, action], sums

    def allowed(self, position):
        return [action for action in range(8) if action not in position[1]]

    def over(self, position):
        return position[0] == 8

    def result(self, position):
        return float(np.sign(position[2][0] - position[2][1]))

    def player(self, position):
        return position[0] % 2

    def planes(self, position):
        planes = np.zeros((2, 1, 8), np.float32)
        for ply, action in enumerate(position[1]):
            planes[(ply + position[0]) % 2, 0, action] = 1
        return planes


def test_an_object_that_is_changed_once_it_is_made_is_caught():
    with pytest.raises(LawBroken, match="same of a position whenever they are asked, but `terminal_value` changed"):
        validate(SharedSums(), num_games=30)


# --- OpenSpiel ---


def test_actions_have_openspiels_names():
    position = registry.load("openspiel:breakthrough(rows=5,columns=4)").game.start()
    names = [position.format(action) for action in position.legal_actions]
    assert all(re.fullmatch(r"[a-d]\d[a-d]\d", name) for name in names) and len(set(names)) == len(names) == 10
    assert position.play(position.parse(names[3])).actions == (position.legal_actions[3],)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("openspiel:kuhn_poker", "nothing may be hidden"),
        ("openspiel:stones_and_gems", "free of chance, or declare it and tell the probabilities"),
        ("openspiel:phantom_ttt", "nothing may be hidden"),
        ("openspiel:matrix_rps", "must move in turn"),
        ("openspiel:pig(players=9)", "eight players"),
        ("openspiel:hex(sides=3)", "Available parameters are: board_size"),
        ("openspiel:hex(", r"closing bracket '\)'; its parameters are board_size, "),
        ("openspiel:misere", r"made from another game, .* as in misere\(game=tic_tac_toe\(\)\)$"),
        ("openspiel:restricted_nash_response(fixed_player=0,game=tic_tac_toe(),p=0.5)", "free of chance"),
        ("openspiel:start_at(game=tic_tac_toe())", "Missing parameter history; its parameters are game, history"),
        ("openspiel:quoridor(players=3)", "another player"),
        ("openspiel:efg_game", "must be zero-sum"),
        ("openspiel:nfg_game", "must move in turn"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(name: str, words: str):
    with pytest.raises(GameError, match=words) as caught:
        registry.load(name)
    assert "\n" not in str(caught.value)


def test_a_game_made_from_another_plays():
    game = registry.load("openspiel:misere(game=tic_tac_toe())").game
    assert game.position([0, 3, 1, 4, 2]).outcome == -1, "who has three in a row loses"


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("gomoku", (4, 15, 15)),
        ("gomoku(size=9)", (4, 9, 9)),
        ("gomoku(size=5,dims=3)", (16, 5, 5)),
        ("breakthrough", (4, 8, 8)),
    ],
)
def test_observations_are_folded_into_the_board(name: str, shape: tuple[int, int, int]):
    game = registry.load(f"openspiel:{name}").game
    assert game.observation_shape == shape
    tensor = game.begin().observation_tensor(0)
    assert game.start().observation[:-1].ravel().tolist() == tensor


def test_a_stone_lies_on_its_square_of_the_folded_board():
    position = registry.load("openspiel:gomoku").game.position([15 * 3 + 7])
    stones = [plane for plane in position.observation[:-1] if plane.sum() == 1]
    assert len(stones) == 1 and stones[0][3, 7] == 1


def test_what_openspiel_games_lack_is_said_once(caplog: pytest.LogCaptureFixture):
    pytest.importorskip("pyspiel")
    openspiel._say.cache_clear()
    caplog.set_level("INFO")
    for _ in range(2):
        registry.load("openspiel:mancala")
    assert caplog.text.count("is no board") == caplog.text.count("longer than 512 plies end there as draws") == 1


def test_a_game_that_is_cut_counts_as_a_draw(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(openspiel, "MOST_PLIES", 3)
    position = registry.load("openspiel:tic_tac_toe").game.position([0, 1, 2])
    assert position.terminal and position.outcome == 0


def test_an_unknown_game_is_answered_with_those_that_can_be_played():
    with pytest.raises(UnknownName, match=r"\(allowed: .*connect_four, .*tic_tac_toe, ") as caught:
        registry.load("openspiel:nosuch")
    assert "blackjack" not in str(caught.value) and "kuhn_poker" not in str(caught.value), "hidden cards"


def test_the_network_sees_who_moves_in_openspiel_games():
    position = registry.load("openspiel:breakthrough(rows=5,columns=4)").game.start()
    after = position.play(position.legal_actions[0])
    assert (position.observation[-1] == 0).all() and (after.observation[-1] == 1).all()


# --- the whole loop ---

QUICKLY = [
    "--generations", "2", "--net.blocks", "1", "--net.channels", "8", "--self-play.games-per-generation", "8",
    "--self-play.num-slots", "4", "--search.num-simulations", "4", "--gate.games", "4", "--evaluation.games", "4",
    "--threads", "2",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", [OPENSPIEL[1], GENERAL[2]], ids=["openspiel", "general"])
def test_they_train_resume_and_play(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_command(main_module.main, ["--game", name, *QUICKLY]) == 0, capsys.readouterr()
    (run,) = (tmp_path / "runs").iterdir()
    assert all(letter.isalnum() or letter in "_.-" for letter in run.name)
    assert run_command(main_module.main, ["--game", name, "--resume", "--generations", "3"]) == 0
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 3
    result = tmp_path / "result.json"
    argv = [f"{run}@simulations=4", "greedy", "--game", name, "--games", "4", "--json", str(result)]
    assert run_command(pit.main, argv) == 0, capsys.readouterr()
    assert json.loads(result.read_text())


def test_a_python_game_is_not_handed_to_numba(caplog: pytest.LogCaptureFixture):
    kernels = Kernels(registry.load(f"{FILE}:MoveAgainGame").game)
    kernels.describe_all(kernels.start_states(3))
    assert not kernels.describe.is_compiled and caplog.text == ""
