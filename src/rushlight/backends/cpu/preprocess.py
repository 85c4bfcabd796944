"""The compiler half of the cpu backend: from a part of a graph to a payload and packed weights."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
from torch.export import ExportedProgram

from rushlight.backends.cpu.build import Builder
from rushlight.backends.cpu.graph import Graph, Memory, Step, View
from rushlight.backends.cpu.operators import OPERATORS
from rushlight.ir.spec import SCALAR_TYPES, raw_bytes
from rushlight.partition import (
    BackendDetails,
    CompileSpec,
    NamedDataStore,
    PreprocessResult,
)
from rushlight.plan import Block, plan_memory
from rushlight.schema import cpu_engine as fb

_ALIGNMENT = 64


class CpuBackend(BackendDetails):
    """Fuses a part of a graph into steps of the engine, and packs its weights."""

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """The payload; weights go to the program's named data, by a hash of their bytes."""
        graph = Builder(edge_program, {k: v.translate for k, v in OPERATORS.items()}).graph
        store = NamedDataStore()
        payload = fb.pack(_payload(graph, store))
        handles = {
            i: tuple(
                dict.fromkeys(
                    n.meta["debug_handle"] for n in step.nodes if "debug_handle" in n.meta
                )
            )
            for i, step in enumerate(graph.steps)
        }
        return PreprocessResult(
            payload,
            {i: found for i, found in handles.items() if found},
            store.get_named_data_store_output(),
        )


def _payload(graph: Graph, store: NamedDataStore) -> fb.Graph:
    offsets, size = _place_scratch(graph)
    values: list[fb.Value] = []
    numbers: dict[Any, int] = {}

    def number(view: View | None) -> int:
        if view is None:
            return -1
        meta = view.meta
        key = (id(view.memory), meta.dtype, meta.shape, meta.stride(), meta.storage_offset())
        if key not in numbers:
            numbers[key] = len(values)
            values.append(_value(view, offsets.get(id(view.memory), 0)))
        return numbers[key]

    steps = [_step(step, number) for step in graph.steps]
    constants = [_constant(tensor, store) for tensor in graph.constants]
    return fb.Graph(
        _version(graph), values, constants, steps, graph.n_inputs, graph.n_outputs, size
    )


def _version(graph: Graph) -> int:
    """The lowest version whose readers know all that is in a graph."""
    kinds = {getattr(step.operation, "kind", None) for step in graph.steps}
    return 2 if fb.ConvolutionKind.WINOGRAD in kinds else 1


def _step(step: Step, number: Any) -> fb.Step:
    finish = getattr(step.operation, "finish", None)
    program = getattr(step.operation, "program", None) or (finish.program if finish else None)
    if program is not None:
        program.operands = [number(v) for v in step.operands]
    if finish is not None and finish.added:
        [residual] = step.operands
        finish.residual = number(residual)
    inputs, outputs = ([number(v) for v in views] for views in (step.inputs, step.outputs))
    return fb.Step(step.operation, inputs, outputs)


def _value(view: View, base: int) -> fb.Value:
    meta, memory = view.meta, view.memory
    return fb.Value(
        SCALAR_TYPES[meta.dtype],
        list(meta.shape),
        list(meta.stride()),
        memory.place,
        memory.index,
        base + int(meta.storage_offset()) * meta.element_size(),
    )


def _constant(tensor: torch.Tensor, store: NamedDataStore) -> fb.Constant:
    data = raw_bytes(tensor).tobytes()
    key = f"cpu/{hashlib.sha256(data).hexdigest()[:32]}"
    store.add_named_data(key, data, alignment=_ALIGNMENT)
    return fb.Constant(key, len(data))


def _place_scratch(graph: Graph) -> tuple[dict[int, int], int]:
    """Where each memory of values in between lies, and the bytes of all."""
    lives: dict[int, tuple[Memory, int, int]] = {}
    for at, step in enumerate(graph.steps):
        for view in step.views():
            if view.memory.place is fb.Place.SCRATCH:
                _, first, _ = lives.get(id(view.memory), (view.memory, at, at))
                lives[id(view.memory)] = (view.memory, first, at)
    blocks = [
        Block(key, -(-memory.size // _ALIGNMENT) * _ALIGNMENT, first, last, alignment=_ALIGNMENT)
        for key, (memory, first, last) in lives.items()
    ]
    if not blocks:
        return {}, 0
    plan = plan_memory(blocks)
    return dict(plan.offsets), plan.sizes[1]  # type: ignore[arg-type]
