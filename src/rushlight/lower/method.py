"""A method in the Out dialect, for the planner and the emitter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, Node

from rushlight.ir.spec import TensorSpec


@dataclass
class Constant:
    """A parameter, unwritten buffer or lifted tensor: its qualified name and its data."""

    name: str
    tensor: torch.Tensor


@dataclass
class Buffer:
    """A buffer that the method writes: its qualified name and its value at export."""

    name: str
    initial: torch.Tensor


@dataclass
class LoweredMethod:
    """One method as a graph of out-variant calls on planned tensors.

    Attributes:
        name: the method's name.
        graph: Out dialect; every tensor node has its `TensorSpec` in `meta["spec"]`.
        program: the Edge program from which it was lowered (not changed).
        inputs: user-input placeholders in order.
        constants, buffers: the other placeholders.
        outputs: user outputs in order: nodes, or plain Python values.
        arenas: bytes per memory id, from 1; set by the planner.
        plan_stats: (strategy, lower bound) per memory id; set by the planner.
    """

    name: str
    graph: Graph
    program: ExportedProgram
    inputs: list[Node]
    constants: dict[Node, Constant]
    buffers: dict[Node, Buffer]
    outputs: list[Any]
    arenas: list[int] = field(default_factory=list)
    plan_stats: dict[int, tuple[str, int]] = field(default_factory=dict)


def spec_of(node: Node) -> TensorSpec | None:
    """The spec of a node that is one tensor."""
    spec = node.meta.get("spec")
    return spec if isinstance(spec, TensorSpec) else None
