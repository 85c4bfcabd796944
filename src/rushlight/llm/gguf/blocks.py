"""Blocks of quantised tensors: their integers and scales, and the numbers that they stand for.

The layouts are those of ggml's `block_*` structures. All functions take uint8 [blocks, bytes].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rushlight.llm.gguf.types import TensorType

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int8]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Form:
    """A type without offsets: each number is an integer times the scale of its group.

    Attributes:
        bits: 4 if integers are from -8 to 7, else 8.
        group: the elements that share a scale.
        unpack: integers [blocks, elements] and scales [blocks, groups].
    """

    bits: int
    group: int
    unpack: Callable[[Bytes], tuple[Integers, Floats]]


@dataclass(frozen=True)
class OffsetForm:
    """A type with offsets: each number is an integer times the scale of its group, plus its offset.

    Attributes:
        group: the elements that share a scale and an offset.
        unpack: integers [blocks, elements], scales and offsets [blocks, groups].
    """

    group: int
    unpack: Callable[[Bytes], tuple[Bytes, Floats, Floats]]


def _half(blocks: Bytes) -> Floats:
    """The float16 number in two bytes, [blocks, 1]."""
    return np.ascontiguousarray(blocks).view("<f2").astype(np.float32)


def _shifted(data: Bytes, width: int, bits: int) -> Bytes:
    """Parts of `bits` bits: first the lowest parts of `width` bytes, then the next ones of them."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8).reshape(1, 1, -1, 1)
    parts = data.reshape(len(data), -1, 1, width) >> shifts & np.uint8((1 << bits) - 1)
    return parts.reshape(len(data), -1)


def _q4_0(blocks: Bytes) -> tuple[Integers, Floats]:
    return _shifted(blocks[:, 2:], 16, 4).view(np.int8) - np.int8(8), _half(blocks[:, :2])


def _q5_0(blocks: Bytes) -> tuple[Integers, Floats]:
    fifth = np.unpackbits(blocks[:, 2:6], axis=1, bitorder="little")
    integers = _shifted(blocks[:, 6:], 16, 4) | fifth << np.uint8(4)
    return integers.view(np.int8) - np.int8(16), _half(blocks[:, :2])


def _q8_0(blocks: Bytes) -> tuple[Integers, Floats]:
    return np.ascontiguousarray(blocks[:, 2:]).view(np.int8), _half(blocks[:, :2])


def _q3_k(blocks: Bytes) -> tuple[Integers, Floats]:
    third = _shifted(blocks[:, :32], 32, 1) ^ np.uint8(1)
    integers = _shifted(blocks[:, 32:96], 32, 2).view(np.int8) - (third << np.uint8(2)).view(
        np.int8
    )
    low, high = _shifted(blocks[:, 96:104], 8, 4), _shifted(blocks[:, 104:108], 4, 2)
    scales = (low | high << np.uint8(4)).view(np.int8) - np.int8(32)
    return integers, _half(blocks[:, 108:]) * scales.astype(np.float32)


def _q6_k(blocks: Bytes) -> tuple[Integers, Floats]:
    low, high = _shifted(blocks[:, :128], 64, 4), _shifted(blocks[:, 128:192], 32, 2)
    integers = (low | high << np.uint8(4)).view(np.int8) - np.int8(32)
    scales = np.ascontiguousarray(blocks[:, 192:208]).view(np.int8)
    return integers, _half(blocks[:, 208:]) * scales.astype(np.float32)


def _q4_1(blocks: Bytes) -> tuple[Bytes, Floats, Floats]:
    return _shifted(blocks[:, 4:], 16, 4), _half(blocks[:, :2]), _half(blocks[:, 2:4])


def _q5_1(blocks: Bytes) -> tuple[Bytes, Floats, Floats]:
    fifth = np.unpackbits(blocks[:, 4:8], axis=1, bitorder="little")
    integers = _shifted(blocks[:, 8:], 16, 4) | fifth << np.uint8(4)
    return integers, _half(blocks[:, :2]), _half(blocks[:, 2:4])


