#!/usr/bin/env bash
# torch and ONNX Runtime: a squeeze that changes nothing becomes a file that cannot be loaded.
#
# In torch `squeeze(1)` leaves a tensor of shape [n, 3] as it is, and one expects the exported file to do so, too. The
# newer exporter (dynamo=True) writes a Squeeze node for axis 1 all the same, raises nothing, and ONNX Runtime refuses the
# file: the dimension must be 1. The older exporter writes no such node.
# Our users meet it when one network class serves games for two (one value) and for three (three values).

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 onnx==1.23.2 onnxruntime==1.32.0 onnxscript==0.7.2
"$folder/venv/bin/python" - "$folder" <<'PYTHON' 2> "$folder/errors"
import sys
import warnings
from importlib.metadata import version

import onnxruntime
import torch

print(*(f"{name} {version(name)}" for name in ("torch", "onnx", "onnxruntime", "onnxscript")))
warnings.simplefilter("ignore")


class Net(torch.nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.layer = torch.nn.Linear(4, outputs)

    def forward(self, x):
        return self.layer(x).squeeze(1)


found = {}
for outputs in (1, 3):
    net, x = Net(outputs).eval(), torch.zeros(2, 4)
    for newer in (False, True):
        path = f"{sys.argv[1]}/{outputs}{newer}.onnx"
        torch.onnx.export(net, (x,), path, dynamo=newer, input_names=["x"], verbose=False)
        try:
            session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
            found[outputs, newer] = str(session.run(None, {"x": x.numpy()})[0].shape)
        except Exception as error:
            found[outputs, newer] = "must be 1" if "must be 1" in str(error) else "another error"
        exporter = "newer" if newer else "older"
        print(f"{outputs} output(s): torch {tuple(net(x).shape)}, {exporter} exporter: {found[outputs, newer]}")
expected = {(1, False): "(2,)", (1, True): "(2,)", (3, False): "(2, 3)", (3, True): "must be 1"}
sys.exit(0 if found == expected else 1)
PYTHON
