"""The cpu backend: patterns of attention, rotary embedding and norms with dynamic sizes."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch
from cpu_models import equal, operators_of
from torch import nn

import rushlight as rl
from rushlight.backends.cpu import CpuPartitioner


class Layer(nn.Module):
    """A layer of a language model, all of it written out."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(24))
        self.q, self.k, self.v = nn.Linear(24, 24), nn.Linear(24, 8), nn.Linear(24, 8)
        self.table = nn.Buffer(torch.randn(16, 4))

    def turned(self, x: torch.Tensor) -> torch.Tensor:
        table = self.table[: x.shape[2]]
        half = torch.cat((-x[..., 2:], x[..., :2]), -1)
        return x * table.cos() + half * table.sin()

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        y = self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))
        sizes = (*x.shape[:2], -1, 4)
        q, k, v = (layer(y).view(sizes).transpose(1, 2) for layer in (self.q, self.k, self.v))
        q, k = self.turned(q), self.turned(k)
        k, v = (
            n[:, :, None].expand(-1, -1, 3, -1, -1).reshape(x.shape[0], 6, x.shape[1], 4)
            for n in (k, v)
        )
        weights = (q @ k.transpose(2, 3) * 0.5 + mask).softmax(-1)
        return (weights @ v).transpose(1, 2).reshape(x.shape)


def test_a_layer() -> None:
    length, batch = torch.export.Dim("length", max=16), torch.export.Dim("batch", max=4)
    args = (torch.randn(2, 9, 24), torch.randn(9, 9))
    shapes = ({0: batch, 1: length}, {0: length, 1: length})
    model = Layer()
    exported = torch.export.export(model, args, dynamic_shapes=shapes)
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])
    operators = operators_of(edge)
    assert operators.count("Attention") == operators.count("Norm") == 1
    assert "Softmax" not in operators and "BatchProduct" not in operators
    module = rl.load(bytes(edge.to_executorch().buffer))
    for rows, columns in ((2, 9), (1, 1), (4, 16), (3, 5)):
        inputs = (torch.randn(rows, columns, 24), torch.randn(columns, columns))
        with torch.no_grad():
            equal(module(*inputs), model(*inputs))


@pytest.mark.parametrize("name", ["llama_tiny", "minilm_tiny"])
def test_models(models: ModuleType, name: str) -> None:
    case = models.build(name)
    case.module.model.set_attn_implementation("eager")
    length = torch.export.Dim("length", min=2, max=16)
    shapes = [{1: length} for _ in case.leaves()]
    inputs = tuple(case.leaves())
    exported = torch.export.export(case.module, inputs, dynamic_shapes=tuple(shapes))
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])
    assert operators_of(edge).count("Attention") == 2
    module = rl.load(bytes(edge.to_executorch().buffer))
    for n in (16, 7, 2):
        parts = [x[:, :n].contiguous() for x in inputs]
        with torch.no_grad():
            equal(module(*parts), case.module(*parts), 2e-4)
