"""The engine's graph while it is built: views of memory, and steps over them.

A view is a strided tensor without data (`device="meta"`): torch's own operators on it say how
slices, permutations and reshapes lie in memory, and which of them need a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Node

from rushlight.schema.cpu_engine import Place

CHANNELS_LAST = (0, 2, 3, 1)


@dataclass(eq=False)
class Memory:
    """Bytes that a value's elements lie in.

    Attributes:
        place: input, output, scratch or constant.
        size: bytes.
        index: which input, output or constant.
    """

    place: Place
    size: int
    index: int = 0


@dataclass(eq=False)
class View:
    """A value: a memory and how elements lie in it.

    Attributes:
        memory: where.
        meta: sizes, steps, offset and dtype.
    """

    memory: Memory
    meta: torch.Tensor

    @property
    def shape(self) -> torch.Size:
        """Sizes."""
        return self.meta.shape

    def moved(self, meta: torch.Tensor) -> View:
        """Another view of the same memory."""
        return View(self.memory, meta)


def strided(sizes: Sequence[int], order: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """A dense tensor without data whose dimensions lie in `order`, the outermost first."""
    steps = [0] * len(sizes)
    step = 1
    for dim in reversed(order):
        steps[dim] = step
        step *= max(sizes[dim], 1)
    return torch.empty_strided(list(sizes), steps, dtype=dtype, device="meta")


def order_of(meta: torch.Tensor) -> list[int]:
    """The dimensions of a tensor from the outermost in memory to the innermost."""
    steps = meta.stride()
    return sorted(range(meta.dim()), key=lambda d: (-steps[d], d))


@dataclass(eq=False)
class Step:
    """One fused operator.

    Attributes:
        operation: the payload's description of it.
        inputs: None for one that is left out.
        outputs: views that it writes.
        nodes: the calls that it was made of.
        operands: what the operation's tile program loads and stores, if it has one.
    """

    operation: Any
    inputs: list[View | None]
    outputs: list[View]
    nodes: list[Node]
    operands: list[View] = field(default_factory=list)

    def views(self) -> list[View]:
        """All that it reads and writes."""
        return [v for v in (*self.inputs, *self.outputs, *self.operands) if v is not None]


@dataclass
class Graph:
    """Steps in order, and the constants that they read.

    Attributes:
        steps: in the order of execution.
        constants: their elements as they are stored, by index.
        n_inputs: how many arguments are read.
        n_outputs: how many results there are.
    """

    n_inputs: int = 0
    steps: list[Step] = field(default_factory=list)
    constants: list[torch.Tensor] = field(default_factory=list)
    n_outputs: int = 0

    def scratch(self, meta: torch.Tensor) -> View:
        """New memory for a dense tensor."""
        return View(Memory(Place.SCRATCH, meta.numel() * meta.element_size()), meta)

    def constant(self, data: torch.Tensor) -> View:
        """Constant memory of these elements, as they lie."""
        meta = torch.empty_strided(data.shape, data.stride(), dtype=data.dtype, device="meta")
        size = data.numel() * data.element_size()
        view = View(Memory(Place.CONSTANT, size, len(self.constants)), meta)
        self.constants.append(data)
        return view
