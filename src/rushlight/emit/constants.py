"""The program's constant data: equal values are stored once."""

from __future__ import annotations

import numpy as np
import torch

from rushlight.ir.spec import raw_bytes

_SAMPLE = 64  # bytes of either end that must agree before two constants are compared whole


class ConstantPool:
    """Numbers constants from 1 and keeps one copy of equal bytes."""

    def __init__(self) -> None:
        self.buffers: list[np.ndarray] = []
        self._by_pointer: dict[tuple[int, int, str], int] = {}
        self._by_sample: dict[tuple[int, bytes], list[int]] = {}
        self._keep: list[torch.Tensor] = []  # so that no pointer is reused while it is a key

    def add(self, tensor: torch.Tensor) -> int:
        """The index of the constant with these bytes, from 1."""
        layout = f"{tuple(tensor.stride())}{tuple(tensor.shape)}{tensor.dtype}"
        pointer = (tensor.data_ptr(), tensor.numel(), layout)
        if pointer in self._by_pointer:
            return self._by_pointer[pointer]
        data = raw_bytes(tensor)
        sample = (data.nbytes, data[:_SAMPLE].tobytes() + data[-_SAMPLE:].tobytes())
        same = self._by_sample.setdefault(sample, [])
        index = next((i for i in same if np.array_equal(self.buffers[i - 1], data)), 0)
        if index == 0:
            self.buffers.append(data)
            index = len(self.buffers)
            same.append(index)
        self._by_pointer[pointer] = index
        self._keep.append(tensor)
        return index
