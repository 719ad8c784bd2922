"""Self-play on a cluster, without the cluster: what hosts play, how it travels, and that each game counts once."""

from __future__ import annotations

import io
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.cluster import self_play as workers_module
from alphazero.cluster.connection import Machine
from alphazero.cluster.pool import RemoteHost
from alphazero.cluster.ray_cluster import RayCluster
from alphazero.cluster.self_play import (
    CARD,
    CHECKPOINT,
    ClusterWorkers,
    Order,
    RemotePlayer,
    expected_hosts,
    games_of_order,
    slots_of_host,
)  # fmt: skip
from alphazero.errors import InvalidSetting, StorageError
from alphazero.search.placement import make_evaluators
from alphazero.storage.arrays import pack_npz
from alphazero.storage.run_folder import RunFolder
from alphazero.training.parts.arrivals import Arrivals, Chunk, join, pack, raw_bytes, unpack, without
from alphazero.training.parts.lineup import Lineup
from alphazero.training.plan import Assignment, RunPlan
from alphazero.training.selfplay import FinishedGame, SelfPlay
from alphazero.training.selfplay.shown_games import actions_of
from alphazero.training.worker_process import WorkerSettings, make_net
from tests.training.test_coach import TINY

GAME = registry.load("tictactoe")
SLOTS, SEED = 4, 3


@pytest.fixture(scope="module")
def settings() -> WorkerSettings:
    assert GAME.load_again
    return WorkerSettings(
        load=GAME.load_again, parts={}, config=replace(TINY, net=TINY.net_settings, cache_size=1 << 12),
        playing_net=TINY.net_settings, device="cpu", inference="torch", deterministic=False, threads=1,
        num_slots=SLOTS, seed=SEED,
    )  # fmt: skip


