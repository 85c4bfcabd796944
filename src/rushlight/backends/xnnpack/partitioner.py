"""Which calls XNNPACK takes."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from torch.export import ExportedProgram
from torch.fx import Node

from rushlight.backends.xnnpack.elementwise import KEPT_WHOLE
from rushlight.backends.xnnpack.operators import OPERATORS, SIZES, why_not
from rushlight.backends.xnnpack.preprocess import XnnpackBackend
from rushlight.partition import DelegationSpec, PartitionResult, SupportedOperatorPartitioner
from rushlight.partition.extract import data_of


class XnnpackPartitioner(SupportedOperatorPartitioner):
    """Takes every call that XNNPACK has a node for, in as few parts as can be.

    A part that would only move data stays with the kernels.
    """

    def __init__(self) -> None:
        self._constants: Container[Node] = ()
        super().__init__(
            DelegationSpec(XnnpackBackend.__name__),
            self._why_not,
            keep_whole=KEPT_WHOLE,
            own_state=False,
            non_compute_ops=[*SIZES, *(t for t, known in OPERATORS.items() if known.moves)],
        )

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag what it takes."""
        data = data_of(exported_program)
        self._constants = {n for n, s in data.specs.items() if str(s.target) not in data.written}
        return super().partition(exported_program)

    def _why_not(self, node: Node) -> str | None:
        return why_not(node, self._is_constant)

    def _is_constant(self, node: Any) -> bool:
        return isinstance(node, Node) and node in self._constants
