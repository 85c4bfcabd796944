"""ExecuTorch's C++ interface in `compat/executorch`: an application as its guides build one.

One project, built as ExecuTorch's CMake files say, runs programs by the Module API and by Program
and Method, with a kernel library and a backend that are written for ExecuTorch. The list of headers
is that of the C++ SDK in ExecuTorch's wheel 1.5.1.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.export import ExportedProgram

import rushlight as rl
from delegates import taking
from rushlight.edge import register_operator
from rushlight.inspect import Inspector
from rushlight.partition import BackendDetails, CompileSpec, PreprocessResult
from rushlight.schema.flat_tensor import TensorLayout
from rushlight.schema.program import ScalarType
from rushlight.serialize.ptd import NamedTensor, write_ptd
from shared_files import SharedFiles

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "compat" / "executorch"
HEADERS = (Path(__file__).resolve().parent / "headers.txt").read_text().split()
OTHERS = [header for header in HEADERS if "windows" not in header]
# What documents use beside the headers of the SDK.
BEYOND = [
    "executorch/devtools/bundled_program/bundled_program.h",
    "executorch/extension/llm/runner/multimodal_runner.h",
    "executorch/extension/module/bundled_module.h",
    "executorch/extension/llm/runner/text_llm_runner.h",
    "executorch/extension/llm/sampler/sampler.h",
    *(f"pytorch/tokenizers/{name}.h" for name in ("hf_tokenizer", "llama2c_tokenizer")),
    *(f"pytorch/tokenizers/{name}.h" for name in ("sentencepiece", "tekken", "tiktoken")),
]
CMAKE = shutil.which("cmake") or str(Path(sys.executable).parent / "cmake")


def _run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )


def _check(*command: object) -> str:
    done = _run(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="session")
def guide(shared_files: SharedFiles, prefix: Path) -> Path:
    """The folder of the built project; `configure.txt` is what CMake printed."""

    def fill(folder: Path) -> None:
        build = folder / "build"
        source = Path(__file__).resolve().parent / "project"
        printed = _check(
            *(CMAKE, "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release"),
            *(f"-DEXECUTORCH_FOLDER={FOLDER}", f"-Drushlight_DIR={prefix}/lib/cmake/rushlight"),
        )
        (folder / "configure.txt").write_text(printed)
        printed = _check(CMAKE, "--build", build, "--parallel", "2")
        (folder / "build.txt").write_text(printed)

    return shared_files.folder("compat_guide", fill)


def _outputs(guide: Path, way: str, program: Path, *sizes: int) -> list[float]:
    done = _run(guide / "build" / "guide", way, program, *sizes)
    assert done.returncode == 0, done.stdout + done.stderr
    return [float(word) for word in done.stdout.split()]


def _counted(*sizes: int) -> torch.Tensor:
    return torch.arange(float(torch.Size(sizes).numel())).reshape(sizes)


WAYS = pytest.mark.parametrize("way", ["module", "low"])


@WAYS
@pytest.mark.parametrize("backend", ["portable", "cpu", "xnnpack"])
def test_runs_programs_of_each_backend(guide: Path, tmp_path: Path, way: str, backend: str) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Softmax(-1)).eval()
    batch = torch.export.Dim("batch", max=8)
    program = rl.export(model, (_counted(2, 6),), backend=backend, dynamic_shapes=({0: batch},))
    program.save(tmp_path / "model.pte", quiet=True)
    for rows in (2, 5):
        expected = model(_counted(rows, 6)).flatten().tolist()
        got = _outputs(guide, way, tmp_path / "model.pte", rows, 6)
        assert got == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_traces(guide: Path, tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Softmax(-1)).eval()
    rl.export(model, (_counted(2, 6),)).save(tmp_path / "model.pte", quiet=True)
    done = subprocess.run(
        [guide / "build" / "guide", "trace", tmp_path / "model.pte", "2", "6"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    expected = model(_counted(2, 6))
    assert [float(word) for word in done.stdout.split()] == pytest.approx(
        expected.flatten().tolist(), rel=1e-4
    )
    inspector = Inspector(
        etdump_path=tmp_path / "trace.etdp", debug_buffer_path=tmp_path / "trace.bin"
    )
    names = [event.name for block in inspector.event_blocks for event in block.events]
    assert any("softmax" in name for name in names) and "Method::execute" in names
    values = [
        value
        for block in inspector.event_blocks
        for event in block.events
        for value in event.debug_data or ()
    ]
    assert any(np.allclose(value, expected.detach().numpy(), atol=1e-6) for value in values)


def test_verifies_bundled_programs(guide: Path, tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Softmax(-1)).eval()
    given, wrong = _counted(2, 6), torch.tensor([[0.0, 1.0, 0.0, 0.0]] * 2)
    program = rl.export(model, (given,))
    cases = [
        rl.TestCase((given,)),
        rl.TestCase((given / 7,)),
        rl.TestCase((given,), expected=(wrong,)),
    ]
    rl.bundle(program, cases).save(tmp_path / "model.bpte")
    done = _run(guide / "build" / "guide", "bundle", tmp_path / "model.bpte")
    good, other, departs, end = done.stdout.splitlines()
    assert good.startswith("Error::Ok ") and other.startswith("Error::Ok ")
    name, *stats = departs.split()
    error = (model(given) - wrong).detach().abs()
    relative = error[:, 1]
    figures = (error.mean(), error.max(), relative.mean(), relative.max())
    assert name == "Error::NotFound" and end == "Error::InvalidArgument"
    assert [float(text) for text in stats] == pytest.approx(
        [float(figure) for figure in figures], rel=1e-4
    )
    assert "case 2: output 0 at [" in done.stderr  # the element that departs

    program.save(tmp_path / "model.pte", quiet=True)
    done = _run(guide / "build" / "guide", "bundle", tmp_path / "model.pte")
    assert done.stdout.strip() == "Error::NotSupported" and "no bundled program" in done.stderr


@pytest.mark.parametrize("backend", ["portable", "cpu"])
def test_a_module_in_memory_of_the_applications(guide: Path, tmp_path: Path, backend: str) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Softmax(-1)).eval()
    rl.export(model, (_counted(2, 6),), backend=backend).save(tmp_path / "m.pte", quiet=True)
    done = _run(guide / "build" / "guide", "memory", tmp_path / "m.pte", 2, 6)
    assert done.returncode == 0, done.stdout + done.stderr
    got = [float(word) for word in done.stdout.split()]
    assert got == pytest.approx(model(_counted(2, 6)).flatten().tolist(), rel=1e-4)
    events = done.stderr.partition("events:")[2].splitlines()[0].split()
    assert "Method::execute" in events and "mismatch" not in events
    assert any("softmax" in event for event in events) == (backend == "portable")


def test_tensors_of_data_files(guide: Path, tmp_path: Path) -> None:
    tensors = {"a": _counted(2, 3), "b": torch.tensor([1.5, -2.0]), "c": torch.ones(1, 1, 2)}
    files = {"first": ("a",), "second": ("b", "c"), "third": ("c",)}
    for name, keys in files.items():
        content = {
            key: NamedTensor(
                tensors[key].numpy().tobytes(),
                TensorLayout(
                    ScalarType.FLOAT, list(tensors[key].shape), list(range(tensors[key].dim()))
                ),
            )
            for key in keys
        }
        (tmp_path / f"{name}.ptd").write_bytes(write_ptd(content))
    data = [guide / "build" / "guide", "data"]
    done = _run(*data, tmp_path / "first.ptd", tmp_path / "second.ptd")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "a 2 3: 0 1 2 3 4 5",
        "b 2: 1.5 -2",
        "c 1 1 2: 1 1",
    ]
    done = _run(*data, tmp_path / "second.ptd", tmp_path / "third.ptd")
    assert done.stdout.strip() == "Error::InvalidArgument" and "the key c" in done.stderr
    (tmp_path / "text.ptd").write_bytes(b"no data file, but long enough to be read" * 4)
    done = _run(*data, tmp_path / "text.ptd")
    assert done.stdout.strip() == "Error::InvalidExternalData"


@WAYS
def test_bad_input_and_bad_files_return_errors_with_their_reason(
    guide: Path, tmp_path: Path, way: str
) -> None:
    program = rl.export(torch.nn.Linear(3, 2), (_counted(1, 3),))
    program.save(tmp_path / "model.pte", quiet=True)
    (tmp_path / "cut.pte").write_bytes(program.buffer[: len(program.buffer) // 2])
    (tmp_path / "text.pte").write_bytes(b"not a program")
    for name, sizes, code, reason in (
        ("model.pte", (1, 4), "Error::NotSupported", "input 0: got sizes (1, 4)"),
        ("model.pte", (3,), "Error::NotSupported", "input 0"),
        ("none.pte", (1, 3), "Error::AccessFailed", "no such file"),
        ("text.pte", (1, 3), "Error::InvalidProgram", "not a .pte program"),
        ("cut.pte", (1, 3), "Error::InvalidProgram", ""),
    ):
        done = _run(guide / "build" / "guide", way, tmp_path / name, *sizes)
        assert done.returncode == 2 and done.stdout.strip() == code, done.stdout + done.stderr
        assert reason in done.stderr


def _define_operators() -> torch.library.Library:
    library = torch.library.Library("compat", "FRAGMENT")
    library.define("scaled(Tensor x, float factor) -> Tensor")
    library.define("scaled.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)")
    library.define("next(Tensor x) -> Tensor")
    library.define("next.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
    key = "CompositeExplicitAutograd"
    library.impl("scaled", lambda x, factor: x * factor, key)
    library.impl("scaled.out", lambda x, factor, *, out: out.copy_(x * factor), key)
    library.impl("next", lambda x: x + 1, key)
    library.impl("next.out", lambda x, *, out: out.copy_(x + 1), key)
    for name in ("compat::scaled.out", "compat::next.out"):
        register_operator(name, library="own_kernels")
    return library


class Scaled(torch.nn.Module):
    """Calls both kernels of the project.

    Args:
        factor: of the first kernel, which takes positive ones.
    """

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.compat.next(torch.ops.compat.scaled(x, self.factor))


@WAYS
def test_calls_kernels_that_static_objects_register(guide: Path, tmp_path: Path, way: str) -> None:
    library = _define_operators()
    try:
        for name, factor in (("good", 2.5), ("bad", -1.0)):
            program = rl.export(Scaled(factor), (_counted(2, 3),), verify=False)
            program.save(tmp_path / f"{name}.pte", quiet=True)
    finally:
        library._destroy()
    expected = (_counted(2, 3) * 2.5 + 1).flatten().tolist()
    assert _outputs(guide, way, tmp_path / "good.pte", 2, 3) == expected
    done = _run(guide / "build" / "guide", way, tmp_path / "bad.pte", 2, 3)
    assert done.stdout.strip() == "Error::InvalidArgument"
    assert "factor is -1" in done.stderr and "compat::scaled.out" in done.stderr


class CompatAddBackend(BackendDetails):
    """The compiler half of the project's backend, which adds a number."""

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        return PreprocessResult(b"0.5")


