"""2048 against plain lists, and against moves worked out by hand."""

import numpy as np
import pytest

from alphazero.game import Position
from alphazero.game.kernels import kernels_of
from alphazero.players.baselines import RandomPlayer
from games.twenty48.benchmark import largest_tiles, make_benchmark, play
from games.twenty48.game import LEFT, POINTS, Twenty48, is_terminal, transform

GAME = Twenty48()


def pushed(line: list[int]) -> tuple[list[int], int]:
    """A line of tiles after a push to its front, and the points won; the slow way."""
    tiles, merged, points = [n for n in line if n], [], 0
    while tiles:
        first = tiles.pop(0)
        if tiles and tiles[0] == first:
            first += tiles.pop(0)
            points += first
        merged.append(first)
    return merged + [0] * (4 - len(merged)), points


def after(tiles: list[int], action: str) -> tuple[list[int], int]:
    """The board after an action without its new tile, and the points won."""
    board = np.array(tiles).reshape(4, 4)
    turned = board.T if action in ("up", "down") else board
    turned = turned[:, ::-1] if action in ("down", "right") else turned
    lines = [pushed(row) for row in turned.tolist()]
    turned = np.array([row for row, _ in lines])
    turned = turned[:, ::-1] if action in ("down", "right") else turned
    board = turned.T if action in ("up", "down") else turned
    return board.ravel().tolist(), sum(points for _, points in lines)


def with_tiles(tiles: list[int]) -> Position:
    word = sum((n.bit_length() - 1 if n else 0) << 4 * cell for cell, n in enumerate(tiles))
    return Position(GAME, np.array([word, 0, 0], np.uint64), 0, ())


def roll(position: Position, rng: np.random.Generator) -> Position:
    while position.chances:
        position = position.play(int(rng.choice(len(position.chances), p=position.chances)))
    return position


@pytest.mark.parametrize("seed", range(3))
def test_games_go_as_plain_lists_do(seed: int):
    rng = np.random.default_rng(seed)
    position, points = roll(GAME.start(), rng), 0
    while not position.terminal:
        tiles = GAME.tiles(position.state)
        changing = [word for word in ("up", "down", "left", "right") if after(tiles, word)[0] != tiles]
        assert [position.format(action) for action in position.legal_actions] == changing
        word = str(rng.choice(changing))
        position = position.play(position.parse(word))
        expected, won = after(tiles, word)
        points += won
        assert GAME.tiles(position.state) == expected
        empty = [cell for cell, number in enumerate(expected) if not number]
        assert position.chances == pytest.approx([0.9 / len(empty), 0.1 / len(empty)] * len(empty))
        outcome = int(rng.integers(len(position.chances)))
        expected[empty[outcome // 2]] = 4 if outcome % 2 else 2
        position = position.play(outcome)
        assert GAME.tiles(position.state) == expected
    assert points > 0 and position.points == points


@pytest.mark.parametrize(
    ("row", "result", "points"),
    [
        ([2, 2, 2, 2], [4, 4, 0, 0], 8),
        ([2, 2, 4, 0], [4, 4, 0, 0], 4),  # a merged tile merges no more
        ([4, 0, 4, 8], [8, 8, 0, 0], 8),
        ([0, 2, 2, 2], [4, 2, 0, 0], 4),
        ([0, 0, 0, 2048], [2048, 0, 0, 0], 0),
    ],
)
def test_a_row_is_pushed_as_by_hand(row: list[int], result: list[int], points: int):
    position = with_tiles(row + [0] * 12).play(LEFT)
    assert GAME.tiles(position.state) == result + [0] * 12
    assert int(position.state[POINTS]) == points


def test_two_tiles_come_at_the_start_then_one_after_each_move():
    position = GAME.start()
    assert len(position.chances) == 32 and sum(position.chances) == pytest.approx(1)
    position = position.play(position.parse("b3=2"))
    assert len(position.chances) == 30 and position.legal_actions
    position = position.play(position.parse("a1=4"))
    assert position.chances == () and GAME.tiles(position.state) == [4, *[0] * 8, 2, *[0] * 6]
    assert position.format(LEFT) == "left" and len(position.play(LEFT).chances) == 28


def test_the_game_ends_where_nothing_moves_or_with_the_largest_sum():
    full = [2, 4, 2, 4, 4, 2, 4, 2, 2, 4, 2, 4, 4, 2, 4, 2]
    assert with_tiles(full).terminal
    assert not with_tiles([*full[:15], 4]).terminal
    assert not with_tiles([8192, 4096, 2048, 1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 0, 0, 0]).terminal
    assert with_tiles([8192, 4096, 2048, 1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 2, 0, 0]).terminal


@pytest.mark.parametrize("symmetry", range(8))
def test_a_symmetry_turns_the_board_its_observation_and_its_actions(symmetry: int):
    rng = np.random.default_rng(symmetry)
    cells, actions = GAME.symmetries
    position = with_tiles([int(n) and 2 ** int(n) for n in rng.integers(0, 5, 16)])
    state = position.state.copy()
    GAME.rules.transform(state, symmetry)
    image = Position(GAME, state, 0, ())
    planes = position.observation.reshape(14, 16)
    assert np.array_equal(image.observation.reshape(14, 16), planes[:, cells[symmetry]])
    assert np.array_equal(image.legal_mask, position.legal_mask[actions[symmetry]])
    for action in image.legal_actions:
        turned = position.play(int(actions[symmetry, action])).state
        GAME.rules.transform(turned_copy := turned.copy(), symmetry)
        assert np.array_equal(image.play(action).state, turned_copy)


def test_the_benchmark_plays_games_to_their_ends_and_counts_them():
    kernels = kernels_of(GAME)
    states = play(RandomPlayer(kernels, 1), GAME, 12, seed=3)
    assert kernels.describe_all(states)[1].all()
    assert np.array_equal(states, play(RandomPlayer(kernels, 1), GAME, 12, seed=3))
    boards = [GAME.tiles(state) for state in states]
    assert largest_tiles(states).tolist() == [max(board) for board in boards]
    figures = make_benchmark(GAME, 12)(RandomPlayer(kernels, 1))
    assert figures["reached_2048"] == figures["reached_4096"] == 0.0 and 500 < figures["mean_points"] < 2000


@pytest.mark.parametrize("largest", [3, 6, 10, 13])
def test_bits_of_all_cells_say_what_the_cells_say_one_by_one(largest: int):
    rng = np.random.default_rng(largest)
    for part_empty in np.linspace(0, 1, 40):
        exponents = np.where(rng.random(16) < part_empty, 0, rng.integers(1, largest + 1, 16))
        tiles = [1 << int(n) if n else 0 for n in exponents]
        state = with_tiles(tiles).state
        over = sum(tiles) >= 16_384 or all(after(tiles, word)[0] == tiles for word in ("up", "down", "left", "right"))
        assert is_terminal(state) == over
        for symmetry, image in enumerate(GAME.symmetries[0]):
            turned = state.copy()
            transform(turned, symmetry)
            assert GAME.tiles(turned) == np.array(tiles)[image].tolist()
