"""The compiler of the backend: from a partition to a payload and its weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from rushlight.backends.xnnpack.build import Builder
from rushlight.backends.xnnpack.constants import (
    UINT64_MAX,
    XNN_INVALID_VALUE_ID,
    XNN_VALUE_FLAG_EXTERNAL_INPUT,
    XNN_VALUE_FLAG_EXTERNAL_OUTPUT,
)
from rushlight.backends.xnnpack.graph import UNLIMITED, PayloadNode, Stored
from rushlight.backends.xnnpack.operators import OPERATORS, arithmetic_of
from rushlight.backends.xnnpack.payload import write_payload
from rushlight.ir.bounds import Bounds
from rushlight.ir.mapped_weights import digest
from rushlight.ir.spec import raw_bytes
from rushlight.partition import (
    BackendDetails,
    CompileSpec,
    NamedDataStore,
    PreprocessResult,
)
from rushlight.partition.operators import check_arguments
from rushlight.schema import xnnpack as fb
from rushlight.schema.cpu_engine import Limit
from rushlight.schema.sizes import XNNPACK_OVERREAD

_NO_HANDLE = 65535
_ALIGNMENT = 16


class XnnpackBackend(BackendDetails):
    """Compiles partitions to payloads that ExecuTorch's XNNPACK delegate reads.

    In the map of debug handles, the id of a payload's node is its index.
    """

    overread = XNNPACK_OVERREAD

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """Compile a partition; weights become named data with the SHA-256 of their bytes as key."""
        translate = {target: known.translate for target, known in OPERATORS.items()}
        builder = Builder(edge_program, translate, arithmetic_of)
        store = NamedDataStore()
        graph = Writer(store, Bounds.of(edge_program)).graph(builder.nodes, builder.arguments)
        handles = {i: tuple(_handles(payload_node)) for i, payload_node in enumerate(builder.nodes)}
        return PreprocessResult(
            write_payload(graph),
            {i: calls for i, calls in handles.items() if calls},
            store.get_named_data_store_output(),
        )


def _handles(payload_node: PayloadNode) -> Iterator[int]:
    yield from dict.fromkeys(
        _handle(node) for node in payload_node.calls if "debug_handle" in node.meta
    )


def _handle(node: Node) -> int:
    return int(node.meta["debug_handle"])


class Writer:
    """Numbers tensors and constants.

    Args:
        store: gets the constants' bytes.
        bounds: the bounds of the program's sizes; tensors are written with the greatest sizes.
    """

    def __init__(self, store: NamedDataStore, bounds: Bounds) -> None:
        self._store = store
        self._bounds = bounds
        self._numbers: dict[Stored, int] = {}
        self._values: list[fb.Value] = []
        self._constants = [fb.ConstantDataOffset(0, 0, "")]  # index 0 stands for none

    def graph(self, payload_nodes: Sequence[PayloadNode], arguments: int) -> fb.Graph:
        """The payload's graph.

        Args:
            payload_nodes: the nodes, in order.
            arguments: the number of the delegate's arguments, results included.
        """
        check_arguments(arguments, Limit.ARGUMENTS)
        nodes = [self._node(payload_node) for payload_node in payload_nodes]
        ends = {
            flag: [s for s in self._numbers if s.flags == flag]
            for flag in (XNN_VALUE_FLAG_EXTERNAL_INPUT, XNN_VALUE_FLAG_EXTERNAL_OUTPUT)
        }
        inputs, outputs = (
            [self._numbers[s] for s in sorted(tensors, key=lambda s: s.external or 0)]
            for tensors in ends.values()
        )
        return fb.Graph(
            *("0", nodes, self._values, arguments, inputs, outputs),
            constant_data=self._constants,
        )

    def _node(self, payload_node: PayloadNode) -> fb.Node:
        operation = payload_node.operation
        for name, stored in (*payload_node.inputs.items(), *payload_node.outputs.items()):
            number = XNN_INVALID_VALUE_ID if stored is None else self._number(stored)
            setattr(operation, name, number)
        limits = None if payload_node.limits == UNLIMITED else fb.OutputMinMax(*payload_node.limits)
        handle = next(_handles(payload_node), _NO_HANDLE)
        return fb.Node(xnode_union=operation, debug_handle=handle, output_min_max=limits)

    def _number(self, stored: Stored) -> int:
        if stored not in self._numbers:
            self._numbers[stored] = len(self._values)
            self._values.append(self._value(stored))
        return self._numbers[stored]

    def _value(self, stored: Stored) -> fb.Value:
        tensor = fb.TensorValue(
            datatype=stored.datatype,
            num_dims=len(stored.dims),
            dims=[self._bounds.upper(size, "a size") for size in stored.dims],
            constant_buffer_idx=self._constant(stored),
            external_id=XNN_INVALID_VALUE_ID if stored.external is None else stored.external,
            flags=stored.flags,
            id_out=len(self._values),
        )
        if stored.quantization is None:
            return fb.Value(tensor)
        params = stored.quantization
        if isinstance(params, fb.PerChannelQuant | fb.PerChannelGroupQuant):
            assert stored.scales is not None
            params.num_scales = stored.scales.numel()
            params.scale_buffer_idx = self._add_constant(stored.scales, "scale_")
        return fb.Value(fb.QuantizedTensorValue(tensor, quant_params=params))

    def _constant(self, stored: Stored) -> int:
        return 0 if stored.data is None else self._add_constant(stored.data)

    def _add_constant(self, tensor: torch.Tensor, prefix: str = "") -> int:
        """The index of a new constant; its key is the prefix and the SHA-256 of its bytes."""
        data = raw_bytes(tensor.contiguous())
        key = prefix + digest(data).hex()
        self._store.add_named_data(key, data, alignment=_ALIGNMENT)
        self._constants.append(fb.ConstantDataOffset(UINT64_MAX, data.nbytes, key))
        return len(self._constants) - 1