@WAYS
def test_runs_programs_that_a_backend_written_for_executorch_takes(
    guide: Path, tmp_path: Path, way: str
) -> None:
    class Added(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x + 1.5)

    taken = taking("aten.add", backend="CompatAddBackend", times=b"3")
    program = rl.export(Added(), (_counted(2, 3),), backend=taken, verify=False)
    program.save(tmp_path / "model.pte", quiet=True)
    expected = (_counted(2, 3) + 1.5).flatten().tolist()
    assert _outputs(guide, way, tmp_path / "model.pte", 2, 3) == expected


def test_options_without_a_part_here_are_named(guide: Path) -> None:
    assert "EXECUTORCH_BUILD_VULKAN has no part here" in (guide / "configure.txt").read_text()
    assert "EXECUTORCH_BUILD_XNNPACK" not in (guide / "configure.txt").read_text()


def _compile(folder: Path, headers: list[str]) -> str:
    source = folder / "headers.cpp"
    source.write_text("".join(f"#include <{header}>\n" for header in headers))
    include = FOLDER / "include"
    ours = folder / "include"
    ours.mkdir(exist_ok=True)
    if not (ours / "rushlight").exists():
        (ours / "rushlight").symlink_to(ROOT / "cpp")
    c10 = include / "executorch" / "runtime" / "core" / "portable_type" / "c10"
    flags = ["-std=c++17", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra", "-Werror"]
    done = _run("g++", *flags, "-fsyntax-only", f"-I{include}", f"-I{c10}", f"-I{ours}", source)
    return done.stderr


def _including(header: str) -> str:
    """How code names a header: those of c10 have a folder of their own."""
    return header.partition("portable_type/c10/")[2] or header


def test_headers_of_the_sdk_are_there_and_compile_together(tmp_path: Path) -> None:
    assert len(HEADERS) == 120
    assert not [header for header in HEADERS if not (FOLDER / "include" / header).exists()]
    assert _compile(tmp_path, [_including(header) for header in OTHERS + BEYOND]) == ""


@pytest.mark.full
@pytest.mark.parametrize("header", OTHERS + BEYOND)
def test_each_header_compiles_alone(tmp_path: Path, header: str) -> None:
    assert _compile(tmp_path, [_including(header)]) == ""
