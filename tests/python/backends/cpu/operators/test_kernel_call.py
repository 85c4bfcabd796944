"""Calls of the user's own kernels inside delegates of the cpu backend, compared with eager."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cpu_models import IMAGE, LAST, Call, X, call, equal, lowered, operations, operators_of, whole
from torch import nn

import rushlight as rl
from delegates import lowered_modules
from rushlight import runtime
from rushlight.backends.cpu import CpuPartitioner
from rushlight.partition import get_non_lowered_nodes
from rushlight.runtime.registries import registered_kernels
from rushlight.schema import cpu_engine as fb

GOLDEN = Path(__file__).resolve().parents[4] / "golden" / "kernels"
SNAKE = "within::snake(Tensor x, float a) -> Tensor"
MIX = (
    "within::mix(Tensor[] xs, Tensor?[] ys, Tensor? bias, int[] picks, float[]? scales, Scalar by, "
    'bool negate, bool[2] flips, str mode="once", SymInt? n=None) -> (Tensor, Tensor)'
)
PARTS = "within::parts(Tensor x, SymInt[] sizes) -> Tensor[]"
ROWS = "within::rows(Tensor table, Tensor indices) -> Tensor"
PUSH = "within::push(Tensor(a!) state, Tensor x) -> ()"
Array = np.ndarray[Any, Any]


@rl.custom_op(SNAKE)
def snake(x: torch.Tensor, a: float) -> torch.Tensor:
    return x + torch.sin(a * x) ** 2 / a


def snake_kernel(x: Array, a: float) -> Array:
    return (x + np.sin(a * x) ** 2 / a).astype(x.dtype)


@rl.custom_op(MIX)
def mix(
    xs: Sequence[torch.Tensor],
    ys: Sequence[torch.Tensor | None],
    bias: torch.Tensor | None,
    picks: Sequence[int],
    scales: Sequence[float] | None,
    by: float,
    negate: bool,
    flips: Sequence[bool],
    mode: str = "once",
    n: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    total = torch.zeros_like(xs[0]) if bias is None else bias.clone()
    for k, pick in enumerate(picks):
        scale = 1.0 if scales is None else scales[k]
        total = total + scale * by * (-1 if negate != flips[k % 2] else 1) * xs[pick]
    total = total + sum(y for y in ys if y is not None) + (n or 0)
    count = len(picks) + (100 if mode == "twice" else 0)
    return total, torch.full((), count, dtype=torch.int64)


def mix_kernel(  # type: ignore[no-untyped-def]
    xs, ys, bias, picks, scales, by, negate, flips, mode, n
) -> tuple[Array, Array]:
    total = np.zeros_like(xs[0]) if bias is None else bias.copy()
    for k, pick in enumerate(picks):
        scale = 1.0 if scales is None else scales[k]
        total += np.float32(scale * by * (-1 if negate != flips[k % 2] else 1)) * xs[pick]
    total += sum(y for y in ys if y is not None) + (n or 0)
    return total, np.array(len(picks) + (100 if mode == "twice" else 0), np.int64)


@rl.custom_op(PARTS)
def parts(x: torch.Tensor, sizes: Sequence[int]) -> list[torch.Tensor]:
    return [part.clone() for part in x.split(list(sizes))]


def parts_kernel(x: Array, sizes: Sequence[int]) -> list[Array]:
    return np.split(x, np.cumsum(sizes)[:-1])


@rl.custom_op(ROWS)
def rows(table: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    return table[indices]


@rl.custom_op(PUSH)
def push(state: torch.Tensor, x: torch.Tensor) -> None:
    state.add_(x)


def push_kernel(state: Array, x: Array) -> None:
    state += x


KERNELS: list[tuple[str, Callable[..., Any]]] = [
    (SNAKE, snake_kernel),
    (MIX, mix_kernel),
    (PARTS, parts_kernel),
    (ROWS, lambda table, indices: table[indices]),
    (PUSH, push_kernel),
]


@pytest.fixture(autouse=True)
def _kernels() -> Iterator[None]:
    for schema, function in KERNELS:
        runtime.register_kernel(schema, function, in_delegates=True)
    yield
    for name in registered_kernels():
        runtime.unregister_kernel(name)


class Snakes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(7, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(snake(self.linear(x), 1.5)) + x


def left(edge: rl.EdgeProgramManager) -> dict[str, str]:
    """The reasons of the calls outside delegates, by operator."""
    nodes = get_non_lowered_nodes(edge.exported_program().graph)
    return {str(n.target): str(n.meta.get("declined")) for n in nodes}


def test_between_operators_of_the_engine() -> None:
    assert whole(Snakes(), X) == ["Product", "KernelCall", "Elementwise"]
    assert call(lambda x: snake(x, 2), X) == ["KernelCall"]
    program = rl.export(Snakes(), (X,), backend="cpu")
    assert [one.kind for one in program.report().operators] == ["delegate"]
    (need,) = program.report().needs
    assert need.startswith("a kernel for within::snake.out, which a delegate calls")


def test_arguments_of_every_kind() -> None:
    weight = torch.arange(105.0).reshape(3, 5, 7)

    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        plain = mix([x, y * 2], [None, y], None, [0, 1, 1], None, 2, False, [False, False])
        full = mix(
            *([x, y, weight], [None, None, x], x * 3, [2, 0], [0.5, 4.0], 1.5, True),
            *([True, False], "twice", 7),
        )
        return *plain, *full

    assert call(function, X, X + 1).count("KernelCall") == 2


def test_views_are_passed_without_gaps() -> None:
    assert call(lambda x: snake(x.transpose(0, 2), 1.0), X) == ["Copy", "KernelCall"]
    assert call(lambda x: snake(x[1], 1.0) + snake(x[:, :, 2:3], 2.0)[0], X).count("Copy") == 1
    assert call(lambda x: snake(x[0, 0, 0].expand(4, 3), 1.0), X) == ["Copy", "KernelCall"]
    assert call(lambda x: snake(x.sum(), 1.0) * 2, X)[-2:] == ["KernelCall", "Elementwise"]
    call(lambda x: snake(x, 1.0), torch.zeros(0, 4))


def test_dim_orders_are_those_of_the_model() -> None:
    seen = []

    def kernel(x: Array, a: float) -> Array:
        seen.append(x.strides)
        return snake_kernel(x, a)

    runtime.register_kernel(SNAKE, kernel, replace=True, in_delegates=True)
    model = nn.Sequential(nn.Conv2d(6, 5, 3), nn.BatchNorm2d(5), Call(lambda x: snake(x, 1.0)))
    assert "KernelCall" in whole(model, LAST)
    assert seen[-1][1] == 4  # channels are neighbours
    assert "KernelCall" in whole(model, IMAGE)
    assert seen[-1][3] == 4


def test_dtypes_that_are_no_float32() -> None:
    indices = torch.tensor([2, 0, 2])
    assert call(rows, X, indices) == ["KernelCall"]
    assert call(lambda x, i: rows(i, i), X, indices) == ["KernelCall"]
    double = torch.randn(3, 4, dtype=torch.float64)
    assert call(lambda x: snake(x, 1.0), double) == ["KernelCall"]
    assert call(lambda x, i: rows(x > 0, i), X, indices)[-1] == "KernelCall"


def follows(model: nn.Module, sizes: Any, *calls: tuple[Any, ...]) -> list[str]:
    """Compare with eager over sizes; returns the nodes of the only delegate."""
    exported = torch.export.export(model.eval(), calls[0], dynamic_shapes=(tuple(sizes),))
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])
    assert not left(edge)
    [part] = lowered_modules(edge.exported_program())
    assert fb.unpack(part.processed_bytes).version == fb.Version.KERNELS
    module = rl.load(bytes(edge.to_executorch().buffer), check_backends=True, threads=2)
    with torch.no_grad():
        for args in (*calls, *reversed(calls)):
            equal(module(*args), model(*args))
    return operators_of(edge)


def test_sizes_and_numbers_that_vary() -> None:
    n = torch.export.Dim("n", min=3, max=9)

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first, second = parts(x * 2, [x.shape[0] - 1, 1])
        flips = [False, True]
        mixed, _ = mix([x], [x], None, [0], None, 2, False, flips, "once", 3 * x.shape[0])
        return snake(x, 1.5) + 1, first + second, mixed

    sizes = [(torch.randn(k, 3),) for k in (4, 3, 9, 5)]
    assert follows(Call(function), [{0: n}], *sizes).count("KernelCall") == 3


def test_a_number_that_is_an_input() -> None:
    class Shifted(nn.Module):
        def forward(self, x: torch.Tensor, n: int) -> torch.Tensor:
            torch._check(n <= 100)
            return mix([x * 2], [x], None, [0], None, 1, False, [False, True], "once", n + 1)[0]

    dynamic = torch.export.Dim.DYNAMIC
    exported = torch.export.export(Shifted(), (X, 5), dynamic_shapes=(None, dynamic))
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])
    assert "KernelCall" in operators_of(edge)
    module = rl.load(bytes(edge.to_executorch().buffer))
    for n in (5, 0, 77):
        equal(module(X, n), Shifted()(X, n))


def test_results_that_nothing_uses() -> None:
    flips = [False, True]
    assert call(lambda x: mix([x], [x], None, [0], None, 1, False, flips)[0] + 1, X)
    assert call(lambda x: mix([x], [x], None, [0], None, 1, False, flips)[1], X)
    assert call(lambda x: parts(x, [1, 2])[1] * 2, X) == ["KernelCall", "Elementwise"]


def test_calls_that_stay_outside() -> None:
    def reason(function: Callable[..., Any], *args: torch.Tensor) -> str:
        edge = lowered(Call(function), *args)
        module = rl.load(bytes(edge.to_executorch().buffer))
        equal(module(*args), Call(function)(*args), 1e-2)
        [text] = {v for k, v in left(edge).items() if "within" in k}
        return text

    assert "its kernel takes or gives float16" in reason(lambda x: snake(x, 2.0) * 2, X.half())
    assert "its kernel takes or gives uint8" in reason(rows, X.byte(), torch.tensor([1]))
    many = [*range(17)]
    flips = [True, True]
    assert "more than 16 tensors" in reason(
        lambda x: mix([x] * 17, [x], None, many, None, 1, False, flips)[0], X
    )
    assert "more than 64 arguments, or numbers" in reason(
        lambda x: mix([x], [x], None, [0] * 65, None, 1, False, flips)[0], X
    )
    assert "has more than 255 bytes" in reason(
        lambda x: mix([x], [x], None, [0], None, 1, False, flips, "é" * 128)[0], X
    )
    runtime.register_kernel(SNAKE, snake_kernel, replace=True)
    assert "does not say that it may be called inside" in reason(lambda x: snake(x, 2.0) * 2, X)


def test_what_writes_state_stays_outside() -> None:
    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("state", torch.zeros(3, 5, 7))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            push(self.state, x * 2)
            return self.state + 1

    program = rl.export(Sum(), (X,), backend="cpu")
    assert "within::push" in {one.name for one in program.report().operators}
    module, model = rl.load(program.buffer), Sum()
    for _ in range(3):
        equal(module(X), model(X))


def test_kernels_that_are_missing_or_do_not_fit() -> None:
    program = rl.export(Snakes(), (X,), backend="cpu")
    runtime.register_kernel(SNAKE, snake_kernel, replace=True)
    with pytest.raises(rl.LoadError, match="does not say that it may be called inside a delegate"):
        rl.load(program.buffer)
    other = "within::snake(Tensor x, int a) -> Tensor"
    runtime.register_kernel(other, snake_kernel, replace=True, in_delegates=True)
    with pytest.raises(rl.LoadError, match=r"argument 1 \(a\) is float in the program's schema"):
        rl.load(program.buffer)
    runtime.unregister_kernel("within::snake.out")
    with pytest.raises(rl.LoadError) as caught:
        rl.load(program.buffer)
    text = str(caught.value)
    assert caught.value.code is rl.Code.OPERATOR_MISSING
    assert "no kernel for within::snake.out" in text and "snake(self.linear(x), 1.5)" in text, text
    assert "write RUSHLIGHT_KERNEL(within, snake_out)(Context& ctx, const Tensor& x" in text
    with pytest.raises(rl.ExportError) as refused:
        rl.export(Snakes(), (X,), backend="cpu")
    assert "snake(self.linear(x), 1.5)" in str(refused.value)


def test_what_a_kernel_does_wrong_is_told() -> None:
    def fails(x: Array, a: float) -> Array:
        raise ValueError("no luck")

    program = rl.export(Snakes(), (X,), backend="cpu")
    for function, message in (
        (fails, "ValueError: no luck"),
        (lambda x, a: x[:2], r"the result has sizes \(2, 5, 7\), but the output has the fixed"),
    ):
        runtime.register_kernel(SNAKE, function, replace=True, in_delegates=True)
        with pytest.raises(rl.RunError, match=message) as caught:
            rl.load(program.buffer)(X)
        assert "snake(self.linear(x), 1.5)" in str(caught.value)


def test_a_departing_kernel_is_found_at_export() -> None:
    runtime.register_kernel(SNAKE, lambda x, a: x, replace=True, in_delegates=True)
    with pytest.raises(rl.ExportError, match="snake"):
        rl.export(Snakes(), (X,), backend="cpu")


def test_a_trace_has_the_call_with_its_line() -> None:
    program = rl.export(Snakes(), (X,), backend="cpu")
    module = rl.load(program.buffer, trace=True)
    module(X)
    lines = {event.inside: event.line for event in module.trace.events()}
    assert "snake(self.linear(x), 1.5)" in lines["1"], lines


def test_a_branch_calls_it() -> None:
    class Branches(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda x: snake(x * 2, 1.5) + 1, lambda x: x * 3, (x,))

    program = rl.export(Branches(), (X,), backend="cpu")
    module = rl.load(program.buffer)
    for x in (X, X.abs(), -X.abs()):
        equal(module(x), Branches()(x))
    assert not [one for one in program.report().operators if "within" in one.name]


def test_a_golden_program_calls_them() -> None:
    """tests/golden/kernels/make_kernels.py wrote it."""
    expected = json.loads((GOLDEN / "expected.json").read_text())
    program = GOLDEN / "cpu_engine_v10_kernel_call.pte"
    with pytest.raises(rl.LoadError, match=r"golden::mix\.out"):
        rl.load(program)
    schema = (
        MIX.replace("within", "golden").replace('="once"', "").replace("SymInt? n=None", "SymInt n")
    )
    runtime.register_kernel(schema, mix_kernel, in_delegates=True)
    module = rl.load(program)
    assert len(expected) == 3
    for size, outputs in expected.items():
        ones = np.ones([int(n) for n in size.split(",")], np.float32)
        for result, output in zip(module(ones), outputs, strict=True):
            np.testing.assert_allclose(result, output, rtol=1e-6)


def test_the_payload_has_the_call() -> None:
    [operation] = operations(lowered(Call(lambda x: snake(x, 2)), X))
    assert isinstance(operation, fb.KernelCall)
    assert operation.name == "within::snake.out" and operation.dim_orders == [0, 1, 2] * 2
    assert [one.kind.name for one in operation.arguments] == ["TENSOR", "FLOAT", "RESULT"]


def test_what_patterns_take_up_is_no_call() -> None:
    """Steps to and from bytes are part of the engine's nodes, and need no kernel of anybody's."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 4, 5)).eval()
    x = torch.randn(1, 3, 4, 4)
    program = rl.export(model, (x,), backend="cpu", quantize="int8", calibrate=[(x,)])
    assert program.report().needs == []
    assert all(entry.key != "rushlight/schemas" for entry in program.report().named_data)
