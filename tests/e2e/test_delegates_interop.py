"""Programs with delegates and real ExecuTorch: it loads them as far as it has the backend."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import rushlight as rl
from rushlight.edge import ExecutorchBackendConfig
from rushlight.partition import (
    AllNodePartitioner,
    BackendDetails,
    CompileSpec,
    DelegationSpec,
    DontPartition,
    NamedDataStore,
    PreprocessResult,
    SupportedOperatorPartitioner,
)
from rushlight.serialize.pte import read_pte

if TYPE_CHECKING:
    from conftest import ExecuTorch

from benchmarks.side import SideError

pytestmark = pytest.mark.interop


class NobodyHasThisBackend(BackendDetails):
    @staticmethod
    def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:
        store = NamedDataStore()
        store.add_named_data("weights", b"12345678", alignment=16)
        return PreprocessResult(b"payload", {}, store.get_named_data_store_output())


class XnnpackBackend(BackendDetails):
    """An id that ExecuTorch has a runtime for, and a payload that is none of its."""

    @staticmethod
    def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:
        return PreprocessResult(b"this is no XNNPACK payload")


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + 1).sin() * x


X = torch.randn(2, 3)


def written(path: Path, backend: str, segments: bool = True) -> Path:
    partitioner = SupportedOperatorPartitioner(
        DelegationSpec(backend, [CompileSpec("a", b"1")]), DontPartition("aten.sin", exact=False)
    )
    manager = rl.to_edge(torch.export.export(Model(), (X,))).to_backend(partitioner)
    config = ExecutorchBackendConfig(extract_delegate_segments=segments)
    manager.to_executorch(config).save(path)
    np.savez(path.with_suffix(".npz"), in0=X.numpy())
    return path


def run_there(executorch: ExecuTorch, pte: Path) -> str:
    """What ExecuTorch says of the program, which it cannot run."""
    with pytest.raises(SideError) as caught:
        executorch.call(
            "run", pte=pte, data=pte.with_suffix(".npz"), outputs=pte.with_suffix(".out.npz")
        )
    return str(caught.value)


@pytest.mark.parametrize("segments", [True, False])
def test_both_report_a_backend_that_is_missing(
    segments: bool, executorch: ExecuTorch, tmp_path: Path
) -> None:
    pte = written(tmp_path / "missing.pte", "NobodyHasThisBackend", segments)
    assert "error: 0x20" in run_there(executorch, pte).lower()
    with pytest.raises(rl.LoadError) as caught:
        rl.load(pte)
    assert caught.value.code == rl.Code.NOT_FOUND
    assert "NobodyHasThisBackend" in str(caught.value) and "forward" in str(caught.value)


@pytest.mark.parametrize("segments", [True, False])
def test_a_backend_that_executorch_has_is_given_our_payload(
    segments: bool, executorch: ExecuTorch, tmp_path: Path
) -> None:
    pte = written(tmp_path / "xnnpack.pte", "XnnpackBackend", segments)
    text = run_there(executorch, pte).lower()
    assert "error: 0x30" in text or ("error: 0x" in text and "error: 0x20" not in text)
    with pytest.raises(rl.LoadError, match="XnnpackBackend"):
        rl.load(pte)


def test_we_report_the_backend_of_a_program_that_executorch_delegated(
    executorch: ExecuTorch, tmp_path: Path
) -> None:
    torch.export.save(torch.export.export(Model(), (X,)), tmp_path / "model.pt2")
    answer = executorch.call(
        "delegate", program=tmp_path / "model.pt2", pte=tmp_path / "theirs.pte", leave="sin"
    )
    assert answer["delegates"] == 2
    with pytest.raises(rl.LoadError, match="Nothing") as caught:
        rl.load(tmp_path / "theirs.pte")
    assert caught.value.code == rl.Code.NOT_FOUND


def test_both_write_the_same_delegates(executorch: ExecuTorch, tmp_path: Path) -> None:
    """Ids, payloads and arguments of the calls, in a program that both partition alike."""
    exported = torch.export.export(Model(), (X,))
    torch.export.save(exported, tmp_path / "model.pt2")
    executorch.call(
        "delegate", program=tmp_path / "model.pt2", pte=tmp_path / "theirs.pte", leave="sin"
    )
    theirs = read_pte((tmp_path / "theirs.pte").read_bytes()).program.execution_plan[0]
    ours = written(tmp_path / "ours.pte", "NobodyHasThisBackend")
    mine = read_pte(ours.read_bytes()).program.execution_plan[0]
    assert len(mine.delegates) == len(theirs.delegates) == 2
    assert delegate_calls(mine) == delegate_calls(theirs)


def delegate_calls(plan: Any) -> list[tuple[int, int]]:
    """(delegate, number of arguments) of every call."""
    found = [i.instr_args for c in plan.chains for i in c.instructions]
    return [(c.delegate_index, len(c.args)) for c in found if hasattr(c, "delegate_index")]


def test_a_whole_method_and_everything_in_it(executorch: ExecuTorch, tmp_path: Path) -> None:
    exported = torch.export.export(Model(), (X,))
    manager = rl.to_edge(exported).to_backend(AllNodePartitioner("NobodyHasThisBackend", []))
    manager.to_executorch().save(tmp_path / "whole.pte")
    np.savez(tmp_path / "whole.npz", in0=X.numpy())
    assert "error: 0x20" in run_there(executorch, tmp_path / "whole.pte").lower()
