"""Writes torchao's annotations: which inputs and results of each operator are quantised.

A rule annotates one call. A product (convolution, linear) gets a quantised input, and a batch norm
and a clamp after it are part of its annotation, so that nothing is quantised between them. Other
operators are annotated only if their inputs are quantised anyway: between two float operators they
would only lose accuracy.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import torch
from torch.fx import Node
from torchao.quantization.pt2e.quantizer import (
    DerivedQuantizationSpec,
    FixedQParamsQuantizationSpec,
    QuantizationAnnotation,
    QuantizationConfig,
    QuantizationSpec,
    QuantizationSpecBase,
    SharedQuantizationSpec,
)
from torchao.quantization.pt2e.quantizer.quantizer import Q_ANNOTATION_KEY

from rushlight.capture.recurrent import LAYERS, recurrence_of
from rushlight.quantization.config import (
    channel_weight,
    group_size_of,
    is_per_token,
    row_activation,
)
from rushlight.quantization.layers import layer_of

aten = torch.ops.aten

CONVOLUTIONS: dict[Any, int] = {  # to the weight's axis of output channels
    aten.conv1d.default: 0,
    aten.conv2d.default: 0,
    aten.conv1d.padding: 0,
    aten.conv2d.padding: 0,
    aten.conv_transpose1d.default: 1,
    aten.conv_transpose2d.input: 1,
}
LINEAR = aten.linear.default
BATCH_NORMS = frozenset(
    {aten.batch_norm.default, aten._native_batch_norm_legit_no_training.default}
)
CLAMPS = frozenset(
    {
        *(aten.relu.default, aten.relu6.default, aten.hardtanh.default, aten.clamp.default),
        *(aten.clamp_min.default, aten.clamp_max.default),
    }
)
ARITHMETIC = frozenset({aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor})
AVERAGES = frozenset(
    {
        *(aten.avg_pool1d.default, aten.avg_pool2d.default, aten.mean.dim),
        *(aten.adaptive_avg_pool1d.default, aten.adaptive_avg_pool2d.default),
    }
)
# Operators that only move their inputs' values (or add zeros): the scale stays the same.
MOVES = frozenset(
    {
        *(aten.max_pool1d.default, aten.max_pool2d.default, aten.adaptive_max_pool2d.default),
        *(aten.view.default, aten.reshape.default, aten.flatten.using_ints, aten.unflatten.int),
        *(aten.permute.default, aten.transpose.int, aten.t.default, aten.movedim.int),
        *(aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.unsqueeze.default),
        *(aten.slice.Tensor, aten.select.int, aten.narrow.default, aten.expand.default),
        *(aten.contiguous.default, aten.clone.default, aten.dropout.default),
        *(aten.pixel_shuffle.default, aten.channel_shuffle.default, aten.flip.default),
        *(aten.upsample_nearest2d.vec, aten.upsample_nearest2d.default, aten.chunk.default),
        *(aten.split.Tensor, aten.split_with_sizes.default, aten.alias.default),
    }
)
PADS = frozenset({aten.pad.default, aten.constant_pad_nd.default})
JOINS = frozenset({aten.cat.default, aten.concat.default, aten.stack.default})
# Functions of one value, which an engine computes by a table; (scale, zero point) if it is fixed.
TABLES: dict[Any, tuple[float, int] | None] = {
    aten.sigmoid.default: (1.0 / 256, -128),
    aten.tanh.default: (1.0 / 128, 0),
    **dict.fromkeys(
        (
            *(aten.hardswish.default, aten.hardsigmoid.default, aten.silu.default),
            *(aten.gelu.default, aten.elu.default, aten.leaky_relu.default, aten.mish.default),
            aten.softplus.default,
        )
    ),
}
SIZES = frozenset({aten.sym_size.int, aten.sym_numel.default})
PARTED = "parted"  # the key in the meta of an alias that replaces a value in a join; see joins.py

Spec: TypeAlias = "QuantizationSpec | FixedQParamsQuantizationSpec"


class Annotator:
    """Annotates the calls of one graph, in order.

    Attributes:
        quantised: the specification of each quantised value.
    """

    def __init__(self) -> None:
        self.quantised: dict[Node, Spec] = {}

    def annotate(self, node: Node, config: QuantizationConfig) -> bool:
        """Annotate one call and what is fused into it; False if it stays as it is."""
        if is_annotated(node):
            self._learn(node)
            return False
        if PARTED in node.meta:
            return False  # it is annotated with its join
        if node.target in CONVOLUTIONS or node.target is LINEAR:
            return self._product(node, config)
        if node.target in LAYERS:
            return self._recurrent(node, config)
        rule = self._rule(node.target)
        spec = config.input_activation
        if rule is None or spec is None or spec.is_dynamic or not _is_float(node):
            return False
        return rule(node, config)

    def _learn(self, node: Node) -> None:
        """Record the specification that another quantizer gave a node's result."""
        spec = node.meta[Q_ANNOTATION_KEY].output_qspec
        if isinstance(spec, QuantizationSpec | FixedQParamsQuantizationSpec):
            self.quantised.setdefault(node, spec)

    def _rule(self, target: Any) -> Callable[[Node, QuantizationConfig], bool] | None:
        if target in ARITHMETIC:
            return self._arithmetic
        if target in AVERAGES:
            return self._average
        if target in MOVES or target in CLAMPS or target in PADS or target is operator.getitem:
            return self._move
        if target in JOINS:
            return self._join
        return self._table if target in TABLES else None

    def _product(self, node: Node, config: QuantizationConfig) -> bool:
        """A convolution or linear with constant weights, and the norm and clamp after it."""
        x, weight = _argument(node, 0), _argument(node, 1)
        bias = _argument(node, 2)
        if not (isinstance(x, Node) and isinstance(weight, Node) and weight.op == "get_attr"):
            return False
        if not _is_float(node) or not _is_float(weight):
            return False
        if CONVOLUTIONS.get(node.target) and _argument(node, 6) not in (None, 1):
            return False  # channels of a transposed convolution in groups lie along two axes
        is_dynamic = config.input_activation is not None and config.input_activation.is_dynamic
        if node.target is not LINEAR and (is_dynamic or config.input_activation is None):
            return False
        weight_spec = _along(_weight_of(node, weight, config), CONVOLUTIONS.get(node.target, 0))
        inputs: dict[Node, QuantizationSpecBase | None] = {}
        if config.input_activation is not None:
            inputs[x] = self._spec_of(x, config)
        inputs[weight] = weight_spec
        if isinstance(bias, Node) and bias.op == "get_attr" and _has_integer_bias(config):
            assert weight_spec is not None
            inputs[bias] = _bias_of(x, weight, node, weight_spec)
        last = fused_with(node)
        output = config.output_activation
        self._write(node, inputs, output if last is node else None)
        if last is not node:
            between = node
            while between is not last:
                between = next(iter(between.users))
                self._write(between, {}, output if between is last else None)
        for value in (weight, bias):
            if isinstance(value, Node):
                mark(value)
        if config.input_activation is not None and not config.input_activation.is_dynamic:
            self.quantised.setdefault(x, config.input_activation)
        if output is not None:
            self.quantised[last] = output
        return True

    def _recurrent(self, node: Node, config: QuantizationConfig) -> bool:
        """Recurrent layers with constant weights: rows of the sequence, as those of the states
        inside, get their scales at run time, whatever activations around them have."""
        layer = recurrence_of(node)
        assert layer is not None
        activation, weight = config.input_activation, config.weight
        parameters = [*layer.matrices, *layer.biases]
        if activation is None or weight is None or activation.dtype != torch.int8 or config.is_qat:
            return False
        if not all(p.op == "get_attr" for p in parameters) or not _is_float(node):
            return False
        if not isinstance(layer.x, Node):
            return False
        is_integer = self._is_integer(layer.x, config)
        inputs: dict[Node, QuantizationSpecBase | None] = {
            layer.x: self.quantised[layer.x] if is_integer else row_activation()
        }
        spec = channel_weight() if group_size_of(weight) else weight
        inputs.update(dict.fromkeys(layer.matrices, spec))
        self._write(node, inputs, None)
        for value in parameters:
            mark(value)
        return True

    def _arithmetic(self, node: Node, config: QuantizationConfig) -> bool:
        inputs = node.all_input_nodes
        if not self._all_quantised(inputs, config) or any(
            not isinstance(a, Node) for a in node.args[:2]
        ):
            return False
        last = fused_with(node)
        output = config.output_activation
        specs = {x: self._spec_of(x, config) for x in inputs}
        self._write(node, specs, output if last is node else None)
        if last is not node:
            self._write(last, {}, output)
        self._remember(last, output)
        return True

    def _average(self, node: Node, config: QuantizationConfig) -> bool:
        inputs = node.all_input_nodes[:1]
        if not self._all_quantised(inputs, config):
            return False
        specs = {inputs[0]: self._spec_of(inputs[0], config)}
        self._write(node, specs, config.output_activation)
        self._remember(node, config.output_activation)
        return True

    def _move(self, node: Node, config: QuantizationConfig) -> bool:
        x = node.args[0]
        if not isinstance(x, Node):
            return False
        if node.target is operator.getitem:
            return self._part(node, x, config)
        is_pad = node.target in PADS
        is_input = is_pad and x.op == "placeholder" and _is_float(x)
        if (is_pad and not _pads_zeros(node)) or not (is_input or self._is_integer(x, config)):
            return False
        spec = self._spec_of(x, config)
        output = SharedQuantizationSpec((x, node))
        is_tensor = isinstance(node.meta.get("val"), torch.Tensor)
        self._write(node, {x: spec}, output if is_tensor else None)
        self._remember(node, spec)
        return True

    def _part(self, node: Node, source: Node, config: QuantizationConfig) -> bool:
        """One of several results of an operator that moves values."""
        if source not in self.quantised or source.target not in MOVES:
            return False
        x = source.args[0]
        assert isinstance(x, Node)
        self._write(node, {}, SharedQuantizationSpec((x, source)))
        self._remember(node, self.quantised[source])
        return True

    def _join(self, node: Node, config: QuantizationConfig) -> bool:
        inputs = node.all_input_nodes
        sources = [x.all_input_nodes[0] if PARTED in x.meta else x for x in inputs]
        if not inputs or not self._all_quantised(sources, config):
            return False
        for x, source in zip(inputs, sources, strict=True):
            if x is not source:
                self._write(x, {source: self._spec_of(source, config)}, config.output_activation)
                self._remember(x, config.output_activation)
        first = inputs[0]
        shared = SharedQuantizationSpec((first, node))
        specs: dict[Node, QuantizationSpecBase | None] = dict.fromkeys(inputs, shared)
        spec = specs[first] = config.input_activation
        self._write(node, specs, shared)
        self._remember(node, spec)
        return True

    def _table(self, node: Node, config: QuantizationConfig) -> bool:
        x = node.args[0]
        if not isinstance(x, Node) or not self._is_integer(x, config):
            return False
        spec = config.output_activation
        assert spec is not None
        fixed = TABLES[node.target]
        output: Spec = spec
        if fixed is not None and spec.dtype == torch.int8:
            output = FixedQParamsQuantizationSpec(
                torch.int8, *fixed, spec.quant_min, spec.quant_max, spec.qscheme
            )
        self._write(node, {x: self.quantised[x]}, output)
        self._remember(node, output)
        return True

    def _all_quantised(self, nodes: list[Node], config: QuantizationConfig) -> bool:
        """Whether all nodes are quantised, or are inputs of the model or constants, but not only
        constants."""
        if all(n.op == "get_attr" for n in nodes):
            return False
        return all(
            self._is_integer(n, config) or (n.op in ("placeholder", "get_attr") and _is_float(n))
            for n in nodes
        )

    def _is_integer(self, node: Node, config: QuantizationConfig) -> bool:
        have, wanted = self.quantised.get(node), config.input_activation
        if have is None or wanted is None or wanted.is_dynamic:
            return False
        return bool(have.dtype == wanted.dtype)

    def _spec_of(self, node: Node, config: QuantizationConfig) -> Spec | None:
        """The specification that `node` has already, else the one in the configuration."""
        if self._is_integer(node, config):
            return self.quantised[node]
        spec = config.input_activation
        if isinstance(spec, QuantizationSpec) and is_per_token(spec):
            return replace(spec, is_dynamic=False)  # torchao would look for nodes of its own
        return spec

    def _remember(self, node: Node, spec: Spec | None) -> None:
        if spec is not None:
            self.quantised[node] = spec

    def _write(
        self,
        node: Node,
        inputs: dict[Node, QuantizationSpecBase | None],
        output: QuantizationSpecBase | None,
    ) -> None:
        node.meta[Q_ANNOTATION_KEY] = QuantizationAnnotation(inputs, output, _annotated=True)


