"""What OpenSpiel says of its games, and what they do: their length, their observations, taking back."""

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.catalogue.adapters import openspiel
from alphazero.game.validator import validate

pyspiel = pytest.importorskip("pyspiel")
LIBRARY = Path(__file__).parents[2] / "alphazero"


def play_to_the_end(game: Any, rng: random.Random) -> Any:
    """The last position of a random game as OpenSpiel plays it."""
    state = game.new_initial_state()
    while not state.is_terminal():
        state.apply_action(rng.choice(state.legal_actions()))
    return state


@pytest.mark.parametrize(
    "text",
    [
        "dots_and_boxes(num_rows=3,num_cols=1)", "misere(game=dots_and_boxes(num_rows=4,num_cols=1))",
        "hex(board_size=3,swap=true)",
    ],
)  # fmt: skip
def test_a_game_that_openspiels_limit_does_not_fit_is_played_to_its_end(text):
    """OpenSpiel counts the lines of a board with more rows than columns wrong, and forgets the swap."""
    theirs, ours, rng = pyspiel.load_game(text), registry.load(f"openspiel:{text}").game, random.Random(0)
    for _ in range(50):
        end = play_to_the_end(theirs, rng)
        position = ours.position(end.history()[:-1])
        assert not position.terminal
        position = position.play(end.history()[-1])
        assert position.terminal and position.outcome == np.sign(end.returns()[0]), end.history()


@pytest.mark.parametrize(
    ("text", "plies"),
    [("dots_and_boxes", 13), ("connect_four", 43), ("hex(board_size=5,swap=true)", 26), ("mancala", 512)],
)
def test_where_openspiels_limit_fits_a_game_has_one_ply_more_and_no_more_than_ours(text, plies):
    """States have words for so many plies: a run that goes on must find them as they were."""
    assert registry.load(f"openspiel:{text}").game.max_plies == plies


def test_a_game_that_goes_on_after_all_is_cut_and_that_is_said(monkeypatch, caplog):
    openspiel.warn_once.cache_clear()
    monkeypatch.setattr(openspiel.texts, "longest_game", lambda game, most: 0)
    caplog.set_level("INFO")
    game = registry.load("openspiel:dots_and_boxes(num_rows=3,num_cols=1)").game
    findings = validate(game, num_games=3)
    assert caplog.text.count("games longer than 9 plies end there as draws") == 1
    assert findings.cut == [1, 2, 3] and findings.outcomes == {0: 3}
    (warning,) = (warning for warning in findings.warnings if "cut" in warning)
    assert warning.startswith("cut after 9 plies and counted as a draw")


def test_a_wrong_limit_is_said(monkeypatch, caplog):
    openspiel._say.cache_clear()
    caplog.set_level("INFO")
    game = registry.load("openspiel:dots_and_boxes(num_rows=3,num_cols=1)").game
    assert "some games are longer than OpenSpiel says; here they end after 20" in caplog.text
    assert game.max_plies == 20 and validate(game, num_games=30).cut == []


# --- observations ---


def test_quoridors_first_walls_look_different_to_the_network(monkeypatch, caplog):
    """OpenSpiel's observation shows no walls: the first positions with one are all the same in it."""
    openspiel._say.cache_clear()
    caplog.set_level("INFO")
    game = registry.load("openspiel:quoridor").game
    assert caplog.text.count("the network sees the characters of OpenSpiel's text instead") == 1
    start = game.start()
    after = [start.play(action) for action in start.legal_actions if start.format(action)[-1] in "hv"]
    assert len({position.observation.tobytes() for position in after}) == len(after) == 128
    assert len({tuple(game.object_of(position.state).observation_tensor(1)) for position in after}) == 1
    assert all(position.observation.shape == game.observation_shape for position in after)


@pytest.mark.slow
def test_all_other_games_are_seen_as_openspiel_shows_them():
    """Runs have nets of these observations."""
    seen = []
    for kind in pyspiel.registered_games():
        if openspiel._misfit(kind) or openspiel._is_made_from_another(kind):
            continue
        game = registry.load(f"openspiel:{kind.short_name}").game
        position = game.start()
        while len(position.actions) < 3 and not position.terminal:
            position = position.play(position.legal_actions[-1])
        state = game.object_of(position.state)
        player = game.player(state)
        tensor = np.float32(state.observation_tensor(player))
        if position.observation[:-1].size != tensor.size:
            assert kind.short_name == "quoridor"
            continue
        assert position.observation[:-1].ravel().tolist() == tensor.tolist()
        assert (position.observation[-1] == player).all()
        seen.append(kind.short_name)
    assert len(seen) >= 25 and "hive" in seen and "nine_mens_morris" in seen


# --- taking back ---


def test_no_action_is_taken_back():
    """In OpenSpiel's chess, whoever takes an action back has the other player's legal actions."""
    state = pyspiel.load_game("chess").new_initial_state()
    state.apply_action(state.string_to_action("e4"))
    before, action = state.legal_actions(), state.string_to_action("d5")
    state.apply_action(action)
    after = state.legal_actions()
    state.undo_action(0, action)
    assert state.legal_actions() == after != before, "undo_action works now"
    game = registry.load("openspiel:chess").game
    position = game.start()
    position = position.play(position.parse("e4"))
    for action in position.legal_actions:
        position.play(action).legal_actions  # noqa: B018
    game.forget()
    assert position.legal_actions == before
    sources = LIBRARY.rglob("*.py")
    assert not [path for path in sources if re.search(r"undo_action|UndoAction", path.read_text(encoding="utf-8"))]
