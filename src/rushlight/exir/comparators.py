"""Measures of how far one value is from another, for `Inspector.calculate_numeric_gap`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import torch

from rushlight.errors import Code, ExportError


class NumericalComparatorBase(ABC):
    """A measure; subclasses say how two values are compared.

    Args:
        inspector: what the values came from, for `preprocessing` of subclasses.
    """

    def __init__(self, inspector: Any = None) -> None:
        self.inspector = inspector

    @abstractmethod
    def element_compare(self, a: Any, b: Any) -> float:
        """How far one value, a tensor or a number, is from another."""

    def preprocessing(self, mapping: Any) -> Any:
        """The values to compare, of those by debug handle; the same by default."""
        return mapping

    def compare(self, a: Any, b: Any) -> float | list[float]:
        """The measure of two values, or of each pair of two lists."""
        if isinstance(a, list | tuple) and isinstance(b, list | tuple):
            if len(a) != len(b):
                raise ExportError(
                    f"there are {len(a)} and {len(b)} values to compare: give as many of both",
                    code=Code.INVALID_ARGUMENT,
                )
            return [self.element_compare(x, y) for x, y in zip(a, b, strict=True)]
        return self.element_compare(a, b)


def _both(a: Any, b: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Both as float64, with 0 for NaN; ValueError if their shapes differ."""
    one, other = (torch.nan_to_num(torch.as_tensor(x).to(torch.float64)) for x in (a, b))
    if one.shape != other.shape:
        raise ValueError(
            f"values of the shapes {list(one.shape)} and {list(other.shape)} cannot be compared"
        )
    return one, other


class L1Comparator(NumericalComparatorBase):
    """The sum of the differences' magnitudes."""

    def element_compare(self, a: Any, b: Any) -> float:
        """The measure of two values."""
        one, other = _both(a, b)
        return float((one - other).abs().sum())


class MSEComparator(NumericalComparatorBase):
    """The mean of the squared differences."""

    def element_compare(self, a: Any, b: Any) -> float:
        """The measure of two values."""
        one, other = _both(a, b)
        return float(((one - other) ** 2).mean())


class SNRComparator(NumericalComparatorBase):
    """The power of the first over that of the differences, in dB; inf without differences, nan if
    the first is zero."""

    def element_compare(self, a: Any, b: Any) -> float:
        """The measure of two values."""
        one, other = _both(a, b)
        signal, noise = float((one**2).mean()), float(((one - other) ** 2).mean())
        if math.isclose(noise, 0.0):
            return math.inf
        return 10 * math.log10(signal / noise) if signal else math.nan
