"""`python -m benchmarks.gpu` where there is no GPU."""

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


def test_every_figure_is_the_work_done_over_the_seconds_it_took():
    check = Path(__file__).parent / "gpu_benchmark_check.py"
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(check.parents[2])}
    command = [sys.executable, "-W", "ignore::RuntimeWarning", str(check)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.endswith("all equal\n")
