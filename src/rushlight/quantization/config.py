"""torchao's `QuantizationConfig` for each scheme of the recipes.

Observers keep a scale above a floor. ExecuTorch's floor, 2**-12, is larger than the scales of many
trained layers (a folded batch norm makes weights of 1e-3) and turns them into zeros. The inverse of
the floor here is still a float32; `scales.py` keeps the products of two scales normal numbers.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import torch
from torchao.quantization.pt2e import (
    FakeQuantize,
    FusedMovingAvgObsFakeQuantize,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    PerChannelMinMaxObserver,
)
from torchao.quantization.pt2e.quantizer import QuantizationConfig, QuantizationSpec

from rushlight.quantization.observers import GroupedWeightObserver, PerTokenObserver
from rushlight.quantization.ranges import RangeObserver

FLOOR = 2.0**-100


def static_config(
    *, is_per_channel: bool = True, activation_bits: int = 8, is_qat: bool = False
) -> QuantizationConfig:
    """Integers throughout: activations by scales that calibration finds, weights symmetric int8.

    Args:
        is_per_channel: a scale for each output channel of a weight, or one for all.
        activation_bits: 8 (asymmetric int8) or 16 (symmetric int16).
        is_qat: fake-quantise for training, instead of observers.
    """
    activation = _activation(activation_bits, is_qat)
    return QuantizationConfig(activation, activation, _weight(is_per_channel, is_qat), None, is_qat)


def dynamic_config(*, weight_bits: int = 8, group_size: int = 32) -> QuantizationConfig:
    """Integer products: rows of activations by scales found at run time, symmetric weights.

    Args:
        weight_bits: 8, with a scale for each output channel, or 4, with one for each group.
        group_size: the number of weights of a row with one scale, if they have 4 bits.
    """
    activation = replace(row_activation(), is_dynamic=True)
    weight = grouped_weight(group_size) if weight_bits == 4 else channel_weight()
    return QuantizationConfig(activation, None, weight, None)


def get_symmetric_quantization_config(
    is_per_channel: bool = False,
    is_qat: bool = False,
    is_dynamic: bool = False,
    act_qmin: int = -128,
    act_qmax: int = 127,
    weight_qmin: int = -127,
    weight_qmax: int = 127,
) -> QuantizationConfig:
    """int8 with symmetric weights, by ExecuTorch's arguments.

    Args:
        is_per_channel: a scale for each output channel of a weight, or one for all.
        is_qat: fake-quantise for training, instead of observers.
        is_dynamic: a scale and zero point for each row of activations, found at run time.
        act_qmin, act_qmax: the range of activations with static scales.
        weight_qmin, weight_qmax: the range of weights.
    """
    config = static_config(is_per_channel=is_per_channel, is_qat=is_qat and not is_dynamic)
    weight = replace(config.weight, quant_min=weight_qmin, quant_max=weight_qmax)
    if is_dynamic:
        return QuantizationConfig(dynamic_config().input_activation, None, weight, None, is_qat)
    activation = replace(config.input_activation, quant_min=act_qmin, quant_max=act_qmax)
    return QuantizationConfig(activation, activation, weight, None, is_qat)


def row_activation() -> QuantizationSpec:
    """int8 with a scale and zero point for each row, found at run time."""
    return QuantizationSpec(  # no qscheme, so that no static scale is shared with it
        dtype=torch.int8,
        quant_min=-128,
        quant_max=127,
        observer_or_fake_quant_ctr=PerTokenObserver.with_args(),
    )


def channel_weight() -> QuantizationSpec:
    """Symmetric int8 with a scale for each output channel."""
    return _weight(is_per_channel=True, is_qat=False)


def grouped_weight(group_size: int) -> QuantizationSpec:
    """Symmetric 4 bits, -8 to 7, with a scale for each `group_size` weights of a row."""
    return QuantizationSpec(
        dtype=torch.int8,
        quant_min=-8,
        quant_max=7,
        observer_or_fake_quant_ctr=GroupedWeightObserver.with_args(
            group_size=group_size, floor=FLOOR
        ),
    )


def group_size_of(weight: QuantizationSpec) -> int | None:
    """The size of a weight's groups; None for a weight without groups."""
    made = _made_by(weight)
    size = made.keywords.get("group_size") if made is not None else None
    return None if size is None else int(size)


def is_per_token(spec: QuantizationSpec) -> bool:
    """Whether rows get their scales at run time; also for a copy from another process."""
    made = _made_by(spec)
    return made is not None and made.func is PerTokenObserver


def _made_by(spec: QuantizationSpec) -> functools.partial[Any] | None:
    """The class and the arguments of the observer."""
    return getattr(spec.observer_or_fake_quant_ctr, "p", None)


def _activation(bits: int, is_qat: bool) -> QuantizationSpec:
    wide = bits == 16
    options: dict[str, Any] = {"eps": FLOOR}
    if not is_qat:
        # The bins of a histogram are wider than the differences between 16-bit values.
        observer: Any = MinMaxObserver if wide else RangeObserver
    elif wide:
        observer = FakeQuantize
        options["observer"] = MovingAverageMinMaxObserver
    else:
        observer = FusedMovingAvgObsFakeQuantize
    return QuantizationSpec(
        dtype=torch.int16 if wide else torch.int8,
        quant_min=-32767 if wide else -128,
        quant_max=32767 if wide else 127,
        qscheme=torch.per_tensor_symmetric if wide else torch.per_tensor_affine,
        observer_or_fake_quant_ctr=observer.with_args(**options),
    )


def _weight(is_per_channel: bool, is_qat: bool) -> QuantizationSpec:
    options: dict[str, Any] = {"eps": FLOOR}
    observer: Any = PerChannelMinMaxObserver if is_per_channel else MinMaxObserver
    if is_qat:
        options["observer"] = (
            MovingAveragePerChannelMinMaxObserver if is_per_channel else MovingAverageMinMaxObserver
        )
        observer = FusedMovingAvgObsFakeQuantize
    return QuantizationSpec(
        dtype=torch.int8,
        quant_min=-127,
        quant_max=127,
        qscheme=torch.per_channel_symmetric if is_per_channel else torch.per_tensor_symmetric,
        ch_axis=0,
        observer_or_fake_quant_ctr=observer.with_args(**options),
    )
