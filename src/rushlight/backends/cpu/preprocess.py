"""The compiler half of the cpu backend: from a part of a graph to a payload and packed weights."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import torch
from torch.export import ExportedProgram

from rushlight.backends.cpu.build.builder import Builder
from rushlight.backends.cpu.graph.expressions import Known, Table
from rushlight.backends.cpu.graph.rewrite import handles_of
from rushlight.backends.cpu.graph.sizes import Size, at_bounds, limits, product, simple
from rushlight.backends.cpu.graph.values import Graph, Step, View, lives_of
from rushlight.backends.cpu.operators.facts import check_arguments
from rushlight.backends.cpu.operators.table import OPERATORS
from rushlight.backends.cpu.passes.bands import cut_into_bands
from rushlight.backends.cpu.passes.in_place import add_in_place
from rushlight.backends.cpu.patterns.fuse import fuse_patterns
from rushlight.errors import Code, ExportError
from rushlight.ir.bounds import Bounds
from rushlight.ir.spec import SCALAR_TYPES, raw_bytes
from rushlight.partition import (
    BackendDetails,
    CompileSpec,
    NamedDataStore,
    PreprocessResult,
    spec_texts,
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
        """The payload; weights go to the program's named data, by a hash of their bytes.

        Args:
            edge_program: the part.
            compile_specs: `weights`: "float32", or "bfloat16" for products whose weights are
                rounded to that; sums are float32 in any case.
        """
        weights = read_weights(compile_specs)
        notes = fuse_patterns(edge_program)
        translate = {k: v.translate for k, v in OPERATORS.items()}
        graph = Builder(edge_program, weights, translate).graph
        add_in_place(graph)
        cut_into_bands(graph)
        store = NamedDataStore()
        payload = fb.pack(_Writer(graph, Bounds.of(edge_program)).write(store))
        handles = {i: tuple(handles_of(step.nodes)) for i, step in enumerate(graph.steps)}
        return PreprocessResult(
            payload,
            {i: found for i, found in handles.items() if found},
            store.get_named_data_store_output(),
            notes,
        )


_WEIGHTS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def read_weights(specs: Sequence[CompileSpec]) -> torch.dtype:
    """In which dtype compile specs want weights of products.

    Raises:
        ExportError: for a compile spec that is not known, or another dtype.
    """
    options = spec_texts(specs)
    name = options.pop("weights", "float32")
    if options:
        raise ExportError(
            f"unknown compile spec {next(iter(options))!r}: allowed is weights",
            code=Code.INVALID_ARGUMENT,
        )
    if name not in _WEIGHTS:
        raise ExportError(
            f"weights={name!r}: the cpu backend stores weights as {' or '.join(_WEIGHTS)}",
            code=Code.INVALID_ARGUMENT,
        )
    return _WEIGHTS[name]


class _Writer:
    """Writes the payload of a graph."""

    def __init__(self, graph: Graph, bounds: Bounds) -> None:
        self._graph = graph
        self._bounds = bounds
        shown = [given.shape if isinstance(given, View) else given for given in graph.inputs]
        self._table = Table(Known(shown))
        self._offsets, self._size = _place_scratch(graph, bounds)
        self._values: list[fb.Value] = []
        self._numbers: dict[Any, int] = {}

    def write(self, store: NamedDataStore) -> fb.Graph:
        """The payload; constants go to `store`."""
        graph = self._graph
        for arguments in (graph.inputs, graph.outputs):
            check_arguments(len(arguments))
        steps = [self._step(step) for step in graph.steps]
        shown = [*graph.inputs, *graph.outputs]
        for view in shown:
            self._table.numbers(view.shape if isinstance(view, View) else ())
        is_dynamic = bool(self._table.rows)
        numbers = [self._number(v) if isinstance(v, View) else -1 for v in shown if is_dynamic]
        return fb.Graph(
            _version(graph, is_dynamic),
            self._values,
            [_constant(tensor, store) for tensor in graph.constants],
            steps,
            len(graph.inputs),
            len(graph.outputs),
            self._size,
            self._table.rows or None,
            numbers or None,
        )

    def _number(self, view: View | None) -> int:
        if view is None:
            return -1
        key = view.place()
        if key not in self._numbers:
            self._numbers[key] = len(self._values)
            self._values.append(self._value(view))
        return self._numbers[key]

    def _value(self, view: View) -> fb.Value:
        meta, memory = view.meta, view.memory
        base = self._offsets.get(id(memory), 0)
        offset = simple(base + product((meta.offset, meta.itemsize)))
        return fb.Value(
            SCALAR_TYPES[meta.dtype],
            [self._greatest(size) for size in meta.shape],
            [self._greatest(step) for step in meta.steps],
            memory.place,
            memory.index,
            self._greatest(offset),
            self._table.numbers(meta.shape),
            self._table.numbers(meta.steps),
            self._table.number(offset),
        )

    def _greatest(self, size: Size) -> int:
        return at_bounds(size, self._bounds)

    def _step(self, step: Step) -> fb.Step:
        finish = getattr(step.operation, "finish", None)
        program = getattr(step.operation, "program", None) or (finish.program if finish else None)
        if program is not None:
            program.operands = [self._number(v) for v in step.operands]
        if finish is not None and finish.added:
            [residual] = step.operands
            finish.residual = self._number(residual)
        added = getattr(step.operation, "residual", None)
        if added is not None:
            [residual] = step.operands
            added.value = self._number(residual)
        inputs, outputs = ([self._number(v) for v in vs] for vs in (step.inputs, step.outputs))
        return fb.Step(step.operation, inputs, outputs)


_OF_INTEGERS = (
    fb.Convert,
    fb.QuantizeRows,
    fb.QuantizedProduct,
    fb.DynamicProduct,
    fb.QuantizedConvolution,
    fb.QuantizedBinary,
    fb.Lookup,
    fb.QuantizedPooling,
)


def _is_of_version_5(step: Step) -> bool:
    """Whether a step multiplies floats by integers, has float16, or converts bfloat16."""
    views = [view for view in (*step.inputs, *step.outputs) if view is not None]
    dtypes = {view.meta.dtype for view in views}
    columns = getattr(step.operation, "columns", 0)
    moves = isinstance(step.operation, fb.Copy | fb.Gather) and not columns
    is_product = isinstance(step.operation, fb.Product)
    return (
        torch.float16 in dtypes
        or (moves and torch.bfloat16 in dtypes)
        or (is_product and len(step.inputs) > 3)
    )


def _version(graph: Graph, is_dynamic: bool) -> int:
    """The lowest version whose readers know all that is in a graph."""
    if any(isinstance(step.operation, fb.Recurrent) for step in graph.steps):
        return 6
    if any(_is_of_version_5(step) for step in graph.steps):
        return 5
    if any(getattr(step.operation, "residual", None) for step in graph.steps):
        return 4
    if any(isinstance(step.operation, _OF_INTEGERS) for step in graph.steps):
        return 3
    kinds = {getattr(step.operation, "kind", None) for step in graph.steps}
    has_halves = any(constant.dtype == torch.bfloat16 for constant in graph.constants)
    return 2 if is_dynamic or has_halves or fb.ConvolutionKind.WINOGRAD in kinds else 1


def _constant(tensor: torch.Tensor, store: NamedDataStore) -> fb.Constant:
    data = raw_bytes(tensor).tobytes()
    key = f"cpu/{hashlib.sha256(data).hexdigest()[:32]}"
    store.add_named_data(key, data, alignment=_ALIGNMENT)
    return fb.Constant(key, len(data))


def _place_scratch(graph: Graph, bounds: Bounds) -> tuple[dict[int, int], int]:
    """Where each memory of values in between lies at the sizes' bounds, and the bytes of all."""
    blocks = []
    for memory, first, last in lives_of(graph.steps):
        most = max(limits(memory.size, bounds)[1] or 0, at_bounds(memory.size, bounds))
        size = -(-most // _ALIGNMENT) * _ALIGNMENT
        blocks.append(Block(id(memory), size, first, last, alignment=_ALIGNMENT))
    if not blocks:
        return {}, 0
    plan = plan_memory(blocks)
    return dict(plan.offsets), plan.sizes[1]  # type: ignore[arg-type]
