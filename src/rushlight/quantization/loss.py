"""The loss by quantization on a model's example inputs, computed by eager, and where it arises."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from rushlight.ir.source import in_users_code
from rushlight.quantization.layers import unchanged
from rushlight.quantization.taps import Tap, find_taps, tapped

_SHOWN = 3  # layers in one line
_LEAST = 0.01  # the least share of the noise that is shown


@dataclass(frozen=True)
class Loss:
    """The loss of one method.

    Attributes:
        sqnr: signal to quantization noise of all real results, in dB; inf without noise, nan if a
            result is not finite.
        layers: the compared values, each with its share of the noise, the greatest first.
    """

    sqnr: float
    layers: tuple[tuple[Tap, float], ...]

    def __str__(self) -> str:
        told = f"quantization leaves {decibels(self.sqnr)} of signal to noise on the example inputs"
        worst = [_place(tap, share) for tap, share in self.layers[:_SHOWN] if share >= _LEAST]
        return f"{told}; most noise arises in {', '.join(worst)}" if worst else told


def decibels(sqnr: float) -> str:
    """A ratio in dB as text: "41.3 dB"."""
    if math.isnan(sqnr):
        return "not finite"
    return "exact" if sqnr == math.inf else f"{sqnr:.1f} dB"


def sqnr_of(noise_to_signal: float) -> float:
    """A ratio of squares in dB."""
    if noise_to_signal == 0:
        return math.inf
    return -10 * math.log10(noise_to_signal) if noise_to_signal > 0 else math.nan


def shares_of_noise(taps: Sequence[Tap], noise_to_signal: Sequence[float]) -> list[float]:
    """The share of the whole noise that arises at each tap: its noise to signal ratio, less the
    greatest of the taps that it is computed from."""
    by_name = {tap.name: ratio for tap, ratio in zip(taps, noise_to_signal, strict=True)}
    arisen = []
    for tap in taps:
        before = max((by_name[name] for name in tap.inputs), default=0.0)
        # A value that is not finite is attributed to the first tap with one.
        arisen.append(max(by_name[tap.name] - before, 0.0) if math.isfinite(before) else 0.0)
    finite = [a if math.isfinite(a) else 0.0 for a in arisen]
    total = math.inf if finite != arisen else sum(finite)
    return [a / total if 0 < total < math.inf else float(not math.isfinite(a)) for a in arisen]


def loss_of(model: ExportedProgram, quantised: ExportedProgram) -> Loss | None:
    """The loss of a captured model when quantised; None if there is no real result to compare."""
    assert quantised.example_inputs is not None
    args, kwargs = quantised.example_inputs
    one, other = (_module(program) for program in (model, quantised))
    taps = find_taps(one, other)
    pairs = list(zip(_ends(one), _ends(other), strict=False))
    if not pairs:
        return None
    compared = [(a, b) for _, a, b in taps] + pairs
    exact = _run(one, [a for a, _ in compared], args, kwargs)
    rounded = _run(other, [b for _, b in compared], args, kwargs)
    squares = [_squares(a, b) for a, b in zip(exact, rounded, strict=True)]
    ratios = [_ratio(noise, signal) for noise, signal in squares]
    shares = shares_of_noise([tap for tap, _, _ in taps], ratios[: len(taps)])
    layers = sorted(zip((tap for tap, _, _ in taps), shares, strict=True), key=lambda x: -x[1])
    ends = squares[len(taps) :]
    whole = _ratio(sum(noise for noise, _ in ends), sum(signal for _, signal in ends))
    return Loss(sqnr_of(whole), tuple(layers))


def _module(program: ExportedProgram) -> GraphModule:
    module = program.module(check_guards=False)
    assert isinstance(module, GraphModule)
    return module


def _ends(module: GraphModule) -> list[Node]:
    """The results with real numbers."""
    [output] = (node for node in module.graph.nodes if node.op == "output")
    return [node for node in output.all_input_nodes if _is_real(node.meta.get("val"))]


def _is_real(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _run(
    module: GraphModule, nodes: Sequence[Node], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[torch.Tensor]:
    """The values of nodes in one run, which does not change the module's state."""
    with torch.no_grad(), torch.random.fork_rng(devices=[]), unchanged(list(module.buffers())):
        torch.manual_seed(0)
        return list(tapped(module, nodes)(*args, **kwargs))


def _squares(exact: torch.Tensor, rounded: torch.Tensor) -> tuple[float, float]:
    """The sums of squares of the noise and of the signal."""
    noise, signal = (
        float(torch.linalg.vector_norm(x, dtype=torch.float64)) for x in (rounded - exact, exact)
    )
    return noise * noise, signal * signal


def _ratio(noise: float, signal: float) -> float:
    return noise / signal if signal else math.inf if noise else 0.0


def _place(tap: Tap, share: float) -> str:
    source = tap.source
    line = f", {source.brief}" if in_users_code(source.file) else ""
    return f"{tap.module or tap.name} ({share:.0%}{line})"
