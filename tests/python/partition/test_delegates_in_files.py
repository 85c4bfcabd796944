"""The data of delegates in a file: named data, debug handles, versions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.export import ExportedProgram

import rushlight as rl
from delegated_models import AddMul, Sine, arrays, edge_of, runs_like
from delegates import flat, lowered_modules, taking
from rushlight.edge import EdgeCompileConfig
from rushlight.errors import ExportError
from rushlight.ir.branches import branches
from rushlight.partition import (
    AllNodePartitioner,
    BackendDetails,
    CompileSpec,
    LoweredBackendModule,
    PreprocessResult,
    executorch_call_delegate,
    get_lowered_submodules,
    to_backend,
)

# --- what goes into the file ---------------------------------------------------------------------


def test_named_data_of_several_delegates_are_stored_once() -> None:
    class Shared(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(3, 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.mm(torch.mm(x, self.weight).sin(), self.weight)

    x = torch.randn(2, 3)
    exported = torch.export.export(Shared(), (x,))
    lowered = rl.to_edge(exported).to_backend(taking("aten.mm", data=b"named"))
    modules = lowered_modules(lowered.exported_program())
    assert len(modules) == 2
    finished = lowered.to_executorch()
    keys = [k for k in finished._named_data() if k.startswith("interpreted/")]
    assert len(keys) == 1
    model = exported.module()
    [actual] = flat(rl.load(finished.buffer)(x.numpy()))
    torch.testing.assert_close(actual, model(x).detach())


def test_named_data_that_contradict_each_other_are_refused() -> None:
    class Clash(BackendDetails):
        @staticmethod
        def preprocess(
            edge_program: ExportedProgram, compile_specs: list[CompileSpec]
        ) -> PreprocessResult:
            from rushlight.partition import NamedDataStore

            store = NamedDataStore()
            store.add_named_data("weights", bytes(len(list(edge_program.graph.nodes))))
            return PreprocessResult(b"", {}, store.get_named_data_store_output())

    class Parts(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x.sin().sin() * x).sin()

    manager = rl.to_edge(torch.export.export(Parts(), (torch.ones(2),)))
    lowered = manager.to_backend(taking("aten.sin", backend="Clash"))
    with pytest.raises(
        ExportError, match=r"Clash in method 'forward': named data 'weights' .* 4 and 3 of them"
    ):
        lowered.to_executorch()


def test_where_a_failing_instruction_came_from(tmp_path: Path) -> None:
    """The interpreter fails inside; the message leads to the line of the model."""
    manager = rl.to_edge(torch.export.export(AddMul(), AddMul.inputs))
    lowered = manager.to_backend(taking("aten.add", "aten.mm"))
    file = lowered.to_executorch().buffer
    module = rl.load(file)
    broken: Callable[..., Any] = torch.ops.aten.mm.default

    def fail(target: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if target == "aten::mm|default":
            raise RuntimeError("no more matrices")
        return broken(*args)

    import delegates

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delegates, "_call", fail)
        with pytest.raises(rl.RunError) as caught:
            module(*arrays(AddMul.inputs))
    assert "no more matrices" in str(caught.value)
    assert "y = torch.mm(a, x)" in str(caught.value)


def test_debug_handles_of_delegates() -> None:
    manager = rl.to_edge(torch.export.export(AddMul(), AddMul.inputs))
    handles = {
        n.name: n.meta["debug_handle"]
        for n in manager.exported_program().graph.nodes
        if n.op == "call_function"
    }
    program = manager.to_backend(taking("aten.add", "aten.mm")).exported_program()
    for module in lowered_modules(program):
        actual = module.meta["debug_handle_map"]
        assert actual == {name: (handles[name],) for name in actual} and len(actual) == 2
    calls = [n for n in program.graph.nodes if n.target is executorch_call_delegate]
    assert all(call.meta["debug_handle"] in handles.values() for call in calls)


def test_an_instruction_leads_to_its_own_nodes_not_to_all_of_its_line() -> None:
    """An LSTM is one call, whose handle all nodes share that it is decomposed to."""
    manager = rl.to_edge(torch.export.export(torch.nn.LSTM(2, 2), (torch.ones(3, 2),)))
    program = manager.to_backend(taking("aten.sigmoid", "aten.tanh", "aten.mul", "aten.add"))
    modules = lowered_modules(program.exported_program())
    named = {key: rows for module in modules for key, rows in module.sources().items()}
    assert len(named) > 20
    assert {key: [name for name, _, _ in rows] for key, rows in named.items()} == {
        key: [key] for key in named
    }
    assert len({handles for m in modules for handles in m.meta["debug_handle_map"].values()}) == 1


def test_instructions_in_branches_lead_to_their_nodes() -> None:
    class Branches(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos() * 2, (x,))

    manager = rl.to_edge(torch.export.export(Branches(), (torch.ones(3),)))
    lowered = manager.to_backend(taking("aten.sin", "aten.cos", "aten.add", "aten.mul"))
    inner = [
        module
        for graph in branches(lowered.exported_program().graph_module)
        for module in get_lowered_submodules(graph)
    ]
    assert len(inner) == 2
    for _, module, _ in inner:
        assert all([row[0] for row in rows] == [key] for key, rows in module.sources().items())


def test_what_preprocess_says_of_a_delegate_is_kept() -> None:
    class Tells(BackendDetails):
        @staticmethod
        def preprocess(
            edge_program: ExportedProgram, compile_specs: list[CompileSpec]
        ) -> PreprocessResult:
            return PreprocessResult(b"", _delegate_info_meta="test")

    x = torch.ones(1)
    assert to_backend("Tells", edge_of(Sine(), x), []).meta["_delegate_info_meta"] == "test"
    program = to_backend(edge_of(Sine(), x), AllNodePartitioner("Tells", []))
    assert lowered_modules(program)[0].meta["_delegate_info_meta"] == "test"


def test_a_payload_of_another_version_is_refused_when_it_is_loaded() -> None:
    lowered = to_backend("Interpreted", edge_of(Sine(), torch.ones(1)), [])
    older = LoweredBackendModule(
        lowered.original_module,
        "Interpreted",
        lowered.processed_bytes.replace(b'"version": 1', b'"version": 0'),
        [],
    )
    with pytest.raises(rl.Error, match="version 0, not 1"):
        rl.load(older.buffer())(np.ones(1, np.float32))


def test_a_pass_over_the_whole_still_runs_after_partitioning() -> None:
    config = EdgeCompileConfig()
    manager = rl.to_edge(torch.export.export(AddMul(), AddMul.inputs), compile_config=config)
    lowered = manager.to_backend(taking("aten.mm")).transform([])
    runs_like(AddMul(), lowered, *AddMul.inputs)
