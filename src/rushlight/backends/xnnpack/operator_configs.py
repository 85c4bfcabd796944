"""Classes that each stand for the calls of one operator, for `XnnpackPartitioner(configs=[…])`.

What XNNPACK can compute is decided by its table of operators; a class only chooses among that. A
subclass may choose further: by `check_constraints` among the calls, by `supported_precision_types`
among the arithmetics.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node

from rushlight.backends.xnnpack.integers import is_quantizing
from rushlight.backends.xnnpack.operators import why_not_call
from rushlight.backends.xnnpack.precision import ConfigPrecisionType
from rushlight.errors import Code, ExportError
from rushlight.partition import PartitionerConfig
from rushlight.partition.extract import data_of
from rushlight.partition.operators import SIZES


class XNNPartitionerConfig(PartitionerConfig):
    """The calls of one operator.

    Args:
        fused_act: in place of the class's `fused_acts`.
        kwargs: options of ExecuTorch's own partitioner, which are ignored.

    Attributes:
        target_name: the operator's name, with its overload and without its namespace:
            "add.Tensor".
        fused_acts: operators whose calls are taken too where they alone read such a call.
    """

    target_name = ""
    fused_acts: Sequence[str] = ()
    _enabled: Sequence[ConfigPrecisionType] | None = None

    def __init__(self, fused_act: Sequence[str] | None = None, **kwargs: Any) -> None:
        if fused_act is not None:
            self.fused_acts = fused_act

    @property
    def enabled_precision_types(self) -> list[ConfigPrecisionType]:
        """The supported arithmetics that `set_enabled_precision_types` left."""
        supported = self.supported_precision_types()
        return [one for one in supported if self._enabled is None or one in self._enabled]

    def set_enabled_precision_types(
        self, precision_types: Sequence[ConfigPrecisionType] | None
    ) -> None:
        """Take only calls with these arithmetics, of the supported ones; None or none: all."""
        self._enabled = precision_types or None

    def supported_precision_types(self) -> list[ConfigPrecisionType]:
        """The arithmetics of the calls to take; all, unless a subclass says otherwise."""
        return list(ConfigPrecisionType)

    def check_common_constraints(self, node: Node, ep: ExportedProgram) -> bool:
        """Whether XNNPACK computes a call, and an arithmetic is enabled."""
        constants = data_of(ep).specs
        reason = why_not_call(node, lambda one: one in constants)
        return bool(self.enabled_precision_types) and reason is None

    def check_constraints(self, node: Node, ep: ExportedProgram) -> bool:
        """Whether to take a call of the operator; True, unless a subclass says otherwise."""
        return True

    def get_node_and_deps(self, node: Node, ep: ExportedProgram) -> list[Node]:
        """The call and the nodes that must go with it, for `ConfigerationBasedPartitioner`."""
        return [node]

    def get_partition(self, node: Node, ep: ExportedProgram) -> list[Node]:
        """What `get_node_and_deps` gives; the nodes' meta lists the class as
        "xnn_partitioner_config"."""
        nodes = self.get_node_and_deps(node, ep)
        for one in nodes:
            one.meta.setdefault("xnn_partitioner_config", []).append(type(self).__name__)
        return nodes

    def get_original_aten(self) -> OpOverload | None:
        """The operator, if torch would decompose it; else None."""
        if self.target_name not in _DECOMPOSED:
            return None
        name, _, overload = self.target_name.partition(".")
        operator: OpOverload = getattr(getattr(torch.ops.aten, name), overload)
        return operator


class GenericNodePartitionerConfig(XNNPartitionerConfig):
    """The base of the classes for operators without weights."""


class GEMMConfig(XNNPartitionerConfig):
    """The base of the classes for operators with weights."""

    fused_acts = ("relu.default", "hardtanh.default", "clamp.default")


class QDQAffineConfigs(XNNPartitionerConfig):
    """The base of the classes for torchao's operators that quantise blocks of values.

    Lowering to the Edge dialect makes operators of `quantized_decomposed` of these, and the
    products that they are for take them along: the classes choose no calls of their own.
    """

    def supported_precision_types(self) -> list[ConfigPrecisionType]:
        """They are for products whose inputs get their scales at run time."""
        return [ConfigPrecisionType.DYNAMIC_QUANT]


def name_of(target: Any) -> str:
    """The name of an operator as `target_name` has it."""
    schema = getattr(target, "_schema", None)
    if schema is None:
        return ""
    return f"{schema.name.partition('::')[2]}.{schema.overload_name or 'default'}"


# Those that torch decomposes and XNNPACK has whole.
_DECOMPOSED = frozenset(
    {
        *("elu.default", "hardswish.default", "linear.default", "max_pool2d.default"),
        *("prelu.default", "upsample_bilinear2d.vec"),
    }
)

# Names of operators in graphs for those that a class names as models do.
SPELLINGS = {
    "max_pool2d.default": ("max_pool2d_with_indices.default",),
    "prelu.default": ("gt.Scalar", "mul.Tensor", "where.self"),
    "upsample_bilinear2d.vec": ("upsample_bilinear2d.default",),
    "linear.default": ("addmm.default", "mm.default"),
}

_GENERIC = {
    "Abs": "abs.default",
    "Add": "add.Tensor",
    "AvgPooling": "avg_pool2d.default",
    "BMM": "bmm.default",
    "Cat": "cat.default",
    "Ceil": "ceil.default",
    "Clamp": "clamp.default",
    "Clone": "clone.default",
    "CloneDimOrder": "_clone_dim_order.default",
    "ConstantPad": "constant_pad_nd.default",
    "Cos": "cos.default",
    "DeQuantizedPerTensor": "dequantize_per_tensor.default",
    "Div": "div.Tensor",
    "Elu": "elu.default",
    "Exp": "exp.default",
    "Floor": "floor.default",
    "Gelu": "gelu.default",
    "Hardswish": "hardswish.default",
    "Hardtanh": "hardtanh.default",
    "LeakyReLU": "leaky_relu.default",
    "Log": "log.default",
    "MaxPool2d": "max_pool2d.default",
    "Maximum": "maximum.default",
    "MeanDim": "mean.dim",
    "Minimum": "minimum.default",
    "Mul": "mul.Tensor",
    "Neg": "neg.default",
    "Permute": "permute_copy.default",
    "Pow": "pow.Tensor_Scalar",
    "QuantizedPerTensor": "quantize_per_tensor.default",
    "ReLU": "relu.default",
    "ReciprocalSquareRoot": "rsqrt.default",
    "Sigmoid": "sigmoid.default",
    "Sin": "sin.default",
    "SliceCopy": "slice_copy.Tensor",
    "Softmax": "_softmax.default",
    "SquareRoot": "sqrt.default",
    "Sub": "sub.Tensor",
    "Tanh": "tanh.default",
    "ToDimOrderCopy": "_to_dim_order_copy.default",
    "UnsqueezeCopy": "unsqueeze_copy.default",
    "UpsampleBilinear2d": "upsample_bilinear2d.vec",
    "ViewCopy": "view_copy.default",
}
_WEIGHTED = {
    "Addmm": "addmm.default",
    "Convolution": "convolution.default",
    "Linear": "linear.default",
    "MM": "mm.default",
}
_AFFINE = {
    "ChooseQParamsAffine": "choose_qparams_affine.default",
    "DeQuantizeAffine": "dequantize_affine.default",
    "QuantizeAffine": "quantize_affine.default",
}
_OTHER = {
    "BatchNorm": "_native_batch_norm_legit_no_training.default",
    "MaxDim": "max.dim",
    "Prelu": "prelu.default",
}


def _classes(
    base: type[XNNPartitionerConfig], operators: dict[str, str]
) -> dict[str, type[XNNPartitionerConfig]]:
    return {
        f"{name}Config": type(
            f"{name}Config",
            (base,),
            {
                "__doc__": f"The calls of {target_name}.",
                "__module__": __name__,
                "target_name": target_name,
            },
        )
        for name, target_name in operators.items()
    }


CONFIGS: dict[str, type[XNNPartitionerConfig]] = {
    **_classes(GenericNodePartitionerConfig, _GENERIC),
    **_classes(GEMMConfig, _WEIGHTED),
    **_classes(QDQAffineConfigs, _AFFINE),
    **_classes(XNNPartitionerConfig, _OTHER),
}
ALL_PARTITIONER_CONFIGS: list[type[XNNPartitionerConfig]] = list(CONFIGS.values())


def __getattr__(name: str) -> type[XNNPartitionerConfig]:
    """A class by its name."""
    if name not in CONFIGS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return CONFIGS[name]


class Chosen:
    """The calls that classes choose.

    Args:
        configs: the classes.

    Raises:
        ExportError: one of them is none of these.
    """

    def __init__(self, configs: Sequence[type[XNNPartitionerConfig]]) -> None:
        for one in configs:
            if not isinstance(one, type) or not issubclass(one, XNNPartitionerConfig):
                raise ExportError(
                    f"XnnpackPartitioner(configs=…) takes classes such as LinearConfig, got "
                    f"{one!r}",
                    code=Code.INVALID_ARGUMENT,
                )
        self._by_name: dict[str, list[XNNPartitionerConfig]] = {}
        for one in configs:
            for name in (one.target_name, *SPELLINGS.get(one.target_name, ())):
                self._by_name.setdefault(name, []).append(one())

    def names(self, target: Any) -> bool:
        """Whether a class names an operator."""
        return name_of(target) in self._by_name

    def why_not(
        self, node: Node, precision: ConfigPrecisionType, program: ExportedProgram
    ) -> str | None:
        """The reason why no class chooses a call; None if one does.

        Calls that quantise are left to those that compute between them.

        Args:
            node: a call of the Edge dialect.
            precision: its arithmetic.
            program: the program of the call.
        """
        if node.target is operator.getitem:
            node = node.all_input_nodes[0]
        if node.target in SIZES or is_quantizing(node):
            return None
        if self._chooses(node, precision, program) or self._follows(node, precision, program):
            return None
        return f"configs leave out {name_of(node.target)}, or this call of it"

    def _chooses(
        self, node: Node, precision: ConfigPrecisionType, program: ExportedProgram
    ) -> bool:
        return any(
            precision in one.enabled_precision_types and one.check_constraints(node, program)
            for one in self._by_name.get(name_of(node.target), ())
        )

    def _follows(
        self, node: Node, precision: ConfigPrecisionType, program: ExportedProgram
    ) -> bool:
        """Whether a call is fused with the chosen one before it."""
        inputs = node.all_input_nodes
        if len(inputs) != 1 or len(inputs[0].users) != 1:
            return False
        before = inputs[0]
        name = name_of(node.target)
        is_fused = any(
            name in one.fused_acts for one in self._by_name.get(name_of(before.target), ())
        )
        return is_fused and self._chooses(before, precision, program)
