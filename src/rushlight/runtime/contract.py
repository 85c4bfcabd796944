"""Shape contracts: the names, dtypes, ranges of sizes and structures of a method's values.

A program of ours carries its contract as named data (`rushlight/contract`): names, ranges of sizes,
relations between them, and the structures of inputs and results in eager. For a program from
elsewhere a weaker contract is made from its tensors (`Contract.weak`): every size up to its bound.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rushlight.errors import Code, LoadError
from rushlight.runtime import tree as trees
from rushlight.runtime.expression import Expression
from rushlight.runtime.tree import Tree

Json = Any

KEY = "rushlight/contract"
VERSION = 1
_INT64 = 2**63
_KINDS = ("tensor", "int", "float", "bool", "str", "none")


@dataclass(frozen=True)
class Dim:
    """The values that a size, or an integer input, may have.

    Attributes:
        min, max: the range, both inclusive.
        symbol: dims with the same symbol are equal in one call; "" if there is none.
        expression: computes the size from other dims' symbols; None if there is none.
    """

    min: int
    max: int
    symbol: str = ""
    expression: Expression | None = None

    def __str__(self) -> str:
        if self.max >= _INT64 - 1:
            return "any" if self.min <= -_INT64 else f"{self.min} or more"
        return str(self.min) if self.min == self.max else f"{self.min}..{self.max}"


@dataclass(frozen=True)
class Value:
    """An input or an output.

    Attributes:
        name: the flattened path of an input ("x", "batch['ids']"); "" for an output.
        kind: "tensor", "int", "float", "bool", "str", "none", or a list kind of an output.
        dtype: a tensor's dtype, by its name in NumPy and torch.
        shape: a tensor's shape.
        value: a scalar's value at export.
        fixed: whether a scalar input must have `value`.
        range: the range of an integer that is not fixed.
    """

    name: str
    kind: str
    dtype: str = ""
    shape: tuple[Dim, ...] = ()
    value: Any = None
    fixed: bool = False
    range: Dim | None = None

    @property
    def label(self) -> str:
        """An input's name in messages: "input 'x'", or "input 0" if the program has no names."""
        return self.name if self.name.startswith("input ") else f"input {self.name!r}"

    @property
    def type_text(self) -> str:
        """Its type without its name: "float32[2, 1..8]", "int = 3"."""
        if self.kind == "tensor":
            return f"{self.dtype}[{', '.join(map(str, self.shape))}]"
        if self.kind == "none":
            return "None"
        if self.fixed:
            return f"{self.kind} = {self.value!r}"
        if self.range is None or str(self.range) == "any":
            return self.kind
        return f"{self.kind} in {self.range}"

    def __str__(self) -> str:
        return f"{self.name}: {self.type_text}" if self.name else self.type_text


@dataclass(frozen=True)
class Relation:
    """A condition on sizes that holds in every call."""

    expression: Expression
    text: str


@dataclass(frozen=True)
class Contract:
    """The contract of one method.

    Attributes:
        inputs: flattened, in order.
        outputs: flattened, in order.
        parameters: names for the positional arguments and keywords, in order.
        in_spec: tuple(tuple(args…), dict(kwargs…)).
        out_spec: the structure of the result.
        weak: made from the program's tensors alone.
        positional: how many parameters, from the first, may be given by position.
    """

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    parameters: tuple[str, ...]
    in_spec: Tree
    out_spec: Tree
    relations: tuple[Relation, ...] = ()
    weak: bool = False
    symbols: Mapping[str, int] = field(default_factory=dict)
    positional: int = 2**31

    @property
    def needs_python(self) -> bool:
        """Whether a call must be checked for more than ranges and equal symbols."""
        return bool(self.relations) or any(
            d.expression is not None for v in self.inputs for d in dims_of(v)
        )

    def input_specs(self) -> list[Any]:
        """The checks of the extension for each input: a list of (min, max, symbol number) for a
        tensor, one such tuple for an int that may vary, True for another scalar that may vary, or
        None."""
        specs: list[Any] = []
        for v in self.inputs:
            if v.kind == "tensor":
                specs.append([self._range(d) for d in v.shape])
            elif v.kind in ("int", "float", "bool") and not v.fixed:
                specs.append(self._range(v.range) if v.range else True)
            else:
                specs.append(None)
        return specs

    def to_program(self, values: Sequence[Any]) -> list[Any]:
        """Checked inputs as the program takes them: None in the place of strings, which a program
        cannot take."""
        return [
            None if spec.kind == "str" else value
            for spec, value in zip(self.inputs, values, strict=True)
        ]

    def _range(self, dim: Dim) -> tuple[int, int, int]:
        return dim.min, dim.max, self.symbols.get(dim.symbol, -1)


