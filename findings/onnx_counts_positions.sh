#!/usr/bin/env bash
# Expected: `torch.onnx.export(..., dynamo=True)` with a named dynamic size for the batch writes a file that takes any
# number of positions, or fails. Happens: if `forward` says `len(x)`, the file is written without an error or a warning,
# and takes only the number of positions of the example; onnxruntime refuses all others. With `x.shape[0]`, which is the
# same number, the size stays dynamic.
# Our users meet it with `alphazero export` and a network of their own; the command refuses such a network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.32.0 numpy==2.4.6
"$folder/venv/bin/python" - 2>"$folder/errors" <<'PYTHON'
import contextlib
import importlib.metadata
import io
import sys
import warnings

import numpy as np
import onnxruntime
import torch

for package in ("torch", "onnx", "onnxscript", "onnxruntime"):
    print(package, importlib.metadata.version(package))


class Net(torch.nn.Module):
    def __init__(self, by_len: bool):
        super().__init__()
        self.layer, self.by_len = torch.nn.Linear(8, 3), by_len

    def forward(self, x):
        return self.layer(x.view(len(x) if self.by_len else x.shape[0], 8))


def export(by_len: bool) -> tuple[str, bool, list[str]]:
    """The batch's size in the file, whether 5 positions are answered, and torch's warnings that speak of sizes."""
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        program = torch.onnx.export(
            Net(by_len).eval(), (torch.zeros(2, 2, 4),), dynamo=True, verbose=False, input_names=["x"],
            dynamic_shapes={"x": {0: torch.export.Dim("positions")}},
        )
    size = program.model_proto.graph.input[0].type.tensor_type.shape.dim[0]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    content = program.model_proto.SerializeToString()
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    try:
        answers = session.run(None, {"x": np.zeros((5, 2, 4), np.float32)})[0].shape == (5, 3)
    except Exception:
        answers = False
    about = [str(each.message) for each in caught if "positions" in str(each.message)]
    return size.dim_param or str(size.dim_value), answers, about


by_shape, by_len = export(False), export(True)
for name, (size, answers, about) in (("x.shape[0]", by_shape), ("len(x)", by_len)):
    print(f"{name}: the file's batch is {size!r}; answers five positions: {answers}; warnings about it: {len(about)}")
sys.exit(not (by_shape[1] and by_len[0] == "2" and not by_len[1] and not by_len[2]))
PYTHON
