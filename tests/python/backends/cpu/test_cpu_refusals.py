"""The runtime's errors for payloads of the cpu backend that its compiler would not write.

tests/cpp/backends/cpu/fuzz_cpu_engine.cpp damages payloads in greater number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import rushlight as rl
from delegates import lowered_modules
from rushlight.backends.cpu import CpuPartitioner
from rushlight.schema import cpu_engine as fb
from rushlight.schema.common import ScalarType

HUGE = 1 << 62


class Attends(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
        return F.scaled_dot_product_attention(q, k, v)


class Multiplies(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a * b + 1


LINEAR = (nn.Linear(4, 3), (torch.ones(2, 4),))
CONVOLUTION = (nn.Conv2d(2, 3, 3, padding=1), (torch.ones(1, 2, 5, 5),))
TRANSPOSED = (nn.ConvTranspose2d(2, 3, 3), (torch.ones(1, 2, 5, 5),))
POOL = (nn.MaxPool2d(2), (torch.ones(1, 2, 6, 6),))
ATTENTION = (Attends(), (torch.ones(1, 2, 5, 8),) * 3)
TABLE = (nn.Embedding(10, 8), (torch.tensor([[1, 7]]),))
PRODUCT = (Multiplies(), (torch.ones(2, 3),) * 2)


def node_of(graph: fb.Graph, kind: type) -> Any:
    return next(node for node in graph.nodes if isinstance(node.operation, kind))


def value_of(graph: fb.Graph, kind: type, number: int) -> fb.Value:
    value: fb.Value = graph.values[node_of(graph, kind).inputs[number]]
    return value


NEWEST = int(max(fb.Version))


def newer(graph: fb.Graph) -> None:
    graph.version = NEWEST + 1


def many_arguments(graph: fb.Graph) -> None:
    graph.n_inputs = 1 << 20


def much_scratch(graph: fb.Graph) -> None:
    graph.scratch_size = HUGE


def large_constant(graph: fb.Graph) -> None:
    graph.constants[0].size = HUGE


def half_rows(graph: fb.Graph) -> None:
    value_of(graph, fb.Product, 0).dtype = ScalarType.BFLOAT16


def panels_of_halves(graph: fb.Graph) -> None:
    panels = value_of(graph, fb.Product, 1)
    panels.dtype = ScalarType.BFLOAT16
    panels.sizes[0] *= 4


def large_size(graph: fb.Graph) -> None:
    value_of(graph, fb.Product, 0).sizes[0] = HUGE


def sizes_behind_zero(graph: fb.Graph) -> None:
    value = value_of(graph, fb.Product, 0)
    value.sizes, value.strides = [0, 1 << 30, 1 << 30], [0, 0, 1]


def large_stride(graph: fb.Graph) -> None:
    value = value_of(graph, fb.Product, 0)
    value.sizes, value.strides = [1, 4], [1 << 41, 1]


def overlapping_rows(graph: fb.Graph) -> None:
    value_of(graph, fb.Product, 0).strides[0] = 1


def writes_constant(graph: fb.Graph) -> None:
    node = node_of(graph, fb.Product)
    node.outputs = [node.inputs[1]]


def no_such_value(graph: fb.Graph) -> None:
    node_of(graph, fb.Product).inputs[0] = 1000


def negative_padding(graph: fb.Graph) -> None:
    node_of(graph, fb.Convolution).operation.padding[0] = -1


def no_stride(graph: fb.Graph) -> None:
    node_of(graph, fb.Convolution).operation.stride[1] = 0


def wide_kernel(graph: fb.Graph) -> None:
    operation = node_of(graph, fb.Convolution).operation
    operation.kernel[0] = 1 << 20
    operation.padding[:] = [1 << 20] * 4


def many_groups(graph: fb.Graph) -> None:
    node_of(graph, fb.Convolution).operation.groups = HUGE


def deep_padding(graph: fb.Graph) -> None:
    operation = node_of(graph, fb.Pooling).operation
    operation.padding[:2] = [2, 2]
    operation.padding[2:] = [-2, -2]


def one_key_often(graph: fb.Graph) -> None:
    value_of(graph, fb.Attention, 1).strides[2] = 0


def rows_in_halves(graph: fb.Graph) -> None:
    graph.values[node_of(graph, fb.Gather).outputs[0]].dtype = ScalarType.HALF


def stores_nothing(graph: fb.Graph) -> None:
    program = node_of(graph, fb.Elementwise).operation.program
    program.code = program.code[:3]


def unknown_instruction(graph: fb.Graph) -> None:
    node_of(graph, fb.Elementwise).operation.program.code[0] |= 0xFF


def cut_program(graph: fb.Graph) -> None:
    node_of(graph, fb.Elementwise).operation.program.code.pop()


@pytest.mark.parametrize(
    ("model", "damage", "reason"),
    [
        (LINEAR, newer, f"has version {NEWEST + 1}, this runtime reads 1 to {NEWEST}"),
        (LINEAR, many_arguments, "the payload has too many arguments"),
        (LINEAR, much_scratch, "the method's memory has no room for the delegate"),
        (LINEAR, large_constant, f"named data has no {HUGE} bytes under"),
        (LINEAR, half_rows, "its input 0 is bfloat16, but must be float32"),
        (LINEAR, panels_of_halves, "do not lie within the 256 bytes of its memory"),
        (LINEAR, large_size, r"value \d+: its sizes .* are not valid"),
        (LINEAR, sizes_behind_zero, r"value \d+: its sizes .* are not valid"),
        (LINEAR, large_stride, r"value \d+: its sizes .* are not valid"),
        (LINEAR, overlapping_rows, "its input 0 has sizes .* which repeat elements"),
        (LINEAR, writes_constant, "its output 0 is value .*, which is an input or a constant"),
        (LINEAR, no_such_value, "its input 0 is value 1000, which is not in the graph"),
        (CONVOLUTION, negative_padding, "its window is not valid"),
        (CONVOLUTION, no_stride, "its window is not valid"),
        (CONVOLUTION, wide_kernel, "do not fit its window"),
        (CONVOLUTION, many_groups, "channels do not fit its groups"),
        (TRANSPOSED, many_groups, "channels do not fit its groups"),
        (POOL, deep_padding, "its window is not valid"),
        (ATTENTION, one_key_often, "its values are not .* in rows of float32"),
        (TABLE, rows_in_halves, "its table is float32 and its result float16"),
        (PRODUCT, stores_nothing, "its program stores nothing"),
        (PRODUCT, unknown_instruction, "one that this runtime does not know"),
        (PRODUCT, cut_program, "its program is cut"),
    ],
)
def test_refused(model: Any, damage: Callable[[fb.Graph], None], reason: str) -> None:
    exported = torch.export.export(model[0].eval(), model[1])
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])
    [part] = lowered_modules(edge.exported_program())
    rl.load(bytes(edge.to_executorch().buffer))(*model[1])
    graph = fb.unpack(part.processed_bytes)
    damage(graph)
    part.processed_bytes = fb.pack(graph)
    with pytest.raises(rl.LoadError, match=reason):
        rl.load(bytes(edge.to_executorch().buffer))
