"""An answer while it is generated: sent whole or as events, and ended when the client leaves."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from starlette.types import Receive, Scope, Send

from rushlight.errors import Error
from rushlight.llm.reply import Piece, Statistics, Stream
from rushlight.llm.serve.errors import ApiError, Json, as_api_error, json_bytes
from rushlight.llm.serve.jobs import Job, Jobs, ending
from rushlight.llm.serve.sampling import Streaming

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx passes events on at once
]
_LAST_WORDS_SECONDS = 1.0
_LOG = logging.getLogger("uvicorn.error")


class Call(Protocol):
    """What was asked for, and how it is answered. It belongs to one request."""

    streaming: Streaming

    def start(self, is_cancelled: Callable[[], bool]) -> Sequence[Stream]:
        """Start the streams; called by the job's thread. What takes long before asks in between
        whether it is cancelled."""

    def opening(self) -> list[dict[str, Any]]:
        """The first events of a stream."""

    def add(self, stream: int, piece: Piece) -> dict[str, Any] | None:
        """Take a piece; the event that tells it, if it has news."""

    def finished(self, statistics: Sequence[Statistics]) -> dict[str, Any]:
        """The whole answer."""

    def usage(self, statistics: Sequence[Statistics]) -> dict[str, Any]:
        """The last event of a stream that counts tokens."""


class Generation:
    """The response to a call.

    Args:
        call: what was asked for.
        jobs: computes it.
        seconds: how long it may wait and be computed.
    """

    def __init__(self, call: Call, jobs: Jobs, seconds: float) -> None:
        self._call = call
        self._jobs = jobs
        self._seconds = seconds
        self._has_begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, unless the client leaves before.

        Raises:
            ApiError: the request is refused, and nothing was sent.
        """
        error = await while_connected(receive, self._answer(scope, receive, send), self._seconds)
        if error is None:
            return
        if not self._has_begun:
            raise error
        if not self._call.streaming.events:
            return  # it was told in part, to a client that reads no further
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._fail(send, error), _LAST_WORDS_SECONDS)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        job = await self._jobs.start(self._call.start)
        try:
            if self._call.streaming.events:
                await self._send_events(job, send)
            else:
                async for batch in job.news():
                    for stream, piece in batch:
                        self._call.add(stream, piece)
                _check(job)
                # Elsewhere: with log probabilities, it may take long.
                answer = await asyncio.to_thread(lambda: Json(self._call.finished(job.statistics)))
                self._has_begun = True
                await answer(scope, receive, send)
        finally:
            job.cancel()

    async def _send_events(self, job: Job, send: Send) -> None:
        self._has_begun = True
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await _send(send, self._call.opening())
        async for batch in job.news():
            events = [self._call.add(stream, piece) for stream, piece in batch]
            await _send(send, [event for event in events if event is not None])
        _check(job)
        if self._call.streaming.usage:
            await _send(send, [self._call.usage(job.statistics)])
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})

    async def _fail(self, send: Send, error: ApiError) -> None:
        await _send(send, [error.body()])
        await send({"type": "http.response.body", "body": b""})


class Computation:
    """The response that tells what a function returns, which is no text.

    Args:
        compute: called by a thread; returns JSON.
        cancel: called when the client leaves, or the time is over.
        jobs: has the thread.
        seconds: how long it may wait and be computed.
    """

    def __init__(
        self,
        compute: Callable[[], dict[str, Any]],
        cancel: Callable[[], None],
        jobs: Jobs,
        seconds: float,
    ) -> None:
        self._compute = compute
        self._cancel = cancel
        self._jobs = jobs
        self._seconds = seconds
        self._has_begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, unless the client leaves before.

        Raises:
            ApiError: the request is refused, and nothing was sent.
        """
        error = await while_connected(receive, self._answer(scope, receive, send), self._seconds)
        if error is not None and not self._has_begun:
            raise error

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._jobs.call(lambda: Json(self._compute()))
        finally:
            self._cancel()
        self._has_begun = True
        await answer(scope, receive, send)


def _check(job: Job) -> None:
    if job.is_cancelled:  # and the client is there
        raise ending()


async def _send(send: Send, events: list[dict[str, Any]]) -> None:
    body = b"".join(b"data: " + json_bytes(event) + b"\n\n" for event in events)
    if body:
        await send({"type": "http.response.body", "body": body, "more_body": True})


async def while_connected(
    receive: Receive, work: Coroutine[Any, Any, None], seconds: float
) -> ApiError | None:
    """Do something until the client leaves or the time is over; returns what went wrong.

    Args:
        receive: tells that the client has left; the request's body was read.
        work: is cancelled then.
        seconds: how long it may take.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(receive))
    try:
        done, _ = await asyncio.wait(
            {task, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        gone.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
    if task in done:
        error = task.exception()
        if error is not None and not isinstance(error, ApiError | Error | RecursionError):
            _LOG.error("a request failed", exc_info=error)
        return None if error is None else as_api_error(error)
    if gone in done:
        return None
    return ApiError(
        504, f"the request was not done after {seconds:g} seconds", type="timeout_error"
    )


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
