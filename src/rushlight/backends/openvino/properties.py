"""OpenVINO's properties for compilation at export and at load, so that it computes exactly what the
graph says instead of choosing precisions itself."""

from __future__ import annotations

from typing import Any

# By default, a processor may use bfloat16, and int8 activations for compressed weights.
_EXACT = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
_ANY_DEVICE = frozenset({"INFERENCE_PRECISION_HINT"})


def exact_properties(core: Any, device: str) -> dict[str, str]:
    """Those of the properties that a device has.

    Args:
        core: OpenVINO's `Core`.
        device: OpenVINO's name of the device.
    """
    try:
        have = set(core.get_property(device, "SUPPORTED_PROPERTIES"))
    except RuntimeError:  # the name means several devices, or none: compiling will report it
        have = set()
    return {name: value for name, value in _EXACT.items() if name in have | _ANY_DEVICE}
