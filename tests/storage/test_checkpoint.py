"""A checkpoint is read exactly as it was written, or refused with one sentence."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from alphazero.errors import CheckpointError
from alphazero.storage.checkpoint import check_tensors, load_checkpoint, read_card, save_checkpoint
from alphazero.storage.files import to_json, write_sealed_json
from tests.storage.bounds import assert_bounded
from tests.storage.small_run import flip

CARD = {"game": "connect4", "net": {"blocks": 5, "channels": 64}, "elo": 1512.5}


def some_tensors():
    rng = np.random.default_rng(1)
    return {
        "stem.weight": rng.normal(size=(8, 3, 3, 2)).astype(np.float32).transpose(0, 3, 1, 2),  # channels last
        "stem.bias": rng.normal(size=8).astype(np.float16),
        "steps": np.array(12345),
        "mask": np.array([True, False, True]),
        "nothing": np.empty((0, 4)),
    }


@pytest.fixture
def path(tmp_path):
    """Generation 12, saved."""
    folder = tmp_path / "run"
    folder.mkdir()
    save_checkpoint(folder / "generation_0012.safetensors", some_tensors(), CARD)
    return folder / "generation_0012.safetensors"


def assert_refused(read, words=None):
    """The checkpoint is refused in one line, within 2 seconds and 200 MB."""

    def refuse():
        with pytest.raises(CheckpointError, match=words) as caught:
            read()
        assert "generation_0012" in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 600

    assert_bounded(refuse)


def forge(path, content):
    """Puts other weights there, with a card that vouches for them, all checksums right."""
    path.write_bytes(content)
    weights = {"file": path.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    write_sealed_json(path.with_suffix(".json"), {**read_card(path), "weights": weights}, "card_sha256")


def with_header(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


# Round trip


@pytest.mark.parametrize("suffix", [".safetensors", ".json"])
def test_tensors_and_card_come_back(path, suffix):
    tensors, card = load_checkpoint(path.with_suffix(suffix))
    expected = some_tensors()
    assert tensors.keys() == expected.keys()
    for name, tensor in expected.items():
        assert tensors[name].dtype == tensor.dtype and np.array_equal(tensors[name], tensor), name
        assert tensors[name].flags.writeable and tensors[name].flags.c_contiguous
    assert {key: card[key] for key in CARD} == CARD
    assert card == read_card(path) and card["format"] == 1
    assert sorted(os.listdir(path.parent)) == ["generation_0012.json", "generation_0012.safetensors"]


def test_the_card_is_returned_as_written_and_describes_the_file(path):
    card = save_checkpoint(path, some_tensors(), {"elo": {1: (2, 3)}, "weights": "old", "card_sha256": "old"})
    assert card == read_card(path)
    assert card["elo"] == {"1": [2, 3]}
    content = path.read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    assert card["weights"] == {"file": path.name, "bytes": len(content), "sha256": sha256}
    body = {key: value for key, value in card.items() if key != "card_sha256"}
    assert card["card_sha256"] == hashlib.sha256(to_json(body)).hexdigest()


def test_weights_are_plain_safetensors_for_others(path):
    assert torch.equal(safetensors.torch.load_file(path)["steps"], torch.tensor(12345))
    assert torch.equal(
        safetensors.torch.load_file(path)["stem.weight"], torch.from_numpy(some_tensors()["stem.weight"])
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_short_floats_of_others_are_read_exactly(path, dtype):
    """bfloat16, which numpy does not have, comes as float32."""
    tensor = torch.randn(5, 3, generator=torch.Generator().manual_seed(2)).to(dtype)
    forge(path, safetensors.torch.save({"a": tensor, "b": torch.tensor(-0.375, dtype=dtype)}))
    arrays, _ = load_checkpoint(path)
    assert arrays["a"].dtype == (np.float16 if dtype == torch.float16 else np.float32) and arrays["b"].shape == ()
    assert np.array_equal(arrays["a"].astype(np.float32), tensor.float().numpy()) and arrays["b"] == -0.375


SHIPPED = sorted((Path(__file__).resolve().parents[2] / "pretrained").glob("*/*.safetensors"))


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_shipped_net_is_saved_again_with_the_same_bytes(shipped, tmp_path):
    """Those that torch wrote."""
    arrays, card = load_checkpoint(shipped)
    save_checkpoint(tmp_path / shipped.name, arrays, card)
    assert (tmp_path / shipped.name).read_bytes() == shipped.read_bytes()
    assert (tmp_path / shipped.name).with_suffix(".json").read_bytes() == shipped.with_suffix(".json").read_bytes()


def test_no_torch_is_needed():
    code = "import sys, alphazero.storage.checkpoint, alphazero.nets.neural_net, alphazero.nets.devices as d; "
    subprocess.run([sys.executable, "-c", f"{code}assert 'torch' not in sys.modules"], check=True)


def test_tied_weights_can_be_saved(tmp_path):
    weight = np.ones((3, 3))
    save_checkpoint(tmp_path / "a.safetensors", {"a": weight, "b": weight, "row": weight[:, 1]}, {})
    tensors, _ = load_checkpoint(tmp_path / "a.safetensors")
    assert {name: tuple(tensor.shape) for name, tensor in tensors.items()} == {"a": (3, 3), "b": (3, 3), "row": (3,)}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_weights_that_are_not_finite_are_never_written(path, number, dtype):
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    tensors = some_tensors() | {"head.bias": np.array([1.0, number], dtype)}
    for target in (path, path.with_name("other.safetensors")):
        with pytest.raises(CheckpointError, match="'head.bias' holds a number that is not finite"):
            save_checkpoint(target, tensors, CARD)
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


# Damage


@pytest.mark.parametrize("num_cuts", [40, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("suffix", [".safetensors", ".json"])
def test_every_cut_is_refused(path, suffix, num_cuts):
    file = path.with_suffix(suffix)
    content = file.read_bytes()
    cuts = {*np.linspace(0, len(content) - 1, num_cuts).astype(int), 1, 7, 8, 9, len(content) - 1}
    for cut in sorted(cuts, reverse=True):
        os.truncate(file, cut)
        with pytest.raises(CheckpointError, match="generation_0012"):
            load_checkpoint(path)


@pytest.mark.parametrize("num_flips", [40, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("suffix", [".safetensors", ".json"])
def test_every_flipped_bit_is_refused(path, suffix, num_flips):
    file = path.with_suffix(suffix)
    for bit in np.random.default_rng(2).integers(8 * file.stat().st_size, size=num_flips):
        flip(file, bit)
        with pytest.raises(CheckpointError, match="generation_0012"):
            load_checkpoint(path)
        flip(file, bit)
    load_checkpoint(path)


def test_weights_and_card_of_two_checkpoints_are_refused(path):
    other = path.with_name("generation_0011.safetensors")
    save_checkpoint(other, some_tensors() | {"steps": np.array(12346)}, CARD)
    other.rename(path)
    assert_refused(lambda: load_checkpoint(path), "SHA-256 is not the one on its card")


@pytest.mark.parametrize("name", ["generation_0012", "generation_0012.pt", "generation_0012.safetensors.bak"])
def test_other_names_are_refused(path, name):
    assert_refused(lambda: load_checkpoint(path.with_name(name)), "name a .safetensors file")


# Forgery: the checksums are right


class Gadget:
    """Leaves a trace when it is unpickled."""

    def __init__(self, trace):
        self.trace = str(trace)

    def __reduce__(self):
        return os.mkdir, (self.trace,)


def test_a_pickle_is_not_run(path, tmp_path):
    forge(path, pickle.dumps(Gadget(tmp_path / "trace")))
    assert_refused(lambda: load_checkpoint(path), "absurd header")
    torch.save({"a": Gadget(tmp_path / "trace")}, tmp_path / "net.pt")
    forge(path, (tmp_path / "net.pt").read_bytes())
    assert_refused(lambda: load_checkpoint(path), "absurd header")
    assert not (tmp_path / "trace").exists()
    torch.load(tmp_path / "net.pt", weights_only=False)
    assert (tmp_path / "trace").exists()  # so it was a live one


def entry(shape, offsets, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


HOSTILE_WEIGHTS = {
    "shorter than a length": b"abc",
    "no header": bytes(8),
    "endless header": struct.pack("<Q", 2**64 - 1) + b"{}",
    "header beyond the end": struct.pack("<Q", 100) + b"{}",
    "header too large": with_header(b"{}" + b" " * (1 << 20)),
    "deep header": with_header(b'{"a":' * 200_000),
    "line breaks": with_header({"a\nb" * 500: entry([1], [4, 8])}, bytes(8)),
    "header not JSON": with_header(b"import os"),
    "header a list": with_header([]),
    "absurd shape": with_header({"a": entry([2**40, 2**40], [0, 4])}, bytes(4)),
    "absurd end": with_header({"a": entry([2**50], [0, 2**52])}, bytes(4)),
    "negative shape": with_header({"a": entry([-1], [0, 4])}, bytes(4)),
    "overlap": with_header({"a": entry([1], [0, 4]), "b": entry([1], [0, 4])}, bytes(4)),
    "gap": with_header({"a": entry([1], [4, 8])}, bytes(8)),
    "bytes to spare": with_header({"a": entry([1], [0, 4])}, bytes(8)),
    "unknown type": with_header({"a": entry([1], [0, 4], "F33")}, bytes(4)),
    "complex": with_header({"a": entry([1], [0, 8], "C64")}, bytes(8)),
    "eight-bit floats": with_header({"a": entry([4], [0, 4], "F8_E4M3")}, bytes(4)),
    "four-bit floats": with_header({"a": entry([8], [0, 4], "F4")}, bytes(4)),
    "nan in sixteen bits": with_header({"a": entry([1], [0, 2], "BF16")}, bytes([0xC0, 0x7F])),
    "nan": with_header({"a": entry([2], [0, 8])}, struct.pack("<2f", 1, float("nan"))),
    "infinity": with_header({"a": entry([1], [0, 2], "F16")}, bytes([0, 0x7C])),
}


@pytest.mark.parametrize("content", HOSTILE_WEIGHTS.values(), ids=HOSTILE_WEIGHTS)
def test_hostile_weights_are_refused(path, content):
    forge(path, content)
    assert_refused(lambda: load_checkpoint(path))


HOSTILE_CARDS = {
    "name with a path": lambda card: card["weights"].update(file="../outside.safetensors"),
    "absolute name": lambda card: card["weights"].update(file="/etc/passwd"),
    "no name": lambda card: card["weights"].pop("file"),
    "another size": lambda card: card["weights"].update(bytes=card["weights"]["bytes"] + 1),
    "absurd size": lambda card: card["weights"].update(bytes=10**30),
    "negative size": lambda card: card["weights"].update(bytes=-1),
    "size a text": lambda card: card["weights"].update(bytes=str(card["weights"]["bytes"])),
    "another checksum": lambda card: card["weights"].update(sha256="0" * 64),
    "checksum a list": lambda card: card["weights"].update(sha256=[]),
    "no weights": lambda card: card.pop("weights"),
    "weights a list": lambda card: card.update(weights=[]),
    "newer format": lambda card: card.update(format=2),
    "no format": lambda card: card.pop("format"),
}


@pytest.mark.parametrize("change", HOSTILE_CARDS.values(), ids=HOSTILE_CARDS)
def test_hostile_cards_are_refused(path, change):
    (path.parent.parent / "outside.safetensors").write_bytes(path.read_bytes())
    card = read_card(path)
    change(card)
    write_sealed_json(path.with_suffix(".json"), card, "card_sha256")
    assert_refused(lambda: load_checkpoint(path))


SPARSE = {
    "an endless header": (struct.pack("<Q", 1 << 30), 1 << 40, "absurd header"),
    "its tensors are too large": (with_header({"a": entry([1 << 33], [0, 1 << 35])}), 1 << 35, "at most"),
    "its header announces less": (with_header({"a": entry([1], [0, 4])}), 300 << 20, "announces 4 bytes"),
    "its header announces more": (with_header({"a": entry([1 << 26], [0, 1 << 28])}), 100 << 20, "announces 268,435,4"),
    "its header announces nothing": (with_header({}), 100 << 20, "announces 0 bytes"),
    "its header is no object": (with_header([]), 100 << 20, "not a valid checkpoint file"),
    "its header has other offsets": (with_header({"a": {"data_offsets": "x"}}), 100 << 20, "not a valid checkpoint"),
}


@pytest.mark.parametrize(("content", "num_bytes", "words"), SPARSE.values(), ids=SPARSE)
def test_a_sparse_file_is_refused_before_it_is_read(path, monkeypatch, content, num_bytes, words):
    """Whatever its SHA-256 is, and the card may vouch for it."""
    forge(path, content)
    os.truncate(path, len(content) + num_bytes)
    card = read_card(path)
    card["weights"]["bytes"] = len(content) + num_bytes
    write_sealed_json(path.with_suffix(".json"), card, "card_sha256")
    monkeypatch.setattr("alphazero.storage.checkpoint.sha256_of_open", lambda file: pytest.fail("it is read"))
    assert_refused(lambda: load_checkpoint(path), words)


def test_a_file_of_more_bytes_than_the_expected_net_has_is_refused_before_it_is_read(path, monkeypatch):
    tensors = {"a": np.zeros(1 << 20, np.float32)}
    save_checkpoint(path, tensors, CARD)
    assert load_checkpoint(path, tensors["a"].nbytes)[0]["a"].shape == (1 << 20,)
    monkeypatch.setattr("alphazero.storage.checkpoint.sha256_of_open", lambda file: pytest.fail("it is read"))
    assert_refused(
        lambda: load_checkpoint(path, 1000),
        "is of another net: it has 4,194,3.. bytes, and the net that is expected has at most 1,000",
    )


# Names and shapes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"head.bias": np.zeros(7)}, "'head.bias' is missing"),
        ({"steps": None}, "'steps' does not belong there"),
        (
            {"stem.bias": np.zeros(9, some_tensors()["stem.bias"].dtype)},
            r"'stem.bias' is float\d+\[8\], not float\d+\[9\]",
        ),
        ({"mask": np.zeros((3, 1), bool)}, r"'mask' is bool\[3\], not bool\[3, 1\]"),
        ({"stem.bias": np.zeros(8, np.int8)}, r"'stem.bias' is float\d+\[8\], not int8\[8\]"),
        ({f"block{i}.bias": np.zeros(7) for i in range(30)}, "'block1.bias' is missing and 28 more"),
    ],
    ids=["missing", "extra", "wrong size", "wrong rank", "wrong type", "many"],
)
def test_tensors_of_another_net_are_named(change, message):
    expected = {name: tensor for name, tensor in (some_tensors() | change).items() if tensor is not None}
    with pytest.raises(CheckpointError, match=message) as caught:
        check_tensors(some_tensors(), expected, "runs/c4/generation_0012.safetensors")
    assert "runs/c4/generation_0012.safetensors is of another net" in str(caught.value)
