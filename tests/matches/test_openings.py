"""How games begin: distinct openings that follow the seed, and balanced ones where the game can tell."""

import json
from itertools import combinations

import numpy as np
import pytest

import alphazero as az
from alphazero.catalogue import registry
from alphazero.commands import pit
from alphazero.commands.shared import run_command
from alphazero.errors import InvalidSetting, UnknownName
from alphazero.game.record import read_records
from alphazero.matches import openings as openings_module
from alphazero.matches.openings import (
    EVEN,
    LEAST_PLIES,
    Balance,
    Openings,
    balance_of,
    choose_openings,
    describe_openings,
)  # fmt: skip
from alphazero.players.contestants import make_player
from games.connect4.solver import Solver
from tests.game.double_move_game import DoubleMove

TIC_TAC_TOE, CONNECT_4, DOUBLE_MOVE = registry.load("tictactoe").game, registry.load("connect4").game, DoubleMove()


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    """They take seconds."""
    monkeypatch.setattr("alphazero.tournaments.standings.has_matplotlib", lambda: False)


def drawn(game, count, plies, seed, balance=None):
    return Openings(game, plies, seed, balance).first(count)


def chosen(game, num_pairs, seed, balance=None):
    return choose_openings(game, num_pairs, seed, balance).first(num_pairs)


def images(opening: az.Position) -> set[bytes]:
    """The position and its mirror images in Connect Four and tic-tac-toe, by playing the game in the mirror."""
    if opening.game is CONNECT_4:
        mirrors = [range(7), range(6, -1, -1)]
    else:
        board = np.arange(9).reshape(3, 3)
        turned = [np.rot90(board, k) for k in range(4)]
        mirrors = [each.reshape(-1) for each in (*turned, *(turn.T for turn in turned))]
    return {opening.game.position([int(mirror[a]) for a in opening.actions]).state.tobytes() for mirror in mirrors}


@pytest.mark.parametrize(
    ("game", "plies", "count", "up_to_symmetry"),
    [(TIC_TAC_TOE, 0, 1, 1), (TIC_TAC_TOE, 2, 72, 12), (CONNECT_4, 3, 238, 121), (CONNECT_4, 2, 49, 25)],
)
def test_openings_are_all_there_are_and_no_two_are_mirror_images(game, plies, count, up_to_symmetry):
    # 9 x 8 ordered pairs of squares; distinct Connect Four positions by OEIS A212693
    openings = drawn(game, 10_000, plies, seed=1)
    every = [images(opening) for opening in openings]
    assert len(openings) == up_to_symmetry and sum(map(len, every)) == len(set().union(*every)) == count
    assert all(opening.ply == plies and not opening.terminal for opening in openings)


