"""User-written passes over Edge graphs: `ExportPass`.

A subclass of `ExportPass` overrides `call_operator`, or another method for what it wants to change;
what it does not override is copied. Example values are recomputed only for calls whose operator or
arguments changed.
"""

from __future__ import annotations

import itertools
import operator
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, runtime_checkable

import torch
import torch.utils._pytree as pytree
from torch._higher_order_ops.executorch_call_delegate import executorch_call_delegate
from torch._ops import OpOverload
from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.infra.pass_base import PassBase, PassResult

from rushlight.errors import Code, ExportError
from rushlight.ir.branches import attribute
from rushlight.ir.rewrite import KEPT_META, fake_mode_of

Argument = Any
Value = Any
NodeMetadataValue = Any
PassType = Callable[[GraphModule], PassResult | None]

# What a pass may not write: it is copied, or computed.
PROTECTED_KEYS = frozenset(("val", "stack_trace", "nn_module_stack", "debug_handle", "tensor_meta"))
_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
_OF_NUMBERS = frozenset(
    (
        torch.sym_int,
        torch.sym_float,
        torch.sym_ite,
        torch.sym_max,
        torch.sym_min,
        torch.sym_not,
        torch.sym_sqrt,
    )
)


class NodeMetadata(UserDict[str, Any]):
    """A copy of what a node says about itself; `data` is the dict.

    Setting one of `PROTECTED_KEYS` raises an ExportError.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = dict(data)

    def __setitem__(self, key: str, value: Any) -> None:
        if key in PROTECTED_KEYS:
            raise ExportError(
                f"a pass may not set the metadata {key!r}: it is copied or computed. Free keys are "
                f"all but {sorted(PROTECTED_KEYS)}",
                code=Code.INVALID_ARGUMENT,
            )
        self.data[key] = value

    def copy(self) -> NodeMetadata:
        """One that can be changed on its own."""
        return NodeMetadata(self.data)


@dataclass(frozen=True)
class ProxyValue:
    """A value of the graph under construction.

    Attributes:
        data: its example value (a fake tensor, a symbolic number).
        node: the new node that computes it.
    """

    data: Any
    node: Node

    @property
    def proxy(self) -> torch.fx.Proxy:
        """The node, for code that records what is done with it."""
        return torch.fx.Proxy(self.node)

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

    def __iter__(self) -> Iterator[Any]:
        """The parts of the example value."""
        yield from self.data

    def __bool__(self) -> bool:
        if isinstance(self.data, _SYMBOLIC):
            self._refuse("used in boolean context")
        return bool(self.data)

    def __int__(self) -> int:
        if isinstance(self.data, torch.SymInt):
            self._refuse("converted to int")
        return int(self.data)

    def __index__(self) -> int:
        if isinstance(self.data, torch.SymInt):
            self._refuse("used in index context")
        return int(self.data)

    def __float__(self) -> float:
        if isinstance(self.data, torch.SymFloat):
            self._refuse("converted to float")
        return float(self.data)

    def _refuse(self, use: str) -> NoReturn:
        raise ExportError(
            f"{self.node.name} is the symbolic number {self.data}, which cannot be {use}: that "
            f"would fix it to the example's. Pass it on, or compute with `data`",
            code=Code.INVALID_TYPE,
        )


@dataclass
class _Frame:
    """One graph under construction.

    Attributes:
        graph: the new graph.
        old: the node of the old graph that is being copied.
        values: what the old graph's nodes became.
        taken: names of attributes that the old graph uses.
        held: the tensors, graphs and lowered modules that it uses, by the names of its attributes.
    """

    graph: Graph
    old: Node
    taken: set[str]
    values: dict[Node, Any] = field(default_factory=dict)
    held: dict[str, Any] = field(default_factory=dict)


class ExportPass(PassBase):
    """Rebuilds a graph call by call; subclasses override what they want to change.

    Each method that emits a node is given the metadata of the old one.
    """

    def call(self, graph_module: GraphModule) -> PassResult:
        """Run the pass, also over the branches of `torch.cond` and the like; the given module is
        not changed."""
        self._mode = fake_mode_of(graph_module.graph)
        self._modified = False
        self._held_by: dict[torch.nn.Module, Node] = {}  # modules, by the attributes that hold them
        return self.call_submodule(graph_module, tuple(self.inputs(graph_module)))

    def inputs(self, graph_module: GraphModule) -> list[Argument]:
        """The example values of a graph's inputs."""
        return [n.meta.get("val") for n in graph_module.graph.find_nodes(op="placeholder")]

    def should_preserve_symbolic_input_metadata(self) -> bool:
        """Whether inputs must keep their symbolic sizes; a pass that changes them says False."""
        return True

    def call_submodule(self, graph_module: GraphModule, inputs: tuple[Argument, ...]) -> PassResult:
        """Rebuild a graph: the pass's own, or a branch.

        Args:
            graph_module: not changed.
            inputs: example values, or values of the graph that uses this one.
        """
        outer = getattr(self, "_frame", None)
        nodes = graph_module.graph.nodes
        taken = {str(n.target) for n in nodes if n.op in ("get_attr", "call_module")}
        self._frame = _Frame(Graph(), next(iter(nodes)), taken)
        examples = iter(_data(inputs))
        values = self._frame.values
        for node in graph_module.graph.nodes:
            self._frame.old = node
            meta = NodeMetadata(node.meta)
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: values[n])
            if node.op == "placeholder":
                values[node] = self.placeholder(node.name, _input(meta, next(examples)), meta)
            elif node.op == "output":
                self.output(_results(args[0]), meta)
            elif node.op == "get_attr":
                values[node] = self._attribute(node, meta)
            elif node.op == "call_function":
                values[node] = self._call(node.target, args, kwargs, meta)
            elif node.op == "call_module":  # what a captured module checks of its inputs
                values[node] = self._module(node, args, kwargs)
            else:
                raise ExportError(
                    f"{node.op} is not supported in a graph that a pass rebuilds: {node.name} is "
                    f"one of {node.target}. Export the model again",
                    code=Code.NOT_SUPPORTED,
                )
        self._frame.graph.set_codegen(graph_module.graph._codegen)  # how arguments are given
        result = GraphModule(self._frame.held, self._frame.graph)
        result.training = graph_module.training
        result.meta.update(graph_module.meta)
        self._frame = outer  # type: ignore[assignment]
        if self.should_preserve_symbolic_input_metadata():
            _check_inputs(graph_module, result)
        if graph_module in self._held_by:
            self._held_by[result] = self._held_by[graph_module]
        return PassResult(result, self._modified)

    def _call(self, target: Any, args: Any, kwargs: Any, meta: NodeMetadata) -> Any:
        """Let the method that owns the kind of call emit it."""
        higher, whole = torch.ops.higher_order, (*args, meta)
        if target is operator.getitem:
            return self.call_getitem(*whole)
        if isinstance(target, OpOverload):
            return self.call_operator(target, args, kwargs, meta)
        if target is higher.cond:
            return self.call_cond(*whole)
        if target is higher.while_loop:
            return self.call_while(*whole)
        if target is higher.map_impl:
            return self.call_map(*whole)
        if target is higher.scan:
            return self.call_scan(*whole)
        if target is executorch_call_delegate:
            return self.call_delegate(args[0], args[1:], kwargs, meta)
        if target in _OF_NUMBERS or target.__module__ in ("_operator", "builtins", "math"):
            return self.call_sym(target, args, meta)
        return self._emit(target, self._rebuilt(args), kwargs, meta)

    def call_operator(
        self, op: Any, args: tuple[Argument, ...], kwargs: dict[str, Argument], meta: Any
    ) -> ProxyValue:
        """Emit a call of `op`; override to emit something else, or to return an argument."""
        return self._emit(op, args, kwargs, meta)

    def call_sym(
        self, target: Callable[..., Any], args: tuple[Argument, ...], meta: NodeMetadata
    ) -> ProxyValue:
        """Emit a function of numbers."""
        return self._emit(target, args, {}, meta)

    def call_getitem(self, value: ProxyValue, key: int, meta: NodeMetadata) -> ProxyValue:
        """Emit the choice of one of several results."""
        return self._emit(operator.getitem, (value, key), {}, meta)

    def call_cond(
        self,
        pred: ProxyValue,
        true_fn: GraphModule,
        false_fn: GraphModule,
        inputs: Sequence[Argument],
        meta: NodeMetadata,
    ) -> ProxyValue:
        """Emit a `torch.cond` of the rebuilt branches."""
        true_fn, false_fn = (
            self.call_submodule(f, tuple(inputs)).graph_module for f in (true_fn, false_fn)
        )
        args = (pred, true_fn, false_fn, inputs)
        return self._emit(torch.ops.higher_order.cond, args, {}, meta)

    def call_while(
        self,
        cond_fn: GraphModule,
        body_fn: GraphModule,
        carried_inputs: Sequence[Argument],
        additional_inputs: Sequence[Argument],
        meta: NodeMetadata,
    ) -> ProxyValue:
        """Emit a `while_loop` of the rebuilt condition and body."""
        inputs = (*carried_inputs, *additional_inputs)
        cond_fn, body_fn = (self.call_submodule(f, inputs).graph_module for f in (cond_fn, body_fn))
        args = (cond_fn, body_fn, carried_inputs, additional_inputs)
        return self._emit(torch.ops.higher_order.while_loop, args, {}, meta)

    def call_map(
        self,
        f: GraphModule,
        mapped_args: Sequence[ProxyValue],
        operands: Sequence[ProxyValue],
        meta: NodeMetadata,
    ) -> ProxyValue:
        """Emit a `map` of the rebuilt body."""
        f = self.call_submodule(f, tuple(self.inputs(f))).graph_module
        args = (f, mapped_args, operands)
        return self._emit(torch.ops.higher_order.map_impl, args, {}, meta)

    def call_scan(
        self,
        combine_fn: GraphModule,
        init: Sequence[ProxyValue],
        xs: Sequence[Argument],
        additional_inputs: Sequence[ProxyValue],
        meta: NodeMetadata,
    ) -> ProxyValue:
        """Emit a `scan` of the rebuilt body."""
        combine_fn = self.call_submodule(combine_fn, tuple(self.inputs(combine_fn))).graph_module
        args = (combine_fn, init, xs, additional_inputs)
        return self._emit(torch.ops.higher_order.scan, args, {}, meta)

    def call_delegate(
        self,
        lowered_module: Any,
        args: tuple[ProxyValue, ...],
        kwargs: dict[str, Argument],
        meta: NodeMetadata,
    ) -> ProxyValue:
        """Emit a call of a lowered module."""
        return self._emit(executorch_call_delegate, (lowered_module, *args), kwargs, meta)

    def placeholder(self, name: str, arg: Argument, meta: Any) -> ProxyValue:
        """Emit an input; `arg` is its example value."""
        node = self._frame.graph.placeholder(name)
        node.meta.update(meta)
        return ProxyValue(arg, node)

    def output(self, results: list[Argument], meta: Any) -> None:
        """Emit what the graph returns."""
        returned = tuple(self._nodes(results))
        # The condition of a `while_loop` returns one value and no sequence.
        many = isinstance(self._frame.old.args[0], tuple | list)
        self._frame.graph.output(returned if many else returned[0]).meta.update(meta)

    def _emit(
        self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Argument], meta: Any
    ) -> ProxyValue:
        """A call, with an example value that is the old one if nothing changed."""
        plain_args, plain_kwargs = self._nodes((args, kwargs))
        node = self._frame.graph.call_function(target, plain_args, plain_kwargs)
        node.meta.update({k: meta[k] for k in KEPT_META if k in meta})
        old, values = self._frame.old, self._frame.values
        if target is old.target and _is_same((args, kwargs), (old.args, old.kwargs), values):
            value = meta.get("val")
        else:
            self._modified = True
            with self._mode, torch.no_grad():
                value = target(*self._examples(args), **self._examples(kwargs))
        node.meta["val"] = value
        return ProxyValue(value, node)

    def _attribute(self, node: Node, meta: NodeMetadata) -> Any:
        """A tensor that the graph holds; a graph or lowered module for the call that uses it."""
        value = attribute(node)
        if isinstance(value, torch.nn.Module):
            self._held_by[value] = node
            return value
        name = str(node.target)
        self._frame.held[name] = value
        new = self._frame.graph.get_attr(name)
        new.meta.update(meta)
        return ProxyValue(meta.get("val"), new)

    def _module(self, node: Node, args: Any, kwargs: Any) -> ProxyValue:
        name = str(node.target)
        self._frame.held[name] = attribute(node)
        new = self._frame.graph.call_module(name, *self._nodes((args, kwargs)))
        new.meta.update(node.meta)
        return ProxyValue(node.meta.get("val"), new)

    def _examples(self, tree: Any) -> Any:
        """The arguments by their example values."""
        return _map(_data(tree), torch.Tensor, self._mode.from_tensor)

    def _rebuilt(self, args: Any) -> Any:
        """The arguments of a call that is not known, with their graphs rebuilt."""
        return _map(
            args,
            GraphModule,
            lambda f: self.call_submodule(f, tuple(self.inputs(f))).graph_module,
        )

    def _nodes(self, tree: Any) -> Any:
        """The arguments as nodes of the new graph, which holds the modules and tensors in them."""
        held = (torch.nn.Module, torch.Tensor)
        return _map(_map(tree, ProxyValue, lambda v: v.node), held, self._hold)

    def _hold(self, inner: torch.nn.Module | torch.Tensor) -> Node:
        frame = self._frame
        old = self._held_by.get(inner) if isinstance(inner, torch.nn.Module) else None
        kind = "_tensor_constant" if isinstance(inner, torch.Tensor) else "submodule_"
        names = (f"{kind}{number}" for number in itertools.count(len(frame.held)))
        free = next(name for name in names if name not in frame.taken)
        name = free if old is None else str(old.target)
        frame.taken.add(name)
        frame.held[name] = inner
        node = frame.graph.get_attr(name)
        if old is not None:
            node.meta.update(old.meta)
        elif isinstance(inner, torch.Tensor):
            node.meta["val"] = self._mode.from_tensor(inner)
        return node


