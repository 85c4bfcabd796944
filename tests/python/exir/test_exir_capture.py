"""The older way to lower functions, registered passes, and helpers that scripts import."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._export.verifier import SpecViolationError
from torch.export import Dim
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult

import rushlight as rl
from rushlight.edge.operators import ops
from rushlight.exir.older.capture import CaptureConfig, capture
from rushlight.exir.older.common import (
    format_schema_name,
    internal_assert,
    override_logger,
    setting_python_recursive_limit,
)
from rushlight.exir.verifier import EXIREdgeDialectVerifier


class Scale(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = torch.nn.Parameter(torch.tensor(3.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor

    def twice(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor * 2


def subtract(x: torch.Tensor) -> torch.Tensor:
    return x - x.sum()


@pytest.mark.filterwarnings("ignore:exir.capture is deprecated")
@pytest.mark.parametrize(
    "of", [subtract, Scale(), Scale().twice], ids=["function", "module", "method"]
)
def test_what_is_captured_computes_the_same(of: Any) -> None:
    x = torch.randn(3)
    captured = capture(of, (x,), CaptureConfig(enable_aot=True))
    edge = captured.to_edge()
    assert edge.after_to_edge_passes and not captured.after_to_edge_passes
    torch.testing.assert_close(edge(x), of(x))
    torch.testing.assert_close(rl.load(edge.to_executorch().buffer)(x), of(x).detach())


@pytest.mark.filterwarnings("ignore:exir.capture is deprecated")
def test_captured_programs_are_changed_by_passes_and_have_dynamic_sizes() -> None:
    def to_sums(module: GraphModule) -> PassResult:
        for node in module.graph.find_nodes(op="call_function", target=ops.edge.aten.sub.Tensor):
            node.target = ops.edge.aten.add.Tensor
        return PassResult(module, True)

    x = torch.randn(3)
    edge = capture(subtract, (x,), dynamic_shapes=({0: Dim("n", min=2, max=9)},)).to_edge()
    made = rl.load(edge.transform(to_sums).to_executorch().buffer)
    for size in (3, 7):
        y = torch.randn(size)
        torch.testing.assert_close(made(y), y + y.sum())


@pytest.mark.filterwarnings("ignore:exir.capture is deprecated")
def test_what_cannot_be_captured_is_refused() -> None:
    with pytest.raises(rl.ExportError, match="args is a list"):
        capture(subtract, [torch.ones(2)])  # type: ignore[arg-type]
    with pytest.raises(rl.ExportError, match="Must run to_edge"):
        capture(subtract, (torch.ones(2),)).to_executorch()
    with pytest.raises(rl.ExportError, match=r"pt2_mode=False\) is not supported"):
        CaptureConfig(pt2_mode=False)


def test_targets_of_calls_are_checked() -> None:
    verifier = EXIREdgeDialectVerifier()
    verifier.check_valid_op(ops.edge.aten.add.Tensor)
    with pytest.raises(SpecViolationError, match="not an operator of the Edge dialect"):
        verifier.check_valid_edge_op(torch.ops.aten.add.Tensor)
    with pytest.raises(SpecViolationError, match="writes its arguments"):
        verifier.check_valid_op(ops.edge.aten.add_.Tensor)


def test_helpers(tmp_path: Path) -> None:
    assert format_schema_name(torch.ops.aten.add.Tensor._schema) == "aten::add.Tensor"
    assert format_schema_name(torch.ops.aten.abs.default._schema) == "aten::abs"
    with pytest.raises(rl.ExportError, match="two and two"):
        internal_assert(False, "two and two")
    before = sys.getrecursionlimit(), logging.root.level
    with (
        setting_python_recursive_limit(before[0] + 5),
        override_logger(filename=str(tmp_path / "x")),
    ):
        assert sys.getrecursionlimit() == before[0] + 5
        logging.debug("told")
    assert (sys.getrecursionlimit(), logging.root.level) == before
    assert (tmp_path / "x").read_text(encoding="utf-8") == "told\n"
