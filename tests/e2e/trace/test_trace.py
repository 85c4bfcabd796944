"""Traces of whole models, read by ExecuTorch's own Inspector."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import rushlight as rl
from rushlight.runtime import TraceOptions
from rushlight.schema import etdump


def network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 10)
    ).eval()


@pytest.mark.parametrize("backend", ["portable", "cpu", "xnnpack"])
def test_executorch_reads_a_trace(backend: str, executorch, tmp_path: Path) -> None:
    model, x = network(), torch.randn(1, 3, 16, 16)
    program = rl.export(model, (x,), backend=backend)
    module = rl.load(program.buffer, trace=TraceOptions(values="all"))
    for _ in range(3):
        module(x.numpy())
    module.trace.save(tmp_path / "m.etdp")
    blocks = executorch.call("trace", dump=tmp_path / "m.etdp", values=tmp_path / "m.etdp.values")
    load, run = blocks
    assert [event[0] for event in load["events"]] == ["Method::init"]
    np.testing.assert_allclose(run["outputs"][0], model(x).detach(), atol=1e-5)
    *inside, whole = run["events"]
    assert whole[:3] == ["Method::execute", 0, 3]
    assert all(event[2] == 3 for event in inside)
    expected = [[1, 8, 16, 16], [1, 8, 8, 8], [1, 10]]
    shapes = [shape for event in inside for shape in event[3]]
    assert all(shape in shapes for shape in expected)


def test_values_inside_a_delegate_are_eager_s() -> None:
    model, x = network(), torch.randn(1, 3, 16, 16)
    module = rl.load(rl.export(model, (x,), backend="cpu").buffer, trace=TraceOptions(values="all"))
    module(x.numpy())
    content, values = module.trace.to_bytes()
    run = etdump.unpack(content[4:]).run_data[-1]
    arrays = []
    for event in run.events:
        debug = event.debug_event
        if debug is None or debug.delegate_debug_id_int < 0:
            continue
        assert debug.debug_entry is not None and debug.debug_entry.tensor is not None
        tensor = debug.debug_entry.tensor
        count = int(np.prod(tensor.sizes))
        arrays.append(np.frombuffer(values, np.float32, count, tensor.offset).reshape(tensor.sizes))
    eager = [model[:2](x), model[:3](x), model[:4](x), model(x)]
    assert len(arrays) == len(eager)
    for array, value in zip(arrays, eager, strict=True):
        expected = value.detach().numpy()
        np.testing.assert_allclose(array.reshape(expected.shape), expected, atol=1e-5)
