"""Passes that remove calls: those that change nothing, are repeated, or have no user."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.symbolic_shapes import guard_or_true
from torch.fx.passes.infra.pass_base import PassResult

from rushlight.edge.passes.common_subexpression import common_subexpression
from rushlight.exir.graph_passes.base import GraphPass, graphs_in
from rushlight.ir.rewrite import insert, replace

aten = torch.ops.aten
# The operators of quantised graphs are known to torch once torchao's or torch's library is loaded.
_QUANTIZE = ("quantize_per_tensor", "quantize_per_channel")
_DEQUANTIZE = ("dequantize_per_tensor", "dequantize_per_channel")


def dead_code_elimination_pass(graph_module: GraphModule) -> PassResult:
    """Remove what nothing uses from a graph and from its branches and bodies."""
    for module in graphs_in(graph_module):
        module.graph.eliminate_dead_code()
        module.recompile()
    return PassResult(graph_module, True)


class CSEPass(GraphPass):
    """Merges calls of the same operator with the same arguments."""

    in_place = True

    def change(self, graph: Graph) -> bool:
        """Merge them."""
        return common_subexpression(graph) > 0


def _is_quantization(node: Any, names: tuple[str, ...]) -> bool:
    name = getattr(getattr(node, "target", None), "_schema", None)
    space, _, own = (name.name if name is not None else "").partition("::")
    return space == "quantized_decomposed" and own in names


class RemoveNoopPass(GraphPass):
    """Removes conversions to the same dtype, dropout, and slices of the whole; and the quantisation
    around them that they leave without a purpose."""

    in_place = True

    def change(self, graph: Graph) -> bool:
        """Remove them."""
        dequantized = []
        changed = False
        for node in list(graph.nodes):
            if not _passes_through(node):
                continue
            source: Any = node.args[0]
            if _is_quantization(source, _DEQUANTIZE):
                dequantized.append(source)
            replace(node, source)
            changed = True
        _skip_requantization(dequantized)
        graph.eliminate_dead_code()
        return changed


def _passes_through(node: Node) -> bool:
    if node.target not in (aten.to.dtype, aten.dropout.default, aten.slice_copy.Tensor):
        return False
    source: Any = node.args[0]
    before, after = source.meta["val"], node.meta["val"]
    if before is after:
        return True
    sizes = (*before.shape, *after.shape)
    is_static = all(isinstance(size, int) for size in sizes)
    return node.target is aten.slice_copy.Tensor and is_static and before.shape == after.shape


def eliminate_dq_q(graph_module: GraphModule, dequant_nodes: Iterable[Node]) -> None:
    """Let users of values that are quantised again as they were before use the first ones.

    Args:
        graph_module: the graph, which is changed; calls without users stay.
        dequant_nodes: the calls that dequantise.
    """
    _skip_requantization(dequant_nodes)
    graph_module.recompile()


def _skip_requantization(dequantized: Iterable[Node]) -> None:
    for source in dequantized:
        for user in list(source.users):
            if _is_quantization(user, _QUANTIZE) and user.args[1:] == source.args[1:]:
                user.replace_all_uses_with(source.args[0])  # type: ignore[arg-type]


class RemoveToCopyPass(GraphPass):
    """Removes copies that change neither dtype, nor device, nor layout."""

    in_place = True

    def change(self, graph: Graph) -> bool:
        """Remove them."""
        changed = False
        for node in list(graph.nodes):
            if node.target is aten._to_copy.default and _is_same(node):
                replace(node, node.args[0])
                changed = True
        return changed


def _is_same(node: Node) -> bool:
    source: Any = node.args[0]
    before, after = source.meta["val"], node.meta["val"]
    return (before.dtype, before.device, before.shape, before.stride()) == (
        *(after.dtype, after.device, after.shape, after.stride()),
    )


class PruneEmptyTensorsPass(GraphPass):
    """Leaves tensors without elements out of concatenations whose dtype they do not decide."""

    in_place = True

    def change(self, graph: Graph) -> bool:
        """Change the calls of `cat`."""
        changed = False
        for node in list(graph.nodes):
            if node.target is not aten.cat.default:
                continue
            given: Any = node.args[0]
            kept = [one for one in given if guard_or_true(one.meta["val"].numel() != 0)]
            dtypes = {one.meta["val"].dtype for one in kept}
            is_other = kept and functools.reduce(torch.promote_types, dtypes) != _dtype(node)
            if len(kept) == len(given) or is_other:
                continue
            changed = True
            node.args = (kept, *node.args[1:])
            if not kept:
                full = (tuple(node.meta["val"].shape), 0)
                made = insert(graph, aten.full.default, full, {"dtype": _dtype(node)}, like=node)
                replace(node, made)
        graph.eliminate_dead_code()
        return changed


def _dtype(node: Node) -> torch.dtype:
    dtype: torch.dtype = node.meta["val"].dtype
    return dtype


class RemoveGraphAssertsPass(GraphPass):
    """Removes assertions, and the bounds of symbolic sizes."""

    in_place = True
    _targets: Any = (
        aten._assert_async.msg,
        aten._assert_scalar.default,
        aten._assert_tensor_metadata.default,
        aten.sym_constrain_range.default,
        aten.sym_constrain_range_for_size.default,
    )

    def change(self, graph: Graph) -> bool:
        """Remove them."""
        found = [node for node in graph.nodes if node.target in self._targets]
        for node in found:
            graph.erase_node(node)
        graph.eliminate_dead_code()
        return bool(found)


class RemoveNonCoreAtenOpGraphAssertsPass(RemoveGraphAssertsPass):
    """Removes assertions about the dtype and device of a tensor, which Core ATen does not have."""

    _targets = (aten._assert_tensor_metadata.default,)
