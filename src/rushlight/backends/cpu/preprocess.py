"""The compiler half of the cpu backend: from a part of a graph to a payload and packed weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import torch
from torch.export import ExportedProgram

from rushlight.backends.cpu.build.multiplied import weights_of_linear
from rushlight.backends.cpu.build.part import build_graph
from rushlight.backends.cpu.graph.expressions import Known, Table
from rushlight.backends.cpu.graph.operations import epilogue_of, program_of, residual_of
from rushlight.backends.cpu.graph.rewrite import handles_of
from rushlight.backends.cpu.graph.sizes import Size, at_bounds, limits, product, simple
from rushlight.backends.cpu.graph.values import EngineNode, Graph, View, lives_of
from rushlight.backends.cpu.operators import kernel_call
from rushlight.backends.cpu.operators.table import OPERATORS
from rushlight.backends.cpu.passes.bands import cut_into_bands
from rushlight.backends.cpu.passes.in_place import add_in_place
from rushlight.backends.cpu.patterns.fuse import fuse_patterns
from rushlight.errors import Code, ExportError
from rushlight.ir.bounds import Bounds
from rushlight.ir.mapped_weights import digest
from rushlight.ir.spec import SCALAR_TYPES, raw_bytes
from rushlight.partition import (
    BackendDetails,
    CompileSpec,
    NamedDataStore,
    PreprocessResult,
    spec_texts,
)
from rushlight.partition.operators import check_arguments
from rushlight.plan import Block, plan_memory
from rushlight.schema import cpu_engine as fb

_ALIGNMENT = 64
_PRODUCT_INPUTS = 3  # a, panels, bias; a fourth one is scales
_GATHER_INPUTS = 2  # table, indices; a third one is scales
_SCALES = {fb.Product: 3, fb.DynamicProduct: 3, fb.Gather: 2}  # the input that may be scales
BFLOAT16, HALF = fb.ScalarType.BFLOAT16, fb.ScalarType.HALF


class CpuBackend(BackendDetails):
    """Fuses a part of a graph into nodes of the engine's graph, and packs its weights."""

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
        [result] = _preprocessed([edge_program], [compile_specs])
        return result

    @classmethod
    def preprocess_multimethod(
        cls,
        edge_programs: dict[str, list[ExportedProgram]],
        compile_specs: dict[str, list[list[CompileSpec]]],
    ) -> dict[str, list[PreprocessResult]]:
        """The payloads of all parts, which share weights.

        Args:
            edge_programs: {method: its parts}.
            compile_specs: {method: the options of each part}.
        """
        parts = [part for mine in edge_programs.values() for part in mine]
        specs = [one for name in edge_programs for one in compile_specs[name]]
        results = _preprocessed(parts, specs)
        return {name: list(islice(results, len(mine))) for name, mine in edge_programs.items()}


