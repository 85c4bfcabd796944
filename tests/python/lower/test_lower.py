"""lower: out-variants on planned tensors, views without copies, buffers written back."""

import pytest
import torch
from graphs import captured, operators

from rushlight.edge import EdgeCompileConfig, to_edge_dialect
from rushlight.errors import ExportError
from rushlight.ir.alloc import alloc
from rushlight.lower import LoweredMethod, lower


def _lowered(function, *args, **options) -> LoweredMethod:  # type: ignore[no-untyped-def]
    return lower(to_edge_dialect(captured(function, *args), EdgeCompileConfig()), **options)


def test_every_result_is_allocated_and_written_by_an_out_variant() -> None:
    method = _lowered(lambda x: torch.topk(x.sin(), 2), torch.randn(5))
    assert operators(method.graph) == ["sin.out", "topk.values"]
    allocs = [n for n in method.graph.nodes if n.target is alloc]
    assert [a.meta["spec"].shape for a in allocs] == [(5,), (2,), (2,)]
    assert [a.meta["spec"].dtype for a in allocs] == [torch.float32, torch.float32, torch.int64]


def test_views_of_intermediates_share_memory() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        y = x.sin().view(6).unsqueeze(0).transpose(0, 1)  # (6, 1): no byte moves
        return y.cos()

    method = _lowered(model, torch.randn(2, 3))
    assert operators(method.graph) == ["sin.out", "cos.out"]
    kept = _lowered(model, torch.randn(2, 3), remove_view_copy=False)
    assert len(operators(kept.graph)) == 5


def test_a_transpose_that_moves_bytes_is_copied() -> None:
    method = _lowered(lambda x: x.sin().t().cos(), torch.randn(2, 3))
    assert operators(method.graph) == ["sin.out", "permute_copy.out", "cos.out"]


class _Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        before = self.count.clone()
        self.count.add_(x)
        return before, self.count * 1.0


def test_a_buffer_is_written_back_after_its_old_value_was_saved() -> None:
    method = _lowered(_Counter(), torch.ones(2))
    names = operators(method.graph)
    assert names[-1] == "copy_.default"
    assert names.index("dim_order_ops._clone_dim_order.out") < names.index("copy_.default")
    (buffer,) = method.buffers.values()
    assert buffer.name == "count"
    assert method.outputs[0] not in method.buffers


def test_writing_an_input_is_refused() -> None:
    with pytest.raises(ExportError, match=r"writes its input 'args_0'.*return the new value"):
        _lowered(lambda x: x.add_(1), torch.ones(2))


def test_channels_last_stays_channels_last() -> None:
    x = torch.randn(1, 3, 8, 8).to(memory_format=torch.channels_last)
    method = _lowered(torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()), x)
    orders = [n.meta["spec"].dim_order for n in method.graph.nodes if n.target is alloc]
    assert orders == [(0, 2, 3, 1), (0, 2, 3, 1)]
