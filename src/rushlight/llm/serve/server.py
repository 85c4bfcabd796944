"""The socket, and uvicorn."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import math
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from rushlight.errors import Code, RunError
from rushlight.llm.serve.app import Server
from rushlight.llm.serve.settings import Settings

if TYPE_CHECKING:
    from rushlight.llm.runner import Runner

_LAST_SECONDS = 5  # for clients to take the end of what they are sent


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections.

    Args:
        host: an address or a name of this machine.
        port: 0 for any that is free.

    Raises:
        RunError: there is no such address, or the port is used.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _cannot_listen(host, port, error) from None
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen()
    except OSError as error:
        sock.close()
        raise _cannot_listen(host, port, error) from None
    return sock


def _cannot_listen(host: str, port: int, error: OSError) -> RunError:
    return RunError(
        f"cannot listen on {host} port {port}: {error.strerror}; give others with --host or --port",
        code=Code.ACCESS_FAILED,
    )


def is_loopback(sock: socket.socket) -> bool:
    """Whether only programs of this machine can reach a socket.

    Args:
        sock: it is bound.
    """
    return ipaddress.ip_address(sock.getsockname()[0]).is_loopback


def address_of(sock: socket.socket) -> str:
    """The address of a server, for a browser.

    Args:
        sock: it is bound.
    """
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(runner: Runner, settings: Settings, sock: socket.socket) -> None:
    """Answer until a signal comes.

    Args:
        runner: the model.
        settings: how it is served.
        sock: takes connections.
    """
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises it again when it has ended
        make_server(runner, settings).run(sockets=[sock])


def _protocol(seconds: float, connections: int) -> type[asyncio.Protocol]:
    """uvicorn's protocol, which also ends a connection whose request's head does not come, one
    whose client does not take what it is sent, and one more than there may be."""

    class Protocol(H11Protocol):
        _timer: asyncio.TimerHandle | None = None
        _write_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > connections:
                transport.abort()
                return
            # So `pause_writing` is called whenever something is left to write.
            transport.set_write_buffer_limits(high=0)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._forget()
            self._forget_writing()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._forget_writing()
            self._write_timer = self.loop.call_later(seconds, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._forget_writing()

        def _watch(self) -> None:
            if self.cycle is not None and not self.cycle.response_complete:
                self._forget()
            elif self._timer is None:
                self._timer = self.loop.call_later(seconds, self.transport.abort)

        def _forget(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _forget_writing(self) -> None:
            if self._write_timer is not None:
                self._write_timer.cancel()
                self._write_timer = None

    return Protocol


class _Server(uvicorn.Server):
    """uvicorn's server, which lets texts go on for a while when it is told to end."""

    def __init__(self, config: uvicorn.Config, end: Callable[[], None], seconds: float) -> None:
        super().__init__(config)
        self._end = end
        self._seconds = seconds

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().call_later(self._seconds, self._end)
        await super().shutdown(sockets)


def make_server(runner: Runner, settings: Settings) -> uvicorn.Server:
    """The server, ready to run.

    Args:
        runner: the model.
        settings: how it is served.
    """
    application = Server(runner, settings)
    config = uvicorn.Config(
        application.app(),
        http=_protocol(settings.body_seconds, settings.connections),
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=settings.connections,
        timeout_graceful_shutdown=math.ceil(settings.close_seconds) + _LAST_SECONDS,
    )
    return _Server(config, application.end, settings.close_seconds)
