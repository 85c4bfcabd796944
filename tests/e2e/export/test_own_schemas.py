"""Operators of the user's own with other schemas: lists, None, numbers, texts, several results, and
state that is written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

import rushlight as rl
from own_kernels import build_library
from rushlight.edge import EdgeCompileConfig

X = torch.randn(6)


@rl.custom_op(
    "acme::pick(Tensor[] xs, Tensor? bias, int[] indices, float[]? scales, Scalar by, bool negate, "
    'str mode="once", int? extra=None) -> (Tensor, Tensor)'
)
def pick(
    xs: Sequence[torch.Tensor],
    bias: torch.Tensor | None,
    indices: Sequence[int],
    scales: Sequence[float] | None,
    by: float,
    negate: bool,
    mode: str = "once",
    extra: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    total = torch.zeros_like(xs[0]) if bias is None else bias.clone()
    for k, index in enumerate(indices):
        scale = 1.0 if scales is None else scales[k]
        total = total + scale * by * (-1 if negate else 1) * xs[index]
    count = len(indices) + (extra or 0) + (100 if mode == "twice" else 0)
    return total, torch.full((), count, dtype=torch.int64)


@rl.custom_op("acme::push(Tensor(a!) state, Tensor x) -> ()")
def push(state: torch.Tensor, x: torch.Tensor) -> None:
    state.add_(x)


@rl.custom_op("acme::advance(Tensor(a!) state, Tensor x, SymInt n) -> Tensor")
def advance(state: torch.Tensor, x: torch.Tensor, n: int) -> torch.Tensor:
    before = state * n
    state.add_(x)
    return before


@rl.custom_op("acme::halves(Tensor x) -> Tensor[]")
def halves(x: torch.Tensor) -> list[torch.Tensor]:
    return [x[: x.shape[0] // 2].clone(), x[x.shape[0] // 2 :].clone()]


class Pick(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        plain = pick([x, y], None, [0, 1, 1], None, 2, False)
        full = pick([x, y], x * 3, [1, 0], [0.5, 4.0], 1.5, True, "twice", 7)
        return *plain, *full


class Sum(torch.nn.Module):
    """Its state is read before and after each write."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", torch.arange(6.0))
        self.register_buffer("other", torch.ones(2, 6))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        before = self.state * 2
        push(self.state, x)
        push(self.state, x * 2)
        push(self.other[1], x)
        return before, self.state + 1, self.other.sum(0)


