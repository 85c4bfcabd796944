"""The partitioner of Core ML: chooses the calls that Core ML takes."""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from rushlight.backends.coreml.preprocess import CoreMLBackend
from rushlight.backends.coreml.specs import Options, read_specs
from rushlight.backends.coreml.tools import coremltools as ct
from rushlight.backends.coreml.tools import is_torch_fx_node_supported
from rushlight.ir.quantized_values import affine_of
from rushlight.ir.spec import dim_order_of
from rushlight.partition import (
    CompileSpec,
    DelegationSpec,
    SupportedOperatorPartitioner,
    names_in,
)

aten = torch.ops.aten

_MAX_DIMENSIONS = 5
_DTYPES = frozenset(
    {torch.float32, torch.float16, torch.int32, torch.int64, torch.bool, torch.int8, torch.uint8}
)
_QUANTISING = "quantized_decomposed"
_STORED = frozenset({torch.int8, torch.uint8})  # quantised weights and activations
# coremltools has rules for these, but they fail or give other results than eager.
_WRONG = frozenset(
    {"diagonal", "diagonal_copy", "acosh", "asinh", "rand", "argsort", "repeat_interleave"}
)


def _why_not(node: Node, skipped: Collection[str], options: Options) -> str | None:
    """The reason why Core ML does not take a call; None if it does."""
    target = node.target
    if target is operator.getitem:
        return None
    if not isinstance(target, OpOverload):
        return "Core ML takes operators only, no control flow and no sizes"
    name = target.overloadpacket.__name__
    if not {str(target), str(target).removeprefix("aten."), name}.isdisjoint(skipped):
        return f"skip_ops_for_coreml_delegation names {target}"
    if name in _WRONG:
        return f"coremltools does not convert {target} to what eager computes"
    if name.endswith("_") or not _has_rule(target):
        return f"coremltools has no rule for {target}"
    if target in (aten.add.Tensor, aten.sub.Tensor) and node.kwargs.get("alpha", 1) != 1:
        return "its alpha is not 1, and coremltools ignores it"
    if target in (aten.argmax.default, aten.argmin.default) and _dimension(node) is None:
        return "Core ML has no reduction over all dimensions that gives an index"
    if target.namespace == _QUANTISING:
        return _why_not_quantising(node, options) or _why_not_values(node, options)
    return _why_not_values(node, options)


def _has_rule(target: OpOverload) -> bool:
    """Whether coremltools has a rule for an operator; it looks for one by the whole name, while a
    node of torch's would give it the name without its library."""
    asked: Any = SimpleNamespace(op="call_function", target=target.name())
    return bool(is_torch_fx_node_supported(asked))


def _why_not_quantising(node: Node, options: Options) -> str | None:
    """The reason against a call that quantises or dequantises; None if there is none."""
    if options.target is None or options.target < ct.target.iOS17:
        return (
            "Core ML quantises from iOS 17 on: generate_compile_specs("
            "minimum_deployment_target=coremltools.target.iOS17)"
        )
    affine = affine_of(node)
    if affine is not None and affine.dtype not in _STORED:
        return f"Core ML quantises to int8 and uint8, not {affine.dtype}".replace("torch.", "")
    return None


def _dimension(node: Node) -> Any:
    return node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")


def _why_not_values(node: Node, options: Options) -> str | None:
    results = node.meta.get("val")
    values = [n.meta.get("val") for n in node.all_input_nodes]
    values += results if isinstance(results, list | tuple) else [results]
    stores = getattr(node.target, "namespace", "") == _QUANTISING
    for value in values:
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            return "it takes a size that is computed at run time, which Core ML does not"
        if not isinstance(value, torch.Tensor):
            continue
        if value.dtype not in _DTYPES:
            return f"Core ML has no {value.dtype}".replace("torch.", "")
        if value.dtype in _STORED and not stores:
            return f"Core ML stores {value.dtype}, and does not compute with it".replace(
                "torch.", ""
            )
        if value.dtype == torch.float16 and not _takes_halves(options):
            return (
                "Core ML takes float16 from iOS 16 on: generate_compile_specs("
                "minimum_deployment_target=coremltools.target.iOS16)"
            )
        if dim_order_of(value) != tuple(range(value.dim())):
            return "it has a tensor that is not in row-major order, such as a channels-last one"
        if value.dim() > _MAX_DIMENSIONS:
            return f"it has a tensor of {value.dim()} dimensions; Core ML has {_MAX_DIMENSIONS}"
        if any(size == 0 for size in value.shape if isinstance(size, int)):
            return "it has a tensor without elements"
    return None


def _takes_halves(options: Options) -> bool:
    return options.target is not None and options.target >= ct.target.iOS16


class CoreMLPartitioner(SupportedOperatorPartitioner):
    """Takes all calls that coremltools converts, in as few partitions as possible.

    Buffers that the model writes stay outside and are passed at every call.

    Args:
        skip_ops_for_coreml_delegation: operators to leave out, or their names
            (`"aten.add.Tensor"`, `"add"`).
        compile_specs: options, made by `CoreMLBackend.generate_compile_specs`.

    Raises:
        ExportError: for an unknown compile spec, or a single string instead of a list.
    """

    def __init__(
        self,
        *,
        skip_ops_for_coreml_delegation: Collection[str] = (),
        compile_specs: Sequence[CompileSpec] = (),
    ) -> None:
        skipped = names_in("skip_ops_for_coreml_delegation", skip_ops_for_coreml_delegation)
        options = read_specs(compile_specs)
        super().__init__(
            DelegationSpec(CoreMLBackend.__name__, list(compile_specs)),
            partial(_why_not, skipped=skipped, options=options),
            own_state=False,
        )
