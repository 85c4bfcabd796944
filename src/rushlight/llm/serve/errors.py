"""Errors as OpenAI's API writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from rushlight.errors import Code, Error

RETRY_LATER = {"Retry-After": "1"}  # seconds
_OF_THE_REQUEST = (
    Code.INVALID_ARGUMENT,
    Code.INVALID_TYPE,
    Code.NOT_SUPPORTED,
    Code.OUT_OF_RESOURCES,
)


class ApiError(Exception):
    """A request that is not answered.

    Args:
        status: of HTTP.
        message: what is wrong, and what to do.
        type: OpenAI's name for the kind of error.
        param: the field that is wrong.
        code: OpenAI's name for this error.
        headers: further headers of the response.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        type: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})
        self._told = {"message": message, "type": type, "param": param, "code": code}

    def body(self) -> dict[str, Any]:
        """The JSON that says it."""
        return {"error": self._told}


def bad(name: str, message: str) -> ApiError:
    """A field that is not as it must be.

    Args:
        name: the field, such as "messages[2].content".
        message: what came, and what is allowed.
    """
    return ApiError(400, f"'{name}' {message}", param=name)


def as_api_error(error: BaseException) -> ApiError:
    """What a client is told of an exception.

    Args:
        error: what was raised.
    """
    if isinstance(error, ApiError):
        return error
    if isinstance(error, Error) and error.code in _OF_THE_REQUEST:
        return ApiError(400, str(error))
    if isinstance(error, RecursionError):
        return ApiError(400, "the body is nested too deep")
    if isinstance(error, Error):
        return ApiError(500, str(error), type="server_error")
    return ApiError(500, "the server failed: its log has more", type="server_error")


def json_bytes(value: Any) -> bytes:
    """JSON in UTF-8; half a surrogate pair, which UTF-8 does not have, becomes a question mark.

    Args:
        value: what to write.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


class Json(Response):
    """A response of JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The body."""
        return json_bytes(content)


def error_response(error: ApiError) -> Json:
    """The response that says an error.

    Args:
        error: the error.
    """
    return Json(error.body(), error.status, error.headers)
