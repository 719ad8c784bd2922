"""The games that `alphazero new` writes, and their tests; CLASS, NAME and TITLE stand for their names."""

GAME = '''\
"""TITLE: on a board of 4 x 4 squares, three of one's stones in a row or column win. Change it into your game.

`state` is what the rules work on: words of 64 bits, here the stones of the player to move and of the opponent, one
bit a square. Words stay `np.uint64`: write np.uint64(1), not 1, where they are combined. Row 0 is at the top.
"""

import numpy as np

from alphazero.game import Game, Rules

SIZE = 4  # up to 8: a larger board takes more words than one for each player
LETTERS = "abcdefgh"[:SIZE]
ONE = np.uint64(1)
FULL = np.uint64(2 ** (SIZE * SIZE) - 1)
# three squares in a row and in a column, the first square in a corner, and how often they fit on the board
LINES = ((0b111, SIZE, SIZE - 2), (1 | 1 << SIZE | 1 << 2 * SIZE, SIZE - 2, SIZE))


def has_line(stones):
    for line, rows, columns in LINES:
        for row in range(rows):
            for column in range(columns):
                squares = np.uint64(line) << np.uint64(SIZE * row + column)
                if stones & squares == squares:
                    return True
    return False


def init(state):  # the start position: write every word
    state[0] = np.uint64(0)
    state[1] = np.uint64(0)


def legal(state, legal_mask):  # write every entry; not asked when the game is over
    for square in range(SIZE * SIZE):
        legal_mask[square] = (state[0] | state[1]) & (ONE << np.uint64(square)) == np.uint64(0)


def step(state, action):  # play a legal action; then the state is seen by whoever moves next
    own = state[0] | (ONE << np.uint64(action))
    state[0] = state[1]
    state[1] = own


def is_terminal(state):
    return has_line(state[1]) or state[0] | state[1] == FULL


def terminal_value(state):  # -1, 0 or 1 for the player to move: here only the opponent can have won, by the last ply
    return -1.0 if has_line(state[1]) else 0.0


def observe(state, planes):  # what the network sees, all zero before: own stones, the opponent's
    for square in range(SIZE * SIZE):
        planes[0, square // SIZE, square % SIZE] = (state[0] >> np.uint64(square)) & ONE
        planes[1, square // SIZE, square % SIZE] = (state[1] >> np.uint64(square)) & ONE


class CLASS(Game):
    name = "NAME"
    num_actions, state_words, max_plies = SIZE * SIZE, 2, SIZE * SIZE
    observation_shape = (2, SIZE, SIZE)  # planes, rows, columns
    rules = Rules(init, legal, step, is_terminal, terminal_value, observe)

    def render(self, state, to_play):
        marks = ".XO" if to_play == 0 else ".OX"
        cells = [marks[(int(state[0]) >> i & 1) + 2 * (int(state[1]) >> i & 1)] for i in range(SIZE * SIZE)]
        rows = [" ".join(cells[SIZE * row : SIZE * (row + 1)]) for row in range(SIZE)]
        return "\\n".join(f"{row + 1} {line}" for row, line in enumerate(rows)) + f"\\n  {' '.join(LETTERS)}"

    def format_action(self, action, state):  # how people write it
        return f"{LETTERS[action % SIZE]}{action // SIZE + 1}"

    def parse_action(self, text, state):
        return LETTERS.index(text[0]) + SIZE * (int(text[1:]) - 1)
'''

TEST_HEAD = '''\
"""Tests of NAME: run them with `pytest test_NAME.py`."""

from NAME import CLASS

from alphazero.game.validator import validate


def test_it_keeps_all_laws():
    assert validate(CLASS(), num_games=50).warnings == []


'''

TEST = """\
def test_three_in_a_row_or_column_win():
    row, column = CLASS().position("a1 a2 b1 b2 c1"), CLASS().position("a1 b1 a2 b2 c4 b3")
    assert row.terminal and row.outcome == 1  # the first player has won
    assert column.terminal and column.outcome == -1  # the second player has won
    assert not CLASS().position("a1 a2 b1 b2 d1").terminal
"""


DIE = """\
def legal(state, legal_mask):  # write every entry; not asked when the game is over or the die is due
    legal_mask[0] = legal_mask[1] = True


def chance(state, probabilities):  # how many outcomes the die has that is due now, and their probabilities; 0 = no die
    if NONE_DUE:
        return 0
    for outcome in range(6):
        probabilities[outcome] = 1 / 6
    return 6


"""

