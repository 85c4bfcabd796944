"""to_edge_dialect: its output verifies, computes what eager does, and leaves its input alone."""

import torch
from graphs import captured, operators

from rushlight.edge import EdgeCompileConfig, to_edge_dialect
from rushlight.ir.dialect import EDGE
from rushlight.ir.verify import verify


class _Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        self.seen.add_(1)
        y = self.linear(x).view(2, 2, 4).transpose(1, 2)
        return {"y": y[:, 0] * 2 + 1, "seen": self.seen * 1.0}


def test_views_are_copies_and_the_input_is_not_changed() -> None:
    model = _Model()
    program = captured(model, torch.randn(2, 8))
    before = str(program.graph)
    edge = to_edge_dialect(program, EdgeCompileConfig())
    assert str(program.graph) == before
    verify(edge.graph, EDGE, "test")
    names = operators(edge.graph)
    assert "linear.default" in names
    assert not {"view.default", "permute.default", "select.int"} & set(names)
    assert {"view_copy.default", "permute_copy.default", "select_copy.int"} <= set(names)


def test_results_equal_eager() -> None:
    model = _Model()
    x = torch.randn(2, 8)
    edge = to_edge_dialect(captured(model, x), EdgeCompileConfig())
    ours, eager = edge.module()(x), model(x)
    assert ours.keys() == eager.keys()
    torch.testing.assert_close(ours["y"], eager["y"])


def test_layouts_become_dim_orders() -> None:
    program = captured(
        lambda x: x.to(torch.float64).contiguous(memory_format=torch.channels_last) + 1.0,
        torch.randn(1, 2, 3, 4),
    )
    edge = to_edge_dialect(program, EdgeCompileConfig())
    copies = [n for n in edge.graph.nodes if "dim_order_ops" in str(n.target)]
    assert [n.kwargs["dim_order"] for n in copies] == [[0, 1, 2, 3], [0, 2, 3, 1]]
    skipped = to_edge_dialect(
        program, EdgeCompileConfig(_skip_dim_order=True, _check_ir_validity=False)
    )
    assert "_to_copy.default" in operators(skipped.graph)


def test_kept_operators_stay_whole() -> None:
    program = captured(lambda x: torch.nn.functional.silu(x), torch.randn(3))
    silu = torch.ops.aten.silu.default
    assert "silu.default" not in operators(to_edge_dialect(program, EdgeCompileConfig()).graph)
    kept = to_edge_dialect(program, EdgeCompileConfig(preserve_ops=[silu]))
    assert operators(kept.graph) == ["silu.default"]
