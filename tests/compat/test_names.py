"""ExecuTorch's Python names: each is an object of ours, and others say what to use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ALIAS = Path(__file__).resolve().parents[2] / "compat" / "python"


def _python(code: str, *paths: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs code where the alias is installed, and main's environment is."""
    path = os.pathsep.join([str(ALIAS), *map(str, paths), *sys.path])
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def _printed(code: str, *paths: Path, **environment: str) -> str:
    ended = _python(code, *paths, **environment)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_every_name_is_an_object_of_ours() -> None:
    code = """
import importlib
from executorch._names import MODULES
missing, optional = [], ("torchao", "openvino", "coremltools")
for path, names in MODULES.items():
    module = importlib.import_module("executorch." + path)
    for name in names:
        try:
            getattr(module, name)
        except ImportError as error:
            if error.name not in optional:
                missing.append(f"{path}.{name}: {error}")
        except AttributeError as error:
            missing.append(f"{path}.{name}: {error}")
print("\\n".join(missing))
"""
    assert _printed(code).strip() == ""


def test_types_are_ours() -> None:
    code = """
import pickle
import rushlight.partition as ours
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.partitioner import Partitioner
import executorch.exir as exir
assert Partitioner is ours.Partitioner and BackendDetails is ours.BackendDetails
assert pickle.loads(pickle.dumps(PreprocessResult(b"1"))) == PreprocessResult(b"1")
assert exir.backend.compile_spec_schema.CompileSpec("a", b"1").key == "a"
assert "to_edge" in dir(exir) and not hasattr(exir, "nothing")
import executorch.export.export
from executorch.export import export
from executorch.export.export import export as same
assert callable(export) and export is same
print(exir.to_edge.__module__)
"""
    assert _printed(code).strip() == "rushlight.exir.manager"


def test_the_runtime_needs_no_torch() -> None:
    code = """
import sys
sys.modules["torch"] = None
from executorch.runtime import Runtime, Verification
print("aten::add.out" in Runtime.get().operator_registry.operator_names)
"""
    assert _printed(code).strip() == "True"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("from executorch.exir import Nothing", "exir.Nothing does not exist on Rushlight"),
        ("import executorch.extension.training", "train in PyTorch, and export again"),
        ("from executorch.extension.pybindings.aten_lib import x", "portable_lib"),
        ("import executorch.backends.qualcomm.utils", "needs the vendor's software"),
        ("import executorch.no.such", "docs/compat.md lists"),
    ],
)
def test_what_does_not_exist_says_what_to_use(line: str, text: str) -> None:
    ended = _python(line)
    assert ended.returncode == 1 and text in ended.stderr
    assert "ImportError" in ended.stderr or "ModuleNotFoundError" in ended.stderr


def test_real_executorch_beside_it_is_refused(tmp_path: Path) -> None:
    real = tmp_path / "executorch-1.4.1.dist-info"
    real.mkdir()
    (real / "METADATA").write_text("Metadata-Version: 2.1\nName: executorch\nVersion: 1.4.1\n")
    ended = _python("import executorch.exir", tmp_path)
    assert ended.returncode == 1
    assert "executorch 1.4.1 and rushlight-executorch" in ended.stderr
    assert "pip uninstall rushlight-executorch" in ended.stderr


def test_names_that_torch_has_lost_come_on_request() -> None:
    code = """
import executorch.exir, torch
print(hasattr(torch.export, "export_for_training"))
import executorch.torch_shims
from torch.export import export_for_training
from torch.ao.quantization.quantize_pt2e import convert_pt2e, prepare_pt2e
from torch.ao.quantization.quantizer.xnnpack_quantizer import XNNPACKQuantizer
from torchao.quantization.pt2e.quantizer import Quantizer
print(issubclass(XNNPACKQuantizer, Quantizer))
"""
    _, second = _printed(code).split()
    assert second == "True"
    by_variable = "import executorch; from torch.export import export_for_training; print(1)"
    assert _printed(by_variable, EXECUTORCH_TORCH_SHIMS="1").strip() == "1"
