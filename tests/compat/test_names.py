"""ExecuTorch's Python names: each is an object of ours, and others say what to use."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ALIAS = Path(__file__).resolve().parents[2] / "compat" / "python"


def _python(code: str, *paths: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs code where the alias is installed, and main's environment is."""
    return _called(["-c", code], *paths, **environment)


def _called(
    options: list[str], *paths: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ALIAS), *map(str, paths), *sys.path])
    return subprocess.run(
        [sys.executable, *options],
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
missing, optional = [], ("torchao", "openvino", "coremltools", "nncf")
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


def test_no_module_stands_in_two_tables() -> None:
    code = """
from collections import Counter
from executorch._names import absent, backend, backends, devtools, exir, export, extension
tables = (exir, backend, backends, devtools, export, extension)
for field, of in (("MODULES", tables), ("ABSENT", (absent, *tables))):
    counted = Counter(name for table in of for name in getattr(table, field))
    print(*(name for name, count in counted.items() if count > 1))
"""
    assert _printed(code).split() == []


def test_a_pass_over_quantised_calls_may_be_imported_first() -> None:
    code = "from executorch.exir.passes.quantize_io_pass import QuantizeInputs as one; print(one)"
    assert "rushlight.exir.quantized_io.QuantizeInputs" in _printed(code)


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


def test_language_models_are_built_by_our_classes() -> None:
    code = """
import torch
import executorch.extension.llm.export.export_llm as command
from executorch.extension.llm.custom_ops import custom_ops
from executorch.extension.llm.export import LLMEdgeManager
from executorch.extension.llm.export.config.llm_config import LlmConfig
from executorch.extension.llm.export.gguf import QK_K, _Q4_K_BLOCK_BYTES, implements
from executorch.extension.llm.runner import GenerationConfig, Stats
import rushlight.extension.llm.command as ours
assert command is ours and command.LlmConfig is LlmConfig and callable(implements)
assert torch.ops.llama.sdpa_with_kv_cache and torch.ops.preprocess.tile_crop
assert (QK_K, _Q4_K_BLOCK_BYTES, GenerationConfig().temperature) == (256, 144, 0.8)
print(LLMEdgeManager.__module__)
"""
    assert _printed(code).strip() == "rushlight.extension.llm.builder"


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
        (
            "from executorch.exir.serde.serialize import GraphModuleSerializer",
            "serialize and deserialize take whole programs",
        ),
        ("from executorch.exir.tracer import dynamo_trace", "torch.export.export(model, inputs"),
        ("from executorch.exir.tracer import TRACER", "make_fx"),
        ("import executorch.extension.training.optimizer", "is not built: train in PyTorch"),
        ("from executorch.extension.training import TrainingModule", "train in PyTorch, and"),
        ("from executorch.extension.training import get_sgd_optimizer", "torch.optim.SGD"),
        ("from executorch.extension.llm.runner import MultimodalRunner", "text with TextLLMRunner"),
        ("from executorch.extension.llm.runner import make_token_input", "takes token ids"),
        (
            "from executorch.extension.llm.export.quantizer_lib import get_ov_quantizer",
            "rushlight.llm.export(quantize='8da4w', backend='openvino')",
        ),
        ("from executorch.extension.pybindings.aten_lib import x", "portable_lib"),
        ("import executorch.backends.qualcomm.utils", "needs the vendor's software"),
        ("import executorch.no.such", "docs/compat.md lists"),
    ],
)
def test_what_does_not_exist_says_what_to_use(line: str, text: str) -> None:
    ended = _python(line)
    assert ended.returncode == 1 and text in ended.stderr
    assert "ImportError" in ended.stderr or "ModuleNotFoundError" in ended.stderr


@pytest.mark.parametrize("name", ["gen", "tools.gen_oplist"])
def test_modules_run_as_programs(name: str) -> None:
    ended = _called(["-m", f"executorch.codegen.{name}", "--help"])
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(f"usage: {name.rpartition('.')[2]}.py")


def test_real_executorch_beside_it_is_refused(tmp_path: Path) -> None:
    real = tmp_path / "executorch-1.4.1.dist-info"
    real.mkdir()
    (real / "METADATA").write_text("Metadata-Version: 2.1\nName: executorch\nVersion: 1.4.1\n")
    ended = _python("import executorch.exir", tmp_path)
    assert ended.returncode == 1
    assert "executorch 1.4.1 and rushlight-executorch" in ended.stderr
    assert "pip uninstall rushlight-executorch" in ended.stderr


@pytest.mark.interop
@pytest.mark.parametrize("is_first", [True, False])
def test_it_is_refused_whichever_of_both_comes_first(is_first: bool) -> None:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    real = ALIAS.parents[1] / ".venv-executorch" / "lib" / version / "site-packages"
    assert (real / "executorch").is_dir(), "`make interop` installs it"
    paths = [ALIAS, real] if is_first else [real, ALIAS]
    code = f"import sys; sys.path[:0] = {[str(p) for p in paths]!r}; import executorch.exir"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    assert ended.returncode == 1
    assert "ImportError: two distributions provide the package 'executorch'" in ended.stderr
    assert "pip uninstall executorch" in ended.stderr


def test_partners_derive_from_our_types() -> None:
    code = """
import pickle, torch
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.pass_base import ExportPass
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.devtools.bundled_program.config import MethodTestCase

class Planning(MemoryPlanningPass):
    calls = 0
class Taken(Partitioner):
    def partition(self, exported_program):
        return PartitionResult(exported_program, {})

edge = to_edge(torch.export.export(torch.nn.ReLU(), (torch.randn(3),)))
edge = edge.to_backend(Taken())
finished = edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=Planning()))
assert finished.buffer[4:8] == b"ET12" and issubclass(Planning, MemoryPlanningPass)
for value in (CompileSpec("a", b"1"), DelegationSpec("B", [CompileSpec("a", b"1")])):
    assert pickle.loads(pickle.dumps(value)) == value
case = pickle.loads(pickle.dumps(MethodTestCase([1, 2.0])))
assert case.inputs == [1, 2.0]
try:
    class Unknown(Partitioner):
        pass
    to_edge(torch.export.export(torch.nn.ReLU(), (torch.randn(3),))).to_backend(Unknown())
except Exception as error:
    print(type(error).__name__)
"""
    assert _printed(code).strip() != ""


@pytest.mark.full
def test_a_wheel_installs(tmp_path: Path) -> None:
    wheel = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q"]
    source = tmp_path / "source"
    shutil.copytree(ALIAS, source)
    subprocess.run([*wheel, "-w", tmp_path, source], check=True)
    (made,) = tmp_path.glob("rushlight_executorch-*.whl")
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    pip = [sys.executable, "-m", "pip", "--python", environment / "bin" / "python"]
    subprocess.run([*pip, "install", "-q", "--no-deps", made], check=True)
    code = "import executorch.runtime as r; print(r.__spec__.name, r.Runtime.get().__class__)"
    ended = subprocess.run(
        [environment / "bin" / "python", "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[1:])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "executorch.runtime" in ended.stdout and "rushlight.runtime" in ended.stdout


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
