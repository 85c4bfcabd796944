"""Advice fits its error: each cause has its own, and none gets that of another."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.export import Dim

import rushlight as rl
from delegates import Interpreter, taking
from rushlight import runtime
from rushlight.edge import EdgeCompileConfig
from rushlight.edge.passes import constant_fold
from rushlight.errors import Code, LoadError
from rushlight.partition import BackendDetails

X = (torch.randn(4),)


def refused(model: torch.nn.Module, **options: Any) -> rl.ExportError:
    with pytest.raises(rl.ExportError) as caught:
        rl.export(model, X, **options)
    return caught.value


class Squares(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x[:, None] * x[None, :]).sum()


def test_sizes_are_to_be_lowered_only_if_memory_lacks() -> None:
    sizes = {"x": {0: Dim("n", max=2**30)}}
    assert "Lower the max of sizes that vary" in str(refused(Squares(), dynamic_shapes=sizes))


class Broken(Interpreter):
    """Refuses its own payload, or fails when it runs, or is wrong."""

    def __init__(self, at: str) -> None:
        self.at = at

    def init(self, context: Any) -> Any:
        if self.at == "load":
            raise ValueError("no such instruction")
        return super().init(context)

    def run(self, handle: Any, inputs: Any, at: Any) -> Any:
        if self.at == "run":
            raise ValueError("broken")
        return [r + 1 for r in super().run(handle, inputs, at)]


@pytest.mark.parametrize(
    ("at", "advice"),
    [
        ("load", "an error of Rushlight or of the backend: report it"),
        ("run", "Mend the backend that raised it"),
        ("result", "of the backend Interpreted, of a library that it uses, or of Rushlight"),
    ],
)
def test_a_backend_that_is_broken_is_to_be_mended(at: str, advice: str) -> None:
    runtime.register_backend("Interpreted", Broken(at))
    try:
        text = str(refused(torch.nn.Tanh(), backend=taking("aten.tanh")))
    finally:
        runtime.unregister_backend("Interpreted")
    assert advice in text
    assert ("or export with backend='portable'" in text) == (at != "load")
    assert "Lower the max" not in text and "copy it anew" not in text
    assert "export again" not in text and "dynamic_shapes" not in text


def test_a_damaged_file_has_advice_that_a_new_one_has_not() -> None:
    with pytest.raises(LoadError) as caught:
        rl.load(rl.export(torch.nn.Tanh(), X).buffer[:-200])
    assert "again" in str(caught.value) and caught.value.code is Code.INVALID_PROGRAM


def _fails(*args: Any, **kwargs: Any) -> Any:
    raise KeyError("lost")


def test_a_fault_of_a_pass_is_called_an_error_of_rushlight(monkeypatch: pytest.MonkeyPatch) -> None:
    def fold(*args: Any) -> Any:
        raise KeyError("lost")

    code = fold.__code__.replace(co_filename=constant_fold.__file__, co_firstlineno=1)
    monkeypatch.setattr(fold, "__code__", code)
    monkeypatch.setattr("rushlight.edge.to_edge.constant_fold", fold)
    error = refused(torch.nn.Tanh())
    assert "KeyError: 'lost'" in str(error) and "constant_fold.py" in str(error)
    assert "an error of Rushlight itself: report it, with the model that shows it" in str(error)
    assert isinstance(error.__cause__, KeyError) and error.code is Code.INTERNAL


def test_what_the_users_own_code_raises_stays_as_it_is() -> None:
    with pytest.raises(KeyError, match="lost"):
        rl.export(torch.nn.Tanh(), X, progress=_fails)
    config = EdgeCompileConfig(decompositions={torch.ops.aten.tanh.default: _fails})
    text = str(refused(torch.nn.Tanh(), compile_config=config))
    assert "lost" in text and "Rushlight itself" not in text and "gradient" not in text


class Fails(BackendDetails):
    """A user's backend whose compiler has a fault."""

    preprocess = staticmethod(_fails)


@pytest.mark.parametrize("is_ours", [False, True])
def test_a_backend_that_fails_is_rushlights_own_or_the_users(
    is_ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend: Any = taking("aten.tanh", backend="Fails")
    if is_ours:
        from rushlight.backends.cpu.preprocess import CpuBackend

        backend = "cpu"
        monkeypatch.setattr(CpuBackend, "preprocess_multimethod", staticmethod(_fails))
    text = str(refused(torch.nn.Tanh(), backend=backend))
    assert "preprocess failed with KeyError: 'lost'" in text
    assert ("an error of Rushlight itself" in text) == is_ours


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("element 0 of tensors does not require grad", "without gradients"),
        ("Cannot access data pointer of Tensor", "in tensors"),
        ("something else altogether", "other operators of torch"),
    ],
)
def test_what_torch_cannot_decompose(
    text: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decompose(*args: Any) -> Any:
        raise RuntimeError(text)

    monkeypatch.setattr(torch.export.ExportedProgram, "run_decompositions", decompose)
    told = str(refused(torch.nn.Tanh()))
    assert text in told and advice in told
    assert ("gradients" in told) == ("gradients" in advice)
