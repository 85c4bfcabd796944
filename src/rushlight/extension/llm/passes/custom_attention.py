"""Attention becomes the operator that ExecuTorch's kernels of language models compute."""

from __future__ import annotations

from typing import Any

import torch

from rushlight.edge import ExportPass
from rushlight.ir.custom_ops import executorch

aten = torch.ops.aten


class ReplaceSDPAWithCustomSDPAPass(ExportPass):
    """Replaces `aten::scaled_dot_product_attention` by `llama::custom_sdpa`, which kernels have.

    Calls whose operands do not have four dimensions, or whose mask is no matrix, stay as they are.

    Args:
        assume_causal_mask: ignore masks: attention is causal.
    """

    def __init__(self, assume_causal_mask: bool = False) -> None:
        self.assume_causal_mask = assume_causal_mask
        executorch.define()

    def call_operator(
        self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], meta: dict[str, Any]
    ) -> Any:
        """Emit the other operator in place of attention."""
        if op is not aten.scaled_dot_product_attention.default:
            return super().call_operator(op, args, kwargs, meta)
        query, key, value, *rest = args
        given = dict(zip(("attn_mask", "dropout_p", "is_causal"), rest, strict=False)) | kwargs
        mask = None if self.assume_causal_mask else given.get("attn_mask")
        if mask is not None and all(size == 1 for size in mask.data.shape[:-2]):
            mask = self._as_matrix(mask, meta)
        is_matrix = mask is None or mask.data.dim() == 2
        if any(one.data.dim() != 4 for one in (query, key, value)) or not is_matrix:
            return super().call_operator(op, args, kwargs, meta)
        result = super().call_operator(
            torch.ops.llama.custom_sdpa.default,
            (
                *(self._swapped(one, meta) for one in (query, key, value)),
                0,
                mask,
                given.get("dropout_p", 0.0),
                self.assume_causal_mask or given.get("is_causal", False),
                given.get("scale"),
            ),
            {},
            meta,
        )
        return self._swapped(result, meta)

    def _as_matrix(self, mask: Any, meta: dict[str, Any]) -> Any:
        """A mask [queries, keys] of what is added to scores."""
        while mask.data.dim() > 2:
            mask = super().call_operator(aten.squeeze.dim, (mask, 0), {}, meta)
        if mask.data.dtype == torch.bool:
            mask = super().call_operator(aten.where.Scalar, (mask, 0.0, float("-inf")), {}, meta)
        return mask

    def _swapped(self, one: Any, meta: dict[str, Any]) -> Any:
        """Heads and positions change places."""
        swapped = super().call_operator(aten.transpose.int, (one, 1, 2), {}, meta)
        return super().call_operator(aten.contiguous.default, (swapped,), {}, meta)