@pytest.fixture(scope="module")
def weights(settings: WorkerSettings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a checkpoint as a parcel has it."""
    folder = tmp_path_factory.mktemp("weights")
    _, _, net = make_net(settings, settings.playing_net)
    net.save(folder / CHECKPOINT, {"game": "tictactoe", "net": TINY.net_settings})
    assert (folder / CARD).exists()
    return folder


def order(first: int, count: int, num_games: int, seconds: float = 60.0, show: bool = False) -> Order:
    return Order(first, count, num_games, seconds, show)


def files_in(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in (CHECKPOINT, CARD)}


def chunk_of(content: bytes) -> Chunk:
    return unpack(content, "a chunk", GAME.game, 1000)


@pytest.fixture(scope="module")
def chunks(settings: WorkerSettings, weights: Path) -> list[Chunk]:
    """The chunks of six orders, one of which had no time at all, and one of which had new weights."""
    player = RemotePlayer(settings)
    player.take(0, files_in(weights))
    found = [chunk_of(player.play(order(100, 2 * SLOTS + 5, 5, show=True)))]
    found += [chunk_of(player.play(order(300, 5, 5)))]
    found += [chunk_of(player.play(order(400, 5, 5, seconds=0.0)))]
    player.take(1, files_in(weights))
    found += [chunk_of(player.play(order(500 + 10 * number, 5, 5))) for number in (3, 4, 5)]
    return found


def numbers_of(chunk: Chunk) -> list[int]:
    return chunk.games[:, 0].tolist()


# --- what a host plays ---


def test_a_host_plays_the_numbers_that_it_is_given_each_once(chunks: list[Chunk]):
    played = [number for chunk in chunks for number in numbers_of(chunk)]
    given = [*range(100, 113), *range(300, 305), *range(400, 405), *range(530, 535), *range(540, 545), *range(550, 555)]
    assert len(played) == len(set(played)) and set(played) <= set(given)
    assert set(played) | {max(given)} >= set(range(100, 113))  # in their order: the first ones are over


def test_a_host_plays_as_many_games_as_it_is_asked_for_but_for_those_that_end_together(chunks: list[Chunk]):
    assert chunks[2].num_games == 0  # no time
    asked = 5 * (len(chunks) - 1)
    assert asked <= sum(chunk.num_games for chunk in chunks) < asked + SLOTS


def test_each_game_has_its_first_weights(chunks: list[Chunk]):
    assert {*chunks[0].games[:, 2]} == {0}
    later = np.concatenate([chunk.games for chunk in chunks[3:]])
    assert {*later[:, 2]} == {0, 1}, "some games were going on when the weights came"
    begun_late = later[later[:, 0] >= 530]
    assert len(begun_late) and (begun_late[:, 2] == 1).all()


def test_the_first_chunk_shows_games_and_the_others_do_not(chunks: list[Chunk]):
    assert len(chunks[0].shown) == 4 and not chunks[1].shown
    for finished in chunks[0].shown:
        assert finished.number in numbers_of(chunks[0]) and len(finished.states) >= 6


def test_counts_are_those_since_the_last_chunk(chunks: list[Chunk]):
    assert [chunk.counts.games for chunk in chunks] == [chunk.num_games for chunk in chunks]
    assert sum(chunk.counts.positions for chunk in chunks) >= sum(len(chunk.samples) for chunk in chunks)


def test_a_game_on_a_cluster_is_the_game_that_a_thread_plays(settings: WorkerSettings, weights: Path):
    """Orders, which stop the search and go on, change nothing: a game is a function of weights, seed and number."""
    player = RemotePlayer(settings)
    player.take(0, files_in(weights))
    remote = join([chunk_of(player.play(order(20 * i, 2 * SLOTS + 6, 6))) for i in range(4)])
    _, kernels, net = make_net(settings, settings.playing_net)
    net.load(weights / CHECKPOINT)
    (evaluate,) = make_evaluators(kernels, net, 1, settings.config.cache_size)
    local = SelfPlay(kernels, settings.config.self_play, settings.config.search, evaluate, SLOTS, SEED)
    samples = local.play(40)
    there = by_number(Chunk(samples, local.ended_games()))
    here = by_number(remote)
    common = there.keys() & here.keys()
    assert len(common) >= 10
    for number in common:
        for name in ("states", "policies", "outcomes", "values"):
            assert np.array_equal(here[number][name], there[number][name]), (number, name)


def by_number(chunk: Chunk) -> dict[int, dict[str, np.ndarray]]:
    ends = np.cumsum(chunk.games[:, 1])
    return {
        int(number): {name: array[end - length : end] for name, array in chunk.samples.arrays().items()}
        for (number, length, _), end in zip(chunk.games, ends, strict=True)
    }


# --- how it travels ---


def test_a_chunk_is_no_larger_than_its_numbers(chunks: list[Chunk]):
    whole = join(chunks)
    assert len(pack(whole)) < raw_bytes(GAME.game, len(whole.samples), whole.num_games)


def test_every_flipped_bit_and_every_cut_of_a_chunk_is_refused_or_changes_nothing(chunks: list[Chunk]):
    content = pack(chunks[1])
    rng = np.random.default_rng(0)
    for place in rng.integers(len(content), size=200):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        try:
            there = unpack(bytes(damaged), "a chunk", GAME.game, 20)
        except StorageError:
            continue
        assert np.array_equal(there.samples.policies, chunks[1].samples.policies)  # a date in the archive's directory
        assert np.array_equal(there.games, chunks[1].games)
    for length in range(0, len(content), 37):
        with pytest.raises(StorageError):
            unpack(content[:length], "a chunk", GAME.game, 20)


def arrays_of(chunk: Chunk, **changed: np.ndarray) -> bytes:
    with np.load(io.BytesIO(pack(chunk)), allow_pickle=False) as archive:
        return pack_npz({name: archive[name] for name in archive.files} | changed)


def shown_after(plies: int) -> dict[str, np.ndarray]:
    """A game to show that has so many random plies before it."""
    return {"shown": np.array([[1, 2, plies]]), "shown_states": np.zeros((2, 2), np.uint64)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: {"games": c.games[:-1]}, "do not fit"),
        (lambda c: {"games": np.concatenate([c.games[:1], c.games[:1], c.games[2:]])}, "do not fit"),
        (lambda c: {"games": c.games - [[10_000, 0, 0]]}, "its values lie between"),
        (lambda c: {"policies": np.full_like(c.samples.policies, np.nan)}, "its values lie between"),
        (lambda c: {"values": c.samples.values * 0 + 3}, "its values lie between"),
        (lambda c: {"states": c.samples.states[:, :1]}, "is uint64"),
        (lambda c: {"shown": np.array([[1, 2, 0]])}, "do not fit"),
        (lambda c: shown_after(9), "do not fit"),
        (lambda c: shown_after(1 << 60), "do not fit"),
        (lambda c: {"more": np.zeros(3)}, "holds the arrays"),
    ],
)
def test_a_chunk_that_cannot_be_is_refused(chunks: list[Chunk], change, message: str):
    with pytest.raises(StorageError, match=message):
        chunk_of(arrays_of(chunks[1], **change(chunks[1])))


def test_a_game_to_show_that_ends_before_its_random_plies_do_is_left_out():
    finished = [FinishedGame(number, np.zeros((1, 2), np.uint64), 9) for number in range(50)]
    assert [actions_of(GAME.game, each, SEED) for each in finished] == [None] * 50, "most games end sooner"


def test_games_are_left_out_with_their_samples(chunks: list[Chunk]):
    chunk, dropped = chunks[0], np.zeros(chunks[0].num_games, bool)
    dropped[1] = True
    kept = by_number(without(chunk, dropped))
    assert kept.keys() == by_number(chunk).keys() - {numbers_of(chunk)[1]}
    for number, arrays in kept.items():
        assert np.array_equal(arrays["policies"], by_number(chunk)[number]["policies"])


# --- each game counts once ---


@pytest.fixture
def folder(tmp_path: Path):
    with RunFolder.create(tmp_path / "run", {}) as run:
        yield run


def test_what_arrives_is_on_disk_before_it_counts(folder: RunFolder, chunks: list[Chunk]):
    inbox = Arrivals(folder, GAME.game, 1000)
    inbox.add([chunks[0], chunks[2], chunks[1]])
    assert inbox.num_games == chunks[0].num_games + chunks[1].num_games
    assert len(list(folder.path.glob("arrived_*.npz"))) == 1
    inbox.add([chunks[2]])
    assert len(list(folder.path.glob("arrived_*.npz"))) == 1, "an empty chunk leaves no file"


def test_after_a_kill_what_waited_waits_and_what_was_taken_does_not(folder: RunFolder, chunks: list[Chunk]):
    """Killed before the commit of a generation, or between it and the removal of the files that it took."""
    inbox = Arrivals(folder, GAME.game, 1000)
    for chunk in chunks[:2]:
        inbox.add([chunk])
    taken = inbox.take(1)
    assert taken is not None and numbers_of(taken) == numbers_of(chunks[0])
    before = Arrivals(folder, GAME.game, 1000)
    assert before.restore(()) == max(map(max, map(numbers_of, chunks[:2]))) + 1
    assert before.num_games == chunks[0].num_games + chunks[1].num_games
    after = Arrivals(folder, GAME.game, 1000)
    assert after.restore(inbox.taken) == max(numbers_of(chunks[1])) + 1
    waiting = after.take(1000)
    assert waiting is not None and numbers_of(waiting) == numbers_of(chunks[1])
    assert len(list(folder.path.glob("arrived_*.npz"))) == 1
    after.add([chunks[3]])
    assert after.taken != inbox.taken, "numbers of arrivals are not used again"
    after.committed()
    assert len(list(folder.path.glob("arrived_*.npz"))) == 1 and not after.taken


def test_games_of_old_weights_are_left_out_and_counted(folder: RunFolder, chunks: list[Chunk]):
    inbox = Arrivals(folder, GAME.game, 1000)
    inbox.add(chunks)
    old = sum(int((chunk.games[:, 2] < 1).sum()) for chunk in chunks)
    total = inbox.num_games
    inbox.leave_out(1)
    assert inbox.num_games == total - old and inbox.count_left_out() == old and inbox.count_left_out() == 0


# --- orders and answers ---


class NoCluster(RayCluster):
    """A cluster of one machine that nobody asks for hosts."""

    def machines(self) -> list[Machine]:
        return [Machine("n", "host", "127.0.0.1", 2, 0)]


def host(number: int) -> RemoteHost:
    return RemoteHost(number, Machine("n", "host", "127.0.0.1", 2, 0), None, stage="ready")


@pytest.fixture
def workers(folder: RunFolder, weights: Path) -> ClusterWorkers:
    plan = RunPlan(GAME, TINY, ["cpu"], 1, SEED, False, cluster=(cluster := NoCluster("local")))
    assignment = Assignment(
        plan, None, TINY.net, "torch", lambda: (0, weights / CHECKPOINT), Arrivals(folder, GAME.game, 1000), [0]
    )  # type: ignore[arg-type]
    found = ClusterWorkers(cluster, assignment)
    assert found.worker.files() is not None
    for number in (1, 2):
        found.worker.settings(host(number))
    return found


def answer(settings: WorkerSettings, weights: Path, order: Order, generation: int = 0) -> bytes:
    player = RemotePlayer(replace(settings, num_slots=slots_of_host(TINY, 2)))
    player.take(generation, files_in(weights))
    return player.play(order)


def test_an_answer_makes_games_that_wait_and_counts_once(workers: ClusterWorkers, settings, weights):
    play, first_host = workers.worker, host(1)
    orders = [play.next_order(first_host) for _ in range(2)]
    content = answer(settings, weights, orders[0])
    play.take(first_host, orders[0], content)
    play.taken()
    assert (there := workers.inbox.num_games) >= orders[0].num_games
    assert play._counts.games == there and play.bytes == len(content)
    for number, other in ((1, orders[1]), (2, play.next_order(host(2)))):  # the same games again, and from another host
        with pytest.raises(StorageError, match="nobody asked it for"):
            play.take(host(number), other, content)
    play.settings(host(3))
    order = play.next_order(host(3))
    with pytest.raises(StorageError, match="never played"):
        play.take(host(3), order, answer(settings, weights, order, generation=7))
    play.taken()
    assert workers.inbox.num_games == there


@pytest.mark.parametrize(("games", "expected"), [(0.5, 1), (4, 1), (16, 2), (64, 8), (190, 8), (512, 21), (4096, 170)])
def test_orders_are_a_small_part_of_a_generation_and_not_too_small_to_pay(games: float, expected: int):
    assert games_of_order(games) == expected


def test_hosts_that_join_later_play_fewer_games_at_once_and_get_smaller_orders(
    workers: ClusterWorkers, monkeypatch: pytest.MonkeyPatch
):
    """Else sixty-four of them would have many generations under way, all by old weights."""
    play, node = workers.worker, host(1).machine
    play.wanted = 1024
    before = play.next_order(host(1)).num_games
    monkeypatch.setattr(workers._cluster, "machines", lambda: [replace(node, cpus=64)], raising=False)
    config = replace(TINY, self_play=replace(TINY.self_play, games_per_generation=1024, num_slots=512))
    play._plan = replace(play._plan, config=config)
    slots = [play.settings(host(number)).num_slots for number in range(3, 65)]
    assert sum(slots) <= 1024 and set(slots) == {16}
    after = play.next_order(host(1)).num_games
    assert (before, after) == (games_of_order(1024 / 2), games_of_order(1024 / 64))


@pytest.mark.parametrize(
    ("asked", "there", "expected"), [(None, 4, 4), (2, 4, 2), (1024, 2, 2), (3, 0, 1), (None, 0, 1)]
)
def test_the_hosts_that_a_cluster_has_room_for(asked: int | None, there: int, expected: int):
    class Machines(RayCluster):
        def machines(self) -> list[Machine]:
            return [Machine("n", "host", "127.0.0.1", there, 0), Machine("g", "learner", "127.0.0.1", 0, 1)]

    assert expected_hosts(Machines("local", asked)) == expected


def test_no_number_is_given_twice_even_if_a_host_is_lost(workers: ClusterWorkers):
    orders = [workers.worker.next_order(host(number)) for number in (1, 2, 1)]
    workers.worker.lose(host(1), orders[::2])
    orders.append(workers.worker.next_order(host(2)))
    given = [number for each in orders for number in range(each.first_game, each.first_game + each.new_games)]
    assert len(given) == len(set(given)) > 0


def test_no_orders_are_given_while_the_next_generation_waits(workers: ClusterWorkers, chunks: list[Chunk]):
    workers.worker.wanted = 3
    workers.inbox.add([chunks[0]])
    assert workers.worker.next_order(host(1)) is None
    workers.inbox.take(3)
    assert workers.worker.next_order(host(1)) is not None


@pytest.mark.parametrize(
    ("threads", "cores", "rest"), [(1, 1, True), (1, 2, False), (4, 4, True), (16, 16, False)], ids=str
)
def test_hosts_beside_a_learner_that_takes_all_cores_rest_until_the_next_network_is_known(
    workers: ClusterWorkers, monkeypatch: pytest.MonkeyPatch, threads: int, cores: int, rest: bool
):
    """A learner takes four threads at most."""
    workers._plan = replace(workers._plan, threads=threads)
    monkeypatch.setattr(workers_module, "count_cores", lambda: cores)
    monkeypatch.setattr(workers._cluster, "here", lambda: host(1).machine.identity, raising=False)
    elsewhere = replace(host(2), machine=replace(host(2).machine, identity="m"))

    def learn() -> str:
        assert (workers.worker.next_order(host(1)) is None) == rest
        assert workers.worker.next_order(elsewhere) is not None
        return "learned"

    assert workers.learn(None, None, learn) == "learned"  # type: ignore[arg-type]
    assert (workers.worker.next_order(host(1)) is None) == rest, "the gate needs the cores, too"
    workers.forget()
    assert workers.worker.next_order(host(1)) is not None


def test_a_game_is_as_old_as_the_networks_since_its_first_weights(workers: ClusterWorkers, chunks: list[Chunk]):
    worker = workers.worker
    worker.last = replace(chunks[0], games=np.array([[1, 5, 0], [2, 5, 3], [3, 5, 4], [4, 5, 9]]))
    workers.worker.versions = [0, 3, 9]
    assert worker.ages().tolist() == [2, 1, 1, 0]
    assert worker.oldest() == 0
    workers.worker.versions = list(range(workers_module.MOST_AGE + 3))
    assert worker.oldest() == 2


def test_a_line_of_a_generation_that_was_never_finished_names_no_network(folder: RunFolder):
    """Killed between its line and its manifest, a generation is played again."""
    plan = RunPlan(GAME, TINY, ["cpu"], 1, SEED, False, cluster=NoCluster("local"))
    lineup = Lineup(plan, folder, threading.Event(), 1, None)
    for generation in (1, 2, 3):
        folder.append_metrics({"generation": generation, "promoted": generation != 2, "seconds": 1.0})
    assert lineup._make_workers(None).worker.versions == [0, 1]


# --- what is refused ---


def test_deterministic_and_a_cluster_exclude_each_other():
    with pytest.raises(InvalidSetting, match="deterministic and cluster exclude each other"):
        RunPlan(GAME, TINY, ["cpu"], 1, 0, True, cluster=RayCluster("local"))


def test_a_cluster_takes_one_device_and_a_game_that_can_be_imported():
    with pytest.raises(InvalidSetting, match="learns on one device"):
        RunPlan(GAME, TINY, ["cpu", "cpu"], 2, 0, False, cluster=RayCluster("local"))
    made = type("Made", (type(GAME.game),), {"__module__": "__main__"})
    with pytest.raises(InvalidSetting, match="cannot import it"):
        RunPlan(registry.of(made), TINY, ["cpu"], 1, 0, False, cluster=RayCluster("local"))


def test_a_network_that_takes_over_counts_for_the_age_of_games_that_wait(
    workers: ClusterWorkers, chunks, weights: Path
):
    """The pool looks for new files only a few times a second."""
    play = workers.worker
    play.versions[:] = range(9)
    workers.inbox.add([chunks[0]])
    play._assignment = replace(
        play._assignment, playing=lambda: (9, weights / CHECKPOINT)
    )  # the ninth network since the games began
    workers.forget()
    workers.inbox.leave_out(workers.worker.oldest())
    assert workers.inbox.num_games == 0 and play.versions == list(range(10))
    assert play.files() is not None and play.versions == list(range(10))
