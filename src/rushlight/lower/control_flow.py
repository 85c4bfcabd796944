"""Higher-order operators become labels and jumps in the one sequence of a method.

    cond         jump if false to else; true branch; jump to end; else: false branch; end:
    while_loop   carried = inputs; head: condition; jump if false to end; body; carried = results;
                 jump to head; end:
    map, scan    the same, counting over the first dimension; each iteration takes one slice of
                 every input and appends one slice to every stacked output

Results of a branch or an iteration are written to tensors and numbers that belong to the operator.
So its users read one place whichever branch ran, and a second run starts with fresh values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch.fx import GraphModule, Node

from rushlight.ir.alloc import alloc
from rushlight.ir.control import copy_index, jump_if_false, label, move, variable
from rushlight.ir.findings import Finding, refusal
from rushlight.ir.source import source_of
from rushlight.ir.spec import TensorSpec
from rushlight.lower.method import spec_of
from rushlight.lower.specs import Specs

aten = torch.ops.aten


class Lowering(Protocol):
    """The interface of the writer of the Out graph.

    Attributes:
        written: all nodes so far except placeholders, in order.
        specs: makes specs.
    """

    written: list[Node]
    specs: Specs

    def emit(self, like: Node, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
        """Append a call that comes from the Edge node `like`."""

    def alloc(self, like: Node, spec: TensorSpec) -> Node:
        """Append the allocation of a tensor."""

    def erase(self, node: Node) -> None:
        """Remove a node without users."""

    def inline(self, module: GraphModule, operands: Sequence[Any], call: Node) -> list[Any]:
        """Append the nodes of an inner graph of `call`; returns its results."""


def lower_control_flow(lowering: Lowering, node: Node, args: tuple[Any, ...]) -> list[Any]:
    """Lower one call of a higher-order operator.

    Args:
        lowering: the writer of the Out graph.
        node: the call, in the Edge graph.
        args: its arguments in the Out graph; inner graphs as modules.

    Returns:
        The results in the Out graph: tensors and numbers.

    Raises:
        ExportError: if the operator is not cond, while_loop, map or scan.
    """
    rule = _RULES.get(str(node.target))
    if rule is None:
        raise refusal(
            Finding(
                "unsupported-operator",
                f"the higher-order operator {node.target} cannot run on a device",
                "Write it with torch.cond, while_loop, map or scan, which can",
                source_of(node),
            )
        )
    return rule(_Flow(lowering, node), *args)


class _Flow:
    """Writes the nodes of one call."""

    def __init__(self, lowering: Lowering, node: Node) -> None:
        self.lowering = lowering
        self.node = node
        self._name = f"{node.name}_{len(lowering.written)}"  # a graph may be inlined twice
        value = node.meta["val"]
        self.values: Sequence[Any] = value if isinstance(value, list | tuple) else [value]

    def label(self, name: str) -> str:
        """The whole name of a label of this call."""
        return f"{self._name}.{name}"

    def emit(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        """Append a call."""
        node = self.lowering.emit(self.node, target, args, kwargs)
        node.meta["edge_node"] += ".flow"  # it computes no value of the Edge graph
        return node

    def compute(self, target: Any, *args: Any, like: Any) -> Node:
        """Append a call whose result is a number of the type of `like`."""
        node = self.emit(target, *args)
        node.meta["val"] = like
        return node

    def inline(self, module: GraphModule, *operands: Any) -> list[Any]:
        """Append the nodes of an inner graph; returns its results."""
        return self.lowering.inline(module, operands, self.node)

    def places(self, values: Sequence[Any]) -> list[Node]:
        """Places for results: a tensor or a variable for every example value."""
        return [
            self.lowering.alloc(self.node, self.lowering.specs.of_value(self.node, value))
            if isinstance(value, torch.Tensor)
            else self.variable(value)
            for value in values
        ]

    def variable(self, like: Any) -> Node:
        """A place for a number."""
        return self.compute(variable, like=like)

    def write(self, value: Any, into: Node) -> None:
        """Append the copy of a tensor or a number into its place."""
        spec = spec_of(into)
        if spec is None:
            self.emit(move, value, into)
            return
        copy = self.emit(_CLONE, value, dim_order=list(spec.dim_order), out=into)
        copy.meta["outs"] = [into]

    def copied(self, value: Node) -> Node:
        """A copy of a tensor or a number."""
        spec = spec_of(value)
        if spec is None:
            new = self.variable(value.meta["val"])
        else:
            own = replace(spec, alias_of=None, name=f"{value.name}_copy")
            new = self.lowering.alloc(self.node, own)
        self.write(value, new)
        return new

    def branch(self, module: GraphModule, operands: Sequence[Any], into: Sequence[Node]) -> None:
        """Inline a graph whose results are written to `into`."""
        start = len(self.lowering.written)
        values = self.inline(module, *operands)
        for i, place in enumerate(into):
            value = values[i]
            if self._is_replaced(value, place, start):
                values = [place if v is value else v for v in values]
            else:
                self.write(value, place)

    def _is_replaced(self, value: Any, place: Node, start: int) -> bool:
        """Make the node that computes `value` write to `place`, if possible; True if so."""
        nodes = self.lowering.written[start:]
        spec, wanted = _tensor_spec(value), spec_of(place)
        if spec is None or wanted is None or value not in nodes or value.target is not alloc:
            return False
        layout = (spec.dtype, spec.shape, spec.dim_order, spec.alias_of)
        same = layout == (wanted.dtype, wanted.shape, wanted.dim_order, None)
        viewed = any(s is not spec and s.storage is spec for n in nodes if (s := spec_of(n)))
        if not same or viewed or (spec.dynamic and not wanted.dynamic):
            return False
        value.replace_all_uses_with(place)
        for node in nodes:
            if "outs" in node.meta:
                node.meta["outs"] = [place if o is value else o for o in node.meta["outs"]]
        self.lowering.erase(value)
        return True

    @contextmanager
    def loop(self, kept: Sequence[Node]) -> Iterator[str]:
        """While active, appended nodes are the body of a loop, which ends by a jump to the yielded
        label.

        Args:
            kept: places that keep their values from one iteration to the next.
        """
        written = self.lowering.written
        head, end = self.label("head"), self.label("end")
        at = self.emit(label, head)
        start = len(written)
        yield end
        before = dict.fromkeys(kept)
        inside = set(written[start:])
        for node in written[start:]:
            outer = (n for n in node.all_input_nodes if n not in inside)
            before.update((n, None) for n in outer if (s := spec_of(n)) and not s.storage.const)
        at.args = (head, list(before))
        self.emit(jump_if_false, False, head, list(before))
        self.emit(label, end)

    def carry(self, values: Sequence[Any], into: Sequence[Node]) -> None:
        """Write an iteration's results to the places that the next one reads, as if at once."""
        taken = {_place(p) for p in into}
        moves = []
        for value, place in zip(values, into, strict=True):
            if value is place:
                continue
            shared = isinstance(value, Node) and _place(value) in taken
            moves.append((self.copied(value) if shared else value, place))
        for value, place in moves:
            self.write(value, place)


