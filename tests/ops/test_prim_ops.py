"""The operators on scalars, and those that a program's control flow needs."""

from __future__ import annotations

import math
import operator
from typing import Any

import pytest
import torch

from .harness import native

INTS = [-7, -2, -1, 0, 1, 2, 3, 2**40]
DOUBLES = [-2.5, -0.5, 0.0, 0.5, 1.5, 2.5, 1e10, math.inf, -math.inf]
PAIRS = [(a, b) for a in INTS + DOUBLES for b in INTS + DOUBLES]
INT_PAIRS = [(a, b) for a in INTS for b in INTS]
LEAST = -(2**63)


def prim(name: str, *args: Any) -> Any:
    result, _ = native().run_kernel(f"executorch_prim::{name}", list(args))
    return result


def same(got: Any, expected: Any) -> bool:
    if type(got) is not type(expected):
        return False
    return got == expected or (got != got and expected != expected)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "eq", "gt", "lt", "ge", "le"])
def test_arithmetic_and_comparison_are_pythons(name: str) -> None:
    for a, b in PAIRS:
        expected = getattr(operator, name)(a, b)
        if isinstance(expected, int) and not -(2**63) <= expected < 2**63:
            continue
        assert same(prim(f"{name}.Scalar", a, b), expected), (name, a, b)


def test_bools_compare() -> None:
    assert prim("eq.Scalar", True, True) is True
    assert prim("eq.Scalar", True, False) is False


