"""Exported programs without the memory of their weights."""

from __future__ import annotations

import copy

from torch._guards import detect_fake_mode
from torch.export import ExportedProgram

from rushlight.errors import Code, ExportError
from rushlight.ir.programs import copy_program


def get_fake_program(real_exported_program: ExportedProgram) -> ExportedProgram:
    """A copy of a program whose weights are fake tensors; constants are those of the program.

    Raises:
        ExportError: the example values of its inputs are no fake tensors.
    """
    graph = real_exported_program.graph
    mode = detect_fake_mode([n.meta.get("val") for n in graph.find_nodes(op="placeholder")])
    if mode is None:
        raise ExportError(
            "the program's inputs have no fake tensors in meta['val']: capture it with "
            "torch.export.export",
            code=Code.INVALID_ARGUMENT,
        )
    fake = copy_program(real_exported_program)
    fake._module_call_graph = copy.deepcopy(real_exported_program.module_call_graph)
    fake._constants = real_exported_program.constants
    fake._state_dict = {
        name: mode.from_tensor(tensor, static_shapes=True)
        for name, tensor in real_exported_program.state_dict.items()
    }
    return fake


def update_to_real_program(
    fake_exported_program: ExportedProgram, real_exported_program: ExportedProgram
) -> None:
    """Give a program of `get_fake_program` the weights of the program that it was made from."""
    fake_exported_program.state_dict.update(real_exported_program.state_dict)
