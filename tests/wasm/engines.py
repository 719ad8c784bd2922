"""Engines in node beside the same functions on the processor."""

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numba import njit
from torch import nn

from alphazero.game import Game
from alphazero.game.kernels import Kernels
from alphazero.wasm.engine import GameModule

DRIVER = Path(__file__).with_name("drive.mjs")
SAME = {"gomoku15": "gomoku", "othello": "othello6"}
"""Games whose smaller board has the same rules, and takes less time."""
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed, and runs WebAssembly here")


def run_node(engine: GameModule, request: dict[str, Any], folder: Path) -> bytes:
    """The bytes that the driver writes."""
    module, asked, answers = folder / "engine.wasm", folder / "request.json", folder / "answers.bin"
    module.write_bytes(engine.module)
    asked.write_text(json.dumps({"places": engine.places, **request}))
    subprocess.run(["node", DRIVER, module, asked, answers], check=True, timeout=300)
    return answers.read_bytes()


class Answers:
    """Takes arrays off the bytes, one after another."""

    def __init__(self, content: bytes):
        self.content, self.at = content, 0

    def take(self, kind: Any, count: int = 1) -> np.ndarray:
        found = np.frombuffer(self.content, kind, count, self.at)
        self.at += found.nbytes
        return found

    @property
    def ended(self) -> bool:
        return self.at == len(self.content)


def random_games(kernels: Kernels, count: int, seed: int) -> list[list[int]]:
    """The actions of random games."""
    rng, games = np.random.default_rng(seed), [list[int]() for _ in range(count)]
    states, to_play = kernels.start_states(count), np.zeros(count, np.int8)
    kernels.find_movers(states, to_play)
    while True:
        masks, terminal, _ = kernels.describe_all(states)
        if terminal.all():
            return games
        actions = np.where(terminal, -1, (rng.random(masks.shape) * masks).argmax(axis=1))
        for game, action in zip(games, actions.tolist(), strict=True):
            if action >= 0:
                game.append(action)
        kernels.play(states, to_play, actions)


def positions_of(kernels: Kernels, games: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """The positions after all these actions, `(states uint64[n, K], to_play int8[n])`."""
    states, to_play = kernels.start_states(len(games)), np.zeros(len(games), np.int8)
    kernels.find_movers(states, to_play)
    for ply in range(max(map(len, games))):
        kernels.play(states, to_play, np.array([game[ply] if ply < len(game) else -1 for game in games]))
    return states, to_play


@njit
def planted(state, legal_mask, priors, values):
    """An evaluation that depends on every bit of the position: weights from 1 to 65536, and values in [-1, 1)."""
    key = np.uint64(7)
    for word in range(len(state)):
        key = (key ^ state[word]) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    for action in range(len(priors)):
        key = key * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        priors[action] = np.float32(key >> np.uint64(48)) + np.float32(1.0)
    for seat in range(len(values)):
        values[seat] = np.float32(np.int64(key >> np.uint64(50)) - 8192) / np.float32(8192.0)
        key = key * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)


@njit
def planted_for_all(states, legal_masks, priors, values):
    for i in range(len(states)):
        planted(states[i], legal_masks[i], priors[i], values[i])


def planted_for(game: Game) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """`planted` as the `evaluate` of a search on the processor."""

    def evaluate(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        priors, values = np.empty(legal_masks.shape, np.float32), np.empty((len(states), game.num_values), np.float32)
        planted_for_all(states, legal_masks, priors, values)
        return priors, values.reshape(-1, *game.value_shape)

    return evaluate


def compare_games(game: Game, engine: GameModule, games: Sequence[Sequence[int]], folder: Path) -> int:
    """Asserts that the engine's positions are those of the processor, bit for bit; returns their number."""
    kernels = Kernels(game)
    found, compared = Answers(run_node(engine, {"games": games}, folder)), 0
    for actions in games:
        prefixes = [actions[:ply] for ply in range(len(actions) + 1)]
        states, to_play = positions_of(kernels, prefixes)
        masks, terminal, results = kernels.describe_all(states)
        observations = kernels.observations(states)
        for i in range(len(prefixes)):
            assert found.take(np.int32)[0] == terminal[i]
            for native in (states[i], to_play[i : i + 1], masks[i], results[i : i + 1], observations[i]):
                assert found.take(native.dtype, native.size).tobytes() == native.tobytes(), (game.name, prefixes[i])
            compared += 1
    assert found.ended
    return compared


def with_random_weights(module: nn.Module, seed: int = 0) -> nn.Module:
    """The module with weights and batch statistics as a trained one might have."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in module.state_dict().items():
            noise = torch.randn(tensor.shape, generator=generator)
            if name.endswith("running_var"):
                tensor.copy_(noise.abs() + 0.5)
            elif tensor.ndim == 1:
                tensor.copy_(0.3 * noise + name.endswith("weight"))
            elif tensor.ndim > 1:
                tensor.copy_(noise / tensor[0].numel() ** 0.5)
    return module
