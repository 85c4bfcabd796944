"""Shared libraries of kernels that are written for ExecuTorch, in Python's runtime."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import rushlight as rl
from rushlight import runtime
from rushlight.runtime.registries import registered_kernels
from shared_files import SharedFiles

ROOT = Path(__file__).resolve().parents[3]
SOURCES = Path(__file__).resolve().parent / "shared_kernels"
CMAKE = shutil.which("cmake") or str(Path(sys.executable).parent / "cmake")
KINDS = (
    "(Tensor? a, Tensor[] b, Tensor?[] c, int[] d, float[] e, bool[] f, str g, Scalar h, bool i, "
    "int? j) -> Tensor"
)


def _plus(x: torch.Tensor, number: float) -> torch.Tensor:
    return x + number


def _kinds(
    a: torch.Tensor | None,
    b: list[torch.Tensor],
    c: list[torch.Tensor | None],
    d: list[int],
    e: list[float],
    f: list[bool],
    g: str,
    h: float,
    i: bool,
    j: int | None,
) -> torch.Tensor:
    rest = len(g) + h + 100 * i + (1000 if j is None else j) + sum(e) + 10 * sum(f)
    rest += sum((k + 1) * number for k, number in enumerate(d))
    result = torch.zeros_like(b[0]) + rest
    for tensor in [a, *b, *c]:
        result = result if tensor is None else result + tensor
    return result


def _halves(x: torch.Tensor) -> list[torch.Tensor]:
    rows = x.shape[0] // 2
    return [x[:rows].clone(), x[rows:].clone()]


OPERATORS: dict[str, tuple[str, Callable[..., object]]] = {
    "plus": ("(Tensor x, float number) -> Tensor", _plus),
    "kinds": (KINDS, _kinds),
    "halves": ("(Tensor x) -> Tensor[]", _halves),
}


class Model(torch.nn.Module):
    """Calls the operators: all of them by kernels with types, or all by those without.

    Args:
        suffix: of the operators' names.
        number: which the first one adds.
    """

    def __init__(self, suffix: str, number: float = 0.5) -> None:
        super().__init__()
        self.ops = {name: getattr(torch.ops.compat_shared, name + suffix) for name in OPERATORS}
        self.number = number

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = self.ops["plus"](x * 2, self.number)
        first = self.ops["kinds"](
            x, [x, y], [None, y], [1, 2, 3], [0.5, 0.25], [True, False], "four", 2, True, 7
        )
        second = self.ops["kinds"](None, [y], [], [], [], [], "", 1.5, False, None)
        low, high = self.ops["halves"](torch.cat([x, y]))
        return first.relu(), second, low, high + 1


@pytest.fixture(scope="session")
def libraries(shared_files: SharedFiles, prefix: Path) -> Path:
    """The folder of the built libraries."""

    def fill(build: Path) -> None:
        for command in (
            (
                *(CMAKE, "-S", SOURCES, "-B", build, "-DCMAKE_BUILD_TYPE=Release"),
                f"-Dexecutorch_DIR={ROOT}/compat/executorch/share/cmake",
                f"-Drushlight_DIR={prefix}/lib/cmake/rushlight",
                f"-DABI_INCLUDE={ROOT}/cpp/abi",
            ),
            (CMAKE, "--build", build, "--parallel", "2"),
        ):
            done = subprocess.run(
                [str(part) for part in command], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr

    return shared_files.folder("compat_shared_kernels", fill)


X, Y = torch.arange(6.0).reshape(2, 3), torch.full((2, 3), 0.25)


@pytest.fixture(scope="session")
def programs(shared_files: SharedFiles) -> Path:
    """The folder of the programs, and of what eager PyTorch computes (`expected.npz`)."""

    def fill(folder: Path) -> None:
        for name, (schema, reference) in OPERATORS.items():
            for suffix in ("", "_any"):
                rl.custom_op(f"compat_shared::{name}{suffix}{schema}", kernel=None)(reference)
        rows = torch.export.Dim("rows", min=2, max=8)
        shapes = ({0: rows}, {0: rows})
        for name, suffix, backend, number in (
            ("typed", "", "portable", 0.5),
            ("any", "_any", "portable", 0.5),
            ("cpu", "", "cpu", 0.5),
            ("negative", "", "portable", -1.0),
            ("throws", "_any", "portable", 666.0),
        ):
            for operator in (f"{o}{suffix}" for o in OPERATORS):
                runtime.register_kernel(
                    f"compat_shared::{operator}{OPERATORS[operator.removesuffix('_any')][0]}",
                    lambda *_: None,
                )
            program = rl.export(
                Model(suffix, number),
                (X, Y),
                backend=backend,
                dynamic_shapes=None if name == "cpu" else shapes,
                verify=False,
            )
            program.save(folder / f"{name}.pte", quiet=True)
            for kernel in registered_kernels():
                runtime.unregister_kernel(kernel)
        results = Model("")(X, Y)
        np.savez(folder / "expected.npz", *(result.numpy() for result in results))

    return shared_files.folder("compat_shared_programs", fill)


def _python(script: str, *arguments: object, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT + script, *(str(argument) for argument in arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# Run by itself, since libraries and what they register are of the whole process.
SCRIPT = """
import ctypes, pathlib, sys, warnings
import numpy as np

