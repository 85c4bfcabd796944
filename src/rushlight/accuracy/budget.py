"""A quantised model as small as a metric allows."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text
from torch.export import ExportedProgram
from torch.fx import Node
from torchao.quantization.pt2e.quantizer import QuantizationConfig

from rushlight.accuracy.search import FLOAT, SearchResult, Space, search
from rushlight.accuracy.trials import Metric, Task, Trials, measured
from rushlight.api import export
from rushlight.capture import Model, capture
from rushlight.errors import Code, ExportError, answers_keywords
from rushlight.forms import Backend
from rushlight.inspect.profile import profile_of
from rushlight.inspect.text import size_text, table_of
from rushlight.ir.source import source_of
from rushlight.quantization import CpuQuantizer
from rushlight.quantization.calibrate import Item, calibration, items_of
from rushlight.quantization.config import group_size_of
from rushlight.quantization.loss import decibels
from rushlight.quantization.recipes import recipe_of
from rushlight.quantization.taps import operator
from rushlight.runtime.load import load
from rushlight.runtime.peaks import measure_peaks

_RUNS = 20  # timed runs of the finished program


@dataclass(frozen=True)
class LayerChoice:
    """The precision that was chosen for a layer.

    Attributes:
        name: the module's path.
        precision: a recipe, or "float".
        sqnr: dB of the model's outputs if only this layer has the lowest precision.
        drop: the drop of the metric if only this layer has the lowest precision.
        bytes: the size of its weights at the chosen precision.
        seconds: its time in one run of the finished program, on one thread.
        blocked: why it has no lower precision; "" if it has the lowest.
    """

    name: str
    precision: str
    sqnr: float
    drop: float
    bytes: int
    seconds: float
    blocked: str


@dataclass(frozen=True)
class Budgeted:
    """The result of a search within a budget. Prints as a table.

    Attributes:
        program: the quantised program, which `rushlight.export` takes.
        baseline, metric: the metric of the float model and of the quantised one.
        max_drop: the budget.
        bytes, float_bytes: the size of the layers' weights, as chosen and in float.
        layers: the layers in the model's order.
        trials: the number of mixes that were tried.
    """

    program: ExportedProgram
    baseline: float
    metric: float
    max_drop: float
    bytes: int
    float_bytes: int
    layers: tuple[LayerChoice, ...]
    trials: int

    @property
    def blocking(self) -> tuple[LayerChoice, ...]:
        """Layers that have no lower precision, the most sensitive first."""
        blocked = (layer for layer in self.layers if layer.blocked)
        return tuple(sorted(blocked, key=lambda layer: -layer.drop))

    def __str__(self) -> str:
        console = Console(width=120, color_system=None)
        with console.capture() as got:
            console.print(self)
        return got.get()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = table_of(
            "precision of each layer", "layer", "precision", "SQNR alone", "drop alone", "weights",
            "time", right=(2, 3, 4, 5), drop=(5, 4),
        )  # fmt: skip
        for layer in self.layers:
            table.add_row(
                Text(layer.name),
                Text(layer.precision, "yellow" if layer.blocked else ""),
                decibels(layer.sqnr),
                f"{layer.drop:.4g}",
                size_text(layer.bytes),
                f"{layer.seconds * 1e6:.1f} µs",
            )
        yield table
        yield Text(
            f" metric   {self.metric:.6g}, float {self.baseline:.6g}: a drop of "
            f"{self.baseline - self.metric:.4g} of {self.max_drop:.4g} allowed"
        )
        yield Text(
            f" weights  {size_text(self.bytes)}, float {size_text(self.float_bytes)}; "
            f"{self.trials} trials"
        )
        for layer in self.blocking:
            yield Text(f"   • {layer.name} stays {layer.precision}: {layer.blocked}")


@answers_keywords(
    calibrate="data= calibrates, and the metric is measured on what it reads itself",
    recipe="recipes= says which precisions to choose from; rushlight.quantize takes one recipe",
)
def quantize_within(
    model: Model,
    data: Iterable[Any],
    metric: Metric,
    max_drop: float,
    *,
    recipes: Sequence[str] | None = None,
    backend: Backend = "cpu",
    dynamic_shapes: Any = None,
    workers: int = 1,
    ray: bool = False,
    resume: str | os.PathLike[str] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Budgeted:
    """Quantise each layer as far as a metric allows: find the smallest mix of precisions whose
    metric stays within the budget. `rushlight.quantize` takes one recipe for all layers.

    Args:
        model: as `rushlight.export` takes it; not changed.
        data: inputs that calibrate, as `rushlight.quantize` takes its `calibrate`.
        metric: takes a module that is called like the model, and returns a number that is greater
            for a better one.
        max_drop: how far the metric may fall below that of the float model.
        recipes: the precisions to choose from besides float, the lowest first; default: for a
            model with convolutions int8, else int4-dynamic and int8-dynamic.
        backend: what the times of the table are measured on.
        dynamic_shapes: sizes that may vary, as `torch.export.export` takes them.
        workers: trials at a time, each in a process; the result does not depend on it.
        ray: run the trials on a Ray cluster.
        resume: a file that finished trials are written to, and read from by the next search.
        progress: called with each stage's name before it starts.

    Returns:
        The quantised program, which `rushlight.export` takes, with what was chosen for each layer
        and what it costs; it prints as a table.

    Raises:
        ExportError: there is no data or no layer, a metric is no number, a recipe is none that
            layers can have, or a file to resume from is of another search.
    """
    say = progress or (lambda stage: None)
    if not (max_drop >= 0 and math.isfinite(max_drop)):
        raise _wrong(f"max_drop={max_drop!r}: give a number of 0 or more")
    if not callable(metric):
        raise _wrong(
            f"metric is {type(metric).__name__}: give a function that takes a module and returns a "
            f"number, greater for a better one"
        )
    items = items_of(data, "data")
    if not items:
        raise _wrong("data is empty: give some dozens of inputs like the real ones")
    say("capture")
    program = capture(model, items[0].args, items[0].kwargs, dynamic_shapes=dynamic_shapes)
    weights = layers_of(program)
    names = recipes or _default(program)
    configs = {name: _config(name) for name in names}
    checked: list[Item] = calibration(program, items, "data")
    task = Task(program, tuple(weights), configs, _elsewhere(configs), checked, metric)
    baseline = measured(metric, program.module())
    if not math.isfinite(baseline):
        raise _wrong(f"the metric of the float model is {baseline}: it must be a finite number")
    space = Space(tuple(weights), tuple(names), _bytes_of(weights, configs))
    trials = Trials(task, workers=workers, ray=ray, resume=resume, progress=say)
    result = search(space, baseline - max_drop, trials)
    say("measure the layers")
    quantized = task.quantized(result.mix)
    seconds = _times(quantized, checked[0], backend)
    layers = tuple(_choice(name, space, result, baseline, seconds) for name in space.layers)
    return Budgeted(
        quantized, baseline, result.outcome.metric, max_drop, space.size(result.mix),
        space.size({}), layers, result.trials,
    )  # fmt: skip


def _wrong(why: str) -> ExportError:
    return ExportError(why, code=Code.INVALID_ARGUMENT)


def layers_of(program: ExportedProgram) -> dict[str, list[torch.Tensor]]:
    """The weights of the linear and convolution modules, by the module's path.

    Raises:
        ExportError: the model has no such module.
    """
    names = program.graph_signature.inputs_to_parameters
    weights: dict[str, list[torch.Tensor]] = defaultdict(list)
    for node in program.graph.nodes:
        weight = _weight(node)
        if weight is not None and weight.name in names:
            tensor = program.state_dict[names[weight.name]]
            weights[source_of(node).module].append(tensor)
    if not weights:
        raise _wrong(
            "the model has no linear layer or convolution with a weight of its own, so nothing "
            "can be quantised"
        )
    return dict(weights)


def _weight(node: Node) -> Node | None:
    if node.op != "call_function" or not (
        operator(node) == "linear" or operator(node).startswith("conv")
    ):
        return None
    weight = node.args[1]
    return weight if isinstance(weight, Node) else None


def _default(program: ExportedProgram) -> tuple[str, ...]:
    calls = (n for n in program.graph.nodes if n.op == "call_function")
    if any(operator(n).startswith("conv") for n in calls):
        return ("int8",)
    return ("int4-dynamic", "int8-dynamic")


def _config(name: str) -> QuantizationConfig:
    make = recipe_of(name).quantizer
    quantizer = make() if make is not None else None
    if not isinstance(quantizer, CpuQuantizer) or quantizer.config is None:
        raise _wrong(f"recipe {name!r} is for whole models: layers can have int8 or int4 recipes")
    return quantizer.config


def _elsewhere(configs: Mapping[str, QuantizationConfig]) -> QuantizationConfig | None:
    """The configuration of operators between the layers: that of the first static recipe."""
    for config in configs.values():
        activation = config.input_activation
        if activation is not None and not activation.is_dynamic:
            return config
    return None


def _bytes_of(
    weights: Mapping[str, Sequence[torch.Tensor]], configs: Mapping[str, QuantizationConfig]
) -> Callable[[str, str], int]:
    def bytes_of(layer: str, level: str) -> int:
        total = 0
        for weight in weights[layer]:
            if level == FLOAT:
                total += weight.numel() * weight.element_size()
                continue
            size = group_size_of(configs[level].weight)
            # A row that groups do not divide has 8 bits instead.
            bits = 4 if size is not None and weight.shape[-1] % size == 0 else 8
            total += math.ceil(weight.numel() * bits / 8)
        return total

    return bytes_of


def _times(program: ExportedProgram, item: Item, backend: Backend) -> dict[str, float]:
    """Seconds of each module in a run of the program."""
    made = export(program, backend=backend, verify=False)
    module = load(made.buffer, threads=1, trace=True)
    args, kwargs = pytree.tree_map_only(
        torch.Tensor, lambda t: t.detach().numpy(), (item.args, item.kwargs)
    )
    profile = profile_of(
        made.buffer, module, "forward", lambda: module(*args, **kwargs), runs=_RUNS,
        peaks=measure_peaks(1),
    )  # fmt: skip
    seconds: dict[str, float] = defaultdict(float)
    for operator_time in profile.operators:
        modules = {source.module for source in operator_time.sources}
        for name in modules:
            seconds[name] += operator_time.ns * 1e-9 / len(modules)
    return seconds


def _choice(
    name: str, space: Space, result: SearchResult, baseline: float, seconds: Mapping[str, float]
) -> LayerChoice:
    precision = result.mix.get(name, FLOAT)
    lowest = result.alone[name, space.levels[0]]
    sqnr = -10 * math.log10(lowest.noise) if lowest.noise > 0 else math.inf
    blocked = ""
    levels = space.all_levels()
    if precision != levels[0]:
        below = levels[levels.index(precision) - 1]
        drop = baseline - result.alone[name, below].metric
        blocked = f"at {below} alone the metric drops by {drop:.4g}"
    size = space.bytes(name, precision)
    return LayerChoice(
        name, precision, sqnr, baseline - lowest.metric, size, seconds.get(name, 0.0), blocked
    )
