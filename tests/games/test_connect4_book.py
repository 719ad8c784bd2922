"""The opening book: its positions against the rules of the game, its table, its scores, and how it is made."""

import functools
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from alphazero.commands.shared import run_command
from alphazero.game import Position
from alphazero.game.kernels import Kernels
from alphazero.storage.arrays import write_npz
from benchmarks.frozen import connect4_book as module
from benchmarks.frozen.connect4_book import look_up_all, main, make_book, quiet_positions
from games.connect4.solver import BOOK_FILE, GAME, Solver, read_book
from games.connect4.solver_kernels import BOOK_BITS, BOOK_HEADER, BOOK_PLY
from tests.games.connect4_positions import states_of, written

KERNELS = Kernels(GAME)


def mirrored(states: np.ndarray) -> np.ndarray:
    columns = [states >> np.uint64(7 * column) & np.uint64(127) for column in range(7)]
    return np.bitwise_or.reduce([bits << np.uint64(7 * (6 - column)) for column, bits in enumerate(columns)])


def smaller_images(states: np.ndarray) -> list[tuple[int, int]]:
    """Every state or its mirror image, whichever is smaller; in order, as often as they come."""
    pairs = zip(states.tolist(), mirrored(states).tolist(), strict=True)
    return sorted(min(tuple(state), tuple(image)) for state, image in pairs)


# --- the positions ---


