"""Classes written for alpha-zero-general, and what is said of those that do not fit."""

import random
import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import GameError, InputError
from alphazero.game import validator
from alphazero.game.validator import validate
from tests.catalogue.general_games import NoSymmetries
from tests.game.double_move_game import DoubleMove

FILE = str(Path(__file__).parent / "general_games.py")
GENERAL = (f"{FILE}:TicTacToeGame", f"{FILE}:TicTacToeGame(4)", f"{FILE}:MoveAgainGame")


@pytest.fixture(autouse=True)
def no_rules_are_called_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that is busy all rules are."""
    monkeypatch.setattr(validator, "SLOW", 0.0)


def test_a_class_plays_as_our_own_rules_do():
    ours, theirs = DoubleMove(), registry.load(f"{FILE}:MoveAgainGame").game
    rng = random.Random(2)
    again = 0
    for _ in range(50):
        one, other = ours.start(), theirs.start()
        while not one.terminal:
            assert other.legal_actions == one.legal_actions and other.to_play == one.to_play
            action = rng.choice(one.legal_actions)
            following = one.play(action)
            again += following.to_play == one.to_play
            one, other = following, other.play(action)
        assert other.terminal and other.outcome == one.outcome
    assert again > 25


def test_arguments_of_the_constructor_and_symmetries():
    loaded = registry.load(f"{FILE}:TicTacToeGame(4)")
    assert loaded.game.name == "TicTacToeGame(4)"
    cells, actions = loaded.game.symmetries
    assert cells.shape == (8, 16) and actions.shape == (8, 17)
    planes = loaded.game.position([1, 14]).observation
    assert planes.shape == (4, 4, 4)
    assert planes[1, 0, 1] == planes[2, 3, 2] == 1 and planes[1:3].sum() == 2 and planes[3].sum() == 16


@pytest.mark.parametrize("name", ["SymmetriesOfNothing", "SymmetriesThatFail"])
def test_it_is_said_why_symmetries_are_not_used(name: str, caplog):
    assert len(registry.load(f"{FILE}:{name}").game.symmetries[0]) == 1
    (said,) = caplog.messages
    assert said.startswith(f"{name}: the symmetries are not used, since getSymmetries fails"), said


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "NeverEnds",
            r"must end within `max_plies` = 256, and one goes on: .*: let getGameEnded call a longer game a draw",
        ),
        ("WrongLength", "getValidMoves must give 10 numbers"),
        ("NoSize", r"getActionSize must give a whole number above 0, not None \(.*general_games.py, line \d+\)"),
        ("NoPlayer", "getNextState must give a board and the next player"),
        ("Raises", r"getCanonicalForm fails: RuntimeError: three stones \(.*general_games.py, line \d+\)"),
        ("NoMoves", "must have a legal action"),
        ("OtherShapes", r"getCanonicalForm must give boards of one shape, \(3, 3\), not \(3, 1\)"),
        ("ForgetsTheBoard", r"getInitBoard must give an array of numbers, .* not None \(.*general_games.py"),
        ("Dice", "same of a position whenever they are asked, but `"),
        ("TurnsTheBoardAlone", "symmetry 1 must turn a game into a game that goes just like it"),
    ],
)
def test_a_faulty_class_is_caught_by_the_validator(name: str, words: str):
    with pytest.raises(InputError, match=words):
        validate(registry.load(f"{FILE}:{name}").game, num_games=200)


def test_a_class_that_answers_for_player_1_whoever_is_asked_for_plays_on():
    """As that project's gobang, whose getGameEnded gives the colour of the winner."""
    game = registry.load(f"{FILE}:WinnersColour").game
    for actions, winner in (([0, 3, 1, 4, 2], 1), ([0, 3, 1, 4, 8, 5], -1)):
        assert game.position(actions).outcome == winner


