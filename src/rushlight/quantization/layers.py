"""Names of layers, constants by name, and saving the state of a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch.fx import GraphModule, Node

from rushlight.ir.source import in_users_code, source_of


def layer_of(node: Node) -> str:
    """A layer's name for messages: its module, operator and line."""
    if node.op == "get_attr":
        return str(node.target)
    source = source_of(node)
    what = node.name if node.op != "call_function" else str(node.target).removesuffix(".default")
    place = f" of {source.module}" if source.module else ""
    line = f" ({source})" if in_users_code(source.file) else ""
    return f"{what}{place}{line}"


def attribute_of(model: GraphModule, name: str) -> torch.Tensor:
    """The parameter or buffer "blocks.0.weight"."""
    owner, _, attribute = name.rpartition(".")
    value: torch.Tensor = getattr(model.get_submodule(owner), attribute)
    return value


@contextmanager
def unchanged(buffers: Iterable[torch.Tensor]) -> Iterator[None]:
    """Restore the values of buffers afterwards; they may be the state of the user's model."""
    held = [(buffer, buffer.clone()) for buffer in buffers]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in held:
                buffer.copy_(value)
