"""Backgammon beside slow plain rules that know checkers as lists, and beside known numbers of plays."""

import random

import numpy as np
import pytest

import alphazero as az

GAME = az.load_game("backgammon")
DISTINCT = {"11": 42, "22": 75, "33": 73, "44": 52, "55": 4, "66": 11, "31": 16}
"""Different positions after a roll at the start (bgsage 2.0)."""


def counts(state):
    """Both players' checkers on places 0 (borne off) to 25 (the bar), each in the own numbering."""
    whole = [int(state[i]) | int(state[i + 1]) << 64 for i in (0, 2)]
    return tuple(tuple(word >> 4 * place & 15 for place in range(26)) for word in whole)


def plain_moves(own, other, die):
    """Every way to move one checker, as (place, board after it)."""
    for place in range(25, 0, -1):
        if not own[place] or (own[25] and place != 25):
            continue
        target = place - die
        if target > 0 and other[25 - target] > 1:
            continue
        if target <= 0 and (sum(own[7:]) or (target < 0 and sum(own[place + 1 :]))):
            continue
        mine, theirs = list(own), list(other)
        mine[place] -= 1
        mine[max(target, 0)] += 1
        if target > 0 and theirs[25 - target]:
            theirs[25 - target], theirs[25] = 0, theirs[25] + 1
        yield place, (tuple(mine), tuple(theirs))


def plain_turns(own, other, dice):
    """All sequences of moves of these dice in this order, as far as they go, as (moves, board)."""
    found = []
    for place, board in plain_moves(own, other, dice[0]) if dice else ():
        found += [(((place, dice[0]), *moves), end) for moves, end in plain_turns(*board, dice[1:])]
    return found or [((), (own, other))]


def plain_results(own, other, large, small):
    """The sequences that the rules allow: as many dice as can be, the larger where only one can."""
    orders = [(large,) * 4] if large == small else [(large, small), (small, large)]
    turns = [turn for dice in orders for turn in plain_turns(own, other, dice)]
    longest = max(len(moves) for moves, _ in turns)
    turns = [turn for turn in turns if len(turn[0]) == longest]
    if longest == 1 and large != small and any(moves[0][1] == large for moves, _ in turns):
        turns = [turn for turn in turns if turn[0][0][1] == large]
    return set(turns)


