"""Our out-variants for operators that may stay whole although ATen has no out-variant for them.

`scaled_dot_product_attention` and `rms_norm` are decomposed unless
`EdgeCompileConfig(preserve_ops=...)` names them; whole, they run as `rushlight::*.out`, which real
ExecuTorch does not have. Recurrent layers stay whole only for a backend: no kernel runs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._ops import OpOverload

_LIB = torch.library.Library("rushlight", "FRAGMENT")
_SCHEMAS = (
    "scaled_dot_product_attention.out(Tensor query, Tensor key, Tensor value, "
    "Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, "
    "bool enable_gqa=False, Tensor(a!) out) -> Tensor(a!)",
    "rms_norm.out(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, "
    "float? eps=None, *, Tensor(a!) out) -> Tensor(a!)",
)
# The signature of a recurrent layer; its states (`hx`) are a list for an LSTM, which has two.
_RECURRENT = (
    "(Tensor input, {hx}, Tensor[] params, bool has_biases, int num_layers, float dropout, "
    "bool train, bool bidirectional, bool batch_first, *, {outs}) -> ({results})"
)
_RECURRENT_OPS = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def _attention_out(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    out: torch.Tensor,
) -> torch.Tensor:
    result = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )
    return out.copy_(result)


def _rms_norm_out(
    input: torch.Tensor,
    normalized_shape: Sequence[int],
    weight: torch.Tensor | None = None,
    eps: float | None = None,
    *,
    out: torch.Tensor,
) -> torch.Tensor:
    return out.copy_(torch.nn.functional.rms_norm(input, list(normalized_shape), weight, eps))


def _recurrent_out(name: str) -> OpOverload:
    """The out-variant of a recurrent operator."""
    hx, count = ("Tensor[] hx", 3) if name == "lstm" else ("Tensor hx", 2)
    results = [f"Tensor({letter}!)" for letter in "abc"[:count]]
    outs = ", ".join(f"{result} out{i}" for i, result in enumerate(results))
    _LIB.define(f"{name}.out" + _RECURRENT.format(hx=hx, outs=outs, results=", ".join(results)))

    def run(*args: Any, **outs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results = getattr(torch.ops.aten, name).input(*args)
        return tuple(out.copy_(one) for out, one in zip(outs.values(), results, strict=True))

    _LIB.impl(f"{name}.out", run, "CompositeExplicitAutograd")
    operator: OpOverload = getattr(torch.ops.rushlight, name).out
    return operator


for _schema in _SCHEMAS:
    _LIB.define(_schema)
_LIB.impl("scaled_dot_product_attention.out", _attention_out, "CompositeExplicitAutograd")
_LIB.impl("rms_norm.out", _rms_norm_out, "CompositeExplicitAutograd")

# The out-variant of each operator that has none of its own.
OUT_VARIANTS: dict[OpOverload, OpOverload] = {
    torch.ops.aten.scaled_dot_product_attention.default: (
        torch.ops.rushlight.scaled_dot_product_attention.out
    ),
    torch.ops.aten.rms_norm.default: torch.ops.rushlight.rms_norm.out,
    **{getattr(torch.ops.aten, name).input: _recurrent_out(name) for name in _RECURRENT_OPS},
}