def _q2_k(blocks: Bytes) -> tuple[Bytes, Floats, Floats]:
    both = blocks[:, :16]
    scales = _half(blocks[:, 80:82]) * (both & np.uint8(15)).astype(np.float32)
    minimums = _half(blocks[:, 82:84]) * (both >> np.uint8(4)).astype(np.float32)
    return _shifted(blocks[:, 16:80], 32, 2), scales, -minimums


def _q4_k(blocks: Bytes) -> tuple[Bytes, Floats, Floats]:
    return _shifted(blocks[:, 16:], 32, 4), *_scales_of_k(blocks)


def _q5_k(blocks: Bytes) -> tuple[Bytes, Floats, Floats]:
    low, fifth = _shifted(blocks[:, 48:], 32, 4), _shifted(blocks[:, 16:48], 32, 1)
    return low | fifth << np.uint8(4), *_scales_of_k(blocks)


def _scales_of_k(blocks: Bytes) -> tuple[Floats, Floats]:
    """Scales and offsets of Q4_K and Q5_K: of eight integers of 6 bits for each, the upper bits of
    the last four lie above those of the first four."""
    scales, minimums, rest = blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16]
    six, four, upper = np.uint8(63), np.uint8(15), np.uint8(0x30)
    each = (
        (scales & six, rest & four | scales >> np.uint8(2) & upper),
        (minimums & six, rest >> np.uint8(4) | minimums >> np.uint8(2) & upper),
    )
    factors, offsets = (np.concatenate(parts, axis=1).astype(np.float32) for parts in each)
    return _half(blocks[:, :2]) * factors, -(_half(blocks[:, 2:4]) * offsets)


@np.errstate(invalid="ignore")
def integers_of(form: Form, blocks: Bytes) -> tuple[Integers, Floats]:
    """The integers [blocks, elements] and scales [blocks, groups] of a type without offsets."""
    return form.unpack(blocks)


@np.errstate(invalid="ignore")
def with_offsets_of(form: OffsetForm, blocks: Bytes) -> tuple[Bytes, Floats, Floats]:
    """The integers [blocks, elements], scales and offsets [blocks, groups] of a type with them."""
    return form.unpack(blocks)


FORMS: Mapping[str, Form] = {
    "Q4_0": Form(4, 32, _q4_0),
    "Q5_0": Form(8, 32, _q5_0),
    "Q8_0": Form(8, 32, _q8_0),
    "Q3_K": Form(4, 16, _q3_k),
    "Q6_K": Form(8, 16, _q6_k),
}
"""The types that are stored as they are, by name."""
OFFSET_FORMS: Mapping[str, OffsetForm] = {
    "Q4_1": OffsetForm(32, _q4_1),
    "Q5_1": OffsetForm(32, _q5_1),
    "Q2_K": OffsetForm(16, _q2_k),
    "Q4_K": OffsetForm(32, _q4_k),
    "Q5_K": OffsetForm(32, _q5_k),
}
"""The types that the runtime has no form for, by name."""


@np.errstate(invalid="ignore")  # scales that are no numbers are found later
def numbers_of(kind: TensorType, blocks: Bytes) -> Floats:
    """The numbers that blocks stand for, [blocks, elements].

    Args:
        kind: the type.
        blocks: the blocks.
    """
    if kind.name == "F32":
        floats: Floats = _viewed(blocks, "<f4")
        return floats
    if kind.name == "F16":
        halves: Floats = _viewed(blocks, "<f2").astype(np.float32)
        return halves
    if kind.name == "BF16":
        words: Floats = (_viewed(blocks, "<u2").astype(np.uint32) << np.uint32(16)).view("<f4")
        return words
    if kind.name in FORMS:
        integers, scales = integers_of(FORMS[kind.name], blocks)
        groups = integers.reshape(*scales.shape, -1).astype(np.float32) * scales[..., None]
        return groups.reshape(integers.shape)
    numbers, scales, offsets = with_offsets_of(OFFSET_FORMS[kind.name], blocks)
    groups = numbers.reshape(*scales.shape, -1).astype(np.float32) * scales[..., None]
    return (groups + offsets[..., None]).reshape(numbers.shape)


def _viewed(blocks: Bytes, dtype: str) -> Any:
    return np.ascontiguousarray(blocks).view(dtype)
