"""What the map from a program to lines of Python says, whatever form it has in the file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

LEFT_OUT = (
    "source text",
    "module paths",
    "what became of each operator call",
    "names of nodes and values",
    "lines inside delegates",
    "all lines",
)
"""What a map goes without to stay small, in this order."""


class DebugLine(NamedTuple):
    """A line of Python; without a file nothing is known."""

    file: str = ""
    number: int = 0
    function: str = ""
    text: str = ""

    def __str__(self) -> str:
        """ "model.py:12 in forward: `x + y`"; "" if it is not known."""
        if not self.file:
            return ""
        place = f"{self.file}:{self.number}"
        if self.function:
            place += f" in {self.function}"
        text = self.text.strip()
        return f"{place}: `{text}`" if text else place


class DebugNode(NamedTuple):
    """A node of a graph; empty strings where nothing is known."""

    name: str = ""
    operator: str = ""
    line: DebugLine = DebugLine()
    module: str = ""


class DebugCall(NamedTuple):
    """One operator call of a method as it was before it was partitioned.

    Attributes:
        backend: who took it; "" if it stayed.
        part: counts the delegates of the method; -1 if it stayed.
        cost: estimated microseconds.
        reasons: (backend, why it did not take it, or what it says of it).
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
    """What is known of one method.

    Attributes:
        instructions: the node of each.
        values: names of parameters and buffers, by index of the value.
        delegates: the places inside each, in the plan's order.
        coverage: its operator calls; empty if no partitioner was asked.
    """

    instructions: list[DebugNode] = field(default_factory=list)
    values: dict[int, str] = field(default_factory=dict)
    delegates: list[Places] = field(default_factory=list)
    coverage: list[DebugCall] = field(default_factory=list)


@dataclass
class DebugMap:
    """The methods of a program by name, and how many of `LEFT_OUT` the file goes without."""

    methods: dict[str, DebugMethod] = field(default_factory=dict)
    level: int = 0

    @property
    def left_out(self) -> list[str]:
        """What the file goes without."""
        return list(LEFT_OUT[: self.level])

    def method(self, name: str) -> DebugMethod:
        """What is known of a method; nothing of one that is not there."""
        return self.methods.get(name) or DebugMethod()
