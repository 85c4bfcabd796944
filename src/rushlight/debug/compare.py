"""Compares a run's values with eager's: of the whole model, and of each place on its own inputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import torch
from torch.fx import Node

from rushlight.check.tolerance import Tolerance, as_array
from rushlight.debug.places import Array, Place
from rushlight.debug.reference import Reference
from rushlight.inspect.distance import Figures, figures
from rushlight.ir.quantized_values import affine_of, quantizes
from rushlight.ir.source import in_users_code, source_of
from rushlight.schema.source import Source

_ONE_UNIT = Tolerance(units=1)
# Of products whose inputs are quantised as the model runs: one of them may be rounded otherwise.
_CHOSEN = Tolerance(relative=5e-2)
_MOST_DIMENSIONS = 5  # whose orders are tried


@dataclass(frozen=True)
class Gap:
    """One value of a run beside eager's.

    Attributes:
        place: what computed it.
        node: the node of the Edge graph whose value it is.
        operators: those that compute it from the run's values before it.
        source: the line of Python and the module path.
        modules: the module paths of these operators.
        value: the run's, in the shape and dtype of eager's.
        wanted: eager's, of the whole model.
        whole: how far it is from eager's.
        own: how far it is from what eager computes from the run's own values before it.
        reason: why the place itself is at fault; None if it is not.
    """

    place: Place
    node: str
    operators: tuple[str, ...]
    source: Source
    modules: tuple[str, ...]
    value: Array
    wanted: Array
    whole: Figures
    own: Figures
    reason: str | None


def compare(
    reference: Reference,
    places: Sequence[Place],
    tolerance: Tolerance,
    known: dict[str, Any],
) -> Iterator[Gap]:
    """Compare the values of a run in its order.

    Args:
        reference: eager's values for the run's inputs.
        places: the run's.
        tolerance: what each place may differ by from eager on the run's own inputs; a value that is
            quantised may differ by one unit.
        known: gets the run's values, by node.
    """
    placed = {name for place in places for name in place.names}
    # A node that stands at several places is computed at the last: those before convert its inputs.
    last = {name: i for i, place in enumerate(places) if place.values for name in place.names}
    for i, place in enumerate(places):
        leaving = reference.outputs_of(place.names, placed)
        mine = [node for node in leaving if last.get(node.name) == i]
        written = _matched(reference, mine, place.values)
        if not written:
            continue
        group = reference.needed([node for node, *_ in written], known)
        own = reference.computed(group, known)
        for node, part, array in written:
            wanted, expected = _part(reference.values[node.name], part), _part(own[node.name], part)
            tolerated = _tolerance(node, tolerance)
            value = _in_order(array, expected, tolerated)
            yield Gap(
                place,
                node.name,
                tuple(str(one.target) for one in group.values() if one.op == "call_function"),
                _source(node, group),
                _modules(group),
                as_array(value),
                as_array(wanted),
                figures(as_array(value), as_array(wanted)),
                figures(as_array(value), as_array(expected)),
                tolerated.exceeded(as_array(value), as_array(expected)),
            )
            known[node.name] = _with_part(known.get(node.name, own[node.name]), part, value)


def _source(node: Node, group: Mapping[str, Node]) -> Source:
    """The line of a value: its own, or that of the first node of its operator that has one of the
    user's."""
    sources = [source_of(one) for one in (node, *group.values())]
    return next((source for source in sources if in_users_code(source.file)), sources[0])


def _modules(group: Mapping[str, Node]) -> tuple[str, ...]:
    paths = (source_of(node).module for node in group.values() if node.op == "call_function")
    return tuple(dict.fromkeys(path for path in paths if path))


Written = tuple[Node, int | None, Array]  # a node, the index in its results, and a run's value


