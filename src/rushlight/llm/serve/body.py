"""Bodies of requests: JSON, within limits of size and time, each and all together."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NoReturn

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rushlight.llm.serve.errors import RETRY_LATER, ApiError, error_response
from rushlight.llm.serve.settings import Settings


class LimitBodies:
    """Refuses requests while the bodies of others, which came and are not answered yet, have as
    many bytes as may be.

    Args:
        app: answers the others.
        settings: with the limits.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._most = settings.bodies_bytes
        self._longest = settings.body_bytes
        self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        told = told_length(Headers(scope=scope))
        if told <= self._longest and self._bytes + told > self._most:
            await error_response(self._refusal(told))(scope, receive, send)
            return
        held = 0

        async def counted() -> Message:
            nonlocal held
            message = await receive()
            size = len(message.get("body", b""))
            held += size
            self._bytes += size
            # One that is too long by itself is refused as such.
            if held <= self._longest and self._bytes > self._most:
                raise self._refusal(held)
            return message

        try:
            await self._app(scope, counted, send)
        finally:
            self._bytes -= held

    def _refusal(self, size: int) -> ApiError:
        return ApiError(
            429,
            f"requests that are not answered yet have {self._bytes} bytes, and this one {size}: at "
            f"most {self._most} are kept; try again later",
            type="rate_limit_error",
            code="rate_limit_exceeded",
            # What is left of the body is not read.
            headers={**RETRY_LATER, "Connection": "close"},
        )


def told_length(headers: Headers) -> int:
    """The bytes that a request says it has; 0 if it does not.

    Args:
        headers: of the request.
    """
    told = headers.get("content-length", "")
    return int(told[:20]) if told.isascii() and told.isdecimal() else 0


async def read_json(request: Request, settings: Settings) -> dict[str, Any]:
    """The JSON object of a request.

    Args:
        request: the request.
        settings: with the limits.

    Raises:
        ApiError: the body is too long, comes too slowly, or is something else.
    """
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() != "identity":
        raise ApiError(415, f"the Content-Encoding is {encoding[:100]!r}: send JSON as it is")
    kind = request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "application/json":
        raise ApiError(415, f"the Content-Type is {kind[:100]!r}: send JSON as 'application/json'")
    try:
        data = await asyncio.wait_for(_read(request, settings.body_bytes), settings.body_seconds)
    except asyncio.TimeoutError:
        raise ApiError(
            408,
            f"the body did not arrive in {settings.body_seconds:g} seconds",
            headers={"Connection": "close"},
        ) from None
    return parse_json(data)


async def _read(request: Request, most: int) -> bytes:
    told = told_length(request.headers)
    if told > most:
        raise _too_long(f"{told} bytes", most)
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise _too_long("more", most)
            parts.append(part)
    except ClientDisconnect:
        raise ApiError(400, "the client left") from None
    return b"".join(parts)


def _too_long(size: str, most: int) -> ApiError:
    # What is left of the body is not read.
    close = {"Connection": "close"}
    return ApiError(413, f"the body has {size}: at most {most} bytes are read", headers=close)


def parse_json(data: bytes) -> dict[str, Any]:
    """The JSON object that bytes are.

    Args:
        data: UTF-8.

    Raises:
        ApiError: they are something else.
    """
    try:
        value = json.loads(data.decode(), parse_constant=_refuse_constant)
    except RecursionError:
        raise ApiError(400, "the body is nested too deep") from None
    except UnicodeDecodeError as error:
        raise ApiError(400, f"the body is not UTF-8: byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise ApiError(400, f"the body is not JSON: {error}") from None
    except ValueError:  # thousands of digits
        raise ApiError(400, "the body has a number that is too long") from None
    if not isinstance(value, dict):
        raise ApiError(400, f"the body is a JSON {_kind(value)}: send an object")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ApiError(400, f"the body is not JSON: JSON has no {name}")


def _kind(value: Any) -> str:
    kinds = {list: "array", str: "string", bool: "boolean", type(None): "null"}
    return kinds.get(type(value), "number")
