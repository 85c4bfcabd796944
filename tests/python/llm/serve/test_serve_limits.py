"""Queues, limits of time and size, clients that leave; with a runner whose texts have no end."""

from __future__ import annotations

import contextlib
import http.client
import json
import resource
import select
import socket
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from servers import CHAT, EndlessRunner, ask, chat_request, connect, refused, serving

from rushlight.llm.reply import Token
from rushlight.llm.serve import generation, jobs

STREAM = {**CHAT, "stream": True}


@contextlib.contextmanager
def _opened(port: int, body: dict[str, Any]) -> Iterator[socket.socket]:
    """A connection whose request is computed."""
    with connect(port, chat_request(body)) as connection:
        _until(port, "running", 1)
        yield connection


def _until(port: int, name: str, count: int) -> None:
    """Wait until so many requests run, or wait."""
    end = time.monotonic() + 60
    while (health := json.loads(ask(port, "/health")[2]))[name] != count:
        assert time.monotonic() < end, health
        time.sleep(0.01)


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_frees_its_slot(stream: bool) -> None:
    runner = EndlessRunner()
    with serving(runner, running=1, waiting=1) as port:
        with _opened(port, {**CHAT, "stream": stream}) as connection:
            if stream:
                assert b"200 OK" in connection.recv(4096)
        assert runner.ended.acquire(timeout=60)
        _until(port, "running", 0)
        with _opened(port, STREAM):
            pass
        assert runner.ended.acquire(timeout=60)
        _until(port, "running", 0)
        figures = ask(port, "/metrics")[2].decode()
    assert "rushlight_output_tokens_total 14.0" in figures


def test_a_client_that_leaves_the_queue() -> None:
    runner = EndlessRunner()
    with serving(runner, running=1, waiting=1) as port, _opened(port, STREAM):
        with connect(port, chat_request(CHAT)):
            _until(port, "waiting", 1)
        _until(port, "waiting", 0)


def test_too_many_requests_are_refused() -> None:
    with (
        serving(EndlessRunner(), running=1, waiting=1) as port,
        _opened(port, STREAM),
        connect(port, chat_request(CHAT)),
    ):
        _until(port, "waiting", 1)
        answer = ask(port, "/v1/chat/completions", CHAT)
    status, error = refused(answer)
    assert status == 429 and error["code"] == "rate_limit_exceeded"
    assert "1 requests are computed and 1 wait" in error["message"]
    assert answer[1]["retry-after"] == "1"


def test_a_request_takes_no_longer_than_it_may() -> None:
    runner = EndlessRunner()
    with serving(runner, seconds=0.3) as port:
        status, error = refused(ask(port, "/v1/chat/completions", CHAT))
        assert status == 504 and "0.3 seconds" in error["message"]
        status, _, events = ask(port, "/v1/chat/completions", STREAM)
        last = json.loads(events.decode().split("data: ")[-1])
        assert status == 200 and last["error"]["type"] == "timeout_error"
        assert runner.ended.acquire(timeout=60) and runner.ended.acquire(timeout=60)


def test_the_server_ends_while_texts_are_written() -> None:
    runner = EndlessRunner()
    with serving(runner, close_seconds=0.2) as port:
        connection = connect(port, chat_request(STREAM))
        _until(port, "running", 1)
    with connection:
        told = b"".join(iter(lambda: connection.recv(4096), b""))
    assert b"the server was told to end" in told
    assert runner.ended.acquire(timeout=60)