def _matched(reference: Reference, nodes: Iterable[Node], values: Sequence[Array]) -> list[Written]:
    """Which of a place's nodes, and of their results, its values are.

    Engines merge dimensions and keep int8 as uint8, so that values are told by their sizes.
    """
    left = list(values)
    written: list[Written] = []
    for node in nodes:
        result = reference.values[node.name]
        if isinstance(result, list | tuple):
            written += _matched_parts(node, result, left)
            continue
        index = _fitting(left, tuple(result.shape)) if isinstance(result, torch.Tensor) else None
        if index is None:
            continue
        array = left.pop(index)
        if array.dtype.kind in "iu" and result.is_floating_point():
            quantized = next((user for user in node.users if quantizes(user)), None)
            if quantized is None:
                continue
            node = quantized
        written.append((node, None, array))
    return written


def _matched_parts(node: Node, parts: Sequence[Any], left: list[Array]) -> list[Written]:
    """The results of an operator that has several. A place may write some of them alone: of those
    with a value's shape it is the nearest one then."""
    tensors = [(i, part) for i, part in enumerate(parts) if isinstance(part, torch.Tensor)]
    written: list[Written] = []
    is_whole = len(left) >= len(tensors)
    while tensors and left:
        part, wanted = tensors[0]
        index = _fitting(left, tuple(wanted.shape))
        if index is None:
            tensors.pop(0)
            continue
        array = left.pop(index)
        if not is_whole:
            same = [one for one in tensors if one[1].numel() == array.size]
            part, wanted = min(same, key=lambda one: _distance(array, one[1]))
        tensors = [one for one in tensors if one[0] != part]
        written.append((node, part, array))
    return written


def _distance(array: Array, wanted: torch.Tensor) -> float:
    difference = array.reshape(-1).astype(np.float64) - as_array(wanted).reshape(-1)
    return float(np.abs(difference).sum())


def _fitting(values: Sequence[Array], shape: tuple[int, ...]) -> int | None:
    """The index of the first value of a shape; else of the last with as many elements, since an
    engine may first copy what it reads; None if there is none."""
    same = [i for i, value in enumerate(values) if value.shape == shape]
    if same:
        return same[0]
    fitting = [i for i, value in enumerate(values) if value.size == math.prod(shape)]
    return fitting[-1] if fitting else None


def _part(value: Any, part: int | None) -> Any:
    return value if part is None else value[part]


def _with_part(value: Any, part: int | None, by: torch.Tensor) -> Any:
    if part is None:
        return by
    return type(value)([*value[:part], by, *value[part + 1 :]])


def _in_order(array: Array, wanted: torch.Tensor, tolerance: Tolerance) -> torch.Tensor:
    """A run's value in the shape and dtype of eager's.

    An engine tells its elements in the order of its memory, and not which dimension is which where
    it has merged them. Then the first order that fits within the tolerance counts, else the one
    that differs least.
    """
    if array.dtype == np.uint8 and wanted.dtype == torch.int8:
        array = (array.astype(np.int16) - 128).astype(np.int8)
    tensor = torch.from_numpy(np.array(array)).to(wanted.dtype)  # a copy, which may be written
    if tensor.shape == wanted.shape:
        return tensor
    shape = wanted.shape
    expected = as_array(wanted)
    best, least = tensor.reshape(shape), math.inf
    for order in _orders(shape):
        placed = tensor.reshape([shape[i] for i in order])
        ordered = placed.permute([order.index(i) for i in range(len(shape))])
        if tolerance.exceeded(as_array(ordered), expected) is None:
            return ordered
        error = float((ordered.double() - wanted.double()).abs().sum())
        if error < least:
            best, least = ordered, error
    return best


def _orders(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The orders of dimensions in memory: as they are, channels last, then all others."""
    rank = len(shape)
    usual = tuple(range(rank))
    yield usual
    if rank > 2:
        yield (0, *range(2, rank), 1)
    wide = [i for i in usual if shape[i] > 1]
    if len(wide) <= _MOST_DIMENSIONS:
        narrow = [i for i in usual if shape[i] == 1]
        for order in permutations(wide):
            yield (*narrow, *order)


def _tolerance(node: Node, tolerance: Tolerance) -> Tolerance:
    if quantizes(node):
        return _ONE_UNIT
    chosen = any(
        (affine := affine_of(before)) is not None and affine.chosen is not None
        for before in node.all_input_nodes
    )
    return _CHOSEN if chosen else tolerance
