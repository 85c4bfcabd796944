"""How an export quantises: by quantizers of the captured graph, or by torchao's `quantize_`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch.fx import GraphModule
from torch.nn import Module

if TYPE_CHECKING:
    from torchao.core.config import AOBaseConfig
    from torchao.quantization.pt2e.quantizer import Quantizer

GraphPass = Callable[[GraphModule], GraphModule]
"""A function from a graph module to a graph module, which may be the same, changed."""


@dataclass
class AOQuantizationConfig:
    """A configuration of torchao's `quantize_`, and the modules that it is for.

    Attributes:
        ao_base_config: what `quantize_` is to do.
        filter_fn: whether to change a module, given the module and its name; default: torchao's,
            which takes linear layers.
    """

    ao_base_config: AOBaseConfig
    filter_fn: Callable[[Module, str], bool] | None = None


@dataclass
class QuantizationRecipe:
    """How to quantise a model, after training or by training.

    Attributes:
        quantizers: torchao's pt2e quantizers, which annotate the captured graph one after the
            other.
        ao_quantization_configs: what is done to the modules before capture; one at most.
        is_qat: train with simulated integers (`train_fn`), instead of calibrating.
        dynamic_batch_size: let the first size of every input vary during calibration or training.
        calibration_inputs_fn: makes the inputs for calibration; default: the example inputs.
        train_fn: trains the prepared module that it is given.
        pre_prepare_passes, post_prepare_passes, pre_convert_passes, post_convert_passes: passes
            over the graph module before and after observers are inserted, and before and after
            it is converted to integers.
    """

    quantizers: list[Quantizer] | None = None
    ao_quantization_configs: list[AOQuantizationConfig] | None = None
    is_qat: bool = False
    dynamic_batch_size: bool = False
    calibration_inputs_fn: Callable[[], Iterable[tuple[Any, ...]]] | None = None
    train_fn: Callable[[GraphModule], None] | None = None
    pre_prepare_passes: list[GraphPass] | None = None
    post_prepare_passes: list[GraphPass] | None = None
    pre_convert_passes: list[GraphPass] | None = None
    post_convert_passes: list[GraphPass] | None = None

    def get_quantizers(self) -> list[Quantizer] | None:
        """The quantizers, or None."""
        return self.quantizers
