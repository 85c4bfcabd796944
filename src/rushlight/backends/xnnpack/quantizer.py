"""ExecuTorch's quantizer of XNNPACK, as torchao has it: dynamic scales belong to whole tensors.

`CpuQuantizer` annotates more operators, and gives each row of activations its own scale.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.quantizer import QuantizationConfig
from torchao.testing.pt2e import _xnnpack_quantizer
from torchao.testing.pt2e._xnnpack_quantizer_utils import (
    get_new_attr_name_with_prefix,
    propagate_annotation,
)

from rushlight.backends.xnnpack.annotators import (
    ADAPTIVE_AVG_POOL2D_TARGETS,
    ADD_TARGETS,
    CAT_TARGETS,
    CONV_TARGETS,
    CONV_TRANSPOSE_TARGETS,
    LINEAR_TARGETS,
    MUL_TARGETS,
    OP_TO_ANNOTATOR,
)
from rushlight.errors import Code, ExportError
from rushlight.quantization.quantizer import chosen_config, type_name

__all__ = [
    "QuantPattern",
    "QuantizationConfig",
    "XNNPACKQuantizer",
    "get_symmetric_quantization_config",
    "propagate_annotation",
]

aten = torch.ops.aten
_WITH_SCALARS = (aten.add.Tensor, aten.mul.Tensor)


@dataclass
class QuantPattern:
    """Calls that one annotator annotates.

    Attributes:
        name: of the annotator, in `OP_TO_ANNOTATOR`.
        is_dynamic: whether it is for configurations with dynamic scales, too.
        is_qat: whether it is for configurations of training alone.
        op_overloads: the operators for which a user's configuration is asked; the other operators
            of the pattern follow them. Empty if there is none of these.
    """

    name: str
    is_dynamic: bool
    is_qat: bool
    op_overloads: frozenset[Any] | set[Any]


@functools.lru_cache
def get_symmetric_quantization_config(
    is_per_channel: bool = False,
    is_qat: bool = False,
    is_dynamic: bool = False,
    act_qmin: int = -128,
    act_qmax: int = 127,
    weight_qmin: int = -127,
    weight_qmax: int = 127,
) -> QuantizationConfig:
    """int8 with symmetric weights, by torchao's observers.

    Args:
        is_per_channel: a scale for each output channel of a weight, or one for all.
        is_qat: fake-quantise for training, instead of observers.
        is_dynamic: scales of whole activations that are found at run time.
        act_qmin, act_qmax: the range of activations.
        weight_qmin, weight_qmax: the range of weights.
    """
    made = _xnnpack_quantizer.get_symmetric_quantization_config(
        is_per_channel, is_qat, is_dynamic, act_qmin, act_qmax, weight_qmin, weight_qmax
    )
    return QuantizationConfig(**vars(made))  # a class of torchao's tests, with the same fields


class XNNPACKQuantizer(_xnnpack_quantizer.XNNPACKQuantizer):  # type: ignore[misc]  # no types
    """Annotates linear layers, convolutions, additions, multiplications, cat and poolings.

    A configuration of a module's name wins over one of its class, that over one of an operator,
    and that over the global one.
    """

    SUPPORTED_PATTERNS: ClassVar[list[QuantPattern]] = [
        QuantPattern("conv_bn_relu", False, True, CONV_TARGETS),
        QuantPattern("conv_bn", False, True, CONV_TARGETS),
        QuantPattern("conv_transpose_bn_relu", False, True, CONV_TRANSPOSE_TARGETS),
        QuantPattern("conv_transpose_bn", False, True, CONV_TRANSPOSE_TARGETS),
        QuantPattern("linear_relu", False, False, LINEAR_TARGETS),
        QuantPattern("linear", True, False, LINEAR_TARGETS),
        QuantPattern("adaptive_avg_pool2d", False, False, ADAPTIVE_AVG_POOL2D_TARGETS),
        QuantPattern("gru_io_only", False, False, set()),
        QuantPattern("add_relu", False, False, ADD_TARGETS),
        QuantPattern("add", False, False, ADD_TARGETS),
        QuantPattern("mul_relu", False, False, MUL_TARGETS),
        QuantPattern("mul", False, False, MUL_TARGETS),
        QuantPattern("cat", False, False, CAT_TARGETS),
        QuantPattern("conv_relu", False, False, CONV_TARGETS),
        QuantPattern("conv", True, False, CONV_TARGETS),
        QuantPattern("conv_transpose_relu", False, False, CONV_TRANSPOSE_TARGETS),
        QuantPattern("conv_transpose", True, False, CONV_TRANSPOSE_TARGETS),
    ]
    """What is annotated, in this order; an annotation stays as it is."""

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
            self._annotate(model, config, chosen)
        propagate_annotation(model)
        return model

    def _annotate(
        self,
        model: GraphModule,
        config: QuantizationConfig,
        chosen: Mapping[Node, QuantizationConfig | None],
    ) -> None:
        """Annotate the calls whose configuration is `config`."""
        is_dynamic = config.input_activation is not None and config.input_activation.is_dynamic
        for pattern in self.SUPPORTED_PATTERNS:
            if (is_dynamic and not pattern.is_dynamic) or (pattern.is_qat and not config.is_qat):
                continue

            # An activation that a pattern fuses is quantised as what it follows.
            def wanted(node: Node, asked: Any = pattern.op_overloads) -> bool:
                if node.op != "call_function" or node not in chosen:
                    return node.op != "call_function"
                return bool(asked and node.target not in asked) or chosen[node] == config

            OP_TO_ANNOTATOR[pattern.name](model, config, wanted)


def _constant(model: GraphModule, user: Node, scalar: float) -> Node:
    """A scalar as a tensor of the module, read before its user."""
    name = get_new_attr_name_with_prefix("_tensor_constant_")(model)
    value = torch.tensor(float(scalar))
    model.register_buffer(name, value)
    with model.graph.inserting_before(user):
        made = model.graph.get_attr(name)
    made.meta["val"] = user.meta["val"].fake_mode.from_tensor(value, static_shapes=True)
    return made
