"""One viewer of the page: reads the questions of a connection, and sends the answers.

Answers that tell of the same search replace each other while the connection is slow, so nothing piles up.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from fastapi import WebSocket, WebSocketDisconnect

from alphazero.errors import InputError, Stopped, quote
from alphazero.storage.files import plain_number
from alphazero.web.engine import Answer, Engine
from alphazero.web.message import BadMessage, Question, parse_message
from alphazero.web.searches import Stop

MOST_SEARCHES = 8
"""Searches at once, of all viewers together; further ones wait."""
THREADS = {"quick": 4, "oracle": 1, "searches": MOST_SEARCHES}
"""An oracle can take seconds and cannot be stopped, and one position at a time is solved anyway."""
MOST_WAITING = 4
"""Searches that one viewer wants at once, those that wait included; the oldest makes room."""
MOST_QUICK = 8
"""Quick questions of one viewer that are answered at the same time."""
MOST_UNSENT = 32
"""Answers that may wait until a viewer takes them; no question is read meanwhile."""

WENT_WRONG = {"error": "this went wrong; the terminal where the page was started shows why"}

logger = logging.getLogger(__name__)


class Viewer:
    """The conversation with one viewer; `threads` are those of all viewers, by the names of THREADS."""

    def __init__(self, engine: Engine, threads: Mapping[str, Executor], socket: WebSocket):
        self._engine, self._threads, self._socket = engine, threads, socket
        self._stops: dict[int, Stop] = {}
        self._outbox: dict[int, Answer] = {}
        """The last answer to each question that is still to be sent, in order."""
        self._anything, self._sent = asyncio.Event(), asyncio.Event()
        self._room = asyncio.Semaphore(MOST_QUICK)
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._oracle: tuple[int, asyncio.Task[None]] | None = None
        """The last question to the oracle, and the task that answers it."""

    async def talk(self) -> None:
        """Answers until the viewer leaves; ends its searches then."""
        both = asyncio.create_task(self._read_all()), asyncio.create_task(self._send_all())
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for stop in list(self._stops.values()):
                stop.set()
            for task in (*both, *self._tasks):
                task.cancel()
            self._engine.trees.forget(self)

    async def _read_all(self) -> None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            while len(self._outbox) > MOST_UNSENT:
                self._sent.clear()
                await self._sent.wait()
            await self._take(message.get("text") or "")  # bytes are a message that cannot be read

    async def _take(self, text: str) -> None:
        try:
            message = parse_message(text)
        except BadMessage as error:
            self._put(-1, {"error": str(error)})
            return
        if isinstance(message, int):
            if stop := self._stops.get(message):
                stop.set()
        elif message.ask in self._engine.quick:
            await self._answer_quickly(message)
        elif message.ask in self._engine.searches:
            self._begin_search(message)
        else:
            self._put(message.id, {"error": f"nobody here knows the question {quote(message.ask)}"})

    # --- quick questions ---

    async def _answer_quickly(self, question: Question) -> None:
        await self._room.acquire()
        is_oracle = question.ask == "oracle"
        task = asyncio.create_task(self._answer(question, self._threads["oracle" if is_oracle else "quick"]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self._room.release())
        if is_oracle:
            if self._oracle is not None and not self._oracle[1].done():  # a viewer looks at one position
                self._oracle[1].cancel()
                self._put(self._oracle[0], {"stopped": True})
            self._oracle = question.id, task

    async def _answer(self, question: Question, pool: Executor) -> None:
        answer = self._engine.quick[question.ask]
        self._put(question.id, await self._loop.run_in_executor(pool, _safely, lambda: answer(self, question)))

    # --- searches ---

    def _begin_search(self, question: Question) -> None:
        if replaced := self._stops.pop(question.id, None):  # else nobody could stop it any more
            replaced.set()
        wanted = [number for number, stop in self._stops.items() if not stop.is_set()]
        for number in wanted[: max(0, len(wanted) + 1 - MOST_WAITING)]:
            self._stops.pop(number).set()
        stop = self._stops[question.id] = Stop(question)
        self._threads["searches"].submit(self._search, question.id, stop)

    def _search(self, number: int, stop: Stop) -> None:
        """Runs a search on this thread; its reports go to the viewer."""

        def work() -> Answer:
            if question := stop.question:  # else it was given up while it waited for a thread
                for answer in self._engine.searches[question.ask](self, question, stop):
                    if stop.is_set():
                        break
                    if not answer.get("more"):
                        return answer
                    self._tell(self._put, number, answer)
            return {"stopped": True}

        self._tell(self._put, number, _safely(work))
        self._tell(self._forget, number, stop)

    def _forget(self, number: int, stop: Stop) -> None:
        if self._stops.get(number) is stop:
            del self._stops[number]

    def _tell(self, function: Callable[..., None], *arguments: Any) -> None:
        """Calls a function where the viewer is answered, from any thread."""
        with contextlib.suppress(RuntimeError):  # the server has ended
            self._loop.call_soon_threadsafe(function, *arguments)

    # --- answers ---

    def _put(self, number: int, answer: Answer) -> None:
        if number in self._outbox and "rows" in answer:  # reports that go on where the last one ended
            answer = {**answer, "rows": [*self._outbox[number].get("rows", ()), *answer["rows"]]}
        self._outbox[number] = answer
        self._anything.set()

    async def _send_all(self) -> None:
        with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):  # the viewer has left
            while True:
                await self._anything.wait()
                self._anything.clear()
                while self._outbox:
                    number = next(iter(self._outbox))
                    await self._socket.send_text(_text_of(number, self._outbox.pop(number)))
                    self._sent.set()


def _safely(work: Callable[[], Answer]) -> Answer:
    """The answer, or the sentence that says why there is none."""
    try:
        return work()
    except Stopped:
        return {"stopped": True}
    except InputError as error:
        return {"error": str(error)[:2000]}
    except Exception:  # a bug of ours, or of a user's game; the page goes on
        logger.exception("a question could not be answered")
        return WENT_WRONG


def _text_of(number: int, answer: Answer) -> str:
    """The answer as JSON, or the sentence that there is none: the page would ask a lost connection's question again."""
    try:
        return json.dumps({"id": number, **answer}, allow_nan=False, default=plain_number)
    except (TypeError, ValueError):  # such as NaN, or an object that a game has given in place of a number
        logger.exception("the answer %d could not be sent", number)
        return json.dumps({"id": number, **WENT_WRONG})
