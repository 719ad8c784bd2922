"""Arrays come back as they were written, and no archive fills the memory, runs anything or breaks out."""

from __future__ import annotations

import io
import os
import pickle
import time
import zipfile

import numpy as np
import pytest

from alphazero.errors import StorageError
from alphazero.storage import arrays
from alphazero.storage.arrays import Array, read_npz, write_npz
from alphazero.storage.files import sha256_of
from tests.storage.bounds import assert_refused
from tests.storage.small_run import flip

ARRAYS = {
    "visits": np.arange(12, dtype=np.int32).reshape(3, 4),
    "value": np.array([0.5, -1.0, np.nan]),
    "mask": np.array([True, False]),
    "scalar": np.float32(3.5).reshape(()),
    "none": np.empty((0, 7), np.uint64),
}
EXPECTED = {name: Array(array.dtype.type, array.shape) for name, array in ARRAYS.items()}


def names(folder):
    return sorted(os.listdir(folder))


def test_arrays_come_back(tmp_path):
    sha256 = write_npz(tmp_path / "a.npz", ARRAYS)
    assert sha256 == sha256_of(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as loaded:
        by_numpy = dict(loaded)
    for read in (read_npz(tmp_path / "a.npz", EXPECTED), by_numpy):
        assert read.keys() == ARRAYS.keys()
        for name, array in ARRAYS.items():
            assert read[name].dtype == array.dtype and read[name].shape == array.shape
            np.testing.assert_array_equal(read[name], array)
    assert read_npz(tmp_path / "a.npz", EXPECTED)["visits"].flags.writeable


@pytest.mark.parametrize("row", [0, (1 << 18) - 1, 1 << 18, 599_999])
@pytest.mark.parametrize("number", [np.nan, np.inf, 1.5, -1.5])
def test_one_number_outside_of_the_range_is_found_wherever_it_is(tmp_path, row, number):
    """In an array longer than a piece, of random numbers, which cannot be packed."""
    array, expected = np.random.default_rng(row).random(600_000, np.float32), {"a": Array(np.float32, ("n",), -1, 1)}
    write_npz(tmp_path / "a.npz", {"a": array})
    np.testing.assert_array_equal(read_npz(tmp_path / "a.npz", expected)["a"], array)
    array[row] = number
    write_npz(tmp_path / "a.npz", {"a": array})
    with pytest.raises(StorageError, match=f"holds {number}, and its values lie between -1 and 1"):
        read_npz(tmp_path / "a.npz", expected)


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ({"a": Array(np.int8, ("n", 4)), "b": Array(np.int8, ("n",))}, "array b is int8[2], not int8[3]"),
        ({"a": Array(np.int8, (3, 5)), "b": Array(np.int8, (2,))}, "array a is int8[3, 4], not int8[3, 5]"),
        ({"a": Array(np.int16, (3, 4)), "b": Array(np.int8, (2,))}, "array a is int8[3, 4], not int16[3, 4]"),
        ({"a": Array(np.int8, ("m", "k")), "b": Array(np.int8, (2,))}, "array a is int8[3, 4], not int8[m <= 2, k]"),
        ({"a": Array(np.int8, ("k", 4))}, "it holds the arrays 'a', 'b', not a"),
        ({"a_#": Array(np.int8, ("k", 4))}, "it holds the arrays 'a', 'b', not a_0, a_1"),
    ],
)
def test_arrays_that_do_not_fit_their_description_are_named(tmp_path, expected, said):
    write_npz(tmp_path / "a.npz", {"a": np.zeros((3, 4), np.int8), "b": np.zeros(2, np.int8)})
    with pytest.raises(StorageError) as caught:
        read_npz(tmp_path / "a.npz", expected, {"m": 2})
    assert said in str(caught.value)


def test_a_numbered_name_stands_for_as_many_arrays_as_there_are(tmp_path):
    arrays = {f"{name}_{i}": np.full(2, i) for name in ("a", "b") for i in range(3)}
    write_npz(tmp_path / "a.npz", arrays)
    found = read_npz(tmp_path / "a.npz", {"a_#": Array(np.int64, ("n",)), "b_#": Array(np.int64, ("n",))})
    assert found.keys() == arrays.keys() and found["b_2"].tolist() == [2, 2]


