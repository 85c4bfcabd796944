"""Errors of an export name their place as all tools do: file, line, module, operator, handle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import export
from torch.fx.passes.infra.partitioner import Partition

import rushlight as rl
from rushlight.partition.tags import tag_partitions
from rushlight.schema.source import Source

LINES = Path(__file__).read_text("utf-8").splitlines()
WIDE = torch.full((4, 4), 0.5)


@torch.library.custom_op("places_test::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


class Branch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:  # place: branch
            return x
        return -x


class Write(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.add_(1)  # place: write


class Complex(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eigvals(x).real  # place: complex


class Missing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return twice(x)  # place: missing


class Leaves(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.numpy())  # place: leaves


class Fails(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ torch.ones(3, 3)  # place: fails


class Outer(nn.Module):
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.größe = nn.Sequential(part, nn.ReLU())

    def forward(self, x: torch.Tensor) -> Any:
        return self.größe(x)


def _place(error: rl.ExportError) -> Source:
    source = error.sources[0]
    assert isinstance(source, Source)
    assert Path(source.file) == Path(__file__) and source.function == "forward"
    return source


@pytest.mark.parametrize(
    ("part", "place", "operator"),
    [
        (Branch(), "branch", ""),
        (Leaves(), "leaves", ""),
        (Fails(), "fails", ""),
        (Write(), "write", "aten.add_.Tensor"),
        (Complex(), "complex", "aten.linalg_eig.default"),
        (Missing(), "missing", "places_test.twice.default"),
    ],
)
def test_an_error_knows_its_place(part: nn.Module, place: str, operator: str) -> None:
    with pytest.raises(rl.ExportError) as caught:
        rl.export(Outer(part).eval(), (WIDE.clone(),))
    source = _place(caught.value)
    assert LINES[source.line - 1].endswith(f"# place: {place}")
    assert (source.module, source.operator) == ("größe.0", operator)
    assert source.position in str(caught.value)
    if operator.startswith(("places", "aten.linalg")):
        assert source.handle > 0


def test_an_error_about_no_place_has_none() -> None:
    with pytest.raises(rl.ExportError) as caught:
        rl.export(nn.ReLU(), WIDE)  # type: ignore[arg-type]
    assert caught.value.sources == []


def test_errors_of_partitions() -> None:
    program = export(Outer(nn.Tanh()).eval(), (WIDE,))
    nodes = [node for node in program.graph.nodes if node.op == "call_function"]
    parts = [Partition(i, nodes[1:2]) for i in range(2)]
    with pytest.raises(rl.ExportError, match="is in two partitions") as caught:
        tag_partitions(parts)
    [source] = caught.value.sources
    assert (source.module, source.operator) == ("größe.1", "aten.relu.default")
