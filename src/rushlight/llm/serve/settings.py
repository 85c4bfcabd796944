"""What a server is told when it starts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rushlight import _core


@dataclass(frozen=True)
class Settings:
    """How a server answers.

    Attributes:
        name: the model's id in the API.
        api_key: what clients must send as a bearer token; None for nothing.
        hosts: names that a request's Host may have besides IP addresses and localhost.
        origins: other web pages that may use the API, such as "https://example.com".
        running: the most requests that are computed at once.
        waiting: the most that wait for them; others are refused.
        body_bytes: the most bytes of a request's body.
        bodies_at_once: so many of them may be there in all, from their arrival to their answer.
        body_seconds: how long a request may take to arrive.
        seconds: how long it may wait and be computed.
        connections: the most connections at once.
        close_seconds: how long texts may go on when the server is told to end.
        adapters: by the ids that choose them in the API, each as a model of its own.
        created: when the model came to be, in seconds since 1970.
    """

    name: str
    api_key: str | None = None
    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    running: int = 32
    waiting: int = 64
    body_bytes: int = 8 << 20
    bodies_at_once: int = 4
    body_seconds: float = 30.0
    seconds: float = 600.0
    connections: int = 512
    close_seconds: float = 3.0
    adapters: Mapping[str, _core.LlmAdapter] = field(default_factory=dict)
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def bodies_bytes(self) -> int:
        """The most bytes of the bodies of all requests."""
        return self.body_bytes * self.bodies_at_once
