"""Servers of a tiny model, and OpenAI's client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from openai import OpenAI
from servers import serving

from rushlight.llm.runner import Runner


@pytest.fixture(scope="session")
def port(runner: Runner) -> Iterator[int]:
    with serving(runner) as port:
        yield port


@pytest.fixture
def client(port: int) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0) as client:
        yield client
