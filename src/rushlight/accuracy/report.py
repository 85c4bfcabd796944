"""The report on quantization loss by layer, as a table in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from rushlight.accuracy.layers import Layer, percent
from rushlight.accuracy.page import page
from rushlight.inspect.text import MAX_ROWS, table_of
from rushlight.quantization.loss import decibels


@dataclass(frozen=True)
class LossReport:
    """All compared values, the greatest share of the noise first. Prints as a table.

    Attributes:
        layers: the compared values.
        outputs: dB of each output of the model.
        inputs: how many inputs were run.
        backend: what the quantised program ran on.
        not_compared: names of computed values that have no counterpart in the quantised graph.
    """

    layers: tuple[Layer, ...]
    outputs: tuple[float, ...]
    inputs: int
    backend: str
    not_compared: tuple[str, ...] = field(default=())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from _lines(self)

    def __str__(self) -> str:
        console = Console(width=120, color_system=None)
        with console.capture() as got:
            console.print(self)
        return got.get()

    def html(self) -> str:
        """The report as one self-contained HTML page."""
        return page(self.layers, self.outputs, self.inputs, self.backend, self.not_compared)


def _lines(report: LossReport) -> Iterator[RenderableType]:
    table = table_of(
        f"what quantization costs, by layer: {report.inputs} inputs on {report.backend}",
        "layer", "operators", "blame", "SQNR", "max error", "of", "saturated", "Python",
        right=(2, 3, 4, 5, 6), drop=(5, 6, 4, 7, 2),
    )  # fmt: skip
    for layer in report.layers[:MAX_ROWS]:
        tap = layer.tap
        table.add_row(
            Text(tap.module or tap.name),
            Text(tap.op),
            percent(layer.blame),
            decibels(layer.sqnr),
            f"{layer.max_error:.3g}",
            f"{layer.max_value:.3g}",
            percent(layer.saturation),
            Text(layer.tap.source.brief),
        )
    yield table
    left = len(report.layers) - MAX_ROWS
    if left > 0:
        yield Text(f"  … {left} more layers with less noise", "dim")
    outputs = ", ".join(decibels(sqnr) for sqnr in report.outputs)
    yield Text.assemble(" outputs  ", (outputs, "bold"))
    if report.not_compared:
        names = ", ".join(report.not_compared[:5])
        yield Text(f" not compared, because the quantised graph lacks them: {names}", "dim")
