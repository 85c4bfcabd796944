"""Finished methods with ExecuTorch's specs, and their plans by passes of the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch.export import ExportedProgram
from torch.fx import Node
from torch.utils import _pytree as pytree

from rushlight.errors import Code, ExportError
from rushlight.exir.planning.memory_pass import MemoryPlanningPass
from rushlight.exir.planning.nodes import update_all_tensors_lifetime
from rushlight.exir.specs import TensorSpec, ViewSpec, spec_from_ours
from rushlight.ir import spec as ours
from rushlight.ir.alloc import view
from rushlight.lower import LoweredMethod
from rushlight.lower.show import shown_program
from rushlight.plan import Block, BlockId, check_plan
from rushlight.plan.methods import arenas, lifetimes, unplanned_outputs


def with_executorch_specs(
    program: ExportedProgram,
) -> dict[ours.TensorSpec, TensorSpec]:
    """Put ExecuTorch's specs, with lifetimes, into a shown program; returns them by ours."""
    made: dict[ours.TensorSpec, TensorSpec] = {}

    def of(spec: Any) -> Any:
        if not isinstance(spec, ours.TensorSpec):
            return spec
        if spec.storage not in made:
            made[spec.storage] = spec_from_ours(spec.storage)
        return made[spec.storage]

    for node in program.graph.nodes:
        own = node.meta.get("spec")
        if node.op == "output":
            node.meta["spec"] = pytree.tree_map(_spec_of_value, node.args[0])
        elif node.target is view and own is not None:
            base = of(own)
            same = base.nbytes() == own.nbytes and base.is_dynamic_shape_tensor == own.dynamic
            node.meta["spec"] = ViewSpec(base, own.shape) if same else base
        elif own is not None:
            node.meta["spec"] = pytree.tree_map(of, own)
    update_all_tensors_lifetime(program.graph_module, program.graph_signature)
    return made


def _spec_of_value(value: Any) -> Any:
    return value.meta.get("spec") if isinstance(value, Node) else None


def plan_by_passes(
    methods: Mapping[str, LoweredMethod], passes: Mapping[str, MemoryPlanningPass]
) -> None:
    """Place the tensors of methods by passes of the user's; sets specs' places and the arenas.

    Args:
        methods: by name.
        passes: the pass of each of them.

    Raises:
        ExportError: a plan cannot be used.
    """
    for one in passes.values():
        one.forget_methods()
    programs = {name: shown_program(method) for name, method in methods.items()}
    specs = {name: with_executorch_specs(program) for name, program in programs.items()}
    for name, program in programs.items():
        if not passes[name].alloc_graph_output:
            _place_shared_outputs(
                program, {specs[name][s] for s in unplanned_outputs(methods[name])}
            )
        result = passes[name].run(program.graph_module, program.graph_signature)
        program.graph_module.meta.update(result.graph_module.meta)
    for one in dict.fromkeys(passes.values()):
        one.run_multimethod()
    for name, method in methods.items():
        for own, planned in specs[name].items():
            own.mem_id, own.mem_offset = planned.mem_id or 0, planned.mem_offset or 0
        for node in method.graph.nodes:
            spec = node.meta.get("spec")
            if isinstance(spec, ours.TensorSpec) and spec.alias_of is not None:
                spec.mem_id, spec.mem_offset = spec.storage.mem_id, spec.storage.mem_offset
        sizes = programs[name].graph_module.meta["non_const_buffer_sizes"][1:]
        method.arenas = arenas(method, sizes)
        _check(method, passes[name])


def _place_shared_outputs(program: ExportedProgram, unplanned: set[TensorSpec]) -> None:
    """Hide from a pass that outputs are that share memory with other values, which need it."""
    output = program.graph.output_node()
    output.meta["spec"] = pytree.tree_map(
        lambda spec: spec if spec in unplanned else None, output.meta["spec"]
    )


def _check(method: LoweredMethod, planning: MemoryPlanningPass) -> None:
    """Check the plan as our own planner's are checked."""
    spans = lifetimes(method, planning.options())
    unplaced = [s.name for s in spans if not s.mem_id]
    if unplaced and planning.alloc_mutable_buffers:
        raise ExportError(
            f"{type(planning).__name__} gave no place to {', '.join(unplaced)}: its algorithm must "
            f"set mem_id and mem_offset of each spec that it is given",
            code=Code.INVALID_STATE,
            where=method.name,
        )
    if planning.allow_lifetime_and_storage_overlap:
        return
    names = {spec: f"{spec.name}, value {i}" for i, spec in enumerate(spans)}
    blocks = [
        Block(names[spec], spec.nbytes, start, end, spec.mem_id, alignment=1)
        for spec, (start, end) in spans.items()
        if spec.mem_id
    ]
    offsets: dict[BlockId, int] = {names[spec]: spec.mem_offset for spec in spans}
    check_plan(blocks, offsets, dict(enumerate(method.arenas, 1)))
