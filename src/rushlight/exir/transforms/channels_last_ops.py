"""Operators on images with the channels last: tensors of sizes [N, H, W, C], in row-major order.

Importing this module defines them in torch, as `torch.ops.channels_last`, for passes and backends
that keep such images apart from those whose layout is a dim order. Each takes the arguments of
torch's operator of the same name, and computes with it between two permutes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.library import Library, register_fake

lib = Library("channels_last", "DEF")

TO_CHANNELS_FIRST, TO_CHANNELS_LAST = [0, 3, 1, 2], [0, 2, 3, 1]

# The arguments after the image, and torch's operator.
_IMAGES: dict[str, tuple[str, Any]] = {
    "convolution": (
        "Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, "
        "bool transposed, int[] output_padding, int groups",
        torch.ops.aten.convolution.default,
    ),
    "avg_pool2d": (
        "int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode, "
        "bool count_include_pad, int? divisor_override",
        torch.ops.aten.avg_pool2d.default,
    ),
    "adaptive_avg_pool2d": ("int[2] output_size", torch.ops.aten.adaptive_avg_pool2d.default),
    "upsample_bilinear2d": (
        "int[]? output_size, bool align_corners, float[]? scale_factors",
        torch.ops.aten.upsample_bilinear2d.vec,
    ),
    "upsample_nearest2d": (
        "int[]? output_size, float[]? scale_factors",
        torch.ops.aten.upsample_nearest2d.vec,
    ),
    "grid_sampler_2d": (
        "Tensor grid, int interpolation_mode, int padding_mode, bool align_corners",
        torch.ops.aten.grid_sampler_2d.default,
    ),
    "max_pool2d_with_indices": (
        "int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode",
        torch.ops.aten.max_pool2d_with_indices.default,
    ),
}


def _define(name: str, schema: str, function: Any) -> None:
    lib.define(f"{name}{schema}")
    lib.impl(name, function, "CompositeExplicitAutograd")
    register_fake(f"channels_last::{name}", function, lib=lib)


def _between_permutes(target: Any) -> Any:
    def compute(input: torch.Tensor, *args: Any) -> Any:
        result = target(input.permute(TO_CHANNELS_FIRST), *args)
        if isinstance(result, tuple):
            return tuple(map(_channels_last, result))
        return _channels_last(result)

    return compute


def _channels_last(image: torch.Tensor) -> torch.Tensor:
    return image.permute(TO_CHANNELS_LAST).contiguous()


def _permute_copy(input: torch.Tensor, dims: list[int]) -> torch.Tensor:
    return input.permute(dims).clone(memory_format=torch.contiguous_format)


for _name, (_arguments, _target) in _IMAGES.items():
    _results = "(Tensor, Tensor)" if _name.endswith("indices") else "Tensor"
    _define(_name, f"(Tensor input, {_arguments}) -> {_results}", _between_permutes(_target))
_define("permute_copy", "(Tensor input, int[] dims) -> Tensor", _permute_copy)
