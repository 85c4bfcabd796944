"""Emits lowered methods as one program: values, instructions, constants, debug map."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.utils._pytree as pytree

from rushlight.capture.tree import encode_container
from rushlight.edge.config import ExecutorchBackendConfig
from rushlight.emit.shared import ProgramEmitter
from rushlight.emit.values import MethodEmitter, constant_tensor, scalar_type_number
from rushlight.errors import Code, ExportError
from rushlight.lower.method import LoweredMethod
from rushlight.partition.coverage import coverage
from rushlight.partition.named_data import NamedDataStoreOutput
from rushlight.schema import program as schema
from rushlight.schema.debug import DebugMap


@dataclass
class EmittedProgram:
    """A program and the data outside its flatbuffer.

    Attributes:
        program: the schema's dataclasses.
        constants: bytes of constant i + 1.
        mutable_data: initial bytes of mutable buffer i + 1.
        external: for each external file tag the tensors by qualified name.
        payloads: the payloads of delegates, indexed by `processed.index`.
        named_data: the named data that backends store besides their payloads.
        debug: the map from instructions to Python lines.
        debug_handles: {method: {instruction: debug handle}}.
    """

    program: schema.Program
    constants: list[np.ndarray]
    mutable_data: list[np.ndarray]
    external: dict[str, dict[str, torch.Tensor]] = field(default_factory=dict)
    payloads: list[bytes] = field(default_factory=list)
    named_data: NamedDataStoreOutput = field(default_factory=NamedDataStoreOutput)
    debug: DebugMap = field(default_factory=DebugMap)
    debug_handles: dict[str, dict[int, int]] = field(default_factory=dict)
    instruction_nodes: dict[str, dict[int, tuple[str, list[int]]]] = field(default_factory=dict)


def emit(
    methods: Mapping[str, LoweredMethod],
    config: ExecutorchBackendConfig,
    constant_methods: Mapping[str, Any] | None = None,
) -> EmittedProgram:
    """Emit planned methods, sorted by name, then the constant methods in the order given.

    Raises:
        ExportError: if two methods have one name, or a value cannot be held by a program.
    """
    shared = ProgramEmitter(config)
    plans = []
    handles: dict[str, dict[int, int]] = {}
    nodes: dict[str, dict[int, tuple[str, list[int]]]] = {}
    for name in sorted(methods):
        emitter = MethodEmitter(methods[name], shared)
        plans.append(emitter.plan())
        covered = coverage(methods[name].program)
        if any(c.backend or c.reasons for c in covered):  # there was a partitioner
            shared.debug.add_coverage(name, covered)
        handles[name], nodes[name] = emitter.handles, emitter.nodes
    for name, value in (constant_methods or {}).items():
        if name in methods:
            raise ExportError(
                f"constant method {name!r} has the name of a traced method: rename one",
                code=Code.INVALID_ARGUMENT,
            )
        plans.append(_constant_method(name, value, shared))
    program = schema.Program(version=0, execution_plan=plans)
    return EmittedProgram(
        program,
        shared.constants.buffers,
        shared.mutable_data,
        shared.external,
        shared.payloads,
        shared.named_data.get_named_data_store_output(),
        shared.debug.map,
        handles,
        nodes,
    )


def _constant_method(name: str, value: Any, shared: ProgramEmitter) -> schema.ExecutionPlan:
    leaves, spec = pytree.tree_flatten(value)
    values = [_constant_value(name, leaf, shared) for leaf in leaves]
    return schema.ExecutionPlan(
        name=name,
        container_meta_type=schema.ContainerMetadata("", encode_container(spec)),
        values=values,
        inputs=[],
        outputs=list(range(len(values))),
        chains=[schema.Chain(inputs=[], outputs=[], instructions=[])],
        operators=[],
        delegates=[],
        non_const_buffer_sizes=[0],
    )


_LEAVES: list[tuple[type, Callable[[Any], Any]]] = [
    (bool, lambda v: schema.Bool(v)),
    (int, lambda v: schema.Int(v)),
    (float, lambda v: schema.Double(v)),
    (str, lambda v: schema.String(v)),
]


def _constant_value(method: str, leaf: Any, shared: ProgramEmitter) -> schema.EValue:
    if leaf is None:
        return schema.EValue(schema.Null())
    if isinstance(leaf, torch.Tensor):
        return schema.EValue(constant_tensor(leaf, shared.constants.add(leaf)))
    if isinstance(leaf, torch.dtype):
        return schema.EValue(schema.Int(scalar_type_number(leaf)))
    for kind, make in _LEAVES:
        if isinstance(leaf, kind):
            return schema.EValue(make(leaf))
    raise ExportError(
        f"constant method {method!r} returns {type(leaf).__name__}: tensors, numbers, strings, "
        f"dtypes, None and containers of them can be stored",
        code=Code.NOT_SUPPORTED,
    )