def _preprocessed(
    parts: Sequence[ExportedProgram], specs: Sequence[list[CompileSpec]]
) -> Iterator[PreprocessResult]:
    """The payloads of parts, one after the other."""
    weights = [read_weights(one) for one in specs]
    called = [kernel_call.own_calls(part, OPERATORS) for part in parts]
    for calls in called:
        kernel_call.note_dim_orders(calls)
    notes = [fuse_patterns(part) for part in parts]
    multiplied = weights_of_linear(parts)
    translate = {k: v.translate for k, v in OPERATORS.items()}
    translate |= {node.target: kernel_call.translate for calls in called for node in calls}
    for part, dtype, noted, calls in zip(parts, weights, notes, called, strict=True):
        graph = build_graph(part, dtype, translate, multiplied)
        add_in_place(graph)
        cut_into_bands(graph)
        store = NamedDataStore()
        payload = fb.pack(_Writer(graph, Bounds.of(part)).write(store))
        handles = {i: tuple(handles_of(node.calls)) for i, node in enumerate(graph.nodes)}
        yield PreprocessResult(
            payload,
            {i: of_node for i, of_node in handles.items() if of_node},
            store.get_named_data_store_output(),
            noted,
            kernel_call.schemas_of(calls),
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
        shown = [
            argument.shape if isinstance(argument, View) else argument for argument in graph.inputs
        ]
        self._table = Table(Known(shown))
        self._offsets, self._size = _place_scratch(graph, bounds)
        self._values: list[fb.Value] = []
        self._numbers: dict[Any, int] = {}

    def write(self, store: NamedDataStore) -> fb.Graph:
        """The payload; constants go to `store`."""
        graph = self._graph
        for arguments in (graph.inputs, graph.outputs):
            check_arguments(len(arguments), fb.Limit.ARGUMENTS)
        nodes = [self._node(node) for node in graph.nodes]
        shown = [*graph.inputs, *graph.outputs]
        for view in shown:
            self._table.numbers(view.shape if isinstance(view, View) else ())
        is_dynamic = bool(self._table.rows)
        numbers = [self._number(v) if isinstance(v, View) else -1 for v in shown if is_dynamic]
        payload = fb.Graph(
            fb.Version.FIRST,
            self._values,
            list(_constants(graph, store)),
            nodes,
            len(graph.inputs),
            len(graph.outputs),
            self._size,
            self._table.rows or None,
            numbers or None,
        )
        payload.version = least_version(payload)
        return payload

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
            [self._greatest(stride) for stride in meta.strides],
            memory.place,
            memory.index,
            self._greatest(offset),
            self._table.numbers(meta.shape),
            self._table.numbers(meta.strides),
            self._table.number(offset),
        )

    def _greatest(self, size: Size) -> int:
        return at_bounds(size, self._bounds)

    def _node(self, node: EngineNode) -> fb.Node:
        operation = node.operation
        program, residual = program_of(operation), residual_of(operation)
        if program is not None:
            program.operands = [self._number(v) for v in node.operands]
        epilogue = epilogue_of(operation)
        if epilogue is not None and epilogue.added:
            [added] = node.operands
            epilogue.residual = self._number(added)
        if residual is not None:
            [added] = node.operands
            residual.value = self._number(added)
        if isinstance(operation, fb.KernelCall):
            for argument in operation.arguments:
                sizes = tuple(argument.integers or ())
                argument.expressions = self._table.numbers(sizes)
                argument.integers = [self._greatest(size) for size in sizes] or None
        inputs, outputs = ([self._number(v) for v in vs] for vs in (node.inputs, node.outputs))
        return fb.Node(node.operation, inputs, outputs)


def least_version(graph: fb.Graph) -> int:
    """The least version whose readers know all that is in a payload: by its fields, as the schema
    says, and by the dtypes of its values."""
    return max(fb.least_version(graph), *_versions_of_values(graph))


def _versions_of_values(graph: fb.Graph) -> Iterator[fb.Version]:
    yield fb.Version.FIRST
    if any(v.place is fb.Place.CONSTANT and v.dtype is BFLOAT16 for v in graph.values):
        yield fb.Version.DYNAMIC
    for node in graph.nodes:
        operation = node.operation
        dtypes = {graph.values[n].dtype for n in (*node.inputs, *node.outputs) if n >= 0}
        is_gather = isinstance(operation, fb.Gather) and not operation.columns
        moves = isinstance(operation, fb.Copy) or is_gather
        has_scales = isinstance(operation, fb.Product) and len(node.inputs) > _PRODUCT_INPUTS
        if isinstance(operation, fb.Gather) and len(node.inputs) > _GATHER_INPUTS:
            yield fb.Version.CACHED_ATTENTION
        scales = node.inputs[_SCALES.get(type(operation), len(node.inputs)) :][:1]
        if any(n >= 0 and graph.values[n].dtype is HALF for n in scales):
            yield fb.Version.ROW_GROUPS
        if HALF in dtypes or (moves and BFLOAT16 in dtypes) or has_scales:
            yield fb.Version.HALVES


def _constants(graph: Graph, store: NamedDataStore) -> Iterator[fb.Constant]:
    """The constants of a graph, which goes without each that was stored, so that there are not two
    copies of all weights."""
    for i, tensor in enumerate(graph.constants):
        graph.constants[i] = torch.empty(0)
        yield _constant(tensor, store)


def _constant(tensor: torch.Tensor, store: NamedDataStore) -> fb.Constant:
    data = raw_bytes(tensor)
    key = f"cpu/{digest(data).hex()[:32]}"
    store.add_named_data(key, data, alignment=_ALIGNMENT)
    return fb.Constant(key, data.nbytes)


def _place_scratch(graph: Graph, bounds: Bounds) -> tuple[dict[int, int], int]:
    """The offset of each scratch memory at the sizes' bounds, and the bytes of the whole arena."""
    blocks = []
    for memory, first, last in lives_of(graph.nodes):
        most = max(limits(memory.size, bounds)[1] or 0, at_bounds(memory.size, bounds))
        size = -(-most // _ALIGNMENT) * _ALIGNMENT
        blocks.append(Block(id(memory), size, first, last, alignment=_ALIGNMENT))
    if not blocks:
        return {}, 0
    plan = plan_memory(blocks)
    return dict(plan.offsets), plan.sizes[1]  # type: ignore[arg-type]
