"""Tests of what only ExecuTorch's names need, by what ExecuTorch's documents say of them."""

from __future__ import annotations

import io
from importlib.util import find_spec

import pytest
import torch
from torch import nn
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult

from rushlight.errors import ExportError
from rushlight.exir import config, dim_orders, kinds, operators, print_program, tensors, transform
from rushlight.exir.graph_passes.shapes import (
    ConstraintBasedSymShapeEvalPass,
    HintBasedSymShapeEvalPass,
)
from rushlight.exir.specs import TensorSpec
from rushlight.exir.target_recipes import (
    is_fbcode,
    is_supported_platform_for_coreml_lowering,
    is_supported_platform_for_qnn_lowering,
)
from rushlight.pipeline import to_edge


class Twice(nn.Module):
    """One call."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + x


def test_dim_orders_strides_and_formats_agree() -> None:
    nhwc = torch.empty(2, 3, 4, 5).to(memory_format=torch.channels_last)
    order = dim_orders.dim_order_from_stride(nhwc.stride())
    assert order == (0, 2, 3, 1) == tuple(dim_orders.get_dim_order(torch.channels_last, 4) or ())
    assert dim_orders.stride_from_dim_order(nhwc.shape, order) == list(nhwc.stride())
    assert dim_orders.get_memory_format(order) == torch.channels_last
    assert dim_orders.is_channel_last_dim_order(nhwc)
    assert not dim_orders.is_contiguous_dim_order(nhwc)
    with pytest.raises(ExportError, match="no memory format"):
        dim_orders.get_memory_format([1, 0])


def test_a_tensor_of_the_schema_is_made_of_a_spec() -> None:
    made = tensors.make_tensor_value(3, None, TensorSpec.from_tensor(torch.ones(2, 3)))
    assert (made.sizes, made.dim_order, made.data_buffer_idx) == ([2, 3], [0, 1], 3)
    assert tensors.get_scalar_type(made.scalar_type) == torch.float32
    place = tensors.make_allocation_info(1, (1 << 32) + 5)
    assert (place.memory_offset_low, place.memory_offset_high) == (5, 1)
    with pytest.raises(ExportError, match="negative"):
        tensors.make_allocation_info(1, -1)
    with pytest.raises(ExportError, match="cannot hold"):
        tensors.scalar_type_enum(torch.complex32)


def test_out_variants_are_found() -> None:
    found, names = operators.to_out_variant(torch.ops.aten.topk.default)
    assert (found, names) == (torch.ops.aten.topk.values, ("values", "indices"))
    assert operators.is_out_variant("aten::topk", "values")
    assert operators.is_inplace_variant("aten::add_", "Tensor")
    assert not operators.is_inplace_variant("aten::add", "Tensor")
    assert (
        "aten::add.Tensor"
        in operators.get_schema_for_operators(["torch.ops.aten.add.Tensor"])[
            "torch.ops.aten.add.Tensor"
        ]
    )
    with pytest.raises(TypeError, match="not an operator"):
        operators.unwrap_op_overload(len)


def test_programs_and_nodes_are_printed() -> None:
    program = to_edge(torch.export.export(Twice(), (torch.ones(2),)))
    add = next(n for n in program.exported_program().graph.nodes if n.op == "call_function")
    told = print_program.inspect_node(program.exported_program().graph, add)
    assert [line for line in told.splitlines() if line.startswith("-->")]
    assert "Traceback" in told
    out = io.StringIO()
    finished = program.to_executorch()
    print_program.print_program(finished.executorch_program, out=out)
    assert "aten::add.out(" in out.getvalue()
    print_program.pretty_print(finished.executorch_program, out=out)
    assert "ExecutionPlan(" in out.getvalue()


def test_a_pass_changes_a_copy() -> None:
    def to_product(module: GraphModule) -> PassResult:
        for node in module.graph.nodes:
            if node.op == "call_function":
                node.target = torch.ops.aten.mul.Tensor
        return PassResult(module, True)

    program = torch.export.export(Twice(), (torch.ones(2),))
    changed = transform.transform(program, to_product)
    assert torch.equal(changed.module()(torch.full((2,), 3.0)), torch.full((2,), 9.0))


def test_options_that_would_change_the_program_are_refused() -> None:
    shapes = ConstraintBasedSymShapeEvalPass()
    program = to_edge(torch.export.export(Twice(), (torch.ones(2),)))
    made = program.to_executorch(config.ExecutorchBackendConfig(sym_shape_eval_pass=shapes))
    assert made.buffer
    with pytest.raises(ExportError, match="Dim"):
        config.ExecutorchBackendConfig(sym_shape_eval_pass=HintBasedSymShapeEvalPass())
    with pytest.raises(ExportError, match="external_mutable_weights"):
        config.ExecutorchBackendConfig(external_mutable_weights=True)


def test_errors_have_kinds() -> None:
    error = ExportError(kinds.ExportErrorType.NOT_SUPPORTED, "no complex numbers")
    assert str(error) == "[ExportErrorType.NOT_SUPPORTED]: no complex numbers"


def test_scripts_are_told_what_can_be_compiled_here() -> None:
    assert is_supported_platform_for_coreml_lowering() == (find_spec("coremltools") is not None)
    assert not is_supported_platform_for_qnn_lowering() and not is_fbcode()
