"""Who owns constants and state: the method or a delegate; cases of ExecuTorch's, written anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.export import ExportedProgram

import rushlight as rl
from delegates import flat, lowered_modules, taking
from rushlight.errors import ExportError
from rushlight.partition import (
    AllNodePartitioner,
    DelegationSpec,
    Partitioner,
    PartitionResult,
    executorch_call_delegate,
    tag_constant_data,
    tag_mutated_buffer,
    to_backend,
)

ADD = torch.ops.aten.add.Tensor


class Tagging(Partitioner):
    """Tags the additions; a function tags other nodes."""

    def __init__(self, rest: Callable[[ExportedProgram], None] = lambda program: None) -> None:
        super().__init__()
        self.rest = rest

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        for node in exported_program.graph.nodes:
            if node.target is ADD:
                node.meta["delegation_tag"] = "tag0"
        self.rest(exported_program)
        return PartitionResult(exported_program, {"tag0": DelegationSpec("Interpreted")})


def tag(*names: str, **meta: Any) -> Callable[[ExportedProgram], None]:
    def rest(program: ExportedProgram) -> None:
        for node in program.graph.nodes:
            if node.name in names:
                node.meta.update(delegation_tag="tag0", **meta)

    return rest


class Constants(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tensor = torch.full((2, 2), 1.0)
        self.register_buffer("buffer", torch.full((2, 2), 2.0), persistent=False)
        self.parameter = torch.nn.Parameter(torch.full((2, 2), 3.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.tensor + self.buffer + self.parameter


X = torch.ones(2, 2)


def edge_of(model: torch.nn.Module, *args: torch.Tensor) -> rl.EdgeProgramManager:
    return rl.to_edge(torch.export.export(model, args or (X,)))


def runs_like(
    model: torch.nn.Module, manager: rl.EdgeProgramManager, *args: torch.Tensor, calls: int = 1
) -> None:
    module = rl.load(manager.to_executorch().buffer)
    for _ in range(calls):
        actual = flat(module(*(a.numpy() for a in args or (X,))))
        for ours, eager in zip(actual, flat(model(*(args or (X,)))), strict=True):
            torch.testing.assert_close(ours, eager)


def call_args(program: ExportedProgram) -> list[str]:
    [call] = program.graph.find_nodes(op="call_function", target=executorch_call_delegate)
    return [n.name for n in call.args[1:]]


def test_data_that_is_not_tagged_is_passed() -> None:
    manager = edge_of(Constants()).to_backend(Tagging())
    program = manager.exported_program()
    assert len(call_args(program)) == 4
    assert len(program.state_dict) + len(program.constants) == 3
    [module] = lowered_modules(program)
    assert not module.original_module.state_dict and not module.original_module.constants
    runs_like(Constants(), manager)


def test_data_that_is_tagged_moves() -> None:
    manager = edge_of(Constants()).to_backend(Tagging(tag_constant_data))
    program = manager.exported_program()
    assert call_args(program) == ["x"]
    kinds = [spec.kind.name for spec in program.graph_signature.input_specs]
    assert kinds == ["USER_INPUT"]
    [module] = lowered_modules(program)
    signature = module.original_module.graph_signature
    assert len(signature.parameters) == 1
    assert len(signature.buffers) + len(signature.lifted_tensor_constants) == 2
    held = module.original_module
    assert len(held.state_dict) + len(held.constants) == 3
    runs_like(Constants(), manager)


def test_only_parameters_are_tagged() -> None:
    manager = edge_of(Constants()).to_backend(Tagging(tag("p_parameter")))
    program = manager.exported_program()
    assert len(call_args(program)) == 3 and not program.graph_signature.parameters
    [module] = lowered_modules(program)
    assert module.original_module.graph_signature.parameters == ("parameter",)
    runs_like(Constants(), manager)


class Reused(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("const", torch.full((2, 2), 3.0))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + self.const, x - self.const


def test_a_constant_that_others_use_too_is_copied() -> None:
    manager = edge_of(Reused()).to_backend(Tagging(tag_constant_data))
    program = manager.exported_program()
    assert call_args(program) == ["x"]
    assert program.graph_signature.buffers == ("const",)
    assert lowered_modules(program)[0].original_module.graph_signature.buffers == ("const",)
    runs_like(Reused(), manager)


def test_a_constant_of_several_delegates_is_copied_into_each() -> None:
    class Shared(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("const", torch.full((2, 2), 3.0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return ((x + self.const).sin() + self.const).cos() * self.const

    manager = edge_of(Shared()).to_backend(taking("aten.add"))
    parts = [
        m.original_module.graph_signature.buffers
        for m in lowered_modules(manager.exported_program())
    ]
    assert parts == [("const",), ("const",)]
    runs_like(Shared(), manager)


def test_a_constant_that_must_not_be_copied() -> None:
    before = edge_of(Reused())
    with pytest.raises(
        ExportError, match=r"'tag0' for Interpreted .* owns its constant b_const, .* by sub \(aten"
    ):
        before.to_backend(Tagging(tag("b_const", no_copy=True)))
    assert all("delegation_tag" not in n.meta for n in before.exported_program().graph.nodes)


# --- state ---------------------------------------------------------------------------------------


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("b", torch.ones(2, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.b.add_(x)
        return x + self.b


def test_state_that_is_not_owned_stays_with_the_method() -> None:
    manager = edge_of(Counter()).to_backend(Tagging(tag_constant_data))
    program = manager.exported_program()
    assert list(program.graph_signature.buffers_to_mutate.values()) == ["b"]
    assert len(call_args(program)) == 2
    runs_like(Counter(), manager, calls=3)


def test_state_that_a_delegate_owns() -> None:
    manager = edge_of(Counter()).to_backend(Tagging(tag_mutated_buffer))
    program = manager.exported_program()
    assert not program.graph_signature.buffers_to_mutate and call_args(program) == ["x"]
    [module] = lowered_modules(program)
    signature = module.original_module.graph_signature
    assert list(signature.buffers_to_mutate.values()) == ["b"] and signature.buffers == ("b",)
    model = Counter()
    runs_like(model, manager, calls=3)


def test_state_that_is_returned_as_well() -> None:
    class Returned(Counter):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.b.add_(x)

    manager = edge_of(Returned()).to_backend(Tagging(tag_mutated_buffer))
    assert not manager.exported_program().graph_signature.buffers_to_mutate
    runs_like(Returned(), manager, calls=3)


def test_a_cache_is_owned_and_indexed_inside() -> None:
    class Cache(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("cache", torch.zeros(2, 3))

        def forward(self, q: torch.Tensor, k: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
            kept = torch.ops.aten.index_put_(self.cache, [at, None], k)
            return kept.mm(q.transpose(0, 1))

    args = torch.rand(1, 3), torch.rand(1, 3), torch.tensor([1, 1])
    manager = edge_of(Cache(), *args).to_backend(taking("aten"))
    program = manager.exported_program()
    assert not program.graph_signature.buffers_to_mutate and len(call_args(program)) == 3
    runs_like(Cache(), manager, *args, calls=2)


class Two(torch.nn.Module):
    """Two delegates would write and read one buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("b", torch.ones(2, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        before = (x + self.b).sin()
        self.b.copy_(self.b + before)
        return before + self.b


def test_state_of_several_partitions_stays_with_the_method() -> None:
    manager = edge_of(Two()).to_backend(taking("aten.add"))
    assert list(manager.exported_program().graph_signature.buffers_to_mutate.values()) == ["b"]
    runs_like(Two(), manager, calls=3)


def test_state_that_two_partitions_would_own_is_refused() -> None:
    class Halves(Partitioner):
        def partition(self, exported_program: ExportedProgram) -> PartitionResult:
            adds = exported_program.graph.find_nodes(op="call_function", target=ADD)
            for i, node in enumerate(adds):
                node.meta["delegation_tag"] = f"tag{min(i, 1)}"
            [b] = [n for n in exported_program.graph.nodes if n.name == "b_b"]
            b.meta["delegation_tag"] = "tag0"
            specs = dict.fromkeys(("tag0", "tag1"), DelegationSpec("Interpreted"))
            return PartitionResult(exported_program, specs)

    with pytest.raises(ExportError, match=r"owns the buffer b_b, .* state has one owner"):
        edge_of(Two()).to_backend(Halves())


def test_state_whose_new_value_is_computed_outside_is_refused() -> None:
    class Outside(Counter):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x + self.b
            self.b.copy_(y.sin())
            return y

    with pytest.raises(ExportError, match=r"owns the buffer b_b, .* state has one owner"):
        edge_of(Outside()).to_backend(Tagging(tag("b_b")))


def test_a_whole_program_with_state() -> None:
    lowered = to_backend("Interpreted", edge_of(Counter()).exported_program(), [])
    module, model = rl.load(lowered.buffer()), Counter()
    for _ in range(3):
        torch.testing.assert_close(flat(module(X.numpy()))[0], model(X))


def test_a_delegate_with_state_that_is_called_in_eager_has_its_own() -> None:
    manager, model = edge_of(Counter()), Counter()
    lowered = to_backend("Interpreted", manager.exported_program(), [])
    for _ in range(3):
        torch.testing.assert_close(lowered(X), model(X))
    [held] = manager.exported_program().state_dict.values()
    torch.testing.assert_close(held, torch.ones(2, 2))
    again = to_backend("Interpreted", manager.exported_program(), [])
    assert again.processed_bytes == lowered.processed_bytes


def test_a_delegate_with_state_in_a_parent_that_calls_it_twice() -> None:
    lowered = to_backend("Interpreted", edge_of(Counter()).exported_program(), [])

    class Parent(torch.nn.Module):
        def __init__(self, inner: torch.nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return self.inner(x), self.inner(x * 2)

    manager = edge_of(Parent(lowered))
    runs_like(Parent(Counter()), manager, calls=3)


def test_everything_of_a_method_with_state_goes_to_one_delegate() -> None:
    manager = edge_of(Counter()).to_backend(AllNodePartitioner("Interpreted", []))
    program = manager.exported_program()
    assert not program.graph_signature.buffers_to_mutate and call_args(program) == ["x"]
    runs_like(Counter(), manager, calls=3)


def test_constants_of_branches() -> None:
    class Inside(torch.nn.Module):
        def forward(self, p: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(p, lambda x: x + 2.5, lambda x: (x + 1.5).sin(), [x])

    p = torch.tensor(True)
    manager = edge_of(Inside(), p, X).to_backend(taking("aten.add"))
    runs_like(Inside(), manager, p, X)
    runs_like(Inside(), manager, torch.tensor(False), X)


def test_the_same_parameter_under_two_names() -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = torch.nn.Linear(2, 2)
            self.two = torch.nn.Linear(2, 2)
            self.two.weight = self.one.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.two(self.one(x).sin())

    model = Tied()
    manager = edge_of(model).to_backend(taking("aten.linear"))
    assert len(lowered_modules(manager.exported_program())) == 2
    runs_like(model, manager)


def test_a_parameter_that_is_returned_as_it_is() -> None:
    class Returned(Reused):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x + self.const, self.const

    for partitioner in (Tagging(tag_constant_data), AllNodePartitioner("Interpreted", [])):
        manager = edge_of(Returned()).to_backend(partitioner)
        runs_like(Returned(), manager)
