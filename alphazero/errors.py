"""Exceptions for mistakes of the user: a command prints one sentence and ends with exit code 2, without a traceback.

    InputError                 something the user gave is wrong; the message says what is allowed
    |- UnknownName             a game, contestant or setting that does not exist ("did you mean ...?")
    |- InvalidSetting          a value outside its range
    |- IllegalAction           an action that the rules forbid in this position
    |- StorageError            a file could not be written or read (disk full, no permission)
    |  `- CheckpointError      a checkpoint is missing, damaged, hostile or of another game
    `- RunFolderError          a run folder is in use, or holds what would be overwritten
    GameError                  a game breaks a law of the `Game` contract
    NetError                   a network breaks a law of the `NeuralNet` contract
    EvaluationError            a network gave an output that is not a number
    TrainingError              learning broke down (three batches in a row without a finite loss)
    DeviceMemoryError          a GPU has too little memory

    Terminated                 SIGTERM: no mistake; a SystemExit, so that clean-up runs as after Ctrl-C

Everything else that escapes is a bug of ours and shows its traceback (exit code 1).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(Exception):
    """Something the user gave is wrong; `str(error)` is the sentence to print."""


class UnknownName(InputError):
    """A name that does not exist; the message lists the allowed ones and the closest match."""

    def __init__(self, kind: str, name: str, allowed: Iterable[str], hint: str = ""):
        allowed = sorted(set(allowed))
        closest = difflib.get_close_matches(name, allowed, n=1)
        guess = f"; did you mean {closest[0]!r}?" if closest else ""
        also = f", {hint}" if hint else ""
        super().__init__(f"unknown {kind} {name!r}{guess} (allowed: {', '.join(allowed)}{also})")


class InvalidSetting(InputError):
    """A setting outside its allowed range."""


class IllegalAction(InputError):
    """An action that the rules forbid in this position."""


class StorageError(InputError):
    """A file could not be written or read."""


class CheckpointError(StorageError):
    """A checkpoint is missing, damaged, hostile or of another game."""


class RunFolderError(InputError):
    """A run folder is in use by another process, or holds what would be overwritten."""


class GameError(InputError):
    """A game breaks a law of the `Game` contract; the message names the law and the position."""


class LawBroken(GameError):
    """The validator's verdict; `drawing` shows the position, over several lines, or is empty."""

    def __init__(self, sentence: str, drawing: str = ""):
        super().__init__(sentence)
        self.drawing = drawing


class NetError(InputError):
    """A network breaks a law of the `NeuralNet` contract; the message says what it must give or write."""


class EvaluationError(InputError):
    """A network gave an output that is not a finite number; the message shows the position."""


class TrainingError(InputError):
    """Learning broke down; the message is the diagnosis."""


class DeviceMemoryError(InputError):
    """A GPU has too little memory; the message says for which work."""


NO_MEMORY = "out of memory", "unable to find an engine", "ALLOC_FAILED"
"""Words in the messages of CUDA, cuDNN and cuBLAS that say so; the types of their exceptions differ."""


def is_out_of_memory(error: BaseException) -> bool:
    """True if a GPU's memory was too small; torch, its libraries and numba raise many types of exceptions."""
    by_kind = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return by_kind or any(words in str(error) for words in NO_MEMORY)


class Stopped(Exception):
    """Work ended early because somebody asked for it."""


class Terminated(SystemExit):
    """The process got SIGTERM."""
