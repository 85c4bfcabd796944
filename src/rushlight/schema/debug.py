"""The map from a program to lines of Python, independent of how a file stores it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from rushlight.schema.source import Source

LEFT_OUT = (
    "source text",
    "module paths",
    "what became of each operator call",
    "names of nodes and values",
    "lines inside delegates",
    "all lines",
)
"""The parts that are left out of a map to keep it small, in this order."""


class DebugLine(NamedTuple):
    """A line of Python; if `file` is empty, nothing is known."""

    file: str = ""
    number: int = 0
    function: str = ""
    text: str = ""


class DebugNode(NamedTuple):
    """A node of a graph; empty strings, and a debug handle of 0, where nothing is known."""

    name: str = ""
    operator: str = ""
    line: DebugLine = DebugLine()
    module: str = ""
    handle: int = 0

    @property
    def source(self) -> Source:
        """Where it comes from in the model."""
        return Source(*self.line, self.module, self.operator, self.handle)


class DebugCall(NamedTuple):
    """One operator call of a method, before the method was partitioned.

    Attributes:
        backend: the backend that took it; "" if none did.
        part: the index of its delegate in the method; -1 if it is in none.
        cost: the estimated time in microseconds.
        reasons: pairs of a backend and the reason why it did not take the call, or its note.
    """

    node: DebugNode
    backend: str = ""
    part: int = -1
    cost: float = 0.0
    reasons: tuple[tuple[str, str], ...] = ()


Places = dict[str, tuple[DebugNode, ...]]
"""By a backend's id for one of its instructions the nodes that it was made of."""


@dataclass
class DebugMethod:
    """The debug map of one method.

    Attributes:
        instructions: the node of each instruction.
        values: the names of parameters and buffers, by index of the value.
        delegates: for each delegate of the plan, the nodes of its own instructions.
        coverage: its operator calls; empty if there was no partitioner.
    """

    instructions: list[DebugNode] = field(default_factory=list)
    values: dict[int, str] = field(default_factory=dict)
    delegates: list[Places] = field(default_factory=list)
    coverage: list[DebugCall] = field(default_factory=list)


@dataclass
class DebugMap:
    """The methods of a program by name; `level` is how many items of `LEFT_OUT` are left out."""

    methods: dict[str, DebugMethod] = field(default_factory=dict)
    level: int = 0

    @property
    def left_out(self) -> list[str]:
        """The parts of the map that are left out of the file."""
        return list(LEFT_OUT[: self.level])

    def method(self, name: str) -> DebugMethod:
        """The debug map of a method; an empty one if the method is not there."""
        return self.methods.get(name) or DebugMethod()
