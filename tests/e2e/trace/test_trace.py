"""Traces of whole models: ExecuTorch's Inspector reads ours, and ours shows the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import rushlight as rl
from rushlight.devtools.inspector import Inspector as ScriptInspector
from rushlight.inspect import Inspector, parse_etrecord
from rushlight.record.etrecord import calls_delegates
from rushlight.runtime import TraceOptions


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(512, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(self.head(self.body(x).flatten(1)))


def recorded(pte: bytes, x: torch.Tensor, folder: Path) -> None:
    """Run a program three times; write m.etdp and its values."""
    module = rl.load(pte, trace=TraceOptions(values="all"))
    for _ in range(3):
        module(x.numpy())
    module.trace.save(folder / "m.etdp")


def rows(inspector: Inspector) -> list[dict[str, Any]]:
    """The blocks as `executorch_side.py trace` gives ExecuTorch's."""
    return [
        {
            "name": block.name,
            "events": [
                {
                    "name": event.name,
                    "instruction": event._instruction_id,
                    "ns": [round(t * 1e6) for t in event.perf_data.raw] if event.perf_data else [],
                    "shapes": [list(getattr(value, "shape", ())) for value in event.debug_data],
                    "op_types": event.op_types,
                    "stack_traces": event.stack_traces,
                    "modules": {k: list(v) for k, v in event.module_hierarchy.items()},
                    "backend": event.delegate_backend_name,
                    "handles": event.debug_handles,
                }
                for event in block.events
            ],
            "outputs": [array.tolist() for array in block.run_output],
        }
        for block in inspector.event_blocks
    ]


@pytest.mark.parametrize("backend", ["portable", "cpu", "xnnpack"])
def test_executorch_reads_a_trace(backend: str, executorch, tmp_path: Path) -> None:
    torch.manual_seed(1)
    model, x = Network().eval(), torch.randn(1, 3, 16, 16)
    program = rl.export(model, (x,), backend=backend)
    recorded(bytes(program.buffer), x, tmp_path)
    dump, values = tmp_path / "m.etdp", tmp_path / "m.etdp.values"
    shown = executorch.call("trace", dump=dump, values=values)
    assert shown == rows(Inspector(dump, debug_buffer_path=values))
    load, run = shown
    memory = ["planned memory 1", "structures"]
    assert [event["name"] for event in load["events"]] == [*memory, "Method::init"]
    np.testing.assert_allclose(run["outputs"][0], model(x).detach(), atol=1e-5)
    assert all(len(event["ns"]) == 3 for event in run["events"])
    shapes = [shape for event in run["events"] for shape in event["shapes"]]
    assert all(shape in shapes for shape in ([1, 8, 16, 16], [1, 8, 8, 8], [1, 10]))


@pytest.mark.parametrize("backend", ["portable", "cpu"])
def test_executorch_reads_values_of_bfloat16(backend: str, executorch, tmp_path: Path) -> None:
    # Its Inspector refuses traces that have the dtype: they are recorded as float32.
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(9, 70), nn.ReLU()).bfloat16().eval()  # more than 64 elements
    x = torch.randn(2, 9, dtype=torch.bfloat16)
    module = rl.load(rl.export(model, (x,), backend=backend).buffer, trace=TraceOptions("all"))
    wanted = module(x)
    module.trace.save(tmp_path / "m.etdp")
    dump, values = tmp_path / "m.etdp", tmp_path / "m.etdp.values"
    shown = executorch.call("trace", dump=dump, values=values)
    assert shown == rows(Inspector(dump, debug_buffer_path=values))
    np.testing.assert_array_equal(shown[1]["outputs"][0], wanted.float())


