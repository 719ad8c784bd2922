"""The command that opens the page, and the function of the library that does."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import torch

import alphazero as az
from alphazero.catalogue import registry
from alphazero.commands.serve import main
from alphazero.commands.shared import run_command
from alphazero.errors import InvalidSetting
from alphazero.storage.files import sha256_of
from alphazero.storage.run_folder import RunFolder

ROOT = Path(__file__).resolve().parents[2]


QUIET = "--no-browser", "--port", "0"


def test_the_page_is_served_until_ctrl_c(tmp_path):
    program = subprocess.Popen(
        [sys.executable, "-m", "alphazero", "serve", "--game", "tictactoe", *QUIET], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    try:
        address = re.search(r"http://127\.0\.0\.1:\d+/", program.stdout.readline())
        with urllib.request.urlopen(address[0], timeout=60) as answer:
            assert b"<title>alphazero</title>" in answer.read()
        program.send_signal(signal.SIGINT)
        assert program.wait(60) == 130 and "Traceback" not in program.stderr.read()
    finally:
        program.kill()
        program.communicate()


@pytest.mark.parametrize(("arguments", "words"), [
    (("--port", "70000"), "port"),
    (("--game", "nothing"), "unknown game"),
    (("--device", "tpu"), "unknown device"),
    (("--device", "gpu"), "did you mean 'cuda'?"),
    (("--device", "cuda", "--game", "tictactoe"), "torch finds no CUDA device here"),
    (("nobody", "--game", "tictactoe"), "unknown contestant"),
    (("--host", "no.such.host.invalid", "--game", "tictactoe"), "cannot listen"),
    (("--host", "192..168.0.5", "--game", "tictactoe"), "cannot listen on '192..168.0.5'"),
    (("python:nothing:here", "--game", "tictactoe"), "nothing"),
])  # fmt: skip
def test_mistakes_are_told_in_a_sentence(tmp_path, monkeypatch, capfd, arguments, words):
    if "cuda" in arguments and torch.cuda.is_available():
        pytest.skip("there is a CUDA device here")
    monkeypatch.chdir(tmp_path)
    assert run_command(main, [*QUIET, *arguments]) == 2
    output, errors = capfd.readouterr()
    assert errors.count("\n") == 1 and words in errors, errors
    assert output == ""


@pytest.mark.parametrize(("card", "game", "words"), [
    ({}, "connect4", "generation_0001.safetensors is a net for tictactoe, not for connect4"),
    ({"made_by": "Tiny"}, "tictactoe", "generation_0001.safetensors is a net made by the function Tiny"),
])  # fmt: skip
@pytest.mark.parametrize("contestant", ["mine", "mine/generation_0001.safetensors"])
def test_a_net_that_cannot_move_is_refused_before_the_page_is_served(
    tmp_path, monkeypatch, capfd, contestant, card, game, words
):
    monkeypatch.chdir(tmp_path)
    loaded, net = registry.load("tictactoe"), Path("mine/generation_0001.safetensors")
    with RunFolder.create("mine", {}) as run:
        loaded.make_net(loaded.game, {"blocks": 1, "channels": 8}).save(net, card)
        run.commit(1, {path.name: sha256_of(path) for path in (net, net.with_suffix(".json"))}, {"best": 1})
    monkeypatch.setattr("alphazero.web.server.PageServer.run", lambda server: None)
    assert run_command(main, [*QUIET, contestant, "--game", game]) == 2
    output, errors = capfd.readouterr()
    assert output == "" and errors.count("\n") == 1 and words in errors, errors


def test_a_package_that_is_missing_is_told_with_those_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    monkeypatch.delitem(sys.modules, "alphazero.web.server", raising=False)
    advice = "install it by `pip install fastapi uvicorn websockets`"
    with pytest.raises(InvalidSetting, match=advice):
        az.play_web("random", "tictactoe", port=0, wait=False)
    assert run_command(main, QUIET) == 2 and advice in capsys.readouterr().err


def test_the_library_opens_a_page_and_closes_it():
    def last(position: az.Position) -> int:
        return position.legal_actions[-1]

    with az.play_web(last, "tictactoe", port=0, wait=False) as page:
        with urllib.request.urlopen(page.address, timeout=60) as answer:
            assert answer.status == 200
        with pytest.raises(InvalidSetting, match="another program has it; choose another port$"):
            az.play_web(last, "tictactoe", port=page.port, wait=False)
        for port in (-1, 65_536, "8080", 80.5):
            with pytest.raises(InvalidSetting, match="^port must "):
                az.play_web(last, "tictactoe", port=port, wait=False)
    with pytest.raises(OSError):
        urllib.request.urlopen(page.address, timeout=10)


class Kept(logging.Handler):
    """Keeps the sentences."""

    def __init__(self) -> None:
        super().__init__()
        self.sentences: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.sentences.append(record.getMessage())


@pytest.mark.parametrize("name", ["uvicorn.access", "uvicorn.error"])
def test_the_page_writes_nothing_into_the_log_of_a_program_that_is_a_server_itself(name):
    """Once it took all handlers from `uvicorn.access`, and both loggers were quiet for ever."""
    logger, kept = logging.getLogger(name), Kept()
    level = logger.level
    logger.addHandler(kept)
    logger.setLevel(logging.INFO)
    before = logger.handlers[:], logger.level, logger.propagate, logger.filters[:]
    try:
        with az.play_web("random", "tictactoe", port=0, wait=False) as page:
            urllib.request.urlopen(page.address, timeout=60).close()
            logger.info("while the page is open")
        page.wait()
        logger.info("afterwards")
        assert kept.sentences == ["while the page is open", "afterwards"]
        assert (logger.handlers, logger.level, logger.propagate, logger.filters) == before
    finally:
        logger.removeHandler(kept)
        logger.setLevel(level)