def test_where_both_players_see_one_board_the_player_tells_whose_result_is_wanted():
    """As that project's tafl, whose getCanonicalForm leaves the board as it is and whose boards are objects."""
    game = registry.load(f"{FILE}:OneBoard").game
    for actions, winner in (([0, 3, 1, 4, 2], 1), ([0, 3, 1, 4, 8, 5], -1)):
        position = game.position(actions)
        assert position.outcome == winner
        assert (position.observation[-1] == (1 if position.to_play == 0 else -1)).all()
    assert validate(game, num_games=20).warnings == []


def test_a_board_that_is_no_array_is_refused_with_the_line_of_the_users_file():
    line = 1 + next(
        i for i, text in enumerate(Path(FILE).read_text().splitlines()) if "def getInitBoard(self):  # no array" in text
    )
    words = rf"getInitBoard must give an array of numbers, .* `__array__`.*general_games.py, line {line}\)"
    with pytest.raises(GameError, match=words):
        registry.load(f"{FILE}:NoArray")


@pytest.mark.parametrize(
    ("size", "shape"), [((1, 9), (4, 1, 9)), ([3, 3], (4, 3, 3)), (9, (4, 1, 9)), ((3, 3, 1), (4, 1, 9))]
)
def test_a_board_of_one_dimension_has_the_size_that_the_class_tells(size: object, shape: tuple[int, int, int]):
    game = registry.load(f"{FILE}:FlatBoard({size!r})").game
    assert game.observation_shape == shape and len(game.symmetries[0]) == 8
    assert game.position([0, 3, 1, 4, 2]).outcome == 1
    assert validate(game, num_games=10).warnings == []


def test_a_board_of_lists_stays_one():
    game = registry.load(f"{FILE}:ListBoard").game
    assert game.position([0, 3, 1, 4, 2]).outcome == 1 and isinstance(game.object_of(game.start().state).board, list)
    assert validate(game, num_games=10).num_games == 10


def test_the_methods_that_a_class_lacks_are_named(tmp_path: Path):
    with pytest.raises(GameError, match="NoSymmetries in .* is not a Game: NoSymmetries lacks getSymmetries$"):
        registry.load(f"{FILE}:NoSymmetries")
    text = Path(FILE).read_text().partition("\n\nclass MoveAgainGame")[0].replace("def stringRepr", "def text_repr")
    (tmp_path / "old.py").write_text(text)
    with pytest.raises(GameError, match="must hold one Game class, not 0: TicTacToeGame lacks stringRepresentation$"):
        registry.load(f"{tmp_path / 'old.py'}")
    for made in (NoSymmetries, NoSymmetries()):
        with pytest.raises(GameError, match=": NoSymmetries lacks getSymmetries$"):
            registry.of(made)


def test_a_start_that_is_drawn_by_lot_is_the_same_in_all_games_and_this_is_said(caplog: pytest.LogCaptureFixture):
    """As in that project's santorini."""
    boards = {registry.load(f"{FILE}:DrawsItsStart").game.start().observation.tobytes() for _ in range(5)}
    assert len(boards) == 1 and "draws the start by lot" in caplog.text
    before = np.random.get_state()[1].copy()
    registry.load(f"{FILE}:DrawsItsStart")
    assert (np.random.get_state()[1] == before).all(), "who asks for random numbers elsewhere must not notice"


@pytest.mark.parametrize(
    ("old", "new"),
    [("np.int", "write int"), ("np.bool8", "write np.bool_"), ("board.tostring()", "write tobytes()")],
)
def test_names_that_numpy_has_no_more_are_named_with_the_users_line(tmp_path: Path, old: str, new: str):
    text = Path(FILE).read_text().replace("return player * board", f"return player * board + 0 * len(str({old}))", 1)
    (tmp_path / "old.py").write_text(text)
    line = 1 + next(i for i, row in enumerate(text.splitlines()) if old in row)
    with pytest.raises(GameError, match=rf"any more: {re.escape(new)} \(.*old.py, line {line}\)"):
        registry.load(f"{tmp_path / 'old.py'}:TicTacToeGame")


def test_a_draw_that_is_a_loss_for_both_counts_as_a_draw_and_is_said(caplog: pytest.LogCaptureFixture):
    """As in that project's Othello."""
    position = registry.load(f"{FILE}:DrawIsALoss").game.position([0, 1, 2, 4, 3, 5, 7, 6, 8])
    assert position.terminal and position.outcome == 0
    assert "both players have lost" in caplog.text


