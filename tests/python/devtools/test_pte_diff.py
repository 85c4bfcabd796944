"""How two program files differ, value by value."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import nn

import rushlight as rl
from rushlight.devtools.pte_diff import diff_pte, format_diff_result
from rushlight.devtools.size_information import generate_model_size_information
from rushlight.serialize.pte import read_pte


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.arange(1.0, 7.0).reshape(2, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale


class Shifted(Scaled):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + self.scale).exp()


def file_of(model: nn.Module, **programs: nn.Module) -> bytes:
    x = (torch.ones(2, 3),)
    named = {name: torch.export.export(m, x) for name, m in {"forward": model, **programs}.items()}
    return rl.to_edge(named).to_executorch().buffer


def test_other_elements_of_a_constant() -> None:
    model, other = Scaled(), Scaled()
    other.scale[0, 2] += 0.5
    other.scale[1, 1] -= 2
    data = file_of(model)
    result = diff_pte(data, file_of(other), "one.pte", "other.pte", max_samples=1)
    assert not result.bitwise_equal and result.error is None
    [plan] = result.plan_diffs
    [tensor] = plan.tensor_diffs
    assert tensor.metadata_diffs == [] and tensor.bytes_differ
    assert (tensor.byte_size_a, tensor.num_elements, tensor.num_differing) == (24, 6, 2)
    wanted = np.abs(model.scale.numpy() - other.scale.numpy())
    assert tensor.max_abs_diff == wanted.max()
    assert tensor.mean_abs_diff == wanted[wanted > 0].mean()
    [element] = tensor.element_diffs
    assert (element.flat_index, element.multi_index) == (2, (0, 2))
    assert (element.value_a, element.value_b) == (3.0, 3.5)
    [use] = tensor.tensor_a.operator_usages
    assert (use.name, use.arg_index) == ("aten::mul.out", 1)
    text = format_diff_result(result)
    assert "NOT bitwise equal" in text and "2 of 6 elements differ, max_abs_diff 2" in text
    assert "[0, 2]: 3 vs 3.5" in text and "taken by aten::mul.out as 1" in text
    assert "byte sizes" not in text
    assert "byte sizes: 24 vs 24" in format_diff_result(result, verbose=True)
    same = diff_pte(data, data, "one.pte", "other.pte")
    assert same.bitwise_equal and "bitwise equal" in format_diff_result(same)


def test_other_operators_and_methods() -> None:
    result = diff_pte(file_of(Scaled()), file_of(Shifted(), more=Scaled()))
    plan = next(plan for plan in result.plan_diffs if plan.operators_only_in_a)
    assert plan.operators_only_in_a == ["aten::mul.out"]
    assert plan.operators_only_in_b == ["aten::add.out", "aten::exp.out"]
    assert (plan.instruction_count_a, plan.instruction_count_b) == (1, 2)
    assert plan.has_differences() and result.extra_plans_in_b == ["more"]
    assert {data.key for data in result.named_data_diffs} <= {
        "rushlight/contract", "rushlight/debug", *read_pte(file_of(Scaled())).named_data
    }  # fmt: skip
    assert "operators only in B: aten::add.out, aten::exp.out" in format_diff_result(result)
    assert "Method only in B: more" in format_diff_result(result)


def test_the_same_scalars_are_no_differences() -> None:
    class Filled(Scaled):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.full((2, 3), float("nan")) + x * self.scale

    other = Filled()
    other.scale[0, 0] = 9
    [plan] = diff_pte(file_of(Filled()), file_of(other)).plan_diffs
    assert [len(plan.tensor_diffs), plan.evalue_diffs] == [1, []]


def test_a_file_that_cannot_be_read() -> None:
    result = diff_pte(b"", file_of(Scaled()))
    assert result.error is not None and "has 0 bytes" in result.error
    assert result.error in format_diff_result(result)


def test_the_bytes_of_a_program() -> None:
    from rushlight.backends.demo import DemoPartitioner

    model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2)).eval()
    edge = rl.to_edge(torch.export.export(model, (torch.ones(1, 3),)))
    before = copy.deepcopy(edge.exported_program())
    told = generate_model_size_information(before, flatbuffer=b"0" * 1000)
    sizes = sorted((p.numel() * 4 for p in model.parameters()), reverse=True)
    assert [part["num_bytes"] for part in told["tensor_data"]] == sizes
    assert told["tensor_data"][0]["shape"] == [5, 3]
    assert told["tensor_data"][0]["dtype"] == "float32"
    assert told["overview"] == {
        "total_tensor_data_size": sum(sizes),
        "total_delegate_blob_data_size": 0,
        "serialization_metadata_size": 1000 - sum(sizes),
        "model_size": 1000,
    }
    lowered = edge.to_backend(DemoPartitioner()).exported_program()
    told = generate_model_size_information(
        lowered, {"BackendWithCompilerDemo": lambda data: {"first": data[0]}}
    )
    [blob] = told["delegate_blob_data"]
    payload = lowered.graph_module.lowered_module_0.processed_bytes
    assert (blob["num_bytes"], blob["first"]) == (len(payload), payload[0])
    assert told["overview"]["total_delegate_blob_data_size"] == len(payload)
