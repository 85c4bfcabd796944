"""What adapters of a runner add to linear layers, in delegates of the engine. With adapters, runs
are compared in tests/e2e/llm/test_adapters.py and tests/cpp/engine/test_adapters.cpp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional

import rushlight as rl
from delegates import lowered_modules
from rushlight import _core
from rushlight.backends.cpu import CpuPartitioner
from rushlight.ir.custom_ops.adapter import EagerAdapters
from rushlight.ir.custom_ops.fake_quantize import fake_quantize_groups
from rushlight.llm.weights.layers import QuantizedLinear, StoredLinear
from rushlight.llm.weights.rounding import quantised
from rushlight.schema import cpu_engine as fb

WIDTH, RANK = 32, 4
Tensor = torch.Tensor


def _added(result: Tensor, x: Tensor, sequences: Tensor, site: int) -> Tensor:
    made: Tensor = torch.ops.rushlight.adapter(
        result, x, sequences, [site], [result.shape[-1]], RANK
    )
    return made


class Layers(nn.Module):
    """Layers with adapters; `forward` calls them with rows and sequences."""

    def __init__(self, columns: tuple[int, ...], bits: int, forward: Callable[..., Tensor]) -> None:
        super().__init__()
        weights = [torch.randn(count, WIDTH) for count in columns]
        self.layers = nn.ModuleList(
            QuantizedLinear(quantised(weight, bits, 32 if bits == 4 else 0, "layer"), None)
            if bits
            else StoredLinear(weight, torch.randn(len(weight)))
            for weight in weights
        )
        self._forward = forward

    def forward(self, x: Tensor, sequences: Tensor) -> Tensor:
        return self._forward(self.layers, x, sequences)


def _graph(model: nn.Module, x: Tensor) -> tuple[fb.Graph, rl.EdgeProgramManager]:
    rows = Dim("rows", min=1, max=32)
    args = (x, torch.zeros(x.shape[-2], dtype=torch.int64))
    shapes = ({x.dim() - 2: rows}, {0: rows})
    exported = torch.export.export(model.eval(), args, dynamic_shapes=shapes)
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])
    [module] = lowered_modules(edge.exported_program())
    return fb.unpack(module.processed_bytes), edge


def _nodes(graph: fb.Graph) -> list[fb.Node]:
    return [node for node in graph.nodes if isinstance(node.operation, fb.Adapter)]


def _check_runs(model: nn.Module, edge: rl.EdgeProgramManager, x: Tensor) -> None:
    """A runner's sequences without adapters change nothing."""
    method = rl.load(bytes(edge.to_executorch().buffer))["forward"]
    method.set_kv_cache(_core.KvCache("float32", 1, 1, 8, 8, 2, 64))
    for rows in (x.shape[-2], 1, 7):
        args = x[..., :1, :].expand_as(x)[..., : min(rows, x.shape[-2]), :].contiguous()
        sequences = torch.ones(args.shape[-2], dtype=torch.int64)
        with torch.no_grad():
            wanted = model(args, sequences)
        assert (method(args, sequences) - wanted).abs().max() < 1e-4 * wanted.abs().max()


@pytest.mark.parametrize(("bits", "batched"), [(0, True), (8, False), (4, True)])
def test_results_stay_where_they_are(bits: int, batched: bool) -> None:
    def forward(layers: Any, x: Tensor, sequences: Tensor) -> Tensor:
        return torch.sin(_added(layers[0](x), x, sequences, 3))

    model = Layers((20,), bits, forward)
    x = torch.randn(1, 5, WIDTH) if batched else torch.randn(5, WIDTH)
    graph, edge = _graph(model, x)
    [node] = _nodes(graph)
    assert (node.operation.sites, node.operation.widths, node.operation.rank) == ([3], [20], RANK)
    assert node.inputs[0] == node.outputs[0]
    assert graph.version == fb.Version.ADAPTERS
    assert not any(isinstance(one.operation, fb.Copy) for one in graph.nodes)
    _check_runs(model, edge, x)


def test_results_that_others_read_are_copied() -> None:
    def forward(layers: Any, x: Tensor, sequences: Tensor) -> Tensor:
        result = layers[0](x)
        return _added(result, x, sequences, 0) + result

    model, x = Layers((20,), 0, forward), torch.randn(5, WIDTH)
    graph, edge = _graph(model, x)
    [node] = _nodes(graph)
    assert node.inputs[0] != node.outputs[0]
    _check_runs(model, edge, x)


