"""What delegates took of a graph."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.inspect import (
    DelegationBreakdown,
    DelegationInfo,
    get_delegation_info,
    print_delegation_info,
)

__all__ = [
    "DelegationBreakdown",
    "DelegationInfo",
    "get_delegation_info",
    "print_delegation_info",
]

__getattr__ = absent(__name__)
