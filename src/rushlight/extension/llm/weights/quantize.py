"""Quantising weights: one, a stream of them, or all of a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torchao.quantization import IntxUnpackedToInt8Tensor
from torchao.quantization.quant_primitives import (
    MappingType,
    _choose_qparams_and_quantize_affine_hqq,
    _choose_qparams_and_quantize_scale_only_hqq,
    choose_qparams_affine,
    quantize_affine,
)
from torchao.quantization.quantize_.workflows.int4.int4_tensor import Int4Tensor

from rushlight.extension.llm.weights.convert import Convert, maybe_cast, to_default, to_exportable
from rushlight.extension.llm.weights.int4 import pack
from rushlight.extension.llm.weights.packed import PackedWeight
from rushlight.extension.llm.weights.recipe import QuantConfig, QuantRecipe

Tensor = torch.Tensor
_SCALES = torch.bfloat16
_UNPACKED = (5, 6, 8)  # bits of integers that get a byte each


def quantize_weight(weight: Tensor, config: QuantConfig) -> Any:
    """Quantise a weight.

    Args:
        weight: floating [rows, columns].
        config: how.

    Returns:
        torchao's `Int4Tensor` for 4 bits, its `IntxUnpackedToInt8Tensor` for 5, 6 and 8, both with
        scales in bfloat16.

    Raises:
        ValueError: bits, method or their combination do not exist, or a row is no whole groups.
    """
    if config.bits != 4 and config.bits not in _UNPACKED:
        raise ValueError(f"bits={config.bits}: give 4, 5, 6 or 8")
    if config.method not in ("min_max", "hqq"):
        raise ValueError(f"method={config.method!r}: give 'min_max' or 'hqq'")
    if weight.shape[-1] % config.group_size:
        raise ValueError(
            f"a row has {weight.shape[-1]} weights, which group_size={config.group_size} does not "
            f"divide: choose one that does"
        )
    if config.bits == 4:
        return _as_int4(weight, config)
    integers, scales, zeros = _signed(weight, config)
    return IntxUnpackedToInt8Tensor(
        qdata=integers,
        scale=scales,
        zero_point=zeros,
        target_dtype=getattr(torch, f"int{config.bits}"),
        block_size=(1, config.group_size),
        dtype=_SCALES,
        activation_quantization=None,
    )


def _as_int4(weight: Tensor, config: QuantConfig) -> Any:
    """Integers from 0 to 15, with scales and zero points [groups, rows]."""
    if config.symmetric:
        integers, scales, _ = _signed(weight, config)
        integers, zeros = integers + 8, torch.full_like(scales, 8)
    elif config.method == "hqq":
        integers, scales, zeros = _searched_with_zeros(weight, config)
    else:
        integers, scales, zeros = _in_range(weight, config, 0, 15, _SCALES)
    return Int4Tensor(
        qdata=pack(integers.to(torch.uint8)),
        scale=scales.t().contiguous(),
        zero_point=zeros.t().contiguous(),
        block_size=[1, config.group_size],
        shape=integers.shape,
    )


def _signed(weight: Tensor, config: QuantConfig) -> tuple[Tensor, Tensor, Tensor]:
    """Integers around 0 [rows, columns], scales and zero points [rows, groups]."""
    low, high = -(1 << (config.bits - 1)), (1 << (config.bits - 1)) - 1
    if config.method == "min_max":
        return _in_range(weight, config, low, high, torch.int8)
    if not config.symmetric:
        raise ValueError(
            f"method='hqq' of {config.bits} bits has no zero points: give symmetric=True, or "
            f"method='min_max'"
        )
    integers, scales = _choose_qparams_and_quantize_scale_only_hqq(
        weight.float(), [1, config.group_size], low, high
    )
    scales = scales.to(_SCALES).reshape(len(weight), -1)
    return integers.to(torch.int8), scales, torch.zeros_like(scales, dtype=torch.int8)


def _in_range(
    weight: Tensor, config: QuantConfig, low: int, high: int, zeros: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """The same by the least and greatest weight of each group; zero points have dtype `zeros`."""
    real, block = weight.float(), (1, config.group_size)
    kind = MappingType.SYMMETRIC if config.symmetric else MappingType.ASYMMETRIC
    limits = {"quant_min": low, "quant_max": high}
    scales, offsets = choose_qparams_affine(
        real,
        kind,
        block,
        target_dtype=torch.int8,
        scale_dtype=_SCALES,
        zero_point_dtype=zeros,
        **limits,
    )
    integers = quantize_affine(real, block, scales, offsets, output_dtype=torch.int8, **limits)
    rows = len(weight)
    return integers, scales.reshape(rows, -1), offsets.reshape(rows, -1)


def _searched_with_zeros(weight: Tensor, config: QuantConfig) -> tuple[Tensor, Tensor, Tensor]:
    """The same from 0 on, with scales and zero points that are searched for."""
    integers, scales, zeros, _ = _choose_qparams_and_quantize_affine_hqq(
        weight,
        nbits=config.bits,
        group_size=config.group_size,
        axis=1,
        compute_dtype=torch.float32,
        device=str(weight.device),
        raw_output=True,
    )
    rows = len(weight)
    scales, zeros = (t.to(_SCALES).reshape(rows, -1) for t in (scales, zeros))
    return integers.reshape(weight.shape), scales, zeros


def dequantize_weight(weight: Any, dtype: torch.dtype = torch.float32) -> Tensor:
    """The numbers that a quantised weight stands for.

    Args:
        weight: a packed weight of this package, or what `quantize_weight` returns.
        dtype: of the numbers.

    Raises:
        TypeError: the weight has another form.
    """
    weight = to_exportable("", weight)
    if isinstance(weight, PackedWeight):
        return weight.dequantize(dtype)
    if isinstance(weight, IntxUnpackedToInt8Tensor):
        numbers: Tensor = weight.to(dtype).dequantize()
        return numbers
    raise TypeError(
        f"{type(weight).__name__} is no quantised weight that is known here: give a packed weight, "
        f"or a tensor of quantize_weight()"
    )


def quantize_stream(
    pairs: Iterable[tuple[str, Tensor]], recipe: QuantRecipe, dtype: torch.dtype = torch.bfloat16
) -> Iterator[tuple[str, Tensor]]:
    """Each weight with its name, quantised as a recipe says, in the forms of torchao.

    Args:
        pairs: names and weights.
        recipe: what is quantised.
        dtype: of weights that stay floating, and of the numbers of those whose form allows it.
    """
    for name, weight in pairs:
        config = recipe.get_config(name)
        yield name, maybe_cast(weight if config is None else quantize_weight(weight, config), dtype)


def quantize_model(
    model: torch.nn.Module,
    recipe: QuantRecipe,
    *,
    convert: Convert = to_default,
    dtype: torch.dtype = torch.bfloat16,
    verbose: bool = False,
) -> dict[str, Tensor]:
    """The weights of a model, quantised as a recipe says, and its saved buffers as they are.

    Args:
        model: not changed; `assign_state_dict` puts the result into a model.
        recipe: what is quantised.
        convert: changes the form of each weight.
        dtype: as for `quantize_stream`.
        verbose: print the name of each weight.
    """
    made: dict[str, Tensor] = {}
    weights = ((name, weight.data) for name, weight in model.named_parameters())
    for name, weight in quantize_stream(weights, recipe, dtype):
        made[name] = maybe_cast(convert(name, weight), dtype)
        if verbose:
            print(f"quantised {name}")
    saved = model.state_dict().keys()
    buffers = ((name, buffer.data) for name, buffer in model.named_buffers() if name in saved)
    return {**made, **dict(buffers)}
