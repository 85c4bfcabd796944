"""Long chains of elementwise calls on the cpu backend: cut at the engine's limits, none refused."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
import torch
import torch.ao.quantization.fx._decomposed
from cpu_models import operations, whole
from torch import nn

import rushlight as rl
from delegates import lowered_modules
from rushlight.backends.cpu import CpuPartitioner
from rushlight.backends.cpu.integers.facts import static_of
from rushlight.backends.cpu.tiles.assemble import Assembled, TooLongError, assemble, programs
from rushlight.backends.cpu.tiles.terms import Term, constant
from rushlight.schema import cpu_engine as fb
from rushlight.schema.cpu_engine import TileLimit, TileOp

RULES: dict[TileOp, Callable[..., float]] = {
    TileOp.ADD: lambda a, b, c, v: a + b,
    TileOp.SUB: lambda a, b, c, v: a - b,
    TileOp.MAX: lambda a, b, c, v: max(a, b),
    TileOp.NEG: lambda a, b, c, v: -a,
    TileOp.ADD_VALUE: lambda a, b, c, v: a + v,
    TileOp.WHERE: lambda a, b, c, v: b if a else c,
}


class Cell:
    """A place in memory."""

    value = 0.0


def run(program: Assembled) -> None:
    """The results of a tile program for tensors of one element."""
    registers: dict[int, float] = {}
    for at in range(0, len(program.code), 3):
        word, c, bits = program.code[at : at + 3]
        op, out, a, b = word & 255, word >> 8 & 255, word >> 16 & 255, word >> 24
        value = torch.tensor([bits]).to(torch.uint32).view(torch.float32).item()
        if op == TileOp.LOAD:
            registers[out] = program.sources[a].value
        elif op == TileOp.STORE:
            program.sources[out].value = registers[a]
        elif op == TileOp.CONSTANT:
            registers[out] = value
        else:
            got = [registers.get(i, 0.0) for i in (a, b, c)]
            registers[out] = RULES[TileOp(op)](*got, value)
        assert out < TileLimit.REGISTERS or op == TileOp.STORE


def value_of(terms: Sequence[Term], loaded: dict[Term, float]) -> list[float]:
    """The values of terms, each of which comes after its inputs."""
    known = dict(loaded)
    for term in terms:
        if term.op is TileOp.CONSTANT:
            known[term] = term.value
        elif term not in known:
            got = [known[one] for one in term.inputs] + [0.0] * 3
            known[term] = RULES[term.op](*got[:3], term.value)
    return [known[term] for term in terms]


def drawn(seed: int, sources: int, count: int) -> tuple[list[Term], list[Cell], list[Term]]:
    """Random terms of earlier terms, mostly of the last ones."""
    choose = random.Random(seed)
    cells = [Cell() for _ in range(sources)]
    for i, cell in enumerate(cells):
        cell.value = float(i * 7 % 11 - 5)
    loads = [Term(TileOp.LOAD, source=cell) for cell in cells]
    terms = [*loads, constant(2.0), constant(-3.0)]
    for _ in range(count):
        op = choose.choice(list(RULES))
        many = {TileOp.NEG: 1, TileOp.ADD_VALUE: 1, TileOp.WHERE: 3}.get(op, 2)
        near = [choose.choice(terms[-4:] if choose.random() < 0.8 else terms) for _ in range(many)]
        terms.append(Term(op, tuple(near), 1.0 if op is TileOp.ADD_VALUE else 0.0))
    return loads, cells, terms


@pytest.mark.parametrize("seed", range(40))
def test_any_terms_are_computed_by_programs_within_the_limits(seed: int) -> None:
    loads, cells, terms = drawn(seed, 3 + seed % 25, 40 * (seed + 1))
    results = [terms[-1], *random.Random(seed).sample(terms, 1 + seed % 20)]
    targets = [Cell() for _ in results]
    known = {load: cell.value for load, cell in zip(loads, cells, strict=True)}
    wanted = dict(zip(terms, value_of(terms, known), strict=True))
    for program in programs(results, targets, Cell):
        assert len(program.code) <= 3 * TileLimit.INSTRUCTIONS
        assert len(program.sources) <= TileLimit.OPERANDS
        run(program)
    assert [t.value for t in targets] == pytest.approx([wanted[t] for t in results])


def test_a_chain_is_cut_into_the_fewest_programs() -> None:
    x = Term(TileOp.LOAD, source=Cell())
    for _ in range(2000):
        x = Term(TileOp.NEG, (x,))
    # 254 calls, a load and a store in each.
    assert len(list(programs([x], [Cell()], Cell))) == -(-2000 // 254)
    with pytest.raises(TooLongError):
        assemble([x], [Cell()])


def test_cuts_are_where_one_value_passes() -> None:
    x = Term(TileOp.LOAD, source=Cell())
    for i in range(400):  # between the ends of every 5 calls more than one value is needed
        parts = [Term(TileOp.ADD_VALUE, (x,), float(i + k)) for k in range(3)]
        x = Term(TileOp.MAX, (Term(TileOp.ADD, (parts[0], parts[1])), parts[2]))
    passed: list[Cell] = []

    def memory() -> Cell:
        passed.append(Cell())
        return passed[-1]

    made = list(programs([x], [Cell()], memory))
    assert len(passed) == len(made) - 1


class Chain(nn.Module):
    """Many calls of one kind, one after the other."""

    def __init__(self, link: Callable[..., torch.Tensor], count: int, *rest: int) -> None:
        super().__init__()
        self.link, self.count = link, count
        self.first = nn.Linear(8, 8) if rest else nn.Identity()
        self.a = nn.Parameter(1 + torch.rand(8) / 100)
        self.b = nn.Parameter(torch.randn(8) / 100)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for i in range(self.count):
            x = self.link(self, x, i)
        return x


LINKS: dict[str, Callable[..., torch.Tensor]] = {
    "scaled": lambda m, x, i: x * m.a + m.b,
    "functions": lambda m, x, i: torch.relu(torch.sin(x)),
    "residual": lambda m, x, i: x + torch.tanh(x) / 300,
    "diamond": lambda m, x, i: (x + x) * 0.5 if i % 2 else torch.maximum(x, x.neg()),
    "compared": lambda m, x, i: torch.where(x > m.b, x, x * 0.5),
    "silu": lambda m, x, i: x * torch.sigmoid(x) + m.b,
}


@pytest.mark.parametrize("name", LINKS)
def test_chains_beyond_a_program(name: str) -> None:
    operators = whole(Chain(LINKS[name], 300), torch.randn(3, 8), tolerance=1e-4)
    assert set(operators) == {"Elementwise"} and 2 <= len(operators) <= 9


def test_a_chain_behind_a_product_is_cut_too() -> None:
    operators = whole(Chain(LINKS["scaled"], 300, 1), torch.randn(3, 8), tolerance=1e-4)
    assert operators[0].startswith("Product") and len(operators) <= 4


def test_pieces_of_a_concatenation_share_programs() -> None:
    class Pieces(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.all = nn.ParameterList([nn.Parameter(torch.randn(4)) for _ in range(90)])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            same = torch.relu(x)
            return torch.cat([*(p * x for p in self.all), *[same] * 40]) + 1

    operators = whole(Pieces(), torch.randn(4))
    assert len(operators) <= 60


def test_every_program_of_a_file_is_within_the_limits() -> None:
    exported = torch.export.export(Chain(LINKS["scaled"], 300).eval(), (torch.randn(3, 8),))
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])
    programs = operations(edge)
    assert len(programs) > 1
    for operation in programs:
        assert isinstance(operation, fb.Elementwise)
        assert len(operation.program.code) <= 3 * TileLimit.INSTRUCTIONS
        assert len(operation.program.operands) <= TileLimit.OPERANDS


def test_each_program_of_a_cut_chain_tells_its_own_calls() -> None:
    exported = torch.export.export(Chain(LINKS["scaled"], 600).eval(), (torch.randn(3, 8),))
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])
    [lowered] = lowered_modules(edge.exported_program())
    told = [[name for name, _, _ in rows] for rows in lowered.sources().values()]
    assert len(told) > 1 and sum(map(len, told)) == 1200
    assert len({name for names in told for name in names}) == 1200


def test_programs_of_a_long_concatenation_tell_their_own_pieces() -> None:
    class Pieces(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.all = nn.ParameterList([nn.Parameter(torch.randn(4)) for _ in range(200)])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.stack([x * torch.sigmoid(x) * one for one in self.all]).sum(0)

    exported = torch.export.export(Pieces().eval(), (torch.randn(4),))
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])
    [lowered] = lowered_modules(edge.exported_program())
    told = [[name for name, _, _ in rows] for rows in lowered.sources().values()]
    count = len({name for names in told for name in names})
    assert len(told) > 20 and sum(map(len, told)) <= count + 3 * len(told)


def test_concatenations_of_concatenations_are_followed_once() -> None:
    graph = torch.fx.Graph()
    made = graph.call_function(
        torch.ops.quantized_decomposed.dequantize_per_tensor.default,
        (graph.placeholder("x"), 0.5, 3, -128, 127, torch.int8),
    )
    first = made
    made.meta["val"] = torch.zeros(1)
    for _ in range(3000):  # each value is used twice
        made = graph.call_function(torch.ops.aten.cat.default, ([made, made],))
    assert static_of(made, lambda node: None) == static_of(first, lambda node: None) is not None
    other = graph.call_function(torch.ops.aten.cat.default, ([made, graph.placeholder("y")],))
    assert static_of(other, lambda node: None) is None
