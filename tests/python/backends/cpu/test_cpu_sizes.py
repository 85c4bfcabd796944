"""Sizes, layouts and expressions of the cpu backend: against torch's and against numbers."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import sympy
import torch
from torch.utils._sympy.functions import FloorDiv, Max, Min, PythonMod

from rushlight.backends.cpu.graph.expressions import Known, Table, is_written
from rushlight.backends.cpu.graph.layout import Layout, NoViewError
from rushlight.backends.cpu.graph.sizes import Size, floor_divided, product, same, simple
from rushlight.schema.cpu_engine import Expression, ExpressionKind

N, M = (sympy.Symbol(name, integer=True, positive=True) for name in "nm")


def value(size: Size, n: int, m: int) -> int:
    return int(sympy.sympify(size).subs({N: n, M: m}))


def drawn(draw: random.Random, depth: int) -> Any:
    """An expression over n and m."""
    if depth == 0:
        return draw.choice([N, M, sympy.Integer(draw.randint(1, 6))])
    one, other = drawn(draw, depth - 1), drawn(draw, depth - 1)
    number = sympy.Integer(draw.randint(1, 6))
    made: list[Callable[[], Any]] = [
        lambda: one + other,
        lambda: one * other,
        lambda: FloorDiv(one + number, draw.randint(1, 4)),
        lambda: FloorDiv(one * number, number),
        lambda: PythonMod(one, number),
        lambda: Max(one, other),
        lambda: Min(one - number, other),
    ]
    return draw.choice(made)()


@pytest.mark.parametrize("seed", range(60))
def test_the_form_of_an_expression_has_its_value(seed: int) -> None:
    expression = drawn(random.Random(seed), 3)
    for n, m in ((1, 1), (2, 7), (5, 3), (16, 9)):
        assert value(simple(expression), n, m) == value(expression, n, m)


def test_equal_sizes_have_one_form() -> None:
    assert same(simple(N * (M + 1)), simple(N * M + N))
    assert same(simple(FloorDiv(64 * N - 1, 2) + 1), 32 * N)
    assert same(floor_divided(product((N, M, 768)), 64), 12 * N * M)
    assert same(simple(FloorDiv(FloorDiv(N - 1, 2), 2)), simple(FloorDiv(N + 3, 4) - 1))
    assert same(simple(PythonMod(8 * N + 3, 4)), 3) and same(simple(N - N), 0)
    assert not same(simple(FloorDiv(N, 2) * 2), N)  # only where n is even


# --- layouts --------------------------------------------------------------------------------------

Both = tuple[torch.Tensor, Layout]


def permuted(draw: random.Random, t: torch.Tensor, m: Layout) -> Both:
    dims = draw.sample(range(t.dim()), t.dim())
    return t.permute(dims), m.permute(dims)


def unsqueezed(draw: random.Random, t: torch.Tensor, m: Layout) -> Both:
    dim = draw.randint(-t.dim() - 1, t.dim())
    return t.unsqueeze(dim), m.unsqueeze(dim)


def squeezed(draw: random.Random, t: torch.Tensor, m: Layout) -> Both:
    dims = draw.sample(range(-t.dim(), 0), draw.randint(0, t.dim()))
    return t.squeeze(dims), m.squeeze(dims)


def sliced(draw: random.Random, t: torch.Tensor, m: Layout) -> Both:
    if t.dim() == 0:
        return t, m
    dim, start, interval = draw.randrange(t.dim()), draw.randint(-3, 3), draw.randint(1, 2)
    new = torch.ops.aten.slice.Tensor(t, dim, start, None, interval)
    first = min(m.at(dim, start), t.shape[dim])
    return new, m.narrow(dim, first, new.shape[dim], interval)


def selected(draw: random.Random, t: torch.Tensor, m: Layout) -> Both:
    if t.numel() == 0 or t.dim() == 0:
        return t, m
    dim = draw.randrange(-t.dim(), t.dim())
    index = draw.randint(-t.shape[dim], t.shape[dim] - 1)
    return t.select(dim, index), m.select(dim, index)


def expanded(draw: random.Random, t: torch.Tensor, m: Layout) -> Both:
    sizes = [draw.choice([1, 3]) if size == 1 else size for size in t.shape]
    sizes = [2] * draw.randint(0, 1) + sizes
    return t.expand(sizes), m.expand(sizes)


def viewed(draw: random.Random, t: torch.Tensor, m: Layout) -> Both:
    left, sizes = t.numel(), [1]
    while left > 1:
        sizes.append(draw.choice([n for n in range(2, left + 1) if left % n == 0]))
        left //= sizes[-1]
    sizes = [2, 0] if left == 0 else draw.sample(sizes, len(sizes))
    try:
        new = t.view(sizes)
    except RuntimeError:
        with pytest.raises(NoViewError):
            m.view(sizes)
        return t, m
    return new, m.view(sizes)


CHANGES: list[Callable[[random.Random, torch.Tensor, Layout], Both]] = [
    permuted,
    unsqueezed,
    squeezed,
    sliced,
    selected,
    expanded,
    viewed,
    viewed,
]


@pytest.mark.parametrize("seed", range(10))
def test_layouts_are_those_of_torch(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(100):
        sizes = [draw.choice([0, 1, 1, 2, 3, 4, 6]) for _ in range(draw.randint(0, 4))]
        tensor = torch.empty(sizes, device="meta")
        layout = Layout.of(tensor)
        for _ in range(5):
            tensor, layout = draw.choice(CHANGES)(draw, tensor, layout)
            actual = (layout.shape, layout.strides, layout.offset)
            assert actual == (tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
            assert layout.is_contiguous() == tensor.is_contiguous()
            if tensor.dim() > 5:
                break


def dense(*sizes: Size) -> Layout:
    return Layout.dense(sizes, range(len(sizes)), torch.float32)


def test_layouts_of_symbolic_sizes() -> None:
    rows = dense(N, M, 6)
    assert rows.view((product((N, M)), 6)).strides == (6, 1)
    assert rows.transpose(0, 1).view((M, N, 2, 3)).strides == (6, 6 * M, 3, 1)
    assert rows.narrow(1, 1, M - 1).offset == 6 and rows.select(1, -1).offset == 6 * M - 6
    with pytest.raises(NoViewError):
        rows.transpose(0, 1).view((product((N, M)), 6))
    with pytest.raises(NoViewError):  # it may be one row, but need not
        rows.expand((4, M, 6))
    assert dense(1, M, 6).expand((N, M, 6)).strides == (0, 6, 1)
    assert not rows.narrow(1, 0, M - 1).is_contiguous()


# --- expressions ----------------------------------------------------------------------------------


def run(rows: Sequence[Expression], inputs: Sequence[tuple[int, ...] | int]) -> list[int]:
    """The values of expressions, computed as the engine does."""
    kinds: dict[ExpressionKind, Callable[[int, int], int]] = {
        ExpressionKind.ADD: lambda a, b: a + b,
        ExpressionKind.MULTIPLY: lambda a, b: a * b,
        ExpressionKind.FLOOR_DIVIDE: lambda a, b: a // b,
        ExpressionKind.MODULO: lambda a, b: a % b,
        ExpressionKind.MAXIMUM: max,
        ExpressionKind.MINIMUM: min,
    }
    numbers: list[int] = []
    for row in rows:
        if row.kind is ExpressionKind.CONSTANT:
            numbers.append(row.a)
        elif row.kind is ExpressionKind.INPUT_SIZE:
            sizes = inputs[row.a]
            numbers.append(sizes if isinstance(sizes, int) else sizes[row.b])
        else:
            numbers.append(kinds[row.kind](numbers[row.a], numbers[row.b]))
    return numbers


@pytest.mark.parametrize("seed", range(60))
def test_expressions_are_computed_as_they_say(seed: int) -> None:
    size = simple(drawn(random.Random(seed), 3))
    assert is_written(size)
    table = Table(Known([(3, simple(2 * N + 1)), M]))
    number = table.number(size)
    for n, m in ((1, 1), (2, 7), (5, 3), (16, 9)):
        actual = size if number < 0 else run(table.rows, [(3, 2 * n + 1), m])[number]
        assert actual == value(size, n, m)


def test_what_inputs_tell() -> None:
    half = simple(FloorDiv(N - 1, 2) + 1)
    known = Known([(4, half)])
    assert known.tells(simple(half * 8 + 1)) and known.tells(simple(FloorDiv(N + 3, 4)))
    assert not known.tells(N) and not known.tells(half * M)
    table = Table(known)
    number = table.number(simple(FloorDiv(N + 3, 4)))
    for n in range(1, 20):
        assert run(table.rows, [(4, (n - 1) // 2 + 1)])[number] == (n + 3) // 4
    area = product((N, M))
    assert Known([(area, 4)]).tells(simple(2 * area + 1)) and not Known([(area, 4)]).tells(M)
    assert Known([(area, N)]).tells(area) and not Known([(area, 4)]).tells(product((area, area)))
    joined = Known([(simple(N + M), 4)])
    assert joined.tells(simple(8 * N + 8 * M - 1)) and not joined.tells(N)
    assert Known([(simple(N + M), 4), (simple(N + 2 * M), 4)]).tells(N)
    table = Table(joined)
    number = table.number(simple(8 * N + 8 * M - 1))
    assert run(table.rows, [(7, 4)])[number] == 55
    assert not is_written(simple(sympy.Function("other")(N)))
