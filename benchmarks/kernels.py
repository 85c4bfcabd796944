"""Microseconds per kernel call beside eager PyTorch, on one thread, slowest ratio first.

    python benchmarks/kernels.py [--elements 65536] [--only add softmax] [--isa avx2]

Both sides write into outs that exist; eager's time includes its dispatcher (some microseconds),
ours none, so small ratios below 1 say little. The best of several rounds is kept, the two sides
taking turns.
"""

from __future__ import annotations

import argparse
import importlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

ROUNDS = 5
ROUND_SECONDS = 0.01


@dataclass(frozen=True)
class Bench:
    """One call: the operator, its arguments without outs in schema order, and what is odd."""

    op: str
    args: tuple[Any, ...]
    note: str = ""


def unary(n: int) -> list[Bench]:
    """Operators on one tensor of n elements."""
    x = torch.rand(n // 1024, 1024) + 0.01
    y = torch.rand(n // 1024, 1024) + 0.5
    ints = torch.randint(1, 100, (n // 1024, 1024))
    mask = x > 0.5
    names = (
        "abs acos asin asinh atan atanh ceil cos cosh erf exp expm1 floor isinf isnan log log10 "
        "log1p log2 neg reciprocal relu round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
    )
    benches = [Bench(f"aten::{name}.out", (x,)) for name in names.split()]
    benches += [
        Bench("aten::acosh.out", (x + 1,)),
        Bench("aten::logical_not.out", (mask,)),
        Bench("aten::bitwise_not.out", (ints,)),
        Bench("aten::gelu.out", (x, "none")),
        Bench("aten::gelu.out", (x, "tanh"), "tanh"),
        Bench("aten::elu.out", (x, 1.0, 1.0, 1.0)),
        Bench("aten::leaky_relu.out", (x, 0.1)),
        Bench("aten::hardtanh.out", (x, -1.0, 1.0)),
        Bench("aten::clamp.out", (x, 0.2, 0.8)),
        Bench("aten::clamp.Tensor_out", (x, y, y)),
        Bench("aten::logit.out", (x, 0.1)),
    ]
    return benches


def binary(n: int) -> list[Bench]:
    """Operators on several tensors of n elements, and copies."""
    x = torch.rand(n // 1024, 1024) + 0.01
    y = torch.rand(n // 1024, 1024) + 0.5
    ints = torch.randint(1, 100, (n // 1024, 1024))
    small = ints.to(torch.int32)
    mask = x > 0.5
    half = x.half()
    return [
        Bench("aten::add.out", (x, y, 1)),
        Bench("aten::add.out", (x, y[0], 1), "row"),
        Bench("aten::add.out", (x, y[:, :1].contiguous(), 1), "column"),
        Bench("aten::add.out", (x, torch.tensor(2.0), 1), "0-d"),
        Bench("aten::add.out", (ints, ints, 1), "int64"),
        Bench("aten::add.out", (half, half, 1), "float16"),
        Bench("aten::add.out", (x, ints, 1), "float32 + int64"),
        Bench("aten::add.out", (x, y.t().contiguous().t(), 1), "transposed"),
        Bench("aten::sub.out", (x, y, 1)),
        Bench("aten::mul.out", (x, y)),
        Bench("aten::mul.Scalar_out", (x, 2.0)),
        Bench("aten::div.out", (x, y)),
        Bench("aten::div.out_mode", (x, y, "floor"), "floor"),
        Bench("aten::div.out_mode", (x, y, "trunc"), "trunc"),
        Bench("aten::floor_divide.out", (ints, ints), "int64"),
        Bench("aten::fmod.Tensor_out", (x, y)),
        Bench("aten::remainder.Tensor_out", (x, y)),
        Bench("aten::remainder.Tensor_out", (ints, ints), "int64"),
        Bench("aten::pow.Tensor_Tensor_out", (x, y)),
        Bench("aten::pow.Tensor_Scalar_out", (x, 2.0), "2"),
        Bench("aten::pow.Tensor_Scalar_out", (x, 2.5), "2.5"),
        Bench("aten::atan2.out", (x, y)),
        Bench("aten::maximum.out", (x, y)),
        Bench("aten::eq.Tensor_out", (x, y)),
        Bench("aten::lt.Scalar_out", (x, 0.5)),
        Bench("aten::eq.Tensor_out", (ints, ints), "int64"),
        Bench("aten::logical_and.out", (mask, mask)),
        Bench("aten::bitwise_and.Tensor_out", (mask, mask), "bool"),
        Bench("aten::bitwise_left_shift.Tensor_out", (small, small), "int32"),
        Bench("aten::where.self_out", (mask, x, y)),
        Bench("aten::masked_fill.Scalar_out", (x, mask, -1.0)),
        Bench("aten::full_like.out", (x, 2.0, None)),
        Bench("aten::clone.out", (x, None)),
        Bench("aten::_to_copy.out", (x, False, None), "same"),
        Bench("aten::copy.out", (half, x, False), "float32 to float16"),
        Bench("aten::copy.out", (x, half, False), "float16 to float32"),
        Bench("aten::copy.out", (ints, x, False), "float32 to int64"),
        Bench("aten::tril.out", (x, 0)),
    ]


def reductions(n: int) -> list[Bench]:
    """Reductions of n elements along rows, columns and everything."""
    x = torch.rand(n // 1024, 1024)
    ints = torch.randint(1, 100, (n // 1024, 1024))
    benches: list[Bench] = []
    for dims, note in (([1], "rows"), ([0], "columns"), ([0, 1], "all")):
        benches += [
            Bench("aten::sum.IntList_out", (x, dims, False, None), note),
            Bench("aten::sum.IntList_out", (ints, dims, False, None), f"{note} int64"),
            Bench("aten::mean.out", (x, dims, False, None), note),
            Bench("aten::amax.out", (x, dims, False), note),
            Bench("aten::any.dims_out", (x > 2, dims, False), note),
            Bench("aten::var.correction_out", (x, dims, 1, False), note),
        ]
    for dim, note in ((1, "rows"), (0, "columns")):
        benches += [
            Bench("aten::argmax.out", (x, dim, False), note),
            Bench("aten::max.dim_max", (x, dim, False), note),
            Bench("aten::cumsum.out", (x, dim, None), note),
            Bench("aten::prod.int_out", (x, dim, False, None), note),
        ]
    benches += [
        Bench("aten::topk.values", (x, 10, 1, True, True), "k=10"),
        Bench("aten::topk.values", (x, 500, 1, True, True), "k=500"),
        Bench("aten::argmax.out", (x, None, False), "all"),
        Bench("aten::max.unary_out", (x,), "all"),
    ]
    return benches


def ordering(n: int) -> list[Bench]:
    """Sorting, ranks, running results, places, scatters that reduce."""
    x = torch.rand(n // 1024, 1024)
    ints = torch.randint(0, 100, (n // 1024, 1024))
    index = torch.randint(0, 1024, (n // 1024, 1024))
    benches = []
    for dim, note in ((1, "row"), (0, "col")):
        benches += [
            Bench("aten::sort.values", (x, dim, False), note),
            Bench("aten::kthvalue.values", (x, n // 2048, dim, False), note),
            Bench("aten::median.dim_values", (x, dim, False), note),
            Bench("aten::mode.values", (ints, dim, False), note),
            Bench("aten::cumprod.out", (x, dim, None), note),
            Bench("aten::cummax.out", (x, dim), note),
            Bench("aten::logcumsumexp.out", (x, dim), note),
        ]
    benches += [
        Bench("aten::sort.values", (ints, 1, False), "int64"),
        Bench("aten::sort.values", (x.flatten(), 0, False), "one row"),
        Bench("aten::median.out", (x,)),
        Bench("aten::searchsorted.Tensor_out", (x[0].sort().values, x, False, False, None, None)),
        Bench("aten::bucketize.Tensor_out", (x, x[0].sort().values, False, False)),
        Bench("aten::histc.out", (x, 100, 0, 1)),
        Bench("aten::scatter_reduce.two_out", (x, 1, index, x, "sum", True), "sum"),
        Bench("aten::scatter_reduce.two_out", (x, 1, index, x, "amax", False), "amax"),
        Bench("aten::masked_scatter.out", (x, x > 0.5, x)),
    ]
    return benches


def random(n: int) -> list[Bench]:
    """Tensors of n random numbers."""
    x = torch.rand(n)
    return [
        Bench("aten::rand_like.out", (x, None)),
        Bench("aten::randn_like.out", (x, None)),
        Bench("aten::randint_like.out", (x, 100, None)),
        Bench("aten::bernoulli.out", (x, None)),
        Bench("aten::bernoulli.float_out", (x, 0.5, None)),
        Bench("aten::exponential.out", (x, 1.0, None)),
        Bench("aten::multinomial.out", (x, 1, False, None)),
    ]


def overload(op: str) -> Any:
    """Torch's own out variant."""
    name, _, overload_name = op.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, name), overload_name)


def result_of(bench: Bench) -> list[torch.Tensor]:
    """Outs of the right types and sizes, found by letting eager size empty ones."""
    schema = overload(bench.op)._schema
    written = [a.name for a in schema.arguments if a.is_out]
    plain = next(a for a in bench.args if isinstance(a, torch.Tensor))
    for dtype in (
        torch.result_type(*numbers(bench)),
        plain.dtype,
        torch.bool,
        torch.float32,
        torch.int64,
    ):
        dtypes = [dtype, torch.int64][: len(written)]
        if "arg" in bench.op or (dtype is not torch.bool and is_predicate(bench.op)):
            dtypes = [torch.int64 if "arg" in bench.op else torch.bool]
        outs = [torch.empty(0, dtype=d) for d in dtypes]
        try:
            call_eager(bench, outs)
        except RuntimeError:
            continue
        return outs
    raise RuntimeError(f"no out fits {bench.op}")


def numbers(bench: Bench) -> tuple[Any, Any]:
    """The first two operands that have a type."""
    found = [a for a in bench.args if isinstance(a, (torch.Tensor, float))][:2]
    return found[0], found[-1]


def is_predicate(op: str) -> bool:
    """True for operators whose result is bool."""
    name = op.removeprefix("aten::").split(".")[0]
    return name in {"eq", "ne", "lt", "le", "gt", "ge", "any", "isnan", "isinf"} or (
        name.startswith("logical")
    )


def call_eager(bench: Bench, outs: list[torch.Tensor]) -> None:
    """One call of torch's out variant."""
    function = overload(bench.op)
    arguments = [a for a in function._schema.arguments if not a.is_out]
    positional = [v for a, v in zip(arguments, bench.args, strict=True) if not a.kwarg_only]
    keywords = {a.name: v for a, v in zip(arguments, bench.args, strict=True) if a.kwarg_only}
    keywords |= {a.name: o for a, o in zip(written(function), outs, strict=True)}
    function(*positional, **keywords)


def written(function: Any) -> list[Any]:
    """The out arguments of an overload."""
    return [a for a in function._schema.arguments if a.is_out]


def best_of(call: Callable[[int], float]) -> float:
    """Seconds per call in one round of about ROUND_SECONDS."""
    once = max(call(1), 1e-7)
    return call(max(1, int(ROUND_SECONDS / once)))


def measure(bench: Bench, native: Any, isa: str | None) -> tuple[float, float]:
    """Best seconds per call of ours and of eager's, taking turns."""
    outs = result_of(bench)

    def eager(repeats: int) -> float:
        start = time.perf_counter()
        for _ in range(repeats):
            call_eager(bench, outs)
        return (time.perf_counter() - start) / repeats

    def ours(repeats: int) -> float:
        seconds: float = native.time_kernel(bench.op, [*bench.args, *outs], repeats, isa=isa)
        return seconds

    pairs = [(best_of(ours), best_of(eager)) for _ in range(ROUNDS)]
    return min(p[0] for p in pairs), min(p[1] for p in pairs)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--elements", type=int, default=65536, help="a multiple of 1024")
    parser.add_argument("--only", nargs="*", default=[], help="words that the name must contain")
    parser.add_argument("--isa", help="plain, avx2 or avx512 instead of the widest")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    native = importlib.import_module(os.environ.get("RUSHLIGHT_KERNELS_MODULE", "rushlight._core"))
    rows = []
    n = arguments.elements
    for bench in unary(n) + binary(n) + reductions(n) + ordering(n) + random(n):
        if arguments.only and not any(word in bench.op for word in arguments.only):
            continue
        ours, eager = measure(bench, native, arguments.isa)
        rows.append((ours / eager, ours * 1e6, eager * 1e6, bench))
    print(f"{'ratio':>7} {'ours us':>9} {'eager us':>9}  operator ({arguments.elements} elements)")
    for ratio, ours_us, eager_us, bench in sorted(rows, key=lambda row: -row[0]):
        print(f"{ratio:7.2f} {ours_us:9.1f} {eager_us:9.1f}  {bench.op} {bench.note}")


if __name__ == "__main__":
    main()
