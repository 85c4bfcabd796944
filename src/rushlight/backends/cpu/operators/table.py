"""The calls that are nodes of their own, by operator."""

from __future__ import annotations

from typing import Any

import torch

from rushlight.backends.cpu.build.builder import Builder
from rushlight.backends.cpu.operators import (
    adapter,
    attention,
    cached_attention,
    halves,
    images,
    movement,
    products,
    quantized,
    recurrent,
    rows,
)
from rushlight.ir.custom_ops.fake_quantize import fake_quantize_groups
from rushlight.partition.operators import Operator

aten = torch.ops.aten

OPERATORS: dict[Any, Operator[Builder]] = {
    **products.OPERATORS,
    **images.OPERATORS,
    **rows.OPERATORS,
    **movement.OPERATORS,
    **attention.OPERATORS,
    **cached_attention.OPERATORS,
    **adapter.OPERATORS,
    **recurrent.OPERATORS,
    **quantized.OPERATORS,
    **halves.OPERATORS,
}
"""The operators that the engine takes besides elementwise ones."""

MOVING = frozenset({*movement.OPERATORS, aten.constant_pad_nd.default}) - {aten.embedding.default}
"""The operators among them that only move elements."""

ANY_DTYPE = frozenset(
    {
        *MOVING,
        *attention.OPERATORS,
        *cached_attention.OPERATORS,
        *adapter.OPERATORS,
        aten.embedding.default,
        aten.any.dim,
        quantized.embedding_byte,
    }
)
"""The operators among them that take any dtype or check it themselves; all others take float32."""

KEPT_WHOLE = [
    aten.linear.default,
    aten.scaled_dot_product_attention.default,
    aten.rms_norm.default,
    aten.std.correction,
    fake_quantize_groups,
    *recurrent.WHOLE,
]
"""Operators that the engine computes in one node where their decomposition takes several."""
