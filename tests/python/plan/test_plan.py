"""The memory planner: every plan is valid, near the lower bound, and the same each time."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rushlight.errors import ExportError
from rushlight.plan import (
    STRATEGIES,
    Block,
    BlockId,
    check_plan,
    live_bytes,
    lower_bound,
    plan_memory,
    report_plan,
)
from rushlight.plan.block import arena_sizes
from rushlight.plan.placement import Placement
from rushlight.plan.search import improve
from rushlight.plan.sweep import overlaps, place_by_start


@st.composite
def blocks_of_some_memories(draw: st.DrawFn) -> list[Block]:
    count = draw(st.integers(1, 40))
    blocks = []
    for i in range(count):
        start = draw(st.integers(0, 30))
        blocks.append(
            Block(
                id=i,
                size=draw(st.sampled_from((0, 1, 15, 16, 17, 64, 100, 4096))),
                start=start,
                end=start + draw(st.integers(0, 12)),
                memory_id=draw(st.integers(1, 3)),
                alignment=draw(st.sampled_from((1, 4, 16, 64))),
            )
        )
    return blocks


def collisions(blocks: Sequence[Block], offsets: Mapping[BlockId, int]) -> list[tuple[int, int]]:
    """The pairs of blocks that share bytes while both are alive, by comparing all pairs."""
    return [
        (a.id, b.id)
        for i, a in enumerate(blocks)
        for b in blocks[:i]
        if a.memory_id == b.memory_id
        and a.start <= b.end
        and b.start <= a.end
        and max(offsets[a.id], offsets[b.id]) < min(offsets[a.id] + a.size, offsets[b.id] + b.size)
    ]


def peak(blocks: Sequence[Block], memory_id: int) -> int:
    """The most live bytes at any instruction, without padding, by counting them at each."""
    mine = [b for b in blocks if b.memory_id == memory_id]
    return max(sum(b.size for b in mine if b.start <= t <= b.end) for t in range(45))


@given(blocks_of_some_memories())
def test_no_live_blocks_overlap(blocks: list[Block]) -> None:
    plan = plan_memory(blocks, search_budget=20_000)
    assert not collisions(blocks, plan.offsets)
    for block in blocks:
        assert plan.offsets[block.id] % block.alignment == 0
        assert 0 <= plan.offsets[block.id] <= plan.sizes[block.memory_id] - block.size
    for memory_id, size in plan.sizes.items():
        assert peak(blocks, memory_id) <= plan.lower_bound[memory_id] <= size


@given(blocks_of_some_memories(), st.sampled_from(sorted(STRATEGIES)))
def test_every_strategy_alone_is_valid(blocks: list[Block], name: str) -> None:
    plan = plan_memory(blocks, strategies={name: STRATEGIES[name]}, search_budget=0)
    assert plan.strategy == name
    assert not collisions(blocks, plan.offsets)


@given(blocks_of_some_memories())
def test_equal_blocks_get_an_equal_plan(blocks: list[Block]) -> None:
    again = [Block(b.id, b.size, b.start, b.end, b.memory_id, b.alignment) for b in blocks]
    assert plan_memory(blocks, search_budget=5_000) == plan_memory(again, search_budget=5_000)


@given(blocks_of_some_memories())
def test_the_search_never_makes_a_plan_larger(blocks: list[Block]) -> None:
    group = [b for b in blocks if b.memory_id == blocks[0].memory_id]
    placement = Placement(group)
    for strategy in STRATEGIES.values():
        start = strategy(placement)
        better = improve(placement, start, target=0, budget=3_000)
        assert placement.top(better) <= placement.top(start)
        assert not collisions(group, {b.id: o for b, o in zip(group, better, strict=True)})


@given(blocks_of_some_memories(), st.randoms(use_true_random=False))
def test_check_plan_finds_exactly_the_collisions(blocks: list[Block], rng: random.Random) -> None:
    offsets = {b.id: rng.randrange(0, 40) * b.alignment for b in blocks}
    sizes = dict.fromkeys((1, 2, 3), 1 << 20)
    if collisions(blocks, offsets):
        with pytest.raises(ExportError, match="share bytes while both live"):
            check_plan(blocks, offsets, sizes)
    else:
        check_plan(blocks, offsets, sizes)


def test_lifetimes_are_inclusive() -> None:
    touching = [Block("a", 16, 0, 3), Block("b", 16, 3, 5)]
    apart = [Block("a", 16, 0, 3), Block("b", 16, 4, 5)]
    assert plan_memory(touching).sizes == {1: 32}
    assert plan_memory(apart).sizes == {1: 16}


def test_sizes_are_padded_only_to_what_others_could_use() -> None:
    blocks = [Block("a", 20, 0, 0, alignment=64), Block("b", 16, 0, 0, alignment=16)]
    assert lower_bound(blocks) == {1: 48}
    assert plan_memory(blocks).sizes == {1: 48}


def test_blocks_that_live_throughout_are_no_obstacle() -> None:
    """A cache of odd size in the middle of the order would split the arena in two."""
    caches = [Block(f"cache{i}", 1008, 0, 100) for i in range(20)]
    moving = [Block(i, 4096 if i % 2 else 2048, i, i + 1) for i in range(100)]
    plan = plan_memory([*moving[:50], *caches, *moving[50:]])
    assert plan.sizes == plan.lower_bound == {1: 20 * 1008 + 4096 + 2048}


def test_the_search_closes_a_gap_that_every_greedy_order_leaves() -> None:
    rng = random.Random(7)
    blocks = []
    for i in range(200):
        start = rng.randrange(200)
        end = start + int(rng.expovariate(1 / 8))
        blocks.append(Block(i, rng.randrange(1, 100_000), start, end))
    greedy = plan_memory(blocks, search_budget=0)
    searched = plan_memory(blocks)
    assert searched.strategy.startswith("search from ")
    excess = searched.sizes[1] - searched.lower_bound[1]
    assert excess < 0.5 * (greedy.sizes[1] - greedy.lower_bound[1])


def test_three_thousand_blocks_are_fast() -> None:
    rng = random.Random(1)
    blocks = []
    for i in range(3000):
        size = rng.choice((64, 1024, 4096, 16384, 196608))
        blocks.append(Block(i, size, i, i + rng.randrange(12)))
    begin = time.process_time()
    plan = plan_memory(blocks)
    assert time.process_time() - begin < 1.5, "0.1 s where nothing else runs"
    assert plan.sizes[1] <= 1.02 * plan.lower_bound[1]


def test_no_blocks_need_no_memory() -> None:
    plan = plan_memory([])
    assert (plan.offsets, plan.sizes, plan.lower_bound) == ({}, {}, {})


def test_blocks_without_bytes_take_no_space() -> None:
    plan = plan_memory([Block("a", 0, 0, 5), Block("b", 16, 0, 5), Block("c", 0, 2, 3)])
    assert plan.sizes == {1: 16}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"size": -1}, "its size is -1"),
        ({"start": 3, "end": 2}, "lives from 3 to 2"),
        ({"start": -1}, "lives from -1"),
        ({"memory_id": 0}, "memory id is 0"),
        ({"alignment": 24}, "alignment is 24; it must be a power of two"),
        ({"alignment": 0}, "alignment is 0"),
    ],
)
def test_a_senseless_block_is_refused(wrong: dict[str, int], says: str) -> None:
    with pytest.raises(ExportError, match=says):
        Block(**{"id": "x", "size": 16, "start": 0, "end": 2, **wrong})


def test_two_blocks_with_one_id_are_refused() -> None:
    with pytest.raises(ExportError, match="two blocks are called 'x'"):
        plan_memory([Block("x", 16, 0, 1), Block("x", 16, 4, 5)])


PAIR = [Block("a", 32, 0, 2), Block("b", 32, 1, 3)]


def test_a_planner_of_the_users_is_used() -> None:
    def stacked(blocks: Sequence[Block]) -> dict[BlockId, int]:
        return {block.id: 64 * i for i, block in enumerate(blocks)}

    plan = plan_memory(PAIR, planner=stacked)
    assert (plan.offsets, plan.sizes, plan.strategy) == ({"a": 0, "b": 64}, {1: 96}, "stacked")


@pytest.mark.parametrize(
    ("offsets", "says"),
    [
        ({"b": 0}, "block 'a' has no offset"),
        ({"a": 0}, "block 'b' has no offset"),
        ({"a": 0, "b": 40}, "'b' is at offset 40, which is not a multiple of its alignment 16"),
        ({"a": -16, "b": 32}, "'a' is at offset -16"),
        ({"a": 0, "b": 16}, r"'b' \(bytes 16 to 48, .*'a' \(bytes 0 to 32, .*share bytes"),
    ],
)
def test_a_bad_plan_of_the_users_is_refused(offsets: dict[BlockId, int], says: str) -> None:
    with pytest.raises(ExportError, match=says):
        plan_memory(PAIR, planner=lambda blocks: offsets)


def test_a_block_outside_its_memory_is_refused() -> None:
    with pytest.raises(ExportError, match="'b' needs bytes 32 to 64, but memory 1 has 48"):
        check_plan(PAIR, {"a": 0, "b": 32}, {1: 48})


def test_the_report_has_what_a_drawing_needs() -> None:
    blocks = [Block(0, 64, 0, 1), Block(1, 32, 1, 2), Block(2, 16, 0, 9, memory_id=2)]
    plan = plan_memory(blocks)
    first, second = report_plan(blocks, plan, {0: "x", 1: "relu"})
    assert [(b.name, b.size, b.start, b.end) for b in first.blocks] == [
        ("x", 64, 0, 1),
        ("relu", 32, 1, 2),
    ]
    assert first.live == ((0, 64), (1, 96), (2, 32), (3, 0))
    assert (first.size, first.lower_bound, first.overhead, first.sum_of_blocks) == (96, 96, 0, 96)
    assert [b.name for b in first.at_peak()] == ["x", "relu"]
    assert (second.memory_id, second.blocks[0].name) == (2, "2")


def test_live_bytes_returns_to_zero() -> None:
    assert live_bytes([Block(0, 10, 2, 4), Block(1, 16, 3, 8)]) == [
        (2, 16),
        (3, 32),
        (5, 16),
        (9, 0),
    ]


# --- very many blocks -----------------------------------------------------------------------------


@given(blocks_of_some_memories())
def test_placed_by_start_no_two_share_bytes(blocks: list[Block]) -> None:
    group = [block for block in blocks if block.memory_id == 1]
    offsets = dict(zip((b.id for b in group), place_by_start(group), strict=True))
    assert not collisions(group, offsets)
    check_plan(group, offsets, arena_sizes(group, offsets))


@given(blocks_of_some_memories())
def test_overlaps_are_counted(blocks: list[Block]) -> None:
    used = [block for block in blocks if block.size]
    pairs = [
        (a, b)
        for i, a in enumerate(used)
        for b in used[:i]
        if a.start <= b.end and b.start <= a.end
    ]
    assert overlaps(blocks) == len(pairs)


def test_of_thousands_that_live_at_once_no_pairs_are_looked_at() -> None:
    def refused(placement: Placement) -> list[int]:
        raise AssertionError("it looked at pairs")

    blocks = [Block(i, 64 * (1 + i % 5), i % 7, 4000 + i, 1, 16) for i in range(4000)]
    plan = plan_memory(blocks, strategies={"none": refused})
    assert plan.sizes[1] <= 1.2 * plan.lower_bound[1]
