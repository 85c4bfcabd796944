"""Attention as language models call it: over the cache of keys and values that the runner owns, or
over buffers of the program, where it is exported for ExecuTorch's runner."""

from __future__ import annotations

from typing import Any

import torch

from rushlight.ir.custom_ops import cached_attention as _definition  # noqa: F401  # defines it
from rushlight.llm.exporter.buffers import active_buffers
from rushlight.llm.exporter.rows import rows_of_step

Tensor = torch.Tensor
INTERFACE = "rushlight"
"""The name of our attention among those of `transformers`."""


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    positions: Tensor,
    sequences: Tensor,
    *,
    layer: int,
    scale: float | None = None,
    window: int = 0,
    softcap: float = 0.0,
) -> Tensor:
    """Store the keys and values of a step in the cache, and attend to all of their sequences.

    Args:
        query: [tokens, heads, width].
        key: [tokens, key heads, width]; heads that share a key are neighbours.
        value: [tokens, key heads, value width].
        positions: where each token is in its sequence: int64 [tokens].
        sequences: to which sequence each token belongs: int64 [tokens].
        layer: the number of the layer, from 0.
        scale: what scores are multiplied by; default: 1 / sqrt(width).
        window: how many positions a token sees, its own included; 0 means all.
        softcap: unless it is 0, scores become softcap * tanh(score / softcap).

    Returns:
        [tokens, heads, value width].
    """
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    buffers = active_buffers()
    if buffers is not None:
        return buffers.attention(query, key, value, positions, layer, scale, window, softcap)
    result: Tensor = torch.ops.rushlight.cached_attention(
        query, key, value, positions, sequences, layer, scale, window, softcap
    )
    return result


def interface(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **unused: Any,
) -> tuple[Tensor, None]:
    """`attention` with the arguments that `transformers` hands to an attention function.

    The batch is 1, and its tokens are the rows of the step that is being captured. There is no
    mask, since masks are made only for attention functions that `transformers` knows.
    """
    rows = rows_of_step()
    q, k, v = (heads.squeeze(0).transpose(0, 1) for heads in (query, key, value))
    result = attention(
        q, k, v, rows.positions, rows.sequences,
        layer=module.layer_idx, scale=scaling, window=sliding_window or 0, softcap=softcap or 0.0,
    )  # fmt: skip
    return result.unsqueeze(0), None


def register() -> None:
    """Add our attention to those that a model of `transformers` can be told to use."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ALL_ATTENTION_FUNCTIONS.register(INTERFACE, interface)
