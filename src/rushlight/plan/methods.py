"""Lifetimes of a lowered method's tensors, and the plan written back to their specs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch.fx import Node

from rushlight.edge.config import MemoryPlanningPass
from rushlight.errors import Code, ExportError
from rushlight.ir.alloc import alloc, call_delegate
from rushlight.ir.spec import TensorSpec
from rushlight.lower.method import LoweredMethod, spec_of
from rushlight.plan.block import Block, Plan
from rushlight.plan.planner import plan_memory

_SHARED = 2  # the memory id of buffers that methods share


def lifetimes(method: LoweredMethod, options: MemoryPlanningPass) -> dict[TensorSpec, list[int]]:
    """[first, last] instruction of every tensor to be planned, views counted with their base.

    Inputs live from the start, outputs and mutable buffers to the end, all ends inclusive.
    """
    spans: dict[TensorSpec, list[int]] = {}

    def touch(node: Any, at: int) -> None:
        spec = spec_of(node) if isinstance(node, Node) else None
        if spec is None or spec.storage.const or spec.storage in skipped:
            return
        span = spans.setdefault(spec.storage, [at, at])
        span[0], span[1] = min(span[0], at), max(span[1], at)

    skipped: set[TensorSpec] = set()
    if not options.alloc_graph_input:
        skipped |= {s.storage for n in method.inputs if (s := spec_of(n))}
    if not options.alloc_graph_output:
        skipped |= unplanned_outputs(method)
    for node in method.inputs:
        touch(node, 0)
    calls = [n for n in method.graph.nodes if n.op == "call_function" and n.target is not alloc]
    for at, node in enumerate(calls):
        for used in node.all_input_nodes:
            touch(used, at)
    end = max(len(calls) - 1, 0)
    for node in method.outputs:
        touch(node, end)
    for node in method.buffers:
        touch(node, 0)
        touch(node, end)
    return spans


def unplanned_outputs(method: LoweredMethod) -> set[TensorSpec]:
    """Outputs whose memory the caller provides. An output that shares memory with another value is
    not among them, because that value needs memory even if the caller provides none."""
    unplanned = set()
    views = {s.storage for n in method.graph.nodes if (s := spec_of(n)) and s.alias_of}
    inputs = {s.storage for n in (*method.inputs, *method.buffers) if (s := spec_of(n))}
    for node in method.outputs:
        spec = spec_of(node) if isinstance(node, Node) else None
        if spec is not None and not spec.const and spec not in inputs | views and not spec.alias_of:
            unplanned.add(spec)
    return unplanned


def plan_methods(
    methods: Mapping[str, LoweredMethod], options_of: Mapping[str, MemoryPlanningPass]
) -> None:
    """Place every tensor of every method; sets specs' mem_id and mem_offset and the arenas.

    Raises:
        ExportError: if the user's planner returns a plan in which live tensors overlap.
    """
    shared = _shared_buffers(methods, options_of)
    for name, method in methods.items():
        options = options_of[name]
        spans = lifetimes(method, options)
        own = {s: span for s, span in spans.items() if s not in shared}
        buffers = {spec_of(node) for node in method.buffers}
        for spec in own:
            spec.mem_id = 1 if spec in buffers else _memory_id(name, spec, options, bool(shared))
        plan = _plan(name, own, options)
        for i, spec in enumerate(own):
            spec.mem_offset = plan.offsets[i]
        for node in method.graph.nodes:
            _place_views(node)
        sizes = dict(plan.sizes)
        if shared:
            sizes[_SHARED] = max(s.mem_offset + s.nbytes for s in shared)
        method.arenas = arenas(
            method, [sizes.get(k, 0) for k in range(1, max(sizes, default=1) + 1)]
        )
        method.plan_stats = {k: (plan.strategy, low) for k, low in plan.lower_bound.items()}


def arenas(method: LoweredMethod, sizes: Iterable[int]) -> list[int]:
    """The arenas' sizes with the bytes that delegates may read beyond the end of their tensors."""
    calls = method.graph.find_nodes(op="call_function", target=call_delegate)
    room = max((getattr(call.args[0], "overread", 0) for call in calls), default=0)
    return [size and size + room for size in sizes]


def _memory_id(name: str, spec: TensorSpec, options: MemoryPlanningPass, shares: bool) -> int:
    memory_id = 1 if options.memory_id_of is None else options.memory_id_of(spec)
    if memory_id < 1 or (shares and memory_id == _SHARED):
        taken = f", and {_SHARED} holds the buffers that methods share" if shares else ""
        raise ExportError(
            f"memory_id_of gave {memory_id} for {spec.name} ({spec}): ids count from 1{taken}",
            code=Code.INVALID_ARGUMENT,
            where=name,
        )
    return memory_id


def _place_views(node: Node) -> None:
    spec = spec_of(node)
    if spec is not None and spec.alias_of is not None:
        spec.mem_id, spec.mem_offset = spec.storage.mem_id, spec.storage.mem_offset


def _plan(name: str, spans: Mapping[TensorSpec, list[int]], options: MemoryPlanningPass) -> Plan:
    align = options.alignment
    blocks = [
        Block(i, spec.nbytes, start, end, spec.mem_id, align)
        for i, (spec, (start, end)) in enumerate(spans.items())
    ]
    try:
        return plan_memory(blocks, planner=options.memory_planning_algo)
    except ExportError as error:
        raise ExportError(str(error), code=error.code, where=name) from error


def _shared_buffers(
    methods: Mapping[str, LoweredMethod], options_of: Mapping[str, MemoryPlanningPass]
) -> set[TensorSpec]:
    """Place buffers that methods share in memory id 2, at one offset for one name."""
    offsets: dict[str, int] = {}
    sizes: dict[str, int] = {}
    used = 0
    shared: set[TensorSpec] = set()
    for name, node, buffer in _buffers(methods):
        spec = spec_of(node)
        if spec is None or not options_of[name].share_mutable_buffers:
            continue
        if buffer not in offsets:
            offsets[buffer], sizes[buffer] = used, spec.nbytes
            used += -(-spec.nbytes // options_of[name].alignment) * options_of[name].alignment
        if sizes[buffer] != spec.nbytes:
            raise ExportError(
                f"buffer {buffer!r} has {spec.nbytes} bytes in method {name!r} and "
                f"{sizes[buffer]} in another: methods share only buffers of one shape",
                code=Code.INVALID_ARGUMENT,
                where=name,
            )
        spec.mem_id, spec.mem_offset = _SHARED, offsets[buffer]
        shared.add(spec)
    return shared


def _buffers(methods: Mapping[str, LoweredMethod]) -> Iterable[tuple[str, Node, str]]:
    for name, method in methods.items():
        for node, buffer in method.buffers.items():
            yield name, node, buffer.name
