"""Viewers: many at once, floods of messages, and searches that end when their viewer leaves (W3, W4)."""

from __future__ import annotations

import gc
import json
import random
import statistics
import threading
import time
import weakref

import numpy as np
import psutil
import pytest
from websockets.exceptions import ConnectionClosed

from alphazero.catalogue import registry
from alphazero.web import message
from alphazero.web.engine import OF_TABLE, OTHERS, WATCHED, Engine, Stage
from alphazero.web.message import Question
from alphazero.web.server import MOST_VIEWERS, PageServer
from alphazero.web.viewer import MOST_QUICK, MOST_SEARCHES, MOST_WAITING
from tests.web.client import talking, wait_for

ENDLESS = {"game": "tictactoe", "actions": [], "player": {"id": "mcts"}, "limit": 200_000}


class Endless:
    """Searches that go on until they are stopped, and how many there are."""

    def __init__(self) -> None:
        self.running = 0

    def search(self, viewer, question, stop):
        self.running += 1
        try:
            while not stop.wait(0.1):
                yield {"more": True}
        finally:
            self.running -= 1


@pytest.fixture(scope="module")
def searches() -> Endless:
    return Endless()


@pytest.fixture(scope="module")
def engine(searches) -> Engine:
    made = Engine(Stage("tictactoe", registry.load("tictactoe"), device="cpu"))
    made.searches |= {"analyse": searches.search, "review": searches.search}
    return made


@pytest.fixture(scope="module")
def server(engine):
    with PageServer(engine, 0) as running:
        yield running


@pytest.fixture(autouse=True)
def nobody_is_left(server, searches):
    """Each test begins without viewers and searches of the one before."""
    viewers = server._server.config.app._app.state.viewers
    wait_for(lambda: not viewers and not searches.running)


def test_questions_are_answered_in_any_order(server):
    with talking(server) as client:
        endless = client.send("analyse", **ENDLESS)
        place = client.ask("position", game="tictactoe", actions=[4])
        assert place["words"] == ["b2"]
        client.cancel(endless)


def test_a_wrong_message_gets_a_sentence_and_the_connection_stays(server):
    with talking(server) as client:
        for text in ("", "{", '{"id": 1}', b"\x00\xff", '{"id": 1, "ask": "nothing"}', '{"id": 1, "ask": "position"}'):
            client.connection.send(text)
            assert client.receive()["error"]
        assert client.ask("welcome")["games"]


def test_numbers_of_numpy_are_sent_and_other_objects_get_a_sentence(server, engine, monkeypatch, caplog):
    """A game's `pieces` may give them; a connection that closed would be asked the same question again, for ever."""
    answers = iter(({"cells": [np.int64(5), np.bool_(True)]}, {"cell": object()}, {"value": float("nan")}))
    monkeypatch.setitem(engine.quick, "position", lambda viewer, question: next(answers))
    with talking(server) as client:
        assert client.ask("position")["cells"] == [5, True]
        for _ in range(2):
            assert "the terminal" in client.ask("position")["error"]
        assert client.ask("welcome")["games"]
    assert len([record for record in caplog.records if "could not be sent" in record.message]) == 2


def test_a_message_that_is_too_large_ends_the_connection(server):
    with talking(server) as client, pytest.raises(ConnectionClosed):
        client.connection.send("x" * (message.MOST_BYTES + 1))
        client.receive()
    with talking(server) as client:
        assert client.ask("welcome")["games"]


def test_messages_are_not_compressed(server):
    """Some hundred bytes would unpack to a message of the largest size, thousands of them before the first is read."""
    with talking(server, compression="deflate") as client:
        assert client.connection.protocol.extensions == []
        assert client.ask("welcome")["games"]


FIELDS = (
    "game actions moves board player side limit path text name number after generation seed fresh first second resigned"
)
VALUES = [None, True, -1, 0, 3, 2**70, 1.5, "", "x", "../..", "<script>", "human", [], [0], [0, 1], ["a"], {}]
VALUES += [{"id": "mcts"}, {"id": "random", "step": 5}, "tictactoe", "nim"]


