"""Partitions by capability and by pattern: no cycle, as few as possible, also on random graphs."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Collection

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.infra.partitioner import Partition
from torch.fx.passes.operator_support import OperatorSupportBase

from rushlight.errors import ExportError
from rushlight.partition import (
    CapabilityBasedPartitioner,
    DelegationSpec,
    GroupBasedPartitioner,
    generate_grouped_partitions_from_list_of_nodes,
    generate_partitions_from_list_of_nodes,
    generate_pattern_op_partitions,
    tag_partitions,
)
from rushlight.partition.regions import Region, find_regions, run_order

ADD = torch.ops.aten.add.Tensor
MAX = torch.ops.aten.max.dim
SIZE = torch.ops.aten.sym_size.int
RANDOM = torch.ops.aten.rand_like.default


class Nodes(OperatorSupportBase):
    """Supports these nodes."""

    def __init__(self, nodes: Collection[Node]) -> None:
        self.nodes = set(nodes)

    def is_node_supported(self, submodules: object, node: Node) -> bool:
        return node in self.nodes


class Draft:
    """Builds a graph; `s` adds a supported call and `u` an unsupported one."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.x = self.graph.placeholder("x")
        self.x.meta["val"] = torch.ones(2)
        self.supported: list[Node] = []

    def u(self, *sources: Node, target: object = ADD) -> Node:
        node = self.graph.call_function(target, sources or (self.x,))
        node.meta["val"] = 2 if target is SIZE else torch.ones(2)
        return node

    def s(self, *sources: Node, target: object = ADD) -> Node:
        node = self.u(*sources, target=target)
        self.supported.append(node)
        return node

    def module(self, *outputs: Node) -> GraphModule:
        self.graph.output(outputs)
        return GraphModule({}, self.graph)

    def partitions(self, *outputs: Node, **options: object) -> list[set[str]]:
        module = self.module(*outputs)
        options.setdefault("allows_single_node_partition", True)
        partitioner = CapabilityBasedPartitioner(module, Nodes(self.supported), **options)
        proposed = partitioner.propose_partitions()
        check(self.graph, proposed)
        return [{n.name for n in p.nodes} for p in proposed]


def check(graph: Graph, partitions: list[Partition]) -> list[Region]:
    """Check that the partitions can run in some order; returns them as regions."""
    nodes = [n for p in partitions for n in p.nodes]
    assert len(nodes) == len(set(nodes))
    assert [p.id for p in partitions] == list(range(len(partitions)))
    tags = dict.fromkeys(tag_partitions(partitions), DelegationSpec("Any"))
    data = {n for n in graph.nodes if n.op == "placeholder"}
    regions = find_regions(graph, data, tags, "forward")
    order = run_order(graph, regions, "forward")
    for node in graph.nodes:
        node.meta.pop("delegation_tag", None)
    return [one for one in order if isinstance(one, Region)]


def fewest(graph: Graph, supported: Collection[Node]) -> int:
    """The greatest number of times that a path enters supported nodes, a lower bound for the number
    of partitions."""
    entered: dict[Node, int] = {}
    for node in graph.nodes:
        before = [(entered[s], s in supported) for s in node.all_input_nodes]
        mine = node in supported
        entered[node] = max((n + (mine and not s) for n, s in before), default=int(mine))
    return max(entered.values(), default=0)


def test_one_partition_for_branches_that_meet_again() -> None:
    d = Draft()
    a = d.s()
    b, c = d.s(a), d.s(a)
    e = d.s(b, c)
    assert d.partitions(e) == [{n.name for n in (a, b, c, e)}]


def test_a_node_between_splits_and_the_last_partition_comes_first() -> None:
    d = Draft()
    a = d.s()
    b = d.u(a)
    c = d.s(b, a)
    assert d.partitions(c) == [{c.name}, {a.name}]


def test_partitions_that_do_not_need_each_other_are_one() -> None:
    d = Draft()
    a, b = d.s(), d.s()
    assert d.partitions(d.u(a), d.u(b)) == [{a.name, b.name}]


def test_two_ways_round_make_no_cycle() -> None:
    # a → u → c and b → v → d, with a, d in reach of one another only through u and v
    d = Draft()
    a, b = d.s(), d.s()
    u, v = d.u(a), d.u(b)
    c, e = d.s(u, b), d.s(v, a)
    assert d.partitions(c, e) == [{c.name, e.name}, {a.name, b.name}]


def test_results_of_one_node_stay_with_it() -> None:
    d = Draft()
    a = d.s(target=MAX)
    values = d.u(a, 0, target=operator.getitem)  # nobody said that it is supported
    indices = d.u(a, 1, target=operator.getitem)
    b = d.u(indices)
    c = d.s(values, b)
    assert d.partitions(c) == [{c.name}, {a.name, values.name, indices.name}]


def test_results_of_a_node_outside_stay_outside() -> None:
    d = Draft()
    a = d.u(target=MAX)
    values = d.s(a, 0, target=operator.getitem)
    b = d.s(values)
    assert d.partitions(b) == [{b.name}]


