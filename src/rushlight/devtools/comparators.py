"""Distances between a run's values and eager's as classes, which backends may derive from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import torch

from rushlight.devtools.values import DebugHandle, convert_to_float_tensor
from rushlight.inspect.trace.inspector import Inspector
from rushlight.inspect.trace.numeric_gap import DISTANCES

IntermediateOutputMapping: TypeAlias = dict[tuple[DebugHandle, Any], tuple[DebugHandle, Any]]
"""Eager's values, with their debug handles, to the run's."""


class NumericalComparatorBase(ABC):
    """A distance for `Inspector.calculate_numeric_gap`, which calls it with each pair of values.

    Args:
        inspector: the one that compares; it sets itself when it does.
    """

    def __init__(self, inspector: Inspector | None = None) -> None:
        self.inspector = inspector

    @abstractmethod
    def element_compare(self, a: Any, b: Any) -> float:
        """The distance of two values.

        Args:
            a: eager's, a tensor.
            b: the run's.
        """

    def preprocessing(self, mapping: IntermediateOutputMapping) -> IntermediateOutputMapping:
        """What is compared in place of the values, for a backend that keeps them in another form.

        Args:
            mapping: pairs of values; both handles are empty, as pairs come one by one.
        """
        return mapping

    def __call__(self, wanted: Any, value: Any) -> float:
        """The distance of two arrays of numbers."""
        pair = {((), torch.as_tensor(wanted)): ((), torch.as_tensor(value))}
        made = self.preprocessing(pair)  # type: ignore[arg-type]
        if not isinstance(made, dict):
            raise TypeError(
                f"{type(self).__name__}.preprocessing returned {type(made).__name__}: return the "
                "mapping, a dict of pairs"
            )
        distances = []
        for key, other in made.items():
            if not all(isinstance(part, tuple) and len(part) == 2 for part in (key, other)):
                raise ValueError(
                    f"{type(self).__name__}.preprocessing returned {key!r}: {other!r}; both must "
                    "be pairs of a tuple of debug handles and a value"
                )
            distances.append(self.element_compare(key[1], other[1]))
        return float(sum(distances) / max(len(distances), 1))


class _Named(NumericalComparatorBase):
    name: str

    def element_compare(self, a: Any, b: Any) -> float:
        """The distance of two values; NaN counts as 0."""
        one, other = (convert_to_float_tensor(x).reshape(-1).numpy() for x in (a, b))
        return DISTANCES[self.name](one, other)


class MSEComparator(_Named):
    """The mean of squared differences."""

    name = "MSE"


class L1Comparator(_Named):
    """The sum of differences."""

    name = "L1"


class SNRComparator(_Named):
    """Signal to noise, in dB."""

    name = "SNR"
