"""`rushlight llm bench`: tokens a second count only what is made while the clock runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rushlight.cli.llm import bench


class FakeStream:
    """Makes some tokens with each read, and takes a second of the clock for it."""

    def __init__(self, clock: list[float], tokens: list[int]) -> None:
        self._clock = clock
        self._tokens = tokens
        self.statistics = SimpleNamespace(output_tokens=0, first_token=0.25)

    def __next__(self) -> int:
        if not self._tokens:
            raise StopIteration
        self._clock[0] += 1
        self.statistics.output_tokens += self._tokens.pop(0)
        return self.statistics.output_tokens


@pytest.mark.parametrize(
    ("first", "second", "rate"),
    [
        # Both have a token after 2 s; the other 2 * 9 take 4 s.
        ([1, 4, 5], [1, 4, 5], 18 / 4),
        # The first has made 3 of its 10 when the second begins, after 6 s: 16 in 4 s are left.
        ([1, 1, 1, 3, 4], [0, 0, 1, 4, 5], 16 / 4),
        # All are made at once.
        ([10], [10], 0.0),
    ],
)
def test_decode_counts_tokens_after_the_first(
    monkeypatch: pytest.MonkeyPatch, first: list[int], second: list[int], rate: float
) -> None:
    clock = [0.0]
    streams = iter([FakeStream(clock, first), FakeStream(clock, second)])
    monkeypatch.setattr(bench.time, "perf_counter", lambda: clock[0])
    session = SimpleNamespace(stream=lambda *_, **__: next(streams))
    runner: Any = SimpleNamespace(
        session=lambda: session, vocabulary_size=100, cache_bytes=7, context=64
    )
    figures = bench.measure(runner, 0, 12, 10, sessions=2, repeat=1)
    assert figures["decode"] == rate
    assert figures["context"] == 0 and figures["first_token_ms"] == 250
