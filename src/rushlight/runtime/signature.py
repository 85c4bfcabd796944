"""Signatures: a method's inputs and results as one readable line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rushlight.runtime.contract import Contract, Dim, Value
from rushlight.runtime.tree import Tree, written_arguments


@dataclass(frozen=True, repr=False)
class Signature:
    """A method's inputs and results; its repr is one readable line.

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
        leaves = ((v.name, v.type_text) for v in self.inputs)
        takes = written_arguments(self.in_spec, self.parameters, leaves)
        gives = self.out_spec.written(v.type_text for v in self.outputs)
        text = f"{self.method}({takes}) -> {gives}"
        if self.relations:
            text += f"  where {' and '.join(self.relations)}"
        return text


def _ties(contract: Contract) -> list[str]:
    """The conditions of shared symbols and derived sizes, in terms of the inputs."""
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
