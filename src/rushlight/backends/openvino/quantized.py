"""Quantising and dequantising for OpenVINO's reader of graphs.

Its own rules make one float operator of a pair of the two, and nothing of a weight that is stored
quantised. Here each operator is what it says, in the form that OpenVINO's transformations for low
precision look for: `FakeQuantize` to the integers' range with a conversion, and conversion,
subtraction and multiplication back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino
from openvino import opset13 as opset
from openvino.frontend.pytorch import ConversionExtension

_NAMESPACE = "quantized_decomposed"


def extensions() -> list[ConversionExtension]:
    """The rules, by the operators' names in a graph."""
    rules = {
        "quantize_per_tensor": lambda context: _quantize(context, per_channel=False),
        "quantize_per_channel": lambda context: _quantize(context, per_channel=True),
        "dequantize_per_tensor": lambda context: _dequantize(context, per_channel=False),
        "dequantize_per_channel": lambda context: _dequantize(context, per_channel=True),
    }
    return [ConversionExtension(f"{_NAMESPACE}.{op}.default", rule) for op, rule in rules.items()]


def _quantize(context: Any, *, per_channel: bool) -> list[openvino.Output]:
    scale, zero, low, high = _parameters(context, per_channel)
    fake = opset.fake_quantize(
        context.get_input(0),
        opset.constant(((low - zero) * scale).astype(np.float32)),
        opset.constant(((high - zero) * scale).astype(np.float32)),
        opset.constant(np.float32(low)),
        opset.constant(np.float32(high)),
        levels=high - low + 1,
    )
    return _named(context, opset.convert(fake, "u8" if low >= 0 else "i8"), fake)


def _dequantize(context: Any, *, per_channel: bool) -> list[openvino.Output]:
    scale, zero, _, _ = _parameters(context, per_channel)
    numbers = opset.convert(context.get_input(0), "f32")
    if np.any(zero):
        numbers = opset.subtract(numbers, opset.constant(zero.astype(np.float32)))
    return _named(context, opset.multiply(numbers, opset.constant(scale)))


def _parameters(context: Any, per_channel: bool) -> tuple[Any, Any, int, int]:
    """Scale, zero point and range of the integers; those of channels in a shape that broadcasts."""
    scale, zero = (_constant(context.get_input(i)) for i in (1, 2))
    at = 4 if per_channel else 3
    low, high = (int(_constant(context.get_input(i))) for i in (at, at + 1))
    if per_channel:
        shape = [1] * len(context.get_input(0).get_partial_shape())
        shape[int(_constant(context.get_input(3)))] = -1
        scale, zero = scale.reshape(shape), zero.reshape(shape)
    return scale.astype(np.float32), zero.astype(np.float32), low, high


def _named(context: Any, *made: openvino.Node) -> list[openvino.Output]:
    """What was made, called after the call that it was made of, whose name is the last argument."""
    name = bytes(_constant(context.get_input(context.get_input_size() - 1))).decode()
    for node in made:
        node.set_friendly_name(f"{name}/{node.get_type_name()}")
    outputs: list[openvino.Output] = made[0].outputs()
    return outputs


def _constant(value: openvino.Output) -> Any:
    return value.get_node().get_data()