def test_what_only_a_later_partition_uses_moves_there() -> None:
    d = Draft()
    a = d.s()
    late = d.s(d.x)
    b = d.u(a)
    c = d.s(b, late)
    assert d.partitions(c) == [{c.name, late.name}, {a.name}]


def test_what_would_drag_values_along_does_not_move() -> None:
    d = Draft()
    a = d.s()
    b = d.s(a, d.s(d.x))
    c = d.s(d.u(a), b)
    partitions = d.partitions(c)
    assert partitions[0] == {c.name} and b.name in partitions[1]


def test_effects_outside_keep_their_order() -> None:
    # first → p1 → … : p2 feeds the second random call, and the first one feeds p1
    d = Draft()
    a = d.s()
    first = d.u(a, target=RANDOM)
    second = d.u(d.x, target=RANDOM)
    b = d.s(second)
    assert d.partitions(first, b) == [{b.name}, {a.name}]


def test_sizes_stay_if_only_the_partition_uses_them() -> None:
    d = Draft()
    a = d.s()
    size = d.s(a, 0, target=SIZE)
    b = d.s(a, size)
    assert d.partitions(b) == [{a.name, size.name, b.name}]


def test_sizes_that_something_else_uses_stay_outside() -> None:
    d = Draft()
    a = d.s()
    size = d.s(a, 0, target=SIZE)
    twice = d.s(size, 2, target=SIZE)
    b = d.s(a, twice)
    partitions = d.partitions(b, d.u(a, twice))
    assert partitions == [{b.name}, {a.name}]


def test_a_size_moves_to_the_partition_that_uses_it() -> None:
    d = Draft()
    a = d.s()
    size = d.s(a, 0, target=SIZE)
    c = d.s(d.u(a), size)
    assert d.partitions(c) == [{c.name, size.name}, {a.name}]


def test_single_nodes_are_declined_on_demand() -> None:
    d = Draft()
    a = d.s()
    b = d.u(a)
    c = d.s(d.s(b))
    module = d.module(c)
    partitioner = CapabilityBasedPartitioner(module, Nodes(d.supported))
    assert [len(p.nodes) for p in partitioner.propose_partitions()] == [2]
    assert partitioner.declined.keys() == {a}
    assert "too small" in partitioner.declined[a]


def test_some_single_nodes_are_worth_a_partition() -> None:
    d = Draft()
    a = d.s()
    partitions = d.partitions(
        a,
        allows_single_node_partition=False,
        allowed_single_node_partition_ops=[torch.fx.node._get_qualified_name(ADD)],
    )
    assert partitions == [{a.name}]


def test_a_size_whose_user_was_too_small_leaves_as_well() -> None:
    d = Draft()
    a = d.s(d.s())
    size = d.s(a, 0, target=SIZE)
    b = d.s(d.u(a), size)  # alone in its partition
    c = d.s(a, size)
    partitions = d.partitions(b, c, allows_single_node_partition=False)
    assert all(size.name not in p for p in partitions)


def test_parameters_go_to_the_partition_that_uses_them() -> None:
    d = Draft()
    with d.graph.inserting_after(d.x):
        p = d.graph.placeholder("p")
    a = d.s()
    c = d.s(d.u(a), p)
    d.supported.append(p)
    assert d.partitions(c) == [{c.name, "p"}, {a.name}]


# --- groups --------------------------------------------------------------------------------------


def test_a_group_stays_together() -> None:
    d = Draft()
    a = d.s()
    b = d.s(d.x)
    c = d.s(d.u(a), b)
    partitions = d.partitions(c, node_groups=[[a, b]])
    assert {a.name, b.name} in partitions


def test_what_lies_between_a_groups_nodes_joins_it() -> None:
    d = Draft()
    a = d.s()
    b = d.s(a)
    c = d.s(b)
    assert d.partitions(d.u(c), node_groups=[[a, c]]) == [{a.name, b.name, c.name}]


def test_a_group_around_an_unsupported_node_is_taken_apart() -> None:
    d = Draft()
    a = d.s()
    b = d.u(a)
    c = d.s(b)
    assert d.partitions(c, node_groups=[[a, c]]) == [{c.name}, {a.name}]


def test_of_two_groups_that_need_each_other_one_stays() -> None:
    d = Draft()
    a, b = d.s(), d.s()
    c, e = d.s(d.u(a)), d.s(d.u(b))
    partitions = d.partitions(c, e, node_groups=[[a, e], [b, c]])
    assert any({a.name, e.name} <= p or {b.name, c.name} <= p for p in partitions)


def test_a_node_in_two_groups_is_refused() -> None:
    d = Draft()
    a, b = d.s(), d.s()
    with pytest.raises(ExportError, match=r"several groups: \['add_tensor'"):
        GroupBasedPartitioner(d.module(b), Nodes([a, b]), node_groups=[[a, b], [a]])


def test_listed_groups_that_cannot_be_whole_are_left_out() -> None:
    d = Draft()
    a = d.u()
    b = d.u(a)
    c = d.u(b)
    e = d.u(c)
    module = d.module(e)
    partitions = generate_grouped_partitions_from_list_of_nodes(module, [[a, c], [e]])
    assert [set(p.nodes) for p in partitions] == [{e}]
    alone = generate_grouped_partitions_from_list_of_nodes(module, [[a, c]], Nodes([c]))
    assert [set(p.nodes) for p in alone] == [{c}]


