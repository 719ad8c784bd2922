"""`python -m benchmarks.gpu` where there is no GPU."""

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
