"""Checking finished programs: each runs in the runtime and is compared with eager."""

from rushlight.check.eager import eager_results
from rushlight.check.fused import amplifies_roundings
from rushlight.check.lent_cache import lent_cache
from rushlight.check.method import (
    Lower,
    accepts,
    check_available,
    check_contracts,
    check_method,
    first_departure,
)
from rushlight.check.to_run import to_run
from rushlight.check.tolerance import Tolerance, quantises, tolerance_of

__all__ = [
    "Lower",
    "Tolerance",
    "accepts",
    "amplifies_roundings",
    "check_available",
    "check_contracts",
    "check_method",
    "eager_results",
    "first_departure",
    "lent_cache",
    "quantises",
    "to_run",
    "tolerance_of",
]
