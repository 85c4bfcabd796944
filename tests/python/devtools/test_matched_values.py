"""Values of a run and of a graph, matched by their debug handles."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import rushlight as rl
from rushlight.devtools.capturer import IntermediateOutputCapturer
from rushlight.devtools.event_signatures import EventSignature, InstructionEvent
from rushlight.devtools.inspector import Inspector
from rushlight.devtools.values import (
    UnfitError,
    calculate_cosine_similarity,
    calculate_mse,
    calculate_snr,
    convert_to_float_tensor,
    find_op_names,
    find_populated_event,
    get_aot_debug_handle_to_op_name_mapping,
    is_inference_output_equal,
    map_runtime_aot_intermediate_outputs,
    merge_runtime_overlapping_debug_handles,
)
from rushlight.inspect.trace.etdump import read_etdump
from rushlight.record.handles import UNSET_DEBUG_HANDLE, propagate_back_debug_handle
from rushlight.schema import etdump as fb


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x.to(torch.float32))) + 1


@pytest.mark.parametrize(
    ("recorded", "merged"),
    [
        ({(1, 2): (1, "a", 1), (3,): (2, "b", 1)}, {(1, 2): (1, "a", 1), (3,): (2, "b", 1)}),
        ({(1, 2): (1, "a", 1), (2, 3): (2, "b", 1)}, {(1, 2, 3): (2, "b", 1)}),
        ({(1, 2): (5, "a", 1), (2, 3): (2, "b", 1)}, {(3, 1, 2): (5, "a", 1)}),
        (
            {(1,): (1, "a", 1), (2,): (2, "b", 1), (2, 1): (3, "c", 1)},
            {(2, 1): (3, "c", 1)},
        ),
        ({}, {}),
    ],
)
def test_places_with_common_handles_are_one(
    recorded: dict[Any, Any], merged: dict[Any, Any]
) -> None:
    assert merge_runtime_overlapping_debug_handles(recorded) == merged


def test_many_places_are_merged_in_linear_time() -> None:
    recorded = {(handle,): (handle, "a", 1) for handle in range(40_000)}
    began = time.process_time()
    assert merge_runtime_overlapping_debug_handles(recorded) == recorded
    assert time.process_time() - began < 30


def test_the_last_values_of_a_place_are_those_of_its_last_handles() -> None:
    one, other, third = torch.ones(2), torch.ones(3), torch.ones(2, dtype=torch.bool)
    pairs = map_runtime_aot_intermediate_outputs(
        {(1,): one, (2,): other, (3,): one, (4,): [one, other], (9,): one},
        {
            (1, 2): ([one, other], 2),  # a delegate with two results
            (3,): ([one, third], 1),  # a kernel whose second result the graph does not use
            (4,): ([one, other], 1),
            (7, 8): (one, 1),
        },
    )
    found = [(place, tuple(np.shape(x) for x in v) if isinstance(v, tuple) else v.dtype)
             for place, v in pairs.values()]  # fmt: skip
    assert found == [
        ((1, 2), torch.float32),
        ((1, 2), torch.float32),
        ((3,), torch.float32),
        ((4,), ((2,), (3,))),
    ]
    assert [key[1] is value[1] for key, value in pairs.items()][:3] == [True] * 3


def test_names_by_handles_of_a_lowered_graph() -> None:
    model = Small()
    captured = torch.export.export(model, (torch.ones(2, 4),))
    edge = rl.to_edge(captured).exported_program()
    assert propagate_back_debug_handle(captured, id(captured.graph), edge)
    names = get_aot_debug_handle_to_op_name_mapping(captured.graph_module)
    used = {n.meta["debug_handle"] for n in edge.graph.nodes if n.op == "call_function"}
    assert set(names) == {(handle,) for handle in {UNSET_DEBUG_HANDLE, *used}}
    assert "to" in names[(UNSET_DEBUG_HANDLE,)]
    linear = next(handles for handles, some in names.items() if "linear" in some)
    assert find_op_names((*linear, 99), names) == ["linear"]
    other = torch.export.export(Small(), (torch.ones(2, 4),))
    assert not propagate_back_debug_handle(other, id(other.graph), edge)
    assert all("debug_handle" not in node.meta for node in other.graph.nodes)

    x = torch.randn(2, 4)
    values = IntermediateOutputCapturer(captured.module()).run_and_capture(x)
    torch.testing.assert_close(values[linear], model.linear(x).detach())
    assert not values[linear].requires_grad


def test_distances_are_those_of_numpy() -> None:
    wanted, value = torch.randn(3, 4), torch.randn(3, 4)
    a, b = wanted.double().numpy(), value.double().numpy()
    assert calculate_mse([wanted, 1], [value, 2]) == [
        pytest.approx(((a - b) ** 2).mean(), abs=0.006),
        None,
    ]
    snr = 10 * np.log10((a**2).mean() / ((a - b) ** 2).mean())
    assert calculate_snr([wanted], [value]) == [pytest.approx(snr, abs=0.006)]
    cosine = (a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b)
    assert calculate_cosine_similarity([wanted], [value]) == [pytest.approx(cosine, abs=0.006)]
    assert convert_to_float_tensor(torch.tensor([1, 2])).dtype == torch.float64
    assert convert_to_float_tensor(float("nan")) == 0
    with pytest.raises(ValueError, match="a list has no distance"):
        convert_to_float_tensor([wanted])


def test_equal_outputs() -> None:
    one = torch.ones(2)
    assert is_inference_output_equal([one, 2, "a"], [one.clone(), 2, "a"])
    assert not is_inference_output_equal([one], [one, one])
    assert not is_inference_output_equal(one, one + 1)
    assert not is_inference_output_equal(one, 1)


def test_recorded_values_are_tensors() -> None:
    model, x = Small(), torch.randn(2, 4)
    program = rl.export(model, (x,))
    module = rl.load(program.buffer, trace=rl.runtime.TraceOptions(values="all"))
    module(x)
    dump, values = module.trace.to_bytes()
    runs = [
        b for b in Inspector(etdump_data=dump, debug_buffer=values).event_blocks if b.run_output
    ]
    torch.testing.assert_close(runs[0].run_output[0], model(x).detach())
    recorded = [value for event in runs[0].events for value in event.debug_data]
    assert recorded and all(isinstance(value, torch.Tensor) for value in recorded)


def test_raw_events_of_a_trace_by_instruction() -> None:
    program = rl.export(Small(), (torch.ones(2, 4),))
    module = rl.load(program.buffer, trace=rl.runtime.TraceOptions(values="all"))
    module(np.ones((2, 4), np.float32))
    runs = read_etdump(module.trace.to_bytes()[0]).run_data
    events = [e for e in runs[-1].events if e.profile_event or e.debug_event]
    found = InstructionEvent.gen_from_events(events)
    times = [time for one in found for time in one.profile_events or ()]
    assert len(times) == sum(event.profile_event is not None for event in events)
    values = [value for one in found for value in one.debug_events or ()]
    outputs = sum(e.debug_event is not None for e in events) - len(values)
    assert outputs == 1 and values
    for one in found:
        told = EventSignature.gen_from_instruction_event(one)
        assert len(told) == max(len(one.profile_events or ()), 1)
        assert {signature.instruction_id for signature, _ in told} == {one.signature.instruction_id}
    with pytest.raises(UnfitError, match="neither a time nor a value"):
        find_populated_event(fb.Event())
