"""Checking a quantised program fused operator by fused operator, each on eager's own inputs.

A value halfway between two integers may be rounded to either, and a deep model can amplify that
without limit: its results then say nothing about the program. So the graph is cut wherever a value
is quantised. Each piece gets the inputs that eager computed, the pieces are lowered like the model
and run by the runtime, and each quantised result may differ from eager's by one unit.

The whole program may then depart from eager as far as eager departs from itself when as many of its
values are rounded the other way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node

from rushlight.capture import capture
from rushlight.check.eager import as_after_loading, clone, flat_inputs
from rushlight.check.large_weights import RowInterpreter
from rushlight.check.tolerance import Tolerance, as_array, difference
from rushlight.ir.quantized_values import affine_of, dequantizes, quantizes
from rushlight.ir.source import source_of
from rushlight.schema.source import Source

_Array = np.ndarray[Any, np.dtype[Any]]
Runs = Callable[[ExportedProgram, Sequence[Any]], list[Any]]
"""Lowers a captured program, runs it in the runtime on flat inputs, and returns flat results."""

_ONE_UNIT = Tolerance(units=1)  # of values that the graph quantises
_CHOSEN = Tolerance(relative=5e-2)  # of products whose inputs are quantised dynamically
_SAMPLES = ((1, 0), (-1, 0), (1, 1))  # (sign, shift) of the noise in other runs of eager
_SHARE = 1e-3  # of the values at each cut that are rounded the other way in any case
_FACTOR = 4.0  # how much further one choice of roundings may lead than another


@dataclass(frozen=True)
class Fault:
    """The place where a program departs from eager further than roundings explain.

    Attributes:
        text: a sentence.
        source: the user's line; empty if no single operator is to blame.
        backend: the id of the backend that computes it; "" if none does, or any may.
    """

    text: str
    source: Source
    backend: str = ""


def fault_in_quantised(
    program: ExportedProgram,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    got: Sequence[Any],
    run: Runs,
) -> Fault | None:
    """The fault of a quantised program whose results depart from eager's; None if roundings explain
    them.

    Args:
        program: the captured program, with calls that quantise.
        args, kwargs: the inputs.
        got: the finished program's results for them.
        run: runs the program's pieces.
    """
    flat = flat_inputs(program, args, kwargs)
    whole = _Whole(program, flat)
    pieces, recorded = whole.pieces()
    results = run(pieces, [*flat, *recorded])
    noise = {}
    for node, wanted, result in zip(whole.cuts, recorded, results, strict=False):
        tolerance = _ONE_UNIT if quantizes(node) else _CHOSEN
        reason = difference(result, wanted, tolerance)
        if reason is not None:
            return _fault_of(node, reason)
        noise[node] = _error(result, wanted)
    exact = [v for v in whole.results if isinstance(v, torch.Tensor)]
    for i, (wanted, result) in enumerate(zip(exact, results[len(recorded) :], strict=True)):
        reason = difference(result, wanted, _CHOSEN)
        if reason is not None:
            return Fault(
                f"The part that computes output {i} departs on eager's own inputs: {reason}",
                Source(),
            )
    return _unexplained(whole, got, noise)


def amplifies_roundings(
    program: ExportedProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any], allowed: float
) -> bool:
    """Whether rounding some values the other way changes a quantised program's results by more than
    the share `allowed` of their magnitude."""
    whole = _Whole(program, flat_inputs(program, args, kwargs))
    whole.run()
    others = whole.rounded_otherwise({})
    return any(not _departure(results, whole.results) <= allowed for results in others)


def _unexplained(whole: _Whole, got: Sequence[Any], noise: Mapping[Node, _Array]) -> Fault | None:
    """The fault if other roundings do not explain the results, else None."""
    departs = _departure(got, whole.results)
    most = max(_departure(results, whole.results) for results in whole.rounded_otherwise(noise))
    if departs <= _FACTOR * most:
        return None
    return Fault(
        f"Each of its {len(whole.cuts)} fused operators computes what eager does on eager's own "
        f"inputs, but the whole departs by {departs:.2g} of its magnitude, and other roundings "
        f"of its values explain {most:.2g}",
        Source(),
    )


def _fault_of(node: Node, reason: str) -> Fault:
    computed = node.all_input_nodes[0] if quantizes(node) else node
    source = source_of(computed)
    return Fault(
        f"The fused operator that ends with {computed.name} ({computed.target}) departs on eager's "
        f"own inputs{f', at {source}' if source.file else ''}: {reason}"
        + (", allowed is one unit" if quantizes(node) else ""),
        source,
    )


class _Whole:
    """The reference of a quantised program: its graph, run by eager.

    Args:
        program: the captured program.
        flat: its flat inputs.

    Attributes:
        cuts: the last nodes of the fused operators, in order.
        results: eager's flat results.
    """

    def __init__(self, program: ExportedProgram, flat: Sequence[Any]) -> None:
        self._program = program
        self._flat = flat
        module = program.module(check_guards=False)
        assert isinstance(module, GraphModule)
        self._module = module
        self.cuts = list(_cuts(module.graph))
        self.results: list[Any] = []

    def pieces(self) -> tuple[ExportedProgram, list[torch.Tensor]]:
        """A program of all pieces side by side, and the values that eager computes at each cut.
        These are its inputs after the model's own, and its results before the model's own."""
        recorded: dict[Node, torch.Tensor] = {}

        def record(node: Node, value: torch.Tensor) -> torch.Tensor:
            recorded[node] = value.clone()
            return value

        self.run(record)
        values = [recorded[node] for node in self.cuts]
        module = GraphModule(self._module, _in_pieces(self._module.graph, self.cuts))
        return capture(module, (*clone(self._flat), *clone(values))), values

    def run(
        self, change: Callable[[Node, torch.Tensor], torch.Tensor] = lambda node, value: value
    ) -> None:
        """Compute the results, with the values at the cuts replaced by `change`."""
        self.results = self._run(change)

    def rounded_otherwise(self, noise: Mapping[Node, _Array]) -> Iterator[list[Any]]:
        """Eager's results with other roundings at the cuts: those of the pieces, the opposite ones,
        and the same at other elements; each with some more elements changed."""
        for sign, places in _SAMPLES:
            yield self._run(_Rounding(noise, sign, places).change)

    def _run(self, change: Callable[[Node, torch.Tensor], torch.Tensor]) -> list[Any]:
        with as_after_loading(self._program):
            interpreter = _Changing(self._module, set(self.cuts), change)
            results = interpreter.run(*clone(self._flat), enable_io_processing=False)
            return pytree.tree_leaves(clone(results))


class _Changing(RowInterpreter):
    """Runs a graph in which the values of some nodes are replaced."""

    def __init__(
        self,
        module: GraphModule,
        nodes: set[Node],
        change: Callable[[Node, torch.Tensor], torch.Tensor],
    ) -> None:
        super().__init__(module)
        self._nodes = nodes
        self._change = change

    def run_node(self, n: Node) -> Any:
        value = super().run_node(n)
        return self._change(n, value) if n in self._nodes else value


def _cuts(graph: Graph) -> Iterator[Node]:
    """The last nodes of fused operators: values that are quantised, and products whose inputs are
    quantised dynamically."""
    fixed: set[Node] = set()  # computed from constants alone
    products: set[Node] = set()
    for node in graph.nodes:
        inputs = node.all_input_nodes
        if node.op == "get_attr" or (node.op == "call_function" and fixed.issuperset(inputs)):
            fixed.add(node)
        elif node.op != "call_function" or not isinstance(node.meta.get("val"), torch.Tensor):
            continue
        elif quantizes(node) and not _is_chosen(node):
            yield node
        elif dequantizes(node) and _is_chosen(node):
            products.add(_product_of(node))
        if node in products:
            yield node


def _is_chosen(node: Node) -> bool:
    affine = affine_of(node)
    return affine is not None and affine.chosen is not None


def _product_of(node: Node) -> Node:
    """The call that computes with a dequantised value: the next one with more than one input."""
    while len(node.users) == 1:
        [user] = node.users
        if user.op != "call_function" or not isinstance(user.meta.get("val"), torch.Tensor):
            break
        node = user
        if len(node.all_input_nodes) > 1:
            break
    return node


def _in_pieces(graph: Graph, cuts: Sequence[Node]) -> Graph:
    """A copy whose cuts are results, and in which the users of a cut read a new input instead."""
    pieces = Graph()
    values: dict[Node, Node] = {}
    for node in graph.find_nodes(op="placeholder"):
        values[node] = pieces.node_copy(node)
    inputs = {node: pieces.placeholder(f"input_{node.name}") for node in cuts}
    ends = []
    for node in graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        values[node] = pieces.node_copy(node, values.__getitem__)
        if node in inputs:
            ends.append(values[node])
            # A copy, since later calls may write it in place.
            values[node] = pieces.call_function(torch.ops.aten.clone.default, (inputs[node],))
    returned = [n for n in pytree.tree_leaves(graph.output_node().args[0]) if isinstance(n, Node)]
    tensors = [n for n in returned if isinstance(n.meta.get("val"), torch.Tensor)]
    pieces.output((*ends, *(values[n] for n in tensors)))
    return pieces


class _Rounding:
    """One choice of roundings.

    Args:
        noise: the pieces' values minus eager's, where they are known.
        sign: 1 or -1, the factor of the noise.
        places: how far the noise is shifted among the elements.
    """

    def __init__(self, noise: Mapping[Node, _Array], sign: int, places: int) -> None:
        self._noise, self._sign, self._places = noise, sign, places
        self._generator = np.random.default_rng(0)

    def change(self, node: Node, value: torch.Tensor) -> torch.Tensor:
        """The value at a cut with these roundings."""
        exact = as_array(value)
        noise = self._noise.get(node, np.zeros_like(exact))
        own = np.roll(noise.reshape(-1) * self._sign, self._places).reshape(noise.shape)
        moved = exact + own + self._more(node, value)
        return torch.from_numpy(_within(node, moved)).to(value.dtype)

    def _more(self, node: Node, value: torch.Tensor) -> _Array:
        """One unit up or down for some of the integers; for real numbers a little noise for all."""
        shape, draw = tuple(value.shape), self._generator
        if quantizes(node):
            changes: _Array = draw.choice((-1, 1), shape)
            return np.where(draw.random(shape) < _SHARE, changes, 0)
        finite = value[value.isfinite()]
        magnitude = float(finite.double().square().mean().sqrt()) if finite.numel() else 0.0
        return draw.standard_normal(shape) * (_SHARE * magnitude)


def _within(node: Node, values: _Array) -> Any:
    """Integers, clamped to the range that the call quantises to; real numbers as they are."""
    affine = affine_of(node) if quantizes(node) else None
    if affine is None or isinstance(affine.low, Node) or isinstance(affine.high, Node):
        return values
    return np.clip(values, affine.low, affine.high)


def _departure(got: Sequence[Any], wanted: Sequence[Any]) -> float:
    """The norm of the difference of all results, relative to the norm of the finite values of
    `wanted`."""
    pairs = [
        (one, other)
        for one, other in zip(got, wanted, strict=True)
        if isinstance(other, torch.Tensor)
    ]
    noise = sum(float(np.square(_error(one, other)).sum()) for one, other in pairs)
    values = [as_array(other).astype(np.float64) for _, other in pairs]
    signal = sum(float(np.square(value[np.isfinite(value)]).sum()) for value in values)
    return float(np.sqrt(noise / signal)) if signal else float(np.sqrt(noise))


def _error(got: Any, wanted: Any) -> _Array:
    """The difference of values: 0 where both are the same infinity or NaN, infinite where only one
    of them is finite."""
    one, other = (as_array(value).astype(np.float64) for value in (got, wanted))
    with np.errstate(invalid="ignore"):
        error = one - other
    is_same = (one == other) | (np.isnan(one) & np.isnan(other))
    is_finite = np.isfinite(one) & np.isfinite(other)
    return np.where(is_same, 0.0, np.where(is_finite, error, np.inf))
