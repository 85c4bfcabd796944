"""A program of a submodule that nodes of a program were moved into."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from torch.fx import GraphModule, Node

from rushlight.errors import Code, ExportError
from rushlight.exir.submodules import arrange_graph_outputs
from rushlight.ir.branches import results_of
from rushlight.ir.programs import make_program
from rushlight.partition.partitioner import TAG


def arrange_graph_placeholders(
    gm: GraphModule, owning_program: ExportedProgram, tag: str
) -> GraphModule:
    """Put the parameters, then the buffers, of a partition before its other inputs.

    Args:
        gm: the partition; its graph is changed, and it is returned.
        owning_program: the program that the partition was taken from.
        tag: what the constants that belong to the partition have as `meta["delegation_tag"]`.
    """
    signature = owning_program.graph_signature

    def place(node: Node) -> int:
        if node.meta.get(TAG) == tag and node.name in signature.inputs_to_parameters:
            return 0
        return 1 if node.meta.get(TAG) == tag and node.name in signature.inputs_to_buffers else 2

    inputs = sorted(gm.graph.find_nodes(op="placeholder"), key=place)  # stable
    first = next(iter(gm.graph.nodes))
    for node in inputs:
        if node is not first:
            first.prepend(node)
        else:
            first = node.next
    gm.recompile()
    return gm


def create_exported_program_from_submodule(
    submodule: GraphModule,
    owning_program: ExportedProgram,
    tag: str,
    call_module_node: Node,
    is_submodule: bool,
) -> tuple[ExportedProgram, dict[str, InputSpec], dict[str, OutputSpec]]:
    """Make a program of a partition, which has the constants and buffers that are tagged for it.

    Args:
        submodule: of `create_submodule_from_nodes`; its inputs and outputs are put in order.
        owning_program: the program that the partition was taken from.
        tag: what the constants that belong to the partition have as `meta["delegation_tag"]`.
        call_module_node: the call of the submodule.
        is_submodule: whether that call is in a branch of control flow, which has no constants that
            could be taken.

    Returns:
        The program, and what it has of the other program's inputs and outputs: `{node's name:
        InputSpec}` and `{node's name: OutputSpec}`.

    Raises:
        ExportError: the new value of a buffer that the partition has is also another output.
    """
    arrange_graph_placeholders(submodule, owning_program, tag)
    signature = owning_program.graph_signature
    known = {} if is_submodule else {spec.arg.name: spec for spec in signature.input_specs}
    inputs: list[InputSpec] = []
    taken: dict[str, InputSpec] = {}
    for node in submodule.graph.find_nodes(op="placeholder"):
        spec = known.get(node.name)
        if spec is None or spec.kind == InputKind.USER_INPUT or node.meta.get(TAG) != tag:
            inputs.append(InputSpec(InputKind.USER_INPUT, _argument(node), None))
            continue
        taken[node.name] = spec
        arg = TensorArgument(node.name)
        inputs.append(InputSpec(spec.kind, arg, spec.target, spec.persistent))
    written = {} if is_submodule else _written(owning_program, call_module_node, taken)
    outputs = []
    for i, value in enumerate(results_of(submodule.graph)):
        kind, target = OutputKind.USER_OUTPUT, None
        if i in written:
            kind, target = OutputKind.BUFFER_MUTATION, written[i][1].target
        outputs.append(OutputSpec(kind, _argument(value), target))
    arrange_graph_outputs(submodule, outputs, call_module_node)
    held = {**owning_program.constants, **owning_program.state_dict}
    program = make_program(
        owning_program,
        submodule,
        ExportGraphSignature(inputs, outputs),
        {str(spec.target): held[str(spec.target)] for spec in taken.values()},
    )
    return program, taken, dict(written.values())


def _argument(value: Any) -> Any:
    if not isinstance(value, Node):
        return ConstantArgument("", value)
    is_number = isinstance(value.meta.get("val"), torch.SymInt)
    return (SymIntArgument if is_number else TensorArgument)(value.name)


def _written(
    program: ExportedProgram, call: Node, taken: dict[str, InputSpec]
) -> dict[int, tuple[str, OutputSpec]]:
    """The results of a call that are new values of buffers that it has: {place: (the node that
    selects it, the program's output)}."""
    buffers = {spec.target for spec in taken.values() if spec.kind == InputKind.BUFFER}
    specs: dict[Node, list[OutputSpec]] = {}
    for spec, value in zip(
        program.graph_signature.output_specs, results_of(program.graph), strict=True
    ):
        if isinstance(value, Node):
            specs.setdefault(value, []).append(spec)
    found: dict[int, tuple[str, OutputSpec]] = {}
    for user in call.users:
        mine = specs.get(user, [])
        new = [s for s in mine if s.kind == OutputKind.BUFFER_MUTATION and s.target in buffers]
        if user.target is not operator.getitem or not new:
            continue
        if len(mine) > 1:
            raise ExportError(
                f"the new value of the buffer {new[0].target}, which belongs to the partition, is "
                f"also another output of the program: leave the buffer untagged",
                code=Code.INVALID_ARGUMENT,
            )
        place: Any = user.args[1]
        found[place] = (user.name, new[0])
    return found
