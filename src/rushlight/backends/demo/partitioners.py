"""The partitioners of the demo backend."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.demo.demo import INSTRUCTIONS, BackendWithCompilerDemo, refusal
from rushlight.partition import CompileSpec, DelegationSpec, SupportedOperatorPartitioner

aten = torch.ops.aten


class DemoPartitioner(SupportedOperatorPartitioner):
    """Takes all calls that the demo backend has instructions for.

    Args:
        operators: the operators to take, among those with instructions.
        compile_specs: options for the backend.
    """

    def __init__(
        self,
        operators: Container[Any] = frozenset(INSTRUCTIONS),
        compile_specs: Sequence[CompileSpec] = (),
    ) -> None:
        def why_not(node: Node) -> str | None:
            reason = refusal(node)
            if reason is None and node.target not in operators:
                return f"the partitioner does not take {node.target}"
            return reason

        spec = DelegationSpec(BackendWithCompilerDemo.__name__, list(compile_specs))
        super().__init__(spec, why_not, own_state=False)


class AddMulPartitionerDemo(DemoPartitioner):
    """Takes additions and multiplications, of elements and of matrices."""

    def __init__(self) -> None:
        operators = {aten.add.Tensor, aten.mul.Tensor, aten.mm.default}
        super().__init__(operators, [CompileSpec("max_value", bytes([4]))])