def test_no_array_of_a_number_may_be_missing(tmp_path):
    expected = {f"{name}_#": Array(np.int64, ("n",)) for name in ("a", "b")}
    arrays = {f"{name}_{i}": np.full(2, i) for name in ("a", "b") for i in range(12)}
    for missing in ("b_3", "b_0"):
        write_npz(tmp_path / "a.npz", {name: array for name, array in arrays.items() if name != missing})
        with pytest.raises(StorageError, match="it holds the arrays"):
            read_npz(tmp_path / "a.npz", expected)


def test_equal_arrays_give_equal_bytes(tmp_path, monkeypatch):
    first = write_npz(tmp_path / "a.npz", ARRAYS)
    monkeypatch.setattr(time, "time", lambda: 2e9)
    monkeypatch.setattr(time, "localtime", lambda *_: time.gmtime(2e9))
    other = {name: np.asfortranarray(ARRAYS[name]) for name in reversed(ARRAYS)}
    other["scalar"] = ARRAYS["scalar"]
    assert write_npz(tmp_path / "b.npz", other) == first


def test_arrays_that_would_need_pickle_are_not_written(tmp_path):
    with pytest.raises(TypeError, match="numbers"):
        write_npz(tmp_path / "a.npz", {"a": np.array([{}, None])})
    assert names(tmp_path) == []


def test_what_could_not_be_read_again_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "MAX_BYTES", 8128)
    write_npz(tmp_path / "a.npz", {"a": np.zeros(1000)})
    assert read_npz(tmp_path / "a.npz", {"a": Array(float, ("n",))}, max_bytes=8128)["a"].shape == (1000,)
    with pytest.raises(StorageError, match="8,128 bytes unpacked"):
        read_npz(tmp_path / "a.npz", {"a": Array(float, ("n",))}, max_bytes=8127)
    with pytest.raises(StorageError, match=r"b.npz would hold 8,136 bytes.* 8,128 are allowed; play less$"):
        write_npz(tmp_path / "b.npz", {"a": np.zeros(1001)}, "; play less")
    assert not (tmp_path / "b.npz").exists()


@pytest.mark.parametrize("num_cuts", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_a_cut_archive_is_refused(tmp_path, num_cuts):
    path = tmp_path / "a.npz"
    write_npz(path, ARRAYS)
    content = path.read_bytes()
    for cut in np.linspace(0, len(content) - 1, num_cuts).astype(int):
        path.write_bytes(content[:cut])
        with pytest.raises(StorageError, match="a.npz"):
            read_npz(path, EXPECTED)


def test_a_flipped_bit_in_an_archive_never_breaks_out(tmp_path):
    """Not every one is found without the manifest's checksum, but none may raise anything else."""
    path = tmp_path / "a.npz"
    write_npz(path, ARRAYS)
    rng, found = np.random.default_rng(0), 0
    for bit in rng.integers(8 * path.stat().st_size, size=500):
        flip(path, bit)
        try:
            read_npz(path, EXPECTED)
        except StorageError:
            found += 1
        flip(path, bit)
    assert 250 < found < 500


class Gadget:
    """Leaves a trace when it is unpickled."""

    def __init__(self, trace):
        self.trace = str(trace)

    def __reduce__(self):
        return os.mkdir, (self.trace,)


def npy(header, data=b""):
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def archive(*members, compression=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression, compresslevel=1) as file:
        for name, content in members:
            file.writestr(name, content)
    return buffer.getvalue()


def header(shape, dtype="<f4", more=""):
    return f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, {more}}}"


def lying_archive():
    """A member that unpacks to 250 MB, of which both its headers admit a thousand bytes."""
    head = npy(header("(200,)"))
    content = archive(("a.npy", head + bytes(250_000_000)))
    size, lie = (len(head) + length for length in (250_000_000, 800))
    assert content.count(size.to_bytes(4, "little")) == 2
    return content.replace(size.to_bytes(4, "little"), lie.to_bytes(4, "little"))


