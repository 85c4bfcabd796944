"""Corrects scales that calibration left too small, before a model is converted, with a warning.

A value that was always zero has no range, so its scale is the observer's floor, and integers of any
other value would saturate near zero. A channel of zero weights is harmless itself, but its bias has
the product of two scales as its scale, and would not fit int32.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e import DerivedObserverOrFakeQuantize, FakeQuantizeBase
from torchao.quantization.pt2e.utils import create_getattr_from_value

from rushlight.errors import Code, ExportError
from rushlight.quantization.calibrate import observers_of
from rushlight.quantization.layers import attribute_of, layer_of
from rushlight.quantization.transform import PRODUCTS

_LARGEST_BIAS = 2.0**30  # half of int32's range, so that bias and products can be added
_LEAST_PRODUCT = 2.0**-120  # of two scales: far above the least normal float32


def mend_scales(prepared: GraphModule) -> None:
    """Raise the scales of a calibrated model that are at their observer's floor.

    Args:
        prepared: the model; its observers get other floors.

    Raises:
        ExportError: names the layer of a scale that is zero, infinite or NaN.
    """
    observers: list[tuple[Any, Any]] = [
        (node.args[0], module) for node, module in observers_of(prepared)
    ]
    biases = [(s, m) for s, m in observers if isinstance(m, DerivedObserverOrFakeQuantize)]
    weights = {id(module.obs_or_fqs[1]) for _, module in biases}
    for source, module in observers:
        observer = _observer(module)
        if not hasattr(observer, "eps") or not _has_seen(observer):
            continue
        _refuse_useless(source, observer)
        if source.op == "get_attr" or id(module) in weights or observer.eps.numel() > 1:
            _mend_weight(source, observer)
        else:
            _mend_activation(source, observer)
    for node in prepared.graph.nodes:
        if node.target in PRODUCTS:
            _fit_product(prepared, node)
    for source, module in biases:
        if source.op == "get_attr":
            _fit_bias(attribute_of(prepared, str(source.target)), module)


def _observer(module: Any) -> Any:
    """The observer inside a fake quantisation, or the observer itself."""
    return module.activation_post_process if isinstance(module, FakeQuantizeBase) else module


def _has_seen(observer: Any) -> bool:
    low = getattr(observer, "min_val", None)
    return low is not None and low.numel() > 0 and bool(torch.isfinite(low).all())


def _refuse_useless(source: Node, observer: Any) -> None:
    scale, _ = observer.calculate_qparams()
    if not bool((torch.isfinite(scale) & (scale > 0)).all()):
        raise ExportError(
            f"{layer_of(source)} has a scale that is zero, infinite or NaN: calibrate with other "
            f"data, or leave its module out with set_module_name(name, None)",
            code=Code.INVALID_ARGUMENT,
        )


def _mend_activation(source: Node, observer: Any) -> None:
    scale, _ = observer.calculate_qparams()
    if bool((scale > observer.eps).all()):
        return
    observer.eps.fill_(1.0)
    warnings.warn(
        f"{layer_of(source)} was zero for all calibration data: it gets the scale 1, which is "
        f"right only if it stays zero; calibrate with inputs for which it does not, or leave its "
        f"module out with set_module_name(name, None)",
        UserWarning,
        stacklevel=2,
    )


def _mend_weight(source: Node, observer: Any) -> None:
    scale, _ = observer.calculate_qparams()
    floored = int((scale <= observer.eps).sum())
    if floored:
        many = scale.numel() > 1
        what = f"{floored} of {scale.numel()} output channels are" if many else "all of it is"
        warnings.warn(
            f"{layer_of(source)}: {what} zero, or too small for a scale, and the bias alone is "
            f"left of it; prune what the model does not need",
            UserWarning,
            stacklevel=2,
        )


def _fit_product(prepared: GraphModule, node: Node) -> None:
    """Raise the floor of a weight's scales so that their products with the input's are normal."""
    quantised = [arg for arg in node.args[:2] if isinstance(arg, Node) and arg.op == "call_module"]
    observers = [_observer(prepared.get_submodule(str(arg.target))) for arg in quantised]
    if len(observers) < 2 or not all(hasattr(one, "eps") for one in observers):
        return
    x, weight = observers
    needed = _LEAST_PRODUCT / x.calculate_qparams()[0].double()
    weight.eps = torch.maximum(weight.eps.double(), needed).to(weight.eps.dtype)


def _fit_bias(bias: torch.Tensor, module: Any) -> None:
    """Raise the floor of a weight's scales so that the bias fits int32 at their product."""
    x, weight = (_observer(one) for one in module.obs_or_fqs)
    if not hasattr(weight, "eps"):
        return
    scale = x.calculate_qparams()[0]
    needed = bias.detach().abs().double() / (scale.double() * _LARGEST_BIAS)
    have = weight.calculate_qparams()[0].double()
    needed = needed if have.numel() > 1 else needed.max().reshape(1)
    if bool((needed > have).any()):
        weight.eps = torch.maximum(weight.eps.double(), needed).to(weight.eps.dtype)


def quantise_biases(model: GraphModule) -> None:
    """Quantise the biases that a folded batch norm left as real numbers; `model` is changed."""
    ops = torch.ops.quantized_decomposed
    for node in list(model.graph.nodes):
        bias = node.args[2] if node.target in PRODUCTS and len(node.args) > 2 else None
        if not isinstance(bias, Node) or bias.op != "get_attr":
            continue
        x, weight = node.args[0], node.args[1]
        if getattr(x, "target", None) is not ops.dequantize_per_tensor.default:
            continue
        if weight.target is ops.dequantize_per_channel.default:
            scales = attribute_of(model, str(weight.args[1].target))
        elif weight.target is ops.dequantize_per_tensor.default:
            scales = torch.full(node.meta["val"].shape[1:2], weight.args[1])
        else:
            continue
        scale = scales * torch.tensor(x.args[1], dtype=torch.float32)
        value = attribute_of(model, str(bias.target)).detach()
        integers = (value.double() / scale).round().clamp(-(2**31) + 1, 2**31 - 1).to(torch.int32)
        with model.graph.inserting_before(node):
            constants = [
                create_getattr_from_value(model, model.graph, f"{name}_", tensor)
                for name, tensor in (
                    ("_bias", integers),
                    ("_scale", scale),
                    ("_zero_point", torch.zeros_like(scale, dtype=torch.int64)),
                )
            ]
            limits = (0, -(2**31) + 1, 2**31 - 1, torch.int32)
            real = model.graph.call_function(
                ops.dequantize_per_channel.default, (*constants, *limits)
            )
        node.update_arg(2, real)
    model.recompile()


def check_biases(model: GraphModule) -> None:
    """Check that no bias of a converted graph was clamped to the ends of int32.

    Raises:
        ExportError: names the layer.
    """
    for node in model.graph.nodes:
        bias: Any = node.args[2] if node.target in PRODUCTS and len(node.args) > 2 else None
        source = bias.args[0] if isinstance(bias, Node) and bias.args else None
        if not isinstance(source, Node) or source.op != "get_attr":
            continue
        integers = attribute_of(model, str(source.target))
        if integers.dtype == torch.int32 and bool((integers.abs() == 2**31 - 1).any()):
            raise ExportError(
                f"a bias of {layer_of(node)} does not fit int32 at the scale of its products: "
                f"calibrate with more data, or leave the module out with "
                f"set_module_name(name, None)",
                code=Code.INVALID_ARGUMENT,
            )
