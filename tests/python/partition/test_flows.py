"""The three flows of delegation, down to running files; cases of ExecuTorch's, written anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.export import ExportedProgram

import rushlight as rl
from delegated_models import AddMul, Sine, Wrap, arrays, edge_of, runs_like
from delegates import Takes, calls_of, flat, lowered_modules, taking
from delegates import run as run_payload
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
    PreprocessResult,
    SupportedOperatorPartitioner,
    get_delegates,
    get_non_lowered_nodes,
    to_backend,
)
from rushlight.schema import program as schema

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
    plan = rl.EdgeProgramManager({"forward": lowered.exported_program()}).to_executorch()
    [instruction] = plan.executorch_program.execution_plan[0].chains[0].instructions
    assert isinstance(instruction.instr_args, schema.DelegateCall)
    program = lowered.program()
    assert program.execution_plan[0].chains[0].instructions == [instruction]
    assert [one.data for one in program.backend_delegate_data] == [lowered.processed_bytes]


class Outputs(torch.nn.Module):
    """Results of every kind: computed, returned twice, an input, a constant, nested."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        z = x + y
        return {"twice": [z, z], "input": x, "number": 3, "none": None, "sum": (z * y, y.sum())}


def test_a_whole_program_with_results_of_every_kind() -> None:
    args = torch.randn(2, 3), torch.randn(2, 3)
    lowered = to_backend("Interpreted", edge_of(Outputs(), *args), [])
    eager = Outputs()(*args)
    actual = lowered(*args)
    assert actual.keys() == eager.keys() and actual["number"] == 3 and actual["none"] is None
    torch.testing.assert_close(actual["sum"], eager["sum"])
    composed = rl.to_edge(torch.export.export(Wrap(lowered), args))
    results = rl.load(composed.to_executorch().buffer)(*arrays(args))
    torch.testing.assert_close(flat(results["sum"]), flat(eager["sum"]))
    torch.testing.assert_close(flat(results["twice"]), flat(eager["twice"]))
    rl.load(lowered.buffer())(*arrays(args))


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
    rl.load(lowered.buffer())(*arrays(args))
    runs_like(Unused(), rl.to_edge(torch.export.export(Wrap(lowered), args)), *args)


def test_parameters_of_a_whole_program_are_the_delegates() -> None:
    model = torch.nn.Linear(3, 2)
    x = torch.randn(4, 3)
    lowered = to_backend("Interpreted", edge_of(model, x), [])
    assert len(lowered.original_module.state_dict) == 2
    assert not lowered.exported_program().state_dict
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
    """A whole program that calls a delegate is lowered to another backend."""
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
        rl.EdgeProgramManager({"forward": whole.exported_program()})
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
    delegates = [(m.backend_id, calls_of(m)) for m in lowered_modules(lowered.exported_program())]
    assert delegates == [
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
    with pytest.raises(ExportError, match=r"do not exist: \['four'\]"):
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
            actual = getattr(module, method)(x.numpy())
            torch.testing.assert_close(flat(actual)[0], x.sin())


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


def test_a_call_that_a_backend_wants_whole_and_the_user_has_a_rule_for() -> None:
    """A user's decomposition is used only for calls that no backend takes."""
    tanh = torch.ops.aten.tanh.default
    rules = {tanh: lambda x: 2 * torch.sigmoid(2 * x) - 1}
    config = EdgeCompileConfig(decompositions=rules)
    partitioner = SupportedOperatorPartitioner(
        DelegationSpec("Interpreted"), Takes("aten.tanh"), keep_whole=[tanh]
    )
    x = torch.randn(3)
    exported = torch.export.export(torch.nn.Tanh(), (x,))
    lowered = rl.to_edge_transform_and_lower(
        exported, partitioner=partitioner, compile_config=config
    )
    [module] = lowered_modules(lowered.exported_program())
    assert calls_of(module) == ["tanh.default"]
    alone = rl.to_edge(exported, compile_config=config).exported_program()
    assert "sigmoid" in str(alone.graph) and "tanh" not in str(alone.graph)
    runs_like(torch.nn.Tanh(), lowered, x)


# --- several methods at once ---------------------------------------------------------------------


class Together(BackendDetails):
    """Its payloads contain the number of operators in all methods and partitions together."""

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
