"""A request's body: JSON, within limits of size and time."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NoReturn

from starlette.requests import ClientDisconnect, Request

from rushlight.llm.serve.errors import ApiError
from rushlight.llm.serve.settings import Settings


async def read_json(request: Request, settings: Settings) -> dict[str, Any]:
    """The JSON object of a request.

    Args:
        request: the request.
        settings: with the limits.

    Raises:
        ApiError: the body is too long, comes too slowly, or is something else.
    """
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
    told = request.headers.get("content-length", "")
    if told.isascii() and told.isdecimal() and int(told[:20]) > most:
        raise _too_long(f"{told[:20]} bytes", most)
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
    except ValueError as error:
        raise ApiError(400, f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ApiError(400, f"the body is a JSON {_kind(value)}: send an object")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")


def _kind(value: Any) -> str:
    kinds = {list: "array", str: "string", bool: "boolean", type(None): "null"}
    return kinds.get(type(value), "number")
