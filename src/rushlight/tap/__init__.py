"""Taps: values inside a program, with delegates, that it returns as further outputs."""

from rushlight.ir.custom_ops.tap import FULL_TENSOR, STATS, Reducer, get_reducer
from rushlight.tap.compare import compare_aot_runtime_dataframe, tap_compare
from rushlight.tap.outputs import Tap, tap_outputs
from rushlight.tap.selectors import (
    NodeSelector,
    select_all,
    select_all_call_function,
    select_any,
    select_by_module_class,
    select_by_module_path,
    select_by_op_type,
    select_not,
)

__all__ = [
    "FULL_TENSOR",
    "STATS",
    "NodeSelector",
    "Reducer",
    "Tap",
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
    "tap_outputs",
]