def messages(count: int, seed: int):
    """Random messages, sound ones with random fields, and pieces of them."""
    rng, kinds = random.Random(seed), [*OF_TABLE, *OTHERS, *WATCHED, "move", "x", ""]
    for number in range(count):
        message = {"id": 10**6 + number, "ask": rng.choice(kinds), "game": rng.choice(("tictactoe", "nim", "?"))}
        for _ in range(rng.randrange(4)):
            message[rng.choice(FIELDS.split())] = rng.choice(VALUES)
        text = json.dumps(message)
        if rng.random() < 0.2:
            cut = rng.randrange(len(text))
            text = (
                text[:cut] + rng.choice(("", "\x00", "}", "\udfff".encode(errors="replace").decode())) + text[cut + 1 :]
            )
        yield text


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_flood_of_messages_is_answered_and_takes_no_memory(server, count: int, caplog):
    def flood(seed: int) -> None:
        with talking(server) as client:
            for number, text in enumerate(messages(count, seed)):
                client.connection.send(text)
                if number % 50 == 0:  # who never reads is made to wait
                    assert client.ask("welcome")["games"]
            assert client.ask("welcome")["games"]

    flood(1)  # games are loaded and compiled
    process = psutil.Process()
    before = process.memory_info().rss
    flood(2)
    grown = process.memory_info().rss - before
    assert grown < 40 << 20, f"{grown / 2**20:.0f} MB"
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_viewer_who_never_reads_is_made_to_wait(server):
    with talking(server, max_queue=1, close_timeout=0.5) as client:
        client.connection.socket.settimeout(2)
        with pytest.raises((TimeoutError, ConnectionClosed, OSError)):
            for i in range(200_000):
                client.connection.send(json.dumps({"id": i, "ask": "game", "game": "tictactoe", "more": "x" * 10_000}))
    with talking(server) as client:
        assert client.ask("welcome")["games"]


def test_a_search_ends_when_its_viewer_leaves(server, searches):
    with talking(server) as client:
        client.send("analyse", **ENDLESS)
        wait_for(lambda: searches.running == 1)
    wait_for(lambda: searches.running == 0)


def test_a_slow_oracle_keeps_no_other_question_waiting(server, engine, monkeypatch):
    """A viewer who steps on wants the exact results of the last position alone."""
    go_on, solved = threading.Event(), []

    def solve(viewer, question):
        go_on.wait(60)
        solved.append(question.id)
        return {"results": []}

    monkeypatch.setitem(engine.quick, "oracle", solve)
    with talking(server) as client, talking(server) as other:
        numbers = [client.send("oracle", game="tictactoe", actions=[action]) for action in range(2 * MOST_QUICK)]
        assert client.ask("position", game="tictactoe", actions=[0])["words"]
        assert other.ask("position", game="tictactoe", actions=[0])["words"] and not solved
        last = other.send("oracle", game="tictactoe", actions=[0])
        go_on.set()
        assert other.receive()["id"] == last
        assert client.ask("oracle", game="tictactoe", actions=[1])["results"] == []
    assert len(solved) <= 4 and numbers[-1] in solved


def test_no_more_searches_at_once_than_there_is_room_for(server):
    """The ninth waits until one of the others leaves."""
    clients = [talking(server) for _ in range(MOST_SEARCHES + 1)]
    opened = [client.__enter__() for client in clients]
    try:
        for client in opened[:-1]:
            client.send("analyse", **ENDLESS)
        for client in opened[:-1]:
            client.receive()
        number = opened[-1].send("analyse", **ENDLESS)
        with pytest.raises(TimeoutError):
            opened[-1].receive(timeout=1)
        clients[0].__exit__(None, None, None)
        assert opened[-1].receive()["id"] == number
    finally:
        for client in clients[1:]:
            client.__exit__(None, None, None)


def test_a_viewers_own_searches_are_bounded(server):
    with talking(server) as client:
        numbers, stopped = [client.send("analyse", **ENDLESS, side=0) for _ in range(12)], set()
        too_many = set(numbers[:-MOST_WAITING])
        while not too_many <= stopped:
            answer = client.receive()
            stopped |= {answer["id"]} if answer.get("stopped") else set()
        assert stopped == too_many


