"""A small run for the tests of run folders, played in child processes or here.

It has three generations whose files follow from the seed and from what the generation before them saved. The children
import no torch, so they start fast.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from alphazero.storage import run_folder

ROOT = Path(run_folder.__file__).parents[2]

SCENARIO = """
import os, resource, sys
import numpy as np
from alphazero.storage import files as storage
from alphazero.errors import InputError
from alphazero.storage.run_folder import RunFolder
from alphazero.storage.arrays import Array, read_npz, write_npz
from alphazero.storage.files import atomic_write, write_sealed_json

def go_on(run, num_generations):
    manifest = run.newest_valid()
    rng = np.random.Generator(np.random.Philox(7))
    done, games = 0, np.empty((0, 5))
    if manifest:
        done = manifest.generation
        games = read_npz(run.path / f"replay_{done:04d}.npz", {"games": Array(float, ("n", 5))})["games"]
        state = manifest.state["rng"]
        state["state"] = {name: np.array(words, np.uint64) for name, words in state["state"].items()}
        rng.bit_generator.state = {**state, "buffer": np.array(state["buffer"], np.uint64)}
    run.truncate_metrics(done)
    for generation in range(done + 1, num_generations + 1):
        print(f"generation {generation}", flush=True)
        games = np.concatenate([games, rng.random((4, 5))])[-10:]
        net, card = f"generation_{generation:04d}.safetensors", f"generation_{generation:04d}.json"
        replay, learner = f"replay_{generation:04d}.npz", f"learner_{generation:04d}.npz"
        files = {replay: write_npz(run.path / replay, {"games": games})}
        files[learner] = write_npz(run.path / learner, {"momentum": rng.random(3)})
        files[net] = atomic_write(run.path / net, rng.bytes(1000))
        write_sealed_json(run.path / card, {"generation": generation}, "card_sha256")
        files[card] = storage.sha256_of(run.path / card)
        run.append_metrics({"generation": generation, "loss": rng.random()})
        state = rng.bit_generator.state
        state["buffer"] = state["buffer"].tolist()
        state["state"] = {name: words.tolist() for name, words in state["state"].items()}
        if os.environ.get("LIMIT") and generation == num_generations:
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(os.environ["LIMIT"]),) * 2)
        run.commit(generation, files, {"best": generation, "rng": state})

def main(folder, num_generations):
    begun = os.path.exists(os.path.join(folder, "config.json"))
    with RunFolder.open(folder) if begun else RunFolder.create(folder, {"seed": 7}) as run:
        go_on(run, num_generations)

if __name__ == "__main__":
    try:
        main(sys.argv[1], int(sys.argv[2]))
    except InputError as error:
        print(error)
        sys.exit(2)
    print({name: times for name, times in storage._times_reached.items()})
"""


def start(*arguments, code=SCENARIO, **environment):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", **environment}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def play(folder, num_generations=3, fault="", **environment):
    """Starts the run, or goes on with it; returns exit code and output."""
    child = start(folder, num_generations, ALPHAZERO_FAULT=fault, **environment)
    output, errors = child.communicate(timeout=60)
    assert "Traceback" not in errors, errors
    return child.returncode, output


def resume(folder, num_generations=3):
    """Goes on with the run (or begins one) in this process, which is faster than another child."""
    scenario = {"__name__": "scenario"}
    exec(SCENARIO, scenario)
    scenario["main"](folder, num_generations)


def checksums(folder):
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


def flip(path, bit=400):
    """Flips one bit in place; a second time, it is as before."""
    with open(path, "r+b") as file:
        file.seek(bit // 8)
        byte = file.read(1)[0]
        file.seek(bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))
