"""The three flows of delegation, down to running files; cases of ExecuTorch's, written anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from delegates import Interpreter, calls_of, flat, lowered_modules, taking
from delegates import run as run_payload
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.passes.operator_support import OperatorSupportBase, any_chain

import rushlight as rl
from rushlight import runtime
from rushlight.edge import EdgeCompileConfig, ExecutorchBackendConfig
from rushlight.errors import ExportError
from rushlight.partition import (
    AllNodePartitioner,
    BackendDetails,
    CompileSpec,
    DelegationSpec,
    LoweredBackendModule,
    MethodProgramsPartitionerSpec,
    Partitioner,
    PartitionResult,
    PreprocessResult,
    executorch_call_delegate,
    generate_pattern_op_partitions,
    get_control_flow_submodules,
    get_delegates,
    get_lowered_submodules,
    get_non_lowered_nodes,
    to_backend,
)
from rushlight.schema import program as schema


@pytest.fixture(autouse=True)
def interpreters() -> Iterator[None]:
    for name in ("Interpreted", "Other"):
        runtime.register_backend(name, Interpreter)
    yield
    for name in ("Interpreted", "Other"):
        runtime.unregister_backend(name)


def edge_of(model: torch.nn.Module, *args: Any) -> ExportedProgram:
    return rl.to_edge(torch.export.export(model.eval(), args)).exported_program()


def runs_like(model: torch.nn.Module, manager: rl.EdgeProgramManager, *args: Any) -> bytes:
    """That the file computes what eager does, with payloads in segments and inside the program."""
    for segments in (True, False):
        config = ExecutorchBackendConfig(extract_delegate_segments=segments)
        file = manager.to_executorch(config).buffer
        found = rl.load(file)(*_arrays(args))
        for ours, eager in zip(flat(found), flat(model(*args)), strict=True):
            torch.testing.assert_close(ours, eager)
    return file


def _arrays(args: Any) -> Any:
    return torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.numpy(), args)


class AddMul(torch.nn.Module):
    """Between the additions and products stands one subtraction."""

    def forward(self, a: torch.Tensor, x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        y = torch.mm(a, x)
        z = y + b
        a = z - a
        y = torch.mm(a, x)
        return y + b

    inputs = (torch.randn(2, 2), torch.randn(2, 2), torch.randn(2, 2))


class Sine(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x)


class Wrap(torch.nn.Module):
    """A model around a lowered module."""

    def __init__(self, lowered: torch.nn.Module) -> None:
        super().__init__()
        self.lowered = lowered

    def forward(self, *args: Any) -> Any:
        return self.lowered(*args)


# --- 1: a whole program --------------------------------------------------------------------------


def test_a_whole_program_is_a_module_that_computes_the_same() -> None:
    x = torch.ones(1)
    lowered = to_backend("Interpreted", edge_of(Sine(), x), [CompileSpec("max_value", b"\x01")])
    assert isinstance(lowered, LoweredBackendModule)
    assert lowered.backend_id == "Interpreted"
    assert lowered.compile_specs == [CompileSpec("max_value", b"\x01")]
    torch.testing.assert_close(lowered(x), torch.sin(x))
    torch.testing.assert_close(run_payload(lowered.processed_bytes, x), [torch.sin(x)])


def test_a_lowered_module_is_saved_by_itself() -> None:
    x = torch.ones(3)
    lowered = to_backend("Interpreted", edge_of(Sine(), x), [])
    file = lowered.buffer()
    np.testing.assert_allclose(rl.load(file)(x.numpy()), np.sin(x.numpy()), rtol=1e-6)
    plan = rl.EdgeProgramManager({"forward": lowered.program()}).to_executorch()
    [instruction] = plan.executorch_program.execution_plan[0].chains[0].instructions
    assert isinstance(instruction.instr_args, schema.DelegateCall)


class Outputs(torch.nn.Module):
    """Results of every kind: computed, twice the same, an input, a constant, nested."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        z = x + y
        return {"twice": [z, z], "input": x, "number": 3, "none": None, "sum": (z * y, y.sum())}