def dims_of(value: Value) -> tuple[Dim, ...]:
    """The sizes of a tensor, or the range of an integer."""
    return value.shape if value.range is None else (value.range,)


def symbols_of(dim: Dim) -> set[str]:
    """The symbols in a size: its own, or those of its expression."""
    known = set() if dim.expression is None else set(dim.expression.symbols)
    return known | {dim.symbol} if dim.symbol else known


def read_contracts(data: bytes) -> dict[str, Json]:
    """Contracts by method, from the named data.

    Raises:
        LoadError: if the data is damaged or of another version.
    """
    import json

    try:
        document = json.loads(data)
        if document["version"] != VERSION:
            raise ValueError(f"version {document['version']!r} is unknown")
        methods = document["methods"]
        if not isinstance(methods, dict):
            raise ValueError("no methods")
        return methods
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _bad("the program", error) from error


def _bad(method: str, error: object) -> LoadError:
    return LoadError(
        f"the shape contract in the program cannot be read ({error}): export the model again",
        code=Code.INVALID_PROGRAM,
        where=method,
    )


def make_contract(method: str, json: Json | None, meta: Mapping[str, Any]) -> Contract:
    """The contract of one method.

    Args:
        method: its name.
        json: its entry in the named data; None if the program has none.
        meta: the method's entry in the program (`_core.Program.meta`).

    Raises:
        LoadError: if the contract cannot be read or contradicts the program.
    """
    if json is None:
        return _weak(meta)
    try:
        contract = _parse(json)
        _compare(contract, meta)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _bad(method, error) from error
    return replace(contract, symbols=_number_symbols(contract))


def check_form(contract: Contract, name: str, meta: Mapping[str, Any]) -> None:
    """Check that a form of a method takes and returns the values of the method's contract.

    Args:
        contract: the method's.
        name: the form's name in the program, for the message.
        meta: the form's entry in the program (`_core.Program.meta`).

    Raises:
        LoadError: if its values are others.
    """
    try:
        _compare(contract, meta)
    except ValueError as error:
        raise LoadError(
            f"form {name!r} does not have the values of its method ({error}): export the model "
            f"again",
            code=Code.INVALID_PROGRAM,
        ) from error


def _number_symbols(contract: Contract) -> dict[str, int]:
    names = {d.symbol for v in contract.inputs for d in dims_of(v) if d.symbol}
    return {name: i for i, name in enumerate(sorted(names))}


def _parse(json: Json) -> Contract:
    inputs = tuple(_value(v) for v in json["inputs"])
    outputs = tuple(replace(_value(v), fixed=False) for v in json["outputs"])
    in_spec, out_spec = trees.parse(json["in_spec"]), trees.parse(json["out_spec"])
    if in_spec.n_leaves != len(inputs) or out_spec.n_leaves != len(outputs):
        raise ValueError("the structures do not fit the values")
    parts = [c.kind for c in in_spec.children]
    if in_spec.kind != "tuple" or parts != ["tuple", "dict"]:
        raise ValueError("in_spec is not (args, kwargs)")
    return Contract(
        inputs,
        outputs,
        tuple(str(p) for p in json["parameters"]),
        in_spec,
        out_spec,
        tuple(_relations(json.get("relations", []))),
        bool(json.get("weak", False)),
        positional=int(json.get("positional", in_spec.n_leaves)),
    )


