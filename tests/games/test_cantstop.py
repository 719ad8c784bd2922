"""Can't Stop beside plain rules on lists, and beside known chances of four dice."""

import itertools
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import alphazero as az
from alphazero.errors import IllegalAction
from games.cantstop.game import FIRST, LENGTHS, MOST_ACTIONS, ROLL, STOP

GAMES = {players: az.load_game(name) for players, name in ((2, "cantstop"), (3, "cantstop3"), (4, "cantstop4"))}
TOPS = dict(zip(range(2, 13), LENGTHS, strict=True))
ROLLS = [tuple(dice) for dice in itertools.product(range(1, 7), repeat=4)]


def pairings(dice):
    """The three ways to make two sums of four dice."""
    a, b, c, d = dice
    return {tuple(sorted(pair)) for pair in ((a + b, c + d), (a + c, b + d), (a + d, b + c))}


class PlainGame:
    """The rules, with a list of steps by column for each player."""

    def __init__(self, players):
        self.kept = [dict.fromkeys(TOPS, 0) for _ in range(players)]
        self.mover, self.runners, self.moves, self.actions = 0, {}, None, 0

    def go_up(self, columns, runners):
        """The runners after a step in each of the columns, one after another, as far as they can."""
        runners, gone = dict(runners), []
        for column in columns:
            steps = runners.get(column, self.kept[self.mover][column])
            is_closed = any(kept[column] == TOPS[column] for kept in self.kept)
            if not is_closed and steps < TOPS[column] and (column in runners or len(runners) < 3):
                runners[column] = steps + 1
                gone.append(column)
        return tuple(gone), runners

    def throw(self, dice):
        """Sets `moves`, the runners after each choice by its columns; ends the turn if there is none."""
        self.moves = {}
        for one, other in pairings(dice):
            for order in ((one, other), (other, one)):
                gone, runners = self.go_up(order, self.runners)
                if gone:
                    self.moves[tuple(sorted(gone))] = runners
        if not self.moves:
            self.end_turn()

    def end_turn(self):
        self.mover, self.runners, self.moves = (self.mover + 1) % len(self.kept), {}, None

    def stop(self):
        self.kept[self.mover] |= self.runners
        self.end_turn()

    @property
    def winner(self):
        for player, kept in enumerate(self.kept):
            if sum(kept[column] == top for column, top in TOPS.items()) >= 3:
                return player
        return None


def places(word):
    return {column: int(word) >> 5 * (column - FIRST) & 31 for column in TOPS}


def name_of(columns):
    return "+".join(map(str, columns))


def check_alike(position, plain):
    """The position of the game is that of the plain rules."""
    assert position.to_play == plain.mover
    players = len(plain.kept)
    assert [places(position.state[2 + (seat - plain.mover) % players]) for seat in range(players)] == plain.kept
    assert {column: steps for column, steps in places(position.state[0]).items() if steps} == plain.runners
    drawn = plain.winner is None and plain.actions == MOST_ACTIONS
    assert position.terminal == (plain.winner is not None or drawn)
    if drawn:
        assert position.results == (0.0,) * players
        return
    if position.terminal:
        expected = [1.0 if player == plain.winner else -1.0 / (players - 1) for player in range(players)]
        assert position.results == pytest.approx(tuple(expected)) and position.winners == (plain.winner,)
        return
    names = {position.format(action) for action in position.legal_actions}
    if plain.moves is None:
        assert names == ({"roll", "stop"} if plain.runners else {"roll"})
    else:
        assert names == {name_of(columns) for columns in plain.moves}
    for action in position.legal_actions:
        assert position.parse(position.format(action)) == action


def play_beside(players, seed, stops):
    """A random game by both rules, in step; the mover stops with a chance of `stops`. Returns what has happened."""
    generator, position, plain = random.Random(seed), GAMES[players].start(), PlainGame(players)
    seen = Counter()
    while not position.terminal:
        check_alike(position, plain)
        plain.actions += 1
        if plain.moves is not None:
            columns = generator.choice(sorted(plain.moves))
            position = position.play(position.parse(name_of(columns)))
            plain.runners, plain.moves = plain.moves[columns], None
            seen[f"{len(columns)} up"] += 1
        elif plain.runners and generator.random() < stops:
            position = position.play(STOP)
            plain.stop()
        else:
            dice, before = generator.choice(ROLLS), plain.mover
            position = position.play(ROLL)
            for number in dice:
                assert position.chances == pytest.approx([1 / 6] * 6) and position.to_play == before
                position = position.play(number - 1)
            plain.throw(dice)
            seen["lost" if plain.moves is None else "kept"] += 1
    check_alike(position, plain)
    return seen


