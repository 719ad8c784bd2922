"""Our rules in step with OpenSpiel's, which were written by others; and the games of OpenSpiel's that are refused."""

import random
import re
from typing import Any, NamedTuple

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.catalogue.adapters import openspiel
from alphazero.errors import GameError, InputError
from alphazero.game import Position
from alphazero.game.kernels import Kernels
from alphazero.game.validator import validate
from alphazero.training.selfplay.shown_games import actions_of
from tests.catalogue.openspiel_games import GAMES, Theirs
from tests.game.perft import count_games

each_game = pytest.mark.parametrize("name", GAMES)


def squares(text: str, marks: str) -> str:
    """The cells of a drawn board in reading order, each `.`, `x` or `o`; all else is dropped, also words."""
    cells = re.findall(rf"(?<![A-Za-z])[{re.escape(marks)}](?![A-Za-z])" if " " in text else f"[{marks}]", text.lower())
    return "".join(cells).translate(str.maketrans(marks, ".xo"))


def play_in_step(name: str, num_games: int) -> None:
    """Random games side by side, ours as one batch of compiled kernels: every ply is compared, and the boards at the
    end."""
    pyspiel = pytest.importorskip("pyspiel")
    rng, theirs, kernels = random.Random(0), GAMES[name], Kernels(registry.load(name).game)
    game, their_game = kernels.game, pyspiel.load_game(theirs.name)
    states, to_play = kernels.start_states(num_games), np.zeros(num_games, np.int8)
    kernels.find_movers(states, to_play)
    their_states = [their_game.new_initial_state() for _ in range(num_games)]
    outcomes = set()
    while their_states:
        masks, terminal, values = kernels.describe_all(states)
        actions = np.full(len(states), -1)
        for i, state in enumerate(their_states):
            position = Position(game, states[i].copy(), int(to_play[i]), ())
            where = f"after {state.history()}"
            assert terminal[i] == state.is_terminal(), where
            if terminal[i]:
                outcome = values[i] * (1 if to_play[i] == 0 else -1)
                assert [outcome, -outcome] == state.returns(), where
                check_boards(position, state, theirs)
                outcomes.add(int(outcome))
                continue
            ours = {theirs.action(position, action, state): action for action in np.flatnonzero(masks[i]).tolist()}
            assert sorted(ours) == state.legal_actions(), where
            assert to_play[i] == state.current_player(), where
            assert state.returns() == [0, 0], where
            chosen = rng.choice(sorted(ours))
            actions[i] = ours[chosen]
            state.apply_action(chosen)
        going_on = actions >= 0
        states, to_play, actions = states[going_on], to_play[going_on], actions[going_on]
        their_states = [state for state, goes_on in zip(their_states, going_on, strict=True) if goes_on]
        kernels.play(states, to_play, actions)
    assert outcomes >= {1, -1}
    assert theirs.draws in (0 in outcomes, None)


def check_boards(position: Position, state: Any, theirs: Theirs) -> None:
    """Both draw the same board, where they draw it alike."""
    if theirs.marks:
        _, height, width = position.game.observation_shape
        drawn = squares(str(state), theirs.marks)[-height * width :]  # some say who has won before the board
        assert len(drawn) == height * width and drawn in squares(str(position), ".xo"), f"after {state.history()}"


@each_game
def test_random_games_in_step(name: str):
    play_in_step(name, 300 if name in ("gomoku15", "breakthrough") else 1000)


@pytest.mark.slow
@each_game
def test_many_random_games_in_step(name: str):
    play_in_step(name, 10_000)


PERFT = {
    "connect4": {5: 16807, 10: 268031646},
    "tictactoe": {5: 15120, 9: 127872},
    "othello": {6: 8200, 11: 212258216},
    "gomoku": {3: 511920, 4: 39929760},
    "gomoku15": {2: 50400, 3: 11239200},
    "hex": {3: 110544, 5: 228826080},
    "hex_swap": {3: 112896, 5: 233911104},
    "breakthrough": {4: 71478, 7: 381006806},
    "dots_and_boxes": {4: 255024, 6: 96909120},
    "nim": {5: 113912, 11: 89568072},
}  # fmt: skip
"""How many sequences of so many plies there are, as OpenSpiel counts them: two depths of each game, one to about
10^8. A game that has ended has no more sequences; tables of Othello that are published often count it on."""
CASES = [
    pytest.param(name, depth, id=f"{name}-{depth}", marks=pytest.mark.slow if depth > min(depths) else ())
    for name, depths in PERFT.items()
    for depth in depths
]