def _relations(json: Json) -> list[Relation]:
    relations = []
    for r in json:
        try:
            relations.append(Relation(Expression(str(r["expr"])), str(r.get("text", r["expr"]))))
        except ValueError as error:
            warnings.warn(
                f"a relation between inputs is not checked before a call: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
    return relations


def _value(json: Json) -> Value:
    kind = json["kind"]
    name = str(json.get("name", ""))
    if kind not in _KINDS:
        raise ValueError(f"kind {kind!r} is unknown")
    if kind == "tensor":
        return Value(name, kind, str(json["dtype"]), tuple(_dim(d) for d in json["shape"]))
    value = json.get("value")
    fixed = "value" in json
    if fixed and type(value).__name__ != kind:
        raise ValueError(f"{name}: {value!r} is not a value of kind {kind}")
    span = None
    if kind == "int" and not fixed:
        span = _dim(json.get("range", {"min": -_INT64, "max": _INT64 - 1}))
    return Value(name, kind, value=value, fixed=fixed, range=span)


def _dim(json: Json) -> Dim:
    low, high = (json, json) if isinstance(json, int) else (json["min"], json["max"])
    if not (isinstance(low, int) and isinstance(high, int) and -_INT64 <= low <= high < _INT64):
        raise ValueError(f"not a range: {json!r:.60}")
    if isinstance(json, int):
        return Dim(low, high)
    expression = Expression(json["expr"]) if "expr" in json else None
    return Dim(low, high, str(json.get("sym", "")), expression)


def _compare(contract: Contract, meta: Mapping[str, Any]) -> None:
    """Check that a contract lists the program's own values, since only these are verified."""
    for what, values, metas in (
        ("input", contract.inputs, meta["inputs"]),
        ("output", contract.outputs, meta["outputs"]),
    ):
        if len(values) != len(metas):
            raise ValueError(f"{len(values)} {what}s, the program has {len(metas)}")
        for i, (value, m) in enumerate(zip(values, metas, strict=True)):
            same = value.kind == m["kind"] or (value.kind == "str" and m["kind"] == "none")
            if same and value.kind == "tensor":
                same = value.dtype == m["dtype"] and len(value.shape) == len(m["sizes"])
            if not same:
                listed = _kind_text(value.kind, value.dtype, value.shape)
                actual = _kind_text(m["kind"], m.get("dtype", ""), m.get("sizes", ()))
                raise ValueError(f"{what} {i} is {listed}, in the program {actual}")


def _kind_text(kind: str, dtype: str, sizes: Sequence[Any]) -> str:
    return f"{dtype} tensor of rank {len(sizes)}" if kind == "tensor" else kind


def _weak(meta: Mapping[str, Any]) -> Contract:
    inputs = [_weak_value(m) for m in meta["inputs"]]
    outputs = tuple(replace(_weak_value(m), fixed=False) for m in meta["outputs"])
    in_text, out_text = meta["containers"]
    in_spec = trees.parse_pytree(in_text)
    if not _is_call_spec(in_spec, len(inputs)):
        in_spec = _call_spec(len(inputs))
    assert in_spec is not None
    args, kwargs = in_spec.children
    parameters = tuple(f"input {i}" for i in range(len(args.children)))
    parameters += tuple(str(k) for k in kwargs.keys)
    names: list[str] = []
    for name, child in zip(parameters, args.children + kwargs.children, strict=True):
        _paths(child, name, names)
    out_spec = trees.parse_pytree(out_text)
    if out_spec is None or out_spec.n_leaves != len(outputs):
        single = len(outputs) == 1
        out_spec = trees.LEAF if single else trees.flat("tuple", len(outputs))
    named = tuple(replace(v, name=n) for v, n in zip(inputs, names, strict=True))
    return Contract(named, outputs, parameters, in_spec, out_spec, weak=True)


def _is_call_spec(spec: Tree | None, n: int) -> bool:
    return (
        spec is not None
        and spec.kind == "tuple"
        and [c.kind for c in spec.children] == ["tuple", "dict"]
        and spec.n_leaves == n
    )


def _call_spec(n: int) -> Tree:
    return Tree("tuple", (), (trees.flat("tuple", n), Tree("dict", n_leaves=0)), n_leaves=n)


def _paths(node: Tree, path: str, names: list[str]) -> None:
    if node.kind == "leaf":
        names.append(path)
    for i, child in enumerate(node.children):
        suffix = f"[{node.keys[i]!r}]" if node.kind == "dict" else f"[{i}]"
        _paths(child, path + suffix, names)


def _weak_value(meta: Mapping[str, Any]) -> Value:
    kind = meta["kind"]
    if kind != "tensor":
        fixed = kind in ("int", "float", "bool", "str")
        return Value("", kind, value=meta.get("value"), fixed=fixed)
    sizes: Sequence[int] = meta["sizes"]
    low = 0 if meta["dynamic"] else None
    shape = tuple(Dim(s if low is None else low, s) for s in sizes)
    return Value("", kind, meta["dtype"], shape)