NOTATION = """
    def format_action(self, action, state):  # how people write it; a die is written 1 to 6
        return WORDS[action]

    def parse_action(self, text, state):
        return WORDS.index(text)
"""

DICE_GAME = (
    '''\
"""TITLE: in a race to 20, walk two steps or throw a die: a 1 is two steps back. Change it into your game.

`state` is what the rules work on: words of 64 bits, here the steps of the player to move, those of the opponent, and
whether the die is due. Words stay `np.uint64`: write np.uint64(1), not 1, where they are combined.
"""

import numpy as np

from alphazero.game import Game, Rules

GOAL = 20
ZERO, ONE = np.uint64(0), np.uint64(1)
WORDS = ("walk", "throw")


def init(state):  # the start position: write every word
    state[0], state[1], state[2] = ZERO, ZERO, ZERO


def walk(state, player, steps):
    state[player] = np.uint64(max(np.int64(state[player]) + steps, 0))


def step(state, action):  # play a legal action; then the state is seen by whoever moves next
    if action == 0:
        walk(state, 0, 2)
    else:
        state[2] = ONE  # the die is due: `step` never says what it shows
    own = state[0]
    state[0] = state[1]
    state[1] = own


'''
    + DIE.replace("NONE_DUE", "state[2] == ZERO")
    + """\
def settle(state, outcome):  # put an outcome, 0 to 5, into effect: the opponent has thrown, and the turn stays
    walk(state, 1, -2 if outcome == 0 else outcome + 1)
    state[2] = ZERO


def is_terminal(state):
    return state[1] >= GOAL


def terminal_value(state):  # -1, 0 or 1 for the player to move: here only the opponent can have won, by the last ply
    return -1.0


def observe(state, planes):  # what the network sees, all zero before; it is not asked while the die is due
    planes[0, 0, state[0]] = 1
    planes[1, 0, state[1]] = 1


class CLASS(Game):
    name = "NAME"
    num_actions, num_outcomes, state_words, max_plies = 2, 6, 3, 200
    observation_shape = (2, 1, GOAL + 6)  # planes, rows, columns
    rules = Rules(init, legal, step, is_terminal, terminal_value, observe, chance=chance, settle=settle)

    def render(self, state, to_play):
        steps = [int(state[to_play]), int(state[1 - to_play])]
        return "\\n".join(f"{mark} {'.' * place}{mark}" for mark, place in zip("XO", steps, strict=True))
"""
    + NOTATION
)

DICE_TEST = """\
def test_a_die_moves_whoever_has_thrown_it():
    thrown = CLASS().position("walk throw 5 throw")  # the first player has 2 steps, the second one 5
    assert len(thrown.chances) == 6
    assert thrown.play(0).state.tolist() == [5, 0, 0]  # a 1: two steps back
    assert thrown.play(5).state.tolist() == [5, 8, 0]
    end = CLASS().position("throw 6 walk throw 6 walk throw 6 walk walk")
    assert end.terminal and end.outcome == 1  # the first player has won
"""

SOLO_GAME = (
    '''\
"""TITLE: of ten throws of a die, take four; each brings its points. Change it into your game for one.

`state` is what the rules work on: words of 64 bits, here the throws to come, those that may still be taken, the points
so far, and what the die shows. Words stay `np.uint64`: write np.uint64(1), not 1, where they are combined.
"""

import numpy as np

from alphazero.game import Game, Rules, Score

THROWS, TAKEN = 10, 4
TO_COME, TO_TAKE, POINTS, SHOWN = 0, 1, 2, 3  # the words of the state
ZERO, ONE = np.uint64(0), np.uint64(1)
WORDS = ("pass", "take")


def init(state):  # the start position: write every word
    state[TO_COME], state[TO_TAKE] = np.uint64(THROWS), np.uint64(TAKEN)
    state[POINTS], state[SHOWN] = ZERO, ZERO  # the die is due


def step(state, action):  # play a legal action
    if action == 1:
        state[POINTS] += state[SHOWN]
        state[TO_TAKE] -= ONE
    state[SHOWN] = ZERO  # the die is due again: `step` never says what it shows


'''
    + DIE.replace("NONE_DUE", "state[SHOWN] != ZERO")
    + """\
def settle(state, outcome):  # put an outcome, 0 to 5, into effect
    state[SHOWN] = np.uint64(outcome + 1)
    state[TO_COME] -= ONE


def is_terminal(state):
    return state[SHOWN] == ZERO and (state[TO_COME] == ZERO or state[TO_TAKE] == ZERO)


def terminal_value(state):  # all the points that the game has brought
    return float(state[POINTS])


def observe(state, planes):  # what the network sees, all zero before: never the points so far
    planes[0, 0, state[TO_COME]] = 1
    planes[1, 0, state[TO_TAKE]] = 1
    planes[2, 0, state[SHOWN]] = 1


class CLASS(Game):
    name = "NAME"
    num_players, score, points_word = 1, Score(0, 6 * TAKEN), POINTS
    num_actions, num_outcomes, state_words, max_plies = 2, 6, 4, THROWS
    observation_shape = (3, 1, THROWS + 1)  # planes, rows, columns
    rules = Rules(init, legal, step, is_terminal, terminal_value, observe, chance=chance, settle=settle)

    def render(self, state, to_play):
        shown = f"the die shows {state[SHOWN]}; " if state[SHOWN] else ""
        return f"{shown}{state[POINTS]} points; {state[TO_TAKE]} to take, of {state[TO_COME]} throws to come"
"""
    + NOTATION
)

