"""Rewrites torchao's blockwise affine operators as operators that kernels and backends know.

The operators that torchao's `quantize_` writes take blocks of any shape. A block that is a row, a
channel or a group within a channel becomes an operator of `quantized_decomposed`, which ExecuTorch
has too; other blocks become arithmetic, by torchao's own decomposition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Tensor = torch.Tensor
Table = dict[Any, Callable[..., Any]]


def affine_decompositions() -> Table:
    """The rules; empty if torchao has defined no operators in this process."""
    library = torch.ops.torchao
    if not hasattr(library, "dequantize_affine") or not hasattr(
        torch.ops.quantized_decomposed, "dequantize_per_channel_group"
    ):
        return {}
    rules: Table = {
        library.choose_qparams_affine.default: _choose,
        library.quantize_affine.default: _quantize,
        library.dequantize_affine.default: _dequantize,
    }
    return {target: _or_own(target, rule) for target, rule in rules.items()}


def _or_own(target: Any, rule: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `rule`: where it returns None, the operator's own decomposition is used."""
    own = torch._C.DispatchKey.CompositeImplicitAutograd  # target.decompose would call the rule

    def decomposed(*args: Any, **kwargs: Any) -> Any:
        result = rule(*args, **kwargs)
        return target._op_dk(own, *args, **kwargs) if result is None else result

    return decomposed


def _is_rows(input: Tensor, block: Any) -> bool:
    return input.dim() > 0 and all(b == 1 for b in block[:-1]) and block[-1] == input.shape[-1]


def _choose(
    input: Tensor | None,
    mapping_type: str,
    block_size: Any,
    target_dtype: torch.dtype,
    quant_min: Any = None,
    quant_max: Any = None,
    eps: float | None = None,
    scale_dtype: torch.dtype | None = None,
    zero_point_dtype: torch.dtype | None = None,
    keepdim: bool = False,
) -> tuple[Tensor, Tensor] | None:
    known = (mapping_type, target_dtype, quant_min, quant_max)
    if input is None or known != ("ASYMMETRIC", torch.int8, -128, 127):
        return None
    if not _is_rows(input, block_size) or input.dtype != torch.float32:
        return None
    chosen = torch.ops.quantized_decomposed.choose_qparams_per_token_asymmetric
    scale, zero_point = chosen(input, target_dtype)
    shape = input.shape[:-1]
    return (scale, zero_point) if keepdim else (scale.reshape(shape), zero_point.reshape(shape))


def _quantize(
    input: Tensor,
    block_size: Any,
    scale: Tensor,
    zero_point: Tensor | None,
    output_dtype: torch.dtype,
    quant_min: Any = None,
    quant_max: Any = None,
) -> Tensor | None:
    if not _is_of_rows(input, block_size, scale, zero_point) or output_dtype != torch.int8:
        return None
    parameters = _kept(input, scale, zero_point)
    how = (quant_min, quant_max, output_dtype)
    result: Tensor = torch.ops.quantized_decomposed.quantize_per_token(input, *parameters, *how)
    return result


def _dequantize(
    input: Tensor,
    block_size: Any,
    scale: Tensor,
    zero_point: Tensor | None,
    input_dtype: torch.dtype,
    quant_min: Any = None,
    quant_max: Any = None,
    output_dtype: torch.dtype = torch.float32,
) -> Tensor | None:
    ops = torch.ops.quantized_decomposed
    how = (quant_min, quant_max, input_dtype)
    if input_dtype != torch.int8 or output_dtype != torch.float32 or quant_min is None:
        return None
    result: Tensor
    if _is_of_rows(input, block_size, scale, zero_point):
        parameters = _kept(input, scale, zero_point)
        result = ops.dequantize_per_token(input, *parameters, *how, output_dtype)
        return result
    if input.dim() != 2 or block_size[0] != 1 or scale.dtype != torch.float32:
        return None
    zeros = None if zero_point is None else zero_point.to(torch.int64)
    rows, groups = input.shape[0], input.shape[1] // block_size[1]
    if groups == 1:
        zeros = None if zeros is None else zeros.reshape(rows)
        result = ops.dequantize_per_channel(input, scale.reshape(rows), zeros, 0, *how)
        return result
    shape = (rows, groups)
    zeros = None if zeros is None else zeros.reshape(shape)
    size = int(block_size[1])
    result = ops.dequantize_per_channel_group(
        input, scale.reshape(shape), zeros, *how, size, output_dtype
    )
    return result


def _is_of_rows(input: Tensor, block: Any, scale: Tensor, zero_point: Tensor | None) -> bool:
    """Whether `_choose` computed these parameters: one per row, with scales in float64."""
    return zero_point is not None and scale.dtype == torch.float64 and _is_rows(input, block)


def _kept(input: Tensor, scale: Tensor, zero_point: Tensor | None) -> tuple[Tensor, Tensor]:
    assert zero_point is not None
    shape = (*input.shape[:-1], 1)
    return scale.reshape(shape), zero_point.reshape(shape)
