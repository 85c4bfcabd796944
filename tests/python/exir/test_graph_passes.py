"""ExecuTorch's passes over graphs: each leaves what eager computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

import rushlight as rl
from rushlight.edge import EdgeCompileConfig
from rushlight.errors import ExportError
from rushlight.exir.graph_passes import (
    backend_numbers,
    handles,
    layouts,
    numbers_to_tensors,
    program_passes,
    removals,
    respelling,
    views,
)
from rushlight.exir.graph_passes.lists import (
    base_post_op_replace_passes,
    base_pre_op_replace_passes,
)
from rushlight.exir.graph_passes.shapes import ConstraintBasedSymShapeEvalPass
from rushlight.exir.graph_passes.spec_prop import SpecPropPass
from rushlight.exir.graph_passes.submodules import create_submodule_from_nodes
from rushlight.exir.manager import to_edge
from rushlight.exir.passes import constant_prop_pass
from rushlight.ir.alloc import view

aten = torch.ops.aten
X = torch.linspace(-2, 2, 48).reshape(1, 3, 4, 4)


def traced(function: Any, *inputs: torch.Tensor) -> GraphModule:
    module: GraphModule = make_fx(function, tracing_mode="fake")(*inputs)
    return module


def targets(module: GraphModule) -> list[Any]:
    return [node.target for node in module.graph.nodes if node.op == "call_function"]


CASES = [
    (removals.CSEPass(), lambda x: torch.neg(x) + torch.neg(x), aten.neg.default, 1),
    (
        removals.RemoveNoopPass(),
        lambda x: aten.slice_copy(x, 0, 0, 9) + x,
        aten.slice_copy.Tensor,
        0,
    ),
    (removals.RemoveToCopyPass(), lambda x: aten._to_copy(x) + x, aten._to_copy.default, 0),
    (removals.PruneEmptyTensorsPass(), lambda x: torch.cat([x, x[:0]]), aten.slice.Tensor, 0),
    (removals.PruneEmptyTensorsPass(), lambda x: torch.cat([x[:0], x[:0]]), aten.cat.default, 0),
    (respelling.NormalizeTransposePass(), lambda x: x[0, 0].t() + 1, aten.t_copy.default, 1),
    (
        respelling.ReplaceBrokenOpsWithFunctionalOpsPass(),
        lambda x: x[0] + 1,
        aten.select_copy.int,
        1,
    ),
    (respelling.OpReplacePass(), lambda x: x + 1, aten.add.Tensor, 1),
    (numbers_to_tensors.ScalarToTensorPass(), lambda x: x * 3.5, aten.mul.Tensor, 1),
    (
        numbers_to_tensors.RemoveMixedTypeOperators(),
        lambda x: x.int() // 1 + x,
        aten.add.Tensor,
        1,
    ),
    (
        layouts.MemoryFormatOpsPass(),
        lambda x: x.clone(memory_format=torch.channels_last) + 1,
        torch.ops.dim_order_ops._clone_dim_order.default,
        1,
    ),
    (
        layouts.DimOrderOpsRevertPass(),
        lambda x: torch.ops.dim_order_ops._clone_dim_order(x, dim_order=[0, 2, 3, 1]) + 1,
        aten.clone.default,
        1,
    ),
    (
        layouts.LegalizePortableDimOrderPass(),
        lambda x: x.to(memory_format=torch.channels_last).mean(1),
        torch.ops.dim_order_ops._to_dim_order_copy.default,
        1,
    ),
    (
        views.NormalizeViewCopyBasePass(),
        lambda x: aten.view_copy(aten.view_copy(x, [48]), [6, 8]) + 1,
        aten.view_copy.default,
        2,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: type(case[0]).__name__)
def test_a_pass_keeps_what_a_graph_computes(case: tuple[Any, Any, Any, int]) -> None:
    one, function, target, count = case
    module = traced(function, X)
    result = one(module)
    assert result.modified
    assert targets(result.graph_module).count(target) == count
    is_layout = type(one).__module__.endswith("layouts")
    torch.testing.assert_close(result.graph_module(X), function(X), check_stride=is_layout)


def test_an_empty_tensor_that_decides_the_dtype_stays() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x[:0].double(), x.int()])

    result = removals.PruneEmptyTensorsPass()(traced(function, X))
    assert not result.modified
    torch.testing.assert_close(result.graph_module(X), function(X))


def test_specs_do_not_fix_sizes_that_vary() -> None:
    class Flat(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x + 1).view(-1).relu()

    shapes = ({0: torch.export.Dim("n", max=9)},)
    edge = to_edge(torch.export.export(Flat(), (torch.ones(3, 4),), dynamic_shapes=shapes))
    module = SpecPropPass()(edge.exported_program().graph_module).graph_module
    module = views.ReplaceViewCopyWithViewPass()(module).graph_module
    assert view in targets(module)
    specs = [node.meta["spec"] for node in module.graph.nodes if node.op == "call_function"]
    assert all("shape=[" in spec.debug() for spec in specs)
    ConstraintBasedSymShapeEvalPass()(module)
    assert [spec.shape for spec in specs] == [[9, 4], [36], [36]]


def test_views_share_their_bases() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return aten.view_copy(x, [6, 8]) + 1

    module = SpecPropPass()(traced(function, X)).graph_module
    result = views.ReplaceViewCopyWithViewPass()(module).graph_module
    shown = next(node for node in result.graph.nodes if node.target is view)
    shown.args[0].meta["spec"].mem_offset = 64
    assert (shown.meta["spec"].mem_offset, shown.meta["spec"].shape) == (64, [6, 8])
    torch.testing.assert_close(result(X), function(X))


def test_sizes_become_operators_of_the_runtime() -> None:
    class Sized(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.new_ones(x.shape[0] * 2 + 1)

    shapes = ({0: torch.export.Dim("n", max=9)},)
    captured = torch.export.export(Sized(), (torch.ones(3),), dynamic_shapes=shapes)
    result = backend_numbers.EdgeToBackendOpsPass()(captured.graph_module)
    names = [str(target) for target in targets(result.graph_module)]
    assert [name for name in names if "executorch_prim" in name] == [
        "executorch_prim.mul.Scalar",
        "executorch_prim.add.Scalar",
    ]


def test_handles_are_given_to_all_calls(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    program = to_edge(torch.export.export(model, (torch.ones(2, 4),))).exported_program()
    module = handles.DebugHandleGeneratorPass()(program.graph_module).graph_module
    calls = [n for n in module.graph.nodes if n.op == "call_function"]
    assert {node.meta["debug_handle"] for node in calls} == {1, 2}  # one for each call of the model
    del calls[0].meta["debug_handle"]
    handles.generate_missing_debug_handles(program)
    assert calls[0].meta["debug_handle"] == 3
    log = tmp_path / "graph.txt"
    handles.DebugPass("the graph", show_spec=True, log_filename=str(log))(module)
    assert log.read_text().startswith("the graph\n") and "linear" in log.read_text()


def test_new_values_of_buffers_are_written() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count += 1
            return x + self.count

    program = to_edge(torch.export.export(Counter(), (torch.ones(1),))).exported_program()
    module, signature = program_passes.insert_write_back_for_buffers_pass(program)
    assert targets(module).count(aten.copy_.default) == 1
    first = module.graph.output_node().args[0][0]  # type: ignore[index]
    assert list(signature.buffers_to_mutate) == [first.name]  # type: ignore[union-attr]


def test_constants_are_lifted_and_laid_out() -> None:
    program = torch.export.export(nn.ReLU(), (X,))
    program._graph_module = numbers_to_tensors.ScalarToTensorPass()(
        traced(lambda x: torch.relu(x) * 2.5, X)
    ).graph_module
    output = program.graph.output_node()
    output.args = (output.args,)
    placeholder = next(iter(program.graph.nodes))
    program.graph_signature.input_specs[0].arg.name = placeholder.name
    lifted = program_passes.lift_constant_tensor_pass(program)
    assert list(lifted.constants) == ["_lifted_tensor_constant0"]

    class Held(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("c", torch.randn(4, 3).t())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.c

    inputs = (torch.randn(3, 4),)
    captured = torch.export.export(Held(), inputs)
    expected = captured.module()(*inputs)
    laid_out = layouts.convert_constant_dim_order_pass(captured)
    assert laid_out.state_dict["c"].is_contiguous()
    torch.testing.assert_close(laid_out.module()(*inputs), expected)


def test_passes_are_registered_by_name() -> None:
    registry = program_passes.PassRegistry

    @registry.register()
    def leave_it(module: GraphModule) -> None:
        """Does nothing."""

    assert registry.get("leave_it") == [leave_it]
    with pytest.warns(UserWarning, match="leave_it"):
        registry.register_list("leave_it", [])
    del registry.registry["leave_it"]


class Split(nn.Module):
    """An operator of several results, and calls of them."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        a, b = torch.split(x + y, 2)
        return (a - y[:2]) / b