def test_a_whole_program_with_results_of_every_kind() -> None:
    args = torch.randn(2, 3), torch.randn(2, 3)
    lowered = to_backend("Interpreted", edge_of(Outputs(), *args), [])
    eager = Outputs()(*args)
    found = lowered(*args)
    assert found.keys() == eager.keys() and found["number"] == 3 and found["none"] is None
    torch.testing.assert_close(found["sum"], eager["sum"])
    composed = rl.to_edge(torch.export.export(Wrap(lowered), args))
    results = rl.load(composed.to_executorch().buffer)(*_arrays(args))
    torch.testing.assert_close(flat(results["sum"]), flat(eager["sum"]))
    torch.testing.assert_close(flat(results["twice"]), flat(eager["twice"]))
    rl.load(lowered.buffer())(*_arrays(args))


def test_lists_and_dicts_of_inputs() -> None:
    class Pair(torch.nn.Module):
        def forward(self, x: Any) -> torch.Tensor:
            return x["a"] + x["b"][0] - x["b"][1]

    args = ({"a": torch.randn(2), "b": [torch.randn(2), torch.randn(2)]},)
    lowered = to_backend("Interpreted", edge_of(Pair(), *args), [])
    torch.testing.assert_close(lowered(*args), Pair()(*args))
    manager = rl.to_edge(torch.export.export(Wrap(lowered), args))
    runs_like(Pair(), manager, *args)


