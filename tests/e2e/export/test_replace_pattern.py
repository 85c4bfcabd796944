"""`replace_pattern`: decomposed computations become calls of an operator of the user's own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

import rushlight as rl
from rushlight import runtime
from rushlight.pipeline import to_edge

X = torch.randn(3, 4)


@rl.custom_op("patterns::wave(Tensor x, float a) -> Tensor")
def wave(x: torch.Tensor, a: float) -> torch.Tensor:
    return x + torch.sin(a * x) ** 2 / a


@rl.custom_op("patterns::both(Tensor x, Tensor y) -> (Tensor, Tensor)")
def both(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x + y, x - y


@pytest.fixture(autouse=True)
def _kernels() -> Iterator[None]:
    def numpy_wave(x: np.ndarray, a: float) -> np.ndarray:
        return (x + np.sin(a * x) ** 2 / a).astype(x.dtype)

    names = [
        runtime.register_kernel(str(wave.schema), numpy_wave),
        runtime.register_kernel(str(both.schema), lambda x, y: (x + y, x - y)),
    ]
    yield
    for name in names:
        runtime.unregister_kernel(name)


def decomposed(x: torch.Tensor) -> torch.Tensor:
    return x + torch.sin(1.5 * x) ** 2 / 1.5


def edge_of(function: object, *args: torch.Tensor, **options: object) -> rl.EdgeProgramManager:
    class Model(torch.nn.Module):
        def forward(self, *args: torch.Tensor) -> object:
            return function(*args)  # type: ignore[operator]

    return to_edge(torch.export.export(Model(), args, **options))  # type: ignore[arg-type]


def names_of(edge: rl.EdgeProgramManager) -> list[str]:
    graph = edge.exported_program().graph
    return [str(n.target).removesuffix(".default") for n in graph.nodes if n.op == "call_function"]


def run(edge: rl.EdgeProgramManager, *args: torch.Tensor) -> object:
    return rl.load(edge.to_executorch().buffer)(*args)


def test_every_match_becomes_a_call() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return decomposed(decomposed(x * 2)) * 3

    batch = torch.export.Dim("batch", min=1, max=8)
    edge = edge_of(model, X, dynamic_shapes=(({0: batch},),))
    before = names_of(edge)
    changed = rl.replace_pattern(edge, decomposed, lambda x: wave(x, 1.5))
    assert names_of(edge) == before
    names = names_of(changed)
    assert names.count("patterns.wave") == 2 and "aten.sin" not in names and len(names) == 4
    for n in (1, 3, 8):
        x = torch.randn(n, 4)
        torch.testing.assert_close(run(changed, x), model(x))


def test_several_inputs_and_results() -> None:
    def model(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x * y + y) * (x * y - y)

    edge = edge_of(model, X, X + 1)
    changed = rl.replace_pattern(edge, lambda a, b: (a + b, a - b), both)
    names = names_of(changed)
    assert "patterns.both" in names and "aten.add.Tensor" not in names, names
    torch.testing.assert_close(run(changed, X, X + 1), model(X, X + 1))


@pytest.mark.parametrize(
    "near_miss",
    [
        lambda x: x + torch.sin(1.25 * x) ** 2 / 1.25,
        lambda x: x + torch.sin(1.5 * x) ** 3 / 1.5,
        lambda x: x * 2 + torch.sin(1.5 * x) ** 2 / 1.5,
        lambda x: (x + (s := torch.sin(1.5 * x)) ** 2 / 1.5, s),
    ],
)
def test_near_misses_stay(near_miss: object) -> None:
    edge = edge_of(near_miss, X)
    with pytest.warns(UserWarning, match="the pattern was found nowhere"):
        changed = rl.replace_pattern(edge, decomposed, lambda x: wave(x, 1.5))
    assert names_of(changed) == names_of(edge)


def test_a_replacement_of_another_shape_is_refused() -> None:
    edge = edge_of(decomposed, X)
    with pytest.raises(rl.ExportError, match=r"gives torch.float32 of sizes \(3,\), and what the"):
        rl.replace_pattern(edge, decomposed, lambda x: torch.ops.aten.sum.dim_IntList(x, [1]))
    with pytest.raises(rl.ExportError, match=r"must return what operators compute"):
        rl.replace_pattern(edge, lambda x: x, lambda x: x)


@pytest.mark.parametrize("backend", ["cpu", "xnnpack"])
def test_a_partitioner_keeps_it_whole(backend: str) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(wave(torch.relu(x @ x.T), 1.5) + 1)

    program = rl.export(Model(), (X,), backend=backend)
    names = [operator.name for operator in program.report().operators]
    assert names[1:] == ["patterns::wave.out"], names
    torch.testing.assert_close(rl.load(program.buffer)(X), Model()(X))
