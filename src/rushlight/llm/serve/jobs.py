"""Requests that are computed, and those that wait.

A thread computes each request, by reading its streams: the runner advances all texts in one pass,
whoever asks. What it reads goes to the event loop. A request waits while as many are computed as
may be; when as many wait as may, it is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from rushlight.llm.reply import Piece, Statistics, Stream
from rushlight.llm.serve.errors import RETRY_LATER, ApiError
from rushlight.llm.serve.settings import Settings

T = TypeVar("T")
News = tuple[int, Piece]
# Starts the streams of a request; told by a function whether nobody waits for them any more.
Start = Callable[[Callable[[], bool]], Sequence[Stream]]
_CLOSE_SECONDS = 10.0  # for threads that compile or embed, which end when they have done so


def ending() -> ApiError:
    """What clients are told whose request the server did not do any more."""
    return ApiError(503, "the server was told to end", type="server_error")


class Job:
    """The streams of one request.

    Args:
        start: starts them; called by the job's thread.

    Attributes:
        is_cancelled: somebody cancelled it.
        statistics: of each stream, when the job has ended.
    """

    def __init__(self, start: Start) -> None:
        self.statistics: list[Statistics] = []
        self._start = start
        self._streams: Sequence[Stream] = ()
        self.is_cancelled = False
        self._loop = asyncio.get_running_loop()
        self._started: asyncio.Future[None] = self._loop.create_future()
        # None: the end.
        self._news: asyncio.Queue[News | BaseException | None] = asyncio.Queue()

    def run(self) -> None:
        """Compute it; on a thread of its own."""
        try:
            self._streams = self._start(lambda: self.is_cancelled)
        except BaseException as error:
            self._tell(self._fail, error)
            return
        if self.is_cancelled:
            self.cancel()
        self._tell(self._begin)
        try:
            self._read()
        except BaseException as error:
            self._tell(self._news.put_nowait, error)
        finally:
            for stream in self._streams:
                stream.close()
            self._tell(self._end)

    def _read(self) -> None:
        """Read the streams in turns: each pass of the model serves them all."""
        left = dict(enumerate(self._streams))
        while left:
            for i, stream in list(left.items()):
                piece = next(stream, None)
                if piece is None:
                    del left[i]
                else:
                    self._tell(self._news.put_nowait, (i, piece))

    def cancel(self) -> None:
        """End it at the next token; from any thread, also before it has begun."""
        self.is_cancelled = True
        for stream in self._streams:
            stream.cancel()

    async def begun(self) -> None:
        """Wait until the model has taken the request.

        Raises:
            Error: it was refused.
        """
        await self._started

    async def news(self) -> AsyncIterator[list[News]]:
        """What was generated since the last turn, with the stream's number.

        Raises:
            Error: the model failed.
        """
        while True:
            batch: list[News] = []
            item = await self._news.get()
            while item is not None and not isinstance(item, BaseException):
                batch.append(item)
                if self._news.empty():
                    break
                item = self._news.get_nowait()
            if batch:
                yield batch
            if isinstance(item, BaseException):
                raise item
            if item is None:
                return

    def _tell(self, function: Callable[..., object], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # the server has ended
            self.cancel()

    def _begin(self) -> None:
        if not self._started.done():
            self._started.set_result(None)

    def _fail(self, error: BaseException) -> None:
        if not self._started.done():
            self._started.set_exception(error)

    def _end(self) -> None:
        self.statistics = [stream.statistics for stream in self._streams]
        self._news.put_nowait(None)


class Jobs:
    """The requests of a server.

    Args:
        settings: with the limits.
        on_end: called with each job that has ended.

    Attributes:
        running: how many are computed now.
        waiting: how many wait.
    """

    def __init__(self, settings: Settings, on_end: Callable[[Job], None]) -> None:
        self._on_end = on_end
        self.running = 0
        self.waiting = 0
        self._most = settings.running
        self._most_waiting = settings.waiting
        self._slots = asyncio.Semaphore(settings.running)
        self._threads = ThreadPoolExecutor(settings.running, "rushlight-serve")
        self._jobs: set[Job] = set()
        self._futures: set[asyncio.Future[Any]] = set()
        self._is_closing = False

    async def start(self, start: Start) -> Job:
        """Compute a request when there is room.

        Args:
            start: starts its streams; called by the job's thread.

        Raises:
            ApiError: too many requests wait.
            Error: the model refused it.
        """
        job = Job(start)
        done = await self._submit(job.run)
        self._jobs.add(job)
        done.add_done_callback(lambda _: self._ended(job))
        try:
            await job.begun()
        except asyncio.CancelledError:
            job.cancel()
            raise
        return job

    async def call(self, function: Callable[[], T]) -> T:
        """Compute something that is no text.

        Args:
            function: does it; called by a thread.

        Raises:
            ApiError: too many requests wait.
        """
        # Shielded: if nobody waits any more, the slot is free when the thread is.
        return await asyncio.shield(await self._submit(function))

    def check(self) -> None:
        """Refuse a request if there is no room for it.

        Raises:
            ApiError: too many requests wait.
        """
        if self._slots.locked() and self.waiting >= self._most_waiting:
            raise ApiError(
                429,
                f"{self.running} requests are computed and {self.waiting} wait, as many as may: "
                f"try again later",
                type="rate_limit_error",
                code="rate_limit_exceeded",
                headers=RETRY_LATER,
            )

    async def _submit(self, function: Callable[[], T]) -> asyncio.Future[T]:
        self.check()
        self.waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self.waiting -= 1
        if self._is_closing:
            self._slots.release()
            raise ending()
        self.running += 1
        future = asyncio.get_running_loop().run_in_executor(self._threads, function)
        # The slot is free when the thread is, even if the client has left before.
        future.add_done_callback(self._leave)
        self._futures.add(future)
        return future

    def _ended(self, job: Job) -> None:
        self._jobs.discard(job)
        self._on_end(job)

    def _leave(self, future: asyncio.Future[Any]) -> None:
        self._futures.discard(future)
        if not future.cancelled():
            future.exception()  # it was told, unless the client has left
        self.running -= 1
        self._slots.release()

    def cancel(self) -> None:
        """Refuse what waits, and cancel what is computed."""
        self._is_closing = True
        for job in list(self._jobs):
            job.cancel()

    async def close(self) -> None:
        """Cancel all, and wait a while for the threads."""
        self.cancel()
        self._threads.shutdown(wait=False)
        if self._futures:
            await asyncio.wait(set(self._futures), timeout=_CLOSE_SECONDS)
