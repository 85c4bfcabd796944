"""emit: values, instructions and constants as the format wants them."""

import numpy as np
import pytest
import torch
from graphs import captured

from rushlight.edge import ExecutorchBackendConfig, MemoryPlanningPass
from rushlight.errors import ExportError
from rushlight.pipeline import ExecutorchProgramManager, to_edge
from rushlight.schema import program as schema
from rushlight.serialize.ptd import read_ptd
from rushlight.serialize.pte import read_pte


def _program(function, *args, **config) -> ExecutorchProgramManager:  # type: ignore[no-untyped-def]
    edge = to_edge(captured(function, *args))
    return edge.to_executorch(ExecutorchBackendConfig(**config))


def _plan(manager: ExecutorchProgramManager) -> schema.ExecutionPlan:
    return manager.executorch_program.execution_plan[0]


def test_arguments_are_in_schema_order_and_end_with_the_alias() -> None:
    plan = _plan(_program(lambda x: torch.topk(x, 2), torch.randn(5)))
    (instruction,) = plan.chains[0].instructions
    call = instruction.instr_args
    kinds = [type(plan.values[i].val).__name__ for i in call.args]
    assert kinds == ["Tensor", "Int", "Int", "Bool", "Bool", "Tensor", "Tensor", "TensorList"]
    assert plan.values[call.args[-1]].val.items == call.args[5:7]
    assert [(o.name, o.overload) for o in plan.operators] == [("aten::topk", "values")]


def test_one_result_is_its_own_alias_and_lists_hold_indices() -> None:
    plan = _plan(_program(lambda x: x.permute(1, 0), torch.randn(2, 3)))
    call = plan.chains[0].instructions[0].instr_args
    assert call.args[-1] == call.args[-2] == plan.outputs[0]
    dims = plan.values[call.args[1]].val
    assert [plan.values[i].val.int_val for i in dims.items] == [1, 0]


def test_a_list_of_results_and_optional_tensors() -> None:
    split = _plan(_program(lambda x: torch.split(x, [1, 2]), torch.randn(3)))
    call = split.chains[0].instructions[0].instr_args
    lists = [split.values[i].val for i in call.args[-2:]]
    assert all(isinstance(v, schema.TensorList) for v in lists)
    assert lists[0].items == lists[1].items and call.args[-1] != call.args[-2]
    index = _plan(_program(lambda x, i: x[:, i], torch.randn(2, 3), torch.tensor([0, 2])))
    call = index.chains[0].instructions[0].instr_args
    value = index.values[call.args[1]].val
    assert isinstance(value, schema.OptionalTensorList) and value.items[0] == -1


def test_equal_constants_are_stored_once_across_methods() -> None:
    shared = torch.nn.Linear(16, 16)

    class Other(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = shared
            self.copy = torch.nn.Parameter(shared.weight.detach().clone())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x) @ self.copy

    x = torch.randn(1, 16)
    manager = to_edge({"a": captured(shared, x), "b": captured(Other(), x)}).to_executorch()
    assert [p.name for p in manager.executorch_program.execution_plan] == ["a", "b"]
    read = read_pte(manager.buffer)
    assert [len(bytes(c)) for c in read.constants[1:]] == [16 * 16 * 4, 16 * 4]


def test_constant_methods_hold_their_values() -> None:
    edge = to_edge(
        captured(torch.nn.ReLU(), torch.randn(2)),
        constant_methods={"limit": 7, "info": {"name": "m", "rates": [0.5, True], "none": None}},
    )
    plans = {p.name: p for p in edge.to_executorch().executorch_program.execution_plan}
    assert plans["limit"].values[0].val == schema.Int(7)
    values = [v.val for v in plans["info"].values]
    assert values == [schema.String("m"), schema.Double(0.5), schema.Bool(True), schema.Null()]
    with pytest.raises(ExportError, match="'forward' has the name of a traced method"):
        to_edge(
            captured(torch.nn.ReLU(), torch.randn(2)), constant_methods={"forward": 1}
        ).to_executorch()