def played_turns(position):
    """All sequences of a turn by the game itself, with the board seen by who played it."""
    player, turns, waiting = position.to_play, set(), [((), position)]
    while waiting:
        moves, here = waiting.pop()
        if here.terminal or here.to_play != player or here.chances:
            turns.add((moves, counts(here.state)[::-1]))
            continue
        for action in here.legal_actions:
            move = () if action == 150 else ((action // 6 + 1, action % 6 + 1),)
            waiting.append((moves + move, here.play(action)))
    return turns


def random_positions(seed):
    """Where a turn begins, in one random game."""
    generator, position = random.Random(seed), GAME.start()
    while not position.terminal:
        if position.chances:
            position = position.play(generator.choices(range(len(position.chances)), position.chances)[0])
            yield position
        else:
            position = position.play(generator.choice(position.legal_actions))


def check_turns(positions):
    for position in positions:
        own, other = counts(position.state)
        roll = int(position.state[4]), int(position.state[5])
        assert played_turns(position) == plain_results(own, other, *roll), (str(position), roll)


def test_all_turns_are_those_of_plain_rules():
    positions = list(random_positions(1))
    check_turns([each for each in positions if each.state[4] != each.state[5]][::6])
    check_turns([each for each in positions[-40:] if each.state[4] != each.state[5]])
    check_turns([each for each in positions if each.state[4] == each.state[5]][::20])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_all_turns_of_whole_games_are_those_of_plain_rules(seed):
    check_turns(random_positions(seed))


@pytest.mark.parametrize("roll", DISTINCT)
def test_numbers_of_positions_after_a_roll_at_the_start(roll):
    state = GAME.start().state.copy()
    outcome = next(each for each in range(21) if GAME.format_outcome(each, state) == roll)
    GAME.rules.settle(state, outcome)
    position = az.Position(GAME, state, 0, ())
    assert len({board for _, board in played_turns(position)}) == DISTINCT[roll]


def test_rolls_and_their_probabilities():
    start = GAME.start()
    assert start.chances == pytest.approx([1 / 15] * 15)
    position = start.play(0)
    while not position.chances:
        position = position.play(position.legal_actions[0])
    rolls = {position.format(outcome): p for outcome, p in enumerate(position.chances)}
    exact = {f"{a}{b}": (1 if a == b else 2) / 36 for a in range(1, 7) for b in range(1, a + 1)}
    assert rolls == pytest.approx(exact)


def state_of(own, other, large, small):
    words = [sum(count << 4 * place for place, count in side.items()) for side in (own, other)]
    split = [part for word in words for part in (word & (1 << 64) - 1, word >> 64)]
    return np.array([*split, large, small, 4 if large == small else 2, 0], np.uint64)


@pytest.mark.parametrize(
    ("other", "points"),
    [({0: 1, 24: 14}, 1), ({6: 15}, 2), ({18: 15}, 2), ({19: 1, 6: 14}, 3), ({25: 1, 6: 14}, 3), ({0: 1, 25: 14}, 1)],
)
def test_points_of_a_win(other, points):
    position = az.Position(GAME, state_of({0: 14, 1: 1}, other, 6, 5), 0, ())
    over = position.play(position.parse("1/off:6"))
    assert over.terminal and over.points == points and over.outcome == 1


@pytest.mark.parametrize(
    ("own", "other", "roll", "moves"),
    [
        ({4: 2, 0: 13}, {6: 15}, (6, 5), ["4/off:5", "4/off:6"]),  # a larger die, from the highest point
        ({5: 1, 3: 1, 0: 13}, {6: 15}, (4, 4), ["5/1"]),  # not from a lower point
        ({25: 1, 6: 14}, {1: 2, 2: 2, 3: 2, 4: 2, 5: 2, 6: 5}, (6, 5), ["pass"]),  # all points held
        ({24: 1, 0: 14}, {12: 2, 3: 13}, (6, 5), ["24/18"]),  # either die, not both: the larger
    ],
)
def test_moves_by_hand(own, other, roll, moves):
    position = az.Position(GAME, state_of(own, other, *roll), 0, ())
    assert sorted(position.format(action) for action in position.legal_actions) == moves
    assert all(position.parse(position.format(action)) == action for action in position.legal_actions)


def openspiel_counts(state):
    """The board seen by who moves, from OpenSpiel's; its points 0 to 23 are X's places 24 to 1."""
    sides = []
    for player in (0, 1):
        side = [0, *(state.board(player, 24 - place if player == 0 else place - 1) for place in range(1, 25))]
        side.append(state.board(player, 100))
        sides.append((15 - sum(side), *side[1:]))
    return tuple(sides)


def openspiel_results(state):
    """All boards, as (X's, O's), where a turn can end; a double is two turns in a row there."""
    player, boards, waiting = state.current_player(), set(), [state]
    while waiting:
        here = waiting.pop()
        if here.current_player() == player and not here.is_terminal():
            waiting += [here.child(action) for action in here.legal_actions()]
        else:
            boards.add(openspiel_counts(here))
    return boards


def check_openspiel_game(seed, every):
    """Compares the ends of one turn in `every` of a random game, and the points of the game; returns how many."""
    pyspiel = pytest.importorskip("pyspiel")
    generator, compared = random.Random(seed), 0
    state = pyspiel.load_game("backgammon(scoring_type=full_scoring)").new_initial_state()
    for turn in range(10_000):
        while state.is_chance_node():
            outcomes, weights = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(generator.choices(outcomes, weights)[0])
        if state.is_terminal():
            break
        small, large = sorted(int(die) for die in str(state).split("Dice: ")[1][:2])
        player, boards = state.current_player(), openspiel_counts(state)
        if "Extra turn: 0" in str(state) and turn % every == 0:
            words = [dict(enumerate(side)) for side in boards]
            position = az.Position(GAME, state_of(words[player], words[1 - player], large, small), 0, ())
            ends = {tuple(board[each ^ player] for each in (0, 1)) for _, board in played_turns(position)}
            assert ends == openspiel_results(state), str(state)
            compared += 1
        state.apply_action(generator.choice(state.legal_actions()))
    winner = 0 if state.returns()[0] > 0 else 1
    own, other = (dict(enumerate(side)) for side in (openspiel_counts(state)[each] for each in (1 - winner, winner)))
    over = az.Position(GAME, state_of(own, other, 1, 1), 0, ())
    assert over.terminal and GAME.rules.terminal_value(over.state) == -state.returns()[winner]
    return compared


def test_turns_end_as_in_openspiel():
    assert check_openspiel_game(seed=1, every=12) > 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_turns_of_whole_games_end_as_in_openspiel(seed):
    assert check_openspiel_game(seed, every=1) > 40  # games have 45 turns and more


def test_a_player_rolls_before_every_turn_but_the_first():
    position = GAME.position("31 8/5 6/5")
    assert [position.format(action) for action in position.legal_actions] == ["roll"]
    assert GAME.position("31 8/5 6/5 roll 66") == GAME.position("31 8/5 6/5 66")
    assert position.observation[8:].sum() == 0  # no dice


def test_a_click_on_a_checker_and_one_on_its_target_play_each_move():
    for position in [*random_positions(4)][::5]:
        first = {click.action: click.cells for click in position.view.clicks[::-1]}
        assert set(first) == set(position.legal_actions)
        owners = {piece.cell: piece.player for piece in position.view.pieces}
        for action, cells in first.items():
            assert not cells or owners[cells[0]] == position.to_play
            names = [GAME.board.cells[cell].name for cell in cells]
            place, die = action // 6 + 1, action % 6 + 1
            ends = [place, max(place - die, 0)] if position.to_play == 0 else [25 - place, min(25 - place + die, 25)]
            shown = {25: "bar", 0: "off"} if position.to_play == 0 else {0: "bar", 25: "off"}
            assert not cells or names == [shown.get(end, str(end)) for end in ends]


def test_the_larger_die_bears_off_by_a_click_and_the_smaller_by_a_button():
    position = az.Position(GAME, state_of({4: 2, 0: 13}, {6: 15}, 6, 5), 0, ())
    clicks = {click.name: click.cells for click in position.view.clicks}
    assert clicks["4/off:6"] and not clicks["4/off:5"]


def test_the_board_shows_all_checkers_and_the_dice_to_play():
    pieces = GAME.position("31 8/5 6/5 66 24/18").view.pieces
    assert [piece.text for piece in pieces if piece.shape == "fill"] == ["6", "6", "6"]
    assert sorted(piece.player for piece in pieces if not piece.shape) == [0] * 15 + [1] * 15
    crowd = az.Position(GAME, state_of({6: 7, 25: 2, 0: 6}, {6: 15}, 6, 5), 1, ()).view.pieces
    assert sorted(piece.text for piece in crowd if piece.text and not piece.shape) == ["15", "2", "6", "7"]
