"""The helpers of partitioners for XNNPACK say of graphs what real ExecuTorch's say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ALIAS = Path(__file__).resolve().parents[2] / "compat" / "python"

# Real ExecuTorch's answers are the oracle; the graphs are those that torch and torchao make.
SCRIPT = """
import json
import sys

import torch
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer_utils import is_relu_node
from executorch.backends.xnnpack.utils import quant_utils, utils, xnnpack_constants
from torchao.quantization.granularity import PerAxis, PerGroup
from torchao.quantization.quant_api import Int8DynamicActivationIntxWeightConfig, quantize_
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.utils import unwrap_tensor_subclass


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.image = torch.nn.Conv2d(4, 8, 3, groups=2)
        self.back = torch.nn.ConvTranspose2d(8, 4, 3)
        self.layer = torch.nn.Linear(64, 32)

    def forward(self, x):
        y = self.back(torch.tanh(self.image(x)))
        return torch.relu(self.layer(y.flatten(1)[:, :64])).max(1)[0]


def asked(function, node):
    try:
        answer = function(node)
    except Exception:
        return "raises"
    return [str(a) for a in answer] if isinstance(answer, list | tuple) else str(answer)


def said(name, program):
    answers = {}
    for node in program.graph.nodes:
        one = {}
        for function in (
            *("is_quant is_dequant is_qparam is_dynamic_qdq is_per_tensor is_per_channel").split(),
            *("is_per_token is_per_channel_group is_affine_qdq").split(),
            "extract_qdq_affine_op_args_for_decomposed_ops",
        ):
            one[function] = asked(getattr(quant_utils, function), node)
        for function in "is_node is_getitem is_get_attr_node get_groups_from_conv".split():
            one[function] = asked(getattr(utils, function), node)
        one["relu"] = is_relu_node(node)
        one["param"] = utils.is_param_node(program, node)
        if one["param"]:
            one["name"] = utils.get_tensor_name(program, node)
            one["sum"] = float(utils.get_param_tensor(program, node).double().sum())
        answers[f"{name}.{node.name}"] = one
    return answers


answers = {}
for is_dynamic in (False, True):
    torch.manual_seed(0)
    x = (torch.randn(1, 4, 8, 8),)
    quantizer = XNNPACKQuantizer()
    quantizer.set_global(
        get_symmetric_quantization_config(is_per_channel=True, is_dynamic=is_dynamic)
    )
    prepared = prepare_pt2e(torch.export.export(Net().eval(), x).module(), quantizer)
    prepared(*x)
    answers |= said(f"dynamic={is_dynamic}", torch.export.export(convert_pt2e(prepared), x))
for granularity in (PerGroup(32), PerAxis(0)):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(64, 32)).eval()
    config = Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=granularity
    )
    quantize_(net, config)
    unwrap_tensor_subclass(net)
    given = (torch.randn(2, 3, 64),)
    answers |= said(str(granularity), torch.export.export(net, given))
scales = torch.tensor([1.0, 0.0, 1e-39, -1e-39, 3.0, float("nan"), float("inf")])
answers["subnormal"] = quant_utils.is_tensor_subnormal(scales).tolist()
answers["scales"] = [
    asked(quant_utils.validate_quant_scales, one)
    for one in (1.0, 0.0, 1e-39, float("inf"), float("nan"), torch.ones(3), scales)
]
answers["zero points"] = [
    asked(lambda zero: quant_utils.validate_quant_zeropoints(zero, dtype, four), zero)
    for dtype in (torch.int8, torch.qint8, torch.uint8, torch.int32, torch.float32)
    for four in (False, True)
    for zero in (-129, -128, -1, 0, 1, 15, 16, 128, torch.tensor([0, 255]))
]
answers["depthwise"] = [
    utils.is_depthwise_conv(shape, groups, transposed)
    for shape in ((8, 1, 3, 3), (8, 4, 3, 3), (8, 2, 3, 3), (8,))
    for groups in (1, 2, 8, 0)
    for transposed in (False, True)
]
answers["dims"] = [
    asked(lambda dims: utils.normalize_mean_dims(dims, rank), dims)
    for rank in (0, 3)
    for dims in (None, 1, [-1, 0], [], [3])
]
answers["constants"] = {k: v for k, v in vars(xnnpack_constants).items() if k.isupper()}
with open(sys.argv[1], "w") as file:
    json.dump(answers, file)
"""


def answers(python: str, tmp_path: Path, paths: list[str]) -> dict[str, Any]:
    path = tmp_path / "answers.json"
    ended = subprocess.run(
        [python, "-c", SCRIPT, str(path)],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stderr
    told: dict[str, Any] = json.loads(path.read_text())
    return told


@pytest.mark.interop
def test_the_answers_are_those_of_real_executorch(executorch_python: Path, tmp_path: Path) -> None:
    theirs = answers(str(executorch_python), tmp_path, [])
    ours = answers(sys.executable, tmp_path, [str(ALIAS), *sys.path])
    assert ours.keys() == theirs.keys()
    for name, answer in theirs.items():
        assert ours[name] == answer, name
