"""The shapes of the float32 products that programs call for, by which a build leaves forms of the
portable product out (cpp/kernels/portable/linalg/gemm.h).

What a build has no form for runs in another one, only slower. So an answer that is too large costs
size alone, and one that is too small speed alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rushlight.schema import program as fb

OPERATORS = ("aten::linear.out", "aten::mm.out", "aten::addmm.out", "aten::bmm.out")
"""The operators whose products have the shapes of their tensors."""

_TALLEST = 14  # kMaxTileHeight of cpp/kernels/portable/loops/linalg/gemm.h
_SWAPPED = 8  # from here on, factors may be swapped to fill vectors: twice the fewest lanes
_FEW_ROWS = 6  # kMaxWideHeight; the longer factor of fewer columns is swapped, too
_DOT_ROWS, _DOT_DEPTH = 8, 32  # of products that are computed as dot products


@dataclass(frozen=True, slots=True)
class Products:
    """What the products of a build need.

    Attributes:
        rows: the most rows of a tile; None is any number.
        dots: whether some may be computed as dot products.
        wide: whether some may be computed by wide tiles, which read the right factor in place.
    """

    rows: int | None
    dots: bool
    wide: bool

    @property
    def text(self) -> str:
        """For the C++ struct `selection::Products`."""
        rows = "INT64_MAX" if self.rows is None else str(self.rows)
        return f"{{{rows}, {str(self.dots).lower()}, {str(self.wide).lower()}}}"


ALL = Products(None, True, True)
"""Of products whose shapes are not known."""


def union(products: Collection[Products]) -> Products:
    """What some products need together; one row if there are none."""
    rows = [product.rows for product in products]
    return Products(
        None if None in rows else max((row for row in rows if row is not None), default=1),
        any(product.dots for product in products),
        any(product.wide for product in products),
    )


def products_of(operator: str, tensors: Sequence[fb.Tensor]) -> Products:
    """What the product of a call needs.

    Args:
        operator: one of `OPERATORS`.
        tensors: the call's tensors, in the order of its arguments.
    """
    first = 1 if operator == "aten::addmm.out" else 0
    if len(tensors) < first + 3:
        return ALL  # a damaged call, which the runtime refuses
    a, b, out = tensors[first], tensors[first + 1], tensors[-1]
    linear = operator == "aten::linear.out"
    flat = all(list(t.dim_order) == sorted(t.dim_order) for t in (a, b, out))
    static = all(t.shape_dynamism == fb.TensorShapeDynamism.STATIC for t in (a, b, out))
    if not (flat and static and a.sizes and b.sizes and out.sizes):
        return ALL
    k = a.sizes[-1]
    n = 1 if linear and len(b.sizes) == 1 else out.sizes[-1]
    m = math.prod(a.sizes[:-1]) if linear else a.sizes[-2] if len(a.sizes) > 1 else 1
    rows = max(m, n) if m >= _SWAPPED else m
    few = min(m, n)
    return Products(
        None if rows >= _TALLEST else max(rows, 1),
        # Both factors must have k as their inner dimension.
        (m <= _DOT_ROWS or few <= _FEW_ROWS) and k >= _DOT_DEPTH and (linear or n == 1),
        few <= _FEW_ROWS and (not linear or k == 1),
    )