def test_division() -> None:
    for a, b in INT_PAIRS:
        if b == 0:
            continue
        assert same(prim("floordiv.Scalar", a, b), a // b), (a, b)
        assert same(prim("truediv.Scalar", a, b), a / b)
        assert same(prim("floordiv.int", a, b), int(a / b))
        for name in ("mod.int", "mod.Scalar"):
            assert same(prim(name, a, b), int(math.fmod(a, b)))
    assert prim("floordiv.Scalar", -7.5, 2) == -4.0
    assert prim("floordiv.Scalar", 1, 0.0) == math.inf
    assert prim("floordiv.Scalar", -1.0, 0) == -math.inf


def test_the_least_integer_divided_by_minus_one_does_not_trap() -> None:
    assert prim("floordiv.Scalar", LEAST, -1) == LEAST
    assert prim("floordiv.int", LEAST, -1) == LEAST
    assert prim("mod.int", LEAST, -1) == 0
    assert prim("neg.Scalar", LEAST) == LEAST


@pytest.mark.parametrize("name", ["floordiv.Scalar", "floordiv.int", "mod.int", "mod.Scalar"])
def test_integer_division_by_zero_is_an_error(name: str) -> None:
    with pytest.raises(RuntimeError, match="5 is divided by zero"):
        prim(name, 5, 0)


def test_one_argument() -> None:
    assert same(prim("neg.Scalar", 3), -3)
    assert same(prim("neg.Scalar", 2.5), -2.5)
    assert same(prim("sym_not.Scalar", True), False)
    assert same(prim("sym_float.Scalar", 3), 3.0)
    assert same(prim("sym_float.Scalar", True), 1.0)
    for x in (-2.5, -1.2, -0.5, 0.5, 1.5, 2.5, 7.0):
        assert same(prim("ceil.Scalar", x), math.ceil(x))
        assert same(prim("round.Scalar", x), round(x))
        assert same(prim("trunc.Scalar", x), math.trunc(x))
        assert same(prim("sym_int.Scalar", x), int(x))
    assert same(prim("sym_int.Scalar", True), 1)
    assert prim("trunc.Scalar", 1e300) == 2**63 - 1
    assert prim("trunc.Scalar", math.nan) == 0


def test_selection() -> None:
    assert same(prim("sym_ite.Scalar", True, 1, 2.5), 1)
    assert same(prim("sym_ite.Scalar", False, 1, 2.5), 2.5)
    for a, b in INT_PAIRS:
        assert same(prim("sym_max.Scalar", a, b), max(a, b))
        assert same(prim("sym_min.Scalar", a, b), min(a, b))


def test_wrong_kinds_are_refused() -> None:
    for value in (None, "text", torch.tensor(1)):
        with pytest.raises(RuntimeError, match="argument 0"):
            prim("sym_not.Scalar", value)


def test_sizes() -> None:
    x = torch.zeros(2, 0, 5)
    run = native().run_kernel
    assert run("aten::sym_size.int", [x, 0])[0] == 2
    assert run("aten::sym_size.int", [x, -1])[0] == 5
    assert run("aten::sym_numel", [x])[0] == 0
    for dim in (3, -4):
        with pytest.raises(RuntimeError, match=f"dim is {dim}"):
            run("aten::sym_size.int", [x, dim])
    with pytest.raises(RuntimeError, match="dim is 0"):
        run("aten::sym_size.int", [torch.tensor(1), 0])


@pytest.mark.parametrize(
    "value",
    [
        torch.tensor(3),
        torch.tensor([7, 8], dtype=torch.uint8),
        torch.tensor(2.5),
        torch.tensor(1.5, dtype=torch.float64),
        torch.tensor(0.5, dtype=torch.bfloat16),
        torch.tensor(True),
    ],
)
def test_first_element(value: torch.Tensor) -> None:
    got, _ = native().run_kernel("aten::_local_scalar_dense", [value])
    assert same(got, value.flatten()[0].item())


def test_first_element_of_none() -> None:
    with pytest.raises(RuntimeError, match="no first element"):
        native().run_kernel("aten::_local_scalar_dense", [torch.zeros(0)])


@pytest.mark.parametrize(
    ("holds", "fails"),
    [(True, False), (3, 0), (0.5, 0.0), (torch.tensor(True), torch.tensor(False))]
    + [(torch.ones(1, 1, dtype=d), torch.zeros(1, dtype=d)) for d in (torch.int8, torch.bfloat16)],
)
def test_assertions(holds: object, fails: object) -> None:
    kind = "_assert_async.msg" if isinstance(holds, torch.Tensor) else "_assert_scalar"
    native().run_kernel(f"aten::{kind}", [holds, "positive"])
    with pytest.raises(RuntimeError, match="an assertion of the model failed: positive"):
        native().run_kernel(f"aten::{kind}", [fails, "positive"])
    if isinstance(fails, torch.Tensor):
        with pytest.raises(RuntimeError, match="an assertion of the model failed"):
            native().run_kernel("aten::_assert_async", [fails])


def test_an_assertion_takes_one_element() -> None:
    for value in (torch.ones(2), torch.ones(0)):
        with pytest.raises(RuntimeError, match="one number or bool, but got float32 of sizes"):
            native().run_kernel("aten::_assert_async.msg", [value, "positive"])


def test_view_takes_sizes_and_memory() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    out = torch.zeros(2, 6)
    for size, expected in (([2, 6], [2, 6]), ([-1, 6], [2, 6]), ([12, -1], [12, 1])):
        _, shapes = native().run_kernel("executorch_prim::et_view.default", [x, size, out])
        assert shapes[2] == expected


@pytest.mark.parametrize("size", [[5, 2], [-1, 5], [-1, -1], [2, 2, 3], [-2, -6]])
def test_view_refuses_other_sizes(size: list[int]) -> None:
    with pytest.raises(RuntimeError):
        native().run_kernel(
            "executorch_prim::et_view.default", [torch.zeros(3, 4), size, torch.zeros(3, 4)]
        )


def test_view_of_no_elements() -> None:
    run = native().run_kernel
    name = "executorch_prim::et_view.default"
    assert run(name, [torch.zeros(0, 4), [4, 0], torch.zeros(2, 0)])[1][2] == [4, 0]
    with pytest.raises(RuntimeError, match="0 elements"):
        run(name, [torch.zeros(0, 4), [-1, 0], torch.zeros(2, 0)])


def test_copy_index_appends() -> None:
    to = torch.full((3, 2), -1.0)
    run = native().run_kernel
    name = "executorch_prim::et_copy_index.tensor"
    for index in range(3):
        _, shapes = run(name, [to, torch.full((2,), float(index)), index])
        assert shapes[0] == [index + 1, 2]
    assert to.tolist() == [[0, 0], [1, 1], [2, 2]]
    with pytest.raises(RuntimeError, match="room for 6"):
        run(name, [to, torch.zeros(2), 3])
    with pytest.raises(RuntimeError, match="index -1"):
        run(name, [to, torch.zeros(2), -1])
    with pytest.raises(RuntimeError, match="do not go into"):
        run(name, [to, torch.zeros(3), 1])
    with pytest.raises(RuntimeError, match="do not go into"):
        run(name, [to, torch.zeros(3, 1), 0])
    # The first slice decides the other sizes, up to the room there is.
    assert run(name, [to, torch.ones(5), 0])[1][0] == [1, 5]
    with pytest.raises(RuntimeError, match="room for 6"):
        run(name, [to, torch.zeros(7), 0])
    with pytest.raises(RuntimeError, match="copy_from is int64"):
        run(name, [to, torch.zeros(2, dtype=torch.int64), 0])
