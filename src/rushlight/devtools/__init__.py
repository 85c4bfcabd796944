"""ExecuTorch's developer tools in its own forms, where ours have another one.

`rushlight.bundle`, `rushlight.inspect` and `rushlight.tap` are what to use in new code.
"""

from rushlight.devtools.comparators import (
    L1Comparator,
    MSEComparator,
    NumericalComparatorBase,
    SNRComparator,
)
from rushlight.devtools.suites import BundledProgram, MethodTestCase, MethodTestSuite
from rushlight.devtools.taps import find_tap_nodes, is_tap_node, tap_intermediate_outputs

__all__ = [
    "BundledProgram",
    "L1Comparator",
    "MSEComparator",
    "MethodTestCase",
    "MethodTestSuite",
    "NumericalComparatorBase",
    "SNRComparator",
    "find_tap_nodes",
    "is_tap_node",
    "tap_intermediate_outputs",
]