@pytest.mark.parametrize(("name", "depth"), CASES)
def test_perft(name: str, depth: int):
    assert count_games(Kernels(registry.load(name).game), depth) == PERFT[name][depth]


@pytest.mark.parametrize(
    "text",
    [
        "hex(board_size=65537)", "hex(board_size=1000)", "hex(board_size=-2147483648)",
        "connect_four(rows=50000,columns=50000)", "oware(num_houses_per_player=1000000000)",
        "misere(game=hex(board_size=50000))", "misere(game=" * 1000 + "hex()" + ")" * 1000,
        "gomoku(size=92682,dims=2)", "misere(game=misere(game=gomoku(size=257,dims=4)))", "gomoku(size=2,dims=17)",
        "nim(pile_sizes=858993460;858993460;858993460;858993460;858993460)",
    ],
)  # fmt: skip
def test_a_game_too_large_to_begin_is_refused_before_it_takes_any_memory(text):
    """Sizes overflow in OpenSpiel: with 65,537 rows Hex says that it has 131,073 actions."""
    with pytest.raises(GameError, match=r"is too large|must lie between|has at most 200 characters") as caught:
        registry.load(f"openspiel:{text}")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("gomoku(size=-5)", "gomoku(size=-5) cannot be used here: size must lie between 0 and 1,000, not -5"),
        ("gomoku(size=5,dims=0)", "dims >= 1"),
        ("clobber(rows=5,columns=100)", "columns_ <= 26"),
        ("go(board_size=20)", "supports board size up to 19"),
        ("hex(num_rows=3", "cannot load 'hex(num_rows=3'"),
        ("start_at(history=4,game=tic_tac_toe())", "Wrong type for parameter history"),
        ("hex(num_rows=20,num_cols=7,plain_obs_tensor=true)", "plain_obs_tensor needs as many rows as columns"),
        ("hex(num_rows=2,num_cols=5,swap=true)", "swap needs as many rows as columns"),
        ("chess(chess960=true)", "chess(chess960=true) cannot be used here: it must be free of chance"),
        ("misere(game=crazyhouse(chess960=true))", "it must be free of chance"),
        ("clobber(rows=1,columns=12)", "bases[i] > 1"),
        ("go(komi=0)", "Wrong type for parameter komi"),
        ("go(komi= 0.5)", "without spaces: 7.5 or 7.0 for a number with a point"),
    ],
)
def test_parameters_that_cannot_be_get_one_sentence(text, sentence):
    pytest.importorskip("pyspiel")
    with pytest.raises(GameError, match=re.escape(sentence)) as caught:
        registry.load(f"openspiel:{text}").game.start()
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 700


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("misere(game=efg_game(filename=secret))", "efg_game cannot be used here: it must be zero-sum"),
        ("start_at(history=0,game=misere(game=efg_game(filename=secret)))", "efg_game cannot be used here"),
        ("zerosum(game=nfg_game(filename=secret))", "nfg_game cannot be used here"),
        ("misere(game=bargaining(instances_file=secret))", "bargaining cannot be used here"),
        ("misere(game=hexx())", "unknown OpenSpiel game 'hexx'; did you mean 'hex'?"),
    ],
)
def test_a_game_made_from_another_opens_no_file(text, reason, monkeypatch):
    """The names of games stand in runs and nets of strangers; a pipe as the file would never end."""
    pyspiel = pytest.importorskip("pyspiel")

    def refuse(name):
        raise AssertionError(f"{name} is loaded")

    monkeypatch.setattr(pyspiel, "load_game", refuse)
    with pytest.raises(InputError, match=re.escape(reason)) as caught:
        registry.load(f"openspiel:{text}")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500


def test_no_fitting_game_takes_the_name_of_a_file():
    """Those that a game may be made from; their text is positions, piles and ways to draw a board."""
    pyspiel = pytest.importorskip("pyspiel")
    texts = {
        (kind.short_name, name)
        for kind in pyspiel.registered_games()
        if not openspiel._misfit(kind)
        for name, value in kind.parameter_specification.items()
        if not isinstance(value, (int, float))
    }
    assert texts == {("antichess", "fen"), ("backgammon", "scoring_type"), ("hex", "string_rep"), ("nim", "pile_sizes")}