@pytest.mark.parametrize("xnnpack", [False, True])
def test_a_program_and_record_of_executorch(xnnpack: bool, executorch, tmp_path: Path) -> None:
    torch.manual_seed(2)
    model, x = Network().eval(), torch.randn(1, 3, 16, 16)
    torch.export.save(torch.export.export(model, (x,)), tmp_path / "m.pt2")
    record, pte = tmp_path / "m.etrecord", tmp_path / "m.pte"
    executorch.call("record", program=tmp_path / "m.pt2", pte=pte, etrecord=record, xnnpack=xnnpack)
    recorded(pte.read_bytes(), x, tmp_path)
    dump, values = tmp_path / "m.etdp", tmp_path / "m.etdp.values"
    shown = executorch.call("trace", dump=dump, values=values, etrecord=record)
    for event in (event for block in shown for event in block["events"]):
        if event["name"].startswith("Method::"):
            event["handles"] = None  # ExecuTorch gives whole runs those of instruction 0
    ours = Inspector(dump, etrecord=str(record), debug_buffer_path=values)
    assert shown == rows(ours)
    operators = {op for block in ours.event_blocks for e in block.events for op in e.op_types}
    if xnnpack:
        # ExecuTorch's compiler for XNNPACK maps no places in its delegates to nodes.
        read = parse_etrecord(record)
        assert any(map(calls_delegates, read.edge_programs.values()))
        assert read.delegate_map == {
            "forward": {"0": {"name": "XnnpackBackend", "delegate_map": {}}}
        }
        assert operators == set()
    else:
        assert {"aten.convolution.default", "aten.sin.default"} <= operators
        assert ours.find_total_for_module("L__self__body") > 0


