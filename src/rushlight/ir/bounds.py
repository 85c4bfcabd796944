"""Symbolic sizes: their bounds, and which of them follow from the inputs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils._sympy.printers import PythonPrinter
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from rushlight.ir.branches import branches
from rushlight.ir.findings import Finding, refusal
from rushlight.ir.source import in_users_code, source_of
from rushlight.ir.symbols import Origins, origin_text, origins_of
from rushlight.schema.source import Source

aten = torch.ops.aten
_UNBOUNDED = 2**31 - 1  # sizes are int32 in the file
_UNKNOWN = 2**62  # torch gives a size without a bound an upper limit of about 2**63

Size = int | torch.SymInt


@dataclass
class Bounds:
    """The ranges of a program's symbols.

    Attributes:
        ranges: the range of values of each symbol or derived size.
        origins: the node that introduces each symbol that depends on data.
        counts: the range of each symbol that counts elements of a tensor: at most all of them.
    """

    ranges: dict[sympy.Expr, ValueRanges[Any]]
    origins: Origins = field(default_factory=dict)
    counts: dict[sympy.Expr, ValueRanges[Any]] = field(default_factory=dict)
    _cache: dict[sympy.Expr, tuple[int, int | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, program: ExportedProgram) -> Bounds:
        """The bounds that `program` was captured with."""
        ranges = {**_settled(program), **program.range_constraints}
        bounds = cls(ranges, origins_of(program.graph_module))
        for module in (program.graph_module, *branches(program.graph_module)):
            for node in module.graph.nodes:
                bounds._count(node)
        return bounds

    def _count(self, node: Node) -> None:
        """Bound the count in a node's result by the number of elements that are counted; torch sets
        no bound of its own for few elements."""
        counted = _counted(node)
        if not counted:
            return
        shapes = [[self.interval(s)[1] for s in one.meta["val"].shape] for one in counted]
        if any(None in shape for shape in shapes):
            return
        most = ValueRanges(0, math.prod(torch.broadcast_shapes(*shapes)))
        own = free_unbacked_symbols(node.meta["val"])
        for source in node.all_input_nodes:
            own -= free_unbacked_symbols(source.meta["val"])
        for symbol in own:
            self.counts[symbol] = most
            self.ranges[symbol] = self.ranges.get(symbol, most) & most
        self._cache.clear()

    def interval(self, size: Size) -> tuple[int, int | None]:
        """The (least, greatest) value of a size; greatest is None if there is no bound."""
        if isinstance(size, int):
            return size, size
        return self.interval_of(size.node.expr)

    def interval_of(self, expr: sympy.Expr) -> tuple[int, int | None]:
        """Like `interval`, for a size that is given as its expression."""
        if expr.is_Integer:
            return int(expr), int(expr)
        if expr not in self._cache:
            value_range = bound_sympy(expr, self.ranges) & self.ranges.get(
                expr, ValueRanges.unknown()
            )
            low = int(value_range.lower) if value_range.lower > 0 else 0  # may be minus infinity
            finite = value_range.upper < _UNBOUNDED
            self._cache[expr] = (low, int(value_range.upper) if finite else None)
        return self._cache[expr]

    def upper(self, size: Size, what: str, node: Node | None = None) -> int:
        """The greatest value of `size`.

        Args:
            size: the size.
            what: the size's name in the message, such as "size 0 of x".
            node: the node with this size, for the Python line.

        Raises:
            ExportError: if there is no greatest value, so that no memory can be planned.
        """
        _, high = self.interval(size)
        if high is None:
            raise refusal(self.unbounded(size, what, node))
        return high

    def unbounded(self, size: Size, what: str, node: Node | None = None) -> Finding:
        """The finding for a size without a greatest value; the arguments are those of `upper`."""
        source = source_of(node) if node is not None else Source()
        begin = [(s, self.origins[s]) for s in free_unbacked_symbols(size) if s in self.origins]
        if begin:
            symbol, first = begin[0]
            number = isinstance(first.meta.get("val"), torch.SymInt)
            about = origin_text(symbol, first) if number else "a tensor's values"
            return Finding(
                "data-dependent-size",
                f"{what} depends on {about} and has no maximum, so no memory can be planned for it",
                _bound_advice(first),
                source_of(first) if in_users_code(source_of(first).file) else source,
            )
        most = bound_sympy(size.node.expr, self.ranges).upper  # type: ignore[union-attr]
        if most < _UNKNOWN:
            return Finding(
                "not-lowered",
                f"{what} may be as large as {most}, and a size must be below {_UNBOUNDED}",
                "Lower the max of the sizes that it is made of",
                source,
            )
        dim, name = re.fullmatch(r"size (\d+) of (.+)", what).groups()  # type: ignore[union-attr]
        return Finding(
            "missing-bound",
            f"{what} has no maximum, so no memory can be planned for it",
            f'Give it one: dynamic_shapes={{"{name}": {{{dim}: Dim("size", max=64)}}}}, or '
            f"Dim.AUTO(max=64)",
            source,
        )

    def describe_number(self, number: torch.SymInt) -> dict[str, Any]:
        """An integer input as the contract stores it; it needs no bound and may be negative."""
        expr = number.node.expr
        value_range = bound_sympy(expr, self.ranges)
        low = int(value_range.lower) if value_range.lower > -(2**63) else -(2**63)
        high = int(value_range.upper) if value_range.upper < 2**63 - 1 else 2**63 - 1
        key = "sym" if expr.is_Symbol else "expr"
        return {"min": low, "max": high, key: PythonPrinter().doprint(expr)}

    def describe(self, size: Size, what: str, node: Node | None = None) -> int | dict[str, Any]:
        """A size as the contract stores it: an int, or its range and symbol or expression."""
        low, high = self.interval(size)
        if low == high:
            return low
        expr = size.node.expr  # type: ignore[union-attr]
        key = "sym" if expr.is_Symbol else "expr"
        return {"min": low, "max": self.upper(size, what, node), key: PythonPrinter().doprint(expr)}


def _counted(node: Node) -> list[Node]:
    """The tensors whose true, nonzero or distinct elements the size of the result counts."""
    counting = (aten.nonzero.default, aten.masked_select.default, aten._unique2.default)
    if node.target in counting or _all_consecutive(node):
        return list(node.all_input_nodes)
    if node.target is aten.index.Tensor:
        indices: Any = node.args[1]
        masks = [i for i in indices if i is not None and i.meta["val"].dtype == torch.bool]
        return masks if len(masks) == 1 else []
    return []


def _all_consecutive(node: Node) -> bool:
    """Whether the node is a `unique_consecutive` over all elements, not along one dimension."""
    return node.target is aten.unique_consecutive.default and node.args[3:] in ((), (None,))


def _bound_advice(first: Node) -> str:
    """Advice on how to bound a size that depends on the value of `first`."""
    if not isinstance(first.meta.get("val"), torch.Tensor):
        return "Say how large it may be: n = x.item(); torch._check(n >= 0); torch._check(n <= 64)"
    if getattr(first.target, "overloadpacket", None) is aten.repeat_interleave:
        return (
            "Give the size of the result, torch.repeat_interleave(x, repeats, output_size=n), or "
            "say how large it may be: torch._check(result.shape[0] <= 64)"
        )
    return "Say how large it may be: torch._check(result.shape[0] <= 64)"


def _settled(program: ExportedProgram) -> dict[sympy.Expr, ValueRanges[Any]]:
    """Derived sizes that a guard fixes to one number.

    Their intervals do not show it: a reshape's size is often a quotient of other sizes.
    """
    modes = (getattr(n.meta.get("val"), "fake_mode", None) for n in program.graph.nodes)
    environment = next((mode.shape_env for mode in modes if mode is not None), None)
    settled = {}
    for guard in getattr(environment, "guards", None) or ():
        if isinstance(guard.expr, sympy.Eq):
            for size, number in (guard.expr.args, guard.expr.args[::-1]):
                if number.is_Integer and not size.is_Integer:
                    settled[size] = ValueRanges(number, number)
    return settled


def input_sizes(program: ExportedProgram) -> list[Size]:
    """The sizes of a program's input tensors, and its integer inputs."""
    sizes: list[Size] = []
    for _, value in _inputs(program):
        if isinstance(value, torch.Tensor):
            sizes += value.shape
        elif isinstance(value, torch.SymInt):
            sizes.append(value)
    return sizes


