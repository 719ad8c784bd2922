"""All of `python -m benchmarks.gpu` that can be run without a GPU, in numba's simulator: run by test_gpu_benchmark.py.

`NUMBA_ENABLE_CUDASIM=1 python tests/gpu_benchmark_check.py FILE` writes the figures, which mean nothing, into FILE.
"""

from __future__ import annotations

import sys

import torch

from alphazero.commands.shared import run_command
from alphazero.nets.torch_net import TorchCudaEvaluator, TorchNet
from alphazero.search.mcts import SearchConfig
from benchmarks import gpu

# the processor's memory stands for the GPU's, and everything is small
torch.cuda.is_available = lambda: True
torch.cuda.synchronize = torch.cuda.empty_cache = lambda: None
TorchNet.use_device = lambda self, name: None  # type: ignore[method-assign]
TorchNet.cuda_evaluator = lambda self: TorchCudaEvaluator(self)  # type: ignore[method-assign]
gpu.ceilings = lambda options: {}
gpu.place = lambda source, device: source
gpu.seconds = lambda work, repeats=1: (work(), 1.0)[1]
gpu.make_evaluators = lambda kernels, net, count, size: [
    TorchCudaEvaluator(net)
]  # one launch at a time in the simulator
gpu.NETS = {"5x64": (1, 4)}
gpu.SearchConfig = lambda num_simulations: SearchConfig(num_simulations=4)

if __name__ == "__main__":
    sys.exit(run_command(gpu.main, ["--game", "tictactoe", "--quick", "--batch", "4", "--json", sys.argv[1]]))
