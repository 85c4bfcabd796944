"""Programs with delegates, both ways with real ExecuTorch: each runs what it has the backend of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import rushlight as rl
from rushlight.backends.demo import DemoPartitioner
from rushlight.backends.xnnpack import XnnpackBackend
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
from rushlight.peers.side import SideError
from rushlight.serialize.pte import read_pte

if TYPE_CHECKING:
    from conftest import ExecuTorch


pytestmark = pytest.mark.interop


class NobodyHasThisBackend(BackendDetails):
    @staticmethod
    def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:
        store = NamedDataStore()
        store.add_named_data("weights", b"12345678", alignment=16)
        return PreprocessResult(b"payload", {}, store.get_named_data_store_output())


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + 1).sin() * x


class AddMul(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.mm(a, b) + b


X = torch.randn(2, 3)
PAIR = (torch.randn(2, 2), torch.randn(2, 2))


def written(path: Path, backend: str, segments: bool = True) -> Path:
    partitioner = SupportedOperatorPartitioner(
        DelegationSpec(backend, [CompileSpec("a", b"1")]), DontPartition("aten.sin", exact=False)
    )
    manager = rl.to_edge(torch.export.export(Model(), (X,))).to_backend(partitioner)
    config = ExecutorchBackendConfig(extract_delegate_segments=segments)
    manager.to_executorch(config).save(path)
    save_inputs(path, X)
    return path


def save_inputs(pte: Path, *args: torch.Tensor) -> None:
    """Write what `pte` is to be called with beside it."""
    np.savez(pte.with_suffix(".npz"), **{f"in{i}": x.numpy() for i, x in enumerate(args)})


def run_there(executorch: ExecuTorch, pte: Path) -> str:
    """What ExecuTorch says of the program, which it cannot run."""
    with pytest.raises(SideError) as caught:
        results_there(executorch, pte)
    return str(caught.value)


def results_there(executorch: ExecuTorch, pte: Path) -> Any:
    """What ExecuTorch computes, as `out0`, `out1`, ...."""
    out = pte.with_suffix(".out.npz")
    executorch.call("run", pte=pte, data=pte.with_suffix(".npz"), outputs=out)
    return np.load(out)


@pytest.mark.parametrize("segments", [True, False])
def test_both_report_a_backend_that_is_missing(
    segments: bool, executorch: ExecuTorch, tmp_path: Path
) -> None:
    pte = written(tmp_path / "missing.pte", "NobodyHasThisBackend", segments)
    assert "error: 0x20" in run_there(executorch, pte).lower()
    with pytest.raises(rl.LoadError) as caught:
        rl.load(pte)
    assert caught.value.code == rl.Code.NOT_FOUND
    assert "NobodyHasThisBackend\n    for forward: delegate 0" in str(caught.value)


@pytest.mark.parametrize("segments", [True, False])
def test_a_backend_that_executorch_has_is_given_our_payload(
    segments: bool, executorch: ExecuTorch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = staticmethod(lambda *args: PreprocessResult(b"this is not an XNNPACK payload"))
    monkeypatch.setattr(XnnpackBackend, "preprocess", none)
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
    calls = [i.instr_args for c in plan.chains for i in c.instructions]
    return [(c.delegate_index, len(c.args)) for c in calls if hasattr(c, "delegate_index")]


def test_a_whole_method_and_everything_in_it(executorch: ExecuTorch, tmp_path: Path) -> None:
    exported = torch.export.export(Model(), (X,))
    manager = rl.to_edge(exported).to_backend(AllNodePartitioner("NobodyHasThisBackend", []))
    manager.to_executorch().save(tmp_path / "whole.pte")
    save_inputs(tmp_path / "whole.pte", X)
    assert "error: 0x20" in run_there(executorch, tmp_path / "whole.pte").lower()


def test_a_fat_program_runs_there_as_portable(executorch: ExecuTorch, tmp_path: Path) -> None:
    ours = tmp_path / "ours.pte"
    rl.export(AddMul(), PAIR, backend=[DemoPartitioner()]).save(ours, quiet=True)
    save_inputs(ours, *PAIR)
    assert rl.load(ours).forms[0].chosen
    np.testing.assert_allclose(results_there(executorch, ours)["out0"], AddMul()(*PAIR), rtol=1e-5)


def test_executorchs_demo_payload_is_refused_as_another_version(
    executorch: ExecuTorch, tmp_path: Path
) -> None:
    """The two have one id and each a text of its own; none runs the other's by mistake."""
    exported, theirs = tmp_path / "model.pt2", tmp_path / "theirs.pte"
    torch.export.save(torch.export.export(AddMul(), PAIR), exported)
    demo = ["BackendWithCompilerDemo"]
    assert executorch.call("delegate_demo", program=exported, pte=theirs) == demo
    save_inputs(theirs, *PAIR)
    assert "0x20" in run_there(executorch, theirs)
    with pytest.raises(rl.LoadError, match="it is not of version 1"):
        rl.load(theirs)
