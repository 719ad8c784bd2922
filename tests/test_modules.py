"""Each module has a file of tests of its name in the folder of its wing, or the table says which tests it has."""

import ast
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.conftest import BROWSERS, MAIN_FLOWS, NOT_FAST
from tests.program import FRAMEWORK, GAMES, ROOT, name_of, parse

TESTS = [path.relative_to(ROOT) for path in ROOT.joinpath("tests").rglob("test_*.py")]
MODULES = [path for path in (*FRAMEWORK, *GAMES) if path.stem not in ("__init__", "__main__")]

TESTED_IN = {
    "tests/wasm/test_dice_file.py": ["alphazero/wasm/dice_looks.py"],
    "tests/games/test_tictacmo.py": ["games/tictacmo/benchmark.py", "games/tictacmo/solver.py"],
    "tests/tournaments/test_tables.py": ["alphazero/commands/tables.py"],
    "tests/matches/test_seats.py": ["alphazero/matches/seating.py"],
    "tests/commands/test_export.py": ["alphazero/nets/onnx_export.py"],
    "tests/commands/test_gtp.py": ["alphazero/game/reading/gtp_words.py", "alphazero/players/gtp_[gs]*.py"],
    "tests/commands/test_uci.py": ["alphazero/players/uci_server.py"],
    "tests/commands/test_new_game.py": ["alphazero/commands/rules/*.py"],
    "tests/commands/test_program.py": ["alphazero/_version.py", "alphazero/commands/shared.py", "alphazero/errors.py"],
    "tests/commands/test_report.py": ["alphazero/training/report.py"],
    "tests/doctor/test_installation.py": ["alphazero/doctor/findings.py"],
    "tests/doctor/test_run.py": ["alphazero/commands/doctor.py"],
    "tests/commands/test_pit.py": ["alphazero/commands/options.py"],
    "tests/game/test_board.py": [
        "alphazero/game/drawing.py", "alphazero/game/glyphs.py", "alphazero/game/views.py",
    ],
    "tests/catalogue/test_foreign_games.py": ["alphazero/game/python_game.py", "alphazero/catalogue/adapters/*.py"],
    "tests/game/test_game_contract.py": ["alphazero/game/game.py", "alphazero/game/rules.py", "games/*/game.py"],
    "tests/game/test_reading.py": ["alphazero/game/reading/*.py"],
    "tests/game/test_sgf.py": ["alphazero/game/reading/wthor.py"],
    "tests/game/test_record_files.py": ["alphazero/game/reading/pgn.py", "alphazero/game/reading/san.py"],
    "tests/catalogue/test_games_folder.py": ["alphazero/catalogue/shipped.py"],
    "tests/catalogue/test_registry.py": [
        "alphazero/game/spec.py", "alphazero/catalogue/user_code.py", "alphazero/training/presets.py",
        "games/*/preset.py",
    ],
    "tests/game/test_validator.py": ["alphazero/game/laws/*.py"],
    "tests/games/test_connect4_solver.py": ["games/connect4/solver_kernels.py"],
    "tests/api/test_face.py": ["alphazero/api/*.py"],
    "tests/matches/test_arena.py": [
        "alphazero/matches/result.py",
    ],
    "tests/nets/test_inference.py": ["alphazero/nets/kernels/l*.py", "alphazero/nets/kernels/openvino.py"],
    "tests/nets/test_winograd.py": ["alphazero/nets/kernels/winograd_kernels.py"],
    "tests/nets/test_other_nets.py": ["alphazero/nets/neural_net.py"],
    "tests/games/test_chess.py": ["games/chess/*.py"],
    "tests/games/test_dobutsu.py": ["games/dobutsu/*.py"],
    "tests/games/test_draughts.py": ["games/draughts/*.py"],
    "tests/games/test_go.py": ["games/go/points.py"],
    "tests/games/test_pig.py": ["games/pig/*.py"],
    "tests/games/test_twenty48.py": ["games/twenty48/*.py"],
    "tests/nets/test_resnet.py": ["games/connect4/net.py"],
    "tests/players/test_gtp_player.py": ["alphazero/players/engine_process.py"],
    "tests/players/test_players.py": [
        "alphazero/players/baselines.py", "alphazero/players/net_players.py", "alphazero/players/player.py",
        "alphazero/search/rollouts.py",
    ],
    "tests/search/test_cuda_search.py": ["alphazero/search/cuda_*.py", "alphazero/search/placement.py"],
    "tests/search/test_mcts.py": ["alphazero/search/cpu_kernels.py", "alphazero/search/roots.py"],
    "tests/search/test_tree.py": [
        "alphazero/game/randomness.py", "alphazero/search/backup.py", "alphazero/search/expansion.py",
        "alphazero/search/selection.py",
    ],
    "tests/storage/test_lock.py": ["alphazero/storage/folder_lock.py"],
    "tests/storage/test_schema.py": ["alphazero/storage/formats.py"],
    "tests/tournaments/test_tournament.py": ["alphazero/tournaments/folder.py"],
    "tests/tournaments/test_tournament_command.py": [
        "alphazero/commands/tournament.py",
    ],
    "tests/training/test_coach.py": [
        "alphazero/training/config.py", "alphazero/training/parts/*.py", "alphazero/training/plan.py",
    ],
    "tests/storage/test_run_folder.py": ["alphazero/storage/manifest.py", "alphazero/storage/run_names.py"],
    "tests/training/test_selfplay.py": ["alphazero/training/selfplay/*.py"],
    "tests/training/test_worker_process.py": ["alphazero/players/child_processes.py"],
    "tests/wasm/test_engine.py": ["alphazero/wasm/compiler.py", "alphazero/wasm/m*.py"],
    "tests/wasm/test_file.py": ["alphazero/web/one_file.py"],
    "tests/web/test_engine.py": ["alphazero/web/searches.py"],
    "tests/web/test_viewer.py": ["alphazero/web/server.py"],
    "tests/web/test_watch.py": ["alphazero/web/tables.py"],
}  # fmt: skip
"""For each file of tests the modules that it tests beside, or instead of, the one of its name."""


