"""Prefill and decoding of language models, beside llama.cpp, ExecuTorch and others.

Models have random weights at the shapes of SmolLM 135M and Llama 3.2 1B. Each engine has a process
of its own with the model open, and all take turns; figures are medians over them. Prefill is the
time from a prompt to the next token, decoding that of further tokens, both after so many tokens in
the cache. The machine's peaks are measured before and after each row. `share` is what ours in 8da4w
reaches of them: of integer operations in prefill, of bytes read from memory in decoding, where a
token reads all weights and the keys and values of its context.

On a machine that does other work, --cpu compares the CPU seconds on one thread.

  python -m benchmarks llm_speed --models 135m --peers llamacpp --threads 1
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import engines
import shapes
from engines import Engine
from forms import Forms

from rushlight.peers.side import Side, SideError

REST = 0.05  # seconds: longer than threads of any runtime look for work before they sleep
CONTEXTS = {"135m": [0, 2048], "1b": [0, 2048, 4096]}
LENGTHS = [32, 128, 512, 2048]  # of prompts
DEEP = 512  # the prompt after the second context
# Of the best peer in the same number of bits, on one thread and an empty cache.
DECODE_GOAL = {"135m": 1.7, "1b": 1.35}
PREFILL_GOAL = {"135m": 2300.0, "1b": 330.0}


@dataclass
class Point:
    """What is measured at one length of the cache.

    Attributes:
        command: "prefill" or "decode".
        context: tokens in the cache.
        count: tokens of the prompt, or tokens that are generated.
        turns: how often.
        seconds: of each turn, by engine.
        peaks: of the machine, before and after.
    """

    command: str
    context: int
    count: int
    turns: int
    seconds: dict[str, list[float]] = field(default_factory=dict)
    peaks: list[dict[str, float]] = field(default_factory=list)

    def rate(self, name: str) -> float | None:
        """Tokens a second of an engine."""
        if not self.seconds.get(name):
            return None
        tokens = self.count if self.command == "prefill" else 1
        return tokens / statistics.median(self.seconds[name])

    def peak(self, name: str) -> float:
        """What the machine reached."""
        return max(one[name] for one in self.peaks)


def main() -> None:
    options = engines.parser(__doc__)
    options.add_argument("--contexts", type=_numbers, help="tokens in the cache, with commas")
    options.add_argument("--lengths", type=_numbers, default=LENGTHS, help="of prompts")
    options.add_argument("--tokens", type=int, help="tokens that are generated in a turn")
    options.add_argument("--cpu", action="store_true", help="compare CPU seconds (one thread)")
    arguments = options.parse_args()
    figures = []
    for name in arguments.models:
        model = Forms(arguments.work, name, arguments.layers)
        missing: dict[str, str] = {}
        for threads in arguments.threads:
            points = _points(name, arguments)
            chosen = engines.chosen(arguments)
            with engines.opened(chosen, model, threads, missing) as sides:
                _measure(points, sides, chosen, threads, missing, arguments.cpu)
            _show(model, threads, points, chosen, missing)
            figures += [{"model": name, "threads": threads, **vars(point)} for point in points]
        engines.show_missing(model, missing)
    engines.write_figures(arguments.json, "llm_speed", figures)


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _points(name: str, arguments: argparse.Namespace) -> list[Point]:
    """In the order of the cache's length: it is filled once."""
    repeat = arguments.repeat
    tokens = arguments.tokens or (64 if name == "135m" else 32)
    points = []
    for i, context in enumerate(arguments.contexts or CONTEXTS[name]):
        lengths = arguments.lengths if i == 0 else [DEEP] if i == 1 else []
        for length in lengths:
            turns = repeat if length <= DEEP else max(1, repeat // 2)
            points.append(Point("prefill", context, length, turns))
        points.append(Point("decode", context, tokens, repeat))
    return points


def _measure(
    points: list[Point],
    sides: dict[str, Side],
    chosen: dict[str, Engine],
    threads: int,
    missing: dict[str, str],
    cpu: bool,
) -> None:
    with Side(sys.executable, engines.SIDE, threads=threads) as machine:
        for point in points:
            point.peaks.append(machine.call("peaks", threads=threads))
            for _ in range(point.turns):
                for name in list(sides):
                    time.sleep(REST)
                    arguments: dict[str, Any] = {"context": point.context}
                    arguments["length" if point.command == "prefill" else "count"] = point.count
                    try:
                        wall_and_cpu = sides[name].call(point.command, **arguments)
                    except SideError as error:
                        missing[chosen[name].title] = error.reason
                        del sides[name]
                        continue
                    point.seconds.setdefault(name, []).append(wall_and_cpu[cpu])
            point.peaks.append(machine.call("peaks", threads=threads))
            rates = "  ".join(f"{name} {point.rate(name):.1f}" for name in point.seconds)
            engines.say(f"{point.command} {point.count} after {point.context}: {rates}")


def _show(
    model: Forms,
    threads: int,
    points: list[Point],
    chosen: dict[str, Engine],
    missing: dict[str, str],
) -> None:
    shown = {name: one for name, one in chosen.items() if one.title not in missing}
    heads = ["tokens/s", *(one.title for one in shown.values())]
    heads += ["ours / best 4-bit peer", "int8 / Q8_0", "share", "goal"]
    rows = []
    for point in points:
        rates = {name: point.rate(name) for name in shown}
        peers = [r for n, r in rates.items() if n in engines.PEERS and n != "llamacpp-q8" and r]
        best = _ratio(rates.get("8da4w"), max(peers, default=None))
        what = f"prefill {point.count}" if point.command == "prefill" else "decode"
        rows.append(
            [
                f"{what} after {point.context}",
                *(_cell(rate, ".1f") for rate in rates.values()),
                _cell(best, ".2f"),
                _cell(_ratio(rates.get("int8"), rates.get("llamacpp-q8")), ".2f"),
                _cell(_share(model, point), ".0%"),
                _verdict(model, threads, point, best),
            ]
        )
    peaks = points[0].peaks + points[-1].peaks
    bandwidth, integer = (max(p[key] for p in peaks) for key in ("bandwidth", "integer_ops"))
    title = f"{model.folder.name}, {threads} thread{'s' if threads > 1 else ''}"
    measured = f"{bandwidth / 1e9:.1f} GB/s read, {integer / 1e9:.0f} GOP/s of bytes"
    engines.table(f"{title}; the machine: {measured}", heads, rows)


def _cell(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _ratio(ours: float | None, theirs: float | None) -> float | None:
    return ours / theirs if ours and theirs else None


def _share(model: Forms, point: Point) -> float | None:
    """What ours in 8da4w reaches of the machine's peak."""
    rate = point.rate("8da4w")
    if rate is None:
        return None
    shape = model.shape
    width = shape["num_hidden_layers"] * shapes.HEAD_DIM
    if point.command == "prefill":
        weights = shapes.parameters_of(shape)
        # The output layer computes the last row alone.
        output = shape["vocab_size"] * shape["hidden_size"] * (1 - 1 / point.count)
        return rate * 2 * (weights - output) / point.peak("integer_ops")
    halves = 2 * shape["num_key_value_heads"] * width * 2  # bytes of keys and values in float16
    read = model.weight_bytes("8da4w.pte") + point.context * halves
    return rate * read / point.peak("bandwidth")


def _verdict(model: Forms, threads: int, point: Point, best: float | None) -> str:
    """Whether the goal of a row is met; goals are those of whole models."""
    rate, name = point.rate("8da4w"), model.model
    if rate is None or model.shape != shapes.SHAPES[name]:
        return "-"
    is_main = point.context == 0 and threads == 1
    if point.command == "prefill" and point.count == DEEP and is_main:
        goal = PREFILL_GOAL[name]
        return f"{goal:.0f} tokens/s: {'met' if rate >= goal else 'missed'}"
    if best is None:
        return "-"
    ratio = DECODE_GOAL[name] if point.command == "decode" and is_main else 1.0
    return f"{ratio}x: {'met' if best >= ratio else 'missed'}"


if __name__ == "__main__":
    main()
