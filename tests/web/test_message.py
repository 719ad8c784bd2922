"""Messages: read field by field, and refused in one sentence."""

import json

import pytest

from alphazero.web.message import MOST_ACTIONS, MOST_BYTES, BadMessage, Fields, Question, parse_message


def test_a_question_and_a_cancelled_one():
    question = parse_message('{"id": 3, "ask": "position", "actions": [1, 2]}')
    assert isinstance(question, Question)
    assert (question.id, question.ask, question.actions()) == (3, "position", (1, 2))
    assert parse_message('{"cancel": 3}') == 3


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "7", "null", '"ask"', "{}", '{"id": 1}', '{"ask": "game"}', '{"id": "1", "ask": "game"}',
        '{"id": -1, "ask": "game"}', '{"id": true, "ask": "game"}', '{"id": 1, "ask": 2}', '{"id": 1e99, "ask": "x"}',
        '{"cancel": "1"}', '{"cancel": []}', '{"id": NaN, "ask": "x"}', '{"id": 1, "ask": "' + "x" * 50 + '"}',
        '{"id": 1, "ask": "a\\nb"}', "[" * 100_000, '{"id": 1, "ask": "x", "y": "' + "z" * MOST_BYTES + '"}',
    ],
)  # fmt: skip
def test_other_messages_are_refused_in_a_sentence(text: str):
    with pytest.raises(BadMessage) as caught:
        parse_message(text)
    assert 10 < len(str(caught.value)) < 200 and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "value", [None, 1, "1", {"0": 1}, [1.0], ["1"], [True], [-1], [2**60], [0] * (MOST_ACTIONS + 1)]
)
def test_actions_are_whole_numbers(value):
    with pytest.raises(BadMessage, match="must be a list of at most"):
        Fields({"actions": value}).actions()


def test_fields_have_types_and_bounds():
    fields = Fields({"word": "x" * 10, "number": 5, "yes": True, "group": {"inner": 1}, "none": None})
    assert fields.text("word") == "x" * 10 and fields.number("number", 0, 5) == 5 and fields.flag("yes")
    assert not fields.flag("missing") and fields.number("missing", 0, 9, 4) == 4
    assert fields.group("group").number("inner", 0, 1) == 1
    assert fields.has("word") and not fields.has("none") and not fields.has("missing")
    for wrong in (
        lambda: fields.text("word", 9), lambda: fields.text("number"), lambda: fields.number("number", 0, 4),
        lambda: fields.number("yes", 0, 4), lambda: fields.flag("number"), lambda: fields.group("word"),
        lambda: fields.number("missing", 0, 9),
    ):  # fmt: skip
        with pytest.raises(BadMessage):
            wrong()


def test_a_message_is_measured_in_bytes():
    with pytest.raises(BadMessage, match="bytes"):
        parse_message(json.dumps({"id": 1, "ask": "x", "y": "ä" * (MOST_BYTES // 2)}, ensure_ascii=False))
