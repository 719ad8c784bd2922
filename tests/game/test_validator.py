"""The validator: faulty games are each caught with the right words, and the shipped games pass."""

import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.commands.rules.check import describe, main
from alphazero.commands.shared import run_command
from alphazero.errors import IllegalAction, LawBroken
from alphazero.game import Game, Rules, laws, validator
from alphazero.game.validator import validate
from games.tictactoe.game import TicTacToe
from tests.conftest import some_games

GOOD = TicTacToe().plain_rules
RNG = np.random.default_rng(0)


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


def step_that_returns(state, action):
    child = state.copy()
    GOOD.step(child, action)
    return child


def endless_step(state, action):
    while int(state[0] | state[1]).bit_count() == 3:
        pass
    GOOD.step(state, action)


def slow_step(state, action):
    time.sleep(0.01)
    GOOD.step(state, action)


def raising_step(state, action):
    if action == 4:
        raise KeyError("centre")
    GOOD.step(state, action)


def is_terminal_that_plays(state):
    if int(state[0] | state[1]).bit_count() == 3:
        state[0] |= np.uint64(0x100)
    return GOOD.is_terminal(state)


def observe_too_many(state, planes):
    planes[2, 0, 0] = 1.0


def observe_nan(state, planes):
    GOOD.observe(state, planes)
    with np.errstate(all="ignore"):
        planes[1, 0, 2] = np.float32(0.0) / np.float32(int(state[0]) & 1)


def wrong_transform(state, symmetry):
    GOOD.transform(state, (symmetry + 1) % 8 if symmetry else 0)


def unfinished_init(state):
    state[0] = np.uint64(0)


def guess_beyond_the_state(state):
    return float(state[40])


FAULTY: dict[str, tuple[dict[str, Callable[..., Any]], list[str]]] = {
    "illegal move offered": ({"legal": legal_everywhere, "step": step_that_checks}, ["`step` raised", "taken"]),
    "empty mask": ({"legal": legal_nowhere}, ["a position that is not over must have a legal action"]),
    "never ends": ({"step": step_that_plays_nothing}, ["must end within `max_plies` = 9"]),
    "wrong shape": ({"observe": observe_too_many}, ["`observe` reaches beyond an array"]),
    "NaN planes": ({"observe": observe_nan}, ["finite numbers", "plane 1, row 0, column 2"]),
    "changes its parent": ({"is_terminal": is_terminal_that_plays}, ["`is_terminal` must leave the state alone"]),
    "random step": ({"step": step_at_random}, ["`step` must do the same each time"]),
    "wrong player": ({"to_play": lambda state: 2}, ["`to_play` must give 0 or 1, not 2"]),
    "one player": ({"to_play": lambda state: 0}, ["both players"]),
    "value of another kind": ({"terminal_value": lambda state: 0.5}, ["must give -1, 0 or 1", "not 0.5"]),
    "wrong symmetry": ({"transform": wrong_transform}, ["must permute the observation as `symmetries` says"]),
    "action out of range": ({"legal": legal_beyond_the_mask}, ["`legal` reaches beyond an array"]),
    "half a mask": ({"legal": legal_leaves_entries_alone}, ["`legal` must write every entry", "entry"]),
    "raises": ({"step": raising_step}, ["`step` raised KeyError", "centre", "in line", "of test_validator.py"]),
    "makes a new state": ({"step": step_that_returns}, ["`step` must write into the array", "return nothing"]),
    "never comes back": ({"step": endless_step}, ["`step` has not come back"]),
    "unfinished start": ({"init": unfinished_init}, ["`init` must write every word"]),
    "points for a guess": ({"heuristic": lambda state: 50.0}, ["`heuristic` must give a number between -1 and 1"]),
    "no guess": ({"heuristic": lambda state: None}, ["`heuristic` must give a number between -1 and 1", "not None"]),
    "guess beyond": ({"heuristic": guess_beyond_the_state}, ["`heuristic` reaches beyond an array", "`state_words`"]),
}
SUSPICIOUS: dict[str, tuple[dict[str, Callable[..., Any]], str]] = {
    "wrong sign": ({"terminal_value": lambda state: -GOOD.terminal_value(state)}, "has won"),
    "very slow": ({"step": slow_step}, "slow"),
    "always a draw": ({"terminal_value": lambda state: 0.0}, "nothing to learn"),
}


