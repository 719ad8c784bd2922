"""The nets that stay in a run folder: the newest, milestones, and all that a manifest names."""

import itertools
import os

import pytest

from alphazero.storage.files import atomic_write
from alphazero.storage.manifest import latest_manifest
from alphazero.storage.run_folder import RunFolder, kept_generations


@pytest.mark.parametrize("keep", [1, 2, 3, 10, 100])
def test_the_newest_and_evenly_spaced_milestones_stay(keep):
    there = set[int]()
    for newest in range(500):
        there = kept_generations(there | {newest}, newest, keep)
        assert 0 in there and there >= set(range(max(0, newest - keep + 1), newest + 1))
        older = sorted(number for number in there if number <= newest - keep)
        assert len(older) <= keep
        steps = {b - a for a, b in itertools.pairwise(older)}
        assert len(steps) <= 1, "a milestone that stays today has stayed ever since"
        assert there == kept_generations(range(newest + 1), newest, keep)


def test_a_run_keeps_its_best_net_and_can_go_on(tmp_path):
    best = ""
    with RunFolder.create(tmp_path / "run", {}) as run:
        for generation in range(41):
            names = [f"generation_{generation:04d}.safetensors", f"generation_{generation:04d}.json"]
            files = {name: atomic_write(run.path / name, b"x" * generation) for name in names}
            if generation > 5:  # the best one, named by each manifest since
                files["generation_0005.safetensors"] = best
            else:
                best = files[names[0]]
            run.commit(generation, files, {"best": min(generation, 5)}, keep=4)
        nets = {int(name[11:15]) for name in os.listdir(run.path) if name.startswith("generation_")}
        assert nets == {0, 5, 16, 32, 37, 38, 39, 40}
        assert (run.path / "generation_0016.json").exists() and not (run.path / "generation_0017.json").exists()
    assert latest_manifest(tmp_path / "run").generation == 40
    assert RunFolder.open(tmp_path / "run").newest_valid().generation == 40
