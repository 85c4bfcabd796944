"""`OpenVINOQuantizer`: NNCF chooses what is quantised, so that OpenVINO computes it in integers.

NNCF is Intel's package for compression: pip install 'rushlight[nncf]'.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e import (
    HistogramObserver,
    PerChannelMinMaxObserver,
)
from torchao.quantization.pt2e.quantizer import (
    QuantizationAnnotation,
    QuantizationSpec,
    Quantizer,
    SharedQuantizationSpec,
)
from torchao.quantization.pt2e.quantizer.quantizer import Q_ANNOTATION_KEY

try:
    import nncf
except ModuleNotFoundError as error:
    if error.name != "nncf":
        raise
    raise ImportError(
        "OpenVINOQuantizer needs nncf, which is not installed: pip install 'rushlight[nncf]'",
        name="nncf",
    ) from error

import nncf.experimental.torch.fx
from nncf.common.quantization.structs import QuantizationPreset, QuantizationScheme
from nncf.experimental.torch.fx.nncf_graph_builder import GraphConverter
from nncf.quantization.algorithms.min_max.algorithm import MinMaxQuantization
from nncf.torch.model_graph_manager import get_weight_tensor_port_ids

__all__ = ["Q_ANNOTATION_KEY", "OpenVINOQuantizer", "QuantizationMode", "quantize_model"]

_EPS = 1e-16  # as in NNCF's own layers

Edge = tuple[Node, Node]


class QuantizationMode(Enum):
    """What is quantised, and how.

    INT8_SYM: weights and activations, both symmetric.
    INT8_MIXED: likewise, with activations that have zero points.
    INT8_TRANSFORMER: as INT8_MIXED, with NNCF's patterns of transformers.
    INT8WO_SYM, INT8WO_ASYM, INT4WO_SYM, INT4WO_ASYM: weights alone; `rushlight.quantize` does it.
    """

    INT8_SYM = "int8_sym"
    INT8_MIXED = "int8_mixed"
    INT8_TRANSFORMER = "int8_transformer"
    INT8WO_SYM = "int8wo_sym"
    INT8WO_ASYM = "int8wo_asym"
    INT4WO_SYM = "int4wo_sym"
    INT4WO_ASYM = "int4wo_asym"


_OPTIONS: dict[QuantizationMode, dict[str, Any]] = {
    QuantizationMode.INT8_SYM: {"preset": QuantizationPreset.PERFORMANCE},
    QuantizationMode.INT8_MIXED: {"preset": QuantizationPreset.MIXED},
    QuantizationMode.INT8_TRANSFORMER: {"model_type": nncf.ModelType.TRANSFORMER},
}


class OpenVINOQuantizer(Quantizer):  # type: ignore[misc]  # torchao has no types
    """Annotates a captured graph for `prepare_pt2e`, or for NNCF's `quantize_pt2e`.

    Args:
        mode: what is quantised; one of the first three modes.
        kwargs: options of NNCF's algorithm `MinMaxQuantization`.

    Raises:
        ValueError: the mode is one for weights alone.
    """

    def __init__(
        self, *, mode: QuantizationMode = QuantizationMode.INT8_SYM, **kwargs: Any
    ) -> None:
        if mode not in _OPTIONS:
            recipe = "int4-weights" if mode.value.startswith("int4") else "int8-weights"
            raise ValueError(
                f"mode={mode}: OpenVINOQuantizer quantises weights with their activations; for "
                f"weights alone use rushlight.quantize(model, args, recipe={recipe!r})"
            )
        self.mode = mode
        self._algorithm = MinMaxQuantization(**_OPTIONS[mode], **kwargs)

    def set_ignored_scope(
        self,
        names: Sequence[str] | None = None,
        patterns: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        subgraphs: Sequence[tuple[Sequence[str], Sequence[str]]] | None = None,
        validate: bool = True,
    ) -> None:
        """Leave parts of the graph as they are.

        Args:
            names: of nodes.
            patterns: regular expressions that match names of nodes.
            types: of operations, as NNCF names them: "conv2d".
            subgraphs: the names of the first and of the last nodes of parts.
            validate: raise an error where one of these is not in the graph.
        """
        parts = [nncf.Subgraph(list(first), list(last)) for first, last in subgraphs or ()]
        scope = nncf.IgnoredScope(
            list(names or ()), list(patterns or ()), list(types or ()), parts, validate
        )
        self._algorithm.set_ignored_scope(scope)

    def get_nncf_quantization_setup(self, model: GraphModule, nncf_graph: Any) -> Any:
        """The points of the graph that NNCF quantises, for its own `quantize_pt2e`."""
        self._algorithm._set_backend_entity(model)
        return self._algorithm.find_quantization_setup(model, nncf_graph)

    def annotate(self, model: GraphModule) -> GraphModule:
        """Write the annotations of every point that NNCF quantises."""
        graph = GraphConverter.create_nncf_graph(model)
        setup = self.get_nncf_quantization_setup(model, graph)
        nodes = {node.name: node for node in model.graph.nodes}
        points = setup.quantization_points
        places = {
            number: _place(nodes[point.insertion_point.target_node_name], point, graph)
            for number, point in points.items()
        }
        specs: dict[Any, Any] = {number: _specification(point) for number, point in points.items()}
        order = {node: i for i, node in enumerate(model.graph.nodes)}
        for group in setup.unified_scale_groups.values():
            # Those that share a scale share the specification of the first.
            first, *others = sorted(group, key=lambda number: order[_target(places[number])])
            specs.update(dict.fromkeys(others, SharedQuantizationSpec(places[first])))
        annotations: dict[Node, Any] = defaultdict(lambda: QuantizationAnnotation(_annotated=True))
        for number, place in places.items():
            annotation = annotations[_target(place)]
            if isinstance(place, Node):
                annotation.output_qspec = specs[number]
            else:
                annotation.input_qspec_map[place[0]] = specs[number]
        for node, annotation in annotations.items():
            node.meta[Q_ANNOTATION_KEY] = annotation
        return model

    def validate(self, model: GraphModule) -> None:
        """Accept every annotated graph: NNCF annotates only what it knows."""


def _target(place: Node | Edge) -> Node:
    """The node whose result or argument is quantised."""
    return place if isinstance(place, Node) else place[1]


def _place(node: Node, point: Any, graph: Any) -> Node | Edge:
    """A node whose result is quantised, or an argument of a node with the node."""
    if point.is_weight_quantization_point():
        # NNCF's graph may have several weights; the others stay floats.
        port = get_weight_tensor_port_ids(graph.get_node_by_name(node.name), graph)[0]
    else:
        port = point.insertion_point.input_port_id
    return node if port is None else (node.all_input_nodes[port], node)


def _specification(point: Any) -> QuantizationSpec:
    """A point's configuration in torchao's terms: int8 weights with a scale for each output
    channel, and activations with one scale or one for each channel."""
    config = point.qconfig
    is_symmetric = config.mode is QuantizationScheme.SYMMETRIC
    is_weight = point.is_weight_quantization_point()
    if is_weight or config.per_channel:
        scheme = torch.per_channel_symmetric if is_symmetric else torch.per_channel_affine
        observer: Any = PerChannelMinMaxObserver
    else:
        scheme = torch.per_tensor_symmetric if is_symmetric else torch.per_tensor_affine
        observer = HistogramObserver
    dtype = torch.int8 if is_weight or config.signedness_to_force else torch.uint8
    limits = torch.iinfo(dtype)
    return QuantizationSpec(
        dtype=dtype,
        observer_or_fake_quant_ctr=observer.with_args(eps=_EPS),
        quant_min=limits.min,
        quant_max=limits.max,
        qscheme=scheme,
        ch_axis=0 if is_weight else 1,
    )


def quantize_model(
    captured_model: GraphModule,
    calibration_dataset: Iterable[Any],
    *,
    mode: QuantizationMode = QuantizationMode.INT8_SYM,
    subset_size: int = 300,
    fast_bias_correction: bool | None = True,
    smooth_quant: bool = False,
    transform_fn: Callable[[Any], Any] | None = None,
    extra_quantizer_options: dict[str, Any] | None = None,
    **kwargs: Any,
) -> GraphModule:
    """Quantise a captured model by NNCF's `quantize_pt2e`, which corrects biases too.

    Args:
        captured_model: the module of an exported program; it is changed.
        calibration_dataset: samples.
        mode: what is quantised.
        subset_size: the number of samples that are used.
        fast_bias_correction: correct biases by means (True) or layer by layer (False, slower and
            more exact); None leaves them.
        smooth_quant: move outliers of activations into weights first.
        transform_fn: makes the model's inputs of a sample; a sample is its inputs without it.
        extra_quantizer_options: options of `OpenVINOQuantizer`; its `mode` is ignored.
        kwargs: further options of `quantize_pt2e`.

    Returns:
        The model, with calls that quantise and dequantise.
    """
    options = {k: v for k, v in (extra_quantizer_options or {}).items() if k != "mode"}
    quantised: GraphModule = nncf.experimental.torch.fx.quantize_pt2e(
        captured_model,
        OpenVINOQuantizer(mode=mode, **options),
        calibration_dataset=nncf.Dataset(calibration_dataset, transform_fn),
        subset_size=subset_size,
        fast_bias_correction=fast_bias_correction,
        smooth_quant=smooth_quant,
        **{"fold_quantize": False, **kwargs},
    )
    return quantised
