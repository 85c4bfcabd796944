"""The package `executorch` of compat/python: its names are our objects, and what it refuses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = ROOT / "compat" / "python"


def run(code: str, *folders: Path, **variables: str) -> str:
    """What a process prints that sees the package and `folders`; its error, if it fails."""
    paths = [NAMES, *folders, *sys.path]
    env = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else done.stderr


# Backends that need packages of their own are tested where these are.
EVERY = """
import importlib, pkgutil, executorch
for found in pkgutil.walk_packages(executorch.__path__, "executorch."):
    if "coreml." in found.name or "openvino." in found.name:
        continue
    module = importlib.import_module(found.name)
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        home = getattr(value, "__module__", None) or ""
        assert not home.startswith("executorch."), (found.name, name)
    print(found.name)
"""


def test_every_name_is_an_object_of_ours() -> None:
    modules = run(EVERY).split()
    assert len(modules) > 50 and "executorch.exir.backend.backend_api" in modules


def test_runtime_needs_no_torch() -> None:
    code = "import sys, executorch.runtime; from executorch.runtime import Runtime, Verification; "
    assert run(code + "print('torch' in sys.modules)") == "False\n"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("from executorch.exir import capture_all", "Rushlight has no executorch.exir.capture_all"),
        ("from executorch.exir.tensor import nothing", "TensorSpec has dtype"),
        ("import executorch.codegen.gen", "Rushlight has no module executorch.codegen"),
    ],
)
def test_says_what_to_use_for_a_name_that_is_not_there(code: str, text: str) -> None:
    error = run(code)
    assert "Error: " in error and text in error


def test_hasattr_of_a_name_that_is_not_there_is_false() -> None:
    assert run("import executorch.exir as e; print(hasattr(e, 'nothing'))") == "False\n"


def test_refuses_to_stand_beside_the_real_distribution(tmp_path: Path) -> None:
    info = tmp_path / "executorch-1.4.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: executorch\nVersion: 1.4.1\n")
    error = run("import executorch", tmp_path)
    assert "ImportError" in error
    for part in ("rushlight-executorch", "executorch 1.4.1", "pip uninstall executorch"):
        assert part in error


SHIMS = """
import torch
from torch.ao.quantization.quantize_pt2e import prepare_pt2e
from torch.ao.quantization.quantizer.xnnpack_quantizer import XNNPACKQuantizer
import executorch.backends.xnnpack.quantizer.xnnpack_quantizer as ours
from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e as now
print(torch.export.export_for_training is torch.export.export, prepare_pt2e is now,
      XNNPACKQuantizer is ours.XNNPACKQuantizer)
"""


def test_shims_put_back_what_torch_lost_on_request() -> None:
    assert run("import executorch\n" + SHIMS, EXECUTORCH_TORCH_SHIMS="1") == "True True True\n"
    assert run("import executorch.torch_shims\n" + SHIMS) == "True True True\n"
    assert "Error" in run("import executorch\n" + SHIMS)


# A backend and a pass of a user's, by ExecuTorch's names alone, from a model to its results.
FLOW = """
import pickle
import torch
from executorch.exir import EdgeCompileConfig, to_edge
from executorch.exir.backend.backend_api import to_backend
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import get_delegates, tag_constant_data
from executorch.exir.dialects._ops import ops
from executorch.exir.pass_base import ExportPass
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.devtools.backend_debug import get_delegation_info
from executorch.runtime import Runtime, Verification

class Model(torch.nn.Module):
    def forward(self, x, y):
        return torch.mul(torch.add(x, y), y)

class AddsToSubs(ExportPass):
    def call_operator(self, op, args, kwargs, meta):
        if op is ops.edge.aten.add.Tensor:
            op = ops.edge.aten.sub.Tensor
        return super().call_operator(op, args, kwargs, meta)

x, y = torch.randn(2, 3), torch.randn(2, 3)
edge = to_edge(torch.export.export(Model(), (x, y)), compile_config=EdgeCompileConfig())
edge = edge.transform([AddsToSubs()]).to_backend(XnnpackPartitioner())
info = get_delegation_info(edge.exported_program().graph_module)
assert info.num_delegated_nodes == 2, info
assert len(get_delegates(edge.exported_program().graph)) == 1
program = edge.to_executorch()
loaded = Runtime.get().load_program(program.buffer, verification=Verification.Minimal)
[got] = loaded.load_method("forward").execute((x, y))
torch.testing.assert_close(torch.as_tensor(got), (x - y) * y)
spec = pickle.loads(pickle.dumps(CompileSpec("level", b"2")))
assert isinstance(spec, CompileSpec) and spec == CompileSpec("level", b"2")
print("done")
"""


def test_a_script_goes_from_model_to_results() -> None:
    assert run(FLOW) == "done\n"
