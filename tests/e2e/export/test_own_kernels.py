"""Operators of the user's own: `custom_op`, kernels of libraries, and kernels in Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import rushlight as rl
from own_kernels import build_library
from rushlight import runtime
from rushlight.runtime.registries import registered_kernels

SNAKE = "acme::snake(Tensor x, float a) -> Tensor"
X = torch.randn(3, 4)


@rl.custom_op(SNAKE)
def snake(x: torch.Tensor, a: float) -> torch.Tensor:
    return x + torch.sin(a * x) ** 2 / a


def numpy_snake(x: np.ndarray, a: float) -> np.ndarray:
    return (x + np.sin(a * x) ** 2 / a).astype(x.dtype)


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return snake(x * 2, 1.5) + 1


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_library(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(autouse=True)
def _none_is_left() -> Iterator[None]:
    yield
    for name in registered_kernels():
        runtime.unregister_kernel(name)


def test_a_library_computes_it(library: Path) -> None:
    batch = torch.export.Dim("batch", min=1, max=64)
    program = rl.export(Model(), (X,), dynamic_shapes=({0: batch},), kernels=[library])
    assert not registered_kernels()
    module = rl.load(program.buffer, kernels=[library])
    for rows in (1, 3, 64):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(module(x), Model()(x))
        torch.testing.assert_close(module.clone()(x), Model()(x))
    (line,) = program.report().needs
    assert "a kernel for acme::snake.out" in line


def test_numpy_computes_it() -> None:
    assert runtime.register_kernel(SNAKE, numpy_snake) == "acme::snake.out"
    module = rl.load(rl.export(Model(), (X,)).buffer)
    torch.testing.assert_close(module(X), Model()(X))
    runtime.unregister_kernel("acme::snake.out")
    torch.testing.assert_close(module(X), Model()(X))  # a loaded method keeps it


def test_without_a_kernel_export_and_load_say_what_to_write(library: Path) -> None:
    declaration = (
        "RUSHLIGHT_KERNEL(acme, snake_out)(Context& ctx, const Tensor& x, double a, Tensor& out)"
    )
    with pytest.raises(rl.ExportError) as export_error:
        rl.export(Model(), (X,))
    assert export_error.value.code is rl.Code.OPERATOR_MISSING
    program = rl.export(Model(), (X,), kernels=[library])
    with pytest.raises(rl.LoadError) as load_error:
        rl.load(program.buffer)
    for error in (export_error, load_error):
        text = str(error.value)
        assert "acme::snake.out" in text and "snake(x * 2, 1.5) + 1" in text, text
        assert declaration in text and "register_kernel" in text, text


def test_a_kernel_of_another_signature_is_refused() -> None:
    runtime.register_kernel(SNAKE, numpy_snake)
    program = rl.export(Model(), (X,))
    other = "acme::snake(Tensor x, int a) -> Tensor"
    runtime.register_kernel(other, numpy_snake, replace=True)
    with pytest.raises(rl.LoadError, match=r"argument 1 \(a\) is float in the program's schema"):
        rl.load(program.buffer)


def test_two_kernels_of_one_operator_are_refused(library: Path) -> None:
    runtime.register_kernel(SNAKE, numpy_snake)
    with pytest.raises(rl.LoadError, match=r"acme::snake.out already; pass replace=True"):
        runtime.register_kernel(SNAKE, numpy_snake)
    program = rl.export(Model(), (X,))
    with pytest.raises(rl.LoadError, match=r"libacme.so: the kernel acme::snake.out cannot be ad"):
        rl.load(program.buffer, kernels=[library])
    with pytest.raises(rl.LoadError, match=r"aten::add.out already"):
        runtime.register_kernel(
            "aten::add.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)", numpy_snake
        )


def test_what_a_kernel_in_python_does_wrong_is_told() -> None:
    kept: list[np.ndarray] = []

    def fails(x: np.ndarray, a: float) -> None:
        raise ValueError("no luck")

    def keeps(x: np.ndarray, a: float) -> np.ndarray:
        kept.append(x)
        return x.copy()

    def writes(x: np.ndarray, a: float) -> np.ndarray:
        x[...] = 0
        return x

    runtime.register_kernel(SNAKE, numpy_snake)
    program = rl.export(Model(), (X,))
    for function, message in (
        (fails, "ValueError: no luck"),
        (keeps, r"it kept args\[0\]"),
        (writes, "read-only"),
        (lambda x, a: 3, "result 0 is int; the kernel must return an array"),
        (lambda x, a: x.astype(np.float64), "result 0 is float64, and the program has float32"),
        (lambda x, a: x[:2], r"the result has sizes \(2, 4\), but the output has the fixed sizes"),
        (lambda x: x, "takes 1 positional argument but 2 were given"),
    ):
        runtime.register_kernel(SNAKE, function, replace=True)
        with pytest.raises(rl.RunError, match=message) as caught:
            rl.load(program.buffer)(X)
        assert "(acme::snake.out)" in str(caught.value) and "snake(x * 2" in str(caught.value)


def test_what_a_kernel_in_cpp_does_wrong_is_told(library: Path) -> None:
    class Zero(torch.nn.Module):
        def forward(self, x: torch.Tensor, a: float) -> torch.Tensor:
            return snake(x, 0.0)

    program = rl.export(Zero(), (X, 1.0), verify=False, kernels=[library])
    with pytest.raises(rl.RunError, match=r"\(acme::snake.out\).*a must not be 0"):
        rl.load(program.buffer, kernels=[library])(X, 1.0)
    program = rl.export(Model(), (X.double(),), verify=False, kernels=[library])
    with pytest.raises(rl.RunError, match=r"x is float64; float32 is allowed"):
        rl.load(program.buffer, kernels=[library])(X.double())


def test_a_departing_kernel_is_found_at_export() -> None:
    runtime.register_kernel(SNAKE, lambda x, a: x)
    with pytest.raises(rl.ExportError, match="snake"):
        rl.export(Model(), (X,))


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        ("libacme.so", r"give a list of paths"),
        ([numpy_snake], r"a kernel in Python is given to rushlight.runtime.register_kernel"),
        (["no/such.so"], "no/such.so: the library cannot be loaded"),
    ],
)
def test_what_is_no_library(kernels: object, message: str, library: Path) -> None:
    program = rl.export(Model(), (X,), kernels=[library])
    with pytest.raises(rl.LoadError, match=message):
        rl.load(program.buffer, kernels=kernels)  # type: ignore[arg-type]
