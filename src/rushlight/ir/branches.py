"""The graphs inside a graph: branches and bodies of `cond`, `while_loop`, `map` and `scan`."""

from __future__ import annotations

from typing import Any

from torch.fx import Graph, GraphModule, Node


def attribute(node: Node) -> object:
    """The object that a `get_attr` node names: a tensor, a graph, or a lowered partition."""
    value: object = node.graph.owning_module
    for name in str(node.target).split("."):
        value = getattr(value, name)
    return value


def branch(node: Node) -> GraphModule | None:
    """The graph that a `get_attr` node names; None if it names something else."""
    value = attribute(node)
    return value if isinstance(value, GraphModule) else None


def results_of(graph: Graph) -> list[Any]:
    """The results of a graph, as a list also where it returns one value, not in a sequence, as the
    condition of a `while_loop` does."""
    returned: Any = graph.output_node().args[0]
    return list(returned) if isinstance(returned, list | tuple) else [returned]


def branches(module: GraphModule) -> list[GraphModule]:
    """Every graph that `module`'s graph uses at any depth, the innermost first, each once."""
    graphs: dict[GraphModule, None] = {}
    for node in module.graph.nodes:
        if node.op == "get_attr" and (inner := branch(node)) is not None:
            graphs.update(dict.fromkeys([*branches(inner), inner]))
    return list(graphs)
