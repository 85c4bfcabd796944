"""Passes that users write: `ExportPass`, also on graphs with branches, and passes over programs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._higher_order_ops import scan, while_loop
from torch._higher_order_ops.map import map as torch_map
from torch.export import Dim, ExportedProgram
from torch.fx import Graph, GraphModule
from torch.fx.passes.infra.pass_base import PassBase, PassResult

import rushlight as rl
from rushlight.edge import ExportPass, PassManager
from rushlight.edge.export_pass import Argument, NodeMetadata, ProxyValue, map_args
from rushlight.edge.pass_manager import (
    ExportedProgramPassBase,
    ExportedProgramPassManager,
    ExportedProgramPassResult,
)


class TanhForSigmoid(ExportPass):
    """The pass of docs/edge.md."""

    def call_operator(
        self, op: Any, args: tuple[Argument, ...], kwargs: dict[str, Argument], meta: NodeMetadata
    ) -> ProxyValue:
        if op is torch.ops.aten.sigmoid.default:
            op = torch.ops.aten.tanh.default
        return super().call_operator(op, args, kwargs, meta)


class Branch(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def negative(a: torch.Tensor) -> torch.Tensor:
            return torch.cond(a.sum() < -2, self.layer, lambda b: b.sigmoid(), (a,))

        y = x.sigmoid() - 1
        return torch.cond(y.sum() > 0, lambda a: a.sigmoid() + 1, negative, (y,)) * y


class Loop(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def more(a: torch.Tensor) -> torch.Tensor:
            return a.sigmoid().sum() < 4.5

        return while_loop(more, lambda a: (a + a.sigmoid() + 1,), (x.sigmoid(),))[0]


class Scan(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def body(carry: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            new = (carry + row).sigmoid()
            return new, new * 2

        start = x.sigmoid()
        return scan(body, start[0], start)[1] + torch_map(lambda row: row.sigmoid(), start)


@pytest.mark.parametrize("model", [Branch(), Loop(), Scan()], ids=lambda m: type(m).__name__)
def test_branches_are_rebuilt_too(model: torch.nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = (torch.randn(2, 3), torch.ones(2, 3) * 9, -torch.ones(2, 3) * 9)
    before = rl.to_edge(torch.export.export(model, examples[:1]))
    text = before.exported_program().graph_module.print_readable(print_output=False)
    same = before.transform([ExportPass()])
    after = before.transform([TanhForSigmoid()])
    code = after.exported_program().graph_module.print_readable(print_output=False)
    assert "aten.tanh" not in text and "aten.tanh" in code and "aten.sigmoid" not in code
    # The given module is unchanged.
    assert before.exported_program().graph_module.print_readable(print_output=False) == text
    kept = rl.load(same.to_executorch().buffer)
    for x in examples:
        torch.testing.assert_close(torch.from_numpy(kept(x).numpy()), model(x).detach())
    changed = rl.load(after.to_executorch().buffer)
    monkeypatch.setattr(torch.Tensor, "sigmoid", torch.Tensor.tanh)
    for x in examples:
        torch.testing.assert_close(torch.from_numpy(changed(x).numpy()), model(x).detach())


def test_passes_of_torch_are_passes() -> None:
    class Doubles(PassBase):
        def call(self, graph_module: torch.fx.GraphModule) -> PassResult:
            for node in graph_module.graph.nodes:
                if node.op == "call_function" and "add.Tensor" in str(node.target):
                    node.args = (node.args[0], node.args[0])
            return PassResult(graph_module, True)

    class Sum(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y

    x, y = torch.randn(3), torch.randn(3)
    edge = rl.to_edge(torch.export.export(Sum(), (x, y))).transform([Doubles()])
    torch.testing.assert_close(rl.load(edge.to_executorch().buffer)(x, y), x * 2)
    with pytest.raises(rl.ExportError, match="returned int: a pass must return a PassResult"):
        edge.transform([lambda graph_module: 3])


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = torch.tensor([2.0, 3.0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor


class DoubleConstants(ExportedProgramPassBase):
    def call(self, exported_program: ExportedProgram) -> ExportedProgramPassResult:
        for name, value in exported_program.constants.items():
            exported_program.constants[name] = value * 2
        return ExportedProgramPassResult(exported_program, True)


def to_sums(module: GraphModule) -> None:
    for node in module.graph.nodes:
        if node.target == torch.ops.aten.mul.Tensor:
            node.target = torch.ops.aten.add.Tensor


def test_a_pass_over_a_program_changes_constants() -> None:
    x = torch.randn(2)
    before = rl.to_edge(torch.export.export(Scaled(), (x,)))
    after = before.transform([DoubleConstants()])
    torch.testing.assert_close(rl.load(after.to_executorch().buffer)(x), 2 * Scaled()(x))
    torch.testing.assert_close(rl.load(before.to_executorch().buffer)(x), Scaled()(x))


def test_managers_run_both_kinds_of_passes_in_order() -> None:
    x = torch.randn(2)
    program = rl.to_edge(torch.export.export(Scaled(), (x,))).exported_program()
    made = ExportedProgramPassManager([[DoubleConstants()], to_sums])(program)
    assert made.modified
    torch.testing.assert_close(made.exported_program.module()(x), x + 2 * Scaled().factor)


def test_a_manager_checks_graphs_after_each_pass() -> None:
    def add_method(module: GraphModule) -> None:
        output = module.graph.output_node()
        with module.graph.inserting_before(output):
            module.graph.call_method("relu", (output.args[0][0],))

    def graph() -> GraphModule:
        return (
            rl.to_edge(torch.export.export(Scaled(), (torch.ones(2),)))
            .exported_program()
            .graph_module
        )

    PassManager([add_method])(graph())
    with pytest.raises(rl.ExportError, match="relu is a call_method of 'relu'"):
        PassManager([add_method], run_checks_after_each_pass=True)(graph())


class Counted(ExportPass):
    """Counts the calls of each method."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: NodeMetadata) -> ProxyValue:
        self.seen.append("operator")
        return super().call_operator(op, args, kwargs, meta)

    def call_getitem(self, value: ProxyValue, key: int, meta: NodeMetadata) -> ProxyValue:
        self.seen.append("getitem")
        return super().call_getitem(value, key, meta)

    def call_cond(self, pred: Any, true_fn: Any, *args: Any) -> ProxyValue:
        assert isinstance(true_fn, GraphModule)
        self.seen.append("cond")
        return super().call_cond(pred, true_fn, *args)

    def call_sym(self, target: Any, args: Any, meta: NodeMetadata) -> ProxyValue:
        self.seen.append(f"sym {target.__name__}")
        return super().call_sym(target, args, meta)