def children_of(states: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`(rows, children, won)`: of every legal action of every state, whether it makes four."""
    masks, _, _ = KERNELS.describe_all(states)
    rows, actions = np.nonzero(masks)
    children = states[rows]
    KERNELS.play(children, np.zeros(len(rows), np.int8), actions)
    return rows, children, KERNELS.describe_all(children)[2] < 0


def can_win_at_once(states: np.ndarray) -> np.ndarray:
    rows, _, won = children_of(states)
    return np.bincount(rows[won], minlength=len(states)) > 0


def has_safe_action(states: np.ndarray) -> np.ndarray:
    rows, children, _ = children_of(states)
    return np.bincount(rows[~can_win_at_once(children)], minlength=len(states)) > 0


@pytest.fixture(scope="module")
def positions_by_ply() -> list[np.ndarray]:
    """All positions of 0 to 7 stones that are not won, mirror images and all, by playing on from the start."""
    plies = [KERNELS.start_states(1)]
    for _ in range(7):
        _, children, won = children_of(plies[-1])
        plies.append(np.unique(children[~won], axis=0))
    return plies


@pytest.mark.parametrize("ply", [0, 1, 5, 7])
def test_the_positions_are_those_reached_by_play_that_nobody_is_about_to_win(ply, positions_by_ply):
    states = positions_by_ply[ply]
    quiet = states[~can_win_at_once(states)]
    quiet = quiet[has_safe_action(quiet)]
    found = quiet_positions(ply)
    assert found.dtype == np.uint64 and found.shape[1] == 2
    assert smaller_images(found) == sorted(set(smaller_images(quiet)))
    assert ply < 5 or len(quiet) < len(states), "some should have been left out"


# --- the table ---


@pytest.fixture(scope="module")
def some_states() -> np.ndarray:
    """Distinct positions of 7 stones in random order, no two of them mirror images."""
    return np.random.default_rng(0).permutation(quiet_positions(7))


@pytest.mark.parametrize("count", [1, 2, 3, 7, 100, 5000])
def test_a_book_gives_back_what_was_put_in_for_a_position_and_its_mirror_image(count, some_states):
    for seed in range(1 if count > 1000 else 10):
        rng = np.random.default_rng(seed)
        states = rng.choice(some_states, count, replace=False)
        scores = rng.integers(-15, 15, count).astype(np.int8)
        book = make_book(states, scores)
        assert book.dtype == np.uint8
        np.testing.assert_array_equal(look_up_all(states, book), scores)
        np.testing.assert_array_equal(look_up_all(mirrored(states), book), scores)
    if count == 5000:
        assert len(book) < 2 * count * BOOK_BITS / 8
        assert set(scores) == set(range(-15, 15))


def test_every_cell_in_use_matters(some_states):
    states, scores = some_states[:100], np.zeros(100, np.int8)
    book = make_book(states, scores)
    _, num_segments, segment_size = book[:BOOK_HEADER].view("<u8").tolist()
    num_bits = BOOK_BITS * (num_segments + 2) * segment_size
    assert len(book) == BOOK_HEADER + math.ceil(num_bits / 8) + 1
    changed = np.empty((num_bits, 100), bool)
    for bit in range(num_bits):
        damaged = book.copy()
        damaged[BOOK_HEADER + bit // 8] ^= 1 << bit % 8
        changed[bit] = look_up_all(states, damaged) != scores
    assert (changed.sum(axis=0) == 3 * BOOK_BITS).all(), "three cells have a position's score"
    assert changed.any(axis=1).mean() > 0.6, "few cells should lie idle"


def test_what_a_book_cannot_hold_is_refused(some_states):
    for score in (-16, 17):
        with pytest.raises(ValueError, match="does not give back"):
            make_book(some_states[:10], np.full(10, score, np.int8))
    with pytest.raises(ValueError, match="equal positions"):
        make_book(np.concatenate([some_states[:10], mirrored(some_states[:1])]), np.zeros(11, np.int8))


# --- the book that comes with the solver ---


@pytest.fixture(scope="module")
def shipped() -> np.ndarray:
    return read_book(BOOK_FILE)


def quiet_openings(count: int, seed: int) -> list[Position]:
    """Positions of the book's ply, by random play."""
    rng, positions = np.random.default_rng(seed), []
    while len(positions) < count:
        position = GAME.start()
        while position.ply < BOOK_PLY and not position.terminal:
            position = position.play(int(rng.choice(position.legal_actions)))
        state = position.state[None].copy()
        if not position.terminal and not can_win_at_once(state)[0] and has_safe_action(state)[0]:
            positions.append(position)
    return positions


@pytest.mark.parametrize("count", [12, pytest.param(500, marks=pytest.mark.slow)])
def test_the_shipped_book_says_what_the_solver_finds_without_it(count, shipped):
    states = states_of(quiet_openings(count, seed=count))
    expected = Solver(book=False).solve_all(states)
    np.testing.assert_array_equal(look_up_all(states, shipped), expected)
    np.testing.assert_array_equal(look_up_all(mirrored(states), shipped), expected)
    assert min(expected) < 0 < max(expected)


def test_the_shipped_book_says_what_another_solver_does(shipped):
    bitbully = pytest.importorskip("bitbully")
    agent = bitbully.BitBully("12-ply-dist")
    positions = quiet_openings(500, seed=1)
    expected = [agent.mtdf(bitbully.Board(list(position.actions))) for position in positions]
    stored = look_up_all(states_of(positions), shipped).tolist()
    wrong = [written(position) for position, a, b in zip(positions, stored, expected, strict=True) if a != b]
    assert not wrong and len(set(stored)) > 15 and BOOK_FILE.stat().st_size <= 4_000_000


# --- the command ---


def run_book(*arguments: object) -> int:
    return run_command(main, [str(argument) for argument in arguments])


def error_line(capsys: pytest.CaptureFixture[str]) -> str:
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    return lines[0]


@functools.cache
def late_states() -> np.ndarray:
    """Some distinct positions of 26 stones, quickly solved, in the stead of those of 12."""
    rng, found = np.random.default_rng(6), {}
    while len(found) < 40:
        position = GAME.start()
        while position.ply < 26 and not position.terminal:
            position = position.play(int(rng.choice(position.legal_actions)))
        state = position.state[None].copy()
        if not position.terminal and not can_win_at_once(state)[0] and has_safe_action(state)[0]:
            found[smaller_images(state)[0]] = state[0]
    return np.array(list(found.values()))


@pytest.fixture
def small_book(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Where the book goes now; it is of `late_states` alone."""
    asked = []
    monkeypatch.setattr(module, "quiet_positions", lambda ply: asked.append(ply) or late_states())
    monkeypatch.setattr(module, "BOOK_FILE", tmp_path / "book.npz")
    yield tmp_path / "book.npz"
    assert set(asked) <= {BOOK_PLY}


def test_making_the_book_takes_the_scores_and_checks_them(small_book, monkeypatch, capsys):
    monkeypatch.setattr(module, "bitbullys_scores", Solver(threads=1, book=False).solve_all)
    assert run_book("--make", "--check", 40) == 0
    assert capsys.readouterr().out == "all 40 positions checked agree with the solver\n"
    states = late_states()
    stored = look_up_all(states, read_book(small_book))
    np.testing.assert_array_equal(stored, Solver(threads=1, book=False).solve_all(states))
    assert len(set(stored.tolist())) > 5


def test_bitbully_and_our_solver_have_the_same_scores():
    pytest.importorskip("bitbully")
    states = states_of(quiet_openings(20, seed=3))
    np.testing.assert_array_equal(module.bitbullys_scores(states), Solver(threads=1).solve_all(states))


def test_bitbully_is_asked_for_where_it_is_missing(small_book, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "bitbully", None)
    assert run_book("--make") == 2
    assert "pip install bitbully" in error_line(capsys)
    assert not small_book.exists()


def test_a_book_of_wrong_scores_is_found_out(small_book, capsys):
    states = late_states()
    scores = Solver(threads=1, book=False).solve_all(states)
    write_npz(small_book, {"book": make_book(states, scores)})
    assert run_book("--check", 40) == 0
    assert capsys.readouterr().out == "all 40 positions checked agree with the solver\n"
    scores[17] += 1
    write_npz(small_book, {"book": make_book(states, scores)})
    assert run_book("--check", 40) == 2
    assert f"score of the position {states[17].tolist()} is wrong" in error_line(capsys)


def test_a_missing_or_damaged_book_is_said_so(small_book, capsys):
    assert run_book("--check", 5) == 2
    assert error_line(capsys) == f"error: there is no file {small_book}"
    small_book.write_bytes(b"no book")
    assert run_book("--check", 5) == 2
    assert error_line(capsys).startswith(f"error: {small_book} is damaged, or was not written by alphazero")


@pytest.mark.slow
def test_the_shipped_book_passes_its_check_and_covers_all_its_positions(capsys):
    assert run_book("--check", 300, "--seed", 1) == 0
    out, err = capsys.readouterr()
    assert out == "all 300 positions checked agree with the solver\n" and "error" not in err
    assert len(quiet_positions(BOOK_PLY)) == 4_116_273
