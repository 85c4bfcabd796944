"""Capture: models that can be captured are, others are refused with torch's reason."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from graphs import captured
from torch import nn

import rushlight as rl
from rushlight.capture import capture
from rushlight.edge.to_edge import to_core_aten
from rushlight.errors import Code, ExportError
from rushlight.ir.source import source_of


def test_data_dependent_branches_are_refused_with_the_line(
    capfd: pytest.CaptureFixture[str],
) -> None:
    class Branch(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.sum() > 0:
                return x + 1
            return x - 1

    with pytest.raises(ExportError) as caught:
        capture(Branch(), (torch.randn(3),))
    assert caught.value.code == Code.NOT_SUPPORTED
    assert "Python decides by a tensor's value" in str(caught.value)
    assert "test_capture.py" in str(caught.value)
    assert capfd.readouterr() == ("", "")  # the error says it


def test_wrong_kinds_of_arguments() -> None:
    with pytest.raises(ExportError, match=r"args must be a tuple .* got Tensor"):
        capture(torch.nn.ReLU(), torch.randn(3))  # type: ignore[arg-type]
    with pytest.raises(ExportError, match="cannot export function"):
        capture(lambda x: x, (torch.randn(3),))  # type: ignore[arg-type]


def test_every_call_has_a_handle_and_a_line() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x.sin())

    program = to_core_aten(captured(Model(), torch.randn(3)))
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    assert [n.meta["debug_handle"] for n in calls] == [1, 2]
    for node in calls:
        assert source_of(node).file.endswith("test_capture.py")
        assert "torch.relu(x.sin())" in source_of(node).text


def test_a_line_inside_torch_is_shown_as_the_callers() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(3, 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layers(x)

    program = captured(Model(), torch.randn(1, 3))
    (linear,) = (n for n in program.graph.nodes if n.op == "call_function")
    assert source_of(linear).module == "layers.0"
    assert source_of(linear).file.endswith("test_capture.py")


class Writes(torch.nn.Module):
    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.what == "view":
            x[1:].t().add_(1)
        elif self.what == "copy":
            (x * 2)[1:].add_(1)
        return x * 3


def test_one_tensor_as_several_examples() -> None:
    class Weighted(torch.nn.Module):
        def forward(self, x: torch.Tensor, more: list[torch.Tensor], *, z: torch.Tensor):
            return x * 2 + more[0] * 3 - z

    same = torch.ones(3)
    program = capture(Weighted(), (same, [same]), {"z": same})
    x, y, z = (torch.randn(3) for _ in range(3))
    torch.testing.assert_close(program.module()(x, [y], z=z), x * 2 + y * 3 - z)


def test_a_written_input_is_refused_and_a_written_copy_is_not() -> None:
    capture(Writes("copy"), (torch.ones(3, 4),))
    with pytest.raises(ExportError, match=r"writes its input 'x'.*test_capture.py.*x\[1:\].t\(\)"):
        capture(Writes("view"), (torch.ones(3, 4),))


class Stack(nn.Module):
    """Linear layers, then a recurrent one."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(depth))
        self.recurrent = nn.GRU(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.recurrent(x)[0]


def test_threads_export_one_after_the_other() -> None:
    limit = sys.getrecursionlimit()
    x = torch.randn(3, 4)

    def export(depth: int) -> bool:
        model = Stack(depth)
        backend = ("portable", "xnnpack")[depth % 2]
        run = rl.load(rl.export(model, (x,), backend=backend).buffer)["forward"]
        return torch.allclose(torch.as_tensor(run(x)), model(x), atol=1e-5)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(export, range(2, 6)))
    assert sys.getrecursionlimit() == limit
