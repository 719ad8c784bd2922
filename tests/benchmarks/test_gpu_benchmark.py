"""`python -m benchmarks.gpu` where there is no GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from alphazero.commands.shared import run_command
from benchmarks.gpu import main


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU, and measuring it takes minutes")
@pytest.mark.parametrize("argv", [[], ["--quick"], ["--batch", "0"], ["--json", "no/such/folder/x.json"]])
def test_without_a_gpu_it_says_so_in_one_sentence(argv: list[str], capsys: pytest.CaptureFixture[str]):
    assert run_command(main, argv) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and said.count("\n") == 1


def test_its_parts_run_in_the_simulator(tmp_path: Path):
    check, file = Path(__file__).parent / "gpu_benchmark_check.py", tmp_path / "gpu.json"
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(check.parents[2])}
    command = [sys.executable, "-W", "ignore::RuntimeWarning", str(check), str(file)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    figures = json.loads(file.read_text())
    assert figures.pop("trees_on_gpu") is True
    for name, figure in figures.items():
        assert figure > 0 or name.startswith("share_of_gaps"), name
    for name in (
        "evaluations_per_s_5x64_4096", "simulations_per_s_4", "simulations_over_raw_4", "share_of_kernels_4",
        "self_play_positions_per_s_64", "learner_samples_per_s_512_window_on_gpu",
    ):  # fmt: skip
        assert name in figures
    assert any(name.endswith("trees_on_processor") for name in figures)
