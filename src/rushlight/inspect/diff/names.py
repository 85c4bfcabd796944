"""One name for an operator, whatever runs it."""

from __future__ import annotations


def operator_of(name: str) -> str:
    """The name "aten.add" for "aten::add.out" and "aten.add.Tensor"."""
    namespace, dot, rest = name.replace("::", ".").partition(".")
    return f"{namespace}{dot}{rest.partition('.')[0]}"