def _tensor_spec(value: Any) -> TensorSpec | None:
    return spec_of(value) if isinstance(value, Node) else None


def _place(node: Node) -> Any:
    """A key that is equal for nodes that share their memory."""
    spec = spec_of(node)
    return node if spec is None else spec.storage


def _cond(
    flow: _Flow, condition: Any, on_true: GraphModule, on_false: GraphModule, operands: Any = ()
) -> list[Any]:
    if isinstance(condition, bool):
        return flow.inline(on_true if condition else on_false, *operands)
    results = flow.places(flow.values)
    flow.emit(jump_if_false, condition, flow.label("else"))
    flow.branch(on_true, operands, results)
    flow.emit(jump_if_false, False, flow.label("end"))
    flow.emit(label, flow.label("else"))
    flow.branch(on_false, operands, results)
    flow.emit(label, flow.label("end"))
    return results


def _while_loop(
    flow: _Flow, condition: GraphModule, body: GraphModule, carried: Any, extra: Any = ()
) -> list[Any]:
    state = flow.places(flow.values)
    for value, place in zip(carried, state, strict=True):
        flow.write(value, place)
    with flow.loop(state) as end:
        flow.emit(jump_if_false, flow.inline(condition, *state, *extra)[0], end)
        flow.carry(flow.inline(body, *state, *extra), state)
    return state