def test_an_input_is_no_place_for_results() -> None:
    def forward(layers: Any, x: Tensor, sequences: Tensor) -> Tensor:
        return _added(x, x, sequences, 0)

    model, x = Layers((), 0, forward), torch.randn(5, WIDTH)
    graph, edge = _graph(model, x)
    [node] = _nodes(graph)
    assert node.inputs[0] != node.outputs[0]
    _check_runs(model, edge, x)


@pytest.mark.parametrize("bits", [8, pytest.param(4, marks=pytest.mark.full)])
def test_queries_keys_and_values_are_one_node(bits: int) -> None:
    def forward(layers: Any, x: Tensor, sequences: Tensor) -> Tensor:
        parts = [_added(layer(x), x, sequences, i) for i, layer in enumerate(layers)]
        return torch.cat([torch.sin(part.unflatten(-1, (-1, 4))) for part in parts], -2)

    model, x = Layers((24, 8, 16), bits, forward), torch.randn(5, WIDTH)
    graph, edge = _graph(model, x)
    [node] = _nodes(graph)
    assert (node.operation.sites, node.operation.widths) == ([0, 1, 2], [24, 8, 16])
    assert node.inputs[0] == node.outputs[0]
    assert sum(isinstance(one.operation, fb.DynamicProduct) for one in graph.nodes) == 1
    _check_runs(model, edge, x)


def test_a_gate_is_one_node_with_its_factor() -> None:
    def forward(layers: Any, x: Tensor, sequences: Tensor) -> Tensor:
        gate, up = (_added(layer(x), x, sequences, i) for i, layer in enumerate(layers))
        return functional.silu(gate) * up

    model, x = Layers((48, 48), 4, forward), torch.randn(1, 5, WIDTH)
    graph, edge = _graph(model, x)
    names = [type(node.operation).__name__ for node in graph.nodes]
    assert names == ["QuantizeRows", "DynamicProduct", "Adapter", "Elementwise"]
    _check_runs(model, edge, x)


def test_groups_of_rows_are_joined() -> None:
    def forward(layers: Any, x: Tensor, sequences: Tensor) -> Tensor:
        rounded = fake_quantize_groups(x, 16)
        made = [
            _added(functional.linear(rounded, layer._real()), x, sequences, i)
            for i, layer in enumerate(layers)
        ]
        return torch.cat(made, -1)

    model, x = Layers((16, 16), 4, forward), torch.randn(5, WIDTH)
    graph, edge = _graph(model, x)
    assert len(_nodes(graph)) == 1
    _check_runs(model, edge, x)


def test_other_backends_refuse_by_name() -> None:
    def forward(layers: Any, x: Tensor, sequences: Tensor) -> Tensor:
        return _added(layers[0](x), x, sequences, 0)

    model = Layers((20,), 0, forward)
    args = (torch.randn(5, WIDTH), torch.zeros(5, dtype=torch.int64))
    for backend in ("portable", "xnnpack"):
        with pytest.raises(rl.ExportError, match=r"(?s)rushlight::adapter.*leave adapters= out"):
            rl.export(model, args, backend=backend)


def test_rows_that_are_no_tokens_are_refused() -> None:
    def forward(layers: Any, x: Tensor, sequences: Tensor) -> Tensor:
        return _added(layers[0](x[1:]), x[1:], sequences, 0)

    model = Layers((20,), 0, forward)
    args = (torch.randn(5, WIDTH), torch.zeros(5, dtype=torch.int64))
    with pytest.raises(Exception, match="one row for each token"):
        torch.export.export(model, args)


def test_eager_adds_what_the_sequences_have() -> None:
    def forward(layers: Any, x: Tensor, sequences: Tensor) -> Tensor:
        return _added(layers[0](x), x, sequences, 2)

    model = Layers((20,), 0, forward)
    x, sequences = torch.randn(4, WIDTH), torch.tensor([0, 1, 1, 5])
    a, b = torch.randn(RANK, WIDTH), torch.randn(20, RANK)
    plain = model(x, sequences)
    with EagerAdapters({1: {2: (a, b)}, 5: {0: (a, b)}}).active():
        changed = model(x, sequences)
    assert torch.equal(changed[[0, 3]], plain[[0, 3]])
    assert torch.allclose(changed[1:3], plain[1:3] + x[1:3] @ a.t() @ b.t(), atol=1e-4)