def test_nodes_become_a_graph_of_their_own() -> None:
    inputs = (torch.arange(1.0, 5.0), torch.ones(4))
    program = to_edge(torch.export.export(Split(), inputs)).exported_program()
    module = program.graph_module
    taken = (aten.add.Tensor, aten.split_with_sizes_copy.default)
    nodes = [node for node in module.graph.nodes if node.target in taken]
    inner, call = create_submodule_from_nodes(module, nodes, "tag")
    outputs: Any = inner.graph.output_node().args[0]
    assert (call.target, len(outputs)) == ("fused_tag", 2)
    torch.testing.assert_close(program.module()(*inputs), Split()(*inputs))
    with pytest.raises(ExportError, match="of one graph"):
        create_submodule_from_nodes(module, nodes, "again")


def test_calls_of_a_new_graph_are_in_order() -> None:
    def steps(x: torch.Tensor) -> torch.Tensor:
        first = x + 1
        early = first * 2
        second = first - 3
        other = x * 5
        return second + early + other

    module = traced(steps, torch.ones(3))
    wanted = module(torch.arange(3.0))
    taken = (aten.add.Tensor, aten.sub.Tensor)
    nodes = [n for n in module.graph.nodes if n.target in taken][:2]
    _, call = create_submodule_from_nodes(module, nodes, "tag")
    assert call in module.graph.nodes
    module.graph.lint()  # type: ignore[no-untyped-call]
    torch.testing.assert_close(module(torch.arange(3.0)), wanted)


