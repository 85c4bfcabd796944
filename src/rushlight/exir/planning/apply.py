"""Runs an algorithm over a graph, and over the graphs inside it: `apply_algo`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from torch.export.graph_signature import ExportGraphSignature
from torch.fx import GraphModule, Node

from rushlight.errors import Code, ExportNotImplementedError
from rushlight.exir.planning.nodes import (
    collect_specs_from_nodes,
    get_cond_nodes,
    get_map_nodes,
    get_scan_nodes,
    get_while_nodes,
    insert_calls_to_free,
    update_all_tensors_lifetime,
)
from rushlight.exir.specs import TensorSpec
from rushlight.schema.program import DeviceType, NonConstBufferDevice

Algorithm = Callable[..., list[int]]
_Device = tuple[DeviceType, int]
_CPU = (DeviceType.CPU, 0)


def apply_algo(
    algo: Algorithm,
    graph_module: GraphModule,
    alignment: int,
    graph_signature: ExportGraphSignature | None = None,
    alloc_graph_input: bool = True,
    alloc_graph_output: bool = True,
    alloc_mutable_buffers: bool = True,
    enable_non_cpu_memory_planning: bool = False,
) -> list[int]:
    """Place all tensors of a graph and of its branches and bodies.

    `graph_module.meta` gets the sizes of memories, and the devices of those that are not the CPU's.
    A branch's tensors lie at the start of the graph's memories (`input_mem_buffer_sizes`).

    Args:
        algo: writes places into specs, and returns the sizes of memories.
        graph_module: of out-variants, whose nodes have specs.
        alignment: of all offsets.
        graph_signature: tells which inputs are buffers that are written.
        alloc_graph_input, alloc_graph_output, alloc_mutable_buffers: what is placed.
        enable_non_cpu_memory_planning: give each device memories of its own.

    Returns:
        The bytes of each memory; memory 0 has constants.

    Raises:
        ExportNotImplementedError: tensors of devices and memory ids of the user's are mixed.
    """
    update_all_tensors_lifetime(graph_module, graph_signature)
    specs = list(
        collect_specs_from_nodes(
            graph_module.graph.nodes,
            graph_signature,
            ignore_graph_input=not alloc_graph_input,
            ignore_graph_output=not alloc_graph_output,
            ignore_mutable_buffers=not alloc_mutable_buffers,
            do_assertion=False,
        )
    )
    inner = _apply_to_inner_graphs(algo, graph_module, alignment, graph_signature)
    sizes, devices = [0], [_CPU]
    by_device = _by_device(specs, enable_non_cpu_memory_planning)
    for device, own in sorted(by_device.items(), key=lambda item: (item[0] != _CPU, item[0])):
        reserved: Any = inner if device == _CPU else []
        graph_module.input_mem_buffer_sizes = reserved
        # Room for what delegates read beyond the end is added to the arenas of the whole plan.
        planned = algo(alignment, own, graph_module, graph_signature, 0)
        for spec in own:  # the algorithm counts this device's memories from 1
            if spec.mem_id is not None:
                spec.mem_id += len(sizes) - 1
        sizes += planned[1:]
        devices += [device] * (len(planned) - 1)
    if len(sizes) < 2:
        sizes.append(0)
    insert_calls_to_free(graph_module, specs)
    graph_module.meta["non_const_buffer_sizes"] = sizes
    away = [
        NonConstBufferDevice(buffer_idx=i, device_type=kind, device_index=index)
        for i, (kind, index) in enumerate(devices)
        if (kind, index) != _CPU
    ]
    if away:
        graph_module.meta["non_const_buffer_device"] = away
    return sizes


def _by_device(specs: list[TensorSpec], separate: bool) -> dict[_Device, list[TensorSpec]]:
    if not separate:
        return {_CPU: specs}
    groups: dict[_Device, list[TensorSpec]] = defaultdict(list)
    for spec in specs:
        groups[spec.device, spec.device_index].append(spec)
    is_away = any(kind != DeviceType.CPU for kind, _ in groups)
    if is_away and any(spec.mem_id is not None for spec in specs):
        raise ExportNotImplementedError(
            "tensors of other devices are planned in memories of their own, whose ids may be those "
            "that a pass has given to other tensors: leave out memory ids, or "
            "enable_non_cpu_memory_planning",
            code=Code.NOT_SUPPORTED,
        )
    return groups


def _inner_graphs(graph_module: GraphModule) -> Iterator[tuple[Node, bool]]:
    """The nodes of graphs that calls are given, and whether their inputs need places: those of
    bodies of `map` and `scan` are slices."""
    for node in get_cond_nodes(graph_module):
        yield node.args[1], False  # type: ignore[misc]
        yield node.args[2], False  # type: ignore[misc]
    for node in get_while_nodes(graph_module):
        yield node.args[0], False  # type: ignore[misc]
        yield node.args[1], False  # type: ignore[misc]
    for node in (*get_map_nodes(graph_module), *get_scan_nodes(graph_module)):
        yield node.args[0], True  # type: ignore[misc]


def _apply_to_inner_graphs(
    algo: Algorithm,
    graph_module: GraphModule,
    alignment: int,
    graph_signature: ExportGraphSignature | None,
) -> list[int]:
    """The bytes of each memory that the largest inner graph needs; no two run at a time."""
    most: list[int] = []
    for node, alloc_graph_input in _inner_graphs(graph_module):
        module = getattr(graph_module, str(node.target))
        sizes = apply_algo(
            algo, module, alignment, graph_signature, alloc_graph_input=alloc_graph_input
        )
        most += [0] * (len(sizes) - len(most))
        most = [max(a, b) for a, b in zip(most, [*sizes, *[0] * len(most)], strict=False)]
    return most
