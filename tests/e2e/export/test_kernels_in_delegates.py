"""Kernels of libraries inside delegates of the cpu backend, and a library that is given twice."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import rushlight as rl
from own_kernels import build_library
from rushlight import runtime
from rushlight.cli import app
from rushlight.runtime.registries import registered_kernels

X = torch.randn(3, 8)


class Model(torch.nn.Module):
    """The kernel between two products."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(8, 20), torch.nn.Linear(20, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.ops.acme.snake(self.up(x), 1.5)) + x  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_library(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="module", autouse=True)
def _operator() -> None:
    if hasattr(torch.ops.acme, "snake"):
        return

    @rl.custom_op("acme::snake(Tensor x, float a) -> Tensor")
    def snake(x: torch.Tensor, a: float) -> torch.Tensor:
        return x + torch.sin(a * x) ** 2 / a


@pytest.fixture(autouse=True)
def _none_is_left() -> Iterator[None]:
    yield
    for name in registered_kernels():
        runtime.unregister_kernel(name)


@pytest.fixture(scope="module")
def made(library: Path) -> tuple[Model, rl.Program]:
    model = Model().eval().requires_grad_(False)
    rows = torch.export.Dim("rows", max=64)
    sizes = ({0: rows},)
    return model, rl.export(model, (X,), dynamic_shapes=sizes, backend="cpu", kernels=[library])


def test_one_delegate_computes_it(made: tuple[Model, rl.Program], library: Path) -> None:
    model, program = made
    assert [one.kind for one in program.report().operators] == ["delegate"]
    assert not registered_kernels()
    for threads in (1, 2):
        module = rl.load(program.buffer, kernels=[library], threads=threads)
        for count in (3, 64, 1):
            x = torch.randn(count, 8)
            torch.testing.assert_close(module(x), model(x))
            torch.testing.assert_close(module.clone()(x), model(x))


def test_what_it_writes_besides_its_result_is_found(
    made: tuple[Model, rl.Program], tmp_path: Path
) -> None:
    _, program = made
    wrong = build_library(tmp_path, "-DWRITES_PAST_ITS_OUTPUT")
    module = rl.load(program.buffer, kernels=[wrong], check_backends=True)
    with pytest.raises(rl.RunError, match=r"acme::snake.out: the kernel wrote past the end of arg"):
        module(X)


def test_a_library_that_is_given_twice(
    made: tuple[Model, rl.Program], library: Path, tmp_path: Path
) -> None:
    model, program = made
    names = runtime.register_kernel_library(library)
    assert runtime.register_kernel_library(library) == names
    again = rl.export(model, (X,), backend="cpu", kernels=[library, library])
    assert set(names) == registered_kernels()  # the export gave back what it added alone
    for one in (program, again):
        module = rl.load(one.buffer, kernels=[library, library])
        torch.testing.assert_close(module(X), model(X))
    other = tmp_path / "libother.so"
    shutil.copy(library, other)  # the same code, but another library
    with pytest.raises(rl.LoadError, match=r"libother.so: the kernel acme::snake.out cannot be ad"):
        rl.load(program.buffer, kernels=[other])
    with pytest.raises(
        rl.LoadError, match=r"acme::snake.out cannot be added: there is one of that"
    ):
        rl.export(model, (X,), backend="cpu", kernels=[other])
    assert set(names) == registered_kernels()


def test_commands_take_the_library(
    made: tuple[Model, rl.Program], library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, program = made
    monkeypatch.chdir(tmp_path)
    program.save("model.pte", quiet=True)
    rl.bundle(program, [(X,)]).save("model.bpte", quiet=True)
    np.save("x.npy", X)
    commands = {
        "run": ["model.pte", "--input", "x.npy"],
        "bench": ["model.pte"],
        "profile": ["model.pte"],
        "trace": ["model.pte", "-o", "run.etdp"],
        "test": ["model.bpte"],
    }
    for name, arguments in commands.items():
        without = CliRunner().invoke(app, [name, *arguments])
        assert without.exit_code != 0 and "acme::snake.out" in without.output, without.output
        done = CliRunner().invoke(app, [name, *arguments, "--kernels", str(library)])
        assert done.exit_code == 0, f"{name}: {done.output}"
        assert not registered_kernels()