def test_a_new_graph_does_not_need_its_own_results() -> None:
    module = traced(lambda x: (x + 1).neg() - 2, torch.ones(3))
    nodes = [n for n in module.graph.nodes if n.target in (aten.add.Tensor, aten.sub.Tensor)]
    with pytest.raises(ExportError, match="fused_tag would need its own results, by neg"):
        create_submodule_from_nodes(module, nodes, "tag")


def test_propagated_constants_have_executorchs_names() -> None:
    class Doubled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Parameter(torch.ones(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + (self.a + self.a)

    program = torch.export.export(Doubled(), (torch.ones(3),))
    result = constant_prop_pass(program)
    assert (list(result.constants), list(result.state_dict)) == (["_prop_tensor_constant0"], [])
    torch.testing.assert_close(result.module()(torch.ones(3)), torch.full((3,), 3.0))


def test_memory_formats_are_kept_where_dim_orders_are_not_wanted() -> None:
    class Last(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.to(memory_format=torch.channels_last) + 1

    kept = EdgeCompileConfig(_skip_dim_order=True)
    manager = to_edge(torch.export.export(Last(), (X,)), compile_config=kept)
    assert aten._to_copy.default in targets(manager.exported_program().graph_module)
    torch.testing.assert_close(rl.load(manager.to_executorch().buffer)(X), Last()(X))


def test_the_passes_of_the_lowering_keep_what_a_graph_computes() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return (x[0, 0].t() * 2.5 + 1).to(torch.float32)

    module = traced(function, X)
    for one in (*base_pre_op_replace_passes, *base_post_op_replace_passes):
        module = one(module).graph_module
    assert not any(target in (aten.t.default, aten.select.int) for target in targets(module))
    torch.testing.assert_close(module(X), function(X))
