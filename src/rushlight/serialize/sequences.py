"""Sequences of numbers as runs and copies of earlier numbers, which can be read in place.

Each entry is `count << 2 | kind`. For the kinds `SAME` and `RISING` the difference of its first
number to the last number of the previous entry of these kinds follows; for `COPY` the distance back
to the numbers that it copies, which may be less than their count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rushlight.serialize.varints import Reader, Writer

SAME, RISING, COPY = 0, 1, 2
_LEAST_COPY = 4
_DEEPEST = 16  # the depth of copies of copies, which a reader in place follows one by one
MAX_NUMBERS = 1 << 20  # numbers in all sequences of a map: a few bytes may claim any number


def write_sequence(numbers: Sequence[int]) -> bytearray:
    """The bytes of a sequence of numbers from 0, in linear time."""
    out, last = Writer(), 0
    for at, count, kind, back in _entries(numbers):
        out.number(count << 2 | kind)
        if kind == COPY:
            out.number(back)
        else:
            out.signed(numbers[at] - last)
            last = numbers[at + count - 1]
    return out.data


def _entries(numbers: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    """(position, count, kind, how far back)."""
    seen: dict[tuple[int, ...], int] = {}
    depth = [0] * len(numbers)
    at = 0
    alone = 0  # no copies before this position, because the best one there is too deep
    while at < len(numbers):
        run, kind = _run(numbers, at)
        before = seen.get(tuple(numbers[at : at + _LEAST_COPY])) if at >= alone else None
        copied = 0 if before is None else _alike(numbers, before, at)
        if before is not None and copied > run and copied >= _LEAST_COPY:
            deep = 1 + max(depth[before : min(before + copied, at)])
            if deep <= _DEEPEST:
                depth[at : at + copied] = [deep] * copied
                run, kind = copied, COPY
            else:
                alone = at + copied
        yield at, run, kind, at - (before or 0)
        for i in range(at, at + run):
            seen[tuple(numbers[i : i + _LEAST_COPY])] = i
        at += run


def _run(numbers: Sequence[int], at: int) -> tuple[int, int]:
    """The length and kind of the run at `at`, of numbers that are the same or rise by 1."""
    end = at + 1
    rise = int(end < len(numbers) and numbers[end] == numbers[at] + 1)
    while end < len(numbers) and numbers[end] == numbers[end - 1] + rise:
        end += 1
    return end - at, RISING if rise else SAME


def _alike(numbers: Sequence[int], before: int, at: int) -> int:
    """The number of equal numbers from `at` and from `before` on."""
    end = at
    while end < len(numbers) and numbers[end] == numbers[before + end - at]:
        end += 1
    return end - at


class Sequences:
    """Reads sequences, with a limit for all of them together.

    Raises:
        ValueError: by every method, if the data are damaged.
    """

    def __init__(self) -> None:
        self._left = MAX_NUMBERS

    def count(self, count: int) -> int:
        """`count`, if that many more numbers are allowed."""
        self._left -= count
        if self._left < 0:
            raise ValueError("more numbers than a program has")
        return count

    def read(self, reader: Reader) -> list[int]:
        """The numbers up to the end of the reader's data."""
        numbers: list[int] = []
        last = 0
        while reader:
            head = reader.number()
            count, kind = self.count(head >> 2), head & 3
            if kind == COPY:
                back = reader.number()
                if not 0 < back <= len(numbers):
                    raise ValueError("a copy of numbers that are not there")
                source = numbers[-back:] if back >= count else numbers[-back:] * (count // back + 1)
                numbers += source[:count]
            elif kind in (SAME, RISING):
                first = last + reader.signed()
                numbers += range(first, first + count) if kind == RISING else [first] * count
                last = first + max(count - 1, 0) * kind
            else:
                raise ValueError("an entry of an unknown kind")
        return numbers