def test_a_body_that_is_too_long() -> None:
    with serving(EndlessRunner(), body_bytes=1000) as port:
        status, error = refused(ask(port, "/v1/completions", b"x" * 1001))
        assert status == 413 and "at most 1000 bytes" in error["message"]
        # A length of 1 GB is refused before any of it comes.
        head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
        head += b"Content-Type: application/json\r\n"
        with connect(port, head + b"Content-Length: 1000000000\r\n\r\n") as connection:
            assert b"413" in connection.recv(4096)
        with connect(port, head + b"Transfer-Encoding: chunked\r\n\r\n") as connection:
            chunk = b"400\r\n" + b"x" * 1024 + b"\r\n"
            with contextlib.suppress(ConnectionError):  # it may close before all is sent
                for _ in range(1024):
                    connection.sendall(chunk)
                    if select.select([connection], [], [], 0)[0]:
                        break
            assert b"413" in connection.recv(4096)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"GET /health HT",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: ",
    ],
)
def test_a_head_that_does_not_come(head: bytes) -> None:
    with serving(EndlessRunner(), body_seconds=0.3) as port, connect(port, head) as connection:
        while connection.recv(4096):
            pass  # ends, as the server closes the connection


def test_a_second_head_that_does_not_come() -> None:
    first = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serving(EndlessRunner(), body_seconds=0.3) as port, connect(port, first) as connection:
        assert b"200 OK" in connection.recv(4096)
        connection.sendall(b"GET /heal")
        while connection.recv(4096):
            pass


def test_a_body_that_does_not_come() -> None:
    request = chat_request(CHAT)[:-5]
    with serving(EndlessRunner(), body_seconds=0.3) as port, connect(port, request) as connection:
        assert b"408 Request Timeout" in connection.recv(4096)


def test_a_client_that_reads_nothing_is_given_up() -> None:
    runner = EndlessRunner()
    with serving(runner, seconds=1.0) as port, _opened(port, STREAM):
        assert runner.ended.acquire(timeout=60)
        _until(port, "running", 0)


def test_a_connection_that_is_not_read_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = EndlessRunner()
    monkeypatch.setattr("servers.TEXT", "x" * 1_000_000)
    with serving(runner, body_seconds=0.3) as port, _opened(port, STREAM) as connection:
        assert runner.ended.acquire(timeout=30)
        with contextlib.suppress(ConnectionError):
            while connection.recv(1 << 20):
                pass  # ends, as the server closes the connection


def test_more_connections_than_there_may_be() -> None:
    with serving(EndlessRunner(), connections=2) as port, contextlib.ExitStack() as stack:
        kept = [stack.enter_context(connect(port, b"GET /heal")) for _ in range(2)]
        with connect(port, b"") as one_more, contextlib.suppress(ConnectionError):
            assert one_more.recv(1) == b""
        assert not select.select(kept, [], [], 0)[0]


