"""remove_noops: operators that change nothing go, chains of views and permutes merge."""

import torch
from graphs import core, operators, run

from rushlight.edge.passes.remove_asserts import remove_asserts
from rushlight.edge.passes.remove_noops import remove_noops
from rushlight.ir.rewrite import remove_dead


def test_identity_operators_go_and_chains_merge() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        y = x.clone().to(torch.float32).expand(2, 3, 4).reshape(2, 3, 4)
        y = y.view(6, 4).view(2, 12)
        return y.view(2, 3, 4).permute(0, 2, 1).permute(2, 0, 1) + 1.0

    x = torch.randn(2, 3, 4)
    program = core(model, x)
    remove_asserts(program.graph)
    remove_noops(program.graph)
    remove_dead(program.graph)
    assert operators(program.graph) == ["permute.default", "add.Tensor"]
    assert torch.equal(run(program, x)[0], model(x))


def test_a_copy_that_changes_dtype_or_layout_stays() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float64).contiguous(memory_format=torch.channels_last) * 2.0

    x = torch.randn(1, 2, 3, 4)
    program = core(model, x)
    before = operators(program.graph)
    remove_noops(program.graph)
    assert operators(program.graph) == before
    assert "_to_copy.default" in before and "clone.default" in before


def test_dynamic_sizes_are_compared_without_adding_a_guard() -> None:
    class Reshape(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.reshape(x.shape[0], 4) + 1.0

    from rushlight.edge.to_edge import to_core_aten

    batch = torch.export.Dim("batch", min=2, max=9)
    exported = torch.export.export(
        Reshape(), (torch.randn(3, 4),), dynamic_shapes={"x": {0: batch}}
    )
    program = to_core_aten(exported)
    ranges = dict(program.range_constraints)
    remove_noops(program.graph)
    remove_dead(program.graph)
    assert operators(program.graph) == ["add.Tensor"]
    assert program.range_constraints == ranges
