"""What the emitter gives, by ExecuTorch's names: a program that holds its constants itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from rushlight.edge import ExecutorchBackendConfig
from rushlight.emit import EmittedProgram, emit
from rushlight.ir.spec import raw_bytes
from rushlight.lower.show import method_of
from rushlight.pipeline import EdgeProgramManager
from rushlight.pipeline.edge_manager import Programs, by_name
from rushlight.record.maps import DelegateMetadata, maps_of
from rushlight.schema import program as fb
from rushlight.schema.codec import Buffer
from rushlight.serialize.segments import as_bytes


@dataclass
class EmitterOutput:
    """A program and the data beside it.

    Attributes:
        program: the schema's dataclasses; constants are in `constant_buffer`, of which the first
            stands for "none", and payloads in `backend_delegate_data`.
        debug_handle_map: {method: {instruction: debug handle, or those of its delegate's nodes}}.
        method_to_delegate_debug_id_map: {method: {instruction: its backend, and the debug handles
            of each of its places}}.
        instruction_id_to_num_outs_map: {method: {instruction: how many values its delegate gives}}.
        mutable_data: the first contents of planned tensors; None: all are zero.
        external_constant_buffer: the constants in data files; equal ones are there once.
        external_constant_map: {data file: {name: index into external_constant_buffer}}.
    """

    program: fb.Program
    debug_handle_map: dict[str, dict[int, int | list[int]]]
    method_to_delegate_debug_id_map: dict[str, dict[int, DelegateMetadata]]
    instruction_id_to_num_outs_map: dict[str, dict[int, int]]
    mutable_data: list[fb.Buffer] | None
    external_constant_buffer: list[Buffer] = field(default_factory=list)
    external_constant_map: dict[str, dict[str, int]] = field(default_factory=dict)


def whole_program(emitted: EmittedProgram) -> fb.Program:
    """The program with its constants and payloads, which are views, not copies."""
    plans = [
        replace(plan, delegates=[_inline(delegate) for delegate in plan.delegates])
        for plan in emitted.program.execution_plan
    ]
    return replace(
        emitted.program,
        execution_plan=plans,
        constant_buffer=_buffers(emitted.constants),
        backend_delegate_data=[fb.BackendDelegateInlineData(data) for data in emitted.payloads],
    )


def _inline(delegate: fb.BackendDelegate) -> fb.BackendDelegate:
    place = fb.BackendDelegateDataReference(fb.DataLocation.INLINE, delegate.processed.index)
    return replace(delegate, processed=place)


def _buffers(data: list[Any]) -> list[fb.Buffer]:
    return [fb.Buffer(b""), *(fb.Buffer(as_bytes(one)) for one in data)]


def emitter_output(emitted: EmittedProgram, program: fb.Program) -> EmitterOutput:
    """What was emitted, in ExecuTorch's form.

    Args:
        emitted: what was emitted.
        program: its `whole_program`.
    """
    maps = maps_of(
        *(program, set(emitted.debug_handles), emitted.debug_handles),
        *(emitted.instruction_nodes, emitted.debug),
    )
    external: list[Buffer] = []
    indices: dict[str, dict[str, int]] = {}
    places: dict[bytes, int] = {}
    for tag, tensors in emitted.external.items():
        for name, tensor in tensors.items():
            data = as_bytes(raw_bytes(tensor))
            place = places.setdefault(sha256(data).digest(), len(external))
            indices.setdefault(tag, {})[name] = place
            if place == len(external):
                external.append(data)
    return EmitterOutput(
        program,
        maps.handles,
        maps.delegates,
        maps.outputs,
        _buffers(emitted.mutable_data) if emitted.mutable_data else None,
        external,
        indices,
    )


def emit_program(
    methods: Programs,
    emit_stacktrace: bool = False,
    prim_getters: Mapping[str, Any] | None = None,
    emit_mutable_buffer_names: bool = False,
) -> EmitterOutput:
    """Emit methods as one program.

    Args:
        methods: programs that an `ExecutorchProgramManager` shows, as they were planned; others
            are lowered and planned first. By name; one alone is `forward`.
        emit_stacktrace: store each instruction's Python line.
        prim_getters: constant methods, by name.
        emit_mutable_buffer_names: store the names of buffers that are written.

    Raises:
        ExportError: a method is no `ExportedProgram`, or cannot be lowered.
    """
    config = ExecutorchBackendConfig(
        emit_stacktrace=emit_stacktrace, emit_mutable_buffer_names=emit_mutable_buffer_names
    )
    lowered = {}
    for name, program in by_name(methods).items():
        method = method_of(program)
        if method is None:
            manager = EdgeProgramManager({name: program}).to_executorch(config)
            method = manager.lowered_method(name)
        lowered[name] = replace(method, name=name)
    emitted = emit(lowered, config, prim_getters)
    return emitter_output(emitted, whole_program(emitted))
