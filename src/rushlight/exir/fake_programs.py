"""Exported programs without the memory of their weights."""

from __future__ import annotations

import copy

from torch._guards import detect_fake_mode
from torch.export import ExportedProgram

from rushlight.errors import Code, ExportError


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
    module = copy.deepcopy(real_exported_program.graph_module)
    return ExportedProgram(
        root=module,
        graph=module.graph,
        graph_signature=copy.deepcopy(real_exported_program.graph_signature),
        state_dict={
            name: mode.from_tensor(tensor, static_shapes=True)
            for name, tensor in real_exported_program.state_dict.items()
        },
        range_constraints=copy.deepcopy(real_exported_program.range_constraints),
        module_call_graph=copy.deepcopy(real_exported_program.module_call_graph),
        constants=real_exported_program.constants,
        verifiers=[real_exported_program.verifier],
    )


def update_to_real_program(
    fake_exported_program: ExportedProgram, real_exported_program: ExportedProgram
) -> None:
    """Give a program of `get_fake_program` the weights of the program that it was made from."""
    fake_exported_program.state_dict.update(real_exported_program.state_dict)
