"""Rules for quantising and dequantising calls, for OpenVINO's reader of graphs.

Its own rules merge a quantising and a dequantising call into one float operator, and do not read
weights that are stored quantised. Here each call is converted separately, into the operators that
OpenVINO's low-precision transformations look for: `FakeQuantize` to the integers' range and a
conversion; and back, a conversion, a subtraction and a multiplication.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino
from openvino import opset13 as opset
from openvino.frontend.pytorch import ConversionExtension

_NAMESPACE = "quantized_decomposed"


def extensions() -> list[ConversionExtension]:
    """The rules, each for the name of an operator in a graph."""
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
    """Scale, zero point and range of the integers; per channel, with shapes that broadcast."""
    scale, zero = (_constant(context.get_input(i)) for i in (1, 2))
    at = 4 if per_channel else 3
    low, high = (int(_constant(context.get_input(i))) for i in (at, at + 1))
    if per_channel:
        shape = [1] * len(context.get_input(0).get_partial_shape())
        shape[int(_constant(context.get_input(3)))] = -1
        scale, zero = scale.reshape(shape), zero.reshape(shape)
    return scale.astype(np.float32), zero.astype(np.float32), low, high


def _named(context: Any, *made: openvino.Node) -> list[openvino.Output]:
    """The outputs of the new nodes, which get the name of the call that they were made from; that
    name is the call's last argument."""
    name = bytes(_constant(context.get_input(context.get_input_size() - 1))).decode()
    for node in made:
        node.set_friendly_name(f"{name}/{node.get_type_name()}")
    outputs: list[openvino.Output] = made[0].outputs()
    return outputs


def _constant(value: openvino.Output) -> Any:
    return value.get_node().get_data()
