"""Signatures: what a method takes and returns, for people."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from rushlight.runtime.contract import Contract, Dim, Value
from rushlight.runtime.tree import Tree


@dataclass(frozen=True, repr=False)
class Signature:
    """What a method takes and returns; its repr is one readable line.

    Attributes:
        method: the method's name.
        inputs: flattened, in order; each with `.name`, `.kind`, `.dtype`, `.shape` (dims with
            `.min` and `.max`), `.value`.
        outputs: flattened, in order; the same.
        parameters: names for positional arguments and keywords.
        relations: conditions between inputs, as text: "size 0 of x == size 0 of y".
        weak: the program carries no contract: names and exact ranges are not known.
        in_spec, out_spec: the structures of the arguments, (args, kwargs), and of the result.
    """

    method: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    parameters: tuple[str, ...]
    relations: tuple[str, ...]
    weak: bool
    in_spec: Tree
    out_spec: Tree

    @classmethod
    def of(cls, method: str, contract: Contract) -> Signature:
        """The signature that a contract describes."""
        return cls(
            method,
            contract.inputs,
            contract.outputs,
            contract.parameters,
            (*_ties(contract), *(r.text for r in contract.relations)),
            contract.weak,
            contract.in_spec,
            contract.out_spec,
        )

    def __repr__(self) -> str:
        result = _shown(self.out_spec, iter(self.outputs))
        text = f"{self.method}({', '.join(self._arguments())}) -> {result}"
        if self.relations:
            text += f"  where {' and '.join(self.relations)}"
        return text


    def _arguments(self) -> Iterator[str]:
        """Each as "name: form"; a value by itself has its own name."""
        args, kwargs = self.in_spec.children
        parts = [*args.children, *kwargs.children]
        names = list(self.parameters[: len(args.children)])
        names += [f"args[{i}]" for i in range(len(names), len(args.children))]
        names += map(str, kwargs.keys)
        values = iter(self.inputs)
        for name, part in zip(names, parts, strict=True):
            if part.kind == "leaf":
                yield str(next(values))
            else:
                yield f"{name}: {_shown(part, values)}"


def _shown(tree: Tree, values: Iterator[Value]) -> str:
    """A structure as it is written in Python, with forms in the place of values."""
    if tree.kind == "leaf":
        return str(replace(next(values), name=""))
    if tree.kind == "none":
        return "None"
    parts = [_shown(child, values) for child in tree.children]
    if tree.kind == "list":
        return f"[{', '.join(parts)}]"
    if tree.kind == "tuple":
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    if tree.kind == "dict":
        pairs = zip(map(_key, tree.keys), parts, strict=True)
        return f"{{{', '.join(f'{key}: {part}' for key, part in pairs)}}}"
    fields = ", ".join(f"{key}={part}" for key, part in zip(tree.keys, parts, strict=True))
    return f"{tree.name or 'object'}({fields})"


def _key(key: Any) -> str:
    return json.dumps(key, ensure_ascii=False) if isinstance(key, str) else repr(key)


def _ties(contract: Contract) -> list[str]:
    """What shared symbols and derived sizes say, in terms of the inputs."""
    places = [
        (f"size {d} of {v.name}", dim) for v in contract.inputs for d, dim in enumerate(v.shape)
    ]
    places += [(v.name, v.range) for v in contract.inputs if v.range is not None]
    first: dict[str, str] = {}
    ties = []
    for place, dim in places:
        if dim.symbol and first.setdefault(dim.symbol, place) != place:
            ties.append(f"{place} == {first[dim.symbol]}")
    return ties + [_derived(place, dim, first) for place, dim in places if dim.expression]


def _derived(place: str, dim: Dim, first: dict[str, str]) -> str:
    assert dim.expression is not None
    text = re.sub(
        r"[A-Za-z_]\w*",
        lambda m: f"({first[m[0]]})" if m[0] in first else m[0],
        dim.expression.text,
    )
    return f"{place} == {text}"
