"""Hosts that die, are silent, slow, late or of another version, on a cluster in this process; the games are exact."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import wait
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from alphazero.catalogue import registry
from alphazero.cluster import pool as pool_module
from alphazero.cluster.connection import ClusterError, Machine
from alphazero.cluster.pool import DONE, LOST, Host, Pool, answering
from alphazero.cluster.ray_cluster import MatchGuest, Spread
from alphazero.game.record import GameRecord
from alphazero.players.contestants import ContestantText
from alphazero.tournaments.folder import Tournament
from alphazero.tournaments.tournament import make_tournament, play_tournament
from tests.cluster.fake import ActorDiedError, FakeCluster, FakeRay, RayError, machine, run_out_of_patience

GAME = registry.load("tictactoe")
CONTESTANTS = ("random", "greedy", "minimax:2")
GAMES = 40


def make(games: int = GAMES) -> Tournament:
    contestants = list(map(ContestantText.parse, CONTESTANTS))
    return make_tournament("tictactoe", "round-robin", contestants, games, None, seed=5, adaptive=False)


def play(folder: Path, cluster: FakeCluster | None = None, games: int = GAMES) -> list[GameRecord]:
    elsewhere = cluster.spread if cluster else None
    return play_tournament(folder, make(games), GAME, threads=1, device="cpu", elsewhere=elsewhere)


def told(records: Sequence[GameRecord]) -> list[dict[str, Any]]:
    """The games in the order of pairs and numbers, without the time that they took."""
    games = [{name: value for name, value in asdict(record).items() if name != "seconds"} for record in records]
    return sorted(games, key=lambda game: (sorted(game["contestants"]), game["number"]))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return told(play(tmp_path_factory.mktemp("alone") / "t"))


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "SECONDS_BETWEEN_LOOKS", 0.02)


def test_a_tournament_that_was_stopped_goes_on_with_and_without_a_cluster(tmp_path: Path, alone: list[dict[str, Any]]):
    play(tmp_path / "t", FakeCluster([machine("a")]), games=26)  # enough for openings of as many plies as in the end
    play(tmp_path / "t", games=32)
    assert told(play(tmp_path / "t", FakeCluster([machine("a")]))) == alone


def test_hosts_that_die_are_replaced_and_their_games_played_again(tmp_path: Path, alone: list[dict[str, Any]], caplog):
    cluster = FakeCluster([machine("a", 2)])

    def die_at_the_second_answer(actor: int, name: str, call: int) -> None:
        if name == "play" and call == 3 and actor < 4:
            raise ActorDiedError("The actor died unexpectedly")

    cluster.behave = die_at_the_second_answer
    assert told(play(tmp_path / "t", cluster)) == alone
    assert len(cluster.actors) >= 4 and caplog.text.count("its process has died") >= 2


def test_a_silent_host_is_given_up_and_its_late_answer_is_not_heard(
    tmp_path: Path, alone: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, caplog
):
    """As behind a network that is cut, where it does not hear that it should end, and answers while others play."""
    cluster = FakeCluster([machine("a")])
    awake, answered, late = threading.Event(), threading.Event(), list[bytes]()

    def wait(actor: int, name: str, call: int) -> None:
        if name == "play" and actor == 0:
            monkeypatch.setattr(cluster.actors[0][1], "die", lambda: None)
            awake.wait(60)
        elif name == "play":
            awake.set()
            answered.wait(60)

    class Late(Host):
        def play(self, order: Any, parcel: Any) -> tuple[str, Any]:
            kind, content = super().play(order, parcel)
            late.append(content)
            threading.Timer(0.5, answered.set).start()  # time enough for whoever would listen
            return kind, content

    run_out_of_patience(monkeypatch)
    cluster.behave, cluster.bodies = wait, lambda usual, number: (Late if number == 0 else usual)()
    assert told(play(tmp_path / "t", cluster)) == alone
    assert len(cluster.actors) == 2 and "has said nothing" in caplog.text
    heard = {actor: [content for who, (_, content) in cluster.ray.heard if who == actor] for actor in (0, 1)}
    assert late and late[0] not in heard[0]
    assert len(heard[0]) == 2 < len(heard[1]), "an answer to hello and begin, and to nothing else"


def test_a_machine_that_joins_late_is_used_and_one_that_goes_is_not_asked(tmp_path: Path, alone: list[dict[str, Any]]):
    cluster = FakeCluster([machine("a")])

    def swap(actor: int, name: str, call: int) -> None:
        if actor == 0 and name == "play":
            cluster.there = [machine("b")]
            time.sleep(0.2)

    cluster.behave = swap
    assert told(play(tmp_path / "t", cluster)) == alone
    assert [node.identity for node, _ in cluster.actors] == ["a", "b"]


def test_a_pool_that_has_ended_says_why_when_it_is_started_again():
    """As when all machines are refused while the run still makes its networks."""
    cluster = FakeCluster([machine("a")])
    cluster.machines = lambda: (_ for _ in ()).throw(ClusterError("the head does not answer"))  # type: ignore[method-assign]
    pool = Spread(cluster, make(), GAME)._pool
    pool.start()
    pool._thread.join(60)
    pool.start()
    with pytest.raises(ClusterError, match="does not answer"):
        pool.raise_error()
    pool.close()


class OtherFramework(Host):
    def hello(self) -> tuple[str, Any]:
        return DONE, ("0.0.1-0123456789abcdef", 1)


class OtherGame(Host):
    def begin(self, maker: str, settings: Any) -> tuple[str, Any]:
        kind, _ = super().begin(maker, settings)
        return kind, "another"


class Forger(Host):
    """Answers with other games than it was asked for."""

    def play(self, order: Any, parcel: Any) -> tuple[str, Any]:
        return super().play(order._replace(games=tuple(game + 2 for game in order.games)), parcel)


class Loser(Host):
    """Answers with a result that the moves do not have."""

    def play(self, order: Any, parcel: Any) -> tuple[str, Any]:
        kind, content = super().play(order, parcel)
        lines = [json.loads(line) for line in content.splitlines()]
        lines[0]["moves"] = lines[0]["moves"][:-1]
        return kind, "".join(f"{json.dumps(line)}\n" for line in lines).encode()


class Scribbler(Host):
    def play(self, order: Any, parcel: Any) -> tuple[str, Any]:
        return DONE, b"\x80\x04nonsense\n"


class Broken(Host):
    """On a machine whose disk is full."""

    @answering
    def play(self, order: Any, parcel: Any) -> bytes:
        raise OSError(28, "No space left on device", "/tmp/weights")


class Dying(Host):
    def play(self, order: Any, parcel: Any) -> tuple[str, Any]:
        raise ActorDiedError("The actor died unexpectedly: out of memory")


@pytest.mark.parametrize(
    ("body", "reason", "hosts"),
    [
        (OtherFramework, "another version of alphazero (0.0.1-0123456789abcdef", 1),
        (OtherGame, "another version of the game (another", 1),
        (Forger, "not the games that it was asked for", 1),
        (Loser, "is not over", 1),
        (Scribbler, "what it sent does not fit", 1),
        (Broken, "is lost: OSError: [Errno 28] No space left on device", 3),
        (Dying, "3 workers in a row could not play", 3),
    ],
)
def test_a_machine_that_differs_or_fails_is_left_out_and_the_others_play_its_games(
    tmp_path: Path, alone: list[dict[str, Any]], caplog, body: type, reason: str, hosts: int
):
    cluster = FakeCluster([machine("a"), machine("b")])
    cluster.bodies = lambda usual, number: (body if cluster.placing.identity == "a" else usual)()

    def wait(actor: int, name: str, call: int) -> None:  # else the others have played all games by then
        end = time.monotonic() + 60
        while name == "play" and "is left out" not in caplog.text and time.monotonic() < end:
            if cluster.actors[actor][0].identity == "a":
                return
            time.sleep(0.01)

    cluster.behave = wait
    assert told(play(tmp_path / "t", cluster)) == alone
    assert reason in caplog.text and "machine a (127.0.0.1) is left out" in caplog.text
    assert [node.identity for node, _ in cluster.actors].count("a") == hosts


@pytest.mark.parametrize("others", [[], [machine("head", 0)], [machine("learner", 0, gpus=1)]])
def test_if_all_machines_are_refused_the_reasons_are_said(tmp_path: Path, others: list[Machine]):
    """A machine that has no room for workers cannot help."""
    cluster = FakeCluster([machine("a"), *others])
    cluster.bodies = lambda usual, number: OtherFramework()
    with pytest.raises(
        ClusterError, match=r"no machine of the cluster can play: a \(127.0.0.1\): it has another version"
    ):
        play(tmp_path / "t", cluster)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "No module named 'alphazero'",
            "a module cannot be imported there (ModuleNotFoundError: No module named 'alph",
        ),
        ("No module named 'numba'", "a module cannot be imported there (ModuleNotFoundError: No module named 'numba')"),
    ],
)
def test_the_module_that_a_machine_lacks_is_named(said: str, expected: str):
    assert pool_module._reason(ActorDiedError(f"The actor died\nModuleNotFoundError: {said}\n")).startswith(expected)


def test_a_good_machine_that_is_gone_is_waited_for(tmp_path: Path, alone: list[dict[str, Any]]):
    """As of spot machines, with one that was left out beside them."""
    cluster = FakeCluster([machine("a"), machine("b")])
    cluster.bodies = lambda usual, number: (OtherFramework if number == 0 else usual)()

    def leave(actor: int, name: str, call: int) -> None:
        if name == "play" and call == 3 and len(cluster.actors) == 2:
            cluster.there = [machine("a")]
            threading.Timer(0.3, lambda: setattr(cluster, "there", [machine("a"), machine("b")])).start()
            raise ActorDiedError("The actor died unexpectedly")

    cluster.behave = leave
    assert told(play(tmp_path / "t", cluster)) == alone
    assert [node.identity for node, _ in cluster.actors] == ["a", "b", "b"]


class ObjectStoreFullError(RayError):
    """As in ray.exceptions."""


class FullStore(FakeRay):
    """Has no room for what a host asks for."""

    def get(self, future: Any) -> Any:
        raise ObjectStoreFullError("Failed to put object\nin the store")


def test_weights_that_ray_cannot_fetch_are_no_bug(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ray", FullStore())
    host = Host()
    host._generation = -1
    kind, answer = host.play(None, (0, [None]))
    assert kind == LOST and answer.endswith("(ObjectStoreFullError: Failed to put object in the store)")


def test_an_answer_counts_though_its_host_dies_in_the_same_look(tmp_path: Path, alone, caplog):
    """A busy pool sees both at once; the second call, and nothing else, is played again."""
    cluster, orders = FakeCluster([machine("a")]), list[Any]()
    collect = Pool._collect

    def later(pool: Pool) -> None:
        for host in pool.hosts:
            if host.stage == "ready" and host.number == 1:
                wait(host.calls, timeout=60)
        collect(pool)

    def die(actor: int, name: str, call: int) -> None:
        if name == "play" and actor == 0 and call == 3:
            raise ActorDiedError("The actor died unexpectedly")

    class Noting(Host):
        def play(self, order: Any, parcel: Any) -> tuple[str, Any]:
            orders.append((order.pairing, order.games))
            return super().play(order, parcel)

    cluster.behave, cluster.bodies = die, lambda usual, number: Noting()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pool, "_collect", later)
        assert told(play(tmp_path / "t", cluster)) == alone
    assert "its process has died" in caplog.text and len(orders) == len(set(orders)), "no order was played twice"


def test_workers_in_place_of_lost_ones_stay_spread(tmp_path: Path):
    cluster = FakeCluster([machine(name, 4) for name in "abcd"], workers=4)
    pool = Spread(cluster, make(), GAME)._pool
    pool._look_around()
    for _ in range(6):
        pool.hosts[0].played = True
        pool._lose(pool.hosts[0], "planted")
        pool._look_around()
        assert sorted(host.machine.identity for host in pool.hosts) == ["a", "b", "c", "d"]


def test_a_head_that_is_gone_ends_the_command_with_a_sentence(tmp_path: Path):
    cluster = FakeCluster([machine("a")])

    def gone() -> list:
        raise ClusterError("the head of the Ray cluster does not answer")

    cluster.behave = lambda actor, name, call: setattr(cluster, "machines", gone)
    with pytest.raises(ClusterError, match="does not answer"):
        play(tmp_path / "t", cluster)


def test_a_bug_on_a_worker_is_shown_with_its_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(guest: MatchGuest, order: Any) -> bytes:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(MatchGuest, "play", fail)
    with pytest.raises(RuntimeError, match="in worker 1 on a .*\n(.*\n)*.*planted"):
        play(tmp_path / "t", FakeCluster([machine("a")]))


def test_no_more_workers_than_asked_for_and_one_for_each_gpu(tmp_path: Path):
    cluster = FakeCluster([machine("a", 8), machine("b", 8)], workers=3)
    play(tmp_path / "t", cluster)
    placed = [node.identity for node, _ in cluster.actors]
    assert sorted(placed) == ["a", "a", "b"]
    cluster = FakeCluster([machine("a", 8, gpus=2), machine("b", 1), machine("learner", 0, gpus=1)])
    play(tmp_path / "g", cluster)
    assert Counter(node.identity for node, _ in cluster.actors) == {"a": 2, "b": 1}, "a worker needs a core, too"
