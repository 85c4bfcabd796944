"""What this machine reaches at most: what the speed of operators is a share of."""

from __future__ import annotations

from typing import NamedTuple

from rushlight import _core


class Peaks(NamedTuple):
    """What a number of threads reach together.

    Attributes:
        threads: how many.
        flops: operations per second: multiply-adds of float32 in registers, two operations each,
            with the widest instruction set that kernels use here.
        integer_ops: the same of integers: products of bytes, each added to an int32.
        bandwidth: bytes per second read from memory, of an array that no cache holds.
    """

    threads: int
    flops: float
    integer_ops: float
    bandwidth: float


def measure_peaks(threads: int) -> Peaks:
    """Measure them, in half a second or so; other work on the machine makes them smaller.

    Args:
        threads: at least 1; cores that they do not find idle add nothing.
    """
    return Peaks(threads, *_core.measure_peaks(threads))
