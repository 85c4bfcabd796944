"""Convolutions one after the other, cut into bands of rows where they need the most scratch memory.

Of an image that only the next convolution reads, a few rows at a time are enough: the first one
computes the rows that the second one reads for a band of its results, and the bands of that image
share one small memory. Rows at the edge of a band are computed twice. Every number is computed as
without bands.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from rushlight.backends.cpu.graph.layout import Layout
from rushlight.backends.cpu.graph.values import CHANNELS_LAST, Graph, Memory, Step, View, lives_of
from rushlight.schema import cpu_engine as fb

# Scratch memory is small enough if it stays in the second-level cache, or beside the constants.
_SMALL_BYTES, _SMALL_SHARE = 1 << 18, 1 / 8
_LESS = 7 / 8  # of it is the most that bands must leave to be worth it
_MOST_WORK = 1 / 32  # of the convolutions' multiplications may come to that
_STEP_WORK = 1 << 18  # of them take as long as threads take to meet after a step more
_LONGEST = 4  # convolutions that are cut together
_UNIT = 4  # rows of a band are a multiple, which two threads share evenly


def cut_into_bands(graph: Graph) -> None:
    """Cut convolutions of a graph, if the scratch memory becomes smaller by an eighth or more.

    It is made smaller by an eighth at a time, each time with the least work, until it is small or
    that is no longer possible. A graph of dynamic sizes stays as it is.
    """
    lives = lives_of(graph.steps)
    if not all(isinstance(memory.size, int) for memory, _, _ in lives):
        return
    live = _live_bytes(lives, len(graph.steps))
    most_work = _MOST_WORK * sum(_work(step) for step in graph.steps if _is_cut_by_rows(step))
    small = max(_SMALL_BYTES, _SMALL_SHARE * sum(data.nbytes for data in graph.constants))
    level: float = max(live, default=0)
    if level <= small:
        return
    cuts = _cuts(graph.steps, lives)
    chosen: Sequence[_Cut] = []
    while level > small:
        level *= _LESS
        found = _least_work(live, cuts, level)
        if found is None or sum(cut.work for cut in found) > most_work:
            break
        chosen = found
    for cut in reversed(chosen):
        graph.steps[cut.first : cut.last + 1] = _steps_of(graph, cut)


@dataclass(frozen=True)
class _Cut:
    """Neighbouring steps in bands.

    Attributes:
        first: its first step.
        last: its last step.
        bands: for each band: which rows of its result each of the steps computes.
        live: the most bytes of scratch memory that are in use meanwhile.
        work: multiplications more than without bands, with those that further steps stand for.
    """

    first: int
    last: int
    bands: list[list[range]]
    live: int
    work: int


def _live_bytes(lives: Sequence[tuple[Memory, int, int]], n_steps: int) -> list[int]:
    """The bytes of scratch memory that each step needs."""
    live = [0] * n_steps
    for memory, first, last in lives:
        for at in range(first, last + 1):
            live[at] += memory.size
    return live


def _least_work(
    live: Sequence[int], cuts: Sequence[Sequence[_Cut]], level: float
) -> list[_Cut] | None:
    """The cuts with which no step needs more than `level` bytes, of the least work; None if there
    are none. `cuts` are by their last step."""
    best: list[tuple[int, list[_Cut]] | None] = [(0, [])]  # by how many steps are done
    for at, own in enumerate(live):
        ways = [best[at]] if own <= level else []
        for cut in cuts[at]:
            if cut.live <= level and (before := best[cut.first]):
                ways.append((before[0] + cut.work, [*before[1], cut]))
        best.append(min((way for way in ways if way), key=lambda way: way[0], default=None))
    return best[-1][1] if best[-1] else None


# --- which cuts there are -------------------------------------------------------------------------


def _cuts(steps: Sequence[Step], lives: Sequence[tuple[Memory, int, int]]) -> list[list[_Cut]]:
    """All cuts of convolutions of which each is read by the next one alone, by their last step."""
    spans = {id(memory): (first, last) for memory, first, last in lives}
    links = [
        _is_link(one, other) and spans.get(id(one.outputs[0].memory)) == (at, at + 1)
        for at, (one, other) in enumerate(pairwise(steps))
    ]
    cuts: list[list[_Cut]] = [[] for _ in steps]
    for last in range(len(steps)):
        for first in range(last - 1, max(last - _LONGEST, -1), -1):
            if not links[first]:
                break
            members = steps[first : last + 1]
            inner = {id(step.outputs[0].memory) for step in members[:-1]}
            outer = sum(
                memory.size
                for memory, begin, end in lives
                if begin <= last and end >= first and id(memory) not in inner
            )
            for bands in _ways_to_cut(members):
                live = outer + max(_bytes_inside(members, rows) for rows in bands)
                cuts[last].append(_Cut(first, last, bands, live, _more_work(members, bands)))
    return cuts


def _is_link(one: Step, other: Step) -> bool:
    """Whether one convolution's result is the image of another, and nothing else there."""
    if not (_is_cut_by_rows(one) and _is_cut_by_rows(other)):
        return False
    [result], image = one.outputs, other.inputs[0]
    assert image is not None
    return image.place() == result.place() and all(
        view.memory is not result.memory for view in other.operands
    )