def _input(meta: NodeMetadata, value: Any) -> Any:
    """An input's example value: its own, unless `value` has another dtype or size."""
    own = meta.get("val")
    if own is None or (isinstance(own, torch.Tensor) and not _fits(own, value)):
        meta.data["val"] = value
        return value
    return own


def _fits(own: torch.Tensor, value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or own.dtype != value.dtype or own.dim() != value.dim():
        return False
    pairs = zip(own.shape, value.shape, strict=True)
    return all(a == b for a, b in pairs if isinstance(a, int) and isinstance(b, int))


def _sizes(graph_module: GraphModule) -> list[Any]:
    """For each input, its symbolic numbers as text; () if it has none."""

    def of(value: Any) -> tuple[str, ...]:
        parts = value.shape if isinstance(value, torch.Tensor) else (value,)
        return tuple(str(p) if isinstance(p, _SYMBOLIC) else "" for p in parts)

    values = [n.meta.get("val") for n in graph_module.graph.find_nodes(op="placeholder")]
    listed = [pytree.tree_leaves(pytree.tree_map(of, v)) for v in values]
    return [sizes if any(sizes) else () for sizes in listed]


def _check_inputs(old: GraphModule, new: GraphModule) -> None:
    """Refuses a pass that loses the symbolic sizes of an input."""
    before, after = _sizes(old), _sizes(new)
    for index, sizes in enumerate(before):
        if sizes and (index >= len(after) or after[index] != sizes):
            raise ExportError(
                f"Input at position {index} did not preserve symbolic metadata: it had the sizes "
                f"{sizes} before the pass. Copy meta['val'], or let "
                f"should_preserve_symbolic_input_metadata() return False",
                code=Code.INVALID_ARGUMENT,
            )


def _results(returned: Any) -> list[Argument]:
    return list(returned) if isinstance(returned, tuple | list) else [returned]


def _map(tree: Any, kind: type | tuple[type, ...], function: Callable[[Any], Any]) -> Any:
    if isinstance(tree, kind):
        return function(tree)
    if isinstance(tree, tuple | list):
        return type(tree)(_map(t, kind, function) for t in tree)
    if isinstance(tree, dict):
        return {k: _map(v, kind, function) for k, v in tree.items()}
    return tree


def _data(tree: Any) -> Any:
    return _map(tree, ProxyValue, lambda v: v.data)


def _is_same(new: Any, old: Any, values: dict[Node, Any]) -> bool:
    """Whether arguments are what the old ones became, with the example values that those had."""
    if isinstance(new, ProxyValue):
        is_known = isinstance(old, Node) and values.get(old) is new
        return is_known and new.data is old.meta.get("val")
    if isinstance(new, torch.nn.Module):
        return isinstance(old, Node) and old.op == "get_attr"
    if isinstance(new, tuple | list):
        is_sequence = isinstance(old, tuple | list) and len(new) == len(old)
        return is_sequence and all(_is_same(n, o, values) for n, o in zip(new, old, strict=True))
    if isinstance(new, dict):
        return new.keys() == old.keys() and all(_is_same(new[k], old[k], values) for k in new)
    return type(new) is type(old) and repr(new) == repr(old)


@runtime_checkable
class ArgSchema(Protocol):
    """An argument of an operator's schema."""

    name: str
    kwarg_only: bool
    type: Any


def map_args(
    op: OpOverload,
    fn: Callable[[Argument, ArgSchema], Argument],
    args: tuple[Argument, ...],
    kwargs: dict[str, Argument],
) -> tuple[tuple[Argument, ...], dict[str, Argument]]:
    """The arguments of a call of `op`, each of which `fn` made of the argument and its schema."""
    new, named = list(args), dict(kwargs)
    for index, schema in enumerate(op._schema.arguments):
        if schema.name in named:
            named[schema.name] = fn(named[schema.name], schema)
        elif not schema.kwarg_only and index < len(new):
            new[index] = fn(new[index], schema)
    return tuple(new), named
