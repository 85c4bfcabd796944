"""Replace attention by the products, sums and softmax that it is made of."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.passes.infra.pass_base import PassResult

from rushlight.edge import ExportPass
from rushlight.ir.operators import arguments
from rushlight.ir.rewrite import example, remove_dead, replace

_ATTENTION = torch.ops.aten.scaled_dot_product_attention.default
_TENSORS = ("query", "key", "value", "attn_mask")
_HEADS = -3


class DecomposeScaledDotProductAttention(ExportPass):
    """Writes the calls that torch computes `scaled_dot_product_attention` by.

    Each has the module stack and the line of the call that it comes from.

    Args:
        allow_non_fake_inputs: whether tensors that the graph holds may be among the inputs.
    """

    def __init__(self, allow_non_fake_inputs: bool = True) -> None:
        self._allow_non_fake_inputs = allow_non_fake_inputs

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the graph in place.

        Raises:
            ValueError: a call without `enable_gqa` has fewer heads of keys than of queries.
        """
        calls = graph_module.graph.find_nodes(op="call_function", target=_ATTENTION)
        for node in calls:
            self._decompose(node)
        if calls:
            remove_dead(graph_module.graph)
            graph_module.recompile()
        return PassResult(graph_module, bool(calls))

    def _decompose(self, node: Node) -> None:
        given = arguments(node)
        _check_heads(node, given)
        tensors = {n: given[n] for n in _TENSORS if isinstance(given[n], Node)}
        rest = {n: v for n, v in given.items() if n not in tensors}

        def compute(values: dict[str, torch.Tensor]) -> Any:
            called = {**values, **rest}
            mask = called.pop("attn_mask")
            order = [called.pop(n) for n in ("query", "key", "value")]
            if mask is not None and mask.dtype == torch.bool:
                added = torch.zeros_like(mask, dtype=order[0].dtype)
                mask = added.masked_fill(mask.logical_not(), -torch.inf)
            drop, causal = called.pop("dropout_p"), called.pop("is_causal")
            math = torch.ops.aten._scaled_dot_product_attention_math.default
            return math(*order, mask, drop, causal, None, **called)[0]

        values = {n: one.meta["val"] for n, one in tensors.items()}
        traced = make_fx(
            compute, tracing_mode="fake", _allow_non_fake_inputs=self._allow_non_fake_inputs
        )(values)
        _inline(node, traced, list(tensors.values()))


def _check_heads(node: Node, given: dict[str, Any]) -> None:
    query, key = (given[name].meta["val"] for name in ("query", "key"))
    heads, shared = (one.shape[_HEADS] if one.dim() > 3 else 1 for one in (query, key))
    if heads != shared and not given["enable_gqa"]:
        raise ValueError(
            f"{node.name} has {heads} heads of queries and {shared} of keys: give it "
            f"enable_gqa=True, or as many heads of keys"
        )


def _inline(node: Node, traced: GraphModule, inputs: list[Node]) -> None:
    """Put the calls of a traced graph before a node, and its result in the node's place."""
    known: dict[Node, Any] = {}
    rest = iter(inputs)
    for inner in traced.graph.nodes:
        if inner.op == "placeholder":
            known[inner] = next(rest)
        elif inner.op == "output":
            (result,) = inner.all_input_nodes
            replace(node, known[result])
        else:
            with node.graph.inserting_before(node):
                made = node.graph.node_copy(inner, known.__getitem__)
            value = inner.meta["val"] if "val" in inner.meta else example(made.args)
            made.meta = {**node.meta, "val": value}
            known[inner] = made