_CHUNKED = (
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


def _chunk(size: int) -> bytes:
    return b"%x\r\n" % size + b" " * size + b"\r\n"


def test_bodies_of_all_requests_have_a_limit() -> None:
    """They count from their arrival to their answer."""
    body = {**STREAM, "user": "x" * 800}
    size = len(json.dumps(body))
    runner = EndlessRunner()
    with serving(runner, body_bytes=1000, bodies_at_once=2) as port:
        with _opened(port, body):
            with connect(port, chat_request(body)):
                _until(port, "running", 2)
                answer = ask(port, "/v1/chat/completions", body)
                status, error = refused(answer)
                assert status == 429 and error["code"] == "rate_limit_exceeded"
                assert f"have {2 * size} bytes, and this one {size}" in error["message"]
                assert "at most 2000 are kept" in error["message"]
                assert answer[1]["retry-after"] == "1" and answer[1]["connection"] == "close"
                assert refused(ask(port, "/v1/completions", b"x" * 1001))[0] == 413
            _until(port, "running", 1)
            with connect(port, chat_request(body)):
                _until(port, "running", 2)
        _until(port, "running", 0)


def test_bodies_that_do_not_tell_their_size_count_as_they_come() -> None:
    with serving(EndlessRunner(), body_bytes=1000, bodies_at_once=2) as port:
        slow = [connect(port, _CHUNKED + _chunk(900)) for _ in range(2)]
        with contextlib.ExitStack() as stack:
            for connection in slow:
                stack.enter_context(connection)
            time.sleep(0.2)  # they arrive
            with connect(port, _CHUNKED + _chunk(900)) as one_more:
                assert b"429 Too Many Requests" in one_more.recv(4096)
            assert not select.select(slow, [], [], 0)[0]
        end = time.monotonic() + 60
        while refused(ask(port, "/v1/completions", b" " * 900))[0] != 400:
            assert time.monotonic() < end
            time.sleep(0.01)


def _many_connections(connections: int, count: int) -> None:
    with serving(EndlessRunner(), connections=connections) as port:
        for _ in range(count // connections):
            with contextlib.ExitStack() as stack:
                kept = [
                    stack.enter_context(connect(port, b"GET /heal")) for _ in range(connections)
                ]
                with connect(port, b"") as one_more, contextlib.suppress(ConnectionError):
                    assert one_more.recv(1) == b""
                assert not select.select(kept, [], [], 0)[0]
            _closed(port)
        assert ask(port, "/health")[0] == 200


def _closed(port: int) -> None:
    """Wait until the server knows that all connections were closed."""
    end = time.monotonic() + 60
    while True:
        assert time.monotonic() < end
        with contextlib.suppress(OSError, http.client.HTTPException):
            return _until(port, "running", 0)


def test_connections_come_and_go() -> None:
    _many_connections(20, 100)


@pytest.mark.full
def test_thousands_of_connections() -> None:
    _many_connections(400, 4000)


@pytest.mark.full
def test_gigabytes_of_nonsense() -> None:
    """Clients that send without end are refused, and the server keeps little of it."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sent: list[int] = []

    def flood(port: int) -> None:
        total = 0
        with connect(port, _CHUNKED) as connection, contextlib.suppress(ConnectionError):
            while total < 1 << 30 and not select.select([connection], [], [], 0)[0]:
                connection.sendall(_chunk(1 << 20))
                total += 1 << 20
            assert b"413" in (told := connection.recv(4096)) or b"429" in told
        sent.append(total)

    with serving(EndlessRunner()) as port:
        threads = [threading.Thread(target=flood, args=(port,)) for _ in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ask(port, "/health")[0] == 200
    assert len(sent) == 64 and max(sent) < 64 << 20
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200_000  # kB: 32 MiB of bodies, what sockets hold, and this client's own


@pytest.mark.full
def test_slow_clients_hold_up_nobody() -> None:
    """Hundreds of clients send a byte now and then; each is given up, others are answered."""
    request = chat_request(CHAT)
    with serving(EndlessRunner(), body_seconds=3.0, seconds=0.2) as port:
        slow = [connect(port, request[: 40 + i % 200]) for i in range(300)]
        begin, answered = time.monotonic(), 0
        while time.monotonic() < begin + 2:
            for i, connection in enumerate(slow):
                at = 40 + i % 200 + answered
                with contextlib.suppress(ConnectionError):
                    connection.sendall(request[at : at + 1])
            answered += 1
            assert ask(port, "/v1/chat/completions", CHAT)[0] == 504  # as its text has no end
        assert answered >= 3
        for connection in slow:
            connection.settimeout(30)
            with contextlib.suppress(ConnectionError):
                while connection.recv(4096):
                    pass  # ends, as the server closes the connection
            connection.close()


def test_a_full_queue_refuses_before_it_reads_the_body() -> None:
    with (
        serving(EndlessRunner(), running=1, waiting=0) as port,
        _opened(port, STREAM),
        connect(port, chat_request(CHAT)[:-5]) as connection,
    ):
        assert b"429 Too Many Requests" in connection.recv(4096)


def test_figures_do_not_hold_up_others() -> None:
    asked, go = threading.Event(), threading.Event()
    came_in_time: list[bool] = []

    class Busy(EndlessRunner):
        @property
        def cache_bytes(self) -> int:
            asked.set()
            came_in_time.append(go.wait(20))
            return 0

    request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serving(Busy()) as port, connect(port, request) as connection:
        assert asked.wait(30)
        assert ask(port, "/health")[0] == 200
        go.set()
        assert b"200 OK" in connection.recv(4096)
    assert came_in_time == [True]


class _Embeds(EndlessRunner):
    """Embeds when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go, self.done = (threading.Event() for _ in range(3))
        self.came_in_time: list[bool] = []

    def encode(self, text: str, *, parse_special: bool = True) -> list[int]:
        return [1] * len(text)

    def embed(self, texts: list[Any], *, truncate: bool = False, adapter: None) -> np.ndarray:
        self.asked.set()
        self.came_in_time.append(self.go.wait(20))
        self.done.set()
        if texts[0] == [13]:
            raise ValueError("unlucky")
        return np.ones((len(texts), 2), np.float32)


EMBED = {"model": "tiny", "input": ["the"] * 32}


def test_embeddings_take_no_longer_than_they_may() -> None:
    runner = _Embeds()
    with serving(runner, seconds=0.3) as port:
        status, error = refused(ask(port, "/v1/embeddings", EMBED))
        assert status == 504 and "0.3 seconds" in error["message"]
        runner.go.set()
        _until(port, "running", 0)
    assert runner.came_in_time == [True]  # what was left of the texts is not embedded


class _Scores(_Embeds):
    def logprobs(self, tokens: list[int], *, top: int, adapter: None) -> list[Token]:
        self.embed([tokens], adapter=adapter)
        return [Token(token) for token in tokens[1:]]


def test_an_echo_takes_no_longer_than_it_may() -> None:
    runner = _Scores()
    body = {"model": "tiny", "prompt": ["the"] * 32, "echo": True, "logprobs": 1}
    with serving(runner, seconds=0.3) as port:
        status, error = refused(ask(port, "/v1/completions", body))
        assert status == 504 and "0.3 seconds" in error["message"]
        runner.go.set()
        _until(port, "running", 0)
    assert runner.came_in_time == [True]  # what was left of the prompts is not scored
    assert all(runner.ended.acquire(blocking=False) for _ in range(32))


def test_embeddings_of_many_texts() -> None:
    runner = _Embeds()
    runner.go.set()
    with serving(runner) as port:
        status, _, answer = ask(port, "/v1/embeddings", EMBED)
    data = json.loads(answer)["data"]
    assert status == 200 and [one["index"] for one in data] == list(range(32))


def test_what_fails_in_embeddings_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[BaseException] = []
    log = SimpleNamespace(error=lambda text, exc_info: told.append(exc_info))
    monkeypatch.setattr(generation, "_LOG", log)
    runner = _Embeds()
    runner.go.set()
    with serving(runner) as port:
        status, error = refused(ask(port, "/v1/embeddings", {"model": "tiny", "input": [13]}))
    assert status == 500 and "its log has more" in error["message"]
    assert [str(error) for error in told] == ["unlucky"]


def test_the_server_ends_while_a_thread_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_CLOSE_SECONDS", 0.2)
    runner = _Embeds()
    data = json.dumps(EMBED).encode()
    head = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += b"Content-Length: %d\r\n\r\n" % len(data)
    with serving(runner) as port, connect(port, head + data):
        assert runner.asked.wait(30)
    runner.go.set()
    assert runner.done.wait(30) and runner.came_in_time == [True]


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"nonsense", 400, "not JSON"),
        (b"", 400, "not JSON"),
        (b"\xff\xfe", 400, "not UTF-8"),
        (b"[" * 200_000, 400, "too deep"),
        (b'{"a":' * 200_000, 400, "too deep"),
        (b"[]", 400, "a JSON array"),
        (b"null", 400, "a JSON null"),
        (b'{"model": NaN}', 400, "JSON has no NaN"),
        (b'{"temperature": ' + b"9" * 5000 + b"}", 400, "a number that is too long"),
        ({}, 400, "'model' is missing"),
        ({**CHAT, "model": "gpt-4"}, 404, "there is no model 'gpt-4'"),
        ({**CHAT, "model": 3}, 400, "'model' is 3: give a string"),
        ({**CHAT, "messages": []}, 400, "'messages' is empty"),
        ({**CHAT, "messages": "the lamp"}, 400, "'messages' is \"the lamp\""),
        ({**CHAT, "messages": [3]}, 400, "'messages[0]' is 3"),
        ({**CHAT, "messages": [{"role": "robot", "content": ""}]}, 400, "'messages[0].role'"),
        ({**CHAT, "messages": [{"role": "user"}]}, 400, "'messages[0].content' is missing"),
        (
            {**CHAT, "messages": [{"role": "user", "content": "", "colour": 1}]},
            400,
            "there is no field 'messages[0].colour'",
        ),
        (
            {**CHAT, "messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            400,
            "'messages[0].content[0].type' is \"image_url\"",
        ),
        ({**CHAT, "stream": "yes"}, 400, "'stream' is \"yes\": give true or false"),
        ({**CHAT, "n": True}, 400, "'n' is true: give an integer"),
        ({**CHAT, "n": 1000}, 400, "give 1 to 128"),
        ({**CHAT, "functions": []}, 400, "there is no field 'functions': write 'tools'"),
        ({**CHAT, "\ud800": 1}, 400, "there is no field"),
        ({**CHAT, "store": True}, 400, "nothing is stored"),
        ({**CHAT, "top_logprobs": 2}, 400, 'add "logprobs": true'),
        ({**CHAT, "stream_options": {}}, 400, "'stream_options' is for streams"),
        ({**CHAT, "max_tokens": 1, "max_completion_tokens": 2}, 400, "leave one out"),
        ({**CHAT, "logit_bias": {"lamp": 1}}, 400, "give numbers of tokens"),
        ({**CHAT, "stop": ["a"] * 17}, 400, "'stop' has 17 texts: give at most 16"),
        ({**CHAT, "stop": "a" * 1001}, 400, "'stop' has a text of 1001 characters"),
        ({**CHAT, "stop": ["a", "b" * 1001]}, 400, "'stop' has a text of 1001 characters"),
        ({**CHAT, "stop_tokens": [1] * 1001}, 400, "'stop_tokens' has 1001 tokens"),
        ({**CHAT, "tools": [{"a": "x" * (256 << 10)}]}, 400, "give at most 262144"),
        ({**CHAT, "response_format": {"a": "x" * (256 << 10)}}, 400, "'response_format' has"),
    ],
)
def test_what_is_refused(endless_port: int, body: Any, status: int, told: str) -> None:
    got, error = refused(ask(endless_port, "/v1/chat/completions", body))
    assert got == status and told in error["message"]


@pytest.fixture(scope="module")
def endless_port() -> Iterator[int]:
    with serving(EndlessRunner()) as port:
        yield port


def test_other_paths_and_methods(endless_port: int) -> None:
    assert refused(ask(endless_port, "/v1/nothing"))[0] == 404
    assert refused(ask(endless_port, "/v1/chat/completions"))[0] == 405
    assert refused(ask(endless_port, "/v1/models/other"))[0] == 404
    status, error = refused(ask(endless_port, "/v1/completions", b"{}", Content_Type="text/plain"))
    assert status == 415 and "application/json" in error["message"]
    packed = ask(endless_port, "/v1/completions", b"\x1f\x8b", Content_Encoding="gzip")
    assert packed[0] == 415 and "'gzip': send JSON as it is" in refused(packed)[1]["message"]


def test_many_requests_at_once(endless_port: int) -> None:
    statuses: list[int] = []

    def work() -> None:
        statuses.append(ask(endless_port, "/v1/chat/completions", b"[]")[0])

    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [400] * 20
