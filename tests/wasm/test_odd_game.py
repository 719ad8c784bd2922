"""A page of a game whose rules are allowed, and unlike those of the shipped games."""

from dataclasses import replace

import numpy as np

import alphazero as az
from alphazero.catalogue import registry
from alphazero.game.validator import validate
from alphazero.nets.resnet import NetConfig, ResNet
from alphazero.nets.torch_net import TorchNet
from alphazero.web.one_file import make_file
from tests.game.four_cells import ONE, RULES, FourCells
from tests.wasm.engines import needs_node, with_random_weights
from tests.wasm.published import ask, small_page

OVER = np.uint64(1 << 40)


def step(state, action):
    own = state[0] | ONE << np.uint64(action)
    state[0], state[1] = state[1], own
    if state[0] | state[1] == np.uint64(15):
        state[2] = OVER


def is_terminal(state):
    return state[2] & OVER  # a number: its lower half is 0


class Odd(FourCells):
    name = "odd"
    state_words = 3
    rules = replace(RULES, step=step, is_terminal=is_terminal)

    def format_action(self, action, state):
        return "aAbB"[action]

    def parse_action(self, text, state):
        return "aAbB".index(text)


@needs_node
def test_a_page_sees_the_end_of_a_game_and_reads_capitals():
    validate(Odd(), num_games=20)
    loaded = registry.of(Odd())
    module = ResNet(Odd.observation_shape, 4, NetConfig(blocks=1, channels=8, head_channels=4, value_hidden=8))
    page = make_file(loaded, TorchNet(loaded.game, with_random_weights(module)), "odd", {}, "odd.py")
    ((over,), (capitals,), (other,), (unknown,)) = ask(
        page,
        {"ask": "position", "moves": "A a B b"},
        {"ask": "position", "moves": "B A"},
        {"ask": "position", "moves": "a"},
        {"ask": "position", "moves": "c"},
    )
    assert (
        over["actions"] == [1, 0, 3, 2] and over["view"]["outcome"] == az.load_game(Odd()).position("A a B b").outcome
    )
    assert capitals["actions"] == [3, 1] and capitals["words"] == ["B", "A"] and capitals["view"]["outcome"] is None
    assert other["actions"] == [0] and "'c' is not a legal action here" in unknown["error"]


@needs_node
def test_capitals_are_left_out_of_account_where_one_word_is_meant():
    ((read,),) = ask(small_page("tictactoe"), {"ask": "position", "moves": "A1 b1"})
    assert read["words"] == ["a1", "b1"]