@pytest.mark.parametrize(
    "text",
    [
        "hex(num_rows=7,num_cols=7,plain_obs_tensor=true)", "gomoku(size=4,dims=3,connect=4)", "gomoku(dims=2)",
        "nim(pile_sizes=2000;3)", "go(board_size=5,komi=0.5)", "misere(game=gomoku(size=5))",
        "misere(game=misere(game=hex(board_size=4)))", "start_at(history=4;0,game=zerosum(game=tic_tac_toe()))",
    ],
)  # fmt: skip
def test_parameters_that_can_be_are_taken(text):
    pytest.importorskip("pyspiel")
    assert registry.load(f"openspiel:{text}").game.start().legal_actions


@pytest.mark.parametrize("name", ["pig(winscore=12)", "einstein_wurfelt_nicht", "catch", "2048"])
def test_games_with_dice_go_in_step_with_openspiel(name: str):
    """Every ply: who moves, the legal actions, the probabilities and names of outcomes, and the points."""
    pyspiel = pytest.importorskip("pyspiel")
    game, theirs, rng = registry.load(f"openspiel:{name}").game, pyspiel.load_game(name), random.Random(0)
    for _ in range(3):
        at, state, dice = game.start(), theirs.new_initial_state(), 0
        while not state.is_terminal():
            assert not at.terminal
            if state.is_chance_node():
                known = [(outcome, chance) for outcome, chance in state.chance_outcomes() if chance > 0]
                assert at.chances == tuple(chance for _, chance in known)
                choice, dice = rng.randrange(len(known)), dice + 1
                move = known[choice][0]
                assert at.format(choice) == "_".join(state.action_to_string(move).split())
            else:
                assert not at.chances and at.legal_actions == state.legal_actions()
                assert at.to_play == state.current_player()
                choice = move = rng.choice(at.legal_actions)
            at, state = at.play(choice), state.child(move)
        assert dice and at.terminal and at.actions == tuple(game.actions_of(at.state))
        sign = 1 if at.to_play == 0 else -1
        assert at.points * sign == state.returns()[0]
        assert game.num_players == theirs.num_players()
    assert name != "2048" or game.observation_shape == (2, 4, 4)


@pytest.mark.parametrize("name", ["catch", "pig(winscore=6,horizon=30)"])
def test_games_with_dice_keep_all_laws(name: str):
    pytest.importorskip("pyspiel")
    assert validate(registry.load(f"openspiel:{name}").game, 5).num_games == 5


def test_more_dice_in_a_row_than_random_games_had_are_refused(monkeypatch):
    """Trees and records would have no room for them."""
    pytest.importorskip("pyspiel")
    game = registry.load("openspiel:2048").game
    assert game.start().play(0).chances and game.dice_in_a_row == 4
    monkeypatch.setattr(game, "dice_in_a_row", 1)
    with pytest.raises(GameError, match="1 dice came one after another"):
        game.start().play(1).chances  # noqa: B018


def test_a_shown_game_with_dice_of_openspiel_is_read_from_its_states():
    pytest.importorskip("pyspiel")
    game = registry.load("openspiel:einstein_wurfelt_nicht").game
    at = game.position([7, 700, 3])
    assert len(at.start.chances) == 720 and not at.chances
    end = at.play(at.legal_actions[0]).play(2)
    states = np.array([at.state, end.state])
    assert actions_of(game, FinishedStates(states), 0) == end.actions
    assert actions_of(game, FinishedStates(np.array([at.state + np.uint64(1 << 40), end.state])), 0) is None


class FinishedStates(NamedTuple):
    """What is read of a finished game with dice."""

    states: np.ndarray


@pytest.mark.parametrize("name", ["tic_tac_toe", "dots_and_boxes"])
def test_moves_with_commas_in_their_names_are_read_from_a_text(name):
    pytest.importorskip("pyspiel")
    game = registry.load(f"openspiel:{name}").game
    words, position = [], game.start()
    for _ in range(4):
        action = position.legal_actions[-1]
        words.append(position.format(action))
        position = position.play(action)
    assert game.position(" ".join(words)).actions == position.actions
