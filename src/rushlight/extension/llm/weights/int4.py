"""Weights of 4 bits with a scale and a zero point for each group of a row's neighbours."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from rushlight.extension.llm.weights.packed import INT4, PackedWeight, Tensor, wrap


@torch.library.custom_op("torchao::dequantize_int4_tensor", mutates_args=())
def dequantize_int4_tensor(
    qdata: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    group_size: int,
    output_dtype: torch.dtype = torch.bfloat16,
) -> Tensor:
    """The numbers [rows, columns] that integers of 4 bits stand for.

    Args:
        qdata: uint8 [rows, columns / 2]; of two neighbours the first is in the lower bits.
        scale: floating [columns / group_size, rows].
        zero_point: of the same shape: what is taken from the integers, which are 0 to 15.
        group_size: how many neighbours of a row share a scale.
        output_dtype: of the numbers.
    """
    pairs = torch.stack((qdata & 15, qdata >> 4), dim=-1)
    groups = pairs.reshape(len(qdata), -1, group_size).float()
    zeros, scales = (t.t().float().unsqueeze(-1) for t in (zero_point, scale))
    return ((groups - zeros) * scales).flatten(1).to(output_dtype)


@dequantize_int4_tensor.register_fake
def _shape(
    qdata: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    group_size: int,
    output_dtype: torch.dtype = torch.bfloat16,
) -> Tensor:
    return qdata.new_empty(qdata.shape[0], qdata.shape[1] * 2, dtype=output_dtype)


def pack(integers: Tensor) -> Tensor:
    """Two integers in each byte, the first in the lower bits.

    Args:
        integers: uint8 [rows, columns] of 0 to 15; the columns are even.
    """
    return integers[:, ::2] | integers[:, 1::2] << 4


class ExportableInt4Tensor(PackedWeight):
    """A matrix of integers of 4 bits, which `torchao::dequantize_int4_tensor` unpacks.

    Attributes:
        qdata, scale, zero_point, group_size: as the operator takes them.
    """

    tensor_data_names: ClassVar[list[str]] = ["qdata", "scale", "zero_point"]
    tensor_attribute_names: ClassVar[list[str]] = ["group_size", "orig_dtype"]

    qdata: Tensor
    scale: Tensor
    zero_point: Tensor
    group_size: int

    def __new__(
        cls,
        qdata: Tensor,
        scale: Tensor,
        zero_point: Tensor,
        group_size: int,
        orig_dtype: torch.dtype,
    ) -> Any:
        """A weight of these tensors, whose memory it shares."""
        return wrap(
            cls,
            (qdata.shape[0], qdata.shape[1] * 2),
            qdata.device,
            orig_dtype,
            qdata=qdata,
            scale=scale,
            zero_point=zero_point,
            group_size=group_size,
            orig_dtype=orig_dtype,
        )

    @classmethod
    def from_int4_tensor(cls, w: Any) -> Any:
        """The weight that torchao's `Int4Tensor` has, with the same tensors."""
        return cls(w.qdata, w.scale, w.zero_point, int(w.block_size[-1]), w.dtype)

    @classmethod
    def from_intx_unpacked_to_int8_tensor(cls, w: Any) -> Any:
        """The weight that torchao's `IntxUnpackedToInt8Tensor` has, packed.

        Raises:
            ValueError: its integers have more than 4 bits, or it also quantises activations.
        """
        if w.target_dtype != INT4:
            raise ValueError(
                f"the integers of the tensor are {w.target_dtype}, and 4 bits are packed here: "
                f"give one with target_dtype=torch.int4"
            )
        if w.activation_quantization is not None:
            raise ValueError(
                f"the tensor has activation_quantization={w.activation_quantization!r}, which "
                f"packed weights do not keep: quantise with IntxWeightOnlyConfig"
            )
        # Both move up by 8, so that the numbers stay the same.
        integers = (w.qdata + 8).view(torch.uint8)
        zeros = w.zero_point.to(w.scale.dtype) + 8
        scale, zero_point = (t.t().contiguous() for t in (w.scale, zeros))
        return cls(pack(integers), scale, zero_point, int(w.block_size[-1]), w.dtype)

    def dequantize(self, output_dtype: torch.dtype | None = None) -> Tensor:
        """The numbers [rows, columns], in `output_dtype` or `orig_dtype`."""
        made: Tensor = torch.ops.torchao.dequantize_int4_tensor(
            self.qdata,
            self.scale,
            self.zero_point,
            self.group_size,
            output_dtype or self.orig_dtype,
        )
        return made

    def _converted(self, device: torch.device, dtype: torch.dtype) -> Any:
        scale, zero_point = (t.to(device, dtype) for t in (self.scale, self.zero_point))
        return type(self)(self.qdata.to(device), scale, zero_point, self.group_size, dtype)
