"""What passes share: new calls in a graph, and example values after a change."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from rushlight.ir.branches import attribute
from rushlight.ir.rewrite import example, fake_mode_of, insert, remove_dead


def call_like(
    node: Node, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
) -> Node:
    """Insert a call before `node`, with all of its metadata but the example value."""
    made = insert(node.graph, target, args, kwargs, like=node)
    made.meta = {**node.meta, "val": made.meta["val"]}
    return made


def outdate(node: Node) -> None:
    """Let `refresh` compute the node's example value anew."""
    node.meta.pop("val", None)


def refresh(graph_module: GraphModule) -> GraphModule:
    """The module itself, after a change of its graph: without dead calls, its code made anew.

    Calls without an example value get one, and so do those whose inputs' values changed.
    """
    graph = graph_module.graph
    remove_dead(graph)
    mode = fake_mode_of(graph)
    changed: set[Node] = set()
    for node in graph.nodes:
        if node.op == "get_attr" and "val" not in node.meta:
            value = attribute(node)
            if isinstance(value, torch.Tensor):
                node.meta["val"] = mode.from_tensor(value, static_shapes=True)
        old = node.meta.get("val")
        inputs = node.all_input_nodes
        if node.op != "call_function" or (old is not None and changed.isdisjoint(inputs)):
            continue
        if any("val" not in one.meta for one in inputs):
            continue  # a graph that was made without example values
        with mode, torch.no_grad():
            node.meta["val"] = node.target(*example(node.args), **example(node.kwargs))
        if not _same(old, node.meta["val"]):
            changed.add(node)
    graph_module.recompile()
    return graph_module


def _same(old: Any, new: Any) -> bool:
    if not isinstance(old, torch.Tensor) or not isinstance(new, torch.Tensor):
        return False
    return old.dtype == new.dtype and sizes_of(old) == sizes_of(new)


def sizes_of(value: torch.Tensor) -> list[int | str]:
    """The sizes of a tensor; those of symbols as text, whose comparison adds no guard."""
    return [size if isinstance(size, int) else str(size) for size in value.shape]
