"""Passes that write other operators: what they write computes what was there before."""

from __future__ import annotations

import operator

import pytest
import torch
import torch.nn.functional as F
from fx_graphs import Builder, changed, names
from torch import nn
from torch.export import export
from torch.fx import GraphModule

from rushlight.edge.operators import ops
from rushlight.errors import ExportError
from rushlight.exir.manager import to_edge
from rushlight.exir.transforms.addmm_to_linear import AddmmToLinearTransform, get_shape
from rushlight.exir.transforms.arguments import get_arg, set_arg
from rushlight.exir.transforms.convert_dtype import ConvertDtypePass, I64toI32
from rushlight.exir.transforms.decompose_attention import DecomposeScaledDotProductAttention
from rushlight.exir.transforms.decompose_channels_last import DecomposeChannelsLastPass
from rushlight.exir.transforms.fuse_batch_norm import FuseBatchNormWithConvPass
from rushlight.exir.transforms.mean_to_sum_div import MeanToSumDiv
from rushlight.exir.transforms.rank_0_to_rank_1 import Rank0ToRank1Pass
from rushlight.exir.transforms.remove_clones import RemoveCloneOpsTransform
from rushlight.exir.transforms.remove_getitem import RemoveGetItemPass
from rushlight.exir.transforms.scalars_to_tensors import ReplaceScalarWithTensorArgPass

aten, layouts = ops.edge.aten, ops.edge.dim_order_ops
X = torch.randn(2, 3, 4, 5)


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("dims", [[0], [1, -1], [], None])
def test_means_become_sums_and_divisions(dims: list[int] | None, keeps: bool) -> None:
    b = Builder(X)
    module = b.module(b.call(aten.mean.dim, b.inputs[0], dims, keeps))
    left = changed(MeanToSumDiv(), module, X)
    assert left == ["sum.dim_IntList", "full.default", "div.Tensor"]


def test_numbers_become_tensors_of_the_dtype_that_torch_computes_in() -> None:
    whole = torch.arange(6)
    b = Builder(X, whole)
    real, integer = b.inputs
    module = b.module(
        b.call(aten.add.Scalar, real, 2, 3),
        b.call(aten.mul.Scalar, integer, 1.5),
        b.call(aten.div.Scalar, integer, 4),
        b.call(aten.sub.Scalar, integer, 4),
    )
    left = changed(ReplaceScalarWithTensorArgPass(), module, X, whole)
    assert [name for name in left if name != "full.default"] == [
        f"{name}.Tensor" for name in ("add", "mul", "div", "sub")
    ]
    alone = ReplaceScalarWithTensorArgPass({aten.mul.Scalar: aten.mul.Tensor})
    b = Builder(X)
    module = b.module(b.call(aten.add.Scalar, b.inputs[0], 2))
    assert names(alone(module).graph_module) == ["add.Scalar"]


def test_copies_go_unless_they_change_the_layout() -> None:
    image = X.to(memory_format=torch.channels_last)
    b = Builder(X, image)
    plain, last = b.inputs
    same, other = layouts._clone_dim_order.default, [0, 2, 3, 1]
    outs = [
        b.call(aten.abs.default, b.call(same, plain, dim_order=[0, 1, 2, 3])),
        b.call(same, plain, dim_order=other),
        b.call(aten.abs.default, b.call(aten.clone.default, last)),
    ]
    left = changed(RemoveCloneOpsTransform(), b.module(*outs), X, image)
    assert left == ["abs.default", "_clone_dim_order.default", "abs.default"]
    b = Builder(X)
    module = b.module(b.call(aten.clone.default, b.inputs[0]))
    kept = RemoveCloneOpsTransform(preserve_input_output_copies=True)(module)
    assert not kept.modified and names(kept.graph_module) == ["clone.default"]


@pytest.mark.parametrize("removes", [False, True])
def test_integers_around_a_copy_are_not_made_twice(removes: bool) -> None:
    q, rest = ops.edge.quantized_decomposed, (0.1, 0, -128, 127, torch.int8)
    integers = torch.arange(4, dtype=torch.int8)
    b = Builder(integers)
    real = b.call(q.dequantize_per_tensor.default, b.inputs[0], *rest)
    copy = b.call(aten.clone.default, real)
    module = b.module(b.call(aten.neg.default, b.call(q.quantize_per_tensor.default, copy, *rest)))
    one = RemoveCloneOpsTransform(eliminate_quant_dequant_pairs=removes)
    left = changed(one, module, integers)
    assert left[-1] == "neg.default" and len(left) == (1 if removes else 3)


