"""Keeps single calls whole through decomposition, even where a table has a rule for the operator.

While torch decomposes, each such call uses a stand-in: an operator with the same schema that is in
no table.
"""

from __future__ import annotations

from collections.abc import Container
from functools import cache
from threading import Lock
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Graph

_NAMESPACE = "rushlight_whole"
_LIB = torch.library.Library(_NAMESPACE, "FRAGMENT")
_ORIGINAL: dict[OpOverload, OpOverload] = {}
_DEFINING = Lock()  # a second definition of an operator is an error


@cache
def _stand_in(target: OpOverload) -> OpOverload:
    schema = target._schema
    name = schema.name.replace("::", "_")
    overload = schema.overload_name or "default"
    text = str(schema)
    _LIB.define(f"{name}_{overload}{text[text.index('(') :]}")
    packet = getattr(getattr(torch.ops, _NAMESPACE), f"{name}_{overload}")
    new: OpOverload = packet.default

    def run(*args: Any, **kwargs: Any) -> Any:
        return target(*args, **kwargs)

    _LIB.impl(f"{name}_{overload}", run, "CompositeExplicitAutograd")
    torch.library.register_fake(new, run, lib=_LIB)
    _ORIGINAL[new] = target
    return new


def hide(graph: Graph, names: Container[str]) -> None:
    """Replace the operators of the named calls by stand-ins, in a graph of the ATen dialect."""
    for node in graph.nodes:
        if node.name in names and isinstance(node.target, OpOverload):
            with _DEFINING:
                node.target = _stand_in(node.target)


def show(program: ExportedProgram) -> None:
    """Replace the stand-ins by the original operators."""
    for node in program.graph.nodes:
        if node.target in _ORIGINAL:
            node.target = _ORIGINAL[node.target]
