"""Control flow and data-dependent sizes: equal to eager, call after call, and to ExecuTorch."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from benchmarks.flow_models import CASES, FlowCase
from torch.utils import _pytree as pytree

import rushlight
from rushlight.check import Tolerance, first_departure
from rushlight.errors import ExportError

if TYPE_CHECKING:
    from conftest import ExecuTorch

# ExecuTorch's exporter has no while_loop, and of map one input and one result only.
EXPORTED_THERE = ("cond", "cond_nested", "cond_on_shape", "map_one", "scan")
# Python numbers that a program computes cannot be compared there: its outputs are tensors.
RUN_THERE = [name for name in CASES if not name.startswith(("while_number", "item_", "nonzero"))]


def build(name: str) -> tuple[FlowCase, torch.nn.Module, list[tuple[torch.Tensor, ...]]]:
    torch.manual_seed(0)
    case = CASES[name]
    return case, case.model().eval(), case.calls()


def assert_equal(got: Any, wanted: Any) -> None:
    for g, w in zip(pytree.tree_leaves(got), pytree.tree_leaves(wanted), strict=True):
        torch.testing.assert_close(torch.as_tensor(g), torch.as_tensor(w), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_equals_eager_call_after_call(name: str) -> None:
    case, model, calls = build(name)
    module = rushlight.load(
        rushlight.export(model, calls[0], dynamic_shapes=case.dynamic_shapes).buffer
    )
    for arguments in [*calls, *calls]:
        assert_equal(module(*arguments), model(*arguments))


@pytest.mark.parametrize("name", CASES)
def test_export_leaves_the_model_as_it_was(name: str) -> None:
    case, model, calls = build(name)
    before = copy.deepcopy(model.state_dict())
    rushlight.export(model, calls[0], dynamic_shapes=case.dynamic_shapes)
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["cond", "while", "scan_with_branch", "recurrent"])
def test_no_instruction_is_mistaken_for_a_node_that_departs(name: str) -> None:
    _, model, calls = build(name)
    exported = torch.export.export(model, calls[0])
    manager = rushlight.to_edge(exported).to_executorch()
    text = first_departure(manager, "forward", calls[0], {}, Tolerance()).text
    assert text.startswith("No single node departs")


@pytest.mark.interop
@pytest.mark.parametrize("name", RUN_THERE)
def test_executorch_runs_it(name: str, executorch: ExecuTorch, tmp_path: Path) -> None:
    case, model, calls = build(name)
    pte, inputs, outputs = (tmp_path / n for n in ("m.pte", "in.npz", "out.npz"))
    rushlight.export(model, calls[0], dynamic_shapes=case.dynamic_shapes).save(str(pte))
    for arguments in calls:
        fresh = copy.deepcopy(model)  # there a file is loaded anew for every call
        np.savez(inputs, **{f"in{i}": a.numpy() for i, a in enumerate(arguments)})
        executorch.call("run", pte=pte, data=inputs, outputs=outputs)
        with np.load(outputs) as results:
            got = [results[f"out{i}"] for i in range(len(results.files))]
        assert_equal(got, fresh(*arguments))


@pytest.mark.interop
@pytest.mark.parametrize("name", EXPORTED_THERE)
def test_we_run_executorchs(name: str, executorch: ExecuTorch, tmp_path: Path) -> None:
    case, model, calls = build(name)
    program, pte = tmp_path / "program.pt2", tmp_path / "theirs.pte"
    exported = torch.export.export(model, calls[0], dynamic_shapes=case.dynamic_shapes)
    torch.export.save(exported, program)
    executorch.call("export", program=program, pte=pte)
    module = rushlight.load(pte)
    for arguments in [*calls, *calls]:
        assert_equal(module(*arguments), model(*arguments))


def test_a_loop_without_end_is_stopped() -> None:
    class Endless(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            from torch._higher_order_ops.while_loop import while_loop

            return while_loop(lambda x: x.sum() > 0, lambda x: (x + 1,), (x,))

    module = rushlight.load(rushlight.export(Endless(), (-torch.ones(2),)).buffer)
    with pytest.raises(rushlight.RunError, match="a loop that does not end"):
        module(torch.ones(2))


def test_an_empty_map_whose_result_sizes_are_unknown_is_refused() -> None:
    sizes = {0: torch.export.Dim("n", max=8), 1: torch.export.Dim("m", min=2, max=8)}
    with pytest.raises(ExportError, match="min=1"):
        rushlight.export(
            CASES["map_one"].model(), (torch.randn(3, 4),), dynamic_shapes=(sizes,), verify=False
        )


def test_a_data_dependent_size_without_bound_is_refused() -> None:
    class Repeat(torch.nn.Module):
        def forward(self, x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
            return torch.repeat_interleave(x, n, dim=0)

    with pytest.raises(ExportError, match=r"torch\._check"):
        rushlight.export(Repeat(), (torch.randn(3, 4), torch.tensor([1, 2, 3])))