def objects(gadget):
    buffer = io.BytesIO()
    np.save(buffer, np.array([gadget], dtype=object), allow_pickle=True)
    return buffer.getvalue()


HOSTILE_ARCHIVES = {
    "empty": lambda _: b"",
    "pickle": pickle.dumps,
    "pickle in a zip": lambda gadget: archive(("a.npy", pickle.dumps(gadget))),
    "array of objects": lambda gadget: archive(("a.npy", objects(gadget))),
    "object header": lambda gadget: archive(("a.npy", npy(header("(1,)", "|O"), pickle.dumps(gadget)))),
    "bomb": lambda _: archive(("a.npy", npy(header("(62500000,)")) + bytes(250_000_000))),
    "bomb that lies": lambda _: lying_archive(),
    "numbers announced, none there": lambda _: archive(("a.npy", npy(header("(62500000,)"), bytes(8)))),
    "absurd shape": lambda _: archive(("a.npy", npy(header("(1000000000000,)"), bytes(8)))),
    "overflowing shape": lambda _: archive(("a.npy", npy(header("(4294967296, 4294967296)"), bytes(8)))),
    "huge number": lambda _: archive(("a.npy", npy(header(f"({'9' * 5000},)")))),
    "empty but absurd": lambda _: archive(("a.npy", npy(header(f"(0, {10**30})")))),
    "negative shape": lambda _: archive(("a.npy", npy(header("(-1,)")))),
    "too many sizes": lambda _: archive(("a.npy", npy(header("(" + "1, " * 99 + "1)"), bytes(4)))),
    "deep header": lambda _: archive(("a.npy", npy(header("(" * 5000)))),
    "expression": lambda _: archive(("a.npy", npy(header("(2,)", more="'x': __import__('os'), "), bytes(8)))),
    "no such type": lambda _: archive(("a.npy", npy(header("(2,)", "<f3"), bytes(6)))),
    "too few numbers": lambda _: archive(("a.npy", npy(header("(2,)"), bytes(7)))),
    "stored": lambda _: archive(("a.npy", npy(header("(2,)"), bytes(8))), compression=zipfile.ZIP_STORED),
    "lzma": lambda _: archive(("a.npy", npy(header("(2,)"), bytes(8))), compression=zipfile.ZIP_LZMA),
    "not an array": lambda _: archive(("a.txt", b"hello")),
}


@pytest.mark.parametrize("make", HOSTILE_ARCHIVES.values(), ids=HOSTILE_ARCHIVES)
def test_hostile_archives_are_refused(tmp_path, make):
    path = tmp_path / "a.npz"
    path.write_bytes(make(Gadget(tmp_path / "trace")))
    wanted = {"a": Array(np.float32, ("n",))}
    assert_refused(lambda: read_npz(path, wanted, max_bytes=50_000_000), StorageError, "a.npz")
    assert names(tmp_path) == ["a.npz"]


def test_a_directory_of_absurd_size_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(archive(*((f"{i:0100}.npy", b"") for i in range(8_000))))
    wanted = {"a": Array(np.float32, ("n",))}
    assert_refused(lambda: read_npz(path, wanted, max_bytes=50_000_000), StorageError, "absurdly large")


def test_the_archives_above_are_hostile_only_where_they_say_so(tmp_path):
    """Built the same way, an honest one is read and the gadget does leave its trace."""
    (tmp_path / "a.npz").write_bytes(archive(("a.npy", npy(header("(2,)"), bytes(8)))))
    assert read_npz(tmp_path / "a.npz", {"a": Array(np.float32, ("n",))})["a"].tolist() == [0, 0]
    pickle.loads(pickle.dumps(Gadget(tmp_path / "trace")))
    assert (tmp_path / "trace").exists()


def test_a_name_that_occurs_twice_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    member = npy(header("(2,)"), bytes(8))
    with pytest.warns(UserWarning, match="Duplicate"):
        path.write_bytes(archive(("a.npy", member), ("a.npy", member)))
    with pytest.raises(StorageError, match="twice"):
        read_npz(path, {"a": Array(np.float32, ("n",))})
