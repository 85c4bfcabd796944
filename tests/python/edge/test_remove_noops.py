"""remove_noops: operators that change nothing go, chains of views and permutes merge."""

import torch
from expecttest import assert_expected_inline
from graphs import run
from pass_text import text, traced

from rushlight.edge.passes.remove_noops import remove_noops
from rushlight.ir.rewrite import remove_dead


def test_identity_operators_go_and_chains_merge() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        y = x.clone().expand(2, 3, 4).view(6, 4).view(2, 12)
        return y.view(2, 3, 4).permute(0, 2, 1).permute(2, 0, 1) + 1.0

    x = torch.randn(2, 3, 4)
    program = traced(model, x)
    remove_noops(program.graph)
    remove_dead(program.graph)
    assert_expected_inline(
        text(program),
        """\
x: float32[2, 3, 4]
%1: float32[3, 2, 4] = permute(x, [1, 0, 2])
%2: float32[3, 2, 4] = add.Tensor(%1, 1.0)
return [%2]
""",
    )
    assert torch.equal(run(program, x)[0], model(x))


def test_a_copy_that_changes_dtype_or_layout_stays() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float64).contiguous(memory_format=torch.channels_last)

    program = traced(model, torch.randn(1, 2, 3, 4))
    remove_noops(program.graph)
    assert_expected_inline(
        text(program),
        """\
x: float32[1, 2, 3, 4]
%1: float64[1, 2, 3, 4] = _to_copy(x, dtype=float64)
%2: float64[1, 2, 3, 4] = clone(%1, memory_format=channels_last)
return [%2]
""",
    )


def test_a_copy_into_row_major_order_stays_where_a_value_has_another() -> None:
    def model(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        taken = (x * 2.0).contiguous()
        # A permute is copied into row-major order, and its result needs no copy.
        return taken.contiguous(), y.permute(0, 3, 1, 2).contiguous(), y.contiguous().neg()

    x = torch.randn(1, 2, 3, 4).to(memory_format=torch.channels_last)
    program = traced(model, x, torch.randn(1, 2, 3, 4))
    remove_noops(program.graph)
    remove_dead(program.graph)
    assert_expected_inline(
        text(program),
        """\
x: float32[1, 2, 3, 4]
y: float32[1, 2, 3, 4]
%1: float32[1, 2, 3, 4] = mul.Tensor(x, 2.0)
%2: float32[1, 2, 3, 4] = clone(%1, memory_format=contiguous_format)
%3: float32[1, 4, 2, 3] = permute(y, [0, 3, 1, 2])
%4: float32[1, 2, 3, 4] = neg(y)
return [%2, %3, %4]
""",
    )


def test_dynamic_sizes_are_compared_without_adding_a_guard() -> None:
    program = traced(lambda x: x.view(x.shape[0], 4) + 1.0, torch.randn(3, 4), dynamic=True)
    shapes = program.graph.find_nodes(op="placeholder")[0].meta["val"].fake_mode.shape_env
    guards = len(shapes.guards)
    remove_noops(program.graph)
    remove_dead(program.graph)
    assert_expected_inline(
        text(program),
        """\
x: float32[s0, 4]
%1: float32[s0, 4] = add.Tensor(x, 1.0)
return [%1]
""",
    )
    assert len(shapes.guards) == guards


def test_cat_joins_only_tensors_with_elements() -> None:
    def joined(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, y, z])

    x, y, empty = torch.ones(2, 3), torch.zeros(1, 3), torch.ones(0, 3)
    # The dtype of an empty tensor counts, and one tensor must stay.
    for tensors, count in (((x, empty, y), 2), ((x, empty.double(), y), 3), ((empty,) * 3, 3)):
        program = traced(joined, *tensors)
        remove_noops(program.graph)
        remove_dead(program.graph)
        (cat,) = (n for n in program.graph.nodes if n.target is torch.ops.aten.cat.default)
        assert len(cat.args[0]) == count
        assert torch.equal(run(program, *tensors)[0], joined(*tensors))
