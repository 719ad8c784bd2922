"""The doctor looks at the installation: facts, what is wrong, and advice."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from alphazero.commands import doctor
from alphazero.doctor import installation
from alphazero.doctor.findings import Section, show, show_bytes

ROOT = Path(__file__).resolve().parents[2]


def sentences(sections: list[Section]) -> tuple[str, str]:
    """What is wrong, and the advice."""
    wrong = " ".join(sentence for section in sections for sentence in section.wrong)
    return wrong, " ".join(sentence for section in sections for sentence in section.advice)


def test_every_extra_for_users_is_looked_for():
    """`test` and `docs` are for those who change the framework."""
    setup = (ROOT / "setup.py").read_text(encoding="utf-8").partition("extras_require=")[2]
    extras = re.findall(r'^        "(\w+)": \[', setup, re.MULTILINE)
    assert {extra for extra, _ in installation.OPTIONAL.values()} == set(extras) - {"test", "docs"}


def test_the_installation_is_described(capsys):
    code = 0
    try:
        doctor.main([])
    except SystemExit as leaving:  # this machine may lack something
        code = leaving.code
    shown = capsys.readouterr().out
    assert code == int(shown.startswith("wrong: "))
    assert all(len(line) <= 100 for line in shown.splitlines())
    for words in ("torch ", "numba ", "cores ", "compiled code ", "free disk ", "connect4/best ", "5x64 ", "GFLOP/s"):
        assert words in shown, words
    assert len([line for line in shown.splitlines() if " positions/s by torch, " in line]) == 2


def test_a_faster_network_has_a_larger_share(monkeypatch: pytest.MonkeyPatch):
    """The figures follow from the times, the operations and the product alone."""
    times = {"product": 0.001, "connect4/best": 0.5, "5x64": 0.001}
    monkeypatch.setattr(
        installation, "_best_times", lambda calls: {name: times[name.partition(" ")[0]] for name in calls}
    )
    section = installation._speed()
    rows = dict(section.rows)
    (product,) = (fact for name, fact in section.rows if name.startswith("product"))
    assert product.startswith(f"{2 * 1024**3 / 0.001 / 1e9:,.0f} GFLOP/s")
    assert rows["connect4/best"].startswith("128 positions/s") and rows["5x64"].startswith("64,000 positions/s")
    (advice,) = section.advice
    assert "connect4/best reaches" in advice and not section.wrong


def test_little_room_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=50 << 20))
    monkeypatch.setattr(installation, "free_memory", lambda: 100 << 20)
    monkeypatch.setattr(installation, "folder_of", lambda compiled: None)
    wrong, advice = sentences([installation._room()])
    assert "every start compiles" in wrong
    assert "52.4 MB are free on the disk" in advice and "105 MB of memory are free" in advice


def test_a_busy_processor_and_a_container_are_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (99.0, 0.0, 0.0))
    monkeypatch.setattr(installation, "cpu_quota", lambda: 0.5)
    section = installation._processor()
    wrong, advice = sentences([section])
    assert not wrong and "other programs keep the processor busy (99.0" in advice
    assert ("limit", "this container gets the time of 0.5 cores") in section.rows


def test_a_gpu_that_torch_cannot_use_is_wrong(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert "an NVIDIA GPU that torch cannot use" in sentences([installation._gpu()])[0]
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert sentences([installation._gpu()]) == ("", "")


def test_tables_are_plain_and_narrow():
    section = Section("title", [("name", "word " * 40), ("x", "")], ["wrong " * 30], ["advice"])
    shown = show([section, Section("empty")])
    assert shown.startswith("wrong: wrong ") and "\nadvice: advice\n\ntitle\n  name  word" in shown
    assert max(map(len, shown.splitlines())) <= 100 and shown.endswith("\n  x\n\nempty")
    assert show([]) == "nothing is wrong"
    assert [show_bytes(n) for n in (0, 999, 1500, 999_999, 10**9, 5 * 10**12)] == [
        "0 bytes", "999 bytes", "1.5 kB", "1000 kB", "1.0 GB", "5.0 TB",
    ]  # fmt: skip


def test_the_processor_is_timed_beside_a_gpu_that_cannot_be_used(monkeypatch):
    """It may be full, or another program's."""

    def fail(*arguments):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(installation.torch.accelerator, "is_available", lambda *arguments: True)
    monkeypatch.setattr(installation.torch.accelerator, "synchronize", fail)
    assert 0 <= installation._best_times({"nothing": int})["nothing"] < 1
