"""Weights of 4-bit floating numbers (NVFP4), with a scale in 8 bits for each 16 of a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torchao.core.config import AOBaseConfig
from torchao.prototype.mx_formats.kernels import f4_unpacked_to_f32, unpack_uint4
from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize, per_tensor_amax_to_scale
from torchao.quantization.transform_module import register_quantize_module_handler

from rushlight.errors import Code, ExportError
from rushlight.extension.llm.weights.packed import PackedWeight, Tensor, wrap

_BLOCK = 16
_IN_WORD = 8  # numbers in an element of `qdata`


@torch.library.custom_op("torchao::dequantize_nvfp4", mutates_args=())
def nvfp4_dequantize(
    qdata: Tensor,
    scale: Tensor,
    per_tensor_scale: Tensor,
    block_size: int,
    output_dtype: torch.dtype = torch.float32,
) -> Tensor:
    """The numbers [rows, columns] that 4-bit floating numbers stand for.

    Args:
        qdata: uint32 [rows, columns / 8].
        scale: uint8 [rows, columns / block_size], which are read as float8_e4m3fn.
        per_tensor_scale: float32 [], by which all are multiplied.
        block_size: how many neighbours of a row share a scale.
        output_dtype: of the numbers.
    """
    numbers = f4_unpacked_to_f32(unpack_uint4(qdata.contiguous().view(torch.uint8)))
    factors = scale.view(torch.float8_e4m3fn).float() * per_tensor_scale
    blocks = numbers.unflatten(1, (-1, block_size)) * factors.reshape(len(qdata), -1, 1)
    made: Tensor = blocks.flatten(1).to(output_dtype)
    return made


@nvfp4_dequantize.register_fake
def _shape(
    qdata: Tensor,
    scale: Tensor,
    per_tensor_scale: Tensor,
    block_size: int,
    output_dtype: torch.dtype = torch.float32,
) -> Tensor:
    return qdata.new_empty(qdata.shape[0], qdata.shape[1] * _IN_WORD, dtype=output_dtype)


class ExportableNVFP4Tensor(PackedWeight):
    """A matrix of 4-bit floating numbers, which `torchao::dequantize_nvfp4` unpacks.

    Attributes:
        qdata, scale, per_tensor_scale, block_size: as the operator takes them.
    """

    tensor_data_names: ClassVar[list[str]] = ["qdata", "scale", "per_tensor_scale"]
    tensor_attribute_names: ClassVar[list[str]] = ["block_size", "orig_dtype"]

    qdata: Tensor
    scale: Tensor
    per_tensor_scale: Tensor
    block_size: int

    def __new__(
        cls,
        qdata: Tensor,
        scale: Tensor,
        per_tensor_scale: Tensor,
        block_size: int,
        orig_dtype: torch.dtype,
    ) -> Any:
        """A weight of these tensors, whose memory it shares."""
        return wrap(
            cls,
            (qdata.shape[0], qdata.shape[1] * _IN_WORD),
            qdata.device,
            orig_dtype,
            qdata=qdata,
            scale=scale,
            per_tensor_scale=per_tensor_scale,
            block_size=block_size,
            orig_dtype=orig_dtype,
        )

    def dequantize(self, output_dtype: torch.dtype | None = None) -> Tensor:
        """The numbers [rows, columns], in `output_dtype` or `orig_dtype`."""
        made: Tensor = torch.ops.torchao.dequantize_nvfp4(
            self.qdata,
            self.scale,
            self.per_tensor_scale,
            self.block_size,
            output_dtype or self.orig_dtype,
        )
        return made

    def _converted(self, device: torch.device, dtype: torch.dtype) -> Any:
        return type(self)(
            self.qdata.to(device),
            self.scale.to(device),
            self.per_tensor_scale.to(device),
            self.block_size,
            dtype,
        )


@dataclass
class ExportableNVFP4Config(AOBaseConfig):  # type: ignore[misc]  # torchao has no types
    """Says torchao's `quantize_` to store weights as `ExportableNVFP4Tensor`.

    Attributes:
        use_per_tensor_scale: whether all scales are relative to the greatest weight, so that more
            of their range is used.
    """

    use_per_tensor_scale: bool = True


@register_quantize_module_handler(ExportableNVFP4Config)  # type: ignore[untyped-decorator]
def _quantised(module: torch.nn.Module, config: ExportableNVFP4Config) -> torch.nn.Module:
    weight: Any = module.weight
    if any(size % _BLOCK for size in weight.shape[-2:]):
        raise ExportError(
            f"a weight of NVFP4 is {list(weight.shape)}: both sizes must be multiples of {_BLOCK}; "
            f"leave the layer out by filter_fn",
            code=Code.INVALID_ARGUMENT,
        )
    whole = per_tensor_amax_to_scale(weight.abs().max()) if config.use_per_tensor_scale else None
    scales, packed = nvfp4_quantize(weight, block_size=_BLOCK, per_tensor_scale=whole)
    factor = torch.ones(()) if whole is None else whole.float()
    made = ExportableNVFP4Tensor(
        packed.view(torch.uint32),
        scales.view(torch.uint8),
        factor.to(weight.device),
        _BLOCK,
        weight.dtype,
    )
    module.weight = torch.nn.Parameter(made, requires_grad=False)
    return module
