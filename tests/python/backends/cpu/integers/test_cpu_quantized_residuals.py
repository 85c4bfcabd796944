"""The cpu backend: sums with a product's result that the product computes itself, in integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from cpu_quantized_models import (
    Conv,
    Holding,
    Linear,
    left_of,
    lowered,
    names_of,
    nodes_in,
    qdq,
    residuals_of,
    whole,
)
from torch import Tensor, nn
from torch.nn import functional

import rushlight as rl
from delegates import lowered_modules
from rushlight.backends.cpu import CpuPartitioner
from rushlight.backends.cpu.patterns.integers import fuse as quantized_pattern
from rushlight.inspect.work import work_of
from rushlight.schema import cpu_engine as fb


def image(batch: int = 2) -> Tensor:
    return torch.randn(batch, 6, 9, 11)


def padded(*sizes: int, **window: Any) -> Conv:
    return Conv(*sizes, padding=(sizes[-2] // 2, sizes[-1] // 2), **window)


class Bottlenecks(nn.Module):
    """Blocks of three convolutions, as ResNet-50 has them: the first of another width."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.ModuleList(
            [Conv(8, 6, 1, 1), padded(8, 8, 3, 3), Conv(40, 8, 1, 1), Conv(40, 6, 1, 1)]
        )
        self.others = nn.ModuleList(
            nn.ModuleList([Conv(8, 40, 1, 1), padded(8, 8, 3, 3), Conv(40, 8, 1, 1)])
            for _ in range(2)
        )
        self.last = padded(40, 40, 3, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = qdq(x, 0.03)
        short = qdq(self.first[3](x), 0.04, 9)
        x = self.block(self.first, x, short)
        for parts in self.others:
            x = self.block(parts, x, x)
        return qdq(x + qdq(self.last(x), 0.3, 2), 0.3, -20)

    def block(self, parts: Any, x: Tensor, short: Tensor) -> Tensor:
        y = qdq(torch.relu(parts[0](x)), 0.02, -128)
        y = qdq(torch.relu(parts[1](y)), 0.03, -128)
        return qdq(torch.relu(qdq(parts[2](y), 0.05, 3) + short), 0.05, -128)


def module_of(edge: rl.EdgeProgramManager, threads: int = 1) -> Any:
    return rl.load(bytes(edge.to_executorch().buffer), check_backends=True, threads=threads)


def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums stay separate nodes."""
    monkeypatch.setattr(quantized_pattern, "fuse_residuals", lambda rewriter: None)


def test_residuals_are_added_by_convolutions(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = Bottlenecks(), image()
    operators = whole(model, x, scale=0.3, most=3)
    assert "QuantizedBinary" not in operators
    edge = lowered(model, x)
    assert len(residuals_of(nodes_in(edge))) == 4
    fused = [module_of(edge, threads)(x) for threads in (1, 2)]
    apart(monkeypatch)
    before = lowered(model, x)
    assert names_of(nodes_in(before)).count("QuantizedBinary") == 4
    assert not residuals_of(nodes_in(before))
    wanted = module_of(before)(x)
    assert len(wanted.unique()) > 20
    assert all(torch.equal(one, wanted) for one in fused)


def test_batches_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Bottlenecks().eval()
    sizes = ({0: torch.export.Dim("batch", max=5)},)

    def loaded() -> Any:
        exported = torch.export.export(model, (image(),), dynamic_shapes=sizes)
        edge = rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])
        assert not left_of(edge)
        return module_of(edge, 2), len(residuals_of(nodes_in(edge)))

    fused, count = loaded()
    apart(monkeypatch)
    before, _ = loaded()
    assert count == 4
    for batch in (2, 5, 1):
        x = image(batch)
        assert torch.equal(fused(x), before(x))


def sums_of(model: nn.Module, *args: Tensor, most: int = 3) -> list[fb.QuantizedBinary]:
    """Compare results with the reference, and with eager within `most` integers; returns the fused
    sums."""
    whole(model, *args, scale=0.06, most=most)
    return [residual.sum for residual in residuals_of(nodes_in(lowered(model, *args)))]


def one_sum(combine: Callable[[Tensor, Tensor], Tensor], inner: Any = None) -> nn.Module:
    """combine(x, a convolution of x)."""
    conv = inner or padded(6, 6, 3, 3)

    def forward(x: Tensor) -> Tensor:
        x = qdq(x, 0.03, 4)
        return qdq(combine(x, qdq(conv(x), 0.05, 3)), 0.06, 1)

    return Holding(conv, forward)


SUMS: list[Any] = [
    (lambda x, y: x + y, (fb.QuantizedBinaryKind.ADD, 0.05, 0.03)),
    (lambda x, y: y + x, (fb.QuantizedBinaryKind.ADD, 0.05, 0.03)),
    (lambda x, y: torch.add(y, x, alpha=2), (fb.QuantizedBinaryKind.ADD, 0.05, 0.06)),
    (lambda x, y: torch.add(x, y, alpha=0.5), (fb.QuantizedBinaryKind.ADD, 0.025, 0.03)),
    (lambda x, y: y - x, (fb.QuantizedBinaryKind.SUBTRACT, 0.05, 0.03)),
    (lambda x, y: torch.add(y, x, alpha=-1), (fb.QuantizedBinaryKind.SUBTRACT, 0.05, 0.03)),
]


@pytest.mark.parametrize("combine, expected", SUMS)
def test_which_sums(combine: Any, expected: tuple[Any, float, float]) -> None:
    [kind] = sums_of(one_sum(combine), image())
    assert kind.kind is expected[0]
    assert (kind.a_scale, kind.b_scale) == pytest.approx(expected[1:])
    assert (kind.a_zero_point, kind.b_zero_point) == (131, 132)


APART: list[Any] = [
    lambda x, y: x - y,
    lambda x, y: x * y,
    lambda x, y: y + y,
    lambda x, y: y + x[:, :, :1],
    lambda x, y: y[:, :, :1] + x,
    lambda x, y: y * qdq(x + y, 0.05, 3),
]


@pytest.mark.parametrize("combine", APART)
def test_what_stays_a_node_of_its_own(combine: Any) -> None:
    assert not sums_of(one_sum(combine), image())


def test_depthwise_convolutions_do_not_add() -> None:
    assert not sums_of(one_sum(torch.add, padded(6, 1, 3, 3, groups=6)), image())


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_grouped_convolutions_add(groups: int) -> None:
    assert sums_of(one_sum(torch.add, padded(6, 6 // groups, 3, 3, groups=groups)), image())


def test_of_two_products_the_last_one_adds() -> None:
    one, other = padded(6, 6, 3, 3), padded(6, 6, 5, 5)

    def forward(x: Tensor) -> Tensor:
        x = qdq(x, 0.03, 4)
        return qdq(qdq(one(x), 0.05, 3) + qdq(other(x), 0.07, 2), 0.06, 1)

    model = Holding(one, other, forward)
    [kind] = sums_of(model, image())
    assert kind.a_scale == pytest.approx(0.07)


def test_linear_layers_add() -> None:
    one, other = Linear(8, 16), Linear(16, 8)

    def forward(x: Tensor) -> Tensor:
        x = qdq(x, 0.03, 4)
        y = qdq(torch.relu(one(x)), 0.02, -128)
        return qdq(x + qdq(other(y), 0.05, 3), 0.06, 1)

    assert sums_of(Holding(one, other, forward), torch.randn(2, 5, 16))


def test_convolutions_over_lines_add() -> None:
    conv = Conv(6, 6, 3, padding=1)
    assert sums_of(one_sum(torch.add, conv), torch.randn(2, 6, 21))


@pytest.mark.parametrize("size", [(1, 1), (3, 3)])
def test_residuals_that_lie_otherwise(size: tuple[int, int]) -> None:
    """Channels first, channels of more than are added, pixels that are turned."""
    parts = [padded(9, 6, 3, 3), *(padded(6, 6, *size) for _ in range(3))]

    def forward(x: Tensor) -> Tensor:
        x = qdq(x, 0.03, 4)
        y = qdq(parts[0](x), 0.05, 3)
        z = qdq(x + qdq(parts[1](x), 0.05, 3), 0.06, 1)
        z = qdq(y[:, 2:8] + qdq(parts[2](z), 0.05, 3), 0.06, 1)
        return qdq(y[:, 3:].transpose(2, 3) + qdq(parts[3](z), 0.05, 3), 0.06, 1)

    # Each operator may be off by one integer, which later operators may amplify.
    assert len(sums_of(Holding(*parts, forward), torch.randn(2, 6, 9, 9), most=8)) == 3


def test_a_sum_adds_once() -> None:
    """A term that is added to the sum stays a separate node."""
    assert len(sums_of(one_sum(lambda x, y: qdq(x + y, 0.06, 1) + x), image())) == 1


def test_a_pad_that_is_added_is_there() -> None:
    conv = Conv(6, 6, 3, 3, padding=1)

    def forward(x: Tensor) -> Tensor:
        x = qdq(functional.pad(qdq(x, 0.03, 4), (1, 1, 1, 1)), 0.03, 4)
        return qdq(x + qdq(conv(x), 0.05, 3), 0.06, 1)

    assert sums_of(Holding(conv, forward), image())


# --- memory ---------------------------------------------------------------------------------------


def in_place(model: nn.Module, *args: Tensor, scale: float = 0.06) -> list[bool]:
    """For each fused sum, whether it is stored in the memory of its residual."""
    whole(model, *args, scale=scale, most=3)
    [part] = lowered_modules(lowered(model, *args).exported_program())
    graph = fb.unpack(part.processed_bytes)
    shared = []
    for node in graph.nodes:
        if residuals_of([node]):
            out = graph.values[node.outputs[0]]
            added = graph.values[residuals_of([node])[0].value]
            shared.append((out.place, out.offset) == (added.place, added.offset))
    return shared


def test_sums_replace_their_residuals() -> None:
    """All do except the last one, whose residual is also the input of its convolution."""
    model, x = Bottlenecks(), image()
    assert in_place(model, x, scale=0.3) == [True, True, True, False]


@pytest.mark.parametrize("size", [(1, 1), (3, 3)])
def test_a_residual_that_is_read_later_stays(size: tuple[int, int]) -> None:
    parts = padded(6, 6, 3, 3), padded(6, 6, 3, 3), padded(6, 6, *size)

    def forward(x: Tensor, later: bool) -> Tensor:
        x = qdq(parts[0](qdq(x, 0.03, 4)), 0.04, -5)
        y = qdq(torch.relu(parts[1](x)), 0.02, -128)
        y = qdq(x + qdq(parts[2](y), 0.05, 3), 0.06, 1)
        return qdq(x * y, 0.06, 1) if later else y

    def with_later(later: bool) -> nn.Module:
        return Holding(*parts, lambda x: forward(x, later))

    assert in_place(with_later(False), image()) == [True]
    assert in_place(with_later(True), image()) == [False]


def test_inputs_are_not_replaced() -> None:
    linear = Linear(16, 16)
    dequantize = torch.ops.quantized_decomposed.dequantize_per_tensor

    def forward(x: Tensor, y: Tensor) -> Tensor:
        x, y = (dequantize(one, 0.03, 4, 0, 255, torch.uint8) for one in (x, y))
        return qdq(qdq(linear(x), 0.05, 3) + y, 0.06, 1)

    inputs = [torch.randint(0, 256, (5, 16), dtype=torch.uint8) for _ in range(2)]
    assert in_place(Holding(linear, forward), *inputs) == [False]


# --- reports --------------------------------------------------------------------------------------


def test_both_calls_are_in_the_profile() -> None:
    model, x = one_sum(lambda x, y: torch.relu(x + y)), image()
    program = rl.export(model.eval(), (x,), backend="cpu", verify=False)
    [work] = [one for one in work_of(program.buffer)["forward"] if one.nodes]
    [convolution] = [one for one in work.inside.values() if one.name.endswith("+")]
    assert convolution.name == "QuantizedConvolution+"
    assert {"convolution", "add", "relu"} <= set(convolution.nodes)
    lines = {source.text for source in convolution.sources}
    assert any("conv(x" in line for line in lines) and any("x + y" in line for line in lines)
    weights, columns = 9 * 2 * 64, 2 * 16 * 4
    assert convolution.bytes == 3 * x.numel() + weights + columns
