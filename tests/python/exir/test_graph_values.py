"""Bounds of sizes, values of constants and tables, compared with eager PyTorch and torch's own."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
from torch import nn
from torch.export.graph_signature import InputKind, OutputKind, OutputSpec, TensorArgument

from rushlight.edge.operators import edge_operator
from rushlight.errors import ExportError
from rushlight.exir.config import ExecutorchBackendConfig
from rushlight.exir.graph_passes import constant_values, upper_bounds
from rushlight.exir.graph_passes.backend_numbers import EdgeToBackendOpsPass, is_sym_op
from rushlight.exir.graph_passes.layouts import DimOrderOpsMap, MemoryFormatOpsMap
from rushlight.exir.graph_passes.lists import edge_to_executorch_passes
from rushlight.exir.graph_passes.program_passes import external_mutable_weights_pass
from rushlight.exir.graph_passes.removals import eliminate_dq_q
from rushlight.exir.graph_passes.shapes import HintBasedSymShapeEvalPass
from rushlight.exir.graph_passes.spec_prop import SpecPropPass
from rushlight.exir.manager import to_edge
from rushlight.exir.operators import get_out_args_from_schema, schema_to_opoverload
from rushlight.exir.print_program import pretty_print_stacktraces
from rushlight.exir.submodules import (
    bfs_trace_with_node_process,
    get_cond_while_submodules,
    get_scan_submodules,
)
from rushlight.exir.tensors import (
    enum_to_scalar_map,
    get_scalar_type,
    layout_enum,
    memory_format_enum,
    scalar_type_enum,
)
from rushlight.schema import program as schema

aten = torch.ops.aten
q = torch.ops.quantized_decomposed
T = torch.zeros(3, 4, 5, 6)
I2, I1 = torch.zeros(2, 7, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
M1, M2 = torch.ones(4, dtype=torch.bool), torch.ones(4, 5, dtype=torch.bool)
INDICES = [
    [I2],
    [None, I2],
    [None, I2, I1],
    [I2, None, I1],
    [None, I2, None, I1],
    [None, M1],
    [None, M2],
    [None, M2, torch.zeros(1, dtype=torch.int64)],
    [torch.zeros(20, dtype=torch.int64), M2],
    [None, None],
]


@pytest.mark.parametrize("indices", INDICES)
def test_bounds_of_an_index_are_sizes_where_masks_are_full(indices: Any) -> None:
    bound = upper_bounds.index_Tensor((T, indices), {})
    given = [*indices, *[None] * (T.dim() - sum(_dims(i) for i in indices))]
    wanted = T if all(i is None for i in given) else aten.index.Tensor(T, given)
    assert bound == list(wanted.shape)


def _dims(index: Any) -> int:
    return index.dim() if index is not None and index.dtype == torch.bool else 1


class Found(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nonzero(x)


@pytest.fixture
def found() -> Any:
    return to_edge(torch.export.export(Found(), (torch.ones(3, 4),))).exported_program()


def test_sizes_that_depend_on_data_get_their_bounds(found: Any) -> None:
    assert upper_bounds.nonzero((torch.ones(3, 4),), {}) == [12, 2]
    module = SpecPropPass()(found.graph_module).graph_module
    HintBasedSymShapeEvalPass()(module)
    (node,) = [n for n in module.graph.nodes if n.target == aten.nonzero.default]
    full = torch.nonzero(torch.ones(3, 4))
    assert list(node.meta["spec"].shape) == list(full.shape)
    assert node.meta["spec"].stride == full.stride()


def test_a_rule_of_the_users_is_taken(found: Any) -> None:
    table = upper_bounds.upper_bound_shape_inference_table
    own = table[aten.nonzero.default]
    try:

        @upper_bounds.register_upper_bound_inference(edge_operator(aten.nonzero.default))
        def few(args: Any, kwargs: Any) -> list[int]:
            return [5, 2]

        module = SpecPropPass()(found.graph_module).graph_module
        HintBasedSymShapeEvalPass()(module)
    finally:
        table[aten.nonzero.default] = own
    (node,) = [n for n in module.graph.nodes if n.target == aten.nonzero.default]
    assert list(node.meta["spec"].shape) == [5, 2]


class Weighted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, 2))
        self.register_buffer("fixed", torch.full((2, 2), 3.0))
        self.register_buffer("state", torch.zeros(2, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state.add_(x)  # type: ignore[operator]
        return x + (self.weight * self.fixed).neg() + self.state


def test_values_that_depend_on_constants_are_known() -> None:
    program = torch.export.export(Weighted(), (torch.ones(2, 2),)).run_decompositions({})
    nodes = {node.name: node for node in program.graph.nodes}
    assert constant_values.is_constant_buffer(program, nodes["b_fixed"])
    assert not constant_values.is_constant_buffer(program, nodes["b_state"])
    assert not constant_values.is_constant_buffer(program, nodes["p_weight"])
    held = constant_values.get_constant_placeholder_dict(program)
    assert {node.name for node in held} == {"p_weight", "b_fixed"}
    known = constant_values.get_propagated_const_tensor_dict(program, None)
    by_target = {node.target: value for node, value in known.items()}
    torch.testing.assert_close(by_target[aten.neg.default], torch.full((2, 2), -3.0))
    assert aten.add.Tensor not in by_target
    left = constant_values.get_propagated_const_tensor_dict(program, {aten.mul.Tensor})
    assert set(left) == set(held)
    user = constant_values.get_first_user_input(program)
    assert user is nodes["x"]
    given = ([nodes["p_weight"], 2], None)
    assert constant_values.is_const(given, program, held)
    assert not constant_values.is_const([user], program, held)
    data = constant_values.get_data(given, program, held)
    assert data[0][0] is held[nodes["p_weight"]] and data[0][1] == 2 and data[1] is None
    assert constant_values.get_fake_mode(program) is user.meta["val"].fake_mode


def test_operators_of_numbers_are_told_apart() -> None:
    size = torch.export.Dim("size", max=9)
    exported = torch.export.export(Sized(), (torch.ones(3),), dynamic_shapes={"x": {0: size}})
    module = to_edge(exported).exported_program().graph_module
    EdgeToBackendOpsPass()(module)
    calls = [n.target for n in module.graph.nodes if n.op == "call_function"]
    numbers = [target for target in calls if is_sym_op(target)]
    assert {str(getattr(t, "_schema", t)).partition("(")[0] for t in numbers} == {
        "aten::sym_size.int",
        "executorch_prim::mul.Scalar",
    }
    assert not is_sym_op(aten.add.Tensor) and is_sym_op(torch.sym_max)


class Sized(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, torch.ones(x.shape[0] * 2)])


def test_tables_of_dim_orders_are_inverse() -> None:
    clone = aten.clone.default
    assert str(DimOrderOpsMap[clone]._schema).startswith("dim_order_ops::_clone_dim_order(")
    assert {MemoryFormatOpsMap[order] for order in DimOrderOpsMap.values()} == set(DimOrderOpsMap)


def test_a_tensor_without_values_has_its_dim_order() -> None:
    made = torch.ops.dim_order_ops._empty_dim_order((2, 3, 4, 5), dim_order=[0, 2, 3, 1])
    assert made.is_contiguous(memory_format=torch.channels_last)
    assert torch.ops.dim_order_ops._empty_dim_order.out([2, 3], out=torch.ones(2, 3)).shape == (
        2,
        3,
    )


def test_requantisation_is_skipped() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    how = (0.5, 3, -128, 127, torch.int8)
    real = graph.call_function(q.dequantize_per_tensor.default, (x, *how))
    same = graph.call_function(q.quantize_per_tensor.default, (real, *how))
    other = graph.call_function(q.quantize_per_tensor.default, (real, 0.25, *how[1:]))
    graph.output((same, other))
    module = torch.fx.GraphModule({}, graph)
    value = torch.arange(-3, 3, dtype=torch.int8)
    wanted = module(value)
    eliminate_dq_q(module, [real])
    assert graph.output_node().args[0] == (x, other)
    torch.testing.assert_close(module(value), wanted)


def test_weights_with_gradients_are_marked() -> None:
    program = to_edge(torch.export.export(nn.Linear(2, 3), (torch.ones(1, 2),))).exported_program()
    signature = program.graph_signature
    signature.output_specs.append(
        OutputSpec(OutputKind.GRADIENT_TO_PARAMETER, TensorArgument("grad"), "weight")
    )
    module = SpecPropPass()(program.graph_module).graph_module
    nodes = {node.name: node for node in module.graph.find_nodes(op="placeholder")}
    for spec in signature.input_specs:
        if spec.kind == InputKind.PARAMETER:
            nodes[spec.arg.name].meta["spec"].const = True
    assert external_mutable_weights_pass(module, program).modified
    marked = [name for name, node in nodes.items() if "constant_tag" in node.meta]
    assert marked == ["p_weight"]


def test_the_passes_to_out_variants_are_listed() -> None:
    program = to_edge(torch.export.export(Sized(), (torch.ones(3),))).exported_program()
    module = program.graph_module
    for one in edge_to_executorch_passes(ExecutorchBackendConfig()):
        module = one(module).graph_module
    calls = [n.target for n in module.graph.nodes if n.op == "call_function"]
    assert aten.cat.out in calls


def test_operators_are_found_by_their_schemas() -> None:
    torchgen = pytest.importorskip("torchgen.model")
    for operator, outs in ((aten.topk.values, ("values", "indices")), (aten.add.out, ("out",))):
        parsed = torchgen.FunctionSchema.parse(str(operator._schema))
        assert get_out_args_from_schema(parsed) == outs
        assert schema_to_opoverload(parsed) is operator
    unknown = torchgen.FunctionSchema.parse("aten::no_such_one(Tensor x) -> Tensor")
    with pytest.raises(ExportError, match="no operator aten::no_such_one"):
        schema_to_opoverload(unknown)


class Branches(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.neg(), lambda x: x.abs(), (x,))


def test_branches_are_walked_after_their_graph() -> None:
    module = torch.export.export(Branches(), (torch.ones(2),)).graph_module
    parts = get_cond_while_submodules(module)
    assert [inner for _, inner, _ in parts] == [
        getattr(module, name) for name, _, _ in parts
    ] and len(parts) == 2
    assert get_scan_submodules(module) == []
    seen: list[Any] = []
    bfs_trace_with_node_process(module, lambda node: seen.append(node.graph.owning_module))
    assert list(dict.fromkeys(seen)) == [module, *(inner for _, inner, _ in parts)]


def test_numbers_of_files_are_those_of_torch() -> None:
    assert all(get_scalar_type(scalar_type_enum(d)) == d for d in enum_to_scalar_map.values())
    assert (layout_enum(torch.strided), memory_format_enum(torch.preserve_format)) == (0, 1)
    with pytest.raises(ExportError, match=r"torch\.sparse_csr has no number"):
        layout_enum(torch.sparse_csr)


def test_python_lines_are_shown_as_python_does() -> None:
    frames = schema.FrameList([schema.Frame("a.py", 7, "forward", "x = x + 1")])
    told = io.StringIO(pretty_print_stacktraces(frames))
    assert told.readline().startswith("Traceback (most recent call last):")
    assert told.readline().strip() == 'File "a.py", line 7, in forward'
