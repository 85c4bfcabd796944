"""Rewriting FX graphs: new nodes with example values, and removal of unused nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._higher_order_ops.executorch_call_delegate import executorch_call_delegate
from torch._subclasses import FakeTensorMode
from torch.fx import Graph, Node

from rushlight.ir.custom_ops.cached_attention import cached_attention

KEPT_META = ("stack_trace", "nn_module_stack", "debug_handle", "from_node", "declined")


def fake_mode_of(graph: Graph) -> FakeTensorMode:
    """The fake tensor mode of the graph's example tensors; a new one if there are none."""
    for node in graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch._subclasses.FakeTensor):
            return value.fake_mode
    return FakeTensorMode(allow_non_fake_inputs=True)


def example(arg: Any) -> Any:
    """The argument with every node replaced by its example value."""
    return torch.fx.node.map_arg(arg, lambda n: n.meta["val"])


def insert(
    graph: Graph,
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    like: Node,
    value: Any = None,
) -> Node:
    """Insert a call before `like`, and copy the source and debug handle of `like` to it.

    `value` is the example value; None computes it in the graph's fake mode.
    """
    kwargs = kwargs or {}
    with graph.inserting_before(like):
        node = graph.call_function(target, args, kwargs)
    for key in KEPT_META:
        if key in like.meta:
            node.meta[key] = like.meta[key]
    if value is None:
        with fake_mode_of(graph):
            value = target(*example(args), **example(kwargs))
    node.meta["val"] = value
    return node


def replace(node: Node, by: Node) -> None:
    """Let every user of `node` use `by`, and erase it. The graph's outputs keep their names."""
    node.replace_all_uses_with(by, propagate_meta=False)
    node.graph.erase_node(node)


def has_effect(target: torch._ops.OpOverload) -> bool:
    """True if the operator does more than its schema says: it draws from a generator, which changes
    the numbers of the next one, or it stores keys and values in a cache."""
    return torch.Tag.nondeterministic_seeded in target.tags or target is cached_attention


def is_pure(node: Node) -> bool:
    """True if the node may be removed when nothing uses it."""
    if node.op != "call_function":
        return False
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return target is not executorch_call_delegate  # it may own state
    return bool(target._schema.returns) and not (target._schema.is_mutable or has_effect(target))


def remove_dead(graph: Graph) -> int:
    """Erase pure nodes that nothing uses; returns how many."""
    erased = 0
    for node in reversed(graph.nodes):
        if not node.users and is_pure(node):
            graph.erase_node(node)
            erased += 1
    return erased