@pytest.mark.parametrize("players", GAMES)
def test_random_games_are_those_of_plain_rules(players):
    seen = sum((play_beside(players, seed, stops=0.3) for seed in range(4)), Counter())
    assert min(seen.values()) >= 20 and len(seen) == 4


@pytest.mark.slow
@pytest.mark.parametrize("players", GAMES)
@pytest.mark.parametrize("stops", [0.1, 0.3, 0.6])
def test_many_random_games_are_those_of_plain_rules(players, stops):
    for seed in range(100, 130):
        play_beside(players, seed, stops)


def state_of(kept, runners=None, dice=(), mover=0, actions=0):
    """A state; `kept` are the steps by column of each player, the mover's first."""
    words = [sum(steps << 5 * (column - FIRST) for column, steps in each.items()) for each in (runners or {}, *kept)]
    rest = sum(1 << 3 * (number - 1) for number in dice) + (mover << 21) + (actions << 23)
    return np.array([words[0], rest, *words[1:]], np.uint64)


def chance_to_go_up(position):
    """By the game's own dice, all 1,296 one after another: a turn that goes on has one more throw than before."""
    total, waiting = 0.0, [(1.0, position.play(ROLL))]
    while waiting:
        weight, here = waiting.pop()
        if here.chances:
            waiting += [(weight * p, here.play(outcome)) for outcome, p in enumerate(here.chances)]
        else:
            total += weight * (here.to_play == position.to_play)
    return total


@pytest.mark.parametrize(
    ("columns", "share"),
    [((6, 7, 8), 0.92), ((4, 6, 8), 0.91), ((2, 3, 12), 0.44), ((2, 11, 12), 0.44)],
)  # M. Keller 1986, rounded
def test_known_chances_to_go_on_with_three_runners(columns, share):
    counted = Fraction(sum(any(sum_ in columns for pair in pairings(dice) for sum_ in pair) for dice in ROLLS), 1296)
    assert round(float(counted), 2) == share
    position = az.Position(GAMES[2], state_of([{}, {}], dict.fromkeys(columns, 1)), 0, ())
    assert chance_to_go_up(position) == pytest.approx(float(counted))


def test_the_choices_of_a_first_throw():
    """Counted with all throws: at the start each way to pair is a choice of its own."""
    counts = Counter()
    for dice in ROLLS:
        position = GAMES[2].position(["roll", *map(str, dice)])
        assert len(position.legal_actions) == len(pairings(dice))
        counts[len(position.legal_actions)] += 1
    # 1: four alike, or three of a kind; 2: a pair and two others, or two pairs; 3: all different, but for 1 + 4 = 2 + 3
    assert counts == {1: 6 + 4 * 30, 2: 6 * 15 + 12 * 60, 3: 360}


def test_both_go_up_if_they_can_else_either():
    two = {7: 1, 6: 1}
    free = az.Position(GAMES[2], state_of([{}, {}], two, dice=(2, 2, 4, 5)), 0, ())
    assert {free.format(action) for action in free.legal_actions} == {"4", "9", "6+7"}
    after = free.play(free.parse("9"))
    assert places(after.state[0]) == dict.fromkeys(TOPS, 0) | two | {9: 1}
    closed = az.Position(GAMES[2], state_of([{}, {9: 9}], two, dice=(2, 2, 4, 5)), 0, ())
    assert {closed.format(action) for action in closed.legal_actions} == {"4", "6+7"}
    last_step = az.Position(GAMES[2], state_of([{2: 2}, {}], dice=(1, 1, 1, 1)), 0, ())
    assert [last_step.format(action) for action in last_step.legal_actions] == ["2"]


