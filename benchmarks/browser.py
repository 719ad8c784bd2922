"""Measures a game in WebAssembly beside the processor: `python -m benchmarks.browser --game connect4 --net best`.

Random plies of compiled rules, in node and by numba on one thread, in turns; and the time of one search with a net.
All figures are seconds of processor time, so that other programs on the machine count less; medians of `--repeats`.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numba import types

from alphazero.catalogue import registry
from alphazero.commands.shared import parse, run_command
from alphazero.errors import InputError
from alphazero.game import Game
from alphazero.game.kernels import Kernels
from alphazero.players.contestants import load_net
from alphazero.settings import check_ranges
from alphazero.wasm.engine import GameModule, ModuleBuilder, evaluate_by_network, opinion_of_network
from alphazero.wasm.network import add_network, program_of

DRIVER = Path(__file__).with_suffix(".mjs")


@dataclass(frozen=True)
class BrowserBenchmark:
    """Random plies per second and seconds of a search, as WebAssembly and by numba."""

    game: str = "connect4"
    """Game to play."""
    net: str = ""
    """A net to search with; empty: no search is measured."""
    games: int = 20_000
    """Random games in each turn."""
    simulations: int = 200
    """Simulations of the search."""
    repeats: int = 7
    """Turns."""

    def __post_init__(self) -> None:
        check_ranges(self, games=(1, 1_000_000), simulations=(1, 20_000), repeats=(1, 1000))


def _random_games(state, legal_mask, games, seed):
    """Plays random games from the start; returns their plies."""
    key, plies = np.uint64(seed), 0
    for _ in range(games):
        for word in range(len(state)):
            state[word] = np.uint64(0)
        init(state)
        while not is_terminal(state):
            legal(state, legal_mask)
            count = 0
            for action in range(len(legal_mask)):
                count += legal_mask[action]
            key = key * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            left = np.int64((key >> np.uint64(33)) % np.uint64(count))
            for action in range(len(legal_mask)):
                if legal_mask[action]:
                    if left == 0:
                        step(state, action)
                        break
                    left -= 1
            plies += 1
    return plies


def _on_page(games, seed):
    return np.int32(random_games(page().state, page().legal_mask, np.int64(games), np.int64(seed)))


def build(game: Game, net: str) -> tuple[GameModule, bytes]:
    """The module with the loop above, and the weights of its network."""
    builder, weights = ModuleBuilder(game), b""
    builder.bind(_random_games)
    builder.add("random_games", _on_page, types.int32, types.int32)
    if net:
        program = program_of(load_net(net, registry.of(game), "cpu"), game)
        add_network(builder, program)
        builder.add_search(evaluate_by_network, opinion=opinion_of_network)
        weights = program.weights.tobytes()
    return builder.build(), weights


def in_node(config: BrowserBenchmark, engine: GameModule, weights: bytes, seed: int) -> dict[str, list[float]]:
    """Plies per second and seconds of a search, each once, in node."""
    with tempfile.TemporaryDirectory() as folder:
        request = {
            "places": engine.places, "games": config.games, "seed": seed, "repeats": 1,
            "simulations": config.simulations if weights else 0,
        }  # fmt: skip
        (Path(folder) / "engine.wasm").write_bytes(engine.module)
        (Path(folder) / "request.json").write_text(json.dumps(request))
        if weights:
            (Path(folder) / "weights.bin").write_bytes(weights)
        try:
            done = subprocess.run(["node", DRIVER, folder], check=True, capture_output=True, text=True)
        except FileNotFoundError:
            raise InputError("node is not installed: WebAssembly runs in it here") from None
        return json.loads(done.stdout)


def main(argv: list[str]) -> None:
    config = parse(BrowserBenchmark, argv)
    loaded = registry.load(config.game)
    game = loaded.game
    native = Kernels(game).bind(_random_games)
    state, mask = np.zeros(game.state_words, np.uint64), np.zeros(game.num_actions, bool)
    native(state, mask, 1000, 0)
    engine, weights = build(game, config.net)
    rates, others, searches = list[float](), list[float](), list[float]()
    for seed in range(config.repeats):
        begin = time.thread_time()
        plies = native(state, mask, config.games, seed)
        rates.append(plies / (time.thread_time() - begin))
        found = in_node(config, engine, weights, seed)
        others += found["plies"]
        searches += found["searches"]
    rate, other = statistics.median(rates), statistics.median(others)
    print(f"{config.game}: {rate / 1e6:.2f} million random plies/s by numba, {other / 1e6:.2f} in WebAssembly")
    print(f"ratio {other / rate:.2f}; the module has {len(engine.module):,} bytes")
    if searches:
        print(f"{config.net}: {statistics.median(searches):.3f} s for {config.simulations} simulations")


if __name__ == "__main__":
    sys.exit(run_command(main))