def test_who_cannot_move_may_have_lost_for_the_mover_alone():
    """As in that project's Santorini: the other player is not asked."""
    game = registry.load(f"{FILE}:StuckHasLost").game
    position = game.position([0, 1, 2, 4, 3, 5, 7, 6, 8])
    assert position.terminal and position.outcome == (-1 if position.to_play == 0 else 1)


def test_who_cannot_move_has_lost_even_if_the_other_player_could_not_move_either(caplog: pytest.LogCaptureFixture):
    findings = validate(registry.load(f"{FILE}:Dominoes").game, num_games=30)
    assert findings.outcomes[0] == 0 and all(findings.last_mover_won) and "both players" not in caplog.text


def test_long_games_with_few_actions_are_not_cut_short():
    game = registry.load(f"{FILE}:Columns").game
    assert game.num_actions == 10 and game.max_plies >= 100
    validate(game, num_games=3)


def test_a_state_has_no_room_beyond_the_last_ply():
    game = registry.load(f"{FILE}:NeverEnds").game
    state = game.start().state.copy()
    for _ in range(game.max_plies):
        game.plain_rules.step(state, 0)
    with pytest.raises(GameError, match="must end within"):
        game.plain_rules.step(state, 0)


def test_a_class_with_a_board_of_its_own_is_asked_by_one_thread_at_a_time():
    game = registry.load(f"{FILE}:OwnBoard").game
    boards = []

    def play(action: int) -> None:
        for _ in range(300):
            after = game.after(game.begin(), action)
            boards.append((action, int(np.flatnonzero(after.board)[0])))

    threads = [threading.Thread(target=play, args=(action,)) for action in (0, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(boards) == 600 and all(action == cell for action, cell in boards)


def test_boards_of_planes_lie_either_way():
    first, last = (registry.load(f"{FILE}:Planes({first})").game for first in (True, False))
    assert first.observation_shape == last.observation_shape == (7, 4, 5)
    np.testing.assert_array_equal(first.position([7]).observation, last.position([7]).observation)


@pytest.mark.parametrize("name", ["TicTacToeGame(3", "TicTacToeGame(open('x'))", "Nothing"])
def test_wrong_classes_are_refused(name: str):
    with pytest.raises(InputError):
        registry.load(f"{FILE}:{name}").game.start()


LAYOUTS = {
    # files besides Game.py in the root: name -> text; and the one to load
    "imports of the root": {"theirs/TheirGame.py": "from Game import Game\n"},
    "relative imports": {"theirs/TheirGame.py": "from .Logic import SIZE\n", "theirs/Logic.py": "SIZE = 3\n"},
    "both": {
        "theirs/TheirGame.py": "import sys\nsys.path.append('..')\nfrom Game import Game\nfrom .Logic import SIZE\n",
        "theirs/Logic.py": "from utils import *\nSIZE = THREE\n",
        "utils.py": "THREE = 3\n",
    },
    "a package by its name": {
        "theirs/TheirGame.py": "from theirs.src.config import SIZE\n", "theirs/src/config.py": "SIZE = 3\n",
    },
}  # fmt: skip


@pytest.mark.parametrize("with_init", [False, True], ids=["folder", "package"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_classes_are_found_as_they_lie_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str, with_init: bool
):
    """That project's folders import from its root, some by relative imports, and not all of them are packages."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    files = {"Game.py": "class Game:\n    pass\n", **LAYOUTS[layout]}
    files["theirs/TheirGame.py"] += Path(FILE).read_text()
    if with_init:
        files["theirs/__init__.py"] = ""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    try:
        assert registry.load(f"{tmp_path / 'theirs/TheirGame.py'}:TicTacToeGame").game.num_actions == 10
    finally:
        for name in set(sys.modules) - before:
            if (
                str(tmp_path)
                in f"{getattr(sys.modules[name], '__file__', '')}{getattr(sys.modules[name], '__path__', '')}"
            ):
                del sys.modules[name]
