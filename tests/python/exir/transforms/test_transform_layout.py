"""Passes over permutes and views: what they leave, and that it computes the same as before."""

from __future__ import annotations

import pytest
import torch
from fx_graphs import Builder, changed
from torch.export import Dim, export

from rushlight.edge.operators import ops
from rushlight.exir.manager import to_edge
from rushlight.exir.transforms.layout.fuse_cascaded_reorders import (
    FuseCascadedTransposeOrPermuteOps,
)
from rushlight.exir.transforms.layout.fuse_cascaded_views import FuseCascadedViewOps
from rushlight.exir.transforms.layout.fuse_reorder_pairs import FuseTransposeOrPermuteOpPairsPass
from rushlight.exir.transforms.layout.fuse_views import FuseViewCopyTransform
from rushlight.exir.transforms.layout.orders import extra_one
from rushlight.exir.transforms.layout.postpone_permutes import (
    PostponePermuteOpBelowSqueezeOrUnsqueezeLikeView,
)
from rushlight.exir.transforms.layout.remove_permutes import RemovePermutesAroundElementwiseOps
from rushlight.exir.transforms.layout.reorders_to_views import (
    ReplaceNopTransposeOrPermuteWithViewPass,
)
from rushlight.exir.transforms.layout.views_to_squeezes import ViewCopyToSqueezeUnsqueezePass

aten = ops.edge.aten
PERMUTE, TRANSPOSE = aten.permute_copy.default, aten.transpose_copy.int
VIEW, ADD, MUL = aten.view_copy.default, aten.add.Tensor, aten.mul.Tensor
X = torch.randn(2, 3, 4, 5)


def test_permutes_in_a_row_become_one_or_none() -> None:
    b = Builder(X)
    first = b.call(PERMUTE, b.inputs[0], [0, 2, 3, 1])
    back = b.call(PERMUTE, first, [0, 3, 1, 2])
    other = b.call(TRANSPOSE, first, 0, -1)
    left = changed(FuseCascadedTransposeOrPermuteOps(), b.module(back, other), X)
    assert left == ["permute_copy.default"]


def test_permutes_around_a_view_cancel_if_all_others_stay_in_order() -> None:
    x = torch.randn(1, 40, 18)
    b = Builder(x)
    view = b.call(VIEW, b.call(TRANSPOSE, b.inputs[0], 1, 2), [1, 18, 1, 40])
    left = changed(
        FuseCascadedTransposeOrPermuteOps(), b.module(b.call(PERMUTE, view, [0, 2, 3, 1])), x
    )
    assert left == ["view_copy.default"]
    b = Builder(x)
    view = b.call(VIEW, b.call(TRANSPOSE, b.inputs[0], 1, 2), [1, 18, 1, 40])
    stays = b.module(b.call(PERMUTE, view, [0, 1, 3, 2]))
    assert not FuseCascadedTransposeOrPermuteOps()(stays).modified


def test_views_in_a_row_become_one() -> None:
    b = Builder(X)
    view = b.call(VIEW, b.inputs[0], [6, 20])
    module = b.module(b.call(VIEW, view, [120]), b.call(VIEW, view, [12, 10]))
    assert changed(FuseCascadedViewOps(), module, X) == ["view_copy.default"] * 2


def test_views_are_fused_across_elementwise_calls() -> None:
    b = Builder(X)
    value = b.call(aten.abs.default, b.call(VIEW, b.inputs[0], [6, 20]))
    value = b.call(aten.sqrt.default, b.call(VIEW, value, [5, 24]))
    layout = ops.edge.dim_order_ops._clone_dim_order.default
    value = b.call(layout, value, dim_order=[0, 1])
    module = b.module(b.call(VIEW, value, [2, 60, 1]))
    left = changed(FuseViewCopyTransform(), module, X)
    assert left == ["view_copy.default", "abs.default", "sqrt.default", "_clone_dim_order.default"]


def test_pairs_across_quantisation_become_views() -> None:
    torch.ao.quantization.fx._decomposed  # noqa: B018  (defines the operators)
    q = ops.edge.quantized_decomposed
    b = Builder(X)
    rest = (0.1, 0, -128, 127, torch.int8)
    moved = b.call(PERMUTE, b.inputs[0], [0, 2, 3, 1])
    integers = b.call(q.quantize_per_tensor.default, moved, *rest)
    real = b.call(q.dequantize_per_tensor.default, integers, *rest)
    module = b.module(b.call(PERMUTE, real, [0, 3, 1, 2]))
    left = changed(FuseTransposeOrPermuteOpPairsPass(), module, X)
    assert left == [
        "quantize_per_tensor.default",
        "dequantize_per_tensor.default",
        "view_copy.default",
    ]
    b = Builder(X)
    moved = b.call(PERMUTE, b.inputs[0], [0, 2, 3, 1])
    stays = b.module(b.call(PERMUTE, moved, [0, 3, 1, 2]), b.call(aten.abs.default, moved))
    assert not FuseTransposeOrPermuteOpPairsPass()(stays).modified


def test_permutes_move_behind_views_that_change_a_size_of_one() -> None:
    x = torch.randn(3, 12, 64)
    b = Builder(x)
    moved = b.call(PERMUTE, b.inputs[0], [1, 0, 2])
    module = b.module(b.call(VIEW, moved, [12, 1, 3, 64]))
    one = PostponePermuteOpBelowSqueezeOrUnsqueezeLikeView()
    assert changed(one, module, x) == ["view_copy.default", "permute_copy.default"]
    x = torch.randn(3, 1, 12, 64)
    b = Builder(x)
    moved = b.call(PERMUTE, b.inputs[0], [3, 1, 0, 2])
    module = b.module(b.call(VIEW, moved, [64, 3, 12]))
    assert changed(one, module, x) == ["view_copy.default", "permute_copy.default"]


