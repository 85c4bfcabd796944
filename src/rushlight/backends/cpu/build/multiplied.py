"""Constants that linear layers multiply by, in any part of a file: a table that is one of them is
stored once, as the layer reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

Place = tuple[Any, ...]
"""Where a tensor's elements lie."""


def place_of(tensor: torch.Tensor) -> Place:
    """Where a tensor's elements lie: the same for tensors that share them."""
    return tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride()


def weights_of_linear(parts: Iterable[ExportedProgram]) -> frozenset[Place]:
    """Where the constants lie that are weights of linear layers.

    Args:
        parts: of all methods, whose patterns are fused.
    """
    return frozenset(place for part in parts for place in _weights(part))


def _weights(part: ExportedProgram) -> Iterator[Place]:
    tensors = {**part.constants, **part.state_dict}
    constants = {
        spec.arg.name: tensors[str(spec.target)]
        for spec in part.graph_signature.input_specs
        if spec.kind != InputKind.USER_INPUT
    }
    target = torch.ops.aten.linear.default
    for node in part.graph.find_nodes(op="call_function", target=target):
        if node.args[1].name in constants:
            yield place_of(constants[node.args[1].name])
