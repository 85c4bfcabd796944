"""Who is answered: Host, Origin, the API key."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from servers import CHAT, EndlessRunner, ask, refused, serving

MODELS = "/v1/models"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    settings = {"hosts": frozenset({"lamp.example"}), "origins": frozenset({"https://a.example"})}
    with serving(EndlessRunner(), **settings) as port:
        yield port


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]:8000", "192.168.0.7", "lamp.example"],
)
def test_hosts_that_are_answered(port: int, host: str) -> None:
    assert ask(port, MODELS, Host=host)[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "",
        "evil@127.0.0.1",
        "[::1",
    ],
)
def test_other_hosts_are_refused(port: int, host: str) -> None:
    status, error = refused(ask(port, MODELS, Host=host))
    assert (
        status == 403 and error["code"] == "host_not_allowed" and "--allow-host" in error["message"]
    )


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", ""])
def test_other_pages_are_refused(port: int, origin: str) -> None:
    for path, body in ((MODELS, None), ("/v1/chat/completions", CHAT), ("/", None)):
        status, error = refused(ask(port, path, body, Host="localhost", Origin=origin))
        assert status == 403 and error["code"] == "origin_not_allowed"


def test_the_own_page_and_one_that_is_allowed(port: int) -> None:
    assert ask(port, MODELS, Host="localhost:8", Origin="http://localhost:8")[0] == 200
    status, headers, _ = ask(port, MODELS, Origin="https://a.example")
    assert status == 200 and headers["access-control-allow-origin"] == "https://a.example"
    preflight = {
        "Origin": "https://a.example",
        "Access_Control_Request_Method": "POST",
        "Access_Control_Request_Headers": "authorization,content-type",
    }
    status, headers, _ = ask(port, "/v1/chat/completions", method="OPTIONS", **preflight)
    assert status == 200 and "POST" in headers["access-control-allow-methods"]


def test_a_page_may_talk_with_this_server_alone(port: int) -> None:
    status, headers, page = ask(port, "/")
    assert status == 200 and b"<title>Rushlight</title>" in page
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self';" in policy
    assert headers["x-content-type-options"] == "nosniff"


def test_the_key() -> None:
    with serving(EndlessRunner(), api_key="käy") as port:
        for sent in ("", "Bearer", "Bearer wrong", "Basic käy", "Bearer käyx"):
            status, error = refused(ask(port, MODELS, Authorization=sent))
            assert status == 401 and error["code"] == "invalid_api_key"
        assert refused(ask(port, "/metrics"))[0] == 401
        right = "Bearer käy".encode().decode("latin-1")
        assert ask(port, MODELS, Authorization=right)[0] == 200
        for path in ("/", "/health", "/page/main.js"):
            assert ask(port, path)[0] == 200


@pytest.mark.parametrize("path", ["/page/../app.py", "/page/%2e%2e/app.py", "/page//etc/passwd"])
def test_only_the_page_is_read_from_the_disk(port: int, path: str) -> None:
    assert ask(port, path)[0] == 404
