"""A GGUF file: its metadata with checked types, and its tensors, mapped and read one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rushlight.errors import Code, ExportError
from rushlight.ir.mapped_weights import Filled, give_back
from rushlight.llm.gguf.blocks import (
    FORMS,
    OFFSET_FORMS,
    Bytes,
    Floats,
    Form,
    Integers,
    OffsetForm,
    integers_of,
    numbers_of,
    with_offsets_of,
)
from rushlight.llm.gguf.header import TensorInfo, damaged, read_header
from rushlight.llm.gguf.requantise import without_offsets
from rushlight.llm.weights.layers import QuantizedWeight
from rushlight.llm.weights.mapped_file import mapped

Tensor = torch.Tensor
_FLOATS = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
_AT_ONCE = 1 << 20  # elements that are unpacked at a time
_BITS = 8  # of types that are requantised


@dataclass(frozen=True)
class Loss:
    """What requantising a tensor lost.

    Attributes:
        tensor: its name in the file.
        type: its type in the file.
        stored: in what it is stored.
        decibels: ratio of the squares of the numbers to those of the errors.
    """

    tensor: str
    type: str
    stored: str
    decibels: float


class GgufFile:
    """A file whose header is sound.

    Args:
        path: of the file.

    Attributes:
        losses: of the tensors that were requantised so far.

    Raises:
        ExportError: as `read_header`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise ExportError(f"there is no file {path}", code=Code.NOT_FOUND)
        if path.stat().st_size == 0:
            raise damaged(str(path), "it is empty")
        self._map = mapped(path)
        header = read_header(memoryview(self._map), str(path))
        self.metadata, self.tensors = header.metadata, header.tensors
        self.losses: list[Loss] = []

    # --- metadata ---------------------------------------------------------------------------------

    def integer(self, key: str, default: int | None = None) -> int:
        """An integer of the metadata; an error if there is none and no default."""
        return int(self._typed(key, default, int, "an integer"))

    def number(self, key: str, default: float | None = None) -> float:
        """A number of the metadata."""
        return float(self._typed(key, default, (int, float), "a number"))

    def flag(self, key: str, default: bool | None = None) -> bool:
        """A truth value of the metadata."""
        return bool(self._typed(key, default, bool, "a truth value"))

    def text(self, key: str, default: str | None = None) -> str:
        """A text of the metadata."""
        return str(self._typed(key, default, str, "a text"))

    def texts(self, key: str) -> list[str]:
        """A list of texts of the metadata; [] if there is none."""
        found = self.metadata.get(key, [])
        if not isinstance(found, list):
            raise self._wrong(key, "an array of texts")
        return found

    def numbers(self, key: str) -> Any:
        """An array of numbers of the metadata, as NumPy has it; empty if there is none."""
        found = self.metadata.get(key, np.zeros(0))
        if not isinstance(found, np.ndarray):
            raise self._wrong(key, "an array of numbers")
        return found

    def _typed(self, key: str, default: Any, kinds: Any, wanted: str) -> Any:
        found = self.metadata.get(key, default)
        if found is None:
            raise ExportError(
                f"{self.path} has no {key!r}, which a model needs: convert the model again",
                code=Code.INVALID_EXTERNAL_DATA,
            )
        # A truth value is an int for Python.
        if not isinstance(found, kinds) or (isinstance(found, bool) and kinds is not bool):
            raise self._wrong(key, wanted)
        return found

    def _wrong(self, key: str, wanted: str) -> ExportError:
        found = self.metadata[key]
        is_long = isinstance(found, list | np.ndarray)
        what = f"an array of {len(found)} elements" if is_long else repr(found)[:60]
        return damaged(str(self.path), f"its {key!r} is {what}, and must be {wanted}")

    # --- tensors ----------------------------------------------------------------------------------

    def real(self, name: str) -> Tensor:
        """A tensor as float32, or in the floating dtype that it has."""
        info = self.tensors[name]
        if info.type.name in _FLOATS:
            dtype = _FLOATS[info.type.name]
            count = info.size // dtype.itemsize
            if info.offset % dtype.itemsize == 0:
                flat = torch.frombuffer(self._map, dtype=dtype, count=count, offset=info.offset)
                return flat.reshape(info.shape)
        return torch.from_numpy(numbers_of(info.type, self._blocks(info)).reshape(info.shape))

    def raw(self, name: str) -> Tensor:
        """The blocks of a tensor as they lie in the file, copied: uint8 [rows, bytes of a row]."""
        info = self.tensors[name]
        rows = int(np.prod(info.shape[:-1]))
        return torch.from_numpy(self._blocks(info).reshape(rows, -1).copy())

    def weight(self, name: str) -> Tensor | QuantizedWeight:
        """The weights of a linear layer or an embedding, as the file has them.

        Types that the runtime has no form for are requantised, and the loss is noted.
        """
        info = self.tensors[name]
        if info.type.name in _FLOATS:
            return self.real(name)
        rows = int(np.prod(info.shape[:-1]))
        depth = info.shape[-1]
        form = FORMS.get(info.type.name) or OFFSET_FORMS[info.type.name]
        bits, group = getattr(form, "bits", _BITS), form.group
        integers = Filled([rows, depth], torch.int8)
        scales = Filled([rows, depth // group], torch.float32)
        signal = noise = 0.0
        at_once = max(_AT_ONCE // depth, 1)
        blocks = self._blocks(info).reshape(rows, -1)
        for first in range(0, rows, at_once):
            part = slice(first, first + at_once)
            here = blocks[part].reshape(-1, info.type.block_bytes)
            if isinstance(form, Form):
                numbers, factors = integers_of(form, here)
            else:
                numbers, factors = self._requantised(name, form, here)
                real = numbers_of(info.type, here).astype(np.float64)
                made = numbers.reshape(*factors.shape, -1) * factors[..., None].astype(np.float64)
                signal += float(np.square(real).sum())
                noise += float(np.square(made.reshape(real.shape) - real).sum())
            if not np.isfinite(factors).all():
                raise self._no_numbers(name)
            integers.add(torch.from_numpy(numbers))
            scales.add(torch.from_numpy(factors))
        if isinstance(form, OffsetForm):
            self._note(name, info, signal, noise, group)
        return QuantizedWeight(integers.tensor, scales.tensor, bits)

    def _requantised(self, name: str, form: OffsetForm, blocks: Bytes) -> tuple[Integers, Floats]:
        """Integers [blocks, elements] and scales [blocks, groups] of some blocks."""
        integers, scales, offsets = with_offsets_of(form, blocks)
        if not (np.isfinite(scales).all() and np.isfinite(offsets).all()):
            raise self._no_numbers(name)
        groups = integers.reshape(-1, form.group)
        made, stored = without_offsets(groups, scales.reshape(-1), offsets.reshape(-1))
        return made.reshape(integers.shape), stored.reshape(scales.shape)

    def _no_numbers(self, name: str) -> ExportError:
        return damaged(str(self.path), f"tensor {name!r} has NaN or infinite scales")

    def _note(self, name: str, info: TensorInfo, signal: float, noise: float, group: int) -> None:
        decibels = 10 * float(np.log10(signal / noise)) if noise and signal else float("inf")
        stored = f"int{_BITS} in groups of {group}"
        self.losses.append(Loss(name, info.type.name, stored, decibels))

    def _blocks(self, info: TensorInfo) -> Bytes:
        flat = np.frombuffer(self._map, np.uint8, info.size, info.offset)
        return flat.reshape(-1, info.type.block_bytes)

    def release(self) -> None:
        """Give back the memory of the pages that were read; they are read again when needed."""
        give_back(self._map)

    def names(self, beginning: str) -> Sequence[str]:
        """The keys of the metadata that begin so."""
        return [key for key in self.metadata if key.startswith(beginning)]
