"""Queues, limits of time and size, clients that leave; with a runner whose texts have no end."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from servers import CHAT, EndlessRunner, ask, chat_request, connect, refused, serving

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
        (b'{"temperature": ' + b"9" * 5000 + b"}", 400, "not JSON"),
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
