"""User-written passes over Edge graphs: `ExportPass`, `PassResult`, `PassManager`.

A subclass of `ExportPass` overrides `call_operator` (and, where it must, `placeholder` and
`output`); what it does not override is copied. Example values are recomputed only for calls whose
operator or arguments changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from rushlight.errors import Code, ExportError
from rushlight.ir.branches import branch
from rushlight.ir.rewrite import KEPT_META, fake_mode_of


@dataclass(frozen=True)
class ProxyValue:
    """A value of the graph under construction.

    Attributes:
        data: its example value (a fake tensor, a symbolic number).
        node: the new node that computes it.
    """

    data: Any
    node: Node

    def is_tensor(self) -> bool:
        """Whether the value is a tensor."""
        return isinstance(self.data, torch.Tensor)

    def to_tensor(self) -> torch.Tensor:
        """The example tensor; ExportError if the value is not one."""
        if not self.is_tensor():
            raise ExportError(
                f"{self.node.name} is {type(self.data).__name__}, not a tensor",
                code=Code.INVALID_TYPE,
            )
        return self.data  # type: ignore[no-any-return]


Argument = Any
NodeMetadata = dict[str, Any]


class ExportPass:
    """Rebuilds a graph call by call; subclasses override what they want to change."""

    def __call__(self, graph_module: GraphModule) -> PassResult:
        """The same as `call`."""
        return self.call(graph_module)

    def call(self, graph_module: GraphModule) -> PassResult:
        """Run the pass, also over the branches of `torch.cond` and the like; the given module is
        not changed."""
        self._mode = fake_mode_of(graph_module.graph)
        self._modified = False
        return PassResult(self._rebuild(graph_module), self._modified)

    def _rebuild(self, graph_module: GraphModule) -> GraphModule:
        self._graph = Graph()
        branches: dict[str, GraphModule] = {}
        values: dict[Node, Any] = {}
        for node in graph_module.graph.nodes:
            self._old = node
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: values[n])
            if node.op == "placeholder":
                values[node] = self.placeholder(node.name, node.meta.get("val"), dict(node.meta))
            elif node.op == "output":
                self.output(_results(args[0]), dict(node.meta))
            elif node.op == "get_attr":
                values[node] = self._emit_attribute(node, branches)
            elif node.op == "call_module":  # what a captured module checks of its inputs
                values[node] = self._emit_module(node, args, kwargs)
            else:
                values[node] = self.call_operator(node.target, args, kwargs, dict(node.meta))
        self._graph.set_codegen(graph_module.graph._codegen)  # how arguments are given
        result = GraphModule(graph_module, self._graph)
        for target, inner in branches.items():
            result.set_submodule(target, inner)
        result.meta.update(graph_module.meta)
        return result

    def call_operator(
        self, op: Any, args: tuple[Argument, ...], kwargs: dict[str, Argument], meta: NodeMetadata
    ) -> ProxyValue:
        """Emit a call of `op`; override to emit something else, or to return an argument."""
        plain_args, plain_kwargs = _nodes((args, kwargs))
        node = self._graph.call_function(op, plain_args, plain_kwargs)
        node.meta.update({k: meta[k] for k in KEPT_META if k in meta})
        old = self._old
        if op is old.target and _names((plain_args, plain_kwargs)) == _names(
            (old.args, old.kwargs)
        ):
            value = meta.get("val")
        else:
            self._modified = True
            with self._mode, torch.no_grad():
                data_args, data_kwargs = _data((args, kwargs))
                value = op(*data_args, **data_kwargs)
        node.meta["val"] = value
        return ProxyValue(value, node)

    def placeholder(self, name: str, arg: Argument, meta: NodeMetadata) -> ProxyValue:
        """Emit an input; `arg` is its example value."""
        node = self._graph.placeholder(name)
        node.meta.update(meta)
        return ProxyValue(arg, node)

    def output(self, results: list[Argument], meta: NodeMetadata) -> None:
        """Emit what the graph returns."""
        returned = tuple(_nodes(results))
        # The condition of a `while_loop` returns one value and no sequence.
        many = isinstance(self._old.args[0], tuple | list)
        self._graph.output(returned if many else returned[0]).meta.update(meta)

    def _emit_module(
        self, node: Node, args: tuple[Argument, ...], kwargs: dict[str, Argument]
    ) -> ProxyValue:
        new = self._graph.call_module(str(node.target), *_nodes((args, kwargs)))
        new.meta.update(node.meta)
        return ProxyValue(node.meta.get("val"), new)

    def _emit_attribute(self, node: Node, branches: dict[str, GraphModule]) -> ProxyValue:
        value = node.meta.get("val")
        inner = branch(node)
        if inner is not None:
            outer = self._graph
            value = branches[str(node.target)] = self._rebuild(inner)
            self._graph, self._old = outer, node
        new = self._graph.get_attr(str(node.target))
        new.meta.update(node.meta)
        return ProxyValue(value, new)


def _results(returned: Any) -> list[Argument]:
    return list(returned) if isinstance(returned, tuple | list) else [returned]


def _map(tree: Any, function: Callable[[ProxyValue], Any]) -> Any:
    if isinstance(tree, ProxyValue):
        return function(tree)
    if isinstance(tree, tuple | list):
        return type(tree)(_map(t, function) for t in tree)
    if isinstance(tree, dict):
        return {k: _map(v, function) for k, v in tree.items()}
    return tree


def _nodes(tree: Any) -> Any:
    return _map(tree, lambda v: v.node)


def _data(tree: Any) -> Any:
    return _map(tree, lambda v: v.data)


def _names(tree: Any) -> str:
    return repr(torch.fx.node.map_arg(tree, lambda n: n.name))


class PassManager:
    """Runs passes in order. A pass is a callable from GraphModule to PassResult."""

    def __init__(self, passes: Sequence[Callable[[GraphModule], PassResult | None]]) -> None:
        self.passes = list(passes)

    def __call__(self, graph_module: GraphModule) -> PassResult:
        """Run the passes; `modified` is True if any of them changed something."""
        modified = False
        for one in self.passes:
            result = one(graph_module)
            if not isinstance(result, PassResult):
                raise ExportError(
                    f"pass {getattr(one, '__name__', type(one).__name__)} returned "
                    f"{type(result).__name__}: a pass must return a PassResult of torch.fx",
                    code=Code.INVALID_TYPE,
                )
            graph_module, modified = result.graph_module, modified or result.modified
        return PassResult(graph_module, modified)