class _State(torch.nn.Module):
    def __init__(self, initial: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("state", initial)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state.add_(x)
        return self.state * 2.0


def test_only_state_that_is_not_zero_is_stored() -> None:
    zero = _program(_State(torch.zeros(3)), torch.ones(3))
    assert len(read_pte(zero.buffer).mutable_data) == 1
    manager = _program(_State(torch.tensor([1.0, 2.0, 3.0])), torch.ones(3))
    read = read_pte(manager.buffer)
    stored = np.frombuffer(bytes(read.mutable_data[1])[:12], np.float32)
    assert stored.tolist() == [1.0, 2.0, 3.0]
    tensors = [v.val for v in _plan(manager).values if isinstance(v.val, schema.Tensor)]
    state = [t for t in tensors if t.data_buffer_idx and t.allocation_info]
    assert len(state) == 1


def test_unplanned_inputs_and_outputs_have_no_memory() -> None:
    planning = MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False)
    plan = _plan(_program(lambda x: x.sin().cos(), torch.randn(4), memory_planning_pass=planning))
    ends = [plan.values[i].val for i in (*plan.inputs, *plan.outputs)]
    assert all(t.allocation_info is None and t.data_buffer_idx == 0 for t in ends)
    assert plan.non_const_buffer_sizes == [0, 16]


def test_external_constants_go_to_their_files() -> None:
    linear = torch.nn.Linear(4, 4)
    manager = _program(
        linear,
        torch.randn(1, 4),
        external_constants=lambda node: "weights" if "weight" in node.name else None,
    )
    (name, data), *rest = manager.data_files().items()
    assert name == "weights" and not rest
    entry = read_ptd(data)["weight"]
    assert np.frombuffer(bytes(entry.data), np.float32).reshape(4, 4).tolist() == (
        linear.weight.tolist()
    )
    external = [
        v.val.extra_tensor_info
        for v in _plan(manager).values
        if isinstance(v.val, schema.Tensor) and v.val.extra_tensor_info
    ]
    assert [e.fully_qualified_name for e in external] == ["weight"]
    assert external[0].location == schema.TensorDataLocation.EXTERNAL
    assert len(read_pte(manager.buffer).constants) == 2  # the bias


def test_dynamic_sizes_are_bounds_and_computed_sizes_are_values() -> None:
    class Flatten(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x + 1).reshape(x.shape[0] * 2, -1) * 2

    batch = torch.export.Dim("batch", min=2, max=8)
    program = torch.export.export(Flatten(), (torch.randn(3, 6),), dynamic_shapes={"x": {0: batch}})
    manager = to_edge(program).to_executorch()
    plan = _plan(manager)
    x = plan.values[plan.inputs[0]].val
    assert x.sizes == [8, 6]
    assert x.shape_dynamism == schema.TensorShapeDynamism.DYNAMIC_BOUND
    names = [f"{o.name}.{o.overload}" for o in plan.operators]
    assert "aten::sym_size.int" in names and "executorch_prim::mul.Scalar" in names
    assert "executorch_prim::et_view.default" in names


def test_instructions_lead_back_to_python() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x.sin()
            return y.cos()

    manager = _program(Model(), torch.randn(2), emit_stacktrace=True)
    frames = [f.items[0] for f in _plan(manager).chains[0].stacktrace]
    assert [f.context for f in frames] == ["y = x.sin()", "return y.cos()"]
    assert frames[1].lineno == frames[0].lineno + 1
    assert manager.debug_handle_map["forward"] == {0: 1, 1: 2}
    nodes = manager.debug_map.methods["forward"].instructions
    wanted = [("sin", "aten.sin.default"), ("cos", "aten.cos.default")]  # as the model calls them
    assert [node[:2] for node in nodes] == wanted
    assert not any(node.line.file.startswith("/") for node in nodes)