def _inputs(program: ExportedProgram) -> Iterator[tuple[str, Any]]:
    """The names of a program's user inputs, and their example values in the graph."""
    values = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
    for spec in program.graph_signature.input_specs:
        name = getattr(spec.arg, "name", "")
        if spec.kind == InputKind.USER_INPUT:
            yield name, values.get(name)


def example_outside(program: ExportedProgram) -> str | None:
    """The message for a size whose example value is outside its range; None if there is none.

    Torch captures such a program if another size follows from this one.
    """
    bounds = Bounds.of(program)
    for name, value in _inputs(program):
        for dim, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            if isinstance(size, int) or not size.node.expr.is_Symbol or size.node.hint is None:
                continue
            low, high = bounds.interval(size)
            if size.node.hint < low or (high is not None and size.node.hint > high):
                return (
                    f"size {dim} of {name} is {size.node.hint} in the example inputs, but may be "
                    f"from {low}{'' if high is None else f' to {high}'} only"
                )
    return None


def told_symbols(sizes: Iterable[Any]) -> set[sympy.Symbol]:
    """The symbols whose values follow from a call's inputs: each is a size itself, or the only
    unknown symbol of a derived size.

    Args:
        sizes: the sizes of the inputs, and the integers among them.
    """
    expressions = [size.node.expr for size in sizes if isinstance(size, torch.SymInt)]
    told = {e for e in expressions if e.is_Symbol}
    for expression in expressions:
        unknown = expression.free_symbols - told
        if len(unknown) == 1:
            told |= unknown
    return told
