"""The peak speed of this machine, which the speed of operators is compared with."""

from __future__ import annotations

from typing import NamedTuple

from rushlight import _core


class Peaks(NamedTuple):
    """The peak speed of a number of threads together.

    Attributes:
        threads: the number of threads.
        flops: operations per second: multiply-adds of float32 in registers, two operations each,
            with the widest instruction set that kernels use here.
        integer_ops: operations per second on integers: products of bytes, each added to an int32.
        bandwidth: bytes per second read from memory, from an array larger than the caches.
    """

    threads: int
    flops: float
    integer_ops: float
    bandwidth: float


def measure_peaks(threads: int) -> Peaks:
    """Measure the peaks, in about half a second; other work on the machine makes them smaller.

    Args:
        threads: the number of threads, at least 1.
    """
    return Peaks(threads, *_core.measure_peaks(threads))