def _is_cut_by_rows(step: Step) -> bool:
    """Whether rows of a convolution's result are computed as well by a convolution of their own."""
    operation = step.operation
    if not isinstance(operation, fb.Convolution):
        return False
    if operation.kind not in (fb.ConvolutionKind.DENSE, fb.ConvolutionKind.DEPTHWISE):
        return False  # Winograd's tiles of rows would be others
    image, [result] = step.inputs[0], step.outputs
    assert image is not None
    batch, _, height, width = result.shape
    return (
        batch == 1
        and all(isinstance(size, int) for size in (*image.shape, *result.shape))
        # Otherwise what a band reads might lie in the padding altogether.
        and max(operation.padding[0], operation.padding[2]) < operation.kernel[0]
        and all(v.meta.dim() == 2 and v.shape[0] == height * width for v in step.operands)
    )


def _ways_to_cut(members: Sequence[Step]) -> Iterator[list[list[range]]]:
    """The rows of each step in each band; few bands first."""
    height: Any = members[-1].outputs[0].shape[2]
    units = -(-height // _UNIT)
    for rows in sorted({-(-units // n) * _UNIT for n in range(2, units + 1)}, reverse=True):
        yield [
            _rows_of(members, range(start, min(start + rows, height)))
            for start in range(0, height, rows)
        ]


def _rows_of(members: Sequence[Step], rows: range) -> list[range]:
    """The rows that each step computes for these of the last one."""
    found = [rows]
    for step in reversed(members[1:]):
        found.insert(0, _inside(_rows_read(_convolution_of(step), found[0]), step))
    return found


def _convolution_of(step: Step) -> fb.Convolution:
    """The operation of a step that is cut by rows."""
    assert isinstance(step.operation, fb.Convolution)
    return step.operation


def _rows_read(operation: fb.Convolution, rows: range) -> range:
    """The rows of its image that some rows of a convolution's result need, in the padding too."""
    reach = (operation.kernel[0] - 1) * operation.dilation[0] + 1
    start, last = (row * operation.stride[0] - operation.padding[0] for row in (rows[0], rows[-1]))
    return range(start, last + reach)


def _inside(rows: range, step: Step) -> range:
    """Those within the step's image."""
    image = step.inputs[0]
    assert image is not None
    return range(max(rows.start, 0), min(rows.stop, image.shape[2]))


def _bytes_inside(members: Sequence[Step], rows: Sequence[range]) -> int:
    """The most bytes of the images between the steps that a band needs at once."""
    sizes = [0]
    for step, own in zip(members[:-1], rows, strict=False):
        image = step.outputs[0]
        _, channels, _, width = image.shape
        sizes.append(channels * len(own) * width * image.meta.itemsize)
    sizes.append(0)
    return max(one + other for one, other in pairwise(sizes))


def _work(step: Step) -> int:
    """The multiplications of a convolution: every weight is used once for each pixel."""
    weights, [image] = step.inputs[1], step.outputs
    assert weights is not None
    return weights.meta.numel() * image.shape[2] * image.shape[3]


def _more_work(members: Sequence[Step], bands: Sequence[Sequence[range]]) -> int:
    """What rows that more than one band computes cost, and steps of their own."""
    work = _STEP_WORK * len(members) * (len(bands) - 1)
    for i, step in enumerate(members):
        height = step.outputs[0].shape[2]
        rows = sum(len(band[i]) for band in bands)
        work += _work(step) * (rows - height) // height
    return work


# --- steps of bands -------------------------------------------------------------------------------


def _steps_of(graph: Graph, cut: _Cut) -> Iterator[Step]:
    """What takes the place of steps that are cut."""
    members = graph.steps[cut.first : cut.last + 1]
    for band in cut.bands:
        image = members[0].inputs[0]
        assert image is not None
        image = _narrowed(
            image, _inside(_rows_read(_convolution_of(members[0]), band[0]), members[0])
        )
        for step, rows in zip(members, band, strict=True):
            whole = step.outputs[0]
            if step is members[-1]:
                out = _narrowed(whole, rows)
            else:
                _, channels, _, width = whole.shape
                sizes = (1, channels, len(rows), width)
                out = graph.scratch(Layout.dense(sizes, CHANNELS_LAST, whole.meta.dtype))
            yield _band(step, rows, image, out)
            image = out


def _narrowed(image: View, rows: range) -> View:
    return image.moved(image.meta.narrow(2, rows.start, len(rows)))


def _band(step: Step, rows: range, image: View, out: View) -> Step:
    """The convolution of a band, from the rows that it reads to those that it writes."""
    whole = step.outputs[0]
    operation = copy.deepcopy(_convolution_of(step))
    read = _rows_read(operation, rows)
    inside = _inside(read, step)
    operation.padding[0] = inside.start - read.start
    operation.padding[2] = read.stop - inside.stop
    width = whole.shape[3]

    def operand(view: View) -> View:
        """The band's part of what is added and the like, which has a row for each pixel."""
        if view.memory is whole.memory and out.memory is not whole.memory:
            return View(out.memory, view.meta.narrow(0, 0, len(rows) * width))
        return view.moved(view.meta.narrow(0, rows.start * width, len(rows) * width))

    return replace(
        step,
        operation=operation,
        inputs=[image, *step.inputs[1:]],
        outputs=[out],
        operands=list(map(operand, step.operands)),
    )
