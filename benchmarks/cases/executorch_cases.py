"""Timed calls of the operators that ExecuTorch's wheel has beside torch's, for `kernels.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from cases.kernel_cases import Case, Inputs

from rushlight.ir.custom_ops.executorch import define

define()
QUANTIZED = "quantized_decomposed"


def codes(t: Inputs, *shape: int) -> torch.Tensor:
    """Random int8."""
    return (t.index(256, *shape) - 128).to(torch.int8)


def attention(t: Inputs) -> tuple[Any, ...]:
    """One query to all keys of a cache."""
    keys = t.heads
    return keys[:, -1:].clone(), keys, t.heads, keys.shape[1] - 1


def updated(t: Inputs) -> tuple[Any, ...]:
    """A quarter of a cache, and the cache."""
    cache = t.heads
    return cache[:, : cache.shape[1] // 4].clone(), cache, 1


def quantized_attention(t: Inputs) -> tuple[Any, ...]:
    query, keys, _, start = attention(t)
    parts = [codes(t, *x.shape) for x in (query, keys, keys)]
    parameters = []
    for part in parts:
        shape = (*part.shape[:3], 1)
        parameters += [torch.zeros(shape, dtype=torch.int8), torch.full(shape, 0.01)]
    return *parts, start, None, 0.0, True, None, *parameters, False


def cached() -> Iterator[Case]:
    """Attention over a cache."""
    yield Case("llama::custom_sdpa.out", attention)
    yield Case("llama::custom_quantized_sdpa.out", quantized_attention)
    yield Case(
        "llama::sdpa_with_kv_cache.out",
        lambda t: (
            *(q := attention(t))[:1],
            *(q[0][:, :, :].clone(), q[0].clone(), q[1], q[2], q[3], 1),
        ),
    )
    yield Case("llama::update_cache.out", updated)
    yield Case(
        "llama::update_cache_with_indices.out",
        lambda t: (*updated(t), torch.arange(t.heads.shape[1] // 4)[None] * 2),
    )


def quantized() -> Iterator[Case]:
    """Operators on integers that stand for numbers."""
    for name, low, high in (
        *(("embedding_2bit", -2, 1), ("embedding_4bit", -8, 7), ("embedding_byte", -128, 127)),
    ):

        def make(t: Inputs, low: int = low, high: int = high) -> tuple[Any, ...]:
            width = t.cols * (high - low + 1).bit_length() // 9 or 1
            weight = t.index(256, t.rows, width).to(torch.uint8)
            return weight, t.tensor(t.rows), None, low, high, t.index(t.rows, t.rows)

        yield Case(f"{QUANTIZED}::{name}.out", make)
        yield Case(f"{QUANTIZED}::{name}.dtype_out", make)
    yield Case(
        f"{QUANTIZED}::add.out",
        lambda t: (t.x, 0.1, 3, 0, 255, t.x, 0.05, 9, 0, 255, 0.2, 10, 0, 99),
    )
    yield Case(
        f"{QUANTIZED}::mixed_linear.out",
        lambda t: (t.tensor(8, t.cols), codes(t, t.rows, t.cols), t.tensor(t.rows), None),
    )
    yield Case(
        f"{QUANTIZED}::mixed_mm.out",
        lambda t: (t.tensor(8, t.rows), codes(t, t.rows, t.cols), t.tensor(t.rows), None),
    )


def executorch_cases() -> Iterator[Case]:
    """All of them."""
    yield Case("llama::fallback.out", lambda t: (t.x,))
    yield Case("llama::fast_hadamard_transform.out", lambda t: (t.x,))
    yield Case(
        "llama::channelwise_gated_delta_rule.out",
        lambda t: (*[t.heads] * 4, t.tensor(*t.heads.shape[:3]), t.tensor(*delta_state(t))),
    )
    yield Case("preprocess::tile_crop.out", lambda t: (t.image[0], max(1, t.image.shape[-1] // 4)))
    yield from cached()
    yield from quantized()


def delta_state(t: Inputs) -> tuple[int, ...]:
    """The shape of a state."""
    batch, heads, _, width = t.heads.shape
    return batch, heads, width, width