class Advances(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        before = advance(self.state, x.sum(0), x.shape[0])
        return before, advance(self.state, before, 3)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_library(tmp_path_factory.mktemp("kernels"))


def compare(model: torch.nn.Module, calls: Sequence[tuple[torch.Tensor, ...]], library: Path,
            **options: object) -> rl.Program:  # fmt: skip
    """Export with verification, then run all calls beside eager, with their state."""
    program = rl.export(model, calls[0], kernels=[library], **options)  # type: ignore[arg-type]
    module = rl.load(program.buffer, kernels=[library])
    for args in calls:
        torch.testing.assert_close(module(*args), model(*args))
    return program


def test_lists_none_numbers_texts_and_two_results(library: Path) -> None:
    pick.check([X, X + 1], None, [1, 0], [2.0, 3.0], 2, True, "twice", 3)
    compare(Pick(), [(X, X + 1), (X * 2, X)], library)


def test_a_list_of_results(library: Path) -> None:
    class Halves(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            first, second = halves(x * 2)
            return first - second  # type: ignore[no-any-return]

    halves.check(X)
    compare(Halves(), [(X,), (X + 1,)], library)


@pytest.mark.parametrize("backend", ["portable", "cpu", "xnnpack"])
def test_state_is_written(backend: str, library: Path) -> None:
    push.check(torch.zeros(6), X)
    program = compare(Sum(), [(X,), (X * 3,), (X,)], library, backend=backend)
    assert "acme::push" in {operator.name for operator in program.report().operators}


def test_state_that_is_not_read_later_is_written_in_place(library: Path) -> None:
    class Last(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("state", torch.zeros(6))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            push(self.state, x)
            return self.state + 1

    program = compare(Last(), [(X,), (X,)], library)
    names = [operator.name for operator in program.report().operators]
    assert names == ["acme::push", "aten::add.out"], names


def test_state_and_a_result_of_a_dynamic_size() -> None:
    def kernel(state, x, n):  # type: ignore[no-untyped-def]
        before = state * n
        state += x
        return before

    name = rl.runtime.register_kernel(str(advance.schema), kernel)
    try:
        rows = torch.export.Dim("rows", min=2, max=9)
        model = Advances()
        x = torch.randn(3, 4)
        program = rl.export(model, (x,), dynamic_shapes=({0: rows},))
        module = rl.load(program.buffer)
        for n in (3, 9, 2):
            torch.testing.assert_close(module(x[:1].expand(n, 4)), model(x[:1].expand(n, 4)))
    finally:
        rl.runtime.unregister_kernel(name)


def _advance(state: torch.Tensor, x: torch.Tensor, n: int) -> torch.Tensor:
    before = state * n
    state.add_(x)
    return before


@pytest.mark.parametrize("backend", ["portable", "cpu"])
def test_an_operator_that_writes_state_is_decomposed(backend: str) -> None:
    """By rules that write state themselves; no kernel is needed."""
    rules = {advance.op: _advance, push.op: lambda state, x: state.add_(x)}
    config = EdgeCompileConfig(decompositions=rules)

    class Both(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("state", torch.zeros(6))

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            before = advance(self.state, x, 3)
            push(self.state, before + 1)
            return before, advance(self.state, x, 2), self.state * 1

    model, rows = Both(), torch.export.Dim("rows", min=2, max=9)
    module = rl.load(rl.export(model, (X,), compile_config=config, backend=backend).buffer)
    for x in (X, X * 3, X):
        torch.testing.assert_close(module(x), model(x))
    x = torch.randn(3, 4)
    sizes = ({0: rows},)
    program = rl.export(Advances(), (x,), dynamic_shapes=sizes, compile_config=config)
    module, other = rl.load(program.buffer), Advances()
    for n in (3, 9, 2):
        args = x[:1].expand(n, 4)
        torch.testing.assert_close(module(args), other(args))


def test_a_decomposition_that_makes_a_tensor_is_refused() -> None:
    def rule(state: torch.Tensor, x: torch.Tensor) -> None:
        state.add_(torch.tensor([1.0, 2, 3, 4, 5, 6]) * x)

    config = EdgeCompileConfig(decompositions={push.op: rule})
    with pytest.raises(rl.ExportError, match=r"the decomposition of acme\.push\.default makes"):
        rl.export(Sum(), (X,), compile_config=config)


def _push(state: torch.Tensor, x: torch.Tensor) -> None:
    state.add_(x)


def test_an_operator_that_torch_decomposes_writes_state() -> None:
    library = torch.library.Library("acme_composite", "DEF")
    library.define("push(Tensor(a!) state, Tensor x) -> ()")
    library.impl("push", _push, "CompositeImplicitAutograd")

    class Pushes(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("state", torch.zeros(6))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            torch.ops.acme_composite.push(self.state, x)
            return self.state + 1

    model = Pushes()
    module = rl.load(rl.export(model, (X,)).buffer)
    for _ in range(3):
        torch.testing.assert_close(module(X), model(X))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("acme::x", r"is not the schema of an operator"),
        ("acme::x(Tensor x) -> int", r"its results must be tensors"),
        ("acme::x(Tensor x) -> ()", r"its results must be tensors"),
        ("acme::x(Device d, Tensor x) -> Tensor", r"argument 'd' is Device, which no kernel takes"),
        ("acme::x(Tensor x, Tensor x) -> Tensor", r"two arguments are named 'x'"),
        ("acme::x(Tensor) -> Tensor", r"'Tensor' is not an argument: write a type and a name"),
        ("acme::x.out(Tensor x) -> Tensor", r"name the operator without an overload"),
        ("acme::pick(Tensor x) -> Tensor", r"there is an operator acme::pick already"),
        ("acme::x(Tensorr x) -> Tensor", r"argument 'x' is Tensorr, which no kernel takes"),
    ],
)
def test_wrong_schemas(schema: str, message: str) -> None:
    with pytest.raises(rl.ExportError, match=message):
        rl.custom_op(schema)(lambda x: x)


def test_check_finds_what_does_not_agree() -> None:
    @rl.custom_op("acme::aliased(Tensor x) -> Tensor")
    def aliased(x: torch.Tensor) -> torch.Tensor:
        return x[1:]

    @rl.custom_op("acme::misfaked(Tensor x) -> Tensor", fake=lambda x: x.new_empty(3))
    def misfaked(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    for operator in (aliased, misfaked):
        with pytest.raises(rl.ExportError, match=rf"{operator.schema.base}: PyTorch's test_"):
            operator.check(X)
