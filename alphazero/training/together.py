"""Learning on several devices at the same time: this process on the first one, and a process on each other."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from alphazero.nets.neural_net import Trainer
from alphazero.training.worker_process import SECONDS_TO_LEAVE, TrainingJob, WorkerProcess


class Together:
    """The processes that learn beside this one; none where there is one device."""

    def __init__(self, children: Sequence[WorkerProcess], on_processor: bool):
        self.children, self._on_processor = children, on_processor
        self._meeting: contextlib.ExitStack | None = None
        """As long as they are connected: ends that, and removes the folder in which they have met."""

    def learn(self, trainer: Trainer, job: TrainingJob, learn_here: Callable[[], Any]) -> Any:
        """Calls `learn_here` while the processes of the further devices do their part; returns its result."""
        if not self.children:
            return learn_here()
        pool = ThreadPoolExecutor(len(self.children))
        if self._meeting is None:
            self._meet(trainer, pool)
        parts = [pool.submit(child.ask, "learn", job) for child in self.children]
        for part in parts:
            part.add_done_callback(self._end_if_failed)
        try:
            with _their_reasons_first(parts):
                found = learn_here()
        finally:
            pool.shutdown(wait=False)
        raise_first(parts)
        return found

    def _end_if_failed(self, part: Future[None]) -> None:
        """Frees those who would wait for a process that has failed; on the processor its closed connections do."""
        if part.exception() is not None and not self._on_processor:
            self.leave()

    def leave(self) -> None:
        """Ends the connections between those who learn together; a second call does nothing."""
        meeting, self._meeting = self._meeting, None
        if meeting:
            meeting.close()

    def _meet(self, trainer: Trainer, pool: ThreadPoolExecutor) -> None:
        # all networks are made before: one that fails later is waited for
        raise_first([pool.submit(child.ask, "make") for child in self.children])
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
            size, meeting = 1 + len(self.children), Path(folder) / "meeting"
            parts = [pool.submit(child.ask, "join", meeting, i, size) for i, child in enumerate(self.children, start=1)]
            with _their_reasons_first(parts):
                stack.callback(trainer.join(meeting, 0, size))
            raise_first(parts)
            self._meeting = stack.pop_all()


@contextlib.contextmanager
def _their_reasons_first(parts: Sequence[Future[None]]) -> Iterator[None]:
    """Lets a process that has failed say why, where torch here says only that it has left."""
    try:
        yield
    except RuntimeError:  # what torch raises; or the fault is ours
        over, _ = wait(parts, timeout=SECONDS_TO_LEAVE)
        raise_first(list(over))
        raise


def raise_first(parts: Sequence[Future[None]]) -> None:
    """Waits for all of them; raises the first error."""
    for part in parts:
        part.result()
