"""Chains of convolutions, cut into bands of rows where they need the most scratch memory.

An image that only the next convolution reads need not exist as a whole: the first convolution
computes just the rows that the second one reads for a band of its results, and the bands of that
image share one small memory. Rows at the edge of a band are computed twice. Results are the same
to the bit.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from rushlight.backends.cpu.graph.layout import Layout
from rushlight.backends.cpu.graph.values import (
    CHANNELS_LAST,
    EngineNode,
    Graph,
    Memory,
    View,
    lives_of,
)
from rushlight.schema import cpu_engine as fb

# Scratch memory is small enough if it stays in the second-level cache, or beside the constants.
_SMALL_BYTES, _SMALL_SHARE = 1 << 18, 1 / 8
_LESS = 7 / 8  # bands are worth while if they leave at most this share of it
_MAX_WORK = 1 / 32  # the most that bands may add to the convolutions' multiplications
_NODE_WORK = 1 << 18  # multiplications that take as long as the threads' barrier after a node
_LONGEST = 4  # convolutions that are cut together
_UNIT = 4  # rows of a band are a multiple, which two threads share evenly


def cut_into_bands(graph: Graph) -> None:
    """Cut convolutions of a graph, if the scratch memory becomes smaller by an eighth or more.

    It is made smaller by an eighth at a time, each time with the least work, until it is small or
    that is no longer possible. A graph of dynamic sizes stays as it is.
    """
    lives = lives_of(graph.nodes)
    if not all(isinstance(memory.size, int) for memory, _, _ in lives):
        return
    live = _live_bytes(lives, len(graph.nodes))
    most_work = _MAX_WORK * sum(_work(node) for node in graph.nodes if _is_cut_by_rows(node))
    small = max(_SMALL_BYTES, _SMALL_SHARE * sum(data.nbytes for data in graph.constants))
    level: float = max(live, default=0)
    if level <= small:
        return
    cuts = _cuts(graph.nodes, lives)
    chosen: Sequence[_Cut] = []
    while level > small:
        level *= _LESS
        cheapest = _least_work(live, cuts, level)
        if cheapest is None or sum(cut.work for cut in cheapest) > most_work:
            break
        chosen = cheapest
    for cut in reversed(chosen):
        graph.nodes[cut.first : cut.last + 1] = _nodes_of(graph, cut)


@dataclass(frozen=True)
class _Cut:
    """Neighbouring nodes in bands.

    Attributes:
        first: its first node.
        last: its last node.
        bands: for each band, the rows of its result that each of the nodes computes.
        live: the most bytes of scratch memory that are in use at once.
        work: multiplications more than without bands, with `_NODE_WORK` for each further node.
    """

    first: int
    last: int
    bands: list[list[range]]
    live: int
    work: int


def _live_bytes(lives: Sequence[tuple[Memory, int, int]], n_nodes: int) -> list[int]:
    """The bytes of scratch memory that each node needs."""
    live = [0] * n_nodes
    for memory, first, last in lives:
        for at in range(first, last + 1):
            live[at] += memory.size
    return live


def _least_work(
    live: Sequence[int], cuts: Sequence[Sequence[_Cut]], level: float
) -> list[_Cut] | None:
    """The cuts of least work with which no node needs more than `level` bytes; None if there are
    none. `cuts` are grouped by their last node."""
    best: list[tuple[int, list[_Cut]] | None] = [(0, [])]  # by the number of nodes so far
    for at, own in enumerate(live):
        ways = [best[at]] if own <= level else []
        for cut in cuts[at]:
            if cut.live <= level and (before := best[cut.first]):
                ways.append((before[0] + cut.work, [*before[1], cut]))
        best.append(min((way for way in ways if way), key=lambda way: way[0], default=None))
    return best[-1][1] if best[-1] else None


# --- which cuts there are -------------------------------------------------------------------------


def _cuts(
    nodes: Sequence[EngineNode], lives: Sequence[tuple[Memory, int, int]]
) -> list[list[_Cut]]:
    """All cuts of chains of convolutions that only the next one reads, by their last node."""
    spans = {id(memory): (first, last) for memory, first, last in lives}
    links = [
        _is_link(one, other) and spans.get(id(one.outputs[0].memory)) == (at, at + 1)
        for at, (one, other) in enumerate(pairwise(nodes))
    ]
    cuts: list[list[_Cut]] = [[] for _ in nodes]
    for last in range(len(nodes)):
        for first in range(last - 1, max(last - _LONGEST, -1), -1):
            if not links[first]:
                break
            members = nodes[first : last + 1]
            inner = {id(node.outputs[0].memory) for node in members[:-1]}
            outer = sum(
                memory.size
                for memory, begin, end in lives
                if begin <= last and end >= first and id(memory) not in inner
            )
            for bands in _ways_to_cut(members):
                live = outer + max(_bytes_inside(members, rows) for rows in bands)
                cuts[last].append(_Cut(first, last, bands, live, _more_work(members, bands)))
    return cuts


def _is_link(one: EngineNode, other: EngineNode) -> bool:
    """Whether one convolution's result is another one's image, and none of its residuals."""
    if not (_is_cut_by_rows(one) and _is_cut_by_rows(other)):
        return False
    [result], image = one.outputs, other.inputs[0]
    assert image is not None
    return image.place() == result.place() and all(
        view.memory is not result.memory for view in other.operands
    )


def _is_cut_by_rows(node: EngineNode) -> bool:
    """Whether a band of a convolution's result can be computed by a convolution of its own."""
    operation = node.operation
    if not isinstance(operation, fb.Convolution):
        return False
    if operation.kind not in (fb.ConvolutionKind.DENSE, fb.ConvolutionKind.DEPTHWISE):
        return False  # Winograd's tiles would begin at other rows, and round otherwise
    image, [result] = node.inputs[0], node.outputs
    assert image is not None
    batch, _, height, width = result.shape
    return (
        batch == 1
        and all(isinstance(size, int) for size in (*image.shape, *result.shape))
        # Otherwise a band might read nothing but padding.
        and max(operation.padding[0], operation.padding[2]) < operation.kernel[0]
        and all(v.meta.dim() == 2 and v.shape[0] == height * width for v in node.operands)
    )