def is_annotated(node: Node) -> bool:
    """Whether a quantizer has decided about `node`."""
    annotation = node.meta.get(Q_ANNOTATION_KEY)
    return annotation is not None and annotation._annotated


def mark(node: Node) -> None:
    """Mark `node` as annotated, so that no rule annotates it again."""
    node.meta.setdefault(Q_ANNOTATION_KEY, QuantizationAnnotation())._annotated = True


def fused_with(node: Node) -> Node:
    """The last call that one kernel computes with `node`: itself, or a norm or clamp after it."""
    last = node
    is_product = node.target in CONVOLUTIONS or node.target is LINEAR
    follower = _only_user(last)
    if is_product and follower is not None and follower.target in BATCH_NORMS:
        last = follower
        follower = _only_user(last)
    is_clamp = follower is not None and follower.target in CLAMPS
    return follower if is_clamp and follower is not None and not is_annotated(follower) else last


def _only_user(node: Node) -> Node | None:
    users = [user for user in node.users if user.target not in SIZES]
    return users[0] if len(users) == 1 else None


def _argument(node: Node, at: int) -> Any:
    return node.args[at] if len(node.args) > at else None


def _is_float(node: Node) -> bool:
    value = node.meta.get("val")
    if isinstance(value, list | tuple):
        return all(isinstance(v, torch.Tensor) and v.dtype == torch.float32 for v in value)
    return isinstance(value, torch.Tensor) and value.dtype == torch.float32