def test_indices_that_nothing_uses_are_not_computed() -> None:
    b = Builder(X)
    pooled = b.call(aten.max_pool2d_with_indices.default, b.inputs[0], [2, 2])
    most = b.call(aten.max.dim, b.inputs[0], 1, True)
    both = b.call(aten.max.dim, b.inputs[0], 2)
    outs = [
        b.call(operator.getitem, v, i) for v, i in ((pooled, 0), (most, 0), (both, 0), (both, 1))
    ]
    left = changed(RemoveGetItemPass(), b.module(*outs), X)
    assert left[:3] == ["max_pool2d.default", "amax.default", "max.dim"]


@pytest.mark.parametrize("skips", [False, True])
def test_another_dtype_between_inputs_and_outputs(skips: bool) -> None:
    whole = torch.tensor([[3, 1, 2], [0, 5, 4]])
    b = Builder(whole)
    x = b.inputs[0]
    place = b.call(aten.argmax.default, b.call(aten.add.Tensor, x, x), 1, True)
    told = b.call(aten.full.default, [2, 1], 7, dtype=torch.int64)
    outs = [b.call(aten.gather.default, x, 1, place), b.call(aten.mul.Tensor, place, told)]
    module = b.module(*outs)
    copy = "_to_copy.default" if skips else "_to_dim_order_copy.default"
    assert changed(I64toI32(_skip_dim_order=skips), module, whole)[0] == copy
    (full,) = module.graph.find_nodes(op="call_function", target=aten.full.default)
    assert full.meta["val"].dtype == torch.int32


def test_floats_compute_in_another_dtype() -> None:
    b = Builder(X)
    module = b.module(b.call(aten.sigmoid.default, b.inputs[0]))
    module = ConvertDtypePass(torch.float32, torch.float64)(module).graph_module
    (call,) = module.graph.find_nodes(op="call_function", target=aten.sigmoid.default)
    assert call.meta["val"].dtype == torch.float64
    assert torch.equal(module(X)[0], X.double().sigmoid().float())


