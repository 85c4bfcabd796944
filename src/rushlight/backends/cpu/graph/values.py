"""The engine's graph while it is built: views of memory, and steps over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.graph.layout import Layout
from rushlight.backends.cpu.graph.sizes import Size, Sizes, product
from rushlight.schema.cpu_engine import Operation, Place

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
    size: Size
    index: int = 0


@dataclass(eq=False)
class View:
    """A value: a memory and how elements lie in it.

    Attributes:
        memory: where.
        meta: sizes, steps, offset and dtype.
    """

    memory: Memory
    meta: Layout

    @property
    def shape(self) -> Sizes:
        """Sizes."""
        return self.meta.shape

    def place(self) -> tuple[Any, ...]:
        """What is equal of views of the same elements."""
        meta = self.meta
        return id(self.memory), meta.dtype, meta.shape, meta.steps, meta.offset

    def moved(self, meta: Layout) -> View:
        """Another view of the same memory."""
        return View(self.memory, meta)


def bytes_of(meta: Layout) -> Size:
    """The bytes of as many elements."""
    return product((meta.numel(), meta.itemsize))


@dataclass(eq=False)
class Step:
    """One fused operator.

    Attributes:
        operation: the payload's description of it.
        inputs: None for one that is left out.
        outputs: views that it writes.
        nodes: the calls that it was made of.
        operands: what the operation's tile program loads and stores, if it has one, or what it
            adds to its result.
    """

    operation: Operation
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
        inputs: the arguments in their own sizes; of a number what it is.
        outputs: the results in their own sizes.
    """

    steps: list[Step] = field(default_factory=list)
    constants: list[torch.Tensor] = field(default_factory=list)
    inputs: list[View | Size] = field(default_factory=list)
    outputs: list[View] = field(default_factory=list)

    def scratch(self, meta: Layout) -> View:
        """New memory for dense elements."""
        return View(Memory(Place.SCRATCH, bytes_of(meta)), meta)

    def constant(self, data: torch.Tensor) -> View:
        """Constant memory of these elements, as they lie."""
        meta = Layout.of(data)
        view = View(Memory(Place.CONSTANT, bytes_of(meta), len(self.constants)), meta)
        self.constants.append(data)
        return view


def lives_of(steps: Sequence[Step]) -> list[tuple[Memory, int, int]]:
    """Each scratch memory with the first and the last step that uses it."""
    lives: dict[int, tuple[Memory, int, int]] = {}
    for at, step in enumerate(steps):
        for view in step.views():
            if view.memory.place is Place.SCRATCH:
                _, first, _ = lives.get(id(view.memory), (view.memory, at, at))
                lives[id(view.memory)] = (view.memory, first, at)
    return list(lives.values())
