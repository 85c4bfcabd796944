"""What both halves tell OpenVINO when it compiles: properties that let it compute what the graph
says, in place of its own choices."""

from __future__ import annotations

from typing import Any

# A processor's own choices may be bfloat16, and int8 activations for weights that are compressed.
_EXACT = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
_ANY_DEVICE = frozenset({"INFERENCE_PRECISION_HINT"})


def exact_properties(core: Any, device: str) -> dict[str, str]:
    """The properties for a device, as far as it has them.

    Args:
        core: OpenVINO's.
        device: its name of the device.
    """
    try:
        have = set(core.get_property(device, "SUPPORTED_PROPERTIES"))
    except RuntimeError:  # a device that stands for several, or is not there: compiling tells
        have = set()
    return {name: value for name, value in _EXACT.items() if name in have | _ANY_DEVICE}
