"""Names of devices: one for players, several for a run, and numbers where GPUs are hidden."""

from __future__ import annotations

import os

import pytest
import torch

from alphazero.errors import InvalidSetting, UnknownName
from alphazero.nets.devices import choose_device, choose_devices, name_devices, see_only


@pytest.fixture(params=[0, 1, 3])
def gpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of GPUs that torch finds."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: request.param > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: request.param)
    return request.param


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


@pytest.mark.parametrize("names", ["cpu,cuda", "cuda:1,cuda:1"])
def test_devices_of_two_kinds_or_one_gpu_twice_are_refused(names: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(InvalidSetting, match="different devices of one kind"):
        choose_devices(names)


@pytest.mark.parametrize(
    ("visible", "named"),
    [(None, ["cuda:0", "cuda:1"]), ("2,5", ["cuda:2", "cuda:5"]), ("GPU-a,GPU-b", ["cuda:GPU-a", "cuda:GPU-b"])],
)
def test_gpus_are_named_as_the_machine_does(visible: str | None, named: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert name_devices(["cuda:0", "cuda:1"]) == named
    assert name_devices(["cpu"]) == ["cpu"] and name_devices(["cuda"]) == ["cuda"]


def test_a_process_sees_the_gpu_that_it_was_given_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    assert see_only("cpu") == "cpu" and os.environ["CUDA_VISIBLE_DEVICES"] == "4,5"
    assert see_only("cuda:5") == "cuda" and os.environ["CUDA_VISIBLE_DEVICES"] == "5"