def _along(spec: QuantizationSpec | None, axis: int) -> QuantizationSpec | None:
    """The specification of a weight with its output channels along `axis`."""
    if spec is None or spec.ch_axis in (None, axis):
        return spec
    return replace(spec, ch_axis=axis)


def _has_integer_bias(config: QuantizationConfig) -> bool:
    """Whether biases become integers: with static scales, unless the configuration has floats."""
    x, weight = config.input_activation, config.weight
    if x is None or x.is_dynamic or weight is None or weight.dtype != torch.int8:
        return False
    return config.bias is None or not config.bias.dtype.is_floating_point


def _weight_of(node: Node, weight: Node, config: QuantizationConfig) -> QuantizationSpec | None:
    """The specification of a weight, with groups only if they divide its rows."""
    size = None if config.weight is None else group_size_of(config.weight)
    depth = weight.meta["val"].shape[-1]
    if size is None or (size > 1 and depth % size == 0):
        return config.weight
    divisors = [d for d in (128, 64, 32, 16, 8) if depth % d == 0]
    other = f"dynamic_config(weight_bits=4, group_size={divisors[0]})" if divisors else "None"
    warnings.warn(
        f"{layer_of(node)} has {depth} inputs, which groups of {size} do not divide: its weight "
        f"gets 8 bits with a scale for each output channel; say otherwise with "
        f"CpuQuantizer.set_module_name(name, {other})",
        UserWarning,
        stacklevel=2,
    )
    return channel_weight()


def _bias_of(x: Node, weight: Node, node: Node, spec: QuantizationSpec) -> DerivedQuantizationSpec:
    """int32 with the product of the scales of input and weight, as the accumulators have."""
    is_per_channel = spec.qscheme == torch.per_channel_symmetric
    return DerivedQuantizationSpec(
        derived_from=[(x, node), (weight, node)],
        derive_qparams_fn=_bias_parameters,
        dtype=torch.int32,
        quant_min=-(2**31) + 1,
        quant_max=2**31 - 1,
        qscheme=spec.qscheme,
        ch_axis=0 if is_per_channel else None,
    )


def _bias_parameters(observers: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
    scales = [observer.calculate_qparams()[0] for observer in observers]
    scale = scales[0] * scales[1]
    return scale, torch.zeros_like(scale, dtype=torch.int64)


def _pads_zeros(node: Node) -> bool:
    mode = _argument(node, 2) if node.target is aten.pad.default else "constant"
    value = _argument(node, 3 if node.target is aten.pad.default else 2)
    return mode in (None, "constant") and value in (None, 0, 0.0)
