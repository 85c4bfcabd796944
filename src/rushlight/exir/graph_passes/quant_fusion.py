"""Lets operators work on quantised values where a graph dequantises, computes and quantises.

    dequantize -> add -> quantize             ==>  quantized_decomposed.add
    dequantize -> reshape -> quantize         ==>  reshape
    dequantize weight -> embedding            ==>  quantized_decomposed.embedding_byte

Operators that only move elements, and `cat`, are fused if all quantisation is the same. A weight of
2 or 4 bits is packed by operators that are computed at export, if constants are propagated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # its operators
from torch.export import ExportedProgram
from torch.fx import Graph, Node

from rushlight.exir.graph_passes.base import GraphPass
from rushlight.exir.passes import constant_prop_pass
from rushlight.ir.custom_ops import executorch
from rushlight.ir.custom_ops.dim_order import to_dim_order_copy
from rushlight.ir.rewrite import insert, replace

aten = torch.ops.aten
q = torch.ops.quantized_decomposed
_QUANTIZE = q.quantize_per_tensor.default
_DEQUANTIZE = q.dequantize_per_tensor.default
_MOVES = frozenset(
    (
        aten._reshape_alias_copy.default,
        aten.expand_copy.default,
        aten.permute_copy.default,
        aten.select_copy.int,
        aten.slice_copy.Tensor,
        aten.squeeze_copy.default,
        aten.squeeze_copy.dim,
        aten.squeeze_copy.dims,
        aten.t_copy.default,
        aten.transpose_copy.int,
        aten.unsqueeze_copy.default,
        aten.view_copy.default,
    )
)
_BITS = {(-2, 1): 2, (-8, 7): 4}
"""The bits of weights by their least and greatest values; all others have 8."""
_SHIFTS = {2: (0, 2, 4, 6), 4: (4, 0)}
"""Where the elements of a byte are, in order."""


class QuantFusionPass(GraphPass):
    """Fuses what dequantises, computes and quantises into operators on quantised values.

    Args:
        _fix_node_meta_val: has no effect: new calls always have their example values.
        node_value_dict: the tensors of inputs, by the names of the inputs. Zero points that are
            all 0 are then left out.
    """

    in_place = True

    def __init__(
        self,
        _fix_node_meta_val: bool = False,
        node_value_dict: Mapping[str, torch.Tensor] | None = None,
    ) -> None:
        self.node_value_dict = dict(node_value_dict or {})

    def change(self, graph: Graph) -> bool:
        """Fuse the calls of a graph."""
        executorch.define()
        fused = 0
        for node in list(graph.nodes):
            if node.target is _QUANTIZE and isinstance(node.args[0], Node):
                fused += _fuse_add(graph, node) or _fuse_move(graph, node) or _fuse_cat(graph, node)
            elif node.target is aten.embedding.default:
                fused += self._fuse_embedding(graph, node)
        graph.eliminate_dead_code()
        return fused > 0

    def _fuse_embedding(self, graph: Graph, node: Node) -> bool:
        """Look up rows of a quantised table, and dequantise them only."""
        table = _Table.of(node.args[0])
        if table is None:
            return False
        weight, zeros = table.weight, table.zeros
        bits = _BITS.get((table.low, table.high), 8)
        if weight.meta["val"].shape[1] % (8 // bits):
            bits = 8
        if bits < 8:
            weight = _packed(graph, weight, bits, node)
        dtype = table.scales.meta["val"].dtype
        if zeros is not None:
            known = self.node_value_dict.get(str(zeros.target))
            if known is not None and not known.any():
                zeros = None
            elif zeros.meta["val"].dtype != dtype:
                zeros = _converted(graph, zeros, dtype, node)
        args = (weight, table.scales, zeros, table.low, table.high, node.args[1])
        value = node.meta["val"]
        kwargs = {} if value.dtype == dtype else {"dtype": value.dtype}
        packet = getattr(q, f"embedding_{'byte' if bits == 8 else f'{bits}bit'}")
        target = packet.dtype if kwargs else packet.default
        replace(node, insert(graph, target, args, kwargs, like=node, value=value))
        return True


class _Table:
    """A quantised table of an embedding: one scale for each row, or for each group of a row."""

    def __init__(self, weight: Node, scales: Node, zeros: Node | None, low: int, high: int) -> None:
        self.weight, self.scales, self.zeros = weight, scales, zeros
        self.low, self.high = low, high

    @classmethod
    def of(cls, node: Any) -> _Table | None:
        """The table that a call dequantises; None if it is no such call, or no kernel takes it."""
        target = getattr(node, "target", None)
        if target is q.dequantize_per_channel.default and node.args[3] == 0:
            parts = (*node.args[:3], *node.args[4:6])
        elif target is q.dequantize_per_channel_group.default:
            parts = node.args[:5]
        else:
            return None
        weight, scales = parts[0].meta["val"], parts[1].meta["val"]
        is_taken = (
            weight.dim() == 2
            and weight.dtype in (torch.int8, torch.uint8)
            and scales.dtype in (torch.float32, torch.float16, torch.bfloat16)
        )
        return cls(*parts) if is_taken else None


def _packed(graph: Graph, weight: Node, bits: int, like: Node) -> Node:
    """A weight with several elements in each byte."""
    rows, columns = weight.meta["val"].shape
    count = 8 // bits
    shifted = insert(graph, aten.add.Scalar, (weight, 1 << (bits - 1)), like=like)
    shifted = _converted(graph, shifted, torch.uint8, like)
    parted = insert(
        graph, aten.view_copy.default, (shifted, [rows, columns // count, count]), like=like
    )
    packed: Node | None = None
    for i, shift in enumerate(_SHIFTS[bits]):
        part = insert(graph, aten.select_copy.int, (parted, 2, i), like=like)
        part = insert(graph, aten.mul.Scalar, (part, 1 << shift), like=like)
        if packed is not None:
            part = insert(graph, aten.bitwise_or.Tensor, (packed, part), like=like)
        packed = part
    assert packed is not None
    return packed


def _converted(graph: Graph, node: Node, dtype: torch.dtype, like: Node) -> Node:
    order = list(range(node.meta["val"].dim()))
    kwargs = {"dtype": dtype, "dim_order": order}
    return insert(graph, to_dim_order_copy, (node,), kwargs, like=like)


def _is_dequantised(node: Any) -> bool:
    return isinstance(node, Node) and node.target is _DEQUANTIZE and not node.kwargs


def _fuse_add(graph: Graph, node: Node) -> bool:
    """Add quantised values; `relu` behind the sum becomes a bound of the result."""
    total: Any = node.args[0]
    scale, zero, low, high, dtype = node.args[1:6]
    if total.target is aten.relu.default and len(total.users) == 1:
        low = max(low, zero)  # type: ignore[type-var]
        total = total.args[0]
    if total.target is not aten.add.Tensor or len(total.users) != 1 or total.kwargs:
        return False
    if not all(map(_is_dequantised, total.args)):
        return False
    sources = [side.args[0] for side in total.args]
    kinds = {(v.dtype, v.shape, v.dim_order()) for v in (s.meta["val"] for s in sources)}
    if len(kinds) != 1 or next(iter(kinds))[0] != dtype:
        return False
    args = [part for side in total.args for part in side.args[:5]]
    replace(node, insert(graph, q.add.default, (*args, scale, zero, low, high), like=node))
    return True


def _fuse_move(graph: Graph, node: Node) -> bool:
    """Move quantised elements."""
    move: Any = node.args[0]
    if move.target not in _MOVES or len(move.users) != 1:
        return False
    before = move.args[0]
    if not _is_dequantised(before) or before.args[1:] != node.args[1:]:
        return False
    args = (before.args[0], *move.args[1:])
    replace(node, insert(graph, move.target, args, dict(move.kwargs), like=node))
    return True


def _fuse_cat(graph: Graph, node: Node) -> bool:
    """Join quantised values."""
    joined: Any = node.args[0]
    if joined.target is not aten.cat.default or len(joined.users) != 1:
        return False
    before = joined.args[0]
    if not all(_is_dequantised(one) and one.args[1:] == node.args[1:] for one in before):
        return False
    args = ([one.args[0] for one in before], *joined.args[1:])
    replace(node, insert(graph, aten.cat.default, args, dict(joined.kwargs), like=node))
    return True


def values_of_inputs(program: ExportedProgram) -> dict[str, torch.Tensor]:
    """The parameters and buffers that a program saves, by the names of their inputs."""
    signature = program.graph_signature
    names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    return {
        node: program.state_dict[target]
        for node, target in names.items()
        if target in program.state_dict
    }


def quant_fusion_and_const_prop_pass(program: ExportedProgram) -> ExportedProgram:
    """Fuse quantised calls, and compute what depends on constants alone, such as packed weights.

    The program is changed, and returned.
    """
    QuantFusionPass(node_value_dict=values_of_inputs(program))(program.graph_module)
    return constant_prop_pass(program)
