"""Names of devices: one for players, several for a run, and numbers where GPUs are hidden."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch

from alphazero.errors import InvalidSetting, UnknownName
from alphazero.nets import devices
from alphazero.nets.devices import choose_device, choose_devices, name_devices, see_only, take_gpu


@pytest.fixture(params=[0, 1, 3])
def gpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of GPUs that torch finds."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: request.param > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: request.param)
    return request.param


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """The GPUs that the process began with are those of each test."""
    devices._gpus.cache_clear()
    yield
    devices._gpus.cache_clear()


def test_auto_is_every_gpu_there_is(gpus: int):
    assert choose_devices("auto") == {0: ("cpu",), 1: ("cuda",), 3: ("cuda:0", "cuda:1", "cuda:2")}[gpus]
    assert choose_device("auto") == ("cuda" if gpus else "cpu")


def test_devices_are_those_that_are_named(gpus: int):
    assert choose_devices("cpu,cpu") == ("cpu", "cpu")
    assert choose_device("cpu") == "cpu"
    if gpus == 3:
        assert choose_devices("cuda:2,cuda:0") == ("cuda:2", "cuda:0")


@pytest.mark.parametrize("choose", [choose_device, choose_devices])
@pytest.mark.parametrize("device", [None, 0, ["cpu"]])
def test_what_is_no_name_is_an_unknown_device(choose, device):
    with pytest.raises(UnknownName, match=r"\(allowed: auto, cpu, cuda"):
        choose(device)


@pytest.mark.parametrize("choose", [choose_device, choose_devices])
def test_a_device_that_is_not_there_is_refused(choose, gpus: int):
    with pytest.raises(UnknownName, match="gpu.*allowed: auto, cpu, cuda"):
        choose("gpu")
    if gpus == 0:
        with pytest.raises(InvalidSetting, match="device='cuda': torch finds no CUDA device here"):
            choose("cuda")
    else:
        assert choose("cuda") in ("cuda", ("cuda",))


@pytest.mark.parametrize("names", ["cpu,cuda", "cuda:1,cuda:1", "cuda,cuda:0"])
def test_devices_of_two_kinds_or_one_gpu_twice_are_refused(names: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(InvalidSetting, match="different devices of one kind"):
        choose_devices(names)


@pytest.mark.parametrize(
    ("visible", "named"),
    [(None, ["cuda:0", "cuda:1"]), ("2,5", ["cuda:2", "cuda:5"]), ("GPU-a,GPU-b", ["cuda:GPU-a", "cuda:GPU-b"])],
)
def test_gpus_are_named_as_the_machine_does(visible: str | None, named: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert name_devices(["cuda:0", "cuda:1"]) == named
    assert name_devices(["cpu"]) == ["cpu"] and name_devices(["cuda"]) == ["cuda"]


def test_a_process_sees_the_gpu_that_it_was_given_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    assert see_only("cpu") == "cpu" and os.environ["CUDA_VISIBLE_DEVICES"] == "4,5"
    assert see_only("cuda:5") == "cuda" and os.environ["CUDA_VISIBLE_DEVICES"] == "5"


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch finds the GPUs 4 and 5, as far as CUDA_VISIBLE_DEVICES shows them."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(os.environ["CUDA_VISIBLE_DEVICES"].split(",")))


@pytest.mark.parametrize(("device", "gpu"), [("auto", "4"), ("cuda:0", "4"), ("cuda:1", "5"), ("cuda:1,cuda:0", "5")])
def test_a_program_that_trains_again_finds_the_gpus_that_it_began_with(device: str, gpu: str, two_gpus):
    chosen = choose_devices(device)
    for _ in range(3):
        assert choose_devices(device) == chosen
        assert name_devices(chosen)[0] == f"cuda:{gpu}"
        take_gpu(name_devices(chosen)[0])
        assert os.environ["CUDA_VISIBLE_DEVICES"] == gpu
    assert choose_devices("auto") == ("cuda:0", "cuda:1")


def test_a_program_that_computes_on_a_gpu_gets_no_other_one(two_gpus, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    for _ in range(2):
        with pytest.raises(InvalidSetting, match=r"computes on GPU 4 .* GPU 5"):
            take_gpu("cuda:5")
        for device in ("cuda:4", "cuda", "cpu"):
            take_gpu(device)
