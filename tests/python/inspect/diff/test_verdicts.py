"""What becomes of rules: failed, passed, or not decided."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rushlight.errors import RunError
from rushlight.inspect.diff.model import (
    Amount,
    Delegation,
    MethodDiff,
    OperatorCount,
    OutputDiff,
    ProgramDiff,
    RunDiff,
)
from rushlight.inspect.diff.rules import parse_rule
from rushlight.inspect.diff.verdicts import judge
from rushlight.inspect.trace.statistics import change_of_turns, median_interval


def diff_of(run: RunDiff | None = None, name: str = "forward") -> ProgramDiff:
    method = MethodDiff(
        name, name, [], "",
        [
            OperatorCount("aten::add.out", "float32", "portable", False, 4, 2),
            OperatorCount("CpuBackend", "", "delegates", False, 0, 1),
            OperatorCount("Product", "", "CpuBackend", True, 0, 9),
        ],
        [], (Delegation({}, 0.0, {}), Delegation({"CpuBackend": 1}, 0.9, {})),
        [Amount("needed by a run", 1000, 1500)], run,
    )  # fmt: skip
    return ProgramDiff("a.pte", "b.pte", [Amount("file", 10_000, 8_000)], [method])


def outcome(text: str, diff: ProgramDiff | None = None) -> str:
    [verdict] = judge(diff or diff_of(), [parse_rule(text)])
    assert verdict.rule == text and verdict.told
    return verdict.outcome


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("size > 0.8x", "passed"),
        ("size > 0.79x", "failed"),
        ("size > -2 KB", "passed"),
        ("size >= -2 KB", "failed"),
        ("memory > +49 %", "failed"),
        ("memory > 1.5x", "passed"),
        ("memory of forward > 1 KB", "failed"),
        ("operators > 3", "passed"),
        ("operators > -2", "failed"),
        ("partitions > +0", "failed"),
        ("delegated < 90 %", "passed"),
        ("delegated < 95 %", "failed"),
        ("delegated < -5 %", "passed"),
        ("contract changed", "passed"),
        ("latency > 1x", "failed"),  # nothing was run
        ("accuracy < 40 dB", "failed"),
    ],
)
def test_what_files_hold(text: str, wanted: str) -> None:
    assert outcome(text) == wanted


def test_a_method_of_one_program() -> None:
    diff = diff_of()
    diff.added["decode"] = "decode()"
    assert outcome("contract changed", diff) == "failed"
    assert outcome("memory > 9x", diff) == "passed"
    [verdict] = judge(diff, [parse_rule("memory of decode > 9x")])
    assert verdict.outcome == "failed" and "only b.pte has a method 'decode'" in verdict.told
    with pytest.raises(RunError, match="neither program has a method 'x'; there are forward, deco"):
        judge(diff, [parse_rule("memory of x > 9x")])


def test_the_worst_method_counts() -> None:
    diff = diff_of()
    diff.methods += diff_of(name="decode").methods
    diff.methods[1].memory = [Amount("needed by a run", 1000, 1000)]
    [verdict] = judge(diff, [parse_rule("memory > 1.2x")])
    assert verdict.outcome == "failed" and verdict.told.startswith("forward: ")
    assert outcome("memory of decode > 1.2x", diff) == "passed"


def timed(ratio: float, runs: int = 40, spread: float = 0.02) -> RunDiff:
    chance = np.random.default_rng(0)
    before = 10 * (1 + spread * chance.random(runs))
    after = 10 * ratio * (1 + spread * chance.random(runs))
    change = change_of_turns("latency", before.tolist(), after.tolist())
    return RunDiff(latency=change, runs=runs, after_interval=median_interval(after.tolist()))


@pytest.mark.parametrize(
    ("ratio", "text", "wanted"),
    [
        (1.1, "latency > 1.05x", "failed"),
        (1.0, "latency > 1.05x", "passed"),
        (1.05, "latency > 1.05x", "not decided"),
        (1.1, "latency > +0.2 ms", "failed"),
        (1.0, "latency > +5 %", "passed"),
        (1.1, "latency > 10.5 ms", "failed"),
        (1.0, "latency > 10.5 ms", "passed"),
        (0.5, "latency >= 1x", "passed"),
        (1.0, "latency < 0.9x", "passed"),
        (0.8, "latency < 0.9x", "failed"),
    ],
)
def test_times_are_judged_by_their_interval(ratio: float, text: str, wanted: str) -> None:
    assert outcome(text, diff_of(timed(ratio))) == wanted


def test_a_few_runs_decide_nothing() -> None:
    assert outcome("latency > 1.05x", diff_of(timed(3.0, runs=5))) == "not decided"
    assert outcome("latency > 1.05x", diff_of(timed(3.0, runs=6))) == "failed"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("accuracy < 40 dB", "failed"), ("accuracy < 30 dB", "passed"), ("error > 0.1", "failed")],
)
def test_outputs(text: str, wanted: str) -> None:
    equal = OutputDiff("a", "float32[2]", "float32[2]", 0, 0, math.inf, 1, (), False)
    near = OutputDiff("b", "float32[2]", "float32[2]", 0.2, 0.1, 35.0, 0.99, (1,))
    assert outcome(text, diff_of(RunDiff(outputs=[equal, near]))) == wanted
    assert outcome(text, diff_of(RunDiff(outputs=[equal]))) == "passed"
    gone = OutputDiff("c", "float32[2]", "")
    [verdict] = judge(diff_of(RunDiff(outputs=[equal, gone])), [parse_rule(text)])
    assert verdict.outcome == "failed" and "c cannot be compared" in verdict.told


def test_the_interval_of_a_median_holds_it() -> None:
    """The rank interval, against its definition: it holds the true median in 95 % of samples."""
    chance = np.random.default_rng(1)
    held = [
        low <= 0 <= high
        for low, high in (median_interval(chance.standard_t(2, 25)) for _ in range(2000))
    ]
    assert 0.945 < np.mean(held) < 0.975
