"""Weights in the blocks of a GGUF file, as they lie there, and reading them from one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torchao.quantization import IntxUnpackedToInt8Tensor

from rushlight.errors import Code, ExportNotImplementedError
from rushlight.extension.llm.weights.int4 import ExportableInt4Tensor, pack
from rushlight.extension.llm.weights.packed import INT4, INT5, PackedWeight, Tensor, wrap
from rushlight.llm.gguf.blocks import (
    FORMS,
    OFFSET_FORMS,
    Bytes,
    integers_of,
    numbers_of,
    with_offsets_of,
)
from rushlight.llm.gguf.file import GgufFile
from rushlight.llm.gguf.types import TYPES, TensorType

GGML_F32, GGML_F16, GGML_Q4_K, GGML_Q5_K, GGML_Q6_K = 0, 1, 12, 13, 14
"""The numbers of types in files."""
_TYPES: dict[str, TensorType] = {
    TYPES[number].name.lower(): TYPES[number] for number in (GGML_Q4_K, GGML_Q5_K, GGML_Q6_K)
}
QK_K = TYPES[GGML_Q4_K].block
"""The elements of a block."""
Q4_K_GROUP_SIZE, Q5_K_GROUP_SIZE = (OFFSET_FORMS[name].group for name in ("Q4_K", "Q5_K"))
Q6_K_GROUP_SIZE = FORMS["Q6_K"].group
Q4_K_BLOCK_BYTES, Q5_K_BLOCK_BYTES, Q6_K_BLOCK_BYTES = (t.block_bytes for t in _TYPES.values())
_INTEGERS = {"q4_k": INT4, "q5_k": INT5, "q6_k": torch.int8}


def _type_of(ggml_type: str) -> TensorType:
    """A type by its name.

    Raises:
        ExportNotImplementedError: it is none of those that tensors keep.
    """
    if ggml_type not in _TYPES:
        raise ExportNotImplementedError(
            f"ggml_type={ggml_type!r}: give one of {', '.join(map(repr, _TYPES))}; files of other "
            f"types are exported by rushlight.llm.export",
            code=Code.NOT_IMPLEMENTED,
        )
    return _TYPES[ggml_type]


@torch.library.custom_op("torchao::dequantize_gguf", mutates_args=())
def dequantize_gguf(
    weight: Tensor, ggml_type: str, output_dtype: torch.dtype = torch.bfloat16
) -> Tensor:
    """The numbers [rows, columns] that blocks stand for.

    Args:
        weight: uint8 [rows, bytes of a row].
        ggml_type: "q4_k", "q5_k" or "q6_k".
        output_dtype: of the numbers.
    """
    kind = _type_of(ggml_type)
    numbers = torch.from_numpy(numbers_of(kind, _blocks(weight, kind))).reshape(len(weight), -1)
    return numbers.to(device=weight.device, dtype=output_dtype)


@dequantize_gguf.register_fake
def _shape(weight: Tensor, ggml_type: str, output_dtype: torch.dtype = torch.bfloat16) -> Tensor:
    kind = _type_of(ggml_type)
    columns = weight.shape[1] // kind.block_bytes * kind.block
    return weight.new_empty(weight.shape[0], columns, dtype=output_dtype)


def _blocks(raw: Tensor, kind: TensorType) -> Bytes:
    data: Bytes = raw.detach().cpu().contiguous().numpy()
    return data.reshape(-1, kind.block_bytes)


def merged_groups(
    scales: Tensor, offsets: Tensor, group_size: int, max_group_size: int
) -> tuple[int, Tensor, Tensor]:
    """Larger groups that stand for the same numbers.

    Args:
        scales, offsets: [rows, groups].
        group_size: of these groups.
        max_group_size: the greatest size to reach.

    Returns:
        The greatest size that is `group_size` times a power of two and whose groups are runs of
        equal ones in all rows, and the scales and offsets of these groups.
    """
    factor = 1
    while group_size * factor * 2 <= max_group_size and scales.shape[1] % (factor * 2) == 0:
        factor *= 2
    while factor > 1:
        runs = [t.unflatten(1, (-1, factor)) for t in (scales, offsets)]
        if all(bool((run == run[..., :1]).all()) for run in runs):
            first, second = (run[..., 0].contiguous() for run in runs)
            return group_size * factor, first, second
        factor //= 2
    return group_size, scales, offsets


class ExportableGGUFTensor(PackedWeight):
    """A matrix in the blocks of a GGUF file, which `torchao::dequantize_gguf` unpacks.

    Attributes:
        raw: uint8 [rows, bytes of a row].
        ggml_type: "q4_k", "q5_k" or "q6_k".
    """

    tensor_data_names: ClassVar[list[str]] = ["raw"]
    tensor_attribute_names: ClassVar[list[str]] = ["ggml_type", "orig_dtype"]

    raw: Tensor
    ggml_type: str

    def __new__(cls, raw: Tensor, ggml_type: str, orig_dtype: torch.dtype) -> Any:
        """A weight of these blocks, whose memory it shares.

        Raises:
            ValueError: the tensor is no matrix of bytes, or its rows are no whole blocks.
            ExportNotImplementedError: `ggml_type` is another one.
        """
        if raw.dim() != 2 or raw.dtype != torch.uint8:
            raise ValueError(
                f"raw is {raw.dtype} {list(raw.shape)}: give uint8 [rows, bytes of a row]"
            )
        kind = _type_of(ggml_type)
        blocks, rest = divmod(raw.shape[1], kind.block_bytes)
        if rest:
            raise ValueError(
                f"a row of raw has {raw.shape[1]} bytes, and blocks of {ggml_type} have "
                f"{kind.block_bytes}: give rows of whole blocks"
            )
        return wrap(
            cls,
            (raw.shape[0], blocks * kind.block),
            raw.device,
            orig_dtype,
            raw=raw,
            ggml_type=ggml_type,
            orig_dtype=orig_dtype,
        )

    @classmethod
    def from_raw(cls, raw: Tensor, ggml_type: str, orig_dtype: torch.dtype = torch.bfloat16) -> Any:
        """A weight of these blocks; see the constructor."""
        return cls(raw.contiguous(), ggml_type, orig_dtype)

    def dequantize(self, output_dtype: torch.dtype | None = None) -> Tensor:
        """The numbers [rows, columns], in `output_dtype` or `orig_dtype`."""
        made: Tensor = torch.ops.torchao.dequantize_gguf(
            self.raw, self.ggml_type, output_dtype or self.orig_dtype
        )
        return made

    def _converted(self, device: torch.device, dtype: torch.dtype) -> Any:
        return type(self)(self.raw.to(device), self.ggml_type, dtype)

    def _parts(self) -> tuple[Tensor, Tensor, Tensor, int]:
        """Integers from 0 on [rows, columns], scales and zero points [rows, groups], and the size
        of a group."""
        kind = _type_of(self.ggml_type)
        rows = len(self.raw)
        blocks = _blocks(self.raw, kind)
        if kind.name in FORMS:
            integers, scales = integers_of(FORMS[kind.name], blocks)
            offsets, group = np.zeros_like(scales), FORMS[kind.name].group
        else:
            form = OFFSET_FORMS[kind.name]
            unsigned, scales, offsets = with_offsets_of(form, blocks)
            integers, group = unsigned.view(np.int8), form.group
        # A group without a scale is its offset alone: integers of 0 with a zero point of 1.
        is_flat = scales == 0
        groups = np.where(is_flat[..., None], np.int8(0), integers.reshape(*scales.shape, -1))
        scales = np.where(is_flat, -offsets, scales)
        zeros = np.divide(-offsets, scales, out=np.zeros_like(scales), where=scales != 0)
        made = (torch.from_numpy(t).reshape(rows, -1) for t in (groups, scales, zeros))
        first, second, third = (t.to(self.raw.device) for t in made)
        return first, second, third, group

    def to_exportable_int4_tensor(self, output_dtype: torch.dtype | None = None) -> Any:
        """The same weight as an `ExportableInt4Tensor`.

        Args:
            output_dtype: of scales, zero points and numbers; None: `orig_dtype`.

        Raises:
            ExportNotImplementedError: its integers have more than 4 bits.
        """
        if self.ggml_type != "q4_k":
            raise ExportNotImplementedError(
                f"a tensor of {self.ggml_type} has integers of more than 4 bits: use "
                f"to_intx_unpacked_to_int8_tensor()",
                code=Code.NOT_IMPLEMENTED,
            )
        dtype = output_dtype or self.orig_dtype
        integers, scales, zeros, group = self._parts()
        scale, zero_point = (t.to(dtype).t().contiguous() for t in (scales, zeros))
        packed = pack(integers.view(torch.uint8))
        return ExportableInt4Tensor(packed, scale, zero_point, group, dtype)

    def to_intx_unpacked_to_int8_tensor(
        self, max_group_size: int | None = None, scale_dtype: torch.dtype | None = None
    ) -> Any:
        """The same weight as torchao's `IntxUnpackedToInt8Tensor`: a byte for each integer.

        Args:
            max_group_size: join neighbouring groups of equal scales and zero points up to this
                size, which changes no number; None: keep the groups.
            scale_dtype: of scales and numbers; None: float16, which files have.
        """
        dtype = scale_dtype or torch.float16
        integers, scales, zeros, group = self._parts()
        if max_group_size is not None:
            group, scales, zeros = merged_groups(scales, zeros, group, max_group_size)
        is_symmetric = _type_of(self.ggml_type).name in FORMS
        middle = {"q4_k": 8, "q5_k": 16, "q6_k": 0}[self.ggml_type]
        return IntxUnpackedToInt8Tensor(
            qdata=integers - middle,
            scale=scales.to(dtype),
            zero_point=(zeros - middle).to(torch.int8 if is_symmetric else dtype),
            target_dtype=_INTEGERS[self.ggml_type],
            block_size=(1, group),
            dtype=dtype,
            activation_quantization=None,
        )


def iter_gguf(path: str) -> Iterator[tuple[str, Any]]:
    """Each tensor of a file with its name: an `ExportableGGUFTensor`, or floats as they are there.

    Raises:
        ExportError: the file cannot be read or is damaged.
        ExportNotImplementedError: a tensor has another type than those of `ExportableGGUFTensor`.
    """
    file = GgufFile(Path(path))
    for name, info in file.tensors.items():
        if info.type.name in ("F32", "F16", "BF16"):
            yield name, file.real(name).clone()
        else:
            _type_of(info.type.name.lower())
            yield name, ExportableGGUFTensor.from_raw(file.raw(name), info.type.name.lower())
        file.release()
