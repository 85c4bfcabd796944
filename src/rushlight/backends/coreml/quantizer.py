"""`CoreMLQuantizer`: quantises captured graphs as a configuration of coremltools says.

coremltools has a quantizer of this name for older releases of torch. Its configurations
(`coremltools.optimize.torch.quantization.LinearQuantizerConfig`) are those of the newer ones too.
"""

from __future__ import annotations

from typing import Any

import torch
from torchao.quantization.pt2e import (
    FakeQuantize,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
)
from torchao.quantization.pt2e.quantizer import QuantizationConfig, QuantizationSpec

from rushlight.quantization.quantizer import CpuQuantizer

# The observers by name: for a whole tensor, and for each output channel.
_OBSERVERS = {
    "min_max": (MinMaxObserver, PerChannelMinMaxObserver),
    "moving_average_min_max": (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver),
}
_SCHEMES = {
    "symmetric": (torch.per_tensor_symmetric, torch.per_channel_symmetric),
    "affine": (torch.per_tensor_affine, torch.per_channel_affine),
}
# Core ML has no integers for biases.
_BIAS = QuantizationSpec(torch.float32, PlaceholderObserver.with_args(dtype=torch.float32))
_STORED = {torch.qint8: torch.int8, torch.quint8: torch.uint8}


class CoreMLQuantizer(CpuQuantizer):
    """Annotates a captured graph for `prepare_pt2e` and `prepare_qat_pt2e`.

    It annotates what `CpuQuantizer` does. A configuration whose activations are float32 quantises
    the weights of linear layers alone; one whose weights are float32, or None, quantises nothing.

    Args:
        config: a `LinearQuantizerConfig` of coremltools: for modules by name, for modules and
            operators by type, and for the whole.

    Raises:
        ValueError: a configuration asks for an observer or algorithm that is not here.
    """

    def __init__(self, config: Any) -> None:
        super().__init__(_configuration(config.global_config))
        for name, one in config.module_name_configs.items():
            self.set_module_name(name, _configuration(one))
        for kind, one in config.module_type_configs.items():
            if isinstance(kind, type):
                self.set_module_type(kind, _configuration(one))
            else:
                self.set_operator_type(_operator(kind), _configuration(one))


def _operator(kind: Any) -> Any:
    """The operator of a function such as `torch.add`, or of its name."""
    name = kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))
    packet = getattr(torch.ops.aten, name, None)
    if packet is None:
        raise ValueError(f"module_type_configs has {kind!r}, which is no class and no operator")
    return packet


def _configuration(options: Any) -> QuantizationConfig | None:
    """One `ModuleLinearQuantizerConfig` in torchao's terms; None if it leaves weights as floats."""
    if options is None or options.weight_dtype == torch.float32:
        return None
    if options.algorithm != "vanilla":
        raise ValueError(
            f"algorithm={options.algorithm!r}: the scales of captured graphs are observed, not "
            f"learned; give 'vanilla'"
        )
    activation = None
    if options.activation_dtype != torch.float32:
        activation = _specification(options, "activation", is_per_channel=False)
    weight = _specification(options, "weight", is_per_channel=options.weight_per_channel)
    return QuantizationConfig(activation, activation, weight, _BIAS)


def _specification(options: Any, kind: str, *, is_per_channel: bool) -> QuantizationSpec:
    observer, dtype = getattr(options, f"{kind}_observer"), getattr(options, f"{kind}_dtype")
    if observer.value not in _OBSERVERS:
        raise ValueError(
            f"{kind}_observer={observer.value!r}: allowed are {', '.join(sorted(_OBSERVERS))}"
        )
    scheme = _SCHEMES[options.quantization_scheme.value][is_per_channel]
    limits: dict[str, int] = {}
    if kind == "weight" and options.weight_n_bits == 4:
        limits = {"quant_min": -8, "quant_max": 7}
        if dtype == torch.quint8:
            limits = {"quant_min": 0, "quant_max": 15}
    kept = {"dtype": _STORED.get(dtype, dtype), "qscheme": scheme, **limits}
    made = FakeQuantize.with_args(observer=_OBSERVERS[observer.value][is_per_channel], **kept)
    axis = 0 if is_per_channel else None
    return QuantizationSpec(observer_or_fake_quant_ctr=made, ch_axis=axis, **kept)
