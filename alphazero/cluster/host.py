"""The body of an actor: it says which version it has, begins a player of games, and passes calls on to it."""

from __future__ import annotations

import importlib
import os
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from alphazero.errors import InputError, shorten
from alphazero.fingerprint import framework_fingerprint

DONE, MISTAKE, BUG = "done", "mistake", "bug"


class Guest(Protocol):
    """The object that a host runs: it plays games."""

    fingerprint: str
    """The version of its game."""

    def play(self, order: Any) -> bytes:
        """Does what an order says; returns the games as bytes that can be checked."""

    def take(self, generation: int, files: Mapping[str, bytes]) -> None:
        """Gets new weights, checkpoints by the names of their files."""


class Parcel(NamedTuple):
    """Files that all hosts get, by the object store: each machine fetches them once."""

    generation: int
    references: list[Any]
    """One reference to `{name: bytes}`, in a list, so that nobody fetches it before it is needed."""


class Host:
    """An actor of Ray's. Every answer is a pair: its kind, and the answer or what went wrong."""

    def hello(self) -> tuple[str, Any]:
        """The version of the framework, and the process."""
        return DONE, {"framework": framework_fingerprint(), "pid": os.getpid()}

    def load(self, maker: str) -> tuple[str, Any]:
        """Imports the module of `maker`, which takes seconds; the coach makes its networks meanwhile."""

        def load() -> None:
            _find(maker)

        return _answer(load)

    def begin(self, maker: str, settings: Any) -> tuple[str, Any]:
        """Makes the guest by the function `maker`, as `module:function`; answers with its fingerprint."""

        def make() -> str:
            self._guest: Guest = _find(maker)(settings)
            self._generation = -1
            return self._guest.fingerprint

        return _answer(make)

    def play(self, order: Any, parcel: Parcel | None) -> tuple[str, Any]:
        """Lets the guest play, by the weights of the parcel."""

        def play() -> bytes:
            if parcel is not None and parcel.generation != self._generation:
                self._take(parcel)
            return self._guest.play(order)

        return _answer(play)

    def _take(self, parcel: Parcel) -> None:
        import ray

        try:
            files = ray.get(parcel.references[0])
        except ray.exceptions.RayError as error:  # the disk or the store is full, or the machine that has them is gone
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise InputError(f"it cannot fetch the network that plays ({shorten(reason, 200)})") from error
        self._guest.take(parcel.generation, files)
        self._generation = parcel.generation


def _find(maker: str) -> Callable[[Any], Guest]:
    module, _, name = maker.partition(":")
    found: Callable[[Any], Guest] = getattr(importlib.import_module(module), name)
    return found


def _answer(work: Callable[[], Any]) -> tuple[str, Any]:
    try:
        return DONE, work()
    except InputError as error:
        return MISTAKE, str(error)
    except (OSError, ImportError, MemoryError) as error:  # of this machine: its disk is full, a package is missing
        return MISTAKE, f"{type(error).__name__}: {error}"
    except Exception:
        return BUG, traceback.format_exc()
