"""`CpuQuantizer`: annotates the operators that the `cpu` and `xnnpack` backends run on integers."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.quantizer import QuantizationConfig, Quantizer

from rushlight.errors import Code, ExportError
from rushlight.quantization.annotate import Annotator, is_annotated
from rushlight.quantization.joins import drop_parted, part_joins, parted
from rushlight.quantization.layers import layer_of
from rushlight.quantization.observers import GroupedWeightObserver, PerTokenObserver
from rushlight.quantization.transform import PRODUCTS, prepare_graph


class CpuQuantizer(Quantizer):  # type: ignore[misc]  # torchao has no types
    """Annotates a graph for integer kernels, by configurations for all of it or for parts.

    A part's configuration wins over the one of a larger part: a module's name over a module's
    type, that over an operator, that over the whole. None keeps a part as it is.
    """

    def __init__(self, config: QuantizationConfig | None = None) -> None:
        self._global = config
        self._operators: dict[Any, QuantizationConfig | None] = {}
        self._types: dict[str, QuantizationConfig | None] = {}
        self._names: dict[str, QuantizationConfig | None] = {}
        self._filter: Callable[[Node], bool] | None = None

    @property
    def config(self) -> QuantizationConfig | None:
        """The configuration of the whole graph."""
        return self._global

    def set_global(self, config: QuantizationConfig | None) -> CpuQuantizer:
        """Quantise by `config` all calls without a more particular configuration."""
        self._global = config
        return self

    def set_operator_type(
        self, operator_type: Any, config: QuantizationConfig | None
    ) -> CpuQuantizer:
        """Quantise calls of an operator, `torch.ops.aten.conv2d.default`, by `config`."""
        self._operators[operator_type] = config
        return self

    def set_module_type(
        self, module_type: type[torch.nn.Module], config: QuantizationConfig | None
    ) -> CpuQuantizer:
        """Quantise the calls in modules of a class, with the modules inside them, by `config`."""
        self._types[type_name(module_type)] = config
        return self

    def set_module_name(self, module_name: str, config: QuantizationConfig | None) -> CpuQuantizer:
        """Quantise the calls in a module such as "blocks.0.fc", with the modules inside it."""
        self._names[module_name] = config
        return self

    def set_filter_function(self, filter_fn: Callable[[Node], bool] | None) -> CpuQuantizer:
        """Quantise only calls for which `filter_fn` returns true."""
        self._filter = filter_fn
        return self

    def transform_for_annotation(self, model: GraphModule) -> GraphModule:
        """Rewrite the graph for the annotations; see `transform.py` and `joins.py`."""
        prepare_graph(model)
        part_joins(model)
        return model

    def annotate(self, model: GraphModule) -> GraphModule:
        """Write the annotations of every call; see `annotate.py`."""
        annotator = Annotator()
        for node in model.graph.nodes:
            config = self._config_of(node) if node.op == "call_function" else None
            if config is not None and (self._filter is None or self._filter(node)):
                annotator.annotate(node, config)
        drop_parted(model, [node for node in parted(model) if not is_annotated(node)])
        return model

    def prepare_obs_or_fq_callback(
        self, model: GraphModule, edge_or_node_to_obs_or_fq: dict[Any, Any]
    ) -> None:
        """Connect the observers of 4-bit weights with the observers of their layers' inputs."""
        for edge, weight in edge_or_node_to_obs_or_fq.items():
            if not isinstance(weight, GroupedWeightObserver):
                continue
            layer = edge[1]
            inputs = edge_or_node_to_obs_or_fq.get((layer.args[0], layer))
            if isinstance(inputs, PerTokenObserver):
                weight.inputs, inputs.wants_moments = inputs, True

    def validate(self, model: GraphModule) -> None:
        """Check that the calls that should be quantised are.

        Raises:
            ExportError: names the layer whose dtype or weight does not fit the configuration.
        """
        nodes = list(model.graph.nodes)
        for node in nodes:
            if node.target in PRODUCTS and not is_annotated(node):
                self._refuse_dtype(node)
        unknown = self._unknown_names(nodes)
        if not any(is_annotated(node) for node in nodes):
            raise ExportError(
                f"nothing is quantised: {unknown}"
                if unknown
                else "nothing in the model is what the recipe quantises: it has no linear layer or "
                "convolution with constant weights, or all are left out; choose another recipe",
                code=Code.INVALID_ARGUMENT if unknown else Code.NOT_SUPPORTED,
            )
        if unknown:  # it may be a module that only another method calls
            warnings.warn(unknown, UserWarning, stacklevel=2)

    def _unknown_names(self, nodes: list[Node]) -> str:
        """A message on names of modules that no call is in; "" if there are none."""
        paths = dict.fromkeys(path for node in nodes for path, _ in _modules_of(node) if path)
        told = []
        for name in self._names:
            if name and name not in paths:
                near = difflib.get_close_matches(name, paths, n=1)
                meant = f", did you mean {near[0]!r}" if near else ""
                told.append(f"set_module_name({name!r}): the model calls no such module{meant}")
        return "; ".join(told)

    def _refuse_dtype(self, node: Node) -> None:
        value = node.meta.get("val")
        chosen = self._config_of(node) is not None and (self._filter is None or self._filter(node))
        if chosen and isinstance(value, torch.Tensor) and value.dtype != torch.float32:
            raise ExportError(
                f"{layer_of(node)} computes with {value.dtype}, and only float32 is quantised: "
                f"convert the model with .float(), or leave the module out with "
                f"set_module_name(name, None)",
                code=Code.INVALID_TYPE,
            )

    def _config_of(self, node: Node) -> QuantizationConfig | None:
        return chosen_config(node, self._names, self._types, self._operators, self._global)


def chosen_config(
    node: Node,
    names: Mapping[str, QuantizationConfig | None],
    types: Mapping[str, QuantizationConfig | None],
    operators: Mapping[Any, QuantizationConfig | None],
    whole: QuantizationConfig | None,
) -> QuantizationConfig | None:
    """The configuration of a call: that of the smallest part which has one.

    Args:
        node: the call.
        names, types: of the modules that it is in, by path, and by the class as `type_name` names
            it; the innermost module first.
        operators: by overload, or by operator with all of its overloads.
        whole: of the graph.
    """
    stack = _modules_of(node)
    for path, _ in reversed(stack):
        if path in names:
            return names[path]
    for _, kind in reversed(stack):
        name = kind if isinstance(kind, str) else type_name(kind)
        if name in types:
            return types[name]
    for target in (node.target, getattr(node.target, "overloadpacket", None)):
        if target in operators:
            return operators[target]
    return whole


def type_name(kind: type[torch.nn.Module]) -> str:
    """The name of a class of modules in a graph's metadata."""
    return f"{kind.__module__}.{kind.__qualname__}"


def _modules_of(node: Node) -> list[tuple[str, Any]]:
    """The paths and classes of the modules that a call is in, the outermost first."""
    return [
        (path.removeprefix("L['self']").removeprefix("."), kind)
        for path, kind in (node.meta.get("nn_module_stack") or {}).values()
    ]
