"""Random programs compute the same with random partitions as without."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.passes.operator_support import OperatorSupportBase

import rushlight as rl
from delegates import flat, lowered_modules
from rushlight.ir.branches import branches
from rushlight.ir.programs import copy_program
from rushlight.partition import DelegationSpec, SupportedOperatorPartitioner

SEEDS = range(6)
CALLS = 2


class Drawn(torch.nn.Module):
    """A random program: branching, several results of one call, state, parameters, sizes."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.kinds = random.Random(seed).choices(
            ["add", "mul", "linear", "max", "split", "cond", "state", "size", "random", "reuse"],
            k=14,
        )
        self.seed = seed
        self.register_buffer("one", torch.zeros(4))
        self.register_buffer("two", torch.ones(4))
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, p: torch.Tensor) -> Any:
        draw = random.Random(self.seed)
        known = [x, x.sin()]
        for kind in self.kinds:
            a, b = draw.choice(known), draw.choice(known)
            known.append(self.compute(kind, a, b, p, draw))
        return known[-1], {"mean": known[-2].mean(0), "early": known[3] + known[5]}

    def compute(
        self, kind: str, a: torch.Tensor, b: torch.Tensor, p: Any, draw: Any
    ) -> torch.Tensor:
        if kind == "add":
            return a + b
        if kind == "mul":
            return a * b.tanh()
        if kind == "linear":
            return self.linear(a)
        if kind == "max":
            values, indices = a.max(dim=1, keepdim=True)
            return b - values + indices
        if kind == "split":
            left, right = a.split(2, dim=1)
            return torch.cat([right, left * 2], dim=1)
        if kind == "cond":
            return torch.cond(p, lambda a, b: (a + b).cos(), lambda a, b: a * 0.5 - b, (a, b))
        if kind == "state":
            state = draw.choice([self.one, self.two])
            state.add_(a.mean(0))
            return b + state
        if kind == "size":
            return a.reshape(a.shape[0] * 2, 2).sigmoid().reshape(a.shape[0], 4) * b.shape[0]
        if kind == "random":
            return a + torch.ops.aten.bernoulli.p(b, 0.5)
        return (a - self.two) / 2


ARGS = torch.randn(3, 4, generator=torch.Generator().manual_seed(1)), torch.tensor(True)


@cache
def edge_of(seed: int) -> rl.EdgeProgramManager:
    shapes = ({0: torch.export.Dim("n", min=2, max=9)}, None)
    return rl.to_edge(torch.export.export(Drawn(seed), ARGS, dynamic_shapes=shapes))


def calls(program: ExportedProgram) -> list[str]:
    """The names of all calls that a delegate's interpreter can run, by graph."""
    top = program.graph_module
    return [
        f"{i}/{node.name}"
        for i, module in enumerate([top, *branches(top)])
        for node in module.graph.nodes
        if node.op == "call_function" and "bernoulli" not in str(node.target)
    ]


def results(program: ExportedProgram) -> list[list[torch.Tensor]]:
    """The results of several calls in order, by a program that was just loaded."""
    program = copy_program(program)
    for name in program.graph_signature.buffers_to_mutate.values():
        program._state_dict[name] = program.state_dict[name].clone()
    module = program.module()
    torch.manual_seed(0)
    with torch.no_grad():  # else torch traces the branches at every call
        return [flat(module(*ARGS)) for _ in range(CALLS)]


@cache
def expected(seed: int) -> list[list[torch.Tensor]]:
    return results(edge_of(seed).exported_program())


class Named(OperatorSupportBase):
    """Supports the calls with these names, which come from `calls`."""

    def __init__(self, program: ExportedProgram, names: set[str]) -> None:
        self.names = names
        top = program.graph_module
        graphs = [m.graph for m in (top, *branches(top))]
        self.supported = [
            {n.name for n in g.nodes if f"{i}/{n.name}" in names} for i, g in enumerate(graphs)
        ]
        self.shapes = [[n.name for n in g.nodes] for g in graphs]

    def is_node_supported(self, submodules: object, node: Node) -> bool:
        nodes = [n.name for n in node.graph.nodes]
        return node.name in self.supported[self.shapes.index(nodes)]


def lowered(seed: int, data: st.DataObject, single: bool) -> rl.EdgeProgramManager:
    manager = edge_of(seed)
    for backend in ("Interpreted", "Other"):
        program = manager.exported_program()
        names = [n for n in calls(program) if "delegate" not in n and "getitem" not in n]
        chosen = data.draw(st.sets(st.sampled_from(names)) if names else st.just(set()))
        partitioner = SupportedOperatorPartitioner(
            DelegationSpec(backend), Named(program, chosen), allows_single_node_partition=single
        )
        manager = manager.to_backend(partitioner)
    return manager


@given(st.sampled_from(SEEDS), st.data(), st.booleans())
@settings(max_examples=40, deadline=None)
def test_results_in_eager(seed: int, data: st.DataObject, single: bool) -> None:
    actual = results(lowered(seed, data, single).exported_program())
    torch.testing.assert_close(actual, expected(seed))


@given(st.sampled_from(SEEDS), st.data())
@settings(max_examples=15, deadline=None)
def test_results_of_the_file(seed: int, data: st.DataObject) -> None:
    manager = lowered(seed, data, True)
    module = rl.load(manager.to_executorch().buffer)
    plain = rl.load(plain_file(seed))
    for _ in range(CALLS):
        args = [a.numpy() for a in ARGS]
        if "random" in Drawn(seed).kinds:
            module(*args)  # draws other numbers than eager; that it runs is what is left
            continue
        torch.testing.assert_close(flat(module(*args)), flat(plain(*args)))


@cache
def plain_file(seed: int) -> bytes:
    return edge_of(seed).to_executorch().buffer


@pytest.mark.parametrize("seed", SEEDS)
def test_everything_but_random_numbers_in_as_few_parts_as_can_be(seed: int) -> None:
    program = edge_of(seed).exported_program()
    support = Named(program, set(calls(program)))
    manager = edge_of(seed).to_backend(
        SupportedOperatorPartitioner(DelegationSpec("Interpreted"), support)
    )
    count = len(lowered_modules(manager.exported_program()))
    assert 1 <= count <= 1 + Drawn(seed).kinds.count("random")
    torch.testing.assert_close(results(manager.exported_program()), expected(seed))