def by_order(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same with the nodes in their order: ExecuTorch renames those with several outputs."""
    for event in (event for block in blocks for event in block["events"]):
        for key in ("stack_traces", "modules"):
            event[key] = list(event[key].values())
    return blocks


@pytest.mark.parametrize("backend", ["portable", "cpu", "xnnpack"])
def test_executorch_reads_a_record(backend: str, executorch, tmp_path: Path) -> None:
    torch.manual_seed(3)
    model, x = Network().eval(), torch.randn(2, 3, 16, 16)
    record = tmp_path / "m.etrecord"
    shapes = ({0: torch.export.Dim("batch", min=1, max=4)},)
    program = rl.export(model, (x,), dynamic_shapes=shapes, backend=backend, etrecord=record)
    recorded(bytes(program.buffer), x, tmp_path)
    dump, values = tmp_path / "m.etdp", tmp_path / "m.etdp.values"
    shown = executorch.call("trace", dump=dump, values=values, etrecord=record)
    for event in (event for block in shown for event in block["events"]):
        if event["name"].startswith("Method::"):
            event["handles"] = None  # ExecuTorch gives whole runs those of instruction 0
    ours = Inspector(dump, etrecord=record, debug_buffer_path=values)
    assert by_order(shown) == by_order(rows(ours))
    run = shown[1]["events"]
    sines = [event for event in run if "aten.sin.default" in event["op_types"]]
    assert sines and all("torch.sin(" in str(event["stack_traces"]) for event in sines)
    assert any("L__self__body.0" in str(event["modules"]) for event in run)
    assert backend == "portable" or any(event["backend"] is not None for event in run)


class Attention(nn.Module):
    """A block whose attention becomes many calls, which share a debug handle."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.last = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, size = x.shape
        parts = self.qkv(x).split(size, -1)
        q, k, v = (part.view(batch, tokens, 2, size // 2).transpose(1, 2) for part in parts)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.last(mixed.transpose(1, 2).reshape(batch, tokens, size))


class Flat(nn.Module):
    """Layers whose values have the same shapes inside of a delegate."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.last(nn.functional.silu(self.first(x)))


# Inside delegates ExecuTorch compares values only if they have eager's shapes.
@pytest.mark.parametrize(
    ("model", "sizes", "backend", "least"),
    [
        (Network, (1, 3, 16, 16), "portable", 3),
        (Attention, (1, 8, 16), "portable", 3),
        (Flat, (8, 16), "xnnpack", 2),
    ],
)
def test_numeric_gaps_are_those_of_executorch(
    model: type[nn.Module],
    sizes: tuple[int, ...],
    backend: str,
    least: int,
    executorch,
    tmp_path: Path,
) -> None:
    torch.manual_seed(6)
    x = torch.randn(sizes)
    path = tmp_path / "m.etrecord"
    program = rl.export(model().eval(), (x,), backend=backend, etrecord=path)
    record = parse_etrecord(path)
    record.update_representative_inputs([x + 0.01])
    record.save(path)
    recorded(bytes(program.buffer), x, tmp_path)
    dump, values = tmp_path / "m.etdp", tmp_path / "m.etdp.values"
    ours = Inspector(dump, etrecord=path, debug_buffer_path=values)
    for distance in ("MSE", "L1", "SNR"):
        theirs = executorch.call("gaps", dump=dump, values=values, etrecord=path, distance=distance)
        mine = {gap.aot_ops[-1]: gap.gap[0] for gap in ours.numeric_gaps(distance)}
        assert len(theirs) >= least
        for ops, gap in theirs:
            assert mine[ops[-1]] == pytest.approx(gap, rel=1e-3), (distance, ops)
    assert all(0.99 < gap.gap[0] <= 1.0 + 1e-9 for gap in ours.numeric_gaps("cosine"))


def test_scripts_compare_with_the_captured_program_as_executorch_does(
    executorch, tmp_path: Path
) -> None:
    torch.manual_seed(7)
    x = torch.randn(1, 8, 16)
    path, dump, values = (tmp_path / name for name in ("m.etrecord", "m.etdp", "m.etdp.values"))
    program = rl.export(Attention().eval(), (x,), etrecord=path)
    record = parse_etrecord(path)
    record.update_representative_inputs([x + 0.01])
    record.save(path)
    recorded(bytes(program.buffer), x, tmp_path)
    ours = ScriptInspector(dump, etrecord=record, debug_buffer_path=values)
    frame = ours.calculate_numeric_gap("MSE")
    mine = {row.aot_ops[-1]: row.gap[0] for row in frame.itertuples()}
    theirs = executorch.call(
        "gaps", dump=dump, values=values, etrecord=path, distance="MSE", graph=None
    )
    assert "scaled_dot_product_attention" in mine
    assert {ops[-1] for ops, _ in theirs} <= set(mine)
    for ops, gap in theirs:
        assert mine[ops[-1]] == pytest.approx(gap, rel=1e-3), ops
    edge = ours.calculate_numeric_gap("MSE", reference_graph="edge_dialect_exported_program")
    assert len(edge.aot_ops.sum()) > len(frame.aot_ops.sum())
    record.exported_program = None
    assert ours.calculate_numeric_gap("MSE").aot_ops.tolist() == edge.aot_ops.tolist()
    with pytest.raises(ValueError, match="no captured program"):
        ours.calculate_numeric_gap("MSE", reference_graph="exported_program")


def test_values_inside_a_delegate_are_eager_s(tmp_path: Path) -> None:
    torch.manual_seed(4)
    model, x = Network().eval(), torch.randn(1, 3, 16, 16)
    program = rl.export(model, (x,), backend="cpu")
    program.save(tmp_path / "m.pte", quiet=True)
    recorded(bytes(program.buffer), x, tmp_path)
    inspector = Inspector(
        tmp_path / "m.etdp",
        debug_buffer_path=tmp_path / "m.etdp.values",
        program=tmp_path / "m.pte",
    )
    run = inspector.event_blocks[1]
    assert run.method == "forward"
    inside = [event for event in run.events if event.is_delegated_op]
    body = model.body(x)
    head = model.head(body.flatten(1))
    eager = {"aten.relu.default": model.body[:2](x), "aten.sin.default": torch.sin(head)}
    for op, value in eager.items():
        (event,) = [event for event in inside if op in event.op_types]
        np.testing.assert_allclose(event.debug_data[0], value.detach(), atol=1e-5)
        assert "test_trace.py" in str(event.stack_traces) or op == "aten.relu.default"
        assert event.delegate_backend_name == "CpuBackend"
    assert inspector.find_total_for_module("body") > 0
    assert inspector.find_total_for_module("body.0") < inspector.find_total_for_module("body")
    assert inspector.find_total_for_module("tail") == 0


def test_chosen_values(tmp_path: Path) -> None:
    torch.manual_seed(5)
    model, x = Network().eval(), torch.randn(1, 3, 16, 16)
    program = rl.export(model, (x,), backend="cpu")
    every = rl.load(program.buffer, trace=TraceOptions(values="all"))
    every(x.numpy())
    places = inside_places(every, tmp_path)
    chosen = rl.load(program.buffer, trace=TraceOptions(values=[f"0/{places[1]}", "9"]))
    chosen(x.numpy())
    assert inside_places(chosen, tmp_path) == places[1:2]
    whole = rl.load(program.buffer, trace=TraceOptions(values=["CpuBackend"]))
    whole(x.numpy())
    assert inside_places(whole, tmp_path) == places


def inside_places(module: rl.Module, folder: Path) -> list[int | str | None]:
    """The places inside delegates of which values were recorded."""
    module.trace.save(folder / "m.etdp")
    path = folder / "m.etdp.values"
    inspector = Inspector(folder / "m.etdp", debug_buffer_path=path if path.exists() else None)
    return [
        event.delegate_debug_identifier
        for block in inspector.event_blocks
        for event in block.events
        if event.is_delegated_op and event.debug_data
    ]
