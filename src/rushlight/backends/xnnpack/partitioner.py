"""The partitioner of XNNPACK: chooses the calls that XNNPACK takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Graph, Node

from rushlight.backends.xnnpack.elementwise import KEPT_WHOLE
from rushlight.backends.xnnpack.graph import DATATYPES
from rushlight.backends.xnnpack.integers import IntegerValues
from rushlight.backends.xnnpack.operators import (
    OPERATORS,
    arithmetic_of,
    why_not,
    why_not_call,
)
from rushlight.backends.xnnpack.preprocess import XnnpackBackend
from rushlight.ir.quantized_values import affine_of, dequantizes
from rushlight.partition import DelegationSpec, PartitionResult, SupportedOperatorPartitioner
from rushlight.partition.extract import data_of
from rushlight.partition.operators import SIZES, may_take


class XnnpackPartitioner(SupportedOperatorPartitioner):
    """Takes every call that XNNPACK has a node for, in as few partitions as possible.

    Calls of a partition that would only move data stay with the kernels.
    """

    def __init__(self) -> None:
        self._constants: Mapping[Node, torch.Tensor] = {}
        self._integers: dict[Graph, IntegerValues] = {}
        super().__init__(
            DelegationSpec(XnnpackBackend.__name__),
            self._why_not,
            keep_whole=KEPT_WHOLE,
            own_state=False,
            non_compute_ops=[*SIZES, *(t for t, known in OPERATORS.items() if known.moves)],
            groups=lambda module: self._of(module.graph).groups(),
        )

    def ops_to_not_decompose(
        self, ep: ExportedProgram
    ) -> tuple[Sequence[OpOverload], Callable[[Node], bool] | None]:
        """The operators that stay whole, except for calls that are certainly not taken."""
        operators, _ = super().ops_to_not_decompose(ep)
        return operators, may_take(OPERATORS, DATATYPES, ep)

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag the calls that XNNPACK takes; see the class."""
        data = data_of(exported_program)
        self._constants = {
            node: data.tensors[str(spec.target)]
            for node, spec in data.specs.items()
            if str(spec.target) not in data.written
        }
        self._integers = {}
        return super().partition(exported_program)

    def _of(self, graph: Graph) -> IntegerValues:
        if graph not in self._integers:
            self._integers[graph] = IntegerValues(
                *(graph, self._constants.get, arithmetic_of),
                lambda node: why_not_call(node, self._is_constant),
            )
        return self._integers[graph]

    def _why_not(self, node: Node) -> str | None:
        return why_not(node, self._is_constant, self._of(node.graph))

    def _is_constant(self, node: Any) -> bool:
        """Whether an argument is a constant, or a call that dequantises one."""
        if isinstance(node, Node) and dequantizes(node):
            affine = affine_of(node)
            return affine is not None and affine.source in self._constants
        return isinstance(node, Node) and node in self._constants
