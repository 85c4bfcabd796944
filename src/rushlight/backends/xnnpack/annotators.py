"""The annotators of `XNNPACKQuantizer`, by the names of its patterns.

They are torchao's, but for convolutions: ours annotate one that is transposed, too, and leave out
what XNNPACK does not compute with integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.quantizer import (
    QuantizationConfig,
    QuantizationSpec,
    get_bias_qspec,
    get_input_act_qspec,
    get_output_act_qspec,
    get_weight_qspec,
)
from torchao.quantization.pt2e.quantizer.quantizer import Q_ANNOTATION_KEY
from torchao.testing.pt2e import _xnnpack_quantizer_utils as theirs

from rushlight.errors import Code, ExportError
from rushlight.ir.operators import arguments
from rushlight.quantization.annotate import is_annotated, mark

aten = torch.ops.aten

CONV_TRANSPOSE_TARGETS = frozenset((aten.conv_transpose1d.default, aten.conv_transpose2d.input))
CONV_TARGETS = frozenset(
    {
        *(aten.conv1d.default, aten.conv1d.padding),
        *(aten.conv2d.default, aten.conv2d.padding),
    }
)
LINEAR_TARGETS = frozenset((aten.linear.default,))
ADAPTIVE_AVG_POOL2D_TARGETS = frozenset((aten.adaptive_avg_pool2d.default,))
ADD_TARGETS = frozenset((aten.add.Tensor, aten.add_.Tensor))
MUL_TARGETS = frozenset((aten.mul.Tensor, aten.mul_.Tensor))
CAT_TARGETS = frozenset((aten.cat.default,))

_PER_CHANNEL = (torch.per_channel_symmetric, torch.per_channel_affine)
_RELU = frozenset((aten.relu.default, aten.relu_.default))

AnnotatorType: TypeAlias = Callable[
    [GraphModule, QuantizationConfig | None, Callable[[Node], bool] | None],
    list[list[Node]] | None,
]
"""A function from a graph, a configuration and a filter of calls to the groups of nodes that it
annotated."""

OP_TO_ANNOTATOR: dict[str, AnnotatorType] = dict(theirs.OP_TO_ANNOTATOR)
"""The annotators by the names of patterns."""


def register_annotator(op: str) -> Callable[[AnnotatorType], AnnotatorType]:
    """A decorator that makes a function the annotator of a pattern, in place of any before it.

    `XNNPACKQuantizer.SUPPORTED_PATTERNS` says which patterns are annotated, and in which order.

    Args:
        op: the name of the pattern.
    """

    def registered(annotator: AnnotatorType) -> AnnotatorType:
        OP_TO_ANNOTATOR[op] = annotator
        return annotator

    return registered


def change_quantization_config(original_qspec: QuantizationSpec, **changed: Any) -> Any:
    """A copy of a specification with other values.

    Args:
        original_qspec: the specification.
        changed: `dtype`, `quant_min`, `quant_max`, `qscheme`, `ch_axis`, `is_dynamic` or
            `observer_or_fake_quant_ctr`; None leaves one as it is.
    """
    return replace(
        original_qspec, **{name: value for name, value in changed.items() if value is not None}
    )


def is_relu_node(node: Node) -> bool:
    """Whether a node is a call of ReLU, in place or not."""
    return node.op == "call_function" and node.target in _RELU


def get_groups_from_conv(conv_node: Node) -> int:
    """The number of groups of a convolution of a captured model, transposed or not.

    Raises:
        ExportError: it is another node.
    """
    if conv_node.target not in CONV_TARGETS | CONV_TRANSPOSE_TARGETS:
        raise ExportError(
            f"{conv_node.name} ({conv_node.target}) is no convolution of a captured model: give a "
            f"call of conv1d, conv2d, conv_transpose1d or conv_transpose2d",
            code=Code.INVALID_ARGUMENT,
        )
    return int(arguments(conv_node)["groups"])


def _convolutions(targets: frozenset[Any], *, fuses: bool) -> AnnotatorType:
    """The annotator of convolutions, each with the ReLU that alone reads it, or without one."""

    def annotate(
        gm: GraphModule,
        quantization_config: QuantizationConfig | None,
        filter_fn: Callable[[Node], bool] | None = None,
    ) -> list[list[Node]]:
        groups: list[list[Node]] = []
        for node in gm.graph.nodes if quantization_config is not None else ():
            if node.target in targets and (filter_fn is None or filter_fn(node)):
                assert quantization_config is not None
                relu = _relu_after(node, quantization_config, filter_fn)
                if fuses == (relu is not None):
                    groups += _annotate(node, relu, quantization_config)
        return groups

    return annotate


for _name, _targets in (("conv", CONV_TARGETS), ("conv_transpose", CONV_TRANSPOSE_TARGETS)):
    register_annotator(_name)(_convolutions(_targets, fuses=False))
    register_annotator(f"{_name}_relu")(_convolutions(_targets, fuses=True))


def _is_dynamic(config: QuantizationConfig) -> bool:
    return config.input_activation is not None and config.input_activation.is_dynamic


def _relu_after(
    node: Node, config: QuantizationConfig, filter_fn: Callable[[Node], bool] | None
) -> Node | None:
    """The ReLU whose result is quantised in place of the call's; None if there is none."""
    users = [] if _is_dynamic(config) else list(node.users)
    if len(users) != 1 or not is_relu_node(users[0]):
        return None
    return users[0] if filter_fn is None or filter_fn(users[0]) else None


def _annotate(node: Node, relu: Node | None, config: QuantizationConfig) -> list[list[Node]]:
    """Annotate a convolution and the ReLU after it, unless XNNPACK computes it with floats."""
    weight = node.args[1]
    if is_annotated(node) or not isinstance(weight, Node):
        return []
    if not _is_taken(node, weight, _is_dynamic(config)):
        return []
    spec = get_weight_qspec(config)
    is_transposed = node.target in CONV_TRANSPOSE_TARGETS
    if is_transposed and spec is not None and spec.qscheme in _PER_CHANNEL:
        spec = replace(spec, ch_axis=1)  # where a transposed convolution has its output channels
    inputs: dict[Any, Any] = {node.args[0]: get_input_act_qspec(config), weight: spec}
    bias = node.args[2] if len(node.args) > 2 else None
    if isinstance(bias, Node):
        inputs[bias] = get_bias_qspec(config)
    last = node if relu is None else relu
    annotated = [one for one in dict.fromkeys((node, last, weight, bias)) if isinstance(one, Node)]
    for one in annotated:
        mark(one)
    node.meta[Q_ANNOTATION_KEY].input_qspec_map = inputs
    last.meta[Q_ANNOTATION_KEY].output_qspec = get_output_act_qspec(config)
    return [annotated]


def _is_taken(node: Node, weight: Node, is_dynamic: bool) -> bool:
    """Whether XNNPACK has the convolution for these scales: transposed ones without groups, and
    with dynamic scales those of images whose inputs have several channels."""
    shape: Any = getattr(weight.meta.get("val"), "shape", ())
    if node.target in CONV_TRANSPOSE_TARGETS:
        return get_groups_from_conv(node) == 1 and (not is_dynamic or len(shape) == 4)
    return not is_dynamic or (len(shape) == 4 and int(shape[1]) > 1)
