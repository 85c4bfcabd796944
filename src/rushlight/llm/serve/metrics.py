"""What Prometheus reads at /metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from rushlight.llm.runner import Runner
    from rushlight.llm.serve.jobs import Job, Jobs

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics:
    """The figures of a server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "rushlight_requests", "Requests.", ("path", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "rushlight_generation_seconds",
            "From a request to the end of its text.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._first = Histogram(
            "rushlight_first_token_seconds",
            "From a request to its first token, without the time in the queue.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._tokens = {
            name: Counter(f"rushlight_{name}", text, registry=self.registry)
            for name, text in (
                ("prompt_tokens", "Tokens of prompts."),
                ("reused_tokens", "Tokens of prompts that were in the cache."),
                ("output_tokens", "Tokens that were generated."),
                ("guessed_tokens", "Tokens that speculation proposed."),
                ("accepted_tokens", "Tokens of these that were right."),
            )
        }

    def watch(self, runner: Runner, jobs: Jobs) -> None:
        """Show the state of now.

        Args:
            runner: the model.
            jobs: its requests.
        """
        for name, text, function in (
            ("requests_running", "Requests that are computed.", lambda: jobs.running),
            ("requests_waiting", "Requests that wait.", lambda: jobs.waiting),
            ("cache_bytes", "Bytes of keys and values.", lambda: runner.cache_bytes),
            ("cache_limit_bytes", "The most that they may take.", lambda: runner.cache_limit),
        ):
            gauge = Gauge(f"rushlight_{name}", text, registry=self.registry)
            gauge.set_function(function)

    def add(self, job: Job) -> None:
        """Add the figures of a request that has ended.

        Args:
            job: the request.
        """
        for figures in job.statistics:
            for name, counter in self._tokens.items():
                counter.inc(getattr(figures, name))
            if figures.total:
                self._seconds.observe(figures.total)
            if figures.first_token:
                self._first.observe(figures.first_token)

    def text(self) -> bytes:
        """All figures, as Prometheus reads them."""
        return generate_latest(self.registry)


class CountRequests:
    """Counts requests by their path and status.

    Args:
        app: answers them.
        metrics: where they are counted.
        paths: the paths that are told apart.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, paths: frozenset[str]) -> None:
        self._app = app
        self._metrics = metrics
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"] if scope["path"] in self._paths else "other"

        async def counting(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.requests.labels(path, str(message["status"])).inc()
            await send(message)

        await self._app(scope, receive, counting)
