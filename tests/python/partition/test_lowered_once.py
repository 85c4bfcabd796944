"""A method is lowered once where it is clear from the start which calls no backend takes whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import rushlight as rl
from rushlight.backends.cpu import CpuBackend, CpuPartitioner
from rushlight.backends.cpu.operators.table import OPERATORS
from rushlight.partition.operators import may_take
from rushlight.pipeline import edge_manager as pipeline
from rushlight.pipeline import to_edge_transform_and_lower

aten = torch.ops.aten
X = torch.randn(4, 4)


class Does(nn.Module):
    def __init__(self, does: Callable[[torch.Tensor, nn.Linear], torch.Tensor]) -> None:
        super().__init__()
        self.does = does
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.does(self.linear(x), self.linear)


def product(x: torch.Tensor, linear: nn.Linear) -> torch.Tensor:
    """A product whose weights are computed."""
    return F.linear(x, x.sigmoid())


def attention(x: torch.Tensor, linear: nn.Linear) -> torch.Tensor:
    """Attention over two dimensions; the engine's takes four."""
    return F.scaled_dot_product_attention(x, x, x)


def double(x: torch.Tensor, linear: nn.Linear) -> torch.Tensor:
    """A computation in float64, which the engine does not have."""
    return F.silu(x.double()).float()


def plain(x: torch.Tensor, linear: nn.Linear) -> torch.Tensor:
    return F.silu(x)


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Counts how often each method was lowered to Edge, and how often partitions were compiled."""
    calls: Counter[str] = Counter()
    edge, preprocess = pipeline.to_edge_dialect, CpuBackend.preprocess_multimethod

    def counted_edge(program: Any, config: Any, *, method: str = "forward", **kwargs: Any) -> Any:
        calls[method] += 1
        return edge(program, config, method=method, **kwargs)

    def counted_preprocess(parts: dict[str, list[Any]], specs: Any) -> Any:
        calls["preprocess"] += sum(map(len, parts.values()))
        return preprocess(parts, specs)

    monkeypatch.setattr(pipeline, "to_edge_dialect", counted_edge)
    monkeypatch.setattr(CpuBackend, "preprocess_multimethod", staticmethod(counted_preprocess))
    yield calls


@pytest.mark.parametrize("does", [plain, product, attention, double], ids=lambda f: f.__name__)
def test_what_is_surely_declined_is_decomposed_at_once(
    counts: Counter[str], does: Callable[..., torch.Tensor]
) -> None:
    model = Does(does).eval()
    program = rl.export(model, (X,), backend="cpu")
    assert counts["forward"] == 1
    assert torch.allclose(torch.as_tensor(rl.load(program.buffer)(X)), model(X), atol=1e-5)


def test_only_a_method_with_a_declined_call_is_lowered_again_and_compiled_once(
    counts: Counter[str],
) -> None:
    class Declining(CpuPartitioner):
        """Accepts silu as a whole call, and declines it only when partitioning."""

        def _why_not(self, node: torch.fx.Node) -> str | None:
            return "not here" if node.target is aten.silu.default else super()._why_not(node)

    programs = {
        name: torch.export.export(Does(does).eval(), (X,))
        for name, does in (("declined", plain), ("taken", lambda x, linear: F.relu(x)))
    }
    manager = to_edge_transform_and_lower(programs, partitioner=[Declining()])
    assert counts == {"declined": 2, "taken": 1, "preprocess": counts["preprocess"]}
    whole = [n.target for n in manager.exported_program("declined").graph.nodes]
    assert aten.silu.default not in whole
    # A part before what stands for silu, and those behind it; none was compiled in the first round.
    parts = sum(
        "executorch_call_delegate" in str(node.target)
        for name in programs
        for node in manager.exported_program(name).graph.nodes
    )
    assert counts["preprocess"] == parts


def test_constants_to_be_are_told_from_computed_values() -> None:
    def takes(does: Callable[[torch.Tensor, nn.Linear], torch.Tensor]) -> list[bool]:
        program = torch.export.export(Does(does).eval(), (X,))
        accepts = may_take(OPERATORS, (torch.float32,), program)
        return [accepts(n) for n in program.graph.nodes if n.target is aten.linear.default][1:]

    assert takes(lambda x, linear: F.linear(x, linear.weight)) == [True]
    assert takes(lambda x, linear: F.linear(x, linear.weight.t() * 2)) == [True]
    assert takes(lambda x, linear: F.linear(x, torch.ones_like(x))) == [True]
    assert takes(lambda x, linear: F.linear(x, x.relu())) == [False]
    assert takes(lambda x, linear: F.linear(x, linear.weight, x[:, 0])) == [False]
    assert takes(lambda x, linear: F.linear(x.double(), linear.weight.double())) == [False]
