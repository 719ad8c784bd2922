"""The validator: faulty games are each caught with the right words, and the shipped games pass."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from alphazero.commands.rules.new import check, describe
from alphazero.commands.shared import run_command
from alphazero.errors import IllegalAction, LawBroken
from alphazero.game import Game, Rules, Score, validator
from alphazero.game.functions import plain, rule_functions
from alphazero.game.laws import questions
from alphazero.game.validator import validate
from games.tictacmo.game import TicTacMo
from games.tictactoe.game import TicTacToe, has_line
from tests.conftest import some_games
from tests.game.repetition_game import REPETITION, SHOWN
from tests.search.test_seats import Walk

GOOD = Rules(**{name: rule and plain(rule) for name, rule in rule_functions(TicTacToe.rules).items()})
RNG = np.random.default_rng(0)
pytestmark = pytest.mark.usefixtures("no_rules_are_called_slow")


def faulty(**changes: Any) -> Game:
    """Tic-tac-toe with other rules, or other methods."""
    rules = {name: change for name, change in changes.items() if hasattr(GOOD, name)}
    others = {name: change for name, change in changes.items() if name not in rules}
    return type("Faulty", (TicTacToe,), {"name": "faulty", "rules": replace(GOOD, **rules), **others})()


def refused(game: Game, *words: str, num_games: int = 2) -> LawBroken:
    """The error, whose one sentence holds all words."""
    with pytest.raises(LawBroken) as caught:
        validate(game, num_games=num_games)
    sentence = str(caught.value)
    assert "\n" not in sentence and all(part in sentence for part in words), sentence
    return caught.value


# --- rules ---


def step_that_checks(state, action):
    if int(state[0] | state[1]) >> action & 1:
        raise ValueError("the square is taken")
    GOOD.step(state, action)


def legal_everywhere(state, legal_mask):
    legal_mask[:] = True


def legal_nowhere(state, legal_mask):
    GOOD.legal(state, legal_mask)
    if int(state[0] | state[1]).bit_count() == 4:
        legal_mask[:] = False


def legal_beyond_the_mask(state, legal_mask):
    for square in range(10):
        legal_mask[square] = not int(state[0] | state[1]) >> square & 1


def legal_leaves_entries_alone(state, legal_mask):
    for square in range(9):
        if not int(state[0] | state[1]) >> square & 1:
            legal_mask[square] = True


def step_that_plays_nothing(state, action):
    state[0], state[1] = state[1], state[0]


def step_at_random(state, action):
    GOOD.step(state, action)
    if RNG.random() < 0.2:
        state[0] = np.uint64(0)


def endless_step(state, action):
    while int(state[0] | state[1]).bit_count() == 3:
        pass
    GOOD.step(state, action)


def slow_step(state, action):
    time.sleep(0.01)
    GOOD.step(state, action)


def step_of_negatives(state, action):
    state[0] &= -2


def is_terminal_that_plays(state):
    if int(state[0] | state[1]).bit_count() == 3:
        state[0] |= np.uint64(0x100)
    return GOOD.is_terminal(state)


def observe_nan(state, planes):
    GOOD.observe(state, planes)
    planes[1, 0, 2] = np.nan


def wrong_transform(state, symmetry):
    GOOD.transform(state, (symmetry + 1) % 8 if symmetry else 0)


def unfinished_init(state):
    state[0] = np.uint64(0)


def step_with_a_favourite(state, action):
    """Each image alone is right, but the game played on from it is another one."""
    empty = state[0] | state[1] == 0
    GOOD.step(state, action)
    if empty and action in (0, 1):
        state[1] |= np.uint64(1 << 8)


FAULTY: dict[str, tuple[dict[str, Callable[..., Any]], list[str]]] = {
    "illegal move offered": (
        {"legal": legal_everywhere, "step": step_that_checks},
        ["`step` raised ValueError: the square is taken in line ", " of test_validator.py"],
    ),
    "empty mask": ({"legal": legal_nowhere}, ["must have a legal action"]),
    "never ends": ({"step": step_that_plays_nothing}, ["must end within `max_plies` = 9"]),
    "NaN planes": ({"observe": observe_nan}, ["`observe` must write finite numbers"]),
    "changes its parent": ({"is_terminal": is_terminal_that_plays}, ["`is_terminal` must leave the state alone"]),
    "no return": ({"is_terminal": lambda state: None}, ["`is_terminal` must give True or False"]),
    "random step": ({"step": step_at_random}, ["`step` must do the same each time"]),
    "wrong player": ({"to_play": lambda state: 2}, ["`to_play` must give the number of a player", "2"]),
    "one player": ({"to_play": lambda state: 0}, ["all players"]),
    "value of another kind": ({"terminal_value": lambda state: 0.5}, ["`terminal_value` must give -1, 0 or 1", "0.5"]),
    "wrong symmetry": ({"transform": wrong_transform}, ["`transform`", "must permute what `"]),
    "symmetries of another game": ({"step": step_with_a_favourite}, ["`transform` by symmetry ", "go with `step`"]),
    "action out of range": ({"legal": legal_beyond_the_mask}, ["`legal` raised IndexError", "num_actions = 9"]),
    "half a mask": ({"legal": legal_leaves_entries_alone}, ["`legal` must write every entry"]),
    "makes a new state": ({"step": lambda state, action: state.copy()}, ["`step` must write into the array"]),
    "never comes back": ({"step": endless_step}, ["`step` has not come back"]),
    "negative numbers": ({"step": step_of_negatives}, ["`step` raised OverflowError", "np.uint64(1)"]),
    "unfinished start": ({"init": unfinished_init}, ["`init` must write every word"]),
    "over at once": ({"is_terminal": lambda state: True}, ["the start position must not be over"]),
    "points for a guess": ({"heuristic": lambda state: 50.0}, ["`heuristic` must give a number between -1 and 1"]),
    "no guess": ({"heuristic": lambda state: None}, ["`heuristic` must give a number between -1 and 1", "None"]),
}


@pytest.mark.parametrize(("changes", "words"), FAULTY.values(), ids=FAULTY)
def test_a_faulty_game_is_caught_with_its_law_and_the_position(changes: dict[str, Any], words: list[str], monkeypatch):
    monkeypatch.setattr(questions, "STUCK", 1.0)
    error = refused(faulty(**changes), "faulty: ", *words, num_games=50)
    assert "all players" in words or ("player" in error.drawing and "a b c" in error.drawing)


def test_a_rule_that_keeps_something_outside_of_the_state_is_caught():
    seen: Counter[bytes] = Counter()

    def observe(state, planes):  # the first stones fade
        seen[state.tobytes()] += 1
        GOOD.observe(state, planes)
        if seen[state.tobytes()] > 40:
            planes[0, 0, 0] = 7.0

    words = "same of a position whenever they are asked, but `observe` changed"
    refused(faulty(observe=observe, transform=None), words, num_games=30)


# --- what the class declares ---

CELLS, ACTIONS = TicTacToe().symmetries
DECLARED: dict[str, tuple[str, Any]] = {
    "no name": ("name", ""),
    "no rules": ("rules", None),
    "history alone": ("history_words", 2),
    "half a word of history": ("history_words", 0.5),
    "no room": ("mean_legal", 0),
    "too few places": ("action_places", np.arange(8)),
    "one place for two": ("action_places", np.array([*range(8), 7])),
    "a place before the first": ("action_places", np.arange(9) - 1),
    "half a place": ("action_places", np.arange(9) / 2),
    "rules by name": ("rules", {"init": GOOD.init}),
    "another function": ("rules", replace(GOOD, to_play=1)),
    "a size of no whole number": ("observation_shape", (2, 3.0, 3)),
    "a list": ("observation_shape", [2, 3, 3]),
    "no arrays": ("symmetries", 4),
    "no permutations of cells": ("symmetries", (np.zeros_like(CELLS), ACTIONS)),
    "no permutations of actions": ("symmetries", (CELLS, ACTIONS + 1)),
    "no identity": ("symmetries", (CELLS[::-1], ACTIONS[::-1])),
    "too few rows": ("symmetries", (CELLS, ACTIONS[:5])),
    "an error": ("symmetries", property(lambda self: 1 / 0)),
}


@pytest.mark.parametrize(("name", "value"), DECLARED.values(), ids=DECLARED)
def test_what_the_class_declares_wrongly_is_said(name: str, value: Any):
    wanted = f"`{name}`" if not isinstance(value, Rules) else "must be a function"
    refused(type("Faulty", (TicTacToe,), {"name": "faulty", name: value})(), wanted)


def render_unless_over(self, state, to_play):
    return TicTacToe.render(self, state, to_play) if not GOOD.is_terminal(state) else {}["over"]


def writing(write: Callable[[int], str]) -> dict[str, Any]:
    """A notation."""
    return {
        "format_action": lambda self, action, state: write(action),
        "parse_action": lambda self, text, state: [write(action) for action in range(9)].index(text),
    }


def no_position(self, moves):
    raise IllegalAction("a1 is not legal here")


METHODS: dict[str, tuple[dict[str, Any], str]] = {
    "raises": ({"render": render_unless_over}, "`render` raised KeyError: 'over' in line"),
    "no text": ({"render": lambda self, state, to_play: None}, "`render` must give a text, not None"),
    "two meanings": (writing(lambda action: str(min(action, 7))), "'7' is 8 and 7"),
    "spaces": (writing(lambda action: f"({action // 3}, {action % 3})"), "printable word, not '("),
    "commas": (writing(lambda action: f"{action // 3},{action % 3}"), "`split_moves` must find the words"),
    "nothing": (writing(lambda action: "abcdefghi"[action] if action else ""), "printable word"),
    "no letters": (writing(lambda action: f"\x07{action}"), "printable word"),
    "another game": ({"position": no_position}, "`position` raised IllegalAction: a1 is not legal"),
}


@pytest.mark.parametrize(("methods", "words"), METHODS.values(), ids=METHODS)
def test_a_drawing_or_a_notation_that_cannot_be_used_is_caught(methods: dict[str, Any], words: str):
    refused(faulty(**methods), f"faulty: {words}" if words.startswith("`") else words)


# --- symmetries ---


def with_symmetries(cells: np.ndarray, actions: np.ndarray) -> Game:
    """Checked by playing."""
    return faulty(transform=None, symmetries=(cells, actions))


def test_symmetries_are_checked_by_playing_where_there_is_no_transform():
    assert validate(with_symmetries(CELLS, ACTIONS), num_games=5).warnings == []
    turned_board_alone = with_symmetries(CELLS, np.tile(np.arange(9), (len(CELLS), 1)))
    error = refused(turned_board_alone, "symmetry 1 must turn a game into a game that goes just like it", num_games=5)
    assert error.drawing.startswith("after ") and "mirror image" in error.drawing
    refused(with_symmetries(CELLS[[0, 3]], ACTIONS[[0, 5]]), "symmetry 1 must turn", num_games=5)


def test_a_transform_must_not_forget_a_word_that_the_planes_do_not_show():
    def init(state):
        state[:] = 0

    def step(state, action):
        GOOD.step(state, action)
        state[2] |= np.uint64(1 << action)  # all stones, which the transform leaves where they are

    refused(faulty(state_words=3, init=init, step=step), "`transform` by symmetry", "go with `step`", num_games=5)


def legal_reads_history(state, legal_mask):
    REPETITION.rules.legal(state, legal_mask)
    legal_mask[0] = legal_mask[0] or state[SHOWN + 2] != 0


def observe_reads_history(state, planes):
    REPETITION.rules.observe(state, planes)
    planes[2, 0, 0] += state[SHOWN] != 0


def transform_reads_history(state, symmetry):
    REPETITION.rules.transform(state, symmetry)
    if symmetry and state[SHOWN + 4]:
        state[2] ^= np.uint64(1)


def is_over_without_history(state):
    return REPETITION.rules.is_terminal(state) or (state[0] != 7 and state[SHOWN] == 0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"legal": legal_reads_history}, "`legal` must not read the last `history_words`"),
        ({"observe": observe_reads_history}, "`observe` must not read the last `history_words`"),
        ({"transform": transform_reads_history}, "`transform` by symmetry 1 must not read the last `history_words`"),
        ({"is_terminal": is_over_without_history}, "must go on without its history"),
    ],
)
def test_nothing_but_the_end_and_the_next_position_may_depend_on_the_history(changes: dict[str, Any], words: str):
    rules = replace(REPETITION.rules, **changes)
    refused(type("Faulty", (type(REPETITION),), {"name": "faulty", "rules": rules, "compiled": False})(), words)


def test_every_symmetry_is_checked_however_long_the_random_games_took(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(validator, "SECONDS", 0.0)
    refused(with_symmetries(CELLS, ACTIONS[[0, 1, 2, 3, 4, 7, 6, 5]]), "must turn a game into a game")
    monkeypatch.setattr(validator, "SECONDS_EACH", 0.0)
    (warning,) = validate(with_symmetries(CELLS, ACTIONS), num_games=2).warnings
    assert "no time to check all symmetries" in warning


# --- compiled rules ---


@pytest.mark.parametrize("rule", ["terminal_value", "transform", "observe"])
def test_a_fault_that_only_the_compiled_rules_have_is_caught(rule: str):
    """Whole numbers have 64 bits there, and any number of them in Python."""
    right_observe, right_transform = TicTacToe.rules.observe, TicTacToe.rules.transform

    def terminal_value(state):
        if (len(state) + 2**62) * 4 == 8:
            return 0.0
        return -1.0 if has_line(state[1]) else 0.0

    def observe(state, planes):
        right_observe(state, planes)
        if (len(state) + 2**62) * 4 == 8:
            raise ValueError("too many")

    def transform(state, symmetry):
        right_transform(state, 0 if (len(state) + 2**62) * 4 == 8 else symmetry)

    rules = {"terminal_value": terminal_value, "transform": transform, "observe": observe}
    game = faulty()
    game.rules = replace(TicTacToe.rules, **{rule: rules[rule]})
    words = "raised ValueError: too many" if rule == "observe" else f"but `{rule}` differs"
    error = refused(game, "compiled rules", words, num_games=30)
    assert "a b c" in error.drawing


def test_rules_that_cannot_be_compiled_get_a_warning():
    def step(state, action):
        words = {"own": state[0]}  # numba has no such dictionaries
        words["action"] = str(action)
        GOOD.step(state, action)

    findings = validate(faulty(step=step), num_games=5)
    assert findings.compiled_per_second is None and "cannot compile" in findings.warnings[0]


# --- findings ---


class Race(Game):
    """The first player adds 1 or 2, the second 2 or 3; who reaches 20 wins. The planes do not show who moves."""

    name = "race"
    num_actions, state_words, max_plies = 3, 2, 20
    observation_shape = (1, 1, 24)

    @property
    def rules(self) -> Rules:  # type: ignore[override]
        def init(state):
            state[:] = 0

        def legal(state, legal_mask):
            for action in range(3):
                legal_mask[action] = action < 2 if state[1] == 0 else action > 0

        def step(state, action):
            state[0] += np.uint64(action + 1)
            state[1] = np.uint64(1) - state[1]

        def observe(state, planes):
            planes[0, 0, state[0]] = 1.0

        return Rules(init, legal, step, lambda state: state[0] >= 20, lambda state: -1.0, observe)


def test_planes_that_hide_what_the_legal_actions_depend_on_get_a_warning():
    (warning,) = (text for text in validate(Race(), num_games=20).warnings if "looks to the network like" in text)
    assert "other legal actions" in warning
    assert "\nplayer 1 to move:\n" in warning and "\nplayer 2 to move:\n" in warning


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"terminal_value": lambda state: -GOOD.terminal_value(state)}, "right where whoever moves last loses"),
        ({"terminal_value": lambda state: 0.0}, "nothing to learn"),
        ({"step": slow_step}, "slow"),
    ],
    ids=["wrong sign", "always a draw", "very slow"],
)
def test_what_no_law_forbids_gets_a_warning(changes: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(validator, "SLOW", 300.0)
    game = faulty(**changes)
    findings = validate(game, num_games=20 if words != "slow" else 2)
    assert [warning for warning in findings.warnings if words in warning]
    if "loses" in words:
        (line,) = (line for line in describe(game, findings).splitlines() if line.startswith("last mover"))
        assert "won 0%" in line and "lost 0%" not in line


def test_results_that_begin_with_another_player_get_a_warning_that_names_their_rule():
    def returns(state: np.ndarray, results: np.ndarray) -> None:
        TicTacMo.rules.returns.py_func(state, results)
        results[:] = np.roll(results, 1)

    game = type("Turned", (TicTacMo,), {"rules": replace(TicTacMo.rules, returns=returns)})()
    (warning,) = (text for text in validate(game, num_games=20).warnings if "last ply" in text)
    assert "does `returns` begin with the player to move?" in warning


def marked(value: float, others: float, after: float) -> Callable[..., None]:
    """`returns` for four: the numbers of one of them, of those before, and of whoever comes after that one."""

    def returns(state: np.ndarray, results: np.ndarray) -> None:
        seat = int(state[1] - state[0]) % 4
        results[:] = others
        results[(seat + 1) % 4] = after * (int(state[3]) % 2)
        results[seat] = value

    return returns


def test_games_that_another_player_loses_alone_did_not_end_alike():
    """Once all wins that several share counted as one ending."""
    for returns, alike in ((marked(-1.0, 0.5, 0.5), False), (lambda state, results: results.fill(0.5), True)):
        game = type("OneLoses", (Walk,), {"rules": replace(Walk.rules, returns=returns)})()
        findings = validate(game, num_games=20)
        assert any("ended alike" in warning for warning in findings.warnings) == alike, findings.endings


def test_points_that_end_a_game_for_more_than_two_are_told_as_points():
    rules = replace(Walk.rules, returns=marked(14.0, 0.0, 3.0))
    game = type("Points", (Walk,), {"rules": rules, "score": Score(0, 14)})()
    refused(game, "has won alone", "3.0", "give `score` a higher end than anybody can reach", num_games=20)
    game.score = Score(15, 0)
    refused(game, "`score` must be a Score of two finite numbers, the lower first")
    game.score = Score(0, 15)
    validate(game, num_games=20)


@some_games("hex_swap", "nim", "tictactoe")
def test_the_shipped_games_keep_all_laws(game: Game, monkeypatch: pytest.MonkeyPatch):
    if game.name == "gomoku15":
        monkeypatch.setattr(validator, "FOLLOWED", 1)
    monkeypatch.setattr(validator, "SECONDS_EACH", 60.0)
    findings = validate(game, num_games={"gomoku15": 2, "hex_swap": 3}.get(game.name, 10))
    assert findings.warnings == []
    assert findings.compiled_per_second is not None
    assert sum(findings.outcomes.values()) == findings.num_games == len(findings.lengths)


# --- the command ---


def test_the_command_says_what_kind_of_game_it_is(capsys: pytest.CaptureFixture[str]):
    assert run_command(check, ["nim", "--games", "40"]) == 0
    said = capsys.readouterr().out
    for words in ("40, ", "(max_plies 16)", "of 28", "draw 0%", "won 100%", "players alternate", "first game: ",
                  "nim keeps all laws.", "python main.py --game nim"):  # fmt: skip
        assert words in said


SOURCE = """
from alphazero.game import Rules
from games.tictactoe.game import TicTacToe
class Faulty(TicTacToe):
    name = "faulty"
    rules = Rules(**{name: getattr(TicTacToe().plain_rules, name) for name in
        ("init", "legal", "step", "is_terminal", "observe")}, terminal_value=lambda state: 2.0)
"""


def test_the_command_draws_the_position_and_says_the_law(tmp_path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "faulty.py").write_text(SOURCE)
    assert run_command(check, [str(tmp_path / "faulty.py")]) == 2
    drawing, sentence = capsys.readouterr().err.rstrip().rsplit("\n", 1)
    assert sentence.startswith("error: faulty: `terminal_value` must give -1, 0 or 1")
    assert "to move:" in drawing and "a b c" in drawing


@pytest.mark.parametrize("argv", [["shogi"], ["nim", "--games", "0"], []])
def test_wrong_input_gets_one_sentence(argv: list[str], capsys: pytest.CaptureFixture[str]):
    assert run_command(check, argv) == 2
    assert capsys.readouterr().err.count("\n") == 1
