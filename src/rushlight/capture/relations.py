"""Relations between inputs: conditions beyond ranges under which a captured program is right.

torch.export records them in two places: guards, as Python text over the inputs
(`L['x'].size()[0] % 8 == 0`), and assertions in the graph. Both become conditions on the symbols of
the contract; those that the ranges imply are left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch.fx import Graph
from torch.utils._sympy.functions import FloorDiv, Max, Min, PythonMod
from torch.utils._sympy.printers import PythonPrinter
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from rushlight.ir.bounds import Bounds, Size, told_symbols
from rushlight.ir.findings import Finding, refusal
from rushlight.ir.symbols import in_words

Relation = dict[str, str]


@dataclass(frozen=True)
class Place:
    """A number that an input determines: one size of a tensor, or an integer.

    Attributes:
        source: how a guard writes it: "L['x'].size()[0]".
        text: its name in messages: "size 0 of x".
        size: its value in the captured program.
    """

    source: str
    text: str
    size: Size


def places_of(paths: Sequence[str], values: Sequence[Any]) -> list[Place]:
    """The places of all inputs, each under every name that torch.export's tracers give it.

    Args:
        paths: the paths of the flattened inputs, from `leaf_paths`.
        values: their example values.
    """
    places = []
    for i, (path, value) in enumerate(zip(paths, values, strict=True)):
        for root in _roots(path, i):
            if isinstance(value, torch.Tensor):
                places += [
                    Place(f"{root}.size()[{d}]", f"size {d} of {path}", size)
                    for d, size in enumerate(value.shape)
                ]
            elif isinstance(value, torch.SymInt):
                places.append(Place(root, path, value))
    return places


def names_of(places: Iterable[Place]) -> dict[str, str]:
    """The names of the symbols that stand alone as the size of a place, with that place's text."""
    names: dict[str, str] = {}
    for place in places:
        if isinstance(place.size, torch.SymInt) and place.size.node.expr.is_Symbol:
            names.setdefault(str(place.size.node.expr), place.text)
    return names


def _roots(path: str, index: int) -> Iterable[str]:
    name, rest = re.fullmatch(r"(\w*)(.*)", path, re.S).groups()  # type: ignore[union-attr]
    yield f"L['{name}']{rest}"
    yield f"L['flat_args'][{index}]"  # of a strict capture
    starred = re.fullmatch(r"(.+)_(\d+)", name)
    if starred is not None:  # one of *args
        yield f"L['{starred[1]}'][{starred[2]}]{rest}"


def relations_of(
    guards: Iterable[str], graph: Graph, places: Sequence[Place], bounds: Bounds
) -> list[Relation]:
    """The relations of one program.

    Args:
        guards: the text of each guard, from torch.export.
        graph: the program's graph, for assertions on sizes of inputs.
        places: the places of the inputs, from `places_of`.
        bounds: the ranges of the program's symbols.

    Returns:
        For each relation `expr`, over the symbols of the contract, and `text`, for messages.

    Raises:
        ExportError: if a guard speaks of something that is no size and no integer of an input.
    """
    by_source = {_normal(place.source): place for place in places}
    names = names_of(places)
    relations: dict[str, Relation] = {}
    for guard in guards:
        relation = _of_guard(guard, by_source, bounds)
        if relation is not None:
            relations.setdefault(relation["expr"], relation)
    told = told_symbols(place.size for place in places)
    for expression in _asserted(graph, told):
        owned = _own(expression)
        if not _implied(owned, bounds):
            text = PythonPrinter().doprint(owned)
            relations.setdefault(text, {"expr": text, "text": in_words(text, names)})
    return list(relations.values())


def _asserted(graph: Graph, told: set[sympy.Symbol]) -> Iterable[sympy.Basic]:
    for node in graph.nodes:
        if node.target is torch.ops.aten._assert_scalar.default:
            value = getattr(node.args[0], "meta", {}).get("val")
            if isinstance(value, torch.SymBool) and value.node.expr.free_symbols <= told:
                yield value.node.expr


