"""`Inspector` for scripts that expect recorded values to be torch's tensors, and their distances
drawn."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_map_only

from rushlight.devtools.values import UnfitError
from rushlight.errors import Code, RunError
from rushlight.inspect.trace import inspector as trace
from rushlight.inspect.trace import numeric_gap
from rushlight.inspect.trace.numeric_gap import Distance
from rushlight.record.handles import propagate_back_debug_handle


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

    def calculate_numeric_gap(
        self,
        distance: str | Distance,
        disable_debug_handle_valdiation: bool = False,
        reference_graph: str | None = None,
    ) -> Any:
        """As there, with the values of the captured program, if it can be.

        Args:
            distance: as there.
            disable_debug_handle_valdiation: take the captured program also if some nodes of the
                Edge program were made of none of its calls.
            reference_graph: as there; None: "exported_program" if the record has it and all nodes
                of the Edge program lead back to it, else the Edge program.

        Raises:
            RunError: as there.
            UnfitError: it is "exported_program", and the record does not have it, or some nodes do
                not lead back to it.
        """
        if reference_graph in (None, "exported_program"):
            if self._leads_back(disable_debug_handle_valdiation):
                reference_graph = "exported_program"
            elif reference_graph is not None:
                raise UnfitError(
                    "reference_graph='exported_program': the record has no captured program, or "
                    "some nodes of the Edge program lead back to none of its calls; give "
                    "disable_debug_handle_valdiation=True, or 'edge_dialect_exported_program'",
                    code=Code.NOT_FOUND,
                )
        return super().calculate_numeric_gap(distance, reference_graph=reference_graph)

    def _leads_back(self, disable_validation: bool) -> bool:
        record = self._record()
        captured, edge = record.exported_program, record.edge_programs.get("forward")
        if captured is None or edge is None:
            return False
        graph = record.export_graph_id or 0
        return propagate_back_debug_handle(captured, graph, edge, disable_validation)


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
