"""Which calls the engine takes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node

from rushlight.backends.cpu.integers.facts import group_size_of, operands_of
from rushlight.backends.cpu.operators.facts import REALS
from rushlight.backends.cpu.operators.halves import CAST
from rushlight.backends.cpu.operators.kernel_call import OwnKernels
from rushlight.backends.cpu.operators.table import ANY_DTYPE, KEPT_WHOLE, MOVING, OPERATORS
from rushlight.backends.cpu.preprocess import CpuBackend, read_weights
from rushlight.backends.cpu.support.dynamic import DynamicSizes, hidden_sizes
from rushlight.backends.cpu.support.integers import (
    cut_patterns,
    keep_together,
    why_not_product,
    why_not_quantized,
    why_not_rounded,
)
from rushlight.backends.cpu.tiles import terms
from rushlight.backends.cpu.tiles.clusters import is_elementwise, is_number
from rushlight.ir.quantized_values import Constant, dequantizes_constant, name_of
from rushlight.partition import (
    CompileSpec,
    DelegationSpec,
    PartitionResult,
    SupportedOperatorPartitioner,
)
from rushlight.partition.extract import data_of
from rushlight.partition.operators import may_take
from rushlight.partition.partitioner import TAG
from rushlight.partition.tags import graphs_of

aten = torch.ops.aten
_MAX_RANK = 6


class CpuPartitioner(SupportedOperatorPartitioner):
    """Takes every call that the engine computes.

    Args:
        weights: how weights of linear layers and matrix products are stored: "float32", or
            "bfloat16", rounded, which halves the file and what a product of few rows has to read.
            Activations and sums are float32 in any case.

    Raises:
        ExportError: for another dtype.
    """

    def __init__(self, *, weights: str = "float32") -> None:
        specs = [CompileSpec("weights", weights.encode())] if weights != "float32" else []
        read_weights(specs)
        self._constants: dict[Node, torch.Tensor] = {}
        self._sizes: DynamicSizes | None = None
        self._reasons: dict[Node, str | None] = {}
        self._kernels = OwnKernels()
        super().__init__(
            DelegationSpec(CpuBackend.__name__, specs),
            self._why_not,
            keep_whole=[*KEPT_WHOLE, *terms.KEPT_WHOLE],
            own_state=False,
        )

    def ops_to_not_decompose(
        self, ep: ExportedProgram
    ) -> tuple[Sequence[OpOverload], Callable[[Node], bool] | None]:
        """Operators that stay whole, where nothing is against it from the start."""
        operators, _ = super().ops_to_not_decompose(ep)
        return operators, may_take(OPERATORS, REALS, ep)

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag what it takes."""
        data = data_of(exported_program)
        constants = {n: s for n, s in data.specs.items() if str(s.target) not in data.written}
        tensors = {**exported_program.constants, **exported_program.state_dict}
        self._constants = {n: tensors[str(s.target)].detach() for n, s in constants.items()}
        self._sizes, self._reasons = DynamicSizes(exported_program), {}
        self._kernels = OwnKernels()
        for module in graphs_of(exported_program):
            for node in reversed(module.graph.nodes):  # `_is_wanted` asks about users
                if node.op == "call_function":
                    self._why_not(node)
        while True:
            result = super().partition(exported_program)
            keep_together(exported_program)
            hidden = {
                **hidden_sizes(exported_program),
                **cut_patterns(exported_program, self._constants.get),
            }
            if not hidden:
                return result
            self._reasons.update(hidden)
            for module in list(graphs_of(exported_program)):
                for node in module.graph.nodes:
                    node.meta.pop(TAG, None)

    def _why_not(self, node: Node) -> str | None:
        if node not in self._reasons:
            reason = self._why_not_call(node)
            if reason is None and _moves_integers(node) and not self._is_wanted(node):
                reason = "it moves integers for calls that are not taken"
            self._reasons[node] = reason
        return self._reasons[node]

    def _why_not_call(self, node: Node) -> str | None:
        assert self._sizes is not None
        data = self._constants.get
        source = node.all_input_nodes[0] if node.target is operator.getitem else node
        if source.target not in OPERATORS and self._kernels.has(source):
            return self._kernels.why_not(source) or self._sizes.why_not(node, takes_numbers=True)
        if name_of(node) and node.target not in OPERATORS:
            return why_not_quantized(node, data) or self._sizes.why_not(node)
        reason = why_not_rounded(node, data) if group_size_of(node) is not None else None
        if reason is not None:
            return reason
        operands = operands_of(node)
        if operands is not None and dequantizes_constant(operands.weight, data):
            reason = why_not_product(node, operands, data)
            if reason is not None:
                return reason
        is_constant = partial(_is_constant, data)
        return why_not(node, is_constant, self._sizes)

    def _is_wanted(self, node: Node) -> bool:
        """Whether all that uses the call's results is taken, or the program returns them."""
        return all(u.op == "output" or self._why_not(u) is None for u in node.users)


def _moves_integers(node: Node) -> bool:
    if node.target not in MOVING:
        return False
    vals = pytree.tree_leaves(node.meta["val"])
    return any(isinstance(v, torch.Tensor) and not v.is_floating_point() for v in vals)


def _is_constant(data: Constant, node: Any) -> bool:
    if not isinstance(node, Node):
        return False
    if node.target is CAST:  # the engine stores a weight in half precision as it is
        return data(node.args[0]) is not None
    return data(node) is not None or dequantizes_constant(node, data)


def why_not(node: Node, is_constant: Any, sizes: DynamicSizes) -> str | None:
    """Why the engine does not take a call; None if it does.

    Args:
        node: of the Edge dialect.
        is_constant: whether an argument is a constant of the program.
        sizes: those that depend on the inputs.
    """
    if is_number(node) and (node.target is aten.sym_size.int or _is_of_numbers(node)):
        return sizes.why_not(node)
    if not is_elementwise(node) and node.target not in OPERATORS:
        return f"the engine has no {node.target}"
    if node.target is operator.getitem:
        return why_not(node.all_input_nodes[0], is_constant, sizes)
    for one in (*node.all_input_nodes, node):
        reason = None if is_number(one) else _why_not_value(one, node)
        if reason is not None:
            return reason
    reason = sizes.why_not(node)
    if reason is not None or is_elementwise(node):
        return reason
    return OPERATORS[node.target].why_not(node, is_constant)


def _is_of_numbers(node: Node) -> bool:
    return all(is_number(one) for one in node.all_input_nodes)


def _why_not_value(one: Node, node: Node) -> str | None:
    vals = one.meta.get("val")
    if isinstance(vals, list | tuple):
        used = {user.args[1] for user in one.users if user.target is operator.getitem}
        vals = [val for i, val in enumerate(vals) if i in used]
    else:
        vals = [vals]
    for val in vals:
        if not isinstance(val, torch.Tensor):
            return f"{one.name} is not a tensor"
        if val.dim() > _MAX_RANK:
            return f"{one.name} has more than {_MAX_RANK} dimensions"
        if is_elementwise(node):
            if val.dtype not in (*REALS, torch.bool):
                return f"{one.name} is {str(val.dtype).removeprefix('torch.')}; tiles hold float32"
        elif node.target not in ANY_DTYPE and val.dtype not in REALS:
            return f"{one.name} is {str(val.dtype).removeprefix('torch.')}, not float32"
        elif val.dtype.is_complex or val.element_size() > 8:
            return f"{one.name} is {str(val.dtype).removeprefix('torch.')}; the engine moves others"
    return None
