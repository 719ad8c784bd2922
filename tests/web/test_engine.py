"""The engine's answers, without a server: games, positions, moves, searches, the oracle, records."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from typing import Any

import numpy as np
import pytest

import alphazero as az
from alphazero.catalogue import registry
from alphazero.commands.program import main as alphazero
from alphazero.errors import InputError, Stopped, Terminated
from alphazero.players.contestants import make_player
from alphazero.search.analysis import Analysis
from alphazero.web import searches
from alphazero.web.engine import Engine, Stage
from alphazero.web.message import question_of
from alphazero.web.searches import MOST_TREES, Grown, Stop, Trees
from alphazero.web.seats import SIMULATIONS, size_of, slider_of
from alphazero.web.server import PageServer
from alphazero.web.tables import Table
from tests.web.client import talking

VIEWER = object()


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(Stage("connect4", registry.load("connect4"), ["beginner"], device="cpu"))


@pytest.fixture(scope="module")
def small() -> Engine:
    return Engine(Stage("tictactoe", registry.load("tictactoe"), device="cpu"))


def ask(engine: Engine, kind: str, viewer: object = VIEWER, **fields: Any) -> dict[str, Any]:
    """The answer to a quick question, as it goes through JSON."""
    found = engine.quick[kind](viewer, question_of({"id": 1, "ask": kind, **fields}))
    return json.loads(json.dumps(found, allow_nan=False))


def search(
    engine: Engine, kind: str, viewer: object = VIEWER, stop: Stop | None = None, **fields: Any
) -> list[dict[str, Any]]:
    """All answers to a question that is searched."""
    found = engine.searches[kind](viewer, question_of({"id": 1, "ask": kind, **fields}), stop or Stop())
    return json.loads(json.dumps(list(found), allow_nan=False))


def tree_of(table: Table) -> Grown:
    """A tree of mcts."""
    (seat,) = (seat for seat in table.seats() if seat.id == "mcts")
    return Grown(seat, None, table.game)


# --- games and positions ---


def test_the_page_begins_with_the_games(engine):
    welcome = ask(engine, "welcome")
    assert welcome["game"] == "connect4" and welcome["games"][0] == {"name": "connect4", "title": "Connect 4"}
    assert sorted(game["name"] for game in welcome["games"]) == sorted(registry.NAMES)


@pytest.mark.parametrize("raised", [ValueError, KeyboardInterrupt, Terminated])
def test_nothing_is_shown_if_the_first_net_cannot_be_loaded_or_ctrl_c_comes_first(engine, monkeypatch, raised):
    """A thread that compiled showed its traceback when `serve` was stopped in its first half minute."""

    asked, shown = list[object](), list[object]()

    def fail(seat, *arguments):
        asked.append(seat)
        raise raised

    monkeypatch.setattr("alphazero.web.engine.choose", fail)
    monkeypatch.setattr(threading, "excepthook", shown.append)
    thread = threading.Thread(target=engine.warm)
    thread.start()
    thread.join()
    assert asked and not shown


@pytest.mark.parametrize("name", sorted(registry.NAMES))
def test_every_game_has_a_board_and_contestants(engine, name):
    found = ask(engine, "game", game=name)
    ids = [player["id"] for player in found["players"]]
    assert {"mcts", "minimax", "random", "greedy"} <= set(ids) and len(set(ids)) == len(ids)
    assert len(found["board"]["cells"]) == len(registry.load(name).game.board.cells)
    start = ask(engine, "position", game=name, actions=[])
    assert {click["action"] for click in start["view"]["clicks"]} == set(registry.load(name).game.start().legal_actions)


def test_a_position_tells_how_it_came_about(engine):
    found = ask(engine, "position", game="connect4", moves="4453")
    assert (
        found["actions"] == [3, 3, 4, 2] and found["words"] == ["4", "4", "5", "3"] and found["movers"] == [0, 1, 0, 1]
    )
    again = ask(engine, "position", game="connect4", actions=[3, 3, 4, 2])
    assert again == found and found["view"]["to_play"] == 0 and found["view"]["last"]


def test_moves_may_be_pasted_with_any_white_space(engine):
    for moves in ("4\t4\n5\r\n3", "4\u00a04\u2003 5 3 "):
        assert ask(engine, "position", game="connect4", moves=moves)["actions"] == [3, 3, 4, 2]


def test_a_box_gives_another_move(engine):
    found = ask(engine, "position", game="dots_and_boxes", moves="0 12 3 13")  # the second player completes a box
    then = ask(engine, "position", game="dots_and_boxes", moves="0 12 3 13 20")
    assert found["view"]["to_play"] == 1 and then["movers"] == [0, 1, 0, 1, 1]


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        ("position", {"game": "connect4", "actions": [3] * 7}, "not legal"),
        ("position", {"game": "connect4", "actions": [99]}, "not legal"),
        ("position", {"game": "connect4", "moves": "448"}, "not a legal action"),
        ("position", {"game": "shogi", "actions": []}, "no game"),
        ("position", {"game": "/etc/passwd.py", "actions": []}, "no game"),
        ("position", {"game": "openspiel:hex", "actions": []}, "no game"),
        ("game", {"game": "os"}, "no game"),
        ("tree", {"side": 0, "path": []}, "no search"),
        ("policy", {"game": "connect4", "actions": [], "player": {"id": "mcts"}}, "no network"),
        ("policy", {"game": "connect4", "actions": [], "player": {"id": "python:os:system"}}, "no contestant"),
        ("load", {"text": "{}"}, "game is missing"),
        ("load", {"text": "no json"}, "not valid JSON"),
    ],
)
def test_wrong_questions_get_a_sentence(engine, kind, fields, words):
    with pytest.raises(InputError, match=words):
        ask(engine, kind, viewer=object(), **fields)


# --- contestants ---


def test_sliders_tell_the_strength_that_was_measured(engine):
    players = {player["id"]: player for player in ask(engine, "game", game="connect4")["players"]}
    assert next(iter(players)) == "beginner", "the contestant that was given comes first"
    slider = players["best"]["slider"]
    card = json.loads(registry.load("connect4").nets["best"].with_suffix(".json").read_text())
    assert slider["steps"] == sorted(map(int, card["benchmark"]))
    assert slider["measured"][0] == f"accuracy {card['benchmark']['0']['pons_accuracy']:.1%} on solved positions"
    assert "against mcts:400" in slider["measured"][slider["steps"].index(100)]
    assert players["minimax"]["slider"]["unit"] == "depth" and players["solver"]["slider"] is None


def test_a_strangers_numbers_are_left_out():
    """They can be of any size, and digits are not only those of ASCII."""
    odd = {"\u00b2": {"accuracy": 0.9}, "25": {"accuracy": 10**400}, "50": {"accuracy": float("nan")}}
    told = slider_of({"benchmark": odd | {"100": {"accuracy": 0.5}}, "matches": [{"score": 10**400, "opponent": "x"}]})
    assert told.measured == {100: "accuracy 50.0%"} and told.steps == SIMULATIONS
    assert size_of({"parameters": 10**5000, "hours": 10**400}) == size_of({"hours": 1e308}) == ""


@pytest.mark.parametrize("player", [
    {"id": "beginner", "step": 0}, {"id": "beginner", "step": 100}, {"id": "mcts", "step": 25},
    {"id": "minimax", "step": 2}, {"id": "greedy"}, {"id": "random"}, {"id": "solver"},
])  # fmt: skip
def test_contestants_play(engine, player):
    (found,) = search(engine, "move", game="connect4", actions=[3, 3, 3, 3, 3, 3], player=player, seed=5)
    assert found["action"] in range(7) and found["action"] != 3 and found["word"] == str(found["action"] + 1)


def test_a_contestant_does_not_move_when_the_game_is_over(engine):
    with pytest.raises(InputError, match="over"):
        search(engine, "move", game="connect4", moves="1212121", player={"id": "random"})


def test_given_contestants_play(tmp_path):
    """A function and a player are asked by id alone; so are programs and Python functions of a command line."""

    def last(position: az.Position) -> int:
        return position.legal_actions[-1]

    module = tmp_path / "mine.py"
    module.write_text(
        "def logits(observations):\n    import torch\n    return -torch.arange(9.0).repeat(len(observations), 1)\n"
    )
    given = [last, f"python:{module}:logits"]
    engine = Engine(Stage("tictactoe", registry.load("tictactoe"), given, device="cpu"))
    titles = [player["title"] for player in ask(engine, "game", game="tictactoe")["players"]]
    assert titles[:2] == ["last", f"python:{module}:logits"]
    for id, action in (("given:0", 8), ("given:1", 1)):
        (found,) = search(engine, "move", game="tictactoe", actions=[0], player={"id": id})
        assert found["action"] == action


@pytest.mark.parametrize("contestant", ["nobody", "python:nothing:here", "gtp:/nothing/here", "best", "human"])
def test_wrong_contestants_are_told_at_once(contestant):
    with pytest.raises(InputError):
        Engine(Stage("tictactoe", registry.load("tictactoe"), [contestant], device="cpu"))


def test_a_player_that_fails_is_made_anew_for_the_next_move():
    calls = []

    def fails_once(position: az.Position) -> int:
        calls.append(position)
        return position.legal_actions[0] if len(calls) > 1 else -1

    engine = Engine(Stage("tictactoe", registry.load("tictactoe"), [fails_once], device="cpu"))
    with pytest.raises(InputError):
        search(engine, "move", game="tictactoe", actions=[], player={"id": "given:0"})
    assert search(engine, "move", game="tictactoe", actions=[], player={"id": "given:0"})[0]["action"] == 0


def test_a_player_given_as_an_object_plays_on_after_an_undo():
    player = make_player("mcts:200", registry.load("tictactoe"))
    engine = Engine(Stage("tictactoe", registry.load("tictactoe"), [player], device="cpu"))
    question = {"game": "tictactoe", "actions": [], "player": {"id": "given:0"}}
    stop = Stop()
    stop.set()
    with pytest.raises(Stopped):
        search(engine, "move", stop=stop, **question)
    assert 0 <= search(engine, "move", **question)[0]["action"] < 9
    assert az.match(player, "random", "tictactoe", games=2).num_games == 2


def test_a_move_that_is_cancelled_while_it_waits_for_its_player_ends_at_once():
    """Else such moves keep all threads of the searches, and nobody else is answered."""
    asked, go_on = threading.Event(), threading.Event()

    def slow(position: az.Position) -> int:
        asked.set()
        go_on.wait(60)
        return position.legal_actions[0]

    engine = Engine(Stage("tictactoe", registry.load("tictactoe"), [slow], device="cpu"))
    question, stop = {"game": "tictactoe", "actions": [], "player": {"id": "given:0"}}, Stop()
    first = threading.Thread(target=search, args=(engine, "move"), kwargs=question)
    first.start()
    assert asked.wait(60)
    release = threading.Timer(20, go_on.set)
    release.start()
    threading.Timer(0.1, stop.set).start()
    with pytest.raises(Stopped):
        search(engine, "move", stop=stop, **question)
    assert not go_on.is_set()
    release.cancel()
    go_on.set()
    first.join(60)


def test_an_undo_that_comes_after_the_answer_disturbs_no_later_move():
    player = make_player("mcts:50", registry.load("tictactoe"))
    engine = Engine(Stage("tictactoe", registry.load("tictactoe"), [player, "mcts:60"], device="cpu"))
    for id in ("given:0", "given:1"):
        question, stop = {"game": "tictactoe", "actions": [], "player": {"id": id}}, Stop()
        assert search(engine, "move", stop=stop, **question)
        stop.set()
        assert search(engine, "move", **question)
    player.interrupt()  # meant for a move whose answer was there already
    assert search(engine, "move", **{**question, "player": {"id": "given:0"}})


# --- the analysis ---


def test_an_analysis_grows_and_keeps_the_subtree(small):
    viewer = object()
    fields = {"game": "tictactoe", "player": {"id": "mcts"}, "side": 0}
    reports = search(small, "analyse", viewer, actions=[], limit=2000, **fields)
    counts = [report["simulations"] for report in reports]
    assert counts == sorted(counts) and counts[-1] == 2000 and [report["more"] for report in reports][-1] is False
    best = reports[-1]["lines"][0]
    assert best["visits"] == max(line["visits"] for line in reports[-1]["lines"])
    assert sum(line["visits"] for line in reports[-1]["lines"]) == 2000 and best["words"][0] == best["word"]
    deeper = search(small, "analyse", viewer, actions=[], limit=2500, **fields)
    assert deeper[0]["simulations"] >= 2000, "a search that goes on begins where it was"
    after = search(small, "analyse", viewer, actions=[best["action"]], limit=1, **fields)
    assert after[-1]["simulations"] > 100, "the subtree of the move is kept"
    fresh = search(small, "analyse", viewer, actions=[best["action"]], limit=1, fresh=True, **fields)
    assert fresh[-1]["simulations"] <= 8


def test_after_an_evaluation_that_failed_the_same_position_is_searched_anew():
    works = True

    class Fails(az.NeuralNet):
        load = save = None

        def evaluate(self, observations, legal_masks):
            if not works:
                raise RuntimeError("no answer")
            priors = legal_masks / legal_masks.sum(axis=1, keepdims=True)
            return priors.astype(np.float32), np.zeros(len(priors), np.float32)

    loaded = registry.load("connect4")
    engine, viewer = Engine(Stage("connect4", loaded, [Fails()], device="cpu")), object()
    fields = {"game": "connect4", "player": {"id": "given:0"}, "side": 0}
    for failing in ([3], []):
        assert search(engine, "analyse", viewer, actions=[], limit=100, fresh=True, **fields)[-1]["simulations"] >= 100
        works = False
        with pytest.raises(RuntimeError, match="no answer"):
            search(engine, "analyse", viewer, actions=failing, limit=1000, **fields)
        works = True
        found = search(engine, "analyse", viewer, actions=[], limit=1000, **fields)[-1]
        assert found["simulations"] >= 1000 and sum(line["visits"] for line in found["lines"]) >= 1000


def test_the_tree_can_be_walked(small):
    viewer = object()
    report = search(small, "analyse", viewer, game="tictactoe", player={"id": "mcts"}, actions=[4], limit=800)[-1]
    root = ask(small, "tree", viewer, path=[])
    assert root["visits"] == report["simulations"] == sum(edge["visits"] for edge in root["edges"])
    assert root["mover"] == 1 and root["value"] == pytest.approx(report["value"], abs=1e-3)
    edge = root["edges"][0]
    child = ask(small, "tree", viewer, path=[edge["action"]])
    assert child["visits"] == edge["visits"] - 1, "one simulation evaluated the child itself"
    assert child["actions"] == [4, edge["action"]] and child["mover"] == 0
    assert child["value"] == pytest.approx(-edge["value"], abs=1e-3)
    assert sum(edge["prior"] for edge in root["edges"]) == pytest.approx(1)
    with pytest.raises(InputError, match="not visited"):
        ask(small, "tree", viewer, path=[4])


def test_a_search_that_rests_can_be_looked_into_and_goes_on(small):
    """By a connection, whose reader leaves the search after its last report."""
    fields = {"game": "tictactoe", "player": {"id": "mcts"}, "actions": []}
    with PageServer(small, 0) as server, talking(server) as client:
        assert client.ask("analyse", limit=800, **fields)["simulations"] == 800
        assert client.ask("tree", path=[])["visits"] == 800
        assert client.all("analyse", limit=1000, **fields)[0]["simulations"] >= 800
    table = small.table_named("tictactoe")
    start, tree = table.game.start(), tree_of(table)
    paused = tree.grow(start, 100_000, Stop())
    next(paused)
    paused.close()
    assert tree.position is start


def test_a_search_that_was_cancelled_while_it_waited_leaves_the_tree_alone(small):
    table = small.table_named("tictactoe")
    start, tree = table.game.start(), tree_of(table)
    assert [*tree.grow(start, 100, Stop())][-1]["simulations"] == 100
    stop = Stop()
    stop.set()
    with pytest.raises(Stopped):
        list(tree.grow(start.play(4), 100, stop))
    assert tree.position is start and tree.simulations() == 100
    paused = tree.grow(start, 1000, Stop())
    next(paused)
    with pytest.raises(Stopped):  # it gives its thread back before the other has ended
        list(tree.grow(start.play(4), 100, stop))
    paused.close()
    assert [*tree.grow(start.play(4), 100, Stop())] and tree.position is not start


def test_a_search_that_grows_reads_its_tree_when_nobody_looks_into_it(small, monkeypatch):
    """To count simulations ends those under way, which writes into the tree."""
    table, locked, count = small.table_named("tictactoe"), [], Analysis.simulations.fget
    tree = tree_of(table)
    counted = property(lambda analysis: (locked.append(tree._lock.locked()), count(analysis))[1])
    monkeypatch.setattr(Analysis, "simulations", counted)
    assert [*tree.grow(table.game.start(), 50, Stop())][-1]["simulations"] == 50
    assert locked and all(locked)


def test_an_analysis_sees_a_proven_win(engine):
    report = search(engine, "analyse", game="connect4", player={"id": "beginner"}, moves="121212", limit=100)[-1]
    assert report["proven"] and report["value"] == 1.0 and report["lines"][0]["word"] == "1"


def test_the_policy_without_a_search_is_the_nets(engine):
    game = registry.load("connect4").game
    opinion = az.evaluate(game.position("4453"), az.load_net("beginner", game, device="cpu"))
    found = ask(engine, "policy", game="connect4", moves="4453", player={"id": "beginner"})
    priors = {row["action"]: row["prior"] for row in found["policy"]}
    np.testing.assert_allclose([priors[action] for action in range(7)], opinion.policy, atol=1e-3)
    assert found["value"] == pytest.approx(opinion.value, abs=1e-3)


@pytest.mark.parametrize(("kind", "fields"), [
    ("move", {"actions": [], "player": {"id": "mcts", "step": 6400}}),
    ("move", {"actions": [], "player": {"id": "minimax", "step": 6}}),
    ("analyse", {"actions": [], "player": {"id": "mcts"}, "limit": 200_000}),
    ("review", {"moves": "445321", "player": {"id": "mcts"}, "simulations": 2000}),
])  # fmt: skip
def test_a_search_that_is_not_wanted_any_more_ends_soon(engine, kind, fields):
    stop = Stop()
    threading.Timer(0.3, stop.set).start()
    begin = time.monotonic()
    with contextlib.suppress(Stopped):
        while not stop.is_set():  # a fast machine may finish such a search in that time
            search(engine, kind, stop=stop, game="connect4", **fields)
    assert stop.is_set() and time.monotonic() - begin < 60  # of which compiling takes the most


def test_trees_are_bounded():
    trees = Trees()
    for viewer in range(2 * MOST_TREES):
        trees.put(viewer, 0, object())  # type: ignore[arg-type]
    assert [viewer for viewer, _ in trees] == list(range(MOST_TREES, 2 * MOST_TREES))
    trees.forget(2 * MOST_TREES - 1)
    assert len(trees) == MOST_TREES - 1


def test_large_games_have_smaller_trees(small, monkeypatch):
    monkeypatch.setattr(searches, "Analysis", lambda *arguments: None)  # which compiles the search
    tables = [small.table_named(name) for name in ("tictactoe", "connect4", "gomoku15")]
    rooms = [tree_of(table).room for table in tables]
    assert rooms[:2] == [200_000, 200_000] and 10_000 < rooms[2] < 100_000


# --- records ---


def test_a_game_is_saved_and_loaded_as_records_are(engine, tmp_path, capsys):
    text = ask(engine, "record", game="connect4", moves="4453", first="human", second="club")["text"]
    path = tmp_path / "game.jsonl"
    path.write_text(text + "\n", encoding="utf-8")
    assert alphazero(["replay", str(path)]) == 0
    assert "human - club  4 4 5 3" in capsys.readouterr().out
    found = ask(engine, "load", text=text)
    assert found["actions"] == [3, 3, 4, 2] and found["contestants"] == ["human", "club"] and found["result"] == "*"


def test_a_game_that_somebody_gave_up_is_saved_with_its_result(small):
    """As matches write it: the winner's result, and who gave up and why."""
    fields = {"game": "tictactoe", "actions": [4, 0], "first": "human", "second": "engine"}
    for given, result, forfeit in (
        ({}, "*", ""), ({"resigned": None}, "*", ""), ({"resigned": 0}, "0-1", "human: resigns"),
        ({"resigned": 1, "reason": "no answer\tin 60 s"}, "1-0", "engine: no answer\tin 60 s"),
    ):  # fmt: skip
        saved = json.loads(ask(small, "record", **fields, **given)["text"])
        assert (saved["result"], saved["forfeit"]) == (result, forfeit)
    over = ask(small, "record", **{**fields, "actions": [0, 3, 1, 4, 2]}, resigned=0)
    assert json.loads(over["text"])["result"] == "1-0", "a game that is over cannot be given up"


def test_a_record_of_another_game_is_loaded_too(small):
    game = registry.load("connect4").game
    record = az.match("random", "greedy", "connect4", games=2).games[0]
    from alphazero.game.record import line_of

    found = ask(small, "load", text=line_of(record))
    assert found["game"] == "connect4" and found["result"] == record.result
    assert found["actions"] == list(record.positions(game)[-1].actions)