def faulty(changes: dict[str, Callable[..., Any]]) -> Game:
    class Faulty(TicTacToe):
        name = "faulty"
        rules: Rules = replace(GOOD, **changes)

    return Faulty()


@pytest.mark.parametrize(("changes", "words"), FAULTY.values(), ids=FAULTY)
def test_a_faulty_game_is_caught_with_its_law_and_the_position(changes: dict[str, Any], words: list[str], monkeypatch):
    monkeypatch.setattr(laws, "STUCK", 1.0)
    with pytest.raises(LawBroken) as caught:
        validate(faulty(changes), num_games=50)
    sentence = str(caught.value)
    assert sentence.startswith("faulty: ") and "\n" not in sentence
    for part in words:
        assert part in sentence
    if "both players" not in words:
        assert "player" in caught.value.drawing and "a b c" in caught.value.drawing


@pytest.mark.parametrize(("changes", "words"), SUSPICIOUS.values(), ids=SUSPICIOUS)
def test_what_no_law_forbids_gets_a_warning(changes: dict[str, Any], words: str):
    findings = validate(faulty(changes), num_games=30 if words != "slow" else 2)
    assert [warning for warning in findings.warnings if words in warning]


@pytest.mark.parametrize("fault", ["cells", "actions", "identity", "shape"])
def test_wrong_permutations_are_caught(fault: str):
    class Faulty(TicTacToe):
        name = "faulty"

        @property
        def symmetries(self):
            cells, actions = (part.copy() for part in TicTacToe().symmetries)
            if fault == "cells":
                cells[3, 0] = cells[3, 1]
            elif fault == "actions":
                actions[3, 0] = 9
            elif fault == "identity":
                cells, actions = cells[::-1], actions[::-1]
            else:
                actions = actions[:5]
            return cells, actions

    words = {"cells": "permutations of the cells", "actions": "permutations of the actions", "identity": "the identity"}
    with pytest.raises(LawBroken, match=words.get(fault, "a row of 9 actions for each symmetry")):
        validate(Faulty(), num_games=2)


DECLARED: dict[str, tuple[dict[str, Any], str]] = {
    "no rules": ({"rules": None}, r"`rules` must be a Rules of functions, as rules = Rules\(.*\(there is none\)"),
    "rules by name": ({"rules": {"init": GOOD.init}}, r"`rules` must be a Rules of functions.*\(it is .*init"),
    "no function": ({"rules": replace(GOOD, observe=None)}, "the rule `observe` must be a function, not None"),
    "another function": ({"rules": replace(GOOD, to_play=1)}, "the rule `to_play` must be a function, not 1"),
    "a size of no whole number": ({"observation_shape": (2, 3.0, 3)}, "three whole numbers above 0.*2, 3.0, 3"),
    "a size of words": ({"observation_shape": (2, "3", 3)}, "three whole numbers above 0.*2, '3', 3"),
    "a list": ({"observation_shape": [2, 3, 3]}, r"must be a tuple of three whole numbers.*\(it is .*2, 3, 3"),
    "half a number of actions": ({"num_actions": 4.5}, "`num_actions`, .* must be whole numbers above 0"),
}


@pytest.mark.parametrize(("declared", "words"), DECLARED.values(), ids=DECLARED)
def test_what_the_class_declares_wrongly_is_said(declared: dict[str, Any], words: str):
    with pytest.raises(LawBroken, match=f"^faulty: .*{words}"):
        validate(type("Faulty", (TicTacToe,), {"name": "faulty", **declared})(), num_games=2)


