"""Programs that are run by torch's operators, the check of Core ATen, and the older tracer."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from torch import nn
from torch._export.verifier import SpecViolationError

import rushlight as rl
from rushlight.edge import EdgeCompileConfig
from rushlight.edge.operators import ops
from rushlight.exir import interpreter, verifier
from rushlight.exir.dialects import edge_yaml
from rushlight.exir.manager import to_edge
from rushlight.exir.older.export_graph import ExportGraph
from rushlight.exir.older.program_page import gen_html
from rushlight.exir.older.tracing import dispatch_trace, flatten_output, flattened_dispatch_trace
from rushlight.schema import program as schema


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        low, high = torch.split(self.linear(x) * y, 2, dim=1)
        values, indices = torch.topk(low + high, 1)
        return torch.cat([values, low], 1), indices


def finished(model: nn.Module, *args: torch.Tensor) -> schema.Program:
    manager: Any = to_edge(torch.export.export(model.eval(), args)).to_executorch()
    program: schema.Program = manager.executorch_program
    return program


def test_a_program_computes_what_eager_does() -> None:
    torch.manual_seed(0)
    model, args = Model(), (torch.randn(3, 4), torch.randn(3, 4))
    run = interpreter.Interpreter(finished(model, *args))
    for given in (args, tuple(torch.randn(3, 4) for _ in args)):
        torch.testing.assert_close(run.run(*given), list(model(*given)))
    shapes = {tuple(one.shape) for one in run.get_constant_tensors()}
    assert shapes == {(4, 4), (4,)}
    assert torch.ops.aten.topk.values in run.get_operators_list()
    with pytest.raises(rl.ExportError, match="takes 2 flat inputs, and 1 were given"):
        run.run(args[0])


def test_values_are_of_the_programs_kinds() -> None:
    comp = interpreter.comp_types
    assert comp(schema.Int(1), 2) and not comp(schema.Int(1), 2.0)
    assert comp(schema.TensorList([0]), [torch.ones(1)])
    assert not comp(schema.BoolList([True]), [1]) and not comp(schema.Tensor(), 1)
    with pytest.raises(rl.ExportError, match="where the program has Null"):
        comp(schema.Null(), 1)
    with pytest.raises(rl.ExportError, match=r"torch has no operator acme::snake\.out"):
        interpreter.resolve_op(schema.Operator("acme::snake", "out"))
    run = interpreter.Interpreter(finished(Model(), torch.ones(1, 4), torch.ones(1, 4)))
    place = run.execution_plan.inputs[0]
    with pytest.raises(rl.ExportError, match=rf"value {place} of the program is Tensor"):
        run.set_value(place, 3)
    run.set_value(place, torch.zeros(1, 4))
    assert bool((run.load_value(place) == 0).all())


def test_a_page_lists_operators_and_constants() -> None:
    page = ElementTree.fromstring(gen_html(finished(Model(), torch.ones(1, 4), torch.ones(1, 4))))
    assert [one.text for one in page.iter("span") if one.text] == [
        "Operator List",
        "Constant Tensor List",
    ]
    lines = [one.text or "" for one in page.iter("div")]
    assert "aten.topk.values" in lines and any(line.startswith("tensor(") for line in lines)


def test_core_aten_is_checked() -> None:
    class Normed(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.instance_norm(x)

    captured = torch.export.export(Normed(), (torch.ones(1, 2, 3),))
    operator = torch.ops.aten.instance_norm.default
    with pytest.raises(SpecViolationError, match=r"aten\.instance_norm\.default is not of Core"):
        verifier.EXIRATenDialectVerifier()(captured)
    verifier.EXIRATenDialectVerifier()(captured.run_decompositions())
    for excepted in (
        {"core_aten_ops_exception_list": [operator]},
        {"preserve_ops": [operator]},
        {"edge_compile_config": EdgeCompileConfig(preserve_ops=[operator])},
    ):
        verifier.EXIRATenDialectVerifier(**excepted)(captured.graph_module)
    off = verifier.get_aten_verifier(EdgeCompileConfig(_check_ir_validity=False))
    assert off is verifier.EXIRATenDialectVerifierBase
    on = verifier.get_aten_verifier(EdgeCompileConfig())
    assert issubclass(on, verifier.EXIRATenDialectVerifierBase)
    with pytest.raises(rl.ExportError, match="which returns a view"):
        verifier.EXIRATenDialectVerifier(preserve_ops=[torch.ops.aten.view.default])


def test_calls_of_a_function_are_traced() -> None:
    def function(x: dict[str, torch.Tensor], n: int) -> Any:
        y = (x["a"] * 1).view(-1)
        y.add_(n)
        return {"sum": y.sum(), "both": (x["a"].t(), y)}

    given = {"a": torch.ones(2, 3)}
    module: Any = dispatch_trace(function, (given, 2))
    assert bool((given["a"] == 1).all()), "the arguments are not changed"
    expected = function({"a": torch.ones(2, 3)}, 2)
    leaves = torch.utils._pytree.tree_leaves(({"a": torch.ones(2, 3)}, 2))
    results = module(*leaves)
    torch.testing.assert_close(
        torch.utils._pytree.tree_unflatten(results, module.out_spec), expected
    )
    names = [n.name for n in module.graph.find_nodes(op="placeholder")]
    assert names == ["ph_0", "ph_1"] and module.in_spec.num_leaves == 2
    calls = [n.target for n in module.graph.nodes if n.op == "call_function"]
    assert not any(op._schema.is_mutable or op.is_view for op in calls)
    linear = nn.Linear(3, 2)
    traced, result = flattened_dispatch_trace(linear, (torch.ones(1, 3),), set())
    torch.testing.assert_close(traced(torch.ones(1, 3)), [result])
    with pytest.raises(rl.ExportError, match="returns 3, which is no tensor"):
        dispatch_trace(lambda x: 3, (torch.ones(1),))
    wrong: Any = [torch.ones(1)]
    with pytest.raises(rl.ExportError, match="args is a list"):
        flattened_dispatch_trace(torch.sin, wrong)


def test_outputs_become_flat() -> None:
    module = torch.fx.symbolic_trace(lambda x: {"a": x + 1, "b": (x, x * 2)})
    flatten_output(module)
    assert [
        bool((one == want).all())
        for one, want in zip(module(torch.ones(1)), (2, 1, 2), strict=True)
    ] == [
        True,
        True,
        True,
    ]


def test_constants_of_a_graph_get_specs() -> None:
    module = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(3, 2)))
    graph = ExportGraph(module, module.graph)
    with graph.inserting_before(next(iter(graph.nodes))):
        weight = graph.get_attr("0.weight")
        layer = graph.get_attr("0")
    assert weight.meta["spec"].const and list(weight.meta["spec"].shape) == [2, 3]
    assert "spec" not in layer.meta
    graph.erase_node(weight)
    assert weight not in list(graph.nodes)


def test_names_and_kinds_of_tensors() -> None:
    found = edge_yaml.get_func_schema("aten::native_layer_norm")
    assert edge_yaml.get_func_name_yaml(found) == "aten::native_layer_norm"
    assert edge_yaml.get_tensor_variable_names(found) == (
        ["input", "__ret_0", "__ret_1", "__ret_2"],
        ["weight", "bias"],
        ["input", "weight", "bias", "__ret_0", "__ret_1", "__ret_2"],
    )
    first, _, weight = found.arguments[:3]
    assert edge_yaml.is_essential_tensor_arg(first) and edge_yaml.is_optional_tensor_arg(weight)
    assert not edge_yaml.is_essential_tensor_arg(weight)
    assert edge_yaml.in_legal_edge_type([torch.ones(1), 3])
    assert not edge_yaml.in_legal_edge_type([torch.ones(1, dtype=torch.float8_e5m2)])
    assert ops.edge.aten.add.Tensor._schema.name == edge_yaml.get_func_schema("aten::add.out").name
    with pytest.raises(rl.ExportError, match="has no overload 'nope'; it has"):
        edge_yaml.get_func_schema("aten::add.nope")
