#!/usr/bin/env bash
# Expected: the same tensors with the same metadata, saved twice by safetensors, are the same bytes, as for any format
# that is checked by a checksum. Happens: with two or more entries of metadata, each call of `save` writes the entries
# in another order, even within one process, so the files differ, and so do their SHA-256. With no entry or a single
# one they are equal.
# Our users meet it when they compare checkpoints of two equal runs by checksum, or cache files by their contents. We
# keep what a net's card says in a JSON file beside the tensors, and no metadata in the .safetensors file.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q safetensors==0.8.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import hashlib
import json
import sys

import numpy as np
import safetensors
from safetensors.numpy import load, save

print("safetensors", safetensors.__version__)
tensors = {"weights": np.arange(3, dtype=np.float32)}


def files(entries: int) -> list[bytes]:
    return [save(tensors, {f"key{i}": str(i) for i in range(entries)}) for _ in range(20)]


counts = {}
for entries in (0, 1, 2, 8):
    saved = files(entries)
    assert all((load(file)["weights"] == tensors["weights"]).all() for file in saved)
    counts[entries] = len({hashlib.sha256(file).hexdigest() for file in saved})
    print(f"{entries} entries of metadata: {counts[entries]} different files out of {len(saved)}")
for file in files(8)[:2]:
    size = int.from_bytes(file[:8], "little")
    print("order:", *json.loads(file[8 : 8 + size])["__metadata__"])
sys.exit(not (counts[0] == counts[1] == 1 and counts[2] > 1 and counts[8] > 1))
PYTHON
