"""Segments of a file: equal data are stored once, and few of them are compared for it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from rushlight.serialize.segments import Data, Key, PartFinder, SegmentArea, as_bytes, pack_parts


def _stored(parts: Sequence[Data], alignments: Sequence[int] = ()) -> tuple[list[int], int]:
    """The segment of each part, and the most segments that have one key."""
    area, known = SegmentArea(16), dict[Key, list[int]]()
    each = alignments or [1] * len(parts)
    indices = [area.add_once(part, known, at) for part, at in zip(parts, each, strict=True)]
    image = b"".join(bytes(chunk) for chunk in area.chunks())
    for part, index, alignment in zip(parts, indices, each, strict=True):
        place = area.table()[index]
        assert image[place.offset : place.offset + place.size] == bytes(as_bytes(part))
        assert place.offset % math.lcm(16, alignment) == 0
    return indices, max(map(len, known.values()))


def test_equal_data_are_stored_once() -> None:
    weights = np.arange(64, dtype=np.float32)
    indices, _ = _stored([b"one", weights, b"two", weights.copy(), b"one", b"", b""])
    assert indices == [0, 1, 2, 1, 0, 3, 3]


def test_equal_data_get_the_strictest_alignment() -> None:
    indices, _ = _stored([b"weights", b"others", b"weights"], [16, 16, 64])
    assert indices == [0, 1, 0]


@pytest.mark.parametrize("size", [1, 63, 64, 65, 128, 191, 192, 193, 1000])
def test_data_that_differ_in_one_byte_are_others(size: int) -> None:
    """The differing byte may be anywhere, also in a part that the keys do not cover."""
    parts = [bytes(size)]
    for at in range(size):
        parts.append(bytes(at) + b"\1" + bytes(size - at - 1))
    indices, _ = _stored(parts[:: max(1, size // 50)])
    assert len(set(indices)) == len(indices)
    chunks, offsets = pack_parts(parts, 1)
    finder, image = PartFinder(parts, offsets), b"".join(chunks)
    for part in parts:
        offset = finder.find(part, 1)
        assert offset is not None and image[offset : offset + size] == part


def test_few_are_compared_of_many_data_of_one_size() -> None:
    """Weights of as many layers alike; what begins and ends with zeros counts as well."""
    generator = np.random.default_rng(0)
    layers = [generator.standard_normal(256).astype(np.float32) for _ in range(1000)]
    padded = [np.pad(layer, 64) for layer in layers]
    for parts in (layers, padded):
        indices, most = _stored(parts)
        assert len(set(indices)) == 1000 and most == 1
