"""ExecuTorch's older interface of the runtime, compared with eager PyTorch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from rushlight.devtools.suites import (
    BundledProgram,
    MethodTestCase,
    MethodTestSuite,
    serialize_from_bundled_program_to_flatbuffer,
)
from rushlight.errors import Error, RunError
from rushlight.exir.config import ExecutorchBackendConfig
from rushlight.exir.manager import to_edge
from rushlight.portable_lib import (
    _load_bundled_program_from_buffer,
    _load_for_executorch_from_buffer,
    _load_for_executorch_from_bundled_program,
    _load_program_from_buffer,
)


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(2, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        return x + self.count


def test_buffers_are_attributes() -> None:
    x = torch.ones(2, dtype=torch.bfloat16)
    made = to_edge(torch.export.export(Counter(), (x,))).to_executorch()
    program = _load_program_from_buffer(made.buffer)
    meta = program.method_meta("forward")
    assert (meta.num_inputs(), meta.num_outputs(), meta.num_attributes()) == (1, 1, 1)
    kept = meta.attribute_tensor_meta(0)
    assert (kept.sizes(), kept.dtype(), kept.nbytes()) == ((2,), 15, 4)
    assert "dtype=BFloat16" in repr(kept)
    with pytest.raises(IndexError, match="there is no attribute 1"):
        meta.attribute_tensor_meta(1)

    eager, method = Counter(), program.load_method("forward")
    for _ in range(2):
        torch.testing.assert_close(method(x), [eager(x)])  # a tensor is the one input
    torch.testing.assert_close(method.get_attribute("count"), eager.count)
    with pytest.raises(RunError, match="no attribute 'x'; kept are: count"):
        method.get_attribute("x")


def test_weights_in_a_data_file_are_read_when_a_method_runs(tmp_path: Path) -> None:
    model, x = torch.nn.Linear(3, 2).eval(), torch.randn(4, 3)
    exported = torch.export.export(model, (x,))
    config = ExecutorchBackendConfig(external_constants=True)
    made = to_edge(exported).to_executorch(config)
    (data,) = map(bytes, made._tensor_data.values())
    expected = [model(x)]
    torch.testing.assert_close(_load_for_executorch_from_buffer(made.buffer, data)(x), expected)
    for damaged in (None, b"no data file"):
        module = _load_for_executorch_from_buffer(made.buffer, damaged)
        assert module.method_meta("forward").num_inputs() == 1
        with pytest.raises(Error):
            module(x)

    cases = [MethodTestCase((x,), (expected[0],)), MethodTestCase((x,), (expected[0] + 1,))]
    suites = [MethodTestSuite("forward", cases)]
    content = serialize_from_bundled_program_to_flatbuffer(BundledProgram(made, suites))
    bundled = _load_bundled_program_from_buffer(content)
    path = tmp_path / "weights.ptd"
    path.write_bytes(data)
    for source in (data, path):
        opened = _load_for_executorch_from_bundled_program(bundled, source)
        torch.testing.assert_close(opened.forward((x,)), expected)


def test_cases_of_a_bundled_program() -> None:
    x = torch.ones(2)

    class Twice(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    made = to_edge(torch.export.export(Twice(), (x,))).to_executorch()
    cases = [MethodTestCase((x,), (x * 2,)), MethodTestCase((x,), (x * 3,))]
    bundled = _load_bundled_program_from_buffer(
        serialize_from_bundled_program_to_flatbuffer(
            BundledProgram(made, [MethodTestSuite("forward", cases)])
        )
    )
    torch.testing.assert_close(
        bundled.verify_result_with_bundled_expected_output("forward", 0), [x * 2]
    )
    for index in (1, 2):  # another output is expected; there is no such case
        with pytest.raises(RunError):
            bundled.verify_result_with_bundled_expected_output("forward", index)
