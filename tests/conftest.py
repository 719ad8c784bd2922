"""Fixtures for all tests: every registered game, and its kernels."""

import functools
import gc
import logging
import math
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# before torch is imported, here and in processes that tests start: its threads wait for each other in every layer, for
# long where other tests share the cores
os.environ.setdefault("OMP_NUM_THREADS", "1")
# converting a network takes a second, more than most tests
os.environ.setdefault("ALPHAZERO_INFERENCE", "torch")
# Ray reads these once in a process, when it is imported
os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_AUTH_TOKEN", "5" * 64)

import coloredlogs
import pytest

from alphazero import progress
from alphazero.catalogue import registry
from alphazero.game import Game, validator
from alphazero.game.kernels import Kernels
from alphazero.training.parts import pace
from alphazero.training.selfplay import calibration

# where a test imports OpenVINO first, that starts a process for each network that it converts, to tell its makers
sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
# ignored by jobs in the background of a script, whose programs leave it so, and tests send it
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# the last gate of each tiny run would play longer than the whole run; before any fixture, since runs are compared
pace.LAST_GATE_GAMES = 20
# how fast the network is, a run measures for a third of a second, and tests look at nothing that follows from it
calibration.SECONDS = 0.002
# a busy machine would need so long for a phase that a line about it joined what commands say
progress._SECONDS_BETWEEN_LINES = math.inf
# what is imported while tests are collected stays: looking through it for what is garbage takes a tenth of the time
gc.set_threshold(1_000_000)


LONGEST = tuple(
    f"tests/{name}.py"
    for name in (
        "training/test_coach", "wasm/test_browser", "wasm/test_dice",
        "games/test_connect4_solver", "games/test_othello_solver", "wasm/test_engine", "benchmarks/test_backgammon",
        "search/test_cuda_search", "game/test_game_contract", "web/test_browser_analyse", "training/test_run",
        "reliability/test_r1_r2_r4_kills", "web/test_browser_files", "cluster/test_d1_faults", "wasm/test_file",
        "commands/test_train", "web/test_browser_play", "training/test_workers", "wasm/test_oracle",
        "web/test_browser_trouble", "docs/test_documents", "reliability/test_r3_signals", "api/test_other_programs",
        "web/test_viewer",
    )
)  # fmt: skip
"""Files that take long, in the order in which they start. Of the first three one alone trains, one compiles a page and
one a search with dice; the next ones need none of these, or two processes would compile the same. What needs all of
them, as the simulator of a GPU does, comes after. Those with a browser mostly wait: no two begin side by side."""

MAIN_FLOWS = {
    "test_a_game_is_played_to_its_end_by_keyboard", "test_a_game_is_played_to_its_end_on_a_phone",
    "test_a_game_is_played_to_its_end",
    "test_undo_takes_both_plies_back_and_redo_brings_them_again", "test_two_people_at_one_screen_and_resigning",
    "test_the_contestants_can_play_each_other", "test_a_move_can_be_typed_and_a_wrong_one_is_told",
    "test_an_analysis_grows_pauses_and_goes_deeper", "test_the_truth_is_shown",
    "test_mistakes_are_found_by_the_oracle_and_tried_again", "test_the_tree_is_walked_down_and_up",
    "test_a_game_is_saved_and_loaded_again", "test_a_link_restores_the_position",
    "test_a_run_is_watched_while_it_trains", "test_a_tournament_with_its_standings_and_games",
    "test_who_sits_where_and_a_resignation_outlast_a_reload", "test_a_game_is_saved_and_loaded",
    "test_markup_in_names_is_shown_as_text", "test_three_sit_at_one_page", "test_three_sit_at_one_file",
}  # fmt: skip
"""Tests of the page in a browser that CI runs, each with one game; `make test-slow` runs the other flows as well."""
BROWSERS = {"browser", "open_page"}
"""Fixtures that start a browser."""

NOT_FAST = tuple(
    f"tests/{name}"
    for name in (
        "benchmarks", "cluster", "commands", "docs", "doctor", "fuzzing", "games", "api", "reliability",
        "tournaments", "training", "wasm", "web", "game/test_compiled_code.py", "catalogue/test_foreign_games.py",
        "catalogue/test_games_folder.py", "catalogue/test_general_games.py", "game/test_kernels.py",
        "catalogue/test_openspiel.py", "catalogue/test_openspiel_facts.py",
        "game/test_board.py::test_games_of_openspiel_that_print_a_board_can_be_clicked",
        "game/test_record.py", "catalogue/test_registry.py", "catalogue/test_trial.py", "game/test_validator.py",
        "matches/test_arena.py", "matches/test_judge.py", "matches/test_openings.py", "matches/test_sprt.py",
        "nets", "players", "search/test_analysis.py", "search/test_cuda_search.py", "search/test_known_games.py",
        "search/test_evaluator.py", "search/test_gumbel.py", "search/test_steps.py", "search/test_alone.py",
        "search/test_dice.py", "search/test_seats.py", "matches/test_seats.py",
        "game/test_unusual_games.py", "search/test_mcts.py::test_reuse_is_the_reference_over_whole_games",
        "test_pages.py", "storage/test_kernel_cache.py", "storage/test_kills.py", "storage/test_lock.py",
        "test_imports.py::test_learning_loads_neither_torchs_compiler_nor_ray", "test_interruption.py",
        "test_machine.py",
    )
)  # fmt: skip
"""Folders, files and tests that `make test-fast` leaves out: programs, browsers, whole runs, what compiles for long."""
FAST_GAMES = {"hex_swap", "othello6", "tictactoe"}
"""The shipped games that `make test-fast` looks at: with a swap, with passes, and the smallest."""


