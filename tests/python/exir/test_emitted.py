"""Programs as ExecuTorch's emitter gives them, run and compared with eager PyTorch."""

from __future__ import annotations

import pytest
import torch

from rushlight.errors import ExportError
from rushlight.exir.config import ExecutorchBackendConfig
from rushlight.exir.data_files import FlatTensorSerializer
from rushlight.exir.emitted import emit_program
from rushlight.exir.manager import ExecutorchProgramManager, to_edge
from rushlight.exir.program_files import serialize_for_executorch
from rushlight.runtime.load import load
from rushlight.schema import program as fb


def finished(model: torch.nn.Module, x: torch.Tensor) -> ExecutorchProgramManager:
    return to_edge(torch.export.export(model, (x,))).to_executorch()  # type: ignore[return-value]


def test_a_program_holds_its_constants() -> None:
    model, x = torch.nn.Linear(3, 2), torch.randn(4, 3)
    made = finished(model, x)
    output = made._emitter_output
    assert output.program is made.executorch_program
    none, *constants = [bytes(one.storage) for one in output.program.constant_buffer]
    assert none == b"" and output.mutable_data is None
    weights = [t.detach().numpy().tobytes() for t in (model.weight, model.bias)]
    assert sorted(constants) == sorted(weights)


def test_methods_are_merged() -> None:
    first, second, x = torch.nn.Linear(3, 2), torch.nn.Linear(3, 3), torch.randn(4, 3)
    planned = finished(first, x).exported_program()
    edge = to_edge(torch.export.export(second, (x,))).exported_program()
    output = emit_program({"b": planned, "a": edge}, prim_getters={"size": 3})
    assert [plan.name for plan in output.program.execution_plan] == ["a", "b", "size"]
    assert len(output.program.constant_buffer) == 5
    file, beside = serialize_for_executorch(
        output, ExecutorchBackendConfig(), FlatTensorSerializer()
    )
    assert beside == {}
    module = load(bytes(file))
    torch.testing.assert_close(module.a(x), second(x))
    torch.testing.assert_close(module.b(x), first(x))
    assert module.size() == 3
    with pytest.raises(ExportError, match="method 'b' is Linear, not an ExportedProgram"):
        emit_program({"b": first})  # type: ignore[dict-item]


def test_external_constants() -> None:
    model, x = torch.nn.Linear(3, 2), torch.randn(4, 3)
    config = ExecutorchBackendConfig(external_constants=True)
    made = to_edge(torch.export.export(model, (x,))).to_executorch(config)
    output = made._emitter_output  # type: ignore[attr-defined]
    assert [one.storage for one in output.program.constant_buffer] == [b""]
    (names,) = output.external_constant_map.values()
    assert sorted(names) == ["bias", "weight"]
    file, beside = serialize_for_executorch(output, config, FlatTensorSerializer())
    (data,) = map(bytes, beside.values())
    torch.testing.assert_close(load(bytes(file), data=data)(x), model(x))


class EqualBuffers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        for name, values in (("a", [1.0, 2.0]), ("b", [2.0, 3.0]), ("c", [1.0, 2.0])):
            self.register_buffer(name, torch.tensor(values))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.a + self.b - self.c  # type: ignore[operator]


def test_equal_external_constants_are_there_once() -> None:
    x = torch.randn(3, 2)
    config = ExecutorchBackendConfig(external_constants=True)
    made = to_edge(torch.export.export(EqualBuffers(), (x,))).to_executorch(config)
    output = made._emitter_output  # type: ignore[attr-defined]
    (names,) = output.external_constant_map.values()
    assert sorted(names) == ["a", "b", "c"] and names["a"] == names["c"] != names["b"]
    assert len(output.external_constant_buffer) == 2
    file, beside = serialize_for_executorch(output, config, FlatTensorSerializer())
    (data,) = map(bytes, beside.values())
    torch.testing.assert_close(load(bytes(file), data=data)(x), EqualBuffers()(x))


def test_payloads_are_in_the_program() -> None:
    from rushlight.backends.demo import AddMulPartitionerDemo

    class Sum(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.mm(x, x) + x

    x = torch.randn(2, 2)
    made = to_edge(torch.export.export(Sum(), (x,))).to_backend(AddMulPartitionerDemo())
    output = made.to_executorch()._emitter_output  # type: ignore[attr-defined]
    (delegate,) = output.program.execution_plan[0].delegates
    assert delegate.processed == fb.BackendDelegateDataReference(fb.DataLocation.INLINE, 0)
    assert len(output.program.backend_delegate_data[0].data) > 0
    (told,) = output.method_to_delegate_debug_id_map["forward"].values()
    assert told["name"] == delegate.id
    file, _ = serialize_for_executorch(output, ExecutorchBackendConfig(), FlatTensorSerializer())
    torch.testing.assert_close(load(bytes(file))(x), Sum()(x))
