"""Values inside a program as further outputs."""

from __future__ import annotations

from executorch._absent import absent
from rushlight.tap import (
    FULL_TENSOR,
    STATS,
    NodeSelector,
    compare_aot_runtime_dataframe,
    get_reducer,
    select_all,
    select_all_call_function,
    select_any,
    select_by_module_class,
    select_by_module_path,
    select_by_op_type,
    select_not,
    tap_compare,
)

__all__ = [
    "FULL_TENSOR",
    "STATS",
    "NodeSelector",
    "compare_aot_runtime_dataframe",
    "get_reducer",
    "select_all",
    "select_all_call_function",
    "select_any",
    "select_by_module_class",
    "select_by_module_path",
    "select_by_op_type",
    "select_not",
    "tap_compare",
]

__getattr__ = absent(__name__, "rushlight.tap.tap_outputs returns a changed copy of a program")
