"""Compares the values of each layer of a float and a quantised program in the runtime."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from rushlight.accuracy.layers import BINS, Layer
from rushlight.accuracy.report import LossReport
from rushlight.api import export
from rushlight.capture import capture
from rushlight.errors import Code, ExportError
from rushlight.forms import Backend
from rushlight.quantization.calibrate import Item, items_of
from rushlight.quantization.loss import shares_of_noise, sqnr_of
from rushlight.quantization.taps import Range, Tap, find_taps, operator, tapped
from rushlight.runtime.load import load
from rushlight.runtime.module import Module

_Array = np.ndarray[Any, np.dtype[Any]]


def compare(
    model: torch.nn.Module | ExportedProgram,
    quantized: GraphModule | ExportedProgram,
    data: Iterable[Any],
    *,
    backend: Backend = "portable",
    dynamic_shapes: Any = None,
) -> LossReport:
    """Run a model and its quantised form, and compare the values of every layer.

    Both are exported with their layers' values as results and run by the runtime, so that what is
    compared is what ships: a backend's integers, not a simulation of them. A value that is
    quantised is taken as its integers say it.

    Args:
        model: the float model.
        quantized: what `rushlight.quantize` made of it.
        data: inputs: tuples of the model's arguments, tensors or dicts of keyword arguments.
        backend: what the quantised program runs on; float runs on the portable kernels.
        dynamic_shapes: sizes that vary among the inputs, as `torch.export.export` takes them.

    Raises:
        ExportError: there is no input, nothing to compare, or a model that cannot be exported.
    """
    items = items_of(data, "data")
    if not items:
        raise ExportError(
            "no inputs to compare with: give at least one tuple of the model's arguments",
            code=Code.INVALID_ARGUMENT,
        )
    one, other = (
        capture(m, *items[0], dynamic_shapes=dynamic_shapes).module() for m in (model, quantized)
    )
    assert isinstance(one, GraphModule) and isinstance(other, GraphModule)
    taps = find_taps(one, other)
    if not taps:
        raise ExportError(
            "the quantised graph has no value of the float one: was it made from that model, with "
            "inputs of the same shapes?",
            code=Code.INVALID_ARGUMENT,
        )
    programs = []
    for module, nodes, form in (
        (one, [node for _, node, _ in taps], "portable"),
        (other, [twin for _, _, twin in taps], backend),
    ):
        programs.append(_load(module, nodes, items[0], dynamic_shapes, form))
    sums = [Sums(tap.range) for tap, _, _ in taps]
    ends: list[Sums] = []
    for item in items:
        floats, integers = (_run(program, item) for program in programs)
        n = len(taps)
        ends = ends or [Sums(None) for _ in floats[n:]]
        for total, exact, value in zip([*sums, *ends], floats, integers, strict=True):
            total.add(exact, value)
    names = {tap.name for tap, _, _ in taps}
    return LossReport(
        tuple(_layers([tap for tap, _, _ in taps], sums)),
        tuple(end.sqnr for end in ends),
        len(items),
        backend if isinstance(backend, str) else type(backend).__name__,
        tuple(_absent(one, other, names)),
    )


def _load(
    module: GraphModule, nodes: Sequence[Node], item: Item, shapes: Any, form: Backend
) -> Module:
    """A program that returns the values of nodes, then the model's float results."""
    [output] = (n for n in module.graph.nodes if n.op == "output")
    ends = [n for n in output.all_input_nodes if _is_float(n)]
    program = export(
        tapped(module, [*nodes, *ends]), *item, dynamic_shapes=shapes, backend=form, verify=False
    )
    return load(program.buffer)


def _is_float(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _run(module: Module, item: Item) -> list[_Array]:
    args, kwargs = pytree.tree_map_only(torch.Tensor, lambda t: t.detach().numpy(), tuple(item))
    return [np.asarray(value) for value in module(*args, **kwargs)]


def _absent(one: GraphModule, other: GraphModule, names: set[str]) -> list[str]:
    """Computed values of the float graph that have no counterpart in the quantised graph."""
    there = {n.name for n in other.graph.nodes}
    calls = (n for n in one.graph.nodes if n.op == "call_function" and n.name not in names)
    return [n.name for n in calls if n.name not in there and operator(n) != "batch_norm"]


class Sums:
    """Accumulates the differences of one value over all inputs.

    Args:
        range: the range of its integers; None for a value that stays float.
    """

    def __init__(self, range: Range | None) -> None:
        self._range = range
        self._signal = self._noise = 0.0
        self._count = self._beyond = 0
        self.max_error = self.max_value = 0.0
        self.reach = 0.0
        self._bins = np.zeros(BINS, dtype=np.int64)

    def add(self, exact: _Array, value: _Array) -> None:
        """Add the values for one input: `exact` in float and `value` quantised, of equal shapes."""
        exact = exact.astype(np.float64)
        error = value.astype(np.float64) - exact
        if not exact.size:
            return
        self._signal += float(np.square(exact).sum())
        self._noise += float(np.square(error).sum())
        self._count += exact.size
        self.max_error = max(self.max_error, float(np.abs(error).max()))
        self.max_value = max(self.max_value, float(np.abs(exact).max()))
        if self._range is not None:
            low, high = self._range.limits
            self._beyond += int(np.count_nonzero((exact < low) | (exact > high)))
        self._add_to_bins(error)

    def _add_to_bins(self, error: _Array) -> None:
        if not np.isfinite(error).all():
            return
        if self.reach == 0.0:
            self.reach = 4 * math.sqrt(float(np.square(error).mean()))
        if self.reach > 0:
            edges = np.linspace(-self.reach, self.reach, BINS + 1)
            self._bins += np.histogram(np.clip(error, -self.reach, self.reach), edges)[0]

    @property
    def noise_to_signal(self) -> float:
        """The sum of squared errors over the sum of squared float values."""
        if self._noise == 0.0:
            return 0.0
        return self._noise / self._signal if self._signal > 0 else math.inf

    @property
    def sqnr(self) -> float:
        """The signal to quantization noise ratio, in dB."""
        return sqnr_of(self.noise_to_signal)

    @property
    def saturation(self) -> float | None:
        """The share of values beyond the range of the integers; None if there is no range."""
        return None if self._range is None else self._beyond / max(self._count, 1)

    @property
    def histogram(self) -> tuple[int, ...]:
        """The number of differences in each bin."""
        return tuple(int(n) for n in self._bins)


def _layers(taps: Sequence[Tap], sums: Sequence[Sums]) -> list[Layer]:
    shares = shares_of_noise(taps, [total.noise_to_signal for total in sums])
    layers = []
    for tap, total, blame in zip(taps, sums, shares, strict=True):
        layers.append(
            Layer(
                tap, total.sqnr, blame, total.max_error, total.max_value, total.saturation,
                total.histogram, total.reach,
            )
        )  # fmt: skip
    return sorted(layers, key=lambda layer: -layer.blame)
