"""`Inspector` for scripts that expect recorded values to be torch's tensors, and their distances
drawn."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_map_only

from rushlight.errors import Code, RunError
from rushlight.inspect.trace import inspector as trace
from rushlight.inspect.trace import numeric_gap


class Inspector(trace.Inspector):
    """`rushlight.inspect.Inspector`, whose recorded values are tensors of torch, not arrays.

    Args:
        args, kwargs: as there.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for block in self.event_blocks:
            block.run_output = _tensors(block.run_output)
            block.reference_output = _tensors(block.reference_output)
            for event in block.events:
                event.debug_data = _tensors(event.debug_data)


def _tensors(values: Any) -> Any:
    """The values, with copies of arrays, which may lie in a file, as tensors."""
    return tree_map_only(np.ndarray, lambda array: torch.from_numpy(array.copy()), values)


def compare_results(
    reference_output: Sequence[Any] | None,
    run_output: Sequence[Any] | None,
    metrics: Sequence[str] | None = None,
    plot: bool = False,
) -> dict[str, list[float | None]]:
    """`rushlight.inspect.compare_results`, which can draw what it returns.

    Args:
        reference_output, run_output, metrics: as there.
        plot: also show a bar for each output, in a figure for each metric.

    Raises:
        RunError: as there, or one of the outputs is None, or matplotlib is to draw and is not
            installed.
    """
    if reference_output is None or run_output is None:
        raise RunError(
            "the run has no outputs, or none are expected: record values, and give an ETRecord "
            "with reference outputs (ETRecord.update_reference_outputs)",
            code=Code.INVALID_STATE,
        )
    if plot and find_spec("matplotlib") is None:
        raise RunError(
            "plot=True needs matplotlib, which is not installed: pip install 'rushlight[plot]'",
            code=Code.NOT_FOUND,
        )
    results = numeric_gap.compare_results(reference_output, run_output, metrics)
    for metric, values in results.items() if plot else ():
        _draw(metric, values)
    return results


def _draw(metric: str, values: Sequence[float | None]) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(layout="constrained")
    heights = [np.nan if value is None else value for value in values]
    bars = axes.bar(range(len(values)), heights)
    axes.bar_label(bars, ["-" if value is None else f"{value:.5g}" for value in values])
    axes.set(title=metric, xlabel="output", ylabel=metric, xticks=range(len(values)))
    pyplot.show()
    pyplot.close(figure)
