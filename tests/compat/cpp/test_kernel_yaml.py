"""Kernels named in YAML: the C++ that is made of it registers them, and programs call them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import rushlight as rl
from rushlight.edge import register_operator
from rushlight.kernel_codegen import gen
from rushlight.kernel_codegen.tools import gen_oplist, gen_selected_op_variants
from shared_files import SharedFiles

ROOT = Path(__file__).resolve().parents[3]
COMPAT = ROOT / "compat" / "executorch"
SOURCES = Path(__file__).resolve().parent / "yaml_kernels"
CMAKE = shutil.which("cmake") or str(Path(sys.executable).parent / "cmake")
COMPILER = shutil.which("c++") or "c++"
FILES = [
    f"--functions-yaml-path={SOURCES / 'functions.yaml'}",
    f"--custom-ops-yaml-path={SOURCES / 'custom_ops.yaml'}",
]


def _check(*command: object) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_generated_sources_compile_without_warnings(tmp_path: Path) -> None:
    gen.main([*FILES, f"--install-dir={tmp_path}"])
    (tmp_path / "rushlight").symlink_to(ROOT / "cpp")
    include = COMPAT / "include"
    (tmp_path / "calls.cpp").write_text('#include "Functions.h"\n')
    for source in ("RegisterCodegenUnboxedKernelsEverything.cpp", "calls.cpp"):
        _check(
            *(COMPILER, "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-fno-rtti"),
            *("-fno-exceptions", f"-I{include}", f"-I{tmp_path}"),
            f"-I{include}/executorch/runtime/core/portable_type/c10",
            *("-DC10_USING_CUSTOM_GENERATED_MACROS", tmp_path / source),
        )


PORTABLE = """
- op: add.out
  kernels: [{arg_meta: null, kernel_name: "own::add_out"}]
- op: split_copy.Tensor_out
  kernels: [{arg_meta: null, kernel_name: "own::split_copy_out"}]
- op: native_layer_norm.out
  kernels: [{arg_meta: null, kernel_name: "own::layer_norm_out"}]
- op: index.Tensor_out
  kernels: [{arg_meta: null, kernel_name: "own::index_out"}]
"""


@pytest.mark.interop
@pytest.mark.parametrize("option", ["--add-exception-boundary", "--manual-registration"])
def test_sources_are_those_of_executorchs_generator(tmp_path: Path, option: str) -> None:
    """From the same templates: but for comments, every file has the same text."""
    (tmp_path / "functions.yaml").write_text(PORTABLE)
    mixed, _, _ = (SOURCES / "custom_ops.yaml").read_text().partition("- func: own::min_max")
    (tmp_path / "custom_ops.yaml").write_text(mixed)
    tags = gen._parser().get_default("tags_path")
    aten = gen._parser().get_default("aten_yaml_path")
    for name in ("theirs", "ours"):
        arguments = [
            *(f"--source-path={Path(gen.__file__).parent}", f"--tags-path={tags}", option),
            *(f"--aten-yaml-path={aten}", f"--install-dir={tmp_path / name}"),
            f"--functions-yaml-path={tmp_path / 'functions.yaml'}",
            f"--custom-ops-yaml-path={tmp_path / 'custom_ops.yaml'}",
        ]
        if name == "ours":
            gen.main(arguments)
        else:
            python = ROOT / ".venv-executorch" / "bin" / "python"
            _check(python, "-m", "executorch.codegen.gen", *arguments)

    def files(folder: Path) -> dict[str, str]:
        return {
            path.name: re.sub(r"\s+", " ", re.sub(r"//.*", "", path.read_text()))
            for path in folder.iterdir()
        }

    ours = files(tmp_path / "ours")
    ours.pop("RegisterCPUWrappedOps.cpp")  # in addition to theirs
    assert ours == files(tmp_path / "theirs")


def _mixed(x, sizes, flags, xs, ys, eps, mode, s, n, fs, w, more):  # type: ignore[no-untyped-def]
    added = sum(sizes) + n + sum(fs) + (100.0 if eps is None else eps) + (more or [0])[0]
    added += 10 * flags[0] + 20 * flags[1]
    total = x * s + added + sum(xs) + sum(y for y in ys if y is not None)
    total = total if w is None else total + 1000
    return -total if mode == "negative" else total


MIXED = (
    "Tensor x, int[] sizes, bool[2] flags, Tensor[] xs, Tensor?[] ys, float? eps, str mode, "
    "Scalar s, SymInt n, float[] fs, Tensor? w, int[]? more"
)


@pytest.fixture(scope="module")
def operators() -> Iterator[None]:
    library = torch.library.Library("own", "FRAGMENT")
    key = "CompositeExplicitAutograd"
    library.define(f"mixed({MIXED}) -> Tensor")
    library.define(f"mixed.out({MIXED}, *, Tensor(a!) out) -> Tensor(a!)")
    library.define("min_max(Tensor x) -> (Tensor, Tensor)")
    library.define(
        "min_max.out(Tensor x, *, Tensor(a!) low, Tensor(b!) high) -> (Tensor(a!), Tensor(b!))"
    )
    library.define("twice(Tensor x) -> Tensor")
    library.define("twice.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
    library.impl("mixed", _mixed, key)
    library.impl("mixed.out", lambda *a, out: out.copy_(_mixed(*a)), key)
    library.impl("min_max", lambda x: (x.min(), x.max()), key)
    library.impl(
        "min_max.out", lambda x, *, low, high: (low.copy_(x.min()), high.copy_(x.max())), key
    )
    library.impl("twice", lambda x: x * 2, key)
    library.impl("twice.out", lambda x, *, out: out.copy_(x * 2), key)
    for name in ("mixed", "min_max", "twice"):
        register_operator(f"own::{name}.out", library="own_kernels")
    yield
    library._destroy()


class Own(torch.nn.Module):
    """Calls all kernels of the project."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        own = torch.ops.own
        y = own.mixed(
            *(x, [1, 2], [True, False], [x, x - 1], [None, x], 0.5, "negative", 2.5, 3),
            *([0.25, 4.0], None, [7]),
        )
        z = own.mixed(x, [], [False, True], [x], [], None, "same", 2, 1, [], x, None)
        low, high = own.min_max(y)
        return y, z, low, high, own.twice(x), own.twice(x.to(torch.int64))