def test_inputs_without_dimensions_get_two() -> None:
    class Sum(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y

    one = torch.tensor(1.0)
    edge = to_edge(export(Sum(), (one, one))).transform([Rank0ToRank1Pass()])
    shapes = [n.meta["val"].shape for n in edge.exported_program().graph.nodes if "val" in n.meta]
    assert shapes == [(1, 1)] * 3


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", [None, "bool", "float"])
def test_attention_becomes_what_it_is_made_of(mask: str | None, causal: bool) -> None:
    if mask is not None and causal:
        pytest.skip("torch takes one of both")
    q, k = torch.randn(1, 4, 3, 8), torch.randn(1, 2, 3, 8)
    added = None if mask is None else torch.randn(3, 3)
    if mask == "bool":
        added = torch.eye(3, dtype=torch.bool) | (torch.randn(3, 3) > 0)

    class Attention(nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return F.scaled_dot_product_attention(
                q, k, v, added, is_causal=causal, scale=0.3, enable_gqa=True
            )

    module = export(Attention(), (q, k, k)).module()
    assert isinstance(module, GraphModule)
    expected = module(q, k, k)
    DecomposeScaledDotProductAttention()(module)
    assert "scaled_dot_product_attention" not in module.code
    torch.testing.assert_close(module(q, k, k), expected)


def test_heads_that_do_not_fit_are_refused() -> None:
    attention = torch.ops.aten.scaled_dot_product_attention.default
    q, k = torch.randn(1, 4, 3, 8), torch.randn(1, 2, 3, 8)
    b = Builder(q, k)
    node = b.call(attention, b.inputs[0], b.inputs[1], b.inputs[1], enable_gqa=True)
    node.kwargs = {}
    with pytest.raises(ValueError, match="enable_gqa=True"):
        DecomposeScaledDotProductAttention()(b.module(node))


def test_channels_last_operators_compute_as_torch_does_and_decompose() -> None:
    last = torch.ops.channels_last

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(6, 3, 3, 3))

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            rest = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
            y = last.convolution(x, self.weight, None, *rest)
            y = last.avg_pool2d(y, [2, 2], [2, 2], [0, 0], False, True, None)
            values, indices = last.max_pool2d_with_indices(
                last.upsample_nearest2d(y, [8, 8], None), [2, 2], [2, 2], [0, 0], [1, 1], False
            )
            return last.permute_copy(values, [0, 3, 1, 2]), indices

    net, x = Net(), torch.randn(2, 8, 8, 3)
    y = F.avg_pool2d(F.conv2d(x.permute(0, 3, 1, 2), net.weight, padding=1), 2)
    y, places = F.max_pool2d(F.interpolate(y, (8, 8)), 2, return_indices=True)
    torch.testing.assert_close(net(x), (y, places.permute(0, 2, 3, 1)))
    edge = to_edge(export(net, (x,))).transform([DecomposeChannelsLastPass()])
    assert "channels_last" not in edge.exported_program().graph_module.code
    torch.testing.assert_close(edge.exported_program().module()(x), net(x))


@pytest.mark.parametrize("biased", [False, True])
def test_products_with_transposed_weights_become_linear_layers(biased: bool) -> None:
    x, weight, bias = torch.randn(2, 3, 8), torch.randn(4, 8), torch.randn(4)
    b = Builder(x, weight, bias)
    flat = b.call(aten.view_copy.default, b.inputs[0], [6, 8])
    by = b.call(aten.permute_copy.default, b.inputs[1], [1, 0])
    product = (
        b.call(aten.addmm.default, b.inputs[2], flat, by)
        if biased
        else b.call(aten.mm.default, flat, by)
    )
    module = b.module(b.call(aten.view_copy.default, product, [2, 3, 4]))
    left = changed(AddmmToLinearTransform(), module, x, weight, bias)
    assert left == ["view_copy.default", "linear.default", "view_copy.default"]
    assert get_shape(b.inputs[0]) == [2, 3, 8]
    b = Builder(weight, weight.T)
    stays = b.module(b.call(aten.mm.default, *b.inputs))
    assert not AddmmToLinearTransform()(stays).modified


def test_views_around_a_linear_layer_of_quantised_input_go() -> None:
    q, x, weight = ops.edge.quantized_decomposed, torch.randn(2, 3, 8), torch.randn(4, 8)
    b = Builder(x, weight)
    chosen = b.call(q.choose_qparams.tensor, b.inputs[0], -128, 127, 1e-6, torch.int8)
    rest = (*(b.call(operator.getitem, chosen, i) for i in (0, 1)), -128, 127, torch.int8)
    integers = b.call(q.quantize_per_tensor.tensor, b.inputs[0], *rest)
    real = b.call(q.dequantize_per_tensor.tensor, integers, *rest)
    flat = b.call(aten.view_copy.default, real, [6, 8])
    by = b.call(aten.t_copy.default, b.inputs[1])
    module = b.module(b.call(aten.view_copy.default, b.call(aten.mm.default, flat, by), [2, 3, 4]))
    left = changed(AddmmToLinearTransform(), module, x, weight)
    assert left[-2:] == ["dequantize_per_tensor.tensor", "linear.default"]


@pytest.mark.parametrize("transposed", [False, True])
def test_batch_norms_are_folded_into_convolutions(transposed: bool) -> None:
    kind = nn.ConvTranspose2d if transposed else nn.Conv2d
    model = nn.Sequential(kind(3, 5, 3, bias=False), nn.ReLU(), kind(5, 4, 3)).eval()
    norm = nn.BatchNorm2d(4).eval()
    norm.running_mean.uniform_(), norm.running_var.uniform_(0.5, 2), norm.weight.data.uniform_()
    x = torch.randn(1, 3, 9, 9)
    program = export(model.append(norm), (x,)).run_decompositions()
    one = FuseBatchNormWithConvPass(program)
    result = one(program.graph_module)
    assert result.modified and "batch_norm" not in program.graph_module.code
    torch.testing.assert_close(program.module()(x), model(x), rtol=1e-4, atol=1e-5)
    assert not one(program.graph_module).modified


def test_a_batch_norm_behind_a_folded_one_is_folded_next() -> None:
    norms = [nn.BatchNorm2d(4), nn.BatchNorm2d(4)]
    for norm in norms:
        norm.running_mean.uniform_(), norm.running_var.uniform_(0.5, 2)
    model, x = nn.Sequential(nn.Conv2d(3, 4, 3), *norms).eval(), torch.randn(1, 3, 9, 9)
    program = export(model, (x,)).run_decompositions()
    for modified in (True, True, False):
        assert FuseBatchNormWithConvPass(program)(program.graph_module).modified is modified
        torch.testing.assert_close(program.module()(x), model(x), rtol=1e-4, atol=1e-5)


def test_arguments_by_their_names() -> None:
    b = Builder(X)
    node = b.call(aten.mean.dim, b.inputs[0], [1])
    b.module(node)
    assert get_arg(node, "dim", list) == [1] and get_arg(node, "keepdim", bool) is False
    set_arg(node, "dim", [2])
    set_arg(node, "keepdim", True)
    assert node.args[1] == [2] and node.kwargs == {"keepdim": True}
    with pytest.raises(ExportError, match="no argument 'other'"):
        get_arg(node, "other")
    with pytest.raises(ExportError, match="keepdim is bool, not str"):
        get_arg(node, "keepdim", str)