def test_a_class_without_rules_is_said(tmp_path, capsys: pytest.CaptureFixture[str]):
    text = "from alphazero.game import Game\nclass Bare(Game):\n    name = 'bare'\n"
    text += "    num_actions, state_words, max_plies, observation_shape = 9, 2, 9, (2, 3, 3)\n"
    (tmp_path / "bare.py").write_text(text)
    assert run_command(main, [str(tmp_path / "bare.py")]) == 2
    assert capsys.readouterr().err.startswith("error: bare: `rules` must be a Rules of functions")


def render_unless_over(self, state, to_play):
    return TicTacToe.render(self, state, to_play) if not GOOD.is_terminal(state) else {}["over"]


@pytest.mark.parametrize(
    ("render", "words"),
    [
        (render_unless_over, r"`render` raised KeyError: 'over' in line \d+ of test_validator.py"),
        (lambda self, state, to_play: None, "`render` must give a text, not None"),
    ],
)
def test_a_position_that_cannot_be_drawn_is_caught(render: Callable[..., Any], words: str):
    with pytest.raises(LawBroken, match=f"^faulty: {words}"):
        validate(type("Faulty", (TicTacToe,), {"name": "faulty", "render": render})(), num_games=2)


def test_a_game_without_a_name_is_caught():
    class Nameless(Game):
        num_actions, state_words, max_plies, observation_shape = 9, 2, 9, (2, 3, 3)
        rules: Rules = GOOD

    with pytest.raises(LawBroken, match="Nameless: the class must have a `name`"):
        validate(Nameless(), num_games=2)


@pytest.mark.usefixtures("no_rules_are_called_slow")
def test_what_rules_call_needs_no_decorator():
    def exchange(state):
        state[0], state[1] = state[1], state[0]

    def step(state, action):
        state[0] |= np.uint64(1) << np.uint64(action)
        exchange(state)

    class Helped(TicTacToe):
        name = "helped"
        rules: Rules = replace(TicTacToe().rules, step=step)

    findings = validate(Helped(), num_games=5)
    assert findings.compiled_per_second is not None and findings.warnings == []


@pytest.mark.usefixtures("no_rules_are_called_slow")
def test_rules_that_cannot_be_compiled_get_a_warning():
    def step(state, action):
        words = {"own": state[0]}  # numba has no such dictionaries
        words["action"] = str(action)
        GOOD.step(state, action)

    findings = validate(faulty({"step": step}), num_games=5)
    assert findings.compiled_per_second is None and "cannot compile" in findings.warnings[0]


def test_a_notation_that_means_two_actions_is_caught():
    class Faulty(TicTacToe):
        name = "faulty"

        def format_action(self, action, state):
            return super().format_action(min(action, 7), state)

    with pytest.raises(LawBroken, match="'b3' is 8 and 7"):
        validate(Faulty(), num_games=2)


WORDS: dict[str, tuple[Callable[[int], str], str]] = {
    "spaces": (lambda action: f"({action // 3}, {action % 3})", r"printable word without spaces, not '\(\d, \d\)'"),
    "commas": (lambda action: f"{action // 3},{action % 3}", r"`split_moves` must find the words .* '\d,\d'"),
    "nothing": (lambda action: "abcdefghi"[action] if action else "", "printable word without spaces, not ''"),
    "no letters": (lambda action: f"\x07{action}", "printable word without spaces, not "),
}


@pytest.mark.parametrize(("write", "words"), WORDS.values(), ids=WORDS)
def test_a_notation_of_which_no_line_can_be_made_is_caught(write: Callable[[int], str], words: str):
    class Faulty(TicTacToe):
        name = "faulty"

        def format_action(self, action, state):
            return write(action)

        def parse_action(self, text, state):
            return [write(action) for action in range(9)].index(text)

    with pytest.raises(LawBroken, match=words):
        validate(Faulty(), num_games=2)


