"""A backend for tests that can be told to fail or to answer wrong.

It takes linear and sigmoid, each call as a partition of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch.export import ExportedProgram

from delegates import Interpretation, Interpreted, Interpreter
from rushlight.partition import (
    BackendDetails,
    DelegationSpec,
    Partitioner,
    PartitionResult,
    tag_constant_data,
)

OPERATORS = ("aten.linear.default", "aten.sigmoid.default")


class TinyBackend(BackendDetails):
    """The compiler half."""

    preprocess = Interpreted.preprocess


class TinyPartitioner(Partitioner):
    """Takes every call that the backend has; each is a partition of its own."""

    delegation_spec = DelegationSpec("TinyBackend")

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        tags, declined = {}, {}
        for node in exported_program.graph.nodes:
            if str(node.target) in OPERATORS:
                node.meta["delegation_tag"] = node.name
                tags[node.name] = self.delegation_spec
            elif node.op == "call_function":
                declined[node] = f"it has no instruction for {node.target}"
        tag_constant_data(exported_program)
        return PartitionResult(exported_program, tags, declined)


class TinyRuntime(Interpreter):
    """The runtime half.

    Attributes:
        breaks: fails before its first instruction.
        adds: what is added to every result.
    """

    breaks = False
    adds = 0.0

    def run(self, handle: Interpretation, inputs: Sequence[Any], at: Callable[[str], None]) -> Any:
        if self.breaks:
            first = handle.program["calls"][0]["name"]
            at(first)
            raise ArithmeticError(f"{first} broke")
        return [result + self.adds for result in super().run(handle, inputs, at)]
