"""Who is answered.

A web page that somebody visits can send requests to a server on their machine. It cannot give
another Origin than its own; and with a name of its own that it lets point to 127.0.0.1 (DNS
rebinding), it cannot give another Host than this name. So a Host must be an IP address, localhost,
or a name that the server was told, and an Origin must be the server itself or one that it was told.
"""

from __future__ import annotations

import hmac
import ipaddress
import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rushlight.llm.serve.errors import ApiError, error_response
from rushlight.llm.serve.settings import Settings

# What a browser may do with the chat page: nothing but talk with this server.
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_HOST = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::[0-9]{1,5})?")
_NO_KEY = ("/", "/health")
_PAGE = "/page/"


class Guard:
    """Refuses requests that others may have forged, or that lack the key.

    Args:
        app: answers the others.
        settings: names, origins and the key.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = self._refusal(scope["path"], Headers(scope=scope))
        app = self._app if refused is None else error_response(refused)
        await app(scope, receive, with_headers)

    def _refusal(self, path: str, headers: Headers) -> ApiError | None:
        host = headers.get("host", "")
        if not self._knows(host):
            return ApiError(
                403,
                f"the Host is {host[:100]!r}: write an IP address or localhost, or start the "
                f"server with --allow-host",
                code="host_not_allowed",
            )
        origin = headers.get("origin")
        if origin is not None and not self._trusts(origin, host):
            return ApiError(
                403,
                f"the page {origin[:100]!r} may not use this server: start it with --allow-origin",
                code="origin_not_allowed",
            )
        if path in _NO_KEY or path.startswith(_PAGE) or self._has_key(headers):
            return None
        return ApiError(
            401,
            "the API key is missing or wrong: send it as 'Authorization: Bearer KEY'",
            code="invalid_api_key",
            headers={"WWW-Authenticate": "Bearer"},
        )

    def _knows(self, host: str) -> bool:
        parts = _HOST.fullmatch(host)
        if parts is None:
            return False
        name = (parts["address"] or parts["name"]).lower()
        if name in self._settings.hosts or name == "localhost":
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _trusts(self, origin: str, host: str) -> bool:
        scheme, _, rest = origin.partition("://")
        return origin in self._settings.origins or (
            scheme in ("http", "https") and rest.lower() == host.lower()
        )

    def _has_key(self, headers: Headers) -> bool:
        key = self._settings.api_key
        if key is None:
            return True
        kind, _, sent = headers.get("authorization", "").partition(" ")
        given = sent.strip().encode("latin-1", "replace")  # as headers are decoded
        return kind.lower() == "bearer" and hmac.compare_digest(given, key.encode())
