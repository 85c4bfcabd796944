"""Servers for tests: in a thread, on a port of their own; and a runner that writes without end."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

from rushlight.llm.reply import Piece, Statistics, Token
from rushlight.llm.serve import server
from rushlight.llm.serve.settings import Settings


@contextlib.contextmanager
def serving(runner: Any, **settings: Any) -> Iterator[int]:
    """The port of a server that runs within a `with` block."""
    with server.listen("127.0.0.1", 0) as sock:
        running = server.make_server(runner, Settings(**{"name": "tiny", **settings}))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [sock]})
        thread.start()
        try:
            yield sock.getsockname()[1]
        finally:
            running.should_exit = True
            thread.join(60)
            assert not thread.is_alive()


def ask(
    port: int, path: str, body: Any = None, *, method: str | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Send a request; returns the status, the headers and the body of the response."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    sent = {"Content-Type": "application/json", **headers} if data is not None else headers
    sent = {name.replace("_", "-"): value for name, value in sent.items()}
    method = method or ("GET" if body is None else "POST")
    with contextlib.closing(connection):
        connection.request(method, path, data, sent)
        response = connection.getresponse()
        told = {name.lower(): value for name, value in response.getheaders()}
        return response.status, told, response.read()


def refused(answer: tuple[int, dict[str, str], bytes]) -> tuple[int, dict[str, Any]]:
    """The status and the error of a response."""
    status, _, body = answer
    error = json.loads(body)["error"]
    assert set(error) == {"message", "type", "param", "code"} and error["message"]
    return status, error


def connect(port: int, head: bytes) -> socket.socket:
    """A connection on which something was sent."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(head)
    return connection


CHAT = {"model": "tiny", "messages": [{"role": "user", "content": "the lamp"}]}


def chat_request(body: dict[str, Any]) -> bytes:
    """A request for a chat completion, as bytes."""
    data = json.dumps(body).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


TEXT = "x"  # of each token


class EndlessStream:
    """Writes until it is cancelled."""

    def __init__(self, runner: EndlessRunner) -> None:
        self._runner = runner
        self._count = itertools.count(1)
        self._is_cancelled = threading.Event()
        self.statistics = Statistics(3, 0, 7, 0, 0, 0, 7, 0.0, 0.01, 0.02, 1.0, 1.0)

    def __iter__(self) -> EndlessStream:
        return self

    def __next__(self) -> Piece:
        if self._is_cancelled.wait(0.01):
            raise StopIteration
        return Piece(TEXT, (Token(next(self._count)),), 0, "")

    def cancel(self) -> None:
        self._is_cancelled.set()

    def close(self) -> None:
        self._runner.ended.release()


class EndlessRunner:
    """What the server asks of a runner; its texts have no end."""

    context, has_chat, cache_bytes, cache_limit, reply_format = 4096, True, 64, 128, "hermes"

    def __init__(self) -> None:
        self.structured = self
        self.ended = threading.Semaphore(0)  # counts the streams that ended

    def read(self, options: dict[str, Any], tools: Any, reasoning: Any) -> None:
        pass

    def reasoning(self, prompt: list[int]) -> str:
        return "none"

    def encode_chat(self, messages: Any, **variables: Any) -> list[int]:
        return [1, 2, 3]

    def encode(self, text: str) -> list[int]:
        return [1] * len(text)

    def decode(self, tokens: list[int], *, special: bool = False) -> str:
        return "x" * len(tokens)

    def piece(self, token: int) -> bytes:
        return b"x"

    def stream(self, prompt: Any, **options: Any) -> EndlessStream:
        return EndlessStream(self)