def _normal(source: str) -> str:
    return ast.unparse(ast.parse(source, mode="eval"))


class _Places(ast.NodeTransformer):
    """Replaces every place in a guard by a name."""

    def __init__(self, by_source: Mapping[str, Place]) -> None:
        self._by_source = by_source
        self.used: dict[str, Place] = {}

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Subscript | ast.Attribute):
            place = self._by_source.get(ast.unparse(node))
            if place is not None:
                name = f"_{list(self._by_source.values()).index(place)}_"
                self.used[name] = place
                return ast.Name(name, ast.Load())
        return self.generic_visit(node)


def _of_guard(guard: str, by_source: Mapping[str, Place], bounds: Bounds) -> Relation | None:
    names = _Places(by_source)
    tree = names.visit(ast.parse(guard.strip(), mode="eval"))
    written = ast.unparse(tree)
    if re.search(r"\bL\[", written):
        raise refusal(
            Finding(
                "not-lowered",
                f"torch.export found that the model holds only while `{guard}`, which is about "
                f"neither a size nor an integer that is passed in, so no call could be checked",
                "Make the model independent of it",
            )
        )
    sizes = {name: _expression(place.size) for name, place in names.used.items()}
    try:
        owned = _to_sympy(tree.body, sizes)
    except (_OpaqueError, TypeError, ValueError, ZeroDivisionError):
        printer = PythonPrinter()
        symbolic = in_words(written, {n: f"({printer.doprint(s)})" for n, s in sizes.items()})
    else:
        if owned == sympy.true or _implied(owned, bounds):
            return None
        symbolic = PythonPrinter().doprint(owned)
    return {
        "expr": symbolic,
        "text": in_words(written, {n: place.text for n, place in names.used.items()}),
    }


def _own(expression: sympy.Basic) -> sympy.Basic:
    """`expression` over symbols that assume nothing: torch's own count as positive, but a range may
    begin at zero."""
    return expression.xreplace({s: _symbol(s) for s in expression.free_symbols})


def _symbol(symbol: sympy.Basic) -> sympy.Symbol:
    return sympy.Symbol(str(symbol), integer=True)


def _expression(size: Size) -> sympy.Basic:
    return sympy.Integer(size) if isinstance(size, int) else _own(size.node.expr)


def _implied(condition: sympy.Basic, bounds: Bounds) -> bool:
    ranges: dict[sympy.Symbol, ValueRanges[Any]] = {
        _symbol(s): r for s, r in bounds.ranges.items() if s.is_Symbol
    }
    try:
        result = bound_sympy(condition, ranges)
        return bool(result.is_singleton() and result.lower == sympy.true)
    except Exception:  # torch's range analysis does not know every function: nothing is implied
        return False


# Guards as sympy expressions; a guard with other operators stays text.


class _OpaqueError(Exception):
    pass


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: FloorDiv,
    ast.Mod: PythonMod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: sympy.Eq,
    ast.NotEq: sympy.Ne,
    ast.Lt: sympy.Lt,
    ast.LtE: sympy.Le,
    ast.Gt: sympy.Gt,
    ast.GtE: sympy.Ge,
}
_CALLS: dict[str, Callable[..., Any]] = {"max": Max, "min": Min, "abs": sympy.Abs}


def _to_sympy(node: ast.expr, sizes: Mapping[str, sympy.Basic]) -> Any:
    def convert(part: ast.expr) -> Any:
        return _to_sympy(part, sizes)

    if isinstance(node, ast.Constant) and type(node.value) is int:
        return sympy.Integer(node.value)
    if isinstance(node, ast.Name) and node.id in sizes:
        return sizes[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](convert(node.left), convert(node.right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -convert(node.operand)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return sympy.Not(convert(node.operand))
    if isinstance(node, ast.BoolOp):
        joined = sympy.And if isinstance(node.op, ast.And) else sympy.Or
        return joined(*map(convert, node.values))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
        return _COMPARE[type(node.ops[0])](convert(node.left), convert(node.comparators[0]))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS:
        return _CALLS[node.func.id](*map(convert, node.args))
    raise _OpaqueError
