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
from rushlight.backends.xnnpack.integers import IntegerValues, is_quantizing
from rushlight.backends.xnnpack.operator_configs import Chosen
from rushlight.backends.xnnpack.operators import (
    OPERATORS,
    arithmetic_of,
    why_not,
    why_not_call,
)
from rushlight.backends.xnnpack.precision import ConfigPrecisionType, precision_of
from rushlight.backends.xnnpack.preprocess import XnnpackBackend
from rushlight.ir.quantized_values import affine_of, dequantizes
from rushlight.partition import DelegationSpec, PartitionResult, SupportedOperatorPartitioner
from rushlight.partition.extract import data_of
from rushlight.partition.operators import SIZES, may_take
from rushlight.partition.partitioner import TAG

aten = torch.ops.aten

_MOVING = frozenset(target for target, known in OPERATORS.items() if known.moves)
# The arguments that are weights and biases, by operator.
_WEIGHTS = {
    aten.linear.default: (1, 2),
    aten.addmm.default: (2, 0),
    aten.mm.default: (1,),
}


class XnnpackPartitioner(SupportedOperatorPartitioner):
    """Takes every call that XNNPACK has a node for, in as few partitions as possible.

    Partitions that would only make views and permutations stay with the kernels.

    Args:
        configs: classes of `operator_configs`, such as `LinearConfig`: only the calls of their
            operators are taken. None for all.
        config_precisions: the arithmetic of the calls to take, one or several; None for all.
        per_op_mode: a partition for each call, with the quantising calls around it.
        verbose: print why calls are not taken.
        force_non_static_weights_for_f32_linear: leave the weights and biases of float32 linear
            layers to the program, which passes them at every call.

    Raises:
        ExportError: for an option with a value that is not supported.
    """

    def __init__(
        self,
        configs: Sequence[Any] | None = None,
        config_precisions: ConfigPrecisionType | Sequence[ConfigPrecisionType] | None = None,
        per_op_mode: bool = False,
        verbose: bool = False,
        force_non_static_weights_for_f32_linear: bool = False,
    ) -> None:
        self._chosen = Chosen(configs) if configs else None
        self._passes_weights = force_non_static_weights_for_f32_linear
        one = isinstance(config_precisions, ConfigPrecisionType)
        chosen: Any = [config_precisions] if one else config_precisions
        self._precisions = frozenset(chosen or ConfigPrecisionType)
        self._verbose = verbose
        self._constants: Mapping[Node, torch.Tensor] = {}
        self._integers: dict[Graph, IntegerValues] = {}
        super().__init__(
            DelegationSpec(XnnpackBackend.__name__),
            self._why_not,
            keep_whole=KEPT_WHOLE,
            own_state=False,
            non_compute_ops=[*SIZES, *_MOVING],
            groups=lambda module: self._of(module.graph).groups(),
            one_each=per_op_mode,
        )

    def ops_to_not_decompose(
        self, ep: ExportedProgram
    ) -> tuple[Sequence[OpOverload], Callable[[Node], bool] | None]:
        """The operators that stay whole, except for calls that are certainly not taken."""
        operators, _ = super().ops_to_not_decompose(ep)
        if self._chosen is not None:
            operators = [one for one in operators if self._chosen.names(one)]
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
        self._program = exported_program
        result = super().partition(exported_program)
        if self._passes_weights:
            _leave_weights(exported_program.graph)
        if self._verbose:
            for node, reason in result.declined.items():
                print(f"XNNPACK does not take {node.name}: {reason}")
        return result

    def _of(self, graph: Graph) -> IntegerValues:
        if graph not in self._integers:
            self._integers[graph] = IntegerValues(
                *(graph, self._constants.get, arithmetic_of),
                lambda node: self._why_not_chosen(node) or why_not_call(node, self._is_constant),
            )
        return self._integers[graph]

    def _why_not_chosen(self, node: Node) -> str | None:
        if self._chosen is None:
            return None
        precision = precision_of(node, self._is_constant)
        return self._chosen.why_not(node, precision, self._program)

    def _why_not(self, node: Node) -> str | None:
        reason = self._why_not_chosen(node)
        if reason is not None:
            return reason
        if len(self._precisions) < len(ConfigPrecisionType):
            precision = precision_of(node, self._is_constant)
            if precision not in self._precisions:
                if ConfigPrecisionType.FP32 not in self._precisions or is_quantizing(node):
                    return f"its arithmetic is {precision.name}, which config_precisions leaves out"
                # It is computed with the floats that the calls around it return and take.
                return why_not_call(node, lambda one: one in self._constants)
        return why_not(node, self._is_constant, self._of(node.graph))

    def _is_constant(self, node: Any) -> bool:
        """Whether an argument is a constant, or a call that dequantises one."""
        if isinstance(node, Node) and dequantizes(node):
            affine = affine_of(node)
            return affine is not None and affine.source in self._constants
        return isinstance(node, Node) and node in self._constants


def _leave_weights(graph: Graph) -> None:
    """Take the tags of float32 linear layers' weights and biases away."""
    for node in graph.nodes:
        if TAG in node.meta and node.target in _WEIGHTS:
            for source in (node.args[i] for i in _WEIGHTS[node.target] if i < len(node.args)):
                while isinstance(source, Node) and source.target in _MOVING:
                    source = source.args[0]
                is_weight = isinstance(source, Node) and source.op == "placeholder"
                if is_weight and source.meta["val"].dtype == torch.float32:
                    source.meta.pop(TAG, None)


class XnnpackDynamicallyQuantizedPartitioner(XnnpackPartitioner):
    """Takes only the calls whose inputs get their scales at run time."""

    def __init__(self) -> None:
        super().__init__(config_precisions=ConfigPrecisionType.DYNAMIC_QUANT)


class XnnpackFloatingPointPartitioner(XnnpackPartitioner):
    """Takes only the calls that are not quantised."""

    def __init__(self) -> None:
        super().__init__(config_precisions=ConfigPrecisionType.FP32)


class XnnpackQuantizedPartitioner(XnnpackPartitioner):
    """Takes only the calls whose inputs have fixed scales."""

    def __init__(self) -> None:
        super().__init__(config_precisions=ConfigPrecisionType.STATIC_QUANT)
