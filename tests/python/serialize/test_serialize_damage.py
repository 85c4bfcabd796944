"""Damaged and hostile files: the readers raise LoadError, nothing else, and in bounded time."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable

import numpy as np
import pytest
import serialize_cases as cases

from rushlight.errors import Code, LoadError
from rushlight.schema import flat_tensor
from rushlight.schema import program as fb
from rushlight.schema.flat_tensor import TensorLayout
from rushlight.serialize.ptd import NamedTensor, read_ptd, write_ptd
from rushlight.serialize.pte import read_pte, write_pte

PROGRAMS = {
    "add": lambda: write_pte(cases.add_program()),
    "plain": lambda: write_pte(cases.plain_program()),
    "full": lambda: write_pte(cases.full_program()),
}


def data_file() -> bytes:
    layout = TensorLayout(fb.ScalarType.FLOAT, [2, 3], [0, 1])
    return write_ptd(
        {"w": NamedTensor(np.ones((2, 3), np.float32), layout), "p": NamedTensor(b"opaque")}
    )


def damaged(data: bytes, seed: int, rounds: int) -> list[bytes]:
    """Copies of `data` with some bits, bytes or words changed."""
    chance = random.Random(seed)
    numbers = []
    for _ in range(rounds):
        copy = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(copy))
            kind = chance.randrange(3)
            if kind == 0:
                copy[at] ^= 1 << chance.randrange(8)
            elif kind == 1:
                copy[at] = chance.randrange(256)
            else:
                words = [0, 1, 4, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, chance.randrange(len(copy))]
                word = struct.pack("<I", chance.choice(words))
                copy[at : at + 4] = word[: len(copy) - at]
        numbers.append(bytes(copy))
    return numbers


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_cut_anywhere(name: str) -> None:
    data = PROGRAMS[name]()
    refused = 0
    for size in range(len(data)):
        try:
            read_pte(data[:size])
        except LoadError:
            refused += 1
    # Without a header the padding at the end of the flatbuffer may be missing.
    assert refused >= len(data) - 16


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_with_changed_bytes(name: str) -> None:
    refused = 0
    for copy in damaged(PROGRAMS[name](), seed=len(name), rounds=1500):
        try:
            read_pte(copy)
        except LoadError as error:
            refused += 1
            assert error.code == Code.INVALID_PROGRAM
    assert 150 < refused < 1500


def test_a_data_file_cut_or_changed() -> None:
    data = data_file()
    for size in range(len(data)):
        with pytest.raises(LoadError):
            read_ptd(data[:size])
    refused = 0
    for copy in damaged(data, seed=7, rounds=1500):
        try:
            read_ptd(copy)
        except LoadError as error:
            refused += 1
            assert error.code == Code.INVALID_EXTERNAL_DATA
    assert 150 < refused < 1500


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it has 0 bytes"),
        (b"PK\x03\x04" + bytes(100), "not a .pte file"),
        (b"\x20\0\0\0ET13" + bytes(100), "b'ET13' instead of b'ET12'"),
        (b"\x20\0\0\0ET12eh00" + struct.pack("<I", 20) + bytes(100), "header claims 20 bytes"),
    ],
)
def test_what_is_no_program(data: bytes, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        read_pte(data)


def test_what_is_no_data_file() -> None:
    with pytest.raises(LoadError, match=r"not a \.ptd file"):
        read_ptd(write_pte(cases.add_program()))
    data = bytearray(data_file())
    data[8:12] = b"eh00"
    with pytest.raises(LoadError, match="its header starts with b'eh00'"):
        read_ptd(data)


def _rewritten(change: Callable[[fb.Program], object]) -> bytes:
    return cases.rewritten(write_pte(cases.full_program()), change)


REFERENCES = {
    "constant 1": lambda r: setattr(r.constant_segment, "segment_index", 9),
    "constant 2": lambda r: r.constant_segment.offsets.__setitem__(2, 17),
    "mutable data 1": lambda r: r.mutable_data_segments[0].offsets.__setitem__(1, 1),
    "mutable data segments": lambda r: r.mutable_data_segments.append(fb.SubsegmentOffsets()),
    "named data 'weights'": lambda r: setattr(r.named_data[1], "segment_index", 5),
    "it is there twice": lambda r: setattr(r.named_data[1], "key", "same"),
    "delegate 0": lambda r: setattr(r.segments[2], "size", 1 << 62),
    "delegate 1": lambda r: r.backend_delegate_data.clear(),
    "value 8: size -1": lambda r: setattr(r.execution_plan[0].values[8].val, "sizes", [-1]),
}


@pytest.mark.parametrize("where", REFERENCES)
def test_references_out_of_range(where: str) -> None:
    read_pte(_rewritten(lambda root: None))
    with pytest.raises(LoadError, match=where):
        read_pte(_rewritten(REFERENCES[where]))


def test_layout_larger_than_its_data() -> None:
    table = flat_tensor.FlatTensor(
        segments=[flat_tensor.DataSegment(0, 8)],
        named_data=[flat_tensor.NamedData("w", 0, TensorLayout(fb.ScalarType.FLOAT, [3], [0]))],
    )
    flatbuffer = flat_tensor.pack(table)
    head = int.from_bytes(flatbuffer[:4], "little") + 48
    header = struct.pack("<4sIQQQQ", b"FH01", 40, 48, len(flatbuffer), 512, 8).ljust(48, b"\0")
    whole = head.to_bytes(4, "little") + flatbuffer[4:8] + header + flatbuffer[8:]
    with pytest.raises(LoadError, match="w: its sizes take 12 bytes, the file has 8"):
        read_ptd(whole.ljust(520, b"\0"))


# ---- Small files that ask for large objects ----


def _shared_tables(count: int) -> bytes:
    """`count` plans that are one and the same, with `count` operators that are."""
    image = bytearray(struct.pack("<I4s", 0, b"ET12"))

    def table(fields: list[bool]) -> tuple[int, int]:
        """A table whose present fields are offsets; its start, and the last field's place."""
        slots = [4 + 4 * sum(fields[:i]) if there else 0 for i, there in enumerate(fields)]
        size = 4 + 4 * sum(fields)
        image.extend(struct.pack(f"<HH{len(slots)}H", 4 + 2 * len(slots), size, *slots))
        start = len(image)
        image.extend(struct.pack("<i", 4 + 2 * len(slots)) + bytes(size - 4))
        return start, start + size - 4

    def lead(at: int, target: int) -> None:
        struct.pack_into("<I", image, at, target - at)

    def vector() -> int:
        image.extend(struct.pack("<I", count) + bytes(4 * count))
        return len(image) - 4 * count

    root, plans_field = table([False, True])
    lead(0, root)
    lead(plans_field, len(image))
    plans = vector()
    plan, operators_field = table([False] * 6 + [True])
    lead(operators_field, len(image))
    operators = vector()
    operator, _ = table([])
    for i in range(count):
        lead(plans + 4 * i, plan)
        lead(operators + 4 * i, operator)
    return bytes(image)


def test_tables_that_are_visited_again_and_again() -> None:
    start = time.perf_counter()
    with pytest.raises(LoadError, match="more tables are referred to"):
        fb.unpack(_shared_tables(20000))
    assert time.perf_counter() - start < 5


def test_vectors_that_are_read_again_and_again() -> None:
    """Many methods whose inputs are one long list at the end of the file."""
    marker = list(range(1000, 1008))
    plans = [fb.ExecutionPlan(inputs=marker) for _ in range(1000)]
    data = bytearray(fb.pack(fb.Program(execution_plan=plans)))
    shared = data.index(struct.pack("<9I", 8, *marker))
    redirected = 0
    for at in range(0, len(data) - 4, 4):
        (offset,) = struct.unpack_from("<I", data, at)
        if at + offset == shared:
            struct.pack_into("<I", data, at, len(data) - at)
            redirected += 1
    assert redirected == 1000
    data += struct.pack("<I", 100000) + bytes(400000)
    start = time.perf_counter()
    with pytest.raises(LoadError, match="more items are referred to"):
        fb.unpack(data)
    assert time.perf_counter() - start < 5
