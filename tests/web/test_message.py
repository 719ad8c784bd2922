"""Messages: read field by field, and refused in one sentence."""

import json

import pytest

from alphazero.web.message import MOST_ACTIONS, MOST_BYTES, BadMessage, Question, parse_message, question_of


def test_a_question_and_a_cancelled_one():
    question = parse_message('{"id": 3, "ask": "position", "actions": [1, 2]}')
    assert isinstance(question, Question)
    assert (question.id, question.ask, question.actions) == (3, "position", (1, 2))
    assert parse_message('{"cancel": 3}') == 3


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "7", "null", '"ask"', "{}", '{"id": 1}', '{"ask": "game"}', '{"id": "1", "ask": "game"}',
        '{"id": -1, "ask": "game"}', '{"id": true, "ask": "game"}', '{"id": 1, "ask": 2}', '{"id": 1e99, "ask": "x"}',
        '{"cancel": "1"}', '{"cancel": []}', '{"id": NaN, "ask": "x"}', '{"id": 1, "ask": "' + "x" * 50 + '"}',
        "[" * 100_000, '{"id": 1, "ask": "x", "y": "' + "z" * MOST_BYTES + '"}',
    ],
)  # fmt: skip
def test_other_messages_are_refused_in_a_sentence(text: str):
    with pytest.raises(BadMessage) as caught:
        parse_message(text)
    assert 10 < len(str(caught.value)) < 200 and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "actions", [None, 1, "1", {"0": 1}, [1.0], ["1"], [True], [-1], [2**60], [0] * (MOST_ACTIONS + 1)]
)
def test_actions_are_whole_numbers(actions):
    with pytest.raises(BadMessage, match="actions"):
        question_of({"id": 1, "ask": "position", "actions": actions})


@pytest.mark.parametrize("field", [
    {"limit": 0}, {"limit": 10**6}, {"side": 2}, {"seed": True}, {"fresh": 1}, {"player": "mcts"}, {"player": {}},
    {"player": {"id": "mcts", "step": "9"}}, {"moves": 5}, {"name": "x" * 300}, {"resigned": 8}, {"after": -2},
])  # fmt: skip
def test_fields_have_types_and_bounds(field):
    with pytest.raises(BadMessage, match=next(iter(field))):
        question_of({"id": 1, "ask": "move", **field})


def test_a_message_is_measured_in_bytes():
    with pytest.raises(BadMessage, match="bytes"):
        parse_message(json.dumps({"id": 1, "ask": "x", "y": "ä" * (MOST_BYTES // 2)}, ensure_ascii=False))


def test_a_file_of_a_hundred_games_is_a_message():
    """The games of a match of chess, as PGN, are some 100 KB."""
    text = "1. e4 e5 " * 60_000
    question = parse_message(json.dumps({"id": 1, "ask": "load", "name": ".pgn", "text": text}))
    assert isinstance(question, Question) and question.text == text
