"""Observers that torchao lacks: for rows quantised at run time, and for groups of weights.

torchao calls an observer's method `convert` to write its nodes, if it has one; these write the same
operators as ExecuTorch's exporter.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # its operators
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e import ObserverBase
from torchao.quantization.pt2e.utils import create_getattr_from_value

from rushlight.quantization.gptq import rounded

_CLIPS = 24  # the number of scales that are tried for each group


class PerTokenObserver(ObserverBase):  # type: ignore[misc]  # torchao has no types
    """The observer of an activation whose rows get scales and zero points at run time."""

    def __init__(self, dtype: torch.dtype = torch.int8, **_: Any) -> None:
        super().__init__(dtype, is_dynamic=True)
        self.wants_moments = False
        self.moments: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns `x`; sums up the moments of its rows, if a weight is rounded by them."""
        if self.wants_moments:
            rows = x.detach().reshape(-1, x.shape[-1]).float()
            moments = rows.T @ rows
            self.moments = moments if self.moments is None else self.moments + moments
        return x

    def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Raises an error: the parameters are computed at run time."""
        raise RuntimeError("the scales of a dynamically quantised value are found at run time")

    def convert(self, model: GraphModule, observer_node: Node) -> None:
        """Replace the observer by the choice of parameters and the two conversions."""
        ops = torch.ops.quantized_decomposed
        x = observer_node.args[0]
        limits = torch.iinfo(self.dtype)
        with model.graph.inserting_before(observer_node):
            call = model.graph.call_function
            chosen = call(ops.choose_qparams_per_token_asymmetric.default, (x, self.dtype))
            parameters = [call(operator.getitem, (chosen, i)) for i in (0, 1)]
            how = (*parameters, limits.min, limits.max, self.dtype)
            integers = call(ops.quantize_per_token.default, (x, *how))
            real = call(ops.dequantize_per_token.default, (integers, *how, torch.float32))
        _replace(model, observer_node, real)


class GroupedWeightObserver(ObserverBase):  # type: ignore[misc]
    """The observer of a matrix [out, in] with a scale for each `group_size` weights of a row.

    The scale of a group is the one with the least squared error among those that use the whole
    range of the integers or clip a few of the largest weights. With calibration data the weights
    are rounded by GPTQ.
    """

    def __init__(
        self,
        dtype: torch.dtype = torch.int8,
        quant_min: int = -8,
        quant_max: int = 7,
        group_size: int = 32,
        floor: float = 0.0,
        **_: Any,
    ) -> None:
        super().__init__(dtype, is_dynamic=False)
        self.quant_min, self.quant_max = quant_min, quant_max
        self.group_size, self.floor = group_size, floor
        self.weight: torch.Tensor | None = None
        self.inputs: PerTokenObserver | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Remember the weight."""
        self.weight = x.detach()
        return x

    def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Scales and zero points, [out, in/group_size]."""
        _, scales = self._integers()
        return scales, torch.zeros_like(scales, dtype=torch.int64)

    def _integers(self) -> tuple[torch.Tensor, torch.Tensor]:
        assert self.weight is not None
        weight = self.weight.float()
        moments = None if self.inputs is None else self.inputs.moments
        if moments is not None:
            limits = (self.quant_min, self.quant_max)
            return rounded(weight, moments, self.group_size, self._scales, limits)
        groups = weight.unflatten(1, (-1, self.group_size))
        scales = self._scales(groups)
        return self._round(groups, scales).flatten(1), scales

    def _scales(self, groups: torch.Tensor) -> torch.Tensor:
        high, low = groups.amax(-1), groups.amin(-1)
        full = torch.maximum(high / self.quant_max, low / self.quant_min).clamp_min(self.floor)
        best, least = full, torch.full_like(full, torch.inf)
        for clip in range(_CLIPS):
            scale = full * (1 - clip / (2 * _CLIPS))
            numbers = self._round(groups, scale)
            error = (numbers * scale.unsqueeze(-1) - groups).square().sum(-1)
            best = torch.where(error < least, scale, best)
            least = torch.minimum(error, least)
        return best

    def _round(self, groups: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        numbers = torch.round(groups / scales.unsqueeze(-1))
        return numbers.clamp(self.quant_min, self.quant_max)

    def convert(self, model: GraphModule, observer_node: Node) -> None:
        """Replace the observer by the integers and their dequantisation."""
        numbers, scales = self._integers()
        integers, zeros = numbers.to(self.dtype), torch.zeros_like(scales, dtype=torch.int64)
        graph = model.graph
        with graph.inserting_before(observer_node):
            constants = [
                create_getattr_from_value(model, graph, f"{name}_", value)
                for name, value in (("_weight", integers), ("_scale", scales), ("_zero", zeros))
            ]
            real = graph.call_function(
                torch.ops.quantized_decomposed.dequantize_per_channel_group.default,
                (
                    *constants,
                    self.quant_min,
                    self.quant_max,
                    self.dtype,
                    self.group_size,
                    torch.float32,
                ),
            )
        _replace(model, observer_node, real)


def _replace(model: GraphModule, node: Node, by: Node) -> None:
    node.replace_all_uses_with(by)
    model.graph.erase_node(node)