def test_a_number_that_is_used_again_stops_the_search_that_had_it(server, searches):
    with talking(server) as client:
        for _ in range(2 * MOST_WAITING):
            client.connection.send(json.dumps({"id": 7, "ask": "analyse", **ENDLESS, "fresh": True}))
        while client.receive().get("more") is not True:
            pass
        wait_for(lambda: searches.running == 1)
        client.cancel(7)
        wait_for(lambda: searches.running == 0)


def test_a_search_that_is_given_up_before_it_begins_is_forgotten(server, searches, monkeypatch):
    """Large questions, which a viewer cancels while others have all threads, would fill the memory."""
    taken = []

    class Noted(Question, frozen=True, weakref=True):
        def __post_init__(self):
            taken.append(weakref.ref(self))

    with talking(server) as one, talking(server) as two, talking(server) as three:
        for client in (one, two):
            for _ in range(MOST_SEARCHES // 2):
                client.send("analyse", **ENDLESS, fresh=True)
        wait_for(lambda: searches.running == MOST_SEARCHES)
        monkeypatch.setattr(message, "Question", Noted)
        given_up = [three.send("analyse", **ENDLESS) for _ in range(20)]
        three.ask("position", game="tictactoe", actions=[])  # answered when all before it has been taken
        gc.collect()
        assert len([found for found in taken if found()]) in (MOST_WAITING, MOST_WAITING + 1), "the newest are wanted"
        for number in given_up:
            three.cancel(number)
        three.ask("position", game="tictactoe", actions=[])
        gc.collect()
        assert len([found for found in taken if found()]) <= 1


def test_searches_that_are_cancelled_already_do_not_count_among_ones_own(server):
    """One steps through a game that is reviewed, with two analyses side by side: they are asked anew at every step."""
    with talking(server) as client:
        review = client.send(
            "review", game="tictactoe", actions=list(range(30)), player={"id": "mcts"}, simulations=2000
        )
        analyses = [client.send("analyse", **ENDLESS, side=side) for side in (0, 1)]
        for _ in range(6):
            for number in analyses:
                client.cancel(number)
            analyses = [client.send("analyse", **ENDLESS, side=side) for side in (0, 1)]
        told = {}
        while {review, *analyses} - told.keys():
            answer = client.receive()
            told[answer["id"]] = answer
        assert not any(told[number].get("stopped") for number in (review, *analyses))
        for number in (review, *analyses):
            client.cancel(number)


def test_fifty_viewers_and_no_more(server):
    clients = [talking(server) for _ in range(MOST_VIEWERS)]
    opened = [client.__enter__() for client in clients]
    try:
        times = []
        for client in opened * 2:
            begin = time.monotonic()
            assert client.ask("position", game="tictactoe", actions=[0, 1])["words"]
            times.append(time.monotonic() - begin)
        assert statistics.quantiles(times, n=20)[-1] < 2, "200 ms on a machine of one's own"
        with talking(server) as one_more, pytest.raises(ConnectionClosed, match="come back later"):
            one_more.receive()
    finally:
        for client in clients:
            client.__exit__(None, None, None)
    with talking(server) as client:
        assert client.ask("welcome")["games"]


PAYLOADS = [
    "<script>alert(1)</script>", "../../../etc/passwd", "..", ".", "/", "a/../b", "\x00", "nul", "C:\\x", "%2e%2e",
    "'\"><img src=x>",
]  # fmt: skip


@pytest.mark.parametrize("name", PAYLOADS)
def test_names_lead_nowhere(server, name: str):
    """W3: traversal and markup in every name that a message may have."""
    with talking(server) as client:
        for ask in ("run", "run_games", "tournament", "tournament_game"):
            assert client.ask(ask, name=name)["error"]
        for player in (name, f"run:{name}", f"python:{name}:x", f"gtp:{name}"):
            assert client.ask("move", game="tictactoe", actions=[], player={"id": player})["error"]
        assert client.ask("game", game=name)["error"]
        assert client.ask("position", game="tictactoe", moves=name)["error"]
