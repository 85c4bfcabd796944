"""Helpers of the compiler's tests: small captured programs, and graphs as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Graph

from rushlight.capture import capture
from rushlight.edge.to_edge import to_core_aten


class Function(torch.nn.Module):
    """A function as a module, so that it can be captured."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def captured(function: Callable[..., Any] | torch.nn.Module, *args: Any) -> ExportedProgram:
    """`function` captured on `args`, in the ATen dialect."""
    model = function if isinstance(function, torch.nn.Module) else Function(function)
    return capture(model.eval(), args)


def core(function: Callable[..., Any] | torch.nn.Module, *args: Any) -> ExportedProgram:
    """`function` captured and decomposed; the program is the test's own to change."""
    return to_core_aten(captured(function, *args))


def operators(graph: Graph) -> list[str]:
    """The targets of a graph's calls in order, without their namespace: "add.Tensor"."""
    return [
        str(n.target).removeprefix("aten.")
        for n in graph.nodes
        if n.op == "call_function" and hasattr(n.target, "_schema")
    ]


def run(program: ExportedProgram, *args: Any) -> Any:
    """Run a program whose graph a test has changed."""
    program.graph_module.recompile()
    values = []
    user = iter(args)
    for spec in program.graph_signature.input_specs:
        if spec.target is None:
            values.append(next(user))
        elif spec.target in program.state_dict:
            values.append(program.state_dict[spec.target])
        else:
            values.append(program.constants[spec.target])
    return program.graph_module(*values)
