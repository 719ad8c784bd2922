"""Exceptions for mistakes of the user: a command prints one sentence and ends with exit code 2, without a traceback.

`InputError` is the base of all: the user gave something wrong, or a game, a network or the machine failed in a way that
a sentence can tell. Everything else that escapes is a bug of ours and shows its traceback (exit code 1).
"""

from __future__ import annotations

import copyreg
import difflib
import functools
import logging
from collections.abc import Iterable
from typing import Any

LONGEST, LONGEST_PATH = 80, 200
"""Characters of somebody else's text, and of a path, that a sentence repeats."""


def shorten(text: object, most: int = LONGEST) -> str:
    """A text that was typed or read, for a sentence: on one line, without control characters.

    It has about `most` characters at most; `...` stands for the middle of a longer one.
    """
    text, end = str(text), most // 3
    if len(text) > most:
        text = f"{text[: most - end - 3]}...{text[-end:]}"
    return printable(text)


def shorten_path(path: object) -> str:
    """The path of a file or folder, for a sentence."""
    return shorten(path, LONGEST_PATH)


def quote(value: object, most: int = LONGEST) -> str:
    """A value that was typed or read, for a sentence, as Python writes it: a text has quotation marks."""
    try:
        return shorten(repr(value), most)
    except (RecursionError, ValueError):  # nested too deep; a number of too many digits
        return f"a {type(value).__name__}"


def count_of(number: int, noun: str) -> str:
    """A number of things; `noun` is one of them: `1 game`, `2,000 games`, `3 plies`, `2 losses`."""
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("ly") else f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number:,} {plural}"


def listed(words: Iterable[object], most: int = 40) -> str:
    """The words with commas; of more than `most`, the first ones and the last, and how many there are."""
    texts = [str(word) for word in words]
    if len(texts) > most:
        texts = [*texts[: most - 2], "...", f"{texts[-1]} ({len(texts)} in all)"]
    return ", ".join(texts)


def printable(text: str) -> str:
    """The text with escapes such as `\\x1b` for all that a terminal would obey: control characters, line breaks, marks
    that turn the direction of writing, halves of characters.

    Texts out of files are shown through it.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


@functools.lru_cache(maxsize=1000)
def warn_once(sentence: str) -> None:
    """Logs a warning that several readers of the same files find, once in a process."""
    logging.getLogger(__name__).warning("%s", sentence)


class InputError(Exception):
    """Something the user gave is wrong; `str(error)` is the sentence to print."""


class UnknownName(InputError):
    """A name that does not exist; the message lists the allowed ones and the closest match.

    `meant` is compared in place of the name, where people have another word for the same.
    """

    def __init__(self, kind: str, name: str, allowed: Iterable[str], hint: str = "", meant: str = ""):
        allowed = sorted(set(allowed))
        by_small_letters = {word.lower(): word for word in allowed}
        # the comparison takes time by the length of the name, which may be anything
        closest = difflib.get_close_matches((meant or name)[:LONGEST].lower(), by_small_letters, n=1)
        guess = f"; did you mean {by_small_letters[closest[0]]!r}?" if closest else ""
        also = f", {hint}" if hint else ""
        super().__init__(f"unknown {kind} {quote(name)}{guess} (allowed: {listed(allowed)}{also})")

    def __reduce__(self) -> tuple[Any, ...]:
        # an exception would be made again by `__init__`, with the sentence in place of its arguments
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]


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
