"""Records of exports: what they hold, and what is said of those that cannot be used."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import rushlight as rl
from rushlight.backends.cpu import CpuPartitioner
from rushlight.errors import ExportError, LoadError
from rushlight.inspect import ETRecord, Inspector, generate_etrecord, parse_etrecord
from rushlight.runtime import TraceOptions


class Branches(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.cond(x.sum() > 0, lambda x: torch.sin(x) + 1, lambda x: torch.cos(x) * 2, (x,))
        zero = torch.tensor(0)
        return torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (zero, y))[1]


class State(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        self.total.add_(x)
        return {"sum": self.total * 2, "top": torch.topk(x, 2)[0]}


def recurrent() -> nn.Module:
    return nn.LSTM(4, 8, batch_first=True)


CASES = {
    "branches": (Branches, (torch.ones(4),)),
    "state": (State, (torch.ones(4),)),
    "recurrent": (recurrent, (torch.ones(2, 3, 4),)),
    "bfloat16": (lambda: nn.Linear(4, 2).bfloat16(), (torch.ones(1, 4).bfloat16(),)),
}


def saved(record: ETRecord) -> io.BytesIO:
    file = io.BytesIO()
    record.save(file)
    file.seek(0)
    return file


@pytest.mark.parametrize("name", CASES)
def test_programs_are_read_back(name: str) -> None:
    torch.manual_seed(0)
    make, args = CASES[name]
    captured = torch.export.export(make().eval(), args)
    edge = rl.to_edge(captured, generate_etrecord=True)
    record = edge.to_executorch().get_etrecord()
    again = parse_etrecord(saved(record))
    assert again.exported_program is not None
    expected = captured.module()(*args)
    torch.testing.assert_close(again.exported_program.module()(*args), expected)
    before, after = (r.edge_programs["forward"] for r in (record, again))
    torch.testing.assert_close(after.module()(*args), expected)
    handles = [n.meta.get("debug_handle") for n in after.graph.nodes if "aten" in str(n.target)]
    assert handles == [
        n.meta.get("debug_handle") for n in before.graph.nodes if "aten" in str(n.target)
    ]
    maps = (record.debug_handle_map, record.delegate_map, record.instruction_id_to_num_outs_map)
    assert json.loads(json.dumps(maps)) == [
        again.debug_handle_map,
        again.delegate_map,
        again.instruction_id_to_num_outs_map,
    ]
    assert again.export_graph_id == id(captured.graph)


def test_every_instruction_of_every_method_has_handles() -> None:
    programs = {
        "forward": torch.export.export(nn.Linear(4, 4).eval(), (torch.ones(1, 4),)),
        "other": torch.export.export(Branches(), (torch.ones(4),)),
    }
    edge = rl.to_edge_transform_and_lower(
        programs, partitioner=CpuPartitioner(), generate_etrecord=True
    )
    record = edge.to_executorch().get_etrecord()
    assert record.debug_handle_map is not None and record.delegate_map is not None
    assert record.debug_handle_map["forward"] == {0: [1]}
    assert record.delegate_map["forward"][0] == {"name": "CpuBackend", "delegate_map": {"0": [1]}}
    assert len(record.debug_handle_map["other"]) > 5
    again = parse_etrecord(saved(record))
    assert isinstance(again.edge_dialect_program, dict)
    assert set(again.edge_dialect_program) == {"forward", "other"}


def test_test_cases_and_further_programs(tmp_path: Path) -> None:
    x = torch.randn(2, 4)
    captured = torch.export.export(nn.Linear(4, 2).eval(), (x,))
    edge = rl.to_edge(captured)
    finished = edge.to_backend(CpuPartitioner()).to_executorch()
    path = tmp_path / "m.etrecord"
    generate_etrecord(path, edge, finished, captured, {"mine": edge})
    record = parse_etrecord(path)
    assert set(record.graph_map or {}) == {"mine/forward"}
    record.update_representative_inputs([x])
    record.update_reference_outputs([[captured.module()(x)]])
    again = parse_etrecord(saved(record))
    assert again.representative_inputs is not None and again.reference_outputs is not None
    torch.testing.assert_close(again.representative_inputs[0], x)
    torch.testing.assert_close(again.reference_outputs["forward"][0][0], captured.module()(x))


def test_delegates_in_branches_have_the_handles_of_their_own_nodes() -> None:
    class Alike(nn.Module):  # the branch has nodes of the same names as the graph around it
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.sin(x)
            return torch.cond(x.sum() > 0, lambda y: torch.sin(y * 3), lambda y: y * 2, (y,))

    captured = torch.export.export(Alike(), (torch.ones(4),))
    edge = rl.to_edge_transform_and_lower(
        captured, partitioner=CpuPartitioner(), generate_etrecord=True
    )
    delegates = (edge.to_executorch().get_etrecord().delegate_map or {})["forward"]
    handles = [
        {handle for some in delegate["delegate_map"].values() for handle in some}
        for delegate in delegates.values()
    ]
    assert len(handles) == 3 and all(handles)
    assert sum(map(len, handles)) == len(set.union(*handles))


def test_cases_of_a_bundled_program(tmp_path: Path) -> None:
    model, record_path = nn.Linear(4, 2).bfloat16().eval(), tmp_path / "m.etrecord"
    inputs = [torch.randn(2, 4, dtype=torch.bfloat16) for _ in range(2)]
    program = rl.export(model, (inputs[0],), etrecord=record_path)
    bundle = rl.bundle(program, [(x,) for x in inputs])
    record = parse_etrecord(record_path)
    record.update_representative_inputs(bundle)
    record.update_reference_outputs(bundle)
    assert record.representative_inputs is not None and record.reference_outputs is not None
    assert torch.equal(record.representative_inputs[0], inputs[0])
    assert torch.equal(record.reference_outputs["forward"][1][0], model(inputs[1]))

    module = rl.load(bundle.to_bytes(), trace=TraceOptions(values="all"))
    assert all(module["forward"].verify(i).passed for i in range(2))
    dump, values = module.trace.to_bytes()
    record.save(record_path)
    for etrecord in (record, record_path):
        inspector = Inspector(etdump_data=dump, debug_buffer=values, etrecord=etrecord)
        runs = [b for b in inspector.event_blocks if b.bundled_input_index is not None]
        for run in runs:
            wanted = model(inputs[run.bundled_input_index or 0]).float().detach()
            assert run.reference_output is not None
            torch.testing.assert_close(torch.from_numpy(run.reference_output[0]), wanted)
        assert len(runs) == 2
        assert inspector.get_exported_program("exported_program") is not None
        assert inspector.get_exported_program("edge_dialect_graph_module") is not None
    record.update_reference_outputs([[torch.ones(1)]])
    with pytest.raises(LoadError, match="run of test case 1 of forward, and the ETRecord has ref"):
        Inspector(etdump_data=dump, etrecord=record)


def test_a_bundled_program_without_expected_outputs() -> None:
    class Cases:
        methods = ("forward", "other")

        def torch_cases(self, method: str) -> list[tuple[list[Any], list[Any]]]:
            return [([1], [2]), ([1], [])] if method == "other" else [([1], [2])]

    record = ETRecord()
    with pytest.raises(ExportError, match="test case 1 of 'other' has no expected outputs"):
        record.update_reference_outputs(Cases())


def test_what_cannot_be_recorded_is_said(tmp_path: Path) -> None:
    captured = torch.export.export(nn.Linear(4, 2).eval(), (torch.ones(1, 4),))
    edge = rl.to_edge(captured)
    lowered = edge.to_backend(CpuPartitioner())
    path = tmp_path / "m.etrecord"
    with pytest.raises(ExportError, match="'forward' calls delegates: record the one before"):
        generate_etrecord(path, lowered, lowered.to_executorch())
    with pytest.raises(ExportError, match="not recorded: pass generate_etrecord=True"):
        lowered.to_executorch().get_etrecord()
    record = ETRecord()
    with pytest.raises(ExportError, match="needs the edge program and the finished program"):
        record.save(path)
    with pytest.raises(ExportError, match="no edge program, whose nodes"):
        record.add_executorch_program(lowered.to_executorch())
    record.add_edge_dialect_program(edge)
    with pytest.raises(ExportError, match="has an edge program already"):
        record.add_edge_dialect_program(edge)
    with pytest.raises(ExportError, match="'debug_handle_map', which the record uses itself"):
        record.add_extra_export_modules({"debug_handle_map": edge})
    with pytest.raises(ExportError, match=r"'my_exported_program': .* without 'exported_program'"):
        record.add_extra_export_modules({"my_exported_program": edge})
    assert not path.exists()


def test_a_constant_of_a_branch_that_cannot_be_said() -> None:
    class Table(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(
                x.sum() > 0, lambda x: x * torch.tensor([1.0, 2.0]), lambda x: x + 0, (x,)
            )

    edge = rl.to_edge(torch.export.export(Table(), (torch.ones(2),)), generate_etrecord=True)
    record = edge.to_executorch().get_etrecord()
    with pytest.raises(ExportError, match=r"no form for a constant of 2 elements in a branch"):
        saved(record)


def test_results_that_torch_cannot_serialise() -> None:
    class Top(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return torch.topk(x, 2)

    edge = rl.to_edge(torch.export.export(Top(), (torch.ones(3),)), generate_etrecord=True)
    with pytest.raises(
        ExportError, match=r"cannot serialise the program: .*return_types.topk.*ETRecord"
    ):
        saved(edge.to_executorch().get_etrecord())


def entries_of(record: ETRecord) -> dict[str, bytes]:
    with zipfile.ZipFile(saved(record)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def damaged(entries: dict[str, bytes], path: Path, **changes: bytes | None) -> Path:
    changed = {**entries, **changes}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in changed.items():
            if content is not None:
                archive.writestr(name, content)
    return path


def test_damaged_records(tmp_path: Path) -> None:
    x = torch.ones(1, 4)
    edge = rl.to_edge(torch.export.export(nn.Linear(4, 2).eval(), (x,)), generate_etrecord=True)
    finished = edge.to_executorch()
    module = rl.load(finished.buffer, trace=True)
    module(x.numpy())
    dump = module.trace.to_bytes()[0]
    entries = entries_of(finished.get_etrecord())
    program = "edge_dialect_exported_program/forward"
    cut = json.loads(entries[program])
    del cut["graph_module"]["graph"]
    path = tmp_path / "m.etrecord"
    cases: dict[str, dict[str, bytes | None]] = {
        "no entry ETRECORD_V0": {"ETRECORD_V0": None},
        "'debug_handle_map' is no JSON": {"debug_handle_map": b"{"},
        "'debug_handle_map' is no object": {"debug_handle_map": b"[]"},
        "something else than it should for instruction 0 of 'forward'": {
            "debug_handle_map": b'{"forward": {"0": [null]}}'
        },
        "for instruction 7 of 'forward'": {"delegate_map": b'{"forward": {"7": {"name": 3}}}'},
        "not one of torch.export": {program: json.dumps(cut).encode()},
    }
    for text, changes in cases.items():
        with pytest.raises(LoadError, match=text):
            Inspector(etdump_data=dump, etrecord=damaged(entries, path, **changes))
    shown: dict[str, dict[str, bytes | None]] = {
        "no entry 'debug_handle_map': the trace is shown without": {"debug_handle_map": None},
        "no program 'edge_dialect_exported_program': the trace is": {program: None},
    }
    for text, changes in shown.items():  # what can be shown is shown
        with pytest.warns(UserWarning, match=text):
            inspector = Inspector(etdump_data=dump, etrecord=damaged(entries, path, **changes))
        assert inspector.event_blocks[1].events[0].perf_data is not None
    with pytest.raises(LoadError, match="no program 'mine'; it has edge_dialect_exported_program"):
        Inspector(etdump_data=dump, etrecord=path, reference_graph_name="mine")
    for changes in ({"ETRECORD_V0": None}, {program: b"{}"}, {f"{program}_state_dict": b"abc"}):
        with pytest.raises(LoadError, match=r"ETRecord"):
            parse_etrecord(damaged(entries, path, **changes))
    path.write_bytes(b"not a zip archive")
    for read in (parse_etrecord, lambda p: Inspector(etdump_data=dump, etrecord=p)):
        with pytest.raises(LoadError, match="ETRecord"):
            read(path)
        with pytest.raises(LoadError, match="No such file"):
            read(tmp_path / "missing")