def own_tests(module: Path) -> list[Path]:
    """Files of tests that have the module's name, which may begin with its folder's: `test_connect4_solver.py`; the
    rules of a game are tested under the name of the game."""
    folder = module.relative_to(ROOT).parts[1] if module in FRAMEWORK else "games"
    names = {f"test_{module.stem}", f"test_{module.parent.name}_{module.stem}"}
    if module.stem == "game":
        names.add(f"test_{module.parent.name}")
    return [test for test in TESTS if test.stem in names and (folder in test.parts or folder == module.name)]


def test_each_module_is_tested_in_a_file_that_one_can_name():
    patterns = [pattern for modules in TESTED_IN.values() for pattern in modules]
    nowhere = [
        name_of(module)
        for module in MODULES
        if not own_tests(module) and not any(fnmatch(name_of(module), pattern) for pattern in patterns)
    ]
    assert nowhere == [], "write tests/WING/test_NAME.py, or say in TESTED_IN where these modules are tested"


@pytest.mark.parametrize("test", TESTED_IN)
def test_the_table_names_tests_and_modules_that_are_there(test: str):
    assert (ROOT / test).is_file()
    for pattern in TESTED_IN[test]:
        without = [module for module in MODULES if fnmatch(name_of(module), pattern) and not own_tests(module)]
        assert without, f"{pattern} names no module, or only modules with a file of tests of their name"


@pytest.mark.parametrize("name", NOT_FAST)
def test_what_the_fast_tests_leave_out_is_there(name: str):
    file, _, test = name.partition("::")
    assert (ROOT / file).exists() and (not test or f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"))


def test_the_main_flows_are_tests_in_a_browser():
    flows = {
        node.name
        for test in TESTS
        if any(name in (ROOT / test).read_text(encoding="utf-8") for name in BROWSERS)
        for node in parse(ROOT / test).body
        if isinstance(node, ast.FunctionDef) and BROWSERS & {argument.arg for argument in node.args.args}
    }
    assert flows >= MAIN_FLOWS