SOLO_TEST = """\
def test_what_is_taken_brings_its_points():
    end = CLASS().position("6 take 1 pass 5 take 4 take 6 take")
    assert end.terminal and end.points == 21
    assert CLASS().position("1 pass " * 10).points == 0
"""

SEATS_GAME = (
    GAME.replace("the player to move and of the opponent, one\nbit", "each player, the mover's first,\none bit")
    .replace("SIZE = 4  # up to 8", "PLAYERS = COUNT\nSIZE = 5  # up to 8")
    .replace("4 x 4", "5 x 5")
    .partition("def init(state)")[0]
    + """\
def init(state):  # the start position: write every word
    state[:] = np.uint64(0)


def legal(state, legal_mask):  # write every entry; not asked when the game is over
    for square in range(SIZE * SIZE):
        legal_mask[square] = state[PLAYERS] & (ONE << np.uint64(square)) == np.uint64(0)


def step(state, action):  # play a legal action; then the state is seen by whoever moves next
    own = state[0] | (ONE << np.uint64(action))
    state[PLAYERS] |= own  # the squares that anybody has taken
    for player in range(PLAYERS - 1):
        state[player] = state[player + 1]
    state[PLAYERS - 1] = own


def is_terminal(state):
    return has_line(state[PLAYERS - 1]) or state[PLAYERS] == FULL


def returns(state, results):  # -1 to 1 for each player, first for who would move next: only the last mover can have won
    won = has_line(state[PLAYERS - 1])
    for player in range(PLAYERS):
        results[player] = 0.0 if not won else 1.0 if player == PLAYERS - 1 else -1.0 / (PLAYERS - 1)


def observe(state, planes):  # what the network sees, all zero before: a plane for each player, the mover's first
    for player in range(PLAYERS):
        for square in range(SIZE * SIZE):
            planes[player, square // SIZE, square % SIZE] = (state[player] >> np.uint64(square)) & ONE


class CLASS(Game):
    name = "NAME"
    num_players, num_actions, state_words, max_plies = PLAYERS, SIZE * SIZE, PLAYERS + 1, SIZE * SIZE
    observation_shape = (PLAYERS, SIZE, SIZE)  # planes, rows, columns
    rules = Rules(init, legal, step, is_terminal, None, observe, returns=returns)

    def render(self, state, to_play):
        marks = [("XOTSVZNH"[(to_play + i) % PLAYERS], int(state[i])) for i in range(PLAYERS)]
        cells = ["".join(mark for mark, own in marks if own >> i & 1) or "." for i in range(SIZE * SIZE)]
"""
    + GAME[GAME.index("        rows = [") :]
)

SEATS_TEST = """\
def test_three_in_a_row_win():
    game = CLASS()
    moves = ["a1"]  # the first player takes a1, b1 and c1, the others lines 3 and 5 in turn
    others = iter("a3 b3 d3 e3 a5 b5 d5 e5 a4 b4 d4 e4 a2 b2".split())
    for square in ("b1", "c1"):
        moves += [next(others) for _ in range(game.num_players - 1)] + [square]
    end = game.position(moves)
    assert end.winners == (0,) and end.results[0] == 1.0
    assert abs(sum(end.results)) < 1e-6
"""

SAMPLES = {
    "board": (GAME, TEST_HEAD + TEST),
    "dice": (DICE_GAME, TEST_HEAD + DICE_TEST),
    "solo": (SOLO_GAME, TEST_HEAD + SOLO_TEST),
    "players": (SEATS_GAME, TEST_HEAD + SEATS_TEST),
}
"""A game and its test, by kind."""