class Unselected(torch.nn.Module):
    """Calls a kernel with a dtype that `Own` has not."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.own.twice(x.to(torch.int32)).to(torch.float32)


INPUT = torch.arange(6.0).reshape(2, 3)


@pytest.fixture(scope="module")
def project(shared_files: SharedFiles, operators: None, prefix: Path) -> Path:
    """The folder of the built programs, and of own.pte and unselected.pte."""

    def fill(folder: Path) -> None:
        for model, name in ((Own(), "own"), (Unselected(), "unselected")):
            program = rl.export(model, (INPUT,), backend="portable", verify=False)
            program.save(folder / f"{name}.pte", quiet=True)
        gen.main([*FILES, f"--install-dir={folder / 'generated'}"])
        gen.main([*FILES, f"--install-dir={folder / 'called'}", "--manual-registration"])
        selected = folder / "selected"
        selected.mkdir()
        gen_oplist.main([f"--output_path={selected}", f"--model_file_path={folder / 'own.pte'}"])
        listed = f"{selected}/selected_operators.yaml"
        gen.main([*FILES, f"--install-dir={selected}", f"--op-selection-yaml-path={listed}"])
        gen_selected_op_variants.main([f"--yaml-file={listed}", f"--output-dir={selected}/"])
        _check(
            *(CMAKE, "-S", SOURCES, "-B", folder / "build", "-DCMAKE_BUILD_TYPE=Release"),
            *(f"-DEXECUTORCH_FOLDER={COMPAT}", f"-DGENERATED={folder / 'generated'}"),
            *(f"-DCALLED={folder / 'called'}", f"-DSELECTED={selected}"),
            f"-Drushlight_DIR={prefix}/lib/cmake/rushlight",
        )
        _check(CMAKE, "--build", folder / "build", "--parallel", "2")

    return shared_files.folder("yaml_kernels", fill)


def _run(project: Path, program: str, file: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [project / "build" / program, project / file], capture_output=True, text=True, check=False
    )


@pytest.mark.full
@pytest.mark.parametrize("program", ["own_program", "called_program", "selected_program"])
def test_programs_call_the_kernels_as_eager_does(project: Path, program: str) -> None:
    done = _run(project, program, "own.pte")
    assert done.returncode == 0, done.stdout + done.stderr
    expected = [value for out in Own()(INPUT) for value in out.flatten().tolist()]
    assert [float(word) for word in done.stdout.split()] == pytest.approx(expected, rel=1e-6)
    assert "own sub" in done.stderr  # in place of the runtime's own
    assert done.stderr.count("twice floats\n") == 1  # for float32 in two dimensions
    assert done.stderr.count("twice\n") == 1  # for the rest


@pytest.mark.full
def test_a_build_for_some_dtypes_refuses_others(project: Path) -> None:
    all_dtypes = _run(project, "own_program", "unselected.pte")
    assert [float(word) for word in all_dtypes.stdout.split()] == (INPUT * 2).flatten().tolist()
    done = _run(project, "selected_program", "unselected.pte")
    assert done.stdout.strip() == "Error::InvalidArgument", done.stdout + done.stderr
    assert "Unhandled dtype Int for own::twice.out" in done.stderr


# Run by itself, since the operators are of the whole process.
OPERATORS = """
import sys
import torch
torch.ops.load_library(sys.argv[1])
own, x = torch.ops.own, torch.arange(6.0).reshape(2, 3)
y = own.mixed.out(x, [1, 2], [True, False], [x, x], [None, x], None, "same", 2.5, 3, [0.25], x,
                  [7], out=torch.empty(2, 3))
torch.testing.assert_close(y, x * 2.5 + 2 * x + x + (1 + 2 + 10 + 100 + 3 + 0.25 + 7 + 1000))
low, high = own.min_max.out(x.t(), low=torch.empty(()), high=torch.empty(()))
assert (low, high) == (0, 5)
torch.testing.assert_close(own.twice.out(x.int(), out=torch.empty(2, 3).int()), x.int() * 2)
try:
    own.min_max.out(x, low=torch.empty(2), high=torch.empty(()))
except RuntimeError as error:
    assert "own::min_max.out failed: Error::InvalidArgument" in str(error), error
else:
    raise AssertionError("tensors of wrong sizes were taken")
print("done")
"""


@pytest.mark.full
def test_kernels_become_operators_of_pytorch(tmp_path: Path, prefix: Path) -> None:
    gen.main([*FILES, f"--install-dir={tmp_path / 'generated'}"])
    _check(
        *(CMAKE, "-S", SOURCES / "aten", "-B", tmp_path / "build", "-DCMAKE_BUILD_TYPE=Release"),
        f"-DCMAKE_PREFIX_PATH={torch.utils.cmake_prefix_path}",
        *(f"-DEXECUTORCH_FOLDER={COMPAT}", f"-DGENERATED={tmp_path / 'generated'}"),
        f"-Drushlight_DIR={prefix}/lib/cmake/rushlight",
    )
    _check(CMAKE, "--build", tmp_path / "build", "--target", "own_operators", "--parallel", "2")
    library = tmp_path / "build" / "libown_operators.so"
    assert _check(sys.executable, "-c", OPERATORS, library).startswith("done\n")
