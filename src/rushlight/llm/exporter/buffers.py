"""Keys and values in buffers of the program: the cache that ExecuTorch's models have."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import torch

from rushlight.errors import Code, ExportError
from rushlight.ir.custom_ops import executorch
from rushlight.llm.description import Description

Tensor = torch.Tensor
executorch.define()
_ACTIVE: ContextVar[CacheBuffers | None] = ContextVar("active_buffers", default=None)


class CacheBuffers(torch.nn.Module):
    """The keys and values of each layer [1, context, heads, width].

    Args:
        about: the model.

    Raises:
        ExportError: ExecuTorch's attention does not have what the model needs.
    """

    def __init__(self, about: Description) -> None:
        super().__init__()
        if about.value_width != about.width:
            raise ExportError(
                f"the model's keys have {about.width} elements and its values {about.value_width}, "
                f"and ExecuTorch's attention needs as many: use backend='cpu'",
                code=Code.NOT_SUPPORTED,
            )
        self._context = about.context
        self._start: int = 0
        self._masks: dict[int, Tensor] = {}
        for layer in range(about.layers):
            for name in ("keys", "values"):
                rows = torch.zeros(1, about.context, about.key_heads, about.width)
                self.register_buffer(f"{name}_{layer}", rows, persistent=False)

    @contextlib.contextmanager
    def active(self, start: int) -> Iterator[None]:
        """Within it, `rushlight.llm.attention` uses these buffers.

        Args:
            start: the position of the first token.
        """
        self._start, self._masks = start, {}
        token = _ACTIVE.set(self)
        try:
            yield
        finally:
            _ACTIVE.reset(token)
            self._masks = {}

    def attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        positions: Tensor,
        layer: int,
        scale: float,
        window: int,
        softcap: float,
    ) -> Tensor:
        """What `rushlight.llm.attention` describes, for one text."""
        keys, values = (getattr(self, f"{name}_{layer}") for name in ("keys", "values"))
        torch.ops.llama.update_cache(key.unsqueeze(0), keys, self._start)
        torch.ops.llama.update_cache(value.unsqueeze(0), values, self._start)
        is_windowed = 0 < window < self._context
        if softcap:  # which ExecuTorch's operator does not have
            mask = self._mask(positions, window if is_windowed else self._context)
            return _capped_attention(query, keys, values, mask, scale, softcap)
        result: Tensor = torch.ops.llama.custom_sdpa(
            query.unsqueeze(0),
            keys,
            values,
            self._start,
            self._mask(positions, window) if is_windowed else None,
            0.0,
            not is_windowed,
            scale,
        )
        return result.squeeze(0)

    def _mask(self, positions: Tensor, window: int) -> Tensor:
        """What is added to scores [tokens, context]: 0 for the `window` last positions."""
        if window not in self._masks:
            back = positions.unsqueeze(1) - torch.arange(self._context)
            seen = (back >= 0) & (back < window)
            zero = torch.zeros((), dtype=torch.float32)
            self._masks[window] = torch.where(seen, zero, float("-inf"))
        return self._masks[window]


def _capped_attention(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, scale: float, softcap: float
) -> Tensor:
    """Attention of query [tokens, heads, width] over a whole cache, with capped scores."""
    key_heads, groups = keys.shape[2], query.shape[1] // keys.shape[2]
    rows = query.unflatten(1, (key_heads, groups)).permute(1, 2, 0, 3)
    scores = torch.bmm(rows.flatten(1, 2), keys.squeeze(0).permute(1, 2, 0)) * (scale / softcap)
    scores = torch.tanh(scores).unflatten(1, (groups, -1)) * softcap + mask
    weights = torch.softmax(scores, -1).flatten(1, 2)
    mixed = torch.bmm(weights, values.squeeze(0).permute(1, 0, 2)).unflatten(1, (groups, -1))
    result: Tensor = mixed.permute(2, 0, 1, 3).flatten(1, 2)
    return result


def active_buffers() -> CacheBuffers | None:
    """The buffers of the method that is being captured; None where the runner has the cache."""
    return _ACTIVE.get()