def test_a_text_may_say_either_order_and_leave_out_what_is_forced():
    position = GAMES[3].position("2 3 4 6 9+6 stop 1 1 1 1")
    assert position.to_play == 1
    assert position == GAMES[3].position("roll 2 3 4 6 6+9 stop roll 1 1 1 1")
    assert [position.format(action) for action in position.legal_actions] == ["2+2"]
    with pytest.raises(IllegalAction):
        position.parse("3")


@pytest.mark.parametrize("players", GAMES)
def test_a_game_is_drawn_after_too_many_actions(players):
    kept = [{7: 13}, {6: 11}, {}, {}][:players]
    position = az.Position(GAMES[players], state_of(kept, actions=MOST_ACTIONS - 1), 0, ())
    assert not position.terminal
    due = position.play(ROLL)
    assert due.chances and not due.terminal
    for number in (1, 1, 1, 2):
        due = due.play(number - 1)
    assert due.terminal and due.results == (0.0,) * players
    won = az.Position(GAMES[players], state_of([{2: 3, 3: 5}, *kept[1:]], {4: 7}, actions=MOST_ACTIONS - 1), 0, ())
    assert won.play(STOP).winners == (0,)


@pytest.mark.parametrize("players", GAMES)
def test_the_board_shows_markers_runners_and_dice_and_a_click_in_a_column_moves(players):
    game = GAMES[players]
    kept = [{2: 3, 7: 4}, {7: 4, 12: 1}, {7: 1}, {3: 2}][:players]
    position = az.Position(game, state_of(kept, {8: 2}, dice=(2, 4, 5, 6), mover=1), 1, ())
    owners = [1, *((1 + seat) % players for seat in range(1, players))]
    shown = Counter()
    for piece in position.view.pieces:
        name = game.board.cells[piece.cell].name
        shown["die" if name == "die" else (name, piece.player)] += 1
    expected = Counter({("8, step 2", None): 1, "die": 4})
    for owner, each in zip(owners, kept, strict=True):
        for column, steps in each.items():
            tops = range(1, steps + 1) if steps == TOPS[column] else [steps]
            expected.update((f"{column}, step {step}", owner) for step in tops)
    assert shown == expected
    assert len({piece.cell for piece in position.view.pieces}) == len(position.view.pieces)
    first = {click.name: game.board.cells[click.cells[0]].name for click in position.view.clicks[::-1]}
    clicked = {(click.name, game.board.cells[click.cells[0]].name.split(",")[0]) for click in position.view.clicks}
    assert set(first) == {"6+11", "7+10", "8+9"}
    assert clicked == {(name, column) for name in first for column in name.split("+")}
    assert first["8+9"] == "8, step 3" and first["7+10"] == "7, step 5"
    assert all(not click.cells for click in game.start().view.clicks)


def test_the_text_of_a_position():
    position = az.Position(GAMES[3], state_of([{2: 3}, {7: 10}, {}], {8: 2}, dice=(2, 4, 5, 6), mover=1), 1, ())
    lines = str(position).splitlines()
    assert [line.split()[0] for line in lines] == ["column", "steps", "X", "O", "runners", "T", "dice"]
    assert lines[3].split() == ["O", "3", *"." * 10] and lines[5].split()[6] == "10"
    assert lines[-1].split() == ["dice", "2", "4", "5", "6"]


def test_the_network_sees_the_players_from_the_mover_on():
    state = state_of([{2: 3}, {7: 13}, {12: 1}], {8: 11}, dice=(2, 4, 5, 6))
    planes = az.Kernels(GAMES[3]).observations(state[None])[0, :, 0]
    found = {(plane, column + FIRST): planes[plane, column] for plane, column in np.argwhere(planes).tolist()}
    third = np.float32(1 / 3)
    expected = {(0, 2): 1, (1, 2): 1, (2, 2): 1, (3, 7): 1, (4, 7): 1, (5, 7): 1, (6, 12): third, (8, 12): 1}
    expected |= {(9, 8): 1, (10, 8): 1, (11, 8): 1, (12, 8): 1}  # the runner
    expected |= {(13, column): 1 for column in TOPS if column not in (2, 7, 8)}  # where one can go up
    expected |= {(14, column): 1 for column in (6, 11, 7, 10, 8, 9)}  # sums of two dice
    expected |= {(16, FIRST + 1): 1, (18, FIRST + 2): 1}  # one runner; the dice show 17, which is 13 above the least
    assert found == expected