def test_a_program_with_an_input_that_nobody_uses() -> None:
    class Unused(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x.sin()

    args = torch.randn(2), torch.randn(2)
    lowered = to_backend("Interpreted", edge_of(Unused(), *args), [])
    rl.load(lowered.buffer())(*_arrays(args))
    runs_like(Unused(), rl.to_edge(torch.export.export(Wrap(lowered), args)), *args)


def test_parameters_of_a_whole_program_are_the_delegates() -> None:
    model = torch.nn.Linear(3, 2)
    x = torch.randn(4, 3)
    lowered = to_backend("Interpreted", edge_of(model, x), [])
    assert len(lowered.original_module.state_dict) == 2
    assert not lowered.program().state_dict
    runs_like(model, rl.to_edge(torch.export.export(Wrap(lowered), (x,))), x)


def test_an_unknown_backend() -> None:
    with pytest.raises(ExportError, match=r"no backend 'Fake' is known here; known are: .*Interp"):
        to_backend("Fake", edge_of(Sine(), torch.ones(1)), [])
    with pytest.raises(ExportError, match="takes a backend's id, an ExportedProgram"):
        to_backend(7)


# --- 2: composed ---------------------------------------------------------------------------------


def test_a_module_that_is_used_twice_is_one_delegate() -> None:
    x = torch.ones(3)
    lowered = to_backend("Interpreted", edge_of(Sine(), x), [])

    class Twice(torch.nn.Module):
        def __init__(self, inner: torch.nn.Module) -> None:
            super().__init__()
            self.inner = inner
            self.register_buffer("bias", torch.full((3,), 0.3))

        def forward(self, x: torch.Tensor) -> Any:
            a = self.inner(x)
            b = self.inner(a)
            return a, b, a + b + self.bias

    manager = rl.to_edge(torch.export.export(Twice(lowered), (x,)))
    runs_like(Twice(Sine()), manager, x)
    plan = manager.to_executorch().executorch_program.execution_plan[0]
    assert len(plan.delegates) == 1
    assert "aten::sin" not in {op.name for op in plan.operators}
    first = plan.chains[0].instructions[0].instr_args
    assert isinstance(first, schema.DelegateCall)


def test_nested_delegates() -> None:
    """The whole of a program that calls a delegate goes to a backend."""
    args = AddMul.inputs
    inner = rl.to_edge(torch.export.export(AddMul(), args)).to_backend(
        taking("aten.add", "aten.mm", backend="Other")
    )
    seen: list[list[str]] = []

    class Outer(BackendDetails):
        @staticmethod
        def preprocess(
            edge_program: ExportedProgram, compile_specs: list[CompileSpec]
        ) -> PreprocessResult:
            modules = lowered_modules(edge_program)
            seen.extend(calls_of(m) for m in modules)
            return PreprocessResult(b"".join(m.processed_bytes for m in modules))

    whole = to_backend("Outer", inner.exported_program(), [])
    assert seen == [["mm.default", "add.Tensor"]] * 2
    torch.testing.assert_close(whole(*args), AddMul()(*args))
    [instruction] = (
        rl.EdgeProgramManager({"forward": whole.program()})
        .to_executorch()
        .executorch_program.execution_plan[0]
        .chains[0]
        .instructions
    )
    assert isinstance(instruction.instr_args, schema.DelegateCall)


# --- 3: partitioned ------------------------------------------------------------------------------


def test_partitions_around_what_stays() -> None:
    manager = rl.to_edge(torch.export.export(AddMul(), AddMul.inputs))
    before = str(manager.exported_program().graph)
    lowered = manager.to_backend(taking("aten.add", "aten.mm"))
    assert str(manager.exported_program().graph) == before
    program = lowered.exported_program()
    assert [n.target for n in get_delegates(program.graph)] == [
        "lowered_module_0",
        "lowered_module_1",
    ]
    assert [str(n.target) for n in get_non_lowered_nodes(program.graph)] == ["aten.sub.Tensor"]
    assert [calls_of(m) for m in lowered_modules(program)] == [["mm.default", "add.Tensor"]] * 2
    torch.testing.assert_close(program.module()(*AddMul.inputs), AddMul()(*AddMul.inputs))
    runs_like(AddMul(), lowered, *AddMul.inputs)


def test_several_partitioners_in_order() -> None:
    exported = torch.export.export(AddMul(), AddMul.inputs)
    order = [taking("aten.mm"), taking("aten", backend="Other")]
    lowered = rl.to_edge_transform_and_lower(exported, partitioner=order)
    found = [(m.backend_id, calls_of(m)) for m in lowered_modules(lowered.exported_program())]
    assert found == [
        ("Interpreted", ["mm.default"]),
        ("Other", ["add.Tensor", "sub.Tensor"]),
        ("Interpreted", ["mm.default"]),
        ("Other", ["add.Tensor"]),
    ]
    runs_like(AddMul(), lowered, *AddMul.inputs)


def test_what_a_partitioner_declined_is_kept_for_the_report() -> None:
    manager = rl.to_edge(torch.export.export(AddMul(), AddMul.inputs))
    lowered = manager.to_backend(taking("aten.mm")).to_backend(taking("aten.add", backend="Other"))
    [left] = get_non_lowered_nodes(lowered.exported_program().graph)
    assert left.meta["declined"] == {
        "Interpreted": "its partitioner does not support it",
        "Other": "its partitioner does not support it",
    }


def test_partitioners_by_method() -> None:
    x = torch.ones(2)
    programs = {name: torch.export.export(Sine(), (x,)) for name in ("one", "two", "three")}
    lowered = rl.to_edge_transform_and_lower(
        programs, partitioner={"one": [taking("aten.sin")], "two": [taking("aten.cos")]}
    )
    counts = {m: len(lowered_modules(lowered.exported_program(m))) for m in programs}
    assert counts == {"one": 1, "two": 0, "three": 0}
    with pytest.raises(ExportError, match=r"partitioners for \['four'\]"):
        rl.to_edge_transform_and_lower(programs, partitioner={"four": [taking("aten.sin")]})


def test_equal_payloads_of_two_methods_are_stored_once() -> None:
    x = torch.ones(2)
    programs = {n: edge_of(Sine(), x) for n in ("forward", "copy")}
    partitioners = {n: AllNodePartitioner("Interpreted", []) for n in programs}
    lowered = to_backend(MethodProgramsPartitionerSpec(programs, partitioners))
    for segments in (True, False):
        config = ExecutorchBackendConfig(extract_delegate_segments=segments)
        finished = rl.EdgeProgramManager(lowered).to_executorch(config)
        program = finished.executorch_program
        places = [plan.delegates[0].processed for plan in program.execution_plan]
        assert places[0] == places[1]
        module = rl.load(finished.buffer)
        for method in programs:
            found = getattr(module, method)(x.numpy())
            torch.testing.assert_close(flat(found)[0], x.sin())


def test_calls_that_a_backend_wants_whole() -> None:
    class Attention(torch.nn.Module):
        def forward(self, q: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.scaled_dot_product_attention(q, q, q) + q

    class Wants(type(taking("aten.scaled"))):
        def ops_to_not_decompose(self, ep: ExportedProgram) -> Any:
            return [torch.ops.aten.scaled_dot_product_attention.default], None

    q = torch.randn(1, 2, 4, 8)
    exported = torch.export.export(Attention(), (q,))
    base = taking("aten.scaled_dot_product_attention")
    wants = Wants(base.delegation_spec, base._support)
    lowered = rl.to_edge_transform_and_lower(exported, partitioner=[wants])
    [module] = lowered_modules(lowered.exported_program())
    assert calls_of(module) == ["scaled_dot_product_attention.default"]
    runs_like(Attention(), lowered, q)


# --- several methods at once ---------------------------------------------------------------------


class Together(BackendDetails):
    """Its payloads tell how many operators it saw in all methods and parts."""

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        raise AssertionError("preprocess_multimethod is there")

    @classmethod
    def preprocess_multimethod(
        cls,
        edge_programs: dict[str, list[ExportedProgram]],
        compile_specs: dict[str, list[list[CompileSpec]]],
    ) -> dict[str, list[PreprocessResult]]:
        calls = {
            name: [[n for n in p.graph.nodes if n.op == "call_function"] for p in parts]
            for name, parts in edge_programs.items()
        }
        total = sum(len(part) for parts in calls.values() for part in parts)
        return {
            name: [
                PreprocessResult(
                    f"{total}#{';'.join(str(n.target) for n in part)}#"
                    f"{';'.join(f'{s.key}:{bytes(s.value)!r}' for s in specs)}".encode()
                )
                for part, specs in zip(parts, compile_specs[name], strict=True)
            ]
            for name, parts in calls.items()
        }


def test_a_backend_sees_all_methods_at_once() -> None:
    class AddSin(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sin((x + x) * x)

    class SinAdd(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.sin(x) * x
            return y + y

    x = torch.ones(1)
    programs = {"add_sin": edge_of(AddSin(), x), "sin_add": edge_of(SinAdd(), x)}
    partitioners: dict[str, Partitioner] = {
        "add_sin": taking("aten.add", "aten.sin", backend="Together", a=b"\1"),
        "sin_add": taking("aten.add", "aten.sin", backend="Together", b=b"\2"),
    }
    lowered = to_backend(MethodProgramsPartitionerSpec(programs, partitioners))
    payloads = {n: [m.processed_bytes for m in lowered_modules(p)] for n, p in lowered.items()}
    assert payloads == {
        "add_sin": [b"4#aten.add.Tensor#a:b'\\x01'", b"4#aten.sin.default#a:b'\\x01'"],
        "sin_add": [b"4#aten.sin.default#b:b'\\x02'", b"4#aten.add.Tensor#b:b'\\x02'"],
    }


def test_one_unknown_backend_among_several_methods_lowers_nothing() -> None:
    x = torch.ones(1)
    programs = {"one": edge_of(Sine(), x), "two": edge_of(Sine(), x)}
    partitioners = {
        "one": AllNodePartitioner("Interpreted", []),
        "two": AllNodePartitioner("Invalid", []),
    }
    with pytest.raises(ExportError, match="no backend 'Invalid' is known"):
        to_backend(MethodProgramsPartitionerSpec(programs, partitioners))
    assert all(not get_delegates(p.graph) for p in programs.values())


# --- control flow --------------------------------------------------------------------------------


def _yes(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x - y) + y - y


def _no(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.mm(x - y, y) - y


class Branches(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = x + y
        x = torch.cond(x[0][0] == 1, _yes, _no, [x, y])
        return x - y


@pytest.mark.parametrize("first", [1.0, 2.0])
def test_branches_are_partitioned(first: float) -> None:
    args = torch.full((2, 2), first - 1), torch.ones(2, 2)
    manager = rl.to_edge(torch.export.export(Branches(), args))
    lowered = manager.to_backend(taking("aten.add", "aten.mm"))
    program = lowered.exported_program()
    assert [calls_of(m) for m in lowered_modules(program)] == [["add.Tensor"]]
    inner = get_control_flow_submodules(program.graph_module)
    assert [calls_of(lowered_modules(m)[0]) for _, m, _ in inner] == [
        ["add.Tensor"],
        ["mm.default"],
    ]
    torch.testing.assert_close(program.module()(*args), Branches()(*args))
    runs_like(Branches(), lowered, *args)


class Deep(torch.nn.Module):
    def forward(self, x: Any, pred1: Any, pred2: Any, y: Any) -> torch.Tensor:
        def yes(x: torch.Tensor, pred2: torch.Tensor) -> torch.Tensor:
            def yes_yes(y: torch.Tensor) -> torch.Tensor:
                y = y + y
                return torch.mm(y, y)

            def yes_no(y: torch.Tensor) -> torch.Tensor:
                return torch.mm(y, y)

            return x + torch.cond(pred2, yes_yes, yes_no, [x])

        def no(x: torch.Tensor, pred2: torch.Tensor) -> torch.Tensor:
            return torch.mm(x, x)

        x = x.cos() + y
        return torch.cond(pred1, yes, no, [x, pred2]).sin()


DEEP = (torch.ones(2, 2), torch.tensor([True]), torch.tensor([False]), torch.ones(2, 2))


def test_branches_of_branches_are_partitioned() -> None:
    manager = rl.to_edge(torch.export.export(Deep(), DEEP))
    lowered = manager.to_backend(taking("aten.add", "aten.mm"))

    def tree(module: Any) -> Any:
        inner = [tree(m) for _, m, _ in get_control_flow_submodules(module)]
        return [calls_of(m) for _, m, _ in get_lowered_submodules(module)], inner

    assert tree(lowered.exported_program().graph_module) == (
        [["add.Tensor"]],
        [
            ([["add.Tensor"]], [([["add.Tensor", "mm.default"]], []), ([["mm.default"]], [])]),
            ([["mm.default"]], []),
        ],
    )
    runs_like(Deep(), lowered, *DEEP)


class Cond(OperatorSupportBase):
    def is_node_supported(self, submodules: object, node: Node) -> bool:
        return node.op == "call_function" and node.target is torch.ops.higher_order.cond


def test_control_flow_is_taken_whole_and_partitioned_by_the_backend_itself() -> None:
    """As in ExecuTorch's case of nested backends: `preprocess` calls `to_backend`."""

    class Second(BackendDetails):
        @staticmethod
        def preprocess(
            edge_program: ExportedProgram, compile_specs: list[CompileSpec]
        ) -> PreprocessResult:
            names = [str(n.target) for n in edge_program.graph.nodes if n.op == "call_function"]
            return PreprocessResult(";".join(names).encode())

    class First(BackendDetails):
        @staticmethod
        def preprocess(
            edge_program: ExportedProgram, compile_specs: list[CompileSpec]
        ) -> PreprocessResult:
            parts = to_backend(edge_program, taking("aten.add", "aten.mm", backend="Second"))
            return PreprocessResult(show(parts.graph_module).encode())

    def show(module: Any) -> str:
        branches = get_control_flow_submodules(module)
        text = [m.processed_bytes.decode() for _, m, _ in get_lowered_submodules(module)]
        return "|".join([*text, *(f"({show(m)})" for _, m, _ in branches)])

    class TakesCond(Partitioner):
        def partition(self, exported_program: ExportedProgram) -> PartitionResult:
            support = any_chain(taking("aten.add", "aten.mm")._support, Cond())
            module = exported_program.graph_module
            tags = {}
            for partition in generate_pattern_op_partitions(module, op_support=support):
                tag = f"first_{partition.id}"
                tags[tag] = DelegationSpec("First", [])
                for node in partition.nodes:
                    node.meta["delegation_tag"] = tag
                    if node.target is torch.ops.higher_order.cond:
                        for branch in node.args[1:3]:
                            branch.meta["delegation_tag"] = tag
            return PartitionResult(exported_program, tags)

    manager = rl.to_edge(torch.export.export(Deep(), DEEP))
    lowered = manager.to_backend(TakesCond())
    program = lowered.exported_program()
    [module] = lowered_modules(program)
    assert module.processed_bytes == (
        b"aten.add.Tensor|"
        b"(aten.add.Tensor|(aten.add.Tensor;aten.mm.default)|(aten.mm.default))|"
        b"(aten.mm.default)"
    )
    torch.testing.assert_close(program.module()(*DEEP), Deep()(*DEEP))


def test_a_delegate_that_computes_a_branch() -> None:
    manager = rl.to_edge(torch.export.export(Deep(), DEEP))
    lowered = manager.to_backend(taking("aten", "cond"))
    assert not get_non_lowered_nodes(lowered.exported_program().graph)
    runs_like(Deep(), lowered, *DEEP)


# --- shapes --------------------------------------------------------------------------------------


def _dynamic(model: torch.nn.Module, *args: Any) -> rl.EdgeProgramManager:
    batch = torch.export.Dim("batch", min=2, max=16)
    shapes = tuple({0: batch} for _ in args)
    return rl.to_edge(torch.export.export(model, args, dynamic_shapes=shapes))


class Grows(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = torch.cat([x, y])
        return z.reshape(z.shape[0] * 2, -1).sin() + 1


@pytest.mark.parametrize(
    "names", [("aten.cat",), ("aten.sin", "aten.add"), ("aten.view", "aten.s")]
)
def test_dynamic_shapes(names: tuple[str, ...]) -> None:
    lowered = _dynamic(Grows(), torch.randn(3, 4), torch.randn(3, 4)).to_backend(taking(*names))
    assert lowered_modules(lowered.exported_program())
    module = rl.load(lowered.to_executorch().buffer)
    for size in (2, 9, 16):
        args = torch.randn(size, 4), torch.randn(size, 4)
        [found] = flat(module(*_arrays(args)))
        torch.testing.assert_close(found, Grows()(*args))


def test_sizes_are_inputs_of_a_delegate_and_never_outputs() -> None:
    manager = _dynamic(Grows(), torch.randn(3, 4), torch.randn(3, 4))
    everything = manager.to_backend(taking("aten", "_operator", "<built-in", "mul", "math"))
    for module in lowered_modules(everything.exported_program()):
        returned = module.original_module.graph.output_node().args[0]
        assert all(isinstance(n.meta["val"], torch.Tensor) for n in returned)
    found = rl.load(everything.to_executorch().buffer)
    args = torch.randn(5, 4), torch.randn(5, 4)
    torch.testing.assert_close(flat(found(*_arrays(args)))[0], Grows()(*args))


def test_outputs_that_become_items_of_a_list() -> None:
    """The runtime tells a delegate's outputs from its inputs by what has no value before."""

    class Halves(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            left, right = x.split(2, dim=1)
            return torch.cat([right, left * 2, right], dim=1)

    manager = _dynamic(Halves(), torch.randn(3, 4)).to_backend(taking("aten.split"))
    module = rl.load(manager.to_executorch().buffer)
    for size in (2, 16):
        x = torch.randn(size, 4)
        torch.testing.assert_close(flat(module(x.numpy()))[0], Halves()(x))


# --- what goes into the file ---------------------------------------------------------------------


def test_named_data_of_several_delegates_are_stored_once() -> None:
    class Shared(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(3, 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.mm(torch.mm(x, self.weight).sin(), self.weight)

    x = torch.randn(2, 3)
    exported = torch.export.export(Shared(), (x,))
    lowered = rl.to_edge(exported).to_backend(taking("aten.mm", data=b"named"))
    modules = lowered_modules(lowered.exported_program())
    assert len(modules) == 2
    finished = lowered.to_executorch()
    keys = [k for k in finished._named_data() if k.startswith("interpreted/")]
    assert len(keys) == 1
    model = exported.module()
    [found] = flat(rl.load(finished.buffer)(x.numpy()))
    torch.testing.assert_close(found, model(x).detach())


def test_named_data_that_contradict_each_other_are_refused() -> None:
    class Clash(BackendDetails):
        @staticmethod
        def preprocess(
            edge_program: ExportedProgram, compile_specs: list[CompileSpec]
        ) -> PreprocessResult:
            from rushlight.partition import NamedDataStore

            store = NamedDataStore()
            store.add_named_data("weights", bytes(len(list(edge_program.graph.nodes))))
            return PreprocessResult(b"", {}, store.get_named_data_store_output())

    class Parts(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x.sin().sin() * x).sin()

    manager = rl.to_edge(torch.export.export(Parts(), (torch.ones(2),)))
    lowered = manager.to_backend(taking("aten.sin", backend="Clash"))
    with pytest.raises(
        ExportError, match=r"Clash in method 'forward': named data 'weights' .* 4 and 3 of them"
    ):
        lowered.to_executorch()


def test_where_a_failing_instruction_came_from(tmp_path: Path) -> None:
    """The interpreter fails inside; the message leads to the line of the model."""
    manager = rl.to_edge(torch.export.export(AddMul(), AddMul.inputs))
    lowered = manager.to_backend(taking("aten.add", "aten.mm"))
    file = lowered.to_executorch().buffer
    module = rl.load(file)
    broken: Callable[..., Any] = torch.ops.aten.mm.default

    def fail(target: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if target == "aten::mm|default":
            raise RuntimeError("no more matrices")
        return broken(*args)

    import delegates

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delegates, "_call", fail)
        with pytest.raises(rl.RunError) as caught:
            module(*_arrays(AddMul.inputs))
    assert "no more matrices" in str(caught.value)
    assert "y = torch.mm(a, x)" in str(caught.value)


def test_debug_handles_of_delegates() -> None:
    manager = rl.to_edge(torch.export.export(AddMul(), AddMul.inputs))
    handles = {
        n.name: n.meta["debug_handle"]
        for n in manager.exported_program().graph.nodes
        if n.op == "call_function"
    }
    program = manager.to_backend(taking("aten.add", "aten.mm")).exported_program()
    for module in lowered_modules(program):
        found = module.meta["debug_handle_map"]
        assert found == {name: (handles[name],) for name in found} and len(found) == 2
    calls = [n for n in program.graph.nodes if n.target is executorch_call_delegate]
    assert all(call.meta["debug_handle"] in handles.values() for call in calls)


def test_what_preprocess_says_of_a_delegate_is_kept() -> None:
    class Tells(BackendDetails):
        @staticmethod
        def preprocess(
            edge_program: ExportedProgram, compile_specs: list[CompileSpec]
        ) -> PreprocessResult:
            return PreprocessResult(b"", _delegate_info_meta="test")

    x = torch.ones(1)
    assert to_backend("Tells", edge_of(Sine(), x), []).meta["_delegate_info_meta"] == "test"
    program = to_backend(edge_of(Sine(), x), AllNodePartitioner("Tells", []))
    assert lowered_modules(program)[0].meta["_delegate_info_meta"] == "test"


def test_a_payload_of_another_version_is_refused_when_it_is_loaded() -> None:
    lowered = to_backend("Interpreted", edge_of(Sine(), torch.ones(1)), [])
    older = LoweredBackendModule(
        lowered.original_module,
        "Interpreted",
        lowered.processed_bytes.replace(b'"version": 1', b'"version": 0'),
        [],
    )
    with pytest.raises(rl.Error, match="version 0, not 1"):
        rl.load(older.buffer())(np.ones(1, np.float32))


def test_a_pass_over_the_whole_still_runs_after_partitioning() -> None:
    config = EdgeCompileConfig()
    manager = rl.to_edge(torch.export.export(AddMul(), AddMul.inputs), compile_config=config)
    lowered = manager.to_backend(taking("aten.mm")).transform([])
    runs_like(AddMul(), lowered, *AddMul.inputs)
