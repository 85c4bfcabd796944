"""Tapped values of a program beside those of eager."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram

from rushlight.capture import capture
from rushlight.check.eager import eager_results
from rushlight.check.tolerance import as_array
from rushlight.inspect.trace.events import pandas
from rushlight.ir.custom_ops.tap import STATS, Reducer
from rushlight.partition import Partitioner
from rushlight.pipeline import to_edge_transform_and_lower
from rushlight.runtime.load import load
from rushlight.tap.outputs import Tap, tap_outputs
from rushlight.tap.selectors import NodeSelector


def tap_compare(
    model: torch.nn.Module,
    example_inputs: tuple[Any, ...],
    partitioner: Partitioner | Sequence[Partitioner] | None = None,
    *,
    selector: NodeSelector | None = None,
    reducer: str | Reducer = STATS,
) -> tuple[Any, list[Tap]]:
    """Export a model with taps, run it, and compare the taps with eager's.

    `rushlight debug` compares all values of a trace, without changing the program.

    Args:
        model: in eval mode.
        example_inputs: the positional arguments of the run.
        partitioner: one, or several in order; None: no delegation.
        selector, reducer: as for `tap_outputs`.

    Returns:
        The DataFrame of `compare_aot_runtime_dataframe`, and the taps.

    Raises:
        ExportError: the model cannot be exported, or nothing is selected.
        RunError: pandas is not installed.
    """
    pandas()  # before the work
    tapped, taps = tap_outputs(capture(model, example_inputs), selector, reducer)
    return compare_tapped(tapped, taps, example_inputs, partitioner), taps


def compare_tapped(
    tapped: ExportedProgram,
    taps: Sequence[Tap],
    example_inputs: tuple[Any, ...],
    partitioner: Partitioner | Sequence[Partitioner] | None = None,
) -> Any:
    """Run a tapped program, and compare its taps with eager's.

    Args:
        tapped, taps: what `tap_outputs` returned.
        example_inputs, partitioner: as for `tap_compare`.

    Returns:
        The DataFrame of `compare_aot_runtime_dataframe`.

    Raises:
        ExportError: the program cannot be lowered.
        RunError: pandas is not installed.
    """
    wanted = eager_results(tapped, example_inputs, {})
    edge = to_edge_transform_and_lower(tapped, partitioner=partitioner)
    method = load(edge.to_executorch().buffer)["forward"]
    return compare_aot_runtime_dataframe(taps, wanted, method.call_flat(example_inputs, {}))


def compare_aot_runtime_dataframe(
    specs: Sequence[Tap], aot_flat: Sequence[Any], rt_flat: Sequence[Any]
) -> Any:
    """Eager's and a program's taps as a pandas DataFrame, a row for each tap.

    Of a whole value it has the ratio of signal to noise in dB, and the numbers of elements; of
    other reducers both values of each field.

    Args:
        specs: the taps.
        aot_flat: the flat outputs of the tapped program in eager.
        rt_flat: those of the program that was made from it.

    Raises:
        RunError: pandas is not installed.
    """
    return pandas().DataFrame(_rows(specs, aot_flat, rt_flat))


def _rows(taps: Sequence[Tap], wanted: Sequence[Any], got: Sequence[Any]) -> list[dict[str, Any]]:
    rows = []
    for tap in taps:
        one, other = (_flat(values[tap.output_index]) for values in (wanted, got))
        row: dict[str, Any] = {
            name: getattr(tap, name)
            for name in (
                *("node_name", "module_path", "module_class", "op_target", "reducer_name"),
                "output_index",
            )
        }
        if tap.reducer_name == "FULL_TENSOR":
            row |= {"sqnr_db": _sqnr(one, other), "aot_numel": len(one), "rt_numel": len(other)}
        else:
            names = tap.fields or [f"v{i}" for i in range(max(len(one), len(other)))]
            for name, a, b in zip_longest(names, one, other, fillvalue=math.nan):
                row |= {f"aot_{name}": float(a), f"rt_{name}": float(b)}
        rows.append(row)
    return rows


def _flat(value: Any) -> np.ndarray[Any, Any]:
    return as_array(value).astype(np.float64).reshape(-1)


def _sqnr(wanted: np.ndarray[Any, Any], got: np.ndarray[Any, Any]) -> float:
    """10 log10 of the sum of squares / the sum of squared differences; inf if both are equal."""
    if wanted.size != got.size:
        return math.nan
    signal, noise = float(wanted @ wanted), float(np.square(wanted - got).sum())
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal else -math.inf