libraries, programs = map(pathlib.Path, sys.argv[1:3])
names = ("own_kernels", "same_kernel", "later_version")
own, same, later = (libraries / f"lib{name}.so" for name in names)
x = np.arange(6, dtype=np.float32).reshape(2, 3)
y = np.full((2, 3), 0.25, np.float32)
expected = list(np.load(programs / "expected.npz").values())

def agrees(results, times=1):
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(np.asarray(result), wanted, rtol=1e-6)

def refused(call, *texts):
    try:
        call()
    except Exception as error:
        for text in texts:
            assert text in str(error), error
    else:
        raise AssertionError("was not refused")
"""
FROM_A_PATH = """
import rushlight as rl

program = programs / sys.argv[3]
to_do = "kernels=['libacme.so'] (--kernels libacme.so)"
refused(lambda: rl.load(program), "compat_shared::plus", to_do)
for _ in range(2):  # loaded again
    module = rl.load(program, kernels=[own, str(own)])
    for _ in range(2):
        agrees(module(x, y))
    if "cpu" not in program.name:
        more = [np.concatenate([array] * 3) for array in (x, y)]
        assert module(*more)[0].shape == (6, 3)
        agrees(module(x, y))
    agrees(module.clone()(x, y))
    del module
"""


@pytest.mark.parametrize("program", ["typed.pte", "any.pte", "cpu.pte"])
def test_a_library_given_by_its_path(libraries: Path, programs: Path, program: str) -> None:
    _python(FROM_A_PATH, libraries, programs, program)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "rushlight.cli", "run", programs / program),
            *("--kernels", libraries / "libown_kernels.so", "--random"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


LOADED = """
if sys.argv[3] == "first":
    ctypes.CDLL(str(own))
import rushlight as rl
from rushlight.runtime.registries import operator_registry

if sys.argv[3] != "first":
    refused(lambda: rl.load(programs / "typed.pte"), "3 operators missing in this runtime")
    ctypes.CDLL(str(own))
assert "compat_shared::kinds_any.out" in operator_registry.operator_names
for name in ("typed", "any", "cpu"):
    agrees(rl.load(programs / f"{name}.pte")(x, y))
    agrees(rl.load(programs / f"{name}.pte", kernels=[own])(x, y))
"""


@pytest.mark.parametrize("when", ["first", "later"])
def test_a_library_that_the_process_has_loaded(libraries: Path, programs: Path, when: str) -> None:
    _python(LOADED, libraries, programs, when)


UNDER_EXECUTORCHS_NAMES = """
import torch
from executorch.extension.pybindings.portable_lib import _load_for_executorch, _get_operator_names
from executorch.runtime import Runtime

torch.ops.load_library(own)
assert "compat_shared::plus.out" in _get_operator_names()
inputs = [torch.from_numpy(x), torch.from_numpy(y)]
for name in ("typed", "any"):
    path = str(programs / f"{name}.pte")
    agrees(_load_for_executorch(path).run_method("forward", inputs))
    agrees(Runtime.get().load_program(path).load_method("forward").execute(inputs))
"""


def test_scripts_that_are_written_for_executorch(libraries: Path, programs: Path) -> None:
    alias = str(ROOT / "compat" / "python")
    _python(UNDER_EXECUTORCHS_NAMES, libraries, programs, PYTHONPATH=alias)


FAILURES = """
import rushlight as rl

for name, text in (
    ("negative", "the kernel failed with Error::InvalidArgument"),
    ("throws", "666 is not added"),
):
    module = rl.load(programs / f"{name}.pte", kernels=[own])
    refused(lambda: module(x, y), text, "compat_shared::plus")
"""


def test_errors_of_kernels_are_those_of_the_run(libraries: Path, programs: Path) -> None:
    _python(FAILURES, libraries, programs)


GIVEN_TWICE = """
import rushlight as rl

refused(
    lambda: rl.load(programs / "typed.pte", kernels=[own, same]),
    "libsame_kernel.so: the kernel compat_shared::plus.out cannot be added: there is one",
)
refused(lambda: rl.load(programs / "typed.pte", kernels=[own, later]), "liblater_version.so: its")
"""
LOADED_TWICE = """
ctypes.CDLL(str(later))
ctypes.CDLL(str(own))
ctypes.CDLL(str(same))
import rushlight as rl

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    agrees(rl.load(programs / "typed.pte")(x, y))
    agrees(rl.load(programs / "typed.pte")(x, y))
words = [str(warning.message) for warning in caught]
assert len(words) == 2, words
assert "liblater_version.so: its kernel is of version 2 of the interface" in words[0], words
assert "libsame_kernel.so: the kernel compat_shared::plus.out cannot be added" in words[1], words
"""
OF_ANOTHER_VERSION = """
ctypes.CDLL(str(later))
import rushlight as rl

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    refused(
        lambda: rl.load(programs / "typed.pte"),
        "3 operators missing in this runtime", "write RUSHLIGHT_KERNEL(compat_shared, plus_out)",
        "liblater_version.so: its kernel is of version 2 of the interface; this runtime knows",
    )
"""


@pytest.mark.parametrize("script", [GIVEN_TWICE, LOADED_TWICE, OF_ANOTHER_VERSION])
def test_libraries_that_do_not_go_together(libraries: Path, programs: Path, script: str) -> None:
    _python(script, libraries, programs)