def test_sizes_that_vary_are_asked_for() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.permute(1, 0, 2).unsqueeze(0).reshape(1, 12, x.shape[0], 64) + 1.0

    x = torch.randn(3, 12, 64)
    program = export(Model(), (x,), dynamic_shapes=({0: Dim("n", min=2, max=9)},))
    edge = to_edge(program)
    passes = [
        ReplaceNopTransposeOrPermuteWithViewPass(),
        PostponePermuteOpBelowSqueezeOrUnsqueezeLikeView(),
        FuseCascadedViewOps(),
    ]
    module = edge.transform(passes).exported_program().module()
    for n in (3, 5):
        x = torch.randn(n, 12, 64)
        torch.testing.assert_close(module(x), Model()(x))


def test_reorders_that_move_no_element_become_views() -> None:
    x = torch.randn(3, 1, 4, 1)
    b = Builder(x)
    outs = [
        b.call(PERMUTE, b.inputs[0], [0, 2, 1, 3]),
        b.call(TRANSPOSE, b.inputs[0], 1, -1),
        b.call(PERMUTE, b.inputs[0], [0, 1, 2, 3]),
        b.call(TRANSPOSE, b.inputs[0], 0, 2),
    ]
    left = changed(ReplaceNopTransposeOrPermuteWithViewPass(), b.module(*outs), x)
    assert left == ["view_copy.default", "view_copy.default", "transpose_copy.int"]


def test_views_become_squeezes_and_unsqueezes() -> None:
    x = torch.randn(2, 1, 3, 1)
    b = Builder(x)
    outs = [b.call(VIEW, b.inputs[0], sizes) for sizes in ([2, 3], [1, 2, 1, 3, 1], [3, 2], [6])]
    left = changed(ViewCopyToSqueezeUnsqueezePass(), b.module(*outs), x)
    assert left == ["squeeze_copy.dims", "unsqueeze_copy.default"] + ["view_copy.default"] * 2


@pytest.mark.parametrize(
    ("longer", "shorter", "place"),
    [
        ([1, 3], [3], 0),
        ([3, 1], [3], 1),
        ([2, 1, 3], [2, 3], 1),
        ([2, 2], [2], None),
        ([3], [], None),
    ],
)
def test_extra_one(longer: list[int], shorter: list[int], place: int | None) -> None:
    assert extra_one(longer, shorter) == place


def test_permutes_around_a_region_go() -> None:
    b = Builder(X, X)
    one, other = (b.call(PERMUTE, x, [0, 2, 3, 1]) for x in b.inputs)
    both = b.call(aten.cat.default, [one, b.call(aten.sigmoid.default, other)], -1)
    cut = b.call(aten.slice_copy.Tensor, b.call(ADD, both, both), 1, 1, 3)
    mean = b.call(aten.mean.dim, cut, [1, 2], True)
    left = changed(
        RemovePermutesAroundElementwiseOps(), b.module(b.call(PERMUTE, mean, [0, 3, 1, 2])), X, X
    )
    assert "permute_copy.default" not in left


def test_constants_of_a_region_are_permuted() -> None:
    b = Builder(X)
    moved = b.call(PERMUTE, b.inputs[0], [0, 2, 3, 1])
    per_channel = b.call(aten.full.default, [3], 2.0)
    whole = b.call(aten.full.default, [4, 5, 1], 3.0)
    value = b.call(MUL, b.call(ADD, moved, per_channel), whole)
    left = changed(
        RemovePermutesAroundElementwiseOps(), b.module(b.call(PERMUTE, value, [0, 3, 1, 2])), X
    )
    assert left.count("permute_copy.default") == 0


@pytest.mark.parametrize("explicit", [False, True], ids=["views", "squeezes"])
def test_views_of_a_region_change_the_order(explicit: bool) -> None:
    x = torch.randn(2, 7, 5)
    b = Builder(x, x)

    def unsqueeze(node: torch.fx.Node) -> torch.fx.Node:
        if explicit:
            return b.call(aten.unsqueeze_copy.default, node, -2)
        return b.call(VIEW, node, [2, 5, 1, 7])

    # The second is reached from the sum, against the direction of the data.
    one, other = (unsqueeze(b.call(PERMUTE, v, [0, 2, 1])) for v in b.inputs)
    total = b.call(ADD, one, other)
    back = b.call(aten.squeeze_copy.dim, total, 2) if explicit else b.call(VIEW, total, [2, 5, 7])
    left = changed(
        RemovePermutesAroundElementwiseOps(), b.module(b.call(PERMUTE, back, [0, 2, 1])), x, x
    )
    assert "permute_copy.default" not in left and "add.Tensor" in left


def test_a_region_with_another_end_stays() -> None:
    b = Builder(X)
    value = b.call(ADD, b.call(PERMUTE, b.inputs[0], [0, 2, 3, 1]), 1.0)
    stays = b.module(b.call(PERMUTE, value, [0, 3, 1, 2]), value)
    assert not RemovePermutesAroundElementwiseOps()(stays).modified
    b = Builder(X)
    value = b.call(aten.cumsum.default, b.call(PERMUTE, b.inputs[0], [0, 2, 3, 1]), 1)
    stays = b.module(b.call(PERMUTE, value, [0, 3, 1, 2]))
    assert not RemovePermutesAroundElementwiseOps()(stays).modified
    own = {aten.cumsum.default}  # wrong for its argument `dim`, but it is the caller's word
    assert RemovePermutesAroundElementwiseOps(extra_permutable_ops=own)(stays).modified