@pytest.mark.parametrize(
    ("number", "hint"),
    [(-2, "makes Python's own numbers negative: write np.uint64"), (1 << 64, "a larger board takes several words")],
)
def test_a_number_that_fits_no_word_gets_the_usual_reason(number: int, hint: str):
    with pytest.raises(OverflowError) as caught:
        np.zeros(1, np.uint64)[0] &= number
    assert hint in laws.raised("step", caught.value, TicTacToe())


@pytest.mark.parametrize("rule", ["terminal_value", "transform", "heuristic"])
def test_a_fault_that_only_the_compiled_rules_have_is_caught(rule: str):
    """Whole numbers have 64 bits there, and any number of them in Python."""

    class Faulty(TicTacToe):
        name = "faulty"

    game = Faulty()
    game.rules = replace(game.rules, **{rule: compiled_otherwise()[rule]})
    with pytest.raises(LawBroken, match=f"the compiled rules must do what plain Python does, but `{rule}`") as caught:
        validate(game, num_games=30)
    assert "a b c" in caught.value.drawing


@pytest.mark.parametrize(("rule", "name"), [("observe", "`observe`"), ("step", "`step` or `to_play`")])
def test_compiled_rules_that_raise_where_plain_python_does_not_are_caught(rule: str, name: str):
    right = getattr(TicTacToe().rules, rule)

    def raising(state, argument):
        right(state, argument)
        if (len(state) + 2**62) * 4 == 8:  # as whole numbers have 64 bits there
            raise ValueError("too many")

    game = faulty({rule: raising})
    with pytest.raises(LawBroken, match=f"plain Python does, but {name} raised ValueError: too many") as caught:
        validate(game, num_games=2)
    assert "a b c" in caught.value.drawing


def compiled_otherwise() -> dict[str, Any]:
    from games.tictactoe.game import has_line

    right = TicTacToe().rules.transform

    def terminal_value(state):
        if (len(state) + 2**62) * 4 == 8:
            return 0.0
        return -1.0 if has_line(state[1]) else 0.0

    def transform(state, symmetry):
        right(state, 0 if (len(state) + 2**62) * 4 == 8 else symmetry)

    def heuristic(state):
        return 0.5 if (len(state) + 2**62) * 4 == 8 else 0.25

    return {"terminal_value": terminal_value, "transform": transform, "heuristic": heuristic}


def test_a_rule_that_keeps_something_outside_of_the_state_is_caught():
    seen: Counter[bytes] = Counter()

    def observe(state, planes):  # the first stones fade
        seen[state.tobytes()] += 1
        GOOD.observe(state, planes)
        if seen[state.tobytes()] > 40:
            planes[0, 0, 0] = 7.0

    with pytest.raises(LawBroken, match="same of a position whenever they are asked, but its observation changed"):
        validate(faulty({"observe": observe, "transform": None}), num_games=30)


def test_a_game_that_cannot_be_played_again_is_caught():
    class Faulty(TicTacToe):
        name = "faulty"

        def position(self, moves):
            raise IllegalAction("a1 is not legal here")

    with pytest.raises(LawBroken, match="faulty: a game must go the same each time .*IllegalAction: a1 is not legal"):
        validate(Faulty(), num_games=2)


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


@pytest.mark.usefixtures("no_rules_are_called_slow")
@some_games("hex_swap", "nim", "othello6", "tictactoe")
def test_the_shipped_games_keep_all_laws(game: Game, monkeypatch: pytest.MonkeyPatch):
    if game.name == "gomoku15":
        monkeypatch.setattr(validator, "FOLLOWED", 1)
    monkeypatch.setattr(validator, "SECONDS_WITH_SYMMETRIES", 60.0)
    findings = validate(game, num_games={"gomoku15": 2, "gomoku": 10, "othello": 10}.get(game.name, 25))
    assert findings.warnings == []
    assert findings.compiled_per_second is not None
    assert sum(findings.outcomes.values()) == findings.num_games == len(findings.lengths)


