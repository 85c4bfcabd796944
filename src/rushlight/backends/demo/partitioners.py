"""What the demo backend takes of a graph."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

import torch
from torch.fx import Node
from torch.fx.passes.operator_support import OperatorSupportBase

from rushlight.backends.demo.demo import INSTRUCTIONS, BackendWithCompilerDemo, refusal
from rushlight.partition import (
    CompileSpec,
    DelegationSpec,
    SupportedOperatorPartitioner,
    WhyNoPartitionReporter,
)

aten = torch.ops.aten


class _Support(OperatorSupportBase):
    """What the backend can take of `operators`; tells the reporter why it cannot."""

    def __init__(self, operators: Container[Any], reporter: WhyNoPartitionReporter) -> None:
        self._operators = operators
        self._reporter = reporter

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: Node) -> bool:
        reason = refusal(node)
        if reason is None and node.target not in self._operators:
            reason = f"the partitioner does not take {node.target}"
        if reason is not None:
            self._reporter.report_reject(node, reason)
        return reason is None


class DemoPartitioner(SupportedOperatorPartitioner):
    """Takes all that the demo backend has instructions for.

    Args:
        operators: only these of them.
        compile_specs: options for the backend.
    """

    def __init__(
        self,
        operators: Container[Any] = frozenset(INSTRUCTIONS),
        compile_specs: Sequence[CompileSpec] = (),
    ) -> None:
        reporter = WhyNoPartitionReporter()
        super().__init__(
            DelegationSpec(BackendWithCompilerDemo.__name__, list(compile_specs)),
            _Support(operators, reporter),
            reporter=reporter,
            own_state=False,
        )


class AddMulPartitionerDemo(DemoPartitioner):
    """Takes additions and multiplications, of elements and of matrices."""

    def __init__(self) -> None:
        operators = {aten.add.Tensor, aten.mul.Tensor, aten.mm.default}
        super().__init__(operators, [CompileSpec("max_value", bytes([4]))])
