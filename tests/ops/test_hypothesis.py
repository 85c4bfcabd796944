"""Drawn calls of the elementwise, reducing and moving operators, compared with eager.

Hypothesis draws the operator, dtypes, shapes that broadcast, orders of dimensions, empty and
zero-dim tensors, NaN and infinities, and the arguments; what eager refuses is not compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from .harness import (
    FLOATING,
    INTEGRAL,
    Maker,
    OpCases,
    Sample,
    check,
    expected_of,
    instruction_sets,
)
from .recording import FOLDER, recording, replay

DTYPES = (*FLOATING, *INTEGRAL, torch.bool)
UNARY = (
    "abs acos asin atan ceil cos cosh erf exp expm1 floor isinf isnan log log10 log1p log2 neg "
    "reciprocal relu round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc logical_not bitwise_not"
).split()
BINARY = (
    "add.out sub.out mul.out div.out maximum.out minimum.out atan2.out fmod.Tensor_out "
    "remainder.Tensor_out eq.Tensor_out lt.Tensor_out ge.Tensor_out logical_and.out "
    "logical_xor.out bitwise_and.Tensor_out bitwise_or.Tensor_out floor_divide.out "
    "pow.Tensor_Tensor_out"
).split()
REDUCTIONS = (
    "sum.IntList_out mean.out amax.out amin.out any.dims_out var.correction_out argmax.out "
    "argmin.out cumsum.out _softmax.out _log_softmax.out prod.int_out"
).split()
MOVEMENT = (
    "permute_copy.out transpose_copy.int_out slice_copy.Tensor_out select_copy.int_out flip.out "
    "repeat.out expand_copy.out unsqueeze_copy.out roll.out constant_pad_nd.out clone.out"
).split()
# Wider than the case table's: sums over drawn values cancel, and halves are rounded more than once
# in eager's own reductions.
LOOSE = (1e-4, 1e-4)

shapes = st.lists(st.integers(0, 5), max_size=4)


@st.composite
def tensors(draw: st.DrawFn, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """A tensor of any order of dimensions, perhaps with NaN and infinities."""
    make = Maker(str(draw(st.integers(0, 1000))))
    order = draw(st.permutations(range(len(shape))))
    high = draw(st.sampled_from((3.0, 80.0)))  # above 88 eager's own cosh overflows too soon
    low = 0.0 if dtype == torch.uint8 else -high
    special = dtype.is_floating_point and draw(st.booleans())
    return make.tensor(*shape, dtype=dtype, low=low, high=high, order=order, special=special)


@st.composite
def unary(draw: st.DrawFn) -> tuple[str, Sample]:
    name = draw(st.sampled_from(UNARY))
    return f"{name}.out", Sample(draw(tensors(draw(shapes), draw(st.sampled_from(DTYPES)))))


@st.composite
def binary(draw: st.DrawFn) -> tuple[str, Sample]:
    name, shape = draw(st.sampled_from(BINARY)), draw(shapes)
    other = [1 if draw(st.integers(0, 3)) == 0 else size for size in shape]
    other = other[draw(st.integers(0, len(shape))) :]
    dtypes = [draw(st.sampled_from(DTYPES)) for _ in range(2)]
    operands = [draw(tensors(shape, dtypes[0])), draw(tensors(other, dtypes[1]))]
    integral = not any(d.is_floating_point for d in dtypes)
    if integral and name.split(".")[0] in ("fmod", "remainder", "floor_divide", "pow"):
        ones = torch.ones_like(operands[1])  # eager may trap on zero, and refuses below it
        operands[1] = torch.where(operands[1] > 0, operands[1], ones)
    return name, Sample(*(operands if draw(st.booleans()) or integral else operands[::-1]))


@st.composite
def reduction(draw: st.DrawFn) -> tuple[str, Sample]:
    name, shape = draw(st.sampled_from(REDUCTIONS)), draw(shapes)
    # Eager takes these in other dtypes only where there is nothing to compute.
    floats = name.startswith(("_", "mean", "var"))
    x = draw(tensors(shape, draw(st.sampled_from(FLOATING if floats else DTYPES))))
    dim = draw(st.integers(-max(len(shape), 1), max(len(shape), 1) - 1))
    keep = draw(st.booleans())
    arguments: dict[str, list[Any]] = {
        "cumsum.out": [dim],
        "_softmax.out": [dim, False],
        "_log_softmax.out": [dim, False],
        "argmax.out": [draw(st.sampled_from((dim, None))), keep],
        "argmin.out": [draw(st.sampled_from((dim, None))), keep],
        "prod.int_out": [dim, keep],
    }
    if name == "var.correction_out":
        return name, Sample(x, [dim], correction=draw(st.integers(0, 1)), keepdim=keep)
    return name, Sample(x, *arguments.get(name, [[dim], keep]))


@st.composite
def movement(draw: st.DrawFn) -> tuple[str, Sample]:
    name, shape = draw(st.sampled_from(MOVEMENT)), draw(shapes)
    x = draw(tensors(shape, draw(st.sampled_from(DTYPES))))
    rank, any_int = len(shape), st.integers(-6, 6)
    dims = st.integers(-max(rank, 1), max(rank, 1) - 1)
    steps = st.integers(1, 3)
    arguments: dict[str, list[Any]] = {
        "permute_copy.out": [draw(st.permutations(range(rank)))],
        "transpose_copy.int_out": [draw(dims), draw(dims)],
        "slice_copy.Tensor_out": [draw(dims), draw(any_int), draw(any_int), draw(steps)],
        "select_copy.int_out": [draw(dims), draw(any_int)],
        "flip.out": [draw(st.lists(dims, max_size=2))],
        "repeat.out": [draw(st.lists(st.integers(0, 3), min_size=rank, max_size=rank + 1))],
        "expand_copy.out": [[draw(st.integers(0, 3)), *shape]],
        "unsqueeze_copy.out": [draw(dims)],
        "roll.out": [[draw(any_int)], [draw(dims)]],
        "constant_pad_nd.out": [draw(st.lists(st.integers(-2, 3), min_size=2, max_size=2)), 1],
        "clone.out": [],
    }
    return name, Sample(x, *arguments[name])


FAMILIES = {"unary": unary, "binary": binary, "reduction": reduction, "movement": movement}


def compare_with_eager(name: str, sample: Sample) -> None:
    cases = OpCases(f"aten::{name}", lambda make: (), tolerance=LOOSE)
    try:
        expected = expected_of(cases, sample)
    except (RuntimeError, IndexError):
        assume(False)
    dtypes = {t.dtype for t in (*sample.args, *expected) if isinstance(t, torch.Tensor)}
    assume(not dtypes & {torch.float16, torch.bfloat16} or name.split(".")[0] in EXACT)
    check(cases, sample, instruction_sets())


# Of the half types only what moves or compares: eager rounds elsewhere in steps of its own.
EXACT = {*(n.split(".")[0] for n in MOVEMENT), "eq", "lt", "ge", "maximum", "minimum", "neg", "abs"}


@pytest.mark.parametrize("family", FAMILIES)
def test_drawn_calls_equal_eager(family: str) -> None:
    run_drawn(family, 100)


@pytest.mark.full
@pytest.mark.parametrize("family", FAMILIES)
def test_many_drawn_calls_equal_eager_and_are_clean(family: str, sanitized: Path) -> None:
    path = FOLDER / f"drawn-{family}.bin"
    with recording(path):
        run_drawn(family, 3000)
    replay(path, sanitized)


def run_drawn(family: str, count: int) -> None:
    compared = 0

    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(FAMILIES[family]())
    def drawn(call: tuple[str, Sample]) -> None:
        nonlocal compared
        compare_with_eager(*call)
        compared += 1

    drawn()
    assert compared >= count // 2, f"eager refused all but {compared} of the draws"