def _ways_to_cut(members: Sequence[EngineNode]) -> Iterator[list[list[range]]]:
    """Lists of bands, each with the rows of every node; few bands first."""
    height: Any = members[-1].outputs[0].shape[2]
    units = -(-height // _UNIT)
    for rows in sorted({-(-units // n) * _UNIT for n in range(2, units + 1)}, reverse=True):
        yield [
            _rows_of(members, range(start, min(start + rows, height)))
            for start in range(0, height, rows)
        ]


def _rows_of(members: Sequence[EngineNode], rows: range) -> list[range]:
    """The rows that each node computes for a band of rows of the last one."""
    computed = [rows]
    for node in reversed(members[1:]):
        computed.insert(0, _inside(_rows_read(_convolution_of(node), computed[0]), node))
    return computed


def _convolution_of(node: EngineNode) -> fb.Convolution:
    """The operation of a node that is cut by rows."""
    assert isinstance(node.operation, fb.Convolution)
    return node.operation


def _rows_read(operation: fb.Convolution, rows: range) -> range:
    """The rows of the image that a convolution reads for rows of its result, padding included."""
    reach = (operation.kernel[0] - 1) * operation.dilation[0] + 1
    start, last = (row * operation.stride[0] - operation.padding[0] for row in (rows[0], rows[-1]))
    return range(start, last + reach)


def _inside(rows: range, node: EngineNode) -> range:
    """The rows that lie within the node's image."""
    image = node.inputs[0]
    assert image is not None
    return range(max(rows.start, 0), min(rows.stop, image.shape[2]))


def _bytes_inside(members: Sequence[EngineNode], rows: Sequence[range]) -> int:
    """The most bytes of images between the nodes that are in use at once in one band."""
    sizes = [0]
    for node, own in zip(members[:-1], rows, strict=False):
        image = node.outputs[0]
        _, channels, _, width = image.shape
        sizes.append(channels * len(own) * width * image.meta.itemsize)
    sizes.append(0)
    return max(one + other for one, other in pairwise(sizes))


def _work(node: EngineNode) -> int:
    """The multiplications of a convolution: every weight is used once for each pixel."""
    weights, [image] = node.inputs[1], node.outputs
    assert weights is not None
    return weights.meta.numel() * image.shape[2] * image.shape[3]


def _more_work(members: Sequence[EngineNode], bands: Sequence[Sequence[range]]) -> int:
    """The work of rows that several bands compute, and of the further nodes."""
    work = _NODE_WORK * len(members) * (len(bands) - 1)
    for i, node in enumerate(members):
        height = node.outputs[0].shape[2]
        rows = sum(len(band[i]) for band in bands)
        work += _work(node) * (rows - height) // height
    return work


# --- nodes of bands -------------------------------------------------------------------------------


def _nodes_of(graph: Graph, cut: _Cut) -> Iterator[EngineNode]:
    """The nodes of all bands, in place of the nodes that are cut."""
    members = graph.nodes[cut.first : cut.last + 1]
    for band in cut.bands:
        image = members[0].inputs[0]
        assert image is not None
        image = _narrowed(
            image, _inside(_rows_read(_convolution_of(members[0]), band[0]), members[0])
        )
        for node, rows in zip(members, band, strict=True):
            whole = node.outputs[0]
            if node is members[-1]:
                out = _narrowed(whole, rows)
            else:
                _, channels, _, width = whole.shape
                sizes = (1, channels, len(rows), width)
                out = graph.scratch(Layout.dense(sizes, CHANNELS_LAST, whole.meta.dtype))
            yield _band(node, rows, image, out)
            image = out


def _narrowed(image: View, rows: range) -> View:
    return image.moved(image.meta.narrow(2, rows.start, len(rows)))


def _band(node: EngineNode, rows: range, image: View, out: View) -> EngineNode:
    """The convolution of a band, from the rows that it reads to those that it writes."""
    whole = node.outputs[0]
    operation = copy.deepcopy(_convolution_of(node))
    read = _rows_read(operation, rows)
    inside = _inside(read, node)
    operation.padding[0] = inside.start - read.start
    operation.padding[2] = read.stop - inside.stop
    width = whole.shape[3]

    def operand(view: View) -> View:
        """The band's part of an operand of the epilogue, which has a row for each pixel."""
        if view.memory is whole.memory and out.memory is not whole.memory:
            return View(out.memory, view.meta.narrow(0, 0, len(rows) * width))
        return view.moved(view.meta.narrow(0, rows.start * width, len(rows) * width))

    return replace(
        node,
        operation=operation,
        inputs=[image, *node.inputs[1:]],
        outputs=[out],
        operands=list(map(operand, node.operands)),
    )
