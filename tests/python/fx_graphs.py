"""Graphs for tests of passes: written call by call, with example values, and run beside eager."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses import FakeTensorMode
from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult


class Builder:
    """A graph under construction; `module` finishes it."""

    def __init__(self, *inputs: torch.Tensor) -> None:
        self.graph, self.mode = Graph(), FakeTensorMode()
        self.inputs = [self._input(f"x{i}", one) for i, one in enumerate(inputs)]

    def _input(self, name: str, tensor: torch.Tensor) -> Node:
        node = self.graph.placeholder(name)
        node.meta["val"] = self.mode.from_tensor(tensor, static_shapes=True)
        return node

    def call(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        """Append a call."""
        node = self.graph.call_function(target, args, kwargs)
        with self.mode:
            node.meta["val"] = target(
                *torch.fx.node.map_arg(args, lambda n: n.meta["val"]),
                **torch.fx.node.map_arg(kwargs, lambda n: n.meta["val"]),
            )
        return node

    def module(self, *outputs: Node) -> GraphModule:
        """The module that returns these nodes."""
        self.graph.output(outputs)
        return GraphModule(torch.nn.Module(), self.graph)


def names(module: GraphModule) -> list[str]:
    """The operators of a graph's calls, in order: "permute_copy.default"."""
    return [
        str(n.target).rpartition("::")[2].removeprefix("aten.")
        if not hasattr(n.target, "_schema")
        else f"{n.target._schema.name.partition('::')[2]}.{n.target._overloadname}"
        for n in module.graph.nodes
        if n.op == "call_function"
    ]


def changed(
    one: Callable[[GraphModule], PassResult], module: GraphModule, *inputs: torch.Tensor
) -> list[str]:
    """The operators after a pass; the module computes what it did, and its example values fit."""
    before = copy.deepcopy(module)
    expected = before(*inputs)
    result = one(module)
    assert result.modified
    got = result.graph_module(*inputs)
    output = result.graph_module.graph.output_node()
    for ours, eager, node in zip(got, expected, output.args[0], strict=True):
        torch.testing.assert_close(ours, eager)
        value = node.meta["val"]
        assert (value.shape, value.dtype) == (eager.shape, eager.dtype)
    return names(result.graph_module)
