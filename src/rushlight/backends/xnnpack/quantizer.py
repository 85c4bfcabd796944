"""ExecuTorch's quantizer of XNNPACK, as torchao has it: dynamic scales belong to whole tensors.

`CpuQuantizer` annotates more operators, and gives each row of activations its own scale.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.quantizer import (
    get_bias_qspec,
    get_input_act_qspec,
    get_output_act_qspec,
    get_weight_qspec,
)
from torchao.quantization.pt2e.quantizer.quantizer import Q_ANNOTATION_KEY
from torchao.testing.pt2e import _xnnpack_quantizer
from torchao.testing.pt2e._xnnpack_quantizer import get_symmetric_quantization_config
from torchao.testing.pt2e._xnnpack_quantizer_utils import (
    OP_TO_ANNOTATOR,
    QuantizationConfig,
    get_new_attr_name_with_prefix,
    propagate_annotation,
)

from rushlight.errors import Code, ExportError
from rushlight.quantization.annotate import is_annotated, mark
from rushlight.quantization.quantizer import chosen_config, type_name

__all__ = ["QuantizationConfig", "XNNPACKQuantizer", "get_symmetric_quantization_config"]

aten = torch.ops.aten
_PER_CHANNEL = (torch.per_channel_symmetric, torch.per_channel_affine)
_RELU = frozenset((aten.relu.default, aten.relu_.default))
_TRANSPOSED = frozenset((aten.conv_transpose1d.default, aten.conv_transpose2d.input))
_CONVOLUTIONS = _TRANSPOSED | {
    *(aten.conv1d.default, aten.conv1d.padding),
    *(aten.conv2d.default, aten.conv2d.padding),
}
_LINEAR = frozenset((aten.linear.default,))
_ADD = frozenset((aten.add.Tensor, aten.add_.Tensor))
_MUL = frozenset((aten.mul.Tensor, aten.mul_.Tensor))
_WITH_SCALARS = (aten.add.Tensor, aten.mul.Tensor)
# torchao's annotators in order, each with the operators whose configuration is meant.
_Patterns = tuple[tuple[str, frozenset[Any] | None], ...]
_DYNAMIC: _Patterns = (("linear", _LINEAR),)
_TRAINED: _Patterns = tuple(
    (f"{name}{activation}", _CONVOLUTIONS)
    for name in ("conv_bn", "conv_transpose_bn")
    for activation in ("_relu", "")
)
_STATIC: _Patterns = (
    *(("linear_relu", _LINEAR), ("linear", _LINEAR)),
    ("adaptive_avg_pool2d", frozenset((aten.adaptive_avg_pool2d.default,))),
    ("gru_io_only", None),
    *(("add_relu", _ADD), ("add", _ADD)),
    *(("mul_relu", _MUL), ("mul", _MUL)),
    ("cat", frozenset((aten.cat.default,))),
)


class XNNPACKQuantizer(_xnnpack_quantizer.XNNPACKQuantizer):  # type: ignore[misc]  # no types
    """Annotates linear layers, convolutions, additions, multiplications, cat and poolings.

    A configuration of a module's name wins over one of its class, that over one of an operator,
    and that over the global one.
    """

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it tells users of torchao to come here
            super().__init__()
        self.filter_fn: Callable[[Node], bool] | None = None

    def set_module_name(
        self, module_name: str, quantization_config: QuantizationConfig | None
    ) -> XNNPACKQuantizer:
        """Quantise the calls in a module such as "blocks.0.fc".

        Raises:
            ExportError: the configuration is None.
        """
        if quantization_config is None:
            raise ExportError(
                f"set_module_name({module_name!r}, None): give a configuration; to leave a module "
                f"out, use set_filter_function",
                code=Code.INVALID_ARGUMENT,
            )
        super().set_module_name(module_name, quantization_config)
        return self

    def set_filter_function(self, filter_fn: Callable[[Node], bool] | None) -> XNNPACKQuantizer:
        """Quantise only calls for which `filter_fn` returns true."""
        self.filter_fn = filter_fn
        return self

    def transform_for_annotation(self, model: GraphModule) -> GraphModule:
        """Make tensors of the scalars that floats are added to or multiplied by, so that they are
        quantised, too. Those of integers stay: a result may be an index."""
        for node in model.graph.nodes:
            if node.target in _WITH_SCALARS and node.meta["val"].dtype.is_floating_point:
                node.args = tuple(
                    one if isinstance(one, Node) else _constant(model, node, one)
                    for one in node.args
                )
        model.recompile()
        return model

    def annotate(self, model: GraphModule) -> GraphModule:
        """Write the annotations of every call that a configuration is for."""
        types = {type_name(kind): config for kind, config in self.module_type_config.items()}
        names, operators = self.module_name_config, self.operator_type_config
        chosen = {
            node: chosen_config(node, names, types, operators, self.global_config)
            for node in model.graph.nodes
            if node.op == "call_function" and (self.filter_fn is None or self.filter_fn(node))
        }
        for config in dict.fromkeys(config for config in chosen.values() if config is not None):
            _annotate(model, config, chosen)
        propagate_annotation(model)
        return model


def _constant(model: GraphModule, user: Node, scalar: float) -> Node:
    """A scalar as a tensor of the module, read before its user."""
    name = get_new_attr_name_with_prefix("_tensor_constant_")(model)
    value = torch.tensor(float(scalar))
    model.register_buffer(name, value)
    with model.graph.inserting_before(user):
        made = model.graph.get_attr(name)
    made.meta["val"] = user.meta["val"].fake_mode.from_tensor(value, static_shapes=True)
    return made


def _annotate(
    model: GraphModule,
    config: QuantizationConfig,
    chosen: Mapping[Node, QuantizationConfig | None],
) -> None:
    """Annotate the calls whose configuration is `config`."""
    is_dynamic = config.input_activation is not None and config.input_activation.is_dynamic
    patterns = _DYNAMIC if is_dynamic else _TRAINED * bool(config.is_qat) + _STATIC
    for name, targets in patterns:
        # An activation that a pattern fuses is quantised as what it follows.
        def wanted(node: Node, targets: Any = targets) -> bool:
            if node.op != "call_function" or node not in chosen:
                return node.op != "call_function"
            return (targets is not None and node.target not in targets) or chosen[node] == config

        OP_TO_ANNOTATOR[name](model, config, wanted)
    for node in model.graph.nodes:
        if node.target in _CONVOLUTIONS and chosen.get(node) == config:
            _annotate_convolution(node, config, is_dynamic, chosen)


def _annotate_convolution(
    node: Node,
    config: QuantizationConfig,
    is_dynamic: bool,
    chosen: Mapping[Node, QuantizationConfig | None],
) -> None:
    """Annotate a convolution together with the ReLU that alone reads it, if it is one that XNNPACK
    computes with integers."""
    weight = node.args[1]
    if is_annotated(node) or not isinstance(weight, Node) or not _is_taken(node, is_dynamic):
        return
    spec = get_weight_qspec(config)
    if node.target in _TRANSPOSED and spec is not None and spec.qscheme in _PER_CHANNEL:
        spec = replace(spec, ch_axis=1)  # where a transposed convolution has its output channels
    inputs: dict[Any, Any] = {node.args[0]: get_input_act_qspec(config), weight: spec}
    bias = node.args[2] if len(node.args) > 2 else None
    if isinstance(bias, Node):
        inputs[bias] = get_bias_qspec(config)
    users = [] if is_dynamic else list(node.users)
    fuses = len(users) == 1 and users[0].target in _RELU and users[0] in chosen
    last = users[0] if fuses else node
    for one in (node, last, weight, bias):
        if isinstance(one, Node):
            mark(one)
    node.meta[Q_ANNOTATION_KEY].input_qspec_map = inputs
    last.meta[Q_ANNOTATION_KEY].output_qspec = get_output_act_qspec(config)


def _is_taken(node: Node, is_dynamic: bool) -> bool:
    """Whether XNNPACK has the convolution for these scales: transposed ones without groups, and
    with dynamic scales those of images whose inputs have several channels."""
    weight: Any = node.args[1]
    shape: Any = getattr(weight.meta.get("val"), "shape", ())
    if node.target in _TRANSPOSED:
        groups = node.args[6] if len(node.args) > 6 else node.kwargs.get("groups", 1)
        return bool(groups == 1 and (not is_dynamic or len(shape) == 4))
    return not is_dynamic or (len(shape) == 4 and int(shape[1]) > 1)
