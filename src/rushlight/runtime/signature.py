"""Signatures: what a method takes and returns, for people."""

from __future__ import annotations

from dataclasses import dataclass

from rushlight.runtime.contract import Contract, Value


@dataclass(frozen=True, repr=False)
class Signature:
    """What a method takes and returns; its repr is one readable line.

    Attributes:
        method: the method's name.
        inputs: flattened, in order; each with `.name`, `.kind`, `.dtype`, `.shape` (dims with
            `.min` and `.max`), `.value`.
        outputs: flattened, in order; the same.
        parameters: names for positional arguments and keywords.
        relations: conditions between inputs, as text.
        weak: the program carries no contract: names and exact ranges are not known.
    """

    method: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    parameters: tuple[str, ...]
    relations: tuple[str, ...]
    weak: bool

    @classmethod
    def of(cls, method: str, contract: Contract) -> Signature:
        """The signature that a contract describes."""
        return cls(
            method,
            contract.inputs,
            contract.outputs,
            contract.parameters,
            tuple(r.text for r in contract.relations),
            contract.weak,
        )

    def __repr__(self) -> str:
        outputs = ", ".join(map(str, self.outputs))
        if len(self.outputs) != 1:
            outputs = f"({outputs})"
        text = f"{self.method}({', '.join(map(str, self.inputs))}) -> {outputs}"
        if self.relations:
            text += f"  where {' and '.join(self.relations)}"
        return text
