"""Which forms of the portable product a build keeps, by the shapes of its programs' products."""

from __future__ import annotations

import pytest

from rushlight.schema import program as fb
from rushlight.selective.products import ALL, Products, products_of, union


def _tensor(*sizes: int, order: tuple[int, ...] = (), dynamic: bool = False) -> fb.Tensor:
    kind = fb.TensorShapeDynamism.DYNAMIC_BOUND if dynamic else fb.TensorShapeDynamism.STATIC
    return fb.Tensor(
        scalar_type=fb.ScalarType.FLOAT,
        sizes=list(sizes),
        dim_order=list(order or range(len(sizes))),
        shape_dynamism=kind,
    )


def _linear(m: int, k: int, n: int) -> Products:
    tensors = [_tensor(m, k), _tensor(n, k), _tensor(n), _tensor(m, n)]
    return products_of("aten::linear.out", tensors)


@pytest.mark.parametrize(
    ("m", "k", "n", "expected"),
    [
        (1, 64, 10, Products(1, True, False)),  # one row: dot products
        (1, 8, 10, Products(1, False, False)),  # too short for these
        (3, 64, 10, Products(3, True, False)),
        (8, 64, 10, Products(10, True, False)),  # factors may be swapped
        (32, 64, 10, Products(None, False, False)),
        (32, 64, 4, Products(None, True, False)),  # swapped, it has four rows
        (5, 1, 4, Products(5, False, True)),  # the weights' columns lie one after the other
    ],
)
def test_linear(m: int, k: int, n: int, expected: Products) -> None:
    assert _linear(m, k, n) == expected


def test_leading_dimensions_are_rows() -> None:
    tensors = [_tensor(2, 3, 64), _tensor(10, 64), _tensor(10), _tensor(2, 3, 10)]
    assert products_of("aten::linear.out", tensors).rows == 6


@pytest.mark.parametrize("operator", ["aten::mm.out", "aten::bmm.out", "aten::addmm.out"])
def test_products_of_matrices_use_wide_tiles_for_few_rows(operator: str) -> None:
    batch = (2,) if operator == "aten::bmm.out" else ()
    addend = [_tensor(9)] if operator == "aten::addmm.out" else []
    few = [*addend, _tensor(*batch, 4, 64), _tensor(*batch, 64, 9), _tensor(*batch, 4, 9)]
    assert products_of(operator, few) == Products(4, False, True)
    many = [*addend, _tensor(*batch, 20, 64), _tensor(*batch, 64, 9), _tensor(*batch, 20, 9)]
    assert products_of(operator, many) == Products(None, False, False)


def test_everything_is_kept_for_what_is_not_known() -> None:
    tensors = [_tensor(1, 64), _tensor(10, 64), _tensor(10), _tensor(1, 10)]
    dynamic = [_tensor(1, 64, dynamic=True), *tensors[1:]]
    assert products_of("aten::linear.out", dynamic) == ALL
    turned = [tensors[0], _tensor(10, 64, order=(1, 0)), *tensors[2:]]
    assert products_of("aten::linear.out", turned) == ALL
    assert products_of("aten::linear.out", []) == ALL
    assert products_of("aten::mm.out", [_tensor(), _tensor(), _tensor()]) == ALL


def test_products_are_joined() -> None:
    assert union([]) == Products(1, False, False)
    assert union([_linear(1, 64, 10), _linear(3, 8, 4)]) == Products(3, True, False)
    assert union([_linear(1, 64, 10), ALL]) == ALL
    assert ALL.text == "{INT64_MAX, true, true}"
    assert Products(3, False, True).text == "{3, false, true}"