def _map(flow: _Flow, body: GraphModule, mapped: Any, extra: Any = ()) -> list[Any]:
    return _scan(flow, body, (), mapped, extra)


def _scan(flow: _Flow, body: GraphModule, carried: Any, scanned: Any, extra: Any = ()) -> list[Any]:
    state = flow.places(flow.values[: len(carried)])
    for value, place in zip(carried, state, strict=True):
        flow.write(value, place)
    stacked = [_stacked(flow, value) for value in flow.values[len(carried) :]]
    length = _length(flow, scanned[0])
    counter = flow.variable(0)
    flow.emit(move, 0, counter)
    with flow.loop([*state, *stacked]) as end:
        flow.emit(jump_if_false, flow.compute(operator.lt, counter, length, like=True), end)
        slices = [_slice(flow, value, counter) for value in scanned]
        results = flow.inline(body, *state, *slices, *extra)
        for whole, value in zip(stacked, results[len(state) :], strict=True):
            flow.emit(copy_index, whole, _contiguous(flow, value), counter).meta["outs"] = [whole]
        flow.carry(results[: len(state)], state)
        flow.emit(move, flow.compute(operator.add, counter, 1, like=1), counter)
    return [*state, *stacked]


def _stacked(flow: _Flow, value: torch.Tensor) -> Node:
    """The tensor to which the slices `value[i]` are appended; it grows, so it is dynamic."""
    spec = replace(flow.lowering.specs.of_value(flow.node, value), dynamic=True)
    whole = flow.lowering.alloc(flow.node, spec)
    if flow.lowering.specs.least(value.shape[0]) == 0:
        rest = value.shape[1:]
        if not all(isinstance(size, int) for size in rest):
            raise refusal(
                Finding(
                    "not-lowered",
                    f"{flow.node.target} may get an empty input, and the other sizes of its "
                    f"result, {list(rest)}, are not known then",
                    "Give the dimension that it runs over min=1",
                    source_of(flow.node),
                )
            )
        empty = flow.emit(aten.empty.out, [0, *rest], out=whole)
        empty.meta["outs"] = [whole]
    return whole


def _length(flow: _Flow, value: Node) -> Any:
    spec = spec_of(value)
    assert spec is not None
    if not spec.dynamic:
        return spec.shape[0]
    return flow.compute(aten.sym_size.int, value, 0, like=1)


def _slice(flow: _Flow, value: Node, index: Node) -> Node:
    """`value[index]`."""
    spec = spec_of(value)
    assert spec is not None
    shape = spec.shape[1:]
    part = replace(
        spec, shape=shape, dim_order=tuple(range(len(shape))), const=False, alias_of=None
    )
    out = flow.lowering.alloc(flow.node, part)
    flow.emit(aten.select_copy.int_out, value, 0, index, out=out).meta["outs"] = [out]
    return out


def _contiguous(flow: _Flow, value: Node) -> Node:
    spec = spec_of(value)
    assert spec is not None
    if spec.contiguous:
        return value
    own = replace(spec, dim_order=tuple(range(len(spec.shape))), const=False, alias_of=None)
    new = flow.lowering.alloc(flow.node, own)
    flow.write(value, new)
    return new


_CLONE = torch.ops.dim_order_ops._clone_dim_order.out
_RULES: dict[str, Callable[..., list[Any]]] = {
    "cond": _cond,
    "while_loop": _while_loop,
    "map_impl": _map,
    "scan": _scan,
}