def test_kinds_of_calls_have_methods() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: a - 1, (x,))
            return torch.topk(y.reshape(x.shape[0] * 2, 2), 1)[0]

    x = torch.randn(3, 4)
    captured = torch.export.export(Model(), (x,), dynamic_shapes=({0: Dim("n", max=8)},))
    edge = rl.to_edge(captured)
    counted = Counted()
    made = counted(edge.exported_program().graph_module)
    assert not made.modified
    assert {"operator", "getitem", "cond", "sym mul"} <= set(counted.seen)
    torch.testing.assert_close(made.graph_module(x)[0], Model()(x))


def test_a_new_dtype_reaches_the_values_that_follow() -> None:
    class ToDouble(ExportPass):
        def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> ProxyValue:
            value = super().call_operator(op, args, kwargs, meta)
            if op != torch.ops.aten.neg.default:
                return value
            cast = torch.ops.dim_order_ops._to_dim_order_copy.default
            return super().call_operator(cast, (value,), {"dtype": torch.float64}, meta)

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (-x).abs().sqrt()

    graph = rl.to_edge(torch.export.export(Model(), (torch.ones(2),))).exported_program().graph
    made = ToDouble()(graph.owning_module)
    assert made.modified
    dtypes = [n.meta["val"].dtype for n in made.graph_module.graph.nodes if n.op == "call_function"]
    assert dtypes == [torch.float32] + [torch.float64] * 3


def test_values_and_metadata_refuse_what_would_go_wrong() -> None:
    node = Graph().placeholder("size")

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    captured = torch.export.export(
        Model(), (torch.ones(3),), dynamic_shapes=({0: Dim("n", max=8)},)
    )
    size = captured.graph.find_nodes(op="placeholder")[0].meta["val"].shape[0]
    for use in (bool, int, range):
        with pytest.raises(rl.ExportError, match="size is the symbolic number"):
            use(ProxyValue(size, node))
    assert int(ProxyValue(4, node)) == 4 and list(ProxyValue((1, 2), node)) == [1, 2]
    meta = NodeMetadata({"val": 1})
    copied = meta.copy()
    copied["tag"] = "mine"
    assert "tag" not in meta and copied.data == {"val": 1, "tag": "mine"}
    with pytest.raises(rl.ExportError, match="may not set the metadata 'val'"):
        meta["val"] = 2


def test_arguments_are_mapped_with_their_schemas() -> None:
    seen: list[str] = []

    def named(argument: Any, schema: Any) -> str:
        seen.append(schema.name)
        return f"{schema.name}={argument}"

    args, kwargs = map_args(torch.ops.aten.add.Tensor, named, (1, 2), {"alpha": 3})
    assert (args, kwargs) == (("self=1", "other=2"), {"alpha": "alpha=3"})
    assert seen == ["self", "other", "alpha"]


class ThreeTimes(ExportPass):
    def call_operator(
        self, op: Any, args: tuple[Argument, ...], kwargs: dict[str, Argument], meta: NodeMetadata
    ) -> ProxyValue:
        if op is torch.ops.aten.neg.default:
            op, args = torch.ops.aten.mul.Tensor, (args[0], torch.tensor(3.0))
        return super().call_operator(op, args, kwargs, meta)


def test_tensors_that_a_pass_adds_take_no_name_of_the_graph() -> None:
    mode = torch._subclasses.FakeTensorMode()
    graph, held = Graph(), {f"_tensor_constant{i}": torch.tensor(float(i)) for i in range(3)}
    value = graph.placeholder("x")
    for name in held:
        value = graph.call_function(torch.ops.aten.neg.default, (value,))
        tensor = graph.get_attr(name)
        value = graph.call_function(torch.ops.aten.add.Tensor, (value, tensor))
    graph.output((value,))
    for node in graph.nodes:
        node.meta["val"] = mode.from_tensor(torch.ones(()))
    rebuilt = ThreeTimes()(GraphModule(held, graph)).graph_module
    assert rebuilt(torch.tensor(1.0))[0] == ((1.0 * 3 + 0) * 3 + 1) * 3 + 2


@pytest.mark.parametrize("count", [0, 2])
def test_passes_over_graphs_keep_the_number_of_outputs(count: int) -> None:
    class Outputs(ExportPass):
        def output(self, results: list[Argument], meta: Any) -> None:
            super().output(results[:1] * count, meta)

    model = torch.nn.Linear(3, 3).eval()
    edge = rl.to_edge(torch.export.export(model, (torch.ones(3),)))
    with pytest.raises(rl.ExportError, match=f"{count} outputs.*a pass over programs"):
        edge.transform([Outputs()])
