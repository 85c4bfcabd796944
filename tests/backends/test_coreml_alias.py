"""coremltools beside ExecuTorch's names: it imports `executorch`, which is ours, if it is there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import coremltools as ct
import torch
from coremltools._deps import _HAS_EXECUTORCH
from coremltools.converters.mil.frontend.torch import load
from executorch.backends.apple.coreml.partition import CoreMLPartitioner
from executorch.exir import to_edge, to_edge_transform_and_lower

import rushlight.exir.manager as ours

assert _HAS_EXECUTORCH and load.executorch.exir.to_edge is ours.to_edge


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.linear = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.Linear(8, 5)

    def forward(self, x):
        return torch.softmax(self.linear(torch.relu(self.conv(x)).mean((2, 3))), -1)


def operations(program):
    target = ct.target.iOS17
    model = ct.convert(program, skip_model_load=True, minimum_deployment_target=target)
    made = model._mil_program.functions["main"].operations
    return model, [one.op_type for one in made if one.op_type not in ("const", "cast")]


captured = torch.export.export(Small().eval(), (torch.randn(2, 3, 16, 16),))
_, wanted = operations(captured.run_decompositions({}))
assert wanted == ["conv", "relu", "reduce_mean", "linear", "softmax"], wanted
edge = to_edge(captured).exported_program()
model, made = operations(edge)
assert made == wanted, made
handles = {node.meta["debug_handle"] for node in edge.graph.nodes if node.op == "call_function"}
assert handles == set(model._mil_program.construct_debug_handle_to_ops_mapping()) - {None}
lowered = to_edge_transform_and_lower(captured, partitioner=[CoreMLPartitioner()])
targets = [str(node.target) for node in lowered.exported_program().graph.nodes]
assert targets.count("executorch_call_delegate") == 1
assert not any("aten" in target for target in targets), targets
"""


def test_coremltools_converts_what_our_names_lower() -> None:
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "compat" / "python"))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-4000:]
