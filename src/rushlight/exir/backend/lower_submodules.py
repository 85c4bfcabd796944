"""Lowers the calls of submodules that partitions were moved into, all those of one backend."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from torch._higher_order_ops.executorch_call_delegate import executorch_call_delegate
from torch.export import ExportedProgram
from torch.export.graph_signature import InputSpec, OutputKind, OutputSpec
from torch.fx import Graph, GraphModule, Node

from rushlight.edge.to_edge import finish
from rushlight.ir.branches import results_of
from rushlight.ir.programs import copy_program
from rushlight.partition import LoweredBackendModule
from rushlight.partition.partitioner import TAG
from rushlight.partition.to_backend import find_backend, lowered_module, run_preprocess

_WRITTEN_HERE = (
    TAG,
    "backend_id",
    "submodule_program",
    "toplevel_input_specs_to_delete",
    "toplevel_output_specs_to_delete",
    "is_submodule",
    "submodule_output_node",
)


def lower_all_submodules_to_backend(
    backend_id: str,
    method_to_submodules_nodes: Mapping[str, Sequence[Node]],
    method_to_tagged_edge_program: Mapping[str, ExportedProgram],
) -> None:
    """Compile partitions, and replace the calls of their submodules by calls of delegates.

    All partitions are given to the backend's `preprocess_multimethod` at once.

    Args:
        backend_id: the backend.
        method_to_submodules_nodes: the calls, by method. Each has as its metadata what
            `create_exported_program_from_submodule` returns, as `submodule_program`,
            `toplevel_input_specs_to_delete` and `toplevel_output_specs_to_delete`; the options of
            the partition, as `compile_spec`; and `is_submodule`.
        method_to_tagged_edge_program: the programs that have the calls, by method; changed.

    Raises:
        ExportError: the backend is unknown, or cannot compile a partition.
    """
    calls = {method: list(nodes) for method, nodes in method_to_submodules_nodes.items()}
    results = run_preprocess(
        find_backend(backend_id),
        {m: [copy_program(n.meta["submodule_program"]) for n in ns] for m, ns in calls.items()},
        {m: [n.meta["compile_spec"] for n in ns] for m, ns in calls.items()},
        {m: [str(n.target) for n in ns] for m, ns in calls.items()},
    )
    for method, nodes in calls.items():
        program = method_to_tagged_edge_program[method]
        for node, result in zip(nodes, results[method], strict=True):
            part = node.meta["submodule_program"]
            module = lowered_module(backend_id, part, node.meta["compile_spec"], result)
            _replace(node, module, part, program)
        finish(program)


def _replace(
    node: Node, module: LoweredBackendModule, part: ExportedProgram, program: ExportedProgram
) -> None:
    """Replace one call of a submodule by a call of its lowered module."""
    graph, owner = node.graph, node.graph.owning_module
    assert isinstance(owner, GraphModule)
    inputs: dict[str, InputSpec] = node.meta["toplevel_input_specs_to_delete"]
    outputs: dict[str, OutputSpec] = node.meta["toplevel_output_specs_to_delete"]
    name = next(n for i in itertools.count() if not hasattr(owner, n := f"lowered_module_{i}"))
    owner.add_module(name, module)
    with graph.inserting_before(node):
        held = graph.get_attr(name)
        passed = [a for a in node.args if not (isinstance(a, Node) and a.name in inputs)]
        call = graph.call_function(executorch_call_delegate, (held, *passed))
    kinds = [spec.kind for spec in part.graph_signature.output_specs]
    returned = [i for i, kind in enumerate(kinds) if kind == OutputKind.USER_OUTPUT]
    values = results_of(part.graph)
    call.meta["val"] = [values[i].meta["val"] for i in returned]
    users = list(node.users)
    node.replace_all_uses_with(call, propagate_meta=False)
    graph.erase_node(node)
    owner.delete_submodule(str(node.target))
    if not node.meta["is_submodule"]:
        _give_away(program, inputs, outputs)
    for user in users:
        if user.target is operator.getitem and user.name not in outputs:
            user.args = (call, returned.index(user.args[1]))  # type: ignore[arg-type]
        elif not user.users:
            graph.erase_node(user)
    owner.recompile()


def _give_away(
    program: ExportedProgram, inputs: Mapping[str, InputSpec], outputs: Mapping[str, OutputSpec]
) -> None:
    """Remove from a program the constants that a partition has, and the new values of buffers."""
    signature, graph = program.graph_signature, program.graph
    for node in graph.find_nodes(op="placeholder"):
        if node.name in inputs and not node.users:
            graph.erase_node(node)
    there = {node.name for node in graph.find_nodes(op="placeholder")}
    gone = inputs.keys() - there
    signature.input_specs[:] = [s for s in signature.input_specs if s.arg.name not in gone]
    kept = {str(spec.target) for spec in signature.input_specs}
    for target in {str(inputs[name].target) for name in gone} - kept:
        program._state_dict.pop(target, None)
        program._constants.pop(target, None)
    written = {spec.target for spec in outputs.values()}
    left: list[tuple[OutputSpec, Any]] = [
        (spec, value)
        for spec, value in zip(signature.output_specs, results_of(graph), strict=True)
        if spec.kind != OutputKind.BUFFER_MUTATION or spec.target not in written
    ]
    signature.output_specs[:] = [spec for spec, _ in left]
    graph.output_node().args = (tuple(value for _, value in left),)


def remove_used_metadata(graph: Graph) -> None:
    """Remove what lowering keeps in the nodes of a graph while it runs."""
    for node in graph.nodes:
        for key in _WRITTEN_HERE:
            node.meta.pop(key, None)
