"""Replace means by sums and divisions."""

from __future__ import annotations

from typing import Any

from rushlight.edge import ExportPass
from rushlight.edge.export_pass import ProxyValue
from rushlight.edge.operators import ops

aten = ops.edge.aten


class MeanToSumDiv(ExportPass):
    """Turns `mean.dim` into a sum and a division by the number of elements.

    A mean over a size that varies stays.
    """

    def call_operator(
        self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], meta: dict[str, Any]
    ) -> ProxyValue:
        """Emit the sum and the division for a mean."""
        count = _count(args) if op == aten.mean.dim else None
        if count is None:
            return super().call_operator(op, args, kwargs, meta)
        total = super().call_operator(aten.sum.dim_IntList, args, kwargs, meta)
        sizes = [1] if total.to_tensor().dim() else []
        told = {"dtype": total.to_tensor().dtype}
        divisor = super().call_operator(aten.full.default, (sizes, float(count)), told, meta)
        return super().call_operator(aten.div.Tensor, (total, divisor), {}, meta)


def _count(args: tuple[Any, ...]) -> int | None:
    """How many elements a mean takes; None if their number varies."""
    sizes = args[0].to_tensor().shape
    dims = (args[1] if len(args) > 1 else None) or range(len(sizes))
    count = 1
    for dim in dims:
        if not isinstance(sizes[dim], int):
            return None
        count *= sizes[dim]
    return count
