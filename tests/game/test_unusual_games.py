"""Games with unusual but allowed features, from their check to matches and training; and mistakes in rules."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import GameError
from alphazero.game import Game, Rules
from alphazero.game.kernels import Kernels
from alphazero.game.record import read_records
from alphazero.game.validator import validate
from alphazero.matches.openings import MOST_USELESS, choose_openings
from alphazero.players.contestants import make_player
from alphazero.players.human import HumanLeft, HumanPlayer
from alphazero.training.run import example_config, train
from tests.game.four_cells import ONE, RULES, FourCells, init

FOUR = np.uint64(4)
TABLE = [-1.0, -1.0]


def human(game: Game) -> HumanPlayer:
    player = make_player("human", registry.of(game), seed=1, threads=1)
    assert isinstance(player, HumanPlayer)
    return player


@pytest.fixture
def types(monkeypatch):
    """Sets the lines that the human types."""

    def set_lines(*lines: str) -> None:
        left = iter(lines)
        monkeypatch.setattr("builtins.input", lambda prompt: next(left))

    return set_lines


# --- at the terminal -------------------------------------------------------------------------------------------------


class SecondBegins(FourCells):
    """The second player makes the first move; `to_play` counts the cells."""

    name = "second_begins"
    rules = replace(RULES, to_play=lambda state: 1 - int(state[0] | state[1]).bit_count() % 2)


def test_a_saved_game_has_the_first_player_first_where_the_second_one_begins(types, tmp_path: Path):
    game = SecondBegins()
    player = human(game)
    assert game.start().to_play == 1 and game.position("0").to_play == 0
    types(f"save {tmp_path / 'a'}", "0")
    player.choose(game.start(), 0)
    types(f"save {tmp_path / 'b'}", "1")
    player.choose(game.position("0"), 0)
    assert read_records(tmp_path / "a")[0].contestants == ("?", "human")
    assert read_records(tmp_path / "b")[0].contestants == ("human", "?")


def test_moves_that_are_called_like_commands_are_moves(types):
    class Commands(FourCells):
        name = "commands"
        words = ("undo", "help", "quit", "pass")

        def format_action(self, action, state):
            return self.words[action]

        def parse_action(self, text, state):
            return self.words.index(text)

    types("quit")
    assert human(Commands()).choose(Commands().start(), 0) == 2
    types("quit")
    with pytest.raises(HumanLeft):
        human(Commands()).choose(Commands().position("quit"), 0)


@pytest.mark.parametrize("drawing", ["", "  \n "])
def test_a_game_that_draws_nothing_at_its_start_can_be_played(types, drawing: str):
    class Blank(FourCells):
        name = "blank"

        def render(self, state, to_play):
            return drawing if not state.any() else "something"

    types("3")
    assert human(Blank()).choose(Blank().start(), 0) == 3


def test_the_default_drawing_is_shown_without_marks(types, capsys):
    types("1")
    human(FourCells()).choose(FourCells().position("0"), 0)
    assert f"\n {FourCells().position('0')}\n" in capsys.readouterr().out


# --- openings --------------------------------------------------------------------------------------------------------


class Ring(Game):
    """Four positions on a ring; a draw after 600 plies."""

    name = "ring"
    num_actions, state_words, max_plies = 2, 2, 600
    observation_shape = (1, 1, 4)

    @staticmethod
    def _step(state, action):
        state[0] = (state[0] + np.uint64(1 + 2 * action)) % FOUR
        state[1] += ONE

    @staticmethod
    def _legal(state, legal_mask):
        legal_mask[:] = True

    @staticmethod
    def _observe(state, planes):
        planes[0, 0, state[0]] = 1.0

    rules = Rules(init, _legal, _step, lambda state: state[1] >= np.uint64(600), lambda state: 0.0, _observe)


def test_openings_are_not_looked_for_in_ever_longer_games(monkeypatch):
    """At each length there are two positions; each length more took longer, and there are 600."""
    tried = []

    class Counted(choose_openings.__globals__["Openings"]):  # type: ignore[misc, name-defined]
        def __init__(self, game, plies, *rest):
            tried.append(plies)
            super().__init__(game, plies, *rest)

    monkeypatch.setitem(choose_openings.__globals__, "Openings", Counted)
    found = choose_openings(Ring(), 20, seed=0)
    assert len(found.first(20)) == 2 and len(tried) <= MOST_USELESS + 4


def test_a_game_with_one_ply_begins_at_its_start():
    class OnePly(FourCells):
        name = "one_ply"
        max_plies = 4
        rules = replace(RULES, is_terminal=lambda state: bool((state[0] | state[1]) > 0))

    found = choose_openings(OnePly(), 5, seed=0)
    assert found.plies == 0 and len(found.first(5)) == 1


# --- rules that are not compiled -------------------------------------------------------------------------------------


def test_actions_are_pythons_numbers_where_rules_are_not_compiled():
    """numpy's whole numbers with a sign shift no uint64; compiled, they do, and so does what `check` gives."""

    def shifts(state, action):
        own = state[0] | (ONE << action)
        state[0], state[1] = state[1], own

    def looks_into_a_list(state):
        return TABLE[int(state[0]) % 2]

    class Shifts(FourCells):
        name = "shifts"
        rules = replace(RULES, step=shifts, terminal_value=looks_into_a_list)

    validate(Shifts(), num_games=5)
    kernels = Kernels(Shifts())
    states, to_play = kernels.start_states(2), np.zeros(2, np.int8)
    kernels.play(states, to_play, np.array([3, 0]))
    assert states[:, 1].tolist() == [8, 1] and to_play.tolist() == [1, 1]
    nodes = np.zeros((2, 2), np.uint64)
    masks, leaves = np.zeros((1, 4), bool), np.zeros((1, 2), np.uint64)
    count = kernels.advance(
        nodes, np.zeros(2, np.int8), np.array([0]), np.array([2]), np.array([1]), np.zeros(1, bool),
        np.zeros(1, np.float32), leaves, masks,
    )  # fmt: skip
    assert count == 1 and leaves.tolist() == [[0, 4]] and masks.tolist() == [[True, True, False, True]]


# --- mistakes --------------------------------------------------------------------------------------------------------


def test_a_training_refuses_mistakes_in_the_class(tmp_path: Path):
    loaded = registry.of(FourCells())
    wrong = replace(loaded, game=type("Wrong", (FourCells,), {"num_actions": 4.0})())
    with pytest.raises(GameError, match="`num_actions` must be a whole number"):
        train(wrong, example_config(loaded), tmp_path / "run", threads=1)
    assert not (tmp_path / "run").exists()


def test_a_notation_of_legal_actions_alone_leaves_the_board_without_coordinates():
    class Handicap(FourCells):
        """Two cells are taken at the start."""

        name = "handicap"

        def format_action(self, action, state):
            free = [cell for cell in range(4) if not int(state[0] | state[1]) >> cell & 1]
            return f"m{free.index(action)}"

        def parse_action(self, text, state):
            return [cell for cell in range(4) if not int(state[0] | state[1]) >> cell & 1][int(text[1:])]

        @property
        def rules(self):  # type: ignore[override]
            def begin(state):
                state[0], state[1] = np.uint64(1), np.uint64(2)

            return replace(RULES, init=begin)

    validate(Handicap(), num_games=5)
    assert [cell.name for cell in Handicap().board.cells][:2] == ["row 1, column 1", "row 1, column 2"]
    assert Handicap().start().svg().startswith("<svg")