def place(item: pytest.Item) -> int:
    """The place of an item's file among the longest ones, or behind them all."""
    return next((i for i, name in enumerate(LONGEST) if item.nodeid.startswith(name)), len(LONGEST))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="a minute's part of the tests; says what it leaves out")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    name = collection_path.relative_to(config.rootpath).as_posix()
    return True if config.getoption("--fast") and name in NOT_FAST else None


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.getoption("--fast"):
        games = ", ".join(sorted(set(registry.NAMES) - FAST_GAMES))
        terminalreporter.write_line(f"left out, and run by `make test`: {' '.join(NOT_FAST)}; the games {games}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files that take minutes come first: at the end all other processes would wait for them."""
    items.sort(key=place)
    seen = set()
    for item in items:
        if isinstance(item, pytest.Function) and BROWSERS & set(item.fixturenames):
            if item.originalname not in MAIN_FLOWS or item.function in seen:
                item.add_marker(pytest.mark.slow)
            elif not item.get_closest_marker("slow"):
                seen.add(item.function)
    if config.getoption("--fast"):
        others = set(registry.NAMES) - FAST_GAMES
        items[:] = [item for item in items if not (is_about(item, others) or item.nodeid.startswith(NOT_FAST))]


def pytest_collection_finish() -> None:
    """All that was imported stays, and five thousand tests need not look through it for what is garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)


def is_about(item: pytest.Item, games: set[str]) -> bool:
    """Whether the test takes one of these games."""
    name = item.callspec.params.get("game") if hasattr(item, "callspec") else None
    return isinstance(name, str) and name in games


def take_logging_back() -> None:
    """Removes the handler and the level that a command gave the root logger."""
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, coloredlogs.StandardErrorHandler)]:
        root.removeHandler(handler)
    root.setLevel(logging.WARNING)


@pytest.fixture(autouse=True)
def commands_leave_no_logging_behind() -> Iterator[None]:
    """Each test begins without the logging of commands that ran in this process, be it in a test or in a fixture."""
    take_logging_back()
    yield
    take_logging_back()


@pytest.fixture(scope="session", autouse=True)
def folder_of_all_processes(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Names a folder that all processes share which run the tests, in the environment."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    os.environ["ALPHAZERO_TESTS_SHARED"] = str(shared)


LIKE_OTHERS = {"cantstop", "cantstop4", "go6", "go7", "go13", "go19", "gomoku15"}
"""Games whose rules are the same as another one's, on another board or with another number of players."""


@functools.cache
def kernels_by_name(name: str) -> Kernels:
    return Kernels(registry.load(name).game)


@pytest.fixture(
    params=[
        pytest.param(
            name,
            marks=pytest.mark.slow
            if name in ("cantstop", "cantstop4", "go6", "go7", "go13", "go19", "gomoku15")
            else (),
        )
        for name in sorted(registry.NAMES)
    ]
)
def game(request: pytest.FixtureRequest) -> Game:
    """Every game of the registry in turn; in the slow tests also those whose rules are the same as another one's.

    What is their own is tested in any case: tests/games/test_small_games.py and tests/game/test_reading.py have the
    rows of two digits of Gomoku's larger board, tests/catalogue/test_openspiel.py plays it in step with OpenSpiel;
    tests/games/test_cantstop.py has games of two, three and four; tests/games/test_go.py has boards of 19 x 19.
    """
    return kernels_by_name(request.param).game


def some_games(*names: str) -> pytest.MarkDecorator:
    """For tests of `game` that run with these games alone, and with the others in the slow tests."""
    games = [pytest.param(name, marks=() if name in names else pytest.mark.slow) for name in sorted(registry.NAMES)]
    return pytest.mark.parametrize("game", games, indirect=True)


@pytest.fixture
def kernels(game: Game) -> Kernels:
    """The kernels of `game`, compiled once per session."""
    return kernels_by_name(game.name)


@pytest.fixture
def no_rules_are_called_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that is busy all rules are."""
    monkeypatch.setattr(validator, "SLOW", 0.0)
