"""Replaces what dequantises, a group of calls, and what quantises its results by one call."""

from __future__ import annotations

import operator
from typing import Any

from torch.fx import GraphModule, Node
from torch.fx.passes.utils.fuser_utils import topo_sort
from torch.fx.passes.utils.source_matcher_utils import SourcePartition

from rushlight.errors import Code, ExportError
from rushlight.exir.backend.nodes import T_DQuantPerTensor, T_QuantPerTensor


def replace_quantized_partition_with_op(
    graph_module: GraphModule, partition: SourcePartition, replacement_op: Any
) -> tuple[Node, list[Node], list[Node]]:
    """Replace the calls of a quantised module by one call of a backend's operator.

    Args:
        graph_module: the graph, which is changed.
        partition: the calls, of torch's `get_source_partitions`.
        replacement_op: is called with all values that the replaced calls read from outside, in the
            order in which they read them. It returns a tensor; if several values are used outside,
            a list of them.

    Returns:
        The new call; the calls that dequantised the inputs, and those that quantised the result.

    Raises:
        ExportError: nothing dequantises an input, or nothing quantises a result.
    """
    members = set(partition.nodes)
    read = [u for n in partition.nodes for u in n.all_input_nodes if u not in members]
    dequant = list(dict.fromkeys(u for u in read if u.target == T_DQuantPerTensor))
    users = [u for n in partition.nodes for u in n.users if u not in members]
    quant = list(dict.fromkeys(u for u in users if u.target == T_QuantPerTensor))
    if not dequant:
        raise _refused(partition, "no dequantize_per_tensor.default gives an input")
    if not quant:
        raise _refused(partition, "no quantize_per_tensor.default takes a result")
    calls = [node for node in partition.nodes if node not in partition.params]
    replaced = topo_sort([*dequant, *calls, *quant])
    inside = set(replaced)
    # What dequantises for other calls too stays, for them.
    kept = set(dequant)
    outputs = [n for n in replaced if n not in kept and any(u not in inside for u in n.users)]
    inputs = dict.fromkeys(u for n in replaced for u in n.all_input_nodes if u not in inside)
    graph = graph_module.graph
    with graph.inserting_after(max(replaced)):
        new = graph.call_function(replacement_op, tuple(inputs))
    new.meta["val"] = [node.meta.get("val") for node in outputs]
    for i, node in enumerate(outputs):
        result = new
        if len(outputs) > 1:
            with graph.inserting_after(new):
                result = graph.call_function(operator.getitem, (new, i))
        result.meta = dict(node.meta)
        node.replace_all_uses_with(result, propagate_meta=False)
    for node in reversed(replaced):
        if not node.users:
            graph_module.graph.erase_node(node)
    graph_module.recompile()
    return new, dequant, quant


def _refused(partition: SourcePartition, why: str) -> ExportError:
    names = ", ".join(node.name for node in partition.nodes)
    return ExportError(
        f"the calls {names} are not replaced by one of an operator: {why}",
        code=Code.INVALID_ARGUMENT,
    )