LINES = [{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {0, 3, 6}, {1, 4, 7}, {2, 5, 8}, {0, 4, 8}, {2, 4, 6}]


def test_openings_neither_end_the_game_nor_let_one_move_end_it():
    openings = drawn(TIC_TAC_TOE, 10_000, 5, seed=1)
    boards = [
        (set(crosses), set(noughts))
        for crosses in combinations(range(9), 3)
        for noughts in combinations(set(range(9)) - set(crosses), 2)
    ]
    lasting = [
        (crosses, noughts)
        for crosses, noughts in boards
        if crosses not in LINES and not any(noughts <= line and not line & crosses for line in LINES)
    ]
    assert len(boards) == 84 * 15 and sum(len(images(opening)) for opening in openings) == len(lasting)
    assert not any(opening.terminal for opening in openings)


def test_an_opening_of_go_is_not_won_by_a_second_pass():
    go = registry.load("go5").game
    openings = drawn(go, 10_000, 2, seed=1)
    assert openings and not any(opening.actions[-1] == go.num_actions - 1 for opening in openings)


def test_a_game_that_one_move_always_wins_begins_at_its_start(monkeypatch):
    monkeypatch.setattr(openings_module, "_wins_at_once", lambda position: True)
    assert [opening.ply for opening in chosen(TIC_TAC_TOE, 5, seed=1)] == [0]


def test_openings_are_random_and_follow_the_seed():
    texts = [[opening.actions for opening in drawn(CONNECT_4, 10, 4, seed)] for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    firsts = [drawn(CONNECT_4, 1, 1, seed)[0].actions[0] for seed in range(700)]  # the one or its mirror image
    assert all(60 < firsts.count(column) < 140 for column in range(7))


@pytest.mark.parametrize(
    ("game", "num_pairs", "plies"),
    [(TIC_TAC_TOE, 1, 2), (TIC_TAC_TOE, 12, 2), (TIC_TAC_TOE, 13, 3), (CONNECT_4, 25, 2), (CONNECT_4, 26, 3)],
)
def test_the_default_opening_gives_every_pair_its_own(game, num_pairs, plies):
    openings = chosen(game, num_pairs, seed=1)
    assert {opening.ply for opening in openings} == {plies}
    assert len({opening.state.tobytes() for opening in openings}) == len(openings) == num_pairs
    assert [opening.actions for opening in openings] == [
        opening.actions for opening in drawn(game, num_pairs, plies, seed=1)
    ]


def test_a_tiny_game_gets_the_most_openings_it_has():
    openings = chosen(DOUBLE_MOVE, 1000, seed=1)
    numbers = [len(drawn(DOUBLE_MOVE, 1000, n, seed=1)) for n in range(12)]
    assert len(openings) == numbers[openings[0].ply] == max(numbers) < 1000


# --- balanced ones ---


@pytest.fixture(scope="module")
def balance():
    return balance_of("balanced", registry.load("connect4"))


def test_balanced_openings_are_the_draws_among_the_random_ones(balance):
    solver = Solver(threads=1)
    for plies in (2, 3):
        every = drawn(CONNECT_4, 10_000, plies, seed=1)
        draws = [opening.actions for opening in every if solver.solve(opening) == 0]
        found = drawn(CONNECT_4, 10_000, plies, 1, balance)
        assert [opening.actions for opening in found] == draws and 0 < len(draws) < len(every) / 2
        some = drawn(CONNECT_4, 5, plies, 1, balance)
        assert [opening.actions for opening in some] == draws[:5]


def test_balanced_openings_are_as_many_as_there_are_pairs_and_follow_the_seed(balance):
    texts = [[opening.actions for opening in chosen(CONNECT_4, 40, seed, balance)] for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    assert len(texts[0]) == len(set(texts[0])) == 40 and {len(actions) for actions in texts[0]} == {4}


def test_a_game_without_a_balanced_opening_is_refused():
    nothing = lambda states: np.zeros(len(states), bool)  # noqa: E731
    with pytest.raises(InvalidSetting, match="tictactoe has no balanced opening"):
        chosen(TIC_TAC_TOE, 2, 1, Balance(nothing, by_net=False))


def test_only_games_that_know_their_values_have_balanced_openings():
    assert balance_of("random", registry.load("tictactoe")) is None
    with pytest.raises(InvalidSetting, match="nothing tells which openings of tictactoe are balanced"):
        balance_of("balanced", registry.load("tictactoe"))
    with pytest.raises(UnknownName, match="allowed: balanced, none, random"):
        balance_of("fair", registry.load("connect4"))


@pytest.mark.slow
def test_a_shipped_net_chooses_openings_where_no_solver_can(monkeypatch):
    monkeypatch.setattr(openings_module, "AT_ONCE", 8)  # the net takes a while for each
    loaded = registry.load("othello6")
    balance, game = balance_of("balanced", loaded), loaded.game
    openings = chosen(game, 6, 5, balance)
    assert len(openings) == 6 and {opening.ply for opening in openings} == {LEAST_PLIES}
    # by another way: the library's search of the same net, which asks about one position at a time
    net = az.load_net("best", game)
    net.use_inference("torch")
    every = drawn(game, 12, LEAST_PLIES, 5)
    judge = make_player(net, loaded, simulations=100)
    values = [judge.assess(p.state[None], np.zeros(1, int), np.zeros(1, int)).values[0] for p in every]
    fair = [p.actions for p, value in zip(every, values, strict=True) if abs(value) <= EVEN]
    assert 0 < len(fair) < len(every)
    assert fair[:6] == [opening.actions for opening in openings][: len(fair)]
    words = "8 random plies to a position whose expected score is 45 to 55% by the shipped net with 100 simulations"
    assert words in describe_openings("balanced", 8, game)


def run_pit(*arguments):
    again = ["--overwrite"] if {"--json", "--save-games"} & set(arguments) else []
    return run_command(pit.main, [*map(str, arguments), *again])


def test_a_match_and_a_tournament_begin_with_balanced_openings(tmp_path, capsys):
    file, folder, solver = tmp_path / "games.jsonl", tmp_path / "folder", Solver(threads=1)
    options = ("--games", 8, "--openings", "balanced", "--seed", 3)
    assert run_pit("greedy", "random", *options, "--save-games", file) == 0
    assert run_pit("greedy", "random", "minimax:2", *options, "--folder", folder) == 0
    alone, together = read_records(file), read_records(folder / "all_games.jsonl")
    assert len(alone) == 8 and len(together) == 24
    for record in alone + together:
        assert solver.solve(record.positions(CONNECT_4)[len(record.opening)]) == 0
    assert json.loads((folder / "tournament.json").read_text())["openings"] == "balanced"
    capsys.readouterr()
    assert run_pit("greedy", "random", "minimax:2", "--games", 8, "--seed", 3, "--folder", folder) == 2
    assert 'openings: "balanced" -> "random"' in capsys.readouterr().err


def test_reports_say_how_games_begin(tmp_path, capsys):
    line = ("greedy", "random", "minimax:2", "--game", "tictactoe", "--games", 2, "--folder", tmp_path)
    assert run_pit(*line) == 0
    assert "The two games of each pair begin with the same 2 random plies" in capsys.readouterr().out
    assert "begin with the same 2 random plies" in (tmp_path / "report.html").read_text()
    assert "the same 4 random plies to a position that neither" in describe_openings("balanced", 4, CONNECT_4)
    assert "the same 1 random ply," in describe_openings("random", 1, CONNECT_4)
    assert "6 games" in describe_openings("random", 4, registry.load("tictacmo").game)
    assert "8 games" in describe_openings("random", 0, registry.load("cantstop4").game)


def test_without_openings_a_perfect_player_never_loses(tmp_path, capsys):
    file, folder = tmp_path / "games.jsonl", tmp_path / "folder"
    line = ("minimax:9", "random", "--game", "tictactoe", "--games", 6, "--openings", "none")
    assert run_pit(*line, "--save-games", file, "--json", tmp_path / "a.json") == 0
    written = json.loads((tmp_path / "a.json").read_text())
    assert written["contestants"][0]["losses"] == 0 and (written["openings"], written["opening_plies"]) == ("none", 0)
    line = ("minimax:9", "random", "greedy", "--game", "tictactoe", "--games", 4, "--folder", folder)
    assert run_pit(*line, "--openings", "none") == 0
    assert all(record.opening == () for record in read_records(file) + read_records(folder / "all_games.jsonl"))
    assert capsys.readouterr().out.count("Every game begins at the start position") == 2
    assert run_pit(*line, "--openings", "none") == 0  # goes on
    assert run_pit(*line) == 2


def test_openings_of_a_wrapped_game_are_different_positions():
    """Its states are its moves, of which several sequences lead to one position."""
    pytest.importorskip("pyspiel")
    openings = drawn(registry.load("openspiel:tic_tac_toe").game, 10_000, 3, seed=1)
    assert len(openings) == len(set(map(str, openings))) == 9 * 8 * 7 // 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("random greedy --openings fair", "unknown kind of openings 'fair' (allowed: balanced, none, random)"),
        ("random greedy --game tictactoe --openings balanced", "nothing tells which openings of tictactoe"),
        ("random greedy mcts:2 --game tictactoe --openings balanced", "nothing tells which openings of tictactoe"),
        ("random human --openings balanced", "--openings out"),
    ],
)
def test_a_wrong_command_line_gets_one_sentence(line, message, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert run_pit(*line.split()) == 2
    shown, errors = capsys.readouterr()
    assert shown == "" and errors.count("\n") == 1 and message in errors
    assert list(tmp_path.iterdir()) == []
