"""The calls that are steps of their own, by operator."""

from __future__ import annotations

from typing import Any

import torch

from rushlight.backends.cpu.build.builder import Builder
from rushlight.backends.cpu.operators import (
    attention,
    halves,
    images,
    movement,
    products,
    quantized,
    recurrent,
    rows,
)
from rushlight.partition.operators import Operator

aten = torch.ops.aten

OPERATORS: dict[Any, Operator[Builder]] = {
    **products.OPERATORS,
    **images.OPERATORS,
    **rows.OPERATORS,
    **movement.OPERATORS,
    **attention.OPERATORS,
    **recurrent.OPERATORS,
    **quantized.OPERATORS,
    **halves.OPERATORS,
}
"""What the engine takes beside elementwise calls."""

MOVING = frozenset({*movement.OPERATORS, aten.constant_pad_nd.default}) - {aten.embedding.default}
"""Those that move elements as they lie."""

ANY_DTYPE = frozenset({*MOVING, *attention.OPERATORS, aten.embedding.default, aten.any.dim})
"""Those that only move elements, or look at dtypes themselves; all others take float32."""

KEPT_WHOLE = [
    aten.linear.default,
    aten.scaled_dot_product_attention.default,
    aten.rms_norm.default,
    aten.std.correction,
    *recurrent.WHOLE,
]
"""Operators that the engine computes in one step where their decomposition takes several."""
