"""Core ML: model packages, in the layout that ExecuTorch's delegate reads."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import coremltools as ct
import pytest
import torch
from benchmarks import models
from torch import nn

import rushlight
from delegates import declined, lowered_modules
from rushlight.backends.coreml import PARTITIONER, CoreMLBackend, CoreMLPartitioner
from rushlight.backends.coreml.directory import flatten, read_files
from rushlight.errors import ExportError, LoadError
from rushlight.partition import CompileSpec, LoweredBackendModule
from rushlight.pipeline import EdgeProgramManager, to_edge_transform_and_lower

ROOT = Path(__file__).resolve().parents[2]
MODEL = "model.mlpackage/Data/com.apple.CoreML/model.mlmodel"


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.linear = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        z = torch.relu(self.conv(x)).mean((2, 3))
        return self.linear(z), torch.softmax(z, -1)


IMAGE = torch.randn(2, 3, 16, 16)


def small() -> nn.Module:
    torch.manual_seed(0)
    return Small().eval()


def lowered(module: nn.Module, args: tuple[Any, ...], **options: Any) -> EdgeProgramManager:
    captured = torch.export.export(module.eval(), args)
    return to_edge_transform_and_lower(captured, partitioner=[CoreMLPartitioner(**options)])


def delegates(manager: EdgeProgramManager) -> list[LoweredBackendModule]:
    return lowered_modules(manager.exported_program())


def left(manager: EdgeProgramManager) -> dict[str, str]:
    return declined(manager.exported_program(), "CoreMLBackend")


def spec_of(files: dict[str, bytes]) -> Any:
    return ct.proto.Model_pb2.Model.FromString(files[MODEL])


@pytest.mark.parametrize("name", ["mobilenet_v2_tiny", "minilm_tiny", "resnet50_tiny"])
def test_models_go_there_whole(name: str) -> None:
    case = models.build(name)
    manager = to_edge_transform_and_lower(case.export(), partitioner=[CoreMLPartitioner()])
    (delegate,) = delegates(manager)
    files = read_files(delegate.processed_bytes)
    names = json.loads(files["metadata.json"])
    description = spec_of(files).description
    assert names["inputNames"] == [one.name for one in description.input]
    assert names["outputNames"] == [result.name for result in description.output]
    assert len(names["inputNames"]) == len(case.leaves())
    assert len(manager.to_executorch().buffer) > len(delegate.processed_bytes)


def test_the_package_names_its_partitioner() -> None:
    assert PARTITIONER is CoreMLPartitioner


def test_inputs_and_outputs_come_in_the_programs_order() -> None:
    (delegate,) = delegates(lowered(small(), (IMAGE,)))
    description = spec_of(read_files(delegate.processed_bytes)).description
    shapes = [list(one.type.multiArrayType.shape) for one in description.output]
    assert shapes == [[2, 5], [2, 8]]


def test_executorch_unpacks_the_payload(tmp_path: Path) -> None:
    """With the extension that its own delegate packs with."""
    named = os.environ.get("RUSHLIGHT_EXECUTORCH_PYTHON")
    python = Path(named) if named else ROOT / ".venv-executorch" / "bin" / "python"
    if not python.exists():
        subprocess.run(["make", "peer"], cwd=ROOT, check=True)
    (delegate,) = delegates(lowered(small(), (IMAGE,)))
    payload = tmp_path / "payload"
    payload.write_bytes(delegate.processed_bytes)
    code = (
        "import os, sys, executorch; folder = list(executorch.__path__)[0];"
        "sys.path.insert(0, os.path.join(folder, 'backends/apple/coreml'));"
        "import executorchcoreml as peer; data = open(sys.argv[1], 'rb').read();"
        "assert peer.unflatten_directory_contents(data, sys.argv[2]);"
        "open(sys.argv[3], 'wb').write(peer.flatten_directory_contents(sys.argv[2] +"
        " '/lowered_module'))"
    )
    (tmp_path / "out").mkdir()
    again = tmp_path / "again"
    subprocess.run([python, "-c", code, payload, tmp_path / "out", again], check=True)
    files = read_files(delegate.processed_bytes)
    unpacked = tmp_path / "out" / "lowered_module"
    paths = {p.relative_to(unpacked).as_posix() for p in unpacked.rglob("*") if p.is_file()}
    assert paths == set(files)
    for name, content in files.items():
        assert (unpacked / name).read_bytes() == content
    assert read_files(again.read_bytes()) == files


def test_equal_programs_give_equal_payloads() -> None:
    payloads = [delegates(lowered(small(), (IMAGE,)))[0].processed_bytes for _ in range(2)]
    assert payloads[0] == payloads[1]


def test_debug_handles_lead_to_the_line() -> None:
    (delegate,) = delegates(lowered(small(), (IMAGE,)))
    rows = delegate.sources()
    (symbol,) = [name for name in rows if name.endswith(":conv")]
    ((_, operator, source),) = rows[symbol]
    assert operator == "aten.convolution.default"
    assert source.text == "z = torch.relu(self.conv(x)).mean((2, 3))"


@pytest.mark.parametrize(
    ("precision", "dtype"), [(ct.precision.FLOAT16, "FLOAT16"), (ct.precision.FLOAT32, "FLOAT32")]
)
def test_compile_specs_reach_the_model(precision: ct.precision, dtype: str) -> None:
    specs = CoreMLBackend.generate_compile_specs(
        compute_unit=ct.ComputeUnit.CPU_ONLY,
        minimum_deployment_target=ct.target.iOS17,
        compute_precision=precision,
    )
    assert {s.key: bytes(s.value) for s in specs} == {
        "compute_units": b"cpu_only",
        "min_deployment_target": str(ct.target.iOS17.value).encode(),
        "model_compute_precision": precision.value.encode(),
        "model_type": b"model",
    }
    (delegate,) = delegates(lowered(small(), (IMAGE,), compile_specs=specs))
    spec = spec_of(read_files(delegate.processed_bytes))
    assert spec.specificationVersion == ct.target.iOS17.value
    kind = spec.description.output[0].type.multiArrayType
    assert kind.ArrayDataType.Name(kind.dataType) == dtype


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("compute_unit", "cpu_only", "compute_unit is 'cpu_only'; allowed are ComputeUnit.ALL"),
        ("minimum_deployment_target", "iOS17", "minimum_deployment_target is 'iOS17'; allowed are"),
        ("compute_precision", None, "compute_precision is None; allowed are"),
        ("model_type", "model", "model_type is 'model'; allowed are ModelType.MODEL"),
    ],
)
def test_wrong_options_are_refused(option: str, value: Any, message: str) -> None:
    with pytest.raises(ExportError, match=message):
        CoreMLBackend.generate_compile_specs(**{option: value})


def test_one_name_is_no_list_of_names() -> None:
    with pytest.raises(ExportError, match=r"delegation is 'relu': give a list of names"):
        CoreMLPartitioner(skip_ops_for_coreml_delegation="relu")


def test_what_core_ml_takes_from_a_later_system_on() -> None:
    x = torch.randn(2, 3).half()
    reason = left(lowered(nn.ReLU(), (x,)))["aten.relu.default"]
    assert "float16 from iOS 16 on: generate_compile_specs(minimum_deployment_target" in reason
    later = CoreMLBackend.generate_compile_specs(minimum_deployment_target=ct.target.iOS16)
    assert len(delegates(lowered(nn.ReLU(), (x,), compile_specs=later))) == 1


def test_tensors_that_core_ml_cannot_be_given_stay() -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return torch.relu(x), n.float() * 2, n + n, n.transpose(0, 1)

    args = (IMAGE.to(memory_format=torch.channels_last), torch.ones(2, 3, dtype=torch.int8))
    reasons = left(lowered(Model(), args))
    assert reasons["aten.relu.default"].startswith("it has a tensor that is not in row-major order")
    stored = "Core ML stores int8, and does not compute with it"
    assert reasons["aten.add.Tensor"] == reasons["aten.permute_copy.default"] == stored
    assert reasons["dim_order_ops._to_dim_order_copy.default"] == stored


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("compute_units", b"\xff", r"compute_units is b'\\xff', and must be text in bytes"),
        ("compute_units", b"toaster", "compute_units is 'toaster'; allowed are all, cpu_and_gpu"),
        ("model_type", b"compiled_model", "needs Core ML's compiler, which is on macOS only"),
        ("speed", b"1", r"unknown compile specs \['speed'\]; allowed are compute_units"),
    ],
)
def test_wrong_compile_specs_are_refused(key: str, value: bytes, message: str) -> None:
    with pytest.raises(ExportError, match=message):
        CoreMLPartitioner(compile_specs=[CompileSpec(key, value)])


def test_what_is_declined_has_its_reason() -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return (
                torch.erfinv(x),
                x.double() + 1,
                torch.add(x, x, alpha=2),
                torch.argmax(x),
                torch.relu(x),
                x.reshape(1, 1, 1, 1, 2, 2) * 2,
            )

    reasons = left(lowered(Model(), (torch.rand(2, 2),), skip_ops_for_coreml_delegation=["relu"]))
    assert reasons["aten.erfinv.default"] == "coremltools has no rule for aten.erfinv.default"
    assert reasons["dim_order_ops._to_dim_order_copy.default"] == "Core ML has no float64"
    assert reasons["aten.argmax.default"].startswith("Core ML has no reduction over all dimensions")
    assert reasons["aten.relu.default"] == (
        "skip_ops_for_coreml_delegation names aten.relu.default"
    )
    assert reasons["aten.mul.Tensor"] == "it has a tensor of 6 dimensions; Core ML has 5"


def test_what_coremltools_cannot_convert_is_named_with_its_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rushlight.backends.coreml import partitioner

    class Bessel(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.special.bessel_j0(x)

    monkeypatch.setattr(partitioner, "is_torch_fx_node_supported", lambda node: True)
    with pytest.raises(ExportError) as caught:
        lowered(Bessel(), (torch.rand(3),))
    text = str(caught.value)
    assert "CoreMLBackend: preprocess failed" in text and "forward: partition" in text
    assert "special_bessel_j0" in text and "return torch.special.bessel_j0(x)" in text


def test_running_it_here_is_refused_with_what_to_do() -> None:
    program = lowered(small(), (IMAGE,)).to_executorch().buffer
    with pytest.raises(LoadError) as caught:
        rushlight.load(program)
    text = str(caught.value)
    assert "CoreMLBackend: " in text and "Core ML runs on Apple's systems only" in text
    assert "forward: delegate 0, to run convolution (aten.convolution.default)" in text


def test_a_folder_comes_back(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a" / "empty").mkdir(parents=True)
    (root / "a" / "ä.bin").write_bytes(bytes(range(256)))
    (root / "b.json").write_bytes(b"{}")
    data = flatten(root)
    assert read_files(data) == {"a/ä.bin": bytes(range(256)), "b.json": b"{}"}


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"}{", b"nonsense", b'}]}"x":"eman",0:"dnik"{[:"sedon"{'),
        b'{"nodes":[{"kind":1,"children":{"":0}}]}'[::-1],
        b'{"nodes":[{"kind":1,"children":{"a":-1}}]}'[::-1],
        b'{"nodes":[{"kind":1,"children":{"a":7}}]}'[::-1],
        b"[" * 100_000,
    ],
)
def test_bytes_that_are_no_folder_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        read_files(data)


def _run(code: str, folder: Path) -> str:
    """What a process that runs this code writes to its standard error; it saves `model.pte`."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, check=True, capture_output=True, text=True
    )
    assert (folder / "model.pte").exists()
    return done.stderr


def test_the_code_of_the_documentation_runs(tmp_path: Path) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "backends-coreml.md"
    (code,) = re.findall(r"^```py\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    _run(code, tmp_path)


def test_an_export_shows_no_warnings_of_coremltools(tmp_path: Path) -> None:
    code = """
import torch, rushlight
model, x = torch.nn.Linear(2, 3).eval(), torch.randn(1, 2)
rushlight.export(model, (x,), backend="coreml", verify=False).save("model.pte")
"""
    shown = _run(code, tmp_path)
    assert "Failed to load _ML" not in shown and "has not been tested" not in shown
