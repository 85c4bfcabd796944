"""Every operator that OpenVINO takes, against eager, with the calls of PyTorch's own database."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import rushlight
from rushlight.backends.openvino import OpenvinoPartitioner
from rushlight.backends.openvino.operators import _TABLE
from rushlight.errors import ExportError
from rushlight.pipeline import to_edge_transform_and_lower

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ops import opinfo, opinfo_path

# Entries of the database whose calls become operators of the table.
NAMES = """
    abs acos acosh add addmm amax amin asin asinh atan atan2 atanh bmm cat ceil clamp
    constant_pad_nd cos cosh cumsum div.no_rounding_mode div.floor_rounding div.trunc_rounding eq
    erf erfc exp expand expm1 flip floor fmod full_like gather ge gt index_select isfinite isinf
    isnan le log log10 log1p log2 log_softmax lt masked_fill max.binary max.reduction_no_dim
    maximum mean min.reduction_no_dim minimum mm mul ne neg
    nn.functional.adaptive_avg_pool2d nn.functional.adaptive_avg_pool3d nn.functional.avg_pool2d
    nn.functional.batch_norm nn.functional.conv1d nn.functional.conv2d nn.functional.conv3d
    nn.functional.conv_transpose2d nn.functional.elu nn.functional.embedding nn.functional.gelu
    nn.functional.glu nn.functional.grid_sample nn.functional.group_norm nn.functional.hardsigmoid
    nn.functional.hardswish nn.functional.hardtanh nn.functional.interpolate.bicubic
    nn.functional.interpolate.bilinear nn.functional.interpolate.nearest nn.functional.layer_norm
    nn.functional.leaky_relu nn.functional.linear nn.functional.max_pool2d
    nn.functional.max_pool3d nn.functional.mish nn.functional.pad.constant
    nn.functional.pixel_shuffle nn.functional.pixel_unshuffle nn.functional.relu
    nn.functional.relu6 nn.functional.scaled_dot_product_attention nn.functional.silu
    nn.functional.softplus permute pow prod reciprocal remainder repeat reshape round rsqrt rsub
    select sigmoid sign sin sinh slice slice_scatter softmax split split_with_sizes sqrt squeeze
    stack sub sum t tan tanh transpose unbind unsqueeze where
""".split()
LOGICAL = ("any", "logical_and", "logical_not", "logical_or", "logical_xor")


def lowered(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[bytes, bool]:
    """The program, and whether OpenVINO takes any of it."""
    with opinfo.quiet():
        captured = torch.export.export(module, opinfo.copied(inputs))
        manager = to_edge_transform_and_lower(captured, partitioner=[OpenvinoPartitioner()])
    names = dict(manager.exported_program().graph_module.named_children())
    return manager.to_executorch().buffer, any(n.startswith("lowered_module") for n in names)


pytestmark = pytest.mark.full  # minutes: every operator of the list, drawn samples


@pytest.mark.parametrize("name", [*NAMES, *LOGICAL])
def test_gives_what_eager_gives(name: str) -> None:
    calls = list(opinfo.samples(name, torch.bool if name in LOGICAL else torch.float32))
    calls = [call for call in calls if not call.kwargs.get("dropout_p")]
    taken = 0
    for call in opinfo.spread(calls, 4):
        module, inputs = opinfo.as_module(call)
        if not inputs or any(x.numel() == 0 for x in inputs):
            continue
        expected = call.run()
        try:
            program, is_taken = lowered(module, inputs)
        except ExportError as error:  # some calls write their inputs
            assert "the model writes its input" in str(error)
            continue
        taken += is_taken
        with rushlight.load(program) as loaded:
            got = loaded(*opinfo.copied(inputs))
        opinfo_path.equal_trees(got, expected, compared=opinfo.compared(name), inputs=True)
    assert taken, f"OpenVINO takes no call of {name}"


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.max(1).values,
        lambda x: x.min(-1, keepdim=True).values,
        lambda x: x.var((0, 2), correction=0),
        lambda x: x[:, torch.tensor([2, 0, 2])],
        lambda x: x[..., torch.tensor([3, -1])],
        lambda x: x[torch.tensor([0, 1]), :, torch.tensor([3, -1])],  # stays, its input does not
        lambda x: torch.nn.functional.batch_norm(x, torch.arange(3.0), torch.full((3,), 2.0)),
        lambda x: torch.nn.functional.embedding(torch.tensor([[1, 0]]), x[0]),
        lambda x: torch.round(x * 2.5),
    ],
)
def test_calls_that_the_database_has_otherwise(call: Callable[[torch.Tensor], Any]) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return call(torch.sin(x))

    x = torch.randn(2, 3, 4)
    program, is_taken = lowered(Model(), (x,))
    assert is_taken
    with rushlight.load(program) as loaded:
        torch.testing.assert_close(loaded(x), Model()(x))


SPREAD = "it has one number for height and width together, and OpenVINO needs one for each"
BOOLS = "it compares bools, and OpenVINO compares these only with each other"
SCALE = "its scale differs from the ratio of the sizes, with which OpenVINO computes"
NO_DIMENSION = "its input has no dimensions, and OpenVINO needs at least one"
interpolate = torch.nn.functional.interpolate


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda x: torch.ops.aten.avg_pool2d(x, [2, 2], [2, 2], [1]), SPREAD),
        (lambda x: (x > 0) == (x > 1).float(), BOOLS),
        (lambda x: (x > 0) >= (x > 1), BOOLS),
        (
            lambda x: torch.where(x > 0, x > 0, x < 0),
            "it chooses between bools, and OpenVINO does so in some cases only",
        ),
        (lambda x: interpolate(x, scale_factor=1.7, mode="bicubic"), SCALE),
        (lambda x: interpolate(x[0], scale_factor=1.7), SCALE),
        (lambda x: x.sum().mean(0), NO_DIMENSION),
        (lambda x: x.sum().amax(0), NO_DIMENSION),
        (lambda x: x.sum().amin(0, keepdim=True), NO_DIMENSION),
    ],
)
def test_calls_that_openvino_computes_otherwise_stay(
    call: Callable[[torch.Tensor], Any], reason: str
) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return call(torch.sin(x))

    x = torch.randn(1, 3, 4, 4)
    captured = torch.export.export(Model(), (x,))
    manager = to_edge_transform_and_lower(captured, partitioner=[OpenvinoPartitioner()])
    nodes = manager.exported_program().graph.nodes
    assert reason in {d for n in nodes for d in n.meta.get("declined", {}).values()}
    with rushlight.load(manager.to_executorch().buffer) as loaded:
        torch.testing.assert_close(loaded(x), Model()(x))


def test_the_table_knows_operators_only() -> None:
    assert all(isinstance(target, torch._ops.OpOverload) for target in _TABLE)
