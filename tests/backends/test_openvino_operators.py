"""Every operator that OpenVINO takes, against eager, with the calls of PyTorch's own database."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import rushlight
from rushlight.backends.openvino import OpenvinoPartitioner
from rushlight.backends.openvino.operators import _TABLE
from rushlight.pipeline import to_edge_transform_and_lower

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ops import opinfo, opinfo_path

# Entries of the database whose calls become operators of the table.
NAMES = """
    abs acos acosh add addmm amax amin any asin asinh atan atan2 atanh bmm cat ceil clamp clone
    constant_pad_nd cos cosh cumsum div.no_rounding_mode div.floor_rounding div.trunc_rounding eq
    erf erfc exp expand expm1 flip floor fmod full_like gather ge gt index_select isfinite isinf
    isnan le log log10 log1p log2 log_softmax logical_and logical_not logical_or logical_xor lt
    masked_fill max.binary max.reduction_no_dim max.reduction_with_dim maximum mean
    min.reduction_no_dim min.reduction_with_dim minimum mm mul ne neg
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
    stack sub sum t tan tanh transpose unbind unsqueeze var where
""".split()
EAGER = {"nn.functional.scaled_dot_product_attention": 8}  # of its many calls


@pytest.mark.parametrize("name", NAMES)
def test_gives_what_eager_gives(name: str) -> None:
    calls = list(opinfo.samples(name, torch.float32))
    taken = 0
    for call in opinfo.spread(calls, EAGER.get(name, 4)):
        module, inputs = opinfo.as_module(call)
        if not inputs or any(x.numel() == 0 for x in inputs):
            continue
        expected = call.run()
        with opinfo.quiet():
            captured = torch.export.export(module, opinfo.copied(inputs))
            manager = to_edge_transform_and_lower(captured, partitioner=[OpenvinoPartitioner()])
        names = dict(manager.exported_program().graph_module.named_children())
        taken += any(name.startswith("lowered_module") for name in names)
        with rushlight.load(manager.to_executorch().buffer) as loaded:
            got = loaded(*opinfo.copied(inputs))
        opinfo_path.equal_trees(got, expected, compared=opinfo.compared(name), inputs=bool(inputs))
    assert taken, f"OpenVINO takes no call of {name}"


def test_the_table_knows_operators_only() -> None:
    assert all(isinstance(target, torch._ops.OpOverload) for target in _TABLE)