def test_listed_nodes_and_supported_ones_go_together() -> None:
    d = Draft()
    a = d.u()
    b = d.u(a)
    module = d.module(b)
    partitions = generate_partitions_from_list_of_nodes(module, [[a]], Nodes([b]))
    assert [set(p.nodes) for p in partitions] == [{a, b}]
    with pytest.raises(ExportError, match="nothing to make partitions of"):
        generate_partitions_from_list_of_nodes(module)


def test_patterns_are_found_and_taken_whole() -> None:
    def sine_of_sum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.sin.default(torch.ops.aten.add.Tensor(x, y))

    def model(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        kept = torch.ops.aten.cos.default(sine_of_sum(x, y))
        return torch.ops.aten.add.Tensor(sine_of_sum(kept, y), y)

    pattern, graph = torch.fx.symbolic_trace(sine_of_sum), torch.fx.symbolic_trace(model)
    partitions = generate_pattern_op_partitions(graph, patterns=[pattern.graph])
    assert [[n.name for n in p.nodes] for p in partitions] == [
        ["add_tensor_1", "sin_default_1"],
        ["add_tensor", "sin_default"],
    ]


# --- drawn graphs --------------------------------------------------------------------------------

KINDS = ("s", "u", "max", "size", "random")


@st.composite
def drafts(draw: st.DrawFn) -> tuple[Draft, GraphModule, list[list[Node]]]:
    d = Draft()
    nodes = [d.x]
    for _ in range(draw(st.integers(1, 30))):
        kind = draw(st.sampled_from(KINDS))
        sources = draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=3))
        add = d.s if draw(st.booleans()) else d.u
        if kind == "max":
            source = add(*sources, target=MAX)
            nodes += [d.u(source, i, target=operator.getitem) for i in range(2)]
        elif kind == "size":
            nodes.append(add(sources[0], 0, target=SIZE))
        elif kind == "random":
            nodes.append(add(sources[0], target=RANDOM))
        else:
            nodes.append((d.s if kind == "s" else d.u)(*sources))
    module = d.module(*draw(st.lists(st.sampled_from(nodes[1:]), min_size=1, max_size=3)))
    order = draw(st.permutations(d.supported))
    sizes = draw(st.lists(st.integers(2, 4), max_size=3))
    groups = [order[sum(sizes[:i]) : sum(sizes[: i + 1])] for i in range(len(sizes))]
    return d, module, [g for g in groups if g]


@given(drafts(), st.booleans())
@settings(max_examples=300, deadline=None)
def test_drawn_graphs(drawn: tuple[Draft, GraphModule, list[list[Node]]], single: bool) -> None:
    d, module, groups = drawn
    partitioner = CapabilityBasedPartitioner(module, Nodes(d.supported), single, node_groups=groups)
    partitions = partitioner.propose_partitions()
    check(d.graph, partitions)
    taken = {n for p in partitions for n in p.nodes}
    assert {n for n in d.supported if n not in partitioner.declined} <= taken
    assert not taken & partitioner.declined.keys()
    for partition in partitions:
        for node in partition.nodes:
            outside = [u for u in node.users if u not in partition.nodes]
            assert not (outside and isinstance(node.meta["val"], int)), "a number leaves"
            picks = [u for u in outside if u.target is operator.getitem]
            assert not picks


@given(drafts())
@settings(max_examples=200, deadline=None)
def test_drawn_graphs_of_tensors_have_the_fewest_partitions(
    drawn: tuple[Draft, GraphModule, list[list[Node]]],
) -> None:
    d, module, _ = drawn
    numbers = {SIZE, RANDOM}  # what leaves, and what has an order, may need more
    for node in d.graph.nodes:
        if node.target in numbers:
            node.target = ADD
            node.meta["val"] = torch.ones(2)
    partitions = CapabilityBasedPartitioner(module, Nodes(d.supported), True).propose_partitions()
    taken = {n for p in partitions for n in p.nodes}
    assert len(partitions) == fewest(d.graph, taken)


def calls_made_by(function: Callable[[], object]) -> int:
    """The number of function calls, in C too: a measure of time that is equal on all machines."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def test_work_grows_with_the_graph_and_not_with_its_square() -> None:
    calls = {}
    for size in (1_000, 10_000):
        d = Draft()
        nodes = [d.x]
        for i in range(size):
            sources = nodes[-1 - i % 7 % len(nodes)], nodes[-1 - i % 11 % len(nodes)]
            nodes.append((d.u if i % 5 == 0 else d.s)(*sources))
        module = d.module(nodes[-1])
        groups = [d.supported[i : i + 2] for i in range(0, len(d.supported) - 2, 9)]
        partitioner = CapabilityBasedPartitioner(
            module, Nodes(d.supported), True, node_groups=groups
        )
        calls[size] = calls_made_by(partitioner.propose_partitions)
    assert calls[10_000] < 20 * calls[1_000], calls