def test_a_notation_of_legal_actions_alone_is_enough_to_refuse_another():
    class Strict(TicTacToe):
        name = "strict"

        def format_action(self, action, state):
            taken = int(state[0] | state[1])
            return {square: f"s{square}" for square in range(9) if not taken >> square & 1}[action]

    with pytest.raises(IllegalAction, match="^action 4 is not legal here"):
        Strict().position([4, 4])


def test_compiled_rules_are_not_called_slow_by_the_speed_of_plain_python(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(validator, "_speed", lambda *arguments: 1e6)
    monkeypatch.setattr(validator, "SLOW", 1e5)
    assert validate(TicTacToe(), num_games=5).warnings == []


def test_a_game_that_only_random_players_end_is_caught():
    """A token on a line of eight: whoever moves it off wins, and who takes a win and blocks one never does."""

    def init(state):
        state[0] = 4

    def legal(state, legal_mask):
        legal_mask[:] = True

    def step(state, action):
        state[0] += np.uint64(1) if action else np.uint64(0) - np.uint64(1)

    def is_terminal(state):
        return state[0] == 0 or state[0] == 9

    def observe(state, planes):
        planes[0, 0, state[0]] = 1.0

    class Tug(Game):
        name = "tug"
        num_actions, state_words, max_plies, observation_shape = 2, 1, 2000, (1, 1, 10)
        rules = Rules(init, legal, step, is_terminal, lambda state: -1.0, observe)

    with pytest.raises(LawBroken, match="tug: a game must end within `max_plies` = 2000, also between players who"):
        validate(Tug(), num_games=2)


def test_wrong_signs_show_in_few_games_too():
    game = faulty({"terminal_value": lambda state: -GOOD.terminal_value(state)})
    findings = validate(game, num_games=12)
    assert any("right where whoever moves last loses" in warning for warning in findings.warnings)
    (line,) = (line for line in describe(game, findings).splitlines() if line.startswith("last mover"))
    assert "won 0%" in line and "lost 0%" not in line


def test_the_command_says_what_kind_of_game_it_is(capsys: pytest.CaptureFixture[str]):
    assert run_command(main, ["nim", "--games", "40"]) == 0
    said = capsys.readouterr().out
    for words in (
        "40, ",
        "(max_plies 16)",
        "of 28",
        "draw 0%",
        "won 100%, lost 0%, drew 0% of the games",
        "players alternate",
        "first game: ",
        "nim keeps all laws.",
        "python main.py --game nim",
    ):
        assert words in said


SOURCE = """
import numpy as np
from alphazero.game import Game, Rules
from games.tictactoe.game import TicTacToe

class Faulty(TicTacToe):
    name = "faulty"
    rules = Rules(**{name: getattr(TicTacToe().plain_rules, name) for name in
        ("init", "legal", "step", "is_terminal", "observe")}, terminal_value=lambda state: 2.0)
"""


def test_the_command_draws_the_position_and_says_the_law(tmp_path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "faulty.py").write_text(SOURCE)
    assert run_command(main, [str(tmp_path / "faulty.py")]) == 2
    drawing, sentence = capsys.readouterr().err.rstrip().rsplit("\n", 1)
    assert sentence.startswith("error: faulty: `terminal_value` must give -1, 0 or 1")
    assert "to move:" in drawing and "a b c" in drawing


@pytest.mark.parametrize("argv", [["chess"], ["nim", "--games", "0"], []])
def test_wrong_input_gets_one_sentence(argv: list[str], capsys: pytest.CaptureFixture[str]):
    assert run_command(main, argv) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert registry.NAMES


def test_an_endless_loop_is_found_in_the_background_too(monkeypatch):
    """A shell starts programs in the background with interrupts ignored."""
    monkeypatch.setattr(laws, "STUCK", 1.0)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(LawBroken, match="`step` has not come back"):
            validate(faulty({"step": endless_step}), num_games=50)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
