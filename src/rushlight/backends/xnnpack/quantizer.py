"""ExecuTorch's quantizer of XNNPACK, as torchao has it: dynamic scales belong to whole tensors.

`CpuQuantizer` annotates more operators, and gives each row of activations its own scale.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from torch.fx import GraphModule, Node
from torchao.testing.pt2e import _xnnpack_quantizer as torchao_quantizer
from torchao.testing.pt2e._xnnpack_quantizer import get_symmetric_quantization_config
from torchao.testing.pt2e._xnnpack_quantizer_utils import QuantizationConfig

from rushlight.errors import Code, ExportError

__all__ = ["QuantizationConfig", "XNNPACKQuantizer", "get_symmetric_quantization_config"]

_Quantizer = torchao_quantizer.XNNPACKQuantizer


class XNNPACKQuantizer(_Quantizer):  # type: ignore[misc,valid-type]  # no types
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

    def _annotate_all_dynamic_patterns(
        self,
        model: GraphModule,
        quantization_config: QuantizationConfig | None,
        filter_fn: Callable[[Node], bool] | None = None,
    ) -> GraphModule:
        """Annotate linear layers, as torchao's does, and the convolutions that XNNPACK takes."""
        super()._annotate_all_dynamic_patterns(model, quantization_config, filter_fn)
        if quantization_config is not None:
            torchao_quantizer.OP_TO_ANNOTATOR["conv"](
                *(model, quantization_config),
                lambda node: _is_dense(node) and (filter_fn is None or filter_fn(node)),
            )
        return model

    def annotate(self, model: GraphModule) -> GraphModule:
        """Write the annotations; those of calls that the filter leaves out are not written."""
        chosen = self.filter_fn
        if chosen is None:
            whole: GraphModule = super().annotate(model)
            return whole
        left_out = [n for n in model.graph.nodes if n.op == "call_function" and not chosen(n)]
        before = {n: n.meta.get(_KEY) for n in left_out}
        annotated: GraphModule = super().annotate(model)
        for node, annotation in before.items():
            _restore(node, annotation)
        return annotated


def _is_dense(node: Node) -> bool:
    """Whether a node is no convolution, or one of images whose inputs have several channels."""
    if not str(node.target).startswith("aten.conv"):
        return True
    weight: Any = node.args[1]
    shape: Any = getattr(weight.meta.get("val"), "shape", ())
    return len(shape) == 4 and int(shape[1]) > 1


_KEY = "quantization_annotation"


def _restore(node: Node, annotation: Any) -> None:
    node.meta.pop(_KEY, None)
    if annotation is not None:
        node.meta[_KEY] = annotation
